/*
 * life MODE - one program that lives in a certain way; what it prints must not depend on who watches. It runs on
 * a real GPU too, but for `trap`, `variable` and `capture-meanwhile`, whose kernels are the software GPU's.
 */
#include "examples/driver_api/driver_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cupti.h>

#define N ((uint64_t)1 << 19)

static const char *program;

/* Managed memory written, computed upon twice and read: always the same number. */
static double work(CUmodule module, CUstream stream)
{
    uint64_t n = N;
    CUfunction add_one;
    CUdeviceptr data;
    double sum = 0;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    memset(floats(data), 0, n * sizeof(float));
    for (int r = 0; r < 2; r++) {
        launch(add_one, stream, (void *[]){&data, &n});
        CHECK(cuStreamSynchronize(stream));
        for (uint64_t i = 0; i < n; i += 1024)
            sum += (double)floats(data)[i];
    }
    CHECK(cuMemFree(data));
    return sum;
}

static void plain(void)
{
    printf("%.0f\n", work(start(program, 0), NULL));
}

/* CUDA does not survive a fork; managed memory is not in the child; the parent goes on. */
static void forks(void)
{
    CUmodule module = start(program, 0);
    int status = 0;

    printf("%.0f\n", work(module, NULL));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int n = 0;
        CUresult count = cuDeviceGetCount(&n), init = cuInit(0);
        _exit(count != CUDA_SUCCESS && init != CUDA_SUCCESS ? 7 : 8);
    }
    waitpid(child, &status, 0);
    printf("%.0f, child %d\n", work(module, NULL), WEXITSTATUS(status));
}

static void forks_before(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        plain();
        exit(5);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    plain();
}

static void execs(void)
{
    plain();
    fflush(stdout);
    execl("/proc/self/exe", program, "plain", NULL);
}

static void *in_thread(void *module)
{
    static double sums[8];
    static _Atomic int n;
    double *sum = &sums[n++];
    CUdevice device;
    CUcontext context;
    CUstream stream;

    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    *sum = work(module, stream);
    CHECK(cuStreamDestroy(stream));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return sum;
}

static void threads(void)
{
    CUmodule module = start(program, 0);
    pthread_t thread[4];
    double total = 0;

    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, in_thread, module);
    for (int i = 0; i < 4; i++) {
        void *sum = NULL;
        pthread_join(thread[i], &sum);
        total += *(double *)sum;
    }
    printf("%.0f\n", total);
}

static void leaves(void)
{
    plain();
    fflush(stdout);
    _exit(3);
}

static void dies(void)
{
    plain();
    fflush(stdout);
    raise(SIGTERM);
}

static void is_killed(void)
{
    plain();
    fflush(stdout);
    raise(SIGKILL);
}

static void resets(void)
{
    plain();
    CHECK(cuDevicePrimaryCtxReset(0));
    plain();
    CHECK(cuDevicePrimaryCtxRelease(0));
    plain();
}

/* A context of its own, destroyed with everything in it. */
static void own_context(void)
{
    char *text = read_kernels(program);

    CHECK(cuInit(0));
    for (int i = 0; i < 3; i++) {
        CUcontext context;
        CUmodule module;
        CUdeviceptr left;
#if CUDA_VERSION >= 13000
        CHECK(cuCtxCreate(&context, NULL, 0, 0));
#else
        CHECK(cuCtxCreate(&context, 0, 0));
#endif
        CHECK(cuModuleLoadData(&module, text));
        CHECK(cuMemAllocManaged(&left, 1 << 20, CU_MEM_ATTACH_GLOBAL));
        printf("%.0f\n", work(module, NULL));
        CHECK(cuCtxDestroy(context));
    }
    free(text);
}

/* What is unsafe while a stream is captured a program does as a relaxed thread; the launches it does not. */
static void relaxed(bool on)
{
    CUstreamCaptureMode mode = on ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;

    CHECK(cuThreadExchangeStreamCaptureMode(&mode));
}

static void fill(CUdeviceptr data, float value)
{
    for (uint64_t i = 0; i < N; i++)
        floats(data)[i] = value;
}

/* A program at work while a capture of each mode is under way: one buffer comes and goes, one is to and fro, one only
 * read. What is captured computes afterwards. */
static void captures(void)
{
    CUmodule module = start(program, 0);
    uint64_t n = N;
    float a = 2;
    CUfunction add_one, axpy;
    CUdeviceptr data, fresh, ball, table;
    CUstream stream, other;
    CUgraph graph;
    CUgraphExec exec;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuModuleGetFunction(&axpy, module, "_Z4axpyPfPKfmf"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&ball, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&table, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    fill(data, 0);
    fill(table, 1);
    for (unsigned mode = 0; mode < 3; mode++) {
        float sum = 0;
        CHECK(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
        launch(add_one, stream, (void *[]){&data, &n});
        launch(add_one, other, (void *[]){&data, &n});
        launch(add_one, stream, (void *[]){&data, &n});
        for (int round = 0; round < 10; round++) {
            relaxed(true);
            CHECK(cuMemAllocManaged(&fresh, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
            fill(fresh, 1);
            fill(ball, (float)round);
            relaxed(false);
            launch(add_one, other, (void *[]){&fresh, &n});
            launch(axpy, other, (void *[]){&ball, &table, &n, &a});
            relaxed(true);
            CHECK(cuStreamSynchronize(other));
            sum += floats(fresh)[n - 1] + floats(ball)[n - 1];
            CHECK(cuMemFree(fresh));
            relaxed(false);
        }
        CHECK(cuStreamEndCapture(stream, &graph));
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        printf("mode %u: %.0f, beside it %.0f\n", mode, (double)floats(data)[n - 1], (double)sum);
        CHECK(cuGraphExecDestroy(exec));
        CHECK(cuGraphDestroy(graph));
    }
}

/* A capture begins while a launch on the legacy stream is under way, and ends once that call has returned. */
static CUstream captured;
static CUcontext captured_in;
static _Atomic uint32_t *running; /* the kernel wrote it */
static _Atomic bool launched;

static void *capture_meanwhile(void *ended)
{
    CUgraph graph;

    CHECK(cuCtxSetCurrent(captured_in));
    while (!*running)
        sched_yield();
    CHECK(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    while (!launched)
        sched_yield();
    *(CUresult *)ended = cuStreamEndCapture(captured, &graph);
    return NULL;
}

static void captures_meanwhile(void)
{
    static const char text[] = "//softgpu kernel slow ptr:p\n"
                               "//softgpu   fill u32 p 1 1\n"
                               "//softgpu   wait 300000000\n";
    CUmodule module = start(program, 0);
    CUresult ended = CUDA_ERROR_UNKNOWN;
    CUfunction slow, add_one;
    CUdeviceptr data;
    pthread_t thread;
    uint64_t n = N;
    void *flag;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&slow, module, "slow"));
    CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    fill(data, 1);
    launch(add_one, NULL, (void *[]){&data, &n});
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxGetCurrent(&captured_in));
    CHECK(cuStreamCreate(&captured, CU_STREAM_DEFAULT));
    CHECK(cuMemAllocHost(&flag, sizeof(*running)));
    running = flag;
    *running = 0;
    pthread_create(&thread, NULL, capture_meanwhile, &ended);
    launch(slow, NULL, (void *[]){&flag});
    launched = true;
    pthread_join(thread, NULL);
    CHECK(cuCtxSynchronize());
    printf("%.0f, ends %d\n", (double)floats(data)[0], (int)ended);
}

/* The context is lost: every later call says so, and the program ends in good order. */
static void traps(void)
{
    static const char text[] = "//softgpu kernel trap ptr:data\n//softgpu   trap\n";
    CUmodule module = start(program, 0), bad;
    CUfunction trap;
    CUdeviceptr data;

    printf("%.0f\n", work(module, NULL));
    CHECK(cuModuleLoadData(&bad, text));
    CHECK(cuModuleGetFunction(&trap, bad, "trap"));
    CHECK(cuMemAllocManaged(&data, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    memset(floats(data), 1, 1 << 20);
    launch(trap, NULL, (void *[]){&data});
    printf("%d\n", (int)cuCtxSynchronize());
    printf("%d %d\n", (int)cuCtxSynchronize(), (int)cuMemFree(data));
}

/* A __managed__ variable, a kernel handle, the launch of 11.8 and a parameter buffer. */
static void variable(void)
{
    static const char text[] = "//softgpu managed numbers 4194304\n"
                               "//softgpu kernel _Z3setPfm ptr:p u64:n\n"
                               "//softgpu   fill f32 p n 2\n"
                               "//softgpu   add f32 p n 1\n";
    uint64_t n = 1 << 20;
    CUmodule module = start(program, 0);
    CUfunction set;
    CUdeviceptr numbers;
    size_t bytes;
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1};

    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetGlobal(&numbers, &bytes, module, "numbers"));
    CHECK(cuModuleGetFunction(&set, module, "_Z3setPfm"));
    CHECK(cuLaunchKernelEx(&config, set, (void *[]){&numbers, &n}, NULL));
    CHECK(cuCtxSynchronize());
    printf("%zu %.0f\n", bytes, (double)floats(numbers)[n - 1]);
    struct {
        CUdeviceptr p;
        uint64_t n;
    } block = {numbers, n / 2};
    size_t block_bytes = sizeof(block);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &block_bytes, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(set, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    CHECK(cuCtxSynchronize());
    CHECK(cuLaunchCooperativeKernel(set, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&numbers, &n}));
    CHECK(cuCtxSynchronize());
    printf("%.0f\n", (double)floats(numbers)[0]);
}

/* A mapping made by hand, rectangles, a kernel's handle, and what batches there are. */
static void mappings(void)
{
    CUmodule module = start(program, 0);
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr mapped, managed;
    CUfunction add_one;
    CUstream stream;
    size_t granule;
    float first[4];

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&mapped, granule, 0, 0, 0));
    CHECK(cuMemCreate(&handle, granule, &prop, 0));
    CHECK(cuMemMap(mapped, granule, 0, handle, 0));
    CHECK(cuMemSetAccess(mapped, granule, &access, 1));
    uint64_t n = granule / sizeof(float);
    CHECK(cuMemsetD32(mapped, 0x40000000, n)); /* 2 */
    launch(add_one, NULL, (void *[]){&mapped, &n});
    CHECK(cuMemAllocManaged(&managed, granule, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemsetD2D32(managed, 4096, 0x3f800000, 16, granule / 4096)); /* 1, in 16 of each 1024 */
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = mapped,
                          .srcPitch = 4096,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = managed,
                          .dstXInBytes = 8,
                          .dstPitch = 4096,
                          .WidthInBytes = 8,
                          .Height = granule / 4096};
    CHECK(cuMemcpy2D(&copy));
    CHECK(cuMemcpyDtoH(first, managed, sizeof(first)));
    printf("%.0f %.0f %.0f %.0f\n", (double)first[0], (double)first[1], (double)first[2],
           (double)first[3]);
#if CUDA_VERSION >= 13000
    CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_HOST};
    size_t half = granule / 2, at = 0;
    CUdeviceptr part[] = {managed, managed + half};
    size_t bytes[] = {half, half};
    CHECK(cuMemPrefetchBatchAsync(part, bytes, 2, &where, &at, 1, 0, stream));
    CHECK(cuStreamSynchronize(stream));
    printf("%.0f\n", (double)floats(managed)[3]);
    CHECK(cuMemDiscardBatchAsync(part, bytes, 2, 0, stream));
    CHECK(cuMemsetD32Async(managed, 0x40800000, n, stream)); /* 4 */
    CHECK(cuStreamSynchronize(stream));
    printf("%.0f\n", (double)floats(managed)[n - 1]);
    CUmemPoolProps pool_of = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool;
    CUdeviceptr pooled;
    CHECK(cuMemPoolCreate(&pool, &pool_of));
    CHECK(cuMemAllocFromPoolAsync(&pooled, granule, pool, stream));
    CHECK(cuStreamSynchronize(stream));
    memset(floats(pooled), 0, granule);
    launch(add_one, stream, (void *[]){&pooled, &n});
    CHECK(cuStreamSynchronize(stream));
    printf("%.0f\n", (double)floats(pooled)[n - 1]);
    CHECK(cuMemFreeAsync(pooled, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemPoolDestroy(pool));
#endif
    CHECK(cuMemFree(managed));
    CHECK(cuMemUnmap(mapped, granule));
    CHECK(cuMemRelease(handle));
    CHECK(cuMemAddressFree(mapped, granule));
}

/* The program is a CUPTI client itself, from before CUDA starts. */
static void CUPTIAPI called(void *n, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    const CUpti_CallbackData *info = data;

    (void)domain;
    (void)id;
    if (info->callbackSite == CUPTI_API_EXIT)
        ++*(int *)n;
}

static void subscribes(void)
{
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *) =
        (__typeof__(subscribe))dlsym(cupti, "cuptiSubscribe");
    CUptiResult (*enable)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                          CUpti_CallbackId) =
        (__typeof__(enable))dlsym(cupti, "cuptiEnableCallback");
    CUpti_SubscriberHandle handle;
    int n = 0;

    printf("subscribed: %d\n", subscribe(&handle, called, &n));
    enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    plain();
    printf("%d launches seen\n", n);
}

/* umrt comes when CUDA is long running. */
static void late(void)
{
    CUmodule module = start(program, 0);
    const char *path = getenv("LATE");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*init)(const void *) =
        library ? (__typeof__(init))dlsym(library, "um_runtime_init") : NULL;

    printf("%.0f\n", work(module, NULL));
    if (init)
        init(NULL);
    printf("%.0f\n", work(module, NULL));
    printf("%.0f\n", work(module, NULL));
}

/* The CPU touches what a kernel is at work on: with concurrent access it waits its turn, without it dies. */
static void touches_unwaited(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        CUmodule module = start(program, 0);
        CUfunction add_one;
        CUdeviceptr data;
        uint64_t n = N;
        CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
        CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
        memset(floats(data), 0, n * sizeof(float));
        launch(add_one, NULL, (void *[]){&data, &n});
        ((volatile float *)floats(data))[n - 1] += 0;
        CHECK(cuCtxSynchronize());
        exit(0);
    }
    waitpid(child, &status, 0);
    printf("%s %d\n", WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } modes[] = {
        {"plain", plain},
        {"fork", forks},
        {"fork-before", forks_before},
        {"exec", execs},
        {"threads", threads},
        {"_exit", leaves},
        {"signal", dies},
        {"kill", is_killed},
        {"reset", resets},
        {"context", own_context},
        {"capture", captures},
        {"capture-meanwhile", captures_meanwhile},
        {"trap", traps},
        {"variable", variable},
        {"mappings", mappings},
        {"subscriber", subscribes},
        {"unwaited", touches_unwaited},
        {"late", late},
    };

    program = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(modes[i].name, argv[1]) == 0) {
            modes[i].fn();
            return 0;
        }
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        puts(modes[i].name);
    return 2;
}

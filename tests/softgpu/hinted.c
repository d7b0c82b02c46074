/*
 * hinted MODE - one program for each way in which kernels come to run on managed memory. Each round the CPU writes what
 * a kernel then takes, and reads it after a wait; what it prints must not depend on who moves the memory.
 */
#include "examples/driver_api/driver_api.h"

#include <stdbool.h>
#include <time.h>

#define BYTES  ((uint64_t)4 << 20)
#define N      (BYTES / sizeof(float))
#define ROUNDS 8 /* some hints may come too late where the machine is busy */
#define REST   "//softgpu   wait 20000000\n" /* in which they come in time */

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, CUstream stream,
                             void **params, void **extra);

static const char *program;
static uint64_t n = N;

static CUfunction function(CUmodule module, const char *name)
{
    CUfunction f;

    CHECK(cuModuleGetFunction(&f, module, name));
    return f;
}

static CUdeviceptr allocate(uint64_t bytes)
{
    CUdeviceptr data;

    CHECK(cuMemAllocManaged(&data, bytes, CU_MEM_ATTACH_GLOBAL));
    return data;
}

static void fill(CUdeviceptr data, uint64_t bytes, float value)
{
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        floats(data)[i] = value;
}

static double sum(CUdeviceptr data, uint64_t bytes)
{
    double total = 0;

    for (uint64_t i = 0; i < bytes / sizeof(float); i += 64)
        total += (double)floats(data)[i];
    return total;
}

/* ---- streams ---- */

static void on_stream(CUfunction add_one, const char *name, CUstream stream, bool thread)
{
    CUdeviceptr data = allocate(BYTES);
    void *params[] = {&data, &n};

    for (int r = 0; r < ROUNDS; r++) {
        fill(data, BYTES, (float)r);
        if (thread)
            CHECK(cuLaunchKernel_ptsz(add_one, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
        else
            launch(add_one, stream, params);
        CHECK(cuStreamSynchronize(thread ? CU_STREAM_PER_THREAD : stream));
        printf("%s %.0f\n", name, sum(data, BYTES));
    }
    CHECK(cuMemFree(data));
}

static void streams(void)
{
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    int least, greatest;
    CUstream blocking, free_running, urgent;

    CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CHECK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, greatest));
    on_stream(add_one, "legacy", NULL, false);
    on_stream(add_one, "named legacy", CU_STREAM_LEGACY, false);
    on_stream(add_one, "per thread", NULL, true);
    on_stream(add_one, "named per thread", CU_STREAM_PER_THREAD, true);
    on_stream(add_one, "blocking", blocking, false);
    on_stream(add_one, "non-blocking", free_running, false);
    on_stream(add_one, "urgent", urgent, false);
    CHECK(cuStreamDestroy(urgent));
    CHECK(cuStreamDestroy(free_running));
    CHECK(cuStreamDestroy(blocking));
}

/* The CPU waits for an event, and for a copy. */
static void waits(void)
{
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    CUdeviceptr data = allocate(BYTES), other = allocate(4096);
    CUstream stream;
    CUevent event;

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    fill(data, BYTES, 0);
    for (int r = 0; r < 3 * ROUNDS; r++) {
        launch(add_one, stream, (void *[]){&data, &n});
        if (r % 2) {
            CHECK(cuEventRecord(event, stream));
            CHECK(cuEventSynchronize(event));
        } else {
            CHECK(cuStreamSynchronize(stream));
            CHECK(cuMemcpy(other, data, 4096));
        }
        printf("%.0f %.0f\n", sum(data, BYTES), (double)floats(other)[0]);
    }
    CHECK(cuEventDestroy(event));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuMemFree(other));
    CHECK(cuMemFree(data));
}

static void cooperative(void)
{
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    CUdeviceptr data = allocate(BYTES);

    for (int r = 0; r < ROUNDS; r++) {
        fill(data, BYTES, (float)r);
        CHECK(
            cuLaunchCooperativeKernel(add_one, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&data, &n}));
        CHECK(cuCtxSynchronize());
        printf("%.0f\n", sum(data, BYTES));
    }
    CHECK(cuMemFree(data));
}

/* ---- graphs ---- */

/* Captured over two streams, launched many times on a third. */
static void forked(void)
{
    CUmodule module = start(program, 0);
    CUfunction add_one = function(module, "_Z7add_onePfm");
    CUfunction axpy = function(module, "_Z4axpyPfPKfmf");
    CUdeviceptr x = allocate(BYTES), y = allocate(BYTES);
    CUstream stream[3];
    CUevent fork, join;
    CUgraph graph;
    CUgraphExec exec;
    float a = 2;

    for (int i = 0; i < 3; i++)
        CHECK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CHECK(cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuEventRecord(fork, stream[0]));
    CHECK(cuStreamWaitEvent(stream[1], fork, 0));
    launch(add_one, stream[0], (void *[]){&x, &n});
    launch(add_one, stream[1], (void *[]){&y, &n});
    CHECK(cuEventRecord(join, stream[1]));
    CHECK(cuStreamWaitEvent(stream[0], join, 0));
    launch(axpy, stream[0], (void *[]){&y, &x, &n, &a});
    CHECK(cuStreamEndCapture(stream[0], &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int r = 0; r < ROUNDS; r++) {
        fill(x, BYTES, (float)r);
        fill(y, BYTES, 1);
        CHECK(cuGraphLaunch(exec, stream[2]));
        CHECK(cuStreamSynchronize(stream[2]));
        printf("%.0f %.0f\n", sum(x, BYTES), sum(y, BYTES));
    }
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuEventDestroy(fork));
    CHECK(cuEventDestroy(join));
    for (int i = 0; i < 3; i++)
        CHECK(cuStreamDestroy(stream[i]));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
}

/* ---- where the memory comes from ---- */

static void variable(void)
{
    static const char text[] =
        "//softgpu managed numbers 4194304\n"
        "//softgpu kernel _Z3incPfm ptr:p u64:n\n" REST "//softgpu   add f32 p n 1\n";
    CUdeviceptr numbers;
    CUmodule module = start(program, 0);
    size_t bytes;

    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetGlobal(&numbers, &bytes, module, "numbers"));
    for (int r = 0; r < ROUNDS; r++) {
        fill(numbers, BYTES, (float)r);
        launch(function(module, "_Z3incPfm"), NULL, (void *[]){&numbers, &n});
        CHECK(cuCtxSynchronize());
        printf("%.0f\n", sum(numbers, BYTES));
    }
}

/* Half of a managed pool's memory at a time. */
static void pool(void)
{
#if CUDA_VERSION >= 13000
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool from;
    CUstream stream;

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemPoolCreate(&from, &props));
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr data;
        CHECK(cuMemAllocFromPoolAsync(&data, BYTES, from, stream));
        CHECK(cuStreamSynchronize(stream));
        fill(data, BYTES, (float)r);
        launch(add_one, stream, (void *[]){&data, &n});
        CHECK(cuStreamSynchronize(stream));
        printf("%.0f\n", sum(data, BYTES));
        CHECK(cuMemFreeAsync(data, stream));
        CHECK(cuStreamSynchronize(stream));
    }
    CHECK(cuMemPoolDestroy(from));
    CHECK(cuStreamDestroy(stream));
#endif
}

/* The program advises itself. */
static void advised(void)
{
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    CUdeviceptr data = allocate(BYTES);

#if CUDA_VERSION >= 13000
    CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CHECK(cuMemAdvise(data, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, where));
#else
    CHECK(cuMemAdvise(data, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
#endif
    for (int r = 0; r < 20; r++) {
        fill(data, BYTES, (float)r);
        launch(add_one, NULL, (void *[]){&data, &n});
        CHECK(cuCtxSynchronize());
        printf("%.0f\n", sum(data, BYTES));
    }
    CHECK(cuMemFree(data));
}

/* What goes to and fro between short kernels and the CPU, and a table that both only read. */
static void shared(void)
{
    CUmodule module = start(program, 0);
    CUfunction add_one = function(module, "_Z7add_onePfm");
    CUfunction axpy = function(module, "_Z4axpyPfPKfmf");
    CUdeviceptr ball = allocate(BYTES), table = allocate(BYTES), y = allocate(BYTES);
    float a = 1;

    fill(table, BYTES, 1);
    fill(ball, BYTES, 0);
    fill(y, BYTES, 0);
    for (int r = 0; r < 24; r++) {
        launch(add_one, NULL, (void *[]){&ball, &n});
        launch(axpy, NULL, (void *[]){&y, &table, &n, &a});
        CHECK(cuCtxSynchronize());
        fill(ball, BYTES, (float)(sum(ball, BYTES) - sum(table, BYTES)) / 16384);
    }
    launch(add_one, NULL, (void *[]){&table, &n}); /* somebody writes it after all */
    CHECK(cuCtxSynchronize());
    printf("%.0f %.0f %.0f\n", sum(ball, BYTES), sum(table, BYTES), sum(y, BYTES));
    CHECK(cuMemFree(ball));
    CHECK(cuMemFree(table));
    CHECK(cuMemFree(y));
}

/* ---- contexts and GPUs ---- */

/* Two contexts of one GPU; the first one ends while the other goes on. */
static void contexts(void)
{
    char *text = read_kernels(program);
    CUdeviceptr data[2];
    CUfunction add_one[2];
    CUcontext context[2];
    CUmodule module;

    CHECK(cuInit(0));
    for (int i = 0; i < 2; i++) {
#if CUDA_VERSION >= 13000
        CHECK(cuCtxCreate(&context[i], NULL, 0, 0));
#else
        CHECK(cuCtxCreate(&context[i], 0, 0));
#endif
        CHECK(cuModuleLoadData(&module, text));
        add_one[i] = function(module, "_Z7add_onePfm");
        data[i] = allocate(BYTES);
    }
    for (int r = 0; r < 3 * ROUNDS; r++) {
        int i = r < 2 * ROUNDS ? r % 2 : 1;
        if (r == 2 * ROUNDS)
            CHECK(cuCtxDestroy(context[0]));
        CHECK(cuCtxSetCurrent(context[i]));
        fill(data[i], BYTES, (float)r);
        launch(add_one[i], NULL, (void *[]){&data[i], &n});
        CHECK(cuCtxSynchronize());
        printf("%d %.0f\n", i, sum(data[i], BYTES));
    }
    CHECK(cuCtxDestroy(context[1]));
    free(text);
}

/* Each GPU works on an array of its own. */
static void apart(void)
{
    CUdeviceptr data[2];
    CUfunction add_one[2];
    CUcontext context[2];

    for (int i = 0; i < 2; i++) {
        add_one[i] = function(start(program, i), "_Z7add_onePfm");
        CHECK(cuCtxGetCurrent(&context[i]));
        data[i] = allocate(BYTES);
    }
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < 2; i++) {
            CHECK(cuCtxSetCurrent(context[i]));
            fill(data[i], BYTES, (float)r);
            launch(add_one[i], NULL, (void *[]){&data[i], &n});
            CHECK(cuCtxSynchronize());
            printf("%d %.0f\n", i, sum(data[i], BYTES));
        }
}

/* Two GPUs share one array, half each, at once: told apart by their pointers or by an
 * index alone. */
static void halves(bool by_pointer)
{
    static const char text[] = "//softgpu kernel _Z4halfPfS_m ptr:all ptr:part u64:n\n" REST
                               "//softgpu   add f32 part n 1\n";
    CUfunction f[2];
    CUcontext context[2];
    CUdeviceptr data;

    for (int i = 0; i < 2; i++) {
        CUmodule module = start(program, i);
        CHECK(cuModuleLoadData(&module, text));
        f[i] = function(module, "_Z4halfPfS_m");
        CHECK(cuCtxGetCurrent(&context[i]));
    }
    data = allocate(2 * BYTES);
    for (int r = 0; r < 2 * ROUNDS; r++) {
        fill(data, 2 * BYTES, (float)r);
        for (int i = 0; i < 2; i++) {
            CUdeviceptr part = data + (uint64_t)i * BYTES, all = by_pointer ? part : data;
            CHECK(cuCtxSetCurrent(context[i]));
            launch(f[i], NULL, (void *[]){&all, &part, &n});
        }
        for (int i = 0; i < 2; i++) {
            CHECK(cuCtxSetCurrent(context[i]));
            CHECK(cuCtxSynchronize());
        }
        printf("%.0f %.0f\n", sum(data, BYTES), sum(data + BYTES, BYTES));
    }
}

static void slices(void)
{
    halves(true);
}

static void indexed(void)
{
    halves(false);
}

/* A pool: each round takes two slices that the rounds before did not, and the CPU reads one of them. */
static void elsewhere(void)
{
    static const char text[] = "//softgpu kernel _Z4makePKfPfm ptr:in ptr:out u64:n\n" REST
                               "//softgpu   add f32 out n 1\n";
    CUmodule module = start(program, 0);
    CUdeviceptr pool = allocate(16 * BYTES);
    CUfunction make;

    CHECK(cuModuleLoadData(&module, text));
    make = function(module, "_Z4makePKfPfm");
    for (uint64_t r = 0; r < 4 * (uint64_t)ROUNDS; r++) {
        CUdeviceptr in = pool + 2 * r % 16 * BYTES, out = in + BYTES;

        fill(in, BYTES, (float)r);
        launch(make, NULL, (void *[]){&in, &out, &n});
        CHECK(cuCtxSynchronize());
        printf("%.0f\n", sum(out, BYTES));
    }
    CHECK(cuMemFree(pool));
}

/* ---- what comes next ---- */

/* Under HINTED_AHEAD somebody is expected to prefetch it before it is needed: waits for that, a minute at most. */
static void await(CUdeviceptr data)
{
    for (int ms = 0; getenv("HINTED_AHEAD") && ms < 60000; ms++) {
        int where = CU_DEVICE_INVALID;

        CHECK(cuMemRangeGetAttribute(&where, sizeof(where),
                                     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, data, BYTES));
        if (where == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Three kernels that the CPU waits for, with an array each; the CPU writes two of these. */
static void stages(void)
{
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    CUdeviceptr first = allocate(BYTES), second = allocate(BYTES + 4096),
                third = allocate(2 * BYTES);

    fill(first, BYTES, 1);
    fill(second, BYTES + 4096, 2);
    await(third);
    launch(add_one, NULL, (void *[]){&first, &n});
    await(second);
    CHECK(cuCtxSynchronize());
    launch(add_one, NULL, (void *[]){&second, &n});
    CHECK(cuCtxSynchronize());
    launch(add_one, NULL, (void *[]){&third, &n});
    CHECK(cuCtxSynchronize());
    printf("%.0f %.0f %.0f\n", sum(first, BYTES), sum(second, BYTES), sum(third, BYTES));
    CHECK(cuMemFree(first));
    CHECK(cuMemFree(second));
    CHECK(cuMemFree(third));
}

#if CUDA_VERSION >= 12040
/* As cudart does it: the library is loaded when its first kernel is to run. What is loaded of it by then
 * is told on stderr. */
static void load(CUkernel kernel[2])
{
    static const char text[] = "//softgpu kernel _Z3onePfm ptr:data u64:n\n"
                               "//softgpu   add f32 data n 1\n"
                               "//softgpu kernel _Z3twoPfm ptr:data u64:n\n"
                               "//softgpu   add f32 data n 2\n";
    static const char *const name[] = {"_Z3onePfm", "_Z3twoPfm"};
    CUlibrary loaded;
    int ready = 0;

    CHECK(cuLibraryLoadData(&loaded, text, NULL, NULL, 0, NULL, NULL, 0));
    for (int i = 0; i < 2; i++) {
        CUfunctionLoadingState state;
        CUfunction f;

        CHECK(cuLibraryGetKernel(&kernel[i], loaded, name[i]));
        CHECK(cuKernelGetFunction(&f, kernel[i]));
        CHECK(cuFuncIsLoaded(&state, f));
        ready += state == CU_FUNCTION_LOADING_STATE_LOADED;
    }
    fprintf(stderr, "ready %d\n", ready);
}

/* One while a stream is captured, one while kernels may be running, one after a wait, one while kernels may be
 * running after a wait for another GPU. */
static void library(void)
{
    CUdeviceptr data;
    CUcontext context;
    CUkernel kernel[2];
    CUstream stream;
    CUgraph graph;

    start(program, 0);
    data = allocate(BYTES);
    fill(data, BYTES, 1);
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    load(kernel);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(stream));
    for (int i = 0; i < 2; i++)
        launch((CUfunction)kernel[i], NULL, (void *[]){&data, &n});
    load(kernel);
    CHECK(cuCtxSynchronize());
    load(kernel);
    CHECK(cuCtxGetCurrent(&context));
    launch((CUfunction)kernel[0], NULL, (void *[]){&data, &n});
    start(program, 1);
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxSetCurrent(context));
    load(kernel);
    CHECK(cuCtxSynchronize());
    printf("%.0f\n", sum(data, BYTES));
}
#else
static void library(void)
{
}
#endif

/* ---- calls that keep others out of the driver ---- */

/* As libraries that allocate for each operation do: what a kernel takes is new, and followed at once by the call
 * that `close` makes. The kernel rests long enough for what was brought before that call to be there. */
static void closed(void (*close)(CUdeviceptr data))
{
    static const char text[] = "//softgpu kernel _Z3incPfm ptr:p u64:n\n"
                               "//softgpu   wait 50000000\n"
                               "//softgpu   add f32 p n 1\n";
    CUmodule module = start(program, 0);
    CUfunction inc;

    CHECK(cuModuleLoadData(&module, text));
    inc = function(module, "_Z3incPfm");
    for (int r = 0; r < 2 * ROUNDS; r++) {
        CUdeviceptr data = allocate(BYTES);

        launch(inc, NULL, (void *[]){&data, &n});
        close(data);
    }
}

static void free_it(CUdeviceptr data)
{
    CHECK(cuMemFree(data));
    puts("freed");
}

static void frees(void)
{
    closed(free_it);
}

static void copy_from_it(CUdeviceptr data)
{
    float first = 0;

    CHECK(cuMemcpyDtoHAsync(&first, data, sizeof(first), NULL));
    printf("%.0f\n", (double)first);
    CHECK(cuMemFree(data));
}

static void items(void)
{
    closed(copy_from_it);
}

/* One grid whatever n is: a kernel that strides through its elements. The last n has not been before. */
static void elements(void)
{
    static const uint64_t mib[] = {16, 72, 40, 24, 56, 32};
    const uint64_t bytes = (uint64_t)96 << 20;
    CUfunction add_one = function(start(program, 0), "_Z7add_onePfm");
    CUdeviceptr data = allocate(bytes);

    fill(data, bytes, 0);
    for (int r = 0; r <= 24; r++) {
        uint64_t count = (r < 24 ? mib[r % 6] : 64) << 20 >> 2;

        for (uint64_t i = 0; i < bytes / sizeof(float); i += 1024)
            floats(data)[i] += 1;
        launch(add_one, NULL, (void *[]){&data, &count});
        CHECK(cuCtxSynchronize());
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* where it stopped can be seen */
        printf("%.0f\n", sum(data, 1 << 20));
    }
    CHECK(cuMemFree(data));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } modes[] = {
        {"streams", streams},   {"waits", waits},       {"cooperative", cooperative},
        {"forked", forked},     {"variable", variable}, {"pool", pool},
        {"contexts", contexts}, {"apart", apart},       {"advised", advised},
        {"shared", shared},     {"slices", slices},     {"indexed", indexed},
        {"stages", stages},     {"library", library},   {"elsewhere", elsewhere},
        {"elements", elements}, {"frees", frees},       {"items", items},
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

/*
 * safety.c - programs that end, fork, free and reset in every way there is. Each prints the same with
 * and without umrt: check_safety.sh compares.
 *
 *   safety NAME      runs one; safety list names them all
 *
 * The driver API for the work (the kernel is PTX below) and the runtime API for its last error. Managed
 * memory never passes 256 MiB.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#define MIB (1u << 20)

static const char ptx[] = ".version 6.3\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry add_one(.param .u64 p, .param .u64 n)\n"
                          "{\n"
                          "    .reg .pred %q;\n"
                          "    .reg .b32 %r<6>;\n"
                          "    .reg .b64 %d<6>;\n"
                          "    ld.param.u64 %d0, [p];\n"
                          "    ld.param.u64 %d1, [n];\n"
                          "    mov.u32 %r0, %ctaid.x;\n"
                          "    mov.u32 %r1, %ntid.x;\n"
                          "    mov.u32 %r2, %tid.x;\n"
                          "    mad.wide.u32 %d2, %r0, %r1, 0;\n"
                          "    cvt.u64.u32 %d3, %r2;\n"
                          "    add.u64 %d2, %d2, %d3;\n"
                          "    setp.ge.u64 %q, %d2, %d1;\n"
                          "    @%q bra done;\n"
                          "    cvta.to.global.u64 %d0, %d0;\n"
                          "    shl.b64 %d4, %d2, 2;\n"
                          "    add.u64 %d0, %d0, %d4;\n"
                          "    ld.global.u32 %r3, [%d0];\n"
                          "    add.u32 %r3, %r3, 1;\n"
                          "    st.global.u32 [%d0], %r3;\n"
                          "done:\n"
                          "    ret;\n"
                          "}\n";

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult check_result = (call);                                                            \
        if (check_result != CUDA_SUCCESS) {                                                        \
            printf("line %d: %s gave %d\n", __LINE__, #call, (int)check_result);                   \
            exit(90);                                                                              \
        }                                                                                          \
    } while (0)

static CUdevice device;
static CUcontext context;
static CUmodule module;
static CUfunction add_one;

static void load(void)
{
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
}

static void set_up(void)
{
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    load();
}

static uint32_t *managed(size_t bytes)
{
    CUdeviceptr p;

    CHECK(cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
    return (uint32_t *)(uintptr_t)p;
}

static void launch(CUdeviceptr p, uint64_t n, CUstream stream)
{
    void *args[] = {&p, &n};

    CHECK(cuLaunchKernel(add_one, (unsigned)((n + 255) / 256), 1, 1, 256, 1, 1, 0, stream, args,
                         NULL));
}

/* CPU writes, GPU adds, CPU reads. */
static void work(const char *what)
{
    size_t n = 64 * MIB / sizeof(uint32_t);
    uint32_t *p = managed(64 * MIB);
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        p[i] = (uint32_t)i & 7;
    launch((CUdeviceptr)(uintptr_t)p, n, NULL);
    CHECK(cuCtxSynchronize());
    for (size_t i = 0; i < n; i++)
        sum += p[i];
    printf("%s: %llu\n", what, (unsigned long long)sum);
    CHECK(cuMemFree((CUdeviceptr)(uintptr_t)p));
}

/* ---- ways to end --------------------------------------------------------------------------- */

static int end_return(void)
{
    set_up();
    work("returns");
    return 3;
}

/* Leaves with work queued and nothing freed. */
static int end_busy(void)
{
    set_up();
    uint32_t *p = managed(128 * MIB);
    for (int i = 0; i < 50; i++)
        launch((CUdeviceptr)(uintptr_t)p, 128 * MIB / 4, NULL);
    printf("busy\n");
    exit(4);
}

/* The trace of a program that ends without its exit handlers may lack its last 0.1 s: goes on launching for
 * longer than that. */
static void work_on(void)
{
    uint32_t *p = managed(MIB);
    struct timespec now, start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        launch((CUdeviceptr)(uintptr_t)p, MIB / 4, NULL);
        CHECK(cuCtxSynchronize());
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < 0.5);
}

static int end__exit(void)
{
    set_up();
    work("_exit");
    fflush(stdout);
    work_on();
    _exit(5);
}

static int end_signal(int number)
{
    set_up();
    work("signal");
    fflush(stdout);
    work_on();
    kill(getpid(), number);
    pause();
    return 92; /* the signal did not end it */
}

static int end_abort(void)
{
    set_up();
    work("abort");
    fflush(stdout);
    work_on();
    abort();
}

static int end_term(void)
{
    return end_signal(SIGTERM);
}

static int end_kill(void)
{
    return end_signal(SIGKILL);
}

static int end_segv(void)
{
    return end_signal(SIGSEGV);
}

static void from_a_destructor(void)
{
    printf("atexit handler ran\n");
}

static int end_atexit(void)
{
    atexit(from_a_destructor);
    set_up();
    work("atexit");
    return 0;
}

static int no_cuda(void)
{
    printf("no CUDA call\n");
    fprintf(stderr, "its own line on stderr\n");
    return 6;
}

/* ---- fork ------------------------------------------------------------------------------------ */

static int reap(pid_t child)
{
    int status = 0;

    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int fork_before(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        set_up();
        work("child");
        exit(7);
    }
    int status = reap(child);
    set_up();
    work("parent");
    printf("child gave %d\n", status);
    return 0;
}

static int fork_after(void (*leave)(int))
{
    set_up();
    uint32_t *p = managed(16 * MIB);
    launch((CUdeviceptr)(uintptr_t)p, 16 * MIB / 4, NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child of a CUDA process\n");
        fflush(stdout);
        leave(8);
    }
    int status = reap(child);
    CHECK(cuCtxSynchronize());
    work("parent goes on");
    printf("child gave %d, value %u\n", status, p[5]);
    return 0;
}

static int fork_after_exit(void)
{
    return fork_after(exit);
}

static int fork_after__exit(void)
{
    return fork_after(_exit);
}

static int fork_exec(void)
{
    set_up();
    work("before");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "safety", "return", (char *)NULL);
        _exit(99);
    }
    printf("child gave %d\n", reap(child));
    work("after");
    return 0;
}

static void *launch_all(void *stop)
{
    uint32_t *p = managed(16 * MIB);

    CHECK(cuCtxSetCurrent(context));
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
        launch((CUdeviceptr)(uintptr_t)p, 1024, NULL);
    return NULL;
}

/* Forks while another thread is inside launches, and so perhaps inside umrt. */
static int fork_threads(void)
{
    pthread_t thread;
    int stop = 0, good = 0;

    set_up();
    pthread_create(&thread, NULL, launch_all, &stop);
    for (int i = 0; i < 20; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(9);
        good += reap(child) == 9;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK(cuCtxSynchronize());
    printf("%d children\n", good);
    return 0;
}

/* ---- threads, contexts, captures, errors ------------------------------------------------------- */

static void *launch_some(void *ctx)
{
    CUstream stream;
    uint32_t *p;

    (void)ctx;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    p = managed(4 * MIB);
    memset(p, 0, 4 * MIB);
    for (int i = 0; i < 1000; i++) {
        launch((CUdeviceptr)(uintptr_t)p, 4 * MIB / 4, stream);
        if (i % 100 == 99)
            CHECK(cuStreamSynchronize(stream));
    }
    CHECK(cuStreamSynchronize(stream));
    uint32_t first = p[0], last = p[4 * MIB / 4 - 1];
    CHECK(cuMemFree((CUdeviceptr)(uintptr_t)p));
    return (void *)(uintptr_t)(first == 1000 && last == 1000);
}

static void *free_some(void *ctx)
{
    (void)ctx;
    CHECK(cuCtxSetCurrent(context));
    for (int i = 0; i < 300; i++) {
        uint32_t *p = managed(MIB);
        p[i] = 1;
        launch((CUdeviceptr)(uintptr_t)p, MIB / 4, NULL);
        CHECK(cuMemFree((CUdeviceptr)(uintptr_t)p));
    }
    return (void *)1;
}

static int threads(void)
{
    pthread_t thread[8];
    int good = 0;

    set_up();
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, i % 2 ? free_some : launch_some, NULL);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(thread[i], &result);
        good += result != NULL;
    }
    printf("%d threads right\n", good);
    return 0;
}

static int destroy(void)
{
    set_up();
    work("primary");
    for (int i = 0; i < 3; i++) {
        CUcontext own;
#if CUDA_VERSION >= 13000
        CHECK(cuCtxCreate(&own, NULL, 0, device));
#else
        CHECK(cuCtxCreate(&own, 0, device));
#endif
        load();
        uint32_t *p = managed(16 * MIB);
        memset(p, 1, 16 * MIB);
        launch((CUdeviceptr)(uintptr_t)p, 16 * MIB / 4, NULL);
        CHECK(cuCtxDestroy(own)); /* with the kernel running and the memory not freed */
        printf("destroyed %d\n", i);
    }
    CHECK(cuCtxSetCurrent(context));
    load();
    work("primary again");
    return 0;
}

static int reset(void)
{
    for (int i = 0; i < 3; i++) {
        set_up();
        uint32_t *p = managed(16 * MIB);
        memset(p, 1, 16 * MIB);
        launch((CUdeviceptr)(uintptr_t)p, 16 * MIB / 4, NULL);
        work("round");
        CHECK(cuDevicePrimaryCtxReset(device));
    }
    set_up();
    work("after resets");
    return 0;
}

static int capture(void)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;

    set_up();
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    uint32_t *p = managed(16 * MIB);
    memset(p, 0, 16 * MIB);
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch((CUdeviceptr)(uintptr_t)p, 16 * MIB / 4, stream);
    launch((CUdeviceptr)(uintptr_t)p, 16 * MIB / 4, stream);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 5; i++)
        CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    printf("graph: %u %u\n", p[0], p[16 * MIB / 4 - 1]);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(stream));
    return 0;
}

/* An error of the program's own is still the last one after everything that umrt does. */
static int last_error(void)
{
    void *p = NULL;
    uint32_t *q = NULL;

    printf("too much: %d\n", (int)cudaMalloc(&p, (size_t)1 << 50));
    printf("last: %d\n", (int)cudaPeekAtLastError());
    set_up();
    printf("managed: %d\n", (int)cudaMallocManaged((void **)&q, 16 * MIB, cudaMemAttachGlobal));
    memset(q, 0, 16 * MIB);
    for (int i = 0; i < 10; i++) {
        launch((CUdeviceptr)(uintptr_t)q, 16 * MIB / 4, NULL);
        cudaDeviceSynchronize();
    }
    printf("last: %d\n", (int)cudaPeekAtLastError());
    printf("last: %d\n", (int)cudaGetLastError());
    printf("last: %d value %u\n", (int)cudaGetLastError(), q[7]);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} table[] = {
    {"return", end_return},
    {"busy-exit", end_busy},
    {"_exit", end__exit},
    {"abort", end_abort},
    {"sigterm", end_term},
    {"sigkill", end_kill},
    {"sigsegv", end_segv},
    {"atexit", end_atexit},
    {"no-cuda", no_cuda},
    {"fork-before-init", fork_before},
    {"fork-after-init-exit", fork_after_exit},
    {"fork-after-init-_exit", fork_after__exit},
    {"fork-exec", fork_exec},
    {"fork-while-launching", fork_threads},
    {"threads-launch-and-free", threads},
    {"destroy-context", destroy},
    {"primary-reset", reset},
    {"capture-and-graph", capture},
    {"last-error", last_error},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (argc == 2 && strcmp(argv[1], "list") == 0)
            printf("%s\n", table[i].name);
        else if (argc == 2 && strcmp(argv[1], table[i].name) == 0)
            return table[i].run();
    }
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 91;
}

/*
 * conformance - what a driver and a CUPTI answer, a line each: error codes, the order of callbacks, kinds and causes
 * of records. The software GPU's answers are kept in conformance.txt; tests/gpu/check_conformance.sh asks a real one.
 */
#include "examples/driver_api/driver_api.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cupti.h>

static const char *program;

static void says(const char *what, int code)
{
    printf("%-58s %d\n", what, code);
}
#define SAYS(call)       says(#call, (int)(call))
#define TELLS(what, ...) says(what, (int)(__VA_ARGS__))

/* ---- CUPTI's side ---------------------------------------------------------------------------------- */

static int calls_shown;
static uint64_t kinds_seen[16], bytes_seen[16][8];
static uint32_t record_bytes;

static void CUPTIAPI called(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    const CUpti_CallbackData *info = data;

    (void)ctx;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        printf("  resource %u\n", id);
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || !calls_shown)
        return;
    printf("  %s %s%s%s", info->callbackSite == CUPTI_API_ENTER ? "enters" : "leaves",
           info->functionName, info->symbolName ? " of " : "",
           info->symbolName ? info->symbolName : "");
    if (info->callbackSite == CUPTI_API_EXIT)
        printf(" = %d", *(const int *)info->functionReturnValue);
    printf("\n");
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *bytes = 1 << 20;
    *buffer = aligned_alloc(8, *bytes);
    *most = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                               size_t valid)
{
    CUpti_Activity *record = NULL, *before = NULL;

    (void)context;
    (void)stream;
    (void)bytes;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        const CUpti_ActivityUnifiedMemoryCounter2 *r =
            (void *)record; /* the beginning of every layout */
        if (before && before->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
            record_bytes = (uint32_t)((char *)record - (char *)before);
        before = record;
        if (record->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER || r->counterKind >= 16)
            continue;
        kinds_seen[r->counterKind]++;
        bytes_seen[r->counterKind][r->flags & 7] += r->value;
    }
    free(buffer);
}

static CUptiResult configure(unsigned n)
{
    CUpti_ActivityUnifiedMemoryCounterConfig config[8];

    for (unsigned i = 0; i < 8; i++)
        config[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
            .kind = (CUpti_ActivityUnifiedMemoryCounterKind)(i + 1),
            .enable = 1,
        };
    return cuptiActivityConfigureUnifiedMemoryCounter(config, n);
}

/* A thread that flushes all the time, without which records are lost. */
static _Atomic int flushing = 1;
static void *flush(void *ctx)
{
    while (flushing)
        cuptiActivityFlushAll(0);
    return ctx;
}

static void show_records(const char *what)
{
    static const char *const names[] = {"",           "to device",  "to host",
                                        "cpu faults", "gpu faults", "thrashing",
                                        "throttle",   "remote map", "peer"};

    /* Records come up to 17 ms after what they tell of (H200): as often as not there is nothing new. */
    for (int quiet = 0, before = -1; quiet < 200; quiet++) {
        int n = 0;
        cuptiActivityFlushAll(0);
        for (int k = 0; k < 16; k++)
            n += (int)kinds_seen[k];
        if (n != before)
            quiet = 0;
        before = n;
    }
    printf("records of %s\n", what);
    for (int k = 1; k <= 8; k++) {
        if (!kinds_seen[k])
            continue;
        printf("  %s", names[k]);
        uint64_t bytes = 0;
        for (int c = 0; c < 8; c++) {
            if (bytes_seen[k][c] && (k == 1 || k == 2 || k == 8))
                printf("%s %d", bytes ? "," : ", causes", c);
            bytes += bytes_seen[k][c];
        }
        if (k == 1 || k == 2 || k == 8)
            printf("; %llu MiB", (unsigned long long)(bytes + (1 << 19)) >> 20);
        printf("\n");
    }
    memset(kinds_seen, 0, sizeof(kinds_seen));
    memset(bytes_seen, 0, sizeof(bytes_seen));
}

/* KiB of [p, p+bytes) that the CPU maps, as /proc/self/pagemap has it. */
static int present(CUdeviceptr p, size_t bytes)
{
    int fd = open("/proc/self/pagemap", O_RDONLY), n = 0;

    for (size_t at = 0; at < bytes; at += 4096) {
        uint64_t entry = 0;
        if (pread(fd, &entry, 8, (off_t)((p + at) / 4096 * 8)) == 8)
            n += entry >> 63 ? 4 : 0;
    }
    close(fd);
    return n;
}

/* ---- questions --------------------------------------------------------------------------------------- */

static void before_everything(void)
{
    CUpti_SubscriberHandle first, second;
    CUdeviceptr p;
    int n;

    SAYS(cuDeviceGetCount(&n));
    SAYS(cuMemAlloc(&p, 4096));
    TELLS("cuptiSubscribe", cuptiSubscribe(&first, called, NULL));
    TELLS("cuptiSubscribe, again", cuptiSubscribe(&second, called, NULL));
    TELLS("cuptiEnableCallback of no call",
          cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_DRIVER_API, 1023));
    TELLS("cuptiGetLastError", cuptiGetLastError());
    TELLS("cuptiGetLastError, again", cuptiGetLastError());
    TELLS("no kinds configured", configure(0));
    TELLS("enabled before a context",
          cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
    cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    static const uint32_t shown[] = {CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                     CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
                                     CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize};
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_DRIVER_API, shown[i]);
    SAYS(cuInit(1));
    SAYS(cuInit(0));
    SAYS(cuMemAlloc(&p, 4096));
    SAYS(cuCtxPopCurrent(NULL));
    SAYS(cuDevicePrimaryCtxRelease(0));
    TELLS("cuDeviceGet of one too many", cuDeviceGet(&n, 4096));
}

static CUdeviceptr managed, device;
static uint64_t n_floats = 1 << 20;
static CUfunction add_one;

static void memory(void)
{
    CUdeviceptr p = 0;
    void *host = aligned_alloc(4096, 1 << 20);
    unsigned type = 7;
    CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *into = &type;
    size_t bytes = n_floats * sizeof(float);

    SAYS(cuMemAlloc(&p, 0));
    TELLS("cuMemAlloc of 64 TiB", cuMemAlloc(&p, (size_t)1 << 46));
    SAYS(cuMemAllocManaged(&p, 4096, 0));
    SAYS(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
    SAYS(cuMemFree(0));
    TELLS("cuMemFree of host memory", cuMemFree((CUdeviceptr)(uintptr_t)host));
    CHECK(cuMemAlloc(&device, bytes));
    TELLS("cuMemFree inside an allocation", cuMemFree(device + 256));
    SAYS(cuMemHostUnregister(host));
    SAYS(cuMemHostRegister(host, 1 << 20, 0));
    TELLS("cuMemHostRegister, again", cuMemHostRegister(host, 1 << 20, 0));
    SAYS(cuMemHostUnregister(host));
    TELLS("cuPointerGetAttribute of host memory",
          cuPointerGetAttribute(&type, what, (CUdeviceptr)(uintptr_t)host));
    TELLS("cuPointerGetAttributes of host memory",
          cuPointerGetAttributes(1, &what, &into, (CUdeviceptr)(uintptr_t)host));
    says("  its type", (int)type);
    cuPointerGetAttribute(&type, what, device);
    says("type of device memory", (int)type);
    CHECK(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
    cuPointerGetAttribute(&type, what, managed);
    says("type of managed memory", (int)type);
    TELLS("cuMemcpyHtoD to host memory", cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 64));
    SAYS(cuMemsetD32(device + 1, 0, 1));
    SAYS(cuMemcpyDtoH(host, device, 0));
    free(host);
}

#if CUDA_VERSION >= 13000
static CUmemLocation at(int gpu)
{
    CUmemLocation where = {.type =
                               gpu < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE};

    where.id = gpu < 0 ? 0 : gpu;
    return where;
}
#define PREFETCH(p, n, device, stream) cuMemPrefetchAsync(p, n, at(device), 0, stream)
#define ADVISE(p, n, what, device)     cuMemAdvise(p, n, what, at(device))
#else
#define PREFETCH(p, n, device, stream) cuMemPrefetchAsync(p, n, device, stream)
#define ADVISE(p, n, what, device)     cuMemAdvise(p, n, what, device)
#endif

static void hints(void)
{
    size_t bytes = n_floats * sizeof(float);
    void *host = malloc(1 << 20);
    int last = 0;

    TELLS("prefetch", PREFETCH(managed, bytes, 0, NULL));
    TELLS("prefetch of nothing", PREFETCH(managed, 0, 0, NULL));
    TELLS("prefetch of a null pointer", PREFETCH(0, 4096, 0, NULL));
    TELLS("prefetch past the end", PREFETCH(managed, bytes + (4 << 20), 0, NULL));
    TELLS("prefetch of device memory", PREFETCH(device, 4096, 0, NULL));
    TELLS("prefetch of host memory", PREFETCH((CUdeviceptr)(uintptr_t)host, 4096, 0, NULL));
    TELLS("prefetch to no device", PREFETCH(managed, bytes, 4096, NULL));
    TELLS("prefetch to the host", PREFETCH(managed, bytes, -1, NULL));
    cuMemRangeGetAttribute(&last, sizeof(last), CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                           managed, bytes);
    says("  last asked for", last);
    TELLS("advice", ADVISE(managed, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    TELLS("advice on device memory", ADVISE(device, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    TELLS("advice taken back", ADVISE(managed, bytes, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    TELLS("no such advice", ADVISE(managed, bytes, (CUmem_advise)77, 0));
    CHECK(cuCtxSynchronize());
    free(host);
}

static void page_tables(void)
{
    size_t bytes = n_floats * sizeof(float);
    CUdeviceptr p;

    CHECK(cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
    says("KiB present of what nobody touched", present(p, bytes));
    memset(floats(p), 0, bytes);
    says("  the CPU wrote", present(p, bytes));
    launch(add_one, NULL, (void *[]){&p, &n_floats});
    CHECK(cuCtxSynchronize());
    says("  a kernel worked on", present(p, bytes));
    floats(p)[n_floats / 2] += 1;
    says("  of which the CPU then touched one number", present(p, bytes));
    CHECK(PREFETCH(p, bytes, -1, NULL));
    CHECK(cuCtxSynchronize());
    says("  was prefetched to the CPU", present(p, bytes));
    CHECK(PREFETCH(p, bytes, 0, NULL));
    CHECK(cuCtxSynchronize());
    says("  was prefetched to the GPU", present(p, bytes));
    CHECK(ADVISE(p, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    says("  duplicates read by the CPU", (int)(double)floats(p)[n_floats / 2]);
    says("  KiB of these", present(p, bytes));
    CHECK(cuMemFree(p));
}

static void streams(void)
{
    CUstream stream, blocking;
    CUevent event, plain;
    CUgraph graph;
    CUdeviceptr p;
    CUstreamCaptureStatus status;
    float ms;
    void *params[] = {&device, &n_floats};

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&plain, CU_EVENT_DEFAULT));
    SAYS(cuEventElapsedTime(&ms, plain, event));
    SAYS(cuEventQuery(plain));
    SAYS(cuStreamCreate(&stream, 77));
    TELLS("too large a block",
          cuLaunchKernel(add_one, 1, 1, 1, 2048, 1, 1, 0, stream, params, NULL));
    TELLS("an empty grid", cuLaunchKernel(add_one, 0, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    TELLS("capture of the legacy stream",
          cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAYS(cuStreamEndCapture(stream, &graph));

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    TELLS("captured launch", cuLaunchKernel(add_one, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    TELLS("prefetch on a capturing stream", PREFETCH(managed, 4096, 0, stream));
    SAYS(cuStreamEndCapture(stream, &graph));

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    TELLS("prefetch elsewhere during a capture", PREFETCH(managed, 4096, 0, blocking));
    SAYS(cuStreamEndCapture(stream, &graph));

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    TELLS("synchronizing a capturing stream", cuStreamSynchronize(stream));
    SAYS(cuStreamEndCapture(stream, &graph));

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    TELLS("allocation during a global capture", cuMemAlloc(&p, 4096));
    SAYS(cuStreamEndCapture(stream, &graph));

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    TELLS("allocation during a relaxed capture", cuMemAlloc(&p, 4096));
    SAYS(cuStreamEndCapture(stream, &graph));

    CHECK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    TELLS("legacy launch during a capture",
          cuLaunchKernel(add_one, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    SAYS(cuStreamIsCapturing(blocking, &status));
    says("  status", (int)status);
    SAYS(cuStreamEndCapture(blocking, &graph));
    TELLS("a context after all that", cuCtxSynchronize());
}

static void modules(CUmodule module)
{
    CUfunction f;

    TELLS("no such kernel", cuModuleGetFunction(&f, module, "nobody"));
#if CUDA_VERSION >= 12040
    size_t offset, bytes;
    SAYS(cuFuncGetParamInfo(add_one, 1, &offset, &bytes));
    says("  offset", (int)offset);
    SAYS(cuFuncGetParamInfo(add_one, 2, &offset, &bytes));
    char *text = read_kernels(program);
    CUlibrary library;
    CUkernel kernel;
    CHECK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "_Z7add_onePfm"));
    SAYS(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
    TELLS("a kernel's handle taken for a function's",
          cuFuncGetParamInfo((CUfunction)kernel, 1, &offset, &bytes));
    TELLS("a kernel's handle launched", cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0,
                                                       NULL, (void *[]){&device, &n_floats}, NULL));
    free(text);
#endif
    CHECK(cuCtxSynchronize());
}

static void callbacks(void)
{
    CUdeviceptr p;

    printf("callbacks\n");
    calls_shown = 1;
    CHECK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    uint64_t n = 1024;
    launch(add_one, NULL, (void *[]){&p, &n});
    CHECK(cuStreamSynchronize(NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree(p));
    cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL);
    calls_shown = 0;
}

static void records(void)
{
    size_t bytes = n_floats * sizeof(float);
    pthread_t thread;
    CUdeviceptr p, kick;

    cuptiActivityRegisterCallbacks(requested, completed);
    TELLS("configured", configure(8));
    TELLS("enabled", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    TELLS("configured while enabled", configure(8));
    pthread_create(&thread, NULL, flush, NULL);
    memset(floats(managed), 0, bytes);
    launch(add_one, NULL, (void *[]){&managed, &n_floats});
    CHECK(cuCtxSynchronize());
    printf("%.0f\n", (double)floats(managed)[0]);

    CHECK(cuMemAllocManaged(&kick, 65536, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemFree(kick));
    memset(floats(p), 0, bytes);
    show_records("the CPU's first touch");
    launch(add_one, NULL, (void *[]){&p, &n_floats});
    CHECK(cuCtxSynchronize());
    show_records("a kernel on what the CPU has");
    for (uint64_t i = 0; i < n_floats; i += 1024)
        floats(p)[i] += 1;
    show_records("the CPU on what the GPU has");
    CHECK(PREFETCH(p, bytes, 0, NULL));
    CHECK(cuCtxSynchronize());
    show_records("a prefetch to the GPU");
    launch(add_one, NULL, (void *[]){&p, &n_floats});
    CHECK(cuCtxSynchronize());
    show_records("a kernel on what the GPU has");
    CHECK(PREFETCH(p, bytes, -1, NULL));
    CHECK(cuCtxSynchronize());
    show_records("a prefetch to the CPU");
    printf("%.0f %.0f\n", (double)floats(p)[0], (double)floats(p)[1]);
    show_records("the CPU on what it has");
    CHECK(ADVISE(p, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CHECK(PREFETCH(p, bytes, 0, NULL));
    CHECK(cuCtxSynchronize());
    double sum = 0;
    for (uint64_t i = 0; i < n_floats; i += 1024)
        sum += (double)floats(p)[i];
    printf("%.0f\n", sum);
    show_records("a duplicate read on both sides");
    flushing = 0;
    pthread_join(thread, NULL);
    says("bytes of a record", (int)record_bytes);
    TELLS("disabled", cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
}

int main(int argc, char **argv)
{
    (void)argc;
    program = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    before_everything();
    CUmodule module = start(program, 0);
    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    memory();
    hints();
    page_tables();
    streams();
    modules(module);
    callbacks();
    records();
    return 0;
}

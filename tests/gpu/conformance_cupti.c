/*
 * conformance_cupti.c - the probes of CUPTI: who may subscribe, what may be enabled when, the order of
 * callbacks, and what records tell of a small managed scenario.
 *
 * Of records only what every run repeats is printed: kinds, ends, causes, accesses, and bytes by direction.
 * How bytes divide between faults and the driver's own prefetching varies, so they are one sum.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

/* ---- the library ------------------------------------------------------------------------------------ */

static struct {
    __typeof__(&cuptiSubscribe) subscribe;
    __typeof__(&cuptiUnsubscribe) unsubscribe;
    __typeof__(&cuptiEnableCallback) enable_callback;
    __typeof__(&cuptiEnableDomain) enable_domain;
    __typeof__(&cuptiGetCallbackState) callback_state;
    __typeof__(&cuptiActivityRegisterCallbacks) buffers;
    __typeof__(&cuptiActivityConfigureUnifiedMemoryCounter) configure;
    __typeof__(&cuptiActivityEnable) enable;
    __typeof__(&cuptiActivityDisable) disable;
    __typeof__(&cuptiActivityFlushAll) flush;
    __typeof__(&cuptiActivityGetNextRecord) next;
    __typeof__(&cuptiGetVersion) version;
    __typeof__(&cuptiGetResultString) string;
} cupti;

static void open_cupti(void)
{
    static const struct {
        const char *name;
        void *at;
    } table[] = {
        {"cuptiSubscribe", &cupti.subscribe},
        {"cuptiUnsubscribe", &cupti.unsubscribe},
        {"cuptiEnableCallback", &cupti.enable_callback},
        {"cuptiEnableDomain", &cupti.enable_domain},
        {"cuptiGetCallbackState", &cupti.callback_state},
        {"cuptiActivityRegisterCallbacks", &cupti.buffers},
        {"cuptiActivityConfigureUnifiedMemoryCounter", &cupti.configure},
        {"cuptiActivityEnable", &cupti.enable},
        {"cuptiActivityDisable", &cupti.disable},
        {"cuptiActivityFlushAll", &cupti.flush},
        {"cuptiActivityGetNextRecord", &cupti.next},
        {"cuptiGetVersion", &cupti.version},
        {"cuptiGetResultString", &cupti.string},
    };
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    void *library = dlopen("libcupti.so.13", RTLD_NOW);

    snprintf(path, sizeof(path), "%s/extras/CUPTI/lib64/libcupti.so.13",
             home ? home : "/usr/local/cuda");
    if (!library)
        library = dlopen(path, RTLD_NOW);
    if (!library) {
        say("libcupti.so.13", "not found");
        exit(2);
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!(*(void **)table[i].at = dlsym(library, table[i].name))) {
            say(table[i].name, "missing");
            exit(2);
        }
}

/* ---- callbacks, written down -------------------------------------------------------------------------- */

static struct {
    char text[4096];
    size_t used;
    pthread_t thread;
    struct {
        uint32_t id, correlation;
        uint64_t *data;
    } open[8];
    int depth;
    uint32_t last_correlation;
    const char *wrong, *symbol;
    unsigned grid;
    bool call_inside;
} told;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list arguments;

    if (told.used > sizeof(told.text) - 128)
        return;
    va_start(arguments, format);
    told.used +=
        (size_t)vsnprintf(told.text + told.used, sizeof(told.text) - told.used, format, arguments);
    va_end(arguments);
}

/* ">name(id)" at the entry, "<result" at the exit, a "-" after either where the callback has no context. */
static void on_call(CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    if (data->callbackSite == CUPTI_API_ENTER) {
        CUstreamCaptureStatus status;
        note(" >%s(%u)%s", data->functionName, id, data->context ? "" : "-");
        if (data->correlationId <= told.last_correlation)
            told.wrong = "correlation ids do not grow";
        if (data->context && data->contextUid == 0)
            told.wrong = "a context has no id";
        told.last_correlation = data->correlationId;
        told.open[told.depth % 8].id = id;
        told.open[told.depth % 8].correlation = data->correlationId;
        told.open[told.depth++ % 8].data = data->correlationData;
        *data->correlationData = 1000 + data->correlationId;
        if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
            told.symbol = data->symbolName;
            told.grid = ((const cuLaunchKernel_params *)data->functionParams)->gridDimX;
            if (told.call_inside)
                cuStreamIsCapturing(NULL, &status);
        }
        return;
    }
    int at = --told.depth % 8;
    note(" <%d%s", *(const int *)data->functionReturnValue, data->context ? "" : "-");
    if (told.depth < 0 || told.open[at].id != id)
        told.wrong = "exits do not match entries";
    else if (told.open[at].correlation != data->correlationId)
        told.wrong = "the correlation id changes";
    else if (told.open[at].data != data->correlationData ||
             *data->correlationData != 1000 + data->correlationId)
        told.wrong = "the correlation data are not kept";
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
    static const char *const names[] = {
        "?",           "context created", "context ends", "stream created", "stream ends",
        "cuInit done", "module loaded",   "module ends",  "module profiled"};
    const CUpti_ModuleResourceData *module = data->resourceDescriptor;

    if (id < sizeof(names) / sizeof(*names))
        note(" [%s", names[id]);
    else
        note(" [resource %u", id);
    if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED)
        note(" %s", !module->pCubin || !module->cubinSize       ? "without image"
                    : memcmp(module->pCubin, "\177ELF", 4) == 0 ? "ELF"
                                                                : "other image");
    note("]");
}

static void CUPTIAPI on_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
    (void)ctx;
    if (!pthread_equal(pthread_self(), told.thread))
        return;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        on_call(id, data);
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        on_resource(id, data);
}

/* What was called back during `call`, and its own result. */
#define CALLBACKS(what, call)                                                                      \
    do {                                                                                           \
        told.used = 0;                                                                             \
        told.text[0] = '\0';                                                                       \
        int result_ = (int)(call);                                                                 \
        say(what, "%d;%s", result_, told.text);                                                    \
    } while (0)

static void run_callbacks(void)
{
    static const CUmemLocation on_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUpti_SubscriberHandle subscriber;
    CUcontext context;
    CUdevice device;
    CUmodule module;
    CUfunction f;
    CUdeviceptr p, d;
    CUstream stream;
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUlibrary library;
    CUkernel kernel;
    void *pinned;
    float host = 0;
    uint64_t n = 1;
    CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};

    open_cupti();
    told.thread = pthread_self();
    MUST(cupti.subscribe(&subscriber, on_callback, NULL));
    MUST(cupti.enable_domain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
    MUST(cupti.enable_domain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
    CALLBACKS("cuInit", cuInit(0));
    CALLBACKS("cuDeviceGet", cuDeviceGet(&device, 0));
    CALLBACKS("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
    CALLBACKS("cuCtxSetCurrent", cuCtxSetCurrent(context));
    CALLBACKS("cuModuleLoadData", cuModuleLoadData(&module, kernels_text()));
    CALLBACKS("cuModuleGetFunction", cuModuleGetFunction(&f, module, ADD_ONE));
    CALLBACKS("cuMemAlloc", cuMemAlloc(&d, MIB));
    CALLBACKS("cuMemAllocManaged", cuMemAllocManaged(&p, MIB, CU_MEM_ATTACH_GLOBAL));
    CALLBACKS("cuMemAllocHost", cuMemAllocHost(&pinned, MIB));
    CALLBACKS("cuMemsetD8", cuMemsetD8(d, 0, MIB));
    CALLBACKS("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CALLBACKS("cuEventCreate", cuEventCreate(&event, 0));
    CALLBACKS("first cuLaunchKernel", add_one(f, p, 1, stream));
    say("its symbol", "%s", told.symbol ? told.symbol : "NULL");
    say("its grid", "%u", told.grid);
    CALLBACKS("cuLaunchKernel", add_one(f, p, 1, stream));
    CALLBACKS("cuLaunchKernelEx", cuLaunchKernelEx(&config, f, (void *[]){&p, &n}, NULL));
    CALLBACKS("cuLaunchCooperativeKernel",
              cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&p, &n}));
    CALLBACKS("cuLaunchKernel that fails",
              cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, stream, (void *[]){&p, &n}, NULL));
    told.call_inside = true;
    CALLBACKS("a call inside the callback", add_one(f, p, 1, stream));
    told.call_inside = false;
    CALLBACKS("cuEventRecord", cuEventRecord(event, stream));
    CALLBACKS("cuStreamWaitEvent", cuStreamWaitEvent(stream, event, 0));
    CALLBACKS("cuStreamSynchronize", cuStreamSynchronize(stream));
    CALLBACKS("cuEventSynchronize", cuEventSynchronize(event));
    CALLBACKS("cuMemcpyDtoH", cuMemcpyDtoH(&host, d, sizeof(host)));
    CALLBACKS("cuMemcpy", cuMemcpy(d, p, 4));
    CALLBACKS("cuMemcpyAsync", cuMemcpyAsync(d, p, 4, stream));
    CALLBACKS("cuMemPrefetchAsync", cuMemPrefetchAsync(p, MIB, on_gpu, 0, stream));
    CALLBACKS("cuMemAdvise", cuMemAdvise(p, MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    CALLBACKS("cuMemFree that fails", cuMemFree(p + 512));
    CALLBACKS("cuStreamBeginCapture", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALLBACKS("cuLaunchKernel in a capture", add_one(f, d, 1, stream));
    CALLBACKS("cuStreamEndCapture", cuStreamEndCapture(stream, &graph));
    CALLBACKS("cuGraphInstantiate", cuGraphInstantiate(&exec, graph, 0));
    CALLBACKS("cuGraphLaunch", cuGraphLaunch(exec, stream));
    CALLBACKS("cuGraphExecDestroy", cuGraphExecDestroy(exec));
    CALLBACKS("cuGraphDestroy", cuGraphDestroy(graph));
    CALLBACKS("cuCtxSynchronize", cuCtxSynchronize());
    CALLBACKS("cuLibraryLoadData",
              cuLibraryLoadData(&library, kernels_text(), NULL, NULL, 0, NULL, NULL, 0));
    CALLBACKS("cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, ADD_ONE));
    CALLBACKS("first launch of a kernel", add_one((CUfunction)kernel, d, 1, NULL));
    CALLBACKS("cuMemFree", cuMemFree(p));
    CALLBACKS("cuMemFreeHost", cuMemFreeHost(pinned));
    CALLBACKS("cuEventDestroy", cuEventDestroy(event));
    CALLBACKS("cuStreamDestroy", cuStreamDestroy(stream));
    CALLBACKS("cuModuleUnload", cuModuleUnload(module));
    CALLBACKS("cuCtxCreate", cuCtxCreate(&context, NULL, 0, 0));
    CALLBACKS("cuCtxDestroy", cuCtxDestroy(context));
    CALLBACKS("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset(0));
    say("entries and exits", "%s", told.wrong ? told.wrong : "consistent");
    MUST(cupti.enable_callback(0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                               CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent));
    CALLBACKS("cuCtxGetCurrent when disabled", cuCtxGetCurrent(&context));
    MUST(cupti.unsubscribe(subscriber));
    CALLBACKS("cuDeviceGet when unsubscribed", cuDeviceGet(&device, 0));
}

/* ---- subscribing, enabling ---------------------------------------------------------------------------------- */

static void CUPTIAPI on_nothing(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void *data)
{
    (void)ctx;
    (void)domain;
    (void)id;
    (void)data;
}

static void run_subscribers(void)
{
    CUpti_SubscriberHandle first = NULL, second = NULL;
    uint32_t on = 77;
    const char *text = NULL;
    CUpti_CallbackDomain driver = CUPTI_CB_DOMAIN_DRIVER_API;

    open_cupti();
    PROBE("subscribe to NULL", cupti.subscribe(NULL, on_nothing, NULL));
    PROBE("subscribe", cupti.subscribe(&first, on_nothing, NULL));
    PROBE("subscribe a second one", cupti.subscribe(&second, on_nothing, NULL));
    PROBE("enable a callback",
          cupti.enable_callback(1, first, driver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    PROBE("its state",
          cupti.callback_state(&on, first, driver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    say("it is", "%u", on);
    PROBE("enable callback 0", cupti.enable_callback(1, first, driver, 0));
    PROBE("enable callback 5000", cupti.enable_callback(1, first, driver, 5000));
    PROBE("enable a callback of domain 77",
          cupti.enable_callback(1, first, (CUpti_CallbackDomain)77, 1));
    PROBE("enable domain 77", cupti.enable_domain(1, first, (CUpti_CallbackDomain)77));
    PROBE("enable a callback of NULL", cupti.enable_callback(1, NULL, driver, 1));
    PROBE("cuInit", cuInit(0));
    PROBE("unsubscribe NULL", cupti.unsubscribe(NULL));
    PROBE("unsubscribe", cupti.unsubscribe(first));
    PROBE("subscribe again", cupti.subscribe(&first, on_nothing, NULL));
    PROBE("unsubscribe again", cupti.unsubscribe(first));
    MUST(cupti.string(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text));
    say("name of 39", "%s", text);
}

/* ---- records --------------------------------------------------------------------------------------------------- */

#define KINDS 9
typedef struct tally {
    bool any;
    uint64_t asked,
        served;     /* bytes: at the user's request; for faults, or by the driver's own doing */
    uint32_t flags; /* bit n: some record had flags n */
    uint32_t src, dst;
    bool mixed; /* not all had these ends */
} tally_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tally_t tallies[KINDS];
static CUdeviceptr watched;
static size_t watched_bytes;
static unsigned kernel_records, kernels_wrong;
static bool ends;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *bytes = 8 * MIB;
    *buffer = aligned_alloc(8, *bytes);
    *most = 0;
}

static void on_record(const CUpti_ActivityUnifiedMemoryCounter3 *r)
{
    tally_t *t = &tallies[r->counterKind < KINDS ? r->counterKind : 0];
    bool bytes = r->counterKind == 1 || r->counterKind == 2 || r->counterKind == 8;

    if (r->address < watched || r->address >= watched + watched_bytes)
        return;
    if (t->any && (t->src != r->srcId || t->dst != r->dstId))
        t->mixed = true;
    t->any = true;
    t->src = r->srcId;
    t->dst = r->dstId;
    t->flags |= 1u << (r->flags & 31);
    if (bytes && r->flags == CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER)
        t->asked += r->value;
    else if (bytes)
        t->served += r->value;
}

static void on_kernel(const CUpti_ActivityKernel10 *k)
{
    kernel_records++;
    if (!k->name || strcmp(k->name, ADD_ONE) != 0 || k->gridX != 256 || k->blockX != 256 ||
        k->start == 0 || k->end < k->start || k->correlationId == 0 || k->deviceId != 0)
        kernels_wrong++;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;

    (void)context;
    (void)stream;
    (void)bytes;
    pthread_mutex_lock(&lock);
    while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
            on_record((const CUpti_ActivityUnifiedMemoryCounter3 *)record);
        else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            on_kernel((const CUpti_ActivityKernel10 *)record);
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* CUPTI loses what is not fetched at once. */
static void *flush_often(void *ctx)
{
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        cupti.flush(0);
        sleep_ms(1);
    }
    return ctx;
}

static CUptiResult configure(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig config[8];

    for (int i = 0; i < 8; i++)
        config[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
            .kind = (CUpti_ActivityUnifiedMemoryCounterKind)(i + 1),
            .enable = 1};
    return cupti.configure(config, 8);
}

static const char *set_of(uint32_t flags)
{
    static char text[128];
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < 32; i++)
        if (flags >> i & 1)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", used ? "+" : "", i);
    return text;
}

static void say_tallies(const char *what)
{
    static const char *const names[KINDS] = {"other",  "HtoD",     "DtoH", "CPU fault", "GPU fault",
                                             "thrash", "throttle", "map",  "DtoD"};
    char line[1024] = "";
    size_t used = 0;

    sleep_ms(150); /* they come late, by up to 17 ms */
    cupti.flush(1);
    pthread_mutex_lock(&lock);
    for (int i = 1; i < KINDS; i++) {
        const tally_t *t = &tallies[i];
        bool bytes = i == 1 || i == 2 || i == 8;
        if (!t->any)
            continue;
        used +=
            (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", used ? "; " : "", names[i]);
        if (bytes)
            used += (size_t)snprintf(line + used, sizeof(line) - used, " %lld+%lld bytes",
                                     (long long)t->asked, (long long)t->served);
        /* Whether the driver prefetches in a block is its own affair: 2 and 3 are one cause here. */
        used +=
            (size_t)snprintf(line + used, sizeof(line) - used, " flags %s",
                             set_of(bytes && t->flags & 0xc ? (t->flags & ~0x8u) | 4 : t->flags));
        if (t->mixed)
            used += (size_t)snprintf(line + used, sizeof(line) - used, " of several");
        else
            used += (size_t)snprintf(line + used, sizeof(line) - used, " of %d, %d", (int)t->src,
                                     (int)t->dst);
    }
    memset(tallies, 0, sizeof(tallies));
    pthread_mutex_unlock(&lock);
    say(what, "%s", used ? line : "none");
}

static void watch(CUdeviceptr p, size_t bytes)
{
    pthread_mutex_lock(&lock);
    watched = p;
    watched_bytes = bytes;
    memset(tallies, 0, sizeof(tallies));
    pthread_mutex_unlock(&lock);
}

static void cpu_write(CUdeviceptr p, size_t bytes)
{
    memset(pointer(p), 0, bytes);
}

static void cpu_read(CUdeviceptr p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4096)
        (void)((volatile char *)pointer(p))[i];
}

static void run_enabling(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig one = {
        .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
        .kind = (CUpti_ActivityUnifiedMemoryCounterKind)77,
        .enable = 1};
    CUpti_ActivityKind um = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;

    open_cupti();
    PROBE("register no functions", cupti.buffers(NULL, NULL));
    PROBE("register functions", cupti.buffers(give_buffer, take_buffer));
    PROBE("configure before cuInit", configure());
    PROBE("enable kernels before cuInit", cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuInit(0));
    PROBE("configure before a context", configure());
    PROBE("enable before a context", cupti.enable(um));
    begin();
    PROBE("enable before it is configured", cupti.enable(um));
    PROBE("disable before it is configured", cupti.disable(um));
    PROBE("configure none", cupti.configure(NULL, 1));
    PROBE("configure 0 of them", cupti.configure(&one, 0));
    PROBE("configure kind 77", cupti.configure(&one, 1));
    PROBE("configure", configure());
    PROBE("configure again", configure());
    PROBE("enable", cupti.enable(um));
    PROBE("enable again", cupti.enable(um));
    PROBE("configure when enabled", configure());
    PROBE("enable kind 9999", cupti.enable((CUpti_ActivityKind)9999));
    PROBE("flush", cupti.flush(0));
    PROBE("disable", cupti.disable(um));
    PROBE("disable again", cupti.disable(um));
    PROBE("configure when disabled", configure());
    PROBE("enable once more", cupti.enable(um));
}

/* In which order allocation and enabling come decides whether anything is told. */
static void run_silence(void)
{
    size_t n = 8 * MIB;
    pthread_t flusher;

    begin();
    CUfunction f = function(ADD_ONE);
    CUdeviceptr p = managed(n);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    MUST(configure());
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    pthread_create(&flusher, NULL, flush_often, NULL);
    watch(p, n);
    cpu_write(p, n);
    MUST(add_one(f, p, n / 4, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("of a region older than the enabling");
    CUdeviceptr small = managed(4096);
    cpu_read(p, n);
    MUST(add_one(f, p, n / 4, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("once a small region was allocated");
    managed_free(small, 4096);
    cpu_read(p, n);
    MUST(cuCtxSynchronize());
    say_tallies("once it was freed");
    MUST(cupti.disable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    MUST(cuMemPrefetchAsync(p, n, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("when disabled");
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    cpu_read(p, n);
    say_tallies("when enabled again");
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(flusher, NULL);
}

static void run_records(void)
{
    static const CUmemLocation on_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                               on_host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    size_t n = 64 * MIB;
    uint64_t floats = n / 4;
    float a = 1;
    CUdeviceptr p, y;
    pthread_t flusher;

    begin();
    CUfunction f = function(ADD_ONE), axpy = function(AXPY);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    MUST(configure());
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    pthread_create(&flusher, NULL, flush_often, NULL);
    MUST(cuMemAlloc(&y, n));
    MUST(cuMemsetD8(y, 0, n));
    p = managed(n);
    watch(p, n);
    void *read_p[] = {&y, &p, &floats, &a};

#define GPU_WRITES add_one(f, p, floats, NULL)
#define GPU_READS  cuLaunchKernel(axpy, 256, 1, 1, 256, 1, 1, 0, NULL, read_p, NULL)
#define STEP(what, call)                                                                           \
    do {                                                                                           \
        MUST(call);                                                                                \
        MUST(cuCtxSynchronize());                                                                  \
        say_tallies(what);                                                                         \
    } while (0)
    STEP("the CPU writes what nobody has touched", (cpu_write(p, n), 0));
    STEP("the GPU adds to it", GPU_WRITES);
    STEP("the GPU adds again", GPU_WRITES);
    STEP("the CPU reads it back", (cpu_read(p, n), 0));
    STEP("the CPU reads again", (cpu_read(p, n), 0));
    STEP("the GPU reads it", GPU_READS);
    STEP("the CPU writes one page", (cpu_write(p, 4096), 0));
    STEP("the GPU reads again", GPU_READS);
    STEP("prefetch to the host", cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    STEP("the CPU reads after the prefetch", (cpu_read(p, n), 0));
    STEP("prefetch to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("prefetch to the GPU again", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("the GPU adds after the prefetch", GPU_WRITES);
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("back to the host");
    STEP("ReadMostly", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    STEP("ReadMostly: the GPU reads", GPU_READS);
    STEP("ReadMostly: the CPU reads", (cpu_read(p, n), 0));
    STEP("ReadMostly: the CPU writes one page", (cpu_write(p, 4096), 0));
    STEP("ReadMostly: the GPU reads again", GPU_READS);
    STEP("ReadMostly: the GPU adds to 1 MiB", add_one(f, p + 2 * MIB, MIB / 4, NULL));
    STEP("ReadMostly: prefetch to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("ReadMostly ends", cuMemAdvise(p, n, CU_MEM_ADVISE_UNSET_READ_MOSTLY, on_gpu));
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("back to the host once more");
    STEP("AccessedBy the GPU", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_ACCESSED_BY, on_gpu));
    STEP("AccessedBy: the GPU adds", GPU_WRITES);
    STEP("AccessedBy: the CPU reads", (cpu_read(p, n), 0));
    STEP("AccessedBy: prefetch to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("AccessedBy: the CPU reads it back", (cpu_read(p, n), 0));
    STEP("AccessedBy: the GPU adds again", GPU_WRITES);
    STEP("AccessedBy ends", cuMemAdvise(p, n, CU_MEM_ADVISE_UNSET_ACCESSED_BY, on_gpu));
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("back to the host again");
    STEP("PreferredLocation host",
         cuMemAdvise(p, n, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_host));
    STEP("PreferredLocation host: the GPU adds", GPU_WRITES);
    STEP("PreferredLocation host: the CPU reads", (cpu_read(p, n), 0));
    STEP("PreferredLocation GPU", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_gpu));
    STEP("PreferredLocation GPU: the GPU adds", GPU_WRITES);
    STEP("PreferredLocation GPU: the CPU reads", (cpu_read(p, n), 0));
    managed_free(p, n);
    p = managed(n);
    watch(p, n);
    STEP("the GPU adds to what nobody has touched", GPU_WRITES);
    managed_free(p, n);
    p = managed(n);
    watch(p, n);
    STEP("prefetch of what nobody has touched", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("cuMemcpy from it to the host", cuMemcpyDtoH(calloc(1, n), p, n));
    STEP("cuMemset of it", cuMemsetD8(p, 1, n));
    managed_free(p, n);
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(flusher, NULL);
}

static void run_kernels(void)
{
    CUdeviceptr p;

    begin();
    CUfunction f = function(ADD_ONE);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    PROBE("enable", cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuMemAlloc(&p, MIB));
    for (int i = 0; i < 10; i++)
        MUST(add_one(f, p, 1, NULL));
    MUST(cuCtxSynchronize());
    MUST(cupti.flush(1));
    say("records of 10 launches", "%u", kernel_records);
    say("of which wrong", "%u", kernels_wrong);
    PROBE("disable", cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(add_one(f, p, 1, NULL));
    MUST(cuCtxSynchronize());
    MUST(cupti.flush(1));
    say("records after one more", "%u", kernel_records);
}

const section_t um_conformance_cupti[] = {
    {"subscribers", run_subscribers},
    {"callbacks", run_callbacks},
    {"enabling", run_enabling},
    {"silence", run_silence},
    {"kernel records", run_kernels},
    {"unified-memory records", run_records},
    {NULL, NULL},
};
#endif

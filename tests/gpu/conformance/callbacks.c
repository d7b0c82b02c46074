/*
 * callbacks.c - who may subscribe to CUPTI, and what is called back in which order.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include "cupti_calls.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

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
    bool call_inside, allocate_inside, mute;
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
        if (data->correlationData)
            *data->correlationData = 1000 + data->correlationId;
        else
            told.wrong = "there is no place for correlation data";
        if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
            told.symbol = data->symbolName;
            told.grid = ((const cuLaunchKernel_params *)data->functionParams)->gridDimX;
            if (told.call_inside)
                cuStreamIsCapturing(NULL, &status);
        }
        return;
    }
    if (data->functionReturnValue)
        note(" <%d%s", *(const int *)data->functionReturnValue, data->context ? "" : "-");
    else
        note(" <without result%s", data->context ? "" : "-");
    if (told.allocate_inside && id == CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction) {
        CUdeviceptr p;
        told.allocate_inside = false;
        note(" {%d}", (int)cuMemAllocManaged(&p, MIB, CU_MEM_ATTACH_GLOBAL));
    }
    if (told.depth == 0) {
        told.wrong = "an exit has no entry";
        return;
    }
    int at = --told.depth % 8;
    if (told.open[at].id != id)
        told.wrong = "exits do not match entries";
    else if (told.open[at].correlation != data->correlationId)
        told.wrong = "the correlation id changes";
    else if (told.open[at].data != data->correlationData ||
             (data->correlationData && *data->correlationData != 1000 + data->correlationId))
        told.wrong = "the correlation data are not kept";
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
    static const char *const names[] = {
        "?",           "context created", "context ends", "stream created", "stream ends",
        "cuInit done", "module loaded",   "module ends",  "module profiled"};
    const CUpti_ModuleResourceData *module;

    if (id < sizeof(names) / sizeof(*names))
        note(" [%s", names[id]);
    else
        note(" [resource %u", id);
    module = data ? data->resourceDescriptor : NULL;
    if (!data)
        note(" without data");
    else if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED && !module)
        note(" without a description");
    else if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED)
        note(" %s", !module->pCubin || !module->cubinSize       ? "without image"
                    : memcmp(module->pCubin, "\177ELF", 4) == 0 ? "ELF"
                                                                : "other image");
    note("]");
}

static void CUPTIAPI on_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
    (void)ctx;
    if (told.mute || !pthread_equal(pthread_self(), told.thread))
        return;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        on_call(id, data);
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        on_resource(id, data);
}

/* What killed the process, for whoever has to find out: on the error output. */
static void show_death(int signal_number)
{
    void *frames[32];

    if (write(STDERR_FILENO, "# callbacks until then:", 23) < 0 ||
        write(STDERR_FILENO, told.text, told.used) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(3);
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    raise(signal_number); /* reset by now */
}

/*
 * What was called back during `call`, and its own result. Where that killed the process the call is made with
 * nothing noted in callbacks, and where that does too not at all.
 */
#define CALLBACKS(what, call)                                                                      \
    do {                                                                                           \
        int killed_ = next_probe(), result_;                                                       \
        told.used = 0;                                                                             \
        told.text[0] = '\0';                                                                       \
        told.mute = killed_ != 0;                                                                  \
        if (killed_ >= TWICE) {                                                                    \
            say(what, "signal %d", killed_ - TWICE);                                               \
        } else {                                                                                   \
            result_ = (int)(call);                                                                 \
            if (killed_)                                                                           \
                say(what, "%d; signal %d in its callbacks", result_, killed_);                     \
            else                                                                                   \
                say(what, "%d;%s", result_, told.text);                                            \
        }                                                                                          \
        um_progress->inside = false;                                                               \
    } while (0)

static void run_callbacks(void)
{
    static const CUmemLocation on_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUpti_SubscriberHandle subscriber;
    CUcontext context = NULL;
    CUdevice device = 0;
    CUmodule module = NULL;
    CUfunction f = NULL;
    CUdeviceptr p = 0, d = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    void *pinned = NULL;
    float host = 0;
    uint64_t n = 1;
    CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};

    open_cupti();
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = show_death, .sa_flags = SA_RESETHAND},
              NULL);
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
    told.allocate_inside = true;
    CALLBACKS("an allocation inside the callback", cuModuleGetFunction(&f, module, ADD_ONE));
    told.allocate_inside = false;
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
    PROBE("last error of a refused callback", cupti.last_error());
    PROBE("last error asked again", cupti.last_error());
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

const section_t um_probes_callbacks[] = {
    {"subscribers", run_subscribers},
    {"callbacks", run_callbacks},
    {NULL, NULL},
};
#endif

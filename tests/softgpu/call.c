/*
 * call.c - what every driver call has in common: whether it exists, callbacks, rules, what it needs.
 */
#include "softgpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const sg_client_t *sg_client;
pthread_mutex_t sg_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local sg_frame_t *current;
static _Atomic uint32_t correlations;
static _Atomic int initialised; /* the pid that cuInit ran in */

bool sg_symbol_exists(int row)
{
    return sg_calls[row].since <= sg_version() && !sg_rule_missing(sg_calls[row].name);
}

uint32_t sg_correlation(void)
{
    return current ? current->info.correlation : 0;
}

bool sg_per_thread(void)
{
    return current && current->call->per_thread;
}

static void tell(sg_frame_t *frame, bool exit)
{
    sg_context_t *context = sg_context();

    frame->info.exit = exit;
    if (!exit || !frame->info.context) { /* what the call made current is seen at its exit */
        frame->info.context = context;
        frame->info.context_id = context ? context->id : 0;
    }
    sg_client->call(&frame->info);
}

/* A handle that is no function's has no symbol. */
static const char *symbol_of(const sg_call_t *call, const void *params)
{
    sg_function_t *function;
    CUfunction handle;

    if (call->symbol_at < 0)
        return NULL;
    memcpy(&handle, (const char *)params + call->symbol_at, sizeof(handle));
    return sg_function_of(handle, &function) == CUDA_SUCCESS ? function->name : NULL;
}

static CUresult needed(const sg_call_t *call)
{
    if (call->needs == '-')
        return CUDA_SUCCESS;
    if (!initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (call->needs == 'i')
        return CUDA_SUCCESS;
    sg_context_t *context = sg_context();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->sticky)
        return context->sticky;
    return call->needs == 'u' && sg_capture_forbids() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                      : CUDA_SUCCESS;
}

bool sg_enter(sg_frame_t *frame, int row, void *params, const void *caller)
{
    const sg_call_t *call = &sg_calls[row];

    *frame = (sg_frame_t){.call = call, .outer = current};
    if (initialised && initialised != getpid()) { /* CUDA does not survive a fork */
        frame->result = call->needs == '-' && call->fn != sg_calls[3].fn
                            ? CUDA_SUCCESS
                            : CUDA_ERROR_NOT_INITIALIZED;
        current = frame;
        return frame->result == CUDA_SUCCESS;
    }
    frame->info = (sg_told_t){
        .id = call->id,
        .name = call->name,
        .params = params,
        .result = &frame->result,
        .correlation = ++correlations,
        .data = &frame->data,
    };
    current = frame;
    if (sg_client && sg_client->wants(call->id)) {
        frame->info.symbol = symbol_of(call, params);
        frame->told = true;
        tell(frame, false);
    }
    frame->result = (CUresult)sg_rule(call->name, caller);
    if (frame->result == CUDA_SUCCESS)
        frame->result = needed(call);
    return frame->result == CUDA_SUCCESS;
}

CUresult sg_leave(sg_frame_t *frame)
{
    if (frame->told)
        tell(frame, true);
    current = frame->outer;
    return frame->result;
}

/* ---- starting ------------------------------------------------------------------------------------ */

static void inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void) = NULL;

    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize)
        initialize();
}

/* As the real one: while the injected library starts, CUDA is not initialised yet. */
CUresult sg_init(unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_gpus() == 0)
        return CUDA_ERROR_NO_DEVICE;
    pthread_once(&once, inject);
    initialised = getpid();
    return CUDA_SUCCESS;
}

CUresult sg_driver_version(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sg_version() / 10 * 1000 + sg_version() % 10 * 10;
    return CUDA_SUCCESS;
}

/* ---- cuGetProcAddress ------------------------------------------------------------------------------ */

/* Where a plain name came to mean a later version than the one of the call that first had it. */
static const struct {
    const char *name;
    int since;
} renamed[] = {
    {"cuMemPrefetchAsync_v2", 130}, {"cuMemAdvise_v2", 130},      {"cuEventElapsedTime_v2", 130},
    {"cuCtxCreate_v3", 999},        {"cuCtxCreate_v4", 130},      {"cuMemcpyBatchAsync_v2", 130},
    {"cuDeviceGetUuid_v2", 118},    {"cuGetProcAddress_v2", 120},
};

/* How well a call answers to `symbol` for a program of that version: 0 not, else the newer the more. */
static int answers(const sg_call_t *call, const char *symbol, int version, bool per_thread)
{
    size_t length = strlen(symbol);
    const char *rest = call->name + length;
    int since = call->since;

    if (strncmp(call->name, symbol, length) != 0 || since > sg_version() || since > version)
        return 0;
    bool thread = strncmp(rest, "_pt", 3) == 0 ||
                  (strncmp(rest, "_v", 2) == 0 && rest[2] && strncmp(rest + 3, "_pt", 3) == 0);
    int number =
        strncmp(rest, "_v", 2) == 0 && rest[2] >= '2' && rest[2] <= '9' ? rest[2] - '0' : 1;
    if (number == 1 && *rest && !thread)
        return 0;
    if (number > 1 && rest[3] && !thread)
        return 0;
    for (size_t i = 0; number > 1 && i < sizeof(renamed) / sizeof(*renamed); i++)
        if (strncmp(renamed[i].name, call->name, strlen(renamed[i].name)) == 0 &&
            renamed[i].since > version)
            return 0;
    return thread && !per_thread ? 0 : number * 2 + thread;
}

/* Only plain names are known: "cuMemAlloc", not "cuMemAlloc_v2" nor "cuLaunchKernel_ptsz". */
static bool plain(const char *symbol)
{
    const char *end = strrchr(symbol, '_');

    return *symbol && (!end || (end[1] != 'v' && strcmp(end, "_ptsz") && strcmp(end, "_ptds")));
}

/* status: a CUdriverProcAddressQueryResult: 0 found, 1 no such symbol, 2 it is of a later version; who does not
 * ask for it has an error instead. */
CUresult sg_get_proc_address_v2(const char *symbol, void **fn, int version, cuuint64_t flags,
                                int *status)
{
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    int best = 0, known = 0, asked = version / 1000 * 10 + version % 1000 / 10;

    if (!symbol || !fn || asked > sg_version())
        return CUDA_ERROR_INVALID_VALUE;
    /* What 11.8 has is of 2.0, prefetches are of 8.0; a negative version is any. */
    int first = strstr(symbol, "Prefetch") ? 80 : 20;
    version = version < 0 ? sg_version() : asked < 118 && asked >= first ? 118 : asked;
    *fn = NULL;
    for (int i = 0; i < sg_n_calls && plain(symbol); i++) {
        int how = answers(&sg_calls[i], symbol, version, per_thread);
        known |= answers(&sg_calls[i], symbol, 999, true);
        if (how > best && sg_symbol_exists(i)) {
            best = how;
            *fn = sg_calls[i].fn;
        }
    }
    if (status)
        *status = best ? 0 : known ? 2 : 1;
    return best || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult sg_get_proc_address(const char *symbol, void **fn, int version, cuuint64_t flags)
{
    return sg_get_proc_address_v2(symbol, fn, version, flags, NULL);
}

/* ---- for CUPTI ------------------------------------------------------------------------------------- */

static void attach(const sg_client_t *client)
{
    __atomic_store_n(&sg_client, client, __ATOMIC_SEQ_CST);
}

static bool exists(const char *symbol)
{
    return !sg_rule_missing(symbol);
}

static uint32_t context_id(CUcontext context)
{
    return sg_is(context, SG_CONTEXT) ? context->id : 0;
}

static uint32_t stream_id(CUcontext context, CUstream stream)
{
    if (sg_is(stream, SG_STREAM))
        return stream->id;
    return sg_is(context, SG_CONTEXT) && context->legacy ? context->legacy->id : 0;
}

static int context_device(CUcontext context)
{
    return sg_is(context, SG_CONTEXT) ? context->device : -1;
}

bool sg_any_context(void);

__attribute__((visibility("default"))) const sg_driver_t sg_driver = {
    attach,     sg_version, exists,         sg_rule,        sg_setting,
    context_id, stream_id,  context_device, sg_any_context, sg_now_ns,
};

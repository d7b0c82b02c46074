#include "executor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "exec/workers.h"

#define MAX_STREAMS 16 /* contexts that one worker keeps a stream for */

typedef struct stream {
    uint32_t context; /* 0 = free */
    CUstream handle;
} stream_t;

typedef struct cuda_calls {
    pthread_mutex_t lock; /* of the streams: a context may go while its worker is elsewhere */
    stream_t stream[UM_WORKERS_MAX][MAX_STREAMS];
} cuda_calls_t;

/* ---- contexts ---- */

static _Atomic(CUcontext) contexts[UM_CONTEXTS_MAX];

void um_cuda_context_is(uint32_t context, CUcontext handle)
{
    if (context && context < UM_CONTEXTS_MAX &&
        atomic_load_explicit(&contexts[context], memory_order_relaxed) != handle)
        atomic_store_explicit(&contexts[context], handle, memory_order_release);
}

CUcontext um_cuda_context(uint32_t context)
{
    return context < UM_CONTEXTS_MAX
               ? atomic_load_explicit(&contexts[context], memory_order_acquire)
               : NULL;
}

/* ---- on a worker's thread ---- */

static void start(void *ctx, unsigned worker)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    (void)ctx;
    (void)worker;
    um_cuda_own = true; /* for the thread's whole life */
    /* A capture elsewhere in the program must not mind what this thread does. */
    if (um_cuda()->capture_mode)
        um_cuda()->capture_mode(&mode);
}

static stream_t *slot_of(cuda_calls_t *calls, unsigned worker, uint32_t context)
{
    stream_t *stream = calls->stream[worker];

    for (unsigned i = 0; i < MAX_STREAMS; i++)
        if (stream[i].context == context)
            return &stream[i];
    return NULL;
}

/* The worker's stream in the current context, made at its first use. */
static CUresult stream_in(cuda_calls_t *calls, unsigned worker, uint32_t context, CUstream *out)
{
    stream_t *slot;
    CUresult error;

    pthread_mutex_lock(&calls->lock);
    slot = slot_of(calls, worker, context);
    if (slot)
        *out = slot->handle;
    pthread_mutex_unlock(&calls->lock);
    if (slot)
        return CUDA_SUCCESS;
    if ((error = um_cuda()->stream_create(out, CU_STREAM_NON_BLOCKING)) != CUDA_SUCCESS)
        return error;
    pthread_mutex_lock(&calls->lock);
    slot = slot_of(calls, worker, 0);
    if (slot)
        *slot = (stream_t){.context = context, .handle = *out};
    pthread_mutex_unlock(&calls->lock);
    if (slot)
        return CUDA_SUCCESS;
    um_cuda()->stream_destroy(*out);
    return CUDA_ERROR_INVALID_CONTEXT; /* more contexts than streams are kept for */
}

static void prepare(void *ctx, unsigned worker, uint32_t context)
{
    CUcontext handle = um_cuda_context(context), popped;
    CUstream stream;

    if (!handle || um_cuda()->ctx_push(handle) != CUDA_SUCCESS)
        return;
    (void)stream_in(ctx, worker, context, &stream);
    um_cuda()->ctx_pop(&popped);
}

/* The program tears its context down, or the driver itself at exit: nobody's failure. */
static int32_t told(CUresult error)
{
    return error == CUDA_ERROR_DEINITIALIZED || error == CUDA_ERROR_INVALID_CONTEXT ||
                   error == CUDA_ERROR_CONTEXT_IS_DESTROYED
               ? UM_WORKERS_GONE
               : (int32_t)error;
}

static int32_t apply(void *ctx, unsigned worker, uint32_t context, const um_hint_t *hint)
{
    CUcontext handle = um_cuda_context(context), popped;
    CUstream stream;
    CUresult error;

    if (!handle)
        return UM_WORKERS_GONE;
    if ((error = um_cuda()->ctx_push(handle)) != CUDA_SUCCESS)
        return told(error);
    if (hint->kind != UM_HINT_PREFETCH)
        error = um_cuda_advise(hint->addr, hint->bytes, (um_hint_kind_t)hint->kind, hint->device);
    else if ((error = stream_in(ctx, worker, context, &stream)) == CUDA_SUCCESS)
        error = um_cuda_prefetch(hint->addr, hint->bytes, hint->device, stream);
    um_cuda()->ctx_pop(&popped);
    return told(error);
}

/* Nothing that the workers asked for is still on its way. */
static bool idle(void *ctx, uint32_t context)
{
    cuda_calls_t *calls = ctx;
    CUcontext handle = um_cuda_context(context), popped;
    bool busy = false;

    if (!handle || !um_cuda()->stream_query || um_cuda()->ctx_push(handle) != CUDA_SUCCESS)
        return true;
    for (unsigned w = 0; w < UM_WORKERS_MAX && !busy; w++) {
        CUstream stream = NULL;
        stream_t *slot;

        pthread_mutex_lock(&calls->lock);
        if ((slot = slot_of(calls, w, context)))
            stream = slot->handle;
        pthread_mutex_unlock(&calls->lock);
        busy = stream && um_cuda()->stream_query(stream) == CUDA_ERROR_NOT_READY;
    }
    um_cuda()->ctx_pop(&popped);
    return !busy;
}

/* ---- elsewhere ---- */

static bool free_bytes(void *ctx, uint32_t context, uint64_t *free, uint64_t *total)
{
    CUcontext handle = um_cuda_context(context), popped;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    size_t free_size = 0, total_size = 0;
    bool own = um_cuda_own, known = false;

    (void)ctx;
    if (!handle || !um_cuda()->mem_info)
        return false;
    um_cuda_own = true;
    if (um_cuda()->capture_mode) /* as in start: it may be any thread that asks */
        um_cuda()->capture_mode(&mode);
    if (um_cuda()->ctx_push(handle) == CUDA_SUCCESS) {
        known = um_cuda()->mem_info(&free_size, &total_size) == CUDA_SUCCESS;
        um_cuda()->ctx_pop(&popped);
    }
    if (um_cuda()->capture_mode)
        um_cuda()->capture_mode(&mode); /* back to what it was */
    um_cuda_own = own;
    *free = free_size;
    *total = total_size;
    return known;
}

/* Its streams go with it. */
static void context_gone(void *ctx, uint32_t context)
{
    cuda_calls_t *calls = ctx;

    pthread_mutex_lock(&calls->lock);
    for (unsigned w = 0; w < UM_WORKERS_MAX; w++)
        for (unsigned i = 0; i < MAX_STREAMS; i++)
            if (!context || calls->stream[w][i].context == context)
                calls->stream[w][i].context = 0;
    pthread_mutex_unlock(&calls->lock);
    if (context)
        um_cuda_context_is(context, NULL);
}

static void release(void *ctx)
{
    cuda_calls_t *calls = ctx;

    pthread_mutex_destroy(&calls->lock);
    free(calls);
}

um_status_t um_cuda_executor_new(um_runtime_t *runtime, um_executor_t **out)
{
    unsigned workers = (unsigned)runtime->settings.workers;
    cuda_calls_t *calls = calloc(1, sizeof(*calls));
    um_workers_calls_t table = {.name = "cuda",
                                .ctx = calls,
                                .lacks_kinds = 1u << UM_HINT_DISCARD,
                                .lacks_orders = 1u << UM_ORDER_BEFORE,
                                .start = start,
                                .prepare = prepare,
                                .apply = apply,
                                .idle = idle,
                                .free_bytes = free_bytes,
                                .context_gone = context_gone,
                                .release = release};
    um_status_t status;

    if (!calls)
        return UM_ERR_NO_MEMORY;
    pthread_mutex_init(&calls->lock, NULL);
    status = um_workers_new(&table, workers < UM_WORKERS_MAX ? workers : UM_WORKERS_MAX, out);
    if (status != UM_OK)
        release(calls);
    return status;
}

/*
 * stream.c - work in stream order: each stream has a thread that executes its items once what they
 * depend on is done. A stream counts what was queued and what is done, so "this event" is a stream and a
 * count, and "after all that" is such a pair for every stream. Streams are recycled, never freed.
 */
#include "softgpu.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct dependency {
    sg_stream_t *stream;
    uint64_t count;
} dependency_t;

typedef struct sg_item {
    struct sg_item *next;
    sg_op_t op;
    size_t n;
    dependency_t on[];
} item_t;

static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* of any stream; with sg_lock */
static sg_stream_t *spare;
static uint32_t n_streams;

/* ---- the threads ---------------------------------------------------------------------------------- */

static bool ready(const item_t *item)
{
    for (size_t i = 0; i < item->n; i++)
        if (item->on[i].stream->done < item->on[i].count)
            return false;
    return true;
}

/* What the GPU, and no copy engine or host thread, does. */
static bool is_kernels(const sg_op_t *op)
{
    return op->type == CU_GRAPH_NODE_TYPE_KERNEL || op->type == SG_OP_LAUNCH;
}

static void *work(void *ctx)
{
    sg_stream_t *stream = ctx;

    pthread_mutex_lock(&sg_lock);
    for (;;) {
        item_t *item = stream->first;
        if (!item || !ready(item)) {
            pthread_cond_wait(&progress, &sg_lock);
            continue;
        }
        bool broken = stream->context->sticky != CUDA_SUCCESS, kernels = is_kernels(&item->op);
        pthread_mutex_unlock(&sg_lock);
        if (!broken)
            sg_op_run(&item->op, stream);
        if (kernels)
            sg_managed_done(stream->context->device);
        sg_op_clear(&item->op);
        pthread_mutex_lock(&sg_lock);
        stream->first = item->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->done++;
        free(item);
        pthread_cond_broadcast(&progress);
    }
    return NULL;
}

static void start(sg_stream_t *stream)
{
    sigset_t all, before;

    if (stream->started)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stream->started = pthread_create(&stream->thread, NULL, work, stream) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Under sg_lock. */
sg_stream_t *sg_stream_new(sg_context_t *context, unsigned flags)
{
    sg_stream_t *stream = spare;

    if (stream) {
        spare = stream->next;
    } else {
        stream = calloc(1, sizeof(*stream));
        stream->last = &stream->first;
    }
    stream->magic = SG_STREAM;
    stream->id = ++n_streams;
    stream->context = context;
    stream->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    stream->legacy = false;
    stream->alive = true;
    stream->priority = 0;
    stream->capture = NULL;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

/* The thread's own streams, one a context. */
static _Thread_local struct {
    sg_context_t *context;
    sg_stream_t *stream;
} own[16];

static sg_stream_t *per_thread(sg_context_t *context)
{
    for (int i = 0; i < 16; i++) {
        if (!own[i].context) {
            own[i].context = context;
            pthread_mutex_lock(&sg_lock);
            own[i].stream = sg_stream_new(context, 0);
            pthread_mutex_unlock(&sg_lock);
        }
        if (own[i].context == context)
            return own[i].stream;
    }
    return context->legacy;
}

CUresult sg_stream_of(CUstream handle, sg_stream_t **out)
{
    sg_context_t *context = sg_context();

    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (handle == CU_STREAM_PER_THREAD || (!handle && sg_per_thread()))
        *out = per_thread(context);
    else if (!handle || handle == CU_STREAM_LEGACY)
        *out = context->legacy;
    else if (sg_is(handle, SG_STREAM) && handle->alive)
        *out = handle;
    else
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

/* ---- putting work on ------------------------------------------------------------------------------- */

/* Under sg_lock. The legacy stream waits for all blocking ones and they for it. */
static item_t *item_new(sg_stream_t *stream, const sg_op_t *op)
{
    size_t n = 0;
    sg_context_t *context = stream->context;

    for (sg_stream_t *s = context->streams; s; s = s->next)
        n++;
    item_t *item = calloc(1, sizeof(*item) + (n + 1) * sizeof(dependency_t));
    item->op = *op;
    if (stream->legacy) {
        for (sg_stream_t *s = context->streams; s; s = s->next)
            if (s->blocking && s != stream)
                item->on[item->n++] = (dependency_t){s, s->queued};
    } else if (stream->blocking) {
        item->on[item->n++] = (dependency_t){context->legacy, context->legacy->queued};
    }
    return item;
}

/* Under sg_lock. */
static void put(sg_stream_t *stream, item_t *item)
{
    *stream->last = item;
    stream->last = &item->next;
    stream->queued++;
    start(stream);
    pthread_cond_broadcast(&progress);
}

CUresult sg_enqueue(sg_stream_t *stream, sg_op_t *op)
{
    CUresult result = CUDA_SUCCESS;
    bool kernels = is_kernels(op) && !stream->capture;

    op->correlation = sg_correlation();
    if (kernels)
        sg_managed_launch(stream->context->device);
    pthread_mutex_lock(&sg_lock);
    if (stream->capture)
        result = sg_capture_add(stream, op);
    else if (stream->legacy && sg_capture_in(stream->context, true))
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    else
        put(stream, item_new(stream, op));
    bool taken = result == CUDA_SUCCESS;
    pthread_mutex_unlock(&sg_lock);
    if (!taken && kernels)
        sg_managed_done(stream->context->device);
    if (!taken)
        sg_op_clear(op);
    return result;
}

static void wait_for(sg_stream_t *stream, uint64_t count)
{
    while (stream->done < count)
        pthread_cond_wait(&progress, &sg_lock);
}

/* Streams come and go meanwhile: what is waited for is fixed first. */
static void wait_for_all(sg_context_t *context, bool only_blocking)
{
    size_t n = 0;

    for (sg_stream_t *s = context->streams; s; s = s->next)
        n++;
    dependency_t *on = calloc(n + 1, sizeof(*on));
    n = 0;
    for (sg_stream_t *s = context->streams; s; s = s->next)
        if (!s->capture && (s->blocking || !only_blocking))
            on[n++] = (dependency_t){s, s->queued};
    for (size_t i = 0; i < n; i++)
        wait_for(on[i].stream, on[i].count);
    free(on);
}

CUresult sg_wait(sg_stream_t *stream)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&sg_lock);
    if (stream->capture) {
        stream->capture->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream->legacy && sg_capture_in(stream->context, true)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else {
        if (stream->legacy)
            wait_for_all(stream->context, true);
        else
            wait_for(stream, stream->queued);
        result = stream->context->sticky;
    }
    pthread_mutex_unlock(&sg_lock);
    sg_managed_waited();
    return result;
}

void sg_context_wait(sg_context_t *context)
{
    pthread_mutex_lock(&sg_lock);
    wait_for_all(context, false);
    pthread_mutex_unlock(&sg_lock);
    sg_managed_waited();
}

static void close_by(sg_context_t *context, int more)
{
    pthread_mutex_lock(&sg_lock);
    context->closed += (unsigned)more;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&sg_lock);
}

void sg_context_wait_closed(sg_context_t *context)
{
    close_by(context, 1);
    sg_context_wait(context);
    close_by(context, -1);
}

CUresult sg_wait_closed(sg_stream_t *stream)
{
    sg_context_t *context = stream->context;

    close_by(context, 1);
    CUresult result = sg_wait(stream);
    close_by(context, -1);
    return result;
}

void sg_context_open_wait(sg_context_t *context)
{
    pthread_mutex_lock(&sg_lock);
    while (context->closed)
        pthread_cond_wait(&progress, &sg_lock);
    pthread_mutex_unlock(&sg_lock);
}

void sg_streams_end(sg_context_t *context)
{
    pthread_mutex_lock(&sg_lock);
    while (context->streams) {
        sg_stream_t *s = context->streams;
        context->streams = s->next;
        s->alive = false;
        s->next = spare;
        spare = s;
    }
    context->legacy = NULL;
    pthread_mutex_unlock(&sg_lock);
}

/* ---- streams ---------------------------------------------------------------------------------------- */

CUresult sg_stream_create(CUstream *out, unsigned flags)
{
    if (!out || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sg_lock);
    *out = sg_stream_new(sg_context(), flags);
    pthread_mutex_unlock(&sg_lock);
    return CUDA_SUCCESS;
}

CUresult sg_stream_create_priority(CUstream *out, unsigned flags, int priority)
{
    CUresult result = sg_stream_create(out, flags);

    if (result == CUDA_SUCCESS)
        (*out)->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    return result;
}

/* What is queued still runs. */
CUresult sg_stream_destroy(CUstream stream)
{
    if (!sg_is(stream, SG_STREAM) || !stream->alive)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&sg_lock);
    sg_stream_t **at = &stream->context->streams;
    while (*at != stream)
        at = &(*at)->next;
    wait_for(stream, stream->queued);
    for (at = &stream->context->streams; *at && *at != stream;)
        at = &(*at)->next;
    if (*at)
        *at = stream->next;
    stream->alive = false;
    stream->next = spare;
    spare = stream;
    pthread_mutex_unlock(&sg_lock);
    return CUDA_SUCCESS;
}

#define STREAM(handle)                                                                             \
    sg_stream_t *stream;                                                                           \
    CUresult found = sg_stream_of(handle, &stream);                                                \
    if (found != CUDA_SUCCESS)                                                                     \
    return found

/* What captures make of a question how far a stream is; an unsafe one, even of a stream outside. */
static CUresult captured(sg_stream_t *stream)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&sg_lock);
    if (stream->capture) {
        stream->capture->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream->legacy && sg_capture_in(stream->context, true)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    pthread_mutex_unlock(&sg_lock);
    return result == CUDA_SUCCESS && sg_capture_forbids() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                          : result;
}

CUresult sg_stream_query(CUstream handle)
{
    STREAM(handle);
    CUresult result = captured(stream);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&sg_lock);
    result = stream->done == stream->queued ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&sg_lock);
    if (result == CUDA_SUCCESS)
        sg_managed_waited();
    return result;
}

CUresult sg_stream_sync(CUstream handle)
{
    STREAM(handle);
    CUresult result = captured(stream);

    return result == CUDA_SUCCESS ? sg_wait(stream) : result;
}

CUresult sg_stream_flags(CUstream handle, unsigned *flags)
{
    STREAM(handle);
    *flags = stream->blocking ? 0 : CU_STREAM_NON_BLOCKING;
    return CUDA_SUCCESS;
}

CUresult sg_stream_priority(CUstream handle, int *priority)
{
    STREAM(handle);
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult sg_stream_ctx(CUstream handle, CUcontext *context)
{
    STREAM(handle);
    *context = stream->context;
    return CUDA_SUCCESS;
}

CUresult sg_stream_attach(CUstream handle, CUdeviceptr addr, size_t bytes, unsigned flags)
{
    STREAM(handle);
    sg_memory_t memory;

    (void)bytes;
    if (stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        (flags != CU_MEM_ATTACH_SINGLE || stream->legacy))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_memory_find(addr, &memory) && memory.family == SG_MANAGED ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_launch_host(CUstream handle, CUhostFn fn, void *data)
{
    STREAM(handle);
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_HOST, .u.host = {fn, data}};
    return fn ? sg_enqueue(stream, &op) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_stream_callback(CUstream handle, CUstreamCallback fn, void *data, unsigned flags)
{
    STREAM(handle);
    sg_op_t op = {.type = SG_OP_CALLBACK, .u.callback = {fn, data, handle}};
    return fn && !flags ? sg_enqueue(stream, &op) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- events ----------------------------------------------------------------------------------------- */

CUresult sg_event_create(CUevent *out, unsigned flags)
{
    sg_event_t *event;

    if (!out || flags > (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    event = calloc(1, sizeof(*event));
    event->magic = SG_EVENT;
    event->flags = flags;
    event->context = sg_context();
    *out = event;
    return CUDA_SUCCESS;
}

/* Kept: its stream may still be on the way to it. */
CUresult sg_event_destroy(CUevent event)
{
    if (!sg_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    event->magic = SG_GONE;
    return CUDA_SUCCESS;
}

CUresult sg_event_record(CUevent event, CUstream handle)
{
    STREAM(handle);
    CUresult result = CUDA_SUCCESS;

    if (!sg_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&sg_lock);
    if (stream->capture) {
        event->capture = stream->capture;
        event->n_tail = stream->n_tail;
        event->tail = realloc(event->tail, stream->n_tail * sizeof(void *)); /* NOLINT */
        memcpy(event->tail, stream->tail, stream->n_tail * sizeof(void *));  /* NOLINT */
    } else if (stream->legacy && sg_capture_in(stream->context, true)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else {
        sg_op_t op = {.type = SG_OP_EVENT, .u.event = event};
        event->capture = NULL;
        put(stream, item_new(stream, &op));
        event->stream = stream;
        event->at = stream->queued;
    }
    pthread_mutex_unlock(&sg_lock);
    return result;
}

CUresult sg_event_record_flags(CUevent event, CUstream stream, unsigned flags)
{
    (void)flags;
    return sg_event_record(event, stream);
}

CUresult sg_stream_wait(CUstream handle, CUevent event, unsigned flags)
{
    STREAM(handle);
    CUresult result = CUDA_SUCCESS;

    if (!sg_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sg_lock);
    if (event->capture) {
        result = sg_capture_join(stream, event->tail, event->n_tail, event->capture);
    } else if (stream->capture) {
        stream->capture->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    } else if (event->stream) {
        sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
        item_t *item = item_new(stream, &op);
        item->on[item->n++] = (dependency_t){event->stream, event->at};
        put(stream, item);
    }
    pthread_mutex_unlock(&sg_lock);
    return result;
}

/* What captures make of a question whether it is reached. */
static CUresult event_captured(sg_event_t *event)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&sg_lock);
    if (event->capture) {
        event->capture->invalid = true;
        result = CUDA_ERROR_CAPTURED_EVENT;
    }
    pthread_mutex_unlock(&sg_lock);
    return result == CUDA_SUCCESS && sg_capture_forbids() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                          : result;
}

CUresult sg_event_query(CUevent event)
{
    if (!sg_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = event_captured(event);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&sg_lock);
    if (event->stream && event->stream->done < event->at)
        result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&sg_lock);
    if (result == CUDA_SUCCESS)
        sg_managed_waited();
    return result;
}

CUresult sg_event_sync(CUevent event)
{
    if (!sg_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = event_captured(event);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&sg_lock);
    if (event->stream)
        wait_for(event->stream, event->at);
    pthread_mutex_unlock(&sg_lock);
    sg_managed_waited();
    return event->context->sticky;
}

CUresult sg_event_elapsed(float *ms, CUevent from, CUevent to)
{
    if (!sg_is(from, SG_EVENT) || !sg_is(to, SG_EVENT) || !from->stream || !to->stream ||
        ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_event_query(from) || sg_event_query(to))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)to->time_ns - (double)from->time_ns) / 1e6f;
    return CUDA_SUCCESS;
}

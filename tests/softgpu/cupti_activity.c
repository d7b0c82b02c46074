/*
 * cupti_activity.c - the activity half of the software CUPTI: records, their queue, their buffers.
 *
 * As measured on an H200: unified-memory records come from a queue of bounded length that nobody but a flush
 * empties, what does not fit is gone without a count; nothing is delivered before a managed allocation that
 * follows the subscription or the enabling; kinds cannot be changed while enabled, nor anything be enabled before
 * there is a context; disabling takes long.
 */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Layout 3 of a unified-memory record; 2 ends before processors. */
typedef struct counter {
    uint32_t kind, counter;
    uint64_t value, start, end, address;
    uint32_t src, dst, stream, process, flags, pad;
    uint64_t processors[5];
} counter_t;
#if CUDA_VERSION >= 13000
typedef CUpti_ActivityKernel10 kernel_t;
#define KERNEL_BYTES                                                                               \
    (version >= 130   ? sizeof(kernel_t)                                                           \
     : version >= 120 ? sizeof(CUpti_ActivityKernel9)                                              \
                      : sizeof(CUpti_ActivityKernel8))
#elif CUDA_VERSION >= 12000
typedef CUpti_ActivityKernel9 kernel_t;
#define KERNEL_BYTES (version >= 120 ? sizeof(kernel_t) : sizeof(CUpti_ActivityKernel8))
#else
typedef CUpti_ActivityKernel8 kernel_t;
#define KERNEL_BYTES ((void)version, sizeof(kernel_t))
#endif

typedef struct queued {
    struct queued *next;
    sg_record_t record;
} queued_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static queued_t *first, **last = &first;
static uint64_t n_queued;
static uint64_t flushes_asked, flushes_done; /* by the worker */
static uint32_t period_ms;
static bool worker_runs;
static bool um_enabled, kernels_enabled, delivering, delivered, configured;
static bool kinds[16];
static CUpti_BuffersCallbackRequestFunc requested;
static CUpti_BuffersCallbackCompleteFunc completed;
static uint64_t (*own_clock)(void);
static size_t dropped;

static uint64_t queue_length(void)
{
    const char *text = sg_driver.setting("QUEUE", "65536");
    uint64_t n = strtoull(text, NULL, 10);

    return n ? n : UINT64_MAX;
}

/* ---- from libcuda ------------------------------------------------------------------------------------- */

void sg_activity_managed(void)
{
    pthread_mutex_lock(&lock);
    delivering = true;
    pthread_mutex_unlock(&lock);
}

void sg_activity_record(const sg_record_t *record)
{
    pthread_mutex_lock(&lock);
    bool wanted = record->kind
                      ? um_enabled && delivering && record->kind < 16 && kinds[record->kind]
                      : kernels_enabled;
    if (wanted && (!record->kind || n_queued < queue_length())) {
        queued_t *q = malloc(sizeof(*q));
        *q = (queued_t){NULL, *record};
        if (own_clock) { /* on it this is now */
            uint64_t ago = own_clock() - sg_driver.now_ns();
            q->record.start += ago;
            q->record.end += ago;
        }
        *last = q;
        last = &q->next;
        n_queued += record->kind != 0;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- into buffers, on a thread of CUPTI's own ------------------------------------------------------------ */

static size_t write_record(uint8_t *at, size_t room, const sg_record_t *r)
{
    int version = sg_driver.version();
    counter_t c = {.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
                   .counter = r->kind,
                   .value = r->value,
                   .start = r->start,
                   .end = r->end,
                   .address = r->address,
                   .src = r->src,
                   .dst = r->dst,
                   .flags = r->flags,
                   .processors = {r->processors}};
    size_t bytes = version >= 128 ? sizeof(c) : offsetof(counter_t, processors);

    if (!r->kind) {
        kernel_t k;
        memset(&k, 0, sizeof(k));
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.start = r->start;
        k.end = r->end;
        k.deviceId = r->device;
        k.contextId = r->context;
        k.streamId = r->stream;
        k.correlationId = r->correlation;
        k.gridX = (int32_t)r->grid[0];
        k.gridY = (int32_t)r->grid[1];
        k.gridZ = (int32_t)r->grid[2];
        k.blockX = (int32_t)r->block[0];
        k.blockY = (int32_t)r->block[1];
        k.blockZ = (int32_t)r->block[2];
        k.dynamicSharedMemory = (int32_t)r->shared_bytes;
        k.name = r->name;
        bytes = KERNEL_BYTES;
        if (bytes <= room)
            memcpy(at, &k, bytes);
        return bytes <= room ? bytes : 0;
    }
    if (version >= 130) { /* driver 580 gives the CPU's end as 0 */
        c.src = c.src == UINT32_MAX ? 0 : c.src;
        c.dst = c.dst == UINT32_MAX ? 0 : c.dst;
    }
    if (bytes > room)
        return 0;
    memcpy(at, &c, bytes);
    return bytes;
}

/* Without the lock: the client's functions are called. */
static void deliver(queued_t *queue)
{
    uint8_t *buffer = NULL;
    size_t bytes = 0, used = 0, most = 0;

    while (queue) {
        size_t wrote = 0;
        if (!buffer) {
            requested(&buffer, &bytes, &most);
            used = 0;
        }
        if (buffer)
            wrote = write_record(buffer + used, bytes - used, &queue->record);
        used += wrote;
        if (buffer && !wrote && used) { /* full: the next one takes it */
            completed(NULL, 0, buffer, bytes, used);
            buffer = NULL;
            continue;
        }
        if (!wrote)
            __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
        queued_t *gone = queue;
        queue = queue->next;
        free(gone);
    }
    if (buffer)
        completed(NULL, 0, buffer, bytes, used);
}

static void *work(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    for (;;) {
        bool due = flushes_done < flushes_asked;
        if (!due && period_ms) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += period_ms / 1000;
            until.tv_nsec += (long)(period_ms % 1000) * 1000000;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            pthread_cond_timedwait(&changed, &lock, &until);
        } else if (!due) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        uint64_t asked = flushes_asked;
        queued_t *queue = first;
        first = NULL;
        last = &first;
        n_queued = 0;
        delivered |= queue != NULL;
        pthread_mutex_unlock(&lock);
        if (queue && requested)
            deliver(queue);
        pthread_mutex_lock(&lock);
        flushes_done = asked;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* Under the lock. */
static void start_worker(void)
{
    sigset_t all, before;
    pthread_t thread;

    if (worker_runs)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker_runs = pthread_create(&thread, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the interface ------------------------------------------------------------------------------------------ */

SG_CUPTI(cuptiActivityRegisterCallbacks, 0,
         (CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete),
         (request, complete))
{
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    requested = request;
    completed = complete;
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiActivityRegisterTimestampCallback, 0, (uint64_t(*clock)(void)), (clock))
{
    if (!clock)
        return CUPTI_ERROR_INVALID_PARAMETER;
    own_clock = clock;
    return CUPTI_SUCCESS;
}

/* Of the clock that records are on. */
SG_CUPTI(cuptiGetTimestamp, 0, (uint64_t * ns), (ns))
{
    if (!ns)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ns = own_clock ? own_clock() : sg_driver.now_ns();
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiActivityConfigureUnifiedMemoryCounter, 0,
         (CUpti_ActivityUnifiedMemoryCounterConfig * config, uint32_t n), (config, n))
{
    CUptiResult result = CUPTI_SUCCESS;
    int refused = atoi(sg_driver.setting("UM_REFUSED", "0"));

    if (!config || n == 0)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!sg_driver.has_context())
        return CUPTI_ERROR_NOT_READY;
    if (refused)
        return (CUptiResult)refused;
    pthread_mutex_lock(&lock);
    if (um_enabled)
        result = CUPTI_ERROR_INVALID_OPERATION;
    for (uint32_t i = 0; i < n && result == CUPTI_SUCCESS; i++) {
        if (config[i].kind == 0 || config[i].kind > 8)
            result = CUPTI_ERROR_INVALID_PARAMETER;
        else
            kinds[config[i].kind] = config[i].enable;
    }
    configured |= result == CUPTI_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

SG_CUPTI(cuptiActivityEnable, 0, (CUpti_ActivityKind kind), (kind))
{
    CUptiResult result = CUPTI_SUCCESS;
    bool um = kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;

    if (kind == 0 || kind > 64) /* more than there are */
        return CUPTI_ERROR_NOT_COMPATIBLE;
    if (um && !sg_driver.has_context())
        return CUPTI_ERROR_NOT_READY;
    sg_cupti_attach();
    pthread_mutex_lock(&lock);
    if (um && !configured)
        result = CUPTI_ERROR_INVALID_OPERATION;
    else if (um)
        um_enabled = true;
    else if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_KERNEL)
        kernels_enabled = true;
    start_worker();
    pthread_mutex_unlock(&lock);
    return result;
}

SG_CUPTI(cuptiActivityDisable, 0, (CUpti_ActivityKind kind), (kind))
{
    pthread_mutex_lock(&lock);
    if (kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) {
        kernels_enabled = false;
    } else if (um_enabled) {
        struct timespec t = {delivered ? 0 : 2, delivered ? 20000000 : 0};
        um_enabled = false;
        pthread_mutex_unlock(&lock);
        nanosleep(&t, NULL);
        return CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiActivityFlushAll, 0, (uint32_t flag), (flag))
{
    (void)flag;
    pthread_mutex_lock(&lock);
    if (worker_runs) {
        uint64_t mine = ++flushes_asked;
        pthread_cond_broadcast(&changed);
        while (flushes_done < mine)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiActivityFlushPeriod, 0, (uint32_t ms), (ms))
{
    pthread_mutex_lock(&lock);
    period_ms = ms;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiActivityGetNextRecord, 0, (uint8_t * buffer, size_t valid, CUpti_Activity **record),
         (buffer, valid, record))
{
    int version = sg_driver.version();
    uint8_t *next = buffer;

    if (*record) {
        size_t bytes = (*record)->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER
                           ? (version >= 128 ? sizeof(counter_t) : offsetof(counter_t, processors))
                           : KERNEL_BYTES;
        next = (uint8_t *)*record + bytes;
    }
    if (!buffer || (size_t)(next - buffer) >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiActivityGetNumDroppedRecords, 0, (CUcontext context, uint32_t stream, size_t *n),
         (context, stream, n))
{
    (void)context;
    (void)stream;
    *n = __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiFinalize, 0, (void), ())
{
    abort(); /* umrt must never */
}

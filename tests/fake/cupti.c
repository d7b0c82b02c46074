/*
 * A libcupti that a test drives: it calls the subscriber back when it is told to, and delivers the
 * records that it was given at the next flush.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cupti.h>

uint32_t fake_cupti_api = 130000;
int fake_cupti_subscribe_result; /* CUptiResult of the next subscriptions */
int fake_cupti_enable_result;    /* of enabling unified-memory records */
int fake_cupti_callback_result;  /* of enabling callbacks */
int fake_cupti_callbacks_asked;  /* how often one was enabled */
int fake_cupti_callbacks_clash;  /* two threads at it at once, which CUPTI forbids */
int fake_cupti_um_enabled, fake_cupti_kernels_enabled, fake_cupti_flushes, fake_cupti_forced;
int fake_cupti_disabled, fake_cupti_finalized; /* what umrt must never do */
int fake_cupti_stuck;                          /* a forced flush never returns */
uint64_t fake_cupti_dropped;
static CUpti_CallbackFunc callback;
static uint8_t enabled[8][1024];
static CUpti_BuffersCallbackRequestFunc requested;
static CUpti_BuffersCallbackCompleteFunc completed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t records[1 << 20];
static size_t used;

int fake_cupti_is_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return __atomic_load_n(&enabled[domain][id], __ATOMIC_RELAXED);
}

void fake_cupti_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    if (callback && fake_cupti_is_enabled(domain, id))
        callback(NULL, domain, id, data);
}

/* A record is prefixed with its size in the queue and in the buffers. */
void fake_cupti_record(const void *record, size_t bytes)
{
    uint64_t size = bytes;

    pthread_mutex_lock(&lock);
    memcpy(records + used, &size, 8);
    memcpy(records + used + 8, record, bytes);
    used += 8 + (bytes + 7) / 8 * 8;
    pthread_mutex_unlock(&lock);
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = fake_cupti_api;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    (void)result;
    *text = "the fake says no";
    return CUPTI_SUCCESS;
}

/* Not CLOCK_MONOTONIC on purpose. */
CUptiResult cuptiGetTimestamp(uint64_t *ns)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    *ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc fn,
                           void *userdata)
{
    (void)userdata;
    if (fake_cupti_subscribe_result)
        return (CUptiResult)fake_cupti_subscribe_result;
    callback = fn;
    *subscriber = (CUpti_SubscriberHandle)1;
    return CUPTI_SUCCESS;
}

/* Its parameters are of CUDA 13.0; older headers have neither. */
#if CUDA_VERSION < 13000
typedef struct {
    size_t structSize;
    const char *subscriberName;
    char *oldSubscriberName;
    size_t oldSubscriberSize;
} CUpti_SubscriberParams;
#endif

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc fn,
                              void *userdata, CUpti_SubscriberParams *params)
{
    if (fake_cupti_subscribe_result == 39 && params->oldSubscriberName)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "CUPTI for Fake Profiler");
    return cuptiSubscribe(subscriber, fn, userdata);
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    static int inside;

    (void)subscriber;
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST))
        __atomic_store_n(&fake_cupti_callbacks_clash, 1, __ATOMIC_RELAXED);
    sched_yield(); /* to make it likely */
    __atomic_fetch_add(&fake_cupti_callbacks_asked, 1, __ATOMIC_RELAXED);
    CUptiResult result = domain > 7 || id >= 1024 ? CUPTI_ERROR_INVALID_PARAMETER
                                                  : (CUptiResult)fake_cupti_callback_result;
    if (result == CUPTI_SUCCESS)
        __atomic_store_n(&enabled[domain][id], enable != 0, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    return result;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain)
{
    (void)subscriber;
    memset(enabled[domain], enable != 0, sizeof(enabled[domain]));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id)
{
    *id = (uint32_t)(uintptr_t)context & 0xff;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    requested = request;
    completed = complete;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiActivityConfigureUnifiedMemoryCounter(CUpti_ActivityUnifiedMemoryCounterConfig *config,
                                           uint32_t count)
{
    (void)config;
    (void)count;
    return fake_cupti_um_enabled ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) {
        if (fake_cupti_enable_result)
            return (CUptiResult)fake_cupti_enable_result;
        fake_cupti_um_enabled++;
    } else if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        fake_cupti_kernels_enabled++;
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    (void)kind;
    fake_cupti_disabled++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize(void)
{
    fake_cupti_finalized++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t bytes = 0, max = 0;

    while (__atomic_load_n(&fake_cupti_stuck, __ATOMIC_RELAXED) && flag)
        pause();
    __atomic_fetch_add(flag ? &fake_cupti_forced : &fake_cupti_flushes, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    for (size_t done = 0; requested && done < used;) {
        size_t n = 0; /* as many whole records as a buffer holds */
        requested(&buffer, &bytes, &max);
        if (!buffer)
            break;
        while (done + n < used) {
            uint64_t size;
            memcpy(&size, records + done + n, 8);
            if (n + 8 + (size + 7) / 8 * 8 > bytes)
                break;
            n += 8 + (size + 7) / 8 * 8;
        }
        memcpy(buffer, records + done, n);
        completed(NULL, 0, buffer, bytes, n);
        done += n;
    }
    used = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = buffer;
    uint64_t size;

    if (*record) {
        memcpy(&size, (uint8_t *)*record - 8, 8);
        next = (uint8_t *)*record + (size + 7) / 8 * 8;
    }
    if ((size_t)(next - buffer) >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(next + 8);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *count)
{
    (void)context;
    (void)stream;
    *count = fake_cupti_dropped;
    fake_cupti_dropped = 0;
    return CUPTI_SUCCESS;
}

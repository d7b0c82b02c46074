/*
 * activity.c - CUPTI's records: faults, migrations, kernel times.
 *
 * H200.md's rules: records are switched on at the first context and never off; without a thread that
 * flushes every millisecond a third of them is lost with nobody told; at exit one flush, no CUDA
 * call. CUPTI's buffers come from a bounded pool and are never freed; they are decoded on the drain
 * thread, not inside CUPTI's callback, which may hold its lock.
 */
#include "live.h"

#include "decode.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UM_BUFFER_BYTES (512u << 10)
#define UM_BUFFERS      192 /* 96 MiB at most: 0.2 s of the densest fault storm seen */
#define UM_IDLE_MS      50
#define UM_STOP_MS      500

typedef struct um_buffer {
    uint8_t *bytes;
    size_t valid;
} um_buffer_t;

/* Guards pool, full and their counts; held for a few instructions, by CUPTI's callbacks too. */
static pthread_mutex_t um_buffers_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *um_pool[UM_BUFFERS];
static um_buffer_t um_full[UM_BUFFERS];
static unsigned um_n_pool, um_n_full, um_n_buffers;

static pthread_t um_drain_thread;
static bool um_drain_started;
static pthread_mutex_t um_drain_lock = PTHREAD_MUTEX_INITIALIZER; /* for the condition alone */
static pthread_cond_t um_drain_wake;
static _Atomic bool um_stopping, um_stopped, um_busy; /* busy: managed memory exists */

typedef enum um_switch { UM_OFF, UM_TRYING, UM_SWITCHED_ON, UM_REFUSED } um_switch_t;
static _Atomic int um_um_records, um_kernel_records; /* um_switch_t */

static um_counter_layout_t um_layout;
static int64_t um_clock_offset_ns; /* CLOCK_MONOTONIC minus CUPTI's clock; drain thread */
static _Atomic uint64_t um_dropped, um_starved; /* since last told */
static uint64_t um_bad_times;                   /* drain thread */
static CUcontext _Atomic um_kick_context;

/* ---- buffers ----------------------------------------------------------------------------------- */

static void CUPTIAPI um_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    uint8_t *got = NULL;

    pthread_mutex_lock(&um_buffers_lock);
    if (um_n_pool) {
        got = um_pool[--um_n_pool];
    } else if (um_n_buffers < UM_BUFFERS) {
        void *fresh =
            mmap(NULL, UM_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh != MAP_FAILED) {
            got = fresh;
            um_n_buffers++;
        }
    }
    pthread_mutex_unlock(&um_buffers_lock);
    if (!got)
        um_starved++; /* CUPTI drops records and counts them */
    *buffer = got;
    *bytes = got ? UM_BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI um_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                         size_t bytes, size_t valid)
{
    size_t dropped = 0;

    (void)bytes;
    if (um_live.cupti->activity_dropped &&
        um_live.cupti->activity_dropped(context, stream, &dropped) == CUPTI_SUCCESS)
        um_dropped += dropped;
    if (!buffer)
        return;
    pthread_mutex_lock(&um_buffers_lock);
    if (valid)
        um_full[um_n_full++] = (um_buffer_t){buffer, valid};
    else
        um_pool[um_n_pool++] = buffer;
    pthread_mutex_unlock(&um_buffers_lock);
}

/* ---- records become events ---------------------------------------------------------------------- */

/* The kernel of a launch by its correlation, for the 64 Ki latest. Written by launching threads. */
#define UM_LAUNCHED 65536
static _Atomic uint64_t um_launched[UM_LAUNCHED]; /* correlation << 32 | kernel */

void um_activity_launched(uint32_t correlation, uint32_t kernel)
{
    if (um_kernel_records == UM_SWITCHED_ON)
        atomic_store_explicit(&um_launched[correlation % UM_LAUNCHED],
                              (uint64_t)correlation << 32 | kernel, memory_order_relaxed);
}

/* A kernel of a graph, or one older than the table: by name. Its definition has a handle that no
 * launch can have. */
static uint32_t um_kernel_of(uint32_t correlation, const char *name)
{
    uint64_t entry = um_launched[correlation % UM_LAUNCHED];

    if (entry >> 32 == correlation && correlation)
        return (uint32_t)entry;
    if (!name)
        return 0;
    const um_kernel_t *kernel = um_launch_kernel(XXH3_64bits(name, strlen(name)) | 1, name);
    return kernel ? kernel->id : 0;
}

/* The region that held addr at that time; one allocated since is not it. */
static uint32_t um_region_at(uint64_t addr, uint64_t time_ns)
{
    um_region_t region;

    return um_regions_find(um_live.runtime->regions, addr, &region) && region.alloc_ns <= time_ns
               ? region.id
               : 0;
}

static void um_name_region(um_event_t *event)
{
    switch (event->type) {
    case UM_EV_MIGRATE:
        event->u.migrate.region = um_region_at(event->u.migrate.addr, event->time_ns);
        break;
    case UM_EV_GPU_FAULT:
        event->u.gpu_fault.region = um_region_at(event->u.gpu_fault.addr, event->time_ns);
        break;
    case UM_EV_CPU_FAULT:
        event->u.cpu_fault.region = um_region_at(event->u.cpu_fault.addr, event->time_ns);
        break;
    case UM_EV_THRASH:
        event->u.thrash.region = um_region_at(event->u.thrash.addr, event->time_ns);
        break;
    case UM_EV_THROTTLE:
        event->u.throttle.region = um_region_at(event->u.throttle.addr, event->time_ns);
        break;
    case UM_EV_REMOTE_MAP:
        event->u.remote_map.region = um_region_at(event->u.remote_map.addr, event->time_ns);
        break;
    default:
        break;
    }
}

static void um_record(const CUpti_Activity *record, size_t bytes)
{
    um_event_t event;
    const char *name = NULL;
    um_decode_result_t result = UM_DECODE_IGNORED;

    if (record->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
        result = um_decode_counter(um_layout, record, bytes, &event);
    else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        result = um_decode_kernel(record, bytes, &event, &name);
    if (result == UM_DECODE_BAD_TIME)
        um_bad_times++;
    if (result != UM_DECODE_EVENT)
        return;
    event.time_ns = (uint64_t)((int64_t)event.time_ns + um_clock_offset_ns);
    if (event.type == UM_EV_KERNEL_EXEC)
        event.u.kernel_exec.kernel = um_kernel_of(event.u.kernel_exec.correlation, name);
    else
        um_name_region(&event);
    um_live_post(&event, false);
}

static void um_tell_loss(uint32_t what, uint64_t count, const char *reason)
{
    um_event_t event = um_live_event(UM_EV_LOSS);

    event.u.loss = (um_ev_loss_t){.what = what, .count = count, .reason = reason};
    um_live_post(&event, false);
}

/* Whether there was anything. */
static bool um_decode_full(void)
{
    bool any = false;

    for (;;) {
        um_buffer_t full = {0};
        CUpti_Activity *record = NULL;

        pthread_mutex_lock(&um_buffers_lock);
        if (um_n_full) {
            full = um_full[0];
            memmove(um_full, um_full + 1, --um_n_full * sizeof(*um_full));
        }
        pthread_mutex_unlock(&um_buffers_lock);
        if (!full.bytes)
            break;
        any = true;
        while (um_live.cupti->activity_next(full.bytes, full.valid, &record) == CUPTI_SUCCESS)
            um_record(record, full.valid - (size_t)((uint8_t *)record - full.bytes));
        pthread_mutex_lock(&um_buffers_lock);
        um_pool[um_n_pool++] = full.bytes;
        pthread_mutex_unlock(&um_buffers_lock);
    }
    uint64_t dropped = atomic_exchange(&um_dropped, 0);
    if (dropped)
        um_tell_loss(UM_EV_NONE, dropped, "cupti dropped records");
    if (atomic_exchange(&um_starved, 0))
        um_tell_loss(UM_EV_NONE, 0, "no record buffer was free");
    if (um_bad_times)
        um_tell_loss(UM_EV_NONE, um_bad_times, "records without a sane time");
    um_bad_times = 0;
    return any;
}

/* CUPTI's clock against ours; taken anew at every drain, because CUPTI's may be slewed. */
static void um_compare_clocks(void)
{
    uint64_t theirs = 0;
    uint64_t before = um_live_now_ns();

    if (um_live.cupti->timestamp(&theirs) != CUPTI_SUCCESS)
        return;
    uint64_t after = um_live_now_ns();
    if (after - before < 20000 || um_clock_offset_ns == 0)
        um_clock_offset_ns = (int64_t)(before + (after - before) / 2) - (int64_t)theirs;
}

/* ---- switching on ------------------------------------------------------------------------------- */

static void um_tell_option(const char *name, const char *value)
{
    um_event_t event = um_live_event(UM_EV_OPTION);

    event.u.option = (um_ev_option_t){.name = name, .value = value, .source = "observed"};
    um_live_post(&event, false);
}

static CUptiResult um_switch_um_on(void)
{
    const um_cupti_t *cupti = um_live.cupti;
    CUpti_ActivityUnifiedMemoryCounterConfig config[8];

    if (!cupti->activity_um_config || !cupti->activity_enable || !cupti->activity_flush)
        return CUPTI_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; i < 8; i++)
        config[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
            .kind = (CUpti_ActivityUnifiedMemoryCounterKind)(i + 1),
            .deviceId = 0,
            .enable = 1,
        };
    CUptiResult result = cupti->activity_um_config(config, 8);
    /* One that does not know every kind may know some. */
    if (result == CUPTI_ERROR_INVALID_PARAMETER || result == CUPTI_ERROR_INVALID_KIND)
        for (unsigned i = 0; i < 8; i++)
            if (cupti->activity_um_config(&config[i], 1) == CUPTI_SUCCESS)
                result = CUPTI_SUCCESS;
    if (result == CUPTI_SUCCESS)
        result = cupti->activity_enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    return result;
}

void um_activity_context(void)
{
    int off = UM_OFF;

    if (um_um_records != UM_OFF || !um_live.record || !um_live.runtime->settings.unified_memory ||
        !atomic_compare_exchange_strong(&um_um_records, &off, UM_TRYING))
        return;
    bool own = um_cuda_own;
    um_cuda_own = true;
    CUptiResult result = um_switch_um_on();
    um_cuda_own = own;
    if (result == CUPTI_ERROR_NOT_READY) {
        um_um_records = UM_OFF; /* no context yet: the next event tries again */
        return;
    }
    um_um_records = result == CUPTI_SUCCESS ? UM_SWITCHED_ON : UM_REFUSED;
    if (result != CUPTI_SUCCESS)
        um_log_once(UM_LOG_WARN, "faults and migrations are not recorded: %s (CUPTI error %d)",
                    um_cupti_sentence(result), (int)result);
    um_tell_option("cupti.unified-memory",
                   result == CUPTI_SUCCESS ? "on" : um_cupti_sentence(result));
}

static void um_drain_wake_up(void)
{
    pthread_mutex_lock(&um_drain_lock);
    pthread_cond_signal(&um_drain_wake);
    pthread_mutex_unlock(&um_drain_lock);
}

void um_activity_managed(void)
{
    int off = UM_OFF;

    if (!um_live.record)
        return;
    if (!um_busy) {
        um_busy = true;
        um_drain_wake_up();
    }
    if (um_kernel_records == UM_OFF && um_live.runtime->settings.kernel_times &&
        um_live.cupti->activity_enable &&
        atomic_compare_exchange_strong(&um_kernel_records, &off, UM_TRYING)) {
        bool own = um_cuda_own;
        um_cuda_own = true;
        CUptiResult result = um_live.cupti->activity_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        um_cuda_own = own;
        um_kernel_records = result == CUPTI_SUCCESS ? UM_SWITCHED_ON : UM_REFUSED;
        um_tell_option("cupti.kernel-times",
                       result == CUPTI_SUCCESS ? "on" : um_cupti_sentence(result));
    }
}

void um_activity_kick(CUcontext context)
{
    if (!um_live.record)
        return;
    um_live.want_context = context == NULL;
    if (!context)
        return;
    um_kick_context = context;
    um_drain_wake_up();
}

/* On the drain thread. The allocation is kept: freeing it would wait for the program's kernels. */
static void um_kick_now(CUcontext context)
{
    static bool kicked;
    const um_cuda_t *cuda = um_live.cuda;
    CUdeviceptr addr = 0;
    CUcontext back = NULL;

    if (kicked || !cuda->mem_alloc_managed || cuda->ctx_push(context) != CUDA_SUCCESS)
        return;
    um_activity_context();
    kicked =
        cuda->mem_alloc_managed(&addr, UM_BIG_PAGE_BYTES, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS;
    cuda->ctx_pop(&back);
}

/* ---- the drain thread ---------------------------------------------------------------------------- */

static void um_drain_wait(void)
{
    struct timespec t;

    if (um_busy) {
        uint64_t ns = um_live.runtime->settings.flush_us * 1000;
        t = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
        nanosleep(&t, NULL);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += UM_IDLE_MS * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&um_drain_lock);
    if (!um_stopping && !um_busy && !um_kick_context)
        pthread_cond_timedwait(&um_drain_wake, &um_drain_lock, &t);
    pthread_mutex_unlock(&um_drain_lock);
}

/* How late the drains were: CUPTI loses records between drains without telling (H200: none at 1 ms, 2 %
 * at 5 ms, 35 % at 20 ms), so a late one that brought records is told as a loss of unknown size. */
#define UM_LATE_FACTOR 4u
static struct {
    uint64_t last_ns, drains, late;
    uint64_t worst_gap_ns, worst_flush_ns, worst_decode_ns;
} um_drains; /* drain thread */

static void um_worst(uint64_t *worst, uint64_t ns)
{
    if (ns > *worst)
        *worst = ns;
}

static void um_drain_once(void)
{
    uint64_t start = um_live_now_ns();
    uint64_t gap = um_drains.last_ns ? start - um_drains.last_ns : 0;

    um_compare_clocks();
    um_live.cupti->activity_flush(0);
    uint64_t flushed = um_live_now_ns();
    bool records = um_decode_full();
    uint64_t decoded = um_live_now_ns();
    if (records && gap > UM_LATE_FACTOR * um_live.runtime->settings.flush_us * 1000) {
        um_drains.late++;
        um_tell_loss(UM_EV_NONE, 0, "the drain thread was late");
    }
    um_worst(&um_drains.worst_gap_ns, gap);
    um_worst(&um_drains.worst_flush_ns, flushed - start);
    um_worst(&um_drains.worst_decode_ns, decoded - flushed);
    um_drains.last_ns = start;
    um_drains.drains++;
}

static void *um_drain(void *ctx)
{
    (void)ctx;
    pthread_setname_np(pthread_self(), "umrt-drain");
    um_cuda_own = true;
    while (!um_stopping) {
        um_drain_wait();
        CUcontext kick = atomic_exchange(&um_kick_context, NULL);
        if (kick && !um_stopping)
            um_kick_now(kick);
        if (um_stopping || !um_busy || !um_live.cupti->activity_flush)
            continue;
        um_drain_once();
    }
    um_log(UM_LOG_INFO,
           "%llu drains, %llu late; at worst %.2f ms apart, %.2f ms in the flush, %.2f ms decoding",
           (unsigned long long)um_drains.drains, (unsigned long long)um_drains.late,
           (double)um_drains.worst_gap_ns / 1e6, (double)um_drains.worst_flush_ns / 1e6,
           (double)um_drains.worst_decode_ns / 1e6);
    um_stopped = true;
    return NULL;
}

um_status_t um_activity_init(void)
{
    pthread_condattr_t attributes;
    sigset_t all, before;

    um_layout = um_counter_layout(um_live.cupti->api);
    if (!um_live.record)
        return UM_OK;
    um_compare_clocks();
    if (!um_live.cupti->activity_register || !um_live.cupti->activity_next ||
        um_live.cupti->activity_register(um_buffer_requested, um_buffer_completed) !=
            CUPTI_SUCCESS) {
        um_um_records = um_kernel_records = UM_REFUSED;
        um_log_once(UM_LOG_WARN, "faults, migrations and kernel times are not recorded: this CUPTI "
                                 "has no activity interface");
        return UM_OK;
    }
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&um_drain_wake, &attributes);
    pthread_condattr_destroy(&attributes);
    /* The program's signals are for the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    um_drain_started = pthread_create(&um_drain_thread, NULL, um_drain, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return um_drain_started ? UM_OK : UM_ERR_NO_MEMORY;
}

/* At exit. A drain thread that is stuck inside CUPTI is left alone, and then nothing is flushed. */
void um_activity_stop(void)
{
    struct timespec until;

    if (!um_drain_started)
        return;
    pthread_mutex_lock(&um_drain_lock);
    um_stopping = true;
    pthread_cond_signal(&um_drain_wake);
    pthread_mutex_unlock(&um_drain_lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += UM_STOP_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_timedjoin_np(um_drain_thread, NULL, &until) != 0)
        return;
    um_drain_started = false;
    um_cuda_own = true;
    um_compare_clocks();
    if (um_busy && (um_um_records == UM_SWITCHED_ON || um_kernel_records == UM_SWITCHED_ON))
        um_live.cupti->activity_flush(1);
    um_decode_full();
    um_cuda_own = false;
}

void um_activity_touch(uint64_t addr, uint64_t bytes, uint32_t region, uint32_t sync)
{
    (void)addr;
    (void)bytes;
    (void)region;
    (void)sync;
}

/*
 * activity.c - switching CUPTI's records on, and draining them.
 *
 * H200.md's rules: records are switched on at the first context and never off; without a thread that
 * flushes every millisecond a third of them is lost with nobody told; at exit one flush, no CUDA call.
 */
#include "live.h"
#include "records.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#define UM_STOP_MS 1000

static pthread_t um_drain_thread;
static bool um_drain_started;
static _Atomic bool um_drain_done;
static pthread_mutex_t um_drain_lock = PTHREAD_MUTEX_INITIALIZER; /* for the condition alone */
static pthread_cond_t um_drain_wake = PTHREAD_COND_INITIALIZER;
static _Atomic bool um_stopping, um_busy; /* busy: managed memory exists; never false again */

typedef enum um_switch { UM_OFF, UM_TRYING, UM_SWITCHED_ON, UM_REFUSED } um_switch_t;
static _Atomic int um_um_records, um_kernel_records; /* um_switch_t */

static CUcontext _Atomic um_kick_context;

/* CUPTI's clock against ours; taken anew at every drain, because CUPTI's may be slewed. */
#define UM_CLOCK_NS 20000 /* a comparison that took longer was interrupted */
static void um_compare_clocks(void)
{
    static bool compared;
    uint64_t theirs = 0;
    uint64_t before = um_live_now_ns();

    if (um_live.cupti->timestamp(&theirs) != CUPTI_SUCCESS)
        return;
    uint64_t after = um_live_now_ns();
    if (after - before < UM_CLOCK_NS || !compared)
        um_records_clock((int64_t)(before + (after - before) / 2) - (int64_t)theirs);
    compared = true;
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

bool um_activity_has_managed(void)
{
    return um_busy;
}

/* Half a microsecond a launch (H200): not before it is of use. */
static void um_switch_kernels_on(void)
{
    bool own = um_cuda_own;

    if (um_kernel_records != UM_OFF || !um_live.runtime->settings.kernel_times ||
        !um_live.cupti->activity_enable)
        return;
    um_cuda_own = true;
    CUptiResult result = um_live.cupti->activity_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    um_cuda_own = own;
    um_kernel_records = result == CUPTI_SUCCESS ? UM_SWITCHED_ON : UM_REFUSED;
    if (result == CUPTI_SUCCESS)
        um_records_want_kernels();
    um_tell_option("cupti.kernel-times",
                   result == CUPTI_SUCCESS ? "on" : um_cupti_sentence(result));
}

void um_activity_managed(void)
{
    /* Of two first allocations neither returns before the kernels of both are timed. */
    static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

    if (!um_live.record || um_busy)
        return;
    pthread_mutex_lock(&switching);
    if (!um_busy) {
        um_switch_kernels_on();
        um_busy = true;
        um_drain_wake_up();
    }
    pthread_mutex_unlock(&switching);
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

/* The allocation is kept: freeing it would wait for the program's kernels. */
static bool um_kick_now(CUcontext context)
{
    static _Atomic bool kicked;
    const um_cuda_t *cuda = um_live.cuda;
    CUdeviceptr addr = 0;
    CUcontext back = NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    if (kicked || !cuda->mem_alloc_managed || cuda->ctx_push(context) != CUDA_SUCCESS)
        return kicked;
    /* An allocation would end a capture that some thread has under way. */
    bool relaxed = cuda->capture_mode && cuda->capture_mode(&mode) == CUDA_SUCCESS;
    um_activity_context();
    if (cuda->mem_alloc_managed(&addr, UM_BIG_PAGE_BYTES, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
        kicked = true;
    if (relaxed)
        cuda->capture_mode(&mode);
    cuda->ctx_pop(&back);
    return kicked;
}

void um_activity_kick_here(CUcontext context)
{
    bool own = um_cuda_own;

    if (!um_live.record)
        return;
    um_cuda_own = true;
    bool kicked = context && um_kick_now(context);
    um_cuda_own = own;
    if (kicked)
        return;
    um_records_loss(0, "a managed variable that cupti was not told of");
    um_activity_kick(context);
}

/* ---- the drain thread ---------------------------------------------------------------------------- */

static struct timespec um_time(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Until a period after the last drain began, but some rest in any case; asleep until something is
 * managed. */
static void um_drain_wait(uint64_t last_ns)
{
    uint64_t period = um_live.runtime->settings.flush_us * 1000, now = um_live_now_ns();
    struct timespec t;

    pthread_mutex_lock(&um_drain_lock);
    while (!um_stopping && !um_busy && !um_kick_context)
        pthread_cond_wait(&um_drain_wake, &um_drain_lock);
    uint64_t next = last_ns + period;
    t = um_time(next > now + period / 4 ? next : now + period / 4);
    while (!um_stopping && um_busy && !um_kick_context &&
           pthread_cond_clockwait(&um_drain_wake, &um_drain_lock, CLOCK_MONOTONIC, &t) == 0)
        ;
    pthread_mutex_unlock(&um_drain_lock);
}

/* How late the drains were. One takes about 10 ms while records flow; CUPTI loses records without
 * telling when its worker falls behind for longer (H200: none lost up to 215 ms, most of them at 250 ms),
 * so a drain later than this that brought records is told as a loss of unknown size. */
#define UM_LATE_NS 200000000u
static struct {
    uint64_t last_ns, drains, late;
    uint64_t worst_gap_ns, worst_flush_ns;
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

    uint64_t before = um_records_buffers();

    um_compare_clocks();
    um_live.cupti->activity_flush(0);
    uint64_t took = um_live_now_ns() - start;
    if (um_records_buffers() != before && (gap > UM_LATE_NS || took > UM_LATE_NS)) {
        um_drains.late++;
        um_records_loss(0, "cupti fell behind");
    }
    um_worst(&um_drains.worst_gap_ns, gap);
    um_worst(&um_drains.worst_flush_ns, took);
    um_drains.last_ns = start;
    um_drains.drains++;
}

static void *um_drain(void *ctx)
{
    (void)ctx;
    pthread_setname_np(pthread_self(), "umrt-drain");
    prctl(PR_SET_TIMERSLACK, 1000UL); /* 50 us is a twentieth of the period */
    um_cuda_own = true;
    while (!um_stopping) {
        um_drain_wait(um_drains.last_ns);
        CUcontext kick = atomic_exchange(&um_kick_context, NULL);
        if (kick && !um_stopping)
            um_kick_now(kick);
        if (um_stopping || !um_busy || !um_live.cupti->activity_flush)
            continue;
        um_drain_once();
    }
    um_compare_clocks();
    /* Here and not on the thread that ends the program: it may have been interrupted inside CUPTI. */
    if (um_live.cupti->activity_flush && um_busy &&
        (um_um_records == UM_SWITCHED_ON || um_kernel_records == UM_SWITCHED_ON))
        um_live.cupti->activity_flush(1);
    um_log(UM_LOG_INFO, "%llu drains, %llu late; at worst %.2f ms apart, %.2f ms in the flush",
           (unsigned long long)um_drains.drains, (unsigned long long)um_drains.late,
           (double)um_drains.worst_gap_ns / 1e6, (double)um_drains.worst_flush_ns / 1e6);
    um_drain_done = true;
    return NULL;
}

um_status_t um_activity_init(void)
{
    sigset_t all, before;

    if (!um_live.record)
        return UM_OK;
    um_compare_clocks();
    um_status_t status = um_records_start();
    if (status == UM_ERR_UNSUPPORTED) {
        um_um_records = um_kernel_records = UM_REFUSED;
        um_log_once(UM_LOG_WARN, "faults, migrations and kernel times are not recorded: this CUPTI "
                                 "has no activity interface");
        return UM_OK;
    }
    if (status != UM_OK)
        return status;
    /* The program's signals are for the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    um_drain_started = pthread_create(&um_drain_thread, NULL, um_drain, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return um_drain_started ? UM_OK : UM_ERR_NO_MEMORY;
}

/* At exit. A drain thread that is stuck inside CUPTI is left alone, with what it has not brought. */
void um_activity_stop(void)
{
    uint64_t until_ns = um_live_now_ns() + UM_STOP_MS * 1000000u;

    if (!um_drain_started)
        return;
    um_stopping = true;
    um_drain_wake_up();
    if (!um_live_join(um_drain_thread, &um_drain_done, until_ns))
        return;
    um_drain_started = false;
    um_records_stop(um_live_now_ns() + UM_STOP_MS * 1000000u);
}

#include "records.h"

#include "decode.h"
#include "loaded.h"
#include "model/residency.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define UM_BUFFER_BYTES (512u << 10)
#define UM_BUFFERS      192 /* 96 MiB at most: 0.2 s of the densest fault storm seen */
#define UM_EXTENTS      64  /* of one region, in one look */

typedef struct um_buffer {
    uint8_t *bytes;
    size_t valid;
} um_buffer_t;

/* Guards the next four; held for a few instructions, by CUPTI's callbacks too. */
static pthread_mutex_t um_buffers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t um_work = PTHREAD_COND_INITIALIZER; /* something is full, wanted or over */
static uint8_t *um_pool[UM_BUFFERS];
static um_buffer_t um_full[UM_BUFFERS];
static unsigned um_n_pool, um_n_full, um_n_buffers;
static bool um_ending;

static pthread_t um_thread;
static bool um_started;
static _Atomic bool um_done;
static um_counter_layout_t um_layout;
static _Atomic int64_t um_clock_offset_ns;
static _Atomic uint64_t um_dropped, um_starved, um_handed_over;
static uint64_t um_bad_times; /* this thread */

void um_records_clock(int64_t offset_ns)
{
    um_clock_offset_ns = offset_ns;
}

uint64_t um_records_buffers(void)
{
    return um_handed_over;
}

void um_records_loss(uint64_t count, const char *reason)
{
    um_event_t event = um_live_event(UM_EV_LOSS);

    event.u.loss = (um_ev_loss_t){.count = count, .reason = reason};
    um_live_post(&event, false);
}

/* ---- CUPTI's side ------------------------------------------------------------------------------- */

static void CUPTIAPI um_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    uint8_t *got = NULL;

    /* CUPTI's own worker: a thread neither of ours nor the program's first one. */
    if (!um_cuda_own && gettid() != getpid())
        um_arena_grow_ahead();
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
    if (valid) {
        um_full[um_n_full++] = (um_buffer_t){buffer, valid};
        um_handed_over++;
        pthread_cond_signal(&um_work);
    } else {
        um_pool[um_n_pool++] = buffer;
    }
    pthread_mutex_unlock(&um_buffers_lock);
}

/* ---- records become events ---------------------------------------------------------------------- */

/* The kernel of a launch by its correlation, for the 64 Ki latest. Written by launching threads. */
#define UM_LAUNCHED 65536
static _Atomic uint64_t um_launched[UM_LAUNCHED]; /* correlation << 32 | kernel */
static _Atomic bool um_kernels_wanted;

void um_records_want_kernels(void)
{
    um_kernels_wanted = true;
}

void um_records_launched(uint32_t correlation, uint32_t kernel)
{
    if (um_kernels_wanted)
        atomic_store_explicit(&um_launched[correlation % UM_LAUNCHED],
                              (uint64_t)correlation << 32 | kernel, memory_order_relaxed);
}

/* A kernel of a graph, or one older than the table: by name. */
static uint32_t um_kernel_of(uint32_t correlation, const char *name)
{
    uint64_t entry = um_launched[correlation % UM_LAUNCHED];

    if (entry >> 32 == correlation && correlation)
        return (uint32_t)entry;
    if (!name)
        return 0;
    const um_kernel_t *kernel = um_launch_kernel_named(name);
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

/* Called and returns with the lock held. */
static void um_decode_full(void)
{
    while (um_n_full) {
        um_buffer_t full = um_full[0];
        CUpti_Activity *record = NULL;

        memmove(um_full, um_full + 1, --um_n_full * sizeof(*um_full));
        pthread_mutex_unlock(&um_buffers_lock);
        if (um_live.record)
            um_loaded_refresh(); /* the PCs of CPU faults are in what is loaded now */
        while (um_live.cupti->activity_next(full.bytes, full.valid, &record) == CUPTI_SUCCESS)
            um_record(record, full.valid - (size_t)((uint8_t *)record - full.bytes));
        pthread_mutex_lock(&um_buffers_lock);
        um_pool[um_n_pool++] = full.bytes;
    }
}

static void um_tell_losses(void)
{
    uint64_t dropped = atomic_exchange(&um_dropped, 0);

    if (dropped)
        um_records_loss(dropped, "cupti dropped records");
    if (atomic_exchange(&um_starved, 0))
        um_records_loss(0, "no record buffer was free");
    if (um_bad_times)
        um_records_loss(um_bad_times, "records without a sane time");
    um_bad_times = 0;
}

/* ---- what the CPU has --------------------------------------------------------------------------- */

/* One look at a time. EMPTY -> WRITING by the launching thread that wins, -> READY, -> EMPTY by ours. */
enum { UM_LOOK_EMPTY, UM_LOOK_WRITING, UM_LOOK_READY };
static _Atomic int um_look_state;
static _Atomic uint64_t um_look_last_ns;
static struct {
    um_region_t regions[UM_RESIDENCY_REGIONS];
    uint32_t n, sync;
} um_look;
static um_pagemap_t *um_pagemap; /* NULL: switched off, or it says nothing here */

void um_records_residency(const um_region_t *regions, uint32_t n, uint32_t sync)
{
    uint64_t now = um_live_now_ns();
    int empty = UM_LOOK_EMPTY;

    if (!um_pagemap || now - um_look_last_ns < UM_RESIDENCY_NS)
        return;
    if (!atomic_compare_exchange_strong(&um_look_state, &empty, UM_LOOK_WRITING)) {
        pthread_cond_signal(&um_work); /* the last look's signal was missed */
        return;
    }
    um_look_last_ns = now;
    um_look.n = n < UM_RESIDENCY_REGIONS ? n : UM_RESIDENCY_REGIONS;
    um_look.sync = sync;
    memcpy(um_look.regions, regions, um_look.n * sizeof(*regions));
    um_look_state = UM_LOOK_READY;
    pthread_cond_signal(&um_work);
}

static void um_tell_residency(const um_region_t *region, uint64_t addr, uint64_t bytes,
                              uint64_t present)
{
    um_event_t event = um_live_event(UM_EV_RESIDENCY);

    event.u.residency = (um_ev_residency_t){.addr = addr,
                                            .bytes = bytes,
                                            .present_bytes = present,
                                            .region = region->id,
                                            .sync = um_look.sync};
    um_live_post(&event, false);
}

/* Later than this the kernel has moved what the CPU had. */
#define UM_LOOK_FRESH_NS 5000000u

/* The region as a whole, and where only parts are there, which. */
static void um_look_at_regions(void)
{
    um_extent_t extents[UM_EXTENTS];
    bool fresh = um_live_now_ns() - um_look_last_ns < UM_LOOK_FRESH_NS;

    for (uint32_t i = 0; fresh && i < um_look.n; i++) {
        const um_region_t *region = &um_look.regions[i];
        uint64_t present = 0;
        size_t n = 0;
        if (um_pagemap_present(um_pagemap, region->addr, region->bytes, extents, UM_EXTENTS, &n,
                               &present) != UM_OK)
            continue;
        um_tell_residency(region, region->addr, region->bytes, present);
        for (size_t k = 0; k < n && k < UM_EXTENTS && present < region->bytes; k++)
            um_tell_residency(region, extents[k].addr, extents[k].bytes, extents[k].bytes);
    }
    um_look_state = UM_LOOK_EMPTY;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

static void *um_run(void *ctx)
{
    (void)ctx;
    pthread_setname_np(pthread_self(), "umrt-records");
    um_cuda_own = true;
    pthread_mutex_lock(&um_buffers_lock);
    while (!um_ending || um_n_full) {
        /* A launch signals without the lock, and may do so just before the wait: such a look is
         * found too late, and dropped. */
        if (!um_n_full && !um_ending && um_look_state != UM_LOOK_READY)
            pthread_cond_wait(&um_work, &um_buffers_lock);
        if (um_look_state == UM_LOOK_READY) {
            pthread_mutex_unlock(&um_buffers_lock);
            um_look_at_regions();
            pthread_mutex_lock(&um_buffers_lock);
        }
        um_decode_full();
        pthread_mutex_unlock(&um_buffers_lock);
        um_tell_losses();
        pthread_mutex_lock(&um_buffers_lock);
    }
    pthread_mutex_unlock(&um_buffers_lock);
    um_done = true;
    return NULL;
}

um_status_t um_records_start(void)
{
    const um_cupti_t *cupti = um_live.cupti;
    sigset_t all, before;

    um_layout = um_counter_layout(cupti->api);
    if (!cupti->activity_register || !cupti->activity_next ||
        cupti->activity_register(um_buffer_requested, um_buffer_completed) != CUPTI_SUCCESS)
        return UM_ERR_UNSUPPORTED;
    if (um_live.runtime->settings.page_tables && um_pagemap_open(&um_pagemap) != UM_OK)
        um_pagemap = NULL;
    /* The program's signals are for the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    um_started = pthread_create(&um_thread, NULL, um_run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return um_started ? UM_OK : UM_ERR_NO_MEMORY;
}

void um_records_stop(uint64_t until_ns)
{
    if (!um_started)
        return;
    pthread_mutex_lock(&um_buffers_lock);
    um_ending = true;
    pthread_cond_signal(&um_work);
    pthread_mutex_unlock(&um_buffers_lock);
    if (um_live_join(um_thread, &um_done, until_ns))
        um_started = false;
}

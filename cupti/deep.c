#include "deep.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/log.h"
#include "model/residency.h"
#include "records.h"

#define MAX_STREAMS 64
#define WAIT_NS     UINT64_C(10000000000)
#define PAUSE_NS    20000
#define EXTENTS     256

typedef struct bits {
    uint64_t *word;
    size_t n; /* words */
} bits_t;

/* All under `lock` but the atomics. A capture begins under it, and a stream of the program's is asked under it while
 * there is none: the question would end the capture. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint32_t context; /* 0 = free */
    CUstream handle;
} streams[MAX_STREAMS];
static bits_t seen, advised; /* by region id */
static um_pagemap_t *pagemap;
static bool pagemap_tried, told;
static _Atomic int captures;
static _Atomic bool gave_up; /* waiting for launches */

/* ---- sets of regions --------------------------------------------------------------------------- */

static bool has(const bits_t *bits, uint32_t id)
{
    return id / 64 < bits->n && bits->word[id / 64] >> id % 64 & 1;
}

static void set(bits_t *bits, uint32_t id)
{
    size_t n = id / 64 + 1;

    if (n > bits->n) {
        uint64_t *grown = realloc(bits->word, 2 * n * sizeof(*grown));
        if (!grown)
            return;
        for (size_t i = bits->n; i < 2 * n; i++)
            grown[i] = 0;
        bits->word = grown;
        bits->n = 2 * n;
    }
    bits->word[id / 64] |= UINT64_C(1) << id % 64;
}

/* ---- pushing ----------------------------------------------------------------------------------- */

/* Ours in that context, which is current. */
static CUstream stream_in(uint32_t context)
{
    for (unsigned i = 0; i < MAX_STREAMS; i++)
        if (streams[i].context == context)
            return streams[i].handle;
    for (unsigned i = 0; i < MAX_STREAMS; i++)
        if (!streams[i].context) {
            if (um_live.cuda->stream_create(&streams[i].handle, CU_STREAM_NON_BLOCKING) !=
                CUDA_SUCCESS)
                return NULL;
            streams[i].context = context;
            return streams[i].handle;
        }
    return NULL;
}

/* Before anything of it was ever pushed, what is mapped is what the CPU has touched. */
static void tell_host_pages(const um_region_t *region)
{
    um_extent_t extents[EXTENTS];
    uint64_t present;
    size_t n = 0;

    if (!pagemap_tried && um_live.runtime->settings.page_tables &&
        um_pagemap_open(&pagemap) != UM_OK)
        pagemap = NULL;
    pagemap_tried = true;
    if (!pagemap || um_pagemap_present(pagemap, region->addr, region->bytes, extents, EXTENTS, &n,
                                       &present) != UM_OK)
        return;
    for (size_t i = 0; i < n && i < EXTENTS; i++) {
        um_event_t event = um_live_event(UM_EV_ACCESS);
        event.u.access = (um_ev_access_t){.addr = extents[i].addr,
                                          .bytes = extents[i].bytes,
                                          .device = UM_DEVICE_HOST,
                                          .kind = UM_ACCESS_WRITE,
                                          .region = region->id};
        um_live_post(&event, false);
    }
}

static void tell_push(const um_region_t *region, uint64_t from_ns, CUresult error)
{
    um_event_t event = um_live_event(UM_EV_HINT);

    event.u.hint =
        (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                       .result = error == CUDA_SUCCESS ? UM_HINT_APPLIED : UM_HINT_FAILED,
                       .addr = region->addr,
                       .bytes = region->bytes,
                       .device = UM_DEVICE_HOST,
                       .region = region->id,
                       .error = (int32_t)error,
                       .duration_ns = event.time_ns - from_ns,
                       .who = "deep",
                       .why = "so that all that the launch touches faults"};
    event.time_ns = from_ns;
    um_live_post(&event, false);
    if (error != CUDA_SUCCESS) {
        um_log_once(UM_LOG_WARN,
                    "deep recording: a region could not be pushed to the host (CUDA error %d): not "
                    "all that launches touch is seen",
                    (int)error);
        return;
    }
    if (!told) {
        event = um_live_event(UM_EV_FACT);
        event.u.fact = (um_ev_fact_t){"workload.accesses", "deep"};
        um_live_post(&event, false);
    }
    told = true;
}

static void push(uint32_t context, const um_region_t *regions, size_t n)
{
    CUstream stream = stream_in(context);

    if (!stream)
        um_log_once(UM_LOG_WARN, "deep recording: no stream could be had: not all that launches "
                                 "touch is seen");
    for (size_t i = 0; stream && i < n; i++) {
        if (regions[i].family != UM_FAMILY_MANAGED || has(&advised, regions[i].id))
            continue;
        if (!has(&seen, regions[i].id))
            tell_host_pages(&regions[i]);
        set(&seen, regions[i].id);
        uint64_t from_ns = um_live_now_ns();
        CUresult error =
            um_cuda_prefetch(regions[i].addr, regions[i].bytes, UM_DEVICE_HOST, stream);
        if (error == CUDA_SUCCESS && um_live.cuda->stream_sync)
            error = um_live.cuda->stream_sync(stream);
        tell_push(&regions[i], from_ns, error);
    }
}

typedef struct list {
    um_region_t *region;
    size_t n, size;
} list_t;

static void list_add(void *ctx, const um_region_t *region)
{
    list_t *list = ctx;

    if (region->family != UM_FAMILY_MANAGED)
        return;
    if (list->n == list->size) {
        um_region_t *grown = realloc(list->region, (list->size * 2 + 16) * sizeof(*list->region));
        if (!grown)
            return;
        list->region = grown;
        list->size = list->size * 2 + 16;
    }
    list->region[list->n++] = *region;
}

void um_deep_push(const CUpti_CallbackData *info, const um_arg_t *args, uint32_t n, bool all)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    um_regions_t *known = um_live.runtime->regions;
    um_region_t region;
    list_t list = {0};

    if (!um_live.deep || captures > 0)
        return;
    /* A copy: the driver must not be called under the regions' lock. */
    if (all)
        um_regions_each(known, 0, UINT64_MAX, list_add, &list);
    for (uint32_t i = 0; !all && i < n; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= args[k].region == args[i].region;
        if (!again && um_regions_find_id(known, args[i].region, &region))
            list_add(&list, &region);
    }
    if (list.n > 0) {
        pthread_mutex_lock(&lock);
        um_cuda_own = true;
        if (um_live.cuda->capture_mode)
            um_live.cuda->capture_mode(&mode);
        push(info->contextUid, list.region, list.n);
        if (um_live.cuda->capture_mode)
            um_live.cuda->capture_mode(&mode); /* back to what it was */
        um_cuda_own = false;
        pthread_mutex_unlock(&lock);
    }
    free(list.region);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

static bool is_running(uint64_t stream)
{
    pthread_mutex_lock(&lock);
    bool running = captures == 0 &&
                   um_live.cuda->stream_query((CUstream)(uintptr_t)stream) == CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&lock);
    return running;
}

void um_deep_launched(const CUpti_CallbackData *info, uint64_t stream)
{
    static const struct timespec pause = {0, PAUSE_NS};
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    const um_cuda_t *cuda = um_live.cuda;
    bool running;

    if (!um_live.deep || gave_up || captures > 0 || !cuda->stream_query || !um_live_managed() ||
        um_result(info) != CUDA_SUCCESS)
        return;
    um_cuda_own = true;
    if (cuda->capture_mode)
        cuda->capture_mode(&mode);
    uint64_t until_ns = um_live_now_ns() + WAIT_NS;
    while ((running = is_running(stream)) && um_live_now_ns() < until_ns)
        nanosleep(&pause, NULL);
    if (cuda->capture_mode)
        cuda->capture_mode(&mode);
    um_cuda_own = false;
    if (!running || atomic_exchange(&gave_up, true))
        return;
    um_log_line(UM_LOG_WARN, "deep recording: a kernel did not end within 10 s: launches are not "
                             "waited for any more, and some of what they touch is not seen");
    um_records_loss(0, "deep: launches that overlap");
}

/* ---- what goes on around ----------------------------------------------------------------------- */

void um_deep_capture(bool begins)
{
    if (!um_live.deep)
        return;
    pthread_mutex_lock(&lock);
    if (begins)
        captures++;
    else if (captures > 0)
        captures--;
    pthread_mutex_unlock(&lock);
}

void um_deep_advised(uint64_t addr)
{
    um_region_t region;

    if (!um_live.deep || !um_regions_find(um_live.runtime->regions, addr, &region))
        return;
    um_log_once(UM_LOG_WARN, "deep recording: regions that the program has advised about are left "
                             "alone: not all that is touched of them is seen");
    pthread_mutex_lock(&lock);
    set(&advised, region.id);
    pthread_mutex_unlock(&lock);
}

/* Its streams go with it. */
void um_deep_context_gone(uint32_t context)
{
    if (!um_live.deep)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MAX_STREAMS; i++)
        if (!context || streams[i].context == context)
            streams[i].context = 0;
    pthread_mutex_unlock(&lock);
}

/*
 * transfer.c - copies, sets and the program's own hints become events.
 *
 * The time in the call is measured between its entry and exit callbacks; the entry's clock travels in
 * CUPTI's correlationData. Outside recording only what touches managed memory is posted.
 */
#include "deep.h"
#include "live.h"

typedef struct um_end {
    uint32_t memory; /* um_memory_kind_t */
    uint32_t region;
} um_end_t;

/* All six families have been followed since the driver started, so what is in no region is pageable
 * host memory; after a late start that cannot be said. */
static um_end_t um_end(uint64_t addr, bool host_only)
{
    static const uint8_t kind[UM_FAMILY_COUNT] = {
        [UM_FAMILY_DEVICE] = UM_MEMORY_DEVICE,   [UM_FAMILY_PINNED] = UM_MEMORY_PINNED,
        [UM_FAMILY_MAPPED] = UM_MEMORY_PINNED,   [UM_FAMILY_REGISTERED] = UM_MEMORY_PINNED,
        [UM_FAMILY_MANAGED] = UM_MEMORY_MANAGED, [UM_FAMILY_POOL] = UM_MEMORY_DEVICE,
        [UM_FAMILY_VMM] = UM_MEMORY_DEVICE,      [UM_FAMILY_SYSTEM] = UM_MEMORY_PAGEABLE,
    };
    um_region_t region;

    if (addr == 0)
        return (um_end_t){UM_MEMORY_ARRAY, 0};
    if (um_regions_find(um_live.runtime->regions, addr, &region))
        return (um_end_t){kind[region.family], region.id};
    return (um_end_t){um_live.late && !host_only ? UM_MEMORY_UNKNOWN : UM_MEMORY_PAGEABLE, 0};
}

static uint32_t um_transfer_flags(const um_call_t *call, uint64_t stream)
{
    if (!(call->flags & UM_CALL_ASYNC))
        return 0;
    return UM_TRANSFER_ASYNC | (um_is_captured(stream) ? UM_TRANSFER_CAPTURED : 0);
}

/* A call that returns when the work is done is also a wait. */
static void um_post_wait(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_event_t event = um_live_event(UM_EV_SYNC);

    event.u.sync = (um_ev_sync_t){
        .sync = info->correlationId,
        .kind = UM_SYNC_COPY,
        .exit = !um_entering(info),
        .context = info->contextUid,
        .stream = um_call_stream(info, call),
    };
    um_live_post(&event, event.u.sync.exit ? um_live.runtime->hints_pending != 0
                                           : um_live.runtime->waiting);
    if (event.u.sync.exit)
        um_live.sync = info->correlationId;
}

/* Up to here the driver keeps a copy of what it is given, and returns. */
#define UM_STAGED_BYTES 65536u

/* Where the driver is closed until the copy is done, what was launched before it goes in first. */
static void um_before_copy(const CUpti_CallbackData *info, const um_call_t *call, uint64_t dst,
                           uint64_t src, uint64_t bytes)
{
    bool to_host, from_host;

    to_host = um_end(dst, call->flags & UM_CALL_HOST_DST).memory == UM_MEMORY_PAGEABLE;
    from_host = um_end(src, call->flags & UM_CALL_HOST_SRC).memory == UM_MEMORY_PAGEABLE;
    if (to_host || (from_host && bytes > UM_STAGED_BYTES))
        um_live_catch_up(info->contextUid);
}

/* True when the call has ended well and is to be posted; keeps the clock meanwhile. A call that was
 * under way when its callbacks were enabled has no beginning and is left out. */
static bool um_transfer_done(const CUpti_CallbackData *info, const um_call_t *call)
{
    bool wait = !(call->flags & UM_CALL_ASYNC) && (um_live.record || um_live_managed());

    if (um_entering(info)) {
        *info->correlationData = um_live_now_ns();
        if (wait)
            um_post_wait(info, call);
        return false;
    }
    if (wait)
        um_post_wait(info, call);
    return um_result(info) == CUDA_SUCCESS && *info->correlationData != 0;
}

static void um_post_copy(const CUpti_CallbackData *info, const um_call_t *call, uint64_t dst,
                         uint64_t src, uint64_t bytes)
{
    um_end_t to = um_end(dst, call->flags & UM_CALL_HOST_DST);
    um_end_t from = um_end(src, call->flags & UM_CALL_HOST_SRC);
    um_event_t event = um_live_event(UM_EV_COPY);

    if (!um_live.record && to.memory != UM_MEMORY_MANAGED && from.memory != UM_MEMORY_MANAGED)
        return;
    uint64_t begin = *info->correlationData;
    event.u.copy = (um_ev_copy_t){
        .dst_addr = dst,
        .src_addr = src,
        .bytes = bytes,
        .duration_ns = event.time_ns - begin,
        .dst_memory = to.memory,
        .src_memory = from.memory,
        .dst_region = to.region,
        .src_region = from.region,
        .device = um_live_device(info->contextUid),
        .correlation = info->correlationId,
        .stream = um_call_stream(info, call),
        .flags = um_transfer_flags(call, um_call_stream(info, call)),
    };
    event.time_ns = begin;
    um_live_post(&event, false);
}

/* A copy to the host has waited for what was before it. One to the GPU need not have, nor has a set. */
static void um_after_copy(const CUpti_CallbackData *info, const um_call_t *call, uint64_t dst)
{
    uint32_t to;

    if ((call->flags & UM_CALL_ASYNC) || !um_live_is_behind(info->contextUid))
        return;
    to = um_end(dst, call->flags & UM_CALL_HOST_DST).memory;
    if (to == UM_MEMORY_PINNED || to == UM_MEMORY_PAGEABLE)
        um_live_waited(info->contextUid);
}

/* Are the parameters of interest? What the driver has not looked at yet may be anything: it is read only where
 * there is something to catch up with. */
static bool um_reads_copy(const CUpti_CallbackData *info, const um_call_t *call)
{
    bool done = um_transfer_done(info, call);

    return um_entering(info) ? um_live_is_behind(info->contextUid) : done;
}

static void um_copy(const CUpti_CallbackData *info, const um_call_t *call, uint64_t dst,
                    uint64_t src, uint64_t bytes)
{
    if (um_entering(info)) {
        um_before_copy(info, call, dst, src, bytes);
        *info->correlationData = um_live_now_ns(); /* the call's own time, not ours */
        return;
    }
    um_post_copy(info, call, dst, src, bytes);
    um_after_copy(info, call, dst);
}

/* word: destination, source, bytes. */
void um_on_copy(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (um_reads_copy(info, call))
        um_copy(info, call, um_word(info, call->word[0]), um_word(info, call->word[1]),
                um_word(info, call->word[2]));
}

static uint64_t um_side(CUmemorytype type, const void *host, CUdeviceptr device)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return 0;
    return type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
}

void um_on_copy_2d(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_reads_copy(info, call))
        return;
    const CUDA_MEMCPY2D *c = (const void *)(uintptr_t)um_word(info, call->word[0]);
    if (c)
        um_copy(info, call, um_side(c->dstMemoryType, c->dstHost, c->dstDevice),
                um_side(c->srcMemoryType, c->srcHost, c->srcDevice), c->WidthInBytes * c->Height);
}

/* CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have these fields in the same places. */
_Static_assert(offsetof(CUDA_MEMCPY3D, dstDevice) == offsetof(CUDA_MEMCPY3D_PEER, dstDevice) &&
                   offsetof(CUDA_MEMCPY3D, Depth) == offsetof(CUDA_MEMCPY3D_PEER, Depth),
               "CUDA_MEMCPY3D_PEER");

void um_on_copy_3d(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_reads_copy(info, call))
        return;
    const CUDA_MEMCPY3D *c = (const void *)(uintptr_t)um_word(info, call->word[0]);
    if (c)
        um_copy(info, call, um_side(c->dstMemoryType, c->dstHost, c->dstDevice),
                um_side(c->srcMemoryType, c->srcHost, c->srcDevice),
                c->WidthInBytes * c->Height * c->Depth);
}

/* word: arrays of destinations, sources and sizes, and how many. */
void um_on_copy_batch(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_transfer_done(info, call))
        return;
    const uint64_t *dst = (const void *)(uintptr_t)um_word(info, call->word[0]);
    const uint64_t *src = (const void *)(uintptr_t)um_word(info, call->word[1]);
    const uint64_t *bytes = (const void *)(uintptr_t)um_word(info, call->word[2]);
    uint64_t n = um_word(info, call->word[3]);
    for (uint64_t i = 0; dst && src && bytes && i < n; i++)
        um_post_copy(info, call, dst[i], src[i], bytes[i]);
}

static void um_post_set(const CUpti_CallbackData *info, const um_call_t *call, uint64_t addr,
                        uint64_t bytes, uint64_t value)
{
    static const uint32_t mask[] = {[1] = 0xff, [2] = 0xffff, [4] = 0xffffffff};
    um_end_t to = um_end(addr, false);
    um_event_t event = um_live_event(UM_EV_SET);

    if (!um_live.record && to.memory != UM_MEMORY_MANAGED)
        return;
    uint64_t begin = *info->correlationData;
    event.u.set = (um_ev_set_t){
        .addr = addr,
        .bytes = bytes,
        .duration_ns = event.time_ns - begin,
        .value = (uint32_t)value & mask[call->what],
        .memory = to.memory,
        .region = to.region,
        .correlation = info->correlationId,
        .device = um_live_device(info->contextUid),
        .stream = um_call_stream(info, call),
        .flags = um_transfer_flags(call, um_call_stream(info, call)),
    };
    event.time_ns = begin;
    um_live_post(&event, false);
}

/* word: address, value, elements; what = bytes an element. */
void um_on_set(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (um_transfer_done(info, call))
        um_post_set(info, call, um_word(info, call->word[0]),
                    um_word(info, call->word[2]) * call->what, um_word(info, call->word[1]));
}

/* word: address, value, width, height. The pitch between rows is left out of the bytes. */
void um_on_set_2d(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (um_transfer_done(info, call))
        um_post_set(info, call, um_word(info, call->word[0]),
                    um_word(info, call->word[2]) * um_word(info, call->word[3]) * call->what,
                    um_word(info, call->word[1]));
}

/* ---- the program's own hints ---------------------------------------------------------------- */

static void um_post_hint(const CUpti_CallbackData *info, const um_call_t *call, uint32_t kind,
                         uint64_t addr, uint64_t bytes, int32_t device, const char *why)
{
    um_event_t event = um_live_event(UM_EV_HINT);
    CUresult result = um_result(info);
    um_region_t region;

    if (!um_regions_find(um_live.runtime->regions, addr, &region))
        region.id = 0;
    uint64_t begin = *info->correlationData;
    event.u.hint = (um_ev_hint_t){
        .kind = kind,
        .result = result == CUDA_SUCCESS ? UM_HINT_APPLIED : UM_HINT_FAILED,
        .addr = addr,
        .bytes = bytes,
        .device = device,
        .region = region.id,
        .error = (int32_t)result,
        .duration_ns = event.time_ns - begin,
        .stream = um_call_stream(info, call),
        .call_site = um_live.record ? um_callsite_here() : 0,
        .who = "app",
        .why = why,
    };
    event.time_ns = begin;
    um_live_post(&event, false);
}

static bool um_hint_done(const CUpti_CallbackData *info)
{
    if (!um_entering(info))
        return *info->correlationData != 0;
    *info->correlationData = um_live_now_ns();
    return false;
}

/* CUmemLocation travels in one word: type below, id above. Every host type (2, 3, 4) is the CPU. */
static int32_t um_location(uint64_t word)
{
    return (uint32_t)word == UM_LOCATION_DEVICE ? (int32_t)(word >> 32) : UM_DEVICE_HOST;
}

/* word: address, bytes, where; what = 1: where is a CUmemLocation, 0: an int device, -1 the CPU. */
void um_on_prefetch(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_hint_done(info))
        return;
    uint64_t where = um_word(info, call->word[2]);
    um_post_hint(info, call, UM_HINT_PREFETCH, um_word(info, call->word[0]),
                 um_word(info, call->word[1]), call->what ? um_location(where) : (int32_t)where,
                 "the program's own call");
}

/* word: address, bytes; advice is the low half of the third word, an int device its high half, a
 * CUmemLocation (what = 1) begins there too: type in the high half, id in the fourth word. */
void um_on_advise(const CUpti_CallbackData *info, const um_call_t *call)
{
    static const uint8_t kinds[] = {
        [1] = UM_HINT_READ_MOSTLY,        [2] = UM_HINT_UNSET_READ_MOSTLY,
        [3] = UM_HINT_PREFERRED_LOCATION, [4] = UM_HINT_UNSET_PREFERRED_LOCATION,
        [5] = UM_HINT_ACCESSED_BY,        [6] = UM_HINT_UNSET_ACCESSED_BY,
    };

    if (!um_hint_done(info))
        return;
    uint64_t word = um_word(info, 2);
    uint32_t advice = (uint32_t)word;
    int32_t device = (int32_t)(word >> 32);
    if (call->what)
        device = device == UM_LOCATION_DEVICE ? (int32_t)um_word(info, 3) : UM_DEVICE_HOST;
    um_deep_advised(um_word(info, 0));
    if (advice < sizeof(kinds))
        um_post_hint(info, call, kinds[advice], um_word(info, 0), um_word(info, 1), device,
                     "the program's own call");
}

/* The three batch calls: addresses, sizes, count, and for prefetches the places with the index at
 * which each begins. what: bit 0 discards, bit 1 prefetches. */
void um_on_prefetch_batch(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_hint_done(info))
        return;
    const uint64_t *addr = (const void *)(uintptr_t)um_word(info, 0);
    const uint64_t *bytes = (const void *)(uintptr_t)um_word(info, 1);
    uint64_t n = um_word(info, 2);
    bool moves = call->what & 2;
    const uint64_t *place = moves ? (const void *)(uintptr_t)um_word(info, 3) : NULL;
    const size_t *first = moves ? (const void *)(uintptr_t)um_word(info, 4) : NULL;
    uint64_t n_places = moves ? um_word(info, 5) : 0;

    for (uint64_t i = 0, p = 0; addr && bytes && i < n; i++) {
        while (first && p + 1 < n_places && first[p + 1] <= i)
            p++;
        if (call->what & 1)
            um_post_hint(info, call, UM_HINT_DISCARD, addr[i], bytes[i], UM_DEVICE_NONE,
                         "the program's own call");
        if (place && n_places)
            um_post_hint(info, call, UM_HINT_PREFETCH, addr[i], bytes[i], um_location(place[p]),
                         "the program's own call");
    }
}

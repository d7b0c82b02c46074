/*
 * memory.c - the six families come and go: allocation and free calls become regions.
 *
 * An allocation is entered at the exit of its call, on the thread that made it, so that REGION_ALLOC
 * precedes every launch that can use it. A free is taken out at the entry of its call, before the
 * address can come back as something else.
 */
#include "live.h"

static void um_memory_drop(uint64_t addr, uint64_t stream, uint64_t call_site)
{
    um_region_t region;

    um_event_t event = um_live_event(UM_EV_REGION_FREE);
    if (um_regions_remove(um_live.runtime->regions, addr, &region) != UM_OK)
        return;
    event.u.region_free = (um_ev_region_free_t){.region = region.id,
                                                .addr = region.addr,
                                                .stream = stream,
                                                .call_site = call_site};
    um_live_post(&event, false);
}

typedef struct um_gather {
    uint64_t addr[256];
    size_t n;
} um_gather_t;
#define UM_GATHERED (sizeof(((um_gather_t *)0)->addr) / sizeof(uint64_t))

static void um_gather_region(void *ctx, const um_region_t *region)
{
    um_gather_t *gather = ctx;

    if (gather->n < UM_GATHERED)
        gather->addr[gather->n++] = region->addr;
}

/* In rounds, because um_regions_each holds the lock that removal needs, and that no driver call may be
 * made under. */
static void um_memory_drop_all(uint64_t addr, uint64_t bytes, bool (*wanted)(uint64_t addr))
{
    uint64_t end = addr + bytes;
    um_gather_t gather;

    do {
        gather.n = 0;
        um_regions_each(um_live.runtime->regions, addr, end - addr, um_gather_region, &gather);
        for (size_t i = 0; i < gather.n; i++) {
            if (!wanted || wanted(gather.addr[i]))
                um_memory_drop(gather.addr[i], 0, 0);
            addr = gather.addr[i] + 1;
        }
    } while (gather.n == UM_GATHERED);
}

void um_memory_add(const um_region_t *region, uint64_t stream)
{
    /* After a late start several launches may come upon the same region at once. */
    static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
    um_region_t added = *region;

    pthread_mutex_lock(&adding);
    /* What was there has gone without a word: with its pool, its context. */
    um_memory_drop_all(added.addr, added.bytes, NULL);
    um_event_t event = um_live_event(UM_EV_REGION_ALLOC);
    added.alloc_ns = event.time_ns;
    um_status_t status = um_regions_add(um_live.runtime->regions, &added, NULL, 0, NULL);
    pthread_mutex_unlock(&adding);
    if (status != UM_OK)
        return;
    event.u.region_alloc = (um_ev_region_alloc_t){
        .region = added.id,
        .family = added.family,
        .addr = added.addr,
        .bytes = added.bytes,
        .device = added.device,
        .flags = added.flags,
        .call_site = added.call_site,
        .stream = stream,
    };
    /* What a profile says of it is best done before anybody touches it. */
    um_live_post(&event, added.family == UM_FAMILY_MANAGED && um_live.runtime->expecting);
    /* Before the program has the address, and so before any launch that can use it. */
    if (added.family == UM_FAMILY_MANAGED) {
        um_activity_managed();
        um_callbacks_managed();
    }
}

static bool um_is_managed(uint64_t addr)
{
    unsigned managed = 0;

    if (!um_live.cuda->pointer_attribute)
        return false;
    um_cuda_own = true;
    CUresult result =
        um_live.cuda->pointer_attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, addr);
    um_cuda_own = false;
    return result == CUDA_SUCCESS && managed;
}

/* word: where the address is (or is stored), bytes, flags, the pitch or rows. */
void um_on_alloc(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_region_t region = {.bytes = um_word(info, call->word[1]), .device = UM_DEVICE_HOST};
    uint64_t flags = (uint32_t)um_word(info, call->word[2]);
    bool managed = call->what == UM_ALLOC_MANAGED || call->what == UM_ALLOC_STATIC;

    if (um_entering(info)) {
        if (call->what == UM_ALLOC_PINNED || call->what == UM_ALLOC_HOST ||
            call->what == UM_ALLOC_REGISTER)
            um_live_catch_up(info->contextUid);
        if (managed) { /* where no call that makes a context was seen */
            um_backend_tell_devices();
            um_activity_context();
        }
        return;
    }
    if (um_result(info) != CUDA_SUCCESS)
        return;
    const void *where = (const void *)(uintptr_t)um_word(info, call->word[0]);
    if (call->what == UM_ALLOC_REGISTER || call->what == UM_ALLOC_MAP)
        region.addr = (uintptr_t)where;
    else if (where)
        region.addr = *(const uint64_t *)where;
    if (region.addr == 0)
        return;

    switch (call->what) {
    case UM_ALLOC_PITCH:
        if (region.bytes == 0)
            return;
        region.bytes = *(const size_t *)(uintptr_t)region.bytes * um_word(info, call->word[3]);
        region.family = UM_FAMILY_DEVICE;
        region.device = um_live_device(info->contextUid);
        break;
    case UM_ALLOC_MANAGED:
        region.family = UM_FAMILY_MANAGED;
        region.device = UM_DEVICE_NONE;
        if (flags & CU_MEM_ATTACH_GLOBAL)
            region.flags |= UM_REGION_ATTACH_GLOBAL;
        if (flags & CU_MEM_ATTACH_HOST)
            region.flags |= UM_REGION_ATTACH_HOST;
        break;
    case UM_ALLOC_PINNED:
        region.family = UM_FAMILY_PINNED;
        break;
    case UM_ALLOC_HOST:
        region.family = flags & CU_MEMHOSTALLOC_DEVICEMAP ? UM_FAMILY_MAPPED : UM_FAMILY_PINNED;
        break;
    case UM_ALLOC_REGISTER:
        region.family = UM_FAMILY_REGISTERED;
        if (flags & CU_MEMHOSTREGISTER_DEVICEMAP)
            region.flags |= UM_REGION_MAPPED;
        break;
    case UM_ALLOC_POOL:
        region.family = UM_FAMILY_POOL;
        region.device = um_live_device(info->contextUid);
        region.flags = UM_REGION_POOL | UM_REGION_ASYNC;
        if (um_is_managed(region.addr)) {
            region.family = UM_FAMILY_MANAGED;
            region.device = UM_DEVICE_NONE;
        }
        break;
    case UM_ALLOC_STATIC: {
        um_region_t known;
        if (region.bytes == 0 || !um_is_managed(region.addr) ||
            um_regions_find(um_live.runtime->regions, region.addr, &known))
            return;
        region.bytes = *(const size_t *)(uintptr_t)region.bytes;
        region.family = UM_FAMILY_MANAGED;
        region.device = UM_DEVICE_NONE;
        region.flags = UM_REGION_STATIC | UM_REGION_ATTACH_GLOBAL;
        um_activity_kick_here(info->context); /* before a kernel can touch it */
        break;
    }
    case UM_ALLOC_MAP:
        region.family = UM_FAMILY_VMM;
        region.device = um_live_device(info->contextUid);
        break;
    default:
        region.family = UM_FAMILY_DEVICE;
        region.device = um_live_device(info->contextUid);
        break;
    }
    /* Nobody calls for a variable; from a pool an allocation takes no longer than its stack. */
    if (!(region.flags & UM_REGION_STATIC) &&
        (um_live.record ? region.family != UM_FAMILY_POOL : region.family == UM_FAMILY_MANAGED))
        region.call_site = um_callsite_here();
    um_memory_add(&region, um_call_stream(info, call));
}

void um_on_free(const CUpti_CallbackData *info, const um_call_t *call)
{
    uint64_t addr = um_word(info, call->word[0]);
    um_region_t region;

    if (um_entering(info) && addr && !(call->flags & UM_CALL_ASYNC))
        um_live_catch_up(info->contextUid);
    if (!um_entering(info) || addr == 0 ||
        !um_regions_find(um_live.runtime->regions, addr, &region) || region.addr != addr)
        return;
    if (region.family == UM_FAMILY_MANAGED)
        um_runtime_region_going(um_live.runtime, addr);
    um_memory_drop(addr, um_call_stream(info, call),
                   um_live.record && region.family == UM_FAMILY_MANAGED ? um_callsite_here() : 0);
}

/* ---- many at once --------------------------------------------------------------------------- */

void um_on_unmap(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (um_entering(info))
        um_memory_drop_all(um_word(info, call->word[0]), um_word(info, call->word[1]), NULL);
}

/* The driver answers INVALID_VALUE for an address that it knows nothing of. */
static bool um_is_unknown(uint64_t addr)
{
    unsigned type = 0;

    return um_live.cuda->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr) ==
           CUDA_ERROR_INVALID_VALUE;
}

void um_memory_sweep(void)
{
    if (!um_live.cuda->pointer_attribute)
        return;
    um_cuda_own = true;
    um_memory_drop_all(0, UINT64_MAX, um_is_unknown);
    um_cuda_own = false;
}

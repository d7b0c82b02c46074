#include "residency_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define MAX_INTERVAL 64u /* at least every so many stale launches a whole look */

/* ---- regions ---- */

static size_t position(const um_residency_t *residency, uint32_t id)
{
    size_t low = 0, high = residency->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (residency->region[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

um_region_state_t *um_residency_find(const um_residency_t *residency, uint32_t id)
{
    size_t at = position(residency, id);

    return at < residency->n && residency->region[at]->id == id ? residency->region[at] : NULL;
}

static void remove_region(um_residency_t *residency, uint32_t id)
{
    size_t at = position(residency, id);

    if (at == residency->n || residency->region[at]->id != id)
        return;
    residency->n_blocks -= residency->region[at]->n_blocks;
    free(residency->region[at]);
    memmove(&residency->region[at], &residency->region[at + 1],
            (residency->n - at - 1) * sizeof(um_region_state_t *));
    residency->n--;
}

/* A region that cannot be kept for lack of memory, or takes too much of it, is as good as unknown: it gets
 * no hints. */
static void add_region(um_residency_t *residency, const um_ev_region_alloc_t *alloc)
{
    bool before = alloc->flags & UM_REGION_BEFORE_UMRT;
    uint64_t n_blocks;
    um_region_state_t *region;
    size_t at;

    /* Above INT64_MAX no program has memory, and what adds to an address would go round. */
    if (alloc->family != UM_FAMILY_MANAGED || !alloc->bytes || alloc->addr > INT64_MAX ||
        alloc->bytes > INT64_MAX - alloc->addr)
        return;
    remove_region(residency, alloc->region);
    n_blocks = (alloc->addr + alloc->bytes - 1) / UM_BLOCK_BYTES - alloc->addr / UM_BLOCK_BYTES + 1;
    if (n_blocks > UM_BLOCKS_MOST - residency->n_blocks)
        return;
    if (!um_grow(&residency->region, &residency->room, residency->n + 1,
                 sizeof(*residency->region)))
        return;
    region = calloc(1, sizeof(*region) + n_blocks * sizeof(region->block[0]));
    if (!region)
        return;
    region->id = alloc->region;
    region->addr = alloc->addr;
    region->bytes = alloc->bytes;
    region->role = um_region_role(alloc);
    region->n_blocks = (uint32_t)n_blocks;
    region->interval = 1;
    for (uint32_t b = 0; b < region->n_blocks; b++) {
        region->block[b].where = before ? UM_WHERE_UNKNOWN : UM_WHERE_UNTOUCHED;
        region->block[b].device = UM_DEVICE_NONE;
    }
    at = position(residency, region->id);
    memmove(&residency->region[at + 1], &residency->region[at],
            (residency->n - at) * sizeof(um_region_state_t *));
    residency->region[at] = region;
    residency->n++;
    residency->n_blocks += n_blocks;
    residency->stats.regions++;
}

void um_residency_tell(um_residency_t *residency, um_event_fn fn, void *ctx)
{
    residency->told = fn;
    residency->told_ctx = ctx;
}

/* ---- events ---- */

/* looked_ns: what is known later than this stays; 0 = to be looked at again. */
static void put(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                um_where_t where, int32_t device, uint64_t looked_ns)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint32_t first, end;

    if (!region || !um_blocks_of(region, addr, bytes, &first, &end))
        return;
    region->settled_end = 0;
    for (uint32_t b = first; b < end; b++)
        if (!looked_ns || region->block[b].looked_ns <= looked_ns)
            region->block[b] =
                (um_block_state_t){.looked_ns = looked_ns,
                                   .where = (uint8_t)where,
                                   .device = (int8_t)device,
                                   .away = where == UM_WHERE_DEVICE && looked_ns ? UM_AWAY : 0,
                                   .advice = region->block[b].advice};
}

static void advise(um_region_state_t *region, const um_ev_hint_t *hint, uint8_t set, uint8_t unset)
{
    uint32_t first, end;

    if (!um_blocks_of(region, hint->addr, hint->bytes, &first, &end))
        return;
    region->settled_end = 0;
    for (uint32_t b = first; b < end; b++)
        region->block[b].advice = (uint8_t)((region->block[b].advice | set) & ~unset);
}

/* Records say what page tables cannot: data that the driver evicted is with the CPU, unmapped. */
static void on_migrate(um_residency_t *residency, const um_ev_migrate_t *move, uint64_t now_ns)
{
    um_region_state_t *region = um_residency_find(residency, move->region);
    uint32_t first, end;
    bool evicted = move->dst == UM_DEVICE_HOST && move->cause == UM_CAUSE_EVICTION;

    if (!region || (!evicted && move->dst < 0) ||
        !um_blocks_of(region, move->addr, move->bytes, &first, &end))
        return;
    for (uint32_t b = first; b < end; b++) {
        um_block_state_t *block = &region->block[b];

        if (!evicted && block->away < UM_AWAY)
            block->away += (uint16_t)(end - first > 1 ? UM_AWAY : move->bytes / UM_PAGE_BYTES);
        if (block->looked_ns > now_ns || (!evicted && !block->evicted))
            continue;
        region->settled_end = 0;
        block->evicted = evicted;
        block->where = evicted ? UM_WHERE_HOST : UM_WHERE_DEVICE;
        block->device = (int8_t)move->dst;
    }
}

static void on_hint(um_residency_t *residency, const um_ev_hint_t *hint, uint64_t now_ns)
{
    um_region_state_t *region = um_residency_find(residency, hint->region);
    bool own = strcmp(hint->who, "app") != 0;

    if (!region || hint->result == UM_HINT_FAILED || (own && hint->result != UM_HINT_APPLIED))
        return;
    switch (hint->kind) {
    case UM_HINT_PREFETCH:
        if (hint->device == UM_DEVICE_HOST)
            put(residency, hint->region, hint->addr, hint->bytes, UM_WHERE_HOST, UM_DEVICE_HOST, 0);
        else
            put(residency, hint->region, hint->addr, hint->bytes, UM_WHERE_DEVICE, hint->device,
                um_known_until(residency, now_ns));
        break;
    case UM_HINT_READ_MOSTLY:
        region->duplicated = true;
        advise(region, hint, UM_ADVICE_READ_MOSTLY, 0);
        break;
    case UM_HINT_UNSET_READ_MOSTLY:
        region->duplicated = false;
        advise(region, hint, 0, UM_ADVICE_READ_MOSTLY);
        break;
    case UM_HINT_PREFERRED_LOCATION:
        if (hint->device == UM_DEVICE_HOST)
            advise(region, hint, UM_ADVICE_PREFERRED, 0);
        else
            advise(region, hint, 0, UM_ADVICE_PREFERRED);
        break;
    case UM_HINT_UNSET_PREFERRED_LOCATION:
        advise(region, hint, 0, UM_ADVICE_PREFERRED);
        break;
    case UM_HINT_ACCESSED_BY:
        if (hint->device != UM_DEVICE_HOST)
            advise(region, hint, UM_ADVICE_ACCESSED_BY, 0);
        break;
    case UM_HINT_UNSET_ACCESSED_BY:
        advise(region, hint, 0, UM_ADVICE_ACCESSED_BY);
        break;
    default:
        break;
    }
}

void um_residency_observe(um_residency_t *residency, const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        add_region(residency, &event->u.region_alloc);
        break;
    case UM_EV_REGION_HINT: {
        um_region_state_t *region = um_residency_find(residency, event->u.region_hint.region);

        if (region)
            region->word = event->u.region_hint.flags;
        break;
    }
    case UM_EV_REGION_FREE:
        remove_region(residency, event->u.region_free.region);
        break;
    case UM_EV_HINT:
        on_hint(residency, &event->u.hint, event->time_ns);
        break;
    case UM_EV_MIGRATE:
        on_migrate(residency, &event->u.migrate, event->time_ns);
        break;
    case UM_EV_SET:
        /* Runs on the GPU. */
        if (!(event->u.set.flags & UM_TRANSFER_CAPTURED))
            put(residency, event->u.set.region, event->u.set.addr, event->u.set.bytes,
                UM_WHERE_DEVICE, event->u.set.device, event->time_ns);
        break;
    case UM_EV_COPY:
        /* Lands on either side: to be looked at; not on the host means on the GPU. */
        if (!(event->u.copy.flags & UM_TRANSFER_CAPTURED))
            put(residency, event->u.copy.dst_region, event->u.copy.dst_addr, event->u.copy.bytes,
                UM_WHERE_DEVICE, event->u.copy.device, 0);
        break;
    case UM_EV_LAUNCH:
        residency->launch_ns = event->time_ns;
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit && event->time_ns > residency->sync_ns) {
            residency->sync_ns = event->time_ns;
            residency->sync = event->u.sync.sync;
        }
        break;
    default:
        break;
    }
}

/* ---- launches and answers ---- */

void um_residency_launch_begin(um_residency_t *residency, uint32_t id, uint64_t addr,
                               uint64_t bytes, uint64_t now_ns)
{
    um_region_state_t *region = um_residency_find(residency, id);

    if (!region || !um_blocks_of(region, addr, bytes, &region->first, &region->end))
        return;
    region->look = UM_LOOK_UNDECIDED;
    region->launch_ns = now_ns;
    region->again_ns = 0;
    region->hit = region->fresh = false;
}

void um_residency_launch_end(um_residency_t *residency, uint32_t id, int32_t device, bool useful)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint64_t settled_ns = UINT64_MAX;
    uint32_t end;

    if (!region || region->look == UM_LOOK_NONE)
        return;
    if (region->look == UM_LOOK_WHOLE) {
        if (region->hit && useful)
            region->interval = 1;
        else if (!region->fresh && region->interval < MAX_INTERVAL)
            region->interval *= 2;
    }
    /* Where nobody asked, nothing is believed about what the launch uses. */
    end = region->look == UM_LOOK_UNDECIDED ? region->first : region->end;
    region->look = UM_LOOK_NONE;
    for (uint32_t b = region->first; b < end; b++) {
        um_block_state_t *block = &region->block[b];
        bool left = block->left;

        block->left = false;
        if (block->where == UM_WHERE_BOTH || block->evicted || left) {
            settled_ns = 0;
            continue;
        }
        block->where = UM_WHERE_DEVICE;
        block->device = (int8_t)device;
        if (block->looked_ns < region->launch_ns)
            block->looked_ns = region->launch_ns;
        if (block->looked_ns < settled_ns)
            settled_ns = block->looked_ns;
    }
    region->settled_first = region->first;
    region->settled_end = settled_ns ? end : 0;
    region->settled_device = device;
    region->settled_ns = settled_ns;
}

void um_residency_leave(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint32_t first, end;

    if (!region || region->look == UM_LOOK_NONE || !um_blocks_of(region, addr, bytes, &first, &end))
        return;
    if (first < region->first)
        first = region->first;
    for (uint32_t b = first; b < end && b < region->end; b++)
        region->block[b].left = true;
}

void um_residency_doubt(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                        int32_t device)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint32_t first, end;

    if (!region || !um_blocks_of(region, addr, bytes, &first, &end))
        return;
    for (uint32_t b = first; b < end; b++) {
        um_block_state_t *block = &region->block[b];

        if (block->where == UM_WHERE_DEVICE && block->device != device && block->away < UM_AWAY)
            block->looked_ns = 0;
    }
}

static bool settled(const um_residency_t *residency, um_region_state_t *region, int32_t device)
{
    /* What is duplicated must be asked about before a kernel writes it. */
    return !region->duplicated && device == region->settled_device &&
           region->settled_ns >= residency->sync_ns && ++region->unsynced < UM_UNSYNCED_MAX;
}

bool um_residency_settled(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                          int32_t device)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint32_t first, end;

    return region && um_blocks_of(region, addr, bytes, &first, &end) &&
           first >= region->settled_first && end <= region->settled_end &&
           settled(residency, region, device);
}

bool um_residency_settled_from(um_residency_t *residency, uint32_t id, uint64_t addr,
                               int32_t device, uint64_t *bytes)
{
    um_region_state_t *region = um_residency_find(residency, id);

    if (!region || region->settled_first >= region->settled_end ||
        addr / UM_BLOCK_BYTES != region->addr / UM_BLOCK_BYTES + region->settled_first ||
        !settled(residency, region, device))
        return false;
    *bytes = um_block_end(region, region->settled_end - 1) - addr;
    return true;
}

bool um_residency_region(const um_residency_t *residency, uint32_t id, uint64_t *addr,
                         uint64_t *bytes)
{
    const um_region_state_t *region = um_residency_find(residency, id);

    if (!region || region->word & UM_REGION_HINT_OFF)
        return false;
    *addr = region->addr;
    *bytes = region->bytes;
    return true;
}

uint64_t um_residency_device_bytes(const um_residency_t *residency, int32_t device)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < residency->n; i++) {
        const um_region_state_t *region = residency->region[i];

        for (uint32_t b = 0; b < region->n_blocks; b++)
            if (region->block[b].device == device && (region->block[b].where == UM_WHERE_DEVICE ||
                                                      region->block[b].where == UM_WHERE_BOTH))
                bytes += um_block_end(region, b) - um_block_start(region, b);
    }
    return bytes;
}

uint32_t um_residency_word(const um_residency_t *residency, uint32_t id)
{
    const um_region_state_t *region = um_residency_find(residency, id);

    return region ? region->word : 0;
}

uint64_t um_residency_role(const um_residency_t *residency, uint32_t id)
{
    const um_region_state_t *region = um_residency_find(residency, id);

    return region ? region->role : 0;
}

uint64_t um_residency_missing(const um_residency_t *residency, int32_t device)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < residency->n; i++) {
        const um_region_state_t *region = residency->region[i];

        for (uint32_t b = 0; b < region->n_blocks; b++) {
            const um_block_state_t *block = &region->block[b];

            if (block->where != UM_WHERE_BOTH && (block->where != UM_WHERE_DEVICE ||
                                                  (block->device >= 0 && block->device != device)))
                bytes += um_block_end(region, b) - um_block_start(region, b);
        }
    }
    return bytes;
}

size_t um_residency_extents(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                            um_extent_t *out, size_t max)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint32_t first, end;
    size_t n = 0;

    if (!region || region->word & UM_REGION_HINT_OFF ||
        !um_blocks_of(region, addr, bytes, &first, &end))
        return 0;
    if (region->look != UM_LOOK_NONE)
        um_residency_look(residency, region, first > region->first ? first : region->first,
                          end < region->end ? end : region->end);
    for (uint32_t b = first; b < end; b++) {
        const um_block_state_t *block = &region->block[b];
        uint64_t start = um_block_start(region, b), stop = um_block_end(region, b);
        bool same =
            b > first && block->where == block[-1].where && block->device == block[-1].device;

        if (start < addr)
            start = addr;
        if (stop > addr + bytes)
            stop = addr + bytes;
        if (same) {
            if (n <= max)
                out[n - 1].bytes = stop - out[n - 1].addr;
            continue;
        }
        if (n < max)
            out[n] = (um_extent_t){.addr = start,
                                   .bytes = stop - start,
                                   .where = block->where,
                                   .device = block->device};
        n++;
    }
    return n;
}

/* ---- life ---- */

um_status_t um_residency_new(const um_page_tables_t *tables, um_residency_t **out)
{
    um_residency_t *residency = calloc(1, sizeof(*residency));

    if (!residency)
        return UM_ERR_NO_MEMORY;
    if (tables) {
        residency->tables = *tables;
        residency->can_look = true;
    }
    *out = residency;
    return UM_OK;
}

void um_residency_free(um_residency_t *residency)
{
    if (!residency)
        return;
    for (size_t i = 0; i < residency->n; i++)
        free(residency->region[i]);
    free(residency->region);
    free(residency);
}

void um_residency_stats(const um_residency_t *residency, um_residency_stats_t *out)
{
    *out = residency->stats;
}

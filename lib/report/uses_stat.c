#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "region_parts.h"

/* Sixteen million blocks are 32 TiB of managed memory, and 512 MiB of ours. */
#define BLOCKS_MAX (UINT64_C(1) << 24)

enum { NOWHERE = 0, ON_GPU = 1, ON_HOST = 2, ON_BOTH = 3 }; /* of a block, as far as was seen */

struct um_block_use {
    uint32_t hint;     /* own + 1: brought by it to a GPU and not gone since */
    uint32_t launches; /* of the region, then */
    uint32_t all_launches;
    uint32_t arrived; /* bytes, since it went the other way */
    uint32_t next;    /* block of the region that came behind it the last time, + 1 */
    uint8_t where;
    int8_t gpu;            /* that has it, + 1 */
    bool evicted, counted; /* its last way out was an eviction; the return from it is counted */
};

void um_uses_init(um_uses_stat_t *stat)
{
    stat->blocks_left = BLOCKS_MAX;
}

void um_uses_free(um_uses_stat_t *stat)
{
    free(stat->own);
    um_map_free(&stat->own_of);
}

void um_uses_end(um_uses_stat_t *stat)
{
    stat->launches = stat->waits = 0;
    stat->last_prefetch = 0;
    memset(stat->live_bytes, 0, sizeof(stat->live_bytes));
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static um_block_use_t *block_at(um_regions_stat_t *stat, um_live_t *live, uint64_t addr)
{
    uint64_t n = um_live_blocks(live), at = addr / UM_BLOCK_BYTES - live->addr / UM_BLOCK_BYTES;

    if (!live->use.blocks && n <= stat->uses.blocks_left) {
        live->use.blocks = calloc(n, sizeof(*live->use.blocks));
        if (live->use.blocks)
            stat->uses.blocks_left -= n;
    }
    return live->use.blocks && at < n ? &live->use.blocks[at] : NULL;
}

/* How much of the block at addr belongs to the region. */
static uint64_t block_bytes(const um_live_t *live, uint64_t addr)
{
    uint64_t start = addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES, end = start + UM_BLOCK_BYTES;

    start = start > live->addr ? start : live->addr;
    end = end < live->addr + live->bytes ? end : live->addr + live->bytes;
    return end - start;
}

static bool unused(const um_regions_stat_t *stat, const um_live_t *live,
                   const um_block_use_t *block)
{
    if (!live->use.sums.launches) /* reached by other ways than arguments, if at all */
        return block->all_launches == (uint32_t)stat->uses.launches;
    return block->launches == (uint32_t)live->use.sums.launches;
}

/* It leaves the GPU. */
static void settle(um_regions_stat_t *stat, um_live_t *live, um_block_use_t *block, uint64_t bytes)
{
    if (!block->hint)
        return;
    if (unused(stat, live, block))
        stat->uses.own[block->hint - 1].wasted_bytes += bytes;
    block->hint = 0;
}

void um_uses_retire(um_regions_stat_t *stat, um_live_t *live)
{
    uint64_t n = um_live_blocks(live);

    if (live->id && live->family < UM_FAMILY_COUNT) {
        uint64_t *bytes = &stat->uses.live_bytes[live->family];

        *bytes -= *bytes > live->bytes ? live->bytes : *bytes;
    }
    live->use.sums.wide_gpus = (live->use.devices & (live->use.devices - 1)) != 0;
    if (!live->use.blocks)
        return;
    for (uint64_t b = 0; b < n; b++)
        settle(stat, live, &live->use.blocks[b],
               block_bytes(live, (live->addr / UM_BLOCK_BYTES + b) * UM_BLOCK_BYTES));
    free(live->use.blocks);
    live->use.blocks = NULL;
    stat->uses.blocks_left += n;
}

/* ---- moves ------------------------------------------------------------------------------------ */

/* A block comes to a GPU: behind which one of its region, and is that as it was the last time? */
static void follow(um_live_t *live, const um_block_use_t *block)
{
    uint32_t at = (uint32_t)(block - live->use.blocks) + 1, before = live->use.last_arrived;
    um_block_use_t *last = before ? &live->use.blocks[before - 1] : NULL;

    live->use.last_arrived = at;
    if (!last || before == at)
        return;
    if (block->evicted && last->next && at != before + 1 && at + 1 != before) {
        live->use.sums.jumps++;
        live->use.sums.jumps_again += last->next == at;
    }
    last->next = at;
}

static void came_back(um_live_t *live, um_block_use_t *block, uint64_t addr, uint64_t bytes)
{
    um_uses_t *sums = &live->use.sums;

    sums->returned_bytes += bytes;
    if (block->counted)
        return; /* another piece of it */
    sums->returns++;
    sums->ascending += addr > live->use.last_return;
    sums->sweeps += addr <= live->use.last_return || !live->use.last_return;
    live->use.last_return = addr;
    block->counted = true;
}

static void on_migrate(um_regions_stat_t *stat, const um_ev_migrate_t *m)
{
    bool in = m->dst >= 0 && m->src < 0, out = m->dst < 0 && m->src >= 0;
    um_live_t *live = m->bytes ? um_regions_stat_find(stat, m->addr) : NULL;
    um_block_use_t *block = live ? block_at(stat, live, m->addr) : NULL;
    um_uses_t *sums = live ? &live->use.sums : NULL;

    if (!block)
        return;
    if (in) {
        sums->in_bytes += m->bytes;
        if (block->where != ON_GPU && block->where != ON_BOTH)
            follow(live, block);
        if (block->evicted)
            came_back(live, block, m->addr / UM_BLOCK_BYTES, m->bytes);
        block->arrived = block->where == ON_HOST ? 0 : block->arrived;
        block->arrived += m->bytes < UM_BLOCK_BYTES ? (uint32_t)m->bytes : UM_BLOCK_BYTES;
        block->where = block->arrived >= block_bytes(live, m->addr) ? ON_GPU : ON_BOTH;
        block->gpu = (int8_t)(m->dst < 64 ? m->dst + 1 : 0);
    } else if (out) {
        sums->out_bytes += m->bytes;
        sums->near_out_bytes += live->use.located && live->use.preferred >= 0 ? m->bytes : 0;
        settle(stat, live, block, m->bytes);
        block->where = m->cause == UM_CAUSE_EVICTION || m->bytes >= block_bytes(live, m->addr)
                           ? ON_HOST
                           : ON_BOTH;
        block->arrived = 0;
        block->evicted = m->cause == UM_CAUSE_EVICTION;
        block->counted = false;
        if (block->evicted) {
            sums->evicted_bytes += m->bytes;
            if (stat->uses.last_prefetch)
                stat->uses.own[stat->uses.last_prefetch - 1].evicting_bytes += m->bytes;
        }
    } else if (m->src >= 0 && m->dst >= 0) {
        sums->peer_bytes += m->bytes;
        sums->peer_ns += m->duration_ns;
        sums->peer_turns += block->gpu != 0; /* the second time and on */
        block->gpu = (int8_t)(m->dst < 64 ? m->dst + 1 : 0);
    }
}

/* ---- the program's hints ---------------------------------------------------------------------- */

static um_own_hint_t *own_get(um_uses_stat_t *stat, const um_ev_hint_t *hint, uint32_t group)
{
    uint64_t key[4] = {hint->call_site, hint->kind, hint->device < 0, group};
    uint64_t hash = um_map_hash(key, sizeof(key), 3);
    uint32_t at = um_map_find(&stat->own_of, hash);

    if (at != UM_MAP_NONE)
        return &stat->own[at];
    if (!um_grow(&stat->own, &stat->own_size, stat->n_own + 1, sizeof(*stat->own)))
        return NULL;
    if (um_map_put(&stat->own_of, hash, (uint32_t)stat->n_own))
        return NULL;
    stat->own[stat->n_own] = (um_own_hint_t){.call_site = hint->call_site,
                                             .kind = hint->kind,
                                             .device = hint->device,
                                             .group = group};
    return &stat->own[stat->n_own++];
}

/* True when it held already. */
static bool advise(um_live_use_t *use, const um_ev_hint_t *hint)
{
    um_live_use_t before = *use;

    switch (hint->kind) {
    case UM_HINT_READ_MOSTLY:
        use->read_mostly = true;
        return before.read_mostly;
    case UM_HINT_UNSET_READ_MOSTLY:
        use->read_mostly = false;
        return !before.read_mostly;
    case UM_HINT_PREFERRED_LOCATION:
        use->located = true;
        use->preferred = hint->device;
        return before.located && before.preferred == hint->device;
    case UM_HINT_UNSET_PREFERRED_LOCATION:
        use->located = false;
        return !before.located;
    default:
        return false;
    }
}

static uint64_t prefetch(um_regions_stat_t *stat, um_live_t *live, const um_ev_hint_t *hint,
                         uint32_t own)
{
    uint64_t addr = hint->addr > live->addr ? hint->addr : live->addr;
    uint64_t end = hint->bytes < live->addr + live->bytes - addr ? addr + hint->bytes
                                                                 : live->addr + live->bytes;
    uint64_t there = 0;
    uint8_t target = hint->device < 0 ? ON_HOST : ON_GPU;

    for (uint64_t next; addr < end; addr = next) {
        um_block_use_t *block = block_at(stat, live, addr);
        uint64_t bytes;

        next = addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES + UM_BLOCK_BYTES;
        next = next < end ? next : end;
        bytes = next - addr;
        if (!block)
            break;
        if (block->where == target) {
            there += bytes;
            continue;
        }
        if (target == ON_HOST)
            settle(stat, live, block, bytes);
        if (bytes < block_bytes(live, addr)) {
            block->where = ON_BOTH;
            continue;
        }
        block->where = target;
        block->arrived = target == ON_GPU ? (uint32_t)bytes : 0;
        if (target == ON_GPU) {
            block->hint = own;
            block->launches = (uint32_t)live->use.sums.launches;
            block->all_launches = (uint32_t)stat->uses.launches;
        }
    }
    return there;
}

static um_status_t on_hint(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;
    bool app = !strcmp(hint->who, "app");
    um_live_t *live = um_regions_stat_by_id(stat, hint->region);
    um_own_hint_t *own = NULL;
    uint64_t there;

    if (!live)
        live = hint->addr ? um_regions_stat_find(stat, hint->addr) : NULL;
    if (!live || (hint->result != UM_HINT_APPLIED && hint->result != UM_HINT_FAILED))
        return UM_OK;
    if (app) {
        own = own_get(&stat->uses, hint, live->group);
        if (!own)
            return UM_ERR_NO_MEMORY;
        own->calls++;
        own->ns += hint->duration_ns;
        own->bytes += hint->bytes;
        own->failed += hint->result == UM_HINT_FAILED;
    }
    if (hint->result == UM_HINT_FAILED)
        return UM_OK;
    if (hint->kind != UM_HINT_PREFETCH) {
        bool held = advise(&live->use, hint);

        if (own) {
            own->redundant_calls += held;
            own->redundant_bytes += held ? hint->bytes : 0;
        }
        return UM_OK;
    }
    there = prefetch(stat, live, hint, own ? (uint32_t)(own - stat->uses.own) + 1 : 0);
    if (own) {
        live->use.sums.prefetched_bytes += hint->bytes;
        own->redundant_bytes += there;
        own->redundant_calls += there && there >= hint->bytes;
        stat->uses.last_prefetch =
            hint->device >= 0 ? (uint32_t)(own - stat->uses.own) + 1 : stat->uses.last_prefetch;
    }
    return UM_OK;
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void on_gpu_fault(um_regions_stat_t *stat, const um_ev_gpu_fault_t *fault, uint64_t ns)
{
    um_live_t *live = um_regions_stat_find(stat, fault->addr);
    um_block_use_t *block = live && live->use.blocks ? block_at(stat, live, fault->addr) : NULL;

    if (!live)
        return;
    if (fault->device >= 0 && fault->device < 64)
        live->use.devices |= UINT64_C(1) << fault->device;
    if (live->use.read_mostly &&
        (fault->access == UM_ACCESS_WRITE || fault->access == UM_ACCESS_ATOMIC)) {
        live->use.sums.written_faults++;
        live->use.sums.written_ns += ns;
    }
    if (block && block->hint) {
        um_own_hint_t *own = &stat->uses.own[block->hint - 1];

        own->late_faults++;
        own->late_ns += ns;
        if (unused(stat, live, block) || block->launches + 1 == (uint32_t)live->use.sums.launches)
            own->late_bytes += UM_BIG_PAGE_BYTES;
    }
}

static void on_launch(um_regions_stat_t *stat, const um_ev_launch_t *launch)
{
    stat->uses.last_prefetch = 0;
    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    stat->uses.launches++;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        um_live_t *live = um_regions_stat_by_id(stat, launch->args[i].region);
        bool again = false;

        for (uint32_t k = 0; k < i && !again; k++) /* few arguments */
            again = launch->args[k].region == launch->args[i].region;
        if (!live || again)
            continue;
        live->use.sums.launches++;
        if (launch->device >= 0 && launch->device < 64)
            live->use.devices |= UINT64_C(1) << launch->device;
        if (!live->use.located)
            continue;
        live->use.sums.far_launches += live->use.preferred < 0;
        live->use.sums.other_launches +=
            live->use.preferred >= 0 && live->use.preferred != launch->device;
    }
}

static void on_copy(um_regions_stat_t *stat, const um_ev_copy_t *copy)
{
    uint32_t end[2] = {copy->dst_region, copy->src_region};

    for (int i = 0; i < 2; i++) {
        um_live_t *live = um_regions_stat_by_id(stat, end[i]);

        if (!live)
            continue;
        live->use.sums.copies++;
        live->use.sums.copied_bytes += copy->bytes;
    }
}

static void on_alloc(um_regions_stat_t *stat, const um_ev_region_alloc_t *alloc)
{
    um_live_t *live = um_regions_stat_by_id(stat, alloc->region);
    um_uses_stat_t *uses = &stat->uses;

    if (!live || live->family >= UM_FAMILY_COUNT)
        return;
    uses->live_bytes[live->family] += live->bytes;
    if (uses->live_bytes[live->family] > uses->peak_bytes[live->family])
        uses->peak_bytes[live->family] = uses->live_bytes[live->family];
    live->use.waits_at_alloc = uses->waits;
}

um_status_t um_uses_event(um_regions_stat_t *stat, const um_event_t *event, uint64_t charged_ns)
{
    um_live_t *live;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        on_alloc(stat, &event->u.region_alloc);
        break;
    case UM_EV_MIGRATE:
        on_migrate(stat, &event->u.migrate);
        break;
    case UM_EV_HINT:
        return on_hint(stat, event);
    case UM_EV_GPU_FAULT:
        on_gpu_fault(stat, &event->u.gpu_fault, charged_ns);
        break;
    case UM_EV_CPU_FAULT:
        live = um_regions_stat_find(stat, event->u.cpu_fault.addr);
        if (live && live->use.located) {
            live->use.sums.far_cpu_faults += live->use.preferred < 0;
            live->use.sums.near_cpu_faults += live->use.preferred >= 0;
        }
        break;
    case UM_EV_LAUNCH:
        on_launch(stat, &event->u.launch);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit) {
            stat->uses.waits++;
            stat->uses.last_prefetch = 0;
        }
        break;
    case UM_EV_COPY:
        on_copy(stat, &event->u.copy);
        break;
    default:
        break;
    }
    return UM_OK;
}

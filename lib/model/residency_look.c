#include <string.h>

#include "residency_impl.h"

#define ROTATING   2u /* further pages of a sample, elsewhere each time */
#define LOOK_BYTES (64u << 20)

/* For a launch made at launch_ns, UINT64_MAX = one that is yet to be made. */
static bool stale(const um_residency_t *residency, const um_region_state_t *region, uint32_t b,
                  uint64_t launch_ns)
{
    const um_block_state_t *block = &region->block[b];

    if (block->looked_ns < region->again_ns)
        return true;
    /* One look for all the launches that had been made by then. */
    if (b >= region->seen_first && b < region->seen_end && region->seen_ns >= launch_ns)
        return false;
    switch (block->where) {
    case UM_WHERE_DEVICE:
    case UM_WHERE_BOTH:
        return !block->looked_ns || block->looked_ns < residency->sync_ns;
    default:
        return block->looked_ns < launch_ns;
    }
}

static void remember(um_region_state_t *region, uint32_t b)
{
    for (uint32_t i = 0; i < region->n_hot; i++)
        if (region->hot[i] == b)
            return;
    if (region->n_hot < UM_HOT_BLOCKS)
        region->hot[region->n_hot++] = b;
    else
        region->hot[region->rotor++ % UM_HOT_BLOCKS] = b;
}

static bool page_present(um_residency_t *residency, const um_region_state_t *region, uint32_t b,
                         uint64_t page)
{
    uint64_t start = um_block_start(region, b);
    uint64_t pages = (um_block_end(region, b) - start + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES;

    residency->stats.samples++;
    return residency->tables.page(residency->tables.ctx, start + page % pages * UM_PAGE_BYTES);
}

static bool sample_hits(um_residency_t *residency, um_region_state_t *region)
{
    uint32_t span = region->end - region->first;

    if (page_present(residency, region, region->first, 0) ||
        page_present(residency, region, region->end - 1, UINT32_MAX))
        return true;
    for (uint32_t i = 0; i < region->n_hot; i++)
        if (region->hot[i] >= region->first && region->hot[i] < region->end &&
            page_present(residency, region, region->hot[i], 0))
            return true;
    for (uint32_t i = 0; i < ROTATING; i++) {
        /* A step coprime to most spans visits every block in time; pages move along with it. */
        region->rotor += 2654435761u;
        if (page_present(residency, region, region->first + region->rotor % span, region->rotor))
            return true;
    }
    return false;
}

static void set_looked(um_region_state_t *region, uint64_t looked_ns)
{
    for (uint32_t b = region->first; b < region->end; b++)
        region->block[b].looked_ns = looked_ns;
}

/* They have been looked at, or found by a sample to be as they were, for the launch under way. */
static void set_seen(um_region_state_t *region, uint32_t first, uint32_t end, uint64_t now_ns)
{
    if (region->seen_for_ns != region->launch_ns || first != region->seen_end) {
        region->seen_for_ns = region->launch_ns;
        region->seen_ns = now_ns;
        region->seen_first = first;
    }
    region->seen_end = end;
}

static void decide_look(um_residency_t *residency, um_region_state_t *region)
{
    bool any = false;
    bool due = ++region->unsynced >= UM_UNSYNCED_MAX;

    region->look = UM_LOOK_CLEAN;
    if (!residency->can_look)
        return;
    for (uint32_t b = region->first; b < region->end; b++)
        if (stale(residency, region, b, region->launch_ns)) {
            any = true;
            region->fresh |= region->block[b].where != UM_WHERE_DEVICE &&
                             region->block[b].where != UM_WHERE_BOTH;
        }
    if (!any && !due)
        return;
    region->unsynced = 0;
    if (any && (region->fresh || region->interval == 1 || ++region->since >= region->interval)) {
        region->look = UM_LOOK_WHOLE;
    } else if (sample_hits(residency, region)) {
        region->look = UM_LOOK_WHOLE;
        region->interval = 1;
        region->again_ns = region->launch_ns;
    } else {
        set_looked(region, region->launch_ns);
        set_seen(region, region->first, region->end,
                 residency->tables.now_ns(residency->tables.ctx));
    }
    if (region->look == UM_LOOK_WHOLE)
        region->since = 0;
}

/* Nothing of the block is on the host. */
static void set_absent(um_block_state_t *block)
{
    block->away = UM_AWAY;
    if ((block->where == UM_WHERE_HOST && !block->evicted) || block->where == UM_WHERE_BOTH) {
        block->where = UM_WHERE_DEVICE;
        block->device = UM_DEVICE_NONE;
    }
}

static void set_present(um_region_state_t *region, uint32_t b)
{
    um_block_state_t *block = &region->block[b];
    /* A duplicate is there only once the GPU has had it. */
    bool both = block->advice & UM_ADVICE_MAPPED ||
                (block->advice & UM_ADVICE_READ_MOSTLY &&
                 (block->where == UM_WHERE_DEVICE || block->where == UM_WHERE_BOTH));

    block->evicted = false;
    block->away = 0;
    block->where = both ? UM_WHERE_BOTH : UM_WHERE_HOST;
    block->device = both ? block->device : UM_DEVICE_HOST;
    if (both)
        return;
    if (!region->hit)
        region->n_hot = 0;
    region->hit = true;
    remember(region, b);
}

/* The CPU has taken [addr, end) since the last look. */
static void tell(const um_residency_t *residency, const um_region_state_t *region, uint64_t addr,
                 uint64_t end, uint64_t now_ns)
{
    um_event_t event = {.type = UM_EV_RESIDENCY, .time_ns = now_ns};

    if (addr >= end || !residency->told)
        return;
    event.u.residency = (um_ev_residency_t){.addr = addr,
                                            .bytes = end - addr,
                                            .present_bytes = end - addr,
                                            .region = region->id,
                                            .sync = residency->sync};
    residency->told(residency->told_ctx, &event);
}

/* An extent is present that meets blocks [from, to); those before `next` have been dealt with, the last
 * of them for this extent's left neighbour, `taken` since the last look or not. Returns what that last one
 * is now. */
static bool set_extent(const um_residency_t *residency, um_region_state_t *region,
                       const um_extent_t *extent, uint32_t from, uint32_t to, uint32_t next,
                       bool taken, uint64_t now_ns)
{
    uint64_t start = extent->addr, stop = start; /* the run that was taken */

    for (uint32_t b = from; b < to; b++) {
        uint64_t end = um_block_end(region, b);

        if (b >= next) {
            taken = region->block[b].away >= UM_AWAY;
            set_present(region, b);
        }
        if (end > extent->addr + extent->bytes)
            end = extent->addr + extent->bytes;
        if (!taken) {
            tell(residency, region, start, stop, now_ns);
            start = end;
        }
        stop = end;
    }
    tell(residency, region, start, stop, now_ns);
    return taken;
}

/* Asks about blocks [first, end), at most LOOK_BYTES of them, for a launch made at launch_ns. What the CPU takes after
 * the next wait must be found at the next launch, even if that wait is over by now. */
static void look_at(um_residency_t *residency, um_region_state_t *region, uint32_t first,
                    uint32_t end, uint64_t launch_ns)
{
    uint64_t addr = um_block_start(region, first), bytes = um_block_end(region, end - 1) - addr;
    uint64_t present_bytes, now;
    size_t n = 0;
    uint32_t b = first;
    bool taken = false;

    residency->stats.looks++;
    residency->stats.looked_bytes += bytes;
    if (residency->tables.present(residency->tables.ctx, addr, bytes, residency->found,
                                  UM_LOOK_EXTENTS, &n, &present_bytes) != UM_OK) {
        residency->can_look = false; /* from now on like a system without page tables */
        return;
    }
    now = residency->tables.now_ns(residency->tables.ctx);
    for (size_t i = 0; i < n && i < UM_LOOK_EXTENTS; i++) {
        uint32_t from, to;

        if (!um_blocks_of(region, residency->found[i].addr, residency->found[i].bytes, &from, &to))
            continue;
        for (; b < from && b < end; b++)
            set_absent(&region->block[b]);
        if (to > end)
            to = end;
        if (from < to)
            taken = set_extent(residency, region, &residency->found[i], from, to, b, taken, now);
        if (to > b)
            b = to;
    }
    for (; b < end; b++)
        set_absent(&region->block[b]);
    for (b = first; b < end; b++)
        region->block[b].looked_ns = launch_ns;
}

bool um_residency_peek(um_residency_t *residency, uint32_t id, uint64_t addr, um_chunks_t *out)
{
    um_region_state_t *region = um_residency_find(residency, id);
    um_extent_t found[UM_BLOCK_BYTES / UM_BIG_PAGE_BYTES + 1];
    uint64_t present_bytes;
    uint32_t first, end;
    size_t n = 0;

    if (!region || !residency->can_look ||
        !um_blocks_of(region, addr, UM_BLOCK_BYTES, &first, &end) || region->block[first].advice ||
        residency->tables.present(residency->tables.ctx, addr, UM_BLOCK_BYTES, found,
                                  sizeof(found) / sizeof(found[0]), &n, &present_bytes) != UM_OK)
        return false;
    residency->stats.samples++;
    *out = (um_chunks_t){0};
    for (size_t i = 0; i < n && i < sizeof(found) / sizeof(found[0]); i++) {
        uint64_t from = found[i].addr - addr, to = from + found[i].bytes;

        for (uint64_t c = from / UM_BIG_PAGE_BYTES; c * UM_BIG_PAGE_BYTES < to; c++) {
            out->any |= 1u << c;
            if (c * UM_BIG_PAGE_BYTES >= from && (c + 1) * UM_BIG_PAGE_BYTES <= to)
                out->all |= 1u << c;
        }
    }
    if (!out->any && end == first + 1 && region->block[first].where == UM_WHERE_HOST) {
        set_absent(&region->block[first]);
        region->block[first].looked_ns =
            um_known_until(residency, residency->tables.now_ns(residency->tables.ctx));
    }
    return true;
}

bool um_residency_whole(um_residency_t *residency, uint32_t id, uint64_t addr, uint32_t n,
                        uint64_t *bits)
{
    um_region_state_t *region = um_residency_find(residency, id);
    const uint32_t step = LOOK_BYTES / UM_BLOCK_BYTES;
    uint32_t first, end;

    if (!region || !residency->can_look ||
        !um_blocks_of(region, addr, n * (uint64_t)UM_BLOCK_BYTES, &first, &end))
        return false;
    memset(bits, 0, (n + 63) / 64 * sizeof(*bits));
    for (uint32_t b = first; b < end; b++)
        if (region->block[b].advice)
            return false;
    for (uint32_t at = 0; at < n; at += step) {
        uint32_t blocks = n - at < step ? n - at : step;
        uint64_t from = addr + at * (uint64_t)UM_BLOCK_BYTES, present_bytes;
        size_t found = 0;

        residency->stats.looks++;
        residency->stats.looked_bytes += blocks * (uint64_t)UM_BLOCK_BYTES;
        if (residency->tables.present(residency->tables.ctx, from,
                                      blocks * (uint64_t)UM_BLOCK_BYTES, residency->found,
                                      UM_LOOK_EXTENTS, &found, &present_bytes) != UM_OK)
            return false;
        for (size_t i = 0; i < found && i < UM_LOOK_EXTENTS; i++) {
            const um_extent_t *extent = &residency->found[i];
            uint64_t whole = (extent->addr - addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;

            for (; whole < n && (whole + 1) * UM_BLOCK_BYTES <= extent->addr + extent->bytes - addr;
                 whole++)
                bits[whole / 64] |= (uint64_t)1 << whole % 64;
        }
    }
    return true;
}

uint64_t um_residency_now(const um_residency_t *residency)
{
    return residency->can_look ? residency->tables.now_ns(residency->tables.ctx) : 0;
}

void um_residency_look(um_residency_t *residency, um_region_state_t *region, uint32_t first,
                       uint32_t end)
{
    if (region->look == UM_LOOK_UNDECIDED)
        decide_look(residency, region);
    if (region->look != UM_LOOK_WHOLE)
        return;
    for (uint32_t b = first; b < end && residency->can_look;) {
        uint32_t stop = b;

        while (stop < end && stop - b < LOOK_BYTES / UM_BLOCK_BYTES &&
               stale(residency, region, stop, region->launch_ns))
            stop++;
        if (stop > b) {
            set_seen(region, b, stop, residency->tables.now_ns(residency->tables.ctx));
            look_at(residency, region, b, stop, region->launch_ns);
        }
        b = stop > b ? stop : b + 1;
    }
}

static bool is_there(const um_block_state_t *block)
{
    return block->where == UM_WHERE_DEVICE || block->where == UM_WHERE_BOTH;
}

static bool may_have_changed(const um_residency_t *residency, const um_region_state_t *region,
                             uint32_t b, bool doubt)
{
    return !is_there(&region->block[b]) || (doubt && stale(residency, region, b, UINT64_MAX));
}

void um_residency_refresh(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                          bool doubt)
{
    um_region_state_t *region = um_residency_find(residency, id);
    /* The CPU may take it yet: the next launch has to ask again. */
    uint64_t known_ns = residency->sync_ns ? residency->sync_ns - 1 : 0;
    uint32_t first, end;

    if (!region || region->look != UM_LOOK_NONE || !um_blocks_of(region, addr, bytes, &first, &end))
        return;
    for (uint32_t b = first; b < end && residency->can_look;) {
        uint32_t stop = b;

        while (stop < end && stop - b < LOOK_BYTES / UM_BLOCK_BYTES &&
               may_have_changed(residency, region, stop, doubt))
            stop++;
        if (stop > b)
            look_at(residency, region, b, stop, known_ns);
        b = stop > b ? stop : b + 1;
    }
}

void um_residency_taken(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                        uint64_t launch_ns)
{
    um_region_state_t *region = um_residency_find(residency, id);
    uint32_t first, end;

    if (!region || region->word & UM_REGION_HINT_OFF ||
        !um_blocks_of(region, addr, bytes, &first, &end))
        return;
    for (uint32_t b = first; b < end && residency->can_look;) {
        uint32_t stop = b;

        while (stop < end && stop - b < LOOK_BYTES / UM_BLOCK_BYTES &&
               is_there(&region->block[stop]) && stale(residency, region, stop, launch_ns))
            stop++;
        if (stop > b)
            look_at(residency, region, b, stop, launch_ns);
        b = stop > b ? stop : b + 1;
    }
}

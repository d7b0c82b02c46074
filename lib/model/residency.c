#include "residency.h"

#include <stdlib.h>
#include <string.h>

#define MAX_INTERVAL 64u /* at least every so many stale launches a whole look */
#define UNSYNCED_MAX 64u /* a program that never waits is sampled this often all the same */
#define AWAY         (UM_BLOCK_BYTES / UM_PAGE_BYTES / 2) /* pages of a block that have to have gone */
#define HOT_BLOCKS   4u    /* places where something was found, sampled first */
#define ROTATING     2u    /* further pages of a sample, elsewhere each time */
#define LOOK_EXTENTS 1024u /* enough for LOOK_BYTES at the 64 KiB merging distance */
#define LOOK_BYTES   (64u << 20)

typedef struct block {
    uint64_t looked_ns; /* when the host side was last known; 0 = must be looked at */
    uint8_t where;      /* um_where_t */
    int8_t device;
    uint8_t advice; /* advice_t bits: in force for some of it, ours or the program's */
    bool evicted;   /* pages the CPU does not map although it has them: no look finds them */
    bool left;      /* the launch under way is not believed to take it */
    uint16_t away;  /* pages that are known, not only believed, to have gone to a device */
} block_t;

typedef enum advice {
    ADVICE_READ_MOSTLY = 1 << 0, /* its pages are duplicated */
    ADVICE_PREFERRED = 1 << 1,   /* its place is the CPU */
    ADVICE_ACCESSED_BY = 1 << 2, /* the GPU reaches it where it is */
    ADVICE_MAPPED = ADVICE_PREFERRED | ADVICE_ACCESSED_BY
} advice_t;

typedef enum look { LOOK_NONE, LOOK_UNDECIDED, LOOK_CLEAN, LOOK_WHOLE } look_t;

typedef struct region {
    uint32_t id;
    uint32_t n_blocks;
    uint64_t addr, bytes;
    uint64_t role;
    uint32_t word;            /* um_region_hint_flag_t: the program's */
    bool duplicated;          /* some of it is to have a copy on each side */
    uint32_t interval, since; /* a whole look every interval-th time; times since */
    uint32_t unsynced;        /* launches since the last look of any kind */
    uint32_t hot[HOT_BLOCKS], n_hot, rotor;
    /* Blocks known to be on a device since a time: what lets a launch be passed over at once. */
    uint32_t settled_first, settled_end;
    int32_t settled_device;
    uint64_t settled_ns;
    /* the launch under way */
    look_t look;
    uint32_t first, end; /* its blocks */
    uint64_t launch_ns;
    bool hit, fresh; /* something is on the host; some of it was seen for the first time */
    block_t block[];
} region_t;

struct um_residency {
    um_page_tables_t tables;
    bool can_look;
    uint64_t sync_ns; /* the CPU last left a wait for the GPU */
    uint32_t sync;    /* and which one */
    um_event_fn told;
    void *told_ctx;
    region_t **region; /* by id */
    size_t n, room;
    um_residency_stats_t stats;
    um_extent_t found[LOOK_EXTENTS];
};

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

static region_t *find(const um_residency_t *residency, uint32_t id)
{
    size_t at = position(residency, id);

    return at < residency->n && residency->region[at]->id == id ? residency->region[at] : NULL;
}

static uint64_t block_start(const region_t *region, uint32_t n)
{
    uint64_t start = (region->addr / UM_BLOCK_BYTES + n) * UM_BLOCK_BYTES;

    return start < region->addr ? region->addr : start;
}

static uint64_t block_end(const region_t *region, uint32_t n)
{
    uint64_t end = (region->addr / UM_BLOCK_BYTES + n + 1) * UM_BLOCK_BYTES;

    return end > region->addr + region->bytes ? region->addr + region->bytes : end;
}

/* The blocks that meet [addr, addr+bytes) of the region; false when there are none. */
static bool blocks_of(const region_t *region, uint64_t addr, uint64_t bytes, uint32_t *first,
                      uint32_t *end)
{
    uint64_t base = region->addr / UM_BLOCK_BYTES;
    uint64_t stop = region->addr + region->bytes;

    if (addr + bytes < stop && addr + bytes >= addr)
        stop = addr + bytes;
    if (addr < region->addr)
        addr = region->addr;
    if (addr >= stop)
        return false;
    *first = (uint32_t)(addr / UM_BLOCK_BYTES - base);
    *end = (uint32_t)((stop - 1) / UM_BLOCK_BYTES - base + 1);
    return true;
}

static void remove_region(um_residency_t *residency, uint32_t id)
{
    size_t at = position(residency, id);

    if (at == residency->n || residency->region[at]->id != id)
        return;
    free(residency->region[at]);
    memmove(&residency->region[at], &residency->region[at + 1],
            (residency->n - at - 1) * sizeof(region_t *));
    residency->n--;
}

/* A region that cannot be kept for lack of memory is as good as unknown: it gets no hints. */
static void add_region(um_residency_t *residency, const um_ev_region_alloc_t *alloc)
{
    bool before = alloc->flags & UM_REGION_BEFORE_UMRT;
    uint64_t n_blocks;
    region_t *region;
    size_t at;

    /* Above INT64_MAX no program has memory, and what adds to an address would go round. */
    if (alloc->family != UM_FAMILY_MANAGED || !alloc->bytes || alloc->addr > INT64_MAX ||
        alloc->bytes > INT64_MAX - alloc->addr)
        return;
    remove_region(residency, alloc->region);
    n_blocks = (alloc->addr + alloc->bytes - 1) / UM_BLOCK_BYTES - alloc->addr / UM_BLOCK_BYTES + 1;
    if (n_blocks > UINT32_MAX)
        return;
    if (residency->n == residency->room) {
        size_t room = residency->room ? 2 * residency->room : 64;
        region_t **grown = realloc(residency->region, room * sizeof(region_t *));

        if (!grown)
            return;
        residency->region = grown;
        residency->room = room;
    }
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
            (residency->n - at) * sizeof(region_t *));
    residency->region[at] = region;
    residency->n++;
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
    region_t *region = find(residency, id);
    uint32_t first, end;

    if (!region || !blocks_of(region, addr, bytes, &first, &end))
        return;
    region->settled_end = 0;
    for (uint32_t b = first; b < end; b++)
        if (!looked_ns || region->block[b].looked_ns <= looked_ns)
            region->block[b] = (block_t){.looked_ns = looked_ns,
                                         .where = (uint8_t)where,
                                         .device = (int8_t)device,
                                         .away = where == UM_WHERE_DEVICE && looked_ns ? AWAY : 0,
                                         .advice = region->block[b].advice};
}

static void advise(region_t *region, const um_ev_hint_t *hint, uint8_t set, uint8_t unset)
{
    uint32_t first, end;

    if (!blocks_of(region, hint->addr, hint->bytes, &first, &end))
        return;
    region->settled_end = 0;
    for (uint32_t b = first; b < end; b++)
        region->block[b].advice = (uint8_t)((region->block[b].advice | set) & ~unset);
}

/* Records say what page tables cannot: data that the driver evicted is with the CPU, unmapped. */
static void on_migrate(um_residency_t *residency, const um_ev_migrate_t *move, uint64_t now_ns)
{
    region_t *region = find(residency, move->region);
    uint32_t first, end;
    bool evicted = move->dst == UM_DEVICE_HOST && move->cause == UM_CAUSE_EVICTION;

    if (!region || (!evicted && move->dst < 0) ||
        !blocks_of(region, move->addr, move->bytes, &first, &end))
        return;
    for (uint32_t b = first; b < end; b++) {
        block_t *block = &region->block[b];

        if (!evicted && block->away < AWAY)
            block->away += (uint16_t)(end - first > 1 ? AWAY : move->bytes / UM_PAGE_BYTES);
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
    region_t *region = find(residency, hint->region);
    bool own = strcmp(hint->who, "app") != 0;

    if (!region || hint->result == UM_HINT_FAILED || (own && hint->result != UM_HINT_APPLIED))
        return;
    switch (hint->kind) {
    case UM_HINT_PREFETCH:
        if (hint->device == UM_DEVICE_HOST)
            put(residency, hint->region, hint->addr, hint->bytes, UM_WHERE_HOST, UM_DEVICE_HOST, 0);
        else
            put(residency, hint->region, hint->addr, hint->bytes, UM_WHERE_DEVICE, hint->device,
                now_ns);
        break;
    case UM_HINT_READ_MOSTLY:
        region->duplicated = true;
        advise(region, hint, ADVICE_READ_MOSTLY, 0);
        break;
    case UM_HINT_UNSET_READ_MOSTLY:
        region->duplicated = false;
        advise(region, hint, 0, ADVICE_READ_MOSTLY);
        break;
    case UM_HINT_PREFERRED_LOCATION:
        if (hint->device == UM_DEVICE_HOST)
            advise(region, hint, ADVICE_PREFERRED, 0);
        else
            advise(region, hint, 0, ADVICE_PREFERRED);
        break;
    case UM_HINT_UNSET_PREFERRED_LOCATION:
        advise(region, hint, 0, ADVICE_PREFERRED);
        break;
    case UM_HINT_ACCESSED_BY:
        if (hint->device != UM_DEVICE_HOST)
            advise(region, hint, ADVICE_ACCESSED_BY, 0);
        break;
    case UM_HINT_UNSET_ACCESSED_BY:
        advise(region, hint, 0, ADVICE_ACCESSED_BY);
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
        region_t *region = find(residency, event->u.region_hint.region);

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

/* ---- looking ---- */

static bool stale(const um_residency_t *residency, const region_t *region, uint32_t b)
{
    const block_t *block = &region->block[b];

    switch (block->where) {
    case UM_WHERE_DEVICE:
    case UM_WHERE_BOTH:
        return !block->looked_ns || block->looked_ns < residency->sync_ns;
    default:
        return block->looked_ns < region->launch_ns;
    }
}

static void remember(region_t *region, uint32_t b)
{
    for (uint32_t i = 0; i < region->n_hot; i++)
        if (region->hot[i] == b)
            return;
    if (region->n_hot < HOT_BLOCKS)
        region->hot[region->n_hot++] = b;
    else
        region->hot[region->rotor++ % HOT_BLOCKS] = b;
}

static bool page_present(um_residency_t *residency, const region_t *region, uint32_t b,
                         uint64_t page)
{
    uint64_t start = block_start(region, b);
    uint64_t pages = (block_end(region, b) - start + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES;

    residency->stats.samples++;
    return residency->tables.page(residency->tables.ctx, start + page % pages * UM_PAGE_BYTES);
}

static bool sample_hits(um_residency_t *residency, region_t *region)
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

static void set_looked(region_t *region, uint64_t looked_ns)
{
    for (uint32_t b = region->first; b < region->end; b++)
        region->block[b].looked_ns = looked_ns;
}

static void decide_look(um_residency_t *residency, region_t *region)
{
    bool any = false;
    bool due = ++region->unsynced >= UNSYNCED_MAX;

    region->look = LOOK_CLEAN;
    if (!residency->can_look)
        return;
    for (uint32_t b = region->first; b < region->end; b++)
        if (stale(residency, region, b)) {
            any = true;
            region->fresh |= region->block[b].where != UM_WHERE_DEVICE &&
                             region->block[b].where != UM_WHERE_BOTH;
        }
    if (!any && !due)
        return;
    region->unsynced = 0;
    if (any && (region->fresh || region->interval == 1 || ++region->since >= region->interval)) {
        region->look = LOOK_WHOLE;
    } else if (sample_hits(residency, region)) {
        region->look = LOOK_WHOLE;
        region->interval = 1;
        set_looked(region, 0);
    } else {
        set_looked(region, residency->tables.now_ns(residency->tables.ctx));
    }
    if (region->look == LOOK_WHOLE)
        region->since = 0;
}

/* Nothing of the block is on the host. */
static void set_absent(block_t *block)
{
    block->away = AWAY;
    if ((block->where == UM_WHERE_HOST && !block->evicted) || block->where == UM_WHERE_BOTH) {
        block->where = UM_WHERE_DEVICE;
        block->device = UM_DEVICE_NONE;
    }
}

static void set_present(region_t *region, uint32_t b)
{
    block_t *block = &region->block[b];
    /* A duplicate is there only once the GPU has had it. */
    bool both = block->advice & ADVICE_MAPPED ||
                (block->advice & ADVICE_READ_MOSTLY &&
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
static void tell(const um_residency_t *residency, const region_t *region, uint64_t addr,
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
static bool set_extent(const um_residency_t *residency, region_t *region, const um_extent_t *extent,
                       uint32_t from, uint32_t to, uint32_t next, bool taken, uint64_t now_ns)
{
    uint64_t start = extent->addr, stop = start; /* the run that was taken */

    for (uint32_t b = from; b < to; b++) {
        uint64_t end = block_end(region, b);

        if (b >= next) {
            taken = region->block[b].away >= AWAY;
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

/* Asks about blocks [first, end), at most LOOK_BYTES of them. */
static void look_at(um_residency_t *residency, region_t *region, uint32_t first, uint32_t end)
{
    uint64_t addr = block_start(region, first), bytes = block_end(region, end - 1) - addr;
    uint64_t present_bytes, now;
    size_t n = 0;
    uint32_t b = first;
    bool taken = false;

    residency->stats.looks++;
    residency->stats.looked_bytes += bytes;
    if (residency->tables.present(residency->tables.ctx, addr, bytes, residency->found,
                                  LOOK_EXTENTS, &n, &present_bytes) != UM_OK) {
        residency->can_look = false; /* from now on like a system without page tables */
        return;
    }
    now = residency->tables.now_ns(residency->tables.ctx);
    for (size_t i = 0; i < n && i < LOOK_EXTENTS; i++) {
        uint32_t from, to;

        if (!blocks_of(region, residency->found[i].addr, residency->found[i].bytes, &from, &to))
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
        region->block[b].looked_ns = now;
}

bool um_residency_peek(um_residency_t *residency, uint32_t id, uint64_t addr, um_chunks_t *out)
{
    region_t *region = find(residency, id);
    um_extent_t found[UM_BLOCK_BYTES / UM_BIG_PAGE_BYTES + 1];
    uint64_t present_bytes;
    uint32_t first, end;
    size_t n = 0;

    if (!region || !residency->can_look || !blocks_of(region, addr, UM_BLOCK_BYTES, &first, &end) ||
        region->block[first].advice ||
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
        region->block[first].looked_ns = residency->tables.now_ns(residency->tables.ctx);
    }
    return true;
}

uint64_t um_residency_now(const um_residency_t *residency)
{
    return residency->can_look ? residency->tables.now_ns(residency->tables.ctx) : 0;
}

static void look(um_residency_t *residency, region_t *region, uint32_t first, uint32_t end)
{
    if (region->look == LOOK_UNDECIDED)
        decide_look(residency, region);
    if (region->look != LOOK_WHOLE)
        return;
    for (uint32_t b = first; b < end && residency->can_look;) {
        uint32_t stop = b;

        while (stop < end && stop - b < LOOK_BYTES / UM_BLOCK_BYTES &&
               stale(residency, region, stop))
            stop++;
        if (stop > b)
            look_at(residency, region, b, stop);
        b = stop > b ? stop : b + 1;
    }
}

/* ---- launches and answers ---- */

void um_residency_launch_begin(um_residency_t *residency, uint32_t id, uint64_t addr,
                               uint64_t bytes, uint64_t now_ns)
{
    region_t *region = find(residency, id);

    if (!region || !blocks_of(region, addr, bytes, &region->first, &region->end))
        return;
    region->look = LOOK_UNDECIDED;
    region->launch_ns = now_ns;
    region->hit = region->fresh = false;
}

void um_residency_launch_end(um_residency_t *residency, uint32_t id, int32_t device, bool useful)
{
    region_t *region = find(residency, id);
    uint64_t settled_ns = UINT64_MAX;
    uint32_t end;

    if (!region || region->look == LOOK_NONE)
        return;
    if (region->look == LOOK_WHOLE) {
        if (region->hit && useful)
            region->interval = 1;
        else if (!region->fresh && region->interval < MAX_INTERVAL)
            region->interval *= 2;
    }
    /* Where nobody asked, nothing is believed about what the launch uses. */
    end = region->look == LOOK_UNDECIDED ? region->first : region->end;
    region->look = LOOK_NONE;
    for (uint32_t b = region->first; b < end; b++) {
        block_t *block = &region->block[b];
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
    region_t *region = find(residency, id);
    uint32_t first, end;

    if (!region || region->look == LOOK_NONE || !blocks_of(region, addr, bytes, &first, &end))
        return;
    if (first < region->first)
        first = region->first;
    for (uint32_t b = first; b < end && b < region->end; b++)
        region->block[b].left = true;
}

void um_residency_doubt(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                        int32_t device)
{
    region_t *region = find(residency, id);
    uint32_t first, end;

    if (!region || !blocks_of(region, addr, bytes, &first, &end))
        return;
    for (uint32_t b = first; b < end; b++) {
        block_t *block = &region->block[b];

        if (block->where == UM_WHERE_DEVICE && block->device != device && block->away < AWAY)
            block->looked_ns = 0;
    }
}

static bool settled(const um_residency_t *residency, region_t *region, int32_t device)
{
    /* What is duplicated must be asked about before a kernel writes it. */
    return !region->duplicated && device == region->settled_device &&
           region->settled_ns >= residency->sync_ns && ++region->unsynced < UNSYNCED_MAX;
}

bool um_residency_settled(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                          int32_t device)
{
    region_t *region = find(residency, id);
    uint32_t first, end;

    return region && blocks_of(region, addr, bytes, &first, &end) &&
           first >= region->settled_first && end <= region->settled_end &&
           settled(residency, region, device);
}

bool um_residency_settled_from(um_residency_t *residency, uint32_t id, uint64_t addr,
                               int32_t device, uint64_t *bytes)
{
    region_t *region = find(residency, id);

    if (!region || region->settled_first >= region->settled_end ||
        addr / UM_BLOCK_BYTES != region->addr / UM_BLOCK_BYTES + region->settled_first ||
        !settled(residency, region, device))
        return false;
    *bytes = block_end(region, region->settled_end - 1) - addr;
    return true;
}

bool um_residency_region(const um_residency_t *residency, uint32_t id, uint64_t *addr,
                         uint64_t *bytes)
{
    const region_t *region = find(residency, id);

    if (!region || region->word & UM_REGION_HINT_OFF)
        return false;
    *addr = region->addr;
    *bytes = region->bytes;
    return true;
}

uint32_t um_residency_word(const um_residency_t *residency, uint32_t id)
{
    const region_t *region = find(residency, id);

    return region ? region->word : 0;
}

uint64_t um_residency_role(const um_residency_t *residency, uint32_t id)
{
    const region_t *region = find(residency, id);

    return region ? region->role : 0;
}

size_t um_residency_extents(um_residency_t *residency, uint32_t id, uint64_t addr, uint64_t bytes,
                            um_extent_t *out, size_t max)
{
    region_t *region = find(residency, id);
    uint32_t first, end;
    size_t n = 0;

    if (!region || region->word & UM_REGION_HINT_OFF ||
        !blocks_of(region, addr, bytes, &first, &end))
        return 0;
    if (region->look != LOOK_NONE)
        look(residency, region, first > region->first ? first : region->first,
             end < region->end ? end : region->end);
    for (uint32_t b = first; b < end; b++) {
        const block_t *block = &region->block[b];
        uint64_t start = block_start(region, b), stop = block_end(region, b);
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

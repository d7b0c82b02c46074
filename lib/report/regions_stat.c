#include "regions_stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

#define CPU_SEEN 4096u
/* Page states: 32768 blocks are 64 GiB of touched managed memory and about 150 MiB of ours. */
#define BLOCKS_MAX 32768u
/* One record moves at most a block; a damaged one must not cost more than this many pages. */
#define RECORD_PAGES_MAX 16384u
/* A copy answers a CPU fault of its block when it comes this soon after (the slowest seen: 0.3 ms). */
#define ANSWER_NS       5000000u
#define SHARED_MAX      4096u
#define BLOCK_TABLE_MAX (1u << 17) /* 256 GiB in one region */
/* No process has memory up there; keeps sums of addresses from wrapping. */
#define ADDR_MAX (UINT64_MAX - 2 * (uint64_t)UM_BLOCK_BYTES)

um_status_t um_regions_stat_init(um_regions_stat_t *stat)
{
    memset(stat, 0, sizeof(*stat));
    stat->blocks_left = BLOCKS_MAX;
    stat->cpu_seen = calloc(CPU_SEEN, sizeof(*stat->cpu_seen));
    return stat->cpu_seen ? UM_OK : UM_ERR_NO_MEMORY;
}

static uint64_t region_blocks(const um_live_t *live)
{
    uint64_t first = live->addr / UM_BLOCK_BYTES;
    uint64_t last = (live->addr + live->bytes - 1) / UM_BLOCK_BYTES;

    return last - first + 1;
}

static void live_free(um_regions_stat_t *stat, um_live_t *live)
{
    if (live->blocks) {
        for (uint64_t i = 0; i < region_blocks(live); i++) {
            if (live->blocks[i])
                stat->blocks_left++;
            free(live->blocks[i]);
        }
        free(live->blocks);
    }
    if (stat->last == live)
        stat->last = NULL;
    free(live);
}

void um_regions_stat_free(um_regions_stat_t *stat)
{
    for (size_t i = 0; i < stat->n_live; i++)
        live_free(stat, stat->live[i]);
    for (size_t i = 0; i < stat->n_groups; i++)
        free(stat->groups[i].label);
    free(stat->live);
    free(stat->by_id);
    free(stat->groups);
    free(stat->shared);
    free(stat->cpu_seen);
    um_map_free(&stat->group_of);
    um_map_free(&stat->shared_of);
}

int um_group_name(const um_group_t *group, char *out, size_t bytes)
{
    char size[32];

    if (group->label)
        return snprintf(out, bytes, "%s", group->label);
    if (!group->first_region)
        return snprintf(out, bytes, "(no known allocation)");
    um_units_bytes(group->bytes, size, sizeof(size));
    if (group->regions > 1)
        return snprintf(out, bytes, "%" PRIu32 " regions of %s", group->regions, size);
    return snprintf(out, bytes, "region %" PRIu32 " (%s)", group->first_region, size);
}

/* ---- groups ----------------------------------------------------------------------------------- */

static um_status_t group_get(um_regions_stat_t *stat, uint64_t key, uint32_t *out)
{
    um_status_t status;

    *out = um_map_find(&stat->group_of, key);
    if (*out != UM_MAP_NONE)
        return UM_OK;
    if (stat->n_groups == stat->groups_size) {
        size_t size = stat->groups_size ? stat->groups_size * 2 : 64;
        um_group_t *groups = realloc(stat->groups, size * sizeof(*groups));

        if (!groups)
            return UM_ERR_NO_MEMORY;
        stat->groups = groups;
        stat->groups_size = size;
    }
    status = um_map_put(&stat->group_of, key, (uint32_t)stat->n_groups);
    if (status)
        return status;
    *out = (uint32_t)stat->n_groups++;
    memset(&stat->groups[*out], 0, sizeof(um_group_t));
    return UM_OK;
}

static void group_join(um_regions_stat_t *stat, um_live_t *live)
{
    um_group_t *group = &stat->groups[live->group];

    if (!group->regions++) {
        group->bytes = live->id ? live->bytes : 0;
        group->family = live->family;
        group->call_site = live->call_site;
        group->first_region = live->id;
        group->first_addr = live->addr;
        group->last_trace = UINT32_MAX;
    }
    if (group->freed > group->reused)
        group->reused++;
    if (group->last_trace != stat->trace) {
        group->last_trace = stat->trace;
        group->traces++;
    }
}

static uint64_t group_key(const um_regions_stat_t *stat, const um_live_t *live, const char *label)
{
    uint64_t fixed[4] = {live->bytes, live->family, live->call_site, 0};

    if (!live->id)
        return 1;
    if (label) {
        fixed[2] = 0;
        return um_map_hash(label, strlen(label), um_map_hash(fixed, sizeof(fixed), 1));
    }
    if (!live->call_site) { /* nothing tells it from others: a group of its own */
        fixed[2] = live->id;
        fixed[3] = stat->trace + 1;
    }
    return um_map_hash(fixed, sizeof(fixed), 2);
}

static um_status_t set_label(um_regions_stat_t *stat, um_live_t *live, const char *label)
{
    um_group_t *group = &stat->groups[live->group];
    um_status_t status;
    uint32_t to;

    if (!*label || (group->label && !strcmp(group->label, label)))
        return UM_OK;
    if (live->active && group->regions > 1)
        return UM_OK; /* what it did is counted under the old name */
    if (!live->active) {
        status = group_get(stat, group_key(stat, live, label), &to);
        if (status)
            return status;
        group = &stat->groups[live->group];
        group->regions--;
        live->group = to;
        group_join(stat, live);
        group = &stat->groups[to];
    }
    if (!group->label) {
        group->label = strdup(label);
        if (!group->label)
            return UM_ERR_NO_MEMORY;
    }
    return UM_OK;
}

/* ---- live regions ----------------------------------------------------------------------------- */

/* Index of the first live region that ends after addr. */
static size_t live_index(const um_regions_stat_t *stat, uint64_t addr)
{
    size_t low = 0, high = stat->n_live;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (stat->live[middle]->addr + stat->live[middle]->bytes - 1 < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Index in by_id of the first region whose id is not below. */
static size_t id_index(const um_regions_stat_t *stat, uint32_t id)
{
    size_t low = 0, high = stat->n_by_id;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (stat->by_id[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

um_live_t *um_regions_stat_by_id(um_regions_stat_t *stat, uint32_t id)
{
    size_t at;

    if (!id)
        return NULL;
    at = id_index(stat, id);
    return at < stat->n_by_id && stat->by_id[at]->id == id ? stat->by_id[at] : NULL;
}

um_page_t *um_regions_stat_page(um_regions_stat_t *stat, um_live_t *live, uint64_t addr)
{
    uint64_t block = addr / UM_BLOCK_BYTES - live->addr / UM_BLOCK_BYTES;
    um_page_t *page;

    if (!live->blocks) {
        if (region_blocks(live) > BLOCK_TABLE_MAX)
            return NULL;
        live->blocks = calloc(region_blocks(live), sizeof(*live->blocks));
        if (!live->blocks)
            return NULL;
    }
    if (!live->blocks[block]) {
        if (!stat->blocks_left)
            return NULL;
        live->blocks[block] = calloc(1, sizeof(um_block_pages_t));
        if (!live->blocks[block])
            return NULL;
        stat->blocks_left--;
    }
    page = &live->blocks[block]->page[addr / UM_BIG_PAGE_BYTES % UM_PAGES_PER_BLOCK];
    page->seen = true;
    return page;
}

static um_status_t live_insert(um_regions_stat_t *stat, um_live_t *live)
{
    size_t at;

    if (stat->n_live == stat->live_size) {
        size_t size = stat->live_size ? stat->live_size * 2 : 64;
        um_live_t **array = realloc(stat->live, size * sizeof(um_live_t *));

        if (array)
            stat->live = array;
        array = array ? realloc(stat->by_id, size * sizeof(um_live_t *)) : NULL;
        if (!array)
            return UM_ERR_NO_MEMORY;
        stat->by_id = array;
        stat->live_size = size;
    }
    if (live->id) {
        at = id_index(stat, live->id);
        memmove(&stat->by_id[at + 1], &stat->by_id[at], (stat->n_by_id - at) * sizeof(um_live_t *));
        stat->by_id[at] = live;
        stat->n_by_id++;
    }
    at = live_index(stat, live->addr);
    memmove(&stat->live[at + 1], &stat->live[at], (stat->n_live - at) * sizeof(um_live_t *));
    stat->live[at] = live;
    stat->n_live++;
    live->serial = ++stat->serials;
    return UM_OK;
}

/* ---- folding ---------------------------------------------------------------------------------- */

static void sums_add(um_region_sums_t *to, const um_region_sums_t *from)
{
    const uint64_t *source = (const uint64_t *)from; /* nothing but counters */
    uint64_t *target = (uint64_t *)to;

    for (size_t i = 0; i < sizeof(*to) / sizeof(uint64_t); i++)
        target[i] += source[i];
}

static void set_extent(um_page_set_t *set, uint64_t offset, uint64_t bytes)
{
    if (!set->pages++ || offset < set->first_offset)
        set->first_offset = offset;
    if (offset + bytes > set->end_offset)
        set->end_offset = offset + bytes;
}

static void fold_page(um_group_t *group, const um_live_t *live, const um_page_t *page,
                      uint64_t page_addr, bool *pings, bool *tails)
{
    uint64_t start = page_addr > live->addr ? page_addr : live->addr;
    uint64_t end = page_addr + UM_BIG_PAGE_BYTES < live->addr + live->bytes
                       ? page_addr + UM_BIG_PAGE_BYTES
                       : live->addr + live->bytes;
    uint64_t offset = live->id ? start - live->addr : start;

    if (page->turns >= UM_PING_PONG_TURNS) {
        um_page_set_t *set = &group->ping_pong;

        set_extent(set, offset, end - start);
        set->in_copies += page->in_copies;
        set->in_bytes += page->in_bytes;
        set->out_copies += page->out_copies;
        set->out_bytes += page->out_bytes;
        set->out_running += page->out_running;
        set->gpu_faults += page->gpu_faults;
        set->cpu_faults += page->cpu_faults;
        set->cpu_faults_running += page->cpu_faults_running;
        set->gpu_ns += page->gpu_ns;
        set->wait_ns += page->wait_ns;
        set->throttle_ns += page->throttle_ns;
        set->thrash += page->thrash;
        if (page->turns > set->most_turns)
            set->most_turns = page->turns;
        if (page->pc)
            set->pc = page->pc;
        *pings = true;
    } else if (page->tail_copies || page->tail_bytes) {
        um_page_set_t *set = &group->tail;

        set_extent(set, offset, end - start);
        set->out_copies += page->tail_copies;
        set->out_bytes += page->tail_bytes;
        set->cpu_faults += page->tail_faults;
        set->wait_ns += page->tail_ns;
        if (page->pc)
            set->pc = page->pc;
        *tails = true;
    }
}

static void fold(um_regions_stat_t *stat, um_live_t *live)
{
    um_group_t *group = &stat->groups[live->group];
    bool pings = false, tails = false;

    sums_add(&group->sums, &live->sums);
    group->first[live->first_toucher]++;
    group->gpu_used += live->gpu;
    group->gpu_only += live->gpu && !live->cpu && live->id && live->family == UM_FAMILY_MANAGED &&
                       !(live->flags & UM_REGION_BEFORE_UMRT);
    for (uint64_t b = 0; live->blocks && b < region_blocks(live); b++) {
        uint64_t block = (live->addr / UM_BLOCK_BYTES + b) * UM_BLOCK_BYTES;
        uint32_t in = 0, of = 0;

        if (!live->blocks[b])
            continue;
        for (uint32_t p = 0; p < UM_PAGES_PER_BLOCK; p++) {
            const um_page_t *page = &live->blocks[b]->page[p];
            uint64_t addr = block + (uint64_t)p * UM_BIG_PAGE_BYTES;

            if (addr + UM_BIG_PAGE_BYTES <= live->addr || addr >= live->addr + live->bytes)
                continue;
            of++;
            in += page->in_bytes > 0;
            if (page->seen)
                fold_page(group, live, page, addr, &pings, &tails);
        }
        if (in) {
            group->pages_in += in;
            group->block_pages += of;
        }
    }
    group->ping_pong.regions += pings;
    group->tail.regions += tails;
    for (int end = 0; end < 2; end++) {
        uint64_t addr = end ? live->addr + live->bytes - 1 : live->addr;
        uint64_t key = addr / UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES;
        uint32_t s = um_map_find(&stat->shared_of, key);

        if (s == UM_MAP_NONE)
            continue;
        for (uint32_t i = 0; i < stat->shared[s].n; i++) {
            if (stat->shared[s].sharer[i].serial == live->serial)
                stat->shared[s].sharer[i].group = live->group;
        }
        stat->shared[s].closed = true;
    }
}

static void retire(um_regions_stat_t *stat, size_t index)
{
    um_live_t *live = stat->live[index];

    fold(stat, live);
    memmove(&stat->live[index], &stat->live[index + 1],
            (stat->n_live - index - 1) * sizeof(um_live_t *));
    stat->n_live--;
    for (size_t at = live->id ? id_index(stat, live->id) : stat->n_by_id;
         at < stat->n_by_id && stat->by_id[at]->id == live->id; at++) {
        if (stat->by_id[at] == live) {
            memmove(&stat->by_id[at], &stat->by_id[at + 1],
                    (stat->n_by_id - at - 1) * sizeof(um_live_t *));
            stat->n_by_id--;
            break;
        }
    }
    live_free(stat, live);
}

void um_regions_stat_end(um_regions_stat_t *stat, uint64_t now_ns)
{
    (void)now_ns;
    while (stat->n_live)
        retire(stat, stat->n_live - 1);
    memset(stat->cpu_seen, 0, CPU_SEEN * sizeof(*stat->cpu_seen));
    memset(&stat->cover, 0, sizeof(stat->cover));
    um_map_free(&stat->shared_of);
    stat->trace++;
}

/* ---- pages that regions share ----------------------------------------------------------------- */

static um_shared_page_t *shared_at(um_regions_stat_t *stat, uint64_t addr)
{
    uint32_t s;

    if (!stat->shared_of.n)
        return NULL;
    s = um_map_find(&stat->shared_of, addr / UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES);
    return s == UM_MAP_NONE || stat->shared[s].closed ? NULL : &stat->shared[s];
}

static void shared_join(um_shared_page_t *page, const um_live_t *live)
{
    for (uint32_t i = 0; i < page->n; i++) {
        if (page->sharer[i].serial == live->serial)
            return;
    }
    if (page->n < UM_SHARERS_MAX)
        page->sharer[page->n++] = (struct um_sharer){.serial = live->serial,
                                                     .addr = live->addr,
                                                     .bytes = live->bytes,
                                                     .group = live->group};
}

/* Two neighbours by address, both managed: remembers the page where one ends and the other begins. */
static um_status_t share(um_regions_stat_t *stat, const um_live_t *low, const um_live_t *high)
{
    uint64_t page = high->addr / UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES;
    uint64_t low_last = low->addr + low->bytes - 1;
    um_shared_page_t *shared;
    uint32_t s;

    if (!low->id || !high->id || low->family != UM_FAMILY_MANAGED ||
        high->family != UM_FAMILY_MANAGED || low_last < page)
        return UM_OK;
    s = um_map_find(&stat->shared_of, page);
    if (s == UM_MAP_NONE || stat->shared[s].closed) {
        um_status_t status;

        if (stat->n_shared == SHARED_MAX)
            return UM_OK;
        if (stat->n_shared == stat->shared_size) {
            size_t size = stat->shared_size ? stat->shared_size * 2 : 16;
            um_shared_page_t *array = realloc(stat->shared, size * sizeof(*array));

            if (!array)
                return UM_ERR_NO_MEMORY;
            stat->shared = array;
            stat->shared_size = size;
        }
        status = um_map_put(&stat->shared_of, page, (uint32_t)stat->n_shared);
        if (status)
            return status;
        s = (uint32_t)stat->n_shared++;
        memset(&stat->shared[s], 0, sizeof(stat->shared[s]));
        stat->shared[s].addr = page;
        stat->shared[s].faulted = UM_SHARERS_MAX;
    }
    shared = &stat->shared[s];
    shared_join(shared, low);
    shared_join(shared, high);
    if (low_last / UM_PAGE_BYTES == high->addr / UM_PAGE_BYTES)
        shared->small_addr = high->addr / UM_PAGE_BYTES * UM_PAGE_BYTES;
    return UM_OK;
}

static void shared_move(um_shared_page_t *page, uint64_t addr, uint64_t end, bool in)
{
    int8_t direction = in ? 1 : -1;
    uint64_t from = addr > page->addr ? addr : page->addr;
    uint64_t to = end < page->addr + UM_BIG_PAGE_BYTES ? end : page->addr + UM_BIG_PAGE_BYTES;

    page->turns += page->direction && page->direction != direction;
    page->direction = direction;
    if (in) {
        page->in_bytes += to - from;
        return;
    }
    page->out_bytes += to - from;
    for (uint32_t i = 0; i < page->n && page->faulted < page->n; i++) {
        struct um_sharer *sharer = &page->sharer[i];
        uint64_t low = from > sharer->addr ? from : sharer->addr;
        uint64_t high = to < sharer->addr + sharer->bytes ? to : sharer->addr + sharer->bytes;

        if (i != page->faulted && low < high) {
            sharer->dragged_bytes += high - low;
            page->dragging_faults += !page->dragged;
            page->dragged = true;
        }
    }
}

static void shared_fault(um_shared_page_t *page, uint64_t addr, uint64_t pc, bool cpu)
{
    for (uint32_t i = 0; i < page->n; i++) {
        struct um_sharer *sharer = &page->sharer[i];
        /* A fault is reported by 4 KiB page: it belongs to whoever has bytes in that page, the
         * region at its first byte before others. */
        if (addr + UM_PAGE_BYTES <= sharer->addr || addr >= sharer->addr + sharer->bytes)
            continue;
        if (cpu) {
            sharer->cpu_faults++;
            page->faulted = i;
            page->dragged = false;
            page->faulted_offset = addr > sharer->addr ? addr - sharer->addr : 0;
            page->pc = pc;
        } else {
            sharer->gpu_faults++;
        }
        return;
    }
}

/* ---- events ----------------------------------------------------------------------------------- */

static um_status_t on_alloc(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;
    um_live_t *live;
    um_status_t status;
    size_t at;

    if (!alloc->bytes || alloc->bytes > ADDR_MAX || alloc->addr > ADDR_MAX - alloc->bytes)
        return UM_OK;
    /* What overlaps is gone: its free was not seen, or it stood for unknown surroundings. */
    at = live_index(stat, alloc->addr);
    while (at < stat->n_live && stat->live[at]->addr < alloc->addr + alloc->bytes)
        retire(stat, at);
    live = calloc(1, sizeof(*live));
    if (!live)
        return UM_ERR_NO_MEMORY;
    live->id = alloc->region;
    live->addr = alloc->addr;
    live->bytes = alloc->bytes;
    live->family = alloc->family;
    live->call_site = alloc->call_site;
    live->flags = alloc->flags;
    live->alloc_ns = event->time_ns;
    status = group_get(stat, group_key(stat, live, NULL), &live->group);
    if (!status)
        status = live_insert(stat, live);
    if (status) {
        free(live);
        return status;
    }
    group_join(stat, live);
    at = live_index(stat, live->addr);
    if (at > 0)
        status = share(stat, stat->live[at - 1], live);
    if (!status && at + 1 < stat->n_live)
        status = share(stat, live, stat->live[at + 1]);
    return status;
}

static void on_free(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_region_free_t *freed = &event->u.region_free;
    size_t at = live_index(stat, freed->addr);

    if (at < stat->n_live && stat->live[at]->addr == freed->addr &&
        (!freed->region || stat->live[at]->id == freed->region)) {
        um_group_t *group = &stat->groups[stat->live[at]->group];

        group->freed++;
        if (event->time_ns > stat->live[at]->alloc_ns)
            group->lifetime_ns += event->time_ns - stat->live[at]->alloc_ns;
        retire(stat, at);
    }
}

um_live_t *um_regions_stat_find(um_regions_stat_t *stat, uint64_t addr)
{
    um_live_t *live;
    uint64_t end;
    size_t at;

    if (stat->last && addr - stat->last->addr < stat->last->bytes)
        return stat->last;
    if (addr >= ADDR_MAX)
        return NULL;
    at = live_index(stat, addr);
    if (at < stat->n_live && stat->live[at]->addr <= addr)
        return stat->last = stat->live[at];
    /* Nobody said what is there: stand in for the rest of the block between known neighbours. */
    live = calloc(1, sizeof(*live));
    if (!live)
        return NULL;
    live->family = UM_FAMILY_MANAGED;
    live->addr = addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    end = live->addr + UM_BLOCK_BYTES;
    if (at > 0 && stat->live[at - 1]->addr + stat->live[at - 1]->bytes > live->addr)
        live->addr = stat->live[at - 1]->addr + stat->live[at - 1]->bytes;
    if (at < stat->n_live && stat->live[at]->addr < end)
        end = stat->live[at]->addr;
    live->bytes = end - live->addr;
    if (!live->bytes || group_get(stat, group_key(stat, live, NULL), &live->group) ||
        live_insert(stat, live)) {
        free(live);
        return NULL;
    }
    group_join(stat, live);
    return stat->last = live;
}

static void touched(um_live_t *live, bool gpu)
{
    live->active = true;
    if (gpu)
        live->gpu = true;
    else
        live->cpu = true;
    if (!live->first_toucher)
        live->first_toucher = gpu ? UM_TOUCHED_BY_GPU : UM_TOUCHED_BY_CPU;
}

/* The CPU's faults populate whole surroundings: none of the block's regions is untouched by it. */
static void cpu_in_block(um_regions_stat_t *stat, uint64_t addr)
{
    uint64_t block = addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

    for (size_t at = live_index(stat, block);
         at < stat->n_live && stat->live[at]->addr <= block + (UM_BLOCK_BYTES - 1); at++)
        stat->live[at]->cpu = true;
}

static struct um_cpu_fault_seen *cpu_seen(um_regions_stat_t *stat, uint64_t addr)
{
    return &stat->cpu_seen[addr / UM_BLOCK_BYTES % CPU_SEEN];
}

static void on_cpu_fault(um_regions_stat_t *stat, const um_event_t *event, bool running)
{
    const um_ev_cpu_fault_t *fault = &event->u.cpu_fault;
    um_live_t *live = um_regions_stat_find(stat, fault->addr);
    um_shared_page_t *shared = shared_at(stat, fault->addr);
    um_page_t *page;

    if (!live)
        return;
    touched(live, false);
    cpu_in_block(stat, fault->addr);
    live->sums.cpu_faults++;
    page = um_regions_stat_page(stat, live, fault->addr);
    if (page) {
        page->cpu_faults++;
        page->cpu_faults_running += running;
        page->pc = fault->pc;
    } else {
        stat->untracked++;
    }
    if (shared)
        shared_fault(shared, fault->addr, fault->pc, true);
    *cpu_seen(stat, fault->addr) = (struct um_cpu_fault_seen){.block = fault->addr / UM_BLOCK_BYTES,
                                                              .time_ns = event->time_ns,
                                                              .addr = fault->addr,
                                                              .pc = fault->pc,
                                                              .valid = true};
}

static void on_gpu_fault(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_gpu_fault_t *fault = &event->u.gpu_fault;
    um_live_t *live = um_regions_stat_find(stat, fault->addr);
    um_shared_page_t *shared = shared_at(stat, fault->addr);
    uint64_t charge =
        um_cover_charge(&stat->cover, fault->device, event->time_ns, fault->duration_ns);
    um_page_t *page;

    if (!live)
        return;
    touched(live, true);
    live->sums.gpu_faults++;
    live->sums.gpu_groups += fault->groups;
    live->sums.gpu_ns += charge;
    page = um_regions_stat_page(stat, live, fault->addr);
    if (page) {
        page->gpu_faults++;
        page->gpu_ns += charge;
        page->tail_bytes = page->tail_ns = 0;
        page->tail_copies = page->tail_faults = 0;
    } else {
        stat->untracked++;
    }
    if (shared) {
        shared_fault(shared, fault->addr, 0, false);
        shared->gpu_ns += charge;
    }
}

/* The copy answers a fault: the CPU waited from the fault to its end. */
static void charge_wait(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_migrate_t *migrate = &event->u.migrate;
    struct um_cpu_fault_seen *seen = cpu_seen(stat, migrate->addr);
    um_shared_page_t *shared;
    um_live_t *live;
    um_page_t *page;
    uint64_t wait;

    if (!seen->valid || seen->block != migrate->addr / UM_BLOCK_BYTES ||
        event->time_ns - seen->time_ns > ANSWER_NS)
        return;
    wait = um_cover_charge(&stat->cover, UM_DEVICE_HOST, seen->time_ns,
                           event->time_ns - seen->time_ns + migrate->duration_ns);
    live = um_regions_stat_find(stat, seen->addr);
    if (!live)
        return;
    live->sums.wait_ns += wait;
    shared = shared_at(stat, seen->addr);
    if (shared)
        shared->wait_ns += wait;
    page = um_regions_stat_page(stat, live, seen->addr);
    if (page) {
        page->wait_ns += wait;
        page->tail_ns += wait;
        page->tail_faults += !seen->answered;
    }
    seen->answered = true;
}

static void move_page(um_page_t *page, uint64_t bytes, bool in, bool begins, bool running)
{
    int8_t direction = in ? 1 : -1;

    page->turns += page->direction && page->direction != direction;
    page->direction = direction;
    if (in) {
        page->in_bytes += bytes;
        page->in_copies += begins;
        page->tail_bytes = page->tail_ns = 0;
        page->tail_copies = page->tail_faults = 0;
    } else {
        page->out_bytes += bytes;
        page->out_copies += begins;
        page->out_running += begins && running;
        page->tail_bytes += bytes;
        page->tail_copies += begins;
    }
}

/* Bytes between known allocations that lie in the same 64 KiB page as one of them: pages move whole, so
 * these only come along. 0 where a region is, or where nothing near is known. */
static uint64_t padding(const um_regions_stat_t *stat, uint64_t addr)
{
    uint64_t page = addr / UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES;
    size_t at = live_index(stat, addr);
    const um_live_t *low = at > 0 ? stat->live[at - 1] : NULL;
    const um_live_t *high = at < stat->n_live ? stat->live[at] : NULL;
    uint64_t end = page + UM_BIG_PAGE_BYTES;

    if (high && high->addr <= addr)
        return 0;
    if (high && high->addr < end && high->id)
        return high->addr - addr;
    if (low && low->id && low->addr + low->bytes > page)
        return end - addr;
    return 0;
}

void um_regions_stat_split(um_regions_stat_t *stat, uint64_t addr, uint64_t bytes, um_piece_fn fn,
                           void *ctx)
{
    uint64_t end = addr > ADDR_MAX - bytes ? ADDR_MAX : addr + bytes;

    if (bytes > ADDR_MAX)
        end = ADDR_MAX;
    for (uint32_t n = 0; addr < end && n < RECORD_PAGES_MAX; n++) {
        uint64_t skip = padding(stat, addr), stop;
        um_live_t *live;

        if (skip) {
            addr += skip;
            continue;
        }
        live = um_regions_stat_find(stat, addr);
        if (!live)
            return;
        stop = addr / UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES + UM_BIG_PAGE_BYTES;
        if (stop > live->addr + live->bytes)
            stop = live->addr + live->bytes;
        if (stop > end)
            stop = end;
        fn(ctx, live, addr, stop - addr);
        addr = stop;
    }
}

typedef struct um_moving {
    um_regions_stat_t *stat;
    bool in, running, begins;
} um_moving_t;

static void move_piece(void *ctx, um_live_t *live, uint64_t addr, uint64_t bytes)
{
    um_moving_t *moving = ctx;
    um_regions_stat_t *stat = moving->stat;
    um_shared_page_t *shared = shared_at(stat, addr);
    um_page_t *page = um_regions_stat_page(stat, live, addr);

    live->active = true;
    live->cpu = live->gpu = true; /* there was something to move */
    if (moving->in) {
        /* The CPU had it, though nobody was seen to put it there. */
        if (live->first_toucher == UM_TOUCHED_BY_GPU && !live->sums.in_bytes &&
            !live->sums.out_bytes)
            live->first_toucher = UM_TOUCHED_BY_CPU_SURELY;
        live->sums.in_bytes += bytes;
        live->sums.in_copies += moving->begins;
    } else {
        live->sums.out_bytes += bytes;
        live->sums.out_copies += moving->begins;
    }
    if (page)
        move_page(page, bytes, moving->in, moving->begins, moving->running);
    else
        stat->untracked++;
    if (shared)
        shared_move(shared, addr, addr + bytes, moving->in);
    moving->begins = false;
}

/* A move that nobody asked for. */
static void on_fault_move(um_regions_stat_t *stat, const um_event_t *event, bool in, bool running)
{
    um_moving_t moving = {.stat = stat, .in = in, .running = running, .begins = true};

    if (!in) {
        stat->out_copies++;
        charge_wait(stat, event);
    }
    um_regions_stat_split(stat, event->u.migrate.addr, event->u.migrate.bytes, move_piece, &moving);
}

static void on_migrate(um_regions_stat_t *stat, const um_event_t *event, bool running)
{
    const um_ev_migrate_t *migrate = &event->u.migrate;
    bool in = migrate->dst >= 0 && migrate->src < 0, out = migrate->dst < 0 && migrate->src >= 0;
    um_live_t *live;

    if (!migrate->bytes || (!in && !out))
        return;
    if (migrate->cause != UM_CAUSE_USER && migrate->cause != UM_CAUSE_EVICTION) {
        on_fault_move(stat, event, in, running);
        return;
    }
    live = um_regions_stat_find(stat, migrate->addr);
    if (!live)
        return;
    live->active = true;
    live->gpu = true;
    if (migrate->cause == UM_CAUSE_EVICTION) {
        live->sums.evict_bytes += migrate->bytes;
    } else if (in) {
        live->cpu = true;
        live->sums.user_in_bytes += migrate->bytes;
    } else {
        live->cpu = true;
        live->sums.user_out_bytes += migrate->bytes;
    }
}

static void on_thrash(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_thrash_t *thrash = &event->u.thrash;
    um_live_t *live = um_regions_stat_find(stat, thrash->addr);
    uint64_t pages = thrash->bytes < UM_PAGE_BYTES ? 1 : thrash->bytes / UM_PAGE_BYTES;
    um_page_t *page;

    if (!live)
        return;
    live->active = true;
    live->sums.thrash += pages;
    page = um_regions_stat_page(stat, live, thrash->addr);
    if (page)
        page->thrash += pages > UINT16_MAX ? UINT16_MAX : (uint32_t)pages;
}

static void on_throttle(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_throttle_t *throttle = &event->u.throttle;
    um_live_t *live = um_regions_stat_find(stat, throttle->addr);
    uint64_t charge =
        um_cover_charge(&stat->cover, throttle->device, event->time_ns, throttle->duration_ns);
    um_page_t *page;

    if (!live)
        return;
    live->active = true;
    live->sums.throttles++;
    live->sums.throttle_ns += throttle->duration_ns;
    live->sums.gpu_ns += charge;
    page = um_regions_stat_page(stat, live, throttle->addr);
    if (page) {
        page->throttle_ns += throttle->duration_ns;
        page->gpu_ns += charge;
    }
}

um_status_t um_regions_stat_event(um_regions_stat_t *stat, const um_event_t *event, bool running)
{
    um_live_t *live;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        return on_alloc(stat, event);
    case UM_EV_REGION_FREE:
        on_free(stat, event);
        break;
    case UM_EV_REGION_LABEL:
        live = um_regions_stat_by_id(stat, event->u.region_label.region);
        return live ? set_label(stat, live, event->u.region_label.label) : UM_OK;
    case UM_EV_CPU_FAULT:
        on_cpu_fault(stat, event, running);
        break;
    case UM_EV_GPU_FAULT:
        on_gpu_fault(stat, event);
        break;
    case UM_EV_MIGRATE:
        on_migrate(stat, event, running);
        break;
    case UM_EV_THRASH:
        on_thrash(stat, event);
        break;
    case UM_EV_THROTTLE:
        on_throttle(stat, event);
        break;
    case UM_EV_REMOTE_MAP:
        live = um_regions_stat_find(stat, event->u.remote_map.addr);
        if (live) {
            live->active = true;
            live->gpu |= event->u.remote_map.dst >= 0;
            live->cpu |= event->u.remote_map.dst < 0 || event->u.remote_map.src < 0;
            live->sums.remote_maps++;
            live->sums.remote_bytes += event->u.remote_map.bytes;
        }
        break;
    case UM_EV_RESIDENCY:
        if (event->u.residency.present_bytes) {
            live = um_regions_stat_find(stat, event->u.residency.addr);
            if (live)
                live->cpu = true;
        }
        break;
    case UM_EV_HINT: /* to the host: somebody there wants it */
        if (event->u.hint.kind == UM_HINT_PREFETCH && event->u.hint.device < 0) {
            live = um_regions_stat_by_id(stat, event->u.hint.region);
            if (live)
                live->cpu = true;
        }
        break;
    case UM_EV_LAUNCH:
        for (uint32_t i = 0; i < event->u.launch.n_args; i++) {
            live = um_regions_stat_by_id(stat, event->u.launch.args[i].region);
            if (live)
                live->gpu = true;
        }
        break;
    default:
        break;
    }
    return UM_OK;
}

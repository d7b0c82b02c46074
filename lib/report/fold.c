#include "region_parts.h"

static void sums_add(uint64_t *to, const uint64_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) /* nothing but counters */
        to[i] += from[i];
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

void um_live_fold(um_regions_stat_t *stat, um_live_t *live)
{
    um_group_t *group = &stat->groups[live->group];
    bool pings = false, tails = false;

    um_uses_retire(stat, live);
    sums_add((uint64_t *)&group->sums, (const uint64_t *)&live->sums, sizeof(group->sums));
    sums_add((uint64_t *)&group->uses, (const uint64_t *)&live->use.sums, sizeof(group->uses));
    group->first[live->first_toucher]++;
    group->gpu_used += live->gpu;
    group->gpu_only += live->gpu && !live->cpu && live->id && live->family == UM_FAMILY_MANAGED &&
                       !(live->flags & UM_REGION_BEFORE_UMRT);
    for (uint64_t b = 0; live->blocks && b < um_live_blocks(live); b++) {
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

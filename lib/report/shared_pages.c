#include <string.h>

#include "core/grow.h"
#include "region_parts.h"

#define SHARED_MAX 4096u

um_shared_page_t *um_shared_at(um_regions_stat_t *stat, uint64_t addr)
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
um_status_t um_shared_meet(um_regions_stat_t *stat, const um_live_t *low, const um_live_t *high)
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
        if (!um_grow(&stat->shared, &stat->shared_size, stat->n_shared + 1, sizeof(*stat->shared)))
            return UM_ERR_NO_MEMORY;
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

void um_shared_move(um_shared_page_t *page, uint64_t addr, uint64_t end, bool in)
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

void um_shared_fault(um_shared_page_t *page, uint64_t addr, uint64_t pc, bool cpu)
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

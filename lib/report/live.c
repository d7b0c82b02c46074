#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "region_parts.h"

/* One record moves at most a block; a damaged one must not cost more than this many pages. */
#define RECORD_PAGES_MAX 16384u
#define BLOCK_TABLE_MAX  (1u << 17) /* 256 GiB in one region */

uint64_t um_live_blocks(const um_live_t *live)
{
    uint64_t first = live->addr / UM_BLOCK_BYTES;
    uint64_t last = (live->addr + live->bytes - 1) / UM_BLOCK_BYTES;

    return last - first + 1;
}

void um_live_free(um_regions_stat_t *stat, um_live_t *live)
{
    if (live->blocks) {
        for (uint64_t i = 0; i < um_live_blocks(live); i++) {
            if (live->blocks[i])
                stat->blocks_left++;
            free(live->blocks[i]);
        }
        free(live->blocks);
    }
    if (stat->last == live)
        stat->last = NULL;
    free(live->use.blocks);
    free(live);
}

/* Index of the first live region that ends after addr. */
size_t um_live_index(const um_regions_stat_t *stat, uint64_t addr)
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
        if (um_live_blocks(live) > BLOCK_TABLE_MAX)
            return NULL;
        live->blocks = calloc(um_live_blocks(live), sizeof(um_block_pages_t *));
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

um_status_t um_live_insert(um_regions_stat_t *stat, um_live_t *live)
{
    size_t at, room = stat->live_size; /* of both */

    if (!um_grow(&stat->by_id, &room, stat->n_live + 1, sizeof(*stat->by_id)) ||
        !um_grow(&stat->live, &stat->live_size, stat->n_live + 1, sizeof(*stat->live)))
        return UM_ERR_NO_MEMORY;
    if (live->id) {
        at = id_index(stat, live->id);
        memmove(&stat->by_id[at + 1], &stat->by_id[at], (stat->n_by_id - at) * sizeof(um_live_t *));
        stat->by_id[at] = live;
        stat->n_by_id++;
    }
    at = um_live_index(stat, live->addr);
    memmove(&stat->live[at + 1], &stat->live[at], (stat->n_live - at) * sizeof(um_live_t *));
    stat->live[at] = live;
    stat->n_live++;
    live->serial = ++stat->serials;
    return UM_OK;
}

/* Bytes between known allocations that lie in the same 64 KiB page as one of them: pages move whole, so
 * these only come along. That allocation, and how many bytes from addr; NULL where addr is in a region,
 * or where nothing near is known. */
static um_live_t *padded(const um_regions_stat_t *stat, uint64_t addr, uint64_t *bytes)
{
    uint64_t page = addr / UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES;
    size_t at = um_live_index(stat, addr);
    um_live_t *low = at > 0 ? stat->live[at - 1] : NULL;
    um_live_t *high = at < stat->n_live ? stat->live[at] : NULL;
    uint64_t end = page + UM_BIG_PAGE_BYTES;

    if (high && high->addr <= addr)
        return NULL;
    *bytes = end - addr;
    if (high && high->addr < end && high->id) {
        *bytes = high->addr - addr;
        return low && low->id && low->addr + low->bytes > page ? low : high;
    }
    return low && low->id && low->addr + low->bytes > page ? low : NULL;
}

um_live_t *um_regions_stat_find(um_regions_stat_t *stat, uint64_t addr)
{
    um_live_t *live;
    uint64_t end, padding;
    size_t at;

    if (stat->last && addr - stat->last->addr < stat->last->bytes)
        return stat->last;
    if (addr >= UM_ADDR_MAX)
        return NULL;
    at = um_live_index(stat, addr);
    if (at < stat->n_live && stat->live[at]->addr <= addr)
        return stat->last = stat->live[at];
    live = padded(stat, addr, &padding);
    if (live)
        return live;
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
    if (!live->bytes || um_group_get(stat, um_group_key(stat, live, NULL), &live->group) ||
        um_live_insert(stat, live)) {
        free(live);
        return NULL;
    }
    um_group_join(stat, live);
    return stat->last = live;
}

void um_regions_stat_split(um_regions_stat_t *stat, uint64_t addr, uint64_t bytes, um_piece_fn fn,
                           void *ctx)
{
    uint64_t end = addr > UM_ADDR_MAX - bytes ? UM_ADDR_MAX : addr + bytes;

    if (bytes > UM_ADDR_MAX)
        end = UM_ADDR_MAX;
    for (uint32_t n = 0; addr < end && n < RECORD_PAGES_MAX; n++) {
        uint64_t skip, stop;
        um_live_t *live;

        if (padded(stat, addr, &skip)) {
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

void um_live_retire(um_regions_stat_t *stat, size_t index)
{
    um_live_t *live = stat->live[index];

    um_live_fold(stat, live);
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
    um_live_free(stat, live);
}

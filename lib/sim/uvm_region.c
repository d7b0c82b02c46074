/* Regions come and go over the blocks that they take, alone or with others. */
#include <stdlib.h>

#include "core/grow.h"
#include "sim/uvm_state.h"

static uint64_t page_up(uint64_t addr)
{
    return (addr + UM_PAGE_BYTES - 1) & ~(uint64_t)(UM_PAGE_BYTES - 1);
}

/* ---- finding ---- */

/* How many live regions begin at or under `addr`. */
static size_t count_up_to(const um_uvm_t *uvm, uint64_t addr)
{
    size_t low = 0, high = uvm->n_regions;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (uvm->by_addr[middle]->addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Index of the first live region whose id is not under `id`. */
static size_t from_id(const um_uvm_t *uvm, uint32_t id)
{
    size_t low = 0, high = uvm->n_regions;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (uvm->by_id[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

um_region_t *um_uvm_region_at(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes)
{
    um_region_t *region = uvm->last;
    size_t n;

    if (!region || addr < region->addr || addr >= region->end) {
        n = count_up_to(uvm, addr | (UM_PAGE_BYTES - 1));
        if (!n)
            return NULL;
        region = uvm->by_addr[n - 1];
        if (addr >= page_up(region->end))
            return NULL;
    }
    return bytes && bytes <= page_up(region->end) - addr ? region : NULL;
}

/* ---- blocks ---- */

static const um_shared_t *shared(const um_region_t *region, uint32_t index)
{
    if (index == 0 && region->head)
        return region->head;
    return index == region->n_blocks - 1 ? region->tail : NULL;
}

bool um_uvm_region_shares(const um_region_t *region, uint32_t index)
{
    return shared(region, index);
}

um_block_t *um_uvm_region_block(const um_region_t *region, uint32_t index)
{
    if (index == 0 && region->head)
        return &region->head->block;
    if (index == region->n_blocks - 1 && region->tail)
        return &region->tail->block;
    return &region->blocks[index];
}

uint32_t um_uvm_region_live_pages(const um_region_t *region, uint32_t index)
{
    const um_shared_t *both = shared(region, index);

    return both && both->pages < UM_SET_PAGES ? both->pages : UM_SET_PAGES;
}

um_run_t um_uvm_region_run(const um_region_t *region, uint32_t index, uint64_t addr, uint64_t end)
{
    uint64_t window = um_uvm_region_window(region, index);
    um_run_t run = {0, UM_SET_PAGES};

    if (addr > window)
        run.first = (uint32_t)((addr - window) / UM_PAGE_BYTES);
    if (end < window + UM_BLOCK_BYTES)
        run.end = (uint32_t)((page_up(end) - window) / UM_PAGE_BYTES);
    return run;
}

/* ---- coming and going ---- */

static uint32_t own_pages(const um_region_t *region, uint32_t index)
{
    um_run_t run = um_uvm_region_run(region, index, region->addr, region->end);

    return run.end - run.first;
}

/* The neighbour's block in the window that `index` of the region is, NULL = there is none yet. */
static um_shared_t *neighbour(const um_region_t *near, const um_region_t *region, uint32_t index)
{
    uint64_t window = um_uvm_region_window(region, index);

    if (near && near->head && near->base == window)
        return near->head;
    if (near && near->tail && um_uvm_region_window(near, near->n_blocks - 1) == window)
        return near->tail;
    return NULL;
}

static um_shared_t *share(const um_region_t *before, const um_region_t *after,
                          const um_region_t *region, uint32_t index)
{
    um_shared_t *both = neighbour(before, region, index);

    if (!both)
        both = neighbour(after, region, index);
    if (!both)
        both = calloc(1, sizeof(*both));
    if (both) {
        both->regions++;
        both->pages += own_pages(region, index);
    }
    return both;
}

static void unshare(um_uvm_t *uvm, const um_region_t *region, um_shared_t *both, uint32_t index)
{
    if (!both)
        return;
    both->pages -= own_pages(region, index);
    if (--both->regions)
        return;
    um_block_forget(uvm, &both->block);
    free(both);
}

static void free_region(um_uvm_t *uvm, um_region_t *region)
{
    for (uint32_t i = 0; region->blocks && i < region->n_blocks; i++)
        um_block_forget(uvm, &region->blocks[i]);
    unshare(uvm, region, region->head, 0);
    unshare(uvm, region, region->tail, region->n_blocks - 1);
    free(region->blocks);
    free(region);
}

void um_uvm_regions_free(um_uvm_t *uvm)
{
    for (size_t i = 0; i < uvm->n_regions; i++)
        free_region(uvm, uvm->by_addr[i]);
    free(uvm->by_addr);
    free(uvm->by_id);
}

static bool room_for_one(um_uvm_t *uvm)
{
    size_t room = uvm->regions_capacity; /* of both */

    return um_grow(&uvm->by_addr, &room, uvm->n_regions + 1, sizeof(*uvm->by_addr)) &&
           um_grow(&uvm->by_id, &uvm->regions_capacity, uvm->n_regions + 1, sizeof(*uvm->by_id));
}

static void put_in(um_region_t **array, size_t n, size_t at, um_region_t *region)
{
    memmove(&array[at + 1], &array[at], (n - at) * sizeof(*array));
    array[at] = region;
}

static void take_out(um_region_t **array, size_t n, size_t at)
{
    memmove(&array[at], &array[at + 1], (n - at - 1) * sizeof(*array));
}

um_status_t um_uvm_alloc(um_uvm_t *uvm, uint32_t id, uint64_t addr, uint64_t bytes)
{
    uint64_t base = addr & ~(uint64_t)(UM_BLOCK_BYTES - 1), n_blocks;
    um_region_t *region, *before, *after;
    size_t at_addr, at_id;

    if (!id || !bytes || bytes > UINT64_MAX - addr - UM_BLOCK_BYTES)
        return UM_ERR_INVALID;
    at_addr = count_up_to(uvm, addr);
    at_id = from_id(uvm, id);
    before = at_addr ? uvm->by_addr[at_addr - 1] : NULL;
    after = at_addr < uvm->n_regions ? uvm->by_addr[at_addr] : NULL;
    n_blocks = (addr + bytes - base + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
    if ((before && before->end > addr) || (after && after->addr < addr + bytes) ||
        (at_id < uvm->n_regions && uvm->by_id[at_id]->id == id) || n_blocks > UINT32_MAX)
        return UM_ERR_INVALID;

    if (!room_for_one(uvm) || !(region = malloc(sizeof(*region))))
        return UM_ERR_NO_MEMORY;
    *region = (um_region_t){
        .id = id, .n_blocks = (uint32_t)n_blocks, .addr = addr, .end = addr + bytes, .base = base};
    bool head = own_pages(region, 0) < UM_SET_PAGES;
    bool tail = n_blocks > 1 && own_pages(region, region->n_blocks - 1) < UM_SET_PAGES;
    bool blocks = n_blocks > (uint64_t)head + tail;

    if (head)
        region->head = share(before, after, region, 0);
    if (tail)
        region->tail = share(before, after, region, region->n_blocks - 1);
    if (blocks)
        region->blocks = calloc(n_blocks, sizeof(*region->blocks));
    if ((head && !region->head) || (tail && !region->tail) || (blocks && !region->blocks)) {
        free_region(uvm, region);
        return UM_ERR_NO_MEMORY;
    }
    put_in(uvm->by_addr, uvm->n_regions, at_addr, region);
    put_in(uvm->by_id, uvm->n_regions, at_id, region);
    uvm->n_regions++;
    return UM_OK;
}

um_status_t um_uvm_release(um_uvm_t *uvm, uint32_t id)
{
    size_t at_id = from_id(uvm, id);
    um_region_t *region;

    if (at_id == uvm->n_regions || uvm->by_id[at_id]->id != id)
        return UM_ERR_INVALID;
    region = uvm->by_id[at_id];
    take_out(uvm->by_addr, uvm->n_regions, count_up_to(uvm, region->addr) - 1);
    take_out(uvm->by_id, uvm->n_regions, at_id);
    uvm->n_regions--;
    uvm->last = NULL;
    free_region(uvm, region);
    return UM_OK;
}

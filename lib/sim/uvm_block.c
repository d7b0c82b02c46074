/* Blocks: the page sets that a visit works on, and what every rule does to them. */
#include <stdlib.h>

#include "sim/uvm_state.h"

bool um_processor_of(const um_uvm_t *uvm, int32_t device, uint32_t *out)
{
    if (device < UM_DEVICE_HOST || device >= (int32_t)uvm->config.n_gpus)
        return false;
    *out = (uint32_t)(device + 1);
    return true;
}

static um_pages_t *take_pages(um_uvm_t *uvm)
{
    size_t bytes = sizeof(um_pages_t) + uvm->n_processors * 3 * sizeof(um_set_t);
    um_pages_t *pages = uvm->free_pages;

    if (!pages)
        return calloc(1, bytes);
    uvm->free_pages = pages->next_free;
    memset(pages, 0, bytes);
    return pages;
}

static void drop_sets(um_uvm_t *uvm, um_block_t *block)
{
    if (!block->pages)
        return;
    block->pages->next_free = uvm->free_pages;
    uvm->free_pages = block->pages;
    block->pages = NULL;
}

void um_block_forget(um_uvm_t *uvm, um_block_t *block)
{
    for (uint32_t p = 0; p < uvm->n_processors; p++) {
        uint32_t whole = block->resident & UM_BIT(p) ? UM_SET_PAGES : 0;
        uint32_t n = block->pages ? um_set_count(&block->pages->of[p].resident) : whole;

        uvm->resident_bytes[p] -= (uint64_t)n * UM_PAGE_BYTES;
    }
    while (block->chunks)
        um_chunk_free(uvm, block->chunks);
    um_thrash_free(block);
    drop_sets(uvm, block);
}

um_status_t um_visit_begin(um_visit_t *visit, um_uvm_t *uvm, um_block_t *block, uint64_t window,
                           uint32_t region, uint64_t now_ns, um_uvm_work_t *work)
{
    if (!block->pages) {
        um_set_t all = um_set_of(0, UM_SET_PAGES);
        um_pages_t *pages = take_pages(uvm);

        if (!pages)
            return UM_ERR_NO_MEMORY;
        for (uint32_t p = 0; p < uvm->n_processors; p++) {
            if (block->resident & UM_BIT(p))
                pages->of[p].resident = all;
            if (block->mapped & UM_BIT(p))
                pages->of[p].mapped = all;
            if (block->writable & UM_BIT(p))
                pages->of[p].writable = all;
        }
        if (block->fresh)
            pages->fresh = all;
        if (block->discarded)
            pages->discarded = all;
        block->pages = pages;
    }
    *visit = (um_visit_t){uvm, block, block->pages, window, region, now_ns, work};
    return UM_OK;
}

um_status_t um_visit_begin_at(um_visit_t *visit, um_uvm_t *uvm, const um_region_t *region,
                              uint32_t index, uint64_t now_ns, um_uvm_work_t *work)
{
    return um_visit_begin(visit, uvm, um_uvm_region_block(region, index),
                          um_uvm_region_window(region, index),
                          um_uvm_region_shares(region, index) ? 0 : region->id, now_ns, work);
}

/* Sets the bit where the set is all of the window; false when it is neither all nor empty. */
static bool whole(const um_set_t *set, const um_set_t *all, uint16_t bit, uint16_t *mask)
{
    if (um_set_equal(set, all))
        *mask |= bit;
    else if (!um_set_empty(set))
        return false;
    return true;
}

static void place_chunks(um_visit_t *visit)
{
    const um_pages_t *pages = visit->pages;

    for (um_chunk_t *chunk = visit->block->chunks; chunk; chunk = chunk->of_block) {
        const um_set_t *resident = &pages->of[chunk->processor].resident;
        um_set_t alive = um_set_less(resident, &pages->discarded);
        um_list_t list = um_set_empty(resident) ? UM_LIST_UNUSED
                         : um_set_empty(&alive) ? UM_LIST_DISCARDED
                                                : UM_LIST_USED;

        if (chunk->list != list)
            um_chunk_put(visit->uvm, chunk, list);
    }
}

void um_visit_end(um_visit_t *visit)
{
    um_block_t *block = visit->block;
    const um_pages_t *pages = visit->pages;
    um_set_t all = um_set_of(0, UM_SET_PAGES);
    uint16_t resident = 0, mapped = 0, writable = 0, fresh = 0, discarded = 0;

    place_chunks(visit);
    if (!whole(&pages->fresh, &all, 1, &fresh) || !whole(&pages->discarded, &all, 1, &discarded))
        return;
    for (uint32_t p = 0; p < visit->uvm->n_processors; p++)
        if (!whole(&pages->of[p].resident, &all, UM_BIT(p), &resident) ||
            !whole(&pages->of[p].mapped, &all, UM_BIT(p), &mapped) ||
            !whole(&pages->of[p].writable, &all, UM_BIT(p), &writable))
            return;
    block->resident = resident;
    block->mapped = mapped;
    block->writable = writable;
    block->fresh = fresh;
    block->discarded = discarded;
    drop_sets(visit->uvm, block);
}

void um_visit_settle(um_visit_t *visit, uint32_t processor, const um_set_t *pages)
{
    um_set_t *resident = &visit->pages->of[processor].resident;
    um_set_t come = um_set_less(pages, resident);

    um_set_add(resident, &come);
    visit->uvm->resident_bytes[processor] += (uint64_t)um_set_count(&come) * UM_PAGE_BYTES;
}

void um_visit_leave(um_visit_t *visit, uint32_t processor, const um_set_t *pages)
{
    um_set_t *resident = &visit->pages->of[processor].resident;
    um_set_t gone = um_set_and(pages, resident);

    um_set_drop(resident, &gone);
    visit->uvm->resident_bytes[processor] -= (uint64_t)um_set_count(&gone) * UM_PAGE_BYTES;
}

um_set_t um_visit_populated(const um_visit_t *visit)
{
    um_set_t any = visit->pages->of[0].resident;

    for (uint32_t p = 1; p < visit->uvm->n_processors; p++)
        um_set_add(&any, &visit->pages->of[p].resident);
    return any;
}

void um_visit_unmap(um_visit_t *visit, uint32_t processor, const um_set_t *pages)
{
    um_set_t gone = um_set_and(pages, &visit->pages->of[processor].mapped);
    uint64_t bytes = (uint64_t)um_set_count(&gone) * UM_PAGE_BYTES;

    um_set_drop(&visit->pages->of[processor].mapped, &gone);
    um_set_drop(&visit->pages->of[processor].writable, &gone);
    if (processor == UM_CPU)
        visit->work->unmapped_host_bytes += bytes;
    else
        visit->work->unmapped_device_bytes += bytes;
}

/* Pages of the set that `who` can reach without moving them. */
um_set_t um_visit_reachable(const um_visit_t *visit, uint32_t who, const um_set_t *pages)
{
    um_set_t out = {{0}};

    for (uint32_t where = 0; where < visit->uvm->n_processors; where++)
        if (um_uvm_reaches(visit->uvm, who, where)) {
            um_set_t there = um_set_and(pages, &visit->pages->of[where].resident);

            um_set_add(&out, &there);
        }
    return out;
}

void um_visit_unmap_stranded(um_visit_t *visit)
{
    for (uint32_t p = 0; p < visit->uvm->n_processors; p++) {
        const um_set_t *mapped = &visit->pages->of[p].mapped;
        um_set_t held = um_visit_reachable(visit, p, mapped);
        um_set_t stranded = um_set_less(mapped, &held);

        um_visit_unmap(visit, p, &stranded);
    }
}

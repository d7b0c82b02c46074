/* The tree prefetcher: what a fault brings besides the pages that faulted, inside one block. */
#include "sim/uvm_state.h"

#define BIG_PAGES (UM_BIG_PAGE_BYTES / UM_PAGE_BYTES)

/* The aligned group of `size` pages around `page`. */
static um_run_t group(uint32_t page, uint32_t size)
{
    return (um_run_t){page / size * size, page / size * size + size};
}

/* Each faulted page grows to its big page, unless one of that is thrashing. */
static um_set_t big_pages(const um_visit_t *visit, const um_set_t *faulted)
{
    const um_thrash_t *thrash = visit->block->thrash;
    um_set_t grown = *faulted;

    for (uint32_t page = um_set_next(faulted, 0); page < UM_SET_PAGES;) {
        um_run_t big = group(page, BIG_PAGES);

        if (!thrash || !um_set_count_run(&thrash->thrashing, big.first, big.end))
            um_set_fill(&grown, big.first, big.end);
        page = um_set_next(faulted, big.end);
    }
    return grown;
}

/* From leaf to root: the largest group around `page` that is occupied over the threshold; with a
 * threshold of 100 there is none. */
static um_run_t climb(const um_visit_t *visit, const um_set_t *occupied, uint32_t page)
{
    uint32_t threshold = visit->uvm->config.params.uvm_perf_prefetch_threshold;
    um_run_t best = {page, page};

    for (uint32_t size = 1; size <= UM_SET_PAGES; size *= 2) {
        um_run_t run = group(page, size);

        if (um_set_count_run(occupied, run.first, run.end) * 100 >
            (run.end - run.first) * threshold)
            best = run;
    }
    return best;
}

um_set_t um_visit_grow(const um_visit_t *visit, uint32_t to, const um_set_t *faulted)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    const um_block_t *block = visit->block;
    const um_pages_t *pages = visit->pages;
    um_set_t there = um_set_and(&pages->of[to].resident, &pages->of[to].mapped);
    um_set_t grown = {{0}}, populated;

    if (!params->uvm_perf_prefetch_enable ||
        um_set_count(faulted) < params->uvm_perf_prefetch_min_faults)
        return grown;
    populated = um_visit_populated(visit);
    if (block->preferred == to + 1 && um_set_empty(&populated)) {
        grown = um_set_of(0, UM_SET_PAGES);
    } else {
        um_set_t calm = block->thrash ? um_set_less(faulted, &block->thrash->thrashing) : *faulted;
        um_set_t occupied = big_pages(visit, faulted);

        um_set_add(&occupied, &pages->of[to].resident);
        for (uint32_t page = um_set_next(&calm, 0); page < UM_SET_PAGES;) {
            um_run_t run = climb(visit, &occupied, page);

            um_set_fill(&grown, run.first, run.end);
            page = um_set_next(&calm, run.end > page ? run.end : page + 1);
        }
    }
    if (block->thrash)
        um_set_drop(&grown, &block->thrash->thrashing);
    um_set_drop(&grown, faulted);
    um_set_drop(&grown, &there);
    there = um_set_and(&pages->of[to].resident, &pages->discarded); /* a touch must be noticed */
    um_set_drop(&grown, &there);
    return grown;
}

/* The thrashing detector: pages that bounce are first throttled, then pinned where all reach them. */
#include <stdlib.h>

#include "sim/uvm_state.h"

void um_thrash_free(um_block_t *block)
{
    free(block->thrash);
    block->thrash = NULL;
}

static void forget(um_thrash_t *thrash, const um_set_t *pages)
{
    for (uint32_t page = um_set_next(pages, 0); page < UM_SET_PAGES;
         page = um_set_next(pages, page + 1))
        memset(&thrash->page[page], 0, sizeof(thrash->page[page]));
    um_set_drop(&thrash->thrashing, pages);
    um_set_drop(&thrash->pinned, pages);
}

void um_thrash_forget(um_visit_t *visit, const um_set_t *moved)
{
    um_thrash_t *thrash = visit->block->thrash;
    um_set_t pages;

    if (!thrash)
        return;
    pages = um_set_and(moved, &thrash->thrashing);
    forget(thrash, &pages);
}

/* What was found wears off: a quiet epoch forgets a block's pages, but only so many times; pins run
 * out. */
static void age(um_visit_t *visit, um_thrash_t *thrash)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    um_set_t old = {{0}};

    if (!um_set_empty(&thrash->pinned)) {
        if (visit->now_ns >= thrash->pin_end_ns)
            old = thrash->pinned;
    } else if (thrash->last_thrash_ns && thrash->resets < params->uvm_perf_thrashing_max_resets &&
               visit->now_ns > thrash->last_thrash_ns +
                                   params->uvm_perf_thrashing_epoch * visit->uvm->lapse_ns) {
        old = um_set_of(0, UM_SET_PAGES);
        thrash->last_thrash_ns = 0;
        thrash->resets++;
    }
    forget(thrash, &old);
}

/* Thrashing pages of the set that moved within the last lapse. */
static um_set_t bouncing(const um_visit_t *visit, const um_set_t *faulted)
{
    const um_thrash_t *thrash = visit->block->thrash;
    um_set_t out = um_set_and(faulted, &thrash->thrashing);

    um_set_drop(&out, &thrash->pinned);
    for (uint32_t page = um_set_next(&out, 0); page < UM_SET_PAGES;
         page = um_set_next(&out, page + 1))
        if (visit->now_ns + 1 > thrash->page[page].last_ns + visit->uvm->lapse_ns)
            um_set_drop_run(&out, (um_run_t){page, page + 1});
    return out;
}

/* Where every processor that took part can reach the pages. */
static uint32_t pin_place(const um_visit_t *visit, uint32_t processor)
{
    const um_uvm_t *uvm = visit->uvm;
    uint32_t place = visit->block->preferred ? visit->block->preferred - 1u : processor;

    for (uint32_t q = 0; q < uvm->n_processors; q++)
        if (visit->block->thrash->processors & UM_BIT(q) && !um_uvm_reaches(uvm, q, place))
            return UM_CPU;
    return place;
}

static void tell_throttle(const um_visit_t *visit, uint32_t processor, uint32_t page, uint64_t ns)
{
    uint64_t addr = um_visit_addr(visit, page);
    um_event_t event = {.type = UM_EV_THROTTLE};

    event.u.throttle = (um_ev_throttle_t){.addr = addr,
                                          .duration_ns = ns,
                                          .device = um_device_of(processor),
                                          .region = um_visit_region(visit, addr)};
    um_uvm_tell(visit->uvm, &event);
}

/* As the driver tells it: page by page, and of the processors only the GPUs. */
static void tell_thrash(const um_visit_t *visit, uint32_t page)
{
    uint64_t addr = um_visit_addr(visit, page);
    um_event_t event = {.type = UM_EV_THRASH};

    event.u.thrash = (um_ev_thrash_t){.addr = addr,
                                      .bytes = UM_PAGE_BYTES,
                                      .processors = visit->block->thrash->processors >> 1,
                                      .region = um_visit_region(visit, addr)};
    um_uvm_tell(visit->uvm, &event);
}

/* Of each period one processor is let through, the first that comes, but not the same twice running.
 * Whether that is this one. */
static bool is_let_through(const um_visit_t *visit, um_thrash_t *thrash, uint32_t processor)
{
    uint64_t nap_ns = visit->uvm->config.params.uvm_perf_thrashing_nap * visit->uvm->lapse_ns;

    if (visit->now_ns >= thrash->nap_end_ns) {
        thrash->nap_end_ns = visit->now_ns + nap_ns;
        thrash->napping = 0;
        thrash->holder = thrash->holder == processor ? UM_NOBODY : (uint8_t)processor;
    } else if (thrash->holder == UM_NOBODY) {
        thrash->holder = (uint8_t)processor;
    }
    return thrash->holder == processor;
}

/* Puts the processor to sleep until the period ends; counts unless it was asleep already. */
static void throttle(um_visit_t *visit, uint32_t processor, const um_set_t *pages)
{
    um_thrash_t *thrash = visit->block->thrash;

    for (uint32_t page = um_set_next(pages, 0);
         page < UM_SET_PAGES && !(thrash->napping & UM_BIT(processor));
         page = um_set_next(pages, page + 1))
        thrash->page[page].throttles++;
    thrash->napping |= UM_BIT(processor);
    visit->work->throttles++;
    visit->work->nap_ns = thrash->nap_end_ns - visit->now_ns;
    tell_throttle(visit, processor, um_set_next(pages, 0), visit->work->nap_ns);
}

um_thrash_verdict_t um_thrash_ask(um_visit_t *visit, uint32_t processor, const um_set_t *faulted)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    um_thrash_t *thrash = visit->block->thrash;
    um_set_t pages, pinned;
    uint32_t throttles = 0;

    if (!thrash)
        return UM_THRASH_NO;
    age(visit, thrash);
    pinned = um_set_and(faulted, &thrash->pinned);
    pages = bouncing(visit, faulted);
    if (um_set_empty(&pages))
        return um_set_empty(&pinned) ? UM_THRASH_NO : UM_THRASH_PIN;

    thrash->processors |= UM_BIT(processor);
    for (uint32_t page = um_set_next(&pages, 0); page < UM_SET_PAGES;
         page = um_set_next(&pages, page + 1))
        if (thrash->page[page].throttles > throttles)
            throttles = thrash->page[page].throttles;
    if (!is_let_through(visit, thrash, processor)) {
        throttle(visit, processor, &pages);
        return UM_THRASH_THROTTLE;
    }
    if (throttles < params->uvm_perf_thrashing_pin_threshold)
        return um_set_empty(&pinned) ? UM_THRASH_NO : UM_THRASH_PIN;
    thrash->pin_at = (uint8_t)pin_place(visit, processor);
    thrash->pin_end_ns = visit->now_ns + params->uvm_perf_thrashing_pin * visit->uvm->lapse_ns;
    um_set_add(&thrash->pinned, &pages);
    visit->work->pins++;
    return UM_THRASH_PIN;
}

/* An event for each page that moved within a lapse of its last move; a move after a quiet lapse lets
 * a thrashing page start anew. */
static void count_event(um_visit_t *visit, uint32_t page)
{
    uint32_t threshold = visit->uvm->config.params.uvm_perf_thrashing_threshold;
    um_thrash_t *thrash = visit->block->thrash;
    uint64_t last_ns = thrash->page[page].last_ns;

    thrash->page[page].last_ns = visit->now_ns + 1;
    if (!last_ns)
        return;
    if (visit->now_ns + 1 <= last_ns + visit->uvm->lapse_ns) {
        if (thrash->page[page].events < threshold && ++thrash->page[page].events == threshold) {
            um_set_fill(&thrash->thrashing, page, page + 1);
            tell_thrash(visit, page);
        }
        if (thrash->page[page].events >= threshold)
            thrash->last_thrash_ns = visit->now_ns;
    } else if (um_set_has(&thrash->thrashing, page)) {
        um_set_t one = um_set_of(page, page + 1);

        forget(thrash, &one);
    }
}

um_status_t um_thrash_note(um_visit_t *visit, uint32_t processor, const um_set_t *moved)
{
    um_block_t *block = visit->block;
    um_set_t free_to_move = *moved;

    if (block->thrash)
        um_set_drop(&free_to_move, &block->thrash->pinned);
    if (!visit->uvm->config.params.uvm_perf_thrashing_enable || um_set_empty(&free_to_move))
        return UM_OK;
    if (!block->thrash && block->moved_ns && block->moved_to != processor &&
        visit->now_ns + 1 <= block->moved_ns + visit->uvm->lapse_ns) {
        block->thrash = calloc(1, sizeof(*block->thrash));
        if (!block->thrash)
            return UM_ERR_NO_MEMORY;
        block->thrash->holder = UM_NOBODY;
        block->thrash->processors = UM_BIT(block->moved_to);
    }
    if (block->thrash) {
        block->thrash->processors |= UM_BIT(processor);
        for (uint32_t page = um_set_next(&free_to_move, 0); page < UM_SET_PAGES;
             page = um_set_next(&free_to_move, page + 1))
            count_event(visit, page);
    }
    block->moved_ns = visit->now_ns + 1;
    block->moved_to = (uint8_t)processor;
    return UM_OK;
}

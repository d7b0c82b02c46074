/* The thrashing detector: pages that bounce are first throttled, then pinned where all reach them. */
#include <stdlib.h>

#include "sim/uvm_state.h"

void um_thrash_reset(um_block_t *block)
{
    free(block->thrash);
    block->thrash = NULL;
    block->moved_ns = 0;
}

static void forget(um_thrash_t *thrash, const um_set_t *pages)
{
    for (uint32_t page = um_set_next(pages, 0); page < UM_SET_PAGES;
         page = um_set_next(pages, page + 1))
        thrash->page[page].events = thrash->page[page].throttles = 0;
    um_set_drop(&thrash->thrashing, pages);
    um_set_drop(&thrash->pinned, pages);
}

/* What was found wears off: pins run out, a page that comes back after a quiet lapse starts anew, and
 * so does a block after a quiet epoch, but a block only so many times. */
static void age(um_visit_t *visit, um_thrash_t *thrash, const um_set_t *faulted)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    uint64_t lapse_ns = visit->uvm->lapse_ns, now_ns = visit->now_ns;
    um_set_t calm = um_set_and(faulted, &thrash->thrashing);

    if (thrash->last_thrash_ns && thrash->resets < params->uvm_perf_thrashing_max_resets &&
        now_ns > thrash->last_thrash_ns + params->uvm_perf_thrashing_epoch * lapse_ns) {
        um_set_t all = um_set_of(0, UM_SET_PAGES);

        forget(thrash, &all);
        thrash->last_thrash_ns = 0;
        thrash->resets++;
        return;
    }
    if (!um_set_empty(&thrash->pinned) && now_ns >= thrash->pin_end_ns) {
        um_set_t pinned = thrash->pinned;

        forget(thrash, &pinned);
    }
    um_set_drop(&calm, &thrash->pinned);
    for (uint32_t page = um_set_next(&calm, 0); page < UM_SET_PAGES;
         page = um_set_next(&calm, page + 1)) {
        um_set_t one = um_set_of(page, page + 1);

        if (now_ns > thrash->page[page].last_ns + lapse_ns)
            forget(thrash, &one);
    }
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
static void throttle(um_visit_t *visit, uint32_t processor, const um_set_t *bouncing)
{
    um_thrash_t *thrash = visit->block->thrash;

    for (uint32_t page = um_set_next(bouncing, 0);
         page < UM_SET_PAGES && !(thrash->napping & UM_BIT(processor));
         page = um_set_next(bouncing, page + 1))
        thrash->page[page].throttles++;
    thrash->napping |= UM_BIT(processor);
    visit->work->throttles++;
    visit->work->nap_ns = thrash->nap_end_ns - visit->now_ns;
    tell_throttle(visit, processor, um_set_next(bouncing, 0), visit->work->nap_ns);
}

um_thrash_verdict_t um_thrash_ask(um_visit_t *visit, uint32_t processor, const um_set_t *faulted)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    um_thrash_t *thrash = visit->block->thrash;
    um_set_t bouncing, pinned;
    uint32_t throttles = 0;

    if (!thrash)
        return UM_THRASH_NO;
    age(visit, thrash, faulted);
    pinned = um_set_and(faulted, &thrash->pinned);
    bouncing = um_set_and(faulted, &thrash->thrashing);
    um_set_drop(&bouncing, &pinned);
    if (um_set_empty(&bouncing))
        return um_set_empty(&pinned) ? UM_THRASH_NO : UM_THRASH_PIN;

    thrash->processors |= UM_BIT(processor);
    thrash->last_thrash_ns = visit->now_ns;
    for (uint32_t page = um_set_next(&bouncing, 0); page < UM_SET_PAGES;
         page = um_set_next(&bouncing, page + 1))
        if (thrash->page[page].throttles > throttles)
            throttles = thrash->page[page].throttles;
    if (!is_let_through(visit, thrash, processor)) {
        throttle(visit, processor, &bouncing);
        return UM_THRASH_THROTTLE;
    }
    if (throttles < params->uvm_perf_thrashing_pin_threshold)
        return UM_THRASH_NO;
    thrash->pin_at = (uint8_t)pin_place(visit, processor);
    thrash->pin_end_ns = visit->now_ns + params->uvm_perf_thrashing_pin * visit->uvm->lapse_ns;
    um_set_add(&thrash->pinned, &bouncing);
    visit->work->pins++;
    return UM_THRASH_PIN;
}

/* Counts an event for each page; the first only opens the count (measured, MODEL.md). */
static void count_events(um_visit_t *visit, uint32_t processor, const um_set_t *moved)
{
    uint32_t threshold = visit->uvm->config.params.uvm_perf_thrashing_threshold;
    um_thrash_t *thrash = visit->block->thrash;

    thrash->processors |= UM_BIT(processor) | UM_BIT(visit->block->moved_to);
    for (uint32_t page = um_set_next(moved, 0); page < UM_SET_PAGES;
         page = um_set_next(moved, page + 1)) {
        thrash->page[page].last_ns = visit->now_ns;
        if (thrash->page[page].events <= threshold)
            thrash->page[page].events++;
        if (thrash->page[page].events <= threshold || um_set_has(&thrash->thrashing, page))
            continue;
        um_set_fill(&thrash->thrashing, page, page + 1);
        thrash->last_thrash_ns = visit->now_ns;
        tell_thrash(visit, page);
    }
}

um_status_t um_thrash_note(um_visit_t *visit, uint32_t processor, const um_set_t *moved)
{
    um_block_t *block = visit->block;

    if (!visit->uvm->config.params.uvm_perf_thrashing_enable || um_set_empty(moved))
        return UM_OK;
    if (block->moved_ns && block->moved_to != processor &&
        visit->now_ns <= block->moved_ns - 1 + visit->uvm->lapse_ns) {
        if (!block->thrash) {
            block->thrash = calloc(1, sizeof(*block->thrash));
            if (!block->thrash)
                return UM_ERR_NO_MEMORY;
            block->thrash->holder = UM_NOBODY;
        }
        count_events(visit, processor, moved);
    }
    block->moved_ns = visit->now_ns + 1;
    block->moved_to = (uint8_t)processor;
    return UM_OK;
}

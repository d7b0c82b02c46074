/* The thrashing detector: pages that bounce are first throttled, then pinned where all reach them. */
#include <stdlib.h>

#include "sim/uvm_state.h"

void um_thrash_reset(um_block_t *block)
{
    free(block->thrash);
    block->thrash = NULL;
    block->moved_ns = 0;
}

static void forget(um_thrash_t *thrash)
{
    uint8_t resets = thrash->resets;

    memset(thrash, 0, sizeof(*thrash));
    thrash->resets = resets;
}

/* Pins run out, and so does the whole finding after a quiet epoch, but only so many times. */
static void age(um_visit_t *visit, um_thrash_t *thrash)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    uint64_t lapse_ns = visit->uvm->lapse_ns;

    if (!um_set_empty(&thrash->pinned) && visit->now_ns >= thrash->pin_end_ns) {
        for (uint32_t page = um_set_next(&thrash->pinned, 0); page < UM_SET_PAGES;
             page = um_set_next(&thrash->pinned, page + 1))
            thrash->events[page] = thrash->throttles[page] = 0;
        um_set_drop(&thrash->thrashing, &thrash->pinned);
        memset(&thrash->pinned, 0, sizeof(thrash->pinned));
    }
    if (thrash->last_thrash_ns && thrash->resets < params->uvm_perf_thrashing_max_resets &&
        visit->now_ns - thrash->last_thrash_ns > params->uvm_perf_thrashing_epoch * lapse_ns) {
        forget(thrash);
        thrash->resets++;
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
    um_event_t event = {.type = UM_EV_THROTTLE};

    event.u.throttle = (um_ev_throttle_t){.addr = um_visit_addr(visit, page),
                                          .duration_ns = ns,
                                          .device = um_device_of(processor),
                                          .region = visit->region->id};
    um_uvm_tell(visit->uvm, &event);
}

static void tell_thrash(const um_visit_t *visit, const um_set_t *pages)
{
    const um_thrash_t *thrash = visit->block->thrash;
    uint64_t processors = (uint64_t)thrash->processors >> 1;
    um_event_t event = {.type = UM_EV_THRASH};
    um_run_t run = {0, 0};

    if (thrash->processors & UM_BIT(UM_CPU))
        processors |= 1ULL << 63;
    while (um_set_next_run(pages, &run)) {
        event.u.thrash = (um_ev_thrash_t){.addr = um_visit_addr(visit, run.first),
                                          .bytes = (uint64_t)(run.end - run.first) * UM_PAGE_BYTES,
                                          .processors = processors,
                                          .region = visit->region->id};
        um_uvm_tell(visit->uvm, &event);
    }
}

um_thrash_verdict_t um_thrash_ask(um_visit_t *visit, uint32_t processor, const um_set_t *faulted)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    um_thrash_t *thrash = visit->block->thrash;
    um_set_t bouncing, pinned;
    uint32_t throttles = 0;

    if (!thrash)
        return UM_THRASH_NO;
    age(visit, thrash);
    pinned = um_set_and(faulted, &thrash->pinned);
    bouncing = um_set_and(faulted, &thrash->thrashing);
    um_set_drop(&bouncing, &pinned);
    if (um_set_empty(&bouncing))
        return um_set_empty(&pinned) ? UM_THRASH_NO : UM_THRASH_PIN;

    thrash->processors |= UM_BIT(processor);
    thrash->last_thrash_ns = visit->now_ns;
    for (uint32_t page = um_set_next(&bouncing, 0); page < UM_SET_PAGES;
         page = um_set_next(&bouncing, page + 1))
        if (thrash->throttles[page] > throttles)
            throttles = thrash->throttles[page];

    if (throttles >= params->uvm_perf_thrashing_pin_threshold) {
        thrash->pin_at = (uint8_t)pin_place(visit, processor);
        thrash->pin_end_ns = visit->now_ns + params->uvm_perf_thrashing_pin * visit->uvm->lapse_ns;
        um_set_add(&thrash->pinned, &bouncing);
        visit->work->pins++;
        return UM_THRASH_PIN;
    }
    /* One processor is let through; who comes while it holds the pages takes a nap, once. */
    if (processor == thrash->holder)
        return UM_THRASH_NO;
    if (visit->now_ns < thrash->nap_end_ns || !thrash->napping) {
        if (visit->now_ns >= thrash->nap_end_ns) {
            thrash->nap_end_ns =
                visit->now_ns + params->uvm_perf_thrashing_nap * visit->uvm->lapse_ns;
            for (uint32_t page = um_set_next(&bouncing, 0); page < UM_SET_PAGES;
                 page = um_set_next(&bouncing, page + 1))
                thrash->throttles[page]++;
            visit->work->throttles++;
            tell_throttle(visit, processor, um_set_next(&bouncing, 0),
                          thrash->nap_end_ns - visit->now_ns);
        } else {
            visit->work->throttles++;
        }
        thrash->napping = true;
        visit->work->nap_ns = thrash->nap_end_ns - visit->now_ns;
        return UM_THRASH_THROTTLE;
    }
    thrash->napping = false;
    thrash->holder = (uint8_t)processor;
    return UM_THRASH_NO;
}

um_status_t um_thrash_note(um_visit_t *visit, uint32_t processor, const um_set_t *moved)
{
    const um_uvm_params_t *params = &visit->uvm->config.params;
    um_block_t *block = visit->block;
    um_set_t found = {{0}};
    bool first = !block->moved_ns, other = block->moved_to != processor;
    bool soon = !first && visit->now_ns - (block->moved_ns - 1) <= visit->uvm->lapse_ns;

    if (!params->uvm_perf_thrashing_enable || um_set_empty(moved))
        return UM_OK;
    if (!first && other && soon && !block->thrash) {
        block->thrash = calloc(1, sizeof(*block->thrash));
        if (!block->thrash)
            return UM_ERR_NO_MEMORY;
    }
    if (block->thrash) {
        um_thrash_t *thrash = block->thrash;

        for (uint32_t page = um_set_next(moved, 0); page < UM_SET_PAGES;
             page = um_set_next(moved, page + 1)) {
            if (!soon)
                thrash->events[page] = 0;
            else if (other && thrash->events[page] < UINT8_MAX)
                thrash->events[page]++;
            if (thrash->events[page] >= params->uvm_perf_thrashing_threshold &&
                !um_set_has(&thrash->thrashing, page))
                um_set_fill(&found, page, page + 1);
        }
        if (soon && other)
            thrash->processors |= UM_BIT(processor) | UM_BIT(block->moved_to);
        if (!um_set_empty(&found)) {
            um_set_add(&thrash->thrashing, &found);
            thrash->last_thrash_ns = visit->now_ns;
            thrash->holder = (uint8_t)processor;
            thrash->napping = false;
            tell_thrash(visit, &found);
        }
    }
    block->moved_ns = visit->now_ns + 1;
    block->moved_to = (uint8_t)processor;
    return UM_OK;
}

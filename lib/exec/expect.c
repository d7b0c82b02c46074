#include "expect.h"

void um_expect_hurry(um_expect_t *expect)
{
    expect->pause = expect->since = 0;
}

/* Is it time to ask? */
static bool is_due(um_expect_t *expect, const um_view_t *view)
{
    if (um_gate_idle(view->gate) > UM_EXPECT_AGAIN)
        return false;
    if (expect->unfinished)
        return true;
    return um_sequences_moves(view->sequences) != expect->moves && expect->since++ >= expect->pause;
}

/* false = enough is on its way. */
static bool ask_range(um_range_t *range, um_view_t *view, um_expect_fn ask, void *ctx,
                      uint32_t *admitted)
{
    uint64_t addr, bytes;

    um_range_start(range);
    while (um_range_next(range, &addr, &bytes)) {
        view->stretch = (um_stretch_t){.region = range->argument.region,
                                       .addr = addr,
                                       .bytes = bytes,
                                       .range_bytes = range->end - range->addr};
        view->footprint = range->known;
        view->asked = false;
        view->held = 0;
        *admitted += ask(ctx);
        if (um_gate_idle(view->gate) >= UM_EXPECT_PIECES)
            return false;
        if (!view->asked)
            break; /* nobody wanted to know about this stretch: nobody will about the others */
    }
    return true;
}

/* Bytes of the range that are not known to be on the launch's device. */
static uint64_t missing(const um_range_t *range, const um_view_t *view)
{
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t bytes = 0;

    for (uint64_t at = range->addr, next; at < range->end; at = next) {
        size_t n;

        next = at / UM_BLOCK_BYTES * UM_BLOCK_BYTES + UM_VIEW_STRETCH_BYTES;
        next = next < range->end ? next : range->end;
        n = um_residency_extents(view->residency, range->argument.region, at, next - at, extent,
                                 UM_VIEW_STRETCH_EXTENTS);
        for (size_t i = 0; i < n; i++)
            if (extent[i].where != UM_WHERE_DEVICE)
                bytes += extent[i].bytes;
    }
    return bytes;
}

uint32_t um_expect_idle(um_expect_t *expect, const um_range_sources_t *from,
                        const um_sharing_t *sharing, um_view_t *view, um_expect_fn ask, void *ctx)
{
    uint32_t admitted = 0, n, most;
    uint64_t lacking = 0;
    bool more = true;

    if (!is_due(expect, view))
        return 0;
    expect->since = 0;
    expect->moves = um_sequences_moves(view->sequences);
    view->missing = 0;
    view->now_ns = expect->now_ns;
    n = um_sequences_next(view->sequences, expect->next, UM_EXPECT_LAUNCHES);
    for (uint32_t i = 0; i < n && more; i++) {
        um_next_t *next = &expect->next[i];
        uint32_t ranges;

        if (!next->launch.context)
            next->launch.context = expect->context;
        next->launch.correlation = expect->correlation;
        view->next = next;
        view->launch = &next->launch;
        ranges =
            um_ranges_expect(from, &next->launch, next->kernel, expect->range, UM_EXPECT_RANGES);
        for (uint32_t r = 0; r < ranges && more; r++) {
            if (!um_sharing_is_shared(sharing, expect->range[r].argument.region,
                                      next->launch.device))
                more = ask_range(&expect->range[r], view, ask, ctx, &admitted);
            lacking += missing(&expect->range[r], view);
        }
    }
    view->next = NULL;
    view->launch = NULL;
    expect->unfinished = !more;
    most = lacking ? UM_EXPECT_SHORT : UM_EXPECT_PAUSE;
    expect->pause = admitted ? 0 : 2 * expect->pause + 1;
    if (expect->pause > most)
        expect->pause = most;
    return admitted;
}

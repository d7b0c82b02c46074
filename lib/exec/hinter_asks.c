/* When the advisors are asked: at launches, at waits, about regions that are new and launches to come. */
#include "hinter_impl.h"

#include <string.h>

#include "core/log.h"

#define QUIET_WAITS 16u /* waits in a row at which nothing was wanted */
#define MAX_REARM   64u /* at least every so many ends of waits the next launch wakes */

/* While nothing is wanted at waits, they need not either. */
static void set_waiting(um_hinter_t *hinter, bool wanted)
{
    hinter->quiet_waits = wanted ? 0 : hinter->quiet_waits + 1;
    if (hinter->config.waiting && (wanted || hinter->quiet_waits == QUIET_WAITS))
        atomic_store_explicit(hinter->config.waiting, wanted, memory_order_relaxed);
}

/* ---- one launch ---- */

static um_hints_t hints_of(um_hinter_t *hinter, unsigned i)
{
    return (um_hints_t){.gate = hinter->gate,
                        .view = &hinter->view,
                        .who = hinter->advisor[i].ops,
                        .guard = hinter->guard,
                        .index = i,
                        .account = &hinter->advisor[i].account};
}

/* Who may propose here; what has lost and is in force is taken back. */
static void ask_guard(um_hinter_t *hinter)
{
    um_hint_t hint;
    unsigned i;

    hinter->allowed = UINT32_MAX;
    if (!hinter->guard)
        return;
    hinter->allowed = um_guard_allowed(hinter->guard);
    while (um_guard_take_back(hinter->guard, &hint, &i)) {
        um_hints_t hints = hints_of(hinter, i);

        hints.guard = NULL;
        um_hints_add(&hints, &hint);
    }
}

/* Asks every advisor about the next stretch of a range. false = the range is done with. */
static bool decide_stretch(um_hinter_t *hinter, um_range_t *range)
{
    um_view_t *view = &hinter->view;
    bool front = um_range_is_whole(range);
    uint64_t addr, bytes;

    if (!um_range_next(range, &addr, &bytes))
        return false;
    view->stretch = (um_stretch_t){.region = range->argument.region,
                                   .addr = addr,
                                   .bytes = bytes,
                                   .range_bytes = range->end - range->addr,
                                   .first_of_launch = front && range == hinter->range,
                                   .first_of_region = front && (range == hinter->range ||
                                                                range[-1].argument.region !=
                                                                    range->argument.region)};
    view->footprint = range->known;
    view->watch = range->watch;
    view->asked = false;
    view->held = 0;
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        um_hints_t hints = hints_of(hinter, i);

        if (!ops->decide || !(hinter->allowed >> i & 1) ||
            (range->settled && !ops->always && !ops->blind))
            continue;
        ops->decide(hinter->advisor[i].state, view, &hints);
        range->admitted += hints.admitted;
        range->declined |= hints.declined;
    }
    for (unsigned b = 0; b < UM_VIEW_STRETCH_EXTENTS && view->held; b++)
        if (view->held >> b & 1)
            um_residency_leave(hinter->residency, range->argument.region,
                               (view->stretch.addr / UM_BLOCK_BYTES + b) * UM_BLOCK_BYTES,
                               UM_BLOCK_BYTES);
    range->asked |= view->asked;
    /* Nobody wanted to know about the first stretch: nobody will about the others. */
    return view->asked && um_range_has_more(range);
}

/* The launch takes its ranges, but for what is other GPUs'; returns how many are left. */
static uint32_t take(um_hinter_t *hinter, const um_event_t *event, uint32_t n)
{
    const um_ev_launch_t *launch = &event->u.launch;
    uint32_t kept = 0;

    for (uint32_t i = 0, of; i < n; i += of) {
        um_argument_t first = hinter->range[i].argument;
        uint64_t limit = UINT64_MAX;
        bool others;

        of = um_ranges_of_region(&hinter->range[i], n - i);
        others = um_sharing_launch(&hinter->sharing, launch, first.region, first.addr, &limit);
        for (uint32_t k = i; k < i + of; k++) {
            um_range_t range = hinter->range[k];

            if (others)
                um_residency_doubt(hinter->residency, first.region, range.addr,
                                   range.end - range.addr, launch->device);
            if (limit > first.addr && limit < range.end)
                range.end = limit;
            if (range.addr >= range.end)
                continue;
            um_gate_taken(hinter->gate, event, range.addr, range.end - range.addr);
            if (limit > first.addr)
                hinter->range[kept++] = range;
        }
    }
    return kept;
}

/* Drops the regions whose ranges are there already, unless somebody is asked about those too; returns how
 * many ranges are left. */
static uint32_t leave_out_settled(um_hinter_t *hinter, uint32_t n, int32_t device)
{
    uint32_t kept = 0;

    for (uint32_t i = 0, of; i < n; i += of) {
        bool settled = true;

        of = um_ranges_of_region(&hinter->range[i], n - i);
        for (uint32_t k = i; k < i + of; k++) {
            um_range_t *range = &hinter->range[k];

            range->settled = um_residency_settled(hinter->residency, range->argument.region,
                                                  range->addr, range->end - range->addr, device);
            settled &= range->settled;
        }
        if (settled && !hinter->any_always)
            continue;
        memmove(&hinter->range[kept], &hinter->range[i], of * sizeof(um_range_t));
        kept += of;
    }
    return kept;
}

static um_settled_by_t settled_by(const um_hinter_t *hinter, uint32_t region,
                                  const um_ev_launch_t *launch)
{
    return (um_settled_by_t){.region = region,
                             .kernel = launch->kernel,
                             .grid = (uint64_t)launch->grid[2] * launch->grid[1] << 32 |
                                     launch->grid[0],
                             .threads =
                                 (uint64_t)launch->block[0] * launch->block[1] * launch->block[2],
                             .graph = launch->graph,
                             .integers = um_footprints_integers(hinter->footprints, launch)};
}

static bool is_settled_by(const um_hinter_t *hinter, uint32_t region, const um_ev_launch_t *launch)
{
    const um_settled_by_t *last = &hinter->settled_by[region % UM_HINTER_SETTLED_BY];
    um_settled_by_t now = settled_by(hinter, region, launch);

    return last->region == region && last->kernel == now.kernel && last->grid == now.grid &&
           last->threads == now.threads && last->graph == now.graph &&
           last->integers == now.integers;
}

/* A launch like the last one on its regions, with no wait between: most launches of a loop. Fills in its
 * ranges and returns how many, 0 = it has to be looked at. */
static uint32_t still_settled(um_hinter_t *hinter, const um_ev_launch_t *launch)
{
    uint32_t n = 0;

    for (uint32_t a = 0; a < launch->n_args; a++) {
        const um_arg_t *arg = &launch->args[a];
        uint64_t addr, bytes, used;

        if (!um_residency_region(hinter->residency, arg->region, &addr, &bytes))
            continue;
        addr += arg->region_offset_bytes;
        if (n == UM_HINTER_RANGES || arg->region_offset_bytes >= bytes ||
            !is_settled_by(hinter, arg->region, launch) ||
            !um_residency_settled_from(hinter->residency, arg->region, addr, launch->device, &used))
            return 0;
        hinter->range[n].addr = addr;
        hinter->range[n++].end = addr + used;
    }
    return n;
}

/* Somebody is kept from proposing for the sake of comparison: what is left to faults shows what it touches, too. */
static bool is_withheld(const um_hinter_t *hinter)
{
    return ~hinter->allowed & (uint32_t)(((uint64_t)1 << hinter->n_advisors) - 1);
}

static void begin(um_hinter_t *hinter, um_range_t *range, uint32_t n, const um_ev_launch_t *launch,
                  uint64_t now_ns)
{
    bool settled = true;

    for (uint32_t i = 0; i < n; i++) {
        um_range_t *at = &range[i];

        um_range_start(at);
        settled &= at->settled;
        if (!at->settled)
            at->watch = um_footprints_watch(hinter->footprints, launch, &at->argument,
                                            at->addr - at->argument.addr,
                                            at->end - at->argument.addr, is_withheld(hinter));
    }
    if (!settled)
        um_residency_launch_begin(hinter->residency, range->argument.region, range->addr,
                                  range[n - 1].end - range->addr, now_ns);
}

/* Returns the pieces admitted for the ranges of a region. */
static uint32_t end(um_hinter_t *hinter, um_range_t *range, uint32_t n,
                    const um_ev_launch_t *launch)
{
    bool withheld = is_withheld(hinter);
    uint32_t admitted = 0;

    um_ranges_leave_gaps(range, n, hinter->residency);
    for (uint32_t i = 0; i < n; i++) {
        admitted += range[i].admitted;
        if (range[i].declined)
            atomic_fetch_add_explicit(&hinter->declined, 1, memory_order_relaxed);
    }
    /* What the CPU took is news for a later wait, too. */
    hinter->settled_by[range->argument.region % UM_HINTER_SETTLED_BY] =
        settled_by(hinter, range->argument.region, launch);
    um_residency_launch_end(hinter->residency, range->argument.region, launch->device,
                            admitted > 0 || hinter->any_sync);
    for (uint32_t i = 0; i < n; i++)
        um_footprints_decided(hinter->footprints, range[i].watch,
                              range[i].admitted                                  ? UM_WATCH_HINTED
                              : range[i].declined || withheld || !range[i].asked ? UM_WATCH_LEFT
                                                                                 : UM_WATCH_QUIET);
    return admitted;
}

void um_hinter_on_launch(um_hinter_t *hinter, const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;
    const um_range_sources_t sources = {hinter->residency, hinter->footprints, hinter->slices};
    uint32_t n = 0, admitted = 0;
    bool more, settled;

    if (atomic_load(&hinter->no_hints) && !atomic_load(&hinter->takes_hints))
        return;
    /* Put into a graph, it does not run now: its turn comes with the graph's launch. */
    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    settled = !hinter->any_always && (n = still_settled(hinter, launch)) > 0;
    if (!settled && !(n = um_ranges_collect(&sources, event, hinter->range, UM_HINTER_RANGES)))
        return;
    more = !settled;
    hinter->view.launch = launch;
    hinter->view.now_ns = event->time_ns;
    hinter->view.tid = event->tid;
    hinter->view.stretch = (um_stretch_t){0};
    ask_guard(hinter);
    n = take(hinter, event, n);
    n = settled ? 0 : leave_out_settled(hinter, n, launch->device);
    for (uint32_t i = 0, of; i < n; i += of) {
        of = um_ranges_of_region(&hinter->range[i], n - i);
        begin(hinter, &hinter->range[i], of, launch, event->time_ns);
    }
    /* The kernel goes through its arguments side by side, and some backwards: so do we. */
    while (more) {
        more = false;
        for (uint32_t i = 0; i < n; i++)
            more |= decide_stretch(hinter, &hinter->range[i]);
    }
    hinter->view.watch = NULL;
    for (uint32_t i = 0, of; i < n; i += of) {
        of = um_ranges_of_region(&hinter->range[i], n - i);
        admitted += end(hinter, &hinter->range[i], of, launch);
    }
    hinter->view.launch = NULL;
    um_log(UM_LOG_DEBUG, "%.3f ms: launch %u: %u pieces for %u managed arguments",
           (double)event->time_ns * 1e-6, launch->correlation, admitted, n);
    if (admitted) {
        atomic_fetch_add_explicit(&hinter->hinted_launches, 1, memory_order_relaxed);
        um_hinter_set_hinting(hinter, true);
        hinter->rearm = 1;
        hinter->armed = false;
    } else if (++hinter->quiet == UM_HINTER_QUIET_AFTER) {
        um_hinter_set_hinting(hinter, false);
        if (hinter->armed && hinter->rearm < MAX_REARM)
            hinter->rearm *= 2;
        hinter->armed = false;
    }
}

/* ---- one wait ---- */

void um_hinter_on_left(um_hinter_t *hinter, uint64_t now_ns)
{
    um_view_t *view = &hinter->view;
    int64_t took = (int64_t)(now_ns - hinter->left_ns);

    if (!hinter->launched)
        return;
    if (hinter->left_ns)
        view->pace_ns = view->pace_ns
                            ? view->pace_ns + (uint64_t)((took - (int64_t)view->pace_ns) / 4)
                            : (uint64_t)took;
    hinter->left_ns = now_ns;
    hinter->launched = false;
}

void um_hinter_on_wait(um_hinter_t *hinter, const um_event_t *event)
{
    um_view_t *view = &hinter->view;
    uint32_t admitted = 0;

    if (!hinter->any_sync || (atomic_load(&hinter->no_hints) && !atomic_load(&hinter->takes_hints)))
        return;
    view->sync = &event->u.sync;
    view->now_ns = event->time_ns;
    view->tid = event->tid;
    view->stretch = (um_stretch_t){0};
    view->footprint = (um_footprint_t){0};
    view->held = 0;
    ask_guard(hinter);
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        um_hints_t hints = hints_of(hinter, i);

        if (ops->decide_sync && hinter->allowed >> i & 1)
            ops->decide_sync(hinter->advisor[i].state, view, &hints);
        admitted += hints.admitted;
    }
    view->sync = NULL;
    set_waiting(hinter, admitted > 0);
}

/* ---- launches that are expected ---- */

static uint32_t ask_ahead(void *ctx)
{
    um_hinter_t *hinter = ctx;
    uint32_t admitted = 0;

    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        um_hints_t hints = hints_of(hinter, i);

        if (!ops->ahead || !ops->decide || !(hinter->allowed >> i & 1))
            continue;
        ops->decide(hinter->advisor[i].state, &hinter->view, &hints);
        admitted += hints.admitted;
    }
    return admitted;
}

void um_hinter_look_ahead(um_hinter_t *hinter)
{
    const um_range_sources_t sources = {hinter->residency, hinter->footprints, hinter->slices};

    if (!hinter->any_ahead || !hinter->takes_hints)
        return;
    hinter->allowed = hinter->guard ? um_guard_allowed(hinter->guard) : UINT32_MAX;
    um_expect_idle(&hinter->expect, &sources, &hinter->sharing, &hinter->view, ask_ahead, hinter);
}

/* ---- one new region ---- */

/* What is in it nobody knows: it was there before, or another region was in its place. */
#define USED_BEFORE (UM_REGION_BEFORE_UMRT | UM_REGION_POOL)

void um_hinter_on_new(um_hinter_t *hinter, const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;
    um_view_t *view = &hinter->view;

    if (!hinter->any_alloc || hinter->only_device < 0 || !hinter->context ||
        alloc->flags & USED_BEFORE)
        return;
    view->alloc = alloc;
    view->context = hinter->context;
    view->device = hinter->only_device;
    view->now_ns = event->time_ns;
    view->tid = event->tid;
    view->stretch = (um_stretch_t){.region = alloc->region,
                                   .addr = alloc->addr,
                                   .bytes = alloc->bytes,
                                   .range_bytes = alloc->bytes,
                                   .first_of_launch = true,
                                   .first_of_region = true};
    view->footprint = (um_footprint_t){0};
    view->held = 0;
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        um_hints_t hints = hints_of(hinter, i);

        hints.guard = NULL; /* the launch or wait before has nothing to do with it */
        if (ops->decide_alloc)
            ops->decide_alloc(hinter->advisor[i].state, view, &hints);
    }
    view->alloc = NULL;
}

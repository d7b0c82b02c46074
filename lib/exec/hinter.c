#include "hinter.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/log.h"
#include "expect.h"
#include "ranges.h"
#include "sharing.h"
#include "view.h"

#define MAX_ADVISORS UM_GUARD_ADVISORS
#define MAX_RANGES   256 /* of one launch; more are left alone */
#define QUIET_AFTER  4   /* launches in a row that needed nothing */
#define QUIET_WAITS  16u /* waits in a row at which nothing was wanted */
#define MAX_REARM    64u /* at least every so many ends of waits the next launch wakes, */
#define LONG_PHASE   3u  /* or when so many drains have found nothing since */
#define SETTLED_BY   64u /* regions by id modulo this */
#define EVERY        "all"

typedef struct advisor {
    const um_advisor_ops_t *ops;
    void *state;
    um_account_t account;
} advisor_t;

/* The launch that left a region settled: what another kernel uses of it may be more. */
typedef struct settled_by {
    uint32_t region, kernel;
    uint64_t grid, threads, graph;
} settled_by_t;

struct um_hinter {
    um_hinter_config_t config;
    um_gate_t *gate;
    um_guard_t *guard; /* NULL = every advisor may always propose */
    uint32_t allowed;  /* bits of those that may, now */
    um_residency_t *residency;
    um_footprints_t *footprints;
    um_slices_t *slices;
    um_sequences_t *sequences;
    um_expect_t expect;
    advisor_t advisor[MAX_ADVISORS];
    unsigned n_advisors;
    bool any_always, any_sync; /* some advisor is asked always; some decides at waits, */
    bool any_alloc;            /* or at new regions; */
    bool any_ahead;            /* some looks at launches that are expected */
    um_view_t view;
    um_sharing_t sharing;
    um_range_t range[MAX_RANGES];
    uint32_t context, prepared; /* made last; that the executor is ready for */
    int32_t only_device;        /* the GPU that takes hints, NONE while it is not one */
    settled_by_t settled_by[SETTLED_BY];
    uint64_t left_ns; /* when the last wait ended that followed a launch */
    bool launched;    /* since */
    unsigned quiet;   /* launches in a row that needed nothing */
    unsigned quiet_waits;
    unsigned rearm,
        since_rearm; /* the next launch wakes after every rearm-th wait's end; ends since */
    bool armed;      /* it does, and has not come yet */
    unsigned
        cpu_is_busy; /* the last thing heard of the program is that it left a wait: drains until
                             that is a long phase */

    /* read by any thread */
    _Atomic uint64_t hinted_launches, declined;
    _Atomic(const char *) no_hints;
    _Atomic bool takes_hints; /* some GPU does */
};

/* ---- waking ---- */

/* While nothing moves, launches need not wake this thread. */
static void set_hinting(um_hinter_t *hinter, bool on)
{
    on = on && hinter->n_advisors > 0 && (!hinter->no_hints || hinter->takes_hints);
    if (hinter->config.hinting)
        atomic_store_explicit(hinter->config.hinting, on, memory_order_relaxed);
    if (on)
        hinter->quiet = 0;
}

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

static settled_by_t settled_by(uint32_t region, const um_ev_launch_t *launch)
{
    return (
        settled_by_t){.region = region,
                      .kernel = launch->kernel,
                      .grid = (uint64_t)launch->grid[2] * launch->grid[1] << 32 | launch->grid[0],
                      .threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2],
                      .graph = launch->graph};
}

static bool is_settled_by(const um_hinter_t *hinter, uint32_t region, const um_ev_launch_t *launch)
{
    const settled_by_t *last = &hinter->settled_by[region % SETTLED_BY];
    settled_by_t now = settled_by(region, launch);

    return last->region == region && last->kernel == now.kernel && last->grid == now.grid &&
           last->threads == now.threads && last->graph == now.graph;
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
        if (n == MAX_RANGES || arg->region_offset_bytes >= bytes ||
            !is_settled_by(hinter, arg->region, launch) ||
            !um_residency_settled_from(hinter->residency, arg->region, addr, launch->device, &used))
            return 0;
        hinter->range[n].addr = addr;
        hinter->range[n++].end = addr + used;
    }
    return n;
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
            at->watch =
                um_footprints_watch(hinter->footprints, launch, &at->argument,
                                    at->addr - at->argument.addr, at->end - at->argument.addr);
    }
    if (!settled)
        um_residency_launch_begin(hinter->residency, range->argument.region, range->addr,
                                  range[n - 1].end - range->addr, now_ns);
}

/* Returns the pieces admitted for the ranges of a region. */
static uint32_t end(um_hinter_t *hinter, um_range_t *range, uint32_t n,
                    const um_ev_launch_t *launch)
{
    /* Kept from proposing for the sake of comparison: it shows what it touches, too. */
    bool withheld = ~hinter->allowed & (uint32_t)(((uint64_t)1 << hinter->n_advisors) - 1);
    uint32_t admitted = 0;

    um_ranges_leave_gaps(range, n, hinter->residency);
    for (uint32_t i = 0; i < n; i++) {
        admitted += range[i].admitted;
        if (range[i].declined)
            atomic_fetch_add_explicit(&hinter->declined, 1, memory_order_relaxed);
    }
    /* What the CPU took is news for a later wait, too. */
    hinter->settled_by[range->argument.region % SETTLED_BY] =
        settled_by(range->argument.region, launch);
    um_residency_launch_end(hinter->residency, range->argument.region, launch->device,
                            admitted > 0 || hinter->any_sync);
    for (uint32_t i = 0; i < n; i++)
        um_footprints_decided(hinter->footprints, range[i].watch,
                              range[i].admitted                                  ? UM_WATCH_HINTED
                              : range[i].declined || withheld || !range[i].asked ? UM_WATCH_LEFT
                                                                                 : UM_WATCH_QUIET);
    return admitted;
}

static void on_launch(um_hinter_t *hinter, const um_event_t *event)
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
    if (!settled && !(n = um_ranges_collect(&sources, event, hinter->range, MAX_RANGES)))
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
        set_hinting(hinter, true);
        hinter->rearm = 1;
        hinter->armed = false;
    } else if (++hinter->quiet == QUIET_AFTER) {
        set_hinting(hinter, false);
        if (hinter->armed && hinter->rearm < MAX_REARM)
            hinter->rearm *= 2;
        hinter->armed = false;
    }
}

/* ---- one wait ---- */

static void on_left(um_hinter_t *hinter, uint64_t now_ns)
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

static void on_wait(um_hinter_t *hinter, const um_event_t *event)
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

static void look_ahead(um_hinter_t *hinter)
{
    const um_range_sources_t sources = {hinter->residency, hinter->footprints, hinter->slices};

    if (!hinter->any_ahead || !hinter->takes_hints)
        return;
    hinter->allowed = hinter->guard ? um_guard_allowed(hinter->guard) : UINT32_MAX;
    um_expect_idle(&hinter->expect, &sources, &hinter->sharing, &hinter->view, ask_ahead, hinter);
}

/* ---- one new region ---- */

static void on_new(um_hinter_t *hinter, const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;
    um_view_t *view = &hinter->view;

    if (!hinter->any_alloc || hinter->only_device < 0 || !hinter->context)
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
    ask_guard(hinter);
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        um_hints_t hints = hints_of(hinter, i);

        if (ops->decide_alloc && hinter->allowed >> i & 1)
            ops->decide_alloc(hinter->advisor[i].state, view, &hints);
    }
    view->alloc = NULL;
}

/* ---- other events ---- */

static void on_device(um_hinter_t *hinter, const um_ev_device_t *device)
{
    const char *no = um_gate_device(hinter->gate, device);

    if (!no) {
        hinter->only_device =
            atomic_load(&hinter->takes_hints) && hinter->only_device != device->device
                ? UM_DEVICE_NONE
                : device->device;
        atomic_store(&hinter->takes_hints, true);
        set_hinting(hinter, true);
        return;
    }
    atomic_store(&hinter->no_hints, no);
    if (!atomic_load(&hinter->takes_hints))
        set_hinting(hinter, false);
    um_log(UM_LOG_INFO, "gpu %d (%s) is only observed: %s", device->device, device->name, no);
}

static void enter_outcome(um_hinter_t *hinter, const um_ev_hint_t *hint)
{
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        um_account_t *account = &hinter->advisor[i].account;

        if (strcmp(account->who, hint->who) != 0)
            continue;
        account->driver_ns += hint->duration_ns;
        if (hint->result == UM_HINT_APPLIED) {
            account->applied++;
            account->applied_bytes += hint->bytes;
        } else if (hint->result == UM_HINT_FAILED) {
            account->failed++;
        } else {
            account->cancelled++;
        }
        return;
    }
}

/* Launches with managed memory are to be expected. */
static void on_managed(um_hinter_t *hinter)
{
    um_executor_t *executor = hinter->config.executor;

    set_hinting(hinter, true);
    if (hinter->context == hinter->prepared || !hinter->n_advisors)
        return;
    hinter->prepared = hinter->context;
    if (executor->ops->prepare)
        executor->ops->prepare(executor, hinter->context);
}

static void on_outcome(um_hinter_t *hinter, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;

    if (strcmp(hint->who, "app") == 0) {
        um_gate_app(hinter->gate, hint);
        return;
    }
    enter_outcome(hinter, hint);
    um_gate_done(hinter->gate, hint);
    um_log(UM_LOG_DEBUG,
           "%.3f ms: %s of %" PRIu64 " bytes at 0x%" PRIx64 ": %s, %.1f us in the driver (%s: %s)",
           (double)event->time_ns * 1e-6, um_hint_kind_name((um_hint_kind_t)hint->kind),
           hint->bytes, hint->addr, um_hint_result_name((um_hint_result_t)hint->result),
           (double)hint->duration_ns * 1e-3, hint->who, hint->why);
}

static void show_advisors(void *ctx, const um_event_t *event)
{
    um_hinter_t *hinter = ctx;

    for (unsigned i = 0; i < hinter->n_advisors; i++)
        if (hinter->advisor[i].ops->observe)
            hinter->advisor[i].ops->observe(hinter->advisor[i].state, event);
}

/* The page tables show what the CPU has taken. */
static void on_shown(void *ctx, const um_event_t *event)
{
    um_hinter_t *hinter = ctx;

    show_advisors(hinter, event);
    um_sequences_observe(hinter->sequences, event);
    um_expect_hurry(&hinter->expect);
}

static void on_event(void *ctx, const um_event_t *event)
{
    um_hinter_t *hinter = ctx;
    bool quiet = event->type == UM_EV_SYNC && event->u.sync.exit &&
                 um_sequences_is_quiet(hinter->sequences, event);

    if (event->type != UM_EV_ACCESS)
        show_advisors(hinter, event);
    if (hinter->guard)
        um_guard_observe(hinter->guard, event);
    if (!quiet)
        um_residency_observe(hinter->residency, event);
    um_footprints_observe(hinter->footprints, event);
    um_sequences_observe(hinter->sequences, event);
    hinter->expect.now_ns = event->time_ns;
    hinter->cpu_is_busy = event->type == UM_EV_SYNC && event->u.sync.exit ? LONG_PHASE : 0;
    switch (event->type) {
    case UM_EV_LAUNCH:
        hinter->expect.context = event->u.launch.context;
        hinter->expect.correlation = event->u.launch.correlation;
        hinter->launched = true;
        on_launch(hinter, event);
        break;
    case UM_EV_SYNC:
        um_gate_sync(hinter->gate, event);
        um_sharing_sync(&hinter->sharing, &event->u.sync);
        if (event->u.sync.exit)
            on_left(hinter, event->time_ns);
        else
            on_wait(hinter, event);
        break;
    case UM_EV_HINT:
        on_outcome(hinter, event);
        break;
    case UM_EV_CONTEXT:
        if (event->u.context.change == UM_CONTEXT_CREATED)
            hinter->context = hinter->expect.context = event->u.context.context;
        break;
    case UM_EV_DEVICE:
        on_device(hinter, &event->u.device);
        break;
    case UM_EV_REGION_ALLOC:
        um_expect_hurry(&hinter->expect);
        if (event->u.region_alloc.family != UM_FAMILY_MANAGED)
            break;
        on_managed(hinter);
        on_new(hinter, event);
        break;
    case UM_EV_REGION_FREE:
        um_gate_region_gone(hinter->gate, event->u.region_free.region);
        um_slices_forget(hinter->slices, event->u.region_free.region);
        break;
    case UM_EV_KERNEL:
        um_view_kernel(&hinter->view, &event->u.kernel);
        break;
    default:
        break;
    }
}

/* All that was posted has been seen. The program is in a phase of the CPU: the launch that ends it may
 * well need something, and at once. Where it hardly ever does, only long phases count. */
static void on_idle(void *ctx)
{
    um_hinter_t *hinter = ctx;

    look_ahead(hinter);
    if (!hinter->cpu_is_busy || hinter->quiet < QUIET_AFTER)
        return;
    if (--hinter->cpu_is_busy && ++hinter->since_rearm < hinter->rearm)
        return;
    hinter->cpu_is_busy = hinter->since_rearm = 0;
    hinter->armed = true;
    set_hinting(hinter, true);
    hinter->quiet = QUIET_AFTER - 1; /* one launch that needs nothing is enough */
}

um_sink_t um_hinter_sink(um_hinter_t *hinter)
{
    return (um_sink_t){.ctx = hinter, .event = on_event, .idle = on_idle};
}

/* ---- outcomes; on the executor's threads ---- */

static void on_done(void *ctx, const um_hint_t *hint, um_hint_result_t result, int32_t error,
                    uint64_t duration_ns)
{
    um_hinter_t *hinter = ctx;
    um_event_t event = {.type = UM_EV_HINT};

    event.u.hint = (um_ev_hint_t){.kind = hint->kind,
                                  .result = result,
                                  .addr = hint->addr,
                                  .bytes = hint->bytes,
                                  .device = hint->device,
                                  .region = hint->region,
                                  .correlation = hint->correlation,
                                  .error = error,
                                  .duration_ns = duration_ns,
                                  .who = hint->who,
                                  .why = hint->why};
    hinter->config.post(hinter->config.post_ctx, &event);
}

/* ---- going ---- */

void um_hinter_region_going(um_hinter_t *hinter, uint64_t addr, uint64_t now_ns)
{
    um_region_t region;

    if (um_regions_find(hinter->config.regions, addr, &region) &&
        region.family == UM_FAMILY_MANAGED)
        um_gate_region_going(hinter->gate, region.addr, region.bytes, now_ns);
}

void um_hinter_context_going(um_hinter_t *hinter, uint32_t context, uint64_t now_ns)
{
    um_gate_context_going(hinter->gate, context, now_ns);
}

/* ---- life ---- */

static bool named(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        at += strspn(at, " ");
        if (strncmp(at, name, length) == 0 && strchr(", ", at[length]))
            return true;
    }
    return false;
}

/* Of a table of one's own all are meant unless some are named. */
static const char *list_of(const um_hinter_config_t *config)
{
    if (config->advisors && *config->advisors)
        return config->advisors;
    return config->table ? EVERY : UM_ADVISORS_DEFAULT;
}

/* Names that nobody has. */
static void warn_of_unknown(const char *list, const um_advisor_ops_t *const *table)
{
    while (list && *list) {
        size_t length = strcspn(list += strspn(list, ", "), ", "), i = 0;

        while (table[i] &&
               (strlen(table[i]->name) != length || strncmp(table[i]->name, list, length) != 0))
            i++;
        if (length && !table[i] && (length != strlen(EVERY) || strncmp(list, EVERY, length) != 0))
            um_log(UM_LOG_WARN, "there is no advisor '%.*s'", (int)length, list);
        list += length;
    }
}

static um_status_t add_guard(um_hinter_t *hinter)
{
    um_guard_config_t config = {.budget_per_mille = hinter->config.guard_per_mille,
                                .trial = hinter->config.guard_trial};

    for (unsigned i = 0; i < hinter->n_advisors; i++)
        config.advisor[i] = hinter->advisor[i].ops->name;
    return config.budget_per_mille || config.trial ? um_guard_new(&config, &hinter->guard) : UM_OK;
}

static um_status_t add_advisor(um_hinter_t *hinter, const um_advisor_ops_t *ops)
{
    advisor_t *advisor = &hinter->advisor[hinter->n_advisors];
    size_t bytes = ops->state_bytes ? ops->state_bytes : 1;

    if (ops->abi != UM_ADVISOR_ABI || hinter->n_advisors == MAX_ADVISORS)
        return UM_OK;
    *advisor = (advisor_t){.ops = ops, .state = calloc(1, bytes), .account = {.who = ops->name}};
    if (!advisor->state)
        return UM_ERR_NO_MEMORY;
    um_advisor_options(ops, advisor->state);
    if (ops->init && !ops->init(advisor->state)) {
        free(advisor->state);
        return UM_OK;
    }
    hinter->n_advisors++;
    hinter->any_always |= ops->always || ops->blind;
    hinter->any_sync |= ops->decide_sync != NULL;
    hinter->any_ahead |= ops->ahead;
    hinter->any_alloc |= ops->decide_alloc != NULL;
    return UM_OK;
}

static uint64_t device_bytes(void *ctx, int32_t device)
{
    return um_residency_device_bytes(((um_hinter_t *)ctx)->residency, device);
}

um_status_t um_hinter_new(const um_hinter_config_t *config, um_hinter_t **out)
{
    const um_advisor_ops_t *const *table = config->table ? config->table : um_advisor_table;
    const char *advisors = list_of(config);
    um_hinter_t *hinter = calloc(1, sizeof(*hinter));
    um_status_t status = UM_ERR_NO_MEMORY;

    if (!hinter)
        return UM_ERR_NO_MEMORY;
    hinter->config = *config;
    hinter->config.gate.regions = config->regions;
    hinter->config.gate.executor = config->executor;
    hinter->config.gate.device_bytes = device_bytes;
    hinter->config.gate.device_bytes_ctx = hinter;
    if ((status = um_gate_new(&hinter->config.gate, &hinter->gate)) != UM_OK ||
        (status = um_residency_new(config->page_tables, &hinter->residency)) != UM_OK ||
        (status = um_footprints_new(hinter->residency, &hinter->footprints)) != UM_OK ||
        (status = um_slices_new(&hinter->slices)) != UM_OK)
        goto fail;
    hinter->view.gate = hinter->gate;
    hinter->view.residency = hinter->residency;
    hinter->view.footprints = hinter->footprints;
    for (size_t i = 0; table[i]; i++)
        if ((named(advisors, table[i]->name) || named(advisors, EVERY)) &&
            (status = add_advisor(hinter, table[i])) != UM_OK)
            goto fail;
    if ((status = um_sequences_new(hinter->any_ahead ? hinter->residency : NULL, hinter->footprints,
                                   &hinter->sequences)) != UM_OK ||
        (status = add_guard(hinter)) != UM_OK)
        goto fail;
    hinter->view.sequences = hinter->sequences;
    um_residency_tell(hinter->residency, on_shown, hinter);
    warn_of_unknown(advisors, table);
    hinter->rearm = 1;
    hinter->only_device = UM_DEVICE_NONE;
    config->executor->done = on_done;
    config->executor->done_ctx = hinter;
    set_hinting(hinter, true);
    *out = hinter;
    return UM_OK;
fail:
    um_hinter_free(hinter);
    return status;
}

void um_hinter_free(um_hinter_t *hinter)
{
    if (!hinter)
        return;
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        if (hinter->advisor[i].ops->fini)
            hinter->advisor[i].ops->fini(hinter->advisor[i].state);
        free(hinter->advisor[i].state);
    }
    um_view_fini(&hinter->view);
    um_sequences_free(hinter->sequences);
    um_slices_free(hinter->slices);
    um_footprints_free(hinter->footprints);
    um_residency_free(hinter->residency);
    um_guard_free(hinter->guard);
    um_gate_free(hinter->gate);
    free(hinter);
}

/* ---- what was learned ---- */

typedef struct signer {
    const char *who;
    um_event_fn fn;
    void *ctx;
} signer_t;

static void sign(void *ctx, const um_event_t *event)
{
    const signer_t *signer = ctx;
    um_event_t copy = *event;

    copy.u.learned.who = signer->who;
    signer->fn(signer->ctx, &copy);
}

void um_hinter_learned(const um_hinter_t *hinter, um_event_fn fn, void *ctx)
{
    um_footprints_learned(hinter->footprints, fn, ctx);
    if (hinter->any_ahead) /* nobody else would want to know */
        um_sequences_learned(hinter->sequences, fn, ctx);
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        signer_t signer = {.who = ops->name, .fn = fn, .ctx = ctx};

        if (ops->learned)
            ops->learned(hinter->advisor[i].state, sign, &signer);
    }
    if (hinter->guard)
        um_guard_learned(hinter->guard, fn, ctx);
}

size_t um_hinter_accounts(const um_hinter_t *hinter, um_account_t *out, size_t max)
{
    size_t n = hinter->n_advisors < max ? hinter->n_advisors : max;

    for (size_t i = 0; i < n; i++)
        out[i] = hinter->advisor[i].account;
    return n;
}

bool um_hinter_where(const um_hinter_t *hinter, uint32_t region, uint64_t *bytes)
{
    um_extent_t extent[64];
    const uint64_t step = sizeof(extent) / sizeof(*extent) * UM_BLOCK_BYTES;
    uint64_t addr, size;

    if (!um_residency_region(hinter->residency, region, &addr, &size))
        return false;
    for (uint64_t at = addr, next; at < addr + size; at = next) {
        size_t n;

        next = (at / step + 1) * step; /* no more blocks than extents */
        if (next > addr + size)
            next = addr + size;
        n = um_residency_extents(hinter->residency, region, at, next - at, extent,
                                 sizeof(extent) / sizeof(*extent));
        for (size_t i = 0; i < n; i++)
            bytes[extent[i].where] += extent[i].bytes;
    }
    return true;
}

void um_hinter_stats(const um_hinter_t *hinter, um_hinter_stats_t *out)
{
    um_gate_stats(hinter->gate, &out->gate);
    out->guard = (um_guard_stats_t){0};
    if (hinter->guard)
        um_guard_stats(hinter->guard, &out->guard);
    out->hinted_launches = atomic_load(&hinter->hinted_launches);
    out->declined = atomic_load(&hinter->declined);
    out->no_hints = atomic_load(&hinter->takes_hints) ? NULL : atomic_load(&hinter->no_hints);
}

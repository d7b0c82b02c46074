#include "attribution.h"

#include <stdlib.h>
#include <string.h>

/* Launches remembered until they run: direct-mapped by correlation id, which only rises. */
#define LAUNCHES 16384u
/* Executions that may be under way at once; a full set forgets the one that ended first. */
#define ACTIVE_MAX 128u
#define ACTIVE_MIN 4u
/* Records that wait for later kernel starts. */
#define HELD_MAX 65536u
/* Regions of one launch that are kept; more make "does not take it" unprovable. */
#define REGIONS_MAX 12u
/* The driver stamps faults with the host's clock, CUPTI kernels with the GPU's, converted: they were
 * seen to differ by up to 50 us in real traces. */
#define SKEW_NS 50000u

enum { SURE_CONTAINS = 90, SURE_OVERLAPS = 70, SURE_NEAR = 40, SURE_ORDER = 45 };

typedef struct um_span {
    uint64_t start_ns, end_ns;
    uint64_t serial;
    uint64_t stream;
    uint32_t to, kernel, correlation;
    int32_t device;
    bool by_order; /* from a LAUNCH: no times are known */
    bool claimed;  /* a fault was given to it */
    bool args_known;
    uint32_t n_regions;
    uint32_t regions[REGIONS_MAX];
} um_span_t;

struct um_attribution {
    um_attributed_fn fn;
    void *ctx;
    um_span_t *launches; /* LAUNCHES, correlation 0 = empty */
    um_span_t active[ACTIVE_MAX];
    uint32_t n_active;
    uint32_t enough; /* active: time to look which of them are over */
    bool saw_exec;
    uint64_t serial;
    um_event_t *held; /* ring of held_size */
    size_t held_size, held_head, n_held;
};

const char *um_attribution_by_name(um_attribution_by_t by)
{
    static const char *const name[] = {"nothing", "time", "argument", "overlap", "launch order"};

    return (unsigned)by < sizeof(name) / sizeof(name[0]) ? name[by] : "unknown";
}

um_status_t um_attribution_new(um_attributed_fn fn, void *ctx, um_attribution_t **out)
{
    um_attribution_t *a;

    if (!fn || !out)
        return UM_ERR_INVALID;
    a = calloc(1, sizeof(*a));
    if (!a)
        return UM_ERR_NO_MEMORY;
    a->launches = calloc(LAUNCHES, sizeof(*a->launches));
    if (!a->launches) {
        free(a);
        return UM_ERR_NO_MEMORY;
    }
    a->fn = fn;
    a->ctx = ctx;
    *out = a;
    return UM_OK;
}

void um_attribution_free(um_attribution_t *a)
{
    if (!a)
        return;
    free(a->launches);
    free(a->held);
    free(a);
}

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t event_end(const um_event_t *event)
{
    uint64_t duration = event->type == UM_EV_GPU_FAULT  ? event->u.gpu_fault.duration_ns
                        : event->type == UM_EV_THROTTLE ? event->u.throttle.duration_ns
                                                        : event->u.migrate.duration_ns;

    return saturating_add(event->time_ns, duration);
}

static void place(const um_event_t *event, int32_t *device, uint32_t *region)
{
    switch (event->type) {
    case UM_EV_GPU_FAULT:
        *device = event->u.gpu_fault.device;
        *region = event->u.gpu_fault.region;
        break;
    case UM_EV_THROTTLE:
        *device = event->u.throttle.device;
        *region = event->u.throttle.region;
        break;
    default:
        *device = event->u.migrate.dst >= 0 ? event->u.migrate.dst : event->u.migrate.src;
        *region = event->u.migrate.region;
        break;
    }
}

/* 1 takes the region, -1 certainly does not as an argument, 0 cannot be known */
static int takes(const um_span_t *span, uint32_t region)
{
    if (!region)
        return 0;
    for (uint32_t i = 0; i < span->n_regions; i++) {
        if (span->regions[i] == region)
            return 1;
    }
    return span->args_known ? -1 : 0;
}

/* How well a span fits in time, as a confidence; 0 = not at all. */
static uint32_t fits(const um_span_t *span, uint64_t start, uint64_t end)
{
    if (span->by_order)
        return span->start_ns <= start && start < span->end_ns ? SURE_ORDER : 0;
    if (span->start_ns <= start && start < span->end_ns)
        return SURE_CONTAINS;
    if (span->start_ns < end && start < span->end_ns)
        return SURE_OVERLAPS;
    if (span->start_ns < saturating_add(end, SKEW_NS) &&
        start < saturating_add(span->end_ns, SKEW_NS))
        return SURE_NEAR;
    return 0;
}

static void decide(um_attribution_t *a, const um_event_t *event)
{
    uint64_t end = event_end(event);
    um_attributed_t who = {0};
    um_span_t *best = NULL;
    uint32_t best_rank = 0, best_fit = 0, region;
    int best_takes = 0;
    int32_t device;

    place(event, &device, &region);
    for (uint32_t i = 0; i < a->n_active; i++) {
        um_span_t *span = &a->active[i];
        uint32_t fit = fits(span, event->time_ns, end), rank;
        int taken;

        if (!fit || (device >= 0 && span->device >= 0 && span->device != device))
            continue;
        taken = takes(span, region);
        /* An argument outweighs any fit in time; known arguments without it count against. */
        rank = fit + (taken > 0 ? 200 : taken < 0 ? 0 : 100);
        if (rank > best_rank) {
            best = span;
            best_rank = rank;
            best_fit = fit;
            best_takes = taken;
            who.candidates = 1;
        } else if (best != NULL && rank == best_rank) {
            who.candidates++;
            if (span->start_ns >= best->start_ns)
                best = span;
        }
    }
    if (best) {
        uint32_t sure = best_fit;

        if (best_takes > 0)
            sure += 8;
        else if (best_takes < 0)
            sure /= 2; /* through a pointer in memory, or not at all */
        sure /= who.candidates;
        who.to = best->to;
        who.by = best_takes > 0              ? UM_BY_ARGUMENT
                 : best->by_order            ? UM_BY_ORDER
                 : best_fit == SURE_CONTAINS ? UM_BY_TIME
                                             : UM_BY_OVERLAP;
        who.confidence = sure ? sure : 1;
        who.kernel = best->kernel;
        who.correlation = best->correlation;
        who.serial = best->serial;
        if (event->type == UM_EV_GPU_FAULT) {
            who.first = !best->claimed;
            best->claimed = true;
        }
    }
    a->fn(a->ctx, event, &who);
}

static void decide_until(um_attribution_t *a, uint64_t now, bool all)
{
    while (a->n_held && (all || event_end(&a->held[a->held_head]) < now)) {
        um_event_t event = a->held[a->held_head];

        a->held_head = (a->held_head + 1) % a->held_size;
        a->n_held--;
        decide(a, &event);
    }
}

static um_status_t hold(um_attribution_t *a, const um_event_t *event)
{
    if (a->n_held == HELD_MAX) {
        um_event_t first = a->held[a->held_head];

        a->held_head = (a->held_head + 1) % a->held_size;
        a->n_held--;
        decide(a, &first);
    } else if (a->n_held == a->held_size) {
        size_t size = a->held_size ? a->held_size * 2 : 256;
        um_event_t *ring = malloc(size * sizeof(*ring));

        if (!ring)
            return UM_ERR_NO_MEMORY;
        for (size_t i = 0; i < a->n_held; i++)
            ring[i] = a->held[(a->held_head + i) % a->held_size];
        free(a->held);
        a->held = ring;
        a->held_size = size;
        a->held_head = 0;
    }
    a->held[(a->held_head + a->n_held++) % a->held_size] = *event;
    return UM_OK;
}

/* Drops what can no longer be near a record that is held or still to come. */
static void prune(um_attribution_t *a, uint64_t now)
{
    uint64_t oldest = a->n_held ? a->held[a->held_head].time_ns : now;
    uint32_t n = 0;

    for (uint32_t i = 0; i < a->n_active; i++) {
        if (saturating_add(a->active[i].end_ns, SKEW_NS) >= oldest)
            a->active[n++] = a->active[i];
    }
    a->n_active = n;
}

static void activate(um_attribution_t *a, const um_span_t *span)
{
    uint32_t slot;

    /* Every record looks at all of them: few are to stay, and few looks are to find nothing. */
    if (a->n_active >= a->enough) {
        prune(a, span->start_ns);
        a->enough = 2 * a->n_active + ACTIVE_MIN;
        if (a->enough > ACTIVE_MAX / 2)
            a->enough = ACTIVE_MAX / 2;
    }
    slot = a->n_active;
    if (slot == ACTIVE_MAX) {
        slot = 0;
        for (uint32_t i = 1; i < ACTIVE_MAX; i++) {
            if (a->active[i].end_ns < a->active[slot].end_ns)
                slot = i;
        }
    } else {
        a->n_active++;
    }
    a->active[slot] = *span;
    a->active[slot].serial = span->to == UM_TO_KERNEL ? ++a->serial : 0;
}

static void on_launch(um_attribution_t *a, const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;
    um_span_t span = {.start_ns = event->time_ns,
                      .end_ns = UINT64_MAX,
                      .stream = launch->stream,
                      .to = UM_TO_KERNEL,
                      .kernel = launch->kernel,
                      .correlation = launch->correlation,
                      .device = launch->device,
                      .by_order = true};

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    span.args_known = !(launch->flags & UM_LAUNCH_ARGS_UNKNOWN) && launch->n_args <= REGIONS_MAX;
    for (uint32_t i = 0; i < launch->n_args && span.n_regions < REGIONS_MAX; i++)
        span.regions[span.n_regions++] = launch->args[i].region;
    a->launches[launch->correlation % LAUNCHES] = span;
    if (!a->saw_exec)
        activate(a, &span);
}

static void on_exec(um_attribution_t *a, const um_event_t *event)
{
    const um_ev_kernel_exec_t *exec = &event->u.kernel_exec;
    const um_span_t *launch = &a->launches[exec->correlation % LAUNCHES];
    um_span_t span = {0};

    if (!a->saw_exec) { /* there are times: launch order is not needed any more */
        a->saw_exec = true;
        a->n_active = 0;
        a->serial = 0;
    }
    if (exec->correlation && launch->correlation == exec->correlation)
        span = *launch;
    span.to = UM_TO_KERNEL;
    span.by_order = false;
    span.start_ns = event->time_ns;
    span.end_ns = saturating_add(event->time_ns, exec->duration_ns);
    span.device = exec->device;
    span.correlation = exec->correlation;
    if (exec->kernel)
        span.kernel = exec->kernel;
    activate(a, &span);
}

static void on_copy(um_attribution_t *a, uint64_t start, uint64_t duration, int32_t device,
                    uint32_t correlation, const uint32_t regions[2])
{
    um_span_t span = {.start_ns = start,
                      .end_ns = saturating_add(start, duration),
                      .to = UM_TO_COPY,
                      .correlation = correlation,
                      .device = device};

    for (int i = 0; i < 2; i++) {
        if (regions[i])
            span.regions[span.n_regions++] = regions[i];
    }
    span.args_known = span.n_regions > 0;
    activate(a, &span);
}

static void on_sync(um_attribution_t *a, const um_event_t *event)
{
    const um_ev_sync_t *sync = &event->u.sync;

    if (!sync->exit || a->saw_exec)
        return;
    for (uint32_t i = 0; i < a->n_active; i++) {
        um_span_t *span = &a->active[i];

        if (span->by_order && span->end_ns == UINT64_MAX &&
            (sync->kind == UM_SYNC_DEVICE ||
             (sync->kind == UM_SYNC_STREAM && sync->stream == span->stream)))
            span->end_ns = event->time_ns;
    }
}

static bool caused_by_gpu(const um_ev_migrate_t *migrate)
{
    return migrate->dst >= 0 ? migrate->cause != UM_CAUSE_USER
                             : migrate->cause == UM_CAUSE_EVICTION;
}

um_status_t um_attribution_event(um_attribution_t *a, const um_event_t *event)
{
    decide_until(a, event->time_ns, false);
    switch (event->type) {
    case UM_EV_LAUNCH:
        on_launch(a, event);
        break;
    case UM_EV_KERNEL_EXEC:
        on_exec(a, event);
        break;
    case UM_EV_COPY:
        if (event->u.copy.dst_memory == UM_MEMORY_MANAGED ||
            event->u.copy.src_memory == UM_MEMORY_MANAGED)
            on_copy(a, event->time_ns, event->u.copy.duration_ns, event->u.copy.device,
                    event->u.copy.correlation,
                    (const uint32_t[]){event->u.copy.dst_region, event->u.copy.src_region});
        break;
    case UM_EV_SET:
        if (event->u.set.memory == UM_MEMORY_MANAGED)
            on_copy(a, event->time_ns, event->u.set.duration_ns, event->u.set.device,
                    event->u.set.correlation, (const uint32_t[]){event->u.set.region, 0});
        break;
    case UM_EV_SYNC:
        on_sync(a, event);
        break;
    case UM_EV_MIGRATE:
        if (!caused_by_gpu(&event->u.migrate))
            break;
        return hold(a, event);
    case UM_EV_GPU_FAULT:
    case UM_EV_THROTTLE:
        return hold(a, event);
    default:
        break;
    }
    return UM_OK;
}

void um_attribution_finish(um_attribution_t *a)
{
    decide_until(a, 0, true);
    memset(a->launches, 0, LAUNCHES * sizeof(*a->launches));
    a->n_active = 0;
    a->saw_exec = false;
    a->serial = 0;
}

bool um_attribution_running(const um_attribution_t *a, uint64_t time_ns)
{
    for (uint32_t i = 0; i < a->n_active; i++) {
        const um_span_t *span = &a->active[i];

        if (span->to == UM_TO_KERNEL && !span->by_order && span->start_ns <= time_ns &&
            saturating_add(time_ns, SKEW_NS) < span->end_ns)
            return true;
    }
    return false;
}

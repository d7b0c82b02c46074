/*
 * calm - stop a range from going to and fro: keep it with the CPU and let the GPU reach it there.
 *
 * The driver has a detector of its own, but every migration asked for resets it, and ours are asked for.
 * A range that the CPU took back after each of several rounds of few launches is given the CPU as its place
 * (PreferredLocation) and the GPU access to it (AccessedBy), and nobody prefetches it meanwhile. On an H200
 * that costs 57 ms a GiB once; then a kernel goes through it over the link in 21 ms, as long as bringing it
 * takes, and the CPU has it for nothing. Where it is used often on the GPU the link is slower than moving:
 * the time from launch to launch says so, and then it is undone. What is kept still shows no pattern, so
 * from time to time it is let go, to see whether the pattern is still there.
 */
#include <string.h>

#include "um_advisor.h"

#define REGIONS 1024u /* by id modulo this: the latest ones */

typedef enum state {
    WATCHED = 0,
    KEEPING,  /* is to be kept with the CPU */
    KEPT,     /* and is */
    RELEASING /* is to be let go */
} state_t;

typedef struct region {
    uint32_t id;
    uint32_t state;              /* state_t */
    uint32_t takes;              /* launches that took it */
    uint32_t phase, phase_takes; /* when the CPU took it last: its phase, `takes` then */
    uint32_t rounds;             /* in a row */
    uint32_t since_takes;        /* `takes` when the rounds, or the keeping, began */
    uint64_t since_ns, last_ns;  /* of the launch then; of the last launch */
    uint64_t ns_per_take;        /* while it went to and fro */
    uint32_t term, ban_until;    /* in takes: how long it is kept; not again before */
    bool foreign;                /* the program advises on it itself */
    int32_t device;
    uint64_t addr, bytes;        /* of the allocation */
    uint64_t from, to;           /* what goes to and fro */
    uint64_t seen_from, seen_to; /* taken by the CPU in the present phase */
} region_t;

typedef struct calm {
    uint64_t rounds, uses, limit, term;
    uint32_t phase; /* of the CPU: from a wait that follows a launch to the next such */
    bool launched;
    region_t region[REGIONS];
} calm_t;

static const um_advisor_option_t options[] = {
    {"rounds", "times in a row that a range must have gone to and fro", 4, 2, 1000000,
     offsetof(calm_t, rounds)},
    {"uses", "launches in a round; with more it is worth moving", 2, 1, 1000000,
     offsetof(calm_t, uses)},
    {"limit", "bytes of the largest range that is kept with the cpu", 64 << 20, 0, UINT64_MAX,
     offsetof(calm_t, limit)},
    {"term", "launches after which it is let go to see; doubled each time", 128, 8, 1000000,
     offsetof(calm_t, term)},
    {0},
};

#define JUDGED 8u /* launches after which the time a launch is believed */

static region_t *find(calm_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    return id && region->id == id ? region : NULL;
}

static void start_over(region_t *region)
{
    region->rounds = 0;
    region->seen_from = region->seen_to = 0;
}

/* ---- to and fro ---- */

static bool half_the_same(const region_t *region)
{
    uint64_t from = region->from > region->seen_from ? region->from : region->seen_from;
    uint64_t to = region->to < region->seen_to ? region->to : region->seen_to;
    uint64_t both = to > from ? to - from : 0;

    return 2 * both >= region->to - region->from && 2 * both >= region->seen_to - region->seen_from;
}

/* The phase in which the CPU took [seen_from, seen_to) is over. */
static void end_round(const calm_t *self, region_t *region, uint32_t uses)
{
    bool goes_on = region->rounds && uses <= self->uses && half_the_same(region);

    if (goes_on) {
        region->rounds++;
        region->from = region->seen_from < region->from ? region->seen_from : region->from;
        region->to = region->seen_to > region->to ? region->seen_to : region->to;
    } else {
        region->rounds = 1;
        region->from = region->seen_from;
        region->to = region->seen_to;
        region->since_takes = region->takes;
        region->since_ns = region->last_ns;
    }
    if (region->rounds < self->rounds || region->foreign || region->takes < region->ban_until ||
        region->to - region->from > self->limit || region->takes == region->since_takes)
        return;
    region->ns_per_take =
        (region->last_ns - region->since_ns) / (region->takes - region->since_takes);
    region->state = KEEPING;
}

static void on_taken(calm_t *self, uint32_t id, uint64_t addr, uint64_t end)
{
    region_t *region = find(self, id);

    if (!region || !region->takes || region->state != WATCHED || end <= addr)
        return;
    addr = addr / UM_PAGE_BYTES * UM_PAGE_BYTES;
    end = (end + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES * UM_PAGE_BYTES;
    if (region->phase != self->phase || region->seen_from == region->seen_to) {
        if (region->seen_from != region->seen_to)
            end_round(self, region, region->takes - region->phase_takes);
        region->phase = self->phase;
        region->phase_takes = region->takes;
        region->seen_from = addr;
        region->seen_to = end;
        return;
    }
    region->seen_from = addr < region->seen_from ? addr : region->seen_from;
    region->seen_to = end > region->seen_to ? end : region->seen_to;
}

/* ---- launches ---- */

static void on_take(calm_t *self, region_t *region, const um_ev_launch_t *launch, uint64_t now_ns)
{
    uint32_t kept = region->takes - region->since_takes;

    region->device = launch->device;
    if (region->state == WATCHED && region->takes - region->phase_takes > self->uses) {
        start_over(region); /* used enough by the GPU */
    } else if (region->state == KEPT && kept >= JUDGED && kept % JUDGED == 0 &&
               (now_ns - region->since_ns) / kept > region->ns_per_take) {
        region->state = RELEASING; /* slower than before */
        region->ban_until = region->takes + 8 * region->term;
    } else if (region->state == KEPT && kept >= region->term) {
        region->state = RELEASING;
    }
    region->takes++;
    region->last_ns = now_ns;
}

static void on_launch(calm_t *self, const um_ev_launch_t *launch, uint64_t now_ns)
{
    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    self->launched = true;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        region_t *region = find(self, launch->args[i].region);

        if (region && (region->last_ns != now_ns || !region->takes))
            on_take(self, region, launch, now_ns);
    }
}

/* ---- our advice, taken or not ---- */

static void on_hint(calm_t *self, const um_ev_hint_t *hint)
{
    region_t *region = find(self, hint->region);

    if (!region)
        return;
    if (strcmp(hint->who, "calm") != 0) {
        region->foreign |= hint->kind != UM_HINT_PREFETCH && strcmp(hint->who, "app") == 0;
        return;
    }
    region->foreign |= hint->result == UM_HINT_FAILED;
    if (hint->result != UM_HINT_APPLIED)
        return;
    if (hint->kind == UM_HINT_ACCESSED_BY && region->state == KEEPING) {
        region->state = KEPT;
        region->since_takes = region->takes;
        region->since_ns = region->last_ns;
        region->term = region->term ? 2 * region->term : (uint32_t)self->term;
    } else if (hint->kind == UM_HINT_UNSET_ACCESSED_BY && region->state == RELEASING) {
        region->state = WATCHED;
        start_over(region);
    }
}

static void on_alloc(calm_t *self, const um_ev_region_alloc_t *alloc)
{
    region_t *region = &self->region[alloc->region % REGIONS];

    /* One that is kept must not be forgotten. */
    if (alloc->family == UM_FAMILY_MANAGED && (!region->id || region->state == WATCHED))
        *region = (region_t){.id = alloc->region, .addr = alloc->addr, .bytes = alloc->bytes};
}

static void observe(void *state, const um_event_t *event)
{
    calm_t *self = state;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        on_alloc(self, &event->u.region_alloc);
        break;
    case UM_EV_REGION_FREE:
        if (find(self, event->u.region_free.region))
            *find(self, event->u.region_free.region) = (region_t){0};
        break;
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch, event->time_ns);
        break;
    case UM_EV_SYNC:
        self->phase += event->u.sync.exit && self->launched;
        self->launched = self->launched && !event->u.sync.exit;
        break;
    case UM_EV_CPU_FAULT:
        on_taken(self, event->u.cpu_fault.region, event->u.cpu_fault.addr,
                 event->u.cpu_fault.addr + 1);
        break;
    case UM_EV_MIGRATE:
        if (event->u.migrate.dst == UM_DEVICE_HOST && event->u.migrate.cause != UM_CAUSE_EVICTION)
            on_taken(self, event->u.migrate.region, event->u.migrate.addr,
                     event->u.migrate.addr + event->u.migrate.bytes);
        break;
    case UM_EV_RESIDENCY:
        if (event->u.residency.present_bytes == event->u.residency.bytes)
            on_taken(self, event->u.residency.region, event->u.residency.addr,
                     event->u.residency.addr + event->u.residency.bytes);
        break;
    case UM_EV_HINT:
        on_hint(self, &event->u.hint);
        break;
    default:
        break;
    }
}

/* ---- deciding ---- */

static void advise(um_hints_t *hints, const region_t *region, um_hint_kind_t kind, int32_t device,
                   const char *why)
{
    um_hints_add(hints, &(um_hint_t){.kind = kind,
                                     .order = UM_ORDER_BEFORE,
                                     .addr = region->from,
                                     .bytes = region->to - region->from,
                                     .device = device,
                                     .why = why});
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const calm_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    bool first = stretch->first_of_region;
    um_extent_t extent;

    if (region->id != stretch->region)
        return;
    if (stretch->range_bytes <= self->limit) /* so that what the CPU took is told */
        um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, &extent, 1);
    if (first && region->state == KEEPING) {
        advise(hints, region, UM_HINT_PREFERRED_LOCATION, UM_DEVICE_HOST, "goes to and fro");
        advise(hints, region, UM_HINT_ACCESSED_BY, region->device, "goes to and fro");
    } else if (first && region->state == RELEASING) {
        advise(hints, region, UM_HINT_UNSET_ACCESSED_BY, region->device, "to see if it still does");
        advise(hints, region, UM_HINT_UNSET_PREFERRED_LOCATION, UM_DEVICE_HOST,
               "to see if it still does");
    }
    if (region->state == KEEPING || region->state == KEPT)
        um_hints_hold(hints, region->from, region->to - region->from);
}

const um_advisor_ops_t um_advisor_calm = {
    .abi = UM_ADVISOR_ABI,
    .name = "calm",
    .doc = "what goes to and fro between cpu and gpu: kept with the cpu and reached from the gpu",
    .state_bytes = sizeof(calm_t),
    .options = options,
    .observe = observe,
    .decide = decide,
};

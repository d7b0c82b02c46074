/*
 * placement - what a kernel reads here and there stays with the CPU, and the GPU reaches it over the link.
 *
 * A fault brings 64 KiB or more for what may be a few bytes, one batch after another: on an H200 a gather
 * faults its data in at a fifth of the rate of a sweep. Mapped (PreferredLocation CPU, AccessedBy GPU) only
 * what is read goes over the link. The advice costs 57 ms a GiB once; so it is given when as many launches
 * again as there have been would fault in more than that. Data that stayed on the GPU once it was there would be read
 * for nothing ever after: so it is undone after as many launches as could have paid for moving it, unless
 * the CPU had it meanwhile, and at once where launches take longer than before. Only what is read: through pointers to
 * const.
 *
 * Where it did well, regions of that role are mapped in the next run as they are allocated, before there is
 * anything in them: that costs nothing. They are let go as soon as the waits after their launches add up to
 * what faulting it all in would have taken.
 *
 * Small buffers that go to and fro whole are for calm.
 */
#include <string.h>

#include "roles.h"
#include "um_advisor.h"

#define REGIONS    1024u /* by id modulo this: the latest ones */
#define PHASES     64u   /* looked back over */
#define JUDGED     8u    /* launches after which the time a launch is believed */
#define SURE       4u    /* launches after which it is taken to win */
#define PAYS       50u /* percent of the bytes that must fault in to cost as much as the advice, */
#define PAYS_2     20u /* and where they have to go again */
#define MIXED      50u /* percent touched of what goes to and fro, from which on it is moved */
#define MOVING     6u  /* times what reading it over the link takes */
#define FAULT_RATE 9u  /* GB/s at which it would fault in; H200 */

typedef enum state {
    WATCHED = 0,
    KEPT,     /* is mapped */
    RELEASING /* is to be let go */
} state_t;

typedef struct region {
    uint32_t id;
    uint32_t state; /* state_t */
    uint32_t takes; /* launches that took it */
    uint32_t since; /* `takes` when it was mapped */
    uint32_t term;  /* launches for which it may stay so */
    uint32_t ban_until;
    bool tried; /* once mapped, it shows no more whether it would have stayed on the GPU */
    uint32_t rounds, cpu_at;  /* in a row, after which the CPU took some of it back; `takes` then */
    bool foreign;             /* the program advises on it itself */
    bool told;                /* it is mapped because of its role */
    uint32_t phase;           /* of the last launch that took it */
    uint64_t role, waited_ns; /* after its launches, since it was mapped */
    int32_t device;
    uint64_t last_ns, since_ns; /* of the last launch; when it was mapped */
    uint64_t ns_per_take;       /* before; a moving average */
    uint64_t addr, bytes;       /* of the allocation */
    uint64_t from, to;          /* what is mapped */
} region_t;

typedef struct placement {
    uint64_t pays_off, launches, rounds, min;
    uint32_t phase;     /* from the end of one wait that followed a launch to the end of the next */
    uint64_t launch_ns; /* of the last launch in it, 0 = none yet */
    uint64_t past_ns[PHASES]; /* from the last launch to the end of the wait */
    region_t region[REGIONS];
    um_roles_t roles;
} placement_t;

static const um_advisor_option_t options[] = {
    {"pays_off", "percent of an argument below which it is mapped, not moved", 18, 0, 100,
     offsetof(placement_t, pays_off)},
    {"launches", "launches that must have shown how sparse it is", 2, 1, 1000000,
     offsetof(placement_t, launches)},
    {"rounds", "times in a row that the cpu took some back, from which on half of it may be read",
     3, 1, 1000000, offsetof(placement_t, rounds)},
    {"min", "bytes of the smallest argument worth an advice", 8 << 20, 0, UINT64_MAX,
     offsetof(placement_t, min)},
    {0},
};

static const char WHY_SPARSE[] = "read here and there";
static const char WHY_TOLD[] = "read here and there, as it was before";

static region_t *find(placement_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    return id && region->id == id ? region : NULL;
}

/* 0 = by the clock it was the other way round: events of other threads may come late. */
static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* ---- events ---- */

static void conclude(placement_t *self, const region_t *region, um_verdict_t verdict)
{
    um_role_t *role = um_roles_conclude(&self->roles, region->role, verdict);

    role->first = region->from - region->addr;
    role->end = region->to - region->addr;
    role->ns_per_take = region->ns_per_take;
}

static void release(placement_t *self, region_t *region, um_verdict_t verdict)
{
    region->state = RELEASING;
    conclude(self, region, verdict);
    if (verdict == UM_LOSES)
        region->ban_until = region->takes + 64 * JUDGED;
}

/* A launch takes what is mapped. */
static void on_kept_take(placement_t *self, region_t *region, uint64_t now_ns)
{
    uint32_t kept = region->takes - region->since + 1; /* launches, with this one */

    if (region->phase != self->phase && self->phase - region->phase < PHASES)
        region->waited_ns += self->past_ns[region->phase % PHASES];
    if (kept >= JUDGED && kept % JUDGED == 0 &&
        since(region->since_ns, now_ns) / kept > region->ns_per_take + region->ns_per_take / 16)
        release(self, region, UM_LOSES); /* slower than before */
    else if (region->told && region->waited_ns > (region->to - region->from) / FAULT_RATE)
        release(self, region, UM_LOSES); /* it would be there by now */
    else if (kept >= region->term)
        release(self, region, UM_WINS);
    else if (kept == SURE)
        conclude(self, region, UM_WINS);
}

static void on_take(placement_t *self, region_t *region, const um_ev_launch_t *launch,
                    uint64_t now_ns)
{
    uint64_t ns = since(region->last_ns, now_ns);

    region->device = launch->device;
    if (region->state == WATCHED && region->takes)
        region->ns_per_take = region->takes > 1 ? (3 * region->ns_per_take + ns) / 4 : ns;
    if (region->state == KEPT && !region->takes)
        region->since_ns = now_ns; /* mapped when it was new */
    else if (region->state == KEPT)
        on_kept_take(self, region, now_ns);
    region->takes++;
    region->phase = self->phase;
    region->last_ns = now_ns;
}

static void on_launch(placement_t *self, const um_ev_launch_t *launch, uint64_t now_ns)
{
    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    self->launch_ns = now_ns;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        region_t *region = find(self, launch->args[i].region);

        if (region && (region->last_ns != now_ns || !region->takes))
            on_take(self, region, launch, now_ns);
    }
}

static void on_left(placement_t *self, uint64_t now_ns)
{
    if (!self->launch_ns)
        return;
    self->past_ns[self->phase++ % PHASES] = since(self->launch_ns, now_ns);
    self->launch_ns = 0;
}

/* The CPU uses it, too. */
static void on_cpu(placement_t *self, uint32_t id)
{
    region_t *region = find(self, id);

    if (!region || !region->takes || region->cpu_at == region->takes)
        return;
    region->rounds = region->takes - region->cpu_at <= 2 ? region->rounds + 1 : 1;
    region->cpu_at = region->takes;
}

static uint32_t first_term(const placement_t *self)
{
    return (uint32_t)(100 * MOVING / (self->pays_off ? self->pays_off : 1));
}

static void on_hint(placement_t *self, const um_ev_hint_t *hint)
{
    region_t *region = find(self, hint->region);
    const um_role_t *role;

    if (!region)
        return;
    role = um_roles_find(&self->roles, region->role);
    if (strcmp(hint->who, "placement") != 0) {
        region->foreign |= hint->kind != UM_HINT_PREFETCH && strcmp(hint->who, "app") == 0;
        return;
    }
    region->foreign |= hint->result == UM_HINT_FAILED;
    if (hint->result != UM_HINT_APPLIED)
        return;
    if (hint->kind == UM_HINT_ACCESSED_BY) {
        if (region->state != KEPT) {
            region->state = KEPT;
            region->tried = true;
            region->since = region->takes;
            region->since_ns = region->last_ns;
            region->waited_ns = 0;
            region->told = strcmp(hint->why, WHY_TOLD) == 0;
            if (region->told && role)
                region->ns_per_take = role->ns_per_take;
            region->from = hint->addr;
            region->to = hint->addr + hint->bytes;
            region->term = region->term ? 2 * region->term : first_term(self);
        }
        region->from = hint->addr < region->from ? hint->addr : region->from;
        region->to = hint->addr + hint->bytes > region->to ? hint->addr + hint->bytes : region->to;
    } else if (hint->kind == UM_HINT_UNSET_ACCESSED_BY && region->state != WATCHED) {
        if (region->state == KEPT) /* the guard has taken it back */
            release(self, region, UM_LOSES);
        region->state = WATCHED;
        region->rounds = 0;
    }
}

static void on_alloc(placement_t *self, const um_ev_region_alloc_t *alloc)
{
    region_t *region = &self->region[alloc->region % REGIONS];

    /* One that is mapped must not be forgotten. */
    if (alloc->family == UM_FAMILY_MANAGED && (!region->id || region->state == WATCHED))
        *region = (region_t){.id = alloc->region,
                             .addr = alloc->addr,
                             .bytes = alloc->bytes,
                             .role = um_region_role(alloc)};
}

static void learned(const void *state, um_event_fn emit, void *ctx)
{
    um_roles_tell(&((const placement_t *)state)->roles, "mapped", emit, ctx);
}

static void observe(void *state, const um_event_t *event)
{
    placement_t *self = state;

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
        if (event->u.sync.exit)
            on_left(self, event->time_ns);
        break;
    case UM_EV_LEARNED:
        um_roles_learn_verdict(&self->roles, &event->u.learned, "placement", "mapped");
        break;
    case UM_EV_CPU_FAULT:
        on_cpu(self, event->u.cpu_fault.region);
        break;
    case UM_EV_MIGRATE:
        if (event->u.migrate.dst == UM_DEVICE_HOST && event->u.migrate.cause == UM_CAUSE_COHERENCE)
            on_cpu(self, event->u.migrate.region);
        break;
    case UM_EV_RESIDENCY:
        if (event->u.residency.present_bytes == event->u.residency.bytes)
            on_cpu(self, event->u.residency.region);
        break;
    case UM_EV_HINT:
        on_hint(self, &event->u.hint);
        break;
    default:
        break;
    }
}

/* ---- deciding ---- */

/* Every pointer of the launch into the region is to const. */
static bool only_read(const um_view_t *view, uint32_t region)
{
    const um_ev_launch_t *launch = um_view_launch(view);

    for (uint32_t i = 0; i < launch->n_args; i++)
        if (launch->args[i].region == region &&
            !(um_view_param_flags(view, launch->args[i].slot) & UM_PARAM_CONST_POINTER))
            return false;
    return true;
}

static void advise(um_hints_t *hints, uint64_t from, uint64_t to, um_hint_kind_t kind,
                   int32_t device, const char *why)
{
    um_hints_add(hints, &(um_hint_t){.kind = kind,
                                     .order = UM_ORDER_BEFORE,
                                     .addr = from,
                                     .bytes = to - from,
                                     .device = device,
                                     .why = why});
}

/* Is reading it where it is cheaper than having it come, and go again? */
static bool is_sparse(const placement_t *self, const um_view_t *view, const region_t *region)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    um_footprint_t known = um_view_footprint(view);
    bool goes_again = region->rounds >= self->rounds && region->takes - region->cpu_at <= 2;

    if (known.launches < self->launches || stretch->range_bytes < self->min ||
        region->takes < region->ban_until || !only_read(view, region->id))
        return false;
    /* As many launches to come as there have been, each with what it touches. */
    if (goes_again)
        return known.density_percent < MIXED &&
               (uint64_t)known.density_percent * region->takes >= PAYS_2;
    return known.density_percent < self->pays_off && !region->tried &&
           (uint64_t)known.density_percent * region->takes >= PAYS;
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const placement_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];

    if (region->id != stretch->region || region->foreign)
        return;
    if (region->state == KEPT) {
        um_hints_hold(hints, region->from, region->to - region->from);
    } else if (region->state == RELEASING && stretch->first_of_region) {
        advise(hints, region->from, region->to, UM_HINT_UNSET_ACCESSED_BY, region->device,
               "moving it may pay by now");
        advise(hints, region->from, region->to, UM_HINT_UNSET_PREFERRED_LOCATION, UM_DEVICE_HOST,
               "moving it may pay by now");
    } else if (region->state == WATCHED && is_sparse(self, view, region)) {
        uint64_t end = stretch->addr + stretch->range_bytes;

        advise(hints, stretch->addr, end, UM_HINT_PREFERRED_LOCATION, UM_DEVICE_HOST, WHY_SPARSE);
        advise(hints, stretch->addr, end, UM_HINT_ACCESSED_BY, um_view_device(view), WHY_SPARSE);
    }
}

static void decide_alloc(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const placement_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    const um_role_t *role =
        region->id == stretch->region ? um_roles_find(&self->roles, region->role) : NULL;

    if (!role || role->verdict != UM_WINS || role->end > stretch->bytes)
        return;
    advise(hints, stretch->addr + role->first, stretch->addr + role->end,
           UM_HINT_PREFERRED_LOCATION, UM_DEVICE_HOST, WHY_TOLD);
    advise(hints, stretch->addr + role->first, stretch->addr + role->end, UM_HINT_ACCESSED_BY,
           um_view_device(view), WHY_TOLD);
}

const um_advisor_ops_t um_advisor_placement = {
    .abi = UM_ADVISOR_ABI,
    .name = "placement",
    .doc = "what kernels read here and there: kept with the cpu and reached from the gpu",
    .state_bytes = sizeof(placement_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .decide_alloc = decide_alloc,
    .learned = learned,
};

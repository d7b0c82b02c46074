/*
 * ahead - bring what the CPU has to the GPU while the kernel that gets it is already running.
 *
 * The prefetches race the kernel front to back; on an H200 they move 48 GB/s where its faults move 9. So it
 * pays from a touched share of about 18 % on: of a kernel that is known to touch less, nothing is brought.
 * Where the CPU takes it back, it takes back what was brought for nothing, too, at 6 GB/s: there it pays from
 * 68 % on. So it does for little where a wait is over before a prefetch begins (0.15 to 0.6 ms after the
 * launch): faults are left to do that.
 *
 * What is not known is taken to be touched all over, up to a size (4 GiB: at worst 90 ms for nothing,
 * once); above it the launch is left to its faults once, and so shows what it touches.
 *
 * What one launch touches little of pays all the same where many launches come by before the CPU takes it
 * back, each with something new. How many were served by bringing it is counted by role, and remembered from
 * run to run; before it was ever brought, as many are expected as there have been. Such a prefetch does not race: it goes on after the
 * launch that it begins with.
 *
 * Where launches go through a region piece by piece, with no wait between, what the CPU has of the next pieces is
 * brought with the first one: their kernels start one right after the other, and would all be waiting for faults by
 * the time that each piece is asked for.
 */
#include "roles.h"
#include "sweep.h"
#include "um_advisor.h"

#define REGIONS    1024u /* by id modulo this: the latest ones */
#define TAKES      8u    /* an eighth of it is what the CPU must take for it to be taken back */
#define BACKS      2u    /* times that it was, from which on it is taken to go on so */
#define HURRIED_NS 1000000u
#define PIECE      ((uint64_t)256 << 10) /* of smaller ones none are looked for ahead */

typedef struct region {
    uint32_t id, launches; /* since it came to the GPU, as far as is known */
    uint64_t bytes, role, last_ns;
    uint64_t taken_bytes;   /* that the CPU had at the last launch */
    uint64_t brought_bytes; /* since it was taken back */
    um_sweeps_t sweeps;
} region_t;

typedef struct ahead {
    uint64_t dense_limit, min, min_hurried, pays_off, pays_back, sweep;
    uint32_t phase; /* waits that followed a launch */
    bool launched;
    region_t region[REGIONS];
    um_roles_t roles;
} ahead_t;

static const um_advisor_option_t options[] = {
    {"dense_limit", "bytes of the largest argument taken to be used all over when it is not known",
     (uint64_t)4 << 30, 0, UINT64_MAX, offsetof(ahead_t, dense_limit)},
    {"min", "bytes of the smallest stretch worth a call", 64 << 10, 0, UINT64_MAX,
     offsetof(ahead_t, min)},
    {"min_hurried", "the same where waits end less than a millisecond apart", 256 << 10, 0,
     UINT64_MAX, offsetof(ahead_t, min_hurried)},
    {"pays_off", "percent of an argument that must be touched for it to be brought", 18, 0, 100,
     offsetof(ahead_t, pays_off)},
    {"pays_back", "the same of what the cpu takes back each time, by faults", 68, 0, 100,
     offsetof(ahead_t, pays_back)},
    {"sweep",
     "bytes of pieces to come that are brought with one, where launches take piece by piece",
     (uint64_t)64 << 20, 0, UINT64_MAX, offsetof(ahead_t, sweep)},
    {0},
};

/* ---- how often it is used ---- */

static region_t *find(ahead_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    return id && region->id == id ? region : NULL;
}

/* A finding from two launches on, or once the CPU was seen to take it back. */
static void count(um_role_t *role)
{
    role->count = role->launches > 1 || role->backs;
}

static void on_launch(ahead_t *self, const um_ev_launch_t *launch, uint64_t now_ns)
{
    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    self->launched = true;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        region_t *region = find(self, launch->args[i].region);
        um_role_t *role;

        if (region && launch->args[i].region_offset_bytes < region->bytes)
            um_sweep_take(&region->sweeps, self->phase, launch->device,
                          launch->args[i].region_offset_bytes);
        if (!region || (region->launches && region->last_ns == now_ns))
            continue; /* another pointer into it */
        role = um_roles_entry(&self->roles, region->role);
        /* What faults have brought may be taken back unseen, page by page. */
        if (region->launches > role->launches && (region->brought_bytes || !role->backs))
            role->launches = region->launches;
        count(role);
        region->last_ns = now_ns;
        region->taken_bytes = 0;
        region->launches++;
    }
}

/* The launch that looks has been counted already. */
static void on_residency(ahead_t *self, const um_ev_residency_t *residency)
{
    region_t *region = find(self, residency->region);
    uint64_t all = region ? region->bytes : 0, brought = region ? region->brought_bytes : 0;
    um_role_t *role;

    if (!region || region->launches < 2 || residency->present_bytes != residency->bytes)
        return;
    if (brought && brought < all)
        all = brought;
    region->taken_bytes += residency->bytes;
    if (region->taken_bytes < all / TAKES)
        return;
    role = um_roles_entry(&self->roles, region->role);
    if (region->brought_bytes)
        role->launches = region->launches - 1;
    role->backs++;
    count(role);
    region->launches = 1;
    region->brought_bytes = 0;
}

static void on_hint(ahead_t *self, const um_ev_hint_t *hint)
{
    region_t *region = find(self, hint->region);

    if (!region || hint->kind != UM_HINT_PREFETCH || hint->device < 0 ||
        hint->result != UM_HINT_APPLIED)
        return;
    if (!region->brought_bytes)
        region->launches = 1; /* that it serves; how many more? */
    region->brought_bytes += hint->bytes;
}

static void on_learned(ahead_t *self, const um_ev_learned_t *learned)
{
    um_role_t *role = um_roles_learn(&self->roles, learned, "ahead", "used");

    if (role)
        count(role);
}

static void observe(void *state, const um_event_t *event)
{
    ahead_t *self = state;
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        if (alloc->family == UM_FAMILY_MANAGED)
            self->region[alloc->region % REGIONS] = (region_t){.id = alloc->region,
                                                               .bytes = alloc->bytes,
                                                               .role = um_region_role(alloc)};
        break;
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch, event->time_ns);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit) {
            self->phase += self->launched;
            self->launched = false;
        }
        break;
    case UM_EV_HINT:
        on_hint(self, &event->u.hint);
        break;
    case UM_EV_RESIDENCY:
        on_residency(self, &event->u.residency);
        break;
    case UM_EV_LEARNED:
        on_learned(self, &event->u.learned);
        break;
    default:
        break;
    }
}

static void learned(const void *state, um_event_fn emit, void *ctx)
{
    um_roles_tell(&((const ahead_t *)state)->roles, "used", emit, ctx);
}

/* ---- deciding ---- */

/* Does it pay, by one launch or by those that are expected before the CPU takes it back? */
typedef enum worth { NOT = 0, BY_LAUNCHES, BY_LAUNCH } worth_t;

static worth_t worth_of(const ahead_t *self, const um_view_t *view)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    const um_role_t *role =
        region->id == stretch->region ? um_roles_find(&self->roles, region->role) : NULL;
    um_footprint_t known = um_view_footprint(view);
    uint64_t pays_off = role && role->backs >= BACKS ? self->pays_back : self->pays_off;

    if (!known.launches)
        return stretch->range_bytes <= self->dense_limit ? BY_LAUNCH : NOT;
    if (known.density_percent >= pays_off)
        return BY_LAUNCH;
    return role && known.density_percent * role->launches >= pays_off ? BY_LAUNCHES : NOT;
}

static void bring(const um_view_t *view, um_hints_t *hints, const um_extent_t *extent,
                  um_hint_order_t order, const char *why)
{
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                     .order = order,
                                     .addr = extent->addr,
                                     .bytes = extent->bytes,
                                     .device = um_view_launch(view)->device,
                                     .why = why});
}

/* What the CPU has of the pieces that launches will take before the next wait. */
static void bring_next_pieces(const ahead_t *self, const um_view_t *view, um_hints_t *hints,
                              uint64_t min)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    const um_sweeps_t *sweeps = &self->region[stretch->region % REGIONS].sweeps;
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t step = sweeps->before.step, start, bytes, at, end;

    if (self->region[stretch->region % REGIONS].id != stretch->region || step < PIECE ||
        !um_sweep_goes_on(sweeps) || !um_view_region(view, stretch->region, &start, &bytes))
        return;
    at = start + sweeps->now.last + step;
    end = start + sweeps->before.last + step;
    end = end < start + bytes ? end : start + bytes;
    end = end - at < self->sweep ? end : at + self->sweep;
    for (uint64_t piece = at; piece < end; piece += step)
        um_view_look(view, stretch->region, piece, step);
    for (uint64_t stop; at < end; at = stop) {
        size_t n;

        stop = end - at < UM_VIEW_STRETCH_BYTES ? end : at + UM_VIEW_STRETCH_BYTES;
        n = um_view_extents(view, stretch->region, at, stop - at, extent, UM_VIEW_STRETCH_EXTENTS);
        for (size_t i = 0; i < n; i++)
            if (extent[i].where == UM_WHERE_HOST && extent[i].bytes >= min)
                bring(view, hints, &extent[i], UM_ORDER_RACING,
                      "the next pieces' launches need it");
    }
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const ahead_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t pace_ns = um_view_pace_ns(view),
             min = pace_ns && pace_ns < HURRIED_NS ? self->min_hurried : self->min;
    worth_t worth;
    size_t n;

    if (stretch->range_bytes < min)
        return; /* without a question: it is asking that costs */
    if ((worth = worth_of(self, view)) == NOT) {
        um_hints_decline(hints);
        return;
    }
    n = um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, extent,
                        UM_VIEW_STRETCH_EXTENTS);
    if (worth == BY_LAUNCHES && worth_of(self, view) == NOT) {
        um_hints_decline(hints); /* looking showed that the CPU has taken it back */
        return;
    }
    for (size_t i = 0; i < n; i++)
        if ((extent[i].where == UM_WHERE_HOST || extent[i].where == UM_WHERE_UNKNOWN) &&
            extent[i].bytes >= min)
            bring(view, hints, &extent[i],
                  worth == BY_LAUNCH ? UM_ORDER_RACING /* its end is not the end of the use: */
                                     : UM_ORDER_IDLE,
                  worth == BY_LAUNCHES               ? "launches to come use it, too"
                  : extent[i].where == UM_WHERE_HOST ? "the cpu has it"
                                                     : "not known to be on the gpu");
    if (worth == BY_LAUNCH && stretch->first_of_region)
        bring_next_pieces(self, view, hints, min);
}

const um_advisor_ops_t um_advisor_ahead = {
    .abi = UM_ADVISOR_ABI,
    .name = "ahead",
    .doc = "what the cpu has of a launch's arguments: to its gpu, racing the kernel",
    .state_bytes = sizeof(ahead_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .learned = learned,
};

/*
 * evict - when not all fits: choose what goes, and let it go before it is in the way.
 *
 * The driver evicts what moved in longest ago, at the moment a fault needs the room; on a cyclic sweep that
 * is always what is needed next, and where there is no room no prefetch is made. Here what is used is
 * known by its pointers: the bytes from one pointer into a region to the next. Each has a last use and,
 * from the second on, a next one. When what this launch and the next lack does not fit into the room there
 * is, what is used last of all goes to the CPU in the background: only what no unfinished kernel has, and
 * nothing that is used sooner than what it makes room for. As long as the driver evicts nothing, all fits,
 * however little room is left: then nothing is said.
 */
#include "um_advisor.h"

#define OBJECTS 2048u
#define PROBES  16u
#define REGIONS 1024u /* by id modulo this: the latest ones */
#define FLIGHTS 64u   /* launches that are kept apart; older ones are taken to have ended */
#define VICTIMS 16u   /* of one launch */
#define TIGHT   64u /* launches after the last victim during which nothing is brought on suspicion */
#define PIECE   ((uint64_t)32 << 20)
#define NEVER   UINT64_MAX

/* What a pointer points to: up to the next pointer into the region that is known. */
typedef struct object {
    uint32_t region; /* 0 = free */
    uint64_t offset, bytes;
    uint64_t last,
        gap; /* launch that used it last; launches between the last two uses, 0 = one use */
} object_t;

typedef struct region {
    uint32_t id;
    uint64_t addr, bytes;
} region_t;

typedef struct flight {
    uint64_t seq, stream;
    uint32_t correlation, context;
    bool over;
} flight_t;

typedef struct evict {
    uint64_t ahead, reserve;
    uint64_t seq;   /* managed launches so far */
    uint64_t bytes; /* of all objects */
    uint64_t tight; /* launch until which it is taken that not all fits */
    flight_t flight[FLIGHTS];
    region_t region[REGIONS];
    object_t object[OBJECTS];
} evict_t;

static const um_advisor_option_t options[] = {
    {"ahead", "launches for whose data room is made before they come", 1, 0, 64,
     offsetof(evict_t, ahead)},
    {"reserve", "bytes of room kept besides", 32 << 20, 0, UINT64_MAX, offsetof(evict_t, reserve)},
    {0},
};

/* ---- objects ---- */

static void drop(evict_t *self, object_t *object)
{
    self->bytes -= object->bytes;
    *object = (object_t){0};
}

/* A pointer not seen before: what began before it ends here, and it ends at the next. */
static void cut(evict_t *self, object_t *object)
{
    for (uint32_t i = 0; i < OBJECTS; i++) {
        object_t *other = &self->object[i];

        if (other->region != object->region || other == object)
            continue;
        if (other->offset < object->offset && other->offset + other->bytes > object->offset) {
            self->bytes -= other->offset + other->bytes - object->offset;
            other->bytes = object->offset - other->offset;
        } else if (other->offset > object->offset &&
                   object->offset + object->bytes > other->offset) {
            object->bytes = other->offset - object->offset;
        }
    }
    self->bytes += object->bytes;
}

static object_t *object_of(evict_t *self, const region_t *region, uint64_t offset)
{
    uint64_t hash = (region->id ^ offset / UM_PAGE_BYTES * 0x9e3779b97f4a7c15u) >> 16;
    object_t *at = NULL;

    for (uint32_t i = 0; i < PROBES; i++) {
        object_t *object = &self->object[(hash + i) % OBJECTS];

        if (object->region == region->id && object->offset == offset)
            return object;
        if (!at || (at->region && (!object->region || object->last < at->last)))
            at = object;
    }
    drop(self, at);
    *at = (object_t){.region = region->id, .offset = offset, .bytes = region->bytes - offset};
    cut(self, at);
    return at;
}

/* The launch that uses it next. */
static uint64_t next_use(const evict_t *self, const object_t *object)
{
    if (!object->gap || object->last + object->gap < self->seq)
        return NEVER; /* used once so far, or not when it should have been */
    return object->last == self->seq ? self->seq : object->last + object->gap;
}

static bool is_busy(const evict_t *self, const object_t *object)
{
    const flight_t *flight = &self->flight[object->last % FLIGHTS];

    return flight->seq == object->last && !flight->over;
}

/* ---- events ---- */

static void on_launch(evict_t *self, const um_ev_launch_t *launch)
{
    bool any = false;

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const um_arg_t *arg = &launch->args[i];
        const region_t *region = &self->region[arg->region % REGIONS];
        object_t *object;

        if (!region->id || region->id != arg->region || arg->region_offset_bytes >= region->bytes)
            continue;
        self->seq += !any;
        any = true;
        object = object_of(self, region, arg->region_offset_bytes);
        if (object->last && object->last != self->seq)
            object->gap = self->seq - object->last;
        object->last = self->seq;
    }
    if (any)
        self->flight[self->seq % FLIGHTS] = (flight_t){.seq = self->seq,
                                                       .stream = launch->stream,
                                                       .correlation = launch->correlation,
                                                       .context = launch->context};
}

static void on_exec(evict_t *self, uint32_t correlation)
{
    for (uint32_t i = 0; correlation && i < FLIGHTS; i++)
        self->flight[i].over |= self->flight[i].correlation == correlation;
}

static void on_wait_over(evict_t *self, const um_ev_sync_t *sync)
{
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        flight_t *flight = &self->flight[i];

        if (flight->context == sync->context &&
            (sync->kind == UM_SYNC_DEVICE ||
             (sync->kind == UM_SYNC_STREAM && flight->stream == sync->stream)))
            flight->over = true;
    }
}

static void on_free(evict_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    if (!id || region->id != id)
        return;
    region->id = 0;
    for (uint32_t i = 0; i < OBJECTS; i++)
        if (self->object[i].region == id)
            drop(self, &self->object[i]);
}

static void observe(void *state, const um_event_t *event)
{
    evict_t *self = state;
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        if (alloc->family != UM_FAMILY_MANAGED)
            break;
        on_free(self, self->region[alloc->region % REGIONS].id);
        self->region[alloc->region % REGIONS] =
            (region_t){.id = alloc->region, .addr = alloc->addr, .bytes = alloc->bytes};
        break;
    case UM_EV_REGION_FREE:
        on_free(self, event->u.region_free.region);
        break;
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch);
        break;
    case UM_EV_KERNEL_EXEC:
        on_exec(self, event->u.kernel_exec.correlation);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit)
            on_wait_over(self, &event->u.sync);
        break;
    case UM_EV_MIGRATE: /* the driver had to make room itself */
        if (event->u.migrate.cause == UM_CAUSE_EVICTION)
            self->tight = self->seq + TIGHT;
        break;
    default:
        break;
    }
}

/* ---- deciding ---- */

/* Bytes of the object that are on the device, or those that are not. */
static uint64_t bytes_of(const evict_t *self, const um_view_t *view, const object_t *object,
                         bool on_device)
{
    uint64_t start = self->region[object->region % REGIONS].addr + object->offset, sum = 0;
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];

    for (uint64_t at = 0; at < object->bytes; at += UM_VIEW_STRETCH_BYTES) {
        uint64_t left = object->bytes - at;
        size_t n = um_view_extents(view, object->region, start + at,
                                   left < UM_VIEW_STRETCH_BYTES ? left : UM_VIEW_STRETCH_BYTES,
                                   extent, UM_VIEW_STRETCH_EXTENTS);

        for (size_t i = 0; i < n && i < UM_VIEW_STRETCH_EXTENTS; i++)
            if ((extent[i].where == UM_WHERE_DEVICE || extent[i].where == UM_WHERE_BOTH) ==
                on_device)
                sum += extent[i].bytes;
    }
    return sum;
}

/* Back to front, so that the front of a sweep stays. Returns the bytes that go. */
static uint64_t let_go(const evict_t *self, const um_view_t *view, um_hints_t *hints,
                       const object_t *object, uint64_t wanted)
{
    uint64_t start = self->region[object->region % REGIONS].addr + object->offset, gone = 0;
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];

    for (uint64_t end = object->bytes, from; end && gone < wanted; end = from) {
        size_t n;

        from = end > PIECE ? end - PIECE : 0;
        n = um_view_extents(view, object->region, start + from, end - from, extent,
                            UM_VIEW_STRETCH_EXTENTS);
        for (size_t i = n < UM_VIEW_STRETCH_EXTENTS ? n : UM_VIEW_STRETCH_EXTENTS; i-- > 0;) {
            if (extent[i].where != UM_WHERE_DEVICE || gone >= wanted)
                continue;
            gone += extent[i].bytes;
            um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                             .order = UM_ORDER_RACING,
                                             .addr = extent[i].addr,
                                             .bytes = extent[i].bytes,
                                             .device = UM_DEVICE_HOST,
                                             .why = "used last of all that is there"});
        }
    }
    return gone;
}

/* Is `a` to go before `b`? The one used later; of two, the one used longest ago. */
static bool goes_before(const evict_t *self, const object_t *a, const object_t *b)
{
    uint64_t next_a = next_use(self, a), next_b = next_use(self, b);

    if (next_a != next_b)
        return next_a > next_b;
    return a->last != b->last ? a->last < b->last : a > b;
}

/* The next to go after `before` (NULL = the first), NULL = nothing may. */
static const object_t *victim(const evict_t *self, const object_t *before)
{
    const object_t *best = NULL;

    for (uint32_t i = 0; i < OBJECTS; i++) {
        const object_t *object = &self->object[i];

        if (!object->region || object->last == self->seq || is_busy(self, object) ||
            next_use(self, object) <= self->seq + self->ahead)
            continue;
        if ((!before || goes_before(self, before, object)) &&
            (!best || goes_before(self, object, best)))
            best = object;
    }
    return best;
}

/* A launch is only known to begin at its pointers; where room is short, what lies behind the next one known
 * is not brought along. */
static void hold_the_rest(const evict_t *self, const um_view_t *view, um_hints_t *hints)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    uint64_t at = stretch->addr, end = stretch->addr + stretch->bytes;

    while (region->id == stretch->region && at < end) {
        uint64_t used_to = 0, free_to = end; /* from `at` on */

        for (uint32_t i = 0; i < OBJECTS; i++) {
            const object_t *object = &self->object[i];
            uint64_t start = region->addr + object->offset;

            if (object->region != region->id || object->last != self->seq)
                continue;
            if (start <= at && start + object->bytes > at)
                used_to = start + object->bytes;
            else if (start > at && start < free_to)
                free_to = start;
        }
        if (!used_to)
            um_hints_hold(hints, (at + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES,
                          free_to / UM_BLOCK_BYTES * UM_BLOCK_BYTES > at
                              ? free_to / UM_BLOCK_BYTES * UM_BLOCK_BYTES - at
                              : 0);
        at = used_to ? used_to : free_to;
    }
}

static void make_room(const evict_t *self, const um_view_t *view, um_hints_t *hints, uint64_t room)
{
    const object_t *object = NULL;
    uint64_t lacking = 0;

    for (uint32_t i = 0; i < OBJECTS; i++)
        if (self->object[i].region && (self->object[i].last == self->seq ||
                                       next_use(self, &self->object[i]) <= self->seq + self->ahead))
            lacking += bytes_of(self, view, &self->object[i], false);
    if (!lacking || lacking + self->reserve <= room)
        return;
    lacking += self->reserve - room;
    for (uint32_t i = 0; i < VICTIMS && lacking && (object = victim(self, object)); i++) {
        uint64_t gone = let_go(self, view, hints, object, lacking);

        lacking -= gone < lacking ? gone : lacking;
    }
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const evict_t *self = state;
    uint64_t room = um_view_room_bytes(view, um_view_launch(view)->device);

    if (self->bytes <= room || self->seq >= self->tight)
        return;
    if (um_view_stretch(view)->first_of_launch) /* once is enough */
        make_room(self, view, hints, room);
    hold_the_rest(self, view, hints);
}

const um_advisor_ops_t um_advisor_evict = {
    .abi = UM_ADVISOR_ABI,
    .name = "evict",
    .doc = "where not all fits: what is used last of all goes to the cpu before its room is needed",
    .state_bytes = sizeof(evict_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .always = true,
};

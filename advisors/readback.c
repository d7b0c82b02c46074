/*
 * readback - bring to the CPU, as it enters a wait, what it is known to read after that wait.
 *
 * On an H200 the CPU gets 1 GiB back in 180-210 ms by faults and in 71-115 ms by prefetch. A wait is
 * known by the kernel launched last among the work that it covers; what the CPU takes (page tables, CPU
 * faults, migrations) is put down to the first wait since the last launch that used it: earlier the GPU
 * may still write it, later time is lost. Two occurrences have to agree on what and on how often (every
 * time, or every n-th). Data that comes by prefetch no longer faults: now and then a block is left out,
 * and when nobody misses it the CPU has stopped reading.
 *
 * Only what is on the GPU is brought: pages that nobody wrote are cheaper populated by the CPU itself.
 *
 * Kernels are known by name and module, regions by their place, so that a region allocated anew and
 * another run inherit what was learned.
 */
#include <string.h>

#include "lru.h"
#include "place.h"
#include "um_advisor.h"

#define REGIONS 1024u /* remembered by id modulo this: the latest ones */
#define KERNELS 4096u /* likewise */
#define STREAMS 64u
#define RECENT  32u /* waits looked back over: reads after more than so many cannot be placed */
#define WAITS   256u
#define RANGES  16u            /* of one wait */
#define NEAR    UM_BLOCK_BYTES /* reads nearer than this are one range */
#define AGREED  2u
#define FORGET  4u /* periods without a read after which a range is given up */
#define CHANCES 2u /* a block left out and not missed: how often before it is given up */
#define FRESH   1u /* runs: what was seen to hold since then is acted upon at once */
#define STALE   4u /* and before that, is soon put to the proof */

typedef struct use {
    uint64_t seq; /* 0 = none */
    uint64_t stream;
    uint32_t context;
} use_t;

/* The last two launches that took a region: what a launch finds the CPU to have taken was taken before
 * it. */
typedef struct region {
    uint32_t id;
    uint64_t addr, bytes, role, place;
    use_t last, before;
} region_t;

typedef struct kernel {
    uint32_t id;
    uint64_t key; /* of its name and module */
} kernel_t;

/* A stream, or a context as a whole. */
typedef struct stream {
    uint64_t handle;
    uint32_t context;
    int32_t device;
    uint64_t kernel; /* key of the one launched last */
} stream_t;

typedef struct recent {
    uint64_t seq;     /* in one row with the launches */
    uint64_t exit_ns; /* 0 = not left yet */
    uint64_t key, stream;
    uint32_t sync, kind, context;
} recent_t;

/* What is seen of an occurrence, from three sources that may all tell of the same bytes. */
typedef struct seen {
    uint64_t addr, end;
    uint64_t present_bytes, migrated_bytes, faults;
} seen_t;

typedef struct range {
    uint64_t place;         /* of the region; 0 = free */
    uint64_t role;          /* of it */
    uint32_t nth;           /* of those of this place */
    uint32_t count, period; /* occurrences since the last read; read every `period`-th */
    uint32_t agreed, missed;
    uint32_t brought;       /* occurrences served since a block was left out */
    bool pending, left_out; /* served at the latest occurrence; but for a block */
    uint32_t served;        /* the region, then */
    bool held;              /* this run has seen for itself whether it is so */
    bool told;              /* earlier runs have told of it, */
    uint32_t age;           /* so long ago */
    uint64_t times;         /* it was seen, in all runs */
    uint64_t addr, end;     /* from the start of the region */
    seen_t seen;            /* since the latest occurrence */
} range_t;

typedef struct wait {
    um_lru_t lru; /* used: `seq` of its latest occurrence */
    range_t range[RANGES];
} wait_t;

typedef struct readback {
    uint64_t limit, min, density, check;
    uint64_t seq;
    uint32_t n_recent;
    um_places_t places;
    region_t region[REGIONS];
    kernel_t kernel[KERNELS];
    stream_t stream[STREAMS], context[STREAMS];
    recent_t recent[RECENT];
    wait_t wait[WAITS];
} readback_t;

static const um_advisor_option_t options[] = {
    {"limit", "bytes of the largest argument that is looked at", (uint64_t)2 << 30, 0, UINT64_MAX,
     offsetof(readback_t, limit)},
    {"min", "bytes of the smallest range worth a call", 4096, 1, UINT64_MAX,
     offsetof(readback_t, min)},
    {"density", "per cent of a range that the cpu must have read", 50, 1, 100,
     offsetof(readback_t, density)},
    {"check", "occurrences after which a block is left out to see whether it is missed", 8, 1,
     1000000, offsetof(readback_t, check)},
    {0},
};

/* ---- waits and what they cover ---- */

static uint64_t stream_slot(uint32_t context, uint64_t handle)
{
    return um_mix(handle, context) % STREAMS;
}

/* The region that has the range's place now; NULL = none that a launch has taken. */
static const region_t *region_of(const readback_t *self, const range_t *range)
{
    uint32_t id = um_place_region(&self->places, range->place);

    return id && self->region[id % REGIONS].id == id ? &self->region[id % REGIONS] : NULL;
}

/* Does the wait cover work on that stream? Of an event nobody says what it stands for. */
static bool covers(uint32_t kind, uint32_t context, uint64_t stream, const use_t *use)
{
    if (context != use->context)
        return false;
    return kind == UM_SYNC_DEVICE ||
           ((kind == UM_SYNC_STREAM || kind == UM_SYNC_COPY) && stream == use->stream);
}

static uint64_t key_of(const readback_t *self, const um_ev_sync_t *sync)
{
    bool whole = sync->kind != UM_SYNC_STREAM && sync->kind != UM_SYNC_COPY;
    const stream_t *last = whole ? &self->context[sync->context % STREAMS]
                                 : &self->stream[stream_slot(sync->context, sync->stream)];

    if (last->context != sync->context || (!whole && last->handle != sync->stream))
        return um_mix(0, sync->kind) | 1;
    return um_mix(um_mix(last->kernel, sync->kind), (uint32_t)last->device) | 1;
}

static wait_t *find_wait(const readback_t *self, uint64_t key)
{
    return um_lru_find(self->wait, WAITS, sizeof(wait_t), key);
}

static wait_t *wait_of(readback_t *self, uint64_t key)
{
    return um_lru_make(self->wait, WAITS, sizeof(wait_t), key);
}

/* ---- an occurrence ---- */

static uint64_t seen_bytes(const seen_t *seen)
{
    /* The driver brings a block in about three faults. */
    uint64_t bytes = seen->faults * (UM_BLOCK_BYTES / 3);

    if (bytes < seen->migrated_bytes)
        bytes = seen->migrated_bytes;
    return bytes < seen->present_bytes ? seen->present_bytes : bytes;
}

static bool overlap_half(const range_t *range)
{
    uint64_t from = range->addr > range->seen.addr ? range->addr : range->seen.addr;
    uint64_t to = range->end < range->seen.end ? range->end : range->seen.end;
    uint64_t both = to > from ? to - from : 0;

    return 2 * both >= range->end - range->addr && 2 * both >= range->seen.end - range->seen.addr;
}

static bool is_dense(const readback_t *self, const seen_t *seen)
{
    return seen_bytes(seen) * 100 >= (seen->end - seen->addr) * self->density;
}

/* It is so no more. What earlier runs told is kept as refuted, so that they hear of it. */
static void give_up(range_t *range)
{
    *range = range->told ? (range_t){.place = range->place,
                                     .role = range->role,
                                     .nth = range->nth,
                                     .told = true,
                                     .held = true}
                         : (range_t){0};
}

/* The CPU read it at the latest occurrence, without our help. */
static void learn(const readback_t *self, range_t *range)
{
    bool same = overlap_half(range) && is_dense(self, &range->seen);

    if (range->agreed && same && range->count == range->period) {
        range->agreed++;
        range->times++;
        range->held = true;
    } else {
        range->agreed = is_dense(self, &range->seen);
        range->times = range->agreed;
        range->held |= range->told;
        /* The first time nobody knows how often: taken to be every time. */
        range->period = range->addr == range->end ? 1 : range->count;
    }
    range->addr = range->seen.addr;
    range->end = range->seen.end;
    range->count = range->missed = 0;
}

/* The CPU read it although it was brought: what was left out, or came late, or lies beside it. */
static void extend(const readback_t *self, range_t *range)
{
    if (!is_dense(self, &range->seen))
        return;
    if (range->seen.addr < range->addr)
        range->addr = range->seen.addr;
    if (range->seen.end > range->end)
        range->end = range->seen.end;
}

/* What came of the latest occurrence, now that the next one is here. */
static void judge(const readback_t *self, range_t *range)
{
    bool read = range->seen.end != 0;

    if (range->pending && read) {
        extend(self, range);
        range->times++;
        range->held = true;
        range->count = range->missed = 0;
    } else if (range->pending) {
        range->count = 0; /* what came by prefetch is not seen: taken to be as always */
        /* Of a region that went meanwhile nobody looked whether it was missed. */
        if (range->left_out && um_place_region(&self->places, range->place) == range->served &&
            ++range->missed == CHANCES)
            give_up(range);
    } else if (read) {
        learn(self, range);
    } else if (range->period && range->count > FORGET * range->period) {
        give_up(range);
    }
    range->pending = range->left_out = false;
    range->seen = (seen_t){0};
}

/* Whether the occurrence that begins is one after which the range is read; and if so, whether it is time
 * to leave a block out. */
static void foresee(const readback_t *self, range_t *range, const um_ev_sync_t *sync)
{
    const region_t *region = region_of(self, range);

    range->pending = range->agreed >= AGREED && range->count == range->period &&
                     range->end - range->addr >= self->min && region &&
                     range->end <= region->bytes &&
                     (sync->kind == UM_SYNC_EVENT ||
                      covers(sync->kind, sync->context, sync->stream, &region->last));
    if (!range->pending)
        return;
    range->served = region->id;
    range->left_out = range->missed || ++range->brought > self->check;
    if (range->left_out)
        range->brought = 0;
}

static void on_enter(readback_t *self, const um_ev_sync_t *sync)
{
    uint64_t key = key_of(self, sync);
    wait_t *wait = find_wait(self, key);
    recent_t *recent = &self->recent[self->n_recent++ % RECENT];

    *recent = (recent_t){.seq = ++self->seq,
                         .key = key,
                         .stream = sync->stream,
                         .sync = sync->sync,
                         .kind = sync->kind,
                         .context = sync->context};
    if (!wait)
        return;
    wait->lru.used = self->seq;
    for (uint32_t i = 0; i < RANGES; i++)
        if (wait->range[i].place) {
            judge(self, &wait->range[i]);
            wait->range[i].count++;
            foresee(self, &wait->range[i], sync);
        }
}

static void on_exit(readback_t *self, const um_ev_sync_t *sync, uint64_t now_ns)
{
    for (uint32_t i = 1; i <= RECENT && i <= self->n_recent; i++) {
        recent_t *recent = &self->recent[(self->n_recent - i) % RECENT];

        if (recent->sync == sync->sync && !recent->exit_ns && recent->kind == sync->kind &&
            recent->stream == sync->stream) {
            recent->exit_ns = now_ns ? now_ns : 1;
            return;
        }
    }
}

static uint64_t text_key(const char *text)
{
    uint64_t x = 1;

    for (; *text; text++)
        x = um_mix(x, (unsigned char)*text);
    return x;
}

static void on_kernel(readback_t *self, const um_ev_kernel_t *kernel)
{
    self->kernel[kernel->kernel % KERNELS] =
        (kernel_t){.id = kernel->kernel,
                   .key = um_mix(text_key(kernel->name), kernel->module_hash)};
}

/* A graph has no kernel of its own: the places of what it takes stand for it. */
static uint64_t kernel_key(const readback_t *self, const um_ev_launch_t *launch)
{
    const kernel_t *kernel = &self->kernel[launch->kernel % KERNELS];
    uint64_t key = launch->n_args;

    if (launch->kernel)
        return kernel->id == launch->kernel ? kernel->key : launch->kernel;
    for (uint32_t i = 0; i < launch->n_args; i++)
        key = um_mix(key, self->region[launch->args[i].region % REGIONS].place);
    return key;
}

static void on_launch(readback_t *self, const um_ev_launch_t *launch)
{
    use_t use = {.seq = ++self->seq, .stream = launch->stream, .context = launch->context};
    stream_t last = {.handle = launch->stream,
                     .context = launch->context,
                     .device = launch->device};

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    last.kernel = kernel_key(self, launch);
    self->stream[stream_slot(launch->context, launch->stream)] = last;
    self->context[launch->context % STREAMS] = last;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        region_t *region = &self->region[launch->args[i].region % REGIONS];

        if (region->id != launch->args[i].region || region->last.seq == use.seq)
            continue;
        region->before = region->last;
        region->last = use;
    }
}

/* ---- what the CPU took ---- */

/* The wait that a read at `ns` (or after `sync`) is put down to, NULL = nobody knows. */
static const recent_t *cause_of(const readback_t *self, const region_t *region, uint64_t ns,
                                uint32_t sync)
{
    uint32_t n = self->n_recent < RECENT ? self->n_recent : RECENT;
    const recent_t *left = NULL, *first = NULL;
    const use_t *use;

    for (uint32_t i = 1; i <= n && !left; i++) {
        const recent_t *recent = &self->recent[(self->n_recent - i) % RECENT];

        if (recent->exit_ns && (sync ? recent->sync == sync : recent->exit_ns <= ns))
            left = recent;
    }
    if (!left)
        return NULL;
    use = region->last.seq < left->seq ? &region->last : &region->before;
    if (!use->seq || use->seq > left->seq ||
        (self->n_recent > RECENT && self->recent[self->n_recent % RECENT].seq > use->seq))
        return NULL; /* by whom it was used is not known, or the first wait since is forgotten */
    for (uint32_t i = n; i > 0 && !first; i--) {
        const recent_t *recent = &self->recent[(self->n_recent - i) % RECENT];

        if (recent->seq > use->seq && recent->seq <= left->seq &&
            covers(recent->kind, recent->context, recent->stream, use))
            first = recent;
    }
    /* An event may stand for anything: only the wait right before the read is believed. */
    return first || left->kind != UM_SYNC_EVENT ? first : left;
}

static range_t *new_range(wait_t *wait, range_t *range, uint64_t place)
{
    *range = (range_t){.place = place};
    for (uint32_t i = 0; i < RANGES; i++)
        if (&wait->range[i] != range && wait->range[i].place == place &&
            wait->range[i].nth >= range->nth)
            range->nth = wait->range[i].nth + 1;
    return range;
}

static range_t *range_of(wait_t *wait, const region_t *region, uint64_t addr, uint64_t end)
{
    range_t *empty = NULL;

    for (uint32_t i = 0; i < RANGES; i++) {
        range_t *range = &wait->range[i];
        uint64_t from = range->addr, to = range->end;

        if (!range->place && !empty)
            empty = range;
        if (range->place != region->place)
            continue;
        if (range->seen.end) {
            from = from < range->seen.addr && to > from ? from : range->seen.addr;
            to = to > range->seen.end ? to : range->seen.end;
        }
        if (addr <= to + NEAR && from <= end + NEAR)
            return range;
    }
    if (!empty)
        return NULL;
    new_range(wait, empty, region->place)->role = region->role;
    empty->count = 1;
    return empty;
}

static void on_read(readback_t *self, uint32_t id, uint64_t ns, uint32_t sync, seen_t part)
{
    const region_t *region = &self->region[id % REGIONS];
    const recent_t *cause;
    wait_t *wait;
    range_t *range;
    seen_t *seen;

    if (!id || region->id != id || !region->place || part.end <= region->addr ||
        part.addr >= region->addr + region->bytes || !(cause = cause_of(self, region, ns, sync)))
        return;
    /* Pages may reach beyond the region. */
    part.addr = part.addr > region->addr ? part.addr - region->addr : 0;
    part.end -= region->addr;
    part.end = part.end < region->bytes ? part.end : region->bytes;
    wait = wait_of(self, cause->key);
    wait->lru.used = wait->lru.used > cause->seq ? wait->lru.used : cause->seq;
    if (wait->lru.used > cause->seq || !(range = range_of(wait, region, part.addr, part.end)))
        return; /* heard of too late: it has occurred again since */
    seen = &range->seen;
    if (!seen->end)
        *seen = (seen_t){.addr = part.addr, .end = part.end};
    if (part.addr < seen->addr)
        seen->addr = part.addr;
    if (part.end > seen->end)
        seen->end = part.end;
    seen->present_bytes += part.present_bytes;
    seen->migrated_bytes += part.migrated_bytes;
    seen->faults += part.faults;
}

static void on_alloc(readback_t *self, const um_ev_region_alloc_t *alloc)
{
    region_t *region = &self->region[alloc->region % REGIONS];

    if (alloc->family != UM_FAMILY_MANAGED)
        return;
    if (region->id)
        um_place_leave(&self->places, region->place, region->id);
    *region = (region_t){.id = alloc->region,
                         .addr = alloc->addr,
                         .bytes = alloc->bytes,
                         .role = um_region_role(alloc),
                         .place = um_place_enter(&self->places, alloc)};
}

static void on_free(readback_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    if (!id || region->id != id)
        return;
    um_place_leave(&self->places, region->place, id);
    *region = (region_t){0};
}

/* ---- from run to run ---- */

enum { WAIT_KEY = 0, PLACE, FROM, TO, PERIOD, NTH };

/* Once it was seen often enough, and lately, it is acted upon at its first occurrence; else after one
 * that bears it out. */
static void on_learned(readback_t *self, const um_ev_learned_t *learned)
{
    const uint64_t *value = learned->value;
    wait_t *wait;

    if (strcmp(learned->who, "readback") != 0 || learned->count < AGREED || !value[WAIT_KEY] ||
        !value[PLACE] || value[TO] <= value[FROM] || !value[PERIOD] || value[PERIOD] > UINT32_MAX)
        return;
    wait = wait_of(self, value[WAIT_KEY]);
    for (uint32_t i = 0; i < RANGES; i++)
        if (!wait->range[i].place) {
            wait->range[i] = (range_t){.place = value[PLACE],
                                       .role = learned->role,
                                       .nth = (uint32_t)value[NTH],
                                       .period = (uint32_t)value[PERIOD],
                                       .agreed = learned->age <= FRESH ? AGREED : AGREED - 1,
                                       .brought = learned->age > STALE ? (uint32_t)self->check : 0,
                                       .age = learned->age,
                                       .told = true,
                                       .times = learned->count,
                                       .addr = value[FROM],
                                       .end = value[TO]};
            return;
        }
}

static void tell(const wait_t *wait, const range_t *range, um_event_fn emit, void *ctx)
{
    um_event_t event = {.type = UM_EV_LEARNED};

    event.u.learned =
        (um_ev_learned_t){.what = "read",
                          .kernel = "",
                          .shape = um_mix(um_mix(wait->lru.key, range->place), range->nth),
                          .role = range->role,
                          .slot = UM_SLOT_NONE,
                          .age = range->held ? 0 : range->age,
                          .count = range->agreed >= AGREED ? range->times : 0,
                          .value = {[WAIT_KEY] = wait->lru.key,
                                    [PLACE] = range->place,
                                    [FROM] = range->addr,
                                    [TO] = range->end,
                                    [PERIOD] = range->period,
                                    [NTH] = range->nth}};
    emit(ctx, &event);
}

static void tell_learned(const void *state, um_event_fn emit, void *ctx)
{
    const readback_t *self = state;

    for (uint32_t w = 0; w < WAITS; w++)
        for (uint32_t i = 0; i < RANGES; i++) {
            const range_t *range = &self->wait[w].range[i];

            if (range->place && (range->agreed >= AGREED || (range->told && range->held)))
                tell(&self->wait[w], range, emit, ctx);
        }
}

static void observe(void *state, const um_event_t *event)
{
    readback_t *self = state;

    switch (event->type) {
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit)
            on_exit(self, &event->u.sync, event->time_ns);
        else
            on_enter(self, &event->u.sync);
        break;
    case UM_EV_KERNEL:
        on_kernel(self, &event->u.kernel);
        break;
    case UM_EV_LEARNED:
        on_learned(self, &event->u.learned);
        break;
    case UM_EV_REGION_ALLOC:
        on_alloc(self, &event->u.region_alloc);
        break;
    case UM_EV_REGION_FREE:
        on_free(self, event->u.region_free.region);
        break;
    case UM_EV_CPU_FAULT: {
        const um_ev_cpu_fault_t *fault = &event->u.cpu_fault;
        uint64_t page = fault->addr / UM_PAGE_BYTES * UM_PAGE_BYTES;

        on_read(self, fault->region, event->time_ns, 0,
                (seen_t){.addr = page, .end = page + UM_PAGE_BYTES, .faults = 1});
        break;
    }
    case UM_EV_MIGRATE: {
        const um_ev_migrate_t *move = &event->u.migrate;

        if (move->dst == UM_DEVICE_HOST &&
            (move->cause == UM_CAUSE_COHERENCE || move->cause == UM_CAUSE_PREFETCH))
            on_read(self, move->region, event->time_ns, 0,
                    (seen_t){.addr = move->addr,
                             .end = move->addr + move->bytes,
                             .migrated_bytes = move->bytes});
        break;
    }
    case UM_EV_RESIDENCY: {
        const um_ev_residency_t *found = &event->u.residency;

        if (found->bytes && found->present_bytes == found->bytes)
            on_read(self, found->region, event->time_ns, found->sync,
                    (seen_t){.addr = found->addr,
                             .end = found->addr + found->bytes,
                             .present_bytes = found->bytes});
        break;
    }
    default:
        break;
    }
}

/* ---- deciding ---- */

/* Looks, so that what the CPU took is told; proposes nothing. */
static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const readback_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent;

    (void)hints;
    if (stretch->range_bytes <= self->limit && stretch->range_bytes >= self->min)
        um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, &extent, 1);
}

static void bring(const um_view_t *view, um_hints_t *hints, const region_t *region, uint64_t from,
                  uint64_t to)
{
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t end = region->addr + to;

    for (uint64_t at = region->addr + from, stop; at < end; at = stop) {
        size_t n;

        stop = end - at < UM_VIEW_STRETCH_BYTES ? end : at + UM_VIEW_STRETCH_BYTES;
        n = um_view_extents(view, region->id, at, stop - at, extent, UM_VIEW_STRETCH_EXTENTS);
        for (size_t i = 0; i < n && i < UM_VIEW_STRETCH_EXTENTS; i++)
            if (extent[i].where == UM_WHERE_DEVICE)
                um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                                 .order = UM_ORDER_AFTER,
                                                 .addr = extent[i].addr,
                                                 .bytes = extent[i].bytes,
                                                 .device = UM_DEVICE_HOST,
                                                 .why = "the cpu reads it after this wait"});
    }
}

/* The end of what is brought when the range's last block is left out. */
static uint64_t without_last_block(const region_t *region, const range_t *range)
{
    uint64_t stop = (region->addr + range->end - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

    return stop > region->addr + range->addr ? stop - region->addr : range->addr;
}

static void decide_sync(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const readback_t *self = state;
    const wait_t *wait = find_wait(self, key_of(self, um_view_sync(view)));

    for (uint32_t i = 0; wait && i < RANGES; i++) {
        const range_t *range = &wait->range[i];
        const region_t *region = range->pending ? region_of(self, range) : NULL;

        if (region)
            bring(view, hints, region, range->addr,
                  range->left_out ? without_last_block(region, range) : range->end);
    }
}

const um_advisor_ops_t um_advisor_readback = {
    .abi = UM_ADVISOR_ABI,
    .name = "readback",
    .doc = "what the cpu reads after a wait: to the cpu, as it enters the wait",
    .state_bytes = sizeof(readback_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .decide_sync = decide_sync,
    .learned = tell_learned,
};

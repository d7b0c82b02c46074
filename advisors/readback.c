/*
 * readback - bring to the CPU, as it enters a wait, what it is known to read after that wait.
 *
 * On an H200 the CPU gets 1 GiB back in 180-210 ms by faults and in 71-115 ms by prefetch. A wait is
 * known by the kernel launched last among the work that it covers, and as the first, second, ... since its thread's
 * latest launch; what the CPU takes (page tables, CPU
 * faults, migrations) is put down to the first wait since the last launch that used it: earlier the GPU
 * may still write it, later time is lost.
 *
 * It is a range of a region, or of an argument of that kernel where its pointer is another one each time, as
 * slices of a pool are: then it is counted from the pointer, and page tables are asked for it at the next launch,
 * which need not take it (readback_moving.c). How a range is learned: readback_range.h.
 *
 * Only what is on the GPU is brought: pages that nobody wrote are cheaper populated by the CPU itself.
 *
 * Kernels are known by name and module, regions by their place, so that a region allocated anew and
 * another run inherit what was learned.
 */
#include <string.h>

#include "readback_impl.h"

#define NEAR  UM_BLOCK_BYTES /* reads nearer than this are one range */
#define ROW   8u             /* waits in a row that are told apart */
#define FRESH 1u             /* runs: what was seen to hold since then is acted upon at once */
#define STALE 4u             /* and before that, is soon put to the proof */

static const um_advisor_option_t options[] = {
    {"limit", "bytes of the largest argument that is looked at", (uint64_t)2 << 30, 0, UINT64_MAX,
     offsetof(um_readback_t, limit)},
    {"min", "bytes of the smallest range worth a call", 4096, 1, UINT64_MAX,
     offsetof(um_readback_t, rules.min)},
    {"density", "per cent of a range that the cpu must have read", 50, 1, 100,
     offsetof(um_readback_t, rules.density)},
    {"check", "occurrences, at most, after which a block is left out to see whether it is missed",
     8, 1, 1000000, offsetof(um_readback_t, rules.check)},
    {0},
};

/* ---- waits and what they cover ---- */

static uint64_t stream_slot(uint32_t context, uint64_t handle)
{
    return um_mix(handle, context) % UM_READ_STREAMS;
}

/* Does the wait cover work on that stream? Of an event nobody says what it stands for. */
static bool covers(uint32_t kind, uint32_t context, uint64_t stream, const um_read_use_t *use)
{
    if (context != use->context)
        return false;
    return kind == UM_SYNC_DEVICE ||
           ((kind == UM_SYNC_STREAM || kind == UM_SYNC_COPY) && stream == use->stream);
}

/* The stream, or the context as a whole, that the wait is for; NULL = no launch is known of it. */
static const um_read_stream_t *waited_for(const um_readback_t *self, const um_ev_sync_t *sync)
{
    bool whole = sync->kind != UM_SYNC_STREAM && sync->kind != UM_SYNC_COPY;
    const um_read_stream_t *last = whole ? &self->context[sync->context % UM_READ_STREAMS]
                                         : &self->stream[stream_slot(sync->context, sync->stream)];

    return last->context == sync->context && (whole || last->handle == sync->stream) ? last : NULL;
}

static um_read_thread_t *thread_of(um_readback_t *self, uint32_t tid)
{
    um_read_thread_t *thread = &self->thread[tid % UM_READ_THREADS];

    if (thread->tid != tid)
        *thread = (um_read_thread_t){.tid = tid};
    return thread;
}

/* waits: of the thread's, in a row before it. */
static uint64_t key_of(const um_read_stream_t *last, uint32_t kind, uint32_t waits)
{
    uint64_t key =
        last ? um_mix(um_mix(last->kernel, kind), (uint32_t)last->device) : um_mix(0, kind);

    return (waits ? um_mix(key, waits < ROW ? waits : ROW) : key) | 1;
}

/* ---- an occurrence ---- */

/* What there is of the range's origin that could be brought once the wait is over. */
static uint64_t bytes_from(const um_read_origin_t *origin, const um_ev_sync_t *sync, bool of_region)
{
    if (!origin->region || origin->at >= origin->region->bytes)
        return 0;
    /* The argument is the waited kernel's own. */
    if (of_region && sync->kind != UM_SYNC_EVENT &&
        !covers(sync->kind, sync->context, sync->stream, &origin->region->last))
        return 0;
    return origin->region->bytes - origin->at;
}

static void on_enter(um_readback_t *self, const um_ev_sync_t *sync, uint32_t tid)
{
    const um_read_stream_t *last = waited_for(self, sync);
    um_read_recent_t recent = {.seq = ++self->seq,
                               .key = key_of(last, sync->kind, thread_of(self, tid)->waits++),
                               .stream = sync->stream,
                               .sync = sync->sync,
                               .kind = sync->kind,
                               .context = sync->context};
    um_read_wait_t *wait;

    if (last)
        recent.given = last->given;
    um_read_follow(self, recent.key, &recent.given);
    wait = um_read_wait(self, recent.key);
    if (wait)
        um_read_find_ends(self, &recent.given);
    self->recent[self->n_recent++ % UM_READ_RECENT] = recent;
    if (!wait)
        return;
    wait->lru.used = self->seq;
    for (uint32_t i = 0; i < UM_READ_ALL; i++) {
        um_range_t *range = &wait->range[i];
        um_read_origin_t origin;

        if (!range->place)
            continue;
        um_range_judge(range, &self->rules, um_read_region(self, range->served));
        range->count++;
        origin = um_read_origin(self, wait, i, &recent.given);
        um_range_foresee(range, &self->rules, bytes_from(&origin, sync, i < UM_READ_RANGES),
                         origin.end > origin.at ? origin.end - origin.at : 0,
                         origin.region ? origin.region->id : 0);
    }
}

/* The number of the latest such wait that has not been left, n_recent = there is none. */
static uint32_t entered(const um_readback_t *self, const um_ev_sync_t *sync)
{
    for (uint32_t i = 1; i <= UM_READ_RECENT && i <= self->n_recent; i++) {
        const um_read_recent_t *recent = &self->recent[(self->n_recent - i) % UM_READ_RECENT];

        if (recent->sync == sync->sync && !recent->exit_ns && recent->kind == sync->kind &&
            recent->stream == sync->stream)
            return self->n_recent - i;
    }
    return self->n_recent;
}

static void on_exit(um_readback_t *self, const um_ev_sync_t *sync, uint64_t now_ns)
{
    uint32_t n = entered(self, sync);

    if (n != self->n_recent)
        self->recent[n % UM_READ_RECENT].exit_ns = now_ns ? now_ns : 1;
}

static uint64_t text_key(const char *text)
{
    uint64_t x = 1;

    for (; *text; text++)
        x = um_mix(x, (unsigned char)*text);
    return x;
}

static void on_kernel(um_readback_t *self, const um_ev_kernel_t *kernel)
{
    self->kernel[kernel->kernel % UM_READ_KERNELS] =
        (um_read_kernel_t){.id = kernel->kernel,
                           .key = um_mix(text_key(kernel->name), kernel->module_hash)};
}

/* A graph has no kernel of its own: the places of what it takes stand for it. */
static uint64_t kernel_key(const um_readback_t *self, const um_ev_launch_t *launch)
{
    const um_read_kernel_t *kernel = &self->kernel[launch->kernel % UM_READ_KERNELS];
    uint64_t key = launch->n_args;

    if (launch->kernel)
        return kernel->id == launch->kernel ? kernel->key : launch->kernel;
    for (uint32_t i = 0; i < launch->n_args; i++)
        key = um_mix(key, self->region[launch->args[i].region % UM_READ_REGIONS].place);
    return key;
}

static void on_launch(um_readback_t *self, const um_ev_launch_t *launch, uint32_t tid)
{
    um_read_use_t use = {.seq = ++self->seq, .stream = launch->stream, .context = launch->context};
    um_read_stream_t last = {.handle = launch->stream,
                             .context = launch->context,
                             .device = launch->device};

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    self->launch_before = self->launch;
    self->launch = use.seq;
    thread_of(self, tid)->waits = 0;
    last.kernel = kernel_key(self, launch);
    last.given = um_read_given(launch);
    self->given = last.given;
    um_read_part_from_next(self);
    self->stream[stream_slot(launch->context, launch->stream)] = last;
    self->context[launch->context % UM_READ_STREAMS] = last;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        um_read_region_t *region = &self->region[launch->args[i].region % UM_READ_REGIONS];

        if (region->id != launch->args[i].region || region->last.seq == use.seq)
            continue;
        region->before = region->last;
        region->last = use;
    }
}

/* ---- what the CPU took ---- */

/* The wait that a read at `ns` (or after `sync`) is put down to, NULL = nobody knows. */
static const um_read_recent_t *cause_of(const um_readback_t *self, const um_read_region_t *region,
                                        uint64_t ns, uint32_t sync)
{
    uint32_t n = self->n_recent < UM_READ_RECENT ? self->n_recent : UM_READ_RECENT;
    const um_read_recent_t *left = NULL, *first = NULL;
    const um_read_use_t *use;

    for (uint32_t i = 1; i <= n && !left; i++) {
        const um_read_recent_t *recent = &self->recent[(self->n_recent - i) % UM_READ_RECENT];

        if (recent->exit_ns && (sync ? recent->sync == sync : recent->exit_ns <= ns))
            left = recent;
    }
    if (!left)
        return NULL;
    use = region->last.seq < left->seq ? &region->last : &region->before;
    if (!use->seq || use->seq > left->seq ||
        (self->n_recent > UM_READ_RECENT &&
         self->recent[self->n_recent % UM_READ_RECENT].seq > use->seq))
        return NULL; /* by whom it was used is not known, or the first wait since is forgotten */
    for (uint32_t i = n; i > 0 && !first; i--) {
        const um_read_recent_t *recent = &self->recent[(self->n_recent - i) % UM_READ_RECENT];

        if (recent->seq > use->seq && recent->seq <= left->seq &&
            covers(recent->kind, recent->context, recent->stream, use))
            first = recent;
    }
    /* An event may stand for anything: only the wait right before the read is believed. */
    return first || left->kind != UM_SYNC_EVENT ? first : left;
}

static um_range_t *new_range(um_read_wait_t *wait, um_range_t *range, uint64_t place)
{
    *range = (um_range_t){.place = place};
    for (uint32_t i = 0; i < UM_READ_RANGES; i++) {
        um_range_t *other = &wait->range[i];

        if (other == range || other->place != place)
            continue;
        if (other->nth >= range->nth)
            range->nth = other->nth + 1;
        /* One that moves and was brought as foreseen: it has gone here instead. */
        if (other->step && other->pending)
            other->agreed = 0;
    }
    return range;
}

static um_range_t *range_of(um_read_wait_t *wait, const um_read_region_t *region, uint64_t addr,
                            uint64_t end)
{
    um_range_t *empty = NULL;

    for (uint32_t i = 0; i < UM_READ_RANGES; i++) {
        um_range_t *range = &wait->range[i];
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

/* Has such a wait occurred before this one, with nothing read after it? */
static bool came_before(const um_readback_t *self, const um_read_recent_t *cause)
{
    for (uint32_t i = 1; i <= UM_READ_RECENT && i <= self->n_recent; i++) {
        const um_read_recent_t *recent = &self->recent[(self->n_recent - i) % UM_READ_RECENT];

        if (recent->key == cause->key && recent->seq < cause->seq)
            return true;
    }
    return false;
}

static void on_read(um_readback_t *self, uint32_t id, uint64_t ns, uint32_t sync,
                    um_range_seen_t seen)
{
    const um_read_region_t *region = um_read_region(self, id);
    const um_read_recent_t *cause;
    um_range_seen_t left;
    um_read_wait_t *wait;
    um_range_t *range;

    if (!region || !region->place || seen.end <= region->addr ||
        seen.addr >= region->addr + region->bytes || !(cause = cause_of(self, region, ns, sync)))
        return;
    /* Pages may reach beyond the region. */
    seen.addr = seen.addr > region->addr ? seen.addr - region->addr : 0;
    seen.end -= region->addr;
    seen.end = seen.end < region->bytes ? seen.end : region->bytes;
    wait = um_read_make_wait(self, cause->key);
    wait->lru.used = wait->lru.used > cause->seq ? wait->lru.used : cause->seq;
    if (wait->lru.used > cause->seq)
        return; /* heard of too late: it has occurred again since */
    left = um_read_saw_of_arguments(self, wait, cause, region, &seen);
    /* The driver takes along what is left of a block. */
    if (left.end - left.addr < seen.end - seen.addr && left.end - left.addr < UM_BLOCK_BYTES)
        return;
    if (!(range = range_of(wait, region, left.addr, left.end)))
        return;
    range->tried |= range->addr == range->end && came_before(self, cause);
    um_range_saw(range, &left);
}

static void on_alloc(um_readback_t *self, const um_ev_region_alloc_t *alloc)
{
    um_read_region_t *region = &self->region[alloc->region % UM_READ_REGIONS];

    if (alloc->family != UM_FAMILY_MANAGED)
        return;
    if (region->id)
        um_place_leave(&self->places, region->place, region->id);
    *region = (um_read_region_t){.id = alloc->region,
                                 .addr = alloc->addr,
                                 .bytes = alloc->bytes,
                                 .role = um_region_role(alloc),
                                 .place = um_place_enter(&self->places, alloc)};
}

static void on_free(um_readback_t *self, uint32_t id)
{
    um_read_region_t *region = &self->region[id % UM_READ_REGIONS];

    if (!id || region->id != id)
        return;
    um_place_leave(&self->places, region->place, id);
    *region = (um_read_region_t){0};
}

/* ---- from run to run ---- */

enum { WAIT_KEY = 0, PLACE, FROM, TO, PERIOD, NTH };

/* Once it was seen often enough, and lately, it is acted upon at its first occurrence; else after one
 * that bears it out. */
static void on_learned(um_readback_t *self, const um_ev_learned_t *learned)
{
    const uint64_t *value = learned->value;
    um_read_wait_t *wait;
    uint32_t i;

    if (strcmp(learned->who, "readback") != 0 || learned->count < UM_RANGE_AGREED ||
        !value[WAIT_KEY] || !value[PLACE] || value[TO] <= value[FROM] || !value[PERIOD] ||
        value[PERIOD] > UINT32_MAX)
        return;
    wait = um_read_make_wait(self, value[WAIT_KEY]);
    i = learned->slot == UM_SLOT_NONE ? 0 : UM_READ_RANGES;
    for (uint32_t end = i ? UM_READ_ALL : UM_READ_RANGES; i < end; i++)
        if (!wait->range[i].place) {
            wait->range[i] =
                (um_range_t){.place = value[PLACE],
                             .role = learned->role,
                             .nth = (uint32_t)value[NTH],
                             .period = (uint32_t)value[PERIOD],
                             .agreed = UM_RANGE_AGREED - (learned->age > FRESH),
                             .brought = learned->age > STALE ? (uint32_t)self->rules.check : 0,
                             .age = learned->age,
                             .told = true,
                             .times = learned->count,
                             .addr = value[FROM],
                             .end = value[TO]};
            return;
        }
}

static void tell(const um_read_wait_t *wait, uint32_t i, um_event_fn emit, void *ctx)
{
    const um_range_t *range = &wait->range[i];
    um_event_t event = {.type = UM_EV_LEARNED};

    event.u.learned =
        (um_ev_learned_t){.what = "read",
                          .kernel = "",
                          .shape = um_mix(um_mix(wait->lru.key, range->place), range->nth),
                          .role = range->role,
                          .slot = i < UM_READ_RANGES ? UM_SLOT_NONE : i - UM_READ_RANGES,
                          .age = range->held ? 0 : range->age,
                          .count = range->agreed >= UM_RANGE_AGREED ? range->times : 0,
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
    const um_readback_t *self = state;

    for (uint32_t w = 0; w < UM_READ_WAITS; w++)
        for (uint32_t i = 0; i < UM_READ_ALL; i++) {
            const um_range_t *range = &self->wait[w].range[i];

            /* Where one that moves would be in another run is not known. */
            if (range->place && !range->step &&
                (range->agreed >= UM_RANGE_AGREED || (range->told && range->held)))
                tell(&self->wait[w], i, emit, ctx);
        }
}

static void observe(void *state, const um_event_t *event)
{
    um_readback_t *self = state;

    switch (event->type) {
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch, event->tid);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit)
            on_exit(self, &event->u.sync, event->time_ns);
        else
            on_enter(self, &event->u.sync, event->tid);
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
                (um_range_seen_t){.addr = page, .end = page + UM_PAGE_BYTES, .faults = 1});
        break;
    }
    case UM_EV_MIGRATE: {
        const um_ev_migrate_t *move = &event->u.migrate;

        if (move->dst == UM_DEVICE_HOST &&
            (move->cause == UM_CAUSE_COHERENCE || move->cause == UM_CAUSE_PREFETCH))
            on_read(self, move->region, event->time_ns, 0,
                    (um_range_seen_t){.addr = move->addr,
                                      .end = move->addr + move->bytes,
                                      .migrated_bytes = move->bytes});
        break;
    }
    case UM_EV_RESIDENCY: {
        const um_ev_residency_t *found = &event->u.residency;

        if (found->bytes && found->present_bytes == found->bytes)
            on_read(self, found->region, event->time_ns, found->sync,
                    (um_range_seen_t){.addr = found->addr,
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
    const um_readback_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent;

    (void)hints;
    if (stretch->first_of_launch)
        um_read_look_back(self, view);
    if (stretch->range_bytes <= self->limit && stretch->range_bytes >= self->rules.min)
        um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, &extent, 1);
}

static void bring(const um_view_t *view, um_hints_t *hints, const um_read_region_t *region,
                  uint64_t from, uint64_t to)
{
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t end = region->addr + to, addr, bytes;

    if (!um_view_region(view, region->id, &addr, &bytes))
        return; /* nobody knows what there is of it */
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

/* `end`, or where the range's last block begins. */
static uint64_t without_last_block(const um_read_region_t *region, uint64_t from, uint64_t end)
{
    uint64_t stop = (region->addr + end - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

    return stop > region->addr + from ? stop - region->addr : from;
}

static void decide_sync(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const um_readback_t *self = state;
    uint32_t n = entered(self, um_view_sync(view));
    const um_read_recent_t *recent = &self->recent[n % UM_READ_RECENT];
    const um_read_wait_t *wait = n != self->n_recent ? um_read_wait(self, recent->key) : NULL;

    for (uint32_t i = 0; wait && i < UM_READ_ALL; i++) {
        const um_range_t *range = &wait->range[i];
        um_read_origin_t origin = {0};
        uint64_t from, end;

        if (range->pending)
            origin = um_read_origin(self, wait, i, &recent->given);
        if (!origin.region)
            continue;
        from = origin.at + range->addr;
        end = origin.at + range->served_end;
        if (range->left_out)
            end = without_last_block(origin.region, from, end);
        bring(view, hints, origin.region, from, end);
    }
}

const um_advisor_ops_t um_advisor_readback = {
    .abi = UM_ADVISOR_ABI,
    .name = "readback",
    .doc = "what the cpu reads after a wait: to the cpu, as it enters the wait",
    .state_bytes = sizeof(um_readback_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .decide_sync = decide_sync,
    .learned = tell_learned,
};

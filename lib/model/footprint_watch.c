/* The evidence. A watch is one argument of one launch; its probes are blocks whose pages the CPU had when the
 * launch came, looked at again once it was waited for. */
#include <string.h>

#include "footprint_impl.h"

#define SMALL      ((uint64_t)64 << 20) /* with no sentinels */
#define PER_COLD   128u                 /* blocks to a sentinel, */
#define PER_KNOWN  256u                 /* and where enough is known */
#define KNOWN      4u                   /* observations that agree */
#define MOST       16u                  /* sentinels of an argument */
#define BEYOND     4u                   /* probes behind the end of what is prefetched */
#define LEFT_LEAST 4u                   /* probes of what is left to faults, */
#define LEFT_MOST  32u
#define LEFT_PER   16u                 /* blocks to one */
#define EXACT      ((uint64_t)8 << 20) /* an end known to that is known */
#define LATE_NS    2000000u /* after a wait: the CPU may have taken back what the GPU took */
#define STALE      4096u    /* launches after which a watch is given up */
#define FRUITLESS  8u       /* launches between two that are watched where sentinels show nothing */
#define CHUNKS     (UM_BLOCK_BYTES / UM_BIG_PAGE_BYTES)

/* ---- waits and regions ---- */

static um_waited_t *waited_on(um_footprints_t *footprints, uint32_t context, uint64_t stream)
{
    return &footprints->waited[(stream >> 4 ^ stream ^ context) % UM_WAITED];
}

static um_waited_t *waited_for_all(um_footprints_t *footprints, uint32_t context)
{
    return &footprints->all[context % (sizeof(footprints->all) / sizeof(footprints->all[0]))];
}

/* Is the launch with this number over, as far as the CPU's waits say? */
static bool is_over(um_footprints_t *footprints, uint32_t context, uint64_t stream, bool any_stream,
                    uint64_t seq)
{
    const um_waited_t *all = waited_for_all(footprints, context);
    const um_waited_t *one = waited_on(footprints, context, stream);

    return (all->context == context && all->seq >= seq) ||
           (!any_stream && one->context == context && one->stream == stream && one->seq >= seq);
}

/* A launch takes the region. */
static void take(um_footprints_t *footprints, uint32_t region, const um_ev_launch_t *launch)
{
    um_taken_t *taken = &footprints->taken[region % UM_TAKEN];
    bool same, over;

    if (taken->region != region)
        *taken = (um_taken_t){.region = region};
    if (taken->seq == footprints->seq)
        return;
    same = taken->context == launch->context && taken->stream == launch->stream;
    over =
        !taken->seq || is_over(footprints, taken->context, taken->stream, taken->mixed, taken->seq);
    taken->mixed = !over && (taken->mixed || !same);
    taken->alone = over;
    taken->context = launch->context;
    taken->stream = launch->stream;
    taken->seq = footprints->seq;
}

void um_footprints_launch(um_footprints_t *footprints, const um_ev_launch_t *launch,
                          uint64_t now_ns)
{
    footprints->seq++;
    if (footprints->recorded)
        um_footprint_record_launch(footprints, launch, now_ns);
}

/* So that the launches that are not looked at are like the last one in that, too. */
static void note_integer(um_footprints_t *footprints, const um_ev_launch_t *launch,
                         const um_argument_t *argument)
{
    uint64_t kernel, grid_blocks;
    um_integers_t integers;
    um_record_t *record;
    const um_shape_t *shape;

    if (!launch->n_scalars || !(kernel = um_footprint_kernel(footprints, launch)) ||
        launch->flags & UM_LAUNCH_GRAPH)
        return;
    record = um_footprint_find(footprints, kernel, argument->slot);
    shape = um_footprint_find_shape(record, um_footprint_shape(launch, &grid_blocks));
    integers = um_footprint_integers(launch);
    if (shape && shape->varies)
        footprints->kernel[launch->kernel].integers |= um_footprint_integer_slot(record, &integers);
}

uint64_t um_footprints_integers(const um_footprints_t *footprints, const um_ev_launch_t *launch)
{
    uint64_t slots, hash = 0;

    if (!launch->n_scalars || launch->kernel >= footprints->n_kernels)
        return 0;
    slots = footprints->kernel[launch->kernel].integers;
    for (uint32_t i = 0; slots && i < launch->n_scalars; i++)
        if (slots >> launch->scalars[i].slot % 64 & 1)
            hash = (hash ^ launch->scalars[i].value) * 0xff51afd7ed558ccdu + 1;
    return hash;
}

void um_footprints_take(um_footprints_t *footprints, const um_ev_launch_t *launch,
                        const um_argument_t *argument)
{
    take(footprints, argument->region, launch);
    note_integer(footprints, launch, argument);
    if (footprints->recorded)
        um_footprint_record_argument(footprints, argument,
                                     footprints->taken[argument->region % UM_TAKEN].alone);
    for (uint32_t w = 0; footprints->n_pending && w < UM_WATCHES; w++) {
        um_watch_t *watch = &footprints->watch[w];

        if (watch->kernel && watch->argument.region == argument->region &&
            argument->addr > watch->argument.addr && argument->addr < watch->foreign)
            watch->foreign = argument->addr;
    }
}

/* ---- probes ---- */

static void drop(um_footprints_t *footprints, um_watch_t *watch)
{
    watch->kernel = 0;
    footprints->n_pending--;
    um_footprint_survey_void(footprints, watch);
}

/* The whole blocks of an argument, from `from` to `to` bytes behind its pointer. */
static uint64_t blocks_within(const um_argument_t *argument, uint64_t from, uint64_t to,
                              uint64_t *first)
{
    uint64_t begin = argument->addr + from + UM_BLOCK_BYTES - 1, end = argument->addr + to;

    *first = begin / UM_BLOCK_BYTES;
    return end / UM_BLOCK_BYTES > *first ? end / UM_BLOCK_BYTES - *first : 0;
}

static void add(um_watch_t *watch, uint64_t block)
{
    uint64_t addr = block * UM_BLOCK_BYTES;

    for (uint32_t i = 0; i < watch->n; i++)
        if (watch->probe[i].addr == addr)
            return;
    if (watch->n < UM_PROBES)
        watch->probe[watch->n++] = (um_probe_t){.addr = addr};
}

/* n blocks, each somewhere in its part of so many. */
static void spread(um_footprints_t *footprints, um_watch_t *watch, uint64_t first, uint64_t blocks,
                   uint64_t n)
{
    n = n < blocks ? n : blocks;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t from = blocks * i / n, to = blocks * (i + 1) / n;

        /* steps of the golden ratio meet every place in time */
        add(watch, first + from + (++footprints->turn * 2654435761u >> 8 & 0xffffff) % (to - from));
    }
}

/* Looks at what the CPU has of it now. */
static bool place(um_footprints_t *footprints, um_watch_t *watch, um_probe_t *probe)
{
    const um_argument_t *argument = &watch->argument;
    um_chunks_t chunks;

    if (!um_residency_peek(footprints->residency, argument->region, probe->addr, &chunks))
        return false;
    probe->before = chunks.all;
    for (uint32_t c = 0; c < CHUNKS; c++) {
        uint64_t addr = probe->addr + c * (uint64_t)UM_BIG_PAGE_BYTES;

        if (addr < argument->addr || addr + UM_BIG_PAGE_BYTES > argument->limit)
            probe->before &= ~(1u << c);
    }
    return probe->before != 0;
}

/* ---- a launch that is watched ---- */

static void choose_sentinels(um_footprints_t *footprints, um_watch_t *watch,
                             const um_record_t *record, const um_shape_t *shape)
{
    const um_span_t *end = &shape->end;
    uint64_t first, n = 0;
    uint64_t doubt = shape->varies ? um_footprint_integer_doubt(record, &watch->integers) : 0;
    uint64_t blocks = blocks_within(&watch->argument, watch->first, watch->end, &first);

    if (doubt > watch->first && doubt < watch->end)
        add(watch, (watch->argument.addr + doubt) / UM_BLOCK_BYTES);
    else if (shape->seen && end->hi != UM_FAR && end->hi - end->lo > EXACT &&
             end->hi - end->lo > end->hi / 16)
        add(watch, (watch->argument.addr + end->lo + (end->hi - end->lo) / 2) / UM_BLOCK_BYTES);
    if (watch->end - watch->first > SMALL) {
        n = blocks / (shape->seen && end->sure >= KNOWN ? PER_KNOWN : PER_COLD);
        n = n < 2 ? 2 : n > MOST ? MOST : n;
        if (end->hi == UM_FAR || !shape->seen)
            add(watch, first + blocks - 1);
        else
            n++;
        spread(footprints, watch, first, blocks, n - 1);
    }
    watch->n_sentinels = watch->n;
}

static um_watch_t *free_watch(um_footprints_t *footprints)
{
    um_watch_t *oldest = &footprints->watch[0];

    for (uint32_t i = 0; i < UM_WATCHES; i++) {
        um_watch_t *watch = &footprints->watch[i];

        if (!watch->kernel)
            return watch;
        if (watch->seq < oldest->seq)
            oldest = watch;
    }
    if (oldest->seq + STALE > footprints->seq)
        return NULL;
    drop(footprints, oldest);
    return oldest;
}

um_watch_t *um_footprints_watch(um_footprints_t *footprints, const um_ev_launch_t *launch,
                                const um_argument_t *argument, uint64_t first, uint64_t end,
                                bool withheld)
{
    const um_taken_t *taken = &footprints->taken[argument->region % UM_TAKEN];
    uint64_t kernel = um_footprint_kernel(footprints, launch), grid_blocks, id;
    um_shape_t *shape;
    um_watch_t *watch;

    /* What another launch may be taking now cannot be told from what this one takes. */
    if (!kernel || taken->region != argument->region || !taken->alone ||
        argument->limit - argument->addr < UM_BLOCK_BYTES)
        return NULL;
    id = um_footprint_shape(launch, &grid_blocks);
    shape = um_footprint_entry(footprints, launch, kernel, argument->slot, id);
    if ((++shape->since < shape->interval && !withheld) || !(watch = free_watch(footprints)))
        return NULL;
    footprints->n_pending++;
    watch->kernel = kernel;
    watch->shape = id;
    watch->grid_blocks = grid_blocks;
    watch->argument = *argument;
    watch->integers = um_footprint_integers(launch);
    watch->first = first;
    watch->end = end;
    watch->foreign = UM_FAR;
    watch->withheld = withheld;
    watch->seq = footprints->seq;
    watch->context = launch->context;
    watch->stream = launch->stream;
    watch->n = 0;
    watch->gap = (um_probe_t){0};
    watch->survey = um_footprint_wants_survey(footprints, shape, argument->limit - argument->addr);
    shape->surveys += watch->survey;
    choose_sentinels(footprints, watch, um_footprint_find(footprints, kernel, argument->slot),
                     shape);
    return watch;
}

uint64_t um_footprints_sentinels(um_footprints_t *footprints, um_watch_t *watch, uint64_t addr,
                                 uint64_t bytes)
{
    uint64_t held = 0;

    if (watch->survey)
        return UINT64_MAX;
    for (uint32_t i = 0; i < watch->n_sentinels; i++) {
        um_probe_t *probe = &watch->probe[i];

        if (probe->placed || probe->addr < addr || probe->addr + UM_BLOCK_BYTES > addr + bytes)
            continue;
        probe->placed = true;
        if (place(footprints, watch, probe)) {
            held |= (uint64_t)1 << (probe->addr / UM_BLOCK_BYTES - addr / UM_BLOCK_BYTES);
            footprints->stats.sentinels++;
        }
    }
    return held;
}

void um_footprints_decided(um_footprints_t *footprints, um_watch_t *watch, um_watch_end_t how)
{
    um_record_t *record;
    um_shape_t *shape;
    uint64_t first, blocks, n;
    uint32_t placed = 0;

    if (!watch)
        return;
    record = um_footprint_find(footprints, watch->kernel, watch->argument.slot);
    shape = um_footprint_find_shape(record, watch->shape);
    if (watch->survey && how != UM_WATCH_HINTED)
        how = UM_WATCH_LEFT;
    if (shape && how == UM_WATCH_HINTED)
        um_footprint_watch_gaps(footprints, watch, shape);
    if (how == UM_WATCH_HINTED) {
        n = watch->n;
        blocks = blocks_within(&watch->argument, watch->end,
                               watch->argument.limit - watch->argument.addr, &first);
        if (blocks)
            add(watch, first);
        spread(footprints, watch, first, blocks, BEYOND - 1);
    } else if (how == UM_WATCH_LEFT) {
        n = watch->n = 0;
        blocks = blocks_within(&watch->argument, 0, watch->argument.limit - watch->argument.addr,
                               &first);
        spread(footprints, watch, first, blocks,
               blocks / LEFT_PER < LEFT_LEAST  ? LEFT_LEAST
               : blocks / LEFT_PER > LEFT_MOST ? LEFT_MOST
                                               : blocks / LEFT_PER);
    } else {
        n = watch->n;
    }
    for (uint32_t i = 0; i < watch->n; i++) {
        um_probe_t *probe = &watch->probe[i];

        if (i >= n)
            place(footprints, watch, probe);
        placed += probe->before != 0;
    }
    if (shape && how == UM_WATCH_LEFT && placed)
        um_footprint_survey_begin(footprints, watch, shape);
    if (shape && (placed || how != UM_WATCH_QUIET))
        shape->since = 0;
    if (!placed) {
        /* There is nothing to be seen here: it need not be looked for so often. */
        if (shape && how != UM_WATCH_QUIET && !watch->withheld &&
            shape->interval < (how == UM_WATCH_LEFT ? UM_WIDEST : FRUITLESS))
            shape->interval *= 2;
        drop(footprints, watch);
    }
}

void um_footprints_moved(um_footprints_t *footprints, uint64_t addr, uint64_t bytes)
{
    um_footprint_survey_moved(footprints, addr, bytes);
    um_footprint_taken(footprints, addr, bytes);
}

void um_footprint_taken(um_footprints_t *footprints, uint64_t addr, uint64_t bytes)
{
    for (uint32_t w = 0; footprints->n_pending && w < UM_WATCHES; w++) {
        um_watch_t *watch = &footprints->watch[w];

        if (!watch->kernel || addr >= watch->argument.limit || addr + bytes <= watch->argument.addr)
            continue;
        for (uint32_t i = 0; i < watch->n; i++)
            if (watch->probe[i].addr < addr + bytes && addr < watch->probe[i].addr + UM_BLOCK_BYTES)
                watch->probe[i].before = 0;
    }
}

/* ---- what it showed ---- */

static uint32_t count(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

static void sort(um_watch_t *watch)
{
    for (uint32_t i = 1; i < watch->n; i++)
        for (uint32_t k = i; k > 0 && watch->probe[k].addr < watch->probe[k - 1].addr; k--) {
            um_probe_t probe = watch->probe[k];

            watch->probe[k] = watch->probe[k - 1];
            watch->probe[k - 1] = probe;
        }
}

/* A block in the order of their addresses: of the pieces in `before`, those in `gone` were touched. */
static void note(um_seen_t *seen, uint64_t offset, uint32_t before, uint32_t gone,
                 uint64_t *clear_to)
{
    uint32_t last = gone ? 31 - (uint32_t)__builtin_clz(gone) : 0;
    uint32_t behind = gone && last < 31 ? before >> (last + 1) : 0;

    seen->chunk[seen->n] = offset;
    seen->touched[seen->n] = (uint8_t)count(gone);
    seen->of[seen->n++] = (uint8_t)count(before);
    if (!gone) {
        if (!seen->last)
            *clear_to = offset + UM_BLOCK_BYTES;
        if (seen->clear == UM_FAR)
            seen->clear = offset;
        return;
    }
    if (seen->first == UM_FAR)
        seen->first = *clear_to;
    seen->last = offset + (last + 1) * (uint64_t)UM_BIG_PAGE_BYTES;
    /* All up to there and nothing behind: that is the end. */
    seen->clear = behind && count(gone) == count(before) - count(behind) ? seen->last : UM_FAR;
}

/* at_once: the CPU cannot have taken anything back yet. Returns whether all that was looked at is gone. */
static bool look(um_footprints_t *footprints, um_watch_t *watch, bool at_once, um_seen_t *seen)
{
    uint64_t clear_to = 0;
    bool all_gone = true;

    *seen = (um_seen_t){.first = UM_FAR, .clear = UM_FAR};
    sort(watch);
    for (uint32_t i = 0; i < watch->n; i++) {
        const um_probe_t *probe = &watch->probe[i];
        uint64_t offset =
            probe->addr > watch->argument.addr ? probe->addr - watch->argument.addr : 0;
        um_chunks_t chunks;
        uint32_t gone;

        if (!probe->before ||
            !um_residency_peek(footprints->residency, watch->argument.region, probe->addr, &chunks))
            continue;
        gone = probe->before & ~chunks.any;
        if (gone != probe->before)
            all_gone = false;
        if ((gone != probe->before && !at_once) ||
            (gone && probe->addr + UM_BLOCK_BYTES > watch->foreign))
            continue;
        note(seen, offset, probe->before, gone, &clear_to);
    }
    return all_gone;
}

static void conclude(um_footprints_t *footprints, um_watch_t *watch, bool at_once, bool over)
{
    um_seen_t seen;
    bool all_gone = look(footprints, watch, at_once, &seen);

    um_shape_t *shape;

    if (!over && !all_gone)
        return;
    shape =
        um_footprint_find_shape(um_footprint_find(footprints, watch->kernel, watch->argument.slot),
                                watch->shape);
    um_footprint_check_gaps(footprints, watch, shape);
    if (seen.n)
        um_footprint_learn(footprints, watch, &seen);
    um_footprint_survey_end(footprints, watch, shape, at_once && over); /* it has the last word */
    drop(footprints, watch);
}

void um_footprint_on_wait(um_footprints_t *footprints, const um_ev_sync_t *sync, uint64_t time_ns)
{
    bool at_once;

    if (sync->kind == UM_SYNC_DEVICE)
        *waited_for_all(footprints, sync->context) =
            (um_waited_t){.context = sync->context, .seq = footprints->seq};
    else if (sync->kind == UM_SYNC_STREAM || sync->kind == UM_SYNC_COPY)
        *waited_on(footprints, sync->context, sync->stream) =
            (um_waited_t){.context = sync->context, .stream = sync->stream, .seq = footprints->seq};
    if (!footprints->n_pending)
        return;
    at_once = um_residency_now(footprints->residency) <= time_ns + LATE_NS;
    for (uint32_t w = 0; w < UM_WATCHES; w++) {
        um_watch_t *watch = &footprints->watch[w];
        bool over;

        if (!watch->kernel || watch->context != sync->context)
            continue;
        over = is_over(footprints, watch->context, watch->stream, false, watch->seq);
        /* An event may stand for anything; but what is gone is gone. */
        if (over || sync->kind == UM_SYNC_EVENT)
            conclude(footprints, watch, at_once, over);
    }
}

void um_footprint_on_free(um_footprints_t *footprints, uint32_t region)
{
    um_taken_t *taken = &footprints->taken[region % UM_TAKEN];

    if (taken->region == region)
        *taken = (um_taken_t){0};
    for (uint32_t w = 0; footprints->n_pending && w < UM_WATCHES; w++)
        if (footprints->watch[w].kernel && footprints->watch[w].argument.region == region)
            drop(footprints, &footprints->watch[w]);
}

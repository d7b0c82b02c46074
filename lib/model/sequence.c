#include "sequence.h"

#include <stdlib.h>
#include <string.h>

#include "sequence_impl.h"

#define MOST 15u /* counted of a context */

static const uint8_t orders[UM_SEQ_ORDERS] = {UM_SEQ_LONGEST, 4, 2,
                                              1}; /* of contexts, the longest first */

/* ---- tables ---- */

um_signature_t *um_sequence_find(const um_sequences_t *sequences, uint64_t hash)
{
    return um_lru_find(sequences->signature, UM_SEQ_SIGNATURES, sizeof(um_signature_t), hash);
}

um_signature_t *um_sequence_signature(um_sequences_t *sequences, uint64_t hash)
{
    return um_lru_make(sequences->signature, UM_SEQ_SIGNATURES, sizeof(um_signature_t), hash);
}

um_seq_context_t *um_sequence_context(um_sequences_t *sequences, uint64_t key)
{
    return um_lru_make(sequences->context, UM_SEQ_CONTEXTS, sizeof(um_seq_context_t), key);
}

um_seq_region_t *um_sequence_region(um_sequences_t *sequences, uint32_t id)
{
    um_seq_region_t *region = &sequences->region[id % UM_SEQ_REGIONS];

    return id && region->id == id ? region : NULL;
}

/* ---- rows ---- */

/* The item that came `back` before the next one: 1 = the last one. */
static uint64_t item(const um_row_t *row, uint64_t back)
{
    return back > row->n ? UM_SEQ_START : row->item[(row->n - back) % UM_SEQ_ROW];
}

/* The key of the context of the last `order` items, the last one first. */
static uint64_t key_of(const uint64_t *last, uint8_t order)
{
    uint64_t key = order;

    for (uint8_t i = 0; i < order; i++)
        key = um_mix(key, last[i]);
    return key | 1;
}

static void last_items(const um_row_t *row, uint64_t *last)
{
    for (uint8_t i = 0; i < UM_SEQ_LONGEST; i++)
        last[i] = item(row, i + 1);
}

static void find_keys(um_row_t *row)
{
    uint64_t last[UM_SEQ_LONGEST];

    last_items(row, last);
    for (size_t o = 0; o < UM_SEQ_ORDERS; o++)
        row->key[o] = key_of(last, orders[o]);
}

static um_row_t *row_of(um_sequences_t *sequences, uint32_t tid)
{
    um_row_t *oldest = &sequences->row[0];

    for (uint32_t i = 0; i < UM_SEQ_THREADS; i++) {
        um_row_t *row = &sequences->row[i];

        if (row->used && row->tid == tid)
            return row;
        if (row->used < oldest->used)
            oldest = row;
    }
    if (oldest->used)
        for (uint32_t i = 0; i < UM_SEQ_YOUNG; i++)
            if (sequences->young[i].row == oldest)
                sequences->young[i].row = NULL;
    *oldest = (um_row_t){.tid = tid};
    find_keys(oldest);
    return oldest;
}

/* What contexts say comes next; 0 = they have not been seen. */
static uint64_t after(const um_sequences_t *sequences, const uint64_t *key)
{
    for (size_t o = 0; o < UM_SEQ_ORDERS; o++) {
        const um_seq_context_t *context =
            um_lru_find(sequences->context, UM_SEQ_CONTEXTS, sizeof(*context), key[o]);

        if (context && context->count)
            return context->next;
    }
    return 0;
}

static bool in_loop(const um_row_t *row)
{
    return row->period && row->repeated >= row->period;
}

static uint64_t expected(const um_sequences_t *sequences, const um_row_t *row)
{
    return in_loop(row) ? item(row, row->period) : after(sequences, row->key);
}

static void learn(um_sequences_t *sequences, const um_row_t *row, uint64_t next)
{
    for (size_t o = 0; o < UM_SEQ_ORDERS; o++) {
        um_seq_context_t *context = um_sequence_context(sequences, row->key[o]);

        context->lru.used = sequences->clock;
        context->order = orders[o];
        context->early |= row->n < UM_SEQ_EARLY;
        if (context->next == next) {
            context->count += context->count < MOST;
            context->told = false;
            continue;
        }
        context->count /= 2;
        if (context->count && !context->told)
            continue;
        context->next = next;
        context->count = 1;
        context->told = false;
    }
}

/* Does the row repeat itself? Where it stops to do so, the last time that it was like this is tried. */
static void follow_period(um_sequences_t *sequences, um_row_t *row)
{
    uint16_t number = (uint16_t)(row - sequences->row + 1);
    um_seq_context_t *context;

    if (row->period && item(row, 1) == item(row, 1 + row->period))
        row->repeated++;
    else
        row->period = row->repeated = 0;
    context = um_sequence_context(sequences, row->key[0]);
    if (!row->period && context->thread == number && row->n - context->at < UM_SEQ_ROW)
        row->period = row->n - context->at;
    context->lru.used = sequences->clock;
    context->order = UM_SEQ_LONGEST;
    context->at = row->n;
    context->thread = number;
}

static void push(um_sequences_t *sequences, um_row_t *row, uint64_t next, bool is_launch)
{
    uint64_t foretold;

    sequences->clock++;
    sequences->moves++;
    row->used = sequences->clock;
    sequences->last = row;
    sequences->stats.launches += is_launch;
    if (!sequences->residency) { /* nobody wants to know what comes next */
        row->waited = !is_launch;
        return;
    }
    foretold = expected(sequences, row);
    sequences->stats.asked += is_launch && foretold;
    sequences->stats.foretold += is_launch && foretold == next;
    learn(sequences, row, next);
    row->item[row->n++ % UM_SEQ_ROW] = next;
    row->waited = !is_launch;
    find_keys(row);
    follow_period(sequences, row);
}

/* ---- launches ---- */

static uint64_t pair(const uint32_t *three)
{
    return um_mix((uint64_t)three[0] << 32 | three[1], three[2]);
}

/* Fills in what it is; returns its hash. */
static uint64_t sign(um_sequences_t *sequences, const um_ev_launch_t *launch, um_signature_t *out)
{
    uint64_t hash = um_mix(pair(launch->grid), pair(launch->block));

    out->kernel = um_footprints_kernel(sequences->footprints, launch);
    out->n = 0;
    hash = um_mix(hash, (uint32_t)launch->device);
    if (!(launch->flags & UM_LAUNCH_GRAPH))
        hash = um_mix(hash, out->kernel ? out->kernel : launch->kernel);
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const um_arg_t *arg = &launch->args[i];
        const um_seq_region_t *region = um_sequence_region(sequences, arg->region);

        if (!region)
            continue;
        hash = um_mix(hash, (uint64_t)arg->slot << 32 | arg->offset_bytes);
        hash = um_mix(hash, um_mix(region->place, arg->region_offset_bytes));
        if (out->n < UM_SEQUENCE_ARGS)
            out->arg[out->n++] = (um_seq_arg_t){.place = region->place,
                                                .role = region->role,
                                                .offset_bytes = arg->region_offset_bytes,
                                                .slot = arg->slot,
                                                .inside_bytes = arg->offset_bytes};
    }
    return hash | 2; /* never UM_SEQ_START */
}

/* A count of steps is another one each time: what changes is not foretold. */
static void note_scalars(um_signature_t *signature, const um_ev_launch_t *launch)
{
    uint32_t n = launch->n_scalars < UM_SEQUENCE_SCALARS ? launch->n_scalars : UM_SEQUENCE_SCALARS;

    signature->steady = 0;
    for (uint32_t i = 0; i < n; i++) {
        um_scalar_t *last = &signature->scalar[i];
        bool same = i < signature->n_scalars && last->slot == launch->scalars[i].slot &&
                    last->value == launch->scalars[i].value;

        signature->steady |= (uint32_t)(same || !signature->seen) << i;
        *last = launch->scalars[i];
    }
    signature->n_scalars = n;
}

static void on_launch(um_sequences_t *sequences, const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;
    um_row_t *row = row_of(sequences, event->tid);
    um_signature_t like, *signature;
    uint64_t hash;

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    hash = sign(sequences, launch, &like);
    if (!sequences->residency) {
        push(sequences, row, hash, true);
        row->launch = hash;
        sequences->launched |= like.n > 0;
        return;
    }
    signature = um_sequence_signature(sequences, hash);
    if (!signature->n && like.n) {
        signature->n = like.n;
        memcpy(signature->arg, like.arg, like.n * sizeof(like.arg[0]));
    }
    signature->kernel = like.kernel;
    signature->id = launch->kernel;
    signature->graph = launch->graph;
    signature->stream = launch->stream;
    signature->context = launch->context;
    signature->device = launch->device;
    signature->flags = launch->flags;
    memcpy(signature->grid, launch->grid, sizeof(launch->grid));
    memcpy(signature->block, launch->block, sizeof(launch->block));
    note_scalars(signature, launch);
    signature->early |= row->n < UM_SEQ_EARLY;
    signature->seen++;
    push(sequences, row, hash, true);
    row->launch = hash;
    signature->lru.used = sequences->clock;
    um_sequence_cpu_launch(sequences, row, signature);
}

/* ---- waits ---- */

uint64_t um_sequence_wait_key(const um_row_t *row, const um_ev_sync_t *sync)
{
    return um_mix(row->launch, 0x100 + sync->kind) | 2;
}

static void on_wait(um_sequences_t *sequences, const um_event_t *event)
{
    um_row_t *row = row_of(sequences, event->tid);

    if (!row->waited)
        push(sequences, row, um_sequence_wait_key(row, &event->u.sync), false);
    um_sequence_cpu_wait(sequences, row, &event->u.sync);
}

/* ---- regions ---- */

static void on_alloc(um_sequences_t *sequences, const um_ev_region_alloc_t *alloc)
{
    um_seq_region_t *region = &sequences->region[alloc->region % UM_SEQ_REGIONS];

    if (alloc->family != UM_FAMILY_MANAGED || !alloc->region)
        return;
    if (region->id)
        um_place_leave(&sequences->places, region->place, region->id);
    *region = (um_seq_region_t){.id = alloc->region,
                                .addr = alloc->addr,
                                .bytes = alloc->bytes,
                                .role = um_region_role(alloc),
                                .place = um_place_enter(&sequences->places, alloc)};
    sequences->moves++;
    um_sequence_cpu_new(sequences, region);
}

static void on_free(um_sequences_t *sequences, uint32_t id)
{
    um_seq_region_t *region = um_sequence_region(sequences, id);

    if (!region)
        return;
    um_sequence_cpu_gone(sequences, id);
    um_place_leave(&sequences->places, region->place, id);
    *region = (um_seq_region_t){0};
    sequences->moves++;
}

void um_sequences_observe(um_sequences_t *sequences, const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_LAUNCH:
        on_launch(sequences, event);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit)
            on_wait(sequences, event);
        break;
    case UM_EV_REGION_ALLOC:
        on_alloc(sequences, &event->u.region_alloc);
        break;
    case UM_EV_REGION_FREE:
        on_free(sequences, event->u.region_free.region);
        break;
    case UM_EV_LEARNED:
        um_sequence_on_learned(sequences, &event->u.learned);
        break;
    case UM_EV_RESIDENCY: {
        const um_ev_residency_t *shown = &event->u.residency;

        if (shown->bytes && shown->present_bytes == shown->bytes)
            um_sequence_cpu_took(sequences, shown->region, shown->addr, shown->bytes, true);
        break;
    }
    case UM_EV_CPU_FAULT:
        um_sequence_cpu_took(sequences, event->u.cpu_fault.region, event->u.cpu_fault.addr, 1,
                             false);
        break;
    case UM_EV_MIGRATE:
        if (event->u.migrate.dst == UM_DEVICE_HOST && event->u.migrate.cause != UM_CAUSE_EVICTION)
            um_sequence_cpu_took(sequences, event->u.migrate.region, event->u.migrate.addr,
                                 event->u.migrate.bytes, false);
        break;
    case UM_EV_HINT:
        if (event->u.hint.kind == UM_HINT_PREFETCH && event->u.hint.device == UM_DEVICE_HOST &&
            event->u.hint.result == UM_HINT_APPLIED)
            um_sequence_cpu_took(sequences, event->u.hint.region, event->u.hint.addr,
                                 event->u.hint.bytes, false);
        break;
    default:
        break;
    }
}

/* ---- what comes next ---- */

/* false = some of what it takes is not there. */
static bool foretell(const um_sequences_t *sequences, const um_signature_t *signature,
                     um_next_t *out)
{
    out->launch = (um_ev_launch_t){.kernel = signature->id,
                                   .stream = signature->stream,
                                   .context = signature->context,
                                   .device = signature->device,
                                   .flags = signature->flags,
                                   .graph = signature->graph,
                                   .args = out->arg,
                                   .scalars = out->scalar};
    memcpy(out->launch.grid, signature->grid, sizeof(signature->grid));
    memcpy(out->launch.block, signature->block, sizeof(signature->block));
    out->signature = signature->lru.key;
    out->kernel = signature->kernel;
    for (uint32_t i = 0; i < signature->n; i++) {
        const um_seq_arg_t *arg = &signature->arg[i];
        uint32_t region = um_place_region(&sequences->places, arg->place);

        if (!region && signature->flags & UM_LAUNCH_GRAPH)
            return false; /* their numbers are all that they are known by */
        if (region)
            out->arg[out->launch.n_args++] = (um_arg_t){.slot = arg->slot,
                                                        .offset_bytes = arg->inside_bytes,
                                                        .region = region,
                                                        .region_offset_bytes = arg->offset_bytes};
    }
    for (uint32_t i = 0; i < signature->n_scalars; i++)
        if (signature->steady >> i & 1)
            out->scalar[out->launch.n_scalars++] = signature->scalar[i];
    return out->launch.n_args > 0;
}

uint32_t um_sequences_next(const um_sequences_t *sequences, um_next_t *out, uint32_t max)
{
    static const um_row_t first; /* the program has not begun */
    const um_row_t *row = sequences->last ? sequences->last : &first;
    uint64_t last[UM_SEQ_LONGEST], key[UM_SEQ_ORDERS];
    uint32_t n = 0;

    last_items(row, last);
    for (uint32_t step = 1; step <= UM_SEQUENCE_STEPS && n < max; step++) {
        const um_signature_t *signature;
        uint64_t next;

        for (size_t o = 0; o < UM_SEQ_ORDERS; o++)
            key[o] = key_of(last, orders[o]);
        next = in_loop(row) ? item(row, row->period - (step - 1) % row->period)
                            : after(sequences, key);
        signature = um_sequence_find(sequences, next);
        if (!next)
            break;
        memmove(&last[1], &last[0], sizeof(last) - sizeof(last[0]));
        last[0] = next;
        if (!signature || !foretell(sequences, signature, &out[n]))
            continue;
        out[n++].steps = step;
    }
    return n;
}

uint64_t um_sequences_moves(const um_sequences_t *sequences)
{
    return sequences->moves;
}

/* ---- life ---- */

um_status_t um_sequences_new(um_residency_t *residency, const um_footprints_t *footprints,
                             um_sequences_t **out)
{
    um_sequences_t *sequences = calloc(1, sizeof(*sequences));

    if (!sequences)
        return UM_ERR_NO_MEMORY;
    sequences->signature = calloc(UM_SEQ_SIGNATURES, sizeof(um_signature_t));
    sequences->context = calloc(UM_SEQ_CONTEXTS, sizeof(um_seq_context_t));
    sequences->row = calloc(UM_SEQ_THREADS, sizeof(um_row_t));
    if (!sequences->signature || !sequences->context || !sequences->row) {
        um_sequences_free(sequences);
        return UM_ERR_NO_MEMORY;
    }
    sequences->residency = residency;
    sequences->footprints = footprints;
    *out = sequences;
    return UM_OK;
}

void um_sequences_free(um_sequences_t *sequences)
{
    if (!sequences)
        return;
    free(sequences->signature);
    free(sequences->context);
    free(sequences->row);
    free(sequences);
}

void um_sequences_stats(const um_sequences_t *sequences, um_sequence_stats_t *out)
{
    *out = sequences->stats;
}

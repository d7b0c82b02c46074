/* The phases of the CPU: what it takes before a launch and when it is done with it; and quiet waits. */
#include <string.h>

#include "sequence_impl.h"

#define FOUND_FOR  2u  /* occurrences: after so many without, the CPU no longer takes any of it */
#define MOST_RESTS 10u /* doublings */
#define LEAVE_EVERY                                                                                \
    16u                /* rounds: one of so many goes without, so that what is learned stays true */
#define KNOWN       6u /* times that a launch has come before anything is tried with it */
#define FEW_STRIKES 3u /* in a row: from then on it is not tried later either */
#define GRACE       16u /* items that a launch may come later than foretold, */
#define GRACE_TIMES 4u  /* and so many times as late as it was */
#define YOUNG_LOOKS 64u /* at one region */
#define QUIET_AFTER 32u /* waits in a row after which the CPU took nothing */
#define QUIET_TURN  8u  /* one of so many is followed up all the same */

/* ---- facts ---- */

static um_seq_arg_t *arg_of(um_signature_t *signature, uint64_t place)
{
    for (uint32_t i = 0; signature && i < signature->n; i++)
        if (signature->arg[i].place == place)
            return &signature->arg[i];
    return NULL;
}

/* What was brought so early was still there. */
static void kept(um_seq_fact_t *fact, uint32_t steps)
{
    if (steps > fact->from)
        fact->from = steps;
    if (fact->taken && fact->taken <= fact->from)
        fact->taken = 0;
    fact->strikes = 0;
}

/* Until so many items: twice as many each time. */
static uint64_t pause(const um_sequences_t *sequences, um_seq_fact_t *fact)
{
    uint64_t until = sequences->clock + ((uint64_t)UM_SEQ_RESTS << fact->strikes);

    fact->strikes += fact->strikes < MOST_RESTS;
    return until;
}

/* It was not. */
static void taken_back(const um_sequences_t *sequences, um_seq_fact_t *fact, uint32_t steps)
{
    if (!fact->taken || steps < fact->taken)
        fact->taken = steps;
    if (fact->from >= steps)
        fact->from = steps - 1;
    fact->tries = pause(sequences, fact);
}

/* Something was brought for that launch already. */
static bool is_pending(const um_sequences_t *sequences, uint64_t signature, uint32_t region)
{
    for (uint32_t i = 0; sequences->n_pending && i < UM_SEQ_PENDING; i++)
        if (sequences->pending[i].signature == signature && sequences->pending[i].region == region)
            return true;
    return false;
}

um_cpu_t um_sequences_cpu(const um_sequences_t *sequences, const um_next_t *next, uint32_t id,
                          bool *found)
{
    const um_seq_region_t *region = &sequences->region[id % UM_SEQ_REGIONS];
    um_signature_t *signature = um_sequence_find(sequences, next->signature);
    const um_seq_arg_t *arg = region->id == id ? arg_of(signature, region->place) : NULL;
    const um_seq_fact_t *fact;

    *found = false;
    if (!arg)
        return UM_CPU_TAKES;
    fact = &arg->fact[region->taken ? UM_SEQ_USED : UM_SEQ_NEW];
    *found = fact->found > 0;
    if (sequences->clock < fact->rests ||
        (region->taken && fact->rounds % LEAVE_EVERY == LEAVE_EVERY - 1))
        return UM_CPU_TAKES;
    if (next->steps <= fact->from)
        return UM_CPU_LEAVES;
    /* What is new shows by itself what can be known; what is not known well is for others to try things with. */
    if (!region->taken || signature->seen < KNOWN)
        return UM_CPU_TAKES;
    if (sequences->clock < fact->tries &&
        (next->steps >= fact->taken || fact->strikes > FEW_STRIKES))
        return UM_CPU_TAKES;
    /* One try at a time: it is the launch that gives the answer. */
    return is_pending(sequences, next->signature, id) ? UM_CPU_TAKES : UM_CPU_UNKNOWN;
}

/* ---- what was brought ---- */

static void probe(um_seq_pending_t *pending, uint64_t addr)
{
    for (uint32_t i = 0; i < pending->n; i++)
        if (pending->probe[i] == addr)
            return;
    if (pending->n < UM_SEQ_PROBES)
        pending->probe[pending->n++] = addr;
}

static um_seq_pending_t *pending_of(um_sequences_t *sequences, uint64_t signature, uint32_t region)
{
    um_seq_pending_t *empty = NULL;

    for (uint32_t i = 0; i < UM_SEQ_PENDING; i++) {
        um_seq_pending_t *pending = &sequences->pending[i];

        if (pending->signature == signature && pending->region == region)
            return pending;
        if (!pending->signature && !empty)
            empty = pending;
    }
    return empty;
}

static void drop(um_sequences_t *sequences, um_seq_pending_t *pending)
{
    pending->signature = 0;
    sequences->n_pending--;
}

void um_sequences_brought(um_sequences_t *sequences, const um_next_t *next, uint32_t id,
                          uint64_t addr, uint64_t bytes)
{
    const um_seq_region_t *region = um_sequence_region(sequences, id);
    uint64_t first = (addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    uint64_t end = (addr + bytes) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    um_seq_pending_t *pending;

    if (!region || !(pending = pending_of(sequences, next->signature, id)))
        return;
    if (!pending->signature) {
        *pending = (um_seq_pending_t){.signature = next->signature,
                                      .due = sequences->clock + GRACE_TIMES * next->steps + GRACE,
                                      .place = region->place,
                                      .region = id,
                                      .age = region->taken ? UM_SEQ_USED : UM_SEQ_NEW};
        sequences->n_pending++;
    }
    if (next->steps > pending->steps)
        pending->steps = next->steps;
    if (first < end) {
        probe(pending, first);
        probe(pending, end - UM_BLOCK_BYTES);
    }
    sequences->stats.brought++;
}

/* The launch has come: where is it now? What never got there says nothing. */
static void conclude(um_sequences_t *sequences, um_seq_pending_t *pending, um_seq_arg_t *arg)
{
    bool seen = false, back = pending->taken_back;
    um_seq_fact_t *fact = &arg->fact[pending->age];

    for (uint32_t i = 0; i < pending->n && !back; i++) {
        um_extent_t extent;
        um_chunks_t chunks;

        if (um_residency_extents(sequences->residency, pending->region, pending->probe[i],
                                 UM_BLOCK_BYTES, &extent, 1) != 1 ||
            extent.where != UM_WHERE_DEVICE ||
            !um_residency_peek(sequences->residency, pending->region, pending->probe[i], &chunks))
            continue;
        seen = true;
        back = chunks.any != 0;
    }
    if (back) {
        taken_back(sequences, fact, pending->steps);
        sequences->stats.taken_back++;
    } else if (seen) {
        kept(fact, pending->steps);
        sequences->stats.kept++;
    }
    fact->rounds++;
    drop(sequences, pending);
}

static void give_up_late(um_sequences_t *sequences)
{
    for (uint32_t i = 0; sequences->n_pending && i < UM_SEQ_PENDING; i++) {
        um_seq_pending_t *pending = &sequences->pending[i];
        um_seq_arg_t *arg;

        if (!pending->signature || pending->due > sequences->clock)
            continue;
        if ((arg = arg_of(um_sequence_find(sequences, pending->signature), pending->place)))
            arg->fact[pending->age].rests = pause(sequences, &arg->fact[pending->age]);
        sequences->stats.in_vain++;
        drop(sequences, pending);
    }
}

/* ---- regions that no launch has taken ---- */

static um_seq_young_t *young_of(um_sequences_t *sequences, uint32_t region)
{
    for (uint32_t i = 0; sequences->n_young && i < UM_SEQ_YOUNG; i++)
        if (sequences->young[i].region == region)
            return &sequences->young[i];
    return NULL;
}

static void forget_young(um_sequences_t *sequences, um_seq_young_t *young)
{
    young->region = 0;
    sequences->n_young--;
}

void um_sequence_cpu_new(um_sequences_t *sequences, const um_seq_region_t *region)
{
    um_seq_young_t *young;

    if (!sequences->residency || sequences->n_young == UM_SEQ_YOUNG)
        return;
    young = sequences->young;
    while (young->region)
        young++;
    *young = (um_seq_young_t){.region = region->id,
                              .row = sequences->last,
                              .since = sequences->last ? sequences->last->n : 0};
    sequences->n_young++;
}

/* The whole blocks of a region; false = it has none. */
static bool whole_blocks(um_sequences_t *sequences, uint32_t id, uint64_t *first, uint64_t *last)
{
    const um_seq_region_t *region = um_sequence_region(sequences, id);
    uint64_t end;

    if (!region)
        return false;
    *first = (region->addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    end = (region->addr + region->bytes) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    *last = end - UM_BLOCK_BYTES;
    return end > *first;
}

/* What the CPU has of its last one; false = it cannot be told. */
static bool last_block(um_sequences_t *sequences, uint32_t id, um_chunks_t *out)
{
    uint64_t first, last;

    return whole_blocks(sequences, id, &first, &last) &&
           um_residency_peek(sequences->residency, id, last, out);
}

/* Has the CPU any of its first, middle and last one? */
static bool is_begun(um_sequences_t *sequences, uint32_t id)
{
    uint64_t first, last;
    um_chunks_t chunks;

    if (!whole_blocks(sequences, id, &first, &last))
        return true;
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t block = first + (last - first) / UM_BLOCK_BYTES * i / 2 * UM_BLOCK_BYTES;

        if (!um_residency_peek(sequences->residency, id, block, &chunks) || chunks.any)
            return true;
    }
    return false;
}

/* Another item of the row: which of them are written to their ends by now? */
static void look_at_young(um_sequences_t *sequences, um_row_t *row)
{
    for (uint32_t i = 0; sequences->n_young && i < UM_SEQ_YOUNG; i++) {
        um_seq_young_t *young = &sequences->young[i];
        um_chunks_t chunks;

        if (!young->region || (young->row && young->row != row))
            continue;
        young->row = row;
        if (young->ready)
            continue;
        if (young->looks++ == YOUNG_LOOKS)
            forget_young(sequences, young);
        else if (last_block(sequences, young->region, &chunks) && chunks.all == UINT32_MAX)
            young->ready = row->n;
    }
}

/* The first launch to take it: how long before was the CPU done? */
static void grown(um_sequences_t *sequences, const um_row_t *row, uint32_t region,
                  um_seq_fact_t *fact, bool brought)
{
    um_seq_young_t *young = young_of(sequences, region);
    uint64_t first, from;
    um_chunks_t chunks;

    if (!young)
        return;
    if (!brought && young->row == row && last_block(sequences, region, &chunks)) {
        /* Nobody wrote its end: it is taken as it was allocated. Half written, as it is launched. */
        first = young->ready ? young->ready : is_begun(sequences, region) ? row->n : young->since;
        from = row->n - first;
        if (fact->from > from || !fact->rounds++)
            fact->from = from < UM_SEQUENCE_STEPS ? (uint32_t)from : UM_SEQUENCE_STEPS;
        fact->taken = first > young->since ? fact->from + 1 : 0;
    }
    forget_young(sequences, young);
}

void um_sequence_cpu_gone(um_sequences_t *sequences, uint32_t region)
{
    um_seq_young_t *young = young_of(sequences, region);

    if (young)
        forget_young(sequences, young);
    for (uint32_t i = 0; sequences->n_pending && i < UM_SEQ_PENDING; i++)
        if (sequences->pending[i].signature && sequences->pending[i].region == region)
            drop(sequences, &sequences->pending[i]);
}

/* ---- a launch ---- */

void um_sequence_cpu_launch(um_sequences_t *sequences, um_row_t *row, um_signature_t *signature)
{
    if (sequences->n_young)
        look_at_young(sequences, row);
    for (uint32_t i = 0; i < signature->n; i++) {
        um_seq_arg_t *arg = &signature->arg[i];
        uint32_t id = um_place_region(&sequences->places, arg->place);
        um_seq_region_t *region = um_sequence_region(sequences, id);
        um_seq_pending_t *pending;

        if (!region || arg_of(signature, arg->place) != arg)
            continue;
        pending = sequences->n_pending ? pending_of(sequences, signature->lru.key, id) : NULL;
        if (pending && !pending->signature)
            pending = NULL;
        if (!region->taken)
            grown(sequences, row, id, &arg->fact[UM_SEQ_NEW], pending != NULL);
        else if (arg->fact[UM_SEQ_USED].found && !pending)
            arg->fact[UM_SEQ_USED].found--; /* unless it is found again, now */
        if (pending)
            conclude(sequences, pending, arg);
        else if (arg->fact[UM_SEQ_USED].rounds % LEAVE_EVERY == LEAVE_EVERY - 1)
            arg->fact[UM_SEQ_USED].rounds++; /* the round that goes without */
        region->taken = true;
        sequences->launched = true;
    }
    give_up_late(sequences);
}

/* ---- waits ---- */

static um_seq_wait_t *wait_of(um_sequences_t *sequences, uint64_t key)
{
    um_seq_wait_t *wait = um_lru_make(sequences->wait, UM_SEQ_WAITS, sizeof(*wait), key);

    if (wait == sequences->after && !wait->lru.used)
        sequences->after = NULL; /* it was another */
    return wait;
}

void um_sequence_cpu_wait(um_sequences_t *sequences, um_row_t *row, const um_ev_sync_t *sync)
{
    um_seq_wait_t *before = sequences->after, *wait;

    if (sequences->n_young)
        look_at_young(sequences, row);
    /* What nobody asked about after it may have been taken or not. */
    if (before && sequences->launched && !sequences->loud)
        before->quiet++;
    wait = wait_of(sequences, um_sequence_wait_key(row, sync));
    wait->lru.used = sequences->clock;
    sequences->after = wait;
    sequences->launched = sequences->loud = false;
}

bool um_sequences_is_quiet(um_sequences_t *sequences, const um_event_t *event)
{
    for (uint32_t i = 0; i < UM_SEQ_THREADS; i++) {
        const um_row_t *row = &sequences->row[i];
        um_seq_wait_t *wait;

        if (!row->used || row->tid != event->tid)
            continue;
        wait = wait_of(sequences, um_sequence_wait_key(row, &event->u.sync));
        if (wait->quiet < QUIET_AFTER || ++wait->turn % QUIET_TURN == 0)
            return false;
        sequences->stats.quiet_waits++;
        return true;
    }
    return false;
}

void um_sequence_cpu_took(um_sequences_t *sequences, uint32_t id, uint64_t addr, uint64_t bytes,
                          bool shown)
{
    const um_seq_region_t *region = um_sequence_region(sequences, id);
    um_seq_arg_t *arg;

    if (!region)
        return;
    sequences->loud = true;
    if (sequences->after)
        sequences->after->quiet = 0;
    for (uint32_t i = 0; sequences->n_pending && i < UM_SEQ_PENDING; i++) {
        um_seq_pending_t *pending = &sequences->pending[i];

        for (uint32_t p = 0; pending->signature && pending->region == id && p < pending->n; p++)
            pending->taken_back |=
                pending->probe[p] < addr + bytes && addr < pending->probe[p] + UM_BLOCK_BYTES;
    }
    /* Shown as the latest launch is decided about: the CPU had it before. */
    if (shown && sequences->last &&
        (arg = arg_of(um_sequence_find(sequences, sequences->last->launch), region->place)))
        arg->fact[UM_SEQ_USED].found = FOUND_FOR;
}

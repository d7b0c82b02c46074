/*
 * From run to run, as LEARNED events of "sequence":
 *   launch  a signature (`shape`): its kernel, grid, block, device, and whether it is a run's early one
 *   takes   a pointer of it (`shape`: signature and number): its slot, the region's role and place, offsets, and
 *           the facts about the CPU
 *   next    a context (`shape`): what comes after it
 */
#include <string.h>

#include "sequence_impl.h"

#define WHO       "sequence"
#define STALE     4u    /* runs: what is older has to be seen again first */
#define MOST_TOLD 512u  /* signatures told */
#define MOST_NEXT 1024u /* contexts told */
#define TWICE     2u

enum { GRID_XY, GRID_Z_BLOCK_X, BLOCK_YZ, WHERE, N_ARGS }; /* values of launch */
enum { SIGNATURE, PLACE, OFFSET, INSIDE, FACT_USED, FACT_NEW };
enum { NEXT, ORDER };

static uint64_t two(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* ---- in ---- */

static void on_launch(um_sequences_t *sequences, const um_ev_learned_t *learned)
{
    const uint64_t *value = learned->value;
    um_signature_t *signature;

    if (!learned->shape || !*learned->kernel || value[N_ARGS] > UM_SEQUENCE_ARGS)
        return;
    signature = um_sequence_signature(sequences, learned->shape);
    if (signature->seen)
        return; /* this run knows better */
    signature->kernel = um_footprints_kernel_named(learned->kernel, learned->module_hash);
    signature->grid[0] = (uint32_t)(value[GRID_XY] >> 32);
    signature->grid[1] = (uint32_t)value[GRID_XY];
    signature->grid[2] = (uint32_t)(value[GRID_Z_BLOCK_X] >> 32);
    signature->block[0] = (uint32_t)value[GRID_Z_BLOCK_X];
    signature->block[1] = (uint32_t)(value[BLOCK_YZ] >> 32);
    signature->block[2] = (uint32_t)value[BLOCK_YZ];
    signature->device = (int32_t)(uint32_t)value[WHERE];
    signature->n = (uint32_t)value[N_ARGS];
    signature->lru.used = ++sequences->clock;
}

static um_seq_fact_t fact_of(uint64_t value)
{
    um_seq_fact_t fact = {.from = (uint32_t)(value >> 32), .taken = (uint32_t)value};

    if (fact.from > UM_SEQUENCE_STEPS || (fact.taken && fact.taken <= fact.from))
        return (um_seq_fact_t){0};
    return fact;
}

static void on_takes(um_sequences_t *sequences, const um_ev_learned_t *learned)
{
    const uint64_t *value = learned->value;
    uint32_t i = (uint32_t)(value[INSIDE] >> 32);
    um_signature_t *signature;

    if (!value[SIGNATURE] || !value[PLACE] || i >= UM_SEQUENCE_ARGS ||
        learned->slot == UM_SLOT_NONE)
        return;
    signature = um_sequence_signature(sequences, value[SIGNATURE]);
    if (signature->seen)
        return;
    signature->lru.used = ++sequences->clock;
    signature->arg[i] = (um_seq_arg_t){.place = value[PLACE],
                                       .role = learned->role,
                                       .offset_bytes = value[OFFSET],
                                       .slot = learned->slot,
                                       .inside_bytes = (uint32_t)value[INSIDE]};
    if (learned->age > STALE)
        return;
    for (int age = 0; age < UM_SEQ_AGES; age++) {
        um_seq_fact_t *fact = &signature->arg[i].fact[age];

        *fact = fact_of(value[age == UM_SEQ_USED ? FACT_USED : FACT_NEW]);
        fact->tries = fact->taken && age == UM_SEQ_USED ? sequences->clock + UM_SEQ_RESTS : 0;
    }
}

static void on_next(um_sequences_t *sequences, const um_ev_learned_t *learned)
{
    um_seq_context_t *context;

    if (!learned->shape || !learned->value[NEXT] || learned->age > STALE)
        return;
    context = um_sequence_context(sequences, learned->shape);
    if (context->count && !context->told)
        return;
    context->next = learned->value[NEXT];
    context->order = (uint8_t)(learned->value[ORDER] & 0xf);
    context->early = learned->value[ORDER] >> 8 & 1;
    context->count = TWICE;
    context->told = true;
    context->lru.used = ++sequences->clock;
}

void um_sequence_on_learned(um_sequences_t *sequences, const um_ev_learned_t *learned)
{
    static const struct {
        const char *what;
        void (*take)(um_sequences_t *sequences, const um_ev_learned_t *learned);
    } taker[] = {{"launch", on_launch}, {"takes", on_takes}, {"next", on_next}};

    if (strcmp(learned->who, WHO) != 0 || !learned->count)
        return;
    for (size_t i = 0; i < sizeof(taker) / sizeof(taker[0]); i++)
        if (strcmp(learned->what, taker[i].what) == 0)
            taker[i].take(sequences, learned);
}

/* ---- out ---- */

static void tell(um_event_fn emit, void *ctx, const um_ev_learned_t *learned)
{
    um_event_t event = {.type = UM_EV_LEARNED, .u.learned = *learned};

    event.u.learned.who = WHO;
    emit(ctx, &event);
}

static uint64_t value_of(const um_seq_fact_t *fact)
{
    return two(fact->from, fact->taken);
}

static void tell_signature(const um_sequences_t *sequences, const um_signature_t *signature,
                           um_event_fn emit, void *ctx)
{
    um_ev_learned_t learned = {.what = "launch",
                               .shape = signature->lru.key,
                               .slot = UM_SLOT_NONE,
                               .count = signature->seen};

    learned.kernel = um_footprints_name(sequences->footprints, signature->id, &learned.module_hash);
    if (!learned.kernel)
        return;
    learned.value[GRID_XY] = two(signature->grid[0], signature->grid[1]);
    learned.value[GRID_Z_BLOCK_X] = two(signature->grid[2], signature->block[0]);
    learned.value[BLOCK_YZ] = two(signature->block[1], signature->block[2]);
    learned.value[WHERE] = (uint32_t)signature->device;
    learned.value[N_ARGS] = signature->n;
    tell(emit, ctx, &learned);
    for (uint32_t i = 0; i < signature->n; i++) {
        const um_seq_arg_t *arg = &signature->arg[i];
        um_ev_learned_t takes = {.what = "takes",
                                 .kernel = learned.kernel,
                                 .module_hash = learned.module_hash,
                                 .shape = um_mix(signature->lru.key, i),
                                 .role = arg->role,
                                 .slot = arg->slot,
                                 .count = signature->seen};

        takes.value[SIGNATURE] = signature->lru.key;
        takes.value[PLACE] = arg->place;
        takes.value[OFFSET] = arg->offset_bytes;
        takes.value[INSIDE] = two(i, arg->inside_bytes);
        takes.value[FACT_USED] = value_of(&arg->fact[UM_SEQ_USED]);
        takes.value[FACT_NEW] = value_of(&arg->fact[UM_SEQ_NEW]);
        tell(emit, ctx, &takes);
    }
}

/* What came once, in the middle of a run, need not come again. */
void um_sequences_learned(const um_sequences_t *sequences, um_event_fn emit, void *ctx)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < UM_SEQ_SIGNATURES && n < MOST_TOLD; i++) {
        const um_signature_t *signature = &sequences->signature[i];

        if (!signature->lru.key || !signature->seen || signature->flags & UM_LAUNCH_GRAPH ||
            (!signature->early && signature->seen < TWICE))
            continue;
        tell_signature(sequences, signature, emit, ctx);
        n++;
    }
    n = 0;
    for (uint32_t i = 0; i < UM_SEQ_CONTEXTS && n < MOST_NEXT; i++) {
        const um_seq_context_t *context = &sequences->context[i];

        if (!context->lru.key || !context->count || context->told ||
            (context->order != UM_SEQ_LONGEST && context->order != TWICE) ||
            (!context->early && context->count < TWICE))
            continue;
        tell(
            emit, ctx,
            &(um_ev_learned_t){
                .what = "next",
                .kernel = "",
                .shape = context->lru.key,
                .slot = UM_SLOT_NONE,
                .count = context->count,
                .value = {[NEXT] = context->next, [ORDER] = context->order | context->early << 8}});
        n++;
    }
}

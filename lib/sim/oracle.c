/*
 * Hints from the future: every block is brought, in the order of use, to whom it is used by next, as
 * early as there is room; room is made by what is used last. Not a bound: it moves by the same calls as
 * anybody else, knows neither copies nor mappings, and fetches as early as it may where waiting would
 * at times save a transfer. What it puts out counts as wasted when the CPU does not touch it.
 */
#include "engine.h"

#include <stdlib.h>

#define WORKERS      2u
#define OP_BLOCKS    16u
#define SEEN_AHEAD   256u /* uses in which a call looks for more of its own blocks */
#define VICTIMS      64u
#define NONE         UINT32_MAX
#define PAYS_MOVED   (UM_BLOCK_BYTES / 6) /* touched bytes of a block from which it pays to move it */
#define PAYS_FRESH   (UM_BLOCK_BYTES / 32) /* and where nobody has touched it before */
#define PAYS_TO_HOST (UM_BLOCK_BYTES / 8)

/* One step's touch of one block. */
typedef struct use {
    uint32_t block; /* counted over all regions */
    uint32_t next;  /* use of the same block */
    uint32_t left;  /* bytes still to be touched */
    int32_t processor;
} use_t;

typedef struct block {
    uint32_t head;   /* the first use that is not over */
    uint32_t region; /* id */
    int8_t at;       /* the device that it was last brought to; HOST = none */
    bool asked;      /* a call for its head is made */
} block_t;

struct um_oracle {
    um_engine_t *engine;
    um_stream_t *worker[WORKERS];
    use_t *use;
    block_t *block;
    uint32_t n_uses, n_blocks, room;
    uint32_t *base; /* first block by region id */
    uint32_t n_regions;
    uint32_t cursor; /* uses before it were looked at */
    uint32_t *again; /* a heap of uses that were not at the head of their block then */
    uint32_t n_again, again_room;
    uint32_t victim[VICTIMS], n_victims; /* the one used last is the last */
};

/* ---- the uses, in the order of the program ---- */

static bool add_region(um_oracle_t *oracle, const um_ev_region_alloc_t *alloc)
{
    uint64_t first = alloc->addr / UM_BLOCK_BYTES;
    uint64_t n = (alloc->addr + alloc->bytes - 1) / UM_BLOCK_BYTES - first + 1;
    block_t *grown;

    if (alloc->family != UM_FAMILY_MANAGED)
        return true;
    if (alloc->region >= oracle->n_regions) {
        uint32_t room = 2 * alloc->region + 64, *base;

        base = realloc(oracle->base, room * sizeof(*base));
        if (!base)
            return false;
        while (oracle->n_regions < room)
            base[oracle->n_regions++] = NONE;
        oracle->base = base;
    }
    if (oracle->n_blocks + n >= NONE)
        return false;
    grown = realloc(oracle->block, (oracle->n_blocks + n) * sizeof(*grown));
    if (!grown)
        return false;
    oracle->block = grown;
    oracle->base[alloc->region] = oracle->n_blocks;
    for (uint64_t i = 0; i < n; i++)
        oracle->block[oracle->n_blocks++] =
            (block_t){.head = NONE, .region = alloc->region, .at = UM_DEVICE_HOST};
    return true;
}

static bool add_use(um_oracle_t *oracle, uint32_t block, int32_t processor, uint32_t bytes)
{
    if (oracle->n_uses == oracle->room) {
        uint32_t room = oracle->room ? 2 * oracle->room : 4096;
        use_t *grown = room > oracle->room ? realloc(oracle->use, room * sizeof(*grown)) : NULL;

        if (!grown)
            return false;
        oracle->use = grown;
        oracle->room = room;
    }
    oracle->use[oracle->n_uses++] =
        (use_t){.block = block, .next = NONE, .left = bytes, .processor = processor};
    return true;
}

/* In the order in which the pieces will be reached. */
static bool add_step(um_oracle_t *oracle, um_walk_t *walk, const um_step_t *step,
                     const uint64_t *first_block)
{
    const um_touch_t *touches = oracle->engine->workload->touches + step->first_touch;
    int32_t processor = step->event ? step->event->u.launch.device : UM_DEVICE_HOST;
    const um_piece_t *piece;

    um_walk_start(walk, touches, step->n_touches, 0, UM_BLOCK_BYTES);
    for (; (piece = um_walk_piece(oracle->engine, walk, 0)); um_walk_step(walk)) {
        uint64_t block = piece->addr / UM_BLOCK_BYTES;

        if (piece->region >= oracle->n_regions || oracle->base[piece->region] == NONE)
            continue;
        block += oracle->base[piece->region] - first_block[piece->region];
        if (!add_use(oracle, (uint32_t)block, processor, (uint32_t)piece->bytes))
            return false;
    }
    return true;
}

static bool read_future(um_oracle_t *oracle)
{
    const um_workload_t *workload = oracle->engine->workload;
    uint64_t *first_block = NULL;
    um_walk_t walk = {0};
    uint32_t n = 0;
    bool whole = true;

    for (uint64_t s = 0; whole && s < workload->n_steps; s++) {
        const um_event_t *event = workload->steps[s].event;

        if (event && event->type == UM_EV_REGION_ALLOC) {
            whole = add_region(oracle, &event->u.region_alloc);
            if (whole && n < oracle->n_regions) {
                uint64_t *grown = realloc(first_block, oracle->n_regions * sizeof(*grown));

                whole = grown != NULL;
                first_block = whole ? grown : first_block;
                n = whole ? oracle->n_regions : n;
            }
            if (whole && event->u.region_alloc.region < n)
                first_block[event->u.region_alloc.region] =
                    event->u.region_alloc.addr / UM_BLOCK_BYTES;
        } else if (!event || event->type == UM_EV_LAUNCH) {
            whole = add_step(oracle, &walk, &workload->steps[s], first_block);
        }
    }
    free(first_block);
    um_walk_fini(&walk);
    for (uint32_t u = oracle->n_uses; whole && u-- > 0;) {
        block_t *block = &oracle->block[oracle->use[u].block];

        oracle->use[u].next = block->head;
        block->head = u;
    }
    return whole;
}

/* ---- uses that come again ---- */

static void push_again(um_oracle_t *oracle, uint32_t use)
{
    uint32_t i = oracle->n_again;

    if (i == oracle->again_room) {
        uint32_t room = i ? 2 * i : 1024;
        uint32_t *grown = realloc(oracle->again, room * sizeof(*grown));

        if (!grown) {
            um_engine_fail(oracle->engine, UM_ERR_NO_MEMORY);
            return;
        }
        oracle->again = grown;
        oracle->again_room = room;
    }
    oracle->n_again++;
    for (; i && oracle->again[(i - 1) / 2] > use; i = (i - 1) / 2)
        oracle->again[i] = oracle->again[(i - 1) / 2];
    oracle->again[i] = use;
}

static void pop_again(um_oracle_t *oracle)
{
    uint32_t last = oracle->again[--oracle->n_again], i = 0;

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child + 1 < oracle->n_again && oracle->again[child + 1] < oracle->again[child])
            child++;
        if (child >= oracle->n_again || oracle->again[child] >= last)
            break;
        oracle->again[i] = oracle->again[child];
        i = child;
    }
    oracle->again[i] = last;
}

/* The earliest use not looked at since it came to the head of its block; NONE = there is none. */
static uint32_t candidate(const um_oracle_t *oracle)
{
    if (oracle->n_again && (oracle->cursor == oracle->n_uses || oracle->again[0] < oracle->cursor))
        return oracle->again[0];
    return oracle->cursor < oracle->n_uses ? oracle->cursor : NONE;
}

static void pass(um_oracle_t *oracle, uint32_t use)
{
    if (oracle->n_again && oracle->again[0] == use)
        pop_again(oracle);
    else
        oracle->cursor = use + 1;
}

/* ---- what to do about one ---- */

static uint64_t block_range(const um_oracle_t *oracle, uint32_t block, uint64_t *bytes)
{
    uint32_t id = oracle->block[block].region;
    const um_sim_region_t *region = um_engine_region(oracle->engine, id);
    uint64_t start, end;

    if (!region)
        return 0;
    start = (region->first + block - oracle->base[id]) * UM_BLOCK_BYTES;
    end = start + UM_BLOCK_BYTES;
    start = start < region->addr ? region->addr : start;
    end = end > region->addr + region->bytes ? region->addr + region->bytes : end;
    *bytes = end - start;
    return start;
}

/* Is it worth a hint now? */
static bool pays(const um_oracle_t *oracle, uint32_t u)
{
    const use_t *use = &oracle->use[u];
    const um_engine_t *engine = oracle->engine;
    uint64_t bytes, addr = block_range(oracle, use->block, &bytes);
    um_extent_t extent;
    bool fresh;

    if (oracle->block[use->block].head != u || oracle->block[use->block].asked || !addr ||
        !um_uvm_would_fault(engine->uvm, use->processor, addr, bytes, UM_ACCESS_READ))
        return false;
    fresh = um_uvm_extents(engine->uvm, addr, bytes, &extent, 1) == 1 &&
            extent.where == UM_WHERE_UNTOUCHED;
    if (use->processor == UM_DEVICE_HOST)
        return !fresh && use->left >= PAYS_TO_HOST;
    return use->left >= (fresh ? PAYS_FRESH : PAYS_MOVED);
}

static uint64_t under_way(const um_oracle_t *oracle, int32_t device)
{
    uint64_t bytes = 0;

    for (unsigned w = 0; w < WORKERS; w++) {
        const um_op_t *op = oracle->worker[w]->head;

        if (op && op->hint.device == device)
            bytes += op->hint.addr + op->hint.bytes - oracle->worker[w]->at;
    }
    return bytes;
}

static void go(um_oracle_t *oracle, um_stream_t *worker, uint64_t addr, uint64_t bytes,
               uint32_t region, int32_t processor, int32_t device)
{
    um_op_t op = {.type = UM_OP_PREFETCH,
                  .submitted_ns = oracle->engine->now_ns,
                  .hint = {.kind = UM_HINT_PREFETCH,
                           .addr = addr,
                           .bytes = bytes,
                           .device = processor,
                           .region = region,
                           .who = "oracle"}};

    worker->device = device;
    worker->at = addr;
    um_stream_push(oracle->engine, worker, &op);
    oracle->engine->result.hints++;
}

/* ---- room ---- */

/* Blocks of a device by their next use: those used last, the very last one at the end. */
static void find_victims(um_oracle_t *oracle, int32_t device)
{
    oracle->n_victims = 0;
    for (uint32_t b = 0; b < oracle->n_blocks; b++) {
        uint32_t head = oracle->block[b].head, i;

        if (oracle->block[b].at != device)
            continue;
        if (oracle->n_victims == VICTIMS) {
            if (head <= oracle->block[oracle->victim[0]].head)
                continue;
            for (i = 1; i < VICTIMS && oracle->block[oracle->victim[i]].head < head; i++)
                oracle->victim[i - 1] = oracle->victim[i];
            oracle->victim[i - 1] = b;
            continue;
        }
        for (i = oracle->n_victims++; i && oracle->block[oracle->victim[i - 1]].head > head; i--)
            oracle->victim[i] = oracle->victim[i - 1];
        oracle->victim[i] = b;
    }
}

/* Puts out what is used later than `use`; false = all of it is used sooner. */
static bool make_room(um_oracle_t *oracle, um_stream_t *worker, int32_t device, uint32_t use)
{
    for (unsigned tries = 0; tries < 2; tries++) {
        while (oracle->n_victims) {
            uint32_t b = oracle->victim[--oracle->n_victims];
            uint64_t bytes, addr = block_range(oracle, b, &bytes);

            if (oracle->block[b].at != device || oracle->block[b].head <= use)
                continue;
            oracle->block[b].at = UM_DEVICE_HOST;
            if (oracle->block[b].asked && oracle->block[b].head < oracle->cursor)
                push_again(oracle, oracle->block[b].head);
            oracle->block[b].asked = false;
            if (!addr)
                continue;
            go(oracle, worker, addr, bytes, oracle->block[b].region, UM_DEVICE_HOST, device);
            return true;
        }
        find_victims(oracle, device);
    }
    oracle->n_victims = 0;
    return false;
}

/* ---- one worker's next call ---- */

/* Later blocks that belong into the same call, however many others are used between them. */
static uint64_t extend(um_oracle_t *oracle, uint32_t use, uint64_t bytes, uint64_t room)
{
    const use_t *last = &oracle->use[use];

    for (uint32_t u = use + 1, n = 1; u < oracle->n_uses && u - use < SEEN_AHEAD && n < OP_BLOCKS;
         u++) {
        const use_t *next = &oracle->use[u];
        uint64_t more = 0;

        if (next->block != last->block + 1)
            continue;
        if (next->processor != last->processor || !pays(oracle, u) ||
            oracle->block[next->block].region != oracle->block[last->block].region)
            break;
        block_range(oracle, next->block, &more);
        if (last->processor >= 0 && bytes + more > room)
            break;
        last = next;
        oracle->block[last->block].at = (int8_t)last->processor;
        oracle->block[last->block].asked = true;
        bytes += more;
        n++;
    }
    return bytes;
}

static bool give_work(um_oracle_t *oracle, um_stream_t *worker)
{
    uint32_t u;

    while ((u = candidate(oracle)) != NONE) {
        const use_t *use = &oracle->use[u];
        block_t *block = &oracle->block[use->block];
        uint64_t bytes = 0, addr = block_range(oracle, use->block, &bytes), room = UINT64_MAX;
        int32_t device = use->processor >= 0 ? use->processor : block->at >= 0 ? block->at : 0;

        if (!addr && block->head == u)
            return false; /* not allocated yet */
        if (!pays(oracle, u)) {
            if (addr && use->processor >= 0 && block->head == u)
                block->at = (int8_t)use->processor;
            pass(oracle, u);
            continue;
        }
        if (use->processor >= 0) {
            uint64_t taken =
                under_way(oracle, device) + um_uvm_resident_bytes(oracle->engine->uvm, device);

            room =
                oracle->engine->capacity_bytes > taken ? oracle->engine->capacity_bytes - taken : 0;
            if (room < bytes)
                return make_room(oracle, worker, device, u);
        }
        pass(oracle, u);
        block->at = (int8_t)use->processor;
        block->asked = true;
        bytes = extend(oracle, u, bytes, room);
        go(oracle, worker, addr, bytes, block->region, use->processor, device);
        return true;
    }
    return false;
}

void um_oracle_poke(um_oracle_t *oracle)
{
    for (unsigned w = 0; w < WORKERS; w++)
        if (!oracle->worker[w]->head && !give_work(oracle, oracle->worker[w]))
            return;
}

void um_oracle_used(um_oracle_t *oracle, int32_t processor, const um_piece_t *piece)
{
    const um_sim_region_t *region = um_engine_region(oracle->engine, piece->region);
    block_t *block;
    use_t *use;

    if (!region || piece->region >= oracle->n_regions || oracle->base[piece->region] == NONE)
        return;
    block =
        &oracle->block[oracle->base[piece->region] + piece->addr / UM_BLOCK_BYTES - region->first];
    if (block->head == NONE)
        return;
    use = &oracle->use[block->head];
    if (use->processor != processor)
        return;
    block->at = (int8_t)processor;
    use->left -= piece->bytes < use->left ? (uint32_t)piece->bytes : use->left;
    if (use->left)
        return;
    block->head = use->next;
    block->asked = false;
    if (block->head < oracle->cursor)
        push_again(oracle, block->head);
    um_oracle_poke(oracle);
}

/* ---- life ---- */

um_status_t um_oracle_new(um_engine_t *engine, um_oracle_t **out)
{
    um_oracle_t *oracle = calloc(1, sizeof(*oracle));

    if (!oracle)
        return UM_ERR_NO_MEMORY;
    *out = oracle; /* the caller frees it, also on failure */
    oracle->engine = engine;
    for (unsigned w = 0; w < WORKERS; w++)
        if (!(oracle->worker[w] = um_stream_new(engine, 0, 0, true)))
            return UM_ERR_NO_MEMORY;
    return read_future(oracle) ? UM_OK : UM_ERR_NO_MEMORY;
}

void um_oracle_free(um_oracle_t *oracle)
{
    if (!oracle)
        return;
    for (unsigned w = 0; w < WORKERS; w++)
        um_stream_free(oracle->worker[w]);
    free(oracle->use);
    free(oracle->block);
    free(oracle->base);
    free(oracle->again);
    free(oracle);
}

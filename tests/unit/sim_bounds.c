/* The bounds against brute force, and case by case. */
#include <criterion/criterion.h>

#include "sim/sim.h"
#include "sim_hand.h"

#define BLOCK ((uint64_t)UM_BLOCK_BYTES)

/* 1 GB/s is one byte a nanosecond. */
static um_machine_t plain_machine(double in, double out)
{
    return (um_machine_t){
        .name = "test",
        .memory_bytes = (uint64_t)1 << 40,
        .kernel_time_scale = 1,
        .link_to_device = {2, {{4096, in / 2}, {UM_BLOCK_BYTES, in}}},
        .link_to_host = {2, {{4096, out / 2}, {UM_BLOCK_BYTES, out}}},
    };
}

static um_bounds_t find(const hand_t *h, uint64_t gpu_bytes)
{
    um_machine_t machine = plain_machine(1, 1);
    um_bounds_t bounds;

    cr_assert_eq(um_bounds_find(&h->w, &machine, gpu_bytes, 1, &bounds), UM_OK);
    cr_assert_eq(bounds.least_bytes, bounds.least_to_device + bounds.least_to_host);
    return bounds;
}

/* ---- by brute force ----------------------------------------------------------------------------- */

/* Blocks that are moved whole, every choice tried. State of a block: */
enum { ON_GPU = 1, ON_HOST = 2, WRITTEN = 4, SEEN = 8 }; /* SEEN: by the GPU, since the alloc */
#define BLOCKS_MAX 4
#define OPS_MAX    8
#define NEVER      1000u

typedef struct op {
    bool gpu;
    um_access_kind_t kind;
    uint32_t blocks; /* bit mask */
} op_t;

typedef struct brute {
    op_t op[OPS_MAX];
    uint32_t n_ops, n_blocks, capacity;
    uint32_t in_price, out_price;
    uint32_t known[OPS_MAX + 1][1 << (4 * BLOCKS_MAX)]; /* cost from here plus one, 0 = not known */
} brute_t;

static uint32_t cost(brute_t *b, uint32_t i, uint32_t state);

/* After a launch: every way to let blocks go until the rest fits. A dirty block is written back, or
 * lost. */
static uint32_t cost_leaving(brute_t *b, uint32_t next, uint32_t state, uint32_t block,
                             uint32_t kept)
{
    uint32_t best = NEVER, one, c;

    if (block == b->n_blocks)
        return kept <= b->capacity ? cost(b, next, state) : NEVER;
    one = state >> (4 * block) & 15;
    best = cost_leaving(b, next, state, block + 1, kept + (one & ON_GPU));
    if (!(one & ON_GPU))
        return best;
    state &= ~((uint32_t)ON_GPU << (4 * block));
    c = cost_leaving(b, next, state, block + 1, kept);
    best = c < best ? c : best;
    if (!(one & ON_HOST) && (one & WRITTEN)) {
        state |= (uint32_t)ON_HOST << (4 * block);
        c = b->out_price + cost_leaving(b, next, state, block + 1, kept);
        best = c < best ? c : best;
    }
    return best;
}

static uint32_t cost(brute_t *b, uint32_t i, uint32_t state)
{
    const op_t *op = &b->op[i];
    uint32_t after = state, paid = 0, total;

    if (i == b->n_ops)
        return 0;
    if (b->known[i][state])
        return b->known[i][state] - 1;
    for (uint32_t k = 0; k < b->n_blocks; k++) {
        uint32_t one = state >> (4 * k) & 15, here = op->gpu ? ON_GPU : ON_HOST;

        if (!(op->blocks >> k & 1))
            continue;
        if (op->kind != UM_ACCESS_WRITE && !(one & here)) {
            if (one & WRITTEN && !(one & (ON_GPU | ON_HOST)))
                paid = NEVER; /* it was lost */
            else if (op->gpu)
                paid += one & (WRITTEN | SEEN) ? b->in_price : 0;
            else
                paid += one & WRITTEN ? b->out_price : 0;
        }
        one |= here;
        if (op->kind != UM_ACCESS_READ)
            one = here | WRITTEN;
        one |= op->gpu ? SEEN : 0;
        after = (after & ~(15u << (4 * k))) | one << (4 * k);
    }
    if (paid >= NEVER)
        return NEVER;
    total = paid + (op->gpu ? cost_leaving(b, i + 1, after, 0, 0) : cost(b, i + 1, after));
    total = total < NEVER ? total : NEVER;
    b->known[i][state] = total + 1;
    return total;
}

static uint32_t brute_cost(brute_t *b, uint32_t in_price, uint32_t out_price)
{
    memset(b->known, 0, sizeof(b->known));
    b->in_price = in_price;
    b->out_price = out_price;
    return cost(b, 0, 0);
}

static uint32_t dice(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static const um_access_kind_t kinds[] = {UM_ACCESS_READ, UM_ACCESS_READ, UM_ACCESS_WRITE,
                                         UM_ACCESS_ATOMIC};

static void random_case(brute_t *b, hand_t *h, uint32_t *seed)
{
    b->n_blocks = 2 + dice(seed, BLOCKS_MAX - 1);
    b->n_ops = 3 + dice(seed, OPS_MAX - 2);
    b->capacity = 1 + dice(seed, b->n_blocks);
    hand_begin(h, b->n_blocks * BLOCK);
    for (uint32_t i = 0; i < b->n_ops; i++) {
        op_t op = {.gpu = dice(seed, 3) != 0, .kind = kinds[dice(seed, 4)]};

        op.blocks = 1 + dice(seed, (1u << b->n_blocks) - 1);
        b->op[i] = op;
        if (op.gpu)
            hand_launch(h, 0, 10);
        else
            hand_host(h, 10);
        for (uint32_t k = 0; k < b->n_blocks; k++) {
            if (op.blocks >> k & 1)
                hand_touch(h, k * BLOCK, BLOCK, op.kind);
        }
    }
}

Test(sim_bounds, are_what_brute_force_finds_in_each_direction, .timeout = 600)
{
    brute_t *b = malloc(sizeof(*b));
    hand_t *h = malloc(sizeof(*h));
    uint32_t seed = 7, tight = 0, n = 1500;

    for (uint32_t i = 0; i < n; i++) {
        um_bounds_t bounds;
        uint32_t both;

        random_case(b, h, &seed);
        bounds = find(h, b->capacity * BLOCK);
        cr_assert_eq(bounds.least_to_device, brute_cost(b, 1, 0) * BLOCK, "case %u", i);
        cr_assert_eq(bounds.least_to_host, brute_cost(b, 0, 1) * BLOCK, "case %u", i);
        both = brute_cost(b, 1, 1);
        cr_assert_leq(bounds.least_bytes, both * BLOCK, "case %u", i);
        tight += bounds.least_bytes == both * BLOCK;
    }
    cr_assert_geq(tight, n * 95 / 100, "%u of %u", tight, n);
    free(b);
    free(h);
}

/* ---- bytes, case by case ------------------------------------------------------------------------ */

Test(sim_bounds, data_nobody_wrote_costs_nothing)
{
    hand_t h;

    hand_begin(&h, 4 * BLOCK);
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_READ);
    hand_host(&h, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_READ);
    cr_assert_eq(find(&h, 4 * BLOCK).least_bytes, 0);
}

Test(sim_bounds, overwriting_needs_nothing_and_updating_needs_the_old)
{
    hand_t h;

    for (int atomic = 0; atomic < 2; atomic++) {
        hand_begin(&h, 4 * BLOCK);
        hand_host(&h, 10);
        hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_WRITE);
        hand_launch(&h, 0, 10);
        hand_touch(&h, 0, 4 * BLOCK, atomic ? UM_ACCESS_ATOMIC : UM_ACCESS_WRITE);
        cr_assert_eq(find(&h, 4 * BLOCK).least_to_device, atomic ? 4 * BLOCK : 0);
    }
}

Test(sim_bounds, count_the_pages_that_are_touched)
{
    hand_t h;

    hand_begin(&h, 4 * BLOCK);
    hand_host(&h, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_WRITE);
    hand_launch(&h, 0, 10);
    hand_touch(&h, BLOCK - 4096, 3 * 4096, UM_ACCESS_READ);
    hand_touch(&h, 3 * BLOCK + 8192, 4096, UM_ACCESS_ATOMIC);
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_READ);
    hand_host(&h, 10);
    hand_touch(&h, 3 * BLOCK, BLOCK, UM_ACCESS_READ);
    cr_assert_eq(find(&h, 4 * BLOCK).least_to_device, 4 * BLOCK);
    cr_assert_eq(find(&h, 4 * BLOCK).least_to_host, 4096);
}

Test(sim_bounds, a_sweep_over_capacity_keeps_what_fits)
{
    hand_t h;

    hand_begin(&h, 8 * BLOCK);
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, 8 * BLOCK, UM_ACCESS_WRITE);
    for (int i = 0; i < 5; i++) {
        hand_launch(&h, 0, 10);
        hand_touch(&h, 0, 8 * BLOCK, UM_ACCESS_ATOMIC);
    }
    cr_assert_eq(find(&h, 8 * BLOCK).least_bytes, 0);
    cr_assert_eq(find(&h, 6 * BLOCK).least_to_device, 5 * 2 * BLOCK);
    cr_assert_eq(find(&h, 6 * BLOCK).least_to_host, 5 * 2 * BLOCK);
}

Test(sim_bounds, launches_that_nothing_orders_share_the_device_without_a_bound)
{
    hand_t h;

    for (int waits = 0; waits < 2; waits++) {
        hand_begin(&h, 4 * BLOCK);
        for (uint64_t i = 0; i < 8; i++) { /* two streams, each with blocks of its own */
            hand_launch(&h, 1 + i % 2, 10);
            hand_touch(&h, i % 2 * 2 * BLOCK, 2 * BLOCK, UM_ACCESS_READ);
            if (waits)
                hand_wait(&h);
        }
        /* One stream after the other would do with two blocks. */
        cr_assert_eq(find(&h, 2 * BLOCK).least_to_device, waits ? 6 * BLOCK : 0);
    }
}

Test(sim_bounds, another_gpu_is_elsewhere)
{
    hand_t h;

    hand_begin(&h, 4 * BLOCK);
    h.w.n_gpus = 2;
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_WRITE);
    hand_launch(&h, 0, 10)->device = 1;
    hand_touch(&h, 0, BLOCK, UM_ACCESS_READ);
    cr_assert_eq(find(&h, 4 * BLOCK).least_to_device, BLOCK);
    cr_assert_eq(find(&h, 4 * BLOCK).least_to_host, 0);
}

Test(sim_bounds, memory_that_went_and_came_back_is_new)
{
    hand_t h;
    um_event_t *event;

    hand_begin(&h, 4 * BLOCK);
    hand_host(&h, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_WRITE);
    event = hand_event(&h, UM_EV_REGION_FREE, 0, 0);
    event->u.region_free = (um_ev_region_free_t){.region = 1, .addr = HAND_ADDR};
    event = hand_event(&h, UM_EV_REGION_ALLOC, 0, 0);
    event->u.region_alloc = (um_ev_region_alloc_t){.region = 2,
                                                   .family = UM_FAMILY_MANAGED,
                                                   .addr = HAND_ADDR,
                                                   .bytes = 4 * BLOCK};
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_READ);
    h.touch[1].region = 2;
    cr_assert_eq(find(&h, 4 * BLOCK).least_bytes, 0);
}

/* A nanosecond a block is given to the simulator's rounding. */
static void expect_ns(uint64_t ns, uint64_t want, uint64_t blocks)
{
    cr_assert_leq(ns, want);
    cr_assert_geq(ns + blocks, want);
}

/* ---- time --------------------------------------------------------------------------------------- */

Test(sim_bounds, time_is_the_longer_of_compute_and_link)
{
    um_machine_t machine = plain_machine(2, 1);
    um_bounds_t bounds;
    hand_t h;

    for (uint64_t compute = 1; compute <= 16 * BLOCK; compute = compute * 8 + 7) {
        uint64_t link = 4 * BLOCK / 2;

        hand_begin(&h, 4 * BLOCK);
        hand_host(&h, 0);
        hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_WRITE);
        hand_launch(&h, 0, compute);
        hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_READ);
        cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
        expect_ns(bounds.least_ns, compute > link ? compute : link, 4);
    }
}

Test(sim_bounds, the_cpu_waits_for_what_it_reads)
{
    um_machine_t machine = plain_machine(2, 1);
    um_bounds_t bounds;
    hand_t h;

    hand_begin(&h, 4 * BLOCK);
    for (int i = 0; i < 3; i++) {
        hand_host(&h, 1000);
        hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_WRITE);
        hand_launch(&h, 0, 500);
        hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_ATOMIC);
        hand_wait(&h);
        hand_host(&h, 70);
        hand_touch(&h, 0, 4 * BLOCK, UM_ACCESS_READ);
    }
    cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
    /* In while the CPU still writes, from its first byte on; back from when the launch can begin. */
    expect_ns(bounds.least_ns, 3 * (1000 + 4 * BLOCK), 3 * 4);
}

Test(sim_bounds, streams_run_side_by_side_and_launches_of_one_do_not)
{
    um_machine_t machine = plain_machine(2, 1);
    um_bounds_t bounds;
    hand_t h;

    for (uint64_t streams = 1; streams <= 4; streams *= 2) {
        hand_begin(&h, 4 * BLOCK);
        for (uint64_t i = 0; i < 8; i++)
            hand_launch(&h, 1 + i % streams, 1000);
        cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
        cr_assert_eq(bounds.least_ns, 8000 / streams);
        cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 2.5, &bounds), UM_OK);
        cr_assert_eq(bounds.least_ns, 20000 / streams);
    }
}

Test(sim_bounds, the_first_touch_populates_the_host)
{
    um_machine_t machine = plain_machine(2, 1);
    um_bounds_t bounds;
    hand_t h;

    machine.populate_host_ns_per_mib = 3000;
    machine.host_alloc_ns_per_mib = 2000; /* by way of the GPU */
    hand_begin(&h, 4 * BLOCK + 4096);     /* the last page's block may be another's, too */
    hand_host(&h, 70);
    hand_touch(&h, 0, 4 * BLOCK + 4096, UM_ACCESS_WRITE);
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
    cr_assert_eq(bounds.least_ns, 8 * 2000 + 10);
    machine.coherent = true; /* the CPU can do with the GPU's memory */
    cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
    cr_assert_eq(bounds.least_ns, 70 + 10);
}

Test(sim_bounds, pages_that_allocations_share_count_for_none)
{
    hand_t h;
    um_event_t *event;

    hand_begin(&h, 8192 + 100);
    event = hand_event(&h, UM_EV_REGION_ALLOC, 0, 0);
    event->u.region_alloc = (um_ev_region_alloc_t){.region = 2,
                                                   .family = UM_FAMILY_MANAGED,
                                                   .addr = HAND_ADDR + 8192 + 256,
                                                   .bytes = 8192};
    hand_host(&h, 10);
    hand_touch(&h, 0, 8192 + 100, UM_ACCESS_WRITE);
    hand_touch(&h, 8192 + 256, 8192, UM_ACCESS_WRITE);
    h.touch[1].region = 2;
    hand_launch(&h, 0, 10);
    hand_touch(&h, 0, 8192 + 100, UM_ACCESS_READ);
    hand_touch(&h, 8192 + 256, 8192, UM_ACCESS_READ);
    h.touch[3].region = 2;
    cr_assert_eq(find(&h, BLOCK).least_to_device, 8192 + 4096);
}

/* Waits, calls and the CPU's own work as the simulator has them. */
Test(sim_bounds, calls_take_their_time)
{
    um_machine_t machine = plain_machine(2, 1);
    um_bounds_t bounds;
    hand_t h;

    machine.launch_call_ns = 100;
    machine.kernel_start_ns = 7;
    machine.sync_call_ns = 30;
    hand_begin(&h, BLOCK);
    for (int i = 0; i < 10; i++) {
        hand_launch(&h, 0, 50);
        hand_wait(&h);
    }
    cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
    cr_assert_eq(bounds.least_ns, 10 * (100 + 30));
    for (int i = 0; i < 20; i++)
        h.step[1 + i].cpu_ns = i % 2 ? 0 : 500; /* between a wait and a launch */
    cr_assert_eq(um_bounds_find(&h.w, &machine, 0, 1, &bounds), UM_OK);
    cr_assert_eq(bounds.least_ns, 10 * (500 + 100 + 30));
}

/* Arguments that are touched in runs at equal distances: found, brought run by run, and given up. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define KERNEL   7u
#define BYTES    (240 * MIB)
#define LEFT_OUT (8 * MIB) /* at most, to learn from */

/* What the kernel touches. */
static struct {
    uint64_t first, run, stride;
} truth;

static void define(void)
{
    um_event_t event = {.type = UM_EV_KERNEL, .time_ns = tick()};

    event.u.kernel = (um_ev_kernel_t){.kernel = KERNEL, .name = "column", .module_hash = 5};
    feed(event);
}

static void start(uint64_t first, uint64_t run, uint64_t stride)
{
    truth.first = first;
    truth.run = run;
    truth.stride = stride;
    program_start("first_touch,ahead", NULL);
    define();
    allocate(1, 0, BYTES);
}

static bool is_touched(uint64_t offset)
{
    return offset >= truth.first && (offset - truth.first) % truth.stride < truth.run;
}

/* The CPU writes all of it, the kernel takes its runs. Returns the number of the first hint. */
static unsigned round_of(void)
{
    um_arg_t arg = {.region = 1};
    um_event_t event;
    unsigned first = program.n_hints;

    program.tables.now_ns += 10000000;
    touch(0, BYTES);
    event = event_launch(tick(), ++program.correlation, &arg, 1);
    event.u.launch.kernel = KERNEL;
    event.u.launch.grid[0] = 1000;
    event.u.launch.block[0] = 256;
    tick();
    feed(event);
    for (uint64_t at = 0; at < BYTES; at += 65536)
        if (is_touched(at))
            fake_set(&program.tables, at, 65536, false);
    wait_all();
    return first;
}

static uint64_t touched_bytes(void)
{
    uint64_t bytes = 0;

    for (uint64_t at = 0; at < BYTES; at += 65536)
        bytes += is_touched(at) ? 65536 : 0;
    return bytes;
}

/* Bytes brought since then, and how many of them nobody wanted. */
static uint64_t brought(unsigned first, uint64_t *in_vain)
{
    uint64_t bytes = 0;

    *in_vain = 0;
    for (unsigned i = first; i < program.n_hints; i++) {
        const um_hint_t *hint = &program.hint[i];

        if (hint->device < 0)
            continue;
        bytes += hint->bytes;
        for (uint64_t at = 0; at < hint->bytes; at += 65536)
            *in_vain += is_touched(hint->addr - FAKE_BASE + at) ? 0 : 65536;
    }
    return bytes;
}

/* After so many rounds, of one round. */
static uint64_t brought_after(unsigned rounds, uint64_t *in_vain)
{
    while (rounds--)
        round_of();
    return brought(round_of(), in_vain);
}

Test(footprint_stride, sparse_runs_are_brought_one_by_one)
{
    uint64_t in_vain, bytes;

    start(0, 4 * MIB, 24 * MIB);
    bytes = brought_after(6, &in_vain);
    cr_assert_leq(bytes, touched_bytes());
    cr_assert_geq(bytes + LEFT_OUT, touched_bytes());
    cr_assert_eq(in_vain, 0);
    program_stop();
}

Test(footprint_stride, denser_ones_too_once_a_launch_was_left_to_its_faults)
{
    uint64_t in_vain, bytes;
    unsigned left = 0;

    start(2 * MIB, 10 * MIB, 20 * MIB);
    for (int i = 0; i < 40; i++)
        left += brought(round_of(), &in_vain) == 0;
    cr_assert_eq(left, 1, "once");
    bytes = brought(round_of(), &in_vain);
    cr_assert_eq(in_vain, 0);
    cr_assert_geq(bytes + LEFT_OUT, touched_bytes());
    program_stop();
}

Test(footprint_stride, strides_need_not_be_whole_blocks)
{
    uint64_t in_vain, bytes;

    start(0, 4 * MIB, 27 * MIB - 65536);
    bytes = brought_after(6, &in_vain);
    cr_assert_geq(bytes, touched_bytes());
    cr_assert_leq(in_vain, 9 * 4 * UM_BLOCK_BYTES, "a block or two beside each run");
    program_stop();
}

Test(footprint_stride, small_gaps_are_not_worth_it)
{
    uint64_t in_vain;

    start(0, 6 * MIB, 8 * MIB);
    brought_after(40, &in_vain);
    cr_assert_gt(in_vain, 40 * MIB);
    program_stop();
}

Test(footprint_stride, what_is_irregular_is_none)
{
    uint64_t in_vain;

    start(0, 4 * MIB, 24 * MIB);
    for (int i = 0; i < 40; i++) {
        truth.stride = 24 * MIB + (uint64_t)(i * 7 % 5) * 2 * MIB; /* another one each time */
        round_of();
    }
    cr_assert_leq(brought(round_of(), &in_vain), BYTES);
    program_stop();
}

Test(footprint_stride, is_given_up_when_the_gaps_are_touched)
{
    uint64_t in_vain, bytes = 0;

    start(0, 4 * MIB, 24 * MIB);
    cr_assert_geq(brought_after(8, &in_vain) + LEFT_OUT, touched_bytes());
    cr_assert_eq(in_vain, 0);
    truth.run = truth.stride; /* all of it, from now on */
    for (int i = 0; i < 80 && bytes + 16 * MIB < BYTES; i++)
        bytes = brought(round_of(), &in_vain);
    cr_assert_geq(bytes + 16 * MIB, BYTES);
    program_stop();
}

/* ---- another run ---- */

static um_event_t known[16];
static unsigned n_known;

static void keep_all(void *ctx, const um_event_t *event)
{
    (void)ctx;
    if (strcmp(event->u.learned.who, "footprint") != 0)
        return;
    cr_assert_lt(n_known, 16);
    known[n_known] = *event;
    known[n_known++].u.learned.kernel = "column";
}

static void another_run(void)
{
    n_known = 0;
    um_hinter_learned(program.hinter, keep_all, NULL);
    program_stop();
    program = (program_t){.free_bytes = 4096 * MIB};
    program_start("first_touch,ahead", NULL);
}

static void tell_all(void)
{
    for (unsigned i = 0; i < n_known; i++) {
        known[i].u.learned.age = 1;
        feed(known[i]);
    }
    define();
    allocate(1, 0, BYTES);
}

Test(footprint_stride, another_run_knows_it)
{
    uint64_t in_vain;

    start(4 * MIB, 4 * MIB, 24 * MIB);
    brought_after(6, &in_vain);
    another_run();
    cr_assert_eq(n_known, 2);
    cr_assert_str_eq(known[1].u.learned.what, "stride");
    cr_assert_eq(known[1].u.learned.value[0], 4 * MIB);
    cr_assert_eq(known[1].u.learned.value[1], 4 * MIB);
    cr_assert_eq(known[1].u.learned.value[2], 24 * MIB);
    tell_all();
    cr_assert_geq(brought(round_of(), &in_vain) + LEFT_OUT, touched_bytes());
    cr_assert_eq(in_vain, 0);
    program_stop();
}

Test(footprint_stride, nonsense_of_another_run_does_nothing)
{
    static const uint64_t nonsense[][3] = {{0, 0, 24 * MIB},
                                           {0, 24 * MIB, 24 * MIB},
                                           {0, 4 * MIB, 6 * MIB},
                                           {0, 4 * MIB, UINT64_MAX},
                                           {UINT64_MAX, 4 * MIB, 24 * MIB},
                                           {0, UINT64_MAX, 24 * MIB},
                                           {(uint64_t)1 << 62, 4 * MIB, 24 * MIB},
                                           {0, 4 * MIB, (uint64_t)1 << 62}};
    uint64_t in_vain;

    start(0, 4 * MIB, 24 * MIB);
    brought_after(6, &in_vain);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        another_run();
        for (unsigned k = 0; k < n_known; k++)
            if (strcmp(known[k].u.learned.what, "stride") == 0)
                memcpy(known[k].u.learned.value, nonsense[i], sizeof(nonsense[i]));
        tell_all();
        for (int r = 0; r < 10; r++)
            round_of();
        cr_assert_eq(brought(round_of(), &in_vain) % 65536, 0);
        truth.stride = 24 * MIB;
    }
    program_stop();
}

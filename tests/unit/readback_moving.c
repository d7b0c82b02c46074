/* What the CPU reads after a wait, where it is somewhere else each time. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define SLICE  (4 * MIB)
#define SLICES 16u
#define SECOND (128 * MIB) /* offset of region 2 */

static uint64_t slice_bytes = SLICE;

typedef struct slice {
    uint32_t region;
    uint64_t at; /* from the start of the region */
} slice_t;

static void start(void)
{
    program_start("first_touch,ahead,readback", NULL);
    allocate(1, 0, SLICES * SLICE);
    allocate(2, SECOND, SLICES * SLICE);
}

/* Kernel 7 makes one slice of another; then the CPU waits. How many hints for the CPU that was. */
static unsigned transform(slice_t in, slice_t out)
{
    slice_t slice[] = {in, out};
    um_arg_t arg[2];
    um_event_t event;
    unsigned before = program.n_hints;

    for (uint32_t i = 0; i < 2; i++)
        arg[i] =
            (um_arg_t){.slot = i, .region = slice[i].region, .region_offset_bytes = slice[i].at};
    event = event_launch(tick(), ++program.correlation, arg, 2);
    event.u.launch.kernel = 7;
    tick();
    feed(event);
    for (uint32_t i = 0; i < 2; i++)
        fake_set(&program.tables, program.region[slice[i].region].offset + slice[i].at, slice_bytes,
                 false);
    before = program.n_hints;
    wait_all();
    return program.n_hints - before;
}

static slice_t slice_of(uint32_t region, uint64_t n)
{
    return (slice_t){region, n % SLICES * slice_bytes};
}

static void cpu(slice_t slice)
{
    touch(program.region[slice.region].offset + slice.at, slice_bytes);
}

/* The i-th round of a pool that gives out slices in turn: the CPU fills one, reads another. */
static unsigned pool_round(uint64_t i, bool read)
{
    slice_t in = slice_of(1, 2 * i), out = slice_of(1, 2 * i + 1);
    unsigned made;

    cpu(in);
    made = transform(in, out);
    if (read)
        cpu(out);
    return made;
}

static const um_hint_t *last_hint(void)
{
    return &program.hint[program.n_hints - 1];
}

/* ---- arguments ---- */

Test(readback_moving, an_argument_read_twice_is_brought_wherever_it_is_next)
{
    start();
    for (uint64_t i = 0; i < 3; i++)
        cr_assert_eq(pool_round(i, true), 0, "round %lu", i);
    for (uint64_t i = 3; i < 6; i++) {
        cr_assert_eq(pool_round(i, true), 1, "round %lu", i);
        cr_assert_str_eq(last_hint()->who, "readback");
        cr_assert_eq(last_hint()->device, UM_DEVICE_HOST);
        cr_assert_eq(last_hint()->order, UM_ORDER_AFTER);
        cr_assert_eq(last_hint()->addr, FAKE_BASE + slice_of(1, 2 * i + 1).at);
        cr_assert_eq(last_hint()->bytes, SLICE);
    }
    program_stop();
}

Test(readback_moving, from_region_to_region)
{
    static const uint64_t out[] = {1, 9, 4, 12, 7, 2, 14, 5};

    start();
    for (unsigned i = 0; i < 8; i++) {
        slice_t in = slice_of(1 + i % 2, 3 * i), to = slice_of(2 - i % 2, out[i]);

        cpu(in);
        cr_assert_eq(transform(in, to), i >= 3, "round %u", i);
        if (i >= 3)
            cr_assert_eq(last_hint()->addr, FAKE_BASE + program.region[to.region].offset + to.at);
        cpu(to);
    }
    program_stop();
}

/* What the CPU fills for the launch to come lies right behind what it has read. */
Test(readback_moving, what_is_written_for_the_next_launch_was_not_read)
{
    start();
    for (uint64_t i = 0; i < 20; i++)
        if (pool_round(i, true)) {
            cr_assert_leq(last_hint()->bytes, SLICE);
            cr_assert_geq(last_hint()->addr, FAKE_BASE + slice_of(1, 2 * i + 1).at);
            cr_assert_leq(last_hint()->addr + last_hint()->bytes,
                          FAKE_BASE + slice_of(1, 2 * i + 1).at + SLICE);
        }
    cr_assert_geq(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 17);
    program_stop();
}

/* A block may hold the end of what was read and the beginning of what is written for the next launch. */
Test(readback_moving, slices_that_share_blocks_are_told_apart)
{
    unsigned served = 0;

    slice_bytes = SLICE - 300 * UM_PAGE_BYTES;
    start();
    for (uint64_t i = 0; i < 24; i++) {
        unsigned first = program.n_hints;
        slice_t out = slice_of(1, 2 * i + 1);

        pool_round(i, true);
        for (unsigned h = first; h < program.n_hints; h++) {
            const um_hint_t *hint = &program.hint[h];

            if (hint->device != UM_DEVICE_HOST)
                continue;
            served++;
            cr_assert_geq(hint->addr, FAKE_BASE + out.at, "round %lu", i);
            cr_assert_leq(hint->addr + hint->bytes, FAKE_BASE + out.at + slice_bytes, "round %lu",
                          i);
        }
    }
    cr_assert_geq(served, 16, "%u", served);
    program_stop();
}

/* The launch itself tells where it ends: what lies behind is another argument's, and stays with the GPU. */
Test(readback_moving, what_is_brought_ends_where_another_argument_begins)
{
    slice_t weights = {2, 40 * MIB};

    start();
    for (uint64_t i = 0; i < 6; i++) {
        slice_t out = slice_of(2, i);

        transform(weights, out);
        cpu(out);
    }
    cr_assert_eq(transform(weights, (slice_t){2, weights.at - SLICE / 2}), 1);
    cr_assert_eq(last_hint()->addr, FAKE_BASE + SECOND + weights.at - SLICE / 2);
    cr_assert_eq(last_hint()->bytes, SLICE / 2);
    program_stop();
}

Test(readback_moving, an_argument_that_nobody_reads_stays)
{
    start();
    for (uint64_t i = 0; i < 64; i++)
        cr_assert_eq(pool_round(i, false), 0, "round %lu", i);
    program_stop();
}

/* Looking costs: it is rare where it has never told anything. */
Test(readback_moving, an_argument_that_nobody_reads_is_seldom_looked_at)
{
    start();
    for (uint64_t i = 0; i < 128; i++)
        transform(slice_of(1, 0), slice_of(2, i));
    program.tables.looks = 0;
    for (uint64_t i = 128; i < 256; i++)
        transform(slice_of(1, 0), slice_of(2, i));
    cr_assert_leq(program.tables.looks, 24, "%u", program.tables.looks);
    program_stop();
}

Test(readback_moving, stops_when_the_cpu_stops_reading)
{
    unsigned late = 0;

    start();
    for (uint64_t i = 0; i < 20; i++)
        pool_round(i, true);
    for (uint64_t i = 20; i < 60; i++) {
        unsigned made = pool_round(i, false);

        late += i >= 40 && made;
    }
    cr_assert_eq(late, 0);
    for (uint64_t i = 60; i < 90; i++)
        late += pool_round(i, true);
    cr_assert_geq(late, 8); /* learned anew, if not at once */
    program_stop();
}

Test(readback_moving, another_run_acts_at_the_first_wait)
{
    start();
    for (uint64_t i = 0; i < 8; i++)
        pool_round(i, true);
    program_stop_and_keep("readback");
    cr_assert_eq(kept.n, 1);
    program_start_again("first_touch,ahead,readback", 1);
    allocate(3, 0, SLICES * SLICE);
    for (uint64_t i = 5; i < 8; i++) {
        slice_t in = slice_of(3, 2 * i), out = slice_of(3, 2 * i + 1);

        cpu(in);
        cr_assert_eq(transform(in, out), 1, "round %lu", i);
        cr_assert_eq(last_hint()->addr, FAKE_BASE + out.at);
        cr_assert_eq(last_hint()->bytes, SLICE);
        cpu(out);
    }
    program_stop();
}

Test(readback_moving, another_run_that_does_not_read_is_told_of_it)
{
    unsigned made = 0;

    start();
    for (uint64_t i = 0; i < 8; i++)
        pool_round(i, true);
    program_stop_and_keep("readback");
    program_start_again("first_touch,ahead,readback", 1);
    allocate(1, 0, SLICES * SLICE);
    for (uint64_t i = 0; i < 40; i++)
        made += pool_round(i, false);
    cr_assert_leq(made, 12);
    program_stop_and_keep("readback");
    cr_assert_eq(kept.n, 1);
    cr_assert_eq(kept.event[0].u.learned.count, 0);
}

/* ---- windows ---- */

/* The GPU takes all of region 1, the CPU then a part of it. */
static unsigned update(uint64_t at, uint64_t bytes)
{
    unsigned made;

    run(8, 1);
    made = wait_all();
    touch(at, bytes);
    return made;
}

Test(readback_moving, a_window_is_followed_and_begins_again)
{
    start();
    for (uint64_t i = 0; i < 3; i++)
        cr_assert_eq(update(i * SLICE, SLICE), 0);
    for (uint64_t i = 3; i < 40; i++) {
        cr_assert_eq(update(i % SLICES * SLICE, SLICE), 1, "round %lu", i);
        cr_assert_eq(last_hint()->addr, FAKE_BASE + i % SLICES * SLICE, "round %lu", i);
        cr_assert_leq(last_hint()->bytes, SLICE);
        cr_assert_geq(last_hint()->bytes, SLICE - UM_BLOCK_BYTES);
    }
    program_stop();
}

Test(readback_moving, a_window_goes_backwards_too)
{
    start();
    for (uint64_t i = 0; i < 20; i++)
        if (update((SLICES - 1 - i % SLICES) * SLICE, SLICE))
            cr_assert_eq(last_hint()->addr, FAKE_BASE + (SLICES - 1 - i % SLICES) * SLICE);
    cr_assert_eq(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 17);
    program_stop();
}

/* Steps are known to a block or so: what the CPU takes beside what was brought puts it right. */
Test(readback_moving, a_window_that_went_farther_is_caught_up_with)
{
    start();
    for (uint64_t i = 0; i < 6; i++)
        update(i * SLICE, SLICE);
    update(6 * SLICE + MIB, SLICE);
    cr_assert_eq(last_hint()->addr, FAKE_BASE + 6 * SLICE);
    update(7 * SLICE + MIB, SLICE);
    cr_assert_eq(last_hint()->addr, FAKE_BASE + 7 * SLICE + MIB);
    program_stop();
}

/* One read where it was not foreseen is enough. */
Test(readback_moving, a_window_that_jumps_is_not_guessed_any_more)
{
    static const uint64_t then[] = {12, 3, 9, 1, 14, 6, 10, 2, 13};
    unsigned wrong = 0;

    start();
    for (uint64_t i = 0; i < 6; i++)
        update(i * SLICE, SLICE);
    for (unsigned i = 0; i < 9; i++)
        wrong += update(then[i] * SLICE, SLICE);
    cr_assert_leq(wrong, 2);
    program_stop();
}

Test(readback_moving, what_has_no_rule_is_not_guessed)
{
    static const uint64_t where[] = {0, 3, 1, 6, 9, 2, 12, 5, 14, 8, 4, 10};

    start();
    for (unsigned i = 0; i < 12; i++)
        cr_assert_eq(update(where[i] * SLICE, SLICE), 0, "round %u", i);
    program_stop();
}

Test(readback_moving, where_a_window_will_be_is_not_told_to_another_run)
{
    start();
    for (uint64_t i = 0; i < 12; i++)
        update(i * SLICE, SLICE);
    program_stop_and_keep("readback");
    cr_assert_eq(kept.n, 0);
}

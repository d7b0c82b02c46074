/* lookahead: what it brings for launches to come, and what it leaves alone. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define WHO      "lookahead"
#define ADVISORS "first_touch,ahead,lookahead"
#define BYTES    (32 * MIB)

static uint64_t at(uint32_t region)
{
    return (region - 1) * BYTES;
}

static void define(uint32_t n)
{
    for (uint32_t k = 1; k <= n; k++) {
        um_event_t event = {.type = UM_EV_KERNEL, .time_ns = tick()};
        char name[16];

        snprintf(name, sizeof(name), "kernel%u", k);
        event.u.kernel = (um_ev_kernel_t){.kernel = k, .name = name};
        feed(event);
    }
}

static void place_regions(uint32_t n)
{
    for (uint32_t r = 1; r <= n; r++)
        allocate(r, at(r), BYTES);
}

static void start(void)
{
    program_start(ADVISORS, NULL);
    define(4);
    place_regions(4);
}

/* All that has happened has been seen; returns the bytes that are brought ahead by it. */
static uint64_t rest(void)
{
    unsigned first = program.n_hints;
    uint64_t bytes;

    for (int drains = 0; drains < 70; drains++)
        program.sink.idle(program.sink.ctx);
    hints_by(first, WHO, UM_HINT_PREFETCH, &bytes);
    return bytes;
}

/* The CPU reads `bytes` of what kernel 1 made while kernel 2 runs; then it starts anew. Returns what was
 * brought ahead in the round. */
static uint64_t round_of(uint64_t bytes)
{
    uint64_t brought = 0;

    run(1, 1);
    wait_all();
    touch(at(1), bytes);
    run(2, 2);
    brought += rest();
    wait_all();
    brought += rest();
    return brought;
}

Test(lookahead, is_there_for_who_asks_for_it)
{
    bool there = false;

    for (const um_advisor_ops_t *const *a = um_advisor_table; *a; a++)
        there |= strcmp((*a)->name, WHO) == 0;
    cr_assert(there);
    cr_assert_null(strstr(UM_ADVISORS_DEFAULT, WHO));
}

Test(lookahead, brings_a_block_first_and_all_once_that_was_still_there)
{
    unsigned n = 0;
    uint64_t last = 0;

    start();
    for (; n < 20 && !last; n++)
        last = round_of(16 * MIB);
    cr_assert_gt(n, 5, "nothing is tried with what is hardly known");
    cr_assert_eq(last, UM_BLOCK_BYTES);
    cr_assert_eq(round_of(16 * MIB), 16 * MIB);
    cr_assert_eq(round_of(16 * MIB), 16 * MIB);
    cr_assert_eq(round_of(8 * MIB), 8 * MIB);
    program_stop();
}

Test(lookahead, the_launch_finds_it_there)
{
    unsigned first;

    start();
    for (int i = 0; i < 12; i++)
        round_of(16 * MIB);
    first = program.n_hints;
    round_of(16 * MIB);
    cr_assert_eq(hints_by(first, "ahead", UM_HINT_PREFETCH, NULL), 0);
    cr_assert_eq(hints_by(first, WHO, UM_HINT_PREFETCH, NULL), 1);
    cr_assert_eq(program.hint[program.n_hints - 1].order, UM_ORDER_IDLE);
    cr_assert_eq(program.hint[program.n_hints - 1].device, FAKE_GPU);
    program_stop();
}

Test(lookahead, never_brings_for_the_launch_at_hand)
{
    start();
    for (int i = 0; i < 20; i++) {
        touch(at(1), BYTES);
        run(1, 1);
        wait_all();
    }
    cr_assert_eq(hints_by(0, WHO, UM_HINT_PREFETCH, NULL), 0);
    program_stop();
}

Test(lookahead, leaves_alone_what_the_cpu_writes_until_the_launch)
{
    uint64_t bytes;

    start();
    for (int i = 0; i < 100; i++) {
        run(2, 2);
        wait_all();
        touch(at(1), 16 * MIB);
        rest(); /* in the middle of its phase */
        touch(at(1), 16 * MIB);
        run(1, 1);
        wait_all();
    }
    hints_by(0, WHO, UM_HINT_PREFETCH, &bytes);
    cr_assert_leq(bytes, 10 * UM_BLOCK_BYTES, "%lu KiB of 1.6 GiB", (unsigned long)(bytes >> 10));
    program_stop();
}

Test(lookahead, gives_up_where_the_launch_does_not_come)
{
    uint64_t bytes, settled;

    start();
    for (int i = 0; i < 12; i++)
        round_of(16 * MIB);
    hints_by(0, WHO, UM_HINT_PREFETCH, &settled);
    for (int i = 0; i < 60; i++) { /* what comes after kernel 2 is never again what it was */
        run(1, 1);
        wait_all();
        touch(at(1), 16 * MIB);
        run(2, 2);
        rest();
        touch(at(1), 16 * MIB); /* the CPU uses it once more, instead */
        for (int k = 0; k < 20; k++)
            run(3 + (uint32_t)(i * 7 + k) % 2, 3);
    }
    hints_by(0, WHO, UM_HINT_PREFETCH, &bytes);
    cr_assert_lt(bytes - settled, 15 * 16 * MIB);
    program_stop();
}

Test(lookahead, pushes_nothing_out)
{
    unsigned first;

    start();
    for (int i = 0; i < 12; i++)
        round_of(16 * MIB);
    program.free_bytes = 8 * MIB;
    program.tables.now_ns += 1000000000; /* free memory is asked for now and then */
    first = program.n_hints;
    for (int i = 0; i < 4; i++)
        round_of(16 * MIB);
    cr_assert_eq(hints_by(first, WHO, UM_HINT_PREFETCH, NULL), 0);
    program_stop();
}

Test(lookahead, looks_no_further_than_it_is_told)
{
    setenv("UMRT_LOOKAHEAD_STEPS", "1", 1);
    start();
    for (int i = 0; i < 20; i++)
        round_of(16 * MIB);
    for (unsigned i = 0; i < program.n_hints; i++)
        if (strcmp(program.hint[i].who, WHO) == 0)
            cr_assert_geq(program.hint[i].addr, FAKE_BASE);
    unsetenv("UMRT_LOOKAHEAD_STEPS");
    program_stop();
}

/* ---- another run ---- */

static um_event_t known[256];
static char known_kernel[256][16];
static unsigned n_known;

static void keep_all(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_lt(n_known, 256);
    known[n_known] = *event;
    snprintf(known_kernel[n_known], sizeof(known_kernel[0]), "%s", event->u.learned.kernel);
    known[n_known].u.learned.kernel = known_kernel[n_known];
    n_known++;
}

static void another_run(void)
{
    um_event_t context = {.type = UM_EV_CONTEXT};

    n_known = 0;
    um_hinter_learned(program.hinter, keep_all, NULL);
    program_stop();
    program = (program_t){.free_bytes = 4096 * MIB};
    program_start(ADVISORS, NULL);
    context.u.context =
        (um_ev_context_t){.context = 1, .device = FAKE_GPU, .change = UM_CONTEXT_CREATED};
    feed(context);
    for (unsigned i = 0; i < n_known; i++) {
        known[i].u.learned.age = 1;
        feed(known[i]);
    }
}

/* Region 1 is written by the CPU before its kernel, 2 too, 3 never is. */
static void first_launches(void)
{
    touch(at(1), BYTES);
    touch(at(2), BYTES);
    run(1, 1);
    rest();
    wait_all();
    run(2, 2);
    wait_all();
    run(3, 3);
    wait_all();
}

Test(lookahead, another_run_populates_at_the_allocation)
{
    unsigned first;
    uint64_t bytes;

    start();
    first_launches();
    cr_assert_eq(hints_by(0, WHO, UM_HINT_PREFETCH, NULL), 0, "nobody could know");
    another_run();
    place_regions(2);
    cr_assert_eq(rest(), 0, "the CPU will write them first");
    allocate(3, at(3), BYTES);
    cr_assert_eq(rest(), BYTES);
    for (unsigned i = 0; i < program.n_hints; i++)
        cr_assert_eq(program.hint[i].addr, FAKE_BASE + at(3));
    touch(at(1), BYTES);
    touch(at(2), BYTES);
    define(4);
    first = program.n_hints;
    run(1, 1);
    cr_assert_eq(hints_by(first, "ahead", UM_HINT_PREFETCH, NULL), 1);
    cr_assert_eq(rest(), BYTES, "and what the second one takes, as soon as the first one runs");
    first = program.n_hints;
    wait_all();
    run(2, 2);
    wait_all();
    run(3, 3);
    cr_assert_eq(hints_by(first, NULL, UM_HINT_PREFETCH, &bytes), 0, "all of it was there");
    program_stop();
}

Test(lookahead, another_run_takes_the_programs_word_first)
{
    um_event_t word = {.type = UM_EV_REGION_HINT};

    start();
    first_launches();
    another_run();
    place_regions(3);
    word.u.region_hint = (um_ev_region_hint_t){.region = 3, .flags = UM_REGION_HINT_CPU_FIRST};
    feed(word);
    cr_assert_eq(rest(), 0);
    program_stop();
}

Test(lookahead, another_run_that_does_otherwise_teaches_the_next_one)
{
    start();
    first_launches();
    another_run();
    place_regions(4);
    cr_assert_eq(rest(), BYTES);
    touch(at(3), BYTES); /* this time the CPU does write it */
    define(4);
    first_launches();
    another_run();
    place_regions(4);
    cr_assert_eq(rest(), 0);
    program_stop();
}

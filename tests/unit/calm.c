/* The rule of advisors/calm.c: what goes to and fro is kept with the CPU, and let go in time. */
#include <criterion/criterion.h>

#include "program_fake.h"

/* Region 1, written by the CPU. */
static void start(uint64_t bytes)
{
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, bytes);
    touch(0, bytes);
}

static unsigned kept_by_calm(unsigned first)
{
    return hints_by(first, "calm", UM_HINT_ACCESSED_BY, NULL);
}

static unsigned let_go_by_calm(unsigned first)
{
    return hints_by(first, "calm", UM_HINT_UNSET_ACCESSED_BY, NULL);
}

/* Does the GPU reach it where it is, by the hints so far? */
static bool is_kept(uint64_t offset)
{
    bool kept = false;

    for (unsigned i = 0; i < program.n_hints; i++) {
        const um_hint_t *hint = &program.hint[i];

        if (hint->addr > FAKE_BASE + offset || hint->addr + hint->bytes <= FAKE_BASE + offset)
            continue;
        kept |= hint->kind == UM_HINT_ACCESSED_BY;
        kept &= hint->kind != UM_HINT_UNSET_ACCESSED_BY;
    }
    return kept;
}

/* The GPU takes all of region 1 in `gpu_us`, the CPU takes back what is not kept. */
static void to_and_fro(uint64_t bytes, uint64_t gpu_us)
{
    run(7, 1);
    for (uint64_t at = 0; at < bytes; at += UM_PAGE_BYTES)
        if (is_kept(at))
            fake_set(&program.tables, at, UM_PAGE_BYTES, true);
    program.tables.now_ns += gpu_us * 1000;
    wait_all();
    touch(0, bytes);
}

Test(calm, keeps_a_small_range_once_it_has_come_back_twice)
{
    unsigned n;

    start(4 * MIB);
    for (int i = 0; i < 6; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert_eq(hints_by(0, "calm", UM_HINT_PREFERRED_LOCATION, NULL), 1);
    for (unsigned i = 0; i < program.n_hints; i++)
        if (program.hint[i].kind == UM_HINT_ACCESSED_BY) {
            cr_assert_eq(program.hint[i].device, FAKE_GPU);
            cr_assert_eq(program.hint[i].addr, FAKE_BASE);
            cr_assert_eq(program.hint[i].bytes, 4 * MIB);
        } else if (program.hint[i].kind == UM_HINT_PREFERRED_LOCATION) {
            cr_assert_eq(program.hint[i].device, UM_DEVICE_HOST);
        }
    /* ahead has been made to leave it alone */
    n = program.n_hints;
    for (int i = 0; i < 6; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(program.n_hints, n);
    program_stop();
}

Test(calm, of_a_large_range_tries_a_quarter_and_then_keeps_all_but_the_last_block)
{
    start(64 * MIB);
    for (int i = 0; i < 2; i++)
        to_and_fro(64 * MIB, 2000);
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert(is_kept(16 * MIB - 1) && !is_kept(16 * MIB));
    for (int i = 0; i < 4; i++)
        to_and_fro(64 * MIB, 2000);
    cr_assert_eq(kept_by_calm(0), 2);
    cr_assert(is_kept(62 * MIB - 1) && !is_kept(62 * MIB));
    cr_assert_eq(let_go_by_calm(0), 0);
    program_stop();
}

Test(calm, a_quarter_that_the_kernel_goes_through_often_is_let_go)
{
    start(64 * MIB);
    to_and_fro(64 * MIB, 2000);
    to_and_fro(64 * MIB, 40000); /* a quarter is kept: twenty times through it */
    cr_assert_eq(kept_by_calm(0), 1);
    to_and_fro(64 * MIB, 2000);
    cr_assert_eq(let_go_by_calm(0), 1);
    cr_assert_eq(hints_by(0, "calm", UM_HINT_UNSET_PREFERRED_LOCATION, NULL), 1);
    for (int i = 0; i < 6; i++)
        to_and_fro(64 * MIB, 2000);
    program_stop();
}

/* Nothing is known yet but the first round, in which all came by faults as well. */
Test(calm, a_quarter_is_not_let_go_for_a_wait_no_longer_than_the_first)
{
    start(64 * MIB);
    to_and_fro(64 * MIB, 4500);
    to_and_fro(64 * MIB, 4500);
    cr_assert_eq(kept_by_calm(0), 1);
    for (int i = 0; i < 3; i++)
        to_and_fro(64 * MIB, 2000);
    cr_assert_eq(let_go_by_calm(0), 0);
    cr_assert(is_kept(62 * MIB - 1));
    program_stop();
}

Test(calm, where_the_gpu_computes_long_the_trial_is_held_against_the_waits_before)
{
    start(64 * MIB);
    to_and_fro(64 * MIB, 90000);
    to_and_fro(64 * MIB, 60000);
    cr_assert_eq(kept_by_calm(0), 0); /* the first wait has more in it than others */
    for (int i = 0; i < 5; i++)
        to_and_fro(64 * MIB, 60000);
    cr_assert_eq(kept_by_calm(0), 2);
    cr_assert(is_kept(0) && is_kept(62 * MIB - 1));
    program_stop();
}

Test(calm, lets_go_when_the_cpu_no_longer_comes_for_the_last_block)
{
    start(64 * MIB);
    for (int i = 0; i < 6; i++)
        to_and_fro(64 * MIB, 2000);
    cr_assert(is_kept(0) && is_kept(61 * MIB));
    for (int i = 0; i < 12; i++) {
        run(7, 1);
        if (!let_go_by_calm(0))
            fake_set(&program.tables, 0, 62 * MIB, true);
        wait_all();
    }
    cr_assert_eq(let_go_by_calm(0), 1);
    cr_assert(!is_kept(0) && !is_kept(61 * MIB));
    program_stop();
}

Test(calm, a_small_range_is_let_go_in_time_to_see_whether_it_still_comes_back)
{
    program_start("calm,ahead", NULL);
    allocate(1, 0, 4 * MIB);
    for (int i = 0; i < 6; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(kept_by_calm(0), 1);
    for (int i = 0; i < 140; i++) {
        run(7, 1);
        wait_all();
    }
    cr_assert_eq(let_go_by_calm(0), 1);
    cr_assert_eq(hints_by(0, "calm", UM_HINT_UNSET_PREFERRED_LOCATION, NULL), 1);
    cr_assert_eq(kept_by_calm(0), 1); /* it does not */
    program_stop();
}

Test(calm, lets_go_where_waits_become_longer_than_the_cpu_saves)
{
    unsigned i;

    program_start("calm,ahead", NULL);
    allocate(1, 0, 4 * MIB);
    for (i = 0; i < 6; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(kept_by_calm(0), 1);
    for (i = 0; i < 3 && !let_go_by_calm(0); i++)
        to_and_fro(4 * MIB, 5000);
    cr_assert_eq(let_go_by_calm(0), 1);
    program_stop();
}

Test(calm, leaves_alone_what_the_gpu_uses_often_between)
{
    program_start("calm", NULL);
    allocate(1, 0, 64 * MIB);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 8; k++)
            run(7, 1);
        to_and_fro(64 * MIB, 100);
    }
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

Test(calm, leaves_alone_what_does_not_come_back)
{
    program_start("calm", NULL);
    allocate(1, 0, 64 * MIB);
    for (uint64_t i = 0; i < 20; i++) {
        run(7, 1);
        wait_all();
        touch(i * 3 * MIB, MIB); /* elsewhere each time */
        record(1, i * 3 * MIB, MIB, UM_DEVICE_HOST, UM_CAUSE_COHERENCE);
    }
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

Test(calm, leaves_alone_what_is_larger_than_its_limit)
{
    setenv("UMRT_CALM_LIMIT", "64M", 1);
    program_start("calm", NULL);
    allocate(1, 0, 128 * MIB);
    for (int i = 0; i < 20; i++)
        to_and_fro(128 * MIB, 100);
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

Test(calm, leaves_alone_what_moves_on_from_round_to_round)
{
    start(128 * MIB);
    for (uint64_t i = 0; i < 24; i++) {
        run(7, 1);
        program.tables.now_ns += 4000000;
        wait_all();
        touch(i % 8 * 16 * MIB, 16 * MIB); /* another eighth each time */
    }
    for (unsigned i = 0; i < program.n_hints; i++)
        if (program.hint[i].kind == UM_HINT_ACCESSED_BY)
            cr_assert_leq(program.hint[i].bytes, 4 * MIB); /* a trial, at most */
    cr_assert_leq(kept_by_calm(0), 3);
    program_stop();
}

Test(calm, keeps_what_readback_would_bring_to_the_cpu_each_time)
{
    program_start("calm,first_touch,ahead,readback", NULL);
    allocate(1, 0, 4 * MIB);
    touch(0, 4 * MIB);
    for (int i = 0; i < 12; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(kept_by_calm(0), 1);
    program_stop();
}

Test(calm, keeps_a_tiny_region_that_is_with_the_cpu_again_and_again)
{
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 4096);
    for (int i = 0; i < 6; i++) {
        run(7, 1);
        wait_all();
        touch(0, 4096);
    }
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert(is_kept(0));
    program_stop();
}

/* As a traversal has them, which sets a flag in each step. */
Test(calm, a_tiny_region_is_not_let_go_where_waits_have_always_differed)
{
    start(UM_PAGE_BYTES);
    for (int i = 0; i < 6; i++) { /* the CPU does not look yet */
        run(7, 1);
        program.tables.now_ns += i % 3 == 1 ? 2000000 : 60000;
        wait_all();
    }
    for (int i = 0; i < 40; i++)
        to_and_fro(UM_PAGE_BYTES, i % 4 == 3 ? 2000 : 60);
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert_eq(let_go_by_calm(0), 0);
    program_stop();
}

Test(calm, leaves_a_tiny_region_alone_that_very_many_threads_may_hit)
{
    um_arg_t arg = {.region = 1};

    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 4096);
    for (int i = 0; i < 12; i++) {
        um_event_t event = event_launch(tick(), ++program.correlation, &arg, 1);

        event.u.launch.kernel = 7;
        for (int d = 0; d < 3; d++)
            event.u.launch.grid[d] = event.u.launch.block[d] = 1;
        event.u.launch.grid[0] = event.u.launch.block[0] = 1024;
        feed(event);
        fake_set(&program.tables, 0, 4096, false);
        wait_all();
        touch(0, 4096);
    }
    cr_assert_eq(kept_by_calm(0), 0);
    program_stop();
}

Test(calm, what_the_guard_has_taken_back_is_not_kept_again_soon)
{
    start(4 * MIB);
    for (int i = 0; i < 6; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(kept_by_calm(0), 1);
    hint_in_force("calm", UM_HINT_UNSET_ACCESSED_BY, 0, 4 * MIB);
    for (int i = 0; i < 20; i++) {
        run(7, 1);
        wait_all();
        touch(0, 4 * MIB);
    }
    cr_assert_eq(kept_by_calm(0), 1);
    program_stop();
}

static um_ev_learned_t learned_by_calm;

static void keep_learned(void *ctx, const um_event_t *event)
{
    (void)ctx;
    if (strcmp(event->u.learned.who, "calm") == 0)
        learned_by_calm = event->u.learned;
}

Test(calm, what_won_in_an_earlier_run_is_kept_from_the_first_launch_if_the_cpu_has_it)
{
    um_event_t event = {.type = UM_EV_LEARNED};

    start(64 * MIB);
    for (int i = 0; i < 8; i++)
        to_and_fro(64 * MIB, 2000);
    um_hinter_learned(program.hinter, keep_learned, NULL);
    cr_assert_neq(learned_by_calm.role, 0);
    program_stop();

    learned_by_calm.who = "calm";
    learned_by_calm.what = "kept";
    event.u.learned = learned_by_calm;
    program = (program_t){.free_bytes = 4096 * MIB};
    program_start("calm,first_touch,ahead", NULL);
    feed(event);
    allocate(1, 0, 64 * MIB);
    allocate(2, 64 * MIB, 64 * MIB); /* of the same role, but nobody has written it */
    touch(0, 64 * MIB);
    run(7, 2);
    cr_assert_eq(kept_by_calm(0), 0);
    run(7, 1);
    cr_assert(is_kept(0) && is_kept(61 * MIB) && !is_kept(62 * MIB));
    program_stop();
}

Test(calm, what_won_in_an_earlier_run_is_kept_when_it_is_new)
{
    start(64 * MIB);
    for (int i = 0; i < 8; i++)
        to_and_fro(64 * MIB, 2000);
    program_stop_and_keep("calm");
    program_start_again("calm,first_touch,ahead", 1);
    program_has_a_context();
    allocate(1, 0, 64 * MIB);
    cr_assert(is_kept(0) && is_kept(61 * MIB) && !is_kept(62 * MIB)); /* the witness */
    program_stop();
}

/* The wait of a round in which it was kept already does not stand for what it is like without. */
Test(calm, what_won_in_an_earlier_run_is_let_go_where_the_kernel_goes_through_it_often_now)
{
    start(64 * MIB);
    for (int i = 0; i < 8; i++)
        to_and_fro(64 * MIB, 2000);
    program_stop_and_keep("calm");
    program_start_again("calm,first_touch,ahead", 1);
    program_has_a_context();
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
    cr_assert(is_kept(0) && is_kept(61 * MIB));
    for (int i = 0; i < 4; i++)
        to_and_fro(64 * MIB, 16000);
    cr_assert_geq(let_go_by_calm(0), 1);
    program_stop();
}

/* Run one has kept 64 MiB; the profile is told otherwise. */
static void next_run(uint64_t first, uint64_t end)
{
    start(64 * MIB);
    for (int i = 0; i < 8; i++)
        to_and_fro(64 * MIB, 2000);
    program_stop_and_keep("calm");
    cr_assert_eq(kept.n, 1);
    kept.event[0].u.learned.value[1] = first;
    kept.event[0].u.learned.value[2] = end;
    program_start_again("calm,first_touch,ahead", 1);
    program_has_a_context();
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
    run(7, 1);
}

/* It would take hours to look at all of it. */
Test(calm, what_ends_beyond_its_region_in_a_profile_is_not_looked_at, .timeout = 300)
{
    static const uint64_t nonsense[][2] = {{0, (uint64_t)1 << 62},
                                           {64 * MIB, 128 * MIB},
                                           {UINT64_MAX - 1, UINT64_MAX}};

    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        next_run(nonsense[i][0], nonsense[i][1]);
        cr_assert_eq(kept_by_calm(0), 0);
        program_stop();
    }
    next_run(0, 64 * MIB);
    cr_assert_eq(kept_by_calm(0), 1);
    program_stop();
}

Test(calm, but_not_what_the_gpu_touches_first)
{
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 64 * MIB); /* nobody has written it */
    for (int i = 0; i < 8; i++)
        to_and_fro(64 * MIB, 2000);
    cr_assert_gt(kept_by_calm(0), 0);
    program_stop_and_keep("calm");
    program_start_again("calm,first_touch,ahead", 1);
    program_has_a_context();
    allocate(1, 0, 64 * MIB);
    cr_assert_eq(kept_by_calm(0), 0);
    program_stop();
}

/* A kernel that the link slows down, hidden in waits in which much else moves; every round is longer than the one
 * before. */
static void strided_rounds(int n, uint64_t slower_us, uint64_t longer_us)
{
    static const uint32_t both[] = {1, 2};

    for (int i = 0; i < n; i++) {
        uint64_t us = 1500 + (uint64_t)(i % 2) * 800 + (uint64_t)i * longer_us; /* phases differ */

        touch(64 * MIB, 64 * MIB);
        run_on(0, 7, 2, both);
        if (is_kept(0))
            touch(0, 4 * MIB);
        program.tables.now_ns += (is_kept(0) ? us + slower_us : us) * 1000;
        wait_all();
        touch(0, 4 * MIB);
    }
}

static void start_two(void)
{
    setenv("UMRT_CALM_LIMIT", "32M", 1); /* the other one is none of it */
    program = (program_t){.free_bytes = 4096 * MIB};
    start(4 * MIB);
    allocate(2, 64 * MIB, 64 * MIB);
}

Test(calm, lets_go_of_what_makes_phases_longer_though_waits_explain_it)
{
    start_two();
    strided_rounds(40, 0, 0);
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert_eq(let_go_by_calm(0), 0);
    program_stop();

    start_two();
    strided_rounds(40, 400, 0);
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert_eq(let_go_by_calm(0), 1);
    program_stop();
}

/* As where a model looks back over ever more. */
Test(calm, a_program_that_slows_down_by_itself_does_not_speak_against_it)
{
    start_two();
    strided_rounds(60, 0, 8);
    cr_assert_eq(kept_by_calm(0), 1);
    cr_assert_eq(let_go_by_calm(0), 0);
    program_stop();
}

/* An event of another thread may come later than what happened after it. */
Test(calm, a_wait_that_ended_before_the_launch_does_not_speak_against_it)
{
    start(64 * MIB);
    for (int i = 0; i < 8; i++)
        to_and_fro(64 * MIB, 2000);
    cr_assert(is_kept(0));
    for (int i = 0; i < 4; i++) {
        run(7, 1);
        feed(event_sync(program.tables.now_ns - 5000, UM_SYNC_DEVICE, 0, 1));
        touch(0, 64 * MIB);
        to_and_fro(64 * MIB, 2000);
    }
    cr_assert_eq(let_go_by_calm(0), 0);
    program_stop();
}

/* Its advice would be refused: it is brought as if there were no such advisor. */
Test(calm, what_comes_from_a_pool_is_left_to_others)
{
    um_region_t region = {.family = UM_FAMILY_MANAGED,
                          .addr = FAKE_BASE,
                          .bytes = 64 * MIB,
                          .id = 1,
                          .flags = UM_REGION_POOL | UM_REGION_ASYNC};
    um_event_t event = event_alloc(1, 1, FAKE_BASE, 64 * MIB);
    uint64_t bytes;
    unsigned last;

    program_start("calm,first_touch,ahead", NULL);
    cr_assert_eq(um_regions_add(program.regions, &region, NULL, 0, NULL), UM_OK);
    program.region[1].bytes = 64 * MIB;
    event.u.region_alloc.flags = region.flags;
    feed(event);
    touch(0, 64 * MIB);
    for (int i = 0; i < 8; i++) {
        last = program.n_hints;
        to_and_fro(64 * MIB, 2000);
    }
    cr_assert_eq(kept_by_calm(0), 0);
    hints_by(last, "ahead", UM_HINT_PREFETCH, &bytes);
    cr_assert_eq(bytes, 64 * MIB);
    program_stop();
}

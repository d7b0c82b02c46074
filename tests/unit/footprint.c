/* How much of an argument is brought, by what was learned of its kernel: events and page tables in, hints out. */
#include <criterion/criterion.h>

#include "model/footprint.h"

#include "footprint_fake.h"

Test(footprint, an_end_that_is_not_known_exactly_yet_is_looked_for_in_each_launch)
{
    start(256 * MIB);
    for (int i = 0; i < 4; i++)
        round_of(256 * MIB, 100 * MIB);
    cr_assert_leq(round_of(256 * MIB, 100 * MIB), 108 * MIB);
    program_stop();
}

Test(footprint, sentinels_are_few_and_become_fewer)
{
    uint64_t early = 0, late = 0;

    start(256 * MIB);
    for (int i = 0; i < 128; i++) {
        uint64_t left_out = 256 * MIB - round_of(256 * MIB, 256 * MIB);

        cr_assert_leq(left_out, 8 * MIB, "round %d", i);
        if (i < 64)
            early += left_out;
        else
            late += left_out;
    }
    cr_assert_gt(early, 0);
    cr_assert_gt(late, 0); /* never none: what changes has to show */
    cr_assert_lt(late, early);
    cr_assert_leq(late, 64 * 256 * MIB / 1000);
    program_stop();
}

Test(footprint, small_arguments_have_no_sentinels)
{
    start(64 * MIB);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(round_of(64 * MIB, 64 * MIB), 64 * MIB);
    program_stop();
}

/* The model alone: a kernel whose argument is hinted, or withheld from it. Returns how much of it is expected. */
static uint64_t one_more(um_footprints_t *footprints, uint64_t bytes, uint64_t touched,
                         bool withheld)
{
    um_arg_t pointer = {.region = 1};
    um_event_t event = event_launch(tick(), ++program.correlation, &pointer, 1);
    um_event_t sync = event_sync(0, UM_SYNC_DEVICE, 0, 1);
    um_argument_t argument = {.region = 1, .addr = FAKE_BASE, .limit = FAKE_BASE + bytes};
    um_ev_launch_t *launch = &event.u.launch;
    um_watch_t *watch;
    um_footprint_t expected;

    launch->kernel = KERNEL;
    touch(0, bytes);
    um_footprints_launch(footprints, launch, tick());
    um_footprints_take(footprints, launch, &argument);
    watch = um_footprints_watch(footprints, launch, &argument, 0, bytes, withheld);
    um_footprints_decided(footprints, watch, withheld ? UM_WATCH_LEFT : UM_WATCH_HINTED);
    if (!withheld)
        um_footprints_moved(footprints, FAKE_BASE, bytes);
    taken_by_gpu(0, withheld ? touched : bytes);
    sync.time_ns = tick();
    um_footprints_observe(footprints, &sync);
    expected = um_footprints_expect(footprints, launch, &argument, bytes);
    return (expected.end_bytes - expected.first_bytes) * expected.density_percent / 100;
}

/* Without sentinels it is the rounds that are withheld which show that it touches less than it did. */
Test(footprint, a_withheld_round_renews_what_is_known_of_a_small_argument)
{
    um_event_t kernel = {.type = UM_EV_KERNEL}, alloc = event_alloc(1, 1, FAKE_BASE, 64 * MIB);
    um_page_tables_t tables = fake_interface(&program.tables);
    um_residency_t *residency;
    um_footprints_t *footprints;
    uint64_t expected = 0;

    kernel.u.kernel = (um_ev_kernel_t){.kernel = KERNEL, .name = "kernel"};
    cr_assert_eq(um_residency_new(&tables, &residency), UM_OK);
    um_residency_observe(residency, &alloc);
    cr_assert_eq(um_footprints_new(residency, &footprints), UM_OK);
    um_footprints_observe(footprints, &kernel);
    for (int i = 0; i < 64; i++)
        expected = one_more(footprints, 64 * MIB, 64 * MIB, i % 8 == 0);
    cr_assert_eq(expected, 64 * MIB);
    for (int i = 0; i < 20; i++)
        expected = one_more(footprints, 64 * MIB, 4 * MIB, i % 5 == 3);
    cr_assert_leq(expected, 16 * MIB, "%lu MiB", expected / MIB);
    um_footprints_free(footprints);
    um_residency_free(residency);
}

Test(footprint, memory_nobody_has_touched_has_no_sentinels)
{
    start(256 * MIB);
    point(0, 0);
    cr_assert_eq(hinted(launch(KERNEL)), 256 * MIB);
    program_stop();
}

Test(footprint, where_a_kernel_stops_is_found)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    cr_assert_gt(round_of(256 * MIB, 40 * MIB), 240 * MIB);
    for (int i = 0; i < 12; i++)
        bytes = round_of(256 * MIB, 40 * MIB);
    cr_assert_geq(bytes, 38 * MIB);
    cr_assert_leq(bytes, 50 * MIB);
    program_stop();
}

Test(footprint, a_kernel_that_goes_further_than_before_is_found_out)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    for (int i = 0; i < 8; i++)
        round_of(256 * MIB, 40 * MIB);
    for (int i = 0; i < 20; i++)
        bytes = round_of(256 * MIB, 200 * MIB);
    cr_assert_geq(bytes, 190 * MIB);
    program_stop();
}

/* Touches so much of every 2 MiB, or all of every so many. */
static uint64_t sparse_round(uint64_t touched, uint64_t of)
{
    unsigned first;

    program.tables.now_ns += 10000000;
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    for (uint64_t at = of / 2; at < 256 * MIB; at += of)
        taken_by_gpu(at, touched);
    wait_all();
    return hinted(first);
}

Test(footprint, what_is_hardly_touched_is_no_more_brought)
{
    um_hinter_stats_t stats;

    start(256 * MIB);
    for (int i = 0; i < 6; i++)
        sparse_round(128 * 1024, 2 * MIB);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(sparse_round(128 * 1024, 2 * MIB), 0, "round %d", i);
    um_hinter_stats(program.hinter, &stats);
    cr_assert_geq(stats.declined, 20);
    program_stop();
}

Test(footprint, of_blocks_far_between_little_is_brought)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    for (int i = 0; i < 6; i++)
        sparse_round(2 * MIB, 32 * MIB);
    for (int i = 0; i < 20; i++)
        bytes += sparse_round(2 * MIB, 32 * MIB);
    cr_assert_leq(bytes, 20 * 64 * MIB);
    program_stop();
}

Test(footprint, and_brought_again_when_all_of_it_is_touched)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    for (int i = 0; i < 8; i++)
        sparse_round(128 * 1024, 2 * MIB);
    for (int i = 0; i < 70 && bytes < 240 * MIB; i++)
        bytes = round_of(256 * MIB, 256 * MIB);
    cr_assert_geq(bytes, 240 * MIB);
    program_stop();
}

Test(footprint, the_first_launch_on_what_is_too_large_to_guess_teaches_the_second)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "100M", 1);
    start(256 * MIB);
    cr_assert_eq(round_of(256 * MIB, 256 * MIB), 0);
    cr_assert_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}

Test(footprint, what_grows_with_the_grid_is_foreseen_for_another)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 6; i++) {
        grid = 1000;
        round_of(256 * MIB, 100 * MIB);
        grid = 2000;
        round_of(256 * MIB, 200 * MIB);
    }
    grid = 500;
    cr_assert_geq(round_of(256 * MIB, 50 * MIB), 48 * MIB);
    grid = 1500;
    cr_assert_leq(round_of(256 * MIB, 150 * MIB), 170 * MIB);
    program_stop();
}

/* All of the argument, however many bytes that would be: 2^48 blocks, and 2^64. */
Test(footprint, what_grows_with_the_grid_is_not_nothing_for_one_beyond_measure)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 6; i++) {
        grid = 1000;
        round_of(256 * MIB, 100 * MIB);
        grid = 2000;
        round_of(256 * MIB, 200 * MIB);
    }
    grid = UINT32_MAX;
    grid_y = UINT16_MAX;
    cr_expect_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    grid = 1u << 22;
    grid_y = grid_z = 1u << 21;
    cr_expect_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}

Test(footprint, what_the_grid_does_not_change_is_foreseen_too)
{
    uint64_t bytes;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 6; i++) {
        grid = 1000;
        round_of(256 * MIB, 100 * MIB);
        grid = 3000;
        round_of(256 * MIB, 100 * MIB);
    }
    grid = 500;
    bytes = round_of(256 * MIB, 100 * MIB);
    cr_assert_geq(bytes, 96 * MIB);
    cr_assert_leq(bytes, 112 * MIB);
    program_stop();
}

/* With no wait between: what the one has settled is not all that the other uses. */
Test(footprint, a_kernel_that_uses_more_than_the_one_before_it_is_served)
{
    unsigned first;

    start(256 * MIB);
    define(8, "other");
    for (int i = 0; i < 12; i++)
        round_of(256 * MIB, 40 * MIB);
    touch(0, 256 * MIB);
    point(0, 0);
    launch(KERNEL);
    taken_by_gpu(0, 40 * MIB);
    point(0, 0);
    launch(KERNEL);
    point(0, 0);
    first = launch(8);
    cr_assert_geq(hinted(first), 190 * MIB);
    program_stop();
}

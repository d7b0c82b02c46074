/* What the program will do next, in this run and in another. */
#include "sequence_world.h"

/* ---- what comes next ---- */

Test(sequence, knows_nothing_of_what_has_never_been)
{
    begin_with(3, 1);
    cr_assert_str_eq(expected(4), "");
    launch(1, 1);
    launch(2, 1);
    launch(3, 1);
    cr_assert_str_eq(expected(4), "");
    end();
}

Test(sequence, a_loop_goes_on_with_its_waits)
{
    begin_with(3, 1);
    for (int i = 0; i < 4; i++) {
        launch(1, 1);
        wait_for_gpu();
        launch(2, 1);
        launch(3, 1);
    }
    cr_assert_str_eq(expected(5), "12312");
    cr_assert_eq(next_launch(1).steps, 1);
    cr_assert_eq(next_launch(2).steps, 3, "the wait counts");
    launch(1, 1);
    cr_assert_str_eq(expected(3), "231");
    end();
}

Test(sequence, a_loop_longer_than_any_context_is_found_by_its_period)
{
    begin_with(3, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++)
            launch(1, 1);
        launch(2, 1);
    }
    for (int i = 0; i < 49; i++)
        launch(1, 1);
    cr_assert_str_eq(expected(3), "121", "the fiftieth, and then the other one");
    launch(1, 1);
    cr_assert_str_eq(expected(3), "211");
    end();
}

Test(sequence, the_longest_context_that_is_known_decides)
{
    begin_with(5, 1);
    /* After 1 comes 2 or 3, as what came before 1 has it. */
    for (int i = 0; i < 6; i++) {
        launch(4, 1);
        launch(1, 1);
        launch(2, 1);
        launch(5, 1);
        launch(1, 1);
        launch(3, 1);
    }
    /* Out of the loop. */
    launch(5, 1);
    launch(5, 1);
    launch(5, 1);
    launch(4, 1);
    launch(1, 1);
    cr_assert_str_eq(expected(1), "2");
    launch(5, 1);
    launch(5, 1);
    launch(1, 1);
    cr_assert_str_eq(expected(1), "3");
    end();
}

Test(sequence, waits_right_after_each_other_are_one)
{
    begin_with(2, 1);
    for (int i = 0; i < 12; i++) {
        launch(1, 1);
        for (int waits = 0; waits <= i % 3; waits++) /* as often as it takes */
            wait_for_gpu();
        launch(2, 1);
    }
    cr_assert_str_eq(expected(3), "121");
    end();
}

Test(sequence, another_grid_or_region_is_another_launch)
{
    begin_with(2, 2);
    for (int i = 0; i < 6; i++) { /* the buffers change places, as in a stencil */
        launch(1, 1);
        launch(1, 2);
    }
    cr_assert_eq(next_launch(1).arg[0].region, 1);
    cr_assert_eq(next_launch(2).arg[0].region, 2);
    launch_shaped(1, 1, 0, 200);
    cr_assert_str_eq(expected(1), "");
    end();
}

static void launch_with(uint32_t n, uint32_t step)
{
    um_arg_t arg = {.region = world.first_region + 1};
    um_scalar_t scalar[] = {{1, 4, step}, {2, 8, n}};
    um_event_t event = event_launch(world.tables.now_ns += 1000, ++world.correlation, &arg, 1);

    event.u.launch.kernel = world.first_kernel + 1;
    event.u.launch.n_scalars = 2;
    event.u.launch.scalars = scalar;
    tell_world(event);
    wait_for_gpu();
}

/* They are no part of what a launch is known by: a count of steps would make each another one. */
Test(sequence, a_launch_to_come_has_the_integers_that_stay)
{
    um_next_t next;

    begin(1, 0);
    define_kernels(1);
    allocate_region(1);
    for (uint32_t step = 0; step < 6; step++)
        launch_with(500, step);
    cr_assert_str_eq(expected(1), "1");
    next = next_launch(1);
    cr_assert_eq(next.launch.n_scalars, 1);
    cr_assert(next.scalar[0].slot == 2 && next.scalar[0].size_bytes == 8 &&
              next.scalar[0].value == 500);
    launch_with(600, 6);
    cr_assert_eq(next_launch(1).launch.n_scalars, 0, "500 or 600?");
    launch_with(600, 7);
    cr_assert_eq(next_launch(1).scalar[0].value, 600);
    end();
}

Test(sequence, a_region_allocated_anew_stands_for_the_one_before)
{
    begin_with(2, 0);
    for (int i = 0; i < 6; i++) {
        allocate_region(1);
        launch(1, 1);
        launch(2, 1);
        free_region(1);
        world.first_region += 10; /* ids are never given twice */
    }
    cr_assert_str_eq(expected(2), "", "there is no such region now");
    allocate_region(1);
    cr_assert_str_eq(expected(2), "12");
    cr_assert_eq(next_launch(1).arg[0].region, world.first_region + 1);
    end();
}

Test(sequence, each_thread_has_a_row_of_its_own)
{
    begin_with(4, 1);
    for (int i = 0; i < 40; i++) {
        world.tid = 100;
        launch(1 + i % 2, 1);
        for (int k = 0; k < i * 7 % 3; k++) { /* as chance has it */
            static int turn;

            world.tid = 200;
            launch(3 + turn++ % 2, 1);
        }
    }
    world.tid = 100;
    launch(1, 1);
    cr_assert_str_eq(expected(4), "2121");
    end();
}

Test(sequence, more_threads_than_rows_forget_the_one_that_was_silent_longest)
{
    begin_with(2, 1);
    for (uint32_t tid = 1; tid < 100; tid++) {
        world.tid = tid;
        launch(1, 1);
        launch(2, 1);
    }
    world.tid = 1000;
    launch(1, 1);
    cr_assert_str_eq(expected(1), "2", "what threads begin with is common knowledge");
    end();
}

Test(sequence, a_graph_is_one_launch)
{
    begin(0, 0);
    for (uint32_t r = 1; r <= 2; r++)
        allocate_region(r);
    for (int i = 0; i < 5; i++) {
        launch_shaped(0, 1, UM_LAUNCH_GRAPH, 0);
        launch_shaped(0, 2, UM_LAUNCH_GRAPH, 0);
    }
    cr_assert_eq(next_launch(1).launch.flags, UM_LAUNCH_GRAPH);
    cr_assert_eq(next_launch(1).arg[0].region, 1);
    cr_assert_eq(next_launch(2).launch.graph, 0xabc2);
    /* What is put into a graph does not run. */
    launch_shaped(1, 1, UM_LAUNCH_CAPTURED, 0);
    cr_assert_eq(next_launch(1).arg[0].region, 1);
    end();
}

Test(sequence, a_loop_is_foretold_right_almost_always)
{
    begin_with(9, 1);
    for (int i = 0; i < 200; i++)
        for (uint32_t k = 1; k <= 9; k++)
            launch(k, 1);
    cr_assert_eq(stats_now().launches, 1800);
    cr_assert_geq(stats_now().foretold, 1780);
    end();
}

Test(sequence, what_never_repeats_is_not_foretold_and_takes_no_more_memory)
{
    begin_with(1, 1);
    for (uint32_t i = 0; i < 20000; i++)
        launch_shaped(1, 1, 0, 1 + i);
    cr_assert_lt(stats_now().foretold, 10);
    end();
}

/* ---- another run ---- */

static void a_run(void)
{
    for (uint32_t r = 1; r <= 3; r++) {
        allocate_region(r);
        cpu_touches(r, 0, 8);
    }
    launch(3, 3); /* once, to begin with */
    for (int i = 0; i < 5; i++) {
        launch(1, 1);
        wait_for_gpu();
        launch(2, 2);
    }
}

Test(sequence, another_run_knows_it_from_its_first_launch_on)
{
    begin_with(3, 0);
    a_run();
    begin_again(1);
    cr_assert_str_eq(expected(3), "", "there is no region yet");
    for (uint32_t r = 1; r <= 3; r++)
        allocate_region(r);
    cr_assert_str_eq(expected(3), "000", "by name: their numbers are not known yet");
    cr_assert_eq(next_launch(1).kernel, um_footprints_kernel_named("kernel3", 77));
    cr_assert_eq(next_launch(1).arg[0].region, 43);
    cr_assert_eq(next_launch(2).arg[0].region, 41);
    cr_assert_eq(next_launch(3).arg[0].region, 42);
    cr_assert_eq(next_launch(3).steps, 4);
    cr_assert_eq(next_launch(1).launch.grid[0], 100);
    define_kernels(3);
    launch(3, 3);
    cr_assert_str_eq(expected(1), "0");
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    cr_assert_str_eq(expected(3), "121");
    end();
}

Test(sequence, what_is_told_holds_no_address)
{
    static um_event_t before[512];
    unsigned n;

    begin_with(3, 0);
    a_run();
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    cr_assert_gt(n_told, 6);
    n = n_told;
    memcpy(before, told, sizeof(before));
    end();
    begin(500, 128 * MIB);
    define_kernels(3);
    a_run();
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    cr_assert_eq(n_told, n);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(told[i].u.learned.shape, before[i].u.learned.shape);
        cr_assert_eq(memcmp(told[i].u.learned.value, before[i].u.learned.value,
                            sizeof(told[i].u.learned.value)),
                     0);
    }
    end();
}

Test(sequence, what_was_told_long_ago_is_not_expected)
{
    begin_with(3, 0);
    a_run();
    begin_again(9);
    for (uint32_t r = 1; r <= 3; r++)
        allocate_region(r);
    cr_assert_str_eq(expected(3), "");
    end();
}

Test(sequence, damaged_words_of_other_runs_are_passed_over)
{
    begin_with(3, 0);
    a_run();
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    end();
    for (unsigned k = 0; k < 64; k++) {
        begin(40, 64 * MIB);
        for (unsigned i = 0; i < n_told; i++) {
            um_event_t event = told[i];
            uint64_t noise = (i + 1) * 0x9e3779b97f4a7c15u * (k + 1);

            event.u.learned.value[noise >> 8 & 3] ^= noise;
            event.u.learned.value[4 + (noise >> 12 & 1)] ^= noise << 7;
            event.u.learned.shape ^= noise >> 16 & 1;
            tell_world(event);
        }
        for (uint32_t r = 1; r <= 3; r++)
            allocate_region(r);
        expected(UM_SEQUENCE_STEPS);
        define_kernels(3);
        launch(3, 3);
        launch(1, 1);
        expected(UM_SEQUENCE_STEPS);
        end();
    }
}

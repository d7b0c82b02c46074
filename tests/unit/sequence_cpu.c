/* What the CPU does until a launch comes, and waits after which it does nothing. */
#include "sequence_world.h"

/* The first half of a round. */
static void the_cpu_takes_2(void)
{
    launch(2, 2);
    wait_for_gpu();
    cpu_touches(2, 0, 8);
}

/* Region 2 is taken by the CPU after the first wait of a round and brought back for kernel 2. */
static void rounds_with_a_phase(int n)
{
    for (int i = 0; i < n; i++) {
        the_cpu_takes_2();
        launch(1, 1);
        wait_for_gpu();
    }
}

Test(sequence, what_was_brought_and_stayed_is_left_alone_by_the_cpu)
{
    bool found;
    um_next_t next;

    begin_with(2, 2);
    rounds_with_a_phase(8);
    the_cpu_takes_2();
    launch(1, 1);
    next = next_launch(1);
    cr_assert_eq(next.steps, 2);
    cr_assert_eq(um_sequences_cpu(world.sequences, &next, 2, &found), UM_CPU_UNKNOWN);
    cr_assert(found, "the page tables showed it there before");
    bring(1, 2);
    wait_for_gpu();
    the_cpu_takes_2();
    launch(1, 1);
    cr_assert_eq(cpu_before(1), UM_CPU_LEAVES);
    end();
}

Test(sequence, what_was_brought_too_early_was_taken_back)
{
    begin_with(2, 2);
    rounds_with_a_phase(8);
    launch(2, 2);
    wait_for_gpu();
    /* The phase has only begun. */
    cr_assert_eq(next_launch(2).arg[0].region, 2);
    cr_assert_eq(next_launch(2).steps, 3);
    bring(2, 2);
    cpu_touches(2, 0, 8);
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    cr_assert_eq(stats_now().taken_back, 1);
    wait_for_gpu();
    cr_assert_eq(cpu_before(2), UM_CPU_TAKES, "so early");
    cpu_touches(2, 0, 8);
    launch(1, 1);
    cr_assert_neq(cpu_before(1), UM_CPU_LEAVES, "later nobody has tried");
    end();
}

Test(sequence, a_part_taken_back_counts)
{
    begin_with(2, 2);
    rounds_with_a_phase(8);
    launch(2, 2);
    wait_for_gpu();
    bring(2, 2);
    cpu_touches(2, 6, 8); /* its last block */
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    cr_assert_eq(stats_now().taken_back, 1);
    end();
}

Test(sequence, what_never_got_there_says_nothing)
{
    begin_with(2, 2);
    rounds_with_a_phase(8);
    the_cpu_takes_2();
    launch(1, 1);
    bring_so(1, 2, false);
    wait_for_gpu(); /* the hint came too late and was cancelled */
    launch(2, 2);
    cr_assert_eq(stats_now().brought, 1);
    cr_assert_eq(stats_now().taken_back + stats_now().kept, 0);
    end();
}

Test(sequence, what_is_brought_in_vain_rests_ever_longer)
{
    begin_with(3, 3);
    rounds_with_a_phase(4);
    cr_assert_eq(next_launch(1).arg[0].region, 2);
    bring(1, 2);
    for (int i = 0; i < 30; i++) /* something else altogether */
        launch(3, 3);
    cr_assert_eq(stats_now().in_vain, 1);
    rounds_with_a_phase(4);
    cr_assert_eq(cpu_before(1), UM_CPU_TAKES);
    rounds_with_a_phase(20);
    cr_assert_eq(cpu_before(1), UM_CPU_UNKNOWN, "it may be tried again");
    end();
}

Test(sequence, a_round_goes_without_now_and_then)
{
    unsigned without = 0;

    begin_with(2, 2);
    rounds_with_a_phase(4);
    for (int i = 0; i < 64; i++) {
        the_cpu_takes_2();
        launch(1, 1);
        if (cpu_before(1) == UM_CPU_TAKES)
            without++;
        else
            bring(1, 2);
        wait_for_gpu();
    }
    cr_assert_geq(without, 2);
    cr_assert_leq(without, 5);
    end();
}

/* What another run may do with a new region, by what this one saw. */
static um_cpu_t at_the_start_of_another_run(uint32_t number)
{
    begin_again(1);
    for (uint32_t r = 1; r <= 2; r++)
        allocate_region(r);
    return cpu_before(number);
}

static void first_launches(void)
{
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    wait_for_gpu();
}

Test(sequence, new_memory_that_the_cpu_never_writes_may_be_populated_at_once)
{
    begin_with(2, 2);
    first_launches();
    cr_assert_eq(at_the_start_of_another_run(1), UM_CPU_LEAVES);
    cr_assert_eq(cpu_before(2), UM_CPU_LEAVES);
    end();
}

Test(sequence, new_memory_is_the_cpus_until_it_has_written_it)
{
    begin_with(2, 2);
    cpu_touches(1, 0, 8);
    cpu_touches(2, 0, 8);
    first_launches();
    cr_assert_eq(at_the_start_of_another_run(1), UM_CPU_TAKES);
    cr_assert_eq(cpu_before(2), UM_CPU_TAKES);
    cpu_touches(1, 0, 8);
    cpu_touches(2, 0, 8);
    define_kernels(2);
    launch(1, 1);
    cr_assert_eq(cpu_before(1), UM_CPU_LEAVES, "both were written when the first launch came");
    end();
}

Test(sequence, new_memory_written_between_launches_is_the_cpus_until_then)
{
    begin_with(2, 2);
    cpu_touches(1, 0, 8);
    launch(1, 1);
    wait_for_gpu();
    cpu_touches(2, 0, 8);
    launch(2, 2);
    wait_for_gpu();
    cr_assert_eq(at_the_start_of_another_run(2), UM_CPU_TAKES);
    define_kernels(2);
    cpu_touches(1, 0, 8);
    launch(1, 1);
    cr_assert_eq(cpu_before(1), UM_CPU_TAKES);
    wait_for_gpu();
    cr_assert_eq(cpu_before(1), UM_CPU_TAKES);
    end();
}

/* ---- quiet waits: the whole loop ---- */

static unsigned looks_of(int rounds, bool cpu)
{
    unsigned before = program.tables.looks + program.tables.pages_asked;

    for (int i = 0; i < rounds; i++) {
        run(1, 1);
        wait_all();
        if (cpu)
            touch(0, 8 * MIB);
    }
    return program.tables.looks + program.tables.pages_asked - before;
}

Test(sequence, a_wait_after_which_the_cpu_takes_nothing_becomes_quiet)
{
    unsigned early, late, last;

    program_start("ahead", NULL);
    allocate(1, 0, 8 * MIB);
    early = looks_of(40, false);
    late = looks_of(400, false);
    last = looks_of(400, false);
    cr_assert_gt(early, 40);
    cr_assert_lt(last, 400, "fewer questions than waits: %u", last);
    cr_assert_lt(10 * (late + last), 3 * 20 * early);
    program_stop();
}

Test(sequence, a_quiet_wait_is_looked_after_now_and_then)
{
    unsigned first;

    program_start("ahead", NULL);
    allocate(1, 0, 8 * MIB);
    looks_of(400, false);
    first = program.n_hints;
    looks_of(60, true); /* the CPU takes it in every round from now on */
    cr_assert_geq(program.n_hints - first, 50, "%u", program.n_hints - first);
    program_stop();
}

Test(sequence, a_loud_wait_does_not_become_quiet)
{
    unsigned first;

    program_start("ahead", NULL);
    allocate(1, 0, 8 * MIB);
    looks_of(10, true);
    first = program.n_hints;
    looks_of(200, true);
    cr_assert_eq(program.n_hints - first, 200);
    program_stop();
}

/* The rule of advisors/read_mostly.c: what is duplicated, after which trial, and what takes it back. */
#include <criterion/criterion.h>

#include "program_fake.h"

/* The GPU takes it, the CPU takes it back: with the records that CUPTI would write. What is duplicated
 * (`kept`, from the front) does not move any more. */
static void round_of(uint32_t kernel, uint64_t bytes, uint64_t kept)
{
    run(kernel, 1);
    if (kept < bytes)
        record(1, kept, bytes - kept, FAKE_GPU, UM_CAUSE_COHERENCE);
    wait_all();
    touch(0, bytes);
    if (kept < bytes)
        record(1, kept, bytes - kept, UM_DEVICE_HOST, UM_CAUSE_COHERENCE);
}

static unsigned advised(unsigned first)
{
    return hints_by(first, "read_mostly", UM_HINT_READ_MOSTLY, NULL);
}

static unsigned taken_back(unsigned first)
{
    return hints_by(first, "read_mostly", UM_HINT_UNSET_READ_MOSTLY, NULL);
}

static void start_read_mostly(bool is_const)
{
    program_start("read_mostly", NULL);
    define_kernel(7, is_const);
    define_kernel(8, false);
    allocate(1, 0, 16 * MIB);
}

/* Rounds until all of it is advised; what is on trial stays where it is. */
static void until_kept(void)
{
    uint64_t kept = 0;

    for (int i = 0; i < 40 && kept < 16 * MIB; i++) {
        round_of(7, 16 * MIB, kept);
        for (unsigned h = 0; h < program.n_hints; h++)
            if (program.hint[h].kind == UM_HINT_READ_MOSTLY && program.hint[h].bytes > kept)
                kept = program.hint[h].bytes;
    }
    cr_assert_eq(kept, 16 * MIB);
}

Test(read_mostly, puts_one_block_on_trial_and_then_the_rest)
{
    start_read_mostly(true);
    until_kept();
    cr_assert_eq(program.hint[0].kind, UM_HINT_READ_MOSTLY);
    cr_assert_eq(program.hint[0].bytes, UM_BLOCK_BYTES);
    cr_assert_eq(program.hint[0].order, UM_ORDER_BEFORE);
    cr_assert_eq(advised(0), 2);
    cr_assert_eq(taken_back(0), 0);
    program_stop();
}

Test(read_mostly, never_where_a_kernel_may_write)
{
    um_event_t fault = {.type = UM_EV_GPU_FAULT};

    start_read_mostly(false);
    for (int i = 0; i < 40; i++) {
        fault.time_ns = tick();
        fault.u.gpu_fault = (um_ev_gpu_fault_t){.addr = FAKE_BASE,
                                                .access = UM_ACCESS_READ,
                                                .device = FAKE_GPU,
                                                .region = 1};
        feed(fault); /* read faults prove nothing */
        round_of(7, 16 * MIB, 0);
    }
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

Test(read_mostly, never_where_the_layout_is_unknown)
{
    program_start("read_mostly", NULL);
    allocate(1, 0, 16 * MIB);
    for (int i = 0; i < 40; i++)
        round_of(7, 16 * MIB, 0);
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

Test(read_mostly, not_where_the_cpu_does_not_read)
{
    start_read_mostly(true);
    for (int i = 0; i < 40; i++) {
        run(7, 1);
        wait_all();
    }
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

Test(read_mostly, a_launch_that_may_write_takes_all_back_at_once)
{
    unsigned before;

    start_read_mostly(true);
    until_kept();
    before = program.n_hints;
    run(8, 1);
    cr_assert_eq(taken_back(before), 1);
    cr_assert_eq(program.hint[before].bytes, 16 * MIB);
    before = program.n_hints;
    for (int i = 0; i < 20; i++) /* and it is not tried again soon */
        round_of(7, 16 * MIB, 0);
    cr_assert_eq(advised(before), 0);
    program_stop();
}

/* It was on its way to the driver when somebody wrote. */
Test(read_mostly, advice_that_comes_into_force_late_is_taken_back)
{
    unsigned before;

    start_read_mostly(true);
    round_of(7, 16 * MIB, 0);
    round_of(7, 16 * MIB, 0);
    run(8, 1);
    before = program.n_hints;
    run(7, 1);
    cr_assert_eq(taken_back(before), 0);
    hint_in_force("read_mostly", UM_HINT_READ_MOSTLY, UM_DEVICE_HOST, UM_BLOCK_BYTES);
    run(7, 1);
    cr_assert_eq(taken_back(before), 1);
    run(7, 1);
    cr_assert_eq(taken_back(before), 1, "once");
    program_stop();
}

/* The guard speaks in the advisor's name. */
static void guard_takes_back(uint64_t bytes)
{
    hint_in_force("read_mostly", UM_HINT_UNSET_READ_MOSTLY, UM_DEVICE_HOST, bytes);
}

Test(read_mostly, what_the_guard_takes_back_is_not_tried_again_soon)
{
    unsigned before;

    start_read_mostly(true);
    until_kept();
    before = program.n_hints;
    guard_takes_back(UM_BLOCK_BYTES); /* the block that was on trial, and then all */
    guard_takes_back(16 * MIB);
    for (int i = 0; i < 20; i++)
        round_of(7, 16 * MIB, 0);
    cr_assert_eq(advised(before), 0);
    for (int i = 0; i < 200 && !advised(before); i++)
        round_of(7, 16 * MIB, 0);
    cr_assert_eq(advised(before), 1); /* but once more, later: it knows that none is in force */
    program_stop();
}

Test(read_mostly, a_write_fault_takes_all_back)
{
    um_event_t fault = {.type = UM_EV_GPU_FAULT};
    unsigned before;

    start_read_mostly(true);
    until_kept();
    fault.time_ns = tick();
    fault.u.gpu_fault = (um_ev_gpu_fault_t){.addr = FAKE_BASE,
                                            .access = UM_ACCESS_WRITE,
                                            .device = FAKE_GPU,
                                            .region = 1};
    feed(fault);
    before = program.n_hints;
    run(7, 1);
    cr_assert_eq(taken_back(before), 1);
    program_stop();
}

/* Duplicates that the CPU writes move again at the next launch. */
Test(read_mostly, a_cpu_that_writes_fails_the_trial)
{
    start_read_mostly(true);
    for (int i = 0; i < 20; i++)
        round_of(7, 16 * MIB, 0);
    cr_assert_eq(advised(0), 1);
    cr_assert_eq(taken_back(0), 1);
    program_stop();
}

Test(read_mostly, the_programs_own_advice_is_left_alone)
{
    start_read_mostly(true);
    hint_in_force("app", UM_HINT_PREFERRED_LOCATION, 0, 16 * MIB);
    for (int i = 0; i < 40; i++)
        round_of(7, 16 * MIB, 0);
    cr_assert_eq(program.n_hints, 0);
    program_stop();
}

static void first_run_kept(void)
{
    start_read_mostly(true);
    until_kept();
    for (int i = 0; i < 2; i++) /* the copies */
        round_of(7, 16 * MIB, 16 * MIB);
    program_stop_and_keep(NULL);
    cr_assert_eq(kept.n, 1);
    cr_assert_str_eq(kept.event[0].u.learned.who, "read_mostly");
    cr_assert_eq(kept.event[0].u.learned.count, 1);
}

static void next_run(uint64_t runs, uint32_t age)
{
    kept.event[0].u.learned.count = runs;
    program_start_again("read_mostly", age);
    define_kernel(7, true);
    define_kernel(8, false);
    allocate(2, 32 * MIB, 8 * MIB);
    allocate(1, 64 * MIB, 16 * MIB);
}

Test(read_mostly, a_verdict_of_two_runs_spares_the_trial)
{
    uint64_t bytes;

    first_run_kept();
    next_run(2, 1);
    run(7, 1);
    wait_all();
    run(7, 1);
    cr_assert_eq(hints_by(0, "read_mostly", UM_HINT_READ_MOSTLY, &bytes), 1);
    cr_assert_eq(bytes, 16 * MIB);
    cr_assert_eq(program.hint[0].addr, FAKE_BASE + 64 * MIB);
    wait_all();
    run(7, 1);
    program_stop_and_keep(NULL);
    cr_assert_eq(kept.event[0].u.learned.count, 3);
    cr_assert_eq(kept.event[0].u.learned.age, 0);
}

Test(read_mostly, a_verdict_of_one_run_or_an_old_one_does_not)
{
    first_run_kept();
    for (int i = 0; i < 2; i++) {
        next_run(i ? 2 : 1, i ? 8 : 1);
        for (int r = 0; r < 3; r++) {
            run(7, 1);
            wait_all();
        }
        cr_assert_eq(program.n_hints, 0);
        program_stop();
    }
}

Test(read_mostly, what_the_guard_took_back_is_told_to_the_next_run)
{
    first_run_kept();
    cr_assert_eq(kept.event[0].u.learned.value[0], 1);
    next_run(5, 1);
    run(7, 1);
    wait_all();
    run(7, 1);
    cr_assert_eq(advised(0), 1);
    guard_takes_back(16 * MIB);
    program_stop_and_keep(NULL);
    cr_assert_eq(kept.event[0].u.learned.value[0], 2);
}

Test(read_mostly, a_kernel_that_may_write_counts_more_than_any_verdict)
{
    first_run_kept();
    next_run(5, 1);
    run(8, 1);
    wait_all();
    run(7, 1);
    cr_assert_eq(advised(0), 0);
    program_stop();
}

Test(read_mostly, a_verdict_that_fails_is_told)
{
    first_run_kept();
    next_run(5, 1);
    for (int r = 0; r < 3; r++) {
        run(7, 1);
        wait_all();
    }
    cr_assert_eq(advised(0), 1);
    run(8, 1);
    cr_assert_eq(taken_back(0), 1);
    program_stop_and_keep(NULL);
    cr_assert_eq(kept.event[0].u.learned.value[0], 2);
    cr_assert_eq(kept.event[0].u.learned.count, 1);
    next_run(1, 1);
    for (int r = 0; r < 3; r++) {
        run(7, 1);
        wait_all();
    }
    cr_assert_eq(advised(0), 0);
    program_stop();
}

Test(read_mostly, the_users_word_spares_the_trial)
{
    uint64_t bytes;

    start_read_mostly(false);
    say(1, UM_REGION_HINT_READ_ONLY);
    run(8, 1);
    wait_all();
    run(8, 1);
    cr_assert_eq(hints_by(0, "read_mostly", UM_HINT_READ_MOSTLY, &bytes), 1);
    cr_assert_eq(bytes, 16 * MIB);
    say(1, 0); /* and taken back, so is the advice */
    run(8, 1);
    cr_assert_eq(taken_back(0), 1);
    program_stop();
}

Test(read_mostly, the_users_word_does_not_outlive_a_write)
{
    um_event_t fault = {.type = UM_EV_GPU_FAULT};

    start_read_mostly(true);
    say(1, UM_REGION_HINT_READ_ONLY);
    run(7, 1);
    wait_all();
    run(7, 1);
    cr_assert_eq(advised(0), 1);
    fault.time_ns = tick();
    fault.u.gpu_fault = (um_ev_gpu_fault_t){.addr = FAKE_BASE,
                                            .access = UM_ACCESS_WRITE,
                                            .device = FAKE_GPU,
                                            .region = 1};
    feed(fault);
    run(7, 1);
    cr_assert_eq(taken_back(0), 1);
    program_stop();
}

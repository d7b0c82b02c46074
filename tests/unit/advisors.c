/* Each advisor's rule, when it holds and when it does not. readback has a file of its own. */
#include <criterion/criterion.h>

#include "program_fake.h"

static uint32_t one = 1;

static void define(uint32_t kernel, bool is_const)
{
    um_param_t param = {.size_bytes = 8,
                        .flags = is_const ? UM_PARAM_CONST_POINTER | UM_PARAM_POINTER
                                          : UM_PARAM_POINTER};
    um_event_t event = {.type = UM_EV_KERNEL, .time_ns = tick()};

    event.u.kernel = (um_ev_kernel_t){
        .kernel = kernel, .name = "k", .n_params = 1, .layout_known = 1, .params = &param};
    feed(event);
}

static void record(uint32_t region, uint64_t offset, uint64_t bytes, int32_t to, uint32_t cause)
{
    um_event_t event = {.type = UM_EV_MIGRATE, .time_ns = tick()};

    event.u.migrate = (um_ev_migrate_t){.addr = FAKE_BASE + offset,
                                        .bytes = bytes,
                                        .src = to < 0 ? FAKE_GPU : UM_DEVICE_HOST,
                                        .dst = to,
                                        .cause = cause,
                                        .region = region};
    feed(event);
}

/* The GPU takes it, the CPU takes it back: with the records that CUPTI would write. What is duplicated
 * (`kept`, from the front) does not move any more. */
static void round_of(uint32_t kernel, uint64_t bytes, uint64_t kept)
{
    run(kernel, one);
    if (kept < bytes)
        record(1, kept, bytes - kept, FAKE_GPU, UM_CAUSE_COHERENCE);
    wait_all();
    touch(0, bytes);
    if (kept < bytes)
        record(1, kept, bytes - kept, UM_DEVICE_HOST, UM_CAUSE_COHERENCE);
}

/* ---- read_mostly ---- */

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
    define(7, is_const);
    define(8, false);
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
    um_event_t late = {.type = UM_EV_HINT};
    unsigned before;

    start_read_mostly(true);
    round_of(7, 16 * MIB, 0);
    round_of(7, 16 * MIB, 0);
    run(8, 1);
    before = program.n_hints;
    run(7, 1);
    cr_assert_eq(taken_back(before), 0);
    late.u.hint = (um_ev_hint_t){.kind = UM_HINT_READ_MOSTLY,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = UM_BLOCK_BYTES,
                                 .device = UM_DEVICE_HOST,
                                 .region = 1,
                                 .who = "read_mostly",
                                 .why = ""};
    late.time_ns = tick();
    feed(late);
    run(7, 1);
    cr_assert_eq(taken_back(before), 1);
    run(7, 1);
    cr_assert_eq(taken_back(before), 1, "once");
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
    um_event_t hint = {.type = UM_EV_HINT};

    start_read_mostly(true);
    hint.time_ns = tick();
    hint.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFERRED_LOCATION,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = 16 * MIB,
                                 .region = 1,
                                 .who = "app",
                                 .why = ""};
    feed(hint);
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
    program_stop_and_keep();
    cr_assert_eq(kept.n, 1);
    cr_assert_str_eq(kept.event[0].u.learned.who, "read_mostly");
    cr_assert_eq(kept.event[0].u.learned.count, 1);
}

static void next_run(uint64_t runs, uint32_t age)
{
    kept.event[0].u.learned.count = runs;
    program_start_again("read_mostly", age);
    define(7, true);
    define(8, false);
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
    program_stop_and_keep();
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
    program_stop_and_keep();
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

static void say(uint32_t region, uint32_t flags)
{
    um_event_t event = {.type = UM_EV_REGION_HINT, .time_ns = tick()};

    event.u.region_hint = (um_ev_region_hint_t){.region = region, .flags = flags};
    feed(event);
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

Test(first_touch, leaves_to_the_cpu_what_the_user_says_is_its_first)
{
    program_start("first_touch", NULL);
    allocate(1, 0, 16 * MIB);
    say(1, UM_REGION_HINT_CPU_FIRST);
    cr_assert_eq(run(7, 1), 0);
    allocate(2, 32 * MIB, 16 * MIB);
    cr_assert_geq(run(7, 2), 1);
    program_stop();
}

Test(hinting, a_region_that_is_to_be_left_alone_is)
{
    program_start("all", NULL);
    allocate(1, 0, 16 * MIB);
    say(1, UM_REGION_HINT_OFF);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(run(7, 1), 0);
        cr_assert_eq(wait_all(), 0);
        touch(0, 16 * MIB);
    }
    say(1, 0);
    cr_assert_geq(run(7, 1), 1);
    program_stop();
}

/* ---- calm ---- */

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

    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 4 * MIB);
    touch(0, 4 * MIB);
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
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
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
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
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

Test(calm, where_the_gpu_computes_long_the_trial_is_held_against_the_waits_before)
{
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
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
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
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
    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 128 * MIB);
    touch(0, 128 * MIB);
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
    um_event_t undone = {.type = UM_EV_HINT};

    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 4 * MIB);
    touch(0, 4 * MIB);
    for (int i = 0; i < 6; i++)
        to_and_fro(4 * MIB, 100);
    cr_assert_eq(kept_by_calm(0), 1);
    undone.time_ns = tick();
    undone.u.hint = (um_ev_hint_t){.kind = UM_HINT_UNSET_ACCESSED_BY,
                                   .result = UM_HINT_APPLIED,
                                   .addr = FAKE_BASE,
                                   .bytes = 4 * MIB,
                                   .region = 1,
                                   .who = "calm",
                                   .why = "it did not win"};
    feed(undone);
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

    program_start("calm,first_touch,ahead", NULL);
    allocate(1, 0, 64 * MIB);
    touch(0, 64 * MIB);
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

/* ---- evict ---- */

/* A kernel that is known to have ended. */
static unsigned run_and_end(uint32_t kernel, uint32_t region)
{
    unsigned made = run(kernel, region);
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC, .time_ns = tick()};

    exec.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = program.correlation,
                                               .kernel = kernel,
                                               .device = FAKE_GPU};
    feed(exec);
    return made;
}

static void start_evict(uint64_t free_bytes)
{
    program.free_bytes = free_bytes;
    setenv("UMRT_EVICT_RESERVE", "0", 1);
    program_start("evict,first_touch,ahead", NULL);
    for (uint32_t i = 1; i <= 4; i++)
        allocate(i, (i - 1) * 32 * MIB, 32 * MIB);
}

Test(evict, says_nothing_while_all_fits)
{
    start_evict(1024 * MIB);
    for (int i = 0; i < 40; i++)
        run_and_end(7, (uint32_t)i % 4 + 1);
    cr_assert_eq(hints_by(0, "evict", UM_HINT_PREFETCH, NULL), 0);
    program_stop();
}

/* Room may be short and all fit nevertheless: headroom is not what a program lacks. */
Test(evict, says_nothing_while_the_driver_evicts_nothing)
{
    start_evict(0);
    for (int i = 0; i < 40; i++)
        run_and_end(7, (uint32_t)i % 4 + 1);
    cr_assert_eq(hints_by(0, "evict", UM_HINT_PREFETCH, NULL), 0);
    program_stop();
}

/* A cyclic sweep: of what is there, what was used just now is needed last. */
Test(evict, sends_out_what_is_used_last_of_all)
{
    unsigned before;

    start_evict(1024 * MIB);
    for (int i = 0; i < 12; i++) /* learns the cycle while there is room */
        run_and_end(7, (uint32_t)i % 4 + 1);
    /* Region 1 has gone to the CPU, and nothing is free. */
    touch(0, 32 * MIB);
    record(1, 0, 32 * MIB, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    wait_all();
    program.free_bytes = 0;
    program.tables.now_ns += 10000000; /* so that the room is asked again */
    before = program.n_hints;
    run_and_end(7, 1);
    cr_assert_gt(hints_by(before, "evict", UM_HINT_PREFETCH, NULL), 0);
    for (unsigned i = before; i < program.n_hints; i++)
        if (strcmp(program.hint[i].who, "evict") == 0) {
            cr_assert_eq(program.hint[i].device, UM_DEVICE_HOST);
            /* next: 1 now, 2, 3, 4 */
            cr_assert_eq(program.hint[i].region, 4);
        }
    program_stop();
}

Test(evict, takes_nothing_from_a_kernel_that_may_still_run)
{
    start_evict(0);
    run(7, 1);
    record(1, 0, 2 * MIB, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    for (int i = 0; i < 12; i++) /* nothing is known to have ended */
        run(7, (uint32_t)i % 4 + 1);
    cr_assert_eq(hints_by(0, "evict", UM_HINT_PREFETCH, NULL), 0);
    program_stop();
}

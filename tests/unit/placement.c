/* The rule of advisors/placement.c: when a range is mapped instead of moved, and when no more. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define KERNEL 7u
#define BYTES  (128 * MIB)

static uint64_t pause_ns = 10000000;
static bool cpu_comes = true; /* and takes it all back before every launch */

static void start(bool is_const)
{
    program_start("placement,first_touch,ahead", NULL);
    define_kernel(KERNEL, is_const);
    allocate(1, 0, BYTES);
}

static unsigned mapped(unsigned first)
{
    return hints_by(first, "placement", UM_HINT_ACCESSED_BY, NULL);
}

static unsigned let_go(unsigned first)
{
    return hints_by(first, "placement", UM_HINT_UNSET_ACCESSED_BY, NULL);
}

/* The CPU has it all, the GPU touches so much of every 2 MiB; nothing moves where it is mapped. Returns the
 * number of the first hint. */
static unsigned round_of(uint64_t touched, bool stays)
{
    um_arg_t arg = {.region = 1};
    um_event_t event;
    unsigned first = program.n_hints;

    program.tables.now_ns += pause_ns;
    if (cpu_comes || !program.correlation)
        touch(0, BYTES);
    event = event_launch(tick(), ++program.correlation, &arg, 1);
    event.u.launch.kernel = KERNEL;
    tick();
    feed(event);
    for (uint64_t at = 0; at < BYTES && !stays; at += 2 * MIB)
        fake_set(&program.tables, at, touched, false);
    wait_all();
    return first;
}

/* Rounds until it is mapped; how many. */
static unsigned until_mapped(void)
{
    for (unsigned i = 1; i <= 60; i++) {
        round_of(128 * 1024, false);
        if (mapped(0))
            return i;
    }
    return 0;
}

Test(placement, maps_what_is_read_here_and_there)
{
    unsigned n;

    start(true);
    n = until_mapped();
    cr_assert_geq(n, 3); /* so many that as many again would pay for it */
    cr_assert_eq(hints_by(0, "placement", UM_HINT_PREFERRED_LOCATION, NULL), mapped(0));
    for (unsigned i = 0; i < program.n_hints; i++)
        if (strcmp(program.hint[i].who, "placement") == 0) {
            cr_assert_eq(program.hint[i].order, UM_ORDER_BEFORE);
            cr_assert_eq(program.hint[i].device,
                         program.hint[i].kind == UM_HINT_ACCESSED_BY ? FAKE_GPU : UM_DEVICE_HOST);
        }
    n = program.n_hints;
    for (int i = 0; i < 10; i++)
        round_of(0, true);
    cr_assert_eq(hints_by(n, NULL, UM_HINT_PREFETCH, NULL), 0); /* nobody moves it meanwhile */
    program_stop();
}

Test(placement, not_what_a_kernel_may_write)
{
    start(false);
    cr_assert_eq(until_mapped(), 0);
    program_stop();
}

Test(placement, not_what_is_touched_all_over)
{
    start(true);
    for (int i = 0; i < 60; i++)
        round_of(2 * MIB, false);
    cr_assert_eq(mapped(0), 0);
    program_stop();
}

Test(placement, not_what_is_small)
{
    setenv("UMRT_PLACEMENT_MIN", "1G", 1);
    start(true);
    cr_assert_eq(until_mapped(), 0);
    program_stop();
}

Test(placement, not_where_the_program_advises_itself)
{
    start(true);
    hint_in_force("app", UM_HINT_PREFERRED_LOCATION, 0, BYTES);
    cr_assert_eq(until_mapped(), 0);
    program_stop();
}

Test(placement, lets_go_when_moving_would_have_paid)
{
    unsigned n;

    start(true);
    cr_assert_gt(until_mapped(), 0);
    for (n = 1; n < 100 && !let_go(0); n++)
        round_of(0, true);
    cr_assert_geq(n, 20);
    cr_assert_leq(n, 60);
    cr_assert_eq(hints_by(0, "placement", UM_HINT_UNSET_PREFERRED_LOCATION, NULL), let_go(0));
    n = program.n_hints;
    cpu_comes = false;
    for (int i = 0; i < 40; i++) /* and not at once again */
        round_of(128 * 1024, false);
    cr_assert_eq(mapped(n), 0);
    program_stop();
}

Test(placement, lets_go_at_once_when_launches_take_longer)
{
    unsigned n;

    start(true);
    cr_assert_gt(until_mapped(), 0);
    pause_ns *= 2;
    for (n = 1; n < 100 && !let_go(0); n++)
        round_of(0, true);
    cr_assert_leq(n, 10);
    program_stop();
}

/* Half of it is touched, and the CPU takes that back each time. */
Test(placement, maps_what_comes_and_goes_though_it_is_not_so_sparse)
{
    start(true);
    for (int i = 0; i < 40; i++) {
        um_event_t fault = {.type = UM_EV_CPU_FAULT};

        round_of(640 * 1024, false);
        fault.time_ns = tick();
        fault.u.cpu_fault = (um_ev_cpu_fault_t){.addr = FAKE_BASE, .region = 1};
        feed(fault);
    }
    cr_assert_gt(mapped(0), 0);
    program_stop();
}

Test(placement, but_not_what_comes_and_stays)
{
    cpu_comes = false;
    start(true);
    for (int i = 0; i < 40; i++)
        round_of(640 * 1024, false);
    cr_assert_eq(mapped(0), 0);
    program_stop();
}

/* Run one has found out that it wins. */
static void in_another_run(void)
{
    start(true);
    cr_assert_gt(until_mapped(), 0);
    for (int i = 0; i < 8; i++)
        round_of(0, true);
    program_stop_and_keep("placement");
    cr_assert_eq(kept.n, 1);
    program_start_again("placement,first_touch,ahead", 1);
    program_has_a_context();
    define_kernel(KERNEL, true);
    allocate(1, 0, BYTES);
}

Test(placement, what_did_well_in_an_earlier_run_is_mapped_when_it_is_new)
{
    in_another_run();
    cr_assert_eq(mapped(0), 1);
    cr_assert_eq(hints_by(0, "placement", UM_HINT_PREFERRED_LOCATION, NULL), 1);
    for (int i = 0; i < 10; i++)
        round_of(0, true);
    cr_assert_eq(let_go(0), 0);
    cr_assert_eq(mapped(0), 1);
    program_stop();
}

Test(placement, of_another_size_nothing_is_known)
{
    in_another_run();
    allocate(2, 2 * BYTES, BYTES / 2);
    cr_assert_eq(mapped(0), 1);
    program_stop();
}

/* 128 MiB fault in in 15 ms. */
Test(placement, lets_go_of_what_it_was_told_once_waits_add_up_to_what_faults_take)
{
    unsigned n;

    in_another_run();
    for (n = 1; n < 100 && !let_go(0); n++) {
        um_arg_t arg = {.region = 1};
        um_event_t event = event_launch(tick(), ++program.correlation, &arg, 1);

        touch(0, BYTES);
        event.u.launch.kernel = KERNEL;
        feed(event);
        program.tables.now_ns += 5000000;
        wait_all();
    }
    cr_assert_leq(n, 6);
    program_stop_and_keep("placement");
    cr_assert_eq(kept.event[0].u.learned.value[0], 2, "and the next run is told so");
    program_start_again("placement", 1);
    program_has_a_context();
    allocate(1, 0, BYTES);
    cr_assert_eq(mapped(0), 0);
    program_stop();
}

/* An event of another thread may come later than what happened after it. */
Test(placement, a_wait_that_ended_before_the_launch_has_not_lasted)
{
    in_another_run();
    for (int i = 0; i < 6; i++) {
        um_arg_t arg = {.region = 1};
        um_event_t event = event_launch(tick(), ++program.correlation, &arg, 1);

        touch(0, BYTES);
        event.u.launch.kernel = KERNEL;
        feed(event);
        feed(event_sync(event.time_ns - 500, UM_SYNC_DEVICE, 0, 1));
    }
    cr_assert_eq(let_go(0), 0);
    program_stop();
}

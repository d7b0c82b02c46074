/* The rule of advisors/evict.c: what leaves to make room, and when nothing does. */
#include <criterion/criterion.h>

#include "program_fake.h"

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

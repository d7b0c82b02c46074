/* What counts as shown of a kernel: waits, and records of its faults. */
#include <criterion/criterion.h>

#include "footprint_fake.h"

/* ---- waits ---- */

/* Rounds of an argument that is left to its faults; then whether anything is known of it. */
static bool knows_after(void (*meddle)(void))
{
    unsigned first;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 4; i++) {
        touch(0, 256 * MIB);
        point(0, 0);
        launch(KERNEL);
        meddle();
    }
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    program_stop();
    return hinted(first) > 0;
}

static void dense(void)
{
    taken_by_gpu(0, 256 * MIB);
    wait_all();
}

static void never_waited_for(void)
{
    taken_by_gpu(0, 128 * MIB);
}

static void copied_over(void)
{
    um_event_t copy = {.type = UM_EV_COPY, .time_ns = tick()};

    copy.u.copy = (um_ev_copy_t){.dst_addr = FAKE_BASE, .bytes = 256 * MIB, .dst_region = 1};
    feed(copy);
    dense();
}

static void prefetched_by_the_program(void)
{
    um_event_t hint = {.type = UM_EV_HINT, .time_ns = tick()};

    hint.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = 256 * MIB,
                                 .region = 1,
                                 .who = "app",
                                 .why = ""};
    feed(hint);
    dense();
}

/* By the time of the look the CPU may have it back. */
static void looked_at_too_late(void)
{
    um_event_t leave = event_sync(tick(), UM_SYNC_DEVICE, 0, 1);

    program.tables.now_ns += 10000000;
    feed(leave);
}

Test(footprint, only_what_a_wait_has_shown_is_evidence)
{
    cr_assert(knows_after(dense));
    cr_assert_not(knows_after(never_waited_for));
    cr_assert_not(knows_after(copied_over));
    cr_assert_not(knows_after(prefetched_by_the_program));
    cr_assert_not(knows_after(looked_at_too_late));
}

static void waited_for_by_an_event(void)
{
    taken_by_gpu(0, 256 * MIB);
    wait_on(UM_SYNC_EVENT, 5);
}

static void half_done_at_an_event(void)
{
    taken_by_gpu(0, 16 * MIB);
    wait_on(UM_SYNC_EVENT, 5);
    taken_by_gpu(0, 256 * MIB);
}

/* An event may have been recorded long before the launch. */
Test(footprint, an_event_shows_what_is_gone_but_not_what_stays)
{
    cr_assert(knows_after(waited_for_by_an_event));
    cr_assert_not(knows_after(half_done_at_an_event));
}

/* ---- records ---- */

static void fault(uint64_t offset)
{
    um_event_t event = {.type = UM_EV_GPU_FAULT, .time_ns = tick()};

    event.u.gpu_fault = (um_ev_gpu_fault_t){.addr = FAKE_BASE + offset,
                                            .duration_ns = 1,
                                            .device = FAKE_GPU,
                                            .region = 1};
    feed(event);
}

/* A round in which the kernel's execution and its faults, one a block, are recorded as well. */
static unsigned recorded_round(uint64_t bytes, bool backwards)
{
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC};
    uint64_t blocks = bytes / UM_BLOCK_BYTES;
    unsigned first;

    program.tables.now_ns += 100000000;
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    exec.time_ns = tick();
    exec.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = program.correlation,
                                               .kernel = KERNEL,
                                               .duration_ns = 1000000,
                                               .device = FAKE_GPU};
    feed(exec);
    for (uint64_t b = 0; b < blocks; b++)
        fault((backwards ? blocks - 1 - b : b) * UM_BLOCK_BYTES);
    taken_by_gpu(0, bytes);
    program.tables.now_ns += 10000000;
    wait_all();
    return first;
}

Test(footprint, what_goes_backwards_is_brought_from_its_end)
{
    unsigned first = 0;

    start(256 * MIB);
    for (int i = 0; i < 4; i++)
        first = recorded_round(256 * MIB, true);
    cr_assert_geq(program.hint[first].addr, FAKE_BASE + 192 * MIB);
    for (int i = 0; i < 3; i++)
        first = recorded_round(256 * MIB, false);
    cr_assert_eq(program.hint[first].addr, FAKE_BASE);
    cr_assert_geq(hinted(first), 240 * MIB);
    program_stop();
}

/* Sooner than a block looked at behind the end would have told. */
Test(footprint, a_fault_behind_the_end_moves_the_end)
{
    unsigned first = 0;

    start(256 * MIB);
    for (int i = 0; i < 12; i++)
        recorded_round(40 * MIB, false);
    recorded_round(200 * MIB, false);
    first = recorded_round(200 * MIB, false);
    cr_assert_geq(hinted(first), 190 * MIB);
    program_stop();
}

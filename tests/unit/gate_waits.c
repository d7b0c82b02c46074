/* What waits, launches and idle times do to hints that are on their way. */
#include <criterion/criterion.h>

#include "gate_fake.h"

Test(gate, a_wait_for_the_launch_cancels_what_comes_too_late)
{
    um_event_t other = event_sync(1, UM_SYNC_STREAM, 77, 1), own;
    um_gate_t *gate = new_gate();

    cause.stream = 7;
    own = event_sync(1, UM_SYNC_STREAM, 7, 1);
    propose(gate, 0, 64 * MIB, 1);
    um_gate_sync(gate, &other);
    cr_assert_eq(keeper.cancelled_launches, 0);
    um_gate_sync(gate, &own);
    cr_assert_eq(keeper.cancelled_launches, 1);
    own.u.sync.kind = UM_SYNC_DEVICE;
    own.u.sync.stream = 0;
    um_gate_sync(gate, &own);
    cr_assert_eq(keeper.cancelled_launches, 2);
    finish(gate);
}

/* Something for after a wait on stream 9 or the event 9. */
static uint32_t propose_after(um_gate_t *gate, uint64_t offset, uint32_t kind, uint32_t sync)
{
    um_hint_t hint = prefetch(offset, 4 * MIB);

    hint.order = UM_ORDER_AFTER;
    hint.device = UM_DEVICE_HOST;
    hint.correlation = sync;
    cause.wait = kind;
    cause.stream = 9;
    return um_gate_propose(gate, &hint, &cause);
}

Test(gate, what_is_for_after_a_wait_goes_when_that_is_over)
{
    um_gate_t *gate = new_gate();

    keeper.free = 1; /* the device's room is not what it needs */
    cr_assert_eq(propose_after(gate, 0, UM_SYNC_STREAM, 41), 1);
    cr_assert_eq(keeper.hint[0].wait, UM_SYNC_STREAM);
    cr_assert_eq(keeper.hint[0].stream, 9);
    sync_is(gate, 40, UM_SYNC_DEVICE, 0, 1); /* another one */
    cr_assert_eq(keeper.over, 0);
    sync_is(gate, 41, UM_SYNC_STREAM, 9, 1);
    cr_assert_eq(keeper.over, 41);
    cr_assert_eq(keeper.cancelled_launches, 0);
    finish(gate);
}

Test(gate, a_launch_of_the_range_cancels_what_is_for_after_a_wait)
{
    um_gate_t *gate = new_gate();

    cr_assert_eq(propose_after(gate, 0, UM_SYNC_STREAM, 41), 1);
    take(gate, FAKE_GPU, 9, 4 * MIB, MIB);
    cr_assert_eq(keeper.overtaken, 0);
    take(gate, FAKE_GPU, 9, 3 * MIB, MIB);
    cr_assert_eq(keeper.overtaken, 1);
    take(gate, FAKE_GPU, 9, 3 * MIB, MIB); /* said once */
    cr_assert_eq(keeper.overtaken, 1);
    finish(gate);
}

Test(gate, nothing_is_taken_from_under_a_kernel_that_the_wait_does_not_cover)
{
    um_gate_t *gate = new_gate();

    take(gate, FAKE_GPU, 9, 0, 8 * MIB);
    take(gate, FAKE_GPU, 7, 0, 8 * MIB);
    sync_is(gate, 1, UM_SYNC_STREAM, 9, 0);
    cr_assert_eq(propose_after(gate, 0, UM_SYNC_STREAM, 1), 0);
    sync_is(gate, 1, UM_SYNC_STREAM, 9, 1);
    expect_refused(gate, UM_HINT_REFUSED_BUSY, 1);
    sync_is(gate, 2, UM_SYNC_STREAM, 7, 0);
    take(gate, FAKE_GPU, 7, 0, 8 * MIB); /* after the wait began: not covered */
    sync_is(gate, 2, UM_SYNC_STREAM, 7, 1);
    sync_is(gate, 3, UM_SYNC_STREAM, 9, 0);
    cr_assert_eq(propose_after(gate, 0, UM_SYNC_STREAM, 3), 0);
    cr_assert_eq(propose_after(gate, 8 * MIB, UM_SYNC_STREAM, 3), 1, "nobody is at work there");
    cr_assert_eq(propose_after(gate, 0, UM_SYNC_DEVICE, 3), 1, "that covers all");
    finish(gate);
}

/* Nobody says what an event stands for: with one stream at work on the range it must be that one. */
Test(gate, an_event_is_taken_to_stand_for_the_only_stream_at_work)
{
    um_gate_t *gate = new_gate();

    take(gate, FAKE_GPU, 7, 0, 8 * MIB);
    take(gate, FAKE_GPU, 7, 0, 8 * MIB);
    sync_is(gate, 1, UM_SYNC_EVENT, 9, 0);
    cr_assert_eq(propose_after(gate, 0, UM_SYNC_EVENT, 1), 1);
    sync_is(gate, 1, UM_SYNC_EVENT, 9, 1);
    take(gate, FAKE_GPU, 8, 0, 8 * MIB);
    cr_assert_eq(propose_after(gate, 4 * MIB, UM_SYNC_EVENT, 2), 0);
    expect_refused(gate, UM_HINT_REFUSED_BUSY, 1);
    finish(gate);
}

Test(gate, what_was_held_too_long_is_cancelled)
{
    um_gate_stats_t stats;
    um_gate_t *gate = new_gate();

    cause.now_ns = 1;
    cr_assert_eq(propose_after(gate, 0, UM_SYNC_STREAM, 41), 1);
    propose(gate, 64 * MIB, MIB, 20000000000u);
    um_gate_stats(gate, &stats);
    cr_assert_eq(stats.cancelled, 1);
    cr_assert_eq(keeper.overtaken, 1);
    finish(gate);
}

/* What is for after a wait leaves nobody knows when. */
Test(gate, what_is_for_after_a_wait_makes_no_room_yet)
{
    um_hint_t out = prefetch(64 * MIB, 32 * MIB);
    um_gate_t *gate;

    keeper.free = 8 * MIB;
    gate = new_gate();
    out.device = UM_DEVICE_HOST;
    out.order = UM_ORDER_AFTER;
    cr_assert_eq(um_gate_propose(gate, &out, &cause), 1);
    cr_assert_eq(propose(gate, 0, 32 * MIB, 2), 0);
    finish(gate);
}

Test(gate, what_is_for_idle_times_outlives_waits_and_gives_way_to_a_launch)
{
    _Atomic uint32_t pending = 0;
    um_hint_t hint = prefetch(0, 4 * MIB);
    um_gate_t *gate;

    config.pending = &pending;
    gate = new_gate();
    hint.order = UM_ORDER_IDLE;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 1);
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    expect_refused(gate, UM_HINT_REFUSED_DUPLICATE, 1);
    cr_assert_eq(pending, 0, "waits need not wake for it");
    sync_is(gate, 1, UM_SYNC_DEVICE, 0, 0);
    sync_is(gate, 1, UM_SYNC_DEVICE, 0, 1);
    cr_assert_eq(keeper.cancelled_launches, 0);
    take(gate, FAKE_GPU, 9, 0, 8 * MIB);
    cr_assert_eq(keeper.overtaken, 1);
    cr_assert_eq(propose(gate, 0, 4 * MIB, 2), 1, "no duplicate of what gave way");
    finish(gate);
}

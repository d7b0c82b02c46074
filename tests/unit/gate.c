/* Every rule of the gate, and that its counts add up. */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "hints_fake.h"

/* An executor that keeps what it is given. */
typedef struct keeper {
    um_executor_t base;
    um_hint_t hint[4096];
    unsigned n, asked, cancelled_launches, cancelled_ranges, cancelled_contexts, overtaken;
    uint32_t over;
    uint64_t free;
    bool full, blind;
} keeper_t;

static bool keep(um_executor_t *executor, const um_hint_t *hint, uint32_t context)
{
    keeper_t *keeper = (keeper_t *)executor;

    (void)context;
    if (keeper->full)
        return false;
    keeper->hint[keeper->n++] = *hint;
    return true;
}

static void range_cancelled(um_executor_t *executor, uint64_t addr, uint64_t bytes)
{
    (void)addr;
    (void)bytes;
    ((keeper_t *)executor)->cancelled_ranges++;
}

static void context_cancelled(um_executor_t *executor, uint32_t context)
{
    (void)context;
    ((keeper_t *)executor)->cancelled_contexts++;
}

static void launch_cancelled(um_executor_t *executor, uint32_t correlation)
{
    (void)correlation;
    ((keeper_t *)executor)->cancelled_launches++;
}

static void overtaken(um_executor_t *executor, uint64_t addr, uint64_t bytes, int32_t device)
{
    (void)addr;
    (void)bytes;
    (void)device;
    ((keeper_t *)executor)->overtaken++;
}

static void is_over(um_executor_t *executor, uint32_t sync)
{
    ((keeper_t *)executor)->over = sync;
}

static bool answer(um_executor_t *executor, uint32_t context, uint64_t *free, uint64_t *total)
{
    keeper_t *keeper = (keeper_t *)executor;

    (void)context;
    keeper->asked++;
    *free = keeper->free;
    *total = keeper->free;
    return !keeper->blind;
}

static const um_executor_ops_t keeper_ops = {.name = "keeper",
                                             .submit = keep,
                                             .cancel_range = range_cancelled,
                                             .cancel_context = context_cancelled,
                                             .cancel_launch = launch_cancelled,
                                             .overtake = overtaken,
                                             .wait_over = is_over,
                                             .free_bytes = answer};

static keeper_t keeper;
static um_regions_t *regions;
static um_gate_config_t config;
static um_ev_launch_t launch = {.correlation = 5, .context = 1, .device = FAKE_GPU};
static um_gate_cause_t cause = {.context = 1};

#define REGION_BYTES (100 * MIB)

static um_gate_t *new_gate(void)
{
    um_region_t region = {.family = UM_FAMILY_MANAGED,
                          .addr = FAKE_BASE,
                          .bytes = REGION_BYTES,
                          .id = FAKE_REGION};
    um_event_t gpu = event_device(FAKE_GOOD_GPU);
    um_gate_t *gate;

    keeper.base.ops = &keeper_ops;
    if (!keeper.free)
        keeper.free = 1024 * MIB;
    cr_assert_eq(um_regions_new(&regions), UM_OK);
    cr_assert_eq(um_regions_add(regions, &region, NULL, 0, NULL), UM_OK);
    config.regions = regions;
    config.executor = &keeper.base;
    if (!config.piece_bytes)
        config.piece_bytes = 32 * MIB;
    cr_assert_eq(um_gate_new(&config, &gate), UM_OK);
    cr_assert_null(um_gate_device(gate, &gpu.u.device));
    return gate;
}

static um_hint_t prefetch(uint64_t offset, uint64_t bytes)
{
    return (um_hint_t){.kind = UM_HINT_PREFETCH,
                       .addr = FAKE_BASE + offset,
                       .bytes = bytes,
                       .device = FAKE_GPU,
                       .correlation = 5,
                       .who = "test",
                       .why = "test"};
}

static uint32_t propose(um_gate_t *gate, uint64_t offset, uint64_t bytes, uint64_t now_ns)
{
    um_hint_t hint = prefetch(offset, bytes);

    cause.now_ns = now_ns;
    return um_gate_propose(gate, &hint, &cause);
}

static um_ev_hint_t outcome(const um_hint_t *hint, um_hint_result_t result)
{
    return (um_ev_hint_t){.kind = hint->kind,
                          .result = result,
                          .addr = hint->addr,
                          .bytes = hint->bytes,
                          .device = hint->device,
                          .who = "test",
                          .why = ""};
}

static void done(um_gate_t *gate, unsigned i, um_hint_result_t result)
{
    um_ev_hint_t event = outcome(&keeper.hint[i], result);

    um_gate_done(gate, &event);
}

static void expect_refused(um_gate_t *gate, um_hint_result_t reason, uint64_t n)
{
    um_gate_stats_t stats;
    uint64_t refused = 0;

    um_gate_stats(gate, &stats);
    cr_assert_eq(stats.refused[reason], n, "%s: %lu", um_hint_result_name(reason),
                 (unsigned long)stats.refused[reason]);
    for (int r = 0; r < UM_HINT_RESULT_COUNT; r++)
        refused += stats.refused[r];
    cr_assert_eq(stats.proposed, stats.admitted + refused);
}

static void finish(um_gate_t *gate)
{
    um_gate_free(gate);
    um_regions_free(regions);
}

Test(gate, splits_front_to_back_at_whole_blocks)
{
    um_gate_t *gate = new_gate();

    cr_assert_eq(propose(gate, MIB, 70 * MIB, 1), 3);
    cr_assert_eq(keeper.hint[0].addr, FAKE_BASE + MIB);
    cr_assert_eq(keeper.hint[0].bytes, 31 * MIB);
    cr_assert_eq(keeper.hint[1].addr, FAKE_BASE + 32 * MIB);
    cr_assert_eq(keeper.hint[1].bytes, 32 * MIB);
    cr_assert_eq(keeper.hint[2].bytes, 7 * MIB);
    cr_assert_eq(keeper.hint[2].region, FAKE_REGION);
    finish(gate);
}

Test(gate, trims_to_the_region_and_refuses_what_is_outside)
{
    um_gate_t *gate = new_gate();

    cr_assert_eq(propose(gate, 96 * MIB, 500 * MIB, 1), 1);
    cr_assert_eq(keeper.hint[0].bytes, 4 * MIB);
    cr_assert_eq(propose(gate, REGION_BYTES, MIB, 1), 0);
    cr_assert_eq(propose(gate, 0, 0, 1), 0);
    cr_assert_eq(propose(gate, 0, UINT64_MAX, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_RANGE, 3);
    finish(gate);
}

Test(gate, refuses_memory_of_other_families)
{
    um_region_t device = {.family = UM_FAMILY_DEVICE,
                          .addr = FAKE_BASE + 512 * MIB,
                          .bytes = MIB,
                          .id = 2};
    um_gate_t *gate = new_gate();

    um_regions_add(regions, &device, NULL, 0, NULL);
    cr_assert_eq(propose(gate, 512 * MIB, MIB, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_RANGE, 1);
    finish(gate);
}

Test(gate, refuses_what_is_captured)
{
    um_gate_t *gate = new_gate();

    cause.captured = true;
    cr_assert_eq(propose(gate, 0, MIB, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_CAPTURE, 1);
    finish(gate);
}

Test(gate, refuses_gpus_that_cannot_and_says_why)
{
    static const struct {
        uint32_t attributes;
        const char *word;
    } cases[] = {
        {0, "no managed memory"},
        {UM_DEVICE_MANAGED, "concurrentManagedAccess"},
        {FAKE_GOOD_GPU | UM_DEVICE_INTEGRATED, "shares"},
        {FAKE_GOOD_GPU | UM_DEVICE_PAGEABLE | UM_DEVICE_HOST_PAGE_TABLES, "page tables"},
    };
    um_gate_t *gate = new_gate();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        um_event_t gpu = event_device(cases[i].attributes);
        const char *why = um_gate_device(gate, &gpu.u.device);

        cr_assert_not_null(why);
        cr_assert_not_null(strstr(why, cases[i].word), "%s", why);
        cr_assert_eq(propose(gate, 0, MIB, 1), 0);
        expect_refused(gate, UM_HINT_REFUSED_CAPABILITY, i + 1);
    }
    finish(gate);
}

Test(gate, refuses_gpus_that_nobody_described)
{
    um_gate_t *gate = new_gate();
    um_hint_t hint = prefetch(0, MIB);

    hint.device = 3;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    hint.device = UM_DEVICE_NONE;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    expect_refused(gate, UM_HINT_REFUSED_CAPABILITY, 2);
    finish(gate);
}

Test(gate, stays_below_free_memory_less_headroom)
{
    um_gate_t *gate;

    keeper.free = 100 * MIB;
    config.headroom_bytes = 30 * MIB;
    gate = new_gate();
    cr_assert_eq(propose(gate, 0, 96 * MIB, 1), 2); /* 32 + 32, the third would pass 70 */
    expect_refused(gate, UM_HINT_REFUSED_CAPACITY, 1);
    cr_assert_eq(propose(gate, 64 * MIB, 6 * MIB, 2), 1);
    cr_assert_eq(propose(gate, 70 * MIB, 2 * MIB, 3), 0);
    expect_refused(gate, UM_HINT_REFUSED_CAPACITY, 2);
    finish(gate);
}

Test(gate, counts_what_is_in_flight_when_it_asks_again)
{
    um_gate_t *gate;

    keeper.free = 64 * MIB;
    gate = new_gate();
    cr_assert_eq(propose(gate, 0, 64 * MIB, 1), 2);
    done(gate, 0, UM_HINT_APPLIED);
    keeper.free = 40 * MIB; /* the driver has not accounted for all of the second yet */
    cr_assert_eq(propose(gate, 64 * MIB, 10 * MIB, 100000000), 0);
    cr_assert_eq(propose(gate, 64 * MIB, 8 * MIB, 200000000), 1);
    finish(gate);
}

Test(gate, asks_for_free_memory_seldom)
{
    um_gate_t *gate = new_gate();

    for (uint64_t t = 0; t < 100; t++)
        propose(gate, t * 65536, 65536, 1 + t * 1000);
    cr_assert_eq(keeper.asked, 1);
    propose(gate, 50 * MIB, 65536, 10000000);
    cr_assert_eq(keeper.asked, 2);
    finish(gate);
}

Test(gate, room_that_cannot_be_asked_is_no_room)
{
    um_gate_t *gate;

    keeper.blind = true;
    gate = new_gate();
    cr_assert_eq(propose(gate, 0, MIB, 1), 0);
    cr_assert_eq(um_gate_room_bytes(gate, &launch, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_CAPACITY, 1);
    finish(gate);
}

Test(gate, refuses_what_is_on_its_way_until_it_is_done)
{
    um_gate_t *gate = new_gate();

    cr_assert_eq(propose(gate, 0, 8 * MIB, 1), 1);
    cr_assert_eq(propose(gate, 2 * MIB, 2 * MIB, 2), 0);
    expect_refused(gate, UM_HINT_REFUSED_DUPLICATE, 1);
    done(gate, 0, UM_HINT_APPLIED);
    cr_assert_eq(propose(gate, 2 * MIB, 2 * MIB, 3), 1);
    finish(gate);
}

Test(gate, forgets_outcomes_that_never_came)
{
    um_gate_t *gate = new_gate();

    cr_assert_eq(propose(gate, 0, 8 * MIB, 1), 1);
    cr_assert_eq(propose(gate, 0, 8 * MIB, 5000000000), 0);
    cr_assert_eq(propose(gate, 0, 8 * MIB, 20000000000), 1);
    finish(gate);
}

Test(gate, keeps_to_its_quota_of_pieces)
{
    um_gate_t *gate;

    config.max_in_flight = 2;
    config.max_per_second = 3;
    gate = new_gate();
    cr_assert_eq(propose(gate, 0, 96 * MIB, 1), 2);
    expect_refused(gate, UM_HINT_REFUSED_QUOTA, 1);
    done(gate, 0, UM_HINT_APPLIED);
    done(gate, 1, UM_HINT_APPLIED);
    cr_assert_eq(propose(gate, 0, 64 * MIB, 2), 1);
    done(gate, 2, UM_HINT_APPLIED);
    cr_assert_eq(propose(gate, 0, MIB, 3), 0);
    cr_assert_eq(propose(gate, 0, MIB, 1500000000), 1);
    finish(gate);
}

Test(gate, a_full_queue_is_a_refusal)
{
    um_gate_t *gate = new_gate();

    keeper.full = true;
    cr_assert_eq(propose(gate, 0, MIB, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_QUOTA, 1);
    keeper.full = false;
    cr_assert_eq(propose(gate, 0, MIB, 1), 1); /* and leaves nothing in flight */
    finish(gate);
}

Test(gate, switches_a_kind_off_after_failures_in_a_row)
{
    um_gate_t *gate = new_gate();

    um_log_set(UM_LOG_ERROR, NULL, NULL);
    for (unsigned i = 0; i < 7; i++) {
        cr_assert_eq(propose(gate, 0, MIB, i), 1);
        done(gate, i, i == 2 ? UM_HINT_APPLIED : UM_HINT_FAILED); /* one success starts anew */
    }
    cr_assert_eq(propose(gate, 0, MIB, 9), 0);
    expect_refused(gate, UM_HINT_REFUSED_COOLDOWN, 1);
    finish(gate);
}

Test(gate, refuses_kinds_the_user_switched_off)
{
    um_gate_t *gate;

    config.disabled_kinds = 1u << UM_HINT_PREFETCH;
    gate = new_gate();
    cr_assert_eq(propose(gate, 0, MIB, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_DISABLED, 1);
    finish(gate);
}

Test(gate, nothing_goes_to_a_region_on_its_way_out)
{
    um_gate_t *gate = new_gate();

    um_gate_region_going(gate, FAKE_BASE, REGION_BYTES, 100);
    cr_assert_eq(keeper.cancelled_ranges, 1);
    cr_assert_eq(propose(gate, 0, MIB, 50), 0); /* launched before, seen late */
    expect_refused(gate, UM_HINT_REFUSED_RANGE, 1);
    cr_assert_eq(propose(gate, 0, MIB, 101), 1); /* later, it is other memory */
    finish(gate);
}

Test(gate, nothing_goes_to_a_context_on_its_way_out)
{
    um_gate_t *gate = new_gate();

    um_gate_context_going(gate, 2, 100);
    cr_assert_eq(propose(gate, 0, MIB, 50), 1);
    um_gate_context_going(gate, 1, 100);
    cr_assert_eq(propose(gate, MIB, MIB, 50), 0);
    cr_assert_eq(propose(gate, MIB, MIB, 101), 1);
    um_gate_context_going(gate, 0, 200); /* all of them */
    cr_assert_eq(propose(gate, 2 * MIB, MIB, 150), 0);
    cr_assert_eq(keeper.cancelled_contexts, 3);
    finish(gate);
}

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

Test(gate, its_counts_add_up)
{
    _Atomic uint32_t pending = 0;
    um_gate_stats_t stats;
    um_gate_t *gate;

    config.pending = &pending;
    gate = new_gate();
    propose(gate, 0, 96 * MIB, 1);
    propose(gate, 0, 96 * MIB, 2);
    cr_assert_eq(pending, 3);
    done(gate, 0, UM_HINT_APPLIED);
    done(gate, 1, UM_HINT_FAILED);
    cr_assert_eq(pending, 1);
    done(gate, 2, UM_HINT_CANCELLED);
    done(gate, 2, UM_HINT_CANCELLED); /* said twice, counted once */
    um_gate_stats(gate, &stats);
    cr_assert_eq(pending, 0);
    cr_assert_eq(stats.proposed, 6);
    cr_assert_eq(stats.admitted, 3);
    cr_assert_eq(stats.applied, 1);
    cr_assert_eq(stats.failed, 1);
    cr_assert_eq(stats.cancelled, 1);
    cr_assert_eq(stats.applied_bytes, 32 * MIB);
    expect_refused(gate, UM_HINT_REFUSED_DUPLICATE, 3);
    finish(gate);
}

static void take(um_gate_t *gate, int32_t device, uint64_t stream, uint64_t offset, uint64_t bytes)
{
    um_event_t event = event_launch(1, 9, NULL, 0);

    event.u.launch.device = device;
    event.u.launch.stream = stream;
    um_gate_taken(gate, &event, FAKE_BASE + offset, bytes);
}

static void sync_is(um_gate_t *gate, uint32_t id, uint32_t kind, uint64_t stream, uint32_t exit)
{
    um_event_t event = event_sync(1, kind, stream, exit);

    event.u.sync.sync = id;
    um_gate_sync(gate, &event);
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

/* ---- idle times ---- */

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

/* ---- advice ---- */

static uint32_t advise(um_gate_t *gate, uint32_t kind, uint64_t offset, uint64_t bytes)
{
    um_hint_t hint = prefetch(offset, bytes);

    hint.kind = kind;
    hint.device = UM_DEVICE_HOST;
    hint.order = UM_ORDER_BEFORE;
    return um_gate_propose(gate, &hint, &cause);
}

static void app_advises(um_gate_t *gate, uint32_t kind, uint64_t offset, uint64_t bytes)
{
    um_ev_hint_t hint = {.kind = kind,
                         .result = UM_HINT_APPLIED,
                         .addr = FAKE_BASE + offset,
                         .bytes = bytes,
                         .region = FAKE_REGION,
                         .who = "app"};

    um_gate_app(gate, &hint);
}

Test(gate, advice_is_one_piece_whatever_its_size_and_order)
{
    um_event_t own = event_sync(1, UM_SYNC_DEVICE, 0, 1);
    um_gate_t *gate;

    keeper.base.lacks_orders = 1u << UM_ORDER_BEFORE;
    gate = new_gate();
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, MIB, 500 * MIB), 1);
    cr_assert_eq(keeper.hint[0].bytes, REGION_BYTES - MIB);
    um_gate_sync(gate, &own);
    take(gate, FAKE_GPU, 0, 0, REGION_BYTES);
    cr_assert_eq(keeper.cancelled_launches + keeper.overtaken, 0, "it is not about this launch");
    finish(gate);
}

Test(gate, where_the_program_advises_nothing_else_is_advised)
{
    um_gate_t *gate = new_gate();

    app_advises(gate, UM_HINT_READ_MOSTLY, 8 * MIB, 8 * MIB);
    cr_assert_eq(advise(gate, UM_HINT_PREFERRED_LOCATION, 0, 9 * MIB), 0);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 15 * MIB, 9 * MIB), 0);
    cr_assert_eq(advise(gate, UM_HINT_UNSET_READ_MOSTLY, 8 * MIB, MIB), 0, "it is the program's");
    expect_refused(gate, UM_HINT_REFUSED_DISABLED, 3);
    cr_assert_eq(advise(gate, UM_HINT_UNSET_ACCESSED_BY, 8 * MIB, MIB), 1, "that was ours");
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 16 * MIB, MIB), 1);
    cr_assert_eq(propose(gate, 8 * MIB, MIB, 1), 1, "a prefetch is no advice");
    um_gate_region_gone(gate, FAKE_REGION);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 8 * MIB, MIB), 1);
    finish(gate);
}

Test(gate, more_advice_than_is_remembered_makes_the_region_the_programs)
{
    um_gate_t *gate = new_gate();

    for (uint64_t i = 0; i <= 256; i++)
        app_advises(gate, UM_HINT_ACCESSED_BY, i * 2 * UM_PAGE_BYTES, UM_PAGE_BYTES);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 64 * MIB, MIB), 0);
    finish(gate);
}

Test(gate, discarding_is_the_programs_alone)
{
    um_hint_t hint = prefetch(0, MIB);
    um_gate_t *gate = new_gate();

    hint.kind = UM_HINT_DISCARD;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    expect_refused(gate, UM_HINT_REFUSED_DISABLED, 1);
    hint.kind = UM_HINT_NONE;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    expect_refused(gate, UM_HINT_REFUSED_RANGE, 1);
    finish(gate);
}

Test(gate, refuses_what_the_executor_lacks)
{
    um_gate_t *gate = new_gate();

    keeper.base.lacks_kinds = 1u << UM_HINT_PREFETCH;
    cr_assert_eq(propose(gate, 0, MIB, 1), 0);
    keeper.base.lacks_kinds = 0;
    keeper.base.lacks_orders = 1u << UM_ORDER_RACING;
    cr_assert_eq(propose(gate, 0, MIB, 1), 0);
    expect_refused(gate, UM_HINT_REFUSED_CAPABILITY, 2);
    finish(gate);
}

Test(gate, what_is_leaving_makes_room_for_what_comes_behind_it)
{
    um_hint_t out = prefetch(64 * MIB, 32 * MIB);
    um_gate_t *gate;

    keeper.free = 8 * MIB;
    gate = new_gate();
    cr_assert_eq(propose(gate, 0, 32 * MIB, 1), 0);
    out.device = UM_DEVICE_HOST;
    cr_assert_eq(um_gate_propose(gate, &out, &cause), 1);
    cr_assert_eq(propose(gate, 0, 32 * MIB, 2), 1);
    cr_assert_eq(propose(gate, 32 * MIB, 32 * MIB, 3), 0);
    done(gate, 0, UM_HINT_CANCELLED); /* it did not leave after all */
    cr_assert_eq(propose(gate, 32 * MIB, 4 * MIB, 4), 0);
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

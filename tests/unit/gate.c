/* The rules of the gate about ranges, devices, room, duplicates and quotas; and that its counts add up. */
#include <criterion/criterion.h>

#include "gate_fake.h"

static um_ev_launch_t launch = {.correlation = 5, .context = 1, .device = FAKE_GPU};

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

/* ---- shares ---- */

static uint64_t there; /* of ours, on the GPU */

static uint64_t there_now(void *ctx, int32_t device)
{
    (void)ctx;
    return device == FAKE_GPU ? there : 0;
}

static um_gate_t *sharing_gate(const char *budget, uint32_t ranks)
{
    um_share_config_t share = {.local_ranks = ranks, .gpus = "/nowhere"};

    cr_assert(um_budget_parse(budget, &share.budget));
    cr_assert_eq(um_share_new(&share, &config.share), UM_OK);
    config.device_bytes = there_now;
    return new_gate();
}

Test(gate, keeps_to_the_budget_whatever_is_free)
{
    um_gate_t *gate = sharing_gate("64M", 1);

    cr_assert_eq(propose(gate, 0, 96 * MIB, 1), 2);
    expect_refused(gate, UM_HINT_REFUSED_CAPACITY, 1);
    there = 60 * MIB; /* they have arrived, but for 4 MiB that went back */
    cr_assert_eq(propose(gate, 64 * MIB, 8 * MIB, 100000000), 0);
    cr_assert_eq(propose(gate, 64 * MIB, 4 * MIB, 200000000), 1);
    cr_assert_eq(um_gate_room_bytes(gate, &launch, 200000001), 0);
    finish(gate);
}

Test(gate, ranks_on_one_gpu_keep_to_their_parts_of_it)
{
    um_gate_stats_t stats;
    um_gate_t *gate;

    keeper.free = 200 * MIB;
    config.headroom_bytes = 8 * MIB;
    gate = sharing_gate("auto", 3); /* (200 - 8) / 3 = 64 each */
    cr_assert_eq(propose(gate, 0, 96 * MIB, 1), 2);
    expect_refused(gate, UM_HINT_REFUSED_CAPACITY, 1);
    um_gate_stats(gate, &stats);
    cr_assert_eq(stats.processes, 3);
    finish(gate);
}

Test(gate, what_is_free_bounds_a_budget)
{
    um_gate_t *gate;

    keeper.free = 40 * MIB;
    config.headroom_bytes = 8 * MIB;
    gate = sharing_gate("90M", 1);
    cr_assert_eq(propose(gate, 0, 96 * MIB, 1), 1);
    finish(gate);
}

Test(gate, who_shares_a_gpu_queues_less)
{
    um_gate_t *gate;

    config.max_in_flight = 40;
    config.piece_bytes = 2 * MIB;
    gate = sharing_gate("auto", 2);
    cr_assert_eq(propose(gate, 0, 2 * MIB, 1), 1); /* from then on it is known */
    cr_assert_eq(propose(gate, 2 * MIB, 98 * MIB, 2), 19);
    cr_assert_eq(um_share_processes(config.share, FAKE_GPU, 3), 2);
    finish(gate);
}

/* ---- the machine's memory ---- */

static uint64_t host_has;
static unsigned host_asked;

static uint64_t host_now(void *ctx)
{
    (void)ctx;
    host_asked++;
    return host_has;
}

static uint32_t propose_to_host(um_gate_t *gate, uint64_t offset, uint64_t bytes, uint64_t now_ns)
{
    um_hint_t hint = prefetch(offset, bytes);

    hint.device = UM_DEVICE_HOST;
    cause.now_ns = now_ns;
    return um_gate_propose(gate, &hint, &cause);
}

Test(gate, brings_no_more_to_the_host_than_it_can_hold)
{
    um_gate_t *gate;

    config.host_bytes = host_now;
    host_has = 70 * MIB;
    gate = new_gate();
    cr_assert_eq(propose_to_host(gate, 0, 96 * MIB, 1), 2);
    expect_refused(gate, UM_HINT_REFUSED_CAPACITY, 1);
    cr_assert_eq(propose_to_host(gate, 64 * MIB, 6 * MIB, 2), 1);
    cr_assert_eq(host_asked, 1);
    host_has = 0;
    cr_assert_eq(propose_to_host(gate, 90 * MIB, 2 * MIB, 1000000000), 0);
    cr_assert_eq(host_asked, 2);
    cr_assert_eq(propose(gate, 96 * MIB, 4 * MIB, 1000000001), 1); /* the GPU is another matter */
    finish(gate);
}

Test(gate, a_host_that_nobody_asks_holds_anything)
{
    um_gate_t *gate;

    config.host_bytes = host_now;
    host_has = UINT64_MAX;
    gate = new_gate();
    cr_assert_eq(propose_to_host(gate, 0, 96 * MIB, 1), 3);
    finish(gate);
}

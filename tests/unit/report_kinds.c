/* Findings about room, families and the trace itself, each found where it is and nowhere else; and that each
 * kind has its page and its thresholds. */
#include <criterion/criterion.h>
#include <string.h>

#include "report/findings/explain.h"
#include "report/findings/finding.h"
#include "report_kinds.h"

TestSuite(kinds, .fini = drop_report);

/* ---- evictions ---- */

Test(kinds, a_sweep_over_more_than_there_is_room_for_is_cyclic)
{
    json_t *f = found_in(evicted(in_order, 3, true), "cyclic-sweep");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "returned_bytes"), 3 * BLOCKS * 2 * MIB);
    cr_assert_eq(stream_evidence(f, "evicted_bytes"), 3 * BLOCKS * 2 * MIB);
    cr_assert_eq(stream_evidence(f, "sweeps"), 3u);
    cr_assert_gt(json_integer_value(json_object_get(f, "win_ns")), 0);
    cr_assert_null(stream_finding(json, "eviction"), "one story, told once");
}

Test(kinds, what_comes_back_in_no_order_is_eviction)
{
    json_t *f = found_in(evicted(at_random, 3, false), "eviction");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "returned_bytes"), 3 * BLOCKS * 2 * MIB);
    cr_assert_null(stream_finding(json, "cyclic-sweep"));
}

/* Round and round is round and round, whichever way it goes through the addresses. */
Test(kinds, an_order_that_is_no_order_of_addresses_but_the_same_each_time_is_cyclic)
{
    json_t *f = found_in(evicted(at_random, 3, true), "cyclic-sweep");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "jumps"), stream_evidence(f, "jumps_again"));
    cr_assert_gt(stream_evidence(f, "jumps"), 0u);
    cr_assert_null(stream_finding(json, "eviction"));
}

Test(kinds, what_is_evicted_and_stays_away_harms_nobody)
{
    um_report_t *r = evicted(in_order, 0, true);

    for (uint32_t i = 0; i < BLOCKS; i++)
        moves(r, 90000 + i, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    cr_assert_null(found_in(r, "eviction"));
    cr_assert_null(stream_finding(json, "cyclic-sweep"));
}

static um_report_t *with_device_memory(uint64_t bytes)
{
    um_report_t *r = evicted(at_random, 2, false);

    stream_put(r,
               (um_event_t){
                   .type = UM_EV_DEVICE,
                   .u.device = {.memory_bytes = 1024 * MIB, .name = "GPU", .uuid = "", .pci = ""}});
    stream_put(r, (um_event_t){.time_ns = 90000 * US,
                               .type = UM_EV_REGION_ALLOC,
                               .u.region_alloc = {.region = 2,
                                                  .family = UM_FAMILY_DEVICE,
                                                  .addr = BASE + 1024 * MIB,
                                                  .bytes = bytes}});
    return r;
}

Test(kinds, much_that_cannot_be_evicted_beside_evictions_is_found)
{
    json_t *f = found_in(with_device_memory(512 * MIB), "not-evictable");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "not_evictable_bytes"), 512 * MIB);
    cr_assert_null(stream_finding(json, "eviction"), "which follows from it");
    cr_assert_null(stream_finding(json, "cyclic-sweep"), "likewise");
}

Test(kinds, little_that_cannot_be_evicted_is_none)
{
    cr_assert_null(found_in(with_device_memory(64 * MIB), "not-evictable"));
}

/* ---- families ---- */

Test(kinds, data_that_is_read_once_is_found_and_no_demand_faulting)
{
    json_t *f = found_in(goes_once(1), "used-once");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 8 * MIB);
    cr_assert_null(stream_finding(json, "demand-faulting"));
}

Test(kinds, data_that_is_read_often_is_not_used_once)
{
    cr_assert_null(found_in(goes_once(5), "used-once"));
    cr_assert_not_null(stream_finding(json, "demand-faulting"));
}

static um_report_t *from_a_pool(uint32_t times, bool waits)
{
    um_report_t *r = stream_new("pool.umt");

    for (uint32_t n = 0; n < times; n++) {
        stream_put(r, (um_event_t){.time_ns = (10 + n * 100) * US,
                                   .type = UM_EV_REGION_ALLOC,
                                   .u.region_alloc = {.region = n + 1,
                                                      .family = UM_FAMILY_POOL,
                                                      .addr = BASE,
                                                      .bytes = 64 * MIB,
                                                      .call_site = 7}});
        stream_free(r, 50 + n * 100, n + 1, BASE);
        if (waits)
            wait_for_it(r, 60 + n * 100);
    }
    return r;
}

Test(kinds, a_pool_that_is_emptied_by_every_wait_is_found)
{
    json_t *f = found_in(from_a_pool(20, true), "pool-threshold");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "after_a_wait"), 19u);
}

Test(kinds, a_pool_without_waits_keeps_its_memory)
{
    cr_assert_null(found_in(from_a_pool(20, false), "pool-threshold"));
}

static um_report_t *pins(uint64_t bytes)
{
    um_report_t *r = has(bytes, UM_FAMILY_PINNED);

    stream_fact(r, "host.memory_bytes", "1073741824");
    stream_fact(r, "host.cgroup_memory_max", "max");
    return r;
}

Test(kinds, most_of_the_host_s_memory_pinned_is_found)
{
    json_t *f = found_in(pins(768 * MIB), "pinned-pressure");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "pinned_bytes"), 768 * MIB);
    cr_assert_eq(stream_evidence(f, "host_bytes"), 1024 * MIB);
    cr_assert_null(found_in(pins(128 * MIB), "pinned-pressure"));
}

static um_report_t *between_gpus(uint32_t times)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    for (uint32_t n = 0; n < times; n++) {
        launch(r, 100 + n * 1000, (int32_t)(n % 2), 1);
        for (uint32_t i = 0; i < 4; i++)
            moves(r, 110 + n * 1000 + i, BASE + i * 2 * MIB, (int32_t)(n % 2),
                  (int32_t)((n + 1) % 2), UM_CAUSE_COHERENCE);
    }
    return r;
}

Test(kinds, data_that_gpus_take_from_each_other_is_found)
{
    json_t *f = found_in(between_gpus(10), "gpu-bounce");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "peer_bytes"), 10 * 8 * MIB);
    cr_assert_null(found_in(between_gpus(1), "gpu-bounce"), "handed over once");
}

/* ---- the trace itself ---- */

Test(kinds, lost_records_are_said)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);
    json_t *f;

    stream_loss(r, 10);
    f = found_in(r, "lost-records");
    cr_assert_eq(stream_evidence(f, "lost_records"), 5u);
    cr_assert_null(found_in(has(8 * MIB, UM_FAMILY_MANAGED), "lost-records"));
}

Test(kinds, tracing_that_was_off_is_said)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_fact(r, "um.tracing", "off");
    cr_assert_not_null(found_in(r, "tracing-off"));
    r = has(8 * MIB, UM_FAMILY_MANAGED);
    stream_fact(r, "um.tracing", "off");
    stream_fact(r, "workload.accesses", "exact");
    cr_assert_null(found_in(r, "tracing-off"), "a made-up program says what it accesses");
    r = has(8 * MIB, UM_FAMILY_MANAGED);
    stream_fact(r, "um.tracing", "on");
    cr_assert_null(found_in(r, "tracing-off"));
}

/* ---- pages and thresholds ---- */

Test(kinds, each_has_its_page)
{
    size_t kinds = 0, pages = 0;

    for (const um_finding_kind_t *kind = um_finding_table; kind->name; kind++, kinds++) {
        const um_explanation_t *page = um_explain(kind->name);

        cr_assert_not_null(page, "%s has no page", kind->name);
        cr_assert(strlen(page->what) > 40 && strlen(page->why) > 20 && strlen(page->fix) > 20 &&
                      strlen(page->unless) > 20,
                  "%s", kind->name);
    }
    while (um_explanations[pages].kind)
        pages++;
    cr_assert_eq(pages, kinds);
    cr_assert_null(um_explain("no-such-kind"));
}

Test(kinds, a_threshold_is_set_by_name_and_bounded)
{
    um_limits_t limits = um_limits_default;

    cr_assert_eq(um_limits_set(&limits, "allocation-churn.allocations=100"), UM_OK);
    cr_assert_eq(limits.churn_allocations, 100u);
    cr_assert_eq(um_limits_set(&limits, "allocation-churn=100"), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_limits_set(&limits, "cyclic-sweep.percent=101"), UM_ERR_INVALID);
    cr_assert_eq(um_limits_set(&limits, "cyclic-sweep.percent=-1"), UM_ERR_INVALID);
    cr_assert_eq(um_limits_set(&limits, "cyclic-sweep.percent="), UM_ERR_INVALID);
    cr_assert_eq(um_limits_set(&limits, "cyclic-sweep.percent"), UM_ERR_INVALID);
    for (const um_limit_t *limit = um_limit_table; limit->name; limit++)
        cr_assert_leq(um_limit_value(&um_limits_default, limit), limit->most, "%s", limit->name);
}

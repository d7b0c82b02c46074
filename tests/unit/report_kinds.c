/* The kinds of findings that are about more than faults, each found where it is and nowhere else; their
 * pages, and their thresholds. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings/explain.h"
#include "report/findings/finding.h"
#include "report_stream.h"

static json_t *json;

static json_t *found(um_report_t *r, const char *kind)
{
    json_decref(json);
    json = stream_json(r);
    um_report_free(r);
    return stream_finding(json, kind);
}

static const char *text_of(json_t *finding, const char *key)
{
    return json_string_value(json_object_get(finding, key));
}

static void launch(um_report_t *r, uint64_t us, int32_t device, uint32_t region)
{
    um_arg_t arg = {.region = region};

    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_LAUNCH,
                               .u.launch = {.kernel = 1,
                                            .device = device,
                                            .grid = {1, 1, 1},
                                            .block = {1, 1, 1},
                                            .n_args = region ? 1 : 0,
                                            .args = &arg}});
}

static void hint(um_report_t *r, uint64_t us, um_hint_kind_t kind, int32_t device, uint32_t region,
                 uint64_t addr, uint64_t bytes)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_HINT,
                               .u.hint = {.kind = kind,
                                          .result = UM_HINT_APPLIED,
                                          .addr = addr,
                                          .bytes = bytes,
                                          .device = device,
                                          .region = region,
                                          .duration_ns = 50 * US,
                                          .who = "app",
                                          .why = ""}});
}

static void wait_for_it(um_report_t *r, uint64_t us)
{
    stream_put(r, (um_event_t){.time_ns = us * US, .type = UM_EV_SYNC, .u.sync = {.exit = 1}});
}

static void writes(um_report_t *r, uint64_t us, uint64_t addr)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_GPU_FAULT,
                               .u.gpu_fault = {.addr = addr,
                                               .duration_ns = 100 * US,
                                               .groups = 4,
                                               .access = UM_ACCESS_WRITE}});
}

static void moves(um_report_t *r, uint64_t us, uint64_t addr, int32_t src, int32_t dst,
                  um_migrate_cause_t cause)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_MIGRATE,
                               .u.migrate = {.addr = addr,
                                             .bytes = 2 * MIB,
                                             .duration_ns = 50 * US,
                                             .src = src,
                                             .dst = dst,
                                             .cause = cause}});
}

static um_report_t *has(uint64_t bytes, um_family_t family)
{
    um_report_t *r = stream_new("kind.umt");

    stream_kernel(r, 1, "_Z4stepPf");
    stream_put(r, (um_event_t){.time_ns = US,
                               .type = UM_EV_REGION_ALLOC,
                               .u.region_alloc = {.region = 1,
                                                  .family = family,
                                                  .addr = BASE,
                                                  .bytes = bytes,
                                                  .device = UM_DEVICE_NONE}});
    stream_put(r, (um_event_t){.time_ns = US,
                               .type = UM_EV_REGION_LABEL,
                               .u.region_label = {1, "field"}});
    return r;
}

/* ---- evictions ---- */

#define BLOCKS 16u

/* All of it to the GPU, out again, and back in some order. */
static um_report_t *evicted(const uint32_t order[BLOCKS], uint32_t times)
{
    um_report_t *r = has(BLOCKS * 2 * MIB, UM_FAMILY_MANAGED);
    uint64_t us = 100;

    for (uint32_t i = 0; i < BLOCKS; i++)
        stream_cpu_fault(r, us++, BASE + i * 2 * MIB);
    for (uint32_t n = 0; n <= times; n++) {
        launch(r, us++, 0, 1);
        stream_exec(r, us++, 100, 1);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            stream_gpu_fault(r, us++, 300, BASE + order[i] * 2 * MIB);
            moves(r, us++, BASE + order[i] * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
            us += 300;
        }
        for (uint32_t i = 0; n < times && i < BLOCKS; i++)
            moves(r, us++, BASE + order[i] * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    }
    return r;
}

static const uint32_t in_order[BLOCKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint32_t at_random[BLOCKS] = {9, 2, 14, 0, 7, 1, 12, 4, 15, 3, 11, 6, 13, 5, 10, 8};

Test(kinds, a_sweep_over_more_than_there_is_room_for_is_cyclic)
{
    json_t *f = found(evicted(in_order, 3), "cyclic-sweep");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "returned_bytes"), 3 * BLOCKS * 2 * MIB);
    cr_assert_eq(stream_evidence(f, "evicted_bytes"), 3 * BLOCKS * 2 * MIB);
    cr_assert_eq(stream_evidence(f, "sweeps"), 3u);
    cr_assert_gt(json_integer_value(json_object_get(f, "win_ns")), 0);
    cr_assert_null(stream_finding(json, "eviction"), "one story, told once");
}

Test(kinds, what_comes_back_in_no_order_is_eviction)
{
    json_t *f = found(evicted(at_random, 3), "eviction");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "returned_bytes"), 3 * BLOCKS * 2 * MIB);
    cr_assert_null(stream_finding(json, "cyclic-sweep"));
}

Test(kinds, what_is_evicted_and_stays_away_harms_nobody)
{
    um_report_t *r = evicted(in_order, 0);

    for (uint32_t i = 0; i < BLOCKS; i++)
        moves(r, 90000 + i, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    cr_assert_null(found(r, "eviction"));
    cr_assert_null(stream_finding(json, "cyclic-sweep"));
}

static um_report_t *with_device_memory(uint64_t bytes)
{
    um_report_t *r = evicted(at_random, 2);

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
    json_t *f = found(with_device_memory(512 * MIB), "not-evictable");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "not_evictable_bytes"), 512 * MIB);
}

Test(kinds, little_that_cannot_be_evicted_is_none)
{
    cr_assert_null(found(with_device_memory(64 * MIB), "not-evictable"));
}

/* ---- advice ---- */

static um_report_t *read_mostly(bool withdrawn)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_cpu_fault(r, 10, BASE);
    hint(r, 20, UM_HINT_READ_MOSTLY, 0, 1, BASE, 8 * MIB);
    if (withdrawn)
        hint(r, 30, UM_HINT_UNSET_READ_MOSTLY, 0, 1, BASE, 8 * MIB);
    launch(r, 40, 0, 1);
    stream_exec(r, 50, 1000, 1);
    for (uint32_t i = 0; i < 20; i++)
        writes(r, 100 + i * 200, BASE + i * 64 * KIB);
    return r;
}

Test(kinds, read_mostly_on_what_is_written_is_found)
{
    json_t *f = found(read_mostly(false), "read-mostly-written");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "write_faults"), 20u);
    cr_assert_eq(stream_evidence(f, "write_fault_ns"), 20 * 100 * US);
}

Test(kinds, read_mostly_that_was_taken_away_before_is_none)
{
    cr_assert_null(found(read_mostly(true), "read-mostly-written"));
}

static um_report_t *located(int32_t where, int32_t used_by)
{
    um_report_t *r = has(64 * MIB, UM_FAMILY_MANAGED);

    stream_cpu_fault(r, 10, BASE);
    hint(r, 20, UM_HINT_PREFERRED_LOCATION, where, 1, BASE, 64 * MIB);
    for (uint32_t i = 0; i < 20; i++)
        launch(r, 100 + i * 100, used_by, 1);
    return r;
}

Test(kinds, a_location_away_from_where_the_work_is_done_is_found)
{
    json_t *f = found(located(UM_DEVICE_HOST, 0), "wrong-location");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "launches_far"), 20u);
    f = found(located(1, 0), "wrong-location");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "launches_on_another_gpu"), 20u);
}

Test(kinds, a_location_where_the_work_is_done_is_none)
{
    um_report_t *r = located(UM_DEVICE_HOST, 0);

    cr_assert_null(found(located(0, 0), "wrong-location"));
    stream_cpu_fault(r, 10000, BASE + 8 * MIB);
    cr_assert_null(found(r, "wrong-location"), "the CPU uses it, too");
}

/* ---- the program's own prefetches ---- */

static json_t *own(um_report_t *r, const char *kind, const char *verdict)
{
    json_t *f = found(r, kind);

    cr_assert_str_eq(text_of(json_array_get(json_object_get(json, "own_hints"), 0), "verdict"),
                     verdict);
    return f;
}

static um_report_t *prefetches(uint32_t times, bool cpu_takes_it)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_cpu_fault(r, 5, BASE);
    for (uint32_t n = 0; n < times; n++) {
        uint64_t us = 100 + n * 1000;

        hint(r, us, UM_HINT_PREFETCH, 0, 1, BASE, 8 * MIB);
        launch(r, us + 10, 0, 1);
        for (uint32_t i = 0; (!n || cpu_takes_it) && i < 4; i++)
            moves(r, us + 20 + i, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_USER);
        wait_for_it(r, us + 500);
        for (uint32_t i = 0; cpu_takes_it && i < 4; i++) {
            stream_cpu_fault(r, us + 600 + i * 10, BASE + i * 2 * MIB);
            moves(r, us + 601 + i * 10, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_COHERENCE);
        }
    }
    return r;
}

Test(kinds, a_prefetch_of_what_is_there_is_redundant)
{
    json_t *f = own(prefetches(10, false), "redundant-prefetch", "redundant");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "calls"), 10u);
    cr_assert_eq(stream_evidence(f, "redundant_bytes"), 9 * 8 * MIB);
    cr_assert_eq(stream_evidence(f, "redundant_calls"), 9u);
}

Test(kinds, a_prefetch_of_what_the_cpu_had_is_useful)
{
    cr_assert_null(own(prefetches(10, true), "redundant-prefetch", "useful"));
    cr_assert_null(stream_finding(json, "wasted-prefetch"));
    cr_assert_null(stream_finding(json, "late-prefetch"));
}

Test(kinds, a_prefetch_on_which_a_kernel_faults_is_late)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);
    json_t *f;

    stream_cpu_fault(r, 5, BASE);
    hint(r, 100, UM_HINT_PREFETCH, 0, 1, BASE, 8 * MIB);
    launch(r, 110, 0, 1);
    for (uint32_t i = 0; i < 20; i++)
        stream_gpu_fault(r, 120 + 110 * i, 100, BASE + i * 64 * KIB);
    f = own(r, "late-prefetch", "late");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "late_faults"), 20u);
    cr_assert_eq(stream_evidence(f, "late_ns"), 20 * 100 * US);
}

static um_report_t *prefetched_and_gone(bool used)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    launch(r, 5, 0, 1); /* kernels take it as an argument */
    stream_cpu_fault(r, 10, BASE);
    hint(r, 100, UM_HINT_PREFETCH, 0, 1, BASE, 8 * MIB);
    if (used)
        launch(r, 110, 0, 1);
    for (uint32_t i = 0; i < 4; i++) {
        stream_cpu_fault(r, 600 + i * 10, BASE + i * 2 * MIB);
        moves(r, 601 + i * 10, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_COHERENCE);
    }
    return r;
}

Test(kinds, a_prefetch_that_nothing_used_is_wasted)
{
    json_t *f = own(prefetched_and_gone(false), "wasted-prefetch", "wasted");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "wasted_bytes"), 8 * MIB);
}

Test(kinds, a_prefetch_that_a_launch_took_is_not_wasted)
{
    cr_assert_null(own(prefetched_and_gone(true), "wasted-prefetch", "useful"));
}

static um_report_t *pushes_out(bool launched_between)
{
    um_report_t *r = has(32 * MIB, UM_FAMILY_MANAGED);

    stream_alloc(r, 2, 2, BASE + 64 * MIB, 32 * MIB, "other");
    stream_cpu_fault(r, 5, BASE);
    for (uint32_t i = 0; i < 16; i++)
        moves(r, 10 + i, BASE + (32 + i) * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
    hint(r, 100, UM_HINT_PREFETCH, 0, 1, BASE, 32 * MIB);
    if (launched_between)
        launch(r, 110, 0, 1);
    for (uint32_t i = 0; i < 16; i++)
        moves(r, 120 + i, BASE + (32 + i) * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    launch(r, 200, 0, 1);
    return r;
}

Test(kinds, a_prefetch_that_pushes_other_data_out_is_harmful)
{
    json_t *f = own(pushes_out(false), "harmful-prefetch", "harmful");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "evicting_bytes"), 32 * MIB);
}

Test(kinds, what_a_kernel_pushes_out_is_no_prefetch_s_doing)
{
    cr_assert_null(own(pushes_out(true), "harmful-prefetch", "useful"));
}

static um_report_t *advises(uint32_t times)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    for (uint32_t n = 0; n < times; n++)
        hint(r, 100 + n * 10, UM_HINT_PREFERRED_LOCATION, 0, 1, BASE, 8 * MIB);
    return r;
}

Test(kinds, advice_that_is_given_again_and_again_is_redundant)
{
    json_t *f = own(advises(20), "redundant-advice", "redundant");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "redundant_calls"), 19u);
    cr_assert_null(own(advises(3), "redundant-advice", "useful"));
}

/* ---- families ---- */

static um_report_t *goes_once(uint32_t launches)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    for (uint32_t i = 0; i < 4; i++)
        stream_cpu_fault(r, 5 + i, BASE + i * 2 * MIB);
    for (uint32_t n = 0; n < launches; n++) {
        launch(r, 100 + n * 5000, 0, 1);
        stream_exec(r, 101 + n * 5000, 3000, 1);
        for (uint32_t i = 0; !n && i < 4; i++) {
            stream_gpu_fault(r, 110 + i * 500, 400, BASE + i * 2 * MIB);
            moves(r, 120 + i * 500, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
        }
    }
    return r;
}

Test(kinds, data_that_is_read_once_is_found_and_no_demand_faulting)
{
    json_t *f = found(goes_once(1), "used-once");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 8 * MIB);
    cr_assert_null(stream_finding(json, "demand-faulting"));
}

Test(kinds, data_that_is_read_often_is_not_used_once)
{
    cr_assert_null(found(goes_once(5), "used-once"));
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
    json_t *f = found(from_a_pool(20, true), "pool-threshold");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "after_a_wait"), 19u);
}

Test(kinds, a_pool_without_waits_keeps_its_memory)
{
    cr_assert_null(found(from_a_pool(20, false), "pool-threshold"));
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
    json_t *f = found(pins(768 * MIB), "pinned-pressure");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "pinned_bytes"), 768 * MIB);
    cr_assert_eq(stream_evidence(f, "host_bytes"), 1024 * MIB);
    cr_assert_null(found(pins(128 * MIB), "pinned-pressure"));
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
    json_t *f = found(between_gpus(10), "gpu-bounce");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "peer_bytes"), 10 * 8 * MIB);
    cr_assert_null(found(between_gpus(1), "gpu-bounce"), "handed over once");
}

/* ---- the trace itself ---- */

Test(kinds, lost_records_are_said)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);
    json_t *f;

    stream_loss(r, 10);
    f = found(r, "lost-records");
    cr_assert_eq(stream_evidence(f, "lost_records"), 5u);
    cr_assert_null(found(has(8 * MIB, UM_FAMILY_MANAGED), "lost-records"));
}

Test(kinds, tracing_that_was_off_is_said)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_fact(r, "um.tracing", "off");
    cr_assert_not_null(found(r, "tracing-off"));
    r = has(8 * MIB, UM_FAMILY_MANAGED);
    stream_fact(r, "um.tracing", "off");
    stream_fact(r, "workload.accesses", "exact");
    cr_assert_null(found(r, "tracing-off"), "a made-up program says what it accesses");
    r = has(8 * MIB, UM_FAMILY_MANAGED);
    stream_fact(r, "um.tracing", "on");
    cr_assert_null(found(r, "tracing-off"));
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

Test(kinds, a_threshold_decides)
{
    um_limits_t limits = um_limits_default;
    um_report_options_t options = {.format = UM_REPORT_JSON,
                                   .top = 100,
                                   .width = 100,
                                   .limits = &limits};
    um_report_t *r = advises(20);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    limits.advice_calls = 50;
    cr_assert_eq(um_report_write(r, &options, out), UM_OK);
    fclose(out);
    um_report_free(r);
    cr_assert_null(strstr(text, "redundant-advice"));
    free(text);
}

/* ---- families --------------------------------------------------------------------------------- */

static const char *best(um_report_t *r, const char *name, bool *change)
{
    json_t *row;
    size_t i;

    json_decref(json);
    json = stream_json(r);
    um_report_free(r);
    json_array_foreach(json_object_get(json, "families"), i, row)
    {
        if (strcmp(text_of(row, "name"), name) != 0)
            continue;
        if (change)
            *change = json_is_true(json_object_get(row, "change"));
        return text_of(row, "best");
    }
    return "no such buffer";
}

/* All of it to the GPU and back each round, with so many launches in it. */
static um_report_t *rounds(uint32_t launches)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    for (uint32_t n = 0; n < 4; n++) {
        uint64_t us = 100 + n * 100000;

        for (uint32_t k = 0; k < launches; k++)
            launch(r, us + k, 0, 1);
        for (uint32_t i = 0; i < 4; i++)
            moves(r, us + 100 + i * 100, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
        for (uint32_t i = 0; i < 4; i++) {
            stream_cpu_fault(r, us + 1000 + i * 100, BASE + i * 2 * MIB);
            moves(r, us + 1010 + i * 100, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST,
                  UM_CAUSE_COHERENCE);
        }
    }
    return r;
}

Test(families, what_goes_to_and_fro_is_mapped_when_it_is_used_a_few_times_a_trip)
{
    bool change = false;

    cr_assert_str_eq(best(rounds(1), "field", &change), "mapped");
    cr_assert(change);
    cr_assert_str_eq(best(rounds(3), "field", NULL), "mapped");
    cr_assert_str_eq(best(rounds(20), "field", NULL), "device-copies");
}

Test(families, scratch_of_the_gpu_alone_belongs_in_a_pool)
{
    um_report_t *r = stream_new("scratch.umt");

    stream_alloc(r, 1, 1, BASE + 64 * MIB, 64 * KIB, "other");
    stream_cpu_fault(r, 2, BASE + 64 * MIB);
    for (uint32_t n = 0; n < 20; n++) {
        stream_alloc(r, 10 + 100 * n, 2 + n, BASE, 8 * MIB, "scratch");
        stream_gpu_fault(r, 20 + 100 * n, 50, BASE);
        stream_free(r, 90 + 100 * n, 2 + n, BASE);
    }
    cr_assert_str_eq(best(r, "scratch", NULL), "pool");
}

Test(families, memory_of_the_gpu_alone_that_stays_is_cudamalloc_s)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_alloc(r, 1, 2, BASE + 64 * MIB, 64 * KIB, "other");
    stream_cpu_fault(r, 2, BASE + 64 * MIB);
    launch(r, 100, 0, 1);
    stream_gpu_fault(r, 120, 50, BASE);
    cr_assert_str_eq(best(r, "field", NULL), "device-copies");
}

Test(families, data_read_once_is_mapped_and_data_read_often_is_hinted)
{
    cr_assert_str_eq(best(goes_once(1), "field", NULL), "mapped");
    cr_assert_str_eq(best(goes_once(10), "field", NULL), "managed-hints");
}

Test(families, what_is_prefetched_already_needs_no_change)
{
    bool change = true;

    cr_assert_str_eq(best(prefetches(10, false), "field", &change), "managed-hints");
    cr_assert_not(change);
}

Test(families, other_families_stay_what_they_are_but_for_churn)
{
    bool change = true;
    um_report_t *r;

    cr_assert_str_eq(best(has(8 * MIB, UM_FAMILY_PINNED), "field", &change), "device-copies");
    cr_assert_not(change);
    cr_assert_str_eq(best(has(8 * MIB, UM_FAMILY_MAPPED), "field", &change), "mapped");
    cr_assert_not(change);
    cr_assert_str_eq(best(has(8 * MIB, UM_FAMILY_SYSTEM), "field", &change), "registered");
    cr_assert(change);
    r = stream_new("device.umt");
    for (uint32_t n = 0; n < 20; n++) {
        stream_put(r, (um_event_t){.time_ns = (10 + 100 * n) * US,
                                   .type = UM_EV_REGION_ALLOC,
                                   .u.region_alloc = {.region = 1 + n,
                                                      .family = UM_FAMILY_DEVICE,
                                                      .addr = BASE,
                                                      .bytes = 8 * MIB}});
        stream_free(r, 50 + 100 * n, 1 + n, BASE);
    }
    cr_assert_str_eq(best(r, "20 regions of 8.00 MiB", &change), "pool");
    cr_assert(change);
}

Test(families, evicted_data_keeps_a_part_and_maps_the_rest)
{
    cr_assert_str_eq(best(evicted(in_order, 3), "field", NULL), "managed-hints");
}

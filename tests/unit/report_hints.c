/* Findings about the program's own hints: advice and prefetches. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings/finding.h"
#include "report_kinds.h"

TestSuite(kinds, .fini = drop_report);

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
    json_t *f = found_in(read_mostly(false), "read-mostly-written");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "write_faults"), 20u);
    cr_assert_eq(stream_evidence(f, "write_fault_ns"), 20 * 100 * US);
}

Test(kinds, read_mostly_that_was_taken_away_before_is_none)
{
    cr_assert_null(found_in(read_mostly(true), "read-mostly-written"));
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
    json_t *f = found_in(located(UM_DEVICE_HOST, 0), "wrong-location");

    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "launches_far"), 20u);
    f = found_in(located(1, 0), "wrong-location");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "launches_on_another_gpu"), 20u);
}

Test(kinds, a_location_where_the_work_is_done_is_none)
{
    um_report_t *r = located(UM_DEVICE_HOST, 0);

    cr_assert_null(found_in(located(0, 0), "wrong-location"));
    stream_cpu_fault(r, 10000, BASE + 8 * MIB);
    cr_assert_null(found_in(r, "wrong-location"), "the CPU uses it, too");
}

/* ---- the program's own prefetches ---- */

static json_t *own(um_report_t *r, const char *kind, const char *verdict)
{
    json_t *f = found_in(r, kind);

    cr_assert_str_eq(text_of(json_array_get(json_object_get(json, "own_hints"), 0), "verdict"),
                     verdict);
    return f;
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

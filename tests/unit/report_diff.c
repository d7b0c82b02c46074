/* Two sides of reports: the rank test against counting, medians, verdicts and conditions with known answers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"
#include "report/rank_test.h"

/* ---- the test --------------------------------------------------------------------------------- */

static uint64_t state;

static double draw(void) /* few values, so that there are ties */
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 60);
}

/* Twice the mean rank of v among all. */
static size_t twice_rank(double v, const double *all, size_t n)
{
    size_t less = 0, equal = 0;

    for (size_t i = 0; i < n; i++) {
        less += all[i] < v;
        equal += all[i] == v;
    }
    return 2 * less + equal + 1;
}

/* By trying every choice of n out of all. */
static double counted(const double *a, size_t n, const double *b, size_t m)
{
    double all[16];
    size_t total = n + m, far = 0, ways = 0;
    double mean = (double)(n * (total + 1)), distance = 0;

    memcpy(all, a, n * sizeof(*a));
    memcpy(all + n, b, m * sizeof(*b));
    for (uint32_t choice = (1u << n) - 1, first = 1; choice < 1u << total; choice++) {
        double sum = 0;

        if ((size_t)__builtin_popcount(choice) != n)
            continue;
        for (size_t i = 0; i < total; i++)
            sum += choice >> i & 1 ? (double)twice_rank(all[i], all, total) : 0;
        if (first) /* the lowest n: a itself */
            distance = fabs(sum - mean);
        first = 0;
        ways++;
        far += fabs(sum - mean) >= distance - 1e-9;
    }
    return (double)far / (double)ways;
}

Test(rank_test, is_the_count_of_all_ways)
{
    state = 11;
    for (int round = 0; round < 60; round++) {
        size_t n = 1 + (size_t)round % 5, m = 1 + (size_t)round / 5 % 6;
        double a[8], b[8];

        for (size_t i = 0; i < n; i++)
            a[i] = draw();
        for (size_t i = 0; i < m; i++)
            b[i] = draw() + (round & 1 ? 3 : 0);
        cr_assert_float_eq(um_rank_test(a, n, b, m), counted(a, n, b, m), 1e-12, "%zu %zu round %d",
                           n, m, round);
    }
}

Test(rank_test, has_the_values_of_the_tables)
{
    const double low[] = {1, 2, 3, 4, 5}, high[] = {11, 12, 13, 14, 15}, mixed[] = {1, 12, 3, 14};

    cr_assert_float_eq(um_rank_test(low, 3, high, 3), 0.1, 1e-12);
    cr_assert_float_eq(um_rank_test(low, 4, high, 4), 2.0 / 70, 1e-12);
    cr_assert_float_eq(um_rank_test(high, 5, low, 5), 2.0 / 252, 1e-12);
    cr_assert_float_eq(um_rank_test(low, 5, low, 5), 1, 1e-12);
    cr_assert_float_eq(um_rank_test(low, 1, high, 1), 1, 1e-12);
    cr_assert_gt(um_rank_test(low, 4, mixed, 4), 0.2);
    cr_assert_eq(um_rank_test(low, 0, high, 3), 1);
    cr_assert_float_eq(um_rank_test_least(3, 3), 0.1, 1e-12);
    cr_assert_float_eq(um_rank_test_least(5, 5), 2.0 / 252, 1e-12);
    cr_assert_eq(um_rank_test_least(1, 1), 1);
}

Test(rank_test, many_values_take_the_approximation)
{
    double a[200], b[200], shifted[200];

    state = 5;
    for (size_t i = 0; i < 200; i++) {
        a[i] = draw();
        b[i] = draw();
        shifted[i] = draw() + 4;
    }
    cr_assert_gt(um_rank_test(a, 200, b, 200), 0.05);
    cr_assert_lt(um_rank_test(a, 200, shifted, 200), 1e-6);
    cr_assert_float_eq(um_rank_test(a, 200, a, 200), 1, 1e-9);
}

/* ---- reports ---------------------------------------------------------------------------------- */

typedef struct made {
    int faults, bytes, ms; /* totals, and of the one region and kernel */
    const char *finding;   /* where of a ping-pong, NULL = none */
    int win_ms;
} made_t;

static json_t *report(made_t made)
{
    json_t *findings = json_array(), *r;
    json_int_t ns = made.ms * (json_int_t)1000000;

    if (made.finding)
        json_array_append_new(findings,
                              json_pack("{s:s, s:s, s:I, s:{s:i, s:i}}", "kind", "ping-pong",
                                        "where", made.finding, "win_ns",
                                        made.win_ms * (json_int_t)1000000, "evidence", "gpu_faults",
                                        made.faults, "to_device_bytes", made.bytes));
    r = json_pack("{s:s, s:[{s:s, s:s, s:n, s:{s:i}}], s:{s:i, s:n, s:i, s:i, s:I, s:n, s:I},"
                  " s:i, s:o, s:i, s:[{s:s, s:i, s:s, s:i, s:n, s:i, s:i, s:I, s:n}],"
                  " s:i, s:[{s:s, s:i, s:i, s:I}]}",
                  "schema", "umrt.report/1", "traces", "gpu", "NVIDIA H200", "tracing", "on",
                  "note", "loss", "events", 0, "totals", "gpu_faults", made.faults, "cpu_faults",
                  "to_device_bytes", made.bytes, "to_host_bytes", 0, "gpu_fault_ns", ns,
                  "cpu_wait_ns", "span_ns", ns * 4, "findings_found", made.finding ? 1 : 0,
                  "findings", findings, "regions_found", 1, "regions", "name",
                  "region 1 (1.00 MiB)", "region", 1, "call_site", "app+0x10", "gpu_faults",
                  made.faults, "cpu_faults", "to_device_bytes", made.bytes, "to_host_bytes", 0,
                  "gpu_fault_ns", ns, "cpu_wait_ns", "kernels_found", 1, "kernels", "name", "step",
                  "gpu_faults", made.faults, "to_device_bytes", made.bytes, "gpu_fault_ns", ns);
    cr_assert_not_null(r);
    return r;
}

static void add(um_diff_t *diff, int side, made_t made)
{
    json_t *r = report(made);
    char error[200] = "";

    cr_assert_eq(um_diff_add(diff, side, side ? "b" : "a", r, error, sizeof(error)), UM_OK, "%s",
                 error);
    json_decref(r);
}

static um_diff_t *new_diff(void)
{
    um_diff_t *diff;

    cr_assert_eq(um_diff_new(&diff), UM_OK);
    return diff;
}

static bool fires(um_diff_t *diff, const char *conditions)
{
    bool fired = false;
    char error[600];

    cr_assert_eq(um_diff_fail_on(diff, conditions, &fired, error, sizeof(error)), UM_OK, "%s",
                 error);
    return fired;
}

static json_t *written(const um_diff_t *diff)
{
    um_report_options_t options = {.format = UM_REPORT_JSON, .top = 100, .width = 100};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    json_t *json;

    cr_assert_eq(um_diff_write(diff, &options, out), UM_OK);
    fclose(out);
    json = json_loads(text, 0, NULL);
    cr_assert_not_null(json, "%s", text);
    free(text);
    return json;
}

static json_t *row(json_t *diff, const char *table, const char *key, const char *value)
{
    json_t *element;
    size_t i;

    json_array_foreach(json_object_get(diff, table), i, element)
    {
        const char *text = json_string_value(json_object_get(element, key));

        if (text && !strcmp(text, value))
            return element;
    }
    cr_assert_fail("no %s with %s %s", table, key, value);
    return NULL;
}

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

#define FINDING "region 1 (1.00 MiB) allocated at app+0x10; kernel step; CPU at pc 0x11"

Test(diff, one_a_side_is_compared_without_a_test)
{
    um_diff_t *diff = new_diff();
    json_t *json, *total;

    add(diff, 0, (made_t){.faults = 100, .bytes = 4096, .ms = 10});
    add(diff, 1, (made_t){.faults = 150, .bytes = 4096, .ms = 5});
    cr_assert_eq(um_diff_compare(diff), UM_OK);
    cr_assert(fires(diff, "gpu-faults>10%"));
    cr_assert(fires(diff, "gpu-faults>49.9%"));
    cr_assert_not(fires(diff, "gpu-faults>50%"));
    cr_assert_not(fires(diff, "bytes>0%,gpu-stall>0%,new-finding"));
    json = written(diff);
    cr_assert(json_is_null(json_object_get(json_object_get(json, "test"), "name")));
    total = row(json, "totals", "total", "gpu-faults");
    cr_assert_float_eq(json_real_value(json_object_get(total, "change_percent")), 50, 1e-9);
    cr_assert_str_eq(text_of(total, "verdict"), "worse");
    cr_assert(json_is_null(json_object_get(total, "p")));
    cr_assert_str_eq(text_of(row(json, "totals", "total", "gpu-stall"), "verdict"), "better");
    cr_assert_str_eq(text_of(row(json, "totals", "total", "bytes"), "verdict"), "same");
    cr_assert_str_eq(text_of(row(json, "totals", "total", "cpu-faults"), "verdict"), "unknown");
    cr_assert_str_eq(text_of(row(json, "kernels", "name", "step"), "time_verdict"), "better");
    cr_assert_str_eq(text_of(row(json, "regions", "name", "region 1 (1.00 MiB)"), "faults_verdict"),
                     "worse");
    cr_assert(json_is_true(json_object_get(json, "failed")));
    json_decref(json);
    um_diff_free(diff);
}

/* Runs that scatter by a tenth: chance is told from a change of a third. */
static um_diff_t *five(double factor)
{
    um_diff_t *diff = new_diff();

    state = 77;
    for (int i = 0; i < 10; i++) {
        int faults = (int)((1000 + 100 * draw() / 16) * (i & 1 ? factor : 1));

        add(diff, i & 1, (made_t){.faults = faults, .bytes = 4096, .ms = faults});
    }
    cr_assert_eq(um_diff_compare(diff), UM_OK);
    return diff;
}

Test(diff, five_a_side_tell_a_change_from_chance)
{
    um_diff_t *diff = five(1.333);
    json_t *json = written(diff), *total = row(json, "totals", "total", "gpu-faults");

    cr_assert_float_eq(json_real_value(json_object_get(total, "p")), 2.0 / 252, 1e-9);
    cr_assert_str_eq(text_of(total, "verdict"), "worse");
    cr_assert(fires(diff, "gpu-faults>10%"));
    cr_assert_not(fires(diff, "gpu-faults>60%"));
    json_decref(json);
    um_diff_free(diff);

    diff = five(1);
    json = written(diff);
    total = row(json, "totals", "total", "gpu-faults");
    cr_assert_gt(json_real_value(json_object_get(total, "p")), 0.05);
    cr_assert_str_eq(text_of(total, "verdict"), "unsure");
    cr_assert_not(fires(diff, "gpu-faults>0%,gpu-stall>0%,bytes>0%"));
    json_decref(json);
    um_diff_free(diff);
}

Test(diff, three_a_side_must_lie_beyond_each_other)
{
    const int beyond[] = {100, 110, 120, 130, 140, 150}, among[] = {100, 125, 120, 130, 110, 150};
    const int *const cases[] = {beyond, among};

    for (int c = 0; c < 2; c++) {
        um_diff_t *diff = new_diff();

        for (int i = 0; i < 6; i++)
            add(diff, i / 3, (made_t){.faults = cases[c][i]});
        cr_assert_eq(um_diff_compare(diff), UM_OK);
        cr_assert_eq(fires(diff, "gpu-faults>1%"), c == 0);
        um_diff_free(diff);
    }
}

Test(diff, findings_are_the_same_in_another_build)
{
    um_diff_t *diff = new_diff();
    json_t *json;

    add(diff, 0, (made_t){.finding = FINDING, .win_ms = 10});
    add(diff, 1,
        (made_t){.finding =
                     "region 2 (1.00 MiB) allocated at app+0x999; kernel step; CPU at pc 0x77",
                 .win_ms = 30});
    cr_assert_eq(um_diff_compare(diff), UM_OK);
    cr_assert_not(fires(diff, "new-finding"));
    json = written(diff);
    cr_assert_eq(json_array_size(json_object_get(json, "findings")), 1);
    cr_assert_str_eq(text_of(row(json, "findings", "kind", "ping-pong"), "state"), "both");
    cr_assert_str_eq(text_of(row(json, "findings", "kind", "ping-pong"), "time_verdict"), "worse");
    json_decref(json);
    um_diff_free(diff);
}

Test(diff, a_finding_is_new_when_most_of_b_have_it_and_most_of_a_have_not)
{
    static const struct {
        int of_a, of_b; /* of three each */
        bool is_new;
        const char *state;
    } cases[] = {{0, 3, true, "new"},   {1, 2, true, "new"},   {0, 1, false, "sometimes"},
                 {2, 3, false, "both"}, {3, 0, false, "gone"}, {1, 1, false, "sometimes"}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        um_diff_t *diff = new_diff();
        json_t *json;

        for (int i = 0; i < 3; i++) {
            add(diff, 0, (made_t){.finding = i < cases[c].of_a ? FINDING : NULL, .win_ms = 5});
            add(diff, 1, (made_t){.finding = i < cases[c].of_b ? FINDING : NULL, .win_ms = 5});
        }
        cr_assert_eq(um_diff_compare(diff), UM_OK);
        cr_assert_eq(fires(diff, "new-finding"), cases[c].is_new, "case %zu", c);
        cr_assert_eq(fires(diff, "new-finding=ping-pong"), cases[c].is_new);
        cr_assert_not(fires(diff, "new-finding=first-touch"));
        json = written(diff);
        cr_assert_str_eq(text_of(row(json, "findings", "kind", "ping-pong"), "state"),
                         cases[c].state, "case %zu", c);
        json_decref(json);
        um_diff_free(diff);
    }
}

Test(diff, what_was_cut_off_or_not_recorded_is_not_judged)
{
    um_diff_t *diff = new_diff();
    json_t *r = report((made_t){.faults = 1});
    bool fired = false;
    char error[600];

    json_object_set_new(r, "findings_found", json_integer(30));
    cr_assert_eq(um_diff_add(diff, 0, "a", r, error, sizeof(error)), UM_OK);
    json_decref(r);
    add(diff, 1, (made_t){.faults = 1, .finding = FINDING, .win_ms = 5});
    cr_assert_eq(um_diff_compare(diff), UM_OK);
    cr_assert_eq(um_diff_fail_on(diff, "new-finding", &fired, error, sizeof(error)),
                 UM_ERR_UNSUPPORTED);
    cr_assert_not_null(strstr(error, "--top"));
    cr_assert_eq(um_diff_fail_on(diff, "cpu-faults>1%", &fired, error, sizeof(error)),
                 UM_ERR_UNSUPPORTED);
    cr_assert_not_null(strstr(error, "not recorded"));
    cr_assert_eq(um_diff_fail_on(diff, "faults>1%", &fired, error, sizeof(error)),
                 UM_ERR_UNSUPPORTED);
    cr_assert_not(fired);
    um_diff_free(diff);
}

Test(diff, more_than_nothing_always_is_too_much)
{
    um_diff_t *diff = new_diff();

    add(diff, 0, (made_t){.faults = 0});
    add(diff, 1, (made_t){.faults = 1});
    cr_assert_eq(um_diff_compare(diff), UM_OK);
    cr_assert(fires(diff, "gpu-faults>1000%"));
    um_diff_free(diff);
}

Test(diff, bad_conditions_are_refused)
{
    static const char *const bad[] = {"",          "bytes",        "bytes>",       "bytes>x%",
                                      "bytes>10",  "byte>10%",     "bytes>-1%",    "bytes>10%x",
                                      "bytes>1%,", "new-findings", "new-finding=", "new-finding=x",
                                      ">10%",      "bytes>.%",     "bytes<10%",    "bytes>1e3%"};
    um_diff_t *diff = new_diff();

    add(diff, 0, (made_t){.faults = 0});
    add(diff, 1, (made_t){.faults = 0});
    cr_assert_eq(um_diff_compare(diff), UM_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bool fired = false;
        char error[600] = "";

        cr_expect_eq(um_diff_fail_on(diff, bad[i], &fired, error, sizeof(error)), UM_ERR_INVALID,
                     "'%s'", bad[i]);
        cr_expect_neq(*error, '\0', "'%s'", bad[i]);
    }
    um_diff_free(diff);
}

Test(diff, what_is_no_whole_report_is_refused)
{
    um_diff_t *diff = new_diff();
    json_t *damaged = report((made_t){.faults = 1}), *other = json_pack("{s:s}", "schema", "x/1");
    json_t *bare = json_pack("{s:s}", "schema", "umrt.report/1"), *text = json_string("x");
    char error[200] = "";

    json_object_set_new(json_array_get(json_object_get(damaged, "traces"), 0), "note",
                        json_string("cut off"));
    cr_assert_eq(um_diff_add(diff, 0, "a", damaged, error, sizeof(error)), UM_ERR_FORMAT);
    cr_assert_not_null(strstr(error, "cut off"));
    cr_assert_eq(um_diff_add(diff, 0, "a", other, error, sizeof(error)), UM_ERR_FORMAT);
    cr_assert_eq(um_diff_add(diff, 0, "a", bare, error, sizeof(error)), UM_ERR_FORMAT);
    cr_assert_eq(um_diff_add(diff, 0, "a", text, error, sizeof(error)), UM_ERR_FORMAT);
    cr_assert_eq(um_diff_compare(diff), UM_ERR_STATE);
    json_decref(damaged);
    json_decref(other);
    json_decref(bare);
    json_decref(text);
    um_diff_free(diff);
}

/* Names that are the same in another run, source lines, SARIF's places, Nsight's tables. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/csv.h"
#include "report/perfetto.h"
#include "report/same.h"
#include "report_stream.h"

static void same(const char *text, const char *expected)
{
    char out[200];

    um_same_name(text, out, sizeof(out));
    cr_expect_str_eq(out, expected, "'%s' became '%s'", text, out);
}

Test(same, leaves_out_what_differs_from_run_to_run)
{
    same(
        "region 1 (64.0 MiB) allocated at app+0x3de0f, all of it; kernel add; CPU at pc 0x564b5a0d",
        "region (64.0 MiB) allocated at app; kernel add");
    same("region 12 (1 B), from 3.0 MiB to 4.0 MiB in it; kernel a, from",
         "region (1 B); kernel a, from");
    same("10 regions of 16.0 MiB, its first 8 B; kernel a", "regions of 16.0 MiB; kernel a");
    same("grid, addresses 0x10 to 0x20; kernel a", "grid; kernel a");
    same("64 KiB page 0x7ff528000000: a, b; and 3 more like it", "64 KiB page : a, b");
    same("grid allocated at main (src/solver.cu:42) from run (main.cu:7)",
         "grid allocated at main (src/solver.cu) from run (main.cu)");
    same("kernel step<0>", "kernel step<0>");
    same("subregion 3, region x", "subregion 3, region x");
    same("std::vector<int>::at 0x", "std::vector<int>::at 0x");
    same("", "");
}

Test(same, cuts_at_the_end_of_the_buffer)
{
    char out[4];

    um_same_name("kernel", out, sizeof(out));
    cr_assert_str_eq(out, "ker");
    um_same_name("region 5", out, sizeof(out));
    cr_assert_str_eq(out, "reg");
}

Test(same, finds_every_source_line_and_nothing_else)
{
    const char *text =
        "grid at main (src/solver.cu:42) from f, a.b:c, x:3, 0x12:4, run (main.cu:7)";
    const char *file;
    size_t bytes;
    unsigned line;

    text = um_same_source(text, &file, &bytes, &line);
    cr_assert_not_null(text);
    cr_assert_eq(bytes, strlen("src/solver.cu"));
    cr_assert_eq(strncmp(file, "src/solver.cu", bytes), 0);
    cr_assert_eq(line, 42);
    text = um_same_source(text, &file, &bytes, &line);
    cr_assert_not_null(text);
    cr_assert_eq(strncmp(file, "main.cu:7", bytes + 2), 0);
    cr_assert_eq(line, 7);
    cr_assert_null(um_same_source(text, &file, &bytes, &line));
}

/* A buffer that goes to and fro, allocated at a line that the trace names. */
static um_report_t *to_and_fro(const char *frames)
{
    um_report_t *r = stream_new("t.umt");

    stream_put(r, (um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {0xabc, frames}});
    stream_alloc_at(r, 1, 1, BASE, 64 * KIB, 0xabc);
    stream_kernel(r, 1, "step(float*)");
    for (uint64_t i = 0, us = 1000; i < 8; i++, us += 1000) {
        stream_exec(r, us, 400, 1);
        stream_gpu_fault(r, us + 10, 100, BASE);
        stream_move(r, us + 50, 20, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
        stream_cpu_fault(r, us + 600, BASE);
        stream_move(r, us + 640, 20, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    }
    return r;
}

static json_t *sarif_result(um_report_t *r)
{
    char *text = stream_text(r, UM_REPORT_SARIF, 100);
    json_t *log = json_loads(text, 0, NULL), *result;

    cr_assert_not_null(log);
    result =
        json_array_get(json_object_get(json_array_get(json_object_get(log, "runs"), 0), "results"),
                       0);
    cr_assert_not_null(result, "%s", text);
    json_incref(result);
    json_decref(log);
    free(text);
    um_report_free(r);
    return result;
}

static const char *fingerprint(json_t *result)
{
    return json_string_value(
        json_object_get(json_object_get(result, "partialFingerprints"), "umrtFinding/v1"));
}

Test(sarif, a_source_line_is_the_place_and_those_behind_it_are_related)
{
    json_t *result = sarif_result(to_and_fro("alloc (/src/my grid.cu:42);main (/src/main.cu:7)"));
    json_t *other = sarif_result(to_and_fro("alloc (src/grid.cu:42);main (main.cu:7)"));
    const char *uri = NULL, *kind = NULL;
    int line = 0;

    cr_assert_eq(json_unpack(other, "{s:s, s:[{s:{s:{s:s}, s:{s:i}}}]}", "ruleId", &kind,
                             "locations", "physicalLocation", "artifactLocation", "uri", &uri,
                             "region", "startLine", &line),
                 0);
    cr_assert_str_eq(kind, "ping-pong");
    cr_assert_str_eq(uri, "src/grid.cu");
    cr_assert_eq(line, 42);
    cr_assert_neq(strcmp(fingerprint(result), fingerprint(other)), 0);
    json_decref(result);
    json_decref(other);
}

Test(sarif, a_finding_about_a_kernel_is_placed_where_its_region_comes_from)
{
    um_report_t *r = stream_new("t.umt");
    const char *where = NULL, *uri = NULL;
    json_t *result;
    int line = 0;

    stream_put(r,
               (um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {0xabc, "alloc (grid.cu:42)"}});
    stream_alloc_at(r, 1, 1, BASE, 64 * MIB, 0xabc);
    stream_kernel(r, 1, "fill(float*)");
    stream_cpu_fault(r, 2, BASE + 63 * MIB); /* one page is the CPU's */
    stream_exec(r, 1000, 9000, 1);
    for (uint64_t i = 0; i < 31; i++)
        stream_gpu_fault(r, 1010 + i * 200, 190, BASE + i * 2 * MIB);
    result = sarif_result(r);
    cr_assert_eq(json_unpack(result, "{s:[{s:[{s:s}], s:{s:{s:s}, s:{s:i}}}]}", "locations",
                             "logicalLocations", "fullyQualifiedName", &where, "physicalLocation",
                             "artifactLocation", "uri", &uri, "region", "startLine", &line),
                 0);
    cr_assert_str_eq(where, "kernel fill");
    cr_assert_str_eq(uri, "grid.cu");
    cr_assert_eq(line, 42);
    json_decref(result);
}

Test(sarif, without_a_source_line_there_is_only_the_logical_place)
{
    json_t *result = sarif_result(to_and_fro("app+0x1234"));
    json_t *location = json_array_get(json_object_get(result, "locations"), 0);

    cr_assert_null(json_object_get(location, "physicalLocation"));
    cr_assert_not_null(json_object_get(location, "logicalLocations"));
    json_decref(result);
}

Test(sarif, the_fingerprint_outlives_a_new_build)
{
    json_t *old = sarif_result(to_and_fro("alloc (grid.cu:42);main (main.cu:7)"));
    json_t *moved = sarif_result(to_and_fro("alloc (grid.cu:57);main (main.cu:9)"));
    json_t *elsewhere = sarif_result(to_and_fro("alloc (mesh.cu:42);main (main.cu:7)"));

    cr_assert_str_eq(fingerprint(old), fingerprint(moved));
    cr_assert_neq(strcmp(fingerprint(old), fingerprint(elsewhere)), 0);
    json_decref(old);
    json_decref(moved);
    json_decref(elsewhere);
}

/* ---- CSV -------------------------------------------------------------------------------------- */

static char *table(const char *name, const um_event_t *events, size_t n)
{
    um_csv_t *csv;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    cr_assert_eq(um_csv_new(name, &csv), UM_OK);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(um_csv_event(csv, &events[i]), UM_OK);
    cr_assert_eq(um_csv_write(csv, UINT64_MAX, out), UM_OK);
    fclose(out);
    um_csv_free(csv);
    return text;
}

static const um_event_t events[] = {
    {.type = UM_EV_CALL_SITE, .u.call_site = {0x99, "fill (a, \"b\".c:3)"}},
    {.type = UM_EV_CPU_FAULT, .u.cpu_fault = {.addr = 0x2000, .pc = 0x99}},
    {.type = UM_EV_CPU_FAULT, .u.cpu_fault = {.addr = 0x9000, .pc = 0x99}},
    {.type = UM_EV_CPU_FAULT, .u.cpu_fault = {.addr = 0x2000, .pc = 0xabc}},
    {.type = UM_EV_GPU_FAULT, .u.gpu_fault = {.addr = 0x2000, .groups = 5}},
    {.type = UM_EV_MIGRATE,
     .u.migrate = {.addr = 0x2000, .bytes = 3000000, .duration_ns = 1000, .src = -1, .dst = 0}},
    {.type = UM_EV_MIGRATE,
     .u.migrate = {.addr = 0x2000, .bytes = 1000000, .duration_ns = 1000, .src = 0, .dst = -1}},
    {.type = UM_EV_MIGRATE,
     .u.migrate = {.addr = 0x1000, .bytes = 500, .duration_ns = 1, .src = 0, .dst = 1}},
};

Test(csv, sums_by_address_in_the_order_of_throughput)
{
    char *text = table("um_sum", events, sizeof(events) / sizeof(events[0]));

    cr_assert_str_eq(strchr(text, '\n') + 1, "0x2000,3.000,1.000,2,5,2000000.000\n0x9000,,,1,,\n");
    free(text);
}

Test(csv, one_row_of_totals_also_of_nothing)
{
    char *text = table("um_total_sum", events, sizeof(events) / sizeof(events[0]));

    cr_assert_str_eq(strchr(text, '\n') + 1, "3.000,1.000,3,5,0x2000,0x9000\n");
    free(text);
    text = table("um_total_sum", events, 0);
    cr_assert_str_eq(strchr(text, '\n') + 1, ",,,,,\n");
    free(text);
}

Test(csv, cpu_faults_by_instruction_named_where_the_trace_names_it)
{
    char *text = table("um_cpu_page_faults_sum", events, sizeof(events) / sizeof(events[0]));

    cr_assert_str_eq(strchr(text, '\n') + 1, "2,\"fill (a, \"\"b\"\".c:3)\"\n1,0xABC\n");
    free(text);
}

Test(csv, a_table_that_is_not_there_is_not_found)
{
    um_csv_t *csv;

    cr_assert_eq(um_csv_new("um_something", &csv), UM_ERR_NOT_FOUND);
}

/* ---- Perfetto --------------------------------------------------------------------------------- */

static json_t *perfetto(const um_event_t *list, size_t n)
{
    um_perfetto_t *to;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    json_t *log;

    cr_assert_eq(um_perfetto_new(out, &to), UM_OK);
    cr_assert_eq(um_perfetto_begin(to, "t \"1\".umt"), UM_OK);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(um_perfetto_event(to, &list[i]), UM_OK);
    cr_assert_eq(um_perfetto_close(to), UM_OK);
    fclose(out);
    cr_assert_eq(strncmp(text, UM_PERFETTO_START, strlen(UM_PERFETTO_START)), 0);
    log = json_loads(text, 0, NULL);
    cr_assert_not_null(log, "%s", text);
    free(text);
    return log;
}

/* How many events have this phase and name, with their tids and times added up. */
static size_t shown(json_t *log, const char *phase, const char *name, json_int_t *tids, double *ts)
{
    json_t *event;
    size_t i, n = 0;

    *tids = 0;
    *ts = 0;
    json_array_foreach(json_object_get(log, "traceEvents"), i, event)
    {
        if (strcmp(json_string_value(json_object_get(event, "ph")), phase) != 0 ||
            strcmp(json_string_value(json_object_get(event, "name")), name) != 0)
            continue;
        *tids += json_integer_value(json_object_get(event, "tid"));
        *ts += json_number_value(json_object_get(event, "ts"));
        n++;
    }
    return n;
}

#define MOVE(ns, lasts, from, to)                                                                  \
    {                                                                                              \
        .time_ns = (ns), .type = UM_EV_MIGRATE, .u.migrate = {                                     \
            .addr = 1,                                                                             \
            .bytes = 100,                                                                          \
            .duration_ns = (lasts),                                                                \
            .src = (from),                                                                         \
            .dst = (to),                                                                           \
            .cause = UM_CAUSE_COHERENCE,                                                           \
            .region = 1                                                                            \
        }                                                                                          \
    }

Test(perfetto, what_overlaps_is_in_lanes_and_what_does_not_is_in_one)
{
    const um_event_t apart[] = {MOVE(1000, 10, -1, 0), MOVE(1010, 10, -1, 0),
                                MOVE(1020, 10, -1, 0)};
    const um_event_t across[] = {MOVE(1000, 20, -1, 0), MOVE(1010, 20, -1, 0),
                                 MOVE(1025, 9, -1, 0)};
    json_int_t tids, first;
    double ts;
    json_t *log = perfetto(apart, 3);

    cr_assert_eq(shown(log, "X", "fault", &tids, &ts), 3);
    cr_assert_float_eq(ts, 3.03, 1e-9);
    first = tids / 3;
    json_decref(log);
    log = perfetto(across, 3);
    cr_assert_eq(shown(log, "X", "fault", &tids, &ts), 3);
    cr_assert_eq(tids, 3 * first + 1, "the second is one lane further, the third in the first");
    json_decref(log);
}

Test(perfetto, counts_what_is_on_a_gpu_until_it_leaves_or_is_freed)
{
    const um_event_t list[] = {
        {.time_ns = 1, .type = UM_EV_REGION_ALLOC, .u.region_alloc = {.region = 1, .bytes = 400}},
        MOVE(100000, 1, -1, 0),
        MOVE(200000, 1, -1, 0),
        MOVE(300000, 1, 0, -1),
        MOVE(400000, 1, 0, 1),
        {.time_ns = 500000, .type = UM_EV_REGION_FREE, .u.region_free = {.region = 1}},
    };
    const int expected[] = {100, 200, 100, 0, 100, 0};
    json_t *log = perfetto(list, sizeof(list) / sizeof(list[0])), *event;
    size_t i, n = 0;

    json_array_foreach(json_object_get(log, "traceEvents"), i, event)
    {
        json_t *bytes = json_object_get(json_object_get(event, "args"), "bytes");

        if (strcmp(json_string_value(json_object_get(event, "ph")), "C") != 0)
            continue;
        cr_assert_lt(n, 6);
        cr_assert_eq(json_integer_value(bytes), expected[n], "value %zu is %d", n,
                     (int)json_integer_value(bytes));
        n++;
    }
    cr_assert_eq(n, 6);
    json_decref(log);
}

Test(perfetto, ranges_and_waits_begin_and_end)
{
    const um_event_t list[] = {
        {.time_ns = 10, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_PUSH, 0, "", "a\"\\\n"}},
        {.time_ns = 20, .tid = 7, .type = UM_EV_SYNC, .u.sync = {1, UM_SYNC_STREAM, 0, 0, 0}},
        {.time_ns = 30, .tid = 7, .type = UM_EV_SYNC, .u.sync = {1, UM_SYNC_STREAM, 1, 0, 0}},
        {.time_ns = 40, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_POP, 0, "", ""}},
        {.time_ns = 50, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_START, 9, "", "free"}},
        {.time_ns = 60, .tid = 8, .type = UM_EV_MARK, .u.mark = {UM_MARK_END, 9, "", ""}},
        {.time_ns = 70, .tid = 8, .type = UM_EV_MARK, .u.mark = {UM_MARK_INSTANT, 0, "", "now"}},
    };
    json_t *log = perfetto(list, sizeof(list) / sizeof(list[0]));
    json_int_t tids;
    double ts;

    cr_assert_eq(shown(log, "B", "a\"\\?", &tids, &ts), 1);
    cr_assert_eq(tids, 7);
    cr_assert_eq(shown(log, "B", "wait for a stream", &tids, &ts), 1);
    cr_assert_eq(shown(log, "E", "wait for a stream", &tids, &ts), 1);
    cr_assert_eq(shown(log, "E", "(no name)", &tids, &ts), 1);
    cr_assert_eq(shown(log, "b", "free", &tids, &ts), 1);
    cr_assert_eq(shown(log, "e", "free", &tids, &ts), 1);
    cr_assert_eq(shown(log, "i", "now", &tids, &ts), 1);
    json_decref(log);
}

/* An end without its begin is not shown; what has no end ends with the trace; a slice that would cross the end
 * of what is around it goes beside it. */
Test(perfetto, what_the_trace_leaves_open_or_crosses_still_pairs_and_nests)
{
    const um_event_t list[] = {
        {.time_ns = 10, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_POP, 0, "", ""}},
        {.time_ns = 20, .tid = 7, .type = UM_EV_SYNC, .u.sync = {1, UM_SYNC_STREAM, 1, 0, 0}},
        {.time_ns = 30, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_END, 9, "", ""}},
        {.time_ns = 40, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_PUSH, 0, "", "open"}},
        {.time_ns = 50, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_START, 9, "", "range"}},
        {.time_ns = 60,
         .tid = 7,
         .type = UM_EV_COPY,
         .u.copy = {.bytes = 4096, .duration_ns = 1000}},
        {.time_ns = 70, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_PUSH, 0, "", "inner"}},
        {.time_ns = 80,
         .tid = 7,
         .type = UM_EV_COPY,
         .u.copy = {.bytes = 4096, .duration_ns = 5000}},
        {.time_ns = 90, .tid = 7, .type = UM_EV_MARK, .u.mark = {UM_MARK_POP, 0, "", ""}},
    };
    json_t *log = perfetto(list, sizeof(list) / sizeof(list[0])), *e;
    double inner = 0, outer = 0;
    int begun = 0, ended = 0;
    json_int_t tids;
    double ts;
    size_t i;

    cr_assert_eq(shown(log, "B", "open", &tids, &ts), 1);
    cr_assert_eq(shown(log, "B", "inner", &tids, &inner), 1);
    cr_assert_geq(inner, 1.06, "behind the copy that it would have begun in");
    cr_assert_eq(shown(log, "b", "range", &tids, &ts), 1);
    cr_assert_eq(shown(log, "e", "range", &tids, &outer), 1);
    json_array_foreach(json_object_get(log, "traceEvents"), i, e)
    {
        begun += !strcmp(json_string_value(json_object_get(e, "ph")), "B");
        ended += !strcmp(json_string_value(json_object_get(e, "ph")), "E");
    }
    cr_assert_eq(begun, 2);
    cr_assert_eq(ended, 2);
    cr_assert_eq(shown(log, "X", "memcpy", &tids, &ts), 2);
    json_decref(log);
}

Test(perfetto, regions_come_and_go_in_any_number)
{
    um_event_t *list = calloc(40000, sizeof(*list));
    json_int_t tids;
    double ts;
    json_t *log;

    for (uint32_t i = 0; i < 20000; i++) {
        list[2 * i] = (um_event_t){.time_ns = i,
                                   .type = UM_EV_REGION_ALLOC,
                                   .u.region_alloc = {.region = i + 1, .bytes = 1}};
        list[2 * i + 1] = (um_event_t){.time_ns = i,
                                       .type = UM_EV_REGION_FREE,
                                       .u.region_free = {.region = i < 3 ? 0 : i - 2}};
    }
    log = perfetto(list, 40000);
    cr_assert_eq(json_array_size(json_object_get(log, "traceEvents")), 2 + 2 * 20000);
    cr_assert_eq(shown(log, "b", "region 1", &tids, &ts), 1);
    cr_assert_eq(shown(log, "e", "region 20000", &tids, &ts), 1);
    json_decref(log);
    free(list);
}

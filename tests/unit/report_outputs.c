/* Names that are the same in another run, source lines, SARIF's places, Nsight's tables. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/csv.h"
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

/*
 * The report on real logs of a V100 (nvprof --print-gpu-trace). What it must say was read out of the
 * logs by hand; the reading is in the comments.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report_stream.h"
#include "trace/import.h"

static json_t *json;

static void on_event(void *ctx, const um_event_t *event)
{
    cr_assert_eq(um_report_event(ctx, event), UM_OK);
}

static void read_log(const char *name)
{
    const char *srcdir = getenv("UM_SRCDIR");
    char path[4096], error[512] = "";
    um_report_t *r;

    snprintf(path, sizeof(path), "%s/../shared/data/nvprof/%s", srcdir ? srcdir : ".", name);
    if (access(path, R_OK))
        cr_skip_test("shared data is absent: %s", name);
    r = stream_new(name);
    cr_assert_eq(um_import_file(path, on_event, r, error, sizeof(error)), UM_OK, "%s", error);
    json = stream_json(r);
    um_report_free(r);
}

static const char *text_of(json_t *finding, const char *key)
{
    return json_string_value(json_object_get(finding, key));
}

static size_t findings(void)
{
    return json_array_size(json_object_get(json, "findings"));
}

static json_t *row(const char *table, const char *name)
{
    json_t *of;
    size_t i;

    json_array_foreach(json_object_get(json, table), i, of)
    {
        if (!strncmp(text_of(of, "name"), name, strlen(name)))
            return of;
    }
    cr_assert_fail("no row '%s' in %s", name, table);
    return NULL;
}

static int64_t number(json_t *of, const char *key)
{
    cr_assert(json_is_integer(json_object_get(of, key)), "%s", key);
    return json_integer_value(json_object_get(of, key));
}

/* Pages of 4 KiB that the map of a region shows on their way to the GPU. */
static int64_t pages_drawn(const char *name)
{
    json_t *map = json_object_get(json_object_get(json, "map"), "regions"), *of, *cell;
    int64_t pages = 0;
    size_t i, c;

    json_array_foreach(map, i, of)
    {
        if (strcmp(text_of(of, "name"), name) != 0)
            continue;
        json_array_foreach(json_object_get(of, "cells"), c, cell)
        {
            pages += json_integer_value(json_array_get(cell, 2));
        }
    }
    return pages;
}

static void fini(void)
{
    json_decref(json);
}

TestSuite(logs, .fini = fini);

/*
 * hotspot 512: three arrays of 1 MiB at ...6000000, ...6100000, ...6200000. The CPU writes the first
 * two (CPU faults at 6000000 to 6100000, from 455 ms). One kernel, 626.70 to 629.40 ms. From 626.88 ms
 * on, while it runs, the CPU (pc 0x57cd7ecd) faults on the third array: the program does not wait
 * before it writes out the result. 6200000-620ffff then goes to the GPU (628.14), back (628.19-.20), to
 * the GPU (628.29), back (628.32-.33), to and fro in single 4 KiB pages until 629.43 (6203000, 6204000),
 * and comes back 4 KiB at a time until 637.39. Counting rows "Memcpy DtoH" with an address in
 * 6200000-620ffff gives 22, of 30 in all; 9 of the 22 begin before 629.40. 16 rows "page thrash" name
 * its 16 pages of 4 KiB; one "page throttle" of 461.73 us.
 */
Test(logs, hotspot_names_the_third_arrays_first_page_as_ping_pong)
{
    json_t *f;

    read_log("v100-hotspot-512.log");
    f = stream_finding(json, "ping-pong");
    cr_assert_not_null(f);
    cr_assert_eq(number(f, "rank"), 1);
    cr_assert_str_eq(text_of(f, "title"), "CPU-GPU ping-pong, with thrashing and throttling");
    cr_assert_not_null(strstr(text_of(f, "where"), "its first 64.0 KiB"));
    cr_assert_not_null(strstr(text_of(f, "where"), "kernel calculate_temp"));
    cr_assert_not_null(strstr(text_of(f, "where"), "0x57cd7ecd"));
    cr_assert_eq(stream_evidence(f, "pages_64k"), 1u);
    cr_assert_eq(stream_evidence(f, "to_host_copies"), 22u);
    cr_assert_eq(stream_evidence(f, "to_host_copies_in_trace"), 30u);
    cr_assert_eq(stream_evidence(f, "to_host_copies_while_kernel_ran"), 9u);
    cr_assert_eq(stream_evidence(f, "thrash_pages_4k"), 16u);
    cr_assert_eq(stream_evidence(f, "throttle_ns"), 461730u);
    cr_assert_not_null(strstr(text_of(f, "seen"), "throttled for 0.46 ms"));
    cr_assert_eq(json_array_size(json_object_get(f, "also")), 2u);
    cr_assert_not_null(strstr(text_of(f, "todo"), "wait for the kernel"));
}

/* The rest of the third array (960 KiB) comes back once, by faults at 6210000, 6220000, 6240000 and
 * 6280000, in 8 copies: a tail, no ping-pong. The two inputs (2 MiB) fault in whole. */
Test(logs, hotspot_has_a_tail_and_a_demand_faulting_sweep_besides)
{
    json_t *f;

    read_log("v100-hotspot-512.log");
    f = stream_finding(json, "host-read-tail");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "cpu_faults"), 4u);
    cr_assert_eq(stream_evidence(f, "to_host_copies"), 8u);
    cr_assert_eq(stream_evidence(f, "to_host_bytes"), 960 * KIB);
    f = stream_finding(json, "demand-faulting");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 2 * MIB);
    cr_assert_eq(stream_evidence(f, "density_percent"), 100u);
    /* One GPU fault record on pages nobody wrote (6280000, 33 groups, 0.11 ms) is no storm. */
    cr_assert_null(stream_finding(json, "first-touch"));
    cr_assert_null(stream_finding(json, "false-sharing"), "the arrays are 1 MiB apart");
    cr_assert_null(stream_finding(json, "thrashing"), "it is told with the ping-pong");
    cr_assert_null(stream_finding(json, "allocation-churn"));
    cr_assert_null(stream_finding(json, "never-on-cpu"));
    cr_assert_null(stream_finding(json, "pageable-copy"));
    cr_assert_eq(findings(), 3u);
}

/*
 * gaussian 96: a at 0x7fa256000000 (36 KiB), b at ...9000 (384 bytes), m at ...9200 (36 KiB): b and m
 * begin in the 4 KiB page ...9000; all three lie in the 64 KiB page ...0000, and m reaches into the
 * next. GPU faults: 457.13 (before the first Fan1's 457.14 by the coarse clock) and 457.46, both in the
 * first launch; 189 more launches follow without one. At 460.23 one CPU fault at ...9000 (b's page)
 * brings back 36 KiB (a), 4 KiB (b and m) and 24 KiB (m): 64 KiB for 384 bytes.
 */
Test(logs, gaussian_has_false_sharing_and_a_tail_but_no_ping_pong)
{
    json_t *f;

    read_log("v100-gaussian-96.log");
    cr_assert_null(stream_finding(json, "ping-pong"));
    cr_assert_null(stream_finding(json, "thrashing"));

    f = stream_finding(json, "false-sharing");
    cr_assert_not_null(f);
    cr_assert_not_null(
        strstr(text_of(f, "where"), "in the 4 KiB page 0x7fa256009000: b (384 B), m"));
    cr_assert_eq(stream_evidence(f, "regions_in_4k"), 2u);
    cr_assert_eq(stream_evidence(f, "regions_in_64k"), 3u);
    cr_assert_eq(stream_evidence(f, "cpu_faults"), 1u);
    cr_assert_eq(stream_evidence(f, "dragged_regions"), 2u, "a and m come along");
    /* a: 36 KiB; m: from ...9200 to the page's end ...10000, 28160 bytes */
    cr_assert_eq(stream_evidence(f, "dragged_bytes"), 36864u + 28160u);

    f = stream_finding(json, "host-read-tail");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "cpu_faults"), 1u);
    cr_assert_eq(stream_evidence(f, "to_host_copies"), 3u);
}

Test(logs, gaussian_faults_in_the_first_of_190_launches_only)
{
    json_t *f;

    read_log("v100-gaussian-96.log");
    f = stream_finding(json, "demand-faulting");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "launches_in_trace"), 190u);
    cr_assert_eq(stream_evidence(f, "launches_in_trace_that_faulted"), 1u);
    cr_assert_eq(stream_evidence(f, "last_launch_that_faulted"), 1u);
    cr_assert_not_null(
        strstr(text_of(f, "seen"), "of the trace's 190 launches only the first one faulted"));
    cr_assert_eq(number(row("kernels", "Fan1"), "launches"), 95);
    cr_assert_eq(number(row("kernels", "Fan1"), "gpu_faults"), 2);
    cr_assert_eq(number(row("kernels", "Fan2"), "gpu_faults"), 0);
    cr_assert_eq(findings(), 3u, "and nothing else is claimed");
}

/*
 * bfs 65536: the CPU touches four arrays first (CPU faults from 477.98). Of h_graph_edges no CPU fault
 * is there; its 256 KiB move from the CPU all the same, under the pageable copy into managed memory of
 * 560.00 (two GPU faults, 559.96 and 560.37): the CPU had it, but that was not seen. The first Kernel
 * (560.58) faults in the other four: 64 + 128 + 512 KiB by two fault records (560.53 and 560.68). No
 * later launch of the 20 faults. Nothing comes back. Around every level: 1 byte to the device, Kernel,
 * Kernel2, 1 byte back, ten times, pageable each way.
 */
Test(logs, bfs_is_one_sweep_and_a_byte_each_way_around_every_level)
{
    json_t *f;
    json_t *of;
    size_t i, sweeps = 0, habits = 0;

    read_log("v100-bfs-65536.log");
    cr_assert_str_eq(text_of(row("regions", "h_graph_nodes"), "first_touch"), "CPU");
    cr_assert_str_eq(text_of(row("regions", "h_graph_mask"), "first_touch"), "CPU");
    cr_assert_str_eq(text_of(row("regions", "h_graph_edges"), "first_touch"), "CPU?");

    json_array_foreach(json_object_get(json, "findings"), i, of)
    {
        const char *kind = text_of(of, "kind");

        if (!strcmp(kind, "demand-faulting") && strstr(text_of(of, "where"), "kernel Kernel")) {
            sweeps++;
            cr_assert_eq(stream_evidence(of, "to_device_bytes"), 704 * KIB);
            cr_assert_not_null(strstr(text_of(of, "seen"),
                                      "of the trace's 20 launches only the first one faulted"));
        } else if (!strcmp(kind, "demand-faulting")) {
            cr_assert_not_null(strstr(text_of(of, "where"), "copies"));
            cr_assert_eq(stream_evidence(of, "to_device_bytes"), 256 * KIB);
        } else {
            cr_assert_str_eq(kind, "pageable-copy");
            if (json_object_get(json_object_get(of, "evidence"), "rounds")) {
                habits++;
                cr_assert_eq(stream_evidence(of, "bytes_each"), 1u);
                cr_assert_eq(stream_evidence(of, "rounds"), 10u);
                cr_assert_eq(stream_evidence(of, "launches_inside"), 20u);
                cr_assert_eq(stream_evidence(of, "to_device_copies"), 10u);
                cr_assert_eq(stream_evidence(of, "to_host_copies"), 10u);
            } else { /* the 1.5 MB and 256 KiB at the start */
                cr_assert_eq(stream_evidence(of, "to_device_copies"), 2u);
                cr_assert_eq(stream_evidence(of, "to_host_copies"), 0u);
            }
        }
    }
    cr_assert_eq(sweeps, 1u);
    cr_assert_eq(habits, 1u);
    f = stream_finding(json, "ping-pong");
    cr_assert_null(f);
    cr_assert_null(stream_finding(json, "host-read-tail"), "nothing comes back");
    cr_assert_null(stream_finding(json, "false-sharing"), "each array begins a 64 KiB page");

    /* h_graph_visited moves in the second half of a record that begins in h_updating_graph_mask. */
    cr_assert_eq(pages_drawn("h_updating_graph_mask"), 16);
    cr_assert_eq(pages_drawn("h_graph_visited"), 16);
}

/*
 * hotspot 256 on Power9: inputs of 256 KiB fault in (512 KiB); the output is first touched by the GPU
 * (one fault record, nothing moves) and comes back by three CPU faults after the kernel. No page turns
 * twice.
 */
Test(logs, power9_hotspot_is_a_sweep_and_a_tail)
{
    read_log("v100-power9-hotspot-256.log");
    cr_assert_null(stream_finding(json, "ping-pong"));
    cr_assert_null(stream_finding(json, "false-sharing"));
    cr_assert_null(stream_finding(json, "first-touch"), "one record is no storm");
    cr_assert_eq(stream_evidence(stream_finding(json, "demand-faulting"), "to_device_bytes"),
                 512 * KIB);
    cr_assert_eq(stream_evidence(stream_finding(json, "host-read-tail"), "cpu_faults"), 3u);
    cr_assert_eq(stream_evidence(stream_finding(json, "host-read-tail"), "to_host_bytes"),
                 256 * KIB);
    cr_assert_eq(findings(), 2u);
}

/*
 * The whole reading, log by log: what moved (rows "Unified Memory Memcpy" and the sizes in them, added up
 * by hand: nearly all of it in small records, as faults bring it), who faulted how often, what dominates,
 * and what one would do about it.
 *
 * hotspot 512: 59 records in (24 of them a single page, the largest 444 KiB), 30 back (22 a single page).
 * Of 1.13 MiB that came back 1 MiB is the result, the rest is its first page again and again. The ping-pong
 * comes first (1.7 ms for one page), the inputs' sweep next (1.4 ms), the result's way back last (0.4 ms). Do: a
 * cudaDeviceSynchronize before the file is written; a prefetch of the inputs before the launch; of the
 * result after it. All of that is 3.6 of 254 ms: the program reads its input for 170 ms. Ranked, and each
 * below a hundredth of the run.
 *
 * gaussian 96: 4 in (4 to 60 KiB), 3 back (36, 4, 24 KiB): one pass in, one fault back. The first launch's
 * two fault groups are 0.37 of 3.4 ms, the one thing worth doing: a prefetch before the first of the 190
 * launches. The result's 13 us and the shared page are not.
 *
 * bfs 65536: 20 in, none back, 9 of them a single page, the largest 508 KiB. The copy into managed
 * memory faults for 0.51 ms, the kernels for 0.26 ms: so the copy comes first. Do: prefetch that buffer, or
 * use it as it is; prefetch the other four before the first launch; keep the one-byte flag where both
 * reach it. In 83 ms, mostly of the CPU's first touches, none of it is a hundredth.
 *
 * hotspot 256 on Power9, where pages are of 64 KiB: 7 in (six of 64 KiB, one of 128), 4 back (64 KiB each).
 * The inputs' sweep, then the result. Do: prefetch them in, prefetch it back.
 */
Test(logs, are_ranked_totalled_and_advised_as_by_hand)
{
    static const struct {
        const char *log;
        int64_t in_records, in_bytes, out_records, out_bytes, gpu_faults, cpu_faults;
        struct {
            const char *kind, *do_it;
            bool worth_it;
        } found[4]; /* in this order, and no others */
    } read[] = {
        {"v100-hotspot-512.log",
         59,
         2306048,
         30,
         1179648,
         23,
         28,
         {{"ping-pong", "wait for the kernel", false},
          {"demand-faulting", "prefetch the data to the GPU before the launch", false},
          {"host-read-tail", "prefetch the results to the host", false}}},
        {"v100-gaussian-96.log",
         4,
         128 * KIB,
         3,
         64 * KIB,
         2,
         3,
         {{"demand-faulting", "prefetch the data to the GPU before the launch", true},
          {"host-read-tail", "prefetch the results to the host", false},
          {"false-sharing", "give each buffer pages of its own", false}}},
        {"v100-bfs-65536.log",
         20,
         MIB,
         0,
         0,
         4,
         7,
         {{"demand-faulting", "prefetch the managed side of the copy", false},
          {"demand-faulting", "prefetch the data to the GPU before the launch", false},
          {"pageable-copy", "keep the flag in pinned host memory", false},
          {"pageable-copy", "pin the host buffer", false}}},
        {"v100-power9-hotspot-256.log",
         7,
         512 * KIB,
         4,
         256 * KIB,
         4,
         7,
         {{"demand-faulting", "prefetch the data to the GPU before the launch", false},
          {"host-read-tail", "prefetch the results to the host", false}}},
    };

    for (size_t l = 0; l < sizeof(read) / sizeof(read[0]); l++) {
        json_t *of, *totals;
        int64_t records[2] = {0, 0};
        size_t i, n = 0;

        read_log(read[l].log);
        totals = json_object_get(json, "totals");
        cr_expect_eq(number(totals, "to_device_bytes"), read[l].in_bytes, "%s", read[l].log);
        cr_expect_eq(number(totals, "to_host_bytes"), read[l].out_bytes, "%s", read[l].log);
        cr_expect_eq(number(totals, "gpu_faults"), read[l].gpu_faults, "%s", read[l].log);
        cr_expect_eq(number(totals, "cpu_faults"), read[l].cpu_faults, "%s", read[l].log);
        json_array_foreach(json_object_get(json, "migrations"), i, of)
        {
            records[!strcmp(text_of(of, "direction"), "GPU to CPU")] += number(of, "records");
        }
        cr_expect_eq(records[0], read[l].in_records, "%s", read[l].log);
        cr_expect_eq(records[1], read[l].out_records, "%s", read[l].log);
        while (n < 4 && read[l].found[n].kind)
            n++;
        cr_assert_eq(findings(), n, "%s", read[l].log);
        json_array_foreach(json_object_get(json, "findings"), i, of)
        {
            cr_expect_str_eq(text_of(of, "kind"), read[l].found[i].kind, "%s %zu", read[l].log, i);
            cr_expect_not_null(strstr(text_of(of, "todo"), read[l].found[i].do_it), "%s %zu: %s",
                               read[l].log, i, text_of(of, "todo"));
            cr_expect_eq(json_is_true(json_object_get(of, "worth_it")), read[l].found[i].worth_it,
                         "%s %zu", read[l].log, i);
        }
        json_decref(json);
        json = NULL;
    }
}

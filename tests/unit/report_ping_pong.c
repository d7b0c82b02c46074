/* Findings about data that goes to and fro, each beside the nearest stream that does not show it: ping-pong,
 * thrashing, host-read tails, false sharing; and of how much of a region the advice speaks. */
#include <criterion/criterion.h>
#include <string.h>

#include "report_found.h"

TestSuite(findings, .fini = drop_report);

/* ---- ping-pong ---- */

static um_report_t *goes_to_and_fro(uint32_t rounds, um_migrate_cause_t cause, bool kernel_runs)
{
    um_report_t *r = stream_new("pingpong.umt");

    stream_alloc(r, 1, 1, BASE, 1 * MIB, "halo");
    stream_kernel(r, 1, "_Z4stepPf");
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t us = 1000 + 1000 * i;

        stream_exec(r, us, kernel_runs ? 900 : 300, 1);
        stream_gpu_fault(r, us + 10, 200, BASE);
        stream_move(r, us + 100, 10, BASE, 64 * KIB, true, cause);
        stream_cpu_fault(r, us + 500, BASE);
        stream_move(r, us + 520, 10, BASE, 64 * KIB, false, cause);
    }
    return r;
}

Test(findings, ping_pong_is_found_with_both_directions)
{
    json_t *f;

    close_stream(goes_to_and_fro(5, UM_CAUSE_COHERENCE, false));
    f = found("ping-pong");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "pages_64k"), 1u);
    cr_assert_eq(stream_evidence(f, "turns_most"), 9u);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 5 * 64 * KIB);
    cr_assert_eq(stream_evidence(f, "to_host_copies"), 5u);
    cr_assert_eq(stream_evidence(f, "to_host_copies_while_kernel_ran"), 0u);
    cr_assert_eq(stream_evidence(f, "gpu_fault_ns"), 5 * 200 * US);
    cr_assert_eq(stream_evidence(f, "cpu_wait_ns"), 5 * 30 * US);
    cr_assert_not_null(strstr(text_of(f, "where"), "halo, its first 64.0 KiB; kernel step"));
    cr_assert_null(found("demand-faulting"), "the same faults are not counted twice");
    cr_assert_null(found("host-read-tail"), "nor is the last way back");
}

Test(findings, ping_pong_under_a_running_kernel_says_so)
{
    json_t *f;

    close_stream(goes_to_and_fro(5, UM_CAUSE_COHERENCE, true));
    f = found("ping-pong");
    cr_assert_eq(stream_evidence(f, "to_host_copies_while_kernel_ran"), 5u);
    cr_assert_not_null(strstr(text_of(f, "todo"), "wait for the kernel"));
}

Test(findings, one_round_is_no_ping_pong)
{
    close_stream(goes_to_and_fro(1, UM_CAUSE_COHERENCE, false));
    cr_assert_null(found("ping-pong"));
    cr_assert_not_null(found("host-read-tail"));
}

Test(findings, moves_that_the_program_asked_for_are_no_ping_pong)
{
    close_stream(goes_to_and_fro(5, UM_CAUSE_USER, false));
    cr_assert_null(found("ping-pong"));
}

/* ---- thrashing ---- */

static um_event_t thrash(uint64_t us, uint64_t addr)
{
    return (um_event_t){.time_ns = us * US,
                        .type = UM_EV_THRASH,
                        .u.thrash = {.addr = addr, .bytes = 4096}};
}

static um_event_t throttle(uint64_t us, uint64_t lasts_us, uint64_t addr)
{
    return (um_event_t){.time_ns = us * US,
                        .type = UM_EV_THROTTLE,
                        .u.throttle = {.addr = addr, .duration_ns = lasts_us * US}};
}

Test(findings, ping_pong_includes_the_drivers_verdict_on_its_pages)
{
    um_report_t *r = goes_to_and_fro(5, UM_CAUSE_COHERENCE, true);
    json_t *f;

    stream_put(r, thrash(6000, BASE));
    stream_put(r, throttle(6010, 460, BASE));
    close_stream(r);
    f = found("ping-pong");
    cr_assert_str_eq(text_of(f, "title"), "CPU-GPU ping-pong, with thrashing and throttling");
    cr_assert_eq(json_array_size(json_object_get(f, "also")), 2u);
    cr_assert_eq(stream_evidence(f, "throttle_ns"), 460 * US);
    cr_assert_null(found("thrashing"), "one story is told once");
}

Test(findings, thrashing_elsewhere_is_a_finding_of_its_own)
{
    um_report_t *r = goes_to_and_fro(1, UM_CAUSE_COHERENCE, false);
    json_t *f;

    stream_put(r, thrash(6000, BASE + 512 * KIB));
    stream_put(r, throttle(6010, 460, BASE + 512 * KIB));
    close_stream(r);
    f = found("thrashing");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "throttle_ns"), 460 * US);
}

Test(findings, thrashing_is_not_claimed_without_the_drivers_word)
{
    close_stream(goes_to_and_fro(5, UM_CAUSE_COHERENCE, true));
    cr_assert_null(found("thrashing"));
    cr_assert_str_eq(text_of(found("ping-pong"), "title"), "CPU-GPU ping-pong");
}

/* ---- host-read tail ---- */

Test(findings, host_read_tail_is_found_with_the_wait)
{
    um_report_t *r = faults_in(32);
    json_t *f;

    for (uint32_t i = 0; i < 4; i++) {
        stream_cpu_fault(r, 300000 + 100 * i, BASE + i * 64 * KIB);
        stream_move(r, 300040 + 100 * i, 20, BASE + i * 64 * KIB, 64 * KIB, false,
                    UM_CAUSE_COHERENCE);
    }
    close_stream(r);
    f = found("host-read-tail");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "cpu_faults"), 4u);
    cr_assert_eq(stream_evidence(f, "to_host_bytes"), 256 * KIB);
    cr_assert_eq(stream_evidence(f, "cpu_wait_ns"), 4 * 60 * US);
    cr_assert_not_null(strstr(text_of(f, "where"), "0x401234"));
}

Test(findings, pages_that_were_evicted_or_prefetched_home_are_no_tail)
{
    um_report_t *r = faults_in(32);

    stream_move(r, 300000, 20, BASE, 2 * MIB, false, UM_CAUSE_EVICTION);
    stream_move(r, 300100, 20, BASE + 2 * MIB, 2 * MIB, false, UM_CAUSE_USER);
    close_stream(r);
    cr_assert_null(found("host-read-tail"));
}

/* ---- false sharing ---- */

/* Two small regions, `apart` bytes from start to start; the CPU faults on the first at the end. */
static um_report_t *neighbours(uint64_t apart)
{
    um_report_t *r = stream_new("sharing.umt");

    stream_alloc(r, 1, 1, BASE, 384, "small");
    stream_alloc(r, 1, 2, BASE + apart, 8 * KIB, "other");
    stream_kernel(r, 1, "_Z4stepPf");
    stream_cpu_fault(r, 2, BASE);
    stream_exec(r, 10, 400, 1);
    stream_gpu_fault(r, 20, 100, BASE);
    stream_move(r, 50, 10, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    if (apart >= 64 * KIB)
        stream_move(r, 70, 10, BASE + apart, 8 * KIB, true, UM_CAUSE_COHERENCE);
    stream_cpu_fault(r, 500, BASE);
    stream_move(r, 510, 10, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    return r;
}

Test(findings, false_sharing_of_a_small_page_is_found)
{
    json_t *f;

    close_stream(neighbours(512));
    f = found("false-sharing");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "regions_in_4k"), 2u);
    cr_assert_eq(stream_evidence(f, "regions_in_64k"), 2u);
    cr_assert_eq(stream_evidence(f, "dragged_bytes"), 8 * KIB);
    cr_assert_eq(stream_evidence(f, "cpu_faults"), 1u, "the first touch took nothing along");
}

Test(findings, false_sharing_of_a_big_page_is_told_from_that_of_a_small_one)
{
    json_t *f;

    close_stream(neighbours(32 * KIB));
    f = found("false-sharing");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "regions_in_4k"), 0u);
    cr_assert_eq(stream_evidence(f, "regions_in_64k"), 2u);
}

Test(findings, regions_with_pages_of_their_own_share_nothing)
{
    close_stream(neighbours(64 * KIB));
    cr_assert_null(found("false-sharing"));
}

Test(findings, a_shared_page_that_only_went_one_way_harms_nobody)
{
    um_report_t *r = stream_new("oneway.umt");

    stream_alloc(r, 1, 1, BASE, 384, "small");
    stream_alloc(r, 1, 2, BASE + 512, 8 * KIB, "other");
    stream_cpu_fault(r, 2, BASE);
    stream_exec(r, 10, 400, 0);
    stream_gpu_fault(r, 20, 100, BASE);
    stream_move(r, 50, 10, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    close_stream(r);
    cr_assert_null(found("false-sharing"));
}

/* ---- a page with more, or less, in it than one region ---- */

/* One or two regions in a page that goes to and fro: the CPU faults on the first, the second comes along.
 * The driver names each 4 KiB page of it, also those in which there is no region. */
static um_report_t *shares_a_page(uint32_t regions)
{
    um_report_t *r = stream_new("shared.umt");

    stream_alloc(r, 1, 1, BASE, 2 * KIB, NULL);
    if (regions == 2)
        stream_alloc(r, 1, 2, BASE + 2 * KIB, 2 * KIB, NULL);
    stream_kernel(r, 1, "_Z4stepPf");
    for (uint64_t us = 1000; us < 6000; us += 1000) {
        stream_exec(r, us, 300, 1);
        stream_gpu_fault(r, us + 10, 200, BASE);
        stream_move(r, us + 100, 10, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
        for (uint32_t i = 0; i < 16; i++)
            stream_put(r, (um_event_t){.time_ns = (us + 200) * US,
                                       .type = UM_EV_THRASH,
                                       .u.thrash = {.addr = BASE + i * 4 * KIB, .bytes = 4 * KIB}});
        stream_cpu_fault(r, us + 500, BASE);
        stream_move(r, us + 520, 10, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    }
    return r;
}

Test(findings, what_lies_beside_an_allocation_in_its_page_is_no_memory_of_its_own)
{
    json_t *of;
    size_t i;

    close_stream(shares_a_page(1));
    json_array_foreach(json_object_get(json, "regions"), i, of)
        cr_assert(json_is_integer(json_object_get(of, "region")), "%s", text_of(of, "name"));
    cr_assert_eq(stream_evidence(found("ping-pong"), "thrash_pages_4k"), 80u);
    cr_assert_not_null(strstr(text_of(found("ping-pong"), "seen"), "80 times"),
                       "the same 16 pages, five times");
}

Test(findings, a_region_that_only_comes_along_is_false_sharing_and_no_second_ping_pong)
{
    json_t *of, *f;
    size_t i, n = 0;

    close_stream(shares_a_page(2));
    json_array_foreach(json_object_get(json, "findings"), i, of) n +=
        !strcmp(text_of(of, "kind"), "ping-pong");
    cr_assert_eq(n, 1u);
    f = found("false-sharing");
    cr_assert_not_null(strstr(text_of(f, "where"), ": region 1 (2.00 KiB), region 2 (2.00 KiB);"),
                       "each size once: %s", text_of(f, "where"));
}

/* ---- advice ---- */

Test(findings, advice_on_a_part_of_a_region_is_not_for_all_of_it)
{
    json_t *f;

    close_stream(goes_to_and_fro(5, UM_CAUSE_COHERENCE, false)); /* 64 KiB of 1 MiB */
    f = found("ping-pong");
    cr_assert_not_null(
        strstr(text_of(json_object_get(f, "code"), "cuda12"), "cudaMemAdviseSetPreferredLocation"));
    cr_assert_not_null(strstr(text_of(f, "todo"), "this part only"));
}

Test(findings, advice_on_a_whole_region_is_for_all_of_it)
{
    close_stream(shares_a_page(1));
    cr_assert_null(strstr(text_of(found("ping-pong"), "todo"), "this part only"));
}

/* ---- call sites ---- */

Test(findings, sites_behind_one_allocation_function_are_told_apart)
{
    um_report_t *r = stream_new("sites.umt");
    static const char *const frames[] = {"solver+0x10;solver+0x20;solver+0x31;libc.so.6+0x1",
                                         "solver+0x10;solver+0x20;solver+0x32;libc.so.6+0x1"};
    static const char *const said[] = {"allocated at solver+0x31", "allocated at solver+0x32"};
    json_t *of;
    size_t i, seen = 0;

    stream_kernel(r, 1, "_Z4stepPf");
    for (uint32_t s = 0; s < 2; s++) {
        stream_put(r, (um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {s + 1, frames[s]}});
        stream_alloc_at(r, 1, s + 1, BASE + s * 2 * MIB, 64 * KIB, s + 1);
    }
    for (uint64_t us = 1000; us < 6000; us += 1000) {
        stream_exec(r, us, 300, 1);
        for (uint32_t s = 0; s < 2; s++) {
            stream_gpu_fault(r, us + 10 + s, 1, BASE + s * 2 * MIB);
            stream_move(r, us + 20 + s, 1, BASE + s * 2 * MIB, 64 * KIB, true, UM_CAUSE_COHERENCE);
            stream_cpu_fault(r, us + 500 + s, BASE + s * 2 * MIB);
            stream_move(r, us + 520 + s, 1, BASE + s * 2 * MIB, 64 * KIB, false,
                        UM_CAUSE_COHERENCE);
        }
    }
    close_stream(r);
    json_array_foreach(json_object_get(json, "findings"), i, of) for (uint32_t s = 0; s < 2; s++)
        seen += strstr(text_of(of, "where"), said[s]) ? 1u << s : 0;
    cr_assert_eq(seen, 3u);
}

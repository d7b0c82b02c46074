/*
 * Each kind of finding: a stream that shows it, and the nearest stream that does not. "Nothing is
 * claimed that the trace does not show" is the second of each pair.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report_stream.h"

static json_t *json;

/* Ends the stream: its findings can then be asked for. */
static void close_stream(um_report_t *r)
{
    json = stream_json(r);
    um_report_free(r);
}

static json_t *found(const char *kind)
{
    return stream_finding(json, kind);
}

static const char *text_of(json_t *finding, const char *key)
{
    return json_string_value(json_object_get(finding, key));
}

static void fini(void)
{
    json_decref(json);
}

TestSuite(findings, .fini = fini);

/* ---- first touch ---- */

/* The GPU faults on `faults` pages, 100 us each, of a region that nothing else was seen to touch. A CPU
 * fault elsewhere and a move elsewhere show that records flow. */
static um_report_t *gpu_touches_first(uint32_t faults)
{
    um_report_t *r = stream_new("first.umt");

    stream_alloc(r, 1, 1, BASE, 64 * MIB, "scratch");
    stream_alloc(r, 1, 2, BASE + 512 * MIB, 64 * KIB, "flags");
    stream_kernel(r, 1, "_Z4fillPf");
    stream_cpu_fault(r, 5, BASE + 512 * MIB);
    stream_exec(r, 10, 100000, 1);
    for (uint32_t i = 0; i < faults; i++)
        stream_gpu_fault(r, 20 + 100 * i, 100, BASE + i * 2 * MIB);
    return r;
}

Test(findings, first_touch_storm_is_found)
{
    um_report_t *r = gpu_touches_first(20);
    json_t *f;

    close_stream(r);
    f = found("first-touch");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "gpu_faults"), 20u);
    cr_assert_eq(stream_evidence(f, "gpu_fault_ns"), 2000 * US);
    cr_assert_str_eq(text_of(f, "where"), "kernel fill");
    cr_assert_null(found("demand-faulting"), "nothing came from the CPU");
}

Test(findings, first_touch_is_not_claimed_of_pages_whose_data_had_to_move)
{
    um_report_t *r = gpu_touches_first(20);

    for (uint32_t i = 0; i < 20; i++)
        stream_move(r, 2100 + i, 1, BASE + i * 2 * MIB, 64 * KIB, true, UM_CAUSE_COHERENCE);
    close_stream(r);
    cr_assert_null(found("first-touch"));
}

Test(findings, first_touch_is_not_claimed_of_pages_that_the_cpu_touched)
{
    um_report_t *r = stream_new("cpu.umt");

    stream_alloc(r, 1, 1, BASE, 64 * MIB, "scratch");
    stream_kernel(r, 1, "_Z4fillPf");
    for (uint32_t i = 0; i < 20; i++)
        stream_cpu_fault(r, 2 + i, BASE + i * 2 * MIB);
    stream_exec(r, 30, 100000, 1);
    for (uint32_t i = 0; i < 20; i++)
        stream_gpu_fault(r, 40 + 100 * i, 100, BASE + i * 2 * MIB);
    close_stream(r);
    cr_assert_null(found("first-touch"));
}

Test(findings, first_touch_is_not_claimed_when_records_were_lost)
{
    um_report_t *r = gpu_touches_first(20);

    stream_loss(r, 5000);
    close_stream(r);
    cr_assert_null(found("first-touch"), "the move may be among what was lost");
}

Test(findings, a_few_first_touches_are_no_storm)
{
    close_stream(gpu_touches_first(3));
    cr_assert_null(found("first-touch"));
}

/* ---- demand faulting ---- */

/* `pages` of each 2 MiB block's 32 big pages fault in, over 8 blocks. */
static um_report_t *faults_in(uint32_t pages)
{
    um_report_t *r = stream_new("demand.umt");
    uint64_t us = 1000;

    stream_alloc(r, 1, 1, BASE, 16 * MIB, "input");
    stream_kernel(r, 1, "_Z3sumPKf");
    stream_cpu_fault(r, 5, BASE);
    stream_exec(r, us, 100000, 1);
    for (uint32_t block = 0; block < 8; block++) {
        for (uint32_t page = 0; page < pages; page++, us += 60) {
            uint64_t addr = BASE + block * 2 * MIB + page * 64 * KIB;

            stream_gpu_fault(r, us + 1, 50, addr);
            stream_move(r, us + 30, 10, addr, 64 * KIB, true, UM_CAUSE_COHERENCE);
        }
    }
    stream_exec(r, 200000, 100, 1);
    return r;
}

Test(findings, dense_demand_faulting_is_found_with_its_launches)
{
    json_t *f;

    close_stream(faults_in(32));
    f = found("demand-faulting");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 16 * MIB);
    cr_assert_eq(stream_evidence(f, "density_percent"), 100u);
    cr_assert_eq(stream_evidence(f, "gpu_fault_ns"), 256 * 50 * US);
    cr_assert_eq(stream_evidence(f, "launches"), 2u);
    cr_assert_eq(stream_evidence(f, "launches_that_faulted"), 1u);
    cr_assert_not_null(strstr(text_of(f, "seen"), "only the first one faulted"));
    cr_assert_gt(json_integer_value(json_object_get(f, "win_ns")), 0);
    cr_assert_not_null(text_of(f, "win_basis"));
}

Test(findings, sparse_demand_faulting_is_not_called_dense)
{
    json_t *f;

    close_stream(faults_in(3));
    cr_assert_null(found("demand-faulting"));
    f = found("sparse-faulting");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 8 * 3 * 64 * KIB);
    cr_assert_eq(stream_evidence(f, "density_percent"), 9u);
    cr_assert_not_null(strstr(text_of(f, "win_basis"), "less 1.50 MiB at "),
                       "what is compared with is what was wanted, over the link");
}

Test(findings, dense_demand_faulting_is_not_called_sparse)
{
    close_stream(faults_in(32));
    cr_assert_null(found("sparse-faulting"));
}

Test(findings, a_few_scattered_faults_are_no_finding)
{
    close_stream(faults_in(1));
    cr_assert_null(found("sparse-faulting"));
}

/* The first of two launches touches 20 blocks that nobody wrote; both fault on a page of another region
 * that the CPU takes back in between. */
static um_report_t *touches_once_and_shares(void)
{
    um_report_t *r = stream_new("mixed.umt");

    stream_alloc(r, 1, 1, BASE, 64 * MIB, "scratch");
    stream_alloc(r, 1, 2, BASE + 512 * MIB, 64 * KIB, "result");
    stream_kernel(r, 1, "_Z4stepPf");
    stream_cpu_fault(r, 5, BASE + 512 * MIB);
    for (uint32_t launch = 0; launch < 2; launch++) {
        uint64_t us = 1000 + 10000 * launch;

        stream_exec(r, us, 5000, 1);
        for (uint32_t i = 0; !launch && i < 20; i++)
            stream_gpu_fault(r, us + 100 * i, 90, BASE + i * 2 * MIB);
        stream_gpu_fault(r, us + 4000, 100, BASE + 512 * MIB);
        stream_move(r, us + 4050, 10, BASE + 512 * MIB, 64 * KIB, true, UM_CAUSE_COHERENCE);
        stream_cpu_fault(r, us + 6000, BASE + 512 * MIB);
        stream_move(r, us + 6020, 10, BASE + 512 * MIB, 64 * KIB, false, UM_CAUSE_COHERENCE);
    }
    return r;
}

Test(findings, launches_that_faulted_for_another_reason_are_not_the_findings)
{
    json_t *f;

    close_stream(touches_once_and_shares());
    f = found("first-touch");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "gpu_faults"), 20u);
    cr_assert_null(strstr(text_of(f, "seen"), "launches"), "%s", text_of(f, "seen"));
    cr_assert_not_null(found("ping-pong"));
}

Test(findings, faults_on_ping_pong_pages_are_not_demand_faulting_too)
{
    um_report_t *r = faults_in(32);
    uint64_t us = 300000;
    json_t *f;

    for (uint32_t i = 0; i < 4; i++, us += 1000) {
        stream_cpu_fault(r, us, BASE);
        stream_move(r, us + 20, 10, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
        stream_exec(r, us + 100, 500, 1);
        stream_gpu_fault(r, us + 110, 50, BASE);
        stream_move(r, us + 130, 10, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    }
    close_stream(r);
    cr_assert_eq(stream_evidence(found("ping-pong"), "gpu_faults"), 5u);
    f = found("demand-faulting");
    cr_assert_eq(stream_evidence(f, "gpu_faults"), 255u);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 16 * MIB - 64 * KIB);
}

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

/* ---- churn ---- */

static um_report_t *allocates(uint32_t times, bool frees)
{
    um_report_t *r = stream_new("churn.umt");

    for (uint32_t i = 0; i < times; i++) {
        uint64_t addr = BASE + (frees ? 0 : i * 4 * MIB);

        stream_alloc_at(r, 10 + 100 * i, 1 + i, addr, 4 * MIB, 0xabc);
        stream_gpu_fault(r, 20 + 100 * i, 50, addr);
        if (frees)
            stream_free(r, 90 + 100 * i, 1 + i, addr);
    }
    return r;
}

Test(findings, allocation_churn_is_found_with_lifetimes)
{
    json_t *f;

    close_stream(allocates(20, true));
    f = found("allocation-churn");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "allocations"), 20u);
    cr_assert_eq(stream_evidence(f, "reallocations"), 19u);
    cr_assert_eq(stream_evidence(f, "mean_lifetime_ns"), 80 * US);
    cr_assert_eq(stream_evidence(f, "gpu_fault_ns"), 20 * 50 * US);
}

Test(findings, churn_is_found_without_call_sites_when_the_address_comes_back)
{
    um_report_t *r = stream_new("nosites.umt");

    for (uint32_t i = 0; i < 20; i++) {
        stream_alloc_at(r, 10 + 100 * i, 1 + i, BASE, 4 * MIB, 0);
        stream_free(r, 90 + 100 * i, 1 + i, BASE);
    }
    close_stream(r);
    cr_assert_eq(stream_evidence(found("allocation-churn"), "reallocations"), 19u);
}

Test(findings, many_allocations_that_stay_are_no_churn)
{
    close_stream(allocates(20, false));
    cr_assert_null(found("allocation-churn"));
}

/* ---- never touched by the CPU ---- */

Test(findings, memory_that_the_cpu_never_touches_is_found)
{
    json_t *f;

    close_stream(gpu_touches_first(20));
    f = found("never-on-cpu");
    cr_assert_not_null(f);
    cr_assert_str_eq(text_of(f, "where"), "scratch");
    cr_assert_eq(stream_evidence(f, "bytes"), 64 * MIB);
}

Test(findings, never_on_cpu_needs_cpu_faults_to_be_recorded)
{
    um_report_t *r = stream_new("gpuonly.umt");

    stream_alloc(r, 1, 1, BASE, 64 * MIB, "scratch");
    stream_exec(r, 10, 100000, 0);
    stream_gpu_fault(r, 20, 100, BASE);
    close_stream(r);
    cr_assert_null(found("never-on-cpu"), "no CPU fault at all: they may not have been recorded");
}

Test(findings, never_on_cpu_is_withdrawn_by_any_sign_of_the_cpu)
{
    static const um_event_t sign[] = {
        {.time_ns = 4000 * US, .type = UM_EV_CPU_FAULT, .u.cpu_fault = {.addr = BASE + 3 * MIB}},
        {.time_ns = 4000 * US,
         .type = UM_EV_MIGRATE,
         .u.migrate = {.addr = BASE, .bytes = 4096, .src = 0, .dst = UM_DEVICE_HOST}},
        {.time_ns = 4000 * US,
         .type = UM_EV_RESIDENCY,
         .u.residency = {.addr = BASE, .bytes = 64 * MIB, .present_bytes = 4096}},
        {.time_ns = 4000 * US,
         .type = UM_EV_HINT,
         .u.hint = {.kind = UM_HINT_PREFETCH,
                    .device = UM_DEVICE_HOST,
                    .region = 1,
                    .who = "app",
                    .why = ""}},
        {.time_ns = 4000 * US, .type = UM_EV_LOSS, .u.loss = {.reason = "queue full"}},
    };

    for (size_t i = 0; i < sizeof(sign) / sizeof(sign[0]); i++) {
        um_report_t *r = gpu_touches_first(20);

        stream_put(r, sign[i]);
        json_decref(json);
        close_stream(r);
        cr_assert_null(found("never-on-cpu"), "sign %zu", i);
    }
}

/* ---- pageable copies ---- */

Test(findings, pageable_copies_are_found_by_direction)
{
    um_report_t *r = stream_new("copies.umt");
    json_t *f;

    stream_copy(r, 10, 1000, 8 * MIB, UM_MEMORY_PAGEABLE, UM_MEMORY_DEVICE);
    stream_copy(r, 2000, 500, 4 * MIB, UM_MEMORY_DEVICE, UM_MEMORY_PAGEABLE);
    stream_copy(r, 3000, 200, 8 * MIB, UM_MEMORY_PINNED, UM_MEMORY_DEVICE);
    close_stream(r);
    f = found("pageable-copy");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "to_device_bytes"), 8 * MIB);
    cr_assert_eq(stream_evidence(f, "to_host_bytes"), 4 * MIB);
    cr_assert_eq(stream_evidence(f, "copy_ns"), 1500 * US);
    cr_assert_not_null(strstr(text_of(f, "win_basis"), "largest pinned copy"));
}

Test(findings, pinned_copies_are_no_finding)
{
    um_report_t *r = stream_new("pinned.umt");

    stream_copy(r, 10, 1000, 8 * MIB, UM_MEMORY_PINNED, UM_MEMORY_DEVICE);
    stream_copy(r, 2000, 500, 4 * MIB, UM_MEMORY_DEVICE, UM_MEMORY_PINNED);
    close_stream(r);
    cr_assert_null(found("pageable-copy"));
}

static um_report_t *flag_around_launches(um_memory_kind_t host, uint32_t rounds)
{
    um_report_t *r = stream_new("flag.umt");

    for (uint32_t i = 0; i < rounds; i++) {
        stream_copy(r, 10 + 100 * i, 2, 4, host, UM_MEMORY_DEVICE);
        stream_exec(r, 20 + 100 * i, 10, 0);
        stream_copy(r, 40 + 100 * i, 2, 4, UM_MEMORY_DEVICE, host);
    }
    return r;
}

Test(findings, a_small_copy_each_way_around_launches_is_a_habit)
{
    json_t *f;

    close_stream(flag_around_launches(UM_MEMORY_PAGEABLE, 6));
    f = found("pageable-copy");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "rounds"), 6u);
    cr_assert_eq(stream_evidence(f, "bytes_each"), 4u);
    cr_assert_eq(stream_evidence(f, "launches_inside"), 6u);
}

Test(findings, two_rounds_or_a_pinned_flag_are_no_habit)
{
    close_stream(flag_around_launches(UM_MEMORY_PAGEABLE, 2));
    cr_assert_null(found("pageable-copy"));
    json_decref(json);
    close_stream(flag_around_launches(UM_MEMORY_PINNED, 6));
    cr_assert_null(found("pageable-copy"));
}

/* ---- what is claimed of nothing ---- */

Test(findings, an_empty_trace_gives_none)
{
    close_stream(stream_new("empty.umt"));
    cr_assert_eq(json_array_size(json_object_get(json, "findings")), 0u);
    cr_assert_str_eq(json_string_value(
                         json_object_get(json_array_get(json_object_get(json, "traces"), 0),
                                         "tracing")),
                     "unknown");
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

/* ---- copies of managed memory ---- */

Test(findings, the_faults_of_a_copy_are_not_won_twice)
{
    um_report_t *r = stream_new("copy.umt");

    stream_alloc(r, 1, 1, BASE, 1 * MIB, "to");
    stream_cpu_fault(r, 5, BASE);
    stream_copy(r, 1000, 2000, 1 * MIB, UM_MEMORY_PAGEABLE, UM_MEMORY_MANAGED);
    for (uint32_t i = 0; i < 16; i++) {
        stream_gpu_fault(r, 1010 + 100 * i, 100, BASE + i * 64 * KIB);
        stream_move(r, 1020 + 100 * i, 5, BASE + i * 64 * KIB, 64 * KIB, true, UM_CAUSE_COHERENCE);
    }
    close_stream(r);
    cr_assert_not_null(found("demand-faulting"));
    cr_assert_leq(json_integer_value(json_object_get(found("pageable-copy"), "win_ns")),
                  2000 * (int64_t)US - 1600 * (int64_t)US);
    cr_assert_not_null(
        strstr(text_of(found("pageable-copy"), "win_basis"), "less 1.60 ms of GPU fault service"));
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

Test(findings, the_next_command_is_the_whole_command)
{
    um_report_t *r = stream_new("long.umt");
    char program[1000] = "", wanted[1100];

    memset(program, 'a', sizeof(program) - 1);
    stream_fact(r, "process.command", program);
    close_stream(r);
    snprintf(wanted, sizeof(wanted), "umrt record -- %s", program);
    cr_assert_str_eq(json_string_value(json_object_get(json, "next")), wanted);
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

/* ---- what was not recorded ---- */

static um_report_t *without_gpu_faults(const char *option)
{
    um_report_t *r = stream_new("nsys.sqlite");

    stream_fact(r, "import.kind", "Nsight Systems SQLite");
    stream_put(r, (um_event_t){.type = UM_EV_OPTION,
                               .u.option = {"nsys.cuda-um-gpu-page-faults", option, "file"}});
    stream_alloc(r, 1, 1, BASE, 1 * MIB, "grid");
    stream_kernel(r, 1, "_Z4stepPf");
    stream_cpu_fault(r, 5, BASE);
    stream_exec(r, 1000, 300, 1);
    stream_move(r, 1100, 10, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    return r;
}

static void expect_faults(const char *table, bool recorded)
{
    json_t *row = json_array_get(json_object_get(json, table), 0);

    cr_assert_not_null(row, "%s", table);
    cr_assert_eq(json_is_integer(json_object_get(row, "gpu_faults")), recorded, "%s", table);
}

Test(findings, faults_that_were_not_recorded_are_not_none)
{
    static const struct {
        const char *option, *said;
    } cases[] = {{"off", "not recorded: GPU faults, thrash"},
                 {"off or no records", "; not recorded, or none: GPU faults\n"},
                 {"on", "on: 0 GPU fault records, 1 CPU faults"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool recorded = !strcmp(cases[i].option, "on");
        um_report_t *r = without_gpu_faults(cases[i].option);
        char *text = stream_text(r, UM_REPORT_TEXT, 200);

        cr_assert_not_null(strstr(text, cases[i].said), "%s:\n%s", cases[i].option, text);
        cr_assert_eq(strstr(text, "0 GPU fault") != NULL, recorded, "%s", text);
        free(text);
        close_stream(r);
        expect_faults("regions", recorded);
        expect_faults("kernels", recorded);
        expect_faults("phases", recorded);
        if (!recorded)
            json_decref(json);
    }
}

Test(findings, what_was_not_recorded_is_not_estimated)
{
    um_report_t *r = without_gpu_faults("off");
    const char *basis;
    json_t *f;

    for (uint64_t us = 2000; us < 6000; us += 1000) {
        stream_cpu_fault(r, us, BASE);
        stream_move(r, us + 90, 10, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
        stream_exec(r, us + 500, 300, 1);
        stream_move(r, us + 600, 10, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    }
    close_stream(r);
    f = found("ping-pong");
    cr_assert_not_null(f);
    basis = text_of(f, "win_basis");
    cr_assert_not_null(strstr(basis, "GPU faults were not recorded"), "%s", basis);
    cr_assert_null(strstr(basis, "GPU fault service"), "%s", basis);
    cr_assert_null(strstr(basis, " in at "), "%s", basis);
    cr_assert_eq(json_integer_value(json_object_get(f, "win_ns")), 4 * 90 * (int64_t)US,
                 "the CPU's waiting less the way back; the way in is in neither");
}

/* Findings about allocations and copies, each beside the nearest stream that does not show it: churn, memory the
 * CPU never touches, pageable copies. Nothing is claimed that the trace does not show. */
#include <criterion/criterion.h>
#include <string.h>

#include "report_found.h"

TestSuite(findings, .fini = drop_report);

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

/* Findings about faults, each beside the nearest stream that does not show it: first touches, demand faulting,
 * and what is said where faults were not recorded. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report_found.h"

TestSuite(findings, .fini = drop_report);

/* ---- first touch ---- */

Test(findings, first_touch_storm_is_found)
{
    um_report_t *r = gpu_touches_first(20);
    json_t *f;

    stream_cpu_fault(r, 110000, BASE + 63 * MIB); /* else it is memory that the CPU never touches */
    close_stream(r);
    f = found("first-touch");
    cr_assert_not_null(f);
    cr_assert_eq(stream_evidence(f, "gpu_faults"), 20u);
    cr_assert_eq(stream_evidence(f, "gpu_fault_ns"), 2000 * US);
    cr_assert_str_eq(text_of(f, "where"), "kernel fill");
    cr_assert_null(found("demand-faulting"), "nothing came from the CPU");
}

Test(findings, first_touches_of_what_the_cpu_never_touches_are_one_finding)
{
    close_stream(gpu_touches_first(20));
    cr_assert_null(found("first-touch"));
    cr_assert_eq(stream_evidence(found("never-on-cpu"), "gpu_faults"), 20u);
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
    stream_cpu_fault(r, 30000, BASE + 63 * MIB); /* else it is memory that the CPU never touches */
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

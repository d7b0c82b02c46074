/* A finding's advice, applied to a workload and replayed: what it says is so in the model. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings/finding.h"
#include "sim/change.h"
#include "sim/gen.h"
#include "sim/predict.h"

#define MIB (UINT64_C(1) << 20)

static um_machine_t machine;
static um_workload_t *workload;
static um_findings_t findings; /* as the report had them when they were predicted */

static void feed(void *ctx, const um_event_t *event)
{
    cr_assert_eq(um_report_event(ctx, event), UM_OK);
}

static um_status_t take(void *ctx, const um_report_t *report, um_findings_t *of)
{
    um_status_t status = um_predict_findings(ctx, report, of);

    findings = *of;
    findings.list = calloc(of->n + 1, sizeof(*of->list));
    memcpy(findings.list, of->list, of->n * sizeof(*of->list));
    return status;
}

/* A pattern is simulated under the driver, what that looks like is reported, and its advice replayed. */
static um_report_t *reported(const char *pattern, uint64_t bytes, uint32_t iterations)
{
    um_gen_options_t options = {.bytes = bytes, .iterations = iterations};
    um_sim_config_t config = {.machine = &machine, .policy = um_policy_find("app"), .event = feed};
    um_report_t *report;
    um_sim_result_t result;
    char error[256] = "";

    cr_assert_eq(um_machine_load("h200-pcie5", &machine, error, sizeof(error)), UM_OK, "%s", error);
    cr_assert_eq(um_gen_workload(pattern, &options, &workload), UM_OK);
    cr_assert_eq(um_report_new(&report), UM_OK);
    cr_assert_eq(um_report_begin(report, "made.umt", NULL, 0), UM_OK);
    config.workload = workload;
    config.event_ctx = report;
    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    return report;
}

static void predict(um_report_t *report, uint64_t work)
{
    um_predict_t with = {.workload = workload, .machine = &machine, .work = work};
    um_report_options_t as = {
        .format = UM_REPORT_JSON, .top = 100, .width = 100, .predict = take, .predict_ctx = &with};
    FILE *out = tmpfile();

    cr_assert_eq(um_report_write(report, &as, out), UM_OK);
    fclose(out);
    um_report_free(report);
}

static const um_finding_t *finding(const char *kind)
{
    for (size_t i = 0; i < findings.n; i++) {
        if (!strcmp(findings.list[i].kind->name, kind))
            return &findings.list[i];
    }
    return NULL;
}

Test(predict, mapping_what_goes_to_and_fro_makes_the_program_faster)
{
    const um_finding_t *f;

    predict(reported("ping-pong", 64 * MIB, 6), 0);
    f = finding("ping-pong");
    cr_assert_not_null(f);
    cr_assert(f->replayed);
    cr_assert_eq(f->change, UM_CHANGE_MAP);
    cr_assert_gt(f->alone_ns, (int64_t)f->error_ns);
    cr_assert_lt((uint64_t)f->alone_ns, findings.base_ns);
    cr_assert_eq(um_finding_worth_ns(f), (uint64_t)f->alone_ns);
    cr_assert_gt(findings.error_percent, 0u, "an H200 was measured");
}

Test(predict, scratch_in_device_memory_does_not_fault)
{
    const um_finding_t *f;

    predict(reported("first-touch", 32 * MIB, 12), 0);
    f = finding("allocation-churn");
    cr_assert_not_null(f);
    cr_assert(f->replayed);
    cr_assert_gt(f->alone_ns, (int64_t)findings.base_ns / 2, "nearly all of it was faults");
}

Test(predict, what_is_too_much_work_keeps_its_estimate)
{
    const um_finding_t *f;

    predict(reported("ping-pong", 64 * MIB, 6), 10);
    f = finding("ping-pong");
    cr_assert_not_null(f);
    cr_assert_not(f->replayed);
    cr_assert_gt(f->win_ns, 0u);
    cr_assert_neq(*findings.why_not, '\0');
}

Test(predict, together_is_never_more_than_the_program_takes)
{
    predict(reported("stream", 96 * MIB, 3), 0);
    cr_assert_gt(findings.n, 0u);
    for (size_t i = 0; i < findings.n; i++)
        cr_assert_lt(findings.list[i].together_ns, (int64_t)findings.base_ns);
}

Test(predict, a_change_leaves_the_workload_as_it_was)
{
    um_gen_options_t options = {.bytes = 32 * MIB, .iterations = 2};
    um_changed_region_t region = {.label = "data"};
    um_workload_change_t change = {.change = UM_CHANGE_MAP, .regions = &region, .n_regions = 1};
    um_workload_t *changed;
    uint64_t steps;

    cr_assert_eq(um_gen_workload("ping-pong", &options, &workload), UM_OK);
    steps = workload->n_steps;
    cr_assert_eq(um_workload_changed(workload, &change, 1, 1024 * MIB, &changed), UM_OK);
    cr_assert_eq(changed->n_steps, steps + 2, "a location and who reaches it");
    cr_assert_eq(changed->n_touches, workload->n_touches);
    cr_assert_eq(workload->n_steps, steps);
    um_workload_free(changed);
    change.change = UM_CHANGE_DEVICE;
    cr_assert_eq(um_workload_changed(workload, &change, 1, 1024 * MIB, &changed), UM_OK);
    cr_assert_eq(changed->n_touches, 0u);
    um_workload_free(changed);
    change.change = UM_CHANGE_NONE;
    cr_assert_eq(um_workload_changed(workload, &change, 1, 1024 * MIB, &changed),
                 UM_ERR_UNSUPPORTED);
}

/* A finding that is of a part says what that part is worth, not all of the region. */
Test(predict, advice_for_a_part_moves_that_part_alone)
{
    um_gen_options_t options = {.bytes = 32 * MIB, .iterations = 4};
    um_changed_region_t region = {.label = "data", .part_from = 4 * MIB, .part_end = 6 * MIB};
    um_workload_change_t change = {.regions = &region, .n_regions = 1};
    static const um_change_t of_a_part[] = {UM_CHANGE_MAP, UM_CHANGE_PREFETCH, UM_CHANGE_BOTH_WAYS};

    cr_assert_eq(um_gen_workload("ping-pong", &options, &workload), UM_OK);
    for (size_t i = 0; i < sizeof(of_a_part) / sizeof(of_a_part[0]); i++) {
        um_workload_t *changed;
        uint64_t hints = 0, addr = 0;

        change.change = of_a_part[i];
        cr_assert_eq(um_workload_changed(workload, &change, 1, 1024 * MIB, &changed), UM_OK);
        for (uint64_t s = 0; s < changed->n_steps; s++) {
            const um_event_t *event = changed->steps[s].event;

            if (event && event->type == UM_EV_REGION_ALLOC && !addr)
                addr = event->u.region_alloc.addr;
            if (!event || event->type != UM_EV_HINT)
                continue;
            cr_assert_geq(event->u.hint.addr, addr + 4 * MIB);
            cr_assert_leq(event->u.hint.addr + event->u.hint.bytes, addr + 6 * MIB);
            hints++;
        }
        cr_assert_gt(hints, 0u);
        um_workload_free(changed);
    }
}

Test(predict, repeats_of_a_hint_are_left_out_and_the_first_one_is_not)
{
    um_changed_region_t region = {.label = "data"};
    um_workload_change_t change = {.change = UM_CHANGE_DROP_REPEATS,
                                   .regions = &region,
                                   .n_regions = 1};
    um_workload_builder_t *builder;
    um_workload_t *made, *changed;
    um_event_t event = {.type = UM_EV_REGION_ALLOC};

    cr_assert_eq(um_workload_builder_new(UM_WORKLOAD_GENERATED, "hints", &builder), UM_OK);
    event.u.region_alloc = (um_ev_region_alloc_t){.region = 1,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = 64 * MIB,
                                                  .bytes = 2 * MIB};
    cr_assert_eq(um_workload_builder_step(builder, &event, 0, 0), UM_OK);
    event = (um_event_t){.type = UM_EV_REGION_LABEL, .u.region_label = {1, "data"}};
    cr_assert_eq(um_workload_builder_step(builder, &event, 0, 0), UM_OK);
    for (int i = 0; i < 3; i++) {
        event = (um_event_t){.type = UM_EV_HINT};
        event.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                      .result = UM_HINT_APPLIED,
                                      .addr = 64 * MIB,
                                      .bytes = 2 * MIB,
                                      .region = 1,
                                      .who = "app",
                                      .why = ""};
        cr_assert_eq(um_workload_builder_step(builder, &event, 0, 0), UM_OK);
    }
    event = (um_event_t){.type = UM_EV_LAUNCH};
    event.u.launch = (um_ev_launch_t){.grid = {1, 1, 1}, .block = {1, 1, 1}};
    cr_assert_eq(um_workload_builder_step(builder, &event, 0, 0), UM_OK);
    cr_assert_eq(um_workload_builder_finish(builder, &made, NULL, 0), UM_OK);
    cr_assert_eq(um_workload_changed(made, &change, 1, 1024 * MIB, &changed), UM_OK);
    cr_assert_eq(changed->n_steps, made->n_steps - 2);
    um_workload_free(changed);
    region.label = "another";
    cr_assert_eq(um_workload_changed(made, &change, 1, 1024 * MIB, &changed), UM_ERR_NOT_FOUND);
    um_workload_free(made);
}

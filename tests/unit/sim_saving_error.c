/*
 * The error bar of a saving, against savings that were measured on an H200: of two variants of one run
 * (plain, and one that prefetches or advises), nothing of which was fitted to.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/backtest.h"
#include "sim/error_bar.h"
#include "sim/predict.h"

static um_machine_t machine;

static um_sim_result_t simulated(const um_workload_t *workload)
{
    um_sim_config_t config = {.workload = workload,
                              .machine = &machine,
                              .policy = um_policy_find("app")};
    um_sim_result_t result = {0};

    cr_assert_eq(um_sim_run(&config, &result, NULL, 0), UM_OK);
    return result;
}

/* What the timed part alone took and moved. */
static um_sim_result_t timed(const um_backtest_run_t *run)
{
    um_sim_result_t whole = simulated(run->whole), before = simulated(run->before);

    whole.total_ns -= before.total_ns;
    whole.hinted_bytes -= before.hinted_bytes;
    whole.bytes_remote -= before.bytes_remote;
    whole.bytes_to_device -= before.bytes_to_device;
    whole.bytes_to_host -= before.bytes_to_host;
    whole.bytes_peer -= before.bytes_peer;
    return whole;
}

static bool plain(const um_backtest_run_t *run)
{
    return run->half == UM_BACKTEST_JUDGE && !strcmp(run->variant, "plain");
}

static void judge(const char *name, uint32_t percent, uint32_t *savings, uint32_t *inside,
                  uint32_t *worth, uint32_t *right_way)
{
    um_backtest_t *backtest;
    char file[4096], error[512];

    snprintf(file, sizeof(file), "%s/tests/data/h200/%s", getenv("UM_SRCDIR"), name);
    cr_assert_eq(um_backtest_load(file, &backtest, error, sizeof(error)), UM_OK, "%s", error);
    for (uint32_t p = 0; p < backtest->n_runs; p++) {
        const um_backtest_run_t *a = &backtest->runs[p];
        um_sim_result_t as_it_is;

        if (!plain(a))
            continue;
        as_it_is = timed(a);
        for (uint32_t i = 0; i < backtest->n_runs; i++) {
            const um_backtest_run_t *b = &backtest->runs[i];
            um_sim_result_t changed;
            double measured = (double)a->measured_ns - (double)b->measured_ns, predicted, error;

            if (b == a || b->group != a->group || b->half != UM_BACKTEST_JUDGE)
                continue;
            changed = timed(b);
            predicted = (double)as_it_is.total_ns - (double)changed.total_ns;
            if (predicted <= 0)
                continue;
            error = (double)um_saving_error_ns(&machine, percent, &as_it_is, &changed);
            (*savings)++;
            *inside +=
                (measured > predicted ? measured - predicted : predicted - measured) <= error;
            /* less than a hundredth is folded away as well */
            if (predicted < error || predicted * 100 < (double)as_it_is.total_ns)
                continue;
            (*worth)++;
            *right_way += measured > 0;
        }
    }
    um_backtest_free(backtest);
}

Test(saving_error, holds_half_of_the_savings_that_were_measured)
{
    uint32_t savings = 0, inside = 0, worth = 0, right_way = 0;
    char error[512];

    cr_assert_eq(um_machine_load("h200-pcie5", &machine, error, sizeof(error)), UM_OK, "%s", error);
    cr_assert_str_eq(um_error_bars[0].machine, machine.name);
    for (int i = 0; i < 3; i++)
        judge((const char *[]){"backtest.json", "backtest-192.json", "backtest-640.json"}[i],
              um_error_bars[0].saving_percent, &savings, &inside, &worth, &right_way);
    cr_assert_gt(savings, 80u);
    cr_assert_geq(inside * 2, savings, "%u of %u", inside, savings);
    cr_assert_geq(right_way * 100, worth * 95,
                  "what saves more than its error bar does save: %u of %u", right_way, worth);
}

Test(saving_error, is_small_where_nothing_changes_and_grows_with_what_is_brought)
{
    um_sim_result_t as_it_is = {.total_ns = 100000000, .bytes_to_device = 1 << 28},
                    changed = as_it_is;
    uint64_t little, much;
    char error[512];

    cr_assert_eq(um_machine_load("h200-pcie5", &machine, error, sizeof(error)), UM_OK, "%s", error);
    cr_assert_eq(um_saving_error_ns(&machine, 8, &as_it_is, &changed), 0u);
    changed.total_ns = 90000000;
    little = um_saving_error_ns(&machine, 8, &as_it_is, &changed);
    cr_assert_eq(little, 800000u);
    changed.hinted_bytes = changed.bytes_to_device;
    much = um_saving_error_ns(&machine, 8, &as_it_is, &changed);
    cr_assert_gt(much, little);
    cr_assert_eq(um_saving_error_ns(&machine, 8, &changed, &as_it_is) > 0, true);
}

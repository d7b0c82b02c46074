/* Every generated program, machine and policy, with less and less memory: none beats the bounds, and
 * none changes what is accessed and computed, only when. */
#include <criterion/criterion.h>

#include "sim/gen.h"
#include "sim/sim.h"

static const char *const machines[] = {"h200-pcie5", "v100-pcie3", "gh200-c2c"};
static const uint32_t percents[] = {200, 100, 60, 25};

static void hold(const um_workload_t *w, const char *pattern, const char *name)
{
    um_machine_t machine;
    char error[512] = "";

    cr_assert_eq(um_machine_load(name, &machine, error, sizeof(error)), UM_OK, "%s", error);
    for (size_t p = 0; p < sizeof(percents) / sizeof(percents[0]); p++) {
        uint64_t capacity =
            w->managed_peak_bytes * percents[p] / 100 / UM_BLOCK_BYTES * UM_BLOCK_BYTES +
            UM_BLOCK_BYTES;
        um_bounds_t least;
        uint64_t touches = 0, compute_ns = 0;

        cr_assert_eq(um_bounds_find(w, &machine, capacity, 0, &least), UM_OK);
        for (const um_policy_t *policy = um_policies; policy->name; policy++) {
            const um_sim_config_t config = {.workload = w,
                                            .machine = &machine,
                                            .policy = policy,
                                            .gpu_bytes = capacity};
            um_sim_result_t r;

            cr_assert_eq(um_sim_run(&config, &r, error, sizeof(error)), UM_OK, "%s", error);
            touches = touches ? touches : r.touches;
            compute_ns = compute_ns ? compute_ns : r.compute_ns;
            cr_expect_gt(r.touches, 0);
            cr_expect_eq(r.touches, touches, "%s on %s with %u %% under %s: %lu accesses, not %lu",
                         pattern, name, percents[p], policy->name, r.touches, touches);
            cr_expect_eq(r.compute_ns, compute_ns);
            cr_expect_geq(r.total_ns, least.least_ns, "%s on %s with %u %% under %s: %lu < %lu ns",
                          pattern, name, percents[p], policy->name, r.total_ns, least.least_ns);
            cr_expect_geq(r.bytes_to_device + r.bytes_to_host + r.bytes_peer + r.bytes_remote,
                          least.least_bytes,
                          "%s on %s with %u %% under %s: %lu + %lu + %lu + %lu < %lu bytes",
                          pattern, name, percents[p], policy->name, r.bytes_to_device,
                          r.bytes_to_host, r.bytes_peer, r.bytes_remote, least.least_bytes);
        }
    }
}

Test(sim_bounds, hold_for_every_policy_machine_and_capacity, .timeout = 600)
{
    for (const um_gen_pattern_t *pattern = um_gen_patterns; pattern->name; pattern++) {
        um_gen_options_t options = {.bytes = (uint64_t)12 << 20, .iterations = 2};
        um_workload_t *w;

        cr_assert_eq(um_gen_workload(pattern->name, &options, &w), UM_OK, "%s", pattern->name);
        for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++)
            hold(w, pattern->name, machines[m]);
        um_workload_free(w);
    }
}

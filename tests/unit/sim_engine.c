#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "sim_program.h"

#define H200 "h200-pcie5"
#define MS   1000000u

static program_t p;

static um_machine_t machine(void)
{
    um_machine_t out;
    char error[512];

    cr_assert_eq(um_machine_load(H200, &out, error, sizeof(error)), UM_OK, "%s", error);
    return out;
}

static um_sim_result_t run_with(const um_machine_t *on, const char *policy, uint64_t gpu_bytes)
{
    um_sim_config_t config = {.workload = &p.workload,
                              .machine = on,
                              .policy = um_policy_find(policy),
                              .gpu_bytes = gpu_bytes};
    um_sim_result_t result;
    char error[512];

    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    return result;
}

static um_sim_result_t run(const char *policy)
{
    um_machine_t on = machine();

    return run_with(&on, policy, 0);
}

/* The CPU writes a region, the GPU goes through it. */
static uint32_t written(uint64_t bytes)
{
    uint32_t region;

    program_init(&p);
    region = program_alloc(&p, bytes);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    return region;
}

Test(engine, a_kernel_on_what_the_cpu_wrote_moves_all_of_it_once)
{
    uint32_t region = written(64 * MIB);
    um_sim_result_t result;

    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    result = run("driver");
    cr_assert_eq(result.bytes_to_device, 64 * MIB);
    cr_assert_eq(result.bytes_to_host, 0);
    cr_assert_eq(result.compute_ns, 2 * MS);
    cr_assert_gt(result.gpu_faults, 0);
    cr_assert_gt(result.stall_ns, 0);
    cr_assert_gt(result.total_ns, 2 * MS + result.stall_ns);
    cr_assert_eq(result.touches, 3 * 64 * MIB / UM_PAGE_BYTES);
}

Test(engine, a_prefetch_of_the_programs_own_is_carried_out_under_app_alone)
{
    uint32_t region = written(256 * MIB);
    um_sim_result_t driver, app;

    program_hint(&p, UM_HINT_PREFETCH, 0, 0, region, 0, 256 * MIB);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    driver = run("driver");
    app = run("app");
    cr_assert_eq(driver.hints, 0);
    cr_assert_eq(app.hints, 1);
    cr_assert_eq(app.hinted_bytes, 256 * MIB);
    cr_assert_eq(app.gpu_faults, 0);
    cr_assert_eq(app.bytes_to_device, driver.bytes_to_device);
    cr_assert_lt(2 * app.stall_ns, driver.stall_ns);
}

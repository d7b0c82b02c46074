#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static um_sim_result_t run_telling(const char *policy, uint64_t gpu_bytes, um_event_fn event,
                                   void *ctx)
{
    um_machine_t on = machine();
    um_sim_config_t config = {.workload = &p.workload,
                              .machine = &on,
                              .policy = um_policy_find(policy),
                              .gpu_bytes = gpu_bytes,
                              .event = event,
                              .event_ctx = ctx};
    um_sim_result_t result;
    char error[512];

    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    return result;
}

static void add_up(void *ctx, const um_event_t *event)
{
    uint64_t *sum = ctx;

    *sum = *sum * 31 + event->time_ns * 7 + event->type;
    if (event->type == UM_EV_MIGRATE)
        *sum = *sum * 31 + event->u.migrate.addr + event->u.migrate.duration_ns;
}

static void in_order(void *ctx, const um_event_t *event)
{
    uint64_t *last = ctx;

    if (event->type == UM_EV_KERNEL_EXEC) {
        cr_assert_leq(event->time_ns + event->u.kernel_exec.duration_ns, *last + MS);
        return;
    }
    cr_assert_geq(event->time_ns, *last, "%s", um_event_type_name(event->type));
    *last = event->time_ns;
}

/* The CPU writes a region, the GPU goes through it. */
static uint32_t written(uint64_t bytes)
{
    uint32_t region;

    program_init(&p);
    region = program_alloc(&p, bytes);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    program_event(&p, UM_EV_MARK)->u.mark = (um_ev_mark_t){.domain = "", .name = "written"};
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

Test(engine, calls_on_more_bytes_than_the_region_has_end_with_it)
{
    static const char *const policies[] = {"none", "driver", "app", "oracle", "umrt"};
    uint32_t region = written(4 * MIB);
    uint64_t addr = p.addr[region];

    program_event(&p, UM_EV_SET)->u.set = (um_ev_set_t){.addr = addr + MIB,
                                                        .bytes = UINT64_C(1) << 60,
                                                        .memory = UM_MEMORY_MANAGED,
                                                        .region = region};
    program_event(&p, UM_EV_COPY)->u.copy = (um_ev_copy_t){.dst_addr = addr + 4 * MIB,
                                                           .src_addr = addr,
                                                           .bytes = UINT64_C(1) << 40,
                                                           .dst_memory = UM_MEMORY_MANAGED,
                                                           .src_memory = UM_MEMORY_MANAGED,
                                                           .dst_region = region,
                                                           .src_region = region};
    program_event(&p, UM_EV_HINT)->u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                                           .result = UM_HINT_APPLIED,
                                                           .addr = addr,
                                                           .bytes = UINT64_C(1) << 62,
                                                           .region = region,
                                                           .who = "app",
                                                           .why = ""};
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        um_sim_result_t result = run(policies[i]);

        cr_assert_geq(result.bytes_to_device, 4 * MIB - UM_PAGE_BYTES, "%s", policies[i]);
        cr_assert_leq(result.bytes_to_device, 8 * MIB, "%s", policies[i]);
    }
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

Test(engine, the_same_run_gives_the_same_result_and_events)
{
    uint32_t region = written(32 * MIB);
    um_sim_result_t first, second;
    uint64_t sum[2] = {0};

    for (int i = 0; i < 6; i++) {
        program_launch(&p, MS, 0, 7 + (uint64_t)i % 3, region, UM_ACCESS_WRITE);
        program_sync(&p, i % 2 ? UM_SYNC_DEVICE : UM_SYNC_STREAM, 8);
        program_host(&p, 1000, region, UM_ACCESS_READ);
    }
    first = run_telling("umrt", 24 * MIB, add_up, &sum[0]);
    second = run_telling("umrt", 24 * MIB, add_up, &sum[1]);
    cr_assert_arr_eq((char *)&first, (char *)&second, sizeof(first));
    cr_assert_eq(sum[0], sum[1]);
}

Test(engine, events_come_in_the_order_of_time_but_a_kernels_end_tells_of_its_start)
{
    uint32_t region = written(16 * MIB);
    uint64_t last = 0;

    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    program_host(&p, 1000, region, UM_ACCESS_READ);
    run_telling("ahead", 0, in_order, &last);
    cr_assert_gt(last, MS);
}

Test(engine, a_prefetch_on_the_launchs_stream_comes_before_the_kernel_and_one_elsewhere_races_it)
{
    um_sim_result_t same, other;

    for (uint64_t stream = 0; stream < 2; stream++) {
        uint32_t region = written(256 * MIB);

        /* Two calls: the first is carried out by the caller, the second later by the stream. */
        p.tid = 1 + (uint32_t)stream;
        program_hint(&p, UM_HINT_PREFETCH, 0, stream, region, 0, 64 * MIB);
        program_hint(&p, UM_HINT_PREFETCH, 0, stream, region, 64 * MIB, 192 * MIB);
        p.tid = 1;
        program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
        program_sync(&p, UM_SYNC_DEVICE, 0);
        *(stream ? &other : &same) = run("app");
    }
    cr_assert_eq(same.stall_ns, 0);
    cr_assert_eq(same.late_bytes, 0);
    cr_assert_gt(other.stall_ns, 0);
    cr_assert_gt(other.late_bytes, 0);
    cr_assert_eq(same.bytes_to_device, other.bytes_to_device);
}

Test(engine, many_threads_prefetch_faster_than_one_and_small_calls_slower)
{
    um_sim_result_t one, two, small;
    uint32_t region = written(256 * MIB);
    uint64_t before = run("app").total_ns;

    program_hint(&p, UM_HINT_PREFETCH, 0, 0, region, 0, 256 * MIB);
    one = run("app");
    region = written(256 * MIB);
    for (uint64_t i = 0; i < 8; i++) {
        p.tid = 1 + i % 2;
        program_hint(&p, UM_HINT_PREFETCH, 0, i % 2, region, i * 32 * MIB, 32 * MIB);
    }
    p.tid = 1;
    program_sync(&p, UM_SYNC_DEVICE, 0);
    two = run("app");
    region = written(256 * MIB);
    for (uint64_t i = 0; i < 128; i++)
        program_hint(&p, UM_HINT_PREFETCH, 0, 0, region, i * 2 * MIB, 2 * MIB);
    small = run("app");
    cr_assert_lt(two.total_ns - before, one.total_ns - before);
    cr_assert_lt(2 * (one.total_ns - before), small.total_ns - before);
}

Test(engine, a_step_starts_no_earlier_than_the_one_before_it_whatever_its_thread)
{
    um_sim_result_t result;

    program_init(&p);
    program_launch(&p, 5 * MS, 0, 1, 0, UM_ACCESS_READ);
    program_sync(&p, UM_SYNC_STREAM, 1);
    program_launch(&p, MS, 0, 1, 0, UM_ACCESS_READ); /* waits for the thread */
    p.tid = 2;
    program_launch(&p, 7 * MS, 0, 2, 0, UM_ACCESS_READ);
    result = run("driver");
    cr_assert_gt(result.total_ns, 12 * MS);
    cr_assert_lt(result.total_ns, 14 * MS);
}

Test(engine, a_wait_for_a_stream_does_not_wait_for_another)
{
    um_sim_result_t waits, goes_on;

    for (uint64_t stream = 1; stream < 3; stream++) {
        program_init(&p);
        program_launch(&p, 9 * MS, 0, 1, 0, UM_ACCESS_READ);
        program_sync(&p, UM_SYNC_STREAM, stream);
        program_host(&p, 9 * MS, 0, UM_ACCESS_READ);
        *(stream == 1 ? &waits : &goes_on) = run("driver");
    }
    cr_assert_gt(waits.total_ns, 18 * MS);
    cr_assert_lt(goes_on.total_ns, 10 * MS);
}

Test(engine, kernels_share_the_gpu_by_their_size)
{
    um_sim_result_t small, large;

    for (uint32_t blocks = 1; blocks < 100000; blocks += 50000) {
        program_init(&p);
        for (uint64_t stream = 1; stream < 5; stream++) {
            program_launch(&p, 4 * MS, 0, stream, 0, UM_ACCESS_READ);
            p.event[p.workload.n_steps - 1].u.launch.grid[0] = blocks;
            p.event[p.workload.n_steps - 1].u.launch.block[0] = 256;
            for (int i = 1; i < 3; i++)
                p.event[p.workload.n_steps - 1].u.launch.grid[i] =
                    p.event[p.workload.n_steps - 1].u.launch.block[i] = 1;
        }
        *(blocks == 1 ? &small : &large) = run("driver");
    }
    cr_assert_lt(small.total_ns, 5 * MS);
    cr_assert_gt(large.total_ns, 16 * MS);
}

Test(engine, a_slower_gpu_computes_longer)
{
    um_machine_t h200 = machine(), slow = machine();

    program_init(&p);
    program_launch(&p, 4 * MS, 0, 0, 0, UM_ACCESS_READ);
    slow.kernel_time_scale = 3;
    cr_assert_eq(run_with(&h200, "driver", 0).compute_ns, 4 * MS);
    cr_assert_eq(run_with(&slow, "driver", 0).compute_ns, 12 * MS);
}

Test(engine, what_does_not_fit_goes_back_and_forth)
{
    uint32_t region = written(64 * MIB);
    um_machine_t on = machine();
    um_sim_result_t result;

    for (int i = 0; i < 3; i++)
        program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    result = run_with(&on, "driver", 32 * MIB);
    cr_assert_eq(result.bytes_to_device, 3 * 64 * MIB);
    cr_assert_eq(result.bytes_to_host, result.evicted_bytes);
    cr_assert_eq(result.bytes_to_device - result.bytes_to_host, 32 * MIB);
}

Test(engine, what_is_prefetched_and_leaves_untouched_was_wasted)
{
    uint32_t region = written(64 * MIB);
    um_sim_result_t result;

    program_hint(&p, UM_HINT_PREFETCH, 0, 0, region, 0, 64 * MIB);
    program_host(&p, 0, region, UM_ACCESS_READ);
    result = run("app");
    cr_assert_eq(result.wasted_bytes, 64 * MIB);
}

Test(engine, two_gpus_exchange_over_their_own_link)
{
    uint32_t region = written(32 * MIB);
    um_sim_result_t result;

    p.workload.n_gpus = 2;
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    program_launch(&p, MS, 1, 0, region, UM_ACCESS_WRITE);
    result = run("driver");
    cr_assert_eq(result.bytes_to_device, 32 * MIB);
    cr_assert_eq(result.bytes_peer, 32 * MIB);
}

Test(engine, hardware_that_reaches_the_other_side_does_not_fault)
{
    um_machine_t coherent = machine();
    uint32_t region = written(32 * MIB);
    um_sim_result_t result;

    coherent.coherent = true;
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_READ);
    result = run_with(&coherent, "driver", 0);
    cr_assert_eq(result.gpu_faults, 0);
    cr_assert_eq(result.bytes_to_device, 0);
    cr_assert_eq(result.bytes_remote, 32 * MIB);
}

Test(engine, a_free_waits_for_the_kernels_that_use_the_memory)
{
    uint32_t region = written(2 * MIB);
    um_sim_result_t result;

    program_launch(&p, 20 * MS, 0, 0, region, UM_ACCESS_WRITE);
    program_free(&p, region);
    program_host(&p, 20 * MS, 0, UM_ACCESS_READ);
    result = run("driver");
    cr_assert_gt(result.total_ns, 40 * MS);
}

Test(engine, a_gpu_without_room_for_one_block_is_refused_in_one_line)
{
    um_machine_t on = machine();
    um_sim_config_t config = {.workload = &p.workload,
                              .machine = &on,
                              .policy = um_policy_find("driver"),
                              .gpu_bytes = 1 * MIB};
    um_sim_result_t result;
    char error[256];

    written(2 * MIB);
    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_ERR_INVALID);
    cr_assert(strstr(error, "1048576") && !strchr(error, '\n'), "%s", error);
    config.gpu_bytes = 0;
    p.workload.n_gpus = 9;
    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_ERR_INVALID);
    cr_assert(strstr(error, "9"), "%s", error);
    cr_assert_null(um_policy_find("best"));
}

Test(engine, without_the_prefetcher_every_page_faults)
{
    uint32_t region = written(8 * MIB);
    um_sim_result_t none, driver;

    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    none = run("none");
    driver = run("driver");
    cr_assert_eq(none.gpu_faults, 8 * MIB / UM_PAGE_BYTES);
    cr_assert_eq(none.bytes_to_device, driver.bytes_to_device);
    cr_assert_gt(none.total_ns, driver.total_ns);
}

Test(engine, the_oracle_leaves_little_to_wait_for)
{
    uint32_t region = written(64 * MIB);
    um_sim_result_t driver, oracle;

    for (int i = 0; i < 4; i++) {
        program_launch(&p, 4 * MS, 0, 0, region, UM_ACCESS_WRITE);
        program_sync(&p, UM_SYNC_DEVICE, 0);
        program_host(&p, 4 * MS, region, UM_ACCESS_READ);
    }
    driver = run("driver");
    oracle = run("oracle");
    cr_assert_lt(2 * oracle.stall_ns, driver.stall_ns);
    cr_assert_lt(oracle.total_ns, driver.total_ns);
    cr_assert_eq(oracle.bytes_to_device, driver.bytes_to_device);
    cr_assert_eq(oracle.gpu_faults, 0);
}

/* ---- the table of policies ---- */

Test(policies, run_is_what_umrt_run_asks_without_options)
{
    const um_policy_t *policy = um_policy_find("run");

    cr_assert_not_null(policy);
    cr_assert_eq(policy->table, um_advisor_table);
    cr_assert_str_eq(policy->advisors, UM_ADVISORS_DEFAULT);
    cr_assert_not_null(strstr(policy->doc, UM_ADVISORS_DEFAULT));
}

Test(policies, every_advisor_can_be_simulated_alone)
{
    for (const um_advisor_ops_t *const *a = um_advisor_table; *a; a++) {
        const um_policy_t *policy = um_policy_find((*a)->name);

        cr_assert_not_null(policy, "%s is no policy of umrt replay", (*a)->name);
        cr_assert_str_eq(policy->advisors, (*a)->name);
        cr_assert_eq(policy->table, um_advisor_table);
    }
}

/* The hint loop inside the simulator: what advisors see there, and that they say what they say live. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "core/bus.h"
#include "exec/hinter.h"
#include "sim_program.h"

#define MS        1000000u
#define MAX_HINTS 256

static program_t p;

static um_machine_t machine(double hint_delay_ns)
{
    um_machine_t out;
    char error[512];

    cr_assert_eq(um_machine_load("h200-pcie5", &out, error, sizeof(error)), UM_OK, "%s", error);
    out.hint_delay_ns = hint_delay_ns;
    return out;
}

static um_sim_result_t run(const um_machine_t *on, const um_policy_t *policy, um_event_fn event,
                           void *ctx)
{
    um_sim_config_t config = {
        .workload = &p.workload, .machine = on, .policy = policy, .event = event, .event_ctx = ctx};
    um_sim_result_t result;
    char error[512];

    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    return result;
}

/* ---- what an advisor sees ---- */

static uint64_t seen[UM_EV_TYPE_COUNT], last_call_ns, asked;

static void watch(void *state, const um_event_t *event)
{
    (void)state;
    seen[event->type]++;
    if (event->type == UM_EV_LAUNCH || event->type == UM_EV_SYNC) {
        cr_assert_geq(event->time_ns, last_call_ns);
        last_call_ns = event->time_ns;
    }
}

static void ask(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    size_t n = um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, extent,
                               UM_VIEW_STRETCH_EXTENTS);

    (void)state;
    asked++;
    for (size_t i = 0; i < n; i++)
        if (extent[i].where == UM_WHERE_HOST)
            um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                             .addr = extent[i].addr,
                                             .bytes = extent[i].bytes,
                                             .device = um_view_launch(view)->device,
                                             .why = "test"});
}

static const um_advisor_ops_t watcher = {
    .abi = UM_ADVISOR_ABI, .name = "watcher", .doc = "", .observe = watch, .decide = ask};
static const um_advisor_ops_t *const watchers[] = {&watcher, NULL};
static const um_policy_t watching = {
    .name = "watching", .doc = "", .tree_prefetch = true, .advisors = "", .table = watchers};

Test(loop, advisors_see_what_a_live_process_sees_and_never_an_access)
{
    um_machine_t on = machine(100000);
    uint32_t region;
    um_sim_result_t result;

    program_init(&p);
    region = program_alloc(&p, 64 * MIB);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    for (int i = 0; i < 3; i++) {
        program_launch(&p, 10 * MS, 0, 0, region, UM_ACCESS_WRITE);
        program_sync(&p, UM_SYNC_DEVICE, 0);
        program_host(&p, 10 * MS, region, UM_ACCESS_READ);
    }
    result = run(&on, &watching, NULL, NULL);
    cr_assert_eq(seen[UM_EV_ACCESS], 0);
    cr_assert_eq(seen[UM_EV_REGION_ALLOC], 1);
    cr_assert_eq(seen[UM_EV_DEVICE], 1);
    cr_assert_eq(seen[UM_EV_LAUNCH], 3);
    cr_assert_eq(seen[UM_EV_SYNC], 6);
    cr_assert_eq(seen[UM_EV_KERNEL_EXEC], 3);
    cr_assert_gt(seen[UM_EV_MIGRATE], 0);
    cr_assert_gt(seen[UM_EV_GPU_FAULT], 0);
    cr_assert_gt(seen[UM_EV_CPU_FAULT], 0);
    cr_assert_eq(seen[UM_EV_HINT], result.hints);
    cr_assert_gt(result.hints, 0);
}

Test(loop, the_page_tables_tell_what_the_cpu_took)
{
    um_machine_t on = machine(0);
    uint32_t region;
    um_sim_result_t result;

    program_init(&p);
    region = program_alloc(&p, 64 * MIB);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    program_step(&p, 0);
    program_touch(&p, region, 16 * MIB, 8 * MIB, UM_ACCESS_READ, false);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    result = run(&on, &watching, NULL, NULL);
    cr_assert_eq(result.hinted_bytes, 72 * MIB);
    cr_assert_eq(result.bytes_to_device, 72 * MIB);
    cr_assert_eq(result.gpu_faults, 0);
}

Test(loop, a_policy_with_advisors_beats_the_driver_where_the_cpu_writes_first)
{
    um_machine_t on = machine(100000);
    uint32_t region;

    program_init(&p);
    region = program_alloc(&p, 256 * MIB);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    cr_assert_lt(2 * run(&on, um_policy_find("ahead"), NULL, NULL).stall_ns,
                 run(&on, um_policy_find("driver"), NULL, NULL).stall_ns);
}

Test(loop, a_hint_that_finds_no_room_is_refused)
{
    um_machine_t on = machine(100000);
    uint32_t region;
    um_sim_config_t config = {.workload = &p.workload,
                              .machine = &on,
                              .policy = um_policy_find("ahead"),
                              .gpu_bytes = 32 * MIB};
    um_sim_result_t result;
    char error[512];

    program_init(&p);
    region = program_alloc(&p, 256 * MIB);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    cr_assert_gt(result.hints_refused, 0);
}

/* ---- the same hints as live ---- */

typedef struct said {
    uint64_t addr, bytes;
    uint32_t kind;
    int32_t device;
} said_t;

static said_t said[2][MAX_HINTS];
static uint32_t n_said[2];

/* What the simulation told, but for outcomes of hints, goes through a second hint loop. */
typedef struct second {
    um_regions_t *regions;
    um_executor_t *executor;
    um_hinter_t *hinter;
    um_sink_t sink;
    uint64_t now_ns;
} second_t;

static void keep(uint32_t list, const um_ev_hint_t *hint)
{
    cr_assert_lt(n_said[list], MAX_HINTS);
    said[list][n_said[list]++] = (said_t){hint->addr, hint->bytes, hint->kind, hint->device};
}

static void posted(void *ctx, const um_event_t *event)
{
    (void)ctx;
    keep(1, &event->u.hint);
}

static void replayed(void *ctx, const um_event_t *event)
{
    second_t *second = ctx;

    second->now_ns = event->time_ns;
    if (event->type == UM_EV_HINT) {
        keep(0, &event->u.hint);
        return;
    }
    if (event->type == UM_EV_REGION_ALLOC) {
        um_region_t region = {.id = event->u.region_alloc.region,
                              .family = event->u.region_alloc.family,
                              .addr = event->u.region_alloc.addr,
                              .bytes = event->u.region_alloc.bytes};

        cr_assert_eq(um_regions_add(second->regions, &region, NULL, 0, NULL), UM_OK);
    }
    second->sink.event(second->sink.ctx, event);
}

/* The CPU has mapped everything: so it is when the launch comes. */
static um_status_t all_present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out,
                               size_t max, size_t *n, uint64_t *present_bytes)
{
    (void)ctx;
    *n = max > 0;
    *present_bytes = bytes;
    if (max)
        *out = (um_extent_t){.addr = addr, .bytes = bytes, .where = UM_WHERE_HOST};
    return UM_OK;
}

static bool page_present(void *ctx, uint64_t addr)
{
    (void)ctx;
    (void)addr;
    return true;
}

static uint64_t second_now(void *ctx)
{
    return ((second_t *)ctx)->now_ns;
}

static int by_addr(const void *a, const void *b)
{
    uint64_t x = ((const said_t *)a)->addr, y = ((const said_t *)b)->addr;

    return (x > y) - (x < y);
}

Test(loop, the_hints_are_those_that_a_live_loop_makes_of_the_same_events)
{
    um_machine_t on = machine(0);
    second_t second = {0};
    um_page_tables_t tables = {.ctx = &second,
                               .present = all_present,
                               .page = page_present,
                               .now_ns = second_now};
    um_hinter_config_t config = {.page_tables = &tables,
                                 .advisors = "ahead",
                                 .gate = {.piece_bytes = 32 * MIB, .headroom_bytes = 512 * MIB},
                                 .post = posted};
    uint32_t region;

    program_init(&p);
    region = program_alloc(&p, 200 * MIB);
    program_host(&p, 0, region, UM_ACCESS_WRITE);
    program_launch(&p, MS, 0, 0, region, UM_ACCESS_WRITE);
    program_sync(&p, UM_SYNC_DEVICE, 0);
    cr_assert_eq(um_regions_new(&second.regions), UM_OK);
    cr_assert_eq(um_executor_null_new((uint64_t)64 << 30, &second.executor), UM_OK);
    config.regions = second.regions;
    config.executor = second.executor;
    cr_assert_eq(um_hinter_new(&config, &second.hinter), UM_OK);
    second.sink = um_hinter_sink(second.hinter);
    run(&on, um_policy_find("ahead"), replayed, &second);
    cr_assert_eq(n_said[0], 7);
    cr_assert_eq(n_said[0], n_said[1]);
    for (int list = 0; list < 2; list++)
        qsort(said[list], n_said[list], sizeof(said_t), by_addr);
    cr_assert_arr_eq((char *)said[0], (char *)said[1], n_said[0] * sizeof(said_t));
    um_hinter_free(second.hinter);
    second.executor->ops->free(second.executor);
    um_regions_free(second.regions);
}

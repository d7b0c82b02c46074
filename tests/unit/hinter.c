/* The whole loop without a GPU: events in, hints out, outcomes back in. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "hints_fake.h"

static fake_tables_t fake;
static um_regions_t *regions;
static um_executor_t *executor;
static um_hinter_t *hinter;
static um_sink_t sink;
static _Atomic bool hinting;
static um_event_t outcome[1024];
static unsigned n_outcomes;
static bool no_tables;

static void feed(um_event_t event)
{
    sink.event(sink.ctx, &event);
}

/* Outcomes come back as events, as the bus would bring them. */
static void post(void *ctx, const um_event_t *event)
{
    (void)ctx;
    outcome[n_outcomes++] = *event;
    feed(*event);
}

static void allocate(uint32_t id, uint64_t offset, uint64_t bytes)
{
    um_region_t region = {.family = UM_FAMILY_MANAGED,
                          .addr = FAKE_BASE + offset,
                          .bytes = bytes,
                          .id = id};

    cr_assert_eq(um_regions_add(regions, &region, NULL, 0, NULL), UM_OK);
    feed(event_alloc(fake.now_ns += 1000, id, FAKE_BASE + offset, bytes));
}

static void start_on(uint32_t gpu, const char *advisors, uint64_t free_bytes)
{
    um_page_tables_t tables = fake_interface(&fake);
    um_hinter_config_t config = {.page_tables = no_tables ? NULL : &tables,
                                 .advisors = advisors,
                                 .gate = {.piece_bytes = 32 * MIB},
                                 .post = post,
                                 .hinting = &hinting};

    cr_assert_eq(um_regions_new(&regions), UM_OK);
    cr_assert_eq(um_executor_null_new(free_bytes, &executor), UM_OK);
    config.regions = regions;
    config.executor = executor;
    cr_assert_eq(um_hinter_new(&config, &hinter), UM_OK);
    sink = um_hinter_sink(hinter);
    feed(event_device(gpu));
}

static void start(void)
{
    start_on(FAKE_GOOD_GPU, "first_touch,ahead", 4096 * MIB);
}

static void stop(void)
{
    um_hinter_free(hinter);
    executor->ops->free(executor);
    um_regions_free(regions);
}

/* A launch with one pointer into each region given; returns how many hints came of it. */
static unsigned launch_at(uint32_t n, const uint32_t *region, const uint64_t *offset,
                          uint32_t flags)
{
    um_arg_t arg[8];
    um_event_t event;
    unsigned before = n_outcomes;
    static uint32_t correlation;

    for (uint32_t i = 0; i < n; i++)
        arg[i] = (um_arg_t){.slot = i, .region = region[i], .region_offset_bytes = offset[i]};
    fake.now_ns += 1000;
    event = event_launch(fake.now_ns - 500, ++correlation, arg, n);
    event.u.launch.flags = flags;
    feed(event);
    return n_outcomes - before;
}

static unsigned launch(uint32_t region)
{
    return launch_at(1, &region, &(uint64_t){0}, 0);
}

static void wait_for_gpu(void)
{
    feed(event_sync(fake.now_ns += 1000, UM_SYNC_DEVICE, 0, 0));
    feed(event_sync(fake.now_ns += 1000, UM_SYNC_DEVICE, 0, 1));
}

static uint64_t bytes_from(unsigned first)
{
    uint64_t bytes = 0;

    for (unsigned i = first; i < n_outcomes; i++)
        bytes += outcome[i].u.hint.bytes;
    return bytes;
}

Test(hinter, populates_what_the_gpu_touches_first)
{
    start();
    allocate(1, 0, 100 * MIB);
    /* Stretches of 64 MiB in pieces of 32 MiB. */
    cr_assert_eq(launch(1), 4);
    cr_assert_eq(bytes_from(0), 100 * MIB);
    cr_assert_str_eq(outcome[0].u.hint.who, "first_touch");
    cr_assert_eq(outcome[0].u.hint.addr, FAKE_BASE);
    cr_assert_eq(outcome[0].u.hint.region, 1);
    cr_assert_eq(outcome[0].u.hint.device, FAKE_GPU);
    cr_assert_eq(outcome[0].u.hint.result, UM_HINT_APPLIED);
    cr_assert_neq(outcome[0].u.hint.correlation, 0);
    cr_assert_eq(launch(1), 0);
    stop();
}

Test(hinter, brings_what_the_cpu_took_and_nothing_else)
{
    start();
    allocate(1, 0, 128 * MIB);
    launch(1);
    wait_for_gpu();
    fake_set(&fake, 10 * MIB, 4 * MIB, true);
    fake_set(&fake, 100 * MIB, UM_PAGE_BYTES, true);
    n_outcomes = 0;
    cr_assert_eq(launch(1), 2);
    cr_assert_str_eq(outcome[0].u.hint.who, "ahead");
    cr_assert_eq(outcome[0].u.hint.addr, FAKE_BASE + 10 * MIB);
    cr_assert_eq(outcome[0].u.hint.bytes, 4 * MIB);
    cr_assert_eq(outcome[1].u.hint.addr, FAKE_BASE + 100 * MIB);
    cr_assert_eq(outcome[1].u.hint.bytes, 2 * MIB);
    stop();
}

Test(hinter, every_round_of_a_cpu_gpu_loop_is_served_whole)
{
    start();
    allocate(1, 0, 128 * MIB);
    for (int round = 0; round < 20; round++) {
        unsigned before = n_outcomes;

        fake_set(&fake, 0, 128 * MIB, true);
        launch(1);
        cr_assert_eq(bytes_from(before), 128 * MIB, "round %d", round);
        fake_set(&fake, 0, 128 * MIB, false);
        wait_for_gpu();
    }
    stop();
}

Test(hinter, data_that_stays_on_the_gpu_costs_no_hint)
{
    um_hinter_stats_t stats;

    start();
    allocate(1, 0, 64 * MIB);
    launch(1);
    for (int i = 0; i < 1000; i++) {
        wait_for_gpu();
        cr_assert_eq(launch(1), 0);
    }
    um_hinter_stats(hinter, &stats);
    cr_assert_eq(stats.hinted_launches, 1);
    cr_assert_eq(stats.gate.proposed, 2);
    stop();
}

Test(hinter, starts_at_the_pointer_and_counts_a_region_once)
{
    uint32_t region[] = {1, 1, 1};
    uint64_t offset[] = {40 * MIB, 20 * MIB + 64, 60 * MIB};

    start();
    allocate(1, 0, 64 * MIB);
    launch_at(3, region, offset, 0);
    cr_assert_eq(outcome[0].u.hint.addr, FAKE_BASE + 20 * MIB + 64);
    cr_assert_eq(bytes_from(0), 44 * MIB - 64);
    stop();
}

Test(hinter, goes_through_arguments_side_by_side)
{
    uint32_t region[] = {1, 2};
    uint64_t offset[] = {0, 0};

    start();
    allocate(1, 0, 128 * MIB);
    allocate(2, 128 * MIB, 128 * MIB);
    cr_assert_eq(launch_at(2, region, offset, 0), 8);
    cr_assert_eq(outcome[0].u.hint.region, 1);
    cr_assert_eq(outcome[1].u.hint.region, 1);
    cr_assert_eq(outcome[2].u.hint.region, 2);
    cr_assert_eq(outcome[4].u.hint.region, 1);
    cr_assert_eq(outcome[4].u.hint.addr, FAKE_BASE + 64 * MIB);
    stop();
}

Test(hinter, leaves_arguments_alone_that_are_too_large_to_guess)
{
    um_hinter_stats_t stats;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "100M", 1);
    setenv("UMRT_FIRST_TOUCH_LIMIT", "100M", 1);
    start();
    allocate(1, 0, 128 * MIB);
    cr_assert_eq(launch(1), 0);
    cr_assert_eq(fake.looks, 0); /* nor are they looked at */
    um_hinter_stats(hinter, &stats);
    cr_assert_eq(stats.declined, 1);
    cr_assert_gt(launch_at(1, &(uint32_t){1}, &(uint64_t){64 * MIB}, 0), 0);
    stop();
}

Test(hinter, small_extents_are_left_to_faults)
{
    start();
    allocate(1, 0, 4096);
    allocate(2, 2 * MIB, 65536);
    cr_assert_eq(launch(1), 0);
    cr_assert_eq(fake.looks, 0); /* nor looked at */
    cr_assert_eq(launch(2), 1);
    stop();
}

Test(hinter, a_captured_launch_changes_nothing)
{
    start();
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(launch_at(1, &(uint32_t){1}, &(uint64_t){0}, UM_LAUNCH_CAPTURED), 0);
    cr_assert_eq(launch_at(1, &(uint32_t){1}, &(uint64_t){0}, UM_LAUNCH_GRAPH), 1);
    stop();
}

Test(hinter, only_observes_where_the_gpu_takes_no_prefetches)
{
    um_hinter_stats_t stats;

    start_on(UM_DEVICE_MANAGED, NULL, 4096 * MIB);
    cr_assert_not(hinting);
    allocate(1, 0, 8 * MIB);
    cr_assert_not(hinting);
    cr_assert_eq(launch(1), 0);
    cr_assert_eq(fake.looks, 0);
    um_hinter_stats(hinter, &stats);
    cr_assert_not_null(stats.no_hints);
    cr_assert_not_null(strstr(stats.no_hints, "concurrentManagedAccess"));
    stop();
}

Test(hinter, never_passes_free_memory)
{
    start_on(FAKE_GOOD_GPU, "first_touch,ahead", 70 * MIB);
    allocate(1, 0, 128 * MIB);
    cr_assert_eq(launch(1), 2);
    cr_assert_eq(bytes_from(0), 64 * MIB);
    stop();
}

Test(hinter, asks_only_the_advisors_named)
{
    start_on(FAKE_GOOD_GPU, "ahead", 4096 * MIB);
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(launch(1), 0);
    allocate(2, 8 * MIB, 8 * MIB);
    fake_set(&fake, 8 * MIB, 8 * MIB, true);
    cr_assert_eq(launch(2), 1);
    stop();
}

Test(hinter, says_that_nobody_is_asked)
{
    um_hinter_stats_t stats;

    start_on(FAKE_GOOD_GPU, "aheed", 4096 * MIB);
    um_hinter_stats(hinter, &stats);
    cr_assert_str_eq(stats.no_hints, "none of the advisors that were named is there");
    stop();
    start();
    um_hinter_stats(hinter, &stats);
    cr_assert_null(stats.no_hints);
    stop();
}

static char warned[512];

static void hear(void *ctx, int level, const char *line)
{
    (void)ctx;
    (void)level;
    snprintf(warned, sizeof(warned), "%s", line);
}

Test(hinter, names_an_advisor_that_is_not_there)
{
    um_log_set(UM_LOG_WARN, hear, NULL);
    start_on(FAKE_GOOD_GPU, "ahead, first_touch", 4096 * MIB);
    cr_assert_str_eq(warned, "");
    stop();
    start_on(FAKE_GOOD_GPU, "ahead,forward", 4096 * MIB);
    cr_assert_not_null(strstr(warned, "'forward'"));
    stop();
}

Test(hinter, a_bad_option_of_an_advisor_is_named_and_left_at_its_default)
{
    um_log_set(UM_LOG_WARN, hear, NULL);
    setenv("UMRT_AHEAD_DENSE_LIMIT", "much", 1);
    start();
    cr_assert_not_null(strstr(warned, "UMRT_AHEAD_DENSE_LIMIT: 'much'"));
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(launch(1), 1);
    stop();
}

Test(hinter, without_page_tables_fresh_memory_is_still_populated)
{
    no_tables = true;
    start();
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(launch(1), 1);
    wait_for_gpu();
    cr_assert_eq(launch(1), 0);
    stop();
}

Test(hinter, a_freed_region_gets_no_hints_even_for_launches_seen_late)
{
    start();
    allocate(1, 0, 8 * MIB);
    um_hinter_region_going(hinter, FAKE_BASE, fake.now_ns + 10000);
    cr_assert_eq(launch(1), 0);
    feed(event_free(fake.now_ns += 1000, 1, FAKE_BASE));
    cr_assert_eq(launch(1), 0);
    stop();
}

Test(hinter, lets_launches_sleep_while_nothing_moves_and_wakes_after_a_cpu_phase)
{
    start();
    cr_assert(hinting);
    allocate(1, 0, 8 * MIB);
    launch(1);
    cr_assert(hinting);
    for (int i = 0; i < 4; i++) {
        wait_for_gpu();
        launch(1);
    }
    cr_assert_not(hinting);
    sink.idle(sink.ctx); /* between a launch and its wait: no phase of the cpu */
    cr_assert_not(hinting);
    wait_for_gpu();
    sink.idle(sink.ctx);
    cr_assert(hinting);
    launch(1);
    cr_assert_not(hinting); /* one that needed nothing is enough now */
    wait_for_gpu();
    fake_set(&fake, 0, 8 * MIB, true);
    launch(1);
    cr_assert(hinting);
    allocate(2, 64 * MIB, 8 * MIB);
    cr_assert(hinting);
    stop();
}

/* Thousands of launches and waits on data that stays on the GPU: hardly any wakes this thread. */
Test(hinter, waits_that_are_never_followed_by_the_cpus_touches_become_quiet)
{
    unsigned woken = 0;

    start();
    allocate(1, 0, 8 * MIB);
    launch(1);
    for (int i = 0; i < 4; i++)
        launch(1);
    for (int i = 0; i < 1000; i++) {
        wait_for_gpu();
        sink.idle(sink.ctx);
        woken += hinting;
        launch(1);
    }
    cr_assert_lt(woken, 30);
    cr_assert_gt(woken, 10, "some all the same");
    wait_for_gpu();
    for (int i = 0; i < 3; i++)
        sink.idle(sink.ctx);
    cr_assert(hinting, "a long phase counts");
    fake_set(&fake, 0, 8 * MIB, true);
    launch(1);
    for (int i = 0; i < 5; i++) {
        wait_for_gpu();
        launch(1);
    }
    wait_for_gpu();
    sink.idle(sink.ctx);
    cr_assert(hinting, "and so does every one where something was needed");
    stop();
}

Test(hinter, launches_on_unknown_regions_are_nothing)
{
    start();
    cr_assert_eq(launch(99), 0);
    cr_assert_eq(launch_at(0, NULL, NULL, 0), 0);
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(launch_at(1, &(uint32_t){1}, &(uint64_t){8 * MIB}, 0), 0);
    stop();
}

/* ---- what an advisor sees and may do ---- */

static uint64_t seen_room;
static uint32_t seen_flags, seen_observed;

static void observe_all(void *state, const um_event_t *event)
{
    (void)state;
    cr_assert_neq(event->type, UM_EV_ACCESS);
    seen_observed++;
}

static void look_around(const void *state, const um_view_t *view, um_hints_t *hints)
{
    (void)state;
    (void)hints;
    seen_room = um_view_room_bytes(view, FAKE_GPU);
    seen_flags = um_view_param_flags(view, 1);
    cr_assert_eq(um_view_param_flags(view, 9), 0);
    cr_assert_eq(um_view_room_bytes(view, 5), 0);
    cr_assert_eq(um_view_now_ns(view), fake.now_ns - 500);
}

static const um_advisor_ops_t looker = {.abi = UM_ADVISOR_ABI,
                                        .name = "looker",
                                        .observe = observe_all,
                                        .decide = look_around};
static const um_advisor_ops_t foreign = {.abi = UM_ADVISOR_ABI + 1, .name = "foreign"};
static const um_advisor_ops_t *const table[] = {&foreign, &looker, NULL};

Test(hinter, an_advisor_sees_room_and_parameters)
{
    um_param_t params[] = {{0, 8, 0}, {8, 8, UM_PARAM_CONST_POINTER | UM_PARAM_POINTER}};
    um_event_t kernel = {.type = UM_EV_KERNEL}, access = {.type = UM_EV_ACCESS}, event;
    um_arg_t arg = {.region = 1};
    um_hinter_config_t config = {.table = table, .post = post};

    cr_assert_eq(um_regions_new(&regions), UM_OK);
    cr_assert_eq(um_executor_null_new(512 * MIB, &executor), UM_OK);
    config.regions = regions;
    config.executor = executor;
    cr_assert_eq(um_hinter_new(&config, &hinter), UM_OK);
    sink = um_hinter_sink(hinter);
    feed(event_device(FAKE_GOOD_GPU));
    kernel.u.kernel = (um_ev_kernel_t){
        .kernel = 3, .name = "k", .n_params = 2, .layout_known = 1, .params = params};
    feed(kernel);
    feed(access);
    allocate(1, 0, 8 * MIB);
    fake.now_ns += 1000;
    event = event_launch(fake.now_ns - 500, 1, &arg, 1);
    event.u.launch.kernel = 3;
    feed(event);
    cr_assert_eq(seen_room, 512 * MIB);
    cr_assert_eq(seen_flags, UM_PARAM_CONST_POINTER | UM_PARAM_POINTER);
    cr_assert_eq(seen_observed, 4);
    stop();
}

/* ---- new regions ---- */

static void keep_new(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const um_stretch_t *stretch = um_view_stretch(view);

    (void)state;
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFERRED_LOCATION,
                                     .addr = stretch->addr,
                                     .bytes = stretch->bytes,
                                     .device = UM_DEVICE_HOST,
                                     .why = "new"});
}

static const um_advisor_ops_t keeper = {.abi = UM_ADVISOR_ABI,
                                        .name = "keeper",
                                        .decide_alloc = keep_new};
static const um_advisor_ops_t *const keepers[] = {&keeper, NULL};

static void rounds_of(unsigned n, uint64_t ns, uint32_t region)
{
    for (unsigned i = 0; i < n; i++) {
        launch(1);
        if (region && i == 0)
            allocate(region, 64 * MIB, 8 * MIB);
        fake.now_ns += ns;
        wait_for_gpu();
    }
}

static void start_keeper(void)
{
    um_event_t context = {.type = UM_EV_CONTEXT, .time_ns = 1};
    um_hinter_config_t config = {.table = keepers, .post = post, .guard_per_mille = 20};

    cr_assert_eq(um_regions_new(&regions), UM_OK);
    cr_assert_eq(um_executor_null_new(512 * MIB, &executor), UM_OK);
    config.regions = regions;
    config.executor = executor;
    cr_assert_eq(um_hinter_new(&config, &hinter), UM_OK);
    sink = um_hinter_sink(hinter);
    feed(event_device(FAKE_GOOD_GPU));
    context.u.context = (um_ev_context_t){1, FAKE_GPU, UM_CONTEXT_CREATED};
    feed(context);
}

Test(hinter, advice_for_a_new_region_is_not_the_launch_befores)
{
    start_keeper();
    allocate(1, 0, 8 * MIB);
    rounds_of(10, 1000000, 0);
    n_outcomes = 0;
    rounds_of(20, 3000000, 2); /* the program has more to do from now on */
    cr_assert_eq(n_outcomes, 1);
    cr_assert_eq(outcome[0].u.hint.kind, UM_HINT_PREFERRED_LOCATION);
    stop();
}

Test(hinter, what_was_there_before_umrt_or_comes_from_a_pool_is_not_new)
{
    static const uint32_t flags[] = {UM_REGION_BEFORE_UMRT, UM_REGION_POOL | UM_REGION_ASYNC, 0};

    start_keeper();
    for (uint32_t i = 0; i < 3; i++) {
        um_region_t region = {.family = UM_FAMILY_MANAGED,
                              .addr = FAKE_BASE + i * 8 * MIB,
                              .bytes = 8 * MIB,
                              .id = i + 1,
                              .flags = flags[i]};
        um_event_t event = event_alloc(fake.now_ns += 1000, region.id, region.addr, region.bytes);

        cr_assert_eq(um_regions_add(regions, &region, NULL, 0, NULL), UM_OK);
        event.u.region_alloc.flags = flags[i];
        feed(event);
        cr_assert_eq(n_outcomes, flags[i] == 0);
    }
    stop();
}

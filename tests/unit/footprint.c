/* What is learned of what kernels touch, and what comes of it: events and page tables in, hints out. */
#include <criterion/criterion.h>

#include "model/footprint.h"

#include "program_fake.h"

#define KERNEL 7u

static um_arg_t arg[8];
static uint32_t n_args;
static uint64_t module_hash;
static uint32_t grid = 1000;

static void define(uint32_t kernel, const char *name)
{
    um_event_t event = {.type = UM_EV_KERNEL, .time_ns = tick()};

    event.u.kernel = (um_ev_kernel_t){.kernel = kernel, .name = name, .module_hash = module_hash};
    feed(event);
}

static void start(uint64_t bytes)
{
    program_start("first_touch,ahead", NULL);
    define(KERNEL, "kernel");
    allocate(1, 0, bytes);
}

static void point(uint32_t slot, uint64_t offset)
{
    arg[n_args++] = (um_arg_t){.slot = slot, .region = 1, .region_offset_bytes = offset};
}

/* A launch with what was pointed to; returns the number of its first hint. */
static unsigned launch(uint32_t kernel)
{
    um_event_t event = event_launch(tick(), ++program.correlation, arg, n_args);
    unsigned first = program.n_hints;

    event.u.launch.kernel = kernel;
    event.u.launch.grid[0] = grid;
    event.u.launch.block[0] = 256;
    tick();
    feed(event);
    n_args = 0;
    return first;
}

static void taken_by_gpu(uint64_t offset, uint64_t bytes)
{
    fake_set(&program.tables, offset, bytes, false);
}

static uint64_t hinted(unsigned first)
{
    uint64_t bytes = 0;

    for (unsigned i = first; i < program.n_hints; i++)
        bytes += program.hint[i].device >= 0 ? program.hint[i].bytes : 0;
    return bytes;
}

/* The CPU writes all of it, a kernel with a pointer to its start touches the first bytes of it. Returns the
 * bytes hinted. */
static uint64_t round_of(uint64_t bytes, uint64_t touched)
{
    unsigned first;

    program.tables.now_ns += 10000000; /* free memory is asked for now and then */
    touch(0, bytes);
    point(0, 0);
    first = launch(KERNEL);
    taken_by_gpu(0, touched);
    wait_all();
    return hinted(first);
}

Test(footprint, an_end_that_is_not_known_exactly_yet_is_looked_for_in_each_launch)
{
    start(256 * MIB);
    for (int i = 0; i < 4; i++)
        round_of(256 * MIB, 100 * MIB);
    cr_assert_leq(round_of(256 * MIB, 100 * MIB), 108 * MIB);
    program_stop();
}

Test(footprint, sentinels_are_few_and_become_fewer)
{
    uint64_t early = 0, late = 0;

    start(256 * MIB);
    for (int i = 0; i < 128; i++) {
        uint64_t left_out = 256 * MIB - round_of(256 * MIB, 256 * MIB);

        cr_assert_leq(left_out, 8 * MIB, "round %d", i);
        if (i < 64)
            early += left_out;
        else
            late += left_out;
    }
    cr_assert_gt(early, 0);
    cr_assert_gt(late, 0); /* never none: what changes has to show */
    cr_assert_lt(late, early);
    cr_assert_leq(late, 64 * 256 * MIB / 1000);
    program_stop();
}

Test(footprint, small_arguments_have_no_sentinels)
{
    start(64 * MIB);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(round_of(64 * MIB, 64 * MIB), 64 * MIB);
    program_stop();
}

/* The model alone: a kernel whose argument is hinted, or withheld from it. Returns how much of it is expected. */
static uint64_t one_more(um_footprints_t *footprints, uint64_t bytes, uint64_t touched,
                         bool withheld)
{
    um_arg_t pointer = {.region = 1};
    um_event_t event = event_launch(tick(), ++program.correlation, &pointer, 1);
    um_event_t sync = event_sync(0, UM_SYNC_DEVICE, 0, 1);
    um_argument_t argument = {.region = 1, .addr = FAKE_BASE, .limit = FAKE_BASE + bytes};
    um_ev_launch_t *launch = &event.u.launch;
    um_watch_t *watch;
    um_footprint_t expected;

    launch->kernel = KERNEL;
    touch(0, bytes);
    um_footprints_launch(footprints, launch, tick());
    um_footprints_take(footprints, launch, &argument);
    watch = um_footprints_watch(footprints, launch, &argument, 0, bytes, withheld);
    um_footprints_decided(footprints, watch, withheld ? UM_WATCH_LEFT : UM_WATCH_HINTED);
    if (!withheld)
        um_footprints_moved(footprints, FAKE_BASE, bytes);
    taken_by_gpu(0, withheld ? touched : bytes);
    sync.time_ns = tick();
    um_footprints_observe(footprints, &sync);
    expected = um_footprints_expect(footprints, launch, &argument, bytes);
    return (expected.end_bytes - expected.first_bytes) * expected.density_percent / 100;
}

/* Without sentinels it is the rounds that are withheld which show that it touches less than it did. */
Test(footprint, a_withheld_round_renews_what_is_known_of_a_small_argument)
{
    um_event_t kernel = {.type = UM_EV_KERNEL}, alloc = event_alloc(1, 1, FAKE_BASE, 64 * MIB);
    um_page_tables_t tables = fake_interface(&program.tables);
    um_residency_t *residency;
    um_footprints_t *footprints;
    uint64_t expected = 0;

    kernel.u.kernel = (um_ev_kernel_t){.kernel = KERNEL, .name = "kernel"};
    cr_assert_eq(um_residency_new(&tables, &residency), UM_OK);
    um_residency_observe(residency, &alloc);
    cr_assert_eq(um_footprints_new(residency, &footprints), UM_OK);
    um_footprints_observe(footprints, &kernel);
    for (int i = 0; i < 64; i++)
        expected = one_more(footprints, 64 * MIB, 64 * MIB, i % 8 == 0);
    cr_assert_eq(expected, 64 * MIB);
    for (int i = 0; i < 20; i++)
        expected = one_more(footprints, 64 * MIB, 4 * MIB, i % 5 == 3);
    cr_assert_leq(expected, 16 * MIB, "%lu MiB", expected / MIB);
    um_footprints_free(footprints);
    um_residency_free(residency);
}

Test(footprint, memory_nobody_has_touched_has_no_sentinels)
{
    start(256 * MIB);
    point(0, 0);
    cr_assert_eq(hinted(launch(KERNEL)), 256 * MIB);
    program_stop();
}

Test(footprint, where_a_kernel_stops_is_found)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    cr_assert_gt(round_of(256 * MIB, 40 * MIB), 240 * MIB);
    for (int i = 0; i < 12; i++)
        bytes = round_of(256 * MIB, 40 * MIB);
    cr_assert_geq(bytes, 38 * MIB);
    cr_assert_leq(bytes, 50 * MIB);
    program_stop();
}

Test(footprint, a_kernel_that_goes_further_than_before_is_found_out)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    for (int i = 0; i < 8; i++)
        round_of(256 * MIB, 40 * MIB);
    for (int i = 0; i < 20; i++)
        bytes = round_of(256 * MIB, 200 * MIB);
    cr_assert_geq(bytes, 190 * MIB);
    program_stop();
}

/* Touches so much of every 2 MiB, or all of every so many. */
static uint64_t sparse_round(uint64_t touched, uint64_t of)
{
    unsigned first;

    program.tables.now_ns += 10000000;
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    for (uint64_t at = of / 2; at < 256 * MIB; at += of)
        taken_by_gpu(at, touched);
    wait_all();
    return hinted(first);
}

Test(footprint, what_is_hardly_touched_is_no_more_brought)
{
    um_hinter_stats_t stats;

    start(256 * MIB);
    for (int i = 0; i < 6; i++)
        sparse_round(128 * 1024, 2 * MIB);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(sparse_round(128 * 1024, 2 * MIB), 0, "round %d", i);
    um_hinter_stats(program.hinter, &stats);
    cr_assert_geq(stats.declined, 20);
    program_stop();
}

Test(footprint, of_blocks_far_between_little_is_brought)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    for (int i = 0; i < 6; i++)
        sparse_round(2 * MIB, 32 * MIB);
    for (int i = 0; i < 20; i++)
        bytes += sparse_round(2 * MIB, 32 * MIB);
    cr_assert_leq(bytes, 20 * 64 * MIB);
    program_stop();
}

Test(footprint, and_brought_again_when_all_of_it_is_touched)
{
    uint64_t bytes = 0;

    start(256 * MIB);
    for (int i = 0; i < 8; i++)
        sparse_round(128 * 1024, 2 * MIB);
    for (int i = 0; i < 70 && bytes < 240 * MIB; i++)
        bytes = round_of(256 * MIB, 256 * MIB);
    cr_assert_geq(bytes, 240 * MIB);
    program_stop();
}

Test(footprint, the_first_launch_on_what_is_too_large_to_guess_teaches_the_second)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "100M", 1);
    start(256 * MIB);
    cr_assert_eq(round_of(256 * MIB, 256 * MIB), 0);
    cr_assert_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}

Test(footprint, what_grows_with_the_grid_is_foreseen_for_another)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 6; i++) {
        grid = 1000;
        round_of(256 * MIB, 100 * MIB);
        grid = 2000;
        round_of(256 * MIB, 200 * MIB);
    }
    grid = 500;
    cr_assert_geq(round_of(256 * MIB, 50 * MIB), 48 * MIB);
    grid = 1500;
    cr_assert_leq(round_of(256 * MIB, 150 * MIB), 170 * MIB);
    program_stop();
}

Test(footprint, what_the_grid_does_not_change_is_foreseen_too)
{
    uint64_t bytes;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 6; i++) {
        grid = 1000;
        round_of(256 * MIB, 100 * MIB);
        grid = 3000;
        round_of(256 * MIB, 100 * MIB);
    }
    grid = 500;
    bytes = round_of(256 * MIB, 100 * MIB);
    cr_assert_geq(bytes, 96 * MIB);
    cr_assert_leq(bytes, 112 * MIB);
    program_stop();
}

/* With no wait between: what the one has settled is not all that the other uses. */
Test(footprint, a_kernel_that_uses_more_than_the_one_before_it_is_served)
{
    unsigned first;

    start(256 * MIB);
    define(8, "other");
    for (int i = 0; i < 12; i++)
        round_of(256 * MIB, 40 * MIB);
    touch(0, 256 * MIB);
    point(0, 0);
    launch(KERNEL);
    taken_by_gpu(0, 40 * MIB);
    point(0, 0);
    launch(KERNEL);
    point(0, 0);
    first = launch(8);
    cr_assert_geq(hinted(first), 190 * MIB);
    program_stop();
}

/* ---- pools ---- */

Test(footprint, a_pointer_does_not_reach_into_the_next_slice)
{
    unsigned first;

    start(256 * MIB);
    touch(0, 256 * MIB);
    point(0, 0);
    point(1, 32 * MIB);
    point(2, 64 * MIB);
    first = launch(KERNEL);
    for (unsigned i = first; i < program.n_hints; i++) /* the last is as wide as the others */
        cr_assert_leq(program.hint[i].addr + program.hint[i].bytes, FAKE_BASE + 96 * MIB);
    cr_assert_eq(hinted(first), 96 * MIB);
    taken_by_gpu(0, 96 * MIB);
    wait_all();
    touch(32 * MIB, 32 * MIB);
    point(0, 32 * MIB); /* where another one began before, this one ends */
    first = launch(KERNEL);
    cr_assert_eq(hinted(first), 32 * MIB);
    cr_assert_eq(program.hint[first].addr, FAKE_BASE + 32 * MIB);
    program_stop();
}

/* What the launch does not use of a region is not believed to be on the GPU. */
Test(footprint, slices_between_those_of_a_launch_stay_with_the_cpu)
{
    unsigned first;

    start(256 * MIB);
    touch(0, 256 * MIB);
    point(0, 64 * MIB);
    point(0, 128 * MIB);
    launch(KERNEL);
    taken_by_gpu(64 * MIB, 192 * MIB);
    wait_all();
    point(0, 0);
    first = launch(KERNEL);
    cr_assert_eq(hinted(first), 64 * MIB);
    program_stop();
}

/* A later launch before the wait may have been the one that took it. */
Test(footprint, what_another_slices_kernel_took_is_not_put_down_to_the_first)
{
    unsigned first;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1); /* all is left to faults */
    start(256 * MIB);
    define(8, "other");
    for (int i = 0; i < 4; i++) {
        touch(0, 256 * MIB);
        point(0, 0);
        launch(KERNEL);
        point(0, 128 * MIB);
        launch(8);
        taken_by_gpu(0, 64 * MIB);
        taken_by_gpu(128 * MIB, 128 * MIB);
        wait_all();
    }
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    cr_assert_geq(hinted(first), 60 * MIB);
    cr_assert_leq(hinted(first), 80 * MIB);
    program_stop();
}

/* ---- what is no evidence ---- */

/* Rounds of an argument that is left to its faults; then whether anything is known of it. */
static bool knows_after(void (*meddle)(void))
{
    unsigned first;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start(256 * MIB);
    for (int i = 0; i < 4; i++) {
        touch(0, 256 * MIB);
        point(0, 0);
        launch(KERNEL);
        meddle();
    }
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    program_stop();
    return hinted(first) > 0;
}

static void dense(void)
{
    taken_by_gpu(0, 256 * MIB);
    wait_all();
}

static void never_waited_for(void)
{
    taken_by_gpu(0, 128 * MIB);
}

static void copied_over(void)
{
    um_event_t copy = {.type = UM_EV_COPY, .time_ns = tick()};

    copy.u.copy = (um_ev_copy_t){.dst_addr = FAKE_BASE, .bytes = 256 * MIB, .dst_region = 1};
    feed(copy);
    dense();
}

static void prefetched_by_the_program(void)
{
    um_event_t hint = {.type = UM_EV_HINT, .time_ns = tick()};

    hint.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = 256 * MIB,
                                 .region = 1,
                                 .who = "app",
                                 .why = ""};
    feed(hint);
    dense();
}

/* By the time of the look the CPU may have it back. */
static void looked_at_too_late(void)
{
    um_event_t leave = event_sync(tick(), UM_SYNC_DEVICE, 0, 1);

    program.tables.now_ns += 10000000;
    feed(leave);
}

Test(footprint, only_what_a_wait_has_shown_is_evidence)
{
    cr_assert(knows_after(dense));
    cr_assert_not(knows_after(never_waited_for));
    cr_assert_not(knows_after(copied_over));
    cr_assert_not(knows_after(prefetched_by_the_program));
    cr_assert_not(knows_after(looked_at_too_late));
}

static void waited_for_by_an_event(void)
{
    taken_by_gpu(0, 256 * MIB);
    wait_on(UM_SYNC_EVENT, 5);
}

static void half_done_at_an_event(void)
{
    taken_by_gpu(0, 16 * MIB);
    wait_on(UM_SYNC_EVENT, 5);
    taken_by_gpu(0, 256 * MIB);
}

/* An event may have been recorded long before the launch. */
Test(footprint, an_event_shows_what_is_gone_but_not_what_stays)
{
    cr_assert(knows_after(waited_for_by_an_event));
    cr_assert_not(knows_after(half_done_at_an_event));
}

/* ---- records ---- */

static void fault(uint64_t offset)
{
    um_event_t event = {.type = UM_EV_GPU_FAULT, .time_ns = tick()};

    event.u.gpu_fault = (um_ev_gpu_fault_t){.addr = FAKE_BASE + offset,
                                            .duration_ns = 1,
                                            .device = FAKE_GPU,
                                            .region = 1};
    feed(event);
}

/* A round in which the kernel's execution and its faults, one a block, are recorded as well. */
static unsigned recorded_round(uint64_t bytes, bool backwards)
{
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC};
    uint64_t blocks = bytes / UM_BLOCK_BYTES;
    unsigned first;

    program.tables.now_ns += 100000000;
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    exec.time_ns = tick();
    exec.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = program.correlation,
                                               .kernel = KERNEL,
                                               .duration_ns = 1000000,
                                               .device = FAKE_GPU};
    feed(exec);
    for (uint64_t b = 0; b < blocks; b++)
        fault((backwards ? blocks - 1 - b : b) * UM_BLOCK_BYTES);
    taken_by_gpu(0, bytes);
    program.tables.now_ns += 10000000;
    wait_all();
    return first;
}

Test(footprint, what_goes_backwards_is_brought_from_its_end)
{
    unsigned first = 0;

    start(256 * MIB);
    for (int i = 0; i < 4; i++)
        first = recorded_round(256 * MIB, true);
    cr_assert_geq(program.hint[first].addr, FAKE_BASE + 192 * MIB);
    for (int i = 0; i < 3; i++)
        first = recorded_round(256 * MIB, false);
    cr_assert_eq(program.hint[first].addr, FAKE_BASE);
    cr_assert_geq(hinted(first), 240 * MIB);
    program_stop();
}

/* Sooner than a block looked at behind the end would have told. */
Test(footprint, a_fault_behind_the_end_moves_the_end)
{
    unsigned first = 0;

    start(256 * MIB);
    for (int i = 0; i < 12; i++)
        recorded_round(40 * MIB, false);
    recorded_round(200 * MIB, false);
    first = recorded_round(200 * MIB, false);
    cr_assert_geq(hinted(first), 190 * MIB);
    program_stop();
}

/* ---- other runs ---- */

static um_event_t profile[64];
static unsigned n_profile;

static void keep(void *ctx, const um_event_t *event)
{
    um_event_t *copy = &profile[n_profile++];

    (void)ctx;
    *copy = *event;
    copy->u.learned.kernel = strdup(event->u.learned.kernel);
}

static void learn_and_stop(uint64_t touched)
{
    start(256 * MIB);
    for (int i = 0; i < 12; i++)
        round_of(256 * MIB, touched);
    um_hinter_learned(program.hinter, keep, NULL);
    program_stop();
    cr_assert_geq(n_profile, 1);
    cr_assert_str_eq(profile[0].u.learned.who, "footprint");
    cr_assert_str_eq(profile[0].u.learned.kernel, "kernel");
}

static void start_with_profile(void)
{
    program_start("first_touch,ahead", NULL);
    for (unsigned i = 0; i < n_profile; i++)
        feed(profile[i]);
    define(KERNEL, "kernel");
    allocate(1, 0, 256 * MIB);
}

Test(footprint, what_one_run_learned_another_knows_from_its_first_launch)
{
    uint64_t bytes;

    learn_and_stop(40 * MIB);
    start_with_profile();
    bytes = round_of(256 * MIB, 40 * MIB);
    cr_assert_geq(bytes, 36 * MIB);
    cr_assert_leq(bytes, 50 * MIB);
    program_stop();
}

Test(footprint, of_another_build_it_knows_nothing)
{
    learn_and_stop(40 * MIB);
    module_hash = 5;
    start_with_profile();
    cr_assert_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}

Test(footprint, a_profile_that_is_wrong_is_soon_forgotten)
{
    uint64_t bytes = 0;

    learn_and_stop(40 * MIB);
    start_with_profile();
    for (int i = 0; i < 6; i++)
        bytes = round_of(256 * MIB, 200 * MIB);
    cr_assert_geq(bytes, 190 * MIB);
    program_stop();
}

Test(footprint, nonsense_in_a_profile_is_not_believed)
{
    um_event_t event = {.type = UM_EV_LEARNED};

    program_start("first_touch,ahead", NULL);
    for (unsigned i = 0; i < 6; i++) {
        event.u.learned = (um_ev_learned_t){.who = "footprint",
                                            .what = "extent",
                                            .kernel = i == 0 ? "" : "kernel",
                                            .shape = i == 1 ? 7 : 1000u << 12 | 256,
                                            .slot = i == 2 ? UM_SLOT_NONE : 0,
                                            .count = i != 3,
                                            .value = {MIB, 2 * MIB, 0, 100, 0, 8}};
        if (i == 4)
            event.u.learned.value[0] = 3 * MIB;
        if (i == 5)
            event.u.learned.value[3] = 101;
        feed(event);
    }
    define(KERNEL, "kernel");
    allocate(1, 0, 256 * MIB);
    cr_assert_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}

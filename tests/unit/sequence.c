/* What the program will do next, and what the CPU does until then: events and page tables in, forecasts out. */
#include <criterion/criterion.h>

#include "model/sequence.h"
#include "program_fake.h"

#define REGIONS 8u
#define BYTES   (8 * MIB)

/* One run of a program whose kernels are 1, 2, .. and whose regions are 1, 2, .. */
typedef struct world {
    fake_tables_t tables;
    um_residency_t *residency;
    um_footprints_t *footprints;
    um_sequences_t *sequences;
    uint32_t correlation, tid;
    uint32_t first_region; /* its ids begin here: another run has others */
    uint32_t first_kernel;
    uint64_t base; /* and other addresses */
} world_t;

static world_t world;

static void tell_world(um_event_t event)
{
    event.tid = world.tid;
    um_residency_observe(world.residency, &event);
    um_footprints_observe(world.footprints, &event);
    um_sequences_observe(world.sequences, &event);
}

static void on_shown(void *ctx, const um_event_t *event)
{
    (void)ctx;
    um_sequences_observe(world.sequences, event);
}

static void begin(uint32_t first_id, uint64_t base)
{
    um_page_tables_t tables;

    world = (world_t){.first_region = first_id, .first_kernel = first_id, .base = base};
    tables = fake_interface(&world.tables);
    world.tables.now_ns = 1;
    cr_assert_eq(um_residency_new(&tables, &world.residency), UM_OK);
    cr_assert_eq(um_footprints_new(world.residency, &world.footprints), UM_OK);
    cr_assert_eq(um_sequences_new(world.residency, world.footprints, &world.sequences), UM_OK);
    um_residency_tell(world.residency, on_shown, NULL);
}

static void define_kernels(uint32_t n)
{
    for (uint32_t k = 1; k <= n; k++) {
        um_event_t event = {.type = UM_EV_KERNEL};
        char name[16];

        snprintf(name, sizeof(name), "kernel%u", k);
        event.u.kernel =
            (um_ev_kernel_t){.kernel = world.first_kernel + k, .name = name, .module_hash = 77};
        tell_world(event);
    }
}

static void end(void)
{
    um_sequences_free(world.sequences);
    um_footprints_free(world.footprints);
    um_residency_free(world.residency);
}

static uint64_t offset_of(uint32_t region)
{
    return world.base + (region - 1) * BYTES;
}

static void allocate_region(uint32_t region)
{
    um_event_t event = event_alloc(world.tables.now_ns += 1000, world.first_region + region,
                                   FAKE_BASE + offset_of(region), BYTES);

    event.u.region_alloc.call_site = region; /* each has a role of its own */
    tell_world(event);
}

static void free_region(uint32_t region)
{
    tell_world(event_free(world.tables.now_ns += 1000, world.first_region + region,
                          FAKE_BASE + offset_of(region)));
}

/* The CPU touches a part of a region, in eighths. */
static void cpu_touches(uint32_t region, uint32_t from, uint32_t to)
{
    fake_set(&world.tables, offset_of(region) + from * MIB, (to - from) * MIB, true);
}

static void prefetched(uint32_t region)
{
    um_event_t event = {.type = UM_EV_HINT, .time_ns = world.tables.now_ns += 1000};

    fake_set(&world.tables, offset_of(region), BYTES, false);
    event.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                  .result = UM_HINT_APPLIED,
                                  .addr = FAKE_BASE + offset_of(region),
                                  .bytes = BYTES,
                                  .device = FAKE_GPU,
                                  .region = world.first_region + region,
                                  .who = "test",
                                  .why = ""};
    tell_world(event);
}

/* A kernel takes a region; its pages are looked at and prefetched, as the hint loop does. */
static void launch_shaped(uint32_t kernel, uint32_t region, uint32_t flags, uint32_t grid)
{
    um_arg_t arg = {.region = world.first_region + region};
    um_event_t event = event_launch(world.tables.now_ns += 1000, ++world.correlation, &arg, 1);
    um_extent_t extent[8];
    uint64_t addr = FAKE_BASE + offset_of(region);

    event.u.launch.kernel = kernel ? world.first_kernel + kernel : 0;
    event.u.launch.flags = flags;
    event.u.launch.graph = flags & UM_LAUNCH_GRAPH ? 0xabc0 + region : 0;
    event.u.launch.grid[0] = grid;
    tell_world(event);
    um_residency_launch_begin(world.residency, arg.region, addr, BYTES, event.time_ns);
    um_residency_extents(world.residency, arg.region, addr, BYTES, extent, 8);
    um_residency_launch_end(world.residency, arg.region, FAKE_GPU, true);
    prefetched(region);
}

static void launch(uint32_t kernel, uint32_t region)
{
    launch_shaped(kernel, region, 0, 100);
}

static void wait_for_gpu(void)
{
    tell_world(event_sync(world.tables.now_ns += 1000, UM_SYNC_DEVICE, 0, 0));
    tell_world(event_sync(world.tables.now_ns += 1000, UM_SYNC_DEVICE, 0, 1));
}

/* The kernels expected next, as a string of digits. */
static const char *expected(uint32_t n)
{
    static char text[UM_SEQUENCE_STEPS + 1];
    static um_next_t next[UM_SEQUENCE_STEPS];
    uint32_t found = um_sequences_next(world.sequences, next, n);

    for (uint32_t i = 0; i < found; i++)
        text[i] =
            (char)('0' + (next[i].launch.kernel ? next[i].launch.kernel - world.first_kernel : 0));
    text[found] = '\0';
    return text;
}

static um_next_t next_launch(uint32_t number)
{
    static um_next_t next[UM_SEQUENCE_STEPS];

    cr_assert_geq(um_sequences_next(world.sequences, next, UM_SEQUENCE_STEPS), number);
    return next[number - 1];
}

static um_cpu_t cpu_before(uint32_t number)
{
    um_next_t next = next_launch(number);
    bool found;

    return um_sequences_cpu(world.sequences, &next, next.arg[0].region, &found);
}

/* As the hint loop does: it looks, and brings what the CPU has; `arrives`: before the launch. */
static void bring_so(uint32_t number, uint32_t region, bool arrives)
{
    um_next_t next = next_launch(number);
    uint32_t id = world.first_region + region;

    um_residency_refresh(world.residency, id, FAKE_BASE + offset_of(region), BYTES, true);
    um_sequences_brought(world.sequences, &next, id, FAKE_BASE + offset_of(region), BYTES);
    if (arrives)
        prefetched(region);
}

static void bring(uint32_t number, uint32_t region)
{
    bring_so(number, region, true);
}

/* ---- what comes next ---- */

Test(sequence, knows_nothing_of_what_has_never_been)
{
    begin(0, 0);
    define_kernels(3);
    allocate_region(1);
    cr_assert_str_eq(expected(4), "");
    launch(1, 1);
    launch(2, 1);
    launch(3, 1);
    cr_assert_str_eq(expected(4), "");
    end();
}

Test(sequence, a_loop_goes_on_with_its_waits)
{
    begin(0, 0);
    define_kernels(3);
    allocate_region(1);
    for (int i = 0; i < 4; i++) {
        launch(1, 1);
        wait_for_gpu();
        launch(2, 1);
        launch(3, 1);
    }
    cr_assert_str_eq(expected(5), "12312");
    cr_assert_eq(next_launch(1).steps, 1);
    cr_assert_eq(next_launch(2).steps, 3, "the wait counts");
    launch(1, 1);
    cr_assert_str_eq(expected(3), "231");
    end();
}

Test(sequence, a_loop_longer_than_any_context_is_found_by_its_period)
{
    begin(0, 0);
    define_kernels(3);
    allocate_region(1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++)
            launch(1, 1);
        launch(2, 1);
    }
    for (int i = 0; i < 49; i++)
        launch(1, 1);
    cr_assert_str_eq(expected(3), "121", "the fiftieth, and then the other one");
    launch(1, 1);
    cr_assert_str_eq(expected(3), "211");
    end();
}

Test(sequence, the_longest_context_that_is_known_decides)
{
    begin(0, 0);
    define_kernels(5);
    allocate_region(1);
    /* After 1 comes 2 or 3, as what came before 1 has it. */
    for (int i = 0; i < 6; i++) {
        launch(4, 1);
        launch(1, 1);
        launch(2, 1);
        launch(5, 1);
        launch(1, 1);
        launch(3, 1);
    }
    /* Out of the loop. */
    launch(5, 1);
    launch(5, 1);
    launch(5, 1);
    launch(4, 1);
    launch(1, 1);
    cr_assert_str_eq(expected(1), "2");
    launch(5, 1);
    launch(5, 1);
    launch(1, 1);
    cr_assert_str_eq(expected(1), "3");
    end();
}

Test(sequence, waits_right_after_each_other_are_one)
{
    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    for (int i = 0; i < 12; i++) {
        launch(1, 1);
        for (int waits = 0; waits <= i % 3; waits++) /* as often as it takes */
            wait_for_gpu();
        launch(2, 1);
    }
    cr_assert_str_eq(expected(3), "121");
    end();
}

Test(sequence, another_grid_or_region_is_another_launch)
{
    begin(0, 0);
    define_kernels(2);
    for (uint32_t r = 1; r <= 2; r++)
        allocate_region(r);
    for (int i = 0; i < 6; i++) { /* the buffers change places, as in a stencil */
        launch(1, 1);
        launch(1, 2);
    }
    cr_assert_eq(next_launch(1).arg[0].region, 1);
    cr_assert_eq(next_launch(2).arg[0].region, 2);
    launch_shaped(1, 1, 0, 200);
    cr_assert_str_eq(expected(1), "");
    end();
}

Test(sequence, a_region_allocated_anew_stands_for_the_one_before)
{
    begin(0, 0);
    define_kernels(2);
    for (int i = 0; i < 6; i++) {
        allocate_region(1);
        launch(1, 1);
        launch(2, 1);
        free_region(1);
        world.first_region += 10; /* ids are never given twice */
    }
    cr_assert_str_eq(expected(2), "", "there is no such region now");
    allocate_region(1);
    cr_assert_str_eq(expected(2), "12");
    cr_assert_eq(next_launch(1).arg[0].region, world.first_region + 1);
    end();
}

Test(sequence, each_thread_has_a_row_of_its_own)
{
    begin(0, 0);
    define_kernels(4);
    allocate_region(1);
    for (int i = 0; i < 40; i++) {
        world.tid = 100;
        launch(1 + i % 2, 1);
        for (int k = 0; k < i * 7 % 3; k++) { /* as chance has it */
            static int turn;

            world.tid = 200;
            launch(3 + turn++ % 2, 1);
        }
    }
    world.tid = 100;
    launch(1, 1);
    cr_assert_str_eq(expected(4), "2121");
    end();
}

Test(sequence, more_threads_than_rows_forget_the_one_that_was_silent_longest)
{
    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    for (uint32_t tid = 1; tid < 100; tid++) {
        world.tid = tid;
        launch(1, 1);
        launch(2, 1);
    }
    world.tid = 1000;
    launch(1, 1);
    cr_assert_str_eq(expected(1), "2", "what threads begin with is common knowledge");
    end();
}

Test(sequence, a_graph_is_one_launch)
{
    begin(0, 0);
    for (uint32_t r = 1; r <= 2; r++)
        allocate_region(r);
    for (int i = 0; i < 5; i++) {
        launch_shaped(0, 1, UM_LAUNCH_GRAPH, 0);
        launch_shaped(0, 2, UM_LAUNCH_GRAPH, 0);
    }
    cr_assert_eq(next_launch(1).launch.flags, UM_LAUNCH_GRAPH);
    cr_assert_eq(next_launch(1).arg[0].region, 1);
    cr_assert_eq(next_launch(2).launch.graph, 0xabc2);
    /* What is put into a graph does not run. */
    launch_shaped(1, 1, UM_LAUNCH_CAPTURED, 0);
    cr_assert_eq(next_launch(1).arg[0].region, 1);
    end();
}

Test(sequence, a_loop_is_foretold_right_almost_always)
{
    um_sequence_stats_t stats;

    begin(0, 0);
    define_kernels(9);
    allocate_region(1);
    for (int i = 0; i < 200; i++)
        for (uint32_t k = 1; k <= 9; k++)
            launch(k, 1);
    um_sequences_stats(world.sequences, &stats);
    cr_assert_eq(stats.launches, 1800);
    cr_assert_geq(stats.foretold, 1780);
    end();
}

Test(sequence, what_never_repeats_is_not_foretold_and_takes_no_more_memory)
{
    um_sequence_stats_t stats;

    begin(0, 0);
    define_kernels(1);
    allocate_region(1);
    for (uint32_t i = 0; i < 20000; i++)
        launch_shaped(1, 1, 0, 1 + i);
    um_sequences_stats(world.sequences, &stats);
    cr_assert_lt(stats.foretold, 10);
    end();
}

/* ---- another run ---- */

static um_event_t told[512];
static char told_name[512][16];
static unsigned n_told;

static void keep(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_eq(event->type, UM_EV_LEARNED);
    cr_assert_str_eq(event->u.learned.who, "sequence");
    cr_assert_lt(n_told, 512);
    told[n_told] = *event;
    snprintf(told_name[n_told], sizeof(told_name[0]), "%s", event->u.learned.kernel);
    told[n_told].u.learned.kernel = told_name[n_told];
    n_told++;
}

static void begin_again(uint32_t age)
{
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    end();
    begin(40, 64 * MIB); /* other ids, other addresses */
    for (unsigned i = 0; i < n_told; i++) {
        told[i].u.learned.age = age;
        tell_world(told[i]);
    }
}

static void a_run(void)
{
    for (uint32_t r = 1; r <= 3; r++) {
        allocate_region(r);
        cpu_touches(r, 0, 8);
    }
    launch(3, 3); /* once, to begin with */
    for (int i = 0; i < 5; i++) {
        launch(1, 1);
        wait_for_gpu();
        launch(2, 2);
    }
}

Test(sequence, another_run_knows_it_from_its_first_launch_on)
{
    begin(0, 0);
    define_kernels(3);
    a_run();
    begin_again(1);
    cr_assert_str_eq(expected(3), "", "there is no region yet");
    for (uint32_t r = 1; r <= 3; r++)
        allocate_region(r);
    cr_assert_str_eq(expected(3), "000", "by name: their numbers are not known yet");
    cr_assert_eq(next_launch(1).kernel, um_footprints_kernel_named("kernel3", 77));
    cr_assert_eq(next_launch(1).arg[0].region, 43);
    cr_assert_eq(next_launch(2).arg[0].region, 41);
    cr_assert_eq(next_launch(3).arg[0].region, 42);
    cr_assert_eq(next_launch(3).steps, 4);
    cr_assert_eq(next_launch(1).launch.grid[0], 100);
    define_kernels(3);
    launch(3, 3);
    cr_assert_str_eq(expected(1), "0");
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    cr_assert_str_eq(expected(3), "121");
    end();
}

Test(sequence, what_is_told_holds_no_address)
{
    static um_event_t before[512];
    unsigned n;

    begin(0, 0);
    define_kernels(3);
    a_run();
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    cr_assert_gt(n_told, 6);
    n = n_told;
    memcpy(before, told, sizeof(before));
    end();
    begin(500, 128 * MIB);
    define_kernels(3);
    a_run();
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    cr_assert_eq(n_told, n);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(told[i].u.learned.shape, before[i].u.learned.shape);
        cr_assert_eq(memcmp(told[i].u.learned.value, before[i].u.learned.value,
                            sizeof(told[i].u.learned.value)),
                     0);
    }
    end();
}

Test(sequence, what_was_told_long_ago_is_not_expected)
{
    begin(0, 0);
    define_kernels(3);
    a_run();
    begin_again(9);
    for (uint32_t r = 1; r <= 3; r++)
        allocate_region(r);
    cr_assert_str_eq(expected(3), "");
    end();
}

Test(sequence, damaged_words_of_other_runs_are_passed_over)
{
    begin(0, 0);
    define_kernels(3);
    a_run();
    n_told = 0;
    um_sequences_learned(world.sequences, keep, NULL);
    end();
    for (unsigned k = 0; k < 64; k++) {
        begin(40, 64 * MIB);
        for (unsigned i = 0; i < n_told; i++) {
            um_event_t event = told[i];
            uint64_t noise = (i + 1) * 0x9e3779b97f4a7c15u * (k + 1);

            event.u.learned.value[noise >> 8 & 3] ^= noise;
            event.u.learned.value[4 + (noise >> 12 & 1)] ^= noise << 7;
            event.u.learned.shape ^= noise >> 16 & 1;
            tell_world(event);
        }
        for (uint32_t r = 1; r <= 3; r++)
            allocate_region(r);
        expected(UM_SEQUENCE_STEPS);
        define_kernels(3);
        launch(3, 3);
        launch(1, 1);
        expected(UM_SEQUENCE_STEPS);
        end();
    }
}

/* ---- the CPU ---- */

/* Region 2 is taken by the CPU after the first wait of a round and brought back for kernel 2. */
static void rounds_with_a_phase(int n)
{
    for (int i = 0; i < n; i++) {
        launch(2, 2);
        wait_for_gpu();
        cpu_touches(2, 0, 8);
        launch(1, 1);
        wait_for_gpu();
    }
}

Test(sequence, what_was_brought_and_stayed_is_left_alone_by_the_cpu)
{
    bool found;
    um_next_t next;

    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    rounds_with_a_phase(4);
    launch(2, 2);
    wait_for_gpu();
    cpu_touches(2, 0, 8);
    launch(1, 1);
    next = next_launch(1);
    cr_assert_eq(next.steps, 2);
    cr_assert_eq(um_sequences_cpu(world.sequences, &next, 2, &found), UM_CPU_UNKNOWN);
    cr_assert(found, "the page tables showed it there before");
    bring(1, 2);
    wait_for_gpu();
    launch(2, 2);
    wait_for_gpu();
    cpu_touches(2, 0, 8);
    launch(1, 1);
    cr_assert_eq(cpu_before(1), UM_CPU_LEAVES);
    end();
}

Test(sequence, what_was_brought_too_early_was_taken_back)
{
    um_sequence_stats_t stats;

    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    rounds_with_a_phase(4);
    launch(2, 2);
    wait_for_gpu();
    /* The phase has only begun. */
    cr_assert_eq(next_launch(2).arg[0].region, 2);
    cr_assert_eq(next_launch(2).steps, 3);
    bring(2, 2);
    cpu_touches(2, 0, 8);
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    um_sequences_stats(world.sequences, &stats);
    cr_assert_eq(stats.taken_back, 1);
    wait_for_gpu();
    cr_assert_eq(cpu_before(2), UM_CPU_TAKES, "so early");
    cpu_touches(2, 0, 8);
    launch(1, 1);
    cr_assert_neq(cpu_before(1), UM_CPU_LEAVES, "later nobody has tried");
    end();
}

Test(sequence, a_part_taken_back_counts)
{
    um_sequence_stats_t stats;

    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    rounds_with_a_phase(4);
    launch(2, 2);
    wait_for_gpu();
    bring(2, 2);
    cpu_touches(2, 6, 8); /* its last block */
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    um_sequences_stats(world.sequences, &stats);
    cr_assert_eq(stats.taken_back, 1);
    end();
}

Test(sequence, what_never_got_there_says_nothing)
{
    um_sequence_stats_t stats;

    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    rounds_with_a_phase(4);
    launch(2, 2);
    wait_for_gpu();
    cpu_touches(2, 0, 8);
    launch(1, 1);
    bring_so(1, 2, false);
    wait_for_gpu(); /* the hint came too late and was cancelled */
    launch(2, 2);
    um_sequences_stats(world.sequences, &stats);
    cr_assert_eq(stats.brought, 1);
    cr_assert_eq(stats.taken_back + stats.kept, 0);
    end();
}

Test(sequence, what_is_brought_in_vain_rests_ever_longer)
{
    um_sequence_stats_t stats;

    begin(0, 0);
    define_kernels(3);
    for (uint32_t r = 1; r <= 3; r++)
        allocate_region(r);
    rounds_with_a_phase(4);
    cr_assert_eq(next_launch(1).arg[0].region, 2);
    bring(1, 2);
    for (int i = 0; i < 30; i++) /* something else altogether */
        launch(3, 3);
    um_sequences_stats(world.sequences, &stats);
    cr_assert_eq(stats.in_vain, 1);
    rounds_with_a_phase(4);
    cr_assert_eq(cpu_before(1), UM_CPU_TAKES);
    rounds_with_a_phase(20);
    cr_assert_eq(cpu_before(1), UM_CPU_UNKNOWN, "it may be tried again");
    end();
}

Test(sequence, a_round_goes_without_now_and_then)
{
    unsigned without = 0;

    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    rounds_with_a_phase(4);
    for (int i = 0; i < 64; i++) {
        launch(2, 2);
        wait_for_gpu();
        cpu_touches(2, 0, 8);
        launch(1, 1);
        if (cpu_before(1) == UM_CPU_TAKES)
            without++;
        else
            bring(1, 2);
        wait_for_gpu();
    }
    cr_assert_geq(without, 2);
    cr_assert_leq(without, 5);
    end();
}

/* What another run may do with a new region, by what this one saw. */
static um_cpu_t at_the_start_of_another_run(uint32_t number)
{
    begin_again(1);
    for (uint32_t r = 1; r <= 2; r++)
        allocate_region(r);
    return cpu_before(number);
}

static void first_launches(void)
{
    launch(1, 1);
    wait_for_gpu();
    launch(2, 2);
    wait_for_gpu();
}

Test(sequence, new_memory_that_the_cpu_never_writes_may_be_populated_at_once)
{
    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    first_launches();
    cr_assert_eq(at_the_start_of_another_run(1), UM_CPU_LEAVES);
    cr_assert_eq(cpu_before(2), UM_CPU_LEAVES);
    end();
}

Test(sequence, new_memory_is_the_cpus_until_it_has_written_it)
{
    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    cpu_touches(1, 0, 8);
    cpu_touches(2, 0, 8);
    first_launches();
    cr_assert_eq(at_the_start_of_another_run(1), UM_CPU_TAKES);
    cr_assert_eq(cpu_before(2), UM_CPU_TAKES);
    cpu_touches(1, 0, 8);
    cpu_touches(2, 0, 8);
    define_kernels(2);
    launch(1, 1);
    cr_assert_eq(cpu_before(1), UM_CPU_LEAVES, "both were written when the first launch came");
    end();
}

Test(sequence, new_memory_written_between_launches_is_the_cpus_until_then)
{
    begin(0, 0);
    define_kernels(2);
    allocate_region(1);
    allocate_region(2);
    cpu_touches(1, 0, 8);
    launch(1, 1);
    wait_for_gpu();
    cpu_touches(2, 0, 8);
    launch(2, 2);
    wait_for_gpu();
    cr_assert_eq(at_the_start_of_another_run(2), UM_CPU_TAKES);
    define_kernels(2);
    cpu_touches(1, 0, 8);
    launch(1, 1);
    cr_assert_eq(cpu_before(1), UM_CPU_TAKES);
    wait_for_gpu();
    cr_assert_eq(cpu_before(1), UM_CPU_TAKES);
    end();
}

/* ---- quiet waits: the whole loop ---- */

static unsigned looks_of(int rounds, bool cpu)
{
    unsigned before = program.tables.looks + program.tables.pages_asked;

    for (int i = 0; i < rounds; i++) {
        run(1, 1);
        wait_all();
        if (cpu)
            touch(0, 8 * MIB);
    }
    return program.tables.looks + program.tables.pages_asked - before;
}

Test(sequence, a_wait_after_which_the_cpu_takes_nothing_becomes_quiet)
{
    unsigned early, late, last;

    program_start("ahead", NULL);
    allocate(1, 0, 8 * MIB);
    early = looks_of(40, false);
    late = looks_of(400, false);
    last = looks_of(400, false);
    cr_assert_gt(early, 40);
    cr_assert_lt(last, 400, "fewer questions than waits: %u", last);
    cr_assert_lt(10 * (late + last), 3 * 20 * early);
    program_stop();
}

Test(sequence, a_quiet_wait_is_looked_after_now_and_then)
{
    unsigned first;

    program_start("ahead", NULL);
    allocate(1, 0, 8 * MIB);
    looks_of(400, false);
    first = program.n_hints;
    looks_of(60, true); /* the CPU takes it in every round from now on */
    cr_assert_geq(program.n_hints - first, 50, "%u", program.n_hints - first);
    program_stop();
}

Test(sequence, a_loud_wait_does_not_become_quiet)
{
    unsigned first;

    program_start("ahead", NULL);
    allocate(1, 0, 8 * MIB);
    looks_of(10, true);
    first = program.n_hints;
    looks_of(200, true);
    cr_assert_eq(program.n_hints - first, 200);
    program_stop();
}

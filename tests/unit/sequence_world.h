/* sequence_world.h - a program of numbered kernels and regions for the tests of the sequence model: events and page
 * tables in, forecasts out. */
#ifndef UM_SEQUENCE_WORLD_H
#define UM_SEQUENCE_WORLD_H

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

static inline void tell_world(um_event_t event)
{
    event.tid = world.tid;
    um_residency_observe(world.residency, &event);
    um_footprints_observe(world.footprints, &event);
    um_sequences_observe(world.sequences, &event);
}

static inline void on_shown(void *ctx, const um_event_t *event)
{
    (void)ctx;
    um_sequences_observe(world.sequences, event);
}

static inline void begin(uint32_t first_id, uint64_t base)
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

static inline void define_kernels(uint32_t n)
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

static inline void end(void)
{
    um_sequences_free(world.sequences);
    um_footprints_free(world.footprints);
    um_residency_free(world.residency);
}

static inline uint64_t offset_of(uint32_t region)
{
    return world.base + (region - 1) * BYTES;
}

static inline void allocate_region(uint32_t region)
{
    um_event_t event = event_alloc(world.tables.now_ns += 1000, world.first_region + region,
                                   FAKE_BASE + offset_of(region), BYTES);

    event.u.region_alloc.call_site = region; /* each has a role of its own */
    tell_world(event);
}

static inline void free_region(uint32_t region)
{
    tell_world(event_free(world.tables.now_ns += 1000, world.first_region + region,
                          FAKE_BASE + offset_of(region)));
}

static inline void begin_with(uint32_t kernels, uint32_t regions)
{
    begin(0, 0);
    define_kernels(kernels);
    for (uint32_t r = 1; r <= regions; r++)
        allocate_region(r);
}

/* The CPU touches a part of a region, in eighths. */
static inline void cpu_touches(uint32_t region, uint32_t from, uint32_t to)
{
    fake_set(&world.tables, offset_of(region) + from * MIB, (to - from) * MIB, true);
}

static inline void prefetched(uint32_t region)
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
static inline void launch_shaped(uint32_t kernel, uint32_t region, uint32_t flags, uint32_t grid)
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

static inline void launch(uint32_t kernel, uint32_t region)
{
    launch_shaped(kernel, region, 0, 100);
}

static inline void wait_for_gpu(void)
{
    tell_world(event_sync(world.tables.now_ns += 1000, UM_SYNC_DEVICE, 0, 0));
    tell_world(event_sync(world.tables.now_ns += 1000, UM_SYNC_DEVICE, 0, 1));
}

static inline um_sequence_stats_t stats_now(void)
{
    um_sequence_stats_t stats;

    um_sequences_stats(world.sequences, &stats);
    return stats;
}

/* The kernels expected next, as a string of digits. */
static inline const char *expected(uint32_t n)
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

static inline um_next_t next_launch(uint32_t number)
{
    static um_next_t next[UM_SEQUENCE_STEPS];

    cr_assert_geq(um_sequences_next(world.sequences, next, UM_SEQUENCE_STEPS), number);
    return next[number - 1];
}

static inline um_cpu_t cpu_before(uint32_t number)
{
    um_next_t next = next_launch(number);
    bool found;

    return um_sequences_cpu(world.sequences, &next, next.arg[0].region, &found);
}

/* As the hint loop does: it looks, and brings what the CPU has; `arrives`: before the launch. */
static inline void bring_so(uint32_t number, uint32_t region, bool arrives)
{
    um_next_t next = next_launch(number);
    uint32_t id = world.first_region + region;

    um_residency_refresh(world.residency, id, FAKE_BASE + offset_of(region), BYTES, true);
    um_sequences_brought(world.sequences, &next, id, FAKE_BASE + offset_of(region), BYTES);
    if (arrives)
        prefetched(region);
}

static inline void bring(uint32_t number, uint32_t region)
{
    bring_so(number, region, true);
}

/* ---- another run ---- */

static um_event_t told[512];
static char told_name[512][16];
static unsigned n_told;

static inline void keep(void *ctx, const um_event_t *event)
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

static inline void begin_again(uint32_t age)
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

#endif

/* gate_fake.h - a gate with one region and one GPU, and an executor that keeps what it is given. */
#ifndef UM_GATE_FAKE_H
#define UM_GATE_FAKE_H

#include "hints_fake.h"

/* An executor that keeps what it is given. */
typedef struct keeper {
    um_executor_t base;
    um_hint_t hint[4096];
    unsigned n, asked, cancelled_launches, cancelled_ranges, cancelled_contexts, overtaken;
    uint32_t over;
    uint64_t free;
    bool full, blind;
} keeper_t;

static inline bool keep(um_executor_t *executor, const um_hint_t *hint, uint32_t context)
{
    keeper_t *keeper = (keeper_t *)executor;

    (void)context;
    if (keeper->full)
        return false;
    keeper->hint[keeper->n++] = *hint;
    return true;
}

static inline void range_cancelled(um_executor_t *executor, uint64_t addr, uint64_t bytes)
{
    (void)addr;
    (void)bytes;
    ((keeper_t *)executor)->cancelled_ranges++;
}

static inline void context_cancelled(um_executor_t *executor, uint32_t context)
{
    (void)context;
    ((keeper_t *)executor)->cancelled_contexts++;
}

static inline void launch_cancelled(um_executor_t *executor, uint32_t correlation)
{
    (void)correlation;
    ((keeper_t *)executor)->cancelled_launches++;
}

static inline void overtaken(um_executor_t *executor, uint64_t addr, uint64_t bytes, int32_t device)
{
    (void)addr;
    (void)bytes;
    (void)device;
    ((keeper_t *)executor)->overtaken++;
}

static inline void is_over(um_executor_t *executor, uint32_t sync)
{
    ((keeper_t *)executor)->over = sync;
}

static inline bool answer(um_executor_t *executor, uint32_t context, uint64_t *free,
                          uint64_t *total)
{
    keeper_t *keeper = (keeper_t *)executor;

    (void)context;
    keeper->asked++;
    *free = keeper->free;
    *total = keeper->free;
    return !keeper->blind;
}

static const um_executor_ops_t keeper_ops = {.name = "keeper",
                                             .submit = keep,
                                             .cancel_range = range_cancelled,
                                             .cancel_context = context_cancelled,
                                             .cancel_launch = launch_cancelled,
                                             .overtake = overtaken,
                                             .wait_over = is_over,
                                             .free_bytes = answer};

static keeper_t keeper;
static um_regions_t *regions;
static um_gate_config_t config;
static um_gate_cause_t cause = {.context = 1};

#define REGION_BYTES (100 * MIB)

static inline um_gate_t *new_gate(void)
{
    um_region_t region = {.family = UM_FAMILY_MANAGED,
                          .addr = FAKE_BASE,
                          .bytes = REGION_BYTES,
                          .id = FAKE_REGION};
    um_event_t gpu = event_device(FAKE_GOOD_GPU);
    um_gate_t *gate;

    keeper.base.ops = &keeper_ops;
    if (!keeper.free)
        keeper.free = 1024 * MIB;
    cr_assert_eq(um_regions_new(&regions), UM_OK);
    cr_assert_eq(um_regions_add(regions, &region, NULL, 0, NULL), UM_OK);
    config.regions = regions;
    config.executor = &keeper.base;
    if (!config.piece_bytes)
        config.piece_bytes = 32 * MIB;
    cr_assert_eq(um_gate_new(&config, &gate), UM_OK);
    cr_assert_null(um_gate_device(gate, &gpu.u.device));
    return gate;
}

static inline um_hint_t prefetch(uint64_t offset, uint64_t bytes)
{
    return (um_hint_t){.kind = UM_HINT_PREFETCH,
                       .addr = FAKE_BASE + offset,
                       .bytes = bytes,
                       .device = FAKE_GPU,
                       .correlation = 5,
                       .who = "test",
                       .why = "test"};
}

static inline uint32_t propose(um_gate_t *gate, uint64_t offset, uint64_t bytes, uint64_t now_ns)
{
    um_hint_t hint = prefetch(offset, bytes);

    cause.now_ns = now_ns;
    return um_gate_propose(gate, &hint, &cause);
}

static inline um_ev_hint_t outcome(const um_hint_t *hint, um_hint_result_t result)
{
    return (um_ev_hint_t){.kind = hint->kind,
                          .result = result,
                          .addr = hint->addr,
                          .bytes = hint->bytes,
                          .device = hint->device,
                          .who = "test",
                          .why = ""};
}

static inline void done(um_gate_t *gate, unsigned i, um_hint_result_t result)
{
    um_ev_hint_t event = outcome(&keeper.hint[i], result);

    um_gate_done(gate, &event);
}

static inline void expect_refused(um_gate_t *gate, um_hint_result_t reason, uint64_t n)
{
    um_gate_stats_t stats;
    uint64_t refused = 0;

    um_gate_stats(gate, &stats);
    cr_assert_eq(stats.refused[reason], n, "%s: %lu", um_hint_result_name(reason),
                 (unsigned long)stats.refused[reason]);
    for (int r = 0; r < UM_HINT_RESULT_COUNT; r++)
        refused += stats.refused[r];
    cr_assert_eq(stats.proposed, stats.admitted + refused);
}

static inline void finish(um_gate_t *gate)
{
    um_gate_free(gate);
    um_regions_free(regions);
}

static inline void take(um_gate_t *gate, int32_t device, uint64_t stream, uint64_t offset,
                        uint64_t bytes)
{
    um_event_t event = event_launch(1, 9, NULL, 0);

    event.u.launch.device = device;
    event.u.launch.stream = stream;
    um_gate_taken(gate, &event, FAKE_BASE + offset, bytes);
}

static inline void sync_is(um_gate_t *gate, uint32_t id, uint32_t kind, uint64_t stream,
                           uint32_t exit)
{
    um_event_t event = event_sync(1, kind, stream, exit);

    event.u.sync.sync = id;
    um_gate_sync(gate, &event);
}

#endif

/* One driver model under test: a region, what it told, and short names for what is done to it. */
#ifndef SIM_UVM_H
#define SIM_UVM_H

#include <criterion/criterion.h>
#include <string.h>

#include "sim/uvm.h"

#define KIB     1024ull
#define MIB     (1024 * KIB)
#define BASE    0x7f0000000000ull
#define PAGE    UM_PAGE_BYTES
#define BLOCK   UM_BLOCK_BYTES
#define HOST    UM_DEVICE_HOST
#define MAX_LOG 4096

typedef struct sim {
    um_uvm_config_t config;
    um_uvm_t *uvm;
    um_uvm_work_t work; /* of the last operation */
    um_event_t log[MAX_LOG];
    size_t n;
    uint64_t now_ns;
} sim_t;

static inline void sim_event(void *ctx, const um_event_t *event)
{
    sim_t *sim = ctx;

    if (sim->n < MAX_LOG)
        sim->log[sim->n++] = *event;
}

static inline void sim_config(sim_t *sim, uint32_t gpus, uint64_t capacity)
{
    memset(sim, 0, sizeof(*sim));
    sim->config.n_gpus = gpus;
    for (uint32_t i = 0; i < gpus && i < UM_UVM_GPUS_MAX; i++)
        sim->config.capacity_bytes[i] = capacity;
    sim->config.event = sim_event;
    sim->config.event_ctx = sim;
    um_uvm_params_default(&sim->config.params);
}

/* A model with one region of `bytes` at BASE. */
static inline void sim_start(sim_t *sim, uint64_t bytes)
{
    cr_assert_eq(um_uvm_new(&sim->config, &sim->uvm), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim->uvm, 1, BASE, bytes), UM_OK);
}

static inline void sim_check(sim_t *sim)
{
    char error[200];

    cr_assert(um_uvm_check(sim->uvm, error, sizeof(error)), "%s", error);
}

static inline void sim_stop(sim_t *sim)
{
    sim_check(sim);
    um_uvm_free(sim->uvm);
}

static inline void sim_begin(sim_t *sim)
{
    memset(&sim->work, 0, sizeof(sim->work));
    sim->n = 0;
    sim->now_ns += 10 * 1000 * 1000; /* nothing thrashes by itself */
}

/* One touch inside one block. */
static inline void sim_touch_once(sim_t *sim, int32_t who, uint64_t offset, uint64_t bytes,
                                  um_access_kind_t kind)
{
    sim_begin(sim);
    cr_assert_eq(um_uvm_touch(sim->uvm, who, BASE + offset, bytes, kind, sim->now_ns, &sim->work),
                 UM_OK);
}

/* Touches a range block by block; work is the sum. */
static inline void sim_touch(sim_t *sim, int32_t who, uint64_t offset, uint64_t bytes,
                             um_access_kind_t kind)
{
    uint64_t end = offset + bytes;

    sim_begin(sim);
    while (offset < end) {
        uint64_t stop = (offset / BLOCK + 1) * BLOCK;

        if (stop > end)
            stop = end;
        cr_assert_eq(um_uvm_touch(sim->uvm, who, BASE + offset, stop - offset, kind, sim->now_ns,
                                  &sim->work),
                     UM_OK);
        offset = stop;
    }
}

static inline void sim_prefetch(sim_t *sim, int32_t to, uint64_t offset, uint64_t bytes)
{
    sim_begin(sim);
    cr_assert_eq(um_uvm_prefetch(sim->uvm, to, BASE + offset, bytes, sim->now_ns, &sim->work),
                 UM_OK);
}

static inline void sim_advise(sim_t *sim, um_hint_kind_t advice, int32_t device, uint64_t offset,
                              uint64_t bytes)
{
    sim_begin(sim);
    cr_assert_eq(um_uvm_advise(sim->uvm, advice, device, BASE + offset, bytes, &sim->work), UM_OK);
}

static inline uint64_t sim_resident(const sim_t *sim, int32_t who)
{
    return um_uvm_resident_bytes(sim->uvm, who);
}

static inline size_t sim_count(const sim_t *sim, um_event_type_t type)
{
    size_t n = 0;

    for (size_t i = 0; i < sim->n; i++)
        n += sim->log[i].type == type;
    return n;
}

static inline uint32_t sim_transfers(const uint32_t by_size[UM_UVM_SIZES])
{
    uint32_t n = 0;

    for (int i = 0; i < UM_UVM_SIZES; i++)
        n += by_size[i];
    return n;
}

#endif

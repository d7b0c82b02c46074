/* sim_program.h - small programs for the simulator's tests, put together by hand. */
#ifndef UM_SIM_PROGRAM_H
#define UM_SIM_PROGRAM_H

#include <string.h>

#include "sim/sim.h"

#define MIB        ((uint64_t)1 << 20)
#define BASE       ((uint64_t)0x7f4000000000)
#define MAX_STEPS  4096
#define MAX_REGION 8

typedef struct program {
    um_event_t event[MAX_STEPS];
    um_step_t step[MAX_STEPS];
    um_touch_t touch[4 * MAX_STEPS];
    um_arg_t arg[4 * MAX_STEPS];
    uint32_t n_args;
    um_workload_t workload;
    uint32_t n_regions, n_syncs;
    uint64_t next_addr, addr[MAX_REGION + 1], bytes[MAX_REGION + 1];
    uint32_t tid;
} program_t;

static inline void program_init(program_t *p)
{
    memset(p, 0, sizeof(*p));
    p->next_addr = BASE;
    p->tid = 1;
    p->workload =
        (um_workload_t){.n_gpus = 1, .name = "test", .steps = p->step, .touches = p->touch};
}

static inline um_step_t *program_step(program_t *p, uint32_t type)
{
    uint64_t i = p->workload.n_steps++;

    p->step[i] = (um_step_t){.first_touch = p->workload.n_touches};
    if (type) {
        p->event[i] = (um_event_t){.type = type, .tid = p->tid};
        p->step[i].event = &p->event[i];
    }
    return &p->step[i];
}

static inline um_event_t *program_event(program_t *p, uint32_t type)
{
    program_step(p, type);
    return &p->event[p->workload.n_steps - 1];
}

static inline uint32_t program_alloc(program_t *p, uint64_t bytes)
{
    uint32_t region = ++p->n_regions;

    program_event(p, UM_EV_REGION_ALLOC)->u.region_alloc =
        (um_ev_region_alloc_t){.region = region,
                               .family = UM_FAMILY_MANAGED,
                               .addr = p->next_addr,
                               .bytes = bytes,
                               .device = UM_DEVICE_NONE};
    p->addr[region] = p->next_addr;
    p->bytes[region] = bytes;
    p->next_addr += (bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    return region;
}

static inline void program_free(program_t *p, uint32_t region)
{
    program_event(p, UM_EV_REGION_FREE)->u.region_free =
        (um_ev_region_free_t){.region = region, .addr = p->addr[region]};
}

/* Adds a touch to the last step. */
static inline void program_touch(program_t *p, uint32_t region, uint64_t at, uint64_t bytes,
                                 um_access_kind_t kind, bool beside)
{
    um_step_t *step = &p->step[p->workload.n_steps - 1];

    p->touch[p->workload.n_touches++] = (um_touch_t){.addr = p->addr[region] + at,
                                                     .bytes = bytes,
                                                     .region = region,
                                                     .kind = (uint8_t)kind,
                                                     .beside = beside};
    step->n_touches++;
}

static inline void program_host(program_t *p, uint64_t cpu_ns, uint32_t region,
                                um_access_kind_t kind)
{
    program_step(p, 0)->cpu_ns = cpu_ns;
    if (region)
        program_touch(p, region, 0, p->bytes[region], kind, false);
}

/* A kernel that goes through all of one region. */
static inline void program_launch(program_t *p, uint64_t compute_ns, int32_t device,
                                  uint64_t stream, uint32_t region, um_access_kind_t kind)
{
    uint32_t number = p->workload.n_launches++;
    um_step_t *step = program_step(p, UM_EV_LAUNCH);
    um_event_t *event = &p->event[p->workload.n_steps - 1];

    step->compute_ns = compute_ns;
    step->launch = number;
    event->u.launch = (um_ev_launch_t){.correlation = number + 1,
                                       .kernel = 1,
                                       .stream = stream,
                                       .context = 1 + (uint32_t)device,
                                       .device = device};
    if (!region)
        return;
    p->arg[p->n_args] = (um_arg_t){.region = region};
    event->u.launch.args = &p->arg[p->n_args++];
    event->u.launch.n_args = 1;
    program_touch(p, region, 0, p->bytes[region], kind, false);
}

static inline void program_sync(program_t *p, um_sync_kind_t kind, uint64_t stream)
{
    program_event(p, UM_EV_SYNC)->u.sync =
        (um_ev_sync_t){.sync = ++p->n_syncs, .kind = kind, .context = 1, .stream = stream};
}

static inline void program_hint(program_t *p, um_hint_kind_t kind, int32_t device, uint64_t stream,
                                uint32_t region, uint64_t at, uint64_t bytes)
{
    program_event(p, UM_EV_HINT)->u.hint = (um_ev_hint_t){.kind = kind,
                                                          .result = UM_HINT_APPLIED,
                                                          .addr = p->addr[region] + at,
                                                          .bytes = bytes,
                                                          .device = device,
                                                          .region = region,
                                                          .stream = stream,
                                                          .who = "app",
                                                          .why = ""};
}

#endif

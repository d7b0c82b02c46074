/* sim_hand.h - workloads and machines put together by hand, for the tests of the simulator's use. */
#ifndef UM_SIM_HAND_H
#define UM_SIM_HAND_H

#include <stdlib.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/workload.h"

#define HAND_ADDR  ((uint64_t)0x7f0000000000)
#define HAND_STEPS 256
#define HAND_TOUCH 1024

/* One region, one GPU, one thread; more where a test says so. */
typedef struct hand {
    um_workload_t w;
    um_step_t step[HAND_STEPS];
    um_event_t event[HAND_STEPS];
    um_touch_t touch[HAND_TOUCH];
} hand_t;

static inline um_event_t *hand_event(hand_t *h, um_event_type_t type, uint64_t cpu_ns,
                                     uint64_t compute_ns)
{
    uint64_t i = h->w.n_steps++;
    um_event_t *event = type == UM_EV_NONE ? NULL : &h->event[i];

    h->event[i] = (um_event_t){.type = (uint32_t)type, .tid = 1, .time_ns = i};
    h->step[i] = (um_step_t){.event = event,
                             .cpu_ns = cpu_ns,
                             .compute_ns = compute_ns,
                             .first_touch = h->w.n_touches};
    return &h->event[i];
}

static inline void hand_begin(hand_t *h, uint64_t bytes)
{
    um_event_t *event;

    memset(h, 0, sizeof(*h));
    h->w = (um_workload_t){.kind = UM_WORKLOAD_GENERATED,
                           .n_gpus = 1,
                           .name = "by hand",
                           .source_gpu = "NVIDIA H200",
                           .steps = h->step,
                           .touches = h->touch,
                           .managed_peak_bytes = bytes};
    event = hand_event(h, UM_EV_REGION_ALLOC, 0, 0);
    event->u.region_alloc = (um_ev_region_alloc_t){.region = 1,
                                                   .family = UM_FAMILY_MANAGED,
                                                   .addr = HAND_ADDR,
                                                   .bytes = bytes,
                                                   .device = UM_DEVICE_NONE,
                                                   .flags = UM_REGION_ATTACH_GLOBAL};
}

static inline void hand_host(hand_t *h, uint64_t cpu_ns)
{
    hand_event(h, UM_EV_NONE, cpu_ns, 0);
}

static inline um_ev_launch_t *hand_launch(hand_t *h, uint64_t stream, uint64_t compute_ns)
{
    um_event_t *event = hand_event(h, UM_EV_LAUNCH, 0, compute_ns);
    um_step_t *step = &h->step[h->w.n_steps - 1];

    step->launch = h->w.n_launches++;
    event->u.launch =
        (um_ev_launch_t){.correlation = step->launch + 1, .stream = stream, .context = 1};
    return &event->u.launch;
}

static inline void hand_wait(hand_t *h)
{
    um_event_t *event = hand_event(h, UM_EV_SYNC, 0, 0);

    event->u.sync = (um_ev_sync_t){.sync = (uint32_t)(1000 + h->w.n_steps),
                                   .kind = UM_SYNC_DEVICE,
                                   .context = 1};
}

/* The step put last touches [offset, offset + bytes) of the region. */
static inline void hand_touch(hand_t *h, uint64_t offset, uint64_t bytes, um_access_kind_t kind)
{
    um_step_t *step = &h->step[h->w.n_steps - 1];

    h->touch[h->w.n_touches++] = (um_touch_t){.addr = HAND_ADDR + offset,
                                              .bytes = bytes,
                                              .region = 1,
                                              .kind = (uint8_t)kind};
    step->n_touches++;
    if (step->event)
        h->w.touched_bytes += bytes;
}

#endif

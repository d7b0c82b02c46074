#include "lanes.h"

#include <stdlib.h>

#define FIRST_COLUMN_NS 1000u

static void took(um_lane_t *lane, uint32_t kernel, uint64_t ns)
{
    lane->kernel_ns += ns;
    if (kernel == lane->kernel) {
        lane->longest_ns += ns;
    } else if (ns > lane->longest_ns) {
        lane->kernel = kernel;
        lane->longest_ns = ns;
    }
}

static um_lane_t sum(const um_lane_t *a, const um_lane_t *b)
{
    const um_lane_t *longer = a->longest_ns >= b->longest_ns ? a : b;

    return (um_lane_t){
        .kernel_ns = a->kernel_ns + b->kernel_ns,
        .in_bytes = a->in_bytes + b->in_bytes,
        .out_bytes = a->out_bytes + b->out_bytes,
        .evicted_bytes = a->evicted_bytes + b->evicted_bytes,
        .launches = a->launches + b->launches,
        .kernels = a->kernels + b->kernels,
        .gpu_faults = a->gpu_faults + b->gpu_faults,
        .cpu_faults = a->cpu_faults + b->cpu_faults,
        .hints = a->hints + b->hints,
        .kernel = longer->kernel,
        .longest_ns = a->kernel == b->kernel ? a->longest_ns + b->longest_ns : longer->longest_ns,
    };
}

static const um_lane_t empty = {.kernel = UINT32_MAX};

static void widen(um_lanes_t *lanes)
{
    for (uint32_t c = 0; c < UM_LANES_COLUMNS; c++)
        lanes->column[c] = 2 * c + 1 < UM_LANES_COLUMNS
                               ? sum(&lanes->column[2 * c], &lanes->column[2 * c + 1])
                               : empty;
    lanes->column_ns *= 2;
    lanes->n_columns = (lanes->n_columns + 1) / 2;
}

static um_lane_t *lane_at(um_lanes_t *lanes, uint64_t at_ns)
{
    uint64_t c;

    while (at_ns / lanes->column_ns >= UM_LANES_COLUMNS && lanes->column_ns < UINT64_MAX / 4)
        widen(lanes);
    c = at_ns / lanes->column_ns;
    c = c < UM_LANES_COLUMNS ? c : UM_LANES_COLUMNS - 1;
    if (c >= lanes->n_columns)
        lanes->n_columns = (uint32_t)c + 1;
    return &lanes->column[c];
}

/* A kernel may last over many columns. */
static void run(um_lanes_t *lanes, uint64_t at_ns, uint64_t lasts_ns, uint32_t kernel)
{
    uint64_t end = lasts_ns > UINT64_MAX / 4 - at_ns ? at_ns : at_ns + lasts_ns;

    if (end > at_ns)
        lane_at(lanes, end - 1);
    lane_at(lanes, at_ns)->kernels++;
    while (at_ns < end) {
        um_lane_t *lane = lane_at(lanes, at_ns);
        uint64_t next = (at_ns / lanes->column_ns + 1) * lanes->column_ns;

        next = next < end ? next : end;
        took(lane, kernel, next - at_ns);
        at_ns = next;
    }
}

static void moved(um_lane_t *lane, const um_ev_migrate_t *migrate)
{
    if (migrate->dst >= 0)
        lane->in_bytes += migrate->bytes;
    else
        lane->out_bytes += migrate->bytes;
    if (migrate->cause == UM_CAUSE_EVICTION)
        lane->evicted_bytes += migrate->bytes;
}

um_status_t um_lanes_event(um_lanes_t *lanes, const um_event_t *event, uint64_t at_ns,
                           uint32_t kernel)
{
    at_ns = at_ns < UINT64_MAX / 4 ? at_ns : UINT64_MAX / 4;
    if (!lanes->column) {
        lanes->column = malloc(UM_LANES_COLUMNS * sizeof(*lanes->column));
        if (!lanes->column)
            return UM_ERR_NO_MEMORY;
        for (uint32_t c = 0; c < UM_LANES_COLUMNS; c++)
            lanes->column[c] = empty;
        lanes->column_ns = FIRST_COLUMN_NS;
    }
    switch (event->type) {
    case UM_EV_LAUNCH:
        lane_at(lanes, at_ns)->launches += !(event->u.launch.flags & UM_LAUNCH_CAPTURED);
        break;
    case UM_EV_KERNEL_EXEC:
        run(lanes, at_ns, event->u.kernel_exec.duration_ns, kernel);
        break;
    case UM_EV_GPU_FAULT:
        lane_at(lanes, at_ns)->gpu_faults++;
        break;
    case UM_EV_CPU_FAULT:
        lane_at(lanes, at_ns)->cpu_faults++;
        break;
    case UM_EV_HINT:
        lane_at(lanes, at_ns)->hints += event->u.hint.result == UM_HINT_APPLIED;
        break;
    case UM_EV_MIGRATE:
        moved(lane_at(lanes, at_ns), &event->u.migrate);
        break;
    default:
        break;
    }
    return UM_OK;
}

void um_lanes_free(um_lanes_t *lanes)
{
    free(lanes->column);
}

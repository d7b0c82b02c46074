/*
 * lanes.h - how much of everything happened when, for the time line of a page.
 *
 * A fixed number of equal columns of time, whose width doubles as the trace grows. Several traces lie
 * one over the other, each from its own start. One thread.
 */
#ifndef UM_LANES_H
#define UM_LANES_H

#include "um_event.h"

#define UM_LANES_COLUMNS 4096u

typedef struct um_lane {
    uint64_t kernel_ns;                          /* summed over kernels: may exceed the column's */
    uint64_t in_bytes, out_bytes, evicted_bytes; /* evicted ones are out, too */
    uint64_t launches, kernels, gpu_faults, cpu_faults, hints; /* that began in it */
    uint32_t kernel; /* index of the one that ran longest in it; UINT32_MAX = none */
    uint64_t longest_ns;
} um_lane_t;

typedef struct um_lanes {
    um_lane_t *column;  /* UM_LANES_COLUMNS of them; NULL = nothing yet */
    uint64_t column_ns; /* 1 us, doubled */
    uint32_t n_columns; /* up to the last that has something */
} um_lanes_t;           /* zeroed = empty */

/* at_ns: since the start of its trace. kernel: index of the event's kernel, where it has one.
 * UM_ERR_NO_MEMORY. */
um_status_t um_lanes_event(um_lanes_t *lanes, const um_event_t *event, uint64_t at_ns,
                           uint32_t kernel);
void um_lanes_free(um_lanes_t *lanes);

#endif

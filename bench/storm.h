/*
 * storm.h - the fault storm of one GiB that a GPU touches first and the CPU then takes back, as
 * CUPTI reports it on an H200: what a trace of a managed-memory program mostly consists of.
 *
 * Shapes: about 45,000 host-to-device pieces of 4 KiB .. 2 MiB (a faulted piece, then what the
 * driver's tree prefetch added), about 1,400 GPU fault records, then 6,144 device-to-host pieces
 * and 3,072 CPU faults. A batch serves a few neighbouring 2 MiB blocks in turn. Times, durations
 * and sizes are noisy; fault records come after the migrations that they caused.
 */
#ifndef UM_BENCH_STORM_H
#define UM_BENCH_STORM_H

#include "um_event.h"

typedef struct storm {
    um_event_t *events;
    size_t n, room;
    uint64_t random; /* seed */
    uint64_t now_ns;
    uint64_t base; /* address of the region */
    uint32_t region;
} storm_t;

/* Appends one storm to storm->events; time goes on. Exits when memory is out. */
void storm_add(storm_t *storm);

#endif

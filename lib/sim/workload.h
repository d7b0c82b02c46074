/*
 * workload.h - what a program asked for, without when: the input of the simulator.
 *
 * Steps in the program's order, made from a trace (recorded, deep or generated) or put together by
 * code. A step is a program event (an allocation, a launch, a wait, a copy, a hint of the program's
 * own ...) or a host phase; launches and host phases carry touches, the true accesses behind them.
 * Nothing here depends on a policy, a capacity or a machine: what does is the engine's.
 *
 * Threads: one builds; a built workload is read-only and may be simulated by any number at once.
 */
#ifndef UM_WORKLOAD_H
#define UM_WORKLOAD_H

#include "um_event.h"

/* A run of bytes that is touched, all of its 4 KiB pages. */
typedef struct um_touch {
    uint64_t addr;
    uint64_t bytes;
    uint32_t region;
    uint8_t kind;   /* um_access_kind_t: READ, WRITE or ATOMIC */
    uint8_t beside; /* 1 = swept side by side with the touch before it, 0 = after that */
} um_touch_t;

typedef struct um_step {
    /* REGION_ALLOC, REGION_FREE, KERNEL, LAUNCH, SYNC (enter only: the engine makes the exit), COPY,
     * SET, HINT (the program's own), MARK, DEVICE, CONTEXT, CALL_SITE, REGION_LABEL; NULL = a host
     * phase, by the thread of the step before it. Owned by the workload; time_ns is the recorded one, tid tells program threads apart. */
    const um_event_t *event;
    uint64_t cpu_ns;      /* the thread's own work since its step before: no waits, no faults */
    uint64_t compute_ns;  /* LAUNCH: on the GPU of `source_gpu`, all its data there */
    uint64_t first_touch; /* into touches */
    uint32_t n_touches;
    uint32_t launch; /* LAUNCH: its number, 0 and up, in order */
} um_step_t;

/* How much the touches can be trusted. */
typedef enum um_workload_kind {
    UM_WORKLOAD_GENERATED = 0, /* exact: the generator says what is touched */
    UM_WORKLOAD_DEEP = 1, /* whole footprints at 4 KiB..2 MiB; order within a launch is inferred */
    UM_WORKLOAD_RECORDED = 2 /* only what faulted or moved is known: a lower bound */
} um_workload_kind_t;

const char *um_workload_kind_name(um_workload_kind_t kind); /* "generated"; static */
/* One sentence on what the kind means for a result; static. */
const char *um_workload_kind_means(um_workload_kind_t kind);

typedef struct um_workload {
    uint32_t kind;       /* um_workload_kind_t */
    uint32_t n_gpus;     /* 1..8 */
    char name[128];      /* file or pattern */
    char source_gpu[64]; /* name of the GPU that compute_ns was measured on, "" = unknown */
    uint64_t n_steps, n_touches;
    uint32_t n_launches;
    uint64_t managed_peak_bytes; /* most managed bytes alive at once */
    uint64_t memory_peak_bytes;  /* what these take on a GPU, which has them by whole blocks */
    uint64_t touched_bytes;      /* sum over touches by GPUs */
    const um_step_t *steps;
    const um_touch_t *touches;
    uint64_t skipped; /* events that could not be used (faults outside any region ...) */
} um_workload_t;

/* From a trace. On failure `error` has one line that names file, offset or event, and reason.
 * Errors: UM_ERR_IO, _FORMAT, _VERSION, _NO_MEMORY, UM_ERR_INVALID (no launches, or events that
 * contradict each other: a free of what is not alive, a launch argument in a dead region ...).
 * A damaged or unfinished trace is used as far as it is whole; *whole says so (may be NULL), and `error`
 * has the line about the damage then. */
um_status_t um_workload_load(const char *path, um_workload_t **out, bool *whole, char *error,
                             size_t error_bytes);
void um_workload_free(um_workload_t *workload); /* NULL is fine */

/* ---- putting one together ---- */

typedef struct um_workload_builder um_workload_builder_t;

um_status_t um_workload_builder_new(um_workload_kind_t kind, const char *name,
                                    um_workload_builder_t **out);
/* Copies the event (NULL = a host phase). Steps come in program order. */
um_status_t um_workload_builder_step(um_workload_builder_t *builder, const um_event_t *event,
                                     uint64_t cpu_ns, uint64_t compute_ns);
/* Adds a touch to the step put last; neighbours of one kind that continue each other are merged. */
um_status_t um_workload_builder_touch(um_workload_builder_t *builder, const um_touch_t *touch);
/* Checks and hands over; frees the builder, also on failure. error as in um_workload_load. */
um_status_t um_workload_builder_finish(um_workload_builder_t *builder, um_workload_t **out,
                                       char *error, size_t error_bytes);

#endif

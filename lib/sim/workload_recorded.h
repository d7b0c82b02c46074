/*
 * workload_recorded.h - what a recording lets one conclude about accesses.
 *
 * Launches: what migrated to the GPU or was populated there, attributed as the report does. In an
 * ordinary recording launches alike in kernel, grid and arguments are taken to touch alike: what one
 * of them moved, the others found in place. The CPU: its faults, and what migrated to it.
 *
 * Whole extents go in, runs come out: by block, in the order in which the blocks were first needed.
 */
#ifndef UM_WORKLOAD_RECORDED_H
#define UM_WORKLOAD_RECORDED_H

#include "workload_build.h"

typedef struct um_recorded um_recorded_t;

um_status_t um_recorded_new(um_workload_builder_t *builder, um_recorded_t **out);
/* The recording is a deep one: each launch shows all of its own. */
void um_recorded_deep(um_recorded_t *recorded);
void um_recorded_free(um_recorded_t *recorded); /* NULL is fine */

/* Every event of the trace, in order of time. UM_ERR_NO_MEMORY. */
um_status_t um_recorded_event(um_recorded_t *recorded, const um_event_t *event);
/* A LAUNCH became that step. */
um_status_t um_recorded_launch(um_recorded_t *recorded, const um_event_t *event, size_t step);

/* Whether an event tells of an access by the CPU. */
bool um_recorded_is_host(const um_event_t *event);
/* That access belongs to the host phase that is that step; *stalled_ns = how long it kept the CPU. */
um_status_t um_recorded_host(um_recorded_t *recorded, const um_event_t *event, size_t step,
                             uint64_t *stalled_ns);

/* Puts the touches and compute times into the builder. */
um_status_t um_recorded_finish(um_recorded_t *recorded);

#endif

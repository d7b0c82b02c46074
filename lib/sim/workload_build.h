/*
 * workload_build.h - what the loader needs of the builder beyond workload.h: a trace says what a
 * launch touched and how long it took only after the steps that follow it.
 */
#ifndef UM_WORKLOAD_BUILD_H
#define UM_WORKLOAD_BUILD_H

#include "workload.h"

/* Number of steps so far; the one put last is the number less one. */
size_t um_workload_builder_steps(const um_workload_builder_t *builder);
/* The step may be changed but for its event and its touches; valid until the next step is put. */
um_step_t *um_workload_builder_at(um_workload_builder_t *builder, size_t step);
/* As um_workload_builder_touch, for any step. Touches of one step stay in the order they come in. */
um_status_t um_workload_builder_touch_at(um_workload_builder_t *builder, size_t step,
                                         const um_touch_t *touch);
/* Cuts a range to the managed region that it begins in, or that ends in it, and that is alive at that
 * step; *region is a guess, 0 = none, and put right. False = there is no such region. */
bool um_workload_builder_clip(const um_workload_builder_t *builder, size_t step, uint32_t *region,
                              uint64_t *addr, uint64_t *bytes);
void um_workload_builder_kind(um_workload_builder_t *builder, um_workload_kind_t kind);
void um_workload_builder_skip(um_workload_builder_t *builder, uint64_t events);
/* From now on contradictions are left out and counted as skipped: the trace has holes. */
void um_workload_builder_forgive(um_workload_builder_t *builder);
/* Ends it with a line of the loader's own, unless it has failed already; returns what it failed with. */
um_status_t um_workload_builder_refuse(um_workload_builder_t *builder, const um_event_t *event,
                                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* It cannot go on, for a reason that is no event's; the first reason is the one that is told. UM_OK does nothing. Returns
 * the builder's status. */
um_status_t um_workload_builder_fail(um_workload_builder_t *builder, um_status_t status);
void um_workload_builder_drop(um_workload_builder_t *builder); /* NULL is fine */

#endif

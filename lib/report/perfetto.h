/*
 * perfetto.h - a trace for ui.perfetto.dev and chrome://tracing: the Trace Event Format (JSON).
 *
 * Each trace is a group of processes: its CPU threads (launches, waits, copies, NVTX ranges, page faults),
 * one for each GPU (kernels by stream, fault service, moves each way, thrashing, copies, and a counter of
 * the bytes that have moved there and are there still), managed and other memory (a track a region,
 * from allocation to free), and hints (a track for each who gave some). What overlaps in one track
 * goes to further lanes of it. Times are the trace's own.
 *
 * Written as events come: memory follows the live regions and the kernels' names, not the trace's
 * length. One thread.
 */
#ifndef UM_PERFETTO_H
#define UM_PERFETTO_H

#include <stdio.h>

#include "um_event.h"

/* What such a file begins with. */
#define UM_PERFETTO_START                                                                          \
    "{\"otherData\":{\"writer\":\"umrt\"},\"displayTimeUnit\":\"ns\",\"traceEvents\":["

typedef struct um_perfetto um_perfetto_t;

/* UM_ERR_NO_MEMORY. */
um_status_t um_perfetto_new(FILE *out, um_perfetto_t **result);
/* A new trace begins, in time order within. */
um_status_t um_perfetto_begin(um_perfetto_t *to, const char *path);
um_status_t um_perfetto_event(um_perfetto_t *to, const um_event_t *event);
/* Ends the file and frees. UM_ERR_IO, UM_ERR_NO_MEMORY, or the first error before. */
um_status_t um_perfetto_close(um_perfetto_t *to);

#endif

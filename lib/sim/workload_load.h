/*
 * workload_load.h - the events of a trace, one after another, become a workload.
 *
 * um_workload_load feeds it from a file; a generator feeds it directly. Events of the program come in
 * the order of time; what only tells of a launch (KERNEL_EXEC, ACCESS) may come any time behind it.
 */
#ifndef UM_WORKLOAD_LOAD_H
#define UM_WORKLOAD_LOAD_H

#include "um_trace.h"
#include "workload.h"

typedef struct um_workload_loader um_workload_loader_t;

/* exact: the accesses are told by ACCESS events and only by these. forgive: as the builder's. */
um_status_t um_workload_loader_new(const char *name, um_workload_kind_t kind, bool forgive,
                                   um_workload_loader_t **out);
/* The trace is a foreign tool's, which tells of kernels when they run, not of launches and seldom of
 * waits: a kernel counts as launched when it begins and as waited for before the CPU's next access. */
void um_workload_loader_imported(um_workload_loader_t *loader);
void um_workload_loader_event(um_workload_loader_t *loader, const um_event_t *event);
/* As um_workload_builder_finish; frees the loader. */
um_status_t um_workload_loader_finish(um_workload_loader_t *loader, um_workload_t **out,
                                      char *error, size_t error_bytes);
void um_workload_loader_drop(um_workload_loader_t *loader); /* NULL is fine */

typedef enum um_trace_whole {
    UM_TRACE_IS_WHOLE = 0,
    UM_TRACE_IS_CUT = 1,      /* at its end */
    UM_TRACE_HAS_HOLES = 2,   /* damaged inside */
    UM_TRACE_LOST_EVENTS = 3, /* whole, and says that events are missing */
} um_trace_whole_t;

/* One pass of um_workload_load, for tests and fuzzing too: from a reader in order of time, which it
 * does not close. name as in um_workload_t. */
um_status_t um_workload_read(um_trace_reader_t *reader, const char *name, bool forgive,
                             um_workload_t **out, um_trace_whole_t *whole, char *error,
                             size_t error_bytes);

#endif

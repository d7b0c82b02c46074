/*
 * open.h - what advisors would have said to the events of a trace, without a model: open loop.
 *
 * The hint loop of the live library is fed with the recorded events. Every hint is taken as carried
 * out, at once; what the program then did is as recorded, so nothing can be said about time.
 */
#ifndef UM_OPEN_H
#define UM_OPEN_H

#include "policy.h"

typedef struct um_open_stats {
    uint64_t launches, hinted_launches;
    uint64_t refused; /* pieces that the gate refused */
    bool whole;       /* the trace was not cut short or damaged */
} um_open_stats_t;

/* Calls fn with a HINT event for every piece that would have been carried out, in order, at the time
 * of the launch or wait that it was decided at. For a policy with advisors, or with the program's own
 * hints; UM_ERR_UNSUPPORTED for others. Errors as um_trace_reader_open, UM_ERR_NO_MEMORY. A damaged
 * trace is used as far as it is whole; `error` has the line about the damage then, else "". */
um_status_t um_open_run(const char *path, const um_policy_t *policy, um_event_fn fn, void *ctx,
                        um_open_stats_t *out, char *error, size_t error_bytes);

#endif

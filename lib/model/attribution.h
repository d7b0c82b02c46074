/*
 * attribution.h - which kernel was it?
 *
 * Fault and migration records carry no kernel and no stream. They are given to a launch first by
 * time, against the intervals in which kernels (and copies of managed memory) ran, then by which of
 * the candidates takes the region as an argument. Every answer has a confidence, and "nobody" is an
 * answer. Pure: events in, in time order; answers out, in the same order but later, because a kernel
 * that starts while a fault is being served is only seen after it (the driver's clock and the GPU's
 * differ by tens of microseconds).
 *
 * Memory is bounded (a few MiB) whatever the length of the trace. One thread at a time.
 */
#ifndef UM_ATTRIBUTION_H
#define UM_ATTRIBUTION_H

#include "um_event.h"

typedef enum um_attribution_to {
    UM_TO_NOBODY = 0,
    UM_TO_KERNEL = 1,
    UM_TO_COPY = 2 /* a cudaMemcpy or cudaMemset of managed memory */
} um_attribution_to_t;

typedef enum um_attribution_by {
    UM_BY_NOTHING = 0,
    UM_BY_TIME = 1,     /* it ran when the record began */
    UM_BY_ARGUMENT = 2, /* that, or near it, and it takes the region as an argument */
    UM_BY_OVERLAP = 3,  /* it began while the record lasted, or within the clocks' skew of it */
    UM_BY_ORDER = 4     /* no kernel times: launched before, not waited for yet */
} um_attribution_by_t;

const char *um_attribution_by_name(um_attribution_by_t by); /* "argument"; static */

typedef struct um_attributed {
    uint32_t to;          /* um_attribution_to_t */
    uint32_t by;          /* um_attribution_by_t */
    uint32_t confidence;  /* 0..100; 0 exactly when to is NOBODY */
    uint32_t kernel;      /* id of the KERNEL event, 0 when it was not seen */
    uint32_t correlation; /* of the launch or copy, 0 where the source has none */
    uint32_t candidates;  /* how many could not be told apart; 0 for NOBODY */
    uint64_t serial;      /* which kernel execution: 1 and up in order of start; 0 for copies */
    bool first;           /* the first GPU fault given to that execution */
} um_attributed_t;

/* `event` is a GPU_FAULT, a THROTTLE, or a MIGRATE that a GPU caused: to it by fault, tree prefetch,
 * counters or for an unknown reason, or out of it by eviction. Valid during the call. */
typedef void (*um_attributed_fn)(void *ctx, const um_event_t *event, const um_attributed_t *who);

typedef struct um_attribution um_attribution_t;

/* UM_ERR_NO_MEMORY, UM_ERR_INVALID (no fn). */
um_status_t um_attribution_new(um_attributed_fn fn, void *ctx, um_attribution_t **out);
void um_attribution_free(um_attribution_t *attribution); /* NULL is fine; what is held is dropped */

/* Every event of the trace, in time order. UM_ERR_NO_MEMORY. */
um_status_t um_attribution_event(um_attribution_t *attribution, const um_event_t *event);

/* Answers for what is still held; then ready for another trace. */
void um_attribution_finish(um_attribution_t *attribution);

/* Whether a kernel surely runs at time_ns (not before the last event's time): it has begun and ends
 * later than the clocks' skew from then. */
bool um_attribution_running(const um_attribution_t *attribution, uint64_t time_ns);

#endif

/*
 * least_time.h - the program when all that it needs comes as early and as fast as it can at all.
 */
#ifndef UM_LEAST_TIME_H
#define UM_LEAST_TIME_H

#include "flows.h"
#include "sim.h"

/* What a step must have, that is not there before the step `from` begins. */
typedef enum um_need_kind {
    UM_NEED_IN = 0,         /* of a launch: data over the link */
    UM_NEED_FIRST_HERE = 1, /* of a launch: memory of its GPU */
    UM_NEED_OUT = 2,        /* of a host phase: data over the link */
    UM_NEED_FIRST_HOST = 3, /* of a host phase: memory of the host */
    UM_NEED_KINDS = 4
} um_need_kind_t;

typedef struct um_need {
    uint32_t to, from; /* steps */
    uint64_t bytes;
} um_need_t;

typedef struct um_needs {
    um_need_t *need; /* freed by who has the list */
    size_t n, next;
} um_needs_t;

um_status_t um_needs_add(um_needs_t *needs, const um_flow_list_t *list);

/* Best that any way of moving data can do; ns a byte. */
typedef struct um_least_rates {
    double in_ns, out_ns;
} um_least_rates_t;

/* Sorts the needs. UM_ERR_NO_MEMORY. */
um_status_t um_least_time_find(const um_workload_t *workload, const um_machine_t *machine,
                               double kernel_time_scale, const um_least_rates_t *rates,
                               um_needs_t needs[UM_NEED_KINDS], uint64_t *out_ns);

#endif

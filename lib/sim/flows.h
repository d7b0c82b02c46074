/*
 * flows.h - which bytes some step must have from which earlier step: what no policy can avoid.
 *
 * Every page that one allocation has for itself and that is touched by a launch or a host phase is followed from who wrote it last to who reads it
 * next. MODEL.md, "Bounds", says how the bounds come out of this.
 */
#ifndef UM_FLOWS_H
#define UM_FLOWS_H

#include "workload.h"

typedef struct um_flow {
    uint32_t from, to; /* steps */
    uint64_t bytes;
} um_flow_t;

typedef enum um_flow_kind {
    UM_FLOW_IN = 0,         /* a launch here reads what the CPU or another GPU wrote last */
    UM_FLOW_OUT = 1,        /* a host phase reads what a launch here wrote last */
    UM_FLOW_KEPT = 2,       /* used here, and read here again with no writer elsewhere in between */
    UM_FLOW_DIRTY = 3,      /* written here, read here, here for the last time, never elsewhere */
    UM_FLOW_FIRST_HERE = 4, /* a launch here is the first to touch what an allocation gave */
    UM_FLOW_FIRST_HOST = 5, /* a host phase is; of whole blocks only, for these two */
    UM_FLOW_KINDS = 6
} um_flow_kind_t;

/* In descending order of `from`, then ascending order of `to`; no pair twice. */
typedef struct um_flow_list {
    um_flow_t *flow;
    size_t n, size;
    size_t open; /* where those of the step being worked on begin */
} um_flow_list_t;

typedef struct um_flows {
    um_flow_list_t list[UM_FLOW_KINDS];
} um_flows_t;

/* Seen from GPU `device`. Memory: 48 bytes a block of the regions touched, more for blocks whose
 * pages differ, and 16 bytes a flow. UM_ERR_NO_MEMORY. */
um_status_t um_flows_find(const um_workload_t *workload, int32_t device, um_flows_t *out);
void um_flows_free(um_flows_t *flows);

uint64_t um_flow_bytes(const um_flow_list_t *list); /* sum */

#endif

/*
 * workload_recorded_impl.h - what the parts of workload_recorded share; nobody else includes it.
 *
 *   workload_recorded.c   events become pieces of touches, as they come
 *   workload_concluded.c  pieces become the workload's, at the end
 */
#ifndef UM_WORKLOAD_RECORDED_IMPL_H
#define UM_WORKLOAD_RECORDED_IMPL_H

#include "model/attribution.h"
#include "workload_ids.h"
#include "workload_recorded.h"

typedef struct um_recorded_piece {
    uint64_t addr, end;
    uint64_t rank; /* of its block: when it was first needed */
    uint32_t step;
    uint32_t region;
    uint8_t reads, writes; /* faults said so */
    uint8_t populated;     /* a fault, no migration: it may only have been populated */
    uint8_t host;
} um_recorded_piece_t;

typedef struct um_recorded_launch {
    size_t step;
    uint64_t alike;            /* equal for launches alike */
    uint64_t work;             /* equal for launches of one kernel and grid */
    uint64_t start_ns, end_ns; /* on the GPU */
    uint64_t busy_ns;          /* a graph's nodes overlap */
    uint64_t served_ns;        /* of which faults were served */
    uint64_t served_until_ns;
    uint64_t bytes; /* touched */
} um_recorded_launch_t;

typedef struct um_recorded_kernel {
    uint32_t n;
    uint32_t *flags;
} um_recorded_kernel_t;

struct um_recorded {
    um_workload_builder_t *builder;
    bool deep;
    um_attribution_t *attribution;
    um_status_t status;
    um_recorded_launch_t *launches;
    size_t n_launches, launches_size;
    um_ids_t by_correlation;
    um_recorded_kernel_t *kernels;
    size_t n_kernels, kernels_size;
    um_ids_t by_kernel;
    um_recorded_piece_t *pieces;
    size_t n_pieces, pieces_size;
    um_ids_t launched;   /* regions that some launch has had */
    bool host_writes;    /* the last CPU fault was one of a write */
    uint64_t host_first; /* the first fault of the CPU in this block and phase */
    size_t host_step;
};

/* Whether b is more of the same and goes on where a ends. */
static inline bool um_recorded_goes_on(const um_recorded_piece_t *a, const um_recorded_piece_t *b)
{
    return a->step == b->step && a->region == b->region && a->end == b->addr &&
           a->reads == b->reads && a->writes == b->writes && a->populated == b->populated;
}

/* What the driver populates or moves at a fault, when it has had faults in this block from `first`
 * on: its tree doubles what it has, down to a big page. */
static inline uint64_t um_recorded_grown(uint64_t first, uint64_t addr)
{
    uint64_t bytes = UM_BIG_PAGE_BYTES;

    if (first <= addr && first / UM_BLOCK_BYTES == addr / UM_BLOCK_BYTES)
        while (bytes < addr - first)
            bytes *= 2;
    return bytes;
}

#endif

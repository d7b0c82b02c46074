/*
 * executor.h - the only thing that acts. One interface; cuda, null and later sim behind it.
 */
#ifndef UM_EXECUTOR_H
#define UM_EXECUTOR_H

#include "um_advisor.h"

typedef struct um_executor um_executor_t;

/* Told once per accepted hint from a worker thread. result: APPLIED, FAILED or CANCELLED. */
typedef void (*um_executor_done_fn)(void *ctx, const um_hint_t *hint, um_hint_result_t result,
                                    int32_t error, uint64_t duration_ns);

typedef struct um_executor_ops {
    const char *name;
    /* Takes the hint (copied), returns at once; false = queue full. context = where the launch is. */
    bool (*submit)(um_executor_t *executor, const um_hint_t *hint, uint32_t context);
    /* Cancels what is queued in the range and waits (bounded) for what is inside the driver. */
    void (*cancel_range)(um_executor_t *executor, uint64_t addr, uint64_t bytes);
    void (*cancel_context)(um_executor_t *executor, uint32_t context);
    /* Free device memory now; false where it cannot be asked. Not on the launch path. */
    bool (*free_bytes)(um_executor_t *executor, int32_t device, uint64_t *free, uint64_t *total);
    bool (*concurrent_managed)(um_executor_t *executor, int32_t device);
    void (*stop)(um_executor_t *executor); /* drops the queue, joins; no CUDA calls */
    void (*abandon)(um_executor_t *executor);
} um_executor_ops_t;

struct um_executor {
    const um_executor_ops_t *ops;
};

#endif

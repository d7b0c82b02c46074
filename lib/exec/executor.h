/*
 * executor.h - the only thing that acts. One interface; cuda, null and later sim behind it.
 */
#ifndef UM_EXECUTOR_H
#define UM_EXECUTOR_H

#include "um_advisor.h"

typedef struct um_executor um_executor_t;

/* Told once per accepted hint, from a worker thread or from inside a call below. result: APPLIED,
 * FAILED or CANCELLED; error is the driver's code when FAILED. */
typedef void (*um_executor_done_fn)(void *ctx, const um_hint_t *hint, um_hint_result_t result,
                                    int32_t error, uint64_t duration_ns);

typedef struct um_executor_ops {
    const char *name;
    /* Takes the hint (copied), returns at once; false = queue full. context = where the launch is. */
    bool (*submit)(um_executor_t *executor, const um_hint_t *hint, uint32_t context);
    /* Hints for launches in the context are to be expected: whatever takes time the first time is done
     * now. May be NULL; waits for nothing. */
    void (*prepare)(um_executor_t *executor, uint32_t context);
    /* Cancels what is queued in the range and waits (bounded) for what is inside the driver. */
    void (*cancel_range)(um_executor_t *executor, uint64_t addr, uint64_t bytes);
    /* Likewise for a context, and forgets what it kept there; 0 = all contexts. */
    void (*cancel_context)(um_executor_t *executor, uint32_t context);
    /* Cancels the prefetches that are queued to race a launch that has ended; waits for nothing. */
    void (*cancel_launch)(um_executor_t *executor, uint32_t correlation);
    /* A launch on `device` takes the range: cancels the prefetches queued there to anywhere else, and
     * those for idle times; waits for nothing. */
    void (*overtake)(um_executor_t *executor, uint64_t addr, uint64_t bytes, int32_t device);
    /* The CPU has left the wait: what is queued for after it may go. */
    void (*wait_over)(um_executor_t *executor, uint32_t sync);
    /* Waits (bounded) until what was submitted in the context so far, to race a launch or to go at once,
     * has been through the driver or is cancelled; false when the time was over. May be NULL. */
    bool (*catch_up)(um_executor_t *executor, uint32_t context);
    /* Free memory now of the device that `context` is on; false where it cannot be asked. Not on
     * the launch path. */
    bool (*free_bytes)(um_executor_t *executor, uint32_t context, uint64_t *free, uint64_t *total);
    void (*stop)(um_executor_t *executor);    /* drops the queue, joins; no CUDA calls */
    void (*abandon)(um_executor_t *executor); /* forked child: everything becomes a no-op */
    void (*free)(um_executor_t *executor);    /* after stop */
} um_executor_ops_t;

struct um_executor {
    const um_executor_ops_t *ops;
    /* What it cannot carry out: bit i = um_hint_kind_t i, um_hint_order_t i. The gate refuses that. */
    uint32_t lacks_kinds, lacks_orders;
    /* Set by the hint loop before the first submit. */
    um_executor_done_fn done;
    void *done_ctx;
};

/* Accepts everything, does nothing and says APPLIED from inside submit: for tests and for replay.
 * free_bytes answers `free`. */
um_status_t um_executor_null_new(uint64_t free, um_executor_t **out);

#endif

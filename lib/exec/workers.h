/*
 * workers.h - an executor made of a queue and threads; what a piece of work is comes from outside.
 *
 * Pieces are taken first in, first out, by whichever worker is free: with two workers every other
 * piece, front to back. Threads start with the first piece and block all signals.
 */
#ifndef UM_WORKERS_H
#define UM_WORKERS_H

#include "executor.h"

typedef struct um_workers_calls {
    const char *name;
    void *ctx;
    uint32_t lacks_kinds, lacks_orders; /* as um_executor_t's */
    /* On the worker's own thread, before its first piece. May be NULL. */
    void (*start)(void *ctx, unsigned worker);
    /* Carries a piece out: 0 or the driver's error; UM_WORKERS_GONE when there is nothing left to do it
     * in or to. `context` cannot go away meanwhile. */
    int32_t (*apply)(void *ctx, unsigned worker, uint32_t context, const um_hint_t *hint);
    /* As um_executor_ops_t; `context` cannot go away meanwhile. */
    bool (*free_bytes)(void *ctx, uint32_t context, uint64_t *free, uint64_t *total);
    /* Nobody is inside a call for this context (0 = for any) any more. */
    void (*context_gone)(void *ctx, uint32_t context);
    void (*release)(void *ctx); /* the executor is freed; may be NULL */
} um_workers_calls_t;

#define UM_WORKERS_MAX  8
#define UM_WORKERS_GONE INT32_MIN /* counts as cancelled, not as failed */

/* calls is copied. Owns calls->ctx from success on. */
um_status_t um_workers_new(const um_workers_calls_t *calls, unsigned n_workers,
                           um_executor_t **out);

#endif

/*
 * workers.h - an executor made of a queue and threads; what a piece of work is comes from outside.
 *
 * Pieces are taken first in, first out, by whichever worker is free: with two workers every other
 * piece, front to back. Threads start with the first piece and block all signals.
 *
 * UM_ORDER_AFTER: the piece is held until wait_over names its wait, and then goes like any other, racing
 * the CPU. The program's own wait is the order: what it waited for is done, whatever sort of wait it was,
 * and neither its streams nor its events are touched. On an H200 that is as fast as a prefetch put behind
 * the kernel beforehand.
 * UM_ORDER_IDLE: one piece at a time, by one worker, when nothing else is queued, no other worker is in a
 * call and `idle` says that what went before has arrived. Whatever else is submitted goes before it.
 * Advice goes as it comes, whatever its order; for one range one piece after the other.
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
    /* On a worker's own thread: what its first piece in the context would have to wait for. `context`
     * cannot go away meanwhile. May be NULL. */
    void (*prepare)(void *ctx, unsigned worker, uint32_t context);
    /* Carries a piece out: 0 or the driver's error; UM_WORKERS_GONE when there is nothing left to do it
     * in or to. `context` cannot go away meanwhile. */
    int32_t (*apply)(void *ctx, unsigned worker, uint32_t context, const um_hint_t *hint);
    /* Has all that was applied in the context arrived? May be NULL (it has); as for apply. */
    bool (*idle)(void *ctx, uint32_t context);
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

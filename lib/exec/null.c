/* The executor that does nothing, at once. */
#include "executor.h"

#include <stdlib.h>

typedef struct null {
    um_executor_t base;
    uint64_t free;
} null_t;

static bool submit(um_executor_t *executor, const um_hint_t *hint, uint32_t context)
{
    (void)context;
    if (executor->done)
        executor->done(executor->done_ctx, hint, UM_HINT_APPLIED, 0, 0);
    return true;
}

static void cancel_range(um_executor_t *executor, uint64_t addr, uint64_t bytes)
{
    (void)executor;
    (void)addr;
    (void)bytes;
}

static void cancel_id(um_executor_t *executor, uint32_t id)
{
    (void)executor;
    (void)id;
}

static void overtake(um_executor_t *executor, uint64_t addr, uint64_t bytes, int32_t device)
{
    (void)device;
    cancel_range(executor, addr, bytes);
}

static bool free_bytes(um_executor_t *executor, uint32_t context, uint64_t *free, uint64_t *total)
{
    (void)context;
    *free = *total = ((null_t *)executor)->free;
    return true;
}

static void nothing(um_executor_t *executor)
{
    (void)executor;
}

static void release(um_executor_t *executor)
{
    free(executor);
}

um_status_t um_executor_null_new(uint64_t free_bytes_always, um_executor_t **out)
{
    static const um_executor_ops_t ops = {.name = "null",
                                          .submit = submit,
                                          .cancel_range = cancel_range,
                                          .cancel_context = cancel_id,
                                          .cancel_launch = cancel_id,
                                          .overtake = overtake,
                                          .wait_over = cancel_id,
                                          .free_bytes = free_bytes,
                                          .stop = nothing,
                                          .abandon = nothing,
                                          .free = release};
    null_t *null = calloc(1, sizeof(*null));

    if (!null)
        return UM_ERR_NO_MEMORY;
    null->base.ops = &ops;
    null->free = free_bytes_always;
    *out = &null->base;
    return UM_OK;
}

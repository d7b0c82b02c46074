/* The executor of the simulator: workers are streams whose driver calls take simulated time. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 1024u

typedef struct sim_executor {
    um_executor_t base;
    um_engine_t *engine;
    um_stream_t **worker;
    unsigned n_workers;
    um_op_t *queue; /* first in, first out, but for what has to wait */
    uint32_t n_queued;
    bool serving; /* done is being told: no worker is given work meanwhile */
} sim_executor_t;

/* May it be started? What is for after a wait has to let the work before it end. */
static bool is_ready(const sim_executor_t *self, const um_op_t *op)
{
    const um_hint_t *hint = &op->hint;
    int32_t device = um_engine_context_device(self->engine, op->context);
    const um_stream_t *stream = NULL;

    if (op->cancelled || hint->order != UM_ORDER_AFTER)
        return true;
    if (hint->wait == UM_SYNC_STREAM || hint->wait == UM_SYNC_COPY)
        stream = um_stream_find(self->engine, device, hint->stream);
    return um_streams_done(self->engine, device, stream, op->number);
}

static bool is_idle(const sim_executor_t *self)
{
    for (unsigned w = 0; w < self->n_workers; w++)
        if (self->worker[w]->head)
            return false;
    return true;
}

/* Takes the next piece out of the queue; those for idle times come last, one at a time. NULL = there is none. */
static um_op_t *take(sim_executor_t *self)
{
    for (int idle = 0; idle < 1 + is_idle(self); idle++)
        for (um_op_t **at = &self->queue; *at; at = &(*at)->next) {
            um_op_t *op = *at;

            if ((op->hint.order == UM_ORDER_IDLE) != idle || !is_ready(self, op))
                continue;
            *at = op->next;
            self->n_queued--;
            return op;
        }
    return NULL;
}

void um_executor_sim_serve(um_executor_t *executor)
{
    sim_executor_t *self = (sim_executor_t *)executor;

    if (self->serving)
        return;
    self->serving = true;
    for (unsigned w = 0; w < self->n_workers; w++) {
        um_op_t *op;

        while (!self->worker[w]->head && (op = take(self))) {
            if (op->cancelled) {
                self->base.done(self->base.done_ctx, &op->hint, UM_HINT_CANCELLED, 0, 0);
            } else {
                self->worker[w]->device = op->hint.device >= 0
                                              ? op->hint.device
                                              : um_engine_context_device(self->engine, op->context);
                um_stream_push(self->engine, self->worker[w], op);
            }
            free(op);
        }
    }
    self->serving = false;
}

void um_executor_sim_done(um_executor_t *executor, const um_stream_t *stream, const um_op_t *op)
{
    sim_executor_t *self = (sim_executor_t *)executor;

    self->base.done(self->base.done_ctx, &op->hint,
                    op->cancelled ? UM_HINT_CANCELLED : UM_HINT_APPLIED, 0,
                    self->engine->now_ns - stream->start_ns);
    um_executor_sim_serve(executor);
}

static bool submit(um_executor_t *executor, const um_hint_t *hint, uint32_t context)
{
    sim_executor_t *self = (sim_executor_t *)executor;
    um_op_t op = {.type = hint->kind == UM_HINT_PREFETCH ? UM_OP_PREFETCH : UM_OP_ADVISE,
                  .hint = *hint,
                  .context = context,
                  .number = self->engine->n_ops,
                  .submitted_ns = self->engine->now_ns,
                  .owner = executor};
    um_op_t **last = &self->queue, *copy;

    /* The program's own thread speaks: in front of the kernel, on its stream. */
    if (hint->order == UM_ORDER_BEFORE && self->engine->launching)
        return um_stream_push(self->engine, self->engine->launching, &op) != UINT64_MAX;
    copy = self->n_queued < QUEUE_MAX ? malloc(sizeof(*copy)) : NULL;
    if (!copy)
        return false;
    *copy = op;
    while (*last)
        last = &(*last)->next;
    *last = copy;
    self->n_queued++;
    um_executor_sim_serve(executor);
    return true;
}

/* Of everything, of a range, of a range that a launch takes, of a launch, of a context. */
typedef struct match {
    uint64_t addr, bytes;
    const int32_t *taker; /* its device */
    uint32_t launch, context;
} match_t;

static bool matches(const match_t *match, const um_op_t *op)
{
    const um_hint_t *hint = &op->hint;

    if (match->bytes)
        return hint->addr < match->addr + match->bytes && match->addr < hint->addr + hint->bytes &&
               (!match->taker || (hint->kind == UM_HINT_PREFETCH &&
                                  (hint->device != *match->taker || hint->order == UM_ORDER_IDLE)));
    if (match->launch)
        return hint->correlation == match->launch && hint->kind == UM_HINT_PREFETCH &&
               hint->order != UM_ORDER_IDLE && hint->order != UM_ORDER_AFTER;
    return !match->context || op->context == match->context;
}

static void cancel(sim_executor_t *self, const match_t *match, bool under_way)
{
    for (um_op_t *op = self->queue; op; op = op->next)
        op->cancelled |= matches(match, op);
    for (unsigned w = 0; under_way && w < self->n_workers; w++)
        if (self->worker[w]->head)
            self->worker[w]->head->cancelled |= matches(match, self->worker[w]->head);
    um_executor_sim_serve(&self->base);
}

static void cancel_range(um_executor_t *executor, uint64_t addr, uint64_t bytes)
{
    cancel((sim_executor_t *)executor, &(match_t){.addr = addr, .bytes = bytes}, true);
}

static void cancel_context(um_executor_t *executor, uint32_t context)
{
    cancel((sim_executor_t *)executor, &(match_t){.context = context}, true);
}

static void cancel_launch(um_executor_t *executor, uint32_t correlation)
{
    if (correlation)
        cancel((sim_executor_t *)executor, &(match_t){.launch = correlation}, false);
}

static void overtake(um_executor_t *executor, uint64_t addr, uint64_t bytes, int32_t device)
{
    cancel((sim_executor_t *)executor, &(match_t){.addr = addr, .bytes = bytes, .taker = &device},
           false);
}

/* The work that was waited for has ended: is_ready looks. */
static void wait_over(um_executor_t *executor, uint32_t sync)
{
    (void)sync;
    um_executor_sim_serve(executor);
}

static bool free_bytes(um_executor_t *executor, uint32_t context, uint64_t *free, uint64_t *total)
{
    um_engine_t *engine = ((sim_executor_t *)executor)->engine;
    int32_t device = um_engine_context_device(engine, context);

    *free = um_uvm_free_bytes(engine->uvm, device);
    *total = *free + um_uvm_resident_bytes(engine->uvm, device);
    return true;
}

static void nothing(um_executor_t *executor)
{
    (void)executor;
}

static void release(um_executor_t *executor)
{
    sim_executor_t *self = (sim_executor_t *)executor;

    for (unsigned w = 0; self->worker && w < self->n_workers; w++)
        um_stream_free(self->worker[w]);
    for (um_op_t *op; (op = self->queue);) {
        self->queue = op->next;
        free(op);
    }
    free(self->worker);
    free(self);
}

um_status_t um_executor_sim_new(um_engine_t *engine, unsigned workers, um_executor_t **out)
{
    static const um_executor_ops_t ops = {.name = "sim",
                                          .submit = submit,
                                          .cancel_range = cancel_range,
                                          .cancel_context = cancel_context,
                                          .cancel_launch = cancel_launch,
                                          .overtake = overtake,
                                          .wait_over = wait_over,
                                          .free_bytes = free_bytes,
                                          .stop = nothing,
                                          .abandon = nothing,
                                          .free = release};
    sim_executor_t *self = calloc(1, sizeof(*self));

    if (!self)
        return UM_ERR_NO_MEMORY;
    self->base.ops = &ops;
    self->engine = engine;
    self->n_workers = workers;
    self->worker = calloc(workers, sizeof(um_stream_t *));
    for (unsigned w = 0; self->worker && w < workers; w++)
        self->worker[w] = um_stream_new(engine, 0, 0, true);
    if (!self->worker || engine->status != UM_OK) {
        release(&self->base);
        return UM_ERR_NO_MEMORY;
    }
    *out = &self->base;
    return UM_OK;
}

#include "workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE   1024u
#define WAIT_NS 100000000u     /* a call of the program waits at most so long for a worker's */
#define STOP_NS 1000000000u    /* and the end of the program for a worker */
#define GONE    64u            /* contexts remembered as gone */
#define POLL_NS 200000u        /* how often the link is asked whether it is idle */
#define ASKER   UM_WORKERS_MAX /* the call slot of free_bytes */

/* What a piece waits for; within a lane it is first in, first out. */
typedef enum lane {
    LANE_NOW = 0, /* a free worker; also what was cancelled, to be told */
    LANE_IDLE,    /* the link has nothing else to do */
    LANE_HELD,    /* the end of a wait */
    LANES
} lane_t;

typedef struct item {
    struct item *next;
    um_hint_t hint;
    uint32_t context;
    uint64_t serial; /* from 1, in order of submission */
    bool cancelled;
} item_t;

typedef struct list {
    item_t *first, **end; /* end: where the next one is hung */
} list_t;

/* Who is inside a driver call, for what. */
typedef struct call {
    bool active, advises;
    uint32_t context;
    uint64_t serial, addr, bytes; /* of the piece; 0 = for none */
} call_t;

typedef struct workers workers_t;

typedef struct worker {
    workers_t *all;
    unsigned index;
    pthread_t thread;
    uint32_t ready; /* the context that it has prepared for */
} worker_t;

struct workers {
    um_executor_t base;
    um_workers_calls_t calls;
    unsigned n, started;
    worker_t worker[UM_WORKERS_MAX];

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* something was queued, or stop */
    pthread_cond_t
        left; /* somebody left a driver call or its thread, a piece was dropped, or stop */
    item_t pool[QUEUE];
    item_t *unused;
    uint64_t submitted; /* the last serial */
    list_t lane[LANES];
    uint32_t expected; /* the context that every worker is to be ready for, 0 = none */
    bool polling;      /* a worker looks after LANE_IDLE: one is enough */
    call_t call[UM_WORKERS_MAX + 1];
    uint32_t gone[GONE], n_gone; /* a ring: the latest ones */
    unsigned running;            /* threads not yet at their end */
    bool stopping, abandoned;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct timespec deadline(uint64_t ns)
{
    uint64_t then = now_ns() + ns;

    return (struct timespec){.tv_sec = (time_t)(then / 1000000000u),
                             .tv_nsec = (long)(then % 1000000000u)};
}

static bool is_gone(const workers_t *all, uint32_t context)
{
    for (uint32_t i = 0; i < all->n_gone && i < GONE; i++)
        if (all->gone[i] == context)
            return true;
    return false;
}

/* ---- a worker ---- */

/* item NULL: to ask or to prepare something. */
static void enter(workers_t *all, unsigned slot, uint32_t context, const item_t *item)
{
    all->call[slot] = (call_t){.active = true, .context = context};
    if (!item)
        return;
    all->call[slot].advises = item->hint.kind != UM_HINT_PREFETCH;
    all->call[slot].serial = item->serial;
    all->call[slot].addr = item->hint.addr;
    all->call[slot].bytes = item->hint.bytes;
}

static void leave(workers_t *all, unsigned slot)
{
    all->call[slot].active = false;
    pthread_cond_broadcast(&all->left);
}

/* Takes out the item that hangs at `at`. */
static item_t *unhang(list_t *list, item_t **at)
{
    item_t *item = *at;

    if (item && !(*at = item->next))
        list->end = at;
    return item;
}

static item_t *pop(workers_t *all, lane_t lane)
{
    return unhang(&all->lane[lane], &all->lane[lane].first);
}

static void append(workers_t *all, lane_t lane, item_t *item)
{
    item->next = NULL;
    *all->lane[lane].end = item;
    all->lane[lane].end = &item->next;
}

/* A worker is to look at it now. */
static void hurry(workers_t *all, list_t *from, item_t **at)
{
    append(all, LANE_NOW, unhang(from, at));
    pthread_cond_signal(&all->work);
}

/* Two pieces of advice for one range: the second is to be what holds. */
static bool has_to_wait(const workers_t *all, const item_t *item)
{
    for (unsigned i = 0; i < all->n; i++) {
        const call_t *call = &all->call[i];

        if (call->active && call->advises && item->hint.kind != UM_HINT_PREFETCH &&
            call->addr < item->hint.addr + item->hint.bytes &&
            item->hint.addr < call->addr + call->bytes)
            return true;
    }
    return false;
}

/* The first piece that may go; whoever is in its way looks again afterwards. */
static item_t *pop_now(workers_t *all)
{
    item_t **at = &all->lane[LANE_NOW].first;

    while (*at && !(*at)->cancelled && has_to_wait(all, *at))
        at = &(*at)->next;
    return unhang(&all->lane[LANE_NOW], at);
}

/* Neither another worker nor the link is busy. Asks with the lock given up, inside a call. */
static bool link_is_idle(worker_t *worker, uint32_t context)
{
    workers_t *all = worker->all;
    bool idle = true;

    for (unsigned i = 0; i < all->n; i++)
        if (all->call[i].active)
            return false;
    if (!all->calls.idle || is_gone(all, context))
        return true;
    enter(all, worker->index, context, NULL);
    pthread_mutex_unlock(&all->lock);
    idle = all->calls.idle(all->calls.ctx, context);
    pthread_mutex_lock(&all->lock);
    leave(all, worker->index);
    return idle;
}

/* There is nothing to do just now: what the first piece would have to wait for. */
static bool prepare_itself(worker_t *worker)
{
    workers_t *all = worker->all;
    uint32_t context = all->expected;

    if (worker->ready == context)
        return false;
    worker->ready = context;
    if (!is_gone(all, context)) {
        enter(all, worker->index, context, NULL);
        pthread_mutex_unlock(&all->lock);
        all->calls.prepare(all->calls.ctx, worker->index, context);
        pthread_mutex_lock(&all->lock);
        leave(all, worker->index);
    }
    return true;
}

/* Waits for something to do; NULL = there is nothing more to come. With the lock held. */
static item_t *next_item(worker_t *worker)
{
    workers_t *all = worker->all;
    item_t *item;

    while (!(item = pop_now(all))) {
        struct timespec soon = deadline(POLL_NS);

        if (all->stopping) {
            for (lane_t lane = 0; lane < LANES && !item; lane++)
                item = pop(all, lane);
            return item;
        }
        if (prepare_itself(worker))
            continue;
        if (!all->lane[LANE_IDLE].first || all->polling) {
            pthread_cond_wait(&all->work, &all->lock);
            continue;
        }
        all->polling = true;
        if (!link_is_idle(worker, all->lane[LANE_IDLE].first->context))
            pthread_cond_timedwait(&all->work, &all->lock, &soon);
        else if (!all->lane[LANE_NOW].first)
            item = pop(all, LANE_IDLE);
        all->polling = false;
        if (item)
            break;
    }
    return item;
}

/* Deals with a piece. Called and left with the lock held. */
static void serve(worker_t *worker, item_t *taken)
{
    workers_t *all = worker->all;
    item_t item = *taken;
    um_hint_result_t result = UM_HINT_CANCELLED;
    uint64_t start = 0, duration = 0;
    int32_t error = 0;

    taken->next = all->unused;
    all->unused = taken;
    if (!item.cancelled && !all->stopping && !is_gone(all, item.context)) {
        enter(all, worker->index, item.context, &item);
        pthread_mutex_unlock(&all->lock);
        start = now_ns();
        error = all->calls.apply(all->calls.ctx, worker->index, item.context, &item.hint);
        duration = now_ns() - start;
        if (error != UM_WORKERS_GONE)
            result = error ? UM_HINT_FAILED : UM_HINT_APPLIED;
        error = result == UM_HINT_FAILED ? error : 0;
        pthread_mutex_lock(&all->lock);
        leave(all, worker->index);
    } else {
        pthread_cond_broadcast(&all->left);
    }
    pthread_mutex_unlock(&all->lock);
    if (all->base.done)
        all->base.done(all->base.done_ctx, &item.hint, result, error, duration);
    pthread_mutex_lock(&all->lock);
}

static void *run(void *arg)
{
    worker_t *worker = arg;
    workers_t *all = worker->all;
    item_t *item;

    if (all->calls.start)
        all->calls.start(all->calls.ctx, worker->index);
    pthread_mutex_lock(&all->lock);
    while ((item = next_item(worker)))
        serve(worker, item);
    all->running--;
    pthread_cond_broadcast(&all->left);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* With the lock held. Some workers are better than none. */
static void start_threads(workers_t *all)
{
    sigset_t every, before;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    while (all->started < all->n) {
        worker_t *worker = &all->worker[all->started];

        *worker = (worker_t){.all = all, .index = all->started};
        if (pthread_create(&worker->thread, NULL, run, worker) != 0)
            break;
        pthread_setname_np(worker->thread, "umrt-prefetch");
        all->started++;
        all->running++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the executor ---- */

static lane_t lane_of(const um_hint_t *hint)
{
    if (hint->kind != UM_HINT_PREFETCH)
        return LANE_NOW;
    return hint->order == UM_ORDER_AFTER  ? LANE_HELD
           : hint->order == UM_ORDER_IDLE ? LANE_IDLE
                                          : LANE_NOW;
}

static bool submit(um_executor_t *executor, const um_hint_t *hint, uint32_t context)
{
    workers_t *all = (workers_t *)executor;
    item_t *item = NULL;

    if (all->abandoned)
        return false;
    pthread_mutex_lock(&all->lock);
    if (!all->started && !all->stopping)
        start_threads(all);
    if (all->running && !all->stopping && (item = all->unused)) {
        all->unused = item->next;
        *item = (item_t){.hint = *hint, .context = context, .serial = ++all->submitted};
        append(all, lane_of(hint), item);
        pthread_cond_signal(&all->work);
    }
    pthread_mutex_unlock(&all->lock);
    return item;
}

static void prepare(um_executor_t *executor, uint32_t context)
{
    workers_t *all = (workers_t *)executor;

    if (all->abandoned || !all->calls.prepare)
        return;
    pthread_mutex_lock(&all->lock);
    if (!all->started && !all->stopping)
        start_threads(all);
    all->expected = context;
    pthread_cond_broadcast(&all->work);
    pthread_mutex_unlock(&all->lock);
}

typedef bool (*match_fn)(const void *key, uint32_t context, const um_hint_t *hint);

static bool in_range(const void *key, uint32_t context, const um_hint_t *hint)
{
    const um_hint_t *range = key;

    (void)context;
    return hint->addr < range->addr + range->bytes && range->addr < hint->addr + hint->bytes;
}

/* What a launch on key->device comes in the way of. */
static bool overtaken(const void *key, uint32_t context, const um_hint_t *hint)
{
    const um_hint_t *taken = key;

    return hint->kind == UM_HINT_PREFETCH && in_range(key, context, hint) &&
           (hint->device != taken->device || hint->order == UM_ORDER_IDLE);
}

static bool in_context(const void *key, uint32_t context, const um_hint_t *hint)
{
    (void)hint;
    return !*(const uint32_t *)key || context == *(const uint32_t *)key;
}

static bool of_launch(const void *key, uint32_t context, const um_hint_t *hint)
{
    (void)context;
    return hint->correlation == *(const uint32_t *)key && lane_of(hint) == LANE_NOW &&
           hint->kind == UM_HINT_PREFETCH;
}

/* Nobody waits for what is cancelled: a worker is to report it. With the lock held. */
static void cancel_queued(workers_t *all, match_fn match, const void *key)
{
    for (lane_t lane = 0; lane < LANES; lane++)
        for (item_t **at = &all->lane[lane].first, *item; (item = *at);) {
            bool hit = !item->cancelled && match(key, item->context, &item->hint);

            item->cancelled |= hit;
            if (hit)
                pthread_cond_broadcast(&all->left);
            if (hit && lane != LANE_NOW)
                hurry(all, &all->lane[lane], at);
            else
                at = &item->next;
        }
}

static bool is_called(const workers_t *all, match_fn match, const void *key)
{
    for (unsigned i = 0; i <= UM_WORKERS_MAX; i++)
        if (all->call[i].active &&
            match(key, all->call[i].context,
                  &(um_hint_t){.addr = all->call[i].addr, .bytes = all->call[i].bytes}))
            return true;
    return false;
}

/* With the lock held, which it gives up meanwhile. */
static void wait_for_calls(workers_t *all, match_fn match, const void *key)
{
    struct timespec end = deadline(WAIT_NS);

    while (is_called(all, match, key) &&
           pthread_cond_timedwait(&all->left, &all->lock, &end) != ETIMEDOUT)
        ;
}

static void cancel_range(um_executor_t *executor, uint64_t addr, uint64_t bytes)
{
    workers_t *all = (workers_t *)executor;
    um_hint_t range = {.addr = addr, .bytes = bytes};

    if (all->abandoned)
        return;
    pthread_mutex_lock(&all->lock);
    cancel_queued(all, in_range, &range);
    wait_for_calls(all, in_range, &range);
    pthread_mutex_unlock(&all->lock);
}

static void cancel_context(um_executor_t *executor, uint32_t context)
{
    workers_t *all = (workers_t *)executor;

    if (all->abandoned)
        return;
    pthread_mutex_lock(&all->lock);
    if (context && !is_gone(all, context))
        all->gone[all->n_gone++ % GONE] = context;
    cancel_queued(all, in_context, &context);
    wait_for_calls(all, in_context, &context);
    pthread_mutex_unlock(&all->lock);
    if (all->calls.context_gone)
        all->calls.context_gone(all->calls.ctx, context);
}

static void cancel_launch(um_executor_t *executor, uint32_t correlation)
{
    workers_t *all = (workers_t *)executor;

    if (all->abandoned)
        return;
    pthread_mutex_lock(&all->lock);
    cancel_queued(all, of_launch, &correlation);
    pthread_mutex_unlock(&all->lock);
}

static void overtake(um_executor_t *executor, uint64_t addr, uint64_t bytes, int32_t device)
{
    workers_t *all = (workers_t *)executor;
    um_hint_t taken = {.addr = addr, .bytes = bytes, .device = device};

    if (all->abandoned)
        return;
    pthread_mutex_lock(&all->lock);
    cancel_queued(all, overtaken, &taken);
    pthread_mutex_unlock(&all->lock);
}

static void wait_over(um_executor_t *executor, uint32_t sync)
{
    workers_t *all = (workers_t *)executor;

    if (all->abandoned)
        return;
    pthread_mutex_lock(&all->lock);
    for (item_t **at = &all->lane[LANE_HELD].first, *item; (item = *at);)
        if (item->hint.correlation == sync)
            hurry(all, &all->lane[LANE_HELD], at);
        else
            at = &item->next;
    pthread_mutex_unlock(&all->lock);
}

/* Pieces up to `last` that may go at once, or are inside the driver. */
static bool is_left(const workers_t *all, uint32_t context, uint64_t last)
{
    for (const item_t *item = all->lane[LANE_NOW].first; item; item = item->next)
        if (!item->cancelled && item->context == context && item->serial <= last)
            return true;
    for (unsigned i = 0; i < all->n; i++) {
        const call_t *call = &all->call[i];

        if (call->active && call->context == context && call->serial && call->serial <= last)
            return true;
    }
    return false;
}

/* What comes meanwhile is for other launches: another thread's would go on for ever. */
static bool catch_up(um_executor_t *executor, uint32_t context)
{
    workers_t *all = (workers_t *)executor;
    struct timespec end = deadline(WAIT_NS);
    bool in_time = true;
    uint64_t last;

    if (all->abandoned)
        return true;
    pthread_mutex_lock(&all->lock);
    last = all->submitted;
    while (in_time && !all->stopping && is_left(all, context, last))
        in_time = pthread_cond_timedwait(&all->left, &all->lock, &end) != ETIMEDOUT;
    pthread_mutex_unlock(&all->lock);
    return in_time;
}

static bool free_bytes(um_executor_t *executor, uint32_t context, uint64_t *free, uint64_t *total)
{
    workers_t *all = (workers_t *)executor;
    bool known = false;

    if (all->abandoned)
        return false;
    pthread_mutex_lock(&all->lock);
    if (!all->stopping && !is_gone(all, context)) {
        enter(all, ASKER, context, NULL);
        pthread_mutex_unlock(&all->lock);
        known = all->calls.free_bytes(all->calls.ctx, context, free, total);
        pthread_mutex_lock(&all->lock);
        leave(all, ASKER);
    }
    pthread_mutex_unlock(&all->lock);
    return known;
}

static void stop(um_executor_t *executor)
{
    workers_t *all = (workers_t *)executor;
    struct timespec end = deadline(STOP_NS);

    if (all->abandoned)
        return;
    pthread_mutex_lock(&all->lock);
    all->stopping = true;
    pthread_cond_broadcast(&all->work);
    pthread_cond_broadcast(&all->left);
    while (all->running && pthread_cond_timedwait(&all->left, &all->lock, &end) != ETIMEDOUT)
        ;
    /* A worker that is stuck in the driver is left there: the program wants to end. */
    for (unsigned i = 0; i < all->started && !all->running; i++)
        pthread_join(all->worker[i].thread, NULL);
    if (!all->running)
        all->started = 0;
    pthread_mutex_unlock(&all->lock);
}

static void abandon(um_executor_t *executor)
{
    ((workers_t *)executor)->abandoned = true;
}

static void release(um_executor_t *executor)
{
    workers_t *all = (workers_t *)executor;

    if (all->running)
        return; /* leaked on purpose: a thread is still inside */
    if (all->calls.release)
        all->calls.release(all->calls.ctx);
    pthread_cond_destroy(&all->left);
    pthread_cond_destroy(&all->work);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

um_status_t um_workers_new(const um_workers_calls_t *calls, unsigned n_workers, um_executor_t **out)
{
    static const um_executor_ops_t ops = {.name = "workers",
                                          .submit = submit,
                                          .prepare = prepare,
                                          .cancel_range = cancel_range,
                                          .cancel_context = cancel_context,
                                          .cancel_launch = cancel_launch,
                                          .overtake = overtake,
                                          .wait_over = wait_over,
                                          .catch_up = catch_up,
                                          .free_bytes = free_bytes,
                                          .stop = stop,
                                          .abandon = abandon,
                                          .free = release};
    workers_t *all;
    pthread_condattr_t monotonic;

    if (!n_workers || n_workers > UM_WORKERS_MAX)
        return UM_ERR_INVALID;
    all = calloc(1, sizeof(*all));
    if (!all)
        return UM_ERR_NO_MEMORY;
    all->base.ops = &ops;
    all->base.lacks_kinds = calls->lacks_kinds;
    all->base.lacks_orders = calls->lacks_orders;
    all->calls = *calls;
    all->n = n_workers;
    for (lane_t lane = 0; lane < LANES; lane++)
        all->lane[lane].end = &all->lane[lane].first;
    for (unsigned i = 0; i < QUEUE; i++) {
        all->pool[i].next = all->unused;
        all->unused = &all->pool[i];
    }
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&all->work, &monotonic);
    pthread_cond_init(&all->left, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = &all->base;
    return UM_OK;
}

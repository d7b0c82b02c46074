/* The queue and its threads: order, cancelling, bounded waits, contexts that go away. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "exec/workers.h"

#define MIB       ((uint64_t)1 << 20)
#define WAITED_NS 100000000u /* at most, for somebody inside the driver */

/* What the pieces do: they wait while the gate is shut. */
typedef struct driver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;
    unsigned inside, applied, started;
    uint64_t order[4096];
    uint32_t kind[4096];
    _Atomic unsigned dead_context_calls;
    _Atomic uint32_t dead_context;
    int32_t error;
    bool busy;            /* the link */
    _Atomic bool endless; /* each piece submits another */
    unsigned asked;
} driver_t;

typedef struct told {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n, by[UM_HINT_RESULT_COUNT];
    int32_t error;
} told_t;

static bool submit(uint64_t n, uint32_t context, uint32_t correlation);

static driver_t *driver;
static told_t *told;
static um_executor_t *executor;

static void start(void *ctx, unsigned worker)
{
    driver_t *d = ctx;

    (void)worker;
    pthread_mutex_lock(&d->lock);
    d->started++;
    pthread_mutex_unlock(&d->lock);
}

static int32_t apply(void *ctx, unsigned worker, uint32_t context, const um_hint_t *hint)
{
    driver_t *d = ctx;

    (void)worker;
    if (context == d->dead_context)
        d->dead_context_calls++;
    if (d->endless)
        submit(0, context, 1);
    pthread_mutex_lock(&d->lock);
    d->inside++;
    pthread_cond_broadcast(&d->changed);
    while (d->shut)
        pthread_cond_wait(&d->changed, &d->lock);
    d->inside--;
    d->kind[d->applied % 4096] = hint->kind;
    d->order[d->applied++ % 4096] = hint->addr;
    pthread_mutex_unlock(&d->lock);
    return d->error;
}

static bool is_idle(void *ctx, uint32_t context)
{
    driver_t *d = ctx;
    bool idle;

    (void)context;
    pthread_mutex_lock(&d->lock);
    d->asked++;
    pthread_cond_broadcast(&d->changed);
    idle = !d->busy;
    pthread_mutex_unlock(&d->lock);
    return idle;
}

static bool free_bytes(void *ctx, uint32_t context, uint64_t *free, uint64_t *total)
{
    (void)ctx;
    *free = *total = context * MIB;
    return true;
}

static void done(void *ctx, const um_hint_t *hint, um_hint_result_t result, int32_t error,
                 uint64_t duration_ns)
{
    told_t *t = ctx;

    (void)hint;
    (void)duration_ns;
    pthread_mutex_lock(&t->lock);
    t->n++;
    t->by[result]++;
    t->error = error;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void begin(unsigned n)
{
    um_workers_calls_t calls = {
        .name = "test", .start = start, .apply = apply, .idle = is_idle, .free_bytes = free_bytes};

    driver = calloc(1, sizeof(*driver));
    told = calloc(1, sizeof(*told));
    pthread_mutex_init(&driver->lock, NULL);
    pthread_cond_init(&driver->changed, NULL);
    pthread_mutex_init(&told->lock, NULL);
    pthread_cond_init(&told->changed, NULL);
    calls.ctx = driver;
    cr_assert_eq(um_workers_new(&calls, n, &executor), UM_OK);
    executor->done = done;
    executor->done_ctx = told;
}

static void end(void)
{
    executor->ops->stop(executor);
    executor->ops->free(executor);
    free(driver);
    free(told);
}

static bool submit_as(uint32_t kind, uint32_t order, uint64_t n, uint32_t context,
                      uint32_t correlation)
{
    um_hint_t hint = {.kind = kind,
                      .order = order,
                      .addr = n * MIB,
                      .bytes = MIB,
                      .correlation = correlation,
                      .who = "test",
                      .why = "test"};

    return executor->ops->submit(executor, &hint, context);
}

static bool submit(uint64_t n, uint32_t context, uint32_t correlation)
{
    return submit_as(UM_HINT_PREFETCH, UM_ORDER_RACING, n, context, correlation);
}

static void set_busy(bool busy)
{
    pthread_mutex_lock(&driver->lock);
    driver->busy = busy;
    pthread_mutex_unlock(&driver->lock);
}

static void wait_asked(unsigned n)
{
    pthread_mutex_lock(&driver->lock);
    while (driver->asked < n)
        pthread_cond_wait(&driver->changed, &driver->lock);
    pthread_mutex_unlock(&driver->lock);
}

static void set_shut(bool shut)
{
    pthread_mutex_lock(&driver->lock);
    driver->shut = shut;
    pthread_cond_broadcast(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}

static void wait_inside(unsigned n)
{
    pthread_mutex_lock(&driver->lock);
    while (driver->inside < n)
        pthread_cond_wait(&driver->changed, &driver->lock);
    pthread_mutex_unlock(&driver->lock);
}

static void wait_told(unsigned n)
{
    pthread_mutex_lock(&told->lock);
    while (told->n < n)
        pthread_cond_wait(&told->changed, &told->lock);
    pthread_mutex_unlock(&told->lock);
}

Test(workers, one_takes_pieces_in_order)
{
    begin(1);
    for (unsigned i = 0; i < 100; i++)
        cr_assert(submit(i, 1, 1));
    wait_told(100);
    for (unsigned i = 0; i < 100; i++)
        cr_assert_eq(driver->order[i], i * MIB);
    cr_assert_eq(told->by[UM_HINT_APPLIED], 100);
    end();
}

Test(workers, two_take_the_first_two_pieces_at_once)
{
    begin(2);
    set_shut(true);
    for (unsigned i = 0; i < 10; i++)
        cr_assert(submit(i, 1, 1));
    wait_inside(2);
    set_shut(false);
    wait_told(10);
    cr_assert_eq(driver->started, 2);
    end();
}

Test(workers, failures_carry_their_error)
{
    begin(1);
    driver->error = 719;
    cr_assert(submit(0, 1, 1));
    wait_told(1);
    cr_assert_eq(told->by[UM_HINT_FAILED], 1);
    cr_assert_eq(told->error, 719);
    end();
}

Test(workers, what_is_gone_counts_as_cancelled)
{
    begin(1);
    driver->error = UM_WORKERS_GONE;
    cr_assert(submit(0, 1, 1));
    wait_told(1);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 1);
    cr_assert_eq(told->error, 0);
    end();
}

Test(workers, a_full_queue_refuses)
{
    unsigned taken = 0;

    begin(1);
    set_shut(true);
    while (submit(taken, 1, 1))
        taken++;
    cr_assert_geq(taken, 1024);
    set_shut(false);
    wait_told(taken);
    end();
}

Test(workers, cancelling_a_range_drops_what_is_queued_there)
{
    begin(1);
    set_shut(true);
    for (unsigned i = 0; i < 10; i++)
        cr_assert(submit(i, 1, 1));
    wait_inside(1); /* piece 0 */
    executor->ops->cancel_range(executor, 4 * MIB, 2 * MIB);
    set_shut(false);
    wait_told(10);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 2);
    cr_assert_eq(told->by[UM_HINT_APPLIED], 8);
    for (unsigned i = 0; i < 8; i++)
        cr_assert(driver->order[i] != 4 * MIB && driver->order[i] != 5 * MIB);
    end();
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *open_later(void *arg)
{
    (void)arg;
    set_shut(false);
    return NULL;
}

Test(workers, cancelling_waits_for_what_is_inside_the_driver)
{
    pthread_t opener;
    uint64_t start;

    begin(1);
    set_shut(true);
    cr_assert(submit(0, 1, 1));
    wait_inside(1);
    pthread_create(&opener, NULL, open_later, NULL);
    start = now_ns();
    executor->ops->cancel_range(executor, 0, MIB);
    pthread_mutex_lock(&driver->lock);
    /* On a busy machine the opener may come later than anybody waits for. */
    cr_assert(driver->inside == 0 || now_ns() - start >= WAITED_NS);
    pthread_mutex_unlock(&driver->lock);
    pthread_join(opener, NULL);
    end();
}

Test(workers, cancelling_does_not_wait_for_ever)
{
    begin(1);
    set_shut(true);
    cr_assert(submit(0, 1, 1));
    wait_inside(1);
    executor->ops->cancel_range(executor, 0, MIB); /* the driver never answers */
    executor->ops->cancel_context(executor, 1);
    cr_assert_eq(driver->inside, 1);
    set_shut(false);
    wait_told(1);
    end();
}

Test(workers, cancelling_a_launch_waits_for_nothing)
{
    begin(1);
    set_shut(true);
    for (unsigned i = 0; i < 6; i++)
        cr_assert(submit(i, 1, 1 + i % 2));
    wait_inside(1);
    executor->ops->cancel_launch(executor, 2);
    set_shut(false);
    wait_told(6);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 3);
    end();
}

Test(workers, what_is_for_idle_times_comes_last_and_waits_for_the_link)
{
    begin(2);
    set_busy(true);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_IDLE, i, 1, 1));
    wait_asked(2);
    for (unsigned i = 3; i < 6; i++)
        cr_assert(submit(i, 1, 2));
    wait_told(3);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_geq(driver->order[i], 3 * MIB, "they overtake");
    wait_asked(4);
    cr_assert_eq(told->n, 3);
    set_busy(false);
    wait_told(6);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(driver->order[3 + i], i * MIB);
    end();
}

Test(workers, idle_pieces_go_one_at_a_time)
{
    begin(2);
    set_shut(true);
    for (unsigned i = 0; i < 4; i++)
        cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_IDLE, i, 1, 1));
    wait_inside(1);
    cr_assert(submit(4, 1, 2)); /* the other worker is free for this */
    wait_inside(2);
    set_shut(false);
    wait_told(5);
    cr_assert_eq(told->by[UM_HINT_APPLIED], 5);
    end();
}

Test(workers, what_is_for_after_a_wait_is_held_until_that_is_over)
{
    begin(1);
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 0, 1, 40));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 1, 1, 41));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 2, 1, 40));
    cr_assert(submit(3, 1, 1));
    wait_told(1);
    cr_assert_eq(driver->order[0], 3 * MIB);
    executor->ops->wait_over(executor, 40);
    wait_told(3);
    cr_assert_eq(driver->order[1], 0);
    cr_assert_eq(driver->order[2], 2 * MIB);
    executor->ops->wait_over(executor, 42);
    cr_assert(submit(4, 1, 1));
    wait_told(4);
    executor->ops->stop(executor); /* the one never called for */
    cr_assert_eq(told->by[UM_HINT_APPLIED], 4);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 1);
    end();
}

Test(workers, a_launch_overtakes_what_goes_elsewhere_and_what_is_for_idle_times)
{
    begin(1);
    set_busy(true);
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_IDLE, 0, 1, 1));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 0, 1, 40));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 7, 1, 40));
    executor->ops->overtake(executor, 0, MIB, 0); /* the hints' own device */
    wait_told(1);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 1, "what is for idle times");
    executor->ops->overtake(executor, 0, MIB, 1);
    wait_told(2);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 2);
    executor->ops->wait_over(executor, 40);
    wait_told(3);
    cr_assert_eq(told->by[UM_HINT_APPLIED], 1);
    cr_assert_eq(driver->order[0], 7 * MIB);
    end();
}

Test(workers, advice_is_held_for_nothing_and_cancelled_by_no_launch)
{
    begin(1);
    set_busy(true);
    set_shut(true);
    cr_assert(submit(0, 1, 1));
    wait_inside(1);
    cr_assert(submit_as(UM_HINT_READ_MOSTLY, UM_ORDER_AFTER, 1, 1, 1));
    cr_assert(submit_as(UM_HINT_ACCESSED_BY, UM_ORDER_IDLE, 2, 1, 1));
    executor->ops->cancel_launch(executor, 1);
    executor->ops->overtake(executor, 0, 3 * MIB, 5);
    set_shut(false);
    wait_told(3);
    cr_assert_eq(told->by[UM_HINT_APPLIED], 3);
    end();
}

/* Else what was set last might not be what holds. */
Test(workers, advice_for_one_range_goes_one_after_the_other)
{
    bool set_before = false;

    begin(2);
    set_shut(true);
    cr_assert(submit_as(UM_HINT_READ_MOSTLY, UM_ORDER_RACING, 1, 1, 1));
    wait_inside(1);
    cr_assert(submit_as(UM_HINT_UNSET_READ_MOSTLY, UM_ORDER_RACING, 1, 1, 1));
    cr_assert(submit_as(UM_HINT_READ_MOSTLY, UM_ORDER_RACING, 2, 1, 1)); /* elsewhere: at once */
    wait_inside(2);
    set_shut(false);
    wait_told(3);
    for (unsigned i = 0; driver->kind[i] != UM_HINT_UNSET_READ_MOSTLY; i++)
        set_before |= driver->order[i] == MIB;
    cr_assert(set_before);
    end();
}

Test(workers, held_and_idle_pieces_go_with_their_range_and_context)
{
    begin(1);
    set_busy(true);
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_IDLE, 0, 1, 1));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 1, 1, 40));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 2, 2, 40));
    executor->ops->cancel_range(executor, 0, 2 * MIB);
    wait_told(2);
    executor->ops->cancel_context(executor, 2);
    wait_told(3);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 3);
    end();
}

Test(workers, a_context_that_went_is_never_used_again)
{
    uint64_t free = 0, total;

    begin(2);
    cr_assert(executor->ops->free_bytes(executor, 7, &free, &total));
    cr_assert_eq(free, 7 * MIB);
    executor->ops->cancel_context(executor, 7);
    driver->dead_context = 7;
    for (unsigned i = 0; i < 20; i++)
        cr_assert(submit(i, i % 2 ? 7 : 8, 1));
    wait_told(20);
    cr_assert_eq(driver->dead_context_calls, 0);
    cr_assert_eq(told->by[UM_HINT_CANCELLED], 10);
    cr_assert_not(executor->ops->free_bytes(executor, 7, &free, &total));
    end();
}

Test(workers, stopping_cancels_the_rest_and_refuses_more)
{
    begin(2);
    set_shut(true);
    for (unsigned i = 0; i < 50; i++)
        cr_assert(submit(i, 1, 1));
    wait_inside(2);
    set_shut(false);
    executor->ops->stop(executor);
    cr_assert_eq(told->n, 50);
    cr_assert_not(submit(0, 1, 1));
    end();
}

Test(workers, an_unused_one_has_no_threads_to_stop)
{
    begin(2);
    end();
}

Test(workers, numbers_out_of_range_are_refused)
{
    um_workers_calls_t calls = {.name = "test"};

    cr_assert_eq(um_workers_new(&calls, 0, &executor), UM_ERR_INVALID);
    cr_assert_eq(um_workers_new(&calls, UM_WORKERS_MAX + 1, &executor), UM_ERR_INVALID);
}

/* ---- catching up: what was launched is in the driver before somebody is let in who closes it ---- */

static bool catch_up(uint32_t context)
{
    return executor->ops->catch_up(executor, context);
}

Test(workers, catching_up_waits_for_what_is_queued_and_inside_the_driver)
{
    pthread_t opener;
    bool all_in;

    begin(2);
    set_shut(true);
    for (unsigned i = 0; i < 20; i++)
        cr_assert(submit(i, 1, 1));
    wait_inside(2);
    pthread_create(&opener, NULL, open_later, NULL);
    all_in = catch_up(1); /* not on a busy machine, where the opener may come too late */
    pthread_mutex_lock(&driver->lock);
    cr_assert(driver->applied == 20 || !all_in, "%u are in", driver->applied);
    pthread_mutex_unlock(&driver->lock);
    pthread_join(opener, NULL);
    end();
}

Test(workers, catching_up_does_not_wait_for_ever)
{
    begin(1);
    set_shut(true);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(submit(i, 1, 1));
    wait_inside(1);
    cr_assert_not(catch_up(1), "the driver never answers");
    cr_assert_eq(told->n, 0);
    set_shut(false);
    wait_told(3);
    end();
}

/* Each of these would be waited for in vain. */
Test(workers, catching_up_does_not_wait_for_what_is_of_no_use_now)
{
    begin(2);
    set_busy(true);
    set_shut(true);
    cr_assert(submit(0, 2, 1)); /* of another context: inside the driver, and queued */
    cr_assert(submit(1, 2, 1));
    wait_inside(2);
    cr_assert(submit(2, 2, 1));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_IDLE, 3, 1, 1));
    cr_assert(submit_as(UM_HINT_PREFETCH, UM_ORDER_AFTER, 4, 1, 40));
    cr_assert(submit(5, 1, 7)); /* cancelled, and no worker is free to say so */
    executor->ops->cancel_launch(executor, 7);
    cr_assert(catch_up(1));
    cr_assert_not(catch_up(2), "there is something to wait for");
    cr_assert_eq(told->n, 0);
    set_shut(false);
    wait_told(4);
    end();
}

/* Another thread that launches without rest would hold it up for as long as it may wait. */
Test(workers, catching_up_does_not_wait_for_what_comes_meanwhile)
{
    bool all_in = false;

    begin(1);
    driver->endless = true; /* there is always one queued or inside */
    cr_assert(submit(0, 1, 1));
    for (int i = 0; i < 10 && !all_in; i++)
        all_in = catch_up(1);
    cr_assert(all_in);
    driver->endless = false;
    end();
}

static void *cancel_it(void *arg)
{
    (void)arg;
    executor->ops->cancel_range(executor, MIB, MIB);
    return NULL;
}

Test(workers, catching_up_ends_when_what_it_waits_for_is_cancelled)
{
    const unsigned rounds = 10;
    unsigned in_time = 0;
    pthread_t canceller;

    begin(1);
    set_shut(true);
    cr_assert(submit(0, 2, 1));
    wait_inside(1); /* the only worker, in another context: it says nothing of what is cancelled */
    for (unsigned i = 0; i < rounds; i++) {
        cr_assert(submit(1, 1, 1));
        pthread_create(&canceller, NULL, cancel_it, NULL);
        in_time += catch_up(1);
        pthread_join(canceller, NULL);
    }
    cr_assert_gt(in_time, rounds / 2); /* on a busy machine it may come too late for some */
    cr_assert_eq(told->n, 0);
    set_shut(false);
    wait_told(1 + rounds);
    end();
}

/* It is not served, but no longer there either. */
Test(workers, catching_up_does_not_wait_for_a_context_that_went)
{
    bool all_in = false;

    begin(1);
    executor->ops->cancel_context(executor, 7);
    for (unsigned i = 0; i < 10 && !all_in; i++) {
        for (unsigned k = 0; k < 100; k++)
            cr_assert(submit(k, 7, 1));
        all_in = catch_up(7);
        wait_told((i + 1) * 100);
    }
    cr_assert(all_in);
    cr_assert_eq(driver->applied, 0);
    end();
}

static void *stop_it(void *arg)
{
    (void)arg;
    executor->ops->stop(executor);
    return NULL;
}

Test(workers, catching_up_is_over_when_they_stop)
{
    pthread_t stopper;

    begin(1);
    set_shut(true);
    cr_assert(submit(0, 1, 1));
    wait_inside(1);
    pthread_create(&stopper, NULL, stop_it, NULL);
    while (submit(1, 1, 1)) /* until it has begun */
        sched_yield();
    cr_assert(catch_up(1), "though one is inside");
    cr_assert_eq(driver->inside, 1);
    set_shut(false);
    pthread_join(stopper, NULL);
    end();
}

/* Threads that launch while others free: for the race detector. */
static _Atomic unsigned accepted;

static void *launch_much(void *arg)
{
    for (unsigned i = 0; i < 2000; i++)
        accepted += submit_as(UM_HINT_PREFETCH, i % 4, i % 64, 1 + (uintptr_t)arg, i);
    return NULL;
}

static void *free_much(void *arg)
{
    uint64_t free, total;

    for (unsigned i = 0; i < 500; i++) {
        executor->ops->cancel_range(executor, i % 64 * MIB, MIB);
        executor->ops->cancel_launch(executor, i);
        executor->ops->overtake(executor, i % 64 * MIB, 2 * MIB, (int32_t)(i % 2));
        executor->ops->wait_over(executor, i * 4);
        catch_up(1 + (uintptr_t)arg);
        executor->ops->free_bytes(executor, 1 + (uintptr_t)arg, &free, &total);
        if (i == 400)
            executor->ops->cancel_context(executor, 1 + (uintptr_t)arg);
    }
    return NULL;
}

Test(workers, launching_while_others_free)
{
    pthread_t thread[4];

    begin(2);
    accepted = 0;
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, i % 2 ? free_much : launch_much, (void *)(i / 2));
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    executor->ops->stop(executor); /* what is still held */
    cr_assert_eq(told->n, accepted);
    end();
}

#include "core/bus.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 6
#define POSTS   3000

static um_bus_t *bus;
static _Atomic uint64_t posted, refused, clock_ns;

/* Written by the bus thread only, read after a stop or a sync. */
static struct {
    uint64_t n, lost, disorder, early_uses;
    uint32_t last[1 << 16]; /* by poster */
    bool defined[1 << 16];
} seen;

static void on_event(void *ctx, const um_event_t *event)
{
    (void)ctx;
    switch (event->type) {
    case UM_EV_LOSS:
        seen.lost += event->u.loss.count;
        return;
    case UM_EV_MARK:
        seen.disorder += event->u.mark.id != seen.last[event->tid] + 1u;
        seen.last[event->tid] = (uint32_t)event->u.mark.id;
        seen.disorder += event->u.mark.name[0] != 'n';
        break;
    case UM_EV_KERNEL:
        seen.defined[event->u.kernel.kernel] = true;
        break;
    case UM_EV_LAUNCH:
        seen.early_uses += !seen.defined[event->u.launch.kernel];
        break;
    default:
        break;
    }
    seen.n++;
}

static void make(size_t ring_bytes, uint32_t wait_ms)
{
    const um_sink_t sink = {.event = on_event};

    memset(&seen, 0, sizeof seen);
    atomic_store(&posted, 0);
    atomic_store(&refused, 0);
    cr_assert_eq(um_bus_new(ring_bytes, wait_ms, &bus), UM_OK);
    cr_assert_eq(um_bus_add_sink(bus, &sink), UM_OK);
    cr_assert_eq(um_bus_start(bus), UM_OK);
}

static void *post_marks(void *arg)
{
    uint32_t poster = (uint32_t)(uintptr_t)arg;

    for (uint32_t i = 1; i <= POSTS; i++) {
        um_event_t event = {.time_ns = atomic_fetch_add(&clock_ns, 1),
                            .type = UM_EV_MARK,
                            .tid = poster,
                            .u.mark = {.domain = "", .name = "name", .id = i}};

        if (um_bus_post(bus, &event, i % 64 == 0))
            atomic_fetch_add(&posted, 1);
        else
            atomic_fetch_add(&refused, 1);
        if (i % 1000 == 0)
            um_bus_sync(bus);
    }
    return NULL;
}

static void run_posters(uint32_t first)
{
    pthread_t thread[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, post_marks, (void *)(first + i)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

Test(bus_threads, nothing_is_lost_or_reordered_while_threads_come_and_go)
{
    make(1 << 16, 60000);
    for (uint32_t round = 0; round < 5; round++)
        run_posters(round * THREADS);
    um_bus_stop(bus);
    cr_assert_eq(atomic_load(&refused), 0);
    cr_assert_eq(seen.n, 5 * THREADS * POSTS);
    cr_assert_eq(seen.disorder, 0);
    cr_assert_eq(um_bus_posted(bus), seen.n, "rings of ended threads are counted on");
    um_bus_free(bus);
}

Test(bus_threads, every_refused_post_is_counted_and_reported)
{
    make(4096, 0); /* no waiting */
    run_posters(0);
    um_bus_stop(bus);
    cr_assert_eq(seen.n, atomic_load(&posted));
    cr_assert_eq(seen.lost, atomic_load(&refused));
    cr_assert_eq(um_bus_lost(bus), atomic_load(&refused));
    um_bus_free(bus);
}

static _Atomic uint32_t last_defined, launched;
static _Atomic bool stop;

/* A launch is posted by whoever sees the definition, whose time is not later. */
static void *launch_what_is_defined(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        um_event_t event = {.type = UM_EV_LAUNCH};

        event.u.launch.kernel = atomic_load(&last_defined);
        event.time_ns = atomic_fetch_add(&clock_ns, 1);
        if (event.u.launch.kernel != 0 && um_bus_post(bus, &event, true))
            atomic_fetch_add(&launched, 1);
    }
    return NULL;
}

Test(bus_threads, a_definition_comes_before_its_uses_by_other_threads)
{
    pthread_t thread[THREADS];

    make(1 << 16, 60000);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, launch_what_is_defined, NULL), 0);
    for (uint32_t k = 1; k < 5000; k++) {
        um_event_t event = {.type = UM_EV_KERNEL, .u.kernel = {.kernel = k, .name = "_Z1kv"}};

        event.time_ns = atomic_fetch_add(&clock_ns, 1);
        um_bus_post(bus, &event, false);
        atomic_store(&last_defined, k);
        /* Where the machine is busy the others may not have run yet. */
        while (k % 500 == 0 && atomic_load(&launched) < k)
            sched_yield();
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    um_bus_stop(bus);
    cr_assert_eq(um_bus_lost(bus), 0);
    cr_assert_gt(seen.n, 5000);
    cr_assert_eq(seen.early_uses, 0);
    um_bus_free(bus);
}

static void *post_until_refused(void *arg)
{
    um_event_t event = {.type = UM_EV_SYNC};

    (void)arg;
    while (um_bus_post(bus, &event, false)) {
        atomic_fetch_add(&posted, 1);
        if (atomic_load(&posted) % 100 == 0)
            um_bus_sync(bus);
    }
    return NULL;
}

Test(bus_threads, a_stop_during_posts_ends_them_all)
{
    pthread_t thread[THREADS];

    make(1 << 16, 60000);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, post_until_refused, NULL), 0);
    while (atomic_load(&posted) < 2000)
        um_bus_sync(bus);
    um_bus_stop(bus);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    cr_assert_leq(seen.n, atomic_load(&posted));
    cr_assert_geq(seen.n, 2000);
    um_bus_free(bus);
}

#include "core/bus.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the sink saw; touched by the bus thread, read after a sync or a stop. */
static struct {
    uint64_t n, marks, loss_events, lost, lost_bytes, idle;
    uint64_t last_ns;
    bool disorder;
    char text[64];
    sigset_t blocked;
    bool stuck; /* while true the sink waits */
} seen;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void on_event(void *ctx, const um_event_t *event)
{
    (void)ctx;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    seen.n++;
    pthread_sigmask(SIG_BLOCK, NULL, &seen.blocked);
    if (event->type == UM_EV_LOSS) {
        seen.loss_events++;
        seen.lost += event->u.loss.count;
        seen.lost_bytes += event->u.loss.bytes;
        cr_assert_str_eq(event->u.loss.reason, "queue full");
        return;
    }
    seen.disorder |= event->time_ns < seen.last_ns;
    seen.last_ns = event->time_ns;
    if (event->type == UM_EV_MARK)
        snprintf(seen.text, sizeof seen.text, "%s/%s", event->u.mark.domain, event->u.mark.name);
}

static void on_idle(void *ctx)
{
    (void)ctx;
    seen.idle++;
}

static um_bus_t *bus;

static void make(size_t ring_bytes, uint32_t wait_ms)
{
    const um_sink_t sink = {.event = on_event, .idle = on_idle};

    memset(&seen, 0, sizeof seen);
    cr_assert_eq(um_bus_new(ring_bytes, wait_ms, &bus), UM_OK);
    cr_assert_eq(um_bus_add_sink(bus, &sink), UM_OK);
}

static bool post(uint64_t time_ns)
{
    um_event_t event = {.time_ns = time_ns, .type = UM_EV_SYNC};

    return um_bus_post(bus, &event, false);
}

Test(bus, hands_over_a_copy_of_the_event_and_its_strings)
{
    char name[] = "phase";
    um_event_t event = {.type = UM_EV_MARK, .u.mark = {.domain = "umrt", .name = name}};

    make(1 << 16, 100);
    cr_assert(um_bus_post(bus, &event, false));
    strcpy(name, "xxxxx");
    cr_assert_eq(um_bus_start(bus), UM_OK);
    um_bus_sync(bus);
    cr_assert_eq(seen.n, 1);
    cr_assert_str_eq(seen.text, "umrt/phase");
    um_bus_free(bus);
}

Test(bus, sync_waits_for_everything_posted)
{
    make(1 << 16, 1000);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    for (uint64_t round = 1; round <= 200; round++) {
        for (int i = 0; i < 50; i++)
            cr_assert(post(round));
        um_bus_sync(bus);
        cr_assert_eq(seen.n, round * 50);
    }
    cr_assert_eq(um_bus_posted(bus), 200 * 50);
    cr_assert_eq(um_bus_lost(bus), 0);
    um_bus_free(bus);
}

Test(bus, keeps_order_over_many_turns_of_the_ring)
{
    make(4096, 10000);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    for (uint64_t i = 1; i <= 20000; i++) {
        char name[200];
        um_event_t event = {.time_ns = i,
                            .type = UM_EV_MARK,
                            .u.mark = {.domain = "", .name = name}};

        memset(name, 'a', sizeof name);
        name[i % sizeof name] = '\0'; /* lengths of all kinds meet the ring's end */
        cr_assert(um_bus_post(bus, &event, false));
    }
    um_bus_stop(bus);
    cr_assert_eq(seen.n, 20000);
    cr_assert_not(seen.disorder);
    um_bus_free(bus);
}

static void *post_odd_times(void *arg)
{
    (void)arg;
    for (uint64_t t = 1; t < 200; t += 2)
        cr_assert(post(t));
    return NULL;
}

Test(bus, merges_threads_by_time_also_of_threads_that_ended)
{
    pthread_t thread;

    make(1 << 16, 100);
    for (uint64_t t = 2; t < 200; t += 2)
        cr_assert(post(t));
    pthread_create(&thread, NULL, post_odd_times, NULL);
    pthread_join(thread, NULL);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    um_bus_sync(bus);
    cr_assert_eq(seen.n, 199);
    cr_assert_not(seen.disorder);
    um_bus_free(bus);
}

Test(bus, counts_and_reports_what_a_full_ring_refused)
{
    um_event_t migrate = {.type = UM_EV_MIGRATE, .u.migrate.bytes = 4096};
    uint64_t kept = 0, refused = 0;

    make(4096, 5);
    pthread_mutex_lock(&gate); /* the sink hangs */
    cr_assert_eq(um_bus_start(bus), UM_OK);
    for (int i = 0; i < 100; i++)
        (*(um_bus_post(bus, &migrate, true) ? &kept : &refused))++;
    cr_assert_gt(refused, 0);
    cr_assert_gt(kept, 0);
    pthread_mutex_unlock(&gate);
    um_bus_sync(bus);
    cr_assert(um_bus_post(bus, &migrate, false), "room is back");
    um_bus_stop(bus);
    cr_assert_eq(um_bus_lost(bus), refused);
    cr_assert_eq(seen.lost, refused);
    cr_assert_eq(seen.lost_bytes, refused * 4096);
    cr_assert_eq(seen.n - seen.loss_events, kept + 1);
    um_bus_free(bus);
}

Test(bus, drops_an_event_that_no_ring_can_hold)
{
    char *name = malloc(100000);
    um_event_t event = {.type = UM_EV_MARK, .u.mark = {.domain = "", .name = name}};

    memset(name, 'a', 99999);
    name[99999] = '\0';
    make(4096, 10000);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    cr_assert_not(um_bus_post(bus, &event, false));
    cr_assert(post(1), "the ring goes on");
    um_bus_stop(bus);
    cr_assert_eq(seen.lost, 1);
    cr_assert_eq(seen.n, 2);
    um_bus_free(bus);
    free(name);
}

static void post_again(void *ctx, const um_event_t *event)
{
    uint64_t *left = ctx;

    if (event->type == UM_EV_SYNC && *left > 0) {
        (*left)--;
        post(event->time_ns + 1);
    }
}

Test(bus, lets_a_sink_post)
{
    uint64_t left = 1000;
    const um_sink_t again = {.ctx = &left, .event = post_again};

    make(4096, 10000);
    cr_assert_eq(um_bus_add_sink(bus, &again), UM_OK);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    cr_assert(post(1));
    while (um_bus_posted(bus) < 1001)
        um_bus_sync(bus);
    um_bus_stop(bus);
    cr_assert_eq(left, 0);
    cr_assert_eq(seen.n, 1001);
    um_bus_free(bus);
}

Test(bus, delivers_what_was_posted_before_the_stop_and_nothing_after_it)
{
    make(1 << 16, 100);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    for (int i = 0; i < 100; i++)
        cr_assert(post(1));
    um_bus_stop(bus);
    cr_assert_eq(seen.n, 100);
    cr_assert_not(post(2));
    um_bus_sync(bus);
    um_bus_stop(bus);
    cr_assert_eq(seen.n, 100);
    cr_assert_eq(um_bus_lost(bus), 0);
    cr_assert_eq(um_bus_start(bus), UM_ERR_STATE);
    um_bus_free(bus);
}

Test(bus, serves_one_thread_that_posts_to_two_buses)
{
    um_bus_t *first;

    make(4096, 100);
    first = bus;
    cr_assert_eq(um_bus_start(first), UM_OK);
    cr_assert(post(1));
    make(4096, 100);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    cr_assert(post(2));
    um_bus_stop(first);
    um_bus_stop(bus);
    cr_assert_eq(um_bus_posted(first), 1);
    cr_assert_eq(um_bus_posted(bus), 1);
    um_bus_free(first);
    cr_assert_not(post(3));
    um_bus_free(bus);
}

Test(bus, thread_takes_no_signal_of_the_program)
{
    make(4096, 100);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    cr_assert(post(1));
    um_bus_sync(bus);
    for (int s = SIGHUP; s <= SIGTERM; s++)
        cr_assert(s == SIGKILL || sigismember(&seen.blocked, s) == 1);
    um_bus_free(bus);
}

Test(bus, child_of_a_fork_goes_on_after_abandon)
{
    pid_t child;
    int status;

    make(4096, 10000);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    pthread_mutex_lock(&gate);
    cr_assert(post(1));
    child = fork();
    if (child == 0) {
        um_bus_abandon(bus);
        for (int i = 0; i < 1000; i++)
            if (post(1))
                _exit(1);
        um_bus_sync(bus);
        um_bus_stop(bus);
        um_bus_free(bus);
        _exit(um_bus_posted(bus) == 0 ? 42 : 2);
    }
    pthread_mutex_unlock(&gate);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    um_bus_stop(bus);
    cr_assert_eq(seen.n, 1);
    um_bus_free(bus);
}

Test(bus, the_end_does_not_wait_for_a_sink_that_is_stuck)
{
    make(1 << 16, 0);
    cr_assert_eq(um_bus_start(bus), UM_OK);
    pthread_mutex_lock(&gate);
    post(1);
    cr_assert_not(um_bus_stop(bus));
    cr_assert_not(post(2));
    pthread_mutex_unlock(&gate); /* the bus stays: its thread is still about */
}

/*
 * The event bus: one byte ring for each posting thread, one thread that drains them all.
 *
 * A ring has one writer (its thread) and one reader (the bus thread): `written` and `read` only grow,
 * each stored by one side with release and loaded by the other with acquire order. A record is a
 * 4-byte length, 4 bytes of kind, and a packed event; it never wraps, a filler takes the rest of the
 * ring instead. The event is handed to the sinks where it lies.
 *
 * A ring belongs to its thread and to its bus; whoever lets go last frees it. So a thread may outlive
 * the bus, and what an ended thread posted is still drained.
 */
#include "bus.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UM_RING_MIN      4096u
#define UM_RING_MAX      (UINT64_C(1) << 30)
#define UM_TICK_NS       1000000  /* between looks while events come */
#define UM_IDLE_TICK_NS  10000000 /* and after a second of silence */
#define UM_IDLE_TICKS    1000
#define UM_FULL_PAUSE_NS 50000 /* a poster's nap while its ring is full */
#define UM_RECORD_HEADER 8u

typedef struct um_ring {
    /* the thread's side */
    _Alignas(64) _Atomic uint64_t written;
    uint64_t read_seen; /* a past value of `read` */
    bool dropping;      /* the last wait for room was in vain: do not wait again */
    _Atomic uint64_t posted;
    _Atomic uint64_t lost[UM_EV_TYPE_COUNT]; /* by type; stored by the thread, read by anybody */
    _Atomic uint64_t lost_migrate_bytes;

    /* the bus thread's side */
    _Alignas(64) _Atomic uint64_t read;
    uint64_t limit_first, limit; /* what was written when the drain began, and a little later */
    uint64_t last_ns;            /* time of the last event delivered */
    uint64_t lost_said[UM_EV_TYPE_COUNT];
    uint64_t lost_bytes_said;

    /* constant, or as said */
    _Alignas(64) uint64_t bus_serial; /* whose it is */
    size_t bytes;                     /* a power of two */
    _Atomic int owners;               /* thread and bus */
    _Atomic bool orphan;              /* the thread is gone: nothing more will be written */
    struct um_ring *next_of_bus;      /* under bus->lock */
    struct um_ring *next_of_thread;   /* the thread's own */
    char *data;
} um_ring_t;

typedef enum um_bus_state {
    UM_BUS_NEW = 0,
    UM_BUS_RUNNING = 1,
    UM_BUS_STOPPED = 2, /* no posts any more; the thread drains a last time */
    UM_BUS_ABANDONED = 3
} um_bus_state_t;

/* What the bus thread does. */
typedef enum um_nap {
    UM_AWAKE = 0,
    UM_NAPPING = 1, /* until the next tick */
    UM_DOZING = 2   /* after silence: any post rings */
} um_nap_t;

#define UM_BUS_SINKS 8

struct um_bus {
    _Atomic int state;             /* um_bus_state_t */
    _Atomic uint32_t bell;         /* futex: counts the calls to look now */
    _Atomic uint32_t nap;          /* um_nap_t */
    _Atomic uint32_t syncs;        /* sync tickets drawn */
    _Atomic uint32_t synced;       /* futex: the highest ticket that is served */
    _Atomic bool done;             /* the bus thread delivers nothing more */
    _Atomic uint64_t delivered;    /* events, by the bus thread */
    _Atomic uint64_t lost_nowhere; /* posts that found no ring */
    uint64_t serial;
    size_t ring_bytes;
    uint32_t wait_ms;
    um_sink_t sink[UM_BUS_SINKS];
    unsigned n_sinks;
    pthread_t thread;

    pthread_mutex_t lock; /* of the rings' list and of the totals of freed rings */
    um_ring_t *rings;
    uint64_t gone_posted, gone_lost;

    um_ring_t **active; /* the bus thread's scratch: rings with something to drain */
    size_t max_active;
};

/* ---- futex ---- */

static void um_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    struct timespec timeout = {.tv_nsec = (long)ns};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns >= 0 ? &timeout : NULL, NULL, 0);
}

static void um_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* ---- a thread's rings ---- */

static _Thread_local um_ring_t *um_my_ring;  /* the one used last */
static _Thread_local um_ring_t *um_my_rings; /* all of them: one a bus */
static pthread_key_t um_exit_key;
static pthread_once_t um_exit_once = PTHREAD_ONCE_INIT;
static bool um_exit_ready;
static _Atomic uint64_t um_last_serial;

static void um_ring_release(um_ring_t *ring)
{
    if (atomic_fetch_sub(&ring->owners, 1) == 1) {
        free(ring->data);
        free(ring);
    }
}

/* Runs in a thread that ends. */
static void um_thread_exit(void *rings)
{
    um_ring_t *ring = rings;

    um_my_ring = NULL;
    um_my_rings = NULL;
    while (ring != NULL) {
        um_ring_t *next = ring->next_of_thread;

        atomic_store_explicit(&ring->orphan, true, memory_order_release);
        um_ring_release(ring);
        ring = next;
    }
}

static void um_exit_key_make(void)
{
    um_exit_ready = pthread_key_create(&um_exit_key, um_thread_exit) == 0;
}

static um_ring_t *um_ring_new(um_bus_t *bus)
{
    um_ring_t *ring = aligned_alloc(64, sizeof *ring);

    if (ring == NULL)
        return NULL;
    memset(ring, 0, sizeof *ring);
    ring->data = aligned_alloc(64, bus->ring_bytes);
    if (ring->data == NULL) {
        free(ring);
        return NULL;
    }
    ring->bus_serial = bus->serial;
    ring->bytes = bus->ring_bytes;
    atomic_init(&ring->owners, 2);
    return ring;
}

/* This thread's ring of the bus; made on its first post. NULL without memory. */
static um_ring_t *um_ring_mine(um_bus_t *bus)
{
    um_ring_t *ring = um_my_ring;

    if (ring != NULL && ring->bus_serial == bus->serial)
        return ring;
    for (ring = um_my_rings; ring != NULL; ring = ring->next_of_thread)
        if (ring->bus_serial == bus->serial) {
            um_my_ring = ring;
            return ring;
        }
    pthread_once(&um_exit_once, um_exit_key_make);
    if (!um_exit_ready)
        return NULL;
    ring = um_ring_new(bus);
    if (ring == NULL || pthread_setspecific(um_exit_key, ring) != 0) {
        if (ring != NULL) {
            free(ring->data);
            free(ring);
        }
        return NULL;
    }
    ring->next_of_thread = um_my_rings;
    um_my_rings = ring;
    um_my_ring = ring;
    pthread_mutex_lock(&bus->lock);
    ring->next_of_bus = bus->rings;
    bus->rings = ring;
    pthread_mutex_unlock(&bus->lock);
    return ring;
}

/* ---- posting ---- */

typedef struct um_record_header {
    uint32_t bytes; /* header included, a multiple of 8 */
    uint32_t filler;
} um_record_header_t;

/* Free bytes, asking the other side only when the answer matters. */
static size_t um_ring_room(um_ring_t *ring, uint64_t written, size_t need)
{
    size_t room = ring->bytes - (size_t)(written - ring->read_seen);

    if (room < need) {
        ring->read_seen = atomic_load_explicit(&ring->read, memory_order_acquire);
        room = ring->bytes - (size_t)(written - ring->read_seen);
    }
    return room;
}

static void um_bus_wake(um_bus_t *bus)
{
    atomic_fetch_add(&bus->bell, 1); /* a thread about to sleep finds it changed */
    if (atomic_load(&bus->nap) != UM_AWAKE && atomic_exchange(&bus->nap, UM_AWAKE) != UM_AWAKE)
        um_futex_wake(&bus->bell);
}

static uint64_t um_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits until the ring has `need` bytes free, at most bus->wait_ms. */
static bool um_ring_wait(um_bus_t *bus, um_ring_t *ring, uint64_t written, size_t need)
{
    const struct timespec pause = {.tv_nsec = UM_FULL_PAUSE_NS};
    uint64_t end;

    if (ring->dropping || atomic_load(&bus->state) != UM_BUS_RUNNING ||
        pthread_equal(pthread_self(), bus->thread))
        return false;
    end = um_clock_ns() + (uint64_t)bus->wait_ms * 1000000u;
    do {
        um_bus_wake(bus);
        nanosleep(&pause, NULL);
        if (um_ring_room(ring, written, need) >= need)
            return true;
    } while (um_clock_ns() < end && atomic_load(&bus->state) == UM_BUS_RUNNING);
    return false;
}

static void um_add(_Atomic uint64_t *counter, uint64_t n) /* one storing thread: no locked add */
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static bool um_ring_lose(um_ring_t *ring, const um_event_t *event)
{
    um_add(&ring->lost[event->type < UM_EV_TYPE_COUNT ? event->type : UM_EV_NONE], 1);
    if (event->type == UM_EV_MIGRATE)
        um_add(&ring->lost_migrate_bytes, event->u.migrate.bytes);
    return false;
}

/* Where a record of `bytes` goes: at `at`, or behind a filler at the start. */
static um_record_header_t *um_ring_place(um_ring_t *ring, size_t at, size_t tail, size_t bytes)
{
    um_record_header_t *header = (um_record_header_t *)(void *)(ring->data + at);

    if (bytes <= tail)
        return header;
    *header = (um_record_header_t){.bytes = (uint32_t)tail, .filler = 1};
    return (um_record_header_t *)(void *)ring->data;
}

bool um_bus_post(um_bus_t *bus, const um_event_t *event, bool wake)
{
    int state = atomic_load_explicit(&bus->state, memory_order_relaxed);
    um_record_header_t *header;
    um_ring_t *ring;
    uint64_t written;
    size_t at, tail, room, here, bytes, need;

    if (state == UM_BUS_STOPPED || state == UM_BUS_ABANDONED)
        return false;
    ring = um_ring_mine(bus);
    if (ring == NULL) {
        atomic_fetch_add_explicit(&bus->lost_nowhere, 1, memory_order_relaxed);
        return false;
    }
    written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    at = (size_t)written & (ring->bytes - 1);
    tail = ring->bytes - at;
    room = um_ring_room(ring, written, ring->bytes / 2);
    here = room < tail ? room : tail;
    header = (um_record_header_t *)(void *)(ring->data + at);
    need = bytes =
        UM_RECORD_HEADER + um_event_pack(event, here > UM_RECORD_HEADER ? header + 1 : NULL,
                                         here > UM_RECORD_HEADER ? here - UM_RECORD_HEADER : 0);
    if (bytes > here) { /* it was only measured */
        need = bytes <= tail ? bytes : tail + bytes;
        if (bytes > ring->bytes / 2)
            return um_ring_lose(ring, event);
        if (room < need && !um_ring_wait(bus, ring, written, need)) {
            ring->dropping = true;
            return um_ring_lose(ring, event);
        }
        header = um_ring_place(ring, at, tail, bytes);
        um_event_pack(event, header + 1, bytes - UM_RECORD_HEADER);
    }
    ring->dropping = false;
    *header = (um_record_header_t){.bytes = (uint32_t)bytes};
    atomic_store_explicit(&ring->written, written + need, memory_order_release);
    um_add(&ring->posted, 1);
    if (wake || written + need - ring->read_seen > ring->bytes / 2 ||
        atomic_load_explicit(&bus->nap, memory_order_relaxed) == UM_DOZING)
        um_bus_wake(bus);
    return true;
}

/* ---- draining; on the bus thread ---- */

static void um_deliver(um_bus_t *bus, const um_event_t *event)
{
    for (unsigned i = 0; i < bus->n_sinks; i++)
        bus->sink[i].event(bus->sink[i].ctx, event);
    um_add(&bus->delivered, 1);
}

/* The next event of a ring, fillers skipped; NULL when it is drained up to its limit. */
static const um_event_t *um_ring_head(um_ring_t *ring, uint64_t *read)
{
    while (*read < ring->limit) {
        const char *at = ring->data + (*read & (ring->bytes - 1));
        const um_record_header_t *header = (const um_record_header_t *)(const void *)at;

        if (!header->filler)
            return (const um_event_t *)(const void *)(header + 1);
        *read += header->bytes;
    }
    return NULL;
}

static uint64_t um_ring_head_ns(um_ring_t *ring)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    const um_event_t *event = um_ring_head(ring, &read);

    atomic_store_explicit(&ring->read, read, memory_order_release);
    return event != NULL ? event->time_ns : UINT64_MAX;
}

/* Delivers from one ring while its events are not later than `until`. */
static void um_ring_run(um_bus_t *bus, um_ring_t *ring, uint64_t until)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    const um_event_t *event;

    while ((event = um_ring_head(ring, &read)) != NULL && event->time_ns <= until) {
        const um_record_header_t *header = (const um_record_header_t *)(const void *)event - 1;

        ring->last_ns = event->time_ns;
        um_deliver(bus, event);
        read += header->bytes;
        atomic_store_explicit(&ring->read, read, memory_order_release);
    }
}

static void um_ring_say_loss(um_bus_t *bus, um_ring_t *ring)
{
    for (uint32_t type = 0; type < UM_EV_TYPE_COUNT; type++) {
        uint64_t lost = atomic_load_explicit(&ring->lost[type], memory_order_relaxed);
        um_event_t event = {.time_ns = ring->last_ns, .type = UM_EV_LOSS};

        if (lost == ring->lost_said[type])
            continue;
        event.u.loss.what = type;
        event.u.loss.count = lost - ring->lost_said[type];
        event.u.loss.reason = "queue full";
        if (type == UM_EV_MIGRATE) {
            uint64_t bytes = atomic_load_explicit(&ring->lost_migrate_bytes, memory_order_relaxed);

            event.u.loss.bytes = bytes - ring->lost_bytes_said;
            ring->lost_bytes_said = bytes;
        }
        ring->lost_said[type] = lost;
        um_deliver(bus, &event);
    }
}

static uint64_t um_ring_lost(const um_ring_t *ring)
{
    uint64_t n = 0;

    for (uint32_t type = 0; type < UM_EV_TYPE_COUNT; type++)
        n += atomic_load_explicit(&ring->lost[type], memory_order_relaxed);
    return n;
}

static uint64_t um_ring_lost_said(const um_ring_t *ring)
{
    uint64_t n = 0;

    for (uint32_t type = 0; type < UM_EV_TYPE_COUNT; type++)
        n += ring->lost_said[type];
    return n;
}

/*
 * Takes stock of what is to be drained: `active` rings, with limits. The limits are read twice: what
 * an event of the first stock refers to was posted before it, so it is in the second one at the
 * latest, and the merge by time puts it in front. Rings of ended threads go once they are empty.
 */
static size_t um_bus_stock(um_bus_t *bus)
{
    um_ring_t **link, *ring;
    size_t n = 0, count = 0;

    pthread_mutex_lock(&bus->lock);
    for (ring = bus->rings; ring != NULL; ring = ring->next_of_bus)
        count++;
    if (count > bus->max_active) {
        um_ring_t **bigger = realloc(bus->active, 2 * count * sizeof *bigger);

        if (bigger != NULL) {
            bus->active = bigger;
            bus->max_active = 2 * count;
        }
    }
    for (ring = bus->rings; ring != NULL; ring = ring->next_of_bus)
        ring->limit_first = atomic_load_explicit(&ring->written, memory_order_acquire);
    for (link = &bus->rings; (ring = *link) != NULL;) {
        bool orphan = atomic_load_explicit(&ring->orphan, memory_order_acquire);

        ring->limit = atomic_load_explicit(&ring->written, memory_order_acquire);
        if (ring->limit != atomic_load_explicit(&ring->read, memory_order_relaxed)) {
            if (n < bus->max_active)
                bus->active[n++] = ring;
        } else if (orphan && um_ring_lost(ring) == um_ring_lost_said(ring)) {
            bus->gone_posted += atomic_load_explicit(&ring->posted, memory_order_relaxed);
            bus->gone_lost += um_ring_lost(ring);
            *link = ring->next_of_bus;
            um_ring_release(ring);
            continue;
        }
        link = &ring->next_of_bus;
    }
    pthread_mutex_unlock(&bus->lock);
    return n;
}

/* Delivers the stock in order of time, each ring's events in their own order. */
static void um_bus_merge(um_bus_t *bus, size_t n)
{
    for (;;) {
        um_ring_t *first = NULL;
        uint64_t first_ns = UINT64_MAX, second_ns = UINT64_MAX;
        bool pending = false;

        for (size_t i = 0; i < n; i++) {
            um_ring_t *ring = bus->active[i];
            uint64_t ns = um_ring_head_ns(ring);
            uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);

            if (read == ring->limit)
                continue;
            pending |= read < ring->limit_first;
            if (first == NULL || ns < first_ns) {
                second_ns = first != NULL ? first_ns : UINT64_MAX;
                first_ns = ns;
                first = ring;
            } else if (ns < second_ns) {
                second_ns = ns;
            }
        }
        if (first == NULL || !pending)
            return;
        um_ring_run(bus, first, second_ns);
    }
}

/* One drain. Returns whether there was anything. */
static bool um_bus_drain(um_bus_t *bus)
{
    uint32_t ticket = atomic_load(&bus->syncs);
    size_t n = um_bus_stock(bus);
    um_ring_t *ring;

    um_bus_merge(bus, n);
    pthread_mutex_lock(&bus->lock);
    ring = bus->rings;
    pthread_mutex_unlock(&bus->lock);
    for (; ring != NULL; ring = ring->next_of_bus) /* new rings go in front, only we take out */
        um_ring_say_loss(bus, ring);
    for (unsigned i = 0; i < bus->n_sinks; i++)
        if (bus->sink[i].idle != NULL)
            bus->sink[i].idle(bus->sink[i].ctx);
    if (atomic_load(&bus->synced) != ticket) {
        atomic_store(&bus->synced, ticket);
        um_futex_wake(&bus->synced);
    }
    return n != 0;
}

static void *um_bus_main(void *arg)
{
    um_bus_t *bus = arg;
    unsigned silent = 0;

    while (atomic_load(&bus->state) == UM_BUS_RUNNING) {
        uint32_t bell = atomic_load(&bus->bell);

        silent = um_bus_drain(bus) ? 0 : silent + (silent < UM_IDLE_TICKS);
        atomic_store(&bus->nap, silent < UM_IDLE_TICKS ? UM_NAPPING : UM_DOZING);
        um_futex_wait(&bus->bell, bell, silent < UM_IDLE_TICKS ? UM_TICK_NS : UM_IDLE_TICK_NS);
        atomic_store(&bus->nap, UM_AWAKE);
    }
    while (um_bus_drain(bus))
        ;
    atomic_store(&bus->done, true);
    um_futex_wake(&bus->synced);
    return NULL;
}

/* ---- life ---- */

um_status_t um_bus_new(size_t ring_bytes, uint32_t wait_ms, um_bus_t **out)
{
    um_bus_t *bus;
    size_t bytes = UM_RING_MIN;

    if (ring_bytes > UM_RING_MAX)
        return UM_ERR_INVALID;
    while (bytes < ring_bytes)
        bytes *= 2;
    bus = calloc(1, sizeof *bus);
    if (bus == NULL)
        return UM_ERR_NO_MEMORY;
    bus->ring_bytes = bytes;
    bus->wait_ms = wait_ms;
    bus->serial = atomic_fetch_add(&um_last_serial, 1) + 1;
    pthread_mutex_init(&bus->lock, NULL);
    *out = bus;
    return UM_OK;
}

um_status_t um_bus_add_sink(um_bus_t *bus, const um_sink_t *sink)
{
    if (atomic_load(&bus->state) != UM_BUS_NEW)
        return UM_ERR_STATE;
    if (bus->n_sinks == UM_BUS_SINKS)
        return UM_ERR_FULL;
    bus->sink[bus->n_sinks++] = *sink;
    return UM_OK;
}

um_status_t um_bus_start(um_bus_t *bus)
{
    sigset_t all, before;
    int state = UM_BUS_NEW;
    int error;

    if (!atomic_compare_exchange_strong(&bus->state, &state, UM_BUS_RUNNING))
        return UM_ERR_STATE;
    sigfillset(&all); /* the program's signals are not for a thread of ours */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&bus->thread, NULL, um_bus_main, bus);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        atomic_store(&bus->state, UM_BUS_STOPPED);
        return UM_ERR_NO_MEMORY;
    }
    pthread_setname_np(bus->thread, "umrt-bus");
    return UM_OK;
}

bool um_bus_sync_for(um_bus_t *bus, uint64_t wait_ms)
{
    uint64_t start_ns = um_clock_ns();
    uint32_t ticket, synced;

    if (atomic_load(&bus->state) != UM_BUS_RUNNING || pthread_equal(pthread_self(), bus->thread))
        return true;
    ticket = atomic_fetch_add(&bus->syncs, 1) + 1;
    um_bus_wake(bus);
    while ((int32_t)((synced = atomic_load(&bus->synced)) - ticket) < 0 &&
           !atomic_load(&bus->done) && atomic_load(&bus->state) != UM_BUS_ABANDONED) {
        if (wait_ms != UINT64_MAX && um_clock_ns() - start_ns >= wait_ms * 1000000u)
            return false;
        um_futex_wait(&bus->synced, synced, UM_IDLE_TICK_NS);
    }
    return true;
}

void um_bus_sync(um_bus_t *bus)
{
    um_bus_sync_for(bus, UINT64_MAX);
}

static uint64_t um_bus_total(const um_bus_t *bus, bool lost)
{
    um_bus_t *b = (um_bus_t *)bus; /* for the lock */
    uint64_t n = lost ? atomic_load_explicit(&b->lost_nowhere, memory_order_relaxed) : 0;

    if (atomic_load(&b->state) == UM_BUS_ABANDONED)
        return 0;
    pthread_mutex_lock(&b->lock);
    n += lost ? b->gone_lost : b->gone_posted;
    for (const um_ring_t *ring = b->rings; ring != NULL; ring = ring->next_of_bus)
        n += lost ? um_ring_lost(ring) : atomic_load_explicit(&ring->posted, memory_order_relaxed);
    pthread_mutex_unlock(&b->lock);
    return n;
}

uint64_t um_bus_lost(const um_bus_t *bus)
{
    return um_bus_total(bus, true);
}

uint64_t um_bus_posted(const um_bus_t *bus)
{
    return um_bus_total(bus, false);
}

/* A program may end inside the driver (from a signal handler, say), whose locks a sink then waits for in
 * vain: its end must not wait along. */
static bool um_bus_join(um_bus_t *bus)
{
    uint64_t patience_ns = 1000000000u + (uint64_t)bus->wait_ms * 50 * 1000000u;
    uint64_t seen = 0, since = um_clock_ns();
    struct timespec until;

    do {
        uint64_t delivered = atomic_load_explicit(&bus->delivered, memory_order_relaxed);

        if (delivered != seen)
            since = um_clock_ns();
        seen = delivered;
        clock_gettime(CLOCK_REALTIME, &until); /* the only clock that this join knows */
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_timedjoin_np(bus->thread, NULL, &until) == 0)
            return true;
    } while (um_clock_ns() - since < patience_ns);
    pthread_detach(bus->thread);
    return false;
}

bool um_bus_stop(um_bus_t *bus)
{
    int state = UM_BUS_RUNNING;

    if (!atomic_compare_exchange_strong(&bus->state, &state, UM_BUS_STOPPED)) {
        if (state == UM_BUS_NEW)
            atomic_store(&bus->state, UM_BUS_STOPPED);
        return true;
    }
    um_bus_wake(bus);
    return um_bus_join(bus);
}

void um_bus_free(um_bus_t *bus)
{
    if (bus == NULL || atomic_load(&bus->state) == UM_BUS_ABANDONED)
        return;
    um_bus_stop(bus);
    for (um_ring_t *ring = bus->rings, *next; ring != NULL; ring = next) {
        next = ring->next_of_bus;
        um_ring_release(ring);
    }
    free(bus->active);
    free(bus);
}

void um_bus_abandon(um_bus_t *bus)
{
    atomic_store(&bus->state, UM_BUS_ABANDONED);
}

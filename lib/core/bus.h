/*
 * bus.h - events from any thread to one consumer thread, in one direction.
 *
 * Each posting thread owns a ring; posting copies the event with all it points to, takes no lock and
 * allocates only on a thread's first post. The bus thread drains the rings and hands every event to
 * the sinks in the order they were added. A thread's events keep their order; those of several threads
 * are merged by time_ns as far as they are there, so that a definition comes before its uses if its
 * time is not later. A full ring makes the poster wait (bounded), then the event
 * is dropped and counted; the loss itself becomes a LOSS event.
 */
#ifndef UM_BUS_H
#define UM_BUS_H

#include "um_event.h"

typedef struct um_bus um_bus_t;

typedef struct um_sink {
    void *ctx;
    um_event_fn event;       /* on the bus thread */
    void (*idle)(void *ctx); /* on the bus thread after each drain, may be NULL */
} um_sink_t;

/* ring_bytes is what each posting thread gets, rounded up to a power of two, at most 1 GiB; an event
 * that needs more than half of it is dropped. wait_ms bounds the wait for room. */
um_status_t um_bus_new(size_t ring_bytes, uint32_t wait_ms, um_bus_t **out);
um_status_t um_bus_add_sink(um_bus_t *bus, const um_sink_t *sink); /* before start; FULL after 8 */
um_status_t um_bus_start(um_bus_t *bus); /* STATE when it was started before */
/* Posts. false = dropped (counted, unless the bus is stopped). wake = the bus thread is to look now,
 * not at its next tick (1 ms; 10 ms after a second of silence). Before start events are kept as far
 * as the ring goes. A sink may post: its event comes with the next drain, and it never waits. */
bool um_bus_post(um_bus_t *bus, const um_event_t *event, bool wake);
/* Everything posted before the call is through all sinks when it returns. At once when the bus does not
 * run, or from the bus thread. */
void um_bus_sync(um_bus_t *bus);
/* The same for so long at most, where a sink may be held up in the driver; false = it was not all. */
bool um_bus_sync_for(um_bus_t *bus, uint64_t wait_ms);
uint64_t um_bus_lost(const um_bus_t *bus);
uint64_t um_bus_posted(const um_bus_t *bus);
/* Drains and joins; posts after it are dropped silently. false = a sink got nowhere for a second and
 * 50 times wait_ms: it is left there, still using what it uses, and the bus must not be freed. */
bool um_bus_stop(um_bus_t *bus);
void um_bus_free(um_bus_t *bus); /* stops; no post or sync may be under way; NULL is fine */
/* In a forked child: no thread is left; posts become no-ops, and so does all else. What the bus owns
 * is leaked on purpose. Async-signal-safe. */
void um_bus_abandon(um_bus_t *bus);

/* Copies an event and what it points to into `buffer` (8-aligned), pointers fixed up; a NULL string
 * becomes "", an array without elements NULL. Returns the bytes used or needed, a multiple of 8:
 * nothing is written when `bytes` is less. Shared by the rings and the trace reader's ordering. */
size_t um_event_pack(const um_event_t *event, void *buffer, size_t bytes);

#endif

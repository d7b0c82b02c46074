/*
 * bus.h - events from any thread to one consumer thread, in one direction.
 *
 * Each posting thread owns a ring; posting copies the event with all it points to, takes no lock and
 * allocates only on a thread's first post. The bus thread drains the rings and hands every event to
 * the sinks in the order they were added. A full ring makes the poster wait (bounded), then the event
 * is dropped and counted; the loss itself becomes a LOSS event.
 */
#ifndef UM_BUS_H
#define UM_BUS_H

#include "um_event.h"

typedef struct um_bus um_bus_t;

typedef struct um_sink {
    void *ctx;
    um_event_fn event;          /* on the bus thread */
    void (*idle)(void *ctx);    /* on the bus thread after each drain, may be NULL */
} um_sink_t;

um_status_t um_bus_new(size_t ring_bytes, uint32_t wait_ms, um_bus_t **out);
um_status_t um_bus_add_sink(um_bus_t *bus, const um_sink_t *sink); /* before start */
um_status_t um_bus_start(um_bus_t *bus);
/* Posts. false = dropped (counted). wake = the bus thread is to look now, not at its next tick (1 ms). */
bool um_bus_post(um_bus_t *bus, const um_event_t *event, bool wake);
/* Everything posted before the call is through all sinks when it returns; not from the bus thread. */
void um_bus_sync(um_bus_t *bus);
uint64_t um_bus_lost(const um_bus_t *bus);
uint64_t um_bus_posted(const um_bus_t *bus);
void um_bus_stop(um_bus_t *bus); /* drains, joins; posts after it are dropped silently */
void um_bus_free(um_bus_t *bus);
/* In a forked child: no thread is left; posts become no-ops. Async-signal-safe. */
void um_bus_abandon(um_bus_t *bus);

/* Copies an event and what it points to into `buffer`, pointers fixed up; returns the bytes used or
 * needed (call with bytes 0 to ask). Shared by the rings and the trace reader's ordering. */
size_t um_event_pack(const um_event_t *event, void *buffer, size_t bytes);

#endif

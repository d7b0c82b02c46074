/*
 * gate.h - every hint passes here: checked, split into pieces, counted, submitted.
 *
 * Pieces are what is counted: proposed = admitted + refused, and
 * admitted = applied + failed + cancelled + still in flight.
 *
 * Threads: one (the bus thread) for everything but um_gate_stats, um_gate_region_going and
 * um_gate_context_going, which any thread may call.
 */
#ifndef UM_GATE_H
#define UM_GATE_H

#include "core/regions.h"
#include "executor.h"
#include "share.h"

typedef struct um_gate um_gate_t;

typedef struct um_gate_config {
    uint64_t headroom_bytes;   /* device memory that is never used */
    uint64_t piece_bytes;      /* size of one driver call, rounded up to whole blocks */
    uint32_t max_in_flight;    /* pieces, 0 = 1024 */
    uint32_t max_per_second;   /* pieces in one second of event time, 0 = no limit */
    uint32_t disabled_kinds;   /* bit i = um_hint_kind_t i is switched off by the user */
    _Atomic uint32_t *pending; /* kept equal to the pieces in flight that the end of a wait is of
                                  interest to; may be NULL */
    /* What this process may take of the GPUs, and what managed memory it has there now. NULL = all; not owned. */
    um_share_t *share;
    uint64_t (*device_bytes)(void *ctx, int32_t device);
    void *device_bytes_ctx;
    /* What may still be put into the machine's memory. NULL = anything. */
    uint64_t (*host_bytes)(void *ctx);
    void *host_bytes_ctx;
    const um_regions_t *regions;
    um_executor_t *executor; /* not owned */
} um_gate_config_t;

um_status_t um_gate_new(const um_gate_config_t *config, um_gate_t **out);
void um_gate_free(um_gate_t *gate); /* NULL is fine */

/* NULL when hints may be made for such a device, else why not (static). Any thread. */
const char *um_gate_refuses(const um_ev_device_t *device);
/* What a device can do; returns um_gate_refuses. */
const char *um_gate_device(um_gate_t *gate, const um_ev_device_t *device);

/* What a hint is made for: a launch, or a wait that is entered. */
typedef struct um_gate_cause {
    uint32_t context;
    uint64_t stream; /* the event's handle where `wait` is UM_SYNC_EVENT */
    uint32_t wait;   /* um_sync_kind_t, 0 = a launch */
    uint32_t tid;
    bool captured;
    uint64_t now_ns;
} um_gate_cause_t;

/* Checks a hint piece by piece, front to back, and submits what passes. Advice is one piece, and its order
 * means nothing. Returns the pieces admitted. */
uint32_t um_gate_propose(um_gate_t *gate, const um_hint_t *hint, const um_gate_cause_t *cause);

/* What became of a piece, as the executor told it. */
void um_gate_done(um_gate_t *gate, const um_ev_hint_t *outcome);

/* The program gives advice itself: where it does, umrt does not (advised.h). */
void um_gate_app(um_gate_t *gate, const um_ev_hint_t *hint);
void um_gate_region_gone(um_gate_t *gate, uint32_t region);

/* Both ends of a wait. At its end what is still queued to race launches that are over comes too late, and
 * what is for after it may go. */
void um_gate_sync(um_gate_t *gate, const um_event_t *sync);

/* A launch takes the range: what is still queued to bring it anywhere else comes too late, and what was for
 * idle times is no longer for those. */
void um_gate_taken(um_gate_t *gate, const um_event_t *launch, uint64_t addr, uint64_t bytes);

/* Bytes that may still be put on the launch's device. */
uint64_t um_gate_room_bytes(um_gate_t *gate, const um_ev_launch_t *launch, uint64_t now_ns);

/* Pieces in flight for idle times. */
uint32_t um_gate_idle(const um_gate_t *gate);

/* Nothing of ours is in flight in [addr, addr+bytes) when it returns, and no hint made for a launch
 * before now_ns gets there any more. Later launches cannot mean the memory that is going. */
void um_gate_region_going(um_gate_t *gate, uint64_t addr, uint64_t bytes, uint64_t now_ns);
/* The same for all that runs in a context; 0 = in any. */
void um_gate_context_going(um_gate_t *gate, uint32_t context, uint64_t now_ns);

typedef struct um_gate_stats {
    uint64_t proposed, admitted, applied, failed, cancelled; /* pieces */
    uint64_t refused[UM_HINT_RESULT_COUNT];                  /* by um_hint_result_t */
    uint64_t applied_bytes;
    uint32_t
        processes; /* the most on a GPU that hints were for, as share.h counts them; 0 = not counted */
} um_gate_stats_t;
void um_gate_stats(const um_gate_t *gate, um_gate_stats_t *out);
uint64_t um_gate_proposed(const um_gate_t *gate); /* of these, `proposed` alone */

#endif

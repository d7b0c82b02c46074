/*
 * uses.h - which streams may still be at work on a range: launches that the CPU has not waited for.
 *
 * A wait covers, from its end on, what was launched on its streams before it began: those of its context
 * for UM_SYNC_DEVICE, its own for UM_SYNC_STREAM and UM_SYNC_COPY. Of UM_SYNC_EVENT nobody says what it
 * covers: it ends no use, and while it lasts it is taken to stand for the one stream that used the range,
 * if only one did.
 *
 * Threads: one.
 */
#ifndef UM_USES_H
#define UM_USES_H

#include "um_event.h"

#define UM_USES_MAX  256u /* the oldest is forgotten, and taken to be over */
#define UM_USES_WAIT 16u  /* waits under way at a time */

typedef struct um_uses_stream {
    uint64_t stream;
    uint32_t context;
    uint32_t tid; /* of the per-thread default stream, else 0 */
} um_uses_stream_t;

typedef struct um_uses {
    struct {
        um_uses_stream_t stream;
        uint64_t addr, end, number;
    } use[UM_USES_MAX];
    struct {
        uint32_t sync;
        uint64_t number; /* of the last launch before it */
    } wait[UM_USES_WAIT];
    uint32_t n, n_waits;
    uint64_t number; /* of launches so far */
} um_uses_t;

/* A launch, and one range that it takes. */
void um_uses_launch(um_uses_t *uses, const um_event_t *launch, uint64_t addr, uint64_t bytes);
void um_uses_sync(um_uses_t *uses, const um_event_t *sync); /* at its beginning and at its end */
/* May somebody be at work on the range once a wait of that kind (um_sync_kind_t), which has begun on that
 * stream, is over? */
bool um_uses_outlive(const um_uses_t *uses, uint32_t kind, const um_uses_stream_t *own,
                     uint64_t addr, uint64_t bytes);
um_uses_stream_t um_uses_stream(uint64_t stream, uint32_t context, uint32_t tid);

#endif

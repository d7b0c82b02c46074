/*
 * sharing.h - several GPUs at one allocation: where what a launch takes ends.
 *
 * Where another GPU takes the region from further on, a launch's part of it ends there, whatever else is
 * expected of it: whoever works on a slice leaves the others' slices alone. Where
 * another GPU's launch began at the very same place and the CPU has not waited for it, nothing says whose
 * is what (an index decides): nothing is to be moved then, which is as good as no umrt.
 * A GPU that has left a region alone for a while no longer counts.
 *
 * Threads: one.
 */
#ifndef UM_SHARING_H
#define UM_SHARING_H

#include "um_event.h"

#define UM_SHARING_REGIONS 256u /* by id modulo this: the latest ones */
#define UM_SHARING_GPUS    8u   /* of one region: the latest ones */
#define UM_SHARING_RECENT  16u  /* launches on the region that count */

typedef struct um_sharing_use {
    int32_t device;
    uint32_t context;
    uint32_t launches;
    uint32_t when;      /* in the region's launches: the last one */
    uint64_t number;    /* and in all launches */
    uint64_t last;      /* where it began */
    uint64_t lowest[2]; /* of the launches of late, and of those before */
} um_sharing_use_t;

typedef struct um_sharing {
    struct {
        uint32_t id, launches, n;
        uint32_t contended; /* until so many launches nobody knows whose is what */
        um_sharing_use_t use[UM_SHARING_GPUS];
    } region[UM_SHARING_REGIONS];
    struct {
        uint32_t context;
        uint64_t number;
    } waited[UM_SHARING_GPUS]; /* by context modulo this: up to which launch */
    uint64_t number;           /* of launches so far */
} um_sharing_t;

/* The launch's lowest pointer into the region is `from`: *end is lowered to where what it takes ends, to
 * `from` when nobody knows whose is what.
 * Returns whether other GPUs take the region too. */
bool um_sharing_launch(um_sharing_t *sharing, const um_ev_launch_t *launch, uint32_t region,
                       uint64_t from, uint64_t *end);
/* Do other GPUs take the region, too, by what has been seen? */
bool um_sharing_is_shared(const um_sharing_t *sharing, uint32_t region, int32_t device);
void um_sharing_sync(um_sharing_t *sharing, const um_ev_sync_t *sync);

#endif

/*
 * cover.h - time is charged once.
 *
 * The driver serves faults in batches: their records overlap, so adding durations up would invent
 * time. Each processor has a "covered until"; a record is charged only for what it adds. Sums of
 * charges never exceed wall time.
 */
#ifndef UM_COVER_H
#define UM_COVER_H

#include "um_event.h"

#define UM_COVER_PROCESSORS 65 /* GPUs 0..63, then the CPU and whatever is out of range */

typedef struct um_cover {
    uint64_t until_ns[UM_COVER_PROCESSORS];
} um_cover_t;

static inline uint64_t um_cover_charge(um_cover_t *cover, int32_t device, uint64_t start_ns,
                                       uint64_t duration_ns)
{
    unsigned i = device >= 0 && device < UM_COVER_PROCESSORS - 1 ? (unsigned)device
                                                                 : UM_COVER_PROCESSORS - 1;
    uint64_t end = start_ns > UINT64_MAX - duration_ns ? UINT64_MAX : start_ns + duration_ns;
    uint64_t from = start_ns > cover->until_ns[i] ? start_ns : cover->until_ns[i];

    if (end <= from)
        return 0;
    cover->until_ns[i] = end;
    return end - from;
}

#endif

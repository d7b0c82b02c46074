/*
 * ranges.h - what a launch is taken to use of managed memory: a range for each pointer.
 *
 * Pointers into one 2 MiB block are one. A range begins at its pointer and ends where the footprint model
 * expects the kernel to stop; where that knows nothing, at the next pointer into the region that this or
 * an earlier launch had (slices.h).
 */
#ifndef UM_RANGES_H
#define UM_RANGES_H

#include "model/footprint.h"
#include "model/slices.h"

typedef struct um_range {
    um_argument_t argument;
    uint64_t addr, end; /* what the launch is taken to use; inside the argument */
    um_footprint_t known;
    um_stride_t stride; /* of it, only these runs */
    /* while it is decided about */
    uint64_t next; /* start of the next stretch; of one that is gone through backwards, its end */
    um_watch_t *watch;
    uint32_t admitted;
    bool asked, declined;
    bool settled; /* it is on the device already: few are asked */
} um_range_t;

typedef struct um_range_sources {
    um_residency_t *residency;
    um_footprints_t *footprints;
    um_slices_t *slices;
} um_range_sources_t;

/* The ranges of a LAUNCH, at most max: those of one region side by side, in the order of their addresses. */
uint32_t um_ranges_collect(const um_range_sources_t *from, const um_event_t *event, um_range_t *out,
                           uint32_t max);

/* The ranges of a launch that is only expected, by what um_footprints_kernel says of its kernel. */
uint32_t um_ranges_expect(const um_range_sources_t *from, const um_ev_launch_t *launch,
                          uint64_t kernel, um_range_t *out, uint32_t max);

/* Stretch by stretch (UM_VIEW_STRETCH_BYTES), in the direction in which the kernel goes. */
void um_range_start(um_range_t *range);
bool um_range_is_whole(const um_range_t *range); /* no stretch was taken yet */
bool um_range_has_more(const um_range_t *range);
bool um_range_next(um_range_t *range, uint64_t *addr, uint64_t *bytes); /* false = that was all */

/* How many from the first one on are in its region. */
uint32_t um_ranges_of_region(const um_range_t *range, uint32_t n);

/* Which of its blocks no range of a region has, nor are believed to be used: the residency model is told.
 * Between launch_begin and launch_end for the span of the ranges. */
void um_ranges_leave_gaps(const um_range_t *range, uint32_t n, um_residency_t *residency);

#endif

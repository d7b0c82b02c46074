/*
 * copies_stat.h - cudaMemcpy by kind of memory and size, and small ones that frame launches.
 */
#ifndef UM_COPIES_STAT_H
#define UM_COPIES_STAT_H

#include "map.h"

/* Copies of one size between two kinds of memory. */
typedef struct um_copy_class {
    uint32_t src, dst; /* um_memory_kind_t */
    uint64_t bytes;    /* of one; 0 = the many sizes beyond the first 1024 */
    bool on_gpu;       /* times are the copy engine's */
    uint64_t count, async, ns, total_bytes;
} um_copy_class_t;

/* A size that goes to the device, then kernels, then the same size back. */
typedef struct um_round_trip {
    uint64_t bytes;
    bool out; /* one is under way */
    uint64_t launches_at_out;
    uint64_t trips, launches; /* complete ones; kernels inside them */
} um_round_trip_t;

#define UM_ROUND_TRIP_MAX_BYTES 4096u
#define UM_ROUND_TRIPS          64u

typedef struct um_copies_stat {
    um_copy_class_t *classes;
    size_t n_classes, size;
    um_map_t class_of;
    um_round_trip_t trip[UM_ROUND_TRIPS];
    uint32_t n_trips;
    uint64_t launches, execs; /* of this trace */
    uint64_t calls, gpu_records;
    uint64_t best_in_rate, best_out_rate; /* bytes/s of the largest pinned copy of >= 1 MiB */
    uint64_t best_in_bytes, best_out_bytes;
} um_copies_stat_t;

um_status_t um_copies_stat_event(um_copies_stat_t *stat, const um_event_t *event);
/* Calls and GPU records of the same copies may both be there: then the records alone count. */
bool um_copies_counted(const um_copies_stat_t *stat, const um_copy_class_t *of);
void um_copies_stat_end(um_copies_stat_t *stat);
void um_copies_stat_free(um_copies_stat_t *stat);

const char *um_memory_kind_name(uint32_t kind); /* "pageable" */

#endif

/*
 * totals.h - what a trace holds, in figures: for `umrt record`, which says whether it lost anything,
 * and for `umrt info FILE`.
 */
#ifndef UM_TOTALS_H
#define UM_TOTALS_H

#include "core/regions.h"
#include "um_trace.h"

/* Bytes that migrated, by direction. */
typedef struct um_moved {
    uint64_t to_gpu_bytes;
    uint64_t to_host_bytes;
    uint64_t between_gpus_bytes;
} um_moved_t;

/* A managed (or system) region and what moved in it. */
typedef struct um_total_region {
    um_region_t region;
    char *label; /* NULL without one */
    um_moved_t moved;
} um_total_region_t;

typedef struct um_totals {
    uint64_t by_type[UM_EV_TYPE_COUNT];
    uint64_t events;
    uint64_t lost;       /* records known to be missing */
    bool lost_uncounted; /* some loss has no number: `lost` is a lower bound */
    um_moved_t moved;
    um_moved_t moved_nowhere;   /* the part of it that falls into no known region */
    um_total_region_t *regions; /* in order of allocation */
    size_t n_regions;
    um_ev_fact_t *facts; /* of the file header, then of its events; copies */
    size_t n_facts;
    um_ev_device_t *devices; /* copies */
    size_t n_devices;
    um_regions_t *live; /* to find the region of an address that the source did not attribute */
} um_totals_t;

um_status_t um_totals_new(um_totals_t *out);
/* Events in time order. UM_ERR_NO_MEMORY. */
um_status_t um_totals_add(um_totals_t *totals, const um_event_t *event);
void um_totals_free(um_totals_t *totals);

/* Reads the whole of `path`: UM_OK, or the reader's status with its line in `error` (then what was
 * whole is in *out all the same, unless even the header is not: info stays zeroed). info may be NULL;
 * its facts are in *out. */
um_status_t um_totals_read(const char *path, um_totals_t *out, um_trace_info_t *info, char *error,
                           size_t error_bytes);

/* Indices of the `max` regions that moved most (ties: the earlier first); returns how many. */
size_t um_totals_top(const um_totals_t *totals, size_t max, size_t *index);

#endif

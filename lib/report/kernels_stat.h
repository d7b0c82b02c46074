/*
 * kernels_stat.h - what each kernel did and what it waited for, and in which regions.
 *
 * Fed from two sides: launches and executions as they come, faults and migrations as attribution
 * hands them over. Kernels of one name are one, over all traces.
 */
#ifndef UM_KERNELS_STAT_H
#define UM_KERNELS_STAT_H

#include "../model/attribution.h"
#include "regions_stat.h"

typedef struct um_kernel_stat {
    char *name; /* mangled; "" = not known which (no name seen, or nobody) */
    bool copy;  /* stands for copies and sets of managed memory */
    uint64_t launches, execs, exec_ns;
    uint64_t faulted;      /* executions with at least one GPU fault */
    uint64_t last_faulted; /* the last of them, by its number among this kernel's, 1 = first */
    uint64_t faults, groups, ns; /* GPU faults; ns charged once */
    uint64_t in_bytes, evict_bytes, throttle_ns;
    uint64_t confidence; /* summed over faults */
    uint64_t stream;     /* of its launches' calls */
    bool many_streams;   /* it was not always that one */
} um_kernel_stat_t;

/* One kernel in one group of regions. */
typedef struct um_kernel_region {
    uint32_t kernel, group;
    uint64_t faults, groups, ns, in_bytes, launches;
    uint64_t first_faults, first_ns; /* on pages nobody had written */
    uint64_t confidence;
} um_kernel_region_t;

/* Where a kernel was launched with a pointer to a group's region; of launches whose place was recorded. */
typedef struct um_launch_place {
    uint32_t kernel, group;
    uint32_t slot; /* the argument that it is */
    uint64_t site, launches;
    bool many; /* other places or arguments, too, or not the region's first byte */
} um_launch_place_t;

typedef struct um_kernels_stat {
    um_kernel_stat_t *kernels;
    size_t n_kernels, kernels_size;
    um_map_t by_name; /* hash of the name -> kernels; over traces */
    um_map_t by_id;   /* KERNEL id -> kernels; of this trace */
    um_kernel_region_t *pairs;
    size_t n_pairs, pairs_size;
    um_map_t pair_of; /* kernel << 32 | group */
    um_launch_place_t *places;
    size_t n_places, places_size;
    um_map_t place_of; /* likewise */
    um_cover_t cover;
    struct um_exec_seen { /* which of a kernel's executions a serial is: ring by serial */
        uint64_t serial, number;
    } * seen;
    uint64_t execs, launches, last_faulted_exec; /* over all kernels of this trace */
    uint64_t total_execs, total_launches, total_faulted;
    uint64_t attributed, unattributed; /* GPU faults */
    um_regions_stat_t *regions;
} um_kernels_stat_t;

um_status_t um_kernels_stat_init(um_kernels_stat_t *stat, um_regions_stat_t *regions);
void um_kernels_stat_free(um_kernels_stat_t *stat);
/* KERNEL, LAUNCH, KERNEL_EXEC; others are ignored. */
um_status_t um_kernels_stat_event(um_kernels_stat_t *stat, const um_event_t *event);
/* What attribution found; regions_stat has seen the event (and all until its end) before. */
um_status_t um_kernels_stat_attributed(um_kernels_stat_t *stat, const um_event_t *event,
                                       const um_attributed_t *who);
void um_kernels_stat_end(um_kernels_stat_t *stat);

/* Launches as counted: those seen on the GPU where there are times, else the calls. */
uint64_t um_kernel_launches(const um_kernel_stat_t *kernel);
/* The pair with most charged time in this group; NULL without. */
const um_kernel_region_t *um_kernels_stat_worst(const um_kernels_stat_t *stat, uint32_t group);

/* NULL: none was recorded. */
const um_launch_place_t *um_kernels_stat_place(const um_kernels_stat_t *stat, uint32_t kernel,
                                               uint32_t group);

#endif

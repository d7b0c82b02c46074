/*
 * uses_stat.h - how memory is used, beyond what faulted: which launches take it, what was evicted and
 * came back, moves between GPUs, the advice in force, and what became of the program's own hints.
 *
 * Blocks of 2 MiB are enough for that, and small: so it follows regions of any size, also those that
 * never fault. Part of regions_stat, which calls it; events in time order; one thread.
 */
#ifndef UM_USES_STAT_H
#define UM_USES_STAT_H

#include "map.h"

/* Of a region or a group of them: counters only, added up over regions. */
typedef struct um_uses {
    uint64_t launches, const_launches; /* that take a pointer into it; only such to const */
    uint64_t in_bytes, out_bytes;      /* from CPU to GPU and back, by any cause */
    uint64_t evicted_bytes, returned_bytes;
    uint64_t returns, ascending,
        sweeps;                  /* blocks that came back; behind the one before; from the start */
    uint64_t jumps, jumps_again; /* to a block not beside, where the block before had come back once
                                    before; to the same one as then */
    uint64_t peer_bytes, peer_ns, peer_turns; /* between GPUs; blocks that changed it once more */
    uint64_t copied_bytes, copies;            /* cudaMemcpy to or from it */
    uint64_t written_faults, written_ns;      /* GPU write faults while ReadMostly held */
    uint64_t far_launches, far_cpu_faults;    /* while the preferred location was the CPU */
    uint64_t near_cpu_faults, near_out_bytes; /* while it was a GPU: what the CPU took */
    uint64_t other_launches;                  /* while it was a GPU: launches on another one */
    uint64_t prefetched_bytes;                /* asked for by the program, either way */
    uint64_t syncs_between;                   /* allocated again after a free and a wait */
    uint64_t wide_gpus;                       /* regions that more than one GPU used */
} um_uses_t;

/* What became of the program's own calls of one kind at one place for one group. */
typedef struct um_own_hint {
    uint64_t call_site;
    uint32_t kind; /* um_hint_kind_t */
    int32_t device;
    uint32_t group;
    uint64_t calls, failed, ns; /* ns: in the calls */
    uint64_t bytes;             /* asked for */
    uint64_t redundant_bytes;   /* were there already; of advice: held already */
    uint64_t redundant_calls;   /* all of it */
    uint64_t wasted_bytes;      /* went back before anything on the GPU had used them */
    uint64_t late_faults, late_ns, late_bytes; /* GPU faults on what had been asked for */
    uint64_t evicting_bytes;                   /* pushed out of the GPU right behind it */
} um_own_hint_t;

typedef struct um_block_use um_block_use_t;

/* Of a live region; zeroed at first. */
typedef struct um_live_use {
    um_uses_t sums;
    um_block_use_t *blocks; /* NULL until needed */
    uint64_t last_return;   /* address of the block that came back last */
    uint32_t last_arrived;  /* block of it that came to a GPU last, + 1 */
    uint64_t waits_at_alloc;
    uint64_t devices;  /* bit i: GPU i used it */
    int32_t preferred; /* device, UM_DEVICE_NONE as long as `located` is false */
    bool located, read_mostly;
} um_live_use_t;

typedef struct um_uses_stat {
    um_own_hint_t *own;
    size_t n_own, own_size;
    um_map_t own_of;
    uint64_t launches, waits; /* of this trace */
    uint32_t last_prefetch;   /* own + 1 while nothing was launched or waited for since; 0 */
    uint64_t live_bytes[UM_FAMILY_COUNT], peak_bytes[UM_FAMILY_COUNT];
    uint64_t blocks_left;
} um_uses_stat_t;

struct um_live;
struct um_regions_stat;

void um_uses_init(um_uses_stat_t *stat);
void um_uses_free(um_uses_stat_t *stat);
/* After regions_stat has taken the event; charged_ns: what a GPU fault adds to the time of faults. */
um_status_t um_uses_event(struct um_regions_stat *stat, const um_event_t *event,
                          uint64_t charged_ns);
/* The region goes: what was asked for and never used is settled. */
void um_uses_retire(struct um_regions_stat *stat, struct um_live *live);
void um_uses_end(um_uses_stat_t *stat); /* of a trace */

#endif

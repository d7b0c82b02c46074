/*
 * residency_impl.h - what the parts of the residency model share; nobody else includes it.
 *
 *   residency.c       what is believed of each block: by events, by launches, and what is answered
 *   residency_look.c  what the page tables say, and when they are asked
 */
#ifndef UM_RESIDENCY_IMPL_H
#define UM_RESIDENCY_IMPL_H

#include "residency.h"

#define UM_UNSYNCED_MAX 64u /* a program that never waits is sampled this often all the same */
#define UM_AWAY         (UM_BLOCK_BYTES / UM_PAGE_BYTES / 2) /* pages of a block that have to have gone */
#define UM_HOT_BLOCKS   4u         /* places where something was found, sampled first */
#define UM_BLOCKS_MOST  (1u << 23) /* of all regions: 16 TiB; what is kept of them takes 128 MiB */
#define UM_LOOK_EXTENTS 1024u      /* enough for one look at the 64 KiB merging distance */

typedef struct um_block_state {
    uint64_t looked_ns; /* when the host side was last known; 0 = must be looked at */
    uint8_t where;      /* um_where_t */
    int8_t device;
    uint8_t advice; /* um_block_advice_t bits: in force for some of it, ours or the program's */
    bool evicted;   /* pages the CPU does not map although it has them: no look finds them */
    bool left;      /* the launch under way is not believed to take it */
    uint16_t away;  /* pages that are known, not only believed, to have gone to a device */
} um_block_state_t;

typedef enum um_block_advice {
    UM_ADVICE_READ_MOSTLY = 1 << 0, /* its pages are duplicated */
    UM_ADVICE_PREFERRED = 1 << 1,   /* its place is the CPU */
    UM_ADVICE_ACCESSED_BY = 1 << 2, /* the GPU reaches it where it is */
    UM_ADVICE_MAPPED = UM_ADVICE_PREFERRED | UM_ADVICE_ACCESSED_BY
} um_block_advice_t;

typedef enum um_look { UM_LOOK_NONE, UM_LOOK_UNDECIDED, UM_LOOK_CLEAN, UM_LOOK_WHOLE } um_look_t;

/* A region and what is believed of each of its 2 MiB blocks. */
typedef struct um_region_state {
    uint32_t id;
    uint32_t n_blocks;
    uint64_t addr, bytes;
    uint64_t role;
    uint32_t word;            /* um_region_hint_flag_t: the program's */
    bool duplicated;          /* some of it is to have a copy on each side */
    uint32_t interval, since; /* a whole look every interval-th time; times since */
    uint32_t unsynced;        /* launches since the last look of any kind */
    uint32_t hot[UM_HOT_BLOCKS], n_hot, rotor;
    /* Blocks known to be on a device since a time: what lets a launch be passed over at once. */
    uint32_t settled_first, settled_end;
    int32_t settled_device;
    uint64_t settled_ns;
    /* the launch under way */
    um_look_t look;
    uint32_t first, end; /* its blocks */
    uint64_t launch_ns;
    /* blocks that were looked at for a launch, when it was made and when that was */
    uint32_t seen_first, seen_end;
    uint64_t seen_for_ns, seen_ns;
    uint64_t again_ns; /* what was looked at before that is looked at again; 0 = nothing is */
    bool hit, fresh;   /* something is on the host; some of it was seen for the first time */
    um_block_state_t block[];
} um_region_state_t;

struct um_residency {
    um_page_tables_t tables;
    bool can_look;
    uint64_t sync_ns;   /* the CPU last left a wait for the GPU */
    uint32_t sync;      /* and which one */
    uint64_t launch_ns; /* of the latest launch */
    um_event_fn told;
    void *told_ctx;
    um_region_state_t **region; /* by id */
    size_t n, room;
    uint64_t n_blocks; /* of all of them */
    um_residency_stats_t stats;
    um_extent_t found[UM_LOOK_EXTENTS];
};

/* NULL = none that is known. */
um_region_state_t *um_residency_find(const um_residency_t *residency, uint32_t id);
/* Looks at blocks [first, end) of a launch under way where they are stale and a look is due. */
void um_residency_look(um_residency_t *residency, um_region_state_t *region, uint32_t first,
                       uint32_t end);

/* Up to when what has just come to a device, or is found there, is known to have stayed: of what comes late, when the
 * wait for its launch is over, that is as good as not at all. */
static inline uint64_t um_known_until(const um_residency_t *residency, uint64_t now_ns)
{
    return residency->sync_ns > residency->launch_ns ? residency->sync_ns - 1 : now_ns;
}

static inline uint64_t um_block_start(const um_region_state_t *region, uint32_t n)
{
    uint64_t start = (region->addr / UM_BLOCK_BYTES + n) * UM_BLOCK_BYTES;

    return start < region->addr ? region->addr : start;
}

static inline uint64_t um_block_end(const um_region_state_t *region, uint32_t n)
{
    uint64_t end = (region->addr / UM_BLOCK_BYTES + n + 1) * UM_BLOCK_BYTES;

    return end > region->addr + region->bytes ? region->addr + region->bytes : end;
}

/* The blocks that meet [addr, addr+bytes) of the region; false when there are none. */
static inline bool um_blocks_of(const um_region_state_t *region, uint64_t addr, uint64_t bytes,
                                uint32_t *first, uint32_t *end)
{
    uint64_t base = region->addr / UM_BLOCK_BYTES;
    uint64_t stop = region->addr + region->bytes;

    if (addr + bytes < stop && addr + bytes >= addr)
        stop = addr + bytes;
    if (addr < region->addr)
        addr = region->addr;
    if (addr >= stop)
        return false;
    *first = (uint32_t)(addr / UM_BLOCK_BYTES - base);
    *end = (uint32_t)((stop - 1) / UM_BLOCK_BYTES - base + 1);
    return true;
}

#endif

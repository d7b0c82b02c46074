/*
 * regions_stat.h - what happened to each allocation, down to 64 KiB pages.
 *
 * A live region keeps page states; when it goes (or the trace ends) they are folded into its group:
 * allocations of one label, or else of one call site and size. So memory follows what is alive and
 * touched, not the length of the trace. Events in time order; one thread.
 */
#ifndef UM_REGIONS_STAT_H
#define UM_REGIONS_STAT_H

#include "cover.h"
#include "map.h"
#include "uses_stat.h"

#define UM_PAGES_PER_BLOCK (UM_BLOCK_BYTES / UM_BIG_PAGE_BYTES)

/* A page that went to a GPU and came back at least twice is ping-pong: three changes of direction. */
#define UM_PING_PONG_TURNS 3u

/* One 64 KiB page of one region (a page that two regions share has a state in each). */
typedef struct um_page {
    uint64_t in_bytes, out_bytes; /* to a GPU, to the CPU: by fault or by the driver */
    uint64_t gpu_ns;              /* GPU fault service and throttling, charged once */
    uint64_t throttle_ns;
    uint64_t wait_ns;             /* CPU: from its fault to the end of the copies that answer it */
    uint64_t first_ns;            /* kernels_stat: GPU faults on a page that nobody had written */
    uint64_t pc;                  /* of the last CPU fault, 0 = none */
    uint64_t tail_bytes, tail_ns; /* taken back by the CPU since the GPU last had it */
    uint32_t tail_copies, tail_faults;
    uint32_t in_copies, out_copies; /* records that begin in this page */
    uint32_t out_running;           /* of out_copies: while a kernel ran */
    uint32_t turns;
    uint32_t gpu_faults, cpu_faults;
    uint32_t cpu_faults_running;
    uint32_t first_faults, first_pair; /* kernels_stat's, too */
    uint32_t thrash;                   /* 4 KiB pages that the driver's detector named */
    int8_t direction;                  /* of the last move: 1 in, -1 out, 0 none yet */
    bool seen;
} um_page_t;

/* What is added up over pages, regions and groups. */
typedef struct um_region_sums {
    uint64_t in_copies, in_bytes, out_copies, out_bytes; /* by fault or by the driver */
    uint64_t user_in_bytes, user_out_bytes;              /* prefetches that were asked for */
    uint64_t evict_bytes;
    uint64_t gpu_faults, gpu_groups, cpu_faults;
    uint64_t gpu_ns, wait_ns, throttle_ns;
    uint64_t thrash, throttles, remote_maps, remote_bytes;
} um_region_sums_t;

/* Pages of one group that have something in common (ping-pong, tail). */
typedef struct um_page_set {
    uint64_t pages, regions;
    uint64_t first_offset, end_offset; /* in the region, extent over all; valid when pages > 0 */
    uint64_t in_copies, in_bytes, out_copies, out_bytes, out_running;
    uint64_t gpu_faults, cpu_faults, cpu_faults_running;
    uint64_t gpu_ns, wait_ns, throttle_ns, thrash;
    uint64_t most_turns;
    uint64_t pc;
} um_page_set_t;

typedef struct um_group {
    char *label; /* NULL = none */
    uint64_t call_site;
    uint64_t bytes;  /* of one region */
    uint32_t family; /* um_family_t */
    uint32_t first_region, regions, traces;
    uint64_t first_addr;
    uint64_t lifetime_ns;   /* of the freed ones, summed */
    uint64_t freed, reused; /* reused: allocated again after one of the group was freed */
    uint32_t first[4];      /* regions by um_toucher_t */
    uint32_t gpu_only;      /* regions a GPU used and no sign of the CPU, while records flowed */
    uint32_t gpu_used;
    uint64_t pages_in, block_pages; /* pages that moved in; pages of the blocks they are in */
    um_region_sums_t sums;
    um_uses_t uses;
    uint64_t waits_at_free; /* of this trace, when one of it was freed last */
    um_page_set_t ping_pong, tail;
    uint32_t last_trace;
} um_group_t;

typedef struct um_block_pages {
    um_page_t page[UM_PAGES_PER_BLOCK];
} um_block_pages_t;

typedef struct um_live {
    uint64_t addr, bytes, call_site, alloc_ns;
    uint64_t serial; /* unique over all traces */
    uint32_t id, group, family, flags;
    bool cpu, gpu; /* signs of use */
    bool active;
    um_region_sums_t sums;
    um_live_use_t use;
    um_block_pages_t **blocks; /* of the 2 MiB-aligned blocks it meets; NULL until touched */
    uint8_t first_toucher;     /* 0 none, 1 CPU, 2 GPU */
} um_live_t;

/* Who touched a region first, as far as was seen. */
typedef enum um_toucher {
    UM_TOUCHED_BY_NOBODY = 0,
    UM_TOUCHED_BY_CPU = 1,
    UM_TOUCHED_BY_GPU = 2,
    UM_TOUCHED_BY_CPU_SURELY = 3 /* not seen, but its data moved from there */
} um_toucher_t;

#define UM_SHARERS_MAX 8
typedef struct um_shared_page {
    uint64_t addr;       /* of the 64 KiB page */
    uint64_t small_addr; /* a 4 KiB page with more than one region in it, 0 = none */
    uint32_t n;
    struct um_sharer {
        uint64_t serial, addr, bytes;
        uint32_t group;
        uint64_t cpu_faults, gpu_faults;
        uint64_t dragged_bytes; /* taken to the CPU by a fault on another region's bytes */
    } sharer[UM_SHARERS_MAX];
    uint64_t in_bytes, out_bytes, gpu_ns, wait_ns;
    uint64_t pc;
    uint64_t faulted_offset; /* of the last CPU fault, inside its region */
    uint32_t faulted;        /* sharer of it */
    uint32_t turns;
    uint64_t dragging_faults; /* CPU faults that took others' bytes along */
    int8_t direction;
    bool dragged; /* by the last CPU fault */
    bool closed;  /* one of its regions is gone: no longer collected */
} um_shared_page_t;

typedef struct um_regions_stat {
    um_live_t **live;  /* by address */
    um_live_t **by_id; /* those with an id, by id; as large as `live` */
    size_t n_live, n_by_id, live_size;
    um_live_t *last; /* found last */
    um_group_t *groups;
    size_t n_groups, groups_size;
    um_map_t group_of; /* key -> group */
    um_shared_page_t *shared;
    size_t n_shared, shared_size;
    um_map_t shared_of; /* page address -> shared, while open */
    um_cover_t cover;
    struct um_cpu_fault_seen { /* direct-mapped by block */
        uint64_t block, time_ns, addr, pc;
        bool valid, answered;
    } * cpu_seen;
    uint64_t serials;
    uint64_t out_copies; /* all device-to-host fault copies: the whole of which findings are part */
    uint64_t blocks_left; /* page states that may still be made */
    uint64_t untracked;   /* records whose pages were beyond that */
    uint32_t trace;
    um_uses_stat_t uses;
} um_regions_stat_t;

um_status_t um_regions_stat_init(um_regions_stat_t *stat);
void um_regions_stat_free(um_regions_stat_t *stat);

/* running: a kernel runs at the event's time. UM_ERR_NO_MEMORY. */
um_status_t um_regions_stat_event(um_regions_stat_t *stat, const um_event_t *event, bool running);
/* The trace ends: folds what lives. */
void um_regions_stat_end(um_regions_stat_t *stat, uint64_t now_ns);

/* The region at addr, or in whose page the unallocated addr lies; where none is known, one that stands
 * for the surroundings. NULL: no memory. */
um_live_t *um_regions_stat_find(um_regions_stat_t *stat, uint64_t addr);
/* The region of a CUDA event by id, else by address, else NULL. */
um_live_t *um_regions_stat_by_id(um_regions_stat_t *stat, uint32_t id);
/* Page state at addr, made when absent; NULL when the budget is used up. */
um_page_t *um_regions_stat_page(um_regions_stat_t *stat, um_live_t *live, uint64_t addr);

/* Cuts [addr, addr+bytes) at regions and at 64 KiB pages, in order; leaves out what is only padding of
 * an allocation's page. A range of absurd length is cut off after 1 GiB. */
typedef void (*um_piece_fn)(void *ctx, um_live_t *live, uint64_t addr, uint64_t bytes);
void um_regions_stat_split(um_regions_stat_t *stat, uint64_t addr, uint64_t bytes, um_piece_fn fn,
                           void *ctx);

/* "label" or a description ("region 3, 1.0 MiB"); snprintf's rules. */
int um_group_name(const um_group_t *group, char *out, size_t bytes);

#endif

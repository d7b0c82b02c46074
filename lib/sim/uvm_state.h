/*
 * uvm_state.h - what the files of the driver model share: blocks, chunks, regions.
 *
 * Processors are numbered here from 0: the CPU, then the GPUs (GPU ordinal + 1), so that a set of
 * processors is a 16-bit mask. Pages are numbered inside their block's 2 MiB window.
 */
#ifndef UM_UVM_STATE_H
#define UM_UVM_STATE_H

#include "uvm.h"
#include "uvm_set.h"

#define UM_CPU            0u
#define UM_PROCESSORS_MAX (UM_UVM_GPUS_MAX + 1)
#define UM_BIT(processor) ((uint16_t)(1u << (processor)))

/* The page sets of a block whose pages are not all alike. */
typedef struct um_pages {
    struct um_pages *next_free;
    um_set_t fresh;     /* brought by a prefetch and not touched since */
    um_set_t discarded; /* contents given up: nothing to copy */
    struct {
        um_set_t resident, mapped, writable;
    } of[]; /* one a processor */
} um_pages_t;

/* The thrashing detector's notes on a block; only blocks that bounced have them. */
#define UM_NOBODY UINT8_MAX
typedef struct um_thrash {
    uint64_t last_thrash_ns;
    uint64_t nap_end_ns; /* of the period: who is not `holder` waits until then */
    uint64_t pin_end_ns;
    uint16_t processors; /* that took part */
    uint16_t napping;    /* processors that wait */
    uint8_t holder;      /* processor that may go on while the others nap, or UM_NOBODY */
    uint8_t pin_at;      /* where pinned pages stay */
    uint8_t resets;
    um_set_t thrashing, pinned;
    struct {
        uint64_t last_ns; /* when it moved last, plus 1; 0 = not since it is watched */
        uint8_t events, throttles;
    } page[UM_SET_PAGES];
} um_thrash_t;

typedef struct um_region um_region_t;
typedef struct um_block um_block_t;

/* The 2 MiB of GPU memory behind a block on one GPU. */
typedef struct um_chunk {
    struct um_chunk *prev, *next; /* of the list it is in; next alone when free */
    struct um_chunk *of_block;    /* the block's chunk on another GPU */
    um_block_t *block;
    uint64_t window; /* address of the block */
    uint32_t region; /* id, 0 = several share the block */
    uint8_t processor;
    uint8_t list; /* um_list_t */
} um_chunk_t;

/* The lists of one GPU, in the order in which memory is taken from them. */
typedef enum um_list {
    UM_LIST_UNUSED = 0,    /* nothing resident any more */
    UM_LIST_DISCARDED = 1, /* only pages whose contents were given up */
    UM_LIST_USED = 2,      /* least recently migrated first */
    UM_LIST_COUNT = 3
} um_list_t;

/* 2 MiB of address space. While pages == NULL the three masks, fresh and discarded say it for all
 * pages; all zero is a block that nobody touched. */
struct um_block {
    um_pages_t *pages;
    um_thrash_t *thrash;
    um_chunk_t *chunks;
    uint64_t moved_ns; /* when a fault last moved pages of it, plus 1; 0 = never */
    uint16_t resident, mapped, writable;
    uint16_t accessed_by;
    uint8_t moved_to;  /* processor of moved_ns */
    uint8_t preferred; /* processor + 1, 0 = none */
    bool read_mostly;
    bool fresh, discarded;
};

/* A block that regions share: small allocations lie side by side in 2 MiB, even in one page. */
typedef struct um_shared {
    um_block_t block;
    uint32_t regions;
    uint32_t pages; /* that live regions take, counted once for each */
} um_shared_t;

struct um_region {
    uint32_t id;
    uint32_t n_blocks;
    uint64_t addr, end;
    uint64_t base;            /* addr down to 2 MiB: block i is at base + i * 2 MiB */
    um_block_t *blocks;       /* all, but an end that is only partly the region's is elsewhere: */
    um_shared_t *head, *tail; /* NULL = whole; a region of one block has no tail */
};

typedef struct um_gpu {
    uint64_t capacity, allocated;
    struct {
        um_chunk_t *head, *tail;
    } list[UM_LIST_COUNT];
} um_gpu_t;

struct um_uvm {
    um_uvm_config_t config;
    uint32_t n_processors;
    uint64_t lapse_ns;
    um_region_t **by_addr, **by_id; /* live ones, sorted */
    size_t n_regions, regions_capacity;
    um_region_t *last; /* found last */
    um_pages_t *free_pages;
    um_chunk_t *free_chunks;
    uint64_t resident_bytes[UM_PROCESSORS_MAX];
    um_gpu_t gpu[UM_PROCESSORS_MAX]; /* by processor: [0] is not used */
};

/* A visit of one block: what all rules are given. `pages` is there for as long as it lasts. */
typedef struct um_visit {
    um_uvm_t *uvm;
    um_block_t *block;
    um_pages_t *pages;
    uint64_t window; /* address of the block */
    uint32_t region; /* id, 0 = several share the block */
    uint64_t now_ns;
    um_uvm_work_t *work;
} um_visit_t;

/* ---- uvm_region.c ---- */

/* The live region that holds [addr, addr+bytes), give or take what else is in its first and last
 * page; NULL = none does. */
um_region_t *um_uvm_region_at(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes);
um_block_t *um_uvm_region_block(const um_region_t *region, uint32_t index);
bool um_uvm_region_shares(const um_region_t *region, uint32_t index);
/* Pages of the block that live regions take. */
uint32_t um_uvm_region_live_pages(const um_region_t *region, uint32_t index);
static inline uint32_t um_uvm_region_index(const um_region_t *region, uint64_t addr)
{
    return addr < region->base ? 0 : (uint32_t)((addr - region->base) / UM_BLOCK_BYTES);
}
static inline uint64_t um_uvm_region_window(const um_region_t *region, uint32_t index)
{
    return region->base + (uint64_t)index * UM_BLOCK_BYTES;
}
/* The pages of block `index` that [addr, end) takes. */
um_run_t um_uvm_region_run(const um_region_t *region, uint32_t index, uint64_t addr, uint64_t end);
void um_uvm_regions_free(um_uvm_t *uvm);

/* ---- uvm_block.c: what a visit does to a block ---- */

/* Begins and ends a visit; begin allocates page sets (UM_ERR_NO_MEMORY), end gives them back when
 * all pages are alike and puts the block's chunks on the right lists. */
um_status_t um_visit_begin(um_visit_t *visit, um_uvm_t *uvm, um_block_t *block, uint64_t window,
                           uint32_t region, uint64_t now_ns, um_uvm_work_t *work);
um_status_t um_visit_begin_at(um_visit_t *visit, um_uvm_t *uvm, const um_region_t *region,
                              uint32_t index, uint64_t now_ns, um_uvm_work_t *work);
void um_visit_end(um_visit_t *visit);
/* Residency, with the counters kept. */
void um_visit_settle(um_visit_t *visit, uint32_t processor, const um_set_t *pages);
void um_visit_leave(um_visit_t *visit, uint32_t processor, const um_set_t *pages);
/* Pages that are resident anywhere. */
um_set_t um_visit_populated(const um_visit_t *visit);
/* Takes mappings away; counts them. */
void um_visit_unmap(um_visit_t *visit, uint32_t processor, const um_set_t *pages);
/* Pages of the set that `who` can reach where they are. */
um_set_t um_visit_reachable(const um_visit_t *visit, uint32_t who, const um_set_t *pages);
/* Takes away the mappings of pages whose last reachable copy went. */
void um_visit_unmap_stranded(um_visit_t *visit);
/* The block's region is gone: so are its memory, its sets and what was noted about it. */
void um_block_forget(um_uvm_t *uvm, um_block_t *block);

static inline int32_t um_device_of(uint32_t processor)
{
    return (int32_t)processor - 1; /* UM_DEVICE_HOST is -1 */
}
bool um_processor_of(const um_uvm_t *uvm, int32_t device, uint32_t *out);
/* `who` can reach the memory of `where`. */
static inline bool um_uvm_reaches(const um_uvm_t *uvm, uint32_t who, uint32_t where)
{
    if (who == where || where == UM_CPU)
        return true;
    return who == UM_CPU ? uvm->config.coherent : uvm->config.peers;
}

/* ---- uvm_memory.c: chunks, eviction, moving ---- */

um_chunk_t *um_block_chunk(const um_block_t *block, uint32_t processor);
/* Makes sure that the block has memory on the GPU, evicting others if need be. */
um_status_t um_visit_allocate(um_visit_t *visit, uint32_t processor);
void um_chunk_free(um_uvm_t *uvm, um_chunk_t *chunk);
void um_chunk_put(um_uvm_t *uvm, um_chunk_t *chunk, um_list_t list); /* at the list's tail */
/* Pages that leave where a prefetch brought them, untouched: counts those that are fresh. */
void um_visit_waste(um_visit_t *visit, const um_set_t *pages);
/* Brings `faulted` and `prefetched` pages to `to` (memory allocated): populates what is nowhere,
 * copies the rest; the sources keep theirs when `keep`. Transfers are told by cause. */
void um_visit_move(um_visit_t *visit, uint32_t to, const um_set_t *faulted,
                   const um_set_t *prefetched, um_migrate_cause_t cause, bool keep);

/* ---- uvm_tree.c: the tree prefetcher ---- */

/* What else a fault on `faulted` brings to `to`: 64 KiB growth, then the tree. */
um_set_t um_visit_grow(const um_visit_t *visit, uint32_t to, const um_set_t *faulted);

/* ---- uvm_thrash.c: the thrashing detector ---- */

typedef enum um_thrash_verdict {
    UM_THRASH_NO = 0,
    UM_THRASH_THROTTLE = 1, /* nap; work has the length */
    UM_THRASH_PIN = 2       /* some of the pages are pinned: see thrash->pinned, pin_at */
} um_thrash_verdict_t;
um_thrash_verdict_t um_thrash_ask(um_visit_t *visit, uint32_t processor, const um_set_t *faulted);
um_status_t um_thrash_note(um_visit_t *visit, uint32_t processor, const um_set_t *moved);
/* Pages that moved because a user asked for it, or to be copied, no longer thrash. */
void um_thrash_forget(um_visit_t *visit, const um_set_t *moved);
void um_thrash_free(um_block_t *block);

/* ---- uvm_fault.c ---- */

/* Gives `processor` mappings of pages that are reachable; remote ones are counted and told. */
void um_visit_map(um_visit_t *visit, uint32_t processor, const um_set_t *pages, bool writable,
                  um_remote_map_cause_t cause);
/* Renews the AccessedBy mappings of pages that moved. */
void um_visit_map_accessed_by(um_visit_t *visit, const um_set_t *pages);

/* ---- events ---- */

static inline void um_uvm_tell(const um_uvm_t *uvm, const um_event_t *event)
{
    if (uvm->config.event)
        uvm->config.event(uvm->config.event_ctx, event);
}
static inline uint64_t um_visit_addr(const um_visit_t *visit, uint32_t page)
{
    return visit->window + (uint64_t)page * UM_PAGE_BYTES;
}
/* The region of an address in the block, 0 = of none any more. */
static inline uint32_t um_visit_region(const um_visit_t *visit, uint64_t addr)
{
    const um_region_t *region;

    if (visit->region)
        return visit->region;
    region = um_uvm_region_at(visit->uvm, addr, 1);
    return region ? region->id : 0;
}

#endif

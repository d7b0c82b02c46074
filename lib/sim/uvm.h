/*
 * uvm.h - the driver's rules, without time: which pages are where, who maps them, what moves.
 *
 * A pure state machine over 2 MiB blocks with sets of 4 KiB pages. Each operation changes the state
 * at once and adds what the driver had to do to a um_uvm_work_t; how long that takes and when it is
 * done is the engine's business. The rules and their sources are in MODEL.md.
 *
 * Memory: about 64 bytes a block while its pages are all alike, page sets only for mixed blocks.
 * Threads: one. Deterministic.
 */
#ifndef UM_UVM_H
#define UM_UVM_H

#include "um_advisor.h"

typedef struct um_uvm um_uvm_t;

#define UM_UVM_GPUS_MAX 8

/* nvidia-uvm's module parameters, under their own names. */
typedef struct um_uvm_params {
    uint32_t uvm_perf_prefetch_enable;    /* 0, 1 */
    uint32_t uvm_perf_prefetch_threshold; /* 1..100, per cent */
    uint32_t uvm_perf_prefetch_min_faults;
    uint32_t uvm_perf_fault_batch_count; /* faults in one batch, 1..  */
    uint32_t uvm_perf_thrashing_enable;
    uint32_t uvm_perf_thrashing_threshold; /* events */
    uint32_t uvm_perf_thrashing_pin_threshold;
    uint64_t uvm_perf_thrashing_lapse_usec;
    uint64_t uvm_perf_thrashing_nap; /* lapses */
    uint64_t uvm_perf_thrashing_epoch;
    uint64_t uvm_perf_thrashing_pin; /* lapses */
    uint32_t uvm_perf_thrashing_max_resets;
} um_uvm_params_t;
void um_uvm_params_default(um_uvm_params_t *out); /* FIELD.md's */

/* Each of them by name. Ends with name == NULL. */
typedef struct um_uvm_param {
    const char *name;
    size_t offset, bytes; /* of the field: 4 or 8 */
    uint64_t fallback, min, max;
} um_uvm_param_t;
extern const um_uvm_param_t um_uvm_param_table[];
const um_uvm_param_t *um_uvm_param_find(const char *name); /* NULL = the model has no such one */
uint64_t um_uvm_param(const um_uvm_params_t *params, const um_uvm_param_t *param);
/* UM_ERR_INVALID: outside the range; nothing is changed. */
um_status_t um_uvm_param_set(um_uvm_params_t *params, const um_uvm_param_t *param, uint64_t value);
bool um_uvm_params_fit(const um_uvm_params_t *params); /* all within their ranges */

typedef struct um_uvm_config {
    uint32_t n_gpus;                          /* 1..UM_UVM_GPUS_MAX */
    uint64_t capacity_bytes[UM_UVM_GPUS_MAX]; /* for managed memory; at least one block */
    bool peers;    /* GPUs reach each other directly; else through the host */
    bool coherent; /* the CPU can map a GPU's memory (C2C) */
    um_uvm_params_t params;
    /* Told of every run of pages that moves, is mapped remotely, thrashes: as events without time
     * (MIGRATE, REMOTE_MAP, THRASH, THROTTLE, GPU_FAULT, CPU_FAULT). May be NULL. */
    um_event_fn event;
    void *event_ctx;
} um_uvm_config_t;

/* What the driver had to do; added to, never cleared, by the operations. */
#define UM_UVM_SIZES 10 /* transfers of at most 4 KiB << i; the last: 2 MiB */
typedef struct um_uvm_work {
    uint32_t gpu_faults; /* pages that faulted on a GPU, duplicates not counted */
    uint32_t cpu_faults;
    uint32_t batches_blocks; /* block visits by the fault handler or by a user's request */
    uint32_t transfers_to_device[UM_UVM_SIZES]; /* DMA transfers by size class */
    uint32_t transfers_to_host[UM_UVM_SIZES];
    uint32_t transfers_peer[UM_UVM_SIZES];
    uint64_t bytes_to_device, bytes_to_host, bytes_peer;
    uint64_t prefetched_bytes; /* of bytes_to_device: moved by the tree prefetcher */
    uint64_t populated_device_bytes, populated_host_bytes; /* first touch: allocated and zeroed */
    uint64_t unmapped_host_bytes, unmapped_device_bytes;
    uint64_t mapped_remote_bytes;
    uint64_t remote_read_bytes, remote_written_bytes; /* accesses that went over the link */
    uint32_t evicted_blocks;
    uint64_t evicted_bytes, discarded_bytes;
    uint32_t duplicated_blocks, collapsed_blocks; /* ReadMostly, by visit */
    uint64_t collapsed_bytes; /* pages that a write to ReadMostly took from the other copies */
    uint64_t wasted_bytes;    /* left (moved, evicted, discarded) after a prefetch, never touched */
    uint32_t throttles;       /* the touch has to be tried again after `nap_ns` */
    uint64_t nap_ns;
    uint32_t pins;
} um_uvm_work_t;
void um_uvm_work_add(um_uvm_work_t *sum, const um_uvm_work_t *part);

um_status_t um_uvm_new(const um_uvm_config_t *config, um_uvm_t **out);
void um_uvm_free(um_uvm_t *uvm);

/* A managed region comes and goes. UM_ERR_INVALID: overlaps a live one, or is not one. */
um_status_t um_uvm_alloc(um_uvm_t *uvm, uint32_t region, uint64_t addr, uint64_t bytes);
um_status_t um_uvm_release(um_uvm_t *uvm, uint32_t region);

/*
 * `processor` (device ordinal or UM_DEVICE_HOST) touches all 4 KiB pages of [addr, addr+bytes), which
 * lies inside one block of a live region. `now_ns` feeds the thrashing detector only. When the result
 * has throttles, nothing was done: touch again nap_ns later. UM_ERR_INVALID outside live regions.
 */
um_status_t um_uvm_touch(um_uvm_t *uvm, int32_t processor, uint64_t addr, uint64_t bytes,
                         um_access_kind_t kind, uint64_t now_ns, um_uvm_work_t *work);
/*
 * The same for any pages of one block: `pages` has a bit for each 4 KiB page of the 2 MiB window that
 * `addr` lies in. Those that fault are one visit of the fault handler: this is what a batch holds of
 * one block (a GPU's faults come scattered: measured, 30 pages of a block in a batch). A CPU faults
 * page by page in address order whatever it is called with.
 */
#define UM_UVM_PAGE_WORDS 8
um_status_t um_uvm_touch_pages(um_uvm_t *uvm, int32_t processor, uint64_t addr,
                               const uint64_t pages[UM_UVM_PAGE_WORDS], um_access_kind_t kind,
                               uint64_t now_ns, um_uvm_work_t *work);
/* Whether such a touch would need the driver at all; changes nothing. */
bool um_uvm_would_fault(const um_uvm_t *uvm, int32_t processor, uint64_t addr, uint64_t bytes,
                        um_access_kind_t kind);

/* cudaMemPrefetchAsync and cudaMemAdvise, whole blocks and parts, any range inside one region. A
 * prefetch evicts to make room, in the end its own first blocks. Advice is kept by block: it takes
 * where it covers at least half of a block's pages. UM_ERR_INVALID as for um_uvm_touch. */
um_status_t um_uvm_prefetch(um_uvm_t *uvm, int32_t processor, uint64_t addr, uint64_t bytes,
                            uint64_t now_ns, um_uvm_work_t *work);
um_status_t um_uvm_advise(um_uvm_t *uvm, um_hint_kind_t advice, int32_t processor, uint64_t addr,
                          uint64_t bytes, um_uvm_work_t *work);
um_status_t um_uvm_discard(um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_uvm_work_t *work);

/* Where it is now: as um_view_extents, by runs of pages; BOTH for duplicates. */
size_t um_uvm_extents(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_extent_t *out,
                      size_t max);
/* What the CPU's page tables say (the simulator's pagemap): runs of pages that the CPU maps. */
size_t um_uvm_host_mapped(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_extent_t *out,
                          size_t max);
uint64_t um_uvm_resident_bytes(const um_uvm_t *uvm, int32_t processor);
uint64_t um_uvm_free_bytes(const um_uvm_t *uvm,
                           int32_t device); /* capacity less allocated chunks */

/* Checks every invariant (no page in two exclusive places, counters equal sums, residency within
 * capacity, eviction list holds exactly the blocks on the device); false with a line in `error`.
 * For tests: O(blocks). */
bool um_uvm_check(const um_uvm_t *uvm, char *error, size_t error_bytes);

#endif

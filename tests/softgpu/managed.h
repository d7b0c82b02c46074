/*
 * managed.h - what the parts of the managed memory share: managed.c, where it is and what the CPU maps of it; watch.c,
 * the CPU's faults; hints.c, what programs ask for. All of it under sg_uvm_lock.
 */
#ifndef SOFTGPU_MANAGED_H
#define SOFTGPU_MANAGED_H

#include "softgpu.h"

#include "lib/sim/uvm.h"

#define PAGE  ((uint64_t)UM_PAGE_BYTES)
#define BLOCK ((uint64_t)UM_BLOCK_BYTES)

/* What was last asked for of a page; processors as CUdevices, CU_DEVICE_INVALID: none. Bit n of accessed_by is
 * GPU n, bit SG_GPUS the CPU. */
typedef struct asked {
    int preferred, prefetched;
    unsigned accessed_by;
    bool read_mostly;
} asked_t;

typedef struct sg_managed {
    struct sg_managed *next;
    uint64_t addr, bytes; /* whole pages */
    char *around; /* what is reserved for it: bytes + BLOCK, so that it begins with a block */
    char *data;
    uint32_t region;
    bool read_mostly; /* ever advised so: mappings may have to be write-protected */
    asked_t *asked;   /* of each page */
    uint8_t *mapped;  /* of each page: 0 not, 1 mapped, 2 write-protected */
} managed_t;

extern pthread_mutex_t sg_uvm_lock;
extern um_uvm_t *sg_uvm; /* NULL: nothing is managed yet */
extern int sg_fault_fd;  /* the userfaultfd of all regions */

managed_t *sg_managed_find(uint64_t addr);
void sg_managed_map(const managed_t *m, uint64_t page, bool protect);
/* What the rules do to [addr, addr+bytes) between these two is recorded, and the mappings follow. */
uint64_t sg_serve(uint64_t addr, uint64_t bytes, uint64_t pc); /* the time of its records */
void sg_served(void);
/* Until the rules let it be: one that is throttled has waited its time. */
void sg_serve_touch(int32_t who, uint64_t addr, uint64_t bytes, um_access_kind_t kind);
/* Starts the thread that serves the CPU's faults; false where there can be none. */
bool sg_managed_watch(void);

#endif

/*
 * region_index.h - address to region record, for regions.c alone: readers take no lock, writers hold
 * the table's.
 *
 * Shared fields are C11 atomics. Fields that a sequence number guards are stored with release and
 * loaded with acquire order instead of plain accesses between fences: free on x86, one instruction
 * elsewhere, and ThreadSanitizer understands it.
 */
#ifndef UM_REGION_INDEX_H
#define UM_REGION_INDEX_H

#include "regions.h"

#include <stdatomic.h>

#define UM_GET(field)        atomic_load_explicit(&(field), memory_order_acquire)
#define UM_PUT(field, value) atomic_store_explicit(&(field), (value), memory_order_release)

#define UM_BLOCK_SHIFT     21
#define UM_LEAF_SHIFT      14 /* slots of a leaf: 32 GiB */
#define UM_DIRECTORY_SHIFT (48 - UM_BLOCK_SHIFT - UM_LEAF_SHIFT)
#define UM_ARRAY_CLASSES   22 /* arrays of 2^class cells: up to one a byte of a block */

/*
 * A region as the table holds it; one cache line, whose memory stays a record until the table is
 * freed. Dead while id is 0.
 */
typedef struct um_record {
    _Alignas(64) _Atomic uint32_t sequence; /* odd while a writer changes the rest */
    _Atomic uint32_t id;
    _Atomic uint64_t addr, bytes;
    _Atomic uint64_t call_site, alloc_ns;
    _Atomic uint32_t family, flags, device, generation;
    _Atomic uintptr_t next; /* in its id bucket, or in the free list; regions.c */
} um_record_t;
_Static_assert(sizeof(um_record_t) == 64, "a record is one cache line");

/*
 * A consistent copy of the record if it holds addr (and, unless want is 0, has that id), or false when
 * it does not or a writer was at it; *out is then undefined.
 * A field is stored as soon as it is loaded, so that few registers are needed and the caller's need
 * not be saved.
 */
static inline __attribute__((always_inline)) bool
um_record_copy(const um_record_t *record, uint64_t addr, uint32_t want, um_region_t *out)
{
    uint32_t before = UM_GET(record->sequence), id = UM_GET(record->id);
    uint64_t start = UM_GET(record->addr), bytes = UM_GET(record->bytes);

    if ((before & 1) != 0 || addr - start >= bytes || (want != 0 && id != want))
        return false;
    out->id = id;
    out->family = UM_GET(record->family);
    out->addr = start;
    out->bytes = bytes;
    out->device = (int32_t)UM_GET(record->device);
    out->flags = UM_GET(record->flags);
    out->call_site = UM_GET(record->call_site);
    out->alloc_ns = UM_GET(record->alloc_ns);
    out->generation = UM_GET(record->generation);
    return atomic_load_explicit(&record->sequence, memory_order_relaxed) == before;
}

typedef struct um_leaf um_leaf_t;   /* the slots of 32 GiB */
typedef struct um_array um_array_t; /* the regions of a block that has several */
typedef _Atomic uint64_t um_slot_t;

typedef struct um_region_index { /* all zero = empty */
    /* read by readers */
    _Atomic(um_leaf_t *) directory[1u << UM_DIRECTORY_SHIFT];
    um_slot_t wide; /* regions that the radix cannot hold */

    /* writers only */
    um_array_t *free_arrays[UM_ARRAY_CLASSES];
    um_array_t *all_arrays;
} um_region_index_t;

/* Lock-free. The region that holds addr. */
bool um_region_index_find(const um_region_index_t *index, uint64_t addr, um_region_t *out);

/* Writers. The record with the lowest start that meets [addr, last], or NULL. */
um_record_t *um_region_index_first(const um_region_index_t *index, uint64_t addr, uint64_t last);
/* Takes the memory that inserting [addr, last] may need; false: there is none. */
bool um_region_index_reserve(um_region_index_t *index, uint64_t addr, uint64_t last);
/* The record is complete, meets no other, and memory has been reserved. */
void um_region_index_insert(um_region_index_t *index, um_record_t *record);
void um_region_index_remove(um_region_index_t *index, um_record_t *record); /* cannot fail */
void um_region_index_clear(um_region_index_t *index); /* frees; no reader may be left */

#endif

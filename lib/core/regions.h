/*
 * regions.h - which allocation does an address belong to?
 *
 * Readers (the launch path, record decoding) take no lock and never wait for writers; writers
 * (allocation, free) serialise among themselves. Answers are copies, so nothing dangles.
 */
#ifndef UM_REGIONS_H
#define UM_REGIONS_H

#include "um_event.h"

typedef struct um_regions um_regions_t;

typedef struct um_region {
    uint32_t id;
    uint32_t family; /* um_family_t */
    uint64_t addr, bytes;
    int32_t device;
    uint32_t flags; /* um_region_flag_t */
    uint64_t call_site;
    uint64_t alloc_ns;
    uint32_t generation; /* how many regions lived at this start address before */
} um_region_t;

/* As its event tells of it. */
static inline um_region_t um_region_of(const um_ev_region_alloc_t *alloc, uint64_t time_ns)
{
    return (um_region_t){.id = alloc->region,
                         .family = alloc->family,
                         .addr = alloc->addr,
                         .bytes = alloc->bytes,
                         .device = alloc->device,
                         .flags = alloc->flags,
                         .call_site = alloc->call_site,
                         .alloc_ns = time_ns};
}

um_status_t um_regions_new(um_regions_t **out);
void um_regions_free(um_regions_t *regions); /* no reader or writer may be left */

/* Adds; region->id 0 = assign the next id (stored back), else taken as given (traces). A live region
 * that overlaps is stale (its free was missed): it is removed first and, if `stale` is not NULL, its
 * id appended to it (at most max_stale; *n_stale counts, may be NULL). Sets region->id and
 * region->generation. Errors: INVALID (0 bytes, wraps), FULL (no id left), NO_MEMORY; a stale region
 * is gone even then. A region that is one address range of a GPU and one of the CPU (REGISTERED,
 * MAPPED with two addresses) is added under the address that the device sees. */
um_status_t um_regions_add(um_regions_t *regions, um_region_t *region, uint32_t *stale,
                           size_t max_stale, size_t *n_stale);
/* Removes the region that starts at addr; NOT_FOUND otherwise. *out (may be NULL) gets the copy. */
um_status_t um_regions_remove(um_regions_t *regions, uint64_t addr, um_region_t *out);

/* Lock-free. The region that holds addr, or that has the id; *out is undefined without one. */
bool um_regions_find(const um_regions_t *regions, uint64_t addr, um_region_t *out);
bool um_regions_find_id(const um_regions_t *regions, uint32_t id, um_region_t *out);

/* Sub-ranges are the 2 MiB-aligned blocks of a region, first and last possibly partial: how many,
 * and the n-th one's address and size. */
uint32_t um_region_blocks(const um_region_t *region);
void um_region_block(const um_region_t *region, uint32_t n, uint64_t *addr, uint64_t *bytes);

/* Calls fn for each live region that meets [addr, addr+bytes), by address (0, UINT64_MAX = all).
 * Takes the writers' lock: fn must not add, remove or walk. */
void um_regions_each(um_regions_t *regions, uint64_t addr, uint64_t bytes,
                     void (*fn)(void *ctx, const um_region_t *region), void *ctx);
uint64_t um_regions_count(const um_regions_t *regions,
                          um_family_t family); /* UNKNOWN = all; O(1) */

#endif

/*
 * slices.h - where the pointers into a region have been: as far as anybody knows, what a pointer points to
 * ends where another one begins. Pools keep many buffers in one allocation.
 *
 * One thread. Memory is bounded: of regions the latest, of a region SLICES pointers.
 */
#ifndef UM_SLICES_H
#define UM_SLICES_H

#include "um_event.h"

typedef struct um_slices um_slices_t;

um_status_t um_slices_new(um_slices_t **out);
void um_slices_free(um_slices_t *slices); /* NULL is fine */

/* A launch has a pointer to there. Pointers into one 2 MiB block are one. */
void um_slices_note(um_slices_t *slices, uint32_t region, uint64_t offset_bytes);
void um_slices_forget(um_slices_t *slices, uint32_t region); /* it is gone */

/* The end of what a pointer to there may point to: the next one known, or, of the last one, as far on as
 * the widest gap between two. region_bytes where the region's start is the only one known. */
uint64_t um_slices_end(const um_slices_t *slices, uint32_t region, uint64_t offset_bytes,
                       uint64_t region_bytes);

#endif

#include "slices.h"

#include <stdlib.h>
#include <string.h>

#define REGIONS 1024u /* by id modulo this: the latest ones */
#define SLICES  128u

typedef struct region {
    uint32_t id, n;
    uint32_t block[SLICES]; /* of the pointers, from the region's start, ascending */
} region_t;

struct um_slices {
    region_t region[REGIONS];
};

um_status_t um_slices_new(um_slices_t **out)
{
    um_slices_t *slices = calloc(1, sizeof(*slices));

    if (!slices)
        return UM_ERR_NO_MEMORY;
    *out = slices;
    return UM_OK;
}

void um_slices_free(um_slices_t *slices)
{
    free(slices);
}

/* The first pointer not before `block`. */
static uint32_t position(const region_t *region, uint32_t block)
{
    uint32_t low = 0, high = region->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (region->block[middle] < block)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void um_slices_note(um_slices_t *slices, uint32_t id, uint64_t offset_bytes)
{
    region_t *region = &slices->region[id % REGIONS];
    uint64_t block = offset_bytes / UM_BLOCK_BYTES;
    uint32_t at;

    if (!id || block >= UINT32_MAX)
        return;
    if (region->id != id) {
        region->id = id;
        region->n = 0;
    }
    at = position(region, (uint32_t)block);
    if (region->n == SLICES || (at < region->n && region->block[at] == block))
        return;
    memmove(&region->block[at + 1], &region->block[at],
            (region->n - at) * sizeof(region->block[0]));
    region->block[at] = (uint32_t)block;
    region->n++;
}

void um_slices_forget(um_slices_t *slices, uint32_t id)
{
    region_t *region = &slices->region[id % REGIONS];

    if (region->id == id)
        region->id = region->n = 0;
}

uint64_t um_slices_end(const um_slices_t *slices, uint32_t id, uint64_t offset_bytes,
                       uint64_t region_bytes)
{
    const region_t *region = &slices->region[id % REGIONS];
    uint32_t block = (uint32_t)(offset_bytes / UM_BLOCK_BYTES), last = 0, gap = 0, at;
    uint64_t end;

    if (!id || region->id != id || !region->n)
        return region_bytes;
    at = position(region, block + 1);
    if (at < region->n) {
        end = (uint64_t)region->block[at] * UM_BLOCK_BYTES;
        return end < region_bytes ? end : region_bytes;
    }
    for (uint32_t i = 0; i < region->n; last = region->block[i++])
        if (region->block[i] - last > gap)
            gap = region->block[i] - last;
    end = offset_bytes + (uint64_t)gap * UM_BLOCK_BYTES;
    return gap && end < region_bytes ? end : region_bytes;
}

#include "workload_lifetimes.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define LOOKED_BACK 4096 /* regions, for a record that names none */

uint64_t um_lifetime_end(const um_lifetime_t *one)
{
    return (one->addr + one->bytes + UM_PAGE_BYTES - 1) & ~(uint64_t)(UM_PAGE_BYTES - 1);
}

um_lifetime_t *um_lifetimes_find(const um_lifetimes_t *of, uint32_t id)
{
    const um_id_t *found = um_ids_find(&of->ids, id);

    return found ? &of->list[found->value] : NULL;
}

/* The first live one that ends behind addr. */
static size_t live_behind(const um_lifetimes_t *of, uint64_t addr)
{
    size_t low = 0, high = of->n_live;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const um_lifetime_t *one = &of->list[of->live[middle]];

        if (one->addr + one->bytes <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const um_lifetime_t *um_lifetimes_over(const um_lifetimes_t *of, uint64_t addr, uint64_t bytes)
{
    size_t at = live_behind(of, addr);

    return at < of->n_live && of->list[of->live[at]].addr < addr + bytes ? &of->list[of->live[at]]
                                                                         : NULL;
}

/* What a region takes on a GPU. Small ones share their blocks with others: only their bytes count. */
static uint64_t memory_bytes(const um_lifetime_t *one)
{
    if (one->bytes < UM_BLOCK_BYTES)
        return one->bytes;
    return ((one->addr + one->bytes - 1) / UM_BLOCK_BYTES - one->addr / UM_BLOCK_BYTES + 1) *
           UM_BLOCK_BYTES;
}

um_status_t um_lifetimes_begin(um_lifetimes_t *of, const um_lifetime_t *one)
{
    uint32_t index = (uint32_t)of->n;

    if (!um_grow(&of->list, &of->size, of->n + 1, sizeof *of->list) ||
        (one->managed && !um_grow(&of->live, &of->live_size, of->n_live + 1, sizeof *of->live)) ||
        um_ids_put(&of->ids, one->id, index) != UM_OK)
        return UM_ERR_NO_MEMORY;
    if (one->managed) {
        size_t at = live_behind(of, one->addr);

        memmove(&of->live[at + 1], &of->live[at], (of->n_live - at) * sizeof *of->live);
        of->live[at] = index;
        of->n_live++;
        of->live_bytes += one->bytes;
        of->live_memory_bytes += memory_bytes(one);
    }
    of->list[of->n++] = *one;
    return UM_OK;
}

void um_lifetimes_end(um_lifetimes_t *of, um_lifetime_t *one, uint64_t step)
{
    one->gone = step;
    if (one->managed) {
        size_t at = live_behind(of, one->addr);

        memmove(&of->live[at], &of->live[at + 1], (of->n_live - at - 1) * sizeof *of->live);
        of->n_live--;
        of->live_bytes -= one->bytes;
        of->live_memory_bytes -= memory_bytes(one);
    }
}

static bool there(const um_lifetime_t *one, size_t step, uint64_t addr, uint64_t end)
{
    return one->managed && one->born <= step && step < one->gone && addr < um_lifetime_end(one) &&
           one->addr < end;
}

/* Records come late: the region may be gone by now. */
static const um_lifetime_t *at_step(const um_lifetimes_t *of, size_t step, uint64_t addr,
                                    uint64_t end)
{
    const um_lifetime_t *alive = um_lifetimes_over(of, addr, end - addr);

    if (alive && there(alive, step, addr, end))
        return alive;
    for (size_t i = of->n; i > 0 && of->n - i < LOOKED_BACK; i--)
        if (there(&of->list[i - 1], step, addr, end))
            return &of->list[i - 1];
    return NULL;
}

bool um_lifetimes_clip(const um_lifetimes_t *of, size_t step, uint32_t *region, uint64_t *addr,
                       uint64_t *bytes)
{
    const um_lifetime_t *one = *region ? um_lifetimes_find(of, *region) : NULL;
    uint64_t from = *addr, end = *addr + *bytes;

    if (end <= from || !of->list)
        return false;
    if (!one || !there(one, step, from, end))
        one = at_step(of, step, from, end);
    if (!one)
        return false;
    if (from < one->addr)
        from = one->addr;
    if (end > um_lifetime_end(one))
        end = um_lifetime_end(one);
    *region = one->id;
    *addr = from;
    *bytes = end - from;
    return true;
}

void um_lifetimes_free(um_lifetimes_t *of)
{
    free(of->list);
    free(of->live);
    um_ids_free(&of->ids);
    *of = (um_lifetimes_t){0};
}

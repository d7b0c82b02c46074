/* What a launch's arguments are: pointers, and what may be integers. On the launch path: no lock, no allocation. */
#include "kernels.h"

#include <string.h>

/* What no allocation can be: the first 64 KiB are never mapped. Spares the lookup of small integers. */
#define UM_LOWEST_ADDR UINT64_C(65536)

typedef struct um_arg_sink {
    const um_regions_t *regions;
    um_arg_t *out;
    uint32_t max, n;
} um_arg_sink_t;

/* Looks at the aligned words of `size` bytes that lie `offset` bytes into the parameter block. */
static inline void um_scan(um_arg_sink_t *sink, uint32_t slot, const char *bytes, size_t offset,
                           size_t size)
{
    for (size_t at = -offset & 7; at + 8 <= size; at += 8) {
        um_region_t region;
        uint64_t word;

        memcpy(&word, bytes + at, sizeof word);
        if (word < UM_LOWEST_ADDR || !um_regions_find(sink->regions, word, &region))
            continue;
        if (sink->n < sink->max)
            sink->out[sink->n] = (um_arg_t){.slot = slot,
                                            .offset_bytes = (uint32_t)at,
                                            .region = region.id,
                                            .region_offset_bytes = word - region.addr};
        sink->n++;
    }
}

uint32_t um_kernel_args(const um_kernel_t *kernel, const um_regions_t *regions, void *const *params,
                        const void *block, size_t block_bytes, um_arg_t *out, uint32_t max)
{
    um_arg_sink_t sink = {.regions = regions, .out = out, .max = max};

    if (um_regions_count(regions, UM_FAMILY_UNKNOWN) == 0)
        return 0;
    if (block != NULL && !kernel->layout_known)
        um_scan(&sink, 0, block, 0, block_bytes);
    for (uint32_t i = 0; i < kernel->n_params; i++) {
        const um_param_t *p = &kernel->params[i];
        size_t size = p->size_bytes;

        if (block != NULL) {
            if (p->offset_bytes >= block_bytes)
                break;
            if (size > block_bytes - p->offset_bytes)
                size = block_bytes - p->offset_bytes;
            um_scan(&sink, i, (const char *)block + p->offset_bytes, p->offset_bytes, size);
        } else if (params != NULL && params[i] != NULL) {
            um_scan(&sink, i, params[i], p->offset_bytes, size);
        }
    }
    return sink.n;
}

uint32_t um_kernel_scalars(const um_kernel_t *kernel, void *const *params, const void *block,
                           size_t block_bytes, const um_arg_t *args, uint32_t n_args,
                           um_scalar_t *out, uint32_t max)
{
    uint32_t n = 0, a = 0;

    for (uint64_t left = kernel->scalars; left != 0 && n < max; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left), half;
        const um_param_t *p = &kernel->params[i];
        const char *at = NULL;

        while (a < n_args && args[a].slot < i)
            a++;
        if (a < n_args && args[a].slot == i)
            continue;
        if (block == NULL)
            at = params != NULL ? params[i] : NULL;
        else if (p->offset_bytes + p->size_bytes <= block_bytes)
            at = (const char *)block + p->offset_bytes;
        if (at == NULL)
            continue;
        out[n].slot = i;
        out[n].size_bytes = p->size_bytes;
        if (p->size_bytes == sizeof out->value) {
            memcpy(&out[n].value, at, sizeof out->value);
        } else {
            memcpy(&half, at, sizeof half);
            out[n].value = half;
        }
        n++;
    }
    return n;
}

/* The driver model's life: work, and questions about where pages are. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/uvm_state.h"

/* ---- life ---- */

um_status_t um_uvm_new(const um_uvm_config_t *config, um_uvm_t **out)
{
    um_uvm_t *uvm;

    if (!config->n_gpus || config->n_gpus > UM_UVM_GPUS_MAX || !um_uvm_params_fit(&config->params))
        return UM_ERR_INVALID;
    for (uint32_t gpu = 0; gpu < config->n_gpus; gpu++)
        if (config->capacity_bytes[gpu] < UM_BLOCK_BYTES)
            return UM_ERR_INVALID;
    uvm = calloc(1, sizeof(*uvm));
    if (!uvm)
        return UM_ERR_NO_MEMORY;
    uvm->config = *config;
    uvm->n_processors = config->n_gpus + 1;
    uvm->lapse_ns = config->params.uvm_perf_thrashing_lapse_usec * 1000;
    for (uint32_t gpu = 0; gpu < config->n_gpus; gpu++)
        uvm->gpu[gpu + 1].capacity = config->capacity_bytes[gpu];
    *out = uvm;
    return UM_OK;
}

void um_uvm_free(um_uvm_t *uvm)
{
    if (!uvm)
        return;
    um_uvm_regions_free(uvm);
    while (uvm->free_pages) {
        um_pages_t *pages = uvm->free_pages;

        uvm->free_pages = pages->next_free;
        free(pages);
    }
    while (uvm->free_chunks) {
        um_chunk_t *chunk = uvm->free_chunks;

        uvm->free_chunks = chunk->next;
        free(chunk);
    }
    free(uvm);
}

void um_uvm_work_add(um_uvm_work_t *sum, const um_uvm_work_t *part)
{
    sum->gpu_faults += part->gpu_faults;
    sum->cpu_faults += part->cpu_faults;
    sum->batches_blocks += part->batches_blocks;
    for (int i = 0; i < UM_UVM_SIZES; i++) {
        sum->transfers_to_device[i] += part->transfers_to_device[i];
        sum->transfers_to_host[i] += part->transfers_to_host[i];
        sum->transfers_peer[i] += part->transfers_peer[i];
    }
    sum->bytes_to_device += part->bytes_to_device;
    sum->bytes_to_host += part->bytes_to_host;
    sum->bytes_peer += part->bytes_peer;
    sum->prefetched_bytes += part->prefetched_bytes;
    sum->populated_device_bytes += part->populated_device_bytes;
    sum->populated_host_bytes += part->populated_host_bytes;
    sum->unmapped_host_bytes += part->unmapped_host_bytes;
    sum->unmapped_device_bytes += part->unmapped_device_bytes;
    sum->mapped_remote_bytes += part->mapped_remote_bytes;
    sum->remote_read_bytes += part->remote_read_bytes;
    sum->remote_written_bytes += part->remote_written_bytes;
    sum->evicted_blocks += part->evicted_blocks;
    sum->evicted_bytes += part->evicted_bytes;
    sum->discarded_bytes += part->discarded_bytes;
    sum->duplicated_blocks += part->duplicated_blocks;
    sum->collapsed_blocks += part->collapsed_blocks;
    sum->collapsed_bytes += part->collapsed_bytes;
    sum->wasted_bytes += part->wasted_bytes;
    sum->throttles += part->throttles;
    sum->nap_ns += part->nap_ns;
    sum->pins += part->pins;
}

/* ---- where pages are ---- */

/* An extent that is being put together; written out when the next one differs. */
typedef struct um_extents {
    um_extent_t *out;
    size_t n, max;
    um_extent_t open;
} um_extents_t;

static void flush(um_extents_t *extents)
{
    if (!extents->open.bytes)
        return;
    if (extents->n < extents->max)
        extents->out[extents->n] = extents->open;
    extents->n++;
    extents->open.bytes = 0;
}

static void extend(um_extents_t *extents, uint64_t addr, uint64_t bytes, um_extent_t like)
{
    um_extent_t *open = &extents->open;

    if (open->bytes && open->addr + open->bytes == addr && open->where == like.where &&
        open->device == like.device) {
        open->bytes += bytes;
        return;
    }
    flush(extents);
    *open = (um_extent_t){addr, bytes, like.where, like.device};
}

static um_extent_t whereabouts(uint16_t resident)
{
    um_extent_t out = {.where = UM_WHERE_UNTOUCHED, .device = UM_DEVICE_NONE};

    if (resident == UM_BIT(UM_CPU)) {
        out.where = UM_WHERE_HOST;
        out.device = UM_DEVICE_HOST;
    } else if (resident) {
        out.where = resident & (resident - 1) ? UM_WHERE_BOTH : UM_WHERE_DEVICE;
        out.device = um_device_of((uint32_t)__builtin_ctz(resident & ~UM_BIT(UM_CPU)));
    }
    return out;
}

/* Processors of which sets[p * 3] has the page; the end of the run that is alike in *end. */
static uint16_t alike(const um_uvm_t *uvm, const um_set_t *sets, uint32_t page, uint32_t *end)
{
    uint16_t mask = 0;

    for (uint32_t p = 0; p < uvm->n_processors; p++) {
        const um_set_t *set = &sets[p * 3];
        um_run_t run = {0, page};

        if (um_set_next_run(set, &run) && run.first == page)
            mask |= UM_BIT(p);
        else
            run.end = run.first;
        if (run.end < *end)
            *end = run.end;
    }
    return mask;
}

typedef enum um_question { UM_RESIDENT, UM_HOST_MAPPED } um_question_t;

static void ask_block(const um_uvm_t *uvm, const um_block_t *block, uint64_t window, um_run_t run,
                      um_question_t question, um_extents_t *extents)
{
    while (run.first < run.end) {
        uint32_t end = run.end;
        uint16_t mask;

        if (question == UM_RESIDENT)
            mask = block->pages ? alike(uvm, &block->pages->of[0].resident, run.first, &end)
                                : block->resident;
        else
            mask = (block->pages ? alike(uvm, &block->pages->of[0].mapped, run.first, &end)
                                 : block->mapped) &
                   UM_BIT(UM_CPU);
        if (question == UM_RESIDENT || mask)
            extend(extents, window + (uint64_t)run.first * UM_PAGE_BYTES,
                   (uint64_t)(end - run.first) * UM_PAGE_BYTES, whereabouts(mask));
        run.first = end;
    }
}

static size_t ask(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_question_t question,
                  um_extent_t *out, size_t max)
{
    um_region_t *region = um_uvm_region_at(uvm, addr, bytes);
    um_extents_t extents = {.out = out, .max = max};

    if (!region)
        return 0;
    for (uint32_t i = um_uvm_region_index(region, addr);
         i <= um_uvm_region_index(region, addr + bytes - 1); i++)
        ask_block(uvm, um_uvm_region_block(region, i), um_uvm_region_window(region, i),
                  um_uvm_region_run(region, i, addr, addr + bytes), question, &extents);
    flush(&extents);
    return extents.n;
}

size_t um_uvm_extents(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_extent_t *out,
                      size_t max)
{
    return ask(uvm, addr, bytes, UM_RESIDENT, out, max);
}

size_t um_uvm_host_mapped(const um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_extent_t *out,
                          size_t max)
{
    return ask(uvm, addr, bytes, UM_HOST_MAPPED, out, max);
}

uint64_t um_uvm_resident_bytes(const um_uvm_t *uvm, int32_t device)
{
    uint32_t processor;

    return um_processor_of(uvm, device, &processor) ? uvm->resident_bytes[processor] : 0;
}

uint64_t um_uvm_free_bytes(const um_uvm_t *uvm, int32_t device)
{
    uint32_t processor;

    if (!um_processor_of(uvm, device, &processor) || processor == UM_CPU)
        return 0;
    return uvm->gpu[processor].capacity - uvm->gpu[processor].allocated;
}

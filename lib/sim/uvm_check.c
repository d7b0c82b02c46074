/* The model's invariants, for tests. */
#include <stdarg.h>
#include <stdio.h>

#include "sim/uvm_state.h"

typedef struct um_check {
    const um_uvm_t *uvm;
    char *error;
    size_t error_bytes;
    uint64_t resident_bytes[UM_PROCESSORS_MAX];
    uint64_t allocated[UM_PROCESSORS_MAX];
    uint64_t chunks[UM_PROCESSORS_MAX];
} um_check_t;

__attribute__((format(printf, 2, 3))) static bool fail(um_check_t *check, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(check->error, check->error_bytes, format, args);
    va_end(args);
    return false;
}

/* The block's three sets of one processor, whether it keeps them or not. */
static void sets_of(const um_block_t *block, uint32_t p, const um_set_t *all, um_set_t out[3])
{
    um_set_t none = {{0}};

    if (block->pages) {
        out[0] = block->pages->of[p].resident;
        out[1] = block->pages->of[p].mapped;
        out[2] = block->pages->of[p].writable;
        return;
    }
    out[0] = block->resident & UM_BIT(p) ? *all : none;
    out[1] = block->mapped & UM_BIT(p) ? *all : none;
    out[2] = block->writable & UM_BIT(p) ? *all : none;
}

static bool inside(const um_set_t *part, const um_set_t *whole)
{
    um_set_t outside = um_set_less(part, whole);

    return um_set_empty(&outside);
}

static bool check_chunk(um_check_t *check, const um_region_t *region, uint32_t index, uint32_t p,
                        const um_set_t *resident, const um_set_t *discarded)
{
    const um_block_t *block = um_uvm_region_block(region, index);
    const um_chunk_t *chunk = um_block_chunk(block, p);
    um_set_t alive = um_set_less(resident, discarded);
    um_list_t list = um_set_empty(resident) ? UM_LIST_UNUSED
                     : um_set_empty(&alive) ? UM_LIST_DISCARDED
                                            : UM_LIST_USED;

    if (!chunk)
        return um_set_empty(resident) ||
               fail(check, "region %u block %u: resident on GPU %u without memory", region->id,
                    index, p - 1);
    if (chunk->block != block || chunk->window != um_uvm_region_window(region, index))
        return fail(check, "region %u block %u: another block's memory", region->id, index);
    if (chunk->list != list)
        return fail(check, "region %u block %u: on list %u of GPU %u, not on %u", region->id, index,
                    chunk->list, p - 1, list);
    check->chunks[p]++;
    check->allocated[p] += UM_BLOCK_BYTES;
    return true;
}

static bool check_block(um_check_t *check, const um_region_t *region, uint32_t index)
{
    const um_uvm_t *uvm = check->uvm;
    const um_block_t *block = um_uvm_region_block(region, index);
    um_set_t all = um_set_of(0, UM_SET_PAGES), none = {{0}};
    um_set_t discarded = block->pages ? block->pages->discarded : block->discarded ? all : none;
    um_set_t fresh = block->pages ? block->pages->fresh : block->fresh ? all : none;
    um_set_t sets[UM_PROCESSORS_MAX][3], once = {{0}}, more = {{0}};

    for (uint32_t p = 0; p < uvm->n_processors; p++) {
        sets_of(block, p, &all, sets[p]);
        um_set_t again = um_set_and(&once, &sets[p][0]);

        um_set_add(&more, &again);
        um_set_add(&once, &sets[p][0]);
        check->resident_bytes[p] += (uint64_t)um_set_count(&sets[p][0]) * UM_PAGE_BYTES;
        if (p != UM_CPU && !check_chunk(check, region, index, p, &sets[p][0], &discarded))
            return false;
    }
    if (!inside(&discarded, &once) || !inside(&fresh, &once))
        return fail(check, "region %u block %u: notes on pages that are nowhere", region->id,
                    index);
    if (!um_set_empty(&more) && !block->read_mostly)
        return fail(check, "region %u block %u: page %u in two places", region->id, index,
                    um_set_next(&more, 0));
    for (uint32_t p = 0; p < uvm->n_processors; p++) {
        um_set_t reach = {{0}}, both = um_set_and(&sets[p][2], &more);

        for (uint32_t q = 0; q < uvm->n_processors; q++)
            if (um_uvm_reaches(uvm, p, q))
                um_set_add(&reach, &sets[q][0]);
        if (!inside(&sets[p][1], &reach))
            return fail(check, "region %u block %u: processor %u maps what it cannot reach",
                        region->id, index, p);
        if (!inside(&sets[p][2], &sets[p][1]))
            return fail(check, "region %u block %u: processor %u may write unmapped pages",
                        region->id, index, p);
        if (!um_set_empty(&both))
            return fail(check, "region %u block %u: page %u has copies and a writer", region->id,
                        index, um_set_next(&both, 0));
    }
    return true;
}

static bool check_lists(um_check_t *check, uint32_t p)
{
    const um_gpu_t *gpu = &check->uvm->gpu[p];
    uint64_t listed = 0;

    for (uint32_t list = 0; list < UM_LIST_COUNT; list++) {
        const um_chunk_t *before = NULL;

        for (const um_chunk_t *chunk = gpu->list[list].head; chunk; chunk = chunk->next) {
            if (chunk->prev != before || chunk->list != list || chunk->processor != p)
                return fail(check, "GPU %u: list %u is broken", p - 1, list);
            before = chunk;
            listed++;
        }
        if (gpu->list[list].tail != before)
            return fail(check, "GPU %u: list %u has a wrong end", p - 1, list);
    }
    if (listed != check->chunks[p])
        return fail(check, "GPU %u: %llu chunks listed, %llu in blocks", p - 1,
                    (unsigned long long)listed, (unsigned long long)check->chunks[p]);
    if (gpu->allocated != check->allocated[p])
        return fail(check, "GPU %u: allocated bytes differ from the chunks'", p - 1);
    if (gpu->allocated > gpu->capacity)
        return fail(check, "GPU %u: more allocated than there is", p - 1);
    return check->resident_bytes[p] <= gpu->allocated ||
           fail(check, "GPU %u: more resident than allocated", p - 1);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written through the struct */
bool um_uvm_check(const um_uvm_t *uvm, char *error, size_t error_bytes)
{
    um_check_t check = {.uvm = uvm, .error = error, .error_bytes = error_bytes};
    const um_block_t *before = NULL; /* a shared one comes once for each of its regions */

    for (size_t i = 0; i < uvm->n_regions; i++) {
        const um_region_t *region = uvm->by_addr[i];

        if (i && uvm->by_addr[i - 1]->end > region->addr)
            return fail(&check, "region %u overlaps the one before it", region->id);
        if (i && uvm->by_id[i - 1]->id >= uvm->by_id[i]->id)
            return fail(&check, "regions are not in order of id");
        for (uint32_t block = 0; block < region->n_blocks; block++) {
            if (um_uvm_region_block(region, block) != before && !check_block(&check, region, block))
                return false;
            before = um_uvm_region_block(region, block);
        }
    }
    for (uint32_t p = 0; p < uvm->n_processors; p++) {
        if (check.resident_bytes[p] != uvm->resident_bytes[p])
            return fail(&check, "processor %u: resident bytes differ from the pages'", p);
        if (p != UM_CPU && !check_lists(&check, p))
            return false;
    }
    return true;
}

/* What a user asks for: prefetch, advice, discard. */
#include "sim/uvm_state.h"

/* Calls `fn` for each block of a range with the pages of it that the range takes. Advice is left out
 * where the range has less than half of what lives in a block. */
typedef void (*advice_fn)(um_visit_t *visit, uint32_t processor);
typedef um_status_t (*pages_fn)(um_visit_t *visit, uint32_t processor, const um_set_t *pages);

static um_status_t each_block(um_uvm_t *uvm, uint64_t addr, uint64_t bytes, uint64_t now_ns,
                              um_uvm_work_t *work, uint32_t processor, advice_fn advise,
                              pages_fn treat)
{
    um_region_t *region = um_uvm_region_at(uvm, addr, bytes);
    um_status_t status = UM_OK;

    if (!region)
        return UM_ERR_INVALID;
    uvm->last = region;
    for (uint32_t i = um_uvm_region_index(region, addr);
         i <= um_uvm_region_index(region, addr + bytes - 1) && status == UM_OK; i++) {
        um_run_t run = um_uvm_region_run(region, i, addr, addr + bytes);
        um_set_t pages = um_set_of(run.first, run.end);
        um_visit_t visit;

        status = um_visit_begin_at(&visit, uvm, region, i, now_ns, work);
        if (status != UM_OK)
            break;
        work->batches_blocks++;
        if (treat)
            status = treat(&visit, processor, &pages);
        else if ((run.end - run.first) * 2 >= um_uvm_region_live_pages(region, i))
            advise(&visit, processor);
        um_visit_end(&visit);
    }
    return status;
}

/* ---- prefetch ---- */

static um_status_t prefetch_block(um_visit_t *visit, uint32_t to, const um_set_t *pages)
{
    bool keep = visit->block->read_mostly;
    um_set_t nothing = {{0}}, before = um_visit_populated(visit), come, alive, mapped;
    um_chunk_t *chunk;
    um_status_t status;

    status = um_visit_allocate(visit, to);
    if (status != UM_OK)
        return status;
    come = um_set_less(pages, &visit->pages->of[to].resident);
    alive = um_set_and(&before, &come);
    if (keep && !um_set_empty(&alive))
        visit->work->duplicated_blocks++;
    um_thrash_forget(visit, &alive);
    um_visit_move(visit, to, &come, &nothing, UM_CAUSE_USER, keep);
    um_set_drop(&visit->pages->discarded, pages);
    /* What nobody had touched gets a place on the host, but no mapping there. */
    mapped = to == UM_CPU ? um_set_and(pages, &before) : *pages;
    um_visit_map(visit, to, &mapped, !keep, UM_REMOTE_POLICY);
    um_visit_map_accessed_by(visit, pages);
    /* A whole block that is there already counts as migrated once more. */
    chunk = um_block_chunk(visit->block, to);
    if (chunk && um_set_count(pages) == UM_SET_PAGES)
        um_chunk_put(visit->uvm, chunk, UM_LIST_USED);
    return UM_OK;
}

um_status_t um_uvm_prefetch(um_uvm_t *uvm, int32_t device, uint64_t addr, uint64_t bytes,
                            uint64_t now_ns, um_uvm_work_t *work)
{
    uint32_t to;

    if (!um_processor_of(uvm, device, &to))
        return UM_ERR_INVALID;
    return each_block(uvm, addr, bytes, now_ns, work, to, NULL, prefetch_block);
}

/* ---- advice ---- */

/* Existing mappings lose the right to write, so that a write is noticed. */
static void set_read_mostly(um_visit_t *visit, uint32_t unused)
{
    (void)unused;
    visit->block->read_mostly = true;
    for (uint32_t p = 0; p < visit->uvm->n_processors; p++)
        memset(&visit->pages->of[p].writable, 0, sizeof(um_set_t));
}

/* One copy stays: at the preferred location, else the first processor's that has one. */
static void unset_read_mostly(um_visit_t *visit, uint32_t unused)
{
    um_set_t kept = {{0}};
    uint32_t start = visit->block->preferred ? visit->block->preferred - 1u : UM_CPU;

    (void)unused;
    visit->block->read_mostly = false;
    for (uint32_t i = 0; i < visit->uvm->n_processors; i++) {
        uint32_t p = i == 0 ? start : i <= start ? i - 1 : i;
        um_set_t mine = visit->pages->of[p].resident;
        um_set_t surplus = um_set_and(&mine, &kept);

        um_visit_unmap(visit, p, &surplus);
        um_visit_leave(visit, p, &surplus);
        um_set_add(&kept, &mine);
    }
    um_visit_unmap_stranded(visit);
}

/* Its own remote mappings go, so that its next touch brings the pages. */
static void set_preferred(um_visit_t *visit, uint32_t processor)
{
    um_set_t far;

    visit->block->preferred = (uint8_t)(processor + 1);
    far = um_set_less(&visit->pages->of[processor].mapped, &visit->pages->of[processor].resident);
    um_visit_unmap(visit, processor, &far);
}

static void unset_preferred(um_visit_t *visit, uint32_t unused)
{
    (void)unused;
    visit->block->preferred = 0;
}

static void set_accessed_by(um_visit_t *visit, uint32_t processor)
{
    um_set_t all;

    visit->block->accessed_by |= UM_BIT(processor);
    all = um_set_of(0, UM_SET_PAGES);
    um_visit_map_accessed_by(visit, &all);
}

static void unset_accessed_by(um_visit_t *visit, uint32_t processor)
{
    um_set_t far;

    visit->block->accessed_by &= (uint16_t)~UM_BIT(processor);
    far = um_set_less(&visit->pages->of[processor].mapped, &visit->pages->of[processor].resident);
    um_visit_unmap(visit, processor, &far);
}

um_status_t um_uvm_advise(um_uvm_t *uvm, um_hint_kind_t advice, int32_t device, uint64_t addr,
                          uint64_t bytes, um_uvm_work_t *work)
{
    static const struct {
        advice_fn fn;
        bool for_processor;
    } table[UM_HINT_KIND_COUNT] = {
        [UM_HINT_READ_MOSTLY] = {set_read_mostly, false},
        [UM_HINT_UNSET_READ_MOSTLY] = {unset_read_mostly, false},
        [UM_HINT_PREFERRED_LOCATION] = {set_preferred, true},
        [UM_HINT_UNSET_PREFERRED_LOCATION] = {unset_preferred, false},
        [UM_HINT_ACCESSED_BY] = {set_accessed_by, true},
        [UM_HINT_UNSET_ACCESSED_BY] = {unset_accessed_by, true},
    };
    uint32_t processor = 0;

    if ((unsigned)advice >= UM_HINT_KIND_COUNT || !table[advice].fn)
        return UM_ERR_INVALID;
    if (table[advice].for_processor && !um_processor_of(uvm, device, &processor))
        return UM_ERR_INVALID;
    return each_block(uvm, addr, bytes, 0, work, processor, table[advice].fn, NULL);
}

/* ---- discard ---- */

static um_status_t discard_block(um_visit_t *visit, uint32_t unused, const um_set_t *pages)
{
    um_set_t populated = um_visit_populated(visit);
    um_set_t gone = um_set_and(pages, &populated);

    (void)unused;
    um_visit_waste(visit, &gone);
    for (uint32_t p = 0; p < visit->uvm->n_processors; p++)
        um_visit_unmap(visit, p, &gone);
    um_set_add(&visit->pages->discarded, &gone);
    return UM_OK;
}

um_status_t um_uvm_discard(um_uvm_t *uvm, uint64_t addr, uint64_t bytes, um_uvm_work_t *work)
{
    return each_block(uvm, addr, bytes, 0, work, 0, NULL, discard_block);
}

/* Touches: what faults, where the pages go, who maps them afterwards. */
#include "sim/uvm_state.h"

static bool writes(um_access_kind_t kind)
{
    return kind == UM_ACCESS_WRITE || kind == UM_ACCESS_ATOMIC;
}

/* ---- mapping ---- */

void um_visit_map(um_visit_t *visit, uint32_t processor, const um_set_t *pages, bool writable,
                  um_remote_map_cause_t cause)
{
    const um_uvm_t *uvm = visit->uvm;
    um_pages_t *state = visit->pages;
    um_set_t fresh = um_set_less(pages, &state->of[processor].mapped);
    um_set_t far = um_set_less(&fresh, &state->of[processor].resident);

    um_set_add(&state->of[processor].mapped, pages);
    if (writable)
        um_set_add(&state->of[processor].writable, pages);
    for (uint32_t where = 0; where < uvm->n_processors && !um_set_empty(&far); where++) {
        um_set_t there = um_set_and(&far, &state->of[where].resident);
        um_run_t run = {0, 0};
        um_event_t event = {.type = UM_EV_REMOTE_MAP};

        while (um_set_next_run(&there, &run)) {
            uint64_t addr = um_visit_addr(visit, run.first);
            uint64_t bytes = (uint64_t)(run.end - run.first) * UM_PAGE_BYTES;

            visit->work->mapped_remote_bytes += bytes;
            event.u.remote_map = (um_ev_remote_map_t){.addr = addr,
                                                      .bytes = bytes,
                                                      .src = um_device_of(where),
                                                      .dst = um_device_of(processor),
                                                      .cause = cause,
                                                      .region = um_visit_region(visit, addr)};
            um_uvm_tell(uvm, &event);
        }
        um_set_drop(&far, &there);
    }
}

/* Pages with more than one copy. */
static um_set_t duplicated(const um_visit_t *visit)
{
    um_set_t once = {{0}}, more = {{0}};

    for (uint32_t p = 0; p < visit->uvm->n_processors; p++) {
        um_set_t again = um_set_and(&once, &visit->pages->of[p].resident);

        um_set_add(&more, &again);
        um_set_add(&once, &visit->pages->of[p].resident);
    }
    return more;
}

void um_visit_map_accessed_by(um_visit_t *visit, const um_set_t *pages)
{
    bool writable = !visit->block->read_mostly;

    for (uint32_t p = 0; p < visit->uvm->n_processors; p++)
        if (visit->block->accessed_by & UM_BIT(p)) {
            um_set_t near = um_visit_reachable(visit, p, pages);

            um_set_drop(&near, &visit->pages->discarded); /* a touch must be noticed */
            um_visit_map(visit, p, &near, writable, UM_REMOTE_POLICY);
        }
}

/* ---- serving a fault ---- */

/* Brings pages to one place and maps them for the processor that faulted. */
static um_status_t bring(um_visit_t *visit, uint32_t processor, uint32_t to,
                         const um_set_t *faulted, bool write, um_remote_map_cause_t cause)
{
    um_pages_t *pages = visit->pages;
    bool keep = visit->block->read_mostly && !write;
    um_set_t absent = um_set_less(faulted, &pages->of[to].resident);
    um_set_t extra = {{0}}, all, moved, other, duplicates;
    um_status_t status = um_visit_allocate(visit, to);

    if (status != UM_OK)
        return status;
    if (cause != UM_REMOTE_THRASHING && !(visit->block->read_mostly && write))
        extra = um_visit_grow(visit, to, faulted);
    all = um_set_or(faulted, &extra);
    moved = um_visit_populated(visit);
    moved = um_set_and(&moved, &all);
    um_set_drop(&moved, &pages->of[to].resident);
    if (keep && !um_set_empty(&moved))
        visit->work->duplicated_blocks++;

    if (write) {
        duplicates = duplicated(visit);
        duplicates = um_set_and(&duplicates, faulted);
        if (visit->block->read_mostly && um_set_empty(&duplicates))
            duplicates = um_set_and(faulted, &moved);
        if (!um_set_empty(&duplicates)) {
            visit->work->collapsed_blocks++;
            visit->work->collapsed_bytes += (uint64_t)um_set_count(&duplicates) * UM_PAGE_BYTES;
        }
    }
    um_visit_move(visit, to, &absent, &extra, UM_CAUSE_COHERENCE, keep);
    if (write)
        for (uint32_t q = 0; q < visit->uvm->n_processors; q++)
            if (q != to) {
                other = um_set_and(faulted, &pages->of[q].resident);
                um_visit_unmap(visit, q, &other);
                um_visit_leave(visit, q, &other);
            }
    if (write)
        um_visit_unmap_stranded(visit);
    um_set_drop(&pages->discarded, faulted);
    um_visit_map(visit, processor, processor == to ? &all : faulted, !keep, cause);
    um_visit_map_accessed_by(visit, &all);
    if (!visit->block->read_mostly)
        return um_thrash_note(visit, to, &moved);
    um_thrash_forget(visit, &moved);
    return UM_OK;
}

/* The pages that stay where they are because the processor may map them there. */
static um_set_t stays(const um_visit_t *visit, uint32_t processor, const um_set_t *faulted)
{
    um_set_t none = {{0}};

    if (visit->block->preferred || visit->block->read_mostly ||
        !(visit->block->accessed_by & UM_BIT(processor)))
        return none;
    none = um_visit_reachable(visit, processor, faulted);
    um_set_drop(&none, &visit->pages->discarded);
    return none;
}

/* Where faulted pages go if nothing is pinned. */
static uint32_t destination(const um_visit_t *visit, uint32_t processor)
{
    uint32_t preferred = visit->block->preferred;

    if (!preferred || visit->block->read_mostly ||
        !um_uvm_reaches(visit->uvm, processor, preferred - 1))
        return processor;
    return preferred - 1;
}

static void tell_fault(const um_visit_t *visit, uint32_t processor, const um_set_t *faulted,
                       um_access_kind_t kind)
{
    um_event_t event = {.type = processor == UM_CPU ? UM_EV_CPU_FAULT : UM_EV_GPU_FAULT};
    uint64_t addr = um_visit_addr(visit, um_set_next(faulted, 0));

    if (processor == UM_CPU)
        event.u.cpu_fault = (um_ev_cpu_fault_t){.addr = addr,
                                                .access = kind,
                                                .region = um_visit_region(visit, addr)};
    else
        event.u.gpu_fault = (um_ev_gpu_fault_t){.addr = addr,
                                                .groups = um_set_count(faulted),
                                                .access = kind,
                                                .device = um_device_of(processor),
                                                .region = um_visit_region(visit, addr)};
    um_uvm_tell(visit->uvm, &event);
}

/* One visit of the fault handler. *napping: the detector made the processor wait, nothing was done. */
static um_status_t serve(um_visit_t *visit, uint32_t processor, const um_set_t *faulted,
                         um_access_kind_t kind, bool *napping)
{
    um_thrash_verdict_t verdict = um_thrash_ask(visit, processor, faulted);
    um_set_t rest = *faulted, part;
    um_status_t status = UM_OK;

    *napping = verdict == UM_THRASH_THROTTLE;
    if (*napping)
        return UM_OK;
    tell_fault(visit, processor, faulted, kind);
    visit->work->batches_blocks++;
    if (processor == UM_CPU)
        visit->work->cpu_faults += um_set_count(faulted);
    else
        visit->work->gpu_faults += um_set_count(faulted);

    if (verdict == UM_THRASH_PIN) {
        part = um_set_and(&rest, &visit->block->thrash->pinned);
        um_set_drop(&rest, &part);
        status = bring(visit, processor, visit->block->thrash->pin_at, &part, writes(kind),
                       UM_REMOTE_THRASHING);
        if (status != UM_OK)
            return status;
    }
    part = stays(visit, processor, &rest);
    um_visit_map(visit, processor, &part, true, UM_REMOTE_POLICY);
    um_set_drop(&rest, &part);
    if (!um_set_empty(&rest))
        status = bring(visit, processor, destination(visit, processor), &rest, writes(kind),
                       UM_REMOTE_POLICY);
    return status;
}

/* ---- touches ---- */

static void count_remote(um_uvm_work_t *work, um_access_kind_t kind, uint32_t pages)
{
    uint64_t bytes = (uint64_t)pages * UM_PAGE_BYTES;

    if (writes(kind))
        work->remote_written_bytes += bytes;
    else
        work->remote_read_bytes += bytes;
}

static const um_set_t *allowed(const um_pages_t *pages, uint32_t processor, um_access_kind_t kind)
{
    return writes(kind) ? &pages->of[processor].writable : &pages->of[processor].mapped;
}

/* After all faults: what went over the link, and that prefetched pages were of use. */
static void account(um_pages_t *pages, uint32_t processor, const um_set_t *touched,
                    um_access_kind_t kind, um_uvm_work_t *work)
{
    um_set_t far = um_set_less(touched, &pages->of[processor].resident);

    um_set_drop(&pages->fresh, touched);
    if (!um_set_empty(&far))
        count_remote(work, kind, um_set_count(&far));
}

static um_status_t touch(um_uvm_t *uvm, uint32_t processor, um_region_t *region, uint32_t index,
                         const um_set_t *touched, um_access_kind_t kind, uint64_t now_ns,
                         um_uvm_work_t *work)
{
    um_visit_t visit;
    bool napping = false;
    um_status_t status = um_visit_begin_at(&visit, uvm, region, index, now_ns, work);

    if (status != UM_OK)
        return status;
    /* Over again: growth to a preferred location can take pages that were mapped here. */
    while (status == UM_OK && !napping) {
        um_set_t faulted = um_set_less(touched, allowed(visit.pages, processor, kind));
        uint32_t page = um_set_next(&faulted, 0);

        if (page == UM_SET_PAGES)
            break;
        if (processor == UM_CPU)
            faulted = um_set_of(page, page + 1);
        status = serve(&visit, processor, &faulted, kind, &napping);
    }
    if (status == UM_OK && !napping)
        account(visit.pages, processor, touched, kind, work);
    um_visit_end(&visit);
    return status;
}

/* Whether a block that is all alike needs the driver. */
static inline bool whole_faults(const um_block_t *block, uint32_t processor, um_access_kind_t kind)
{
    return !((writes(kind) ? block->writable : block->mapped) & UM_BIT(processor));
}

/* Finds the one block that a range lies in. */
static bool locate(const um_uvm_t *uvm, int32_t device, uint64_t addr, uint64_t bytes,
                   uint32_t *processor, um_region_t **region, uint32_t *index, um_run_t *run)
{
    if (!um_processor_of(uvm, device, processor))
        return false;
    *region = um_uvm_region_at(uvm, addr, bytes);
    if (!*region)
        return false;
    *index = um_uvm_region_index(*region, addr);
    if (bytes > UM_BLOCK_BYTES - addr % UM_BLOCK_BYTES)
        return false;
    *run = um_uvm_region_run(*region, *index, addr, addr + bytes);
    return true;
}

um_status_t um_uvm_touch(um_uvm_t *uvm, int32_t device, uint64_t addr, uint64_t bytes,
                         um_access_kind_t kind, uint64_t now_ns, um_uvm_work_t *work)
{
    uint32_t processor, index;
    um_region_t *region;
    um_block_t *block;
    um_set_t touched;
    um_run_t run;

    if (!locate(uvm, device, addr, bytes, &processor, &region, &index, &run))
        return UM_ERR_INVALID;
    uvm->last = region;
    block = um_uvm_region_block(region, index);
    if (!block->pages && !whole_faults(block, processor, kind)) {
        if (!block->fresh || run.end - run.first == UM_SET_PAGES) {
            block->fresh = false;
            if (!(block->resident & UM_BIT(processor)))
                count_remote(work, kind, run.end - run.first);
            return UM_OK;
        }
    }
    if (block->pages && um_set_has_run(allowed(block->pages, processor, kind), run)) {
        const um_set_t *resident = &block->pages->of[processor].resident;

        um_set_drop_run(&block->pages->fresh, run);
        if (!um_set_has_run(resident, run))
            count_remote(work, kind,
                         run.end - run.first - um_set_count_run(resident, run.first, run.end));
        return UM_OK;
    }
    touched = um_set_of(run.first, run.end);
    return touch(uvm, processor, region, index, &touched, kind, now_ns, work);
}

um_status_t um_uvm_touch_pages(um_uvm_t *uvm, int32_t device, uint64_t addr,
                               const uint64_t pages[UM_UVM_PAGE_WORDS], um_access_kind_t kind,
                               uint64_t now_ns, um_uvm_work_t *work)
{
    uint32_t processor, index;
    um_region_t *region;
    um_set_t touched;
    um_run_t run;

    if (!locate(uvm, device, addr, 1, &processor, &region, &index, &run))
        return UM_ERR_INVALID;
    memcpy(touched.word, pages, sizeof(touched.word));
    run = um_uvm_region_run(region, index, region->addr, region->end);
    if (um_set_empty(&touched) ||
        um_set_count_run(&touched, run.first, run.end) != um_set_count(&touched))
        return UM_ERR_INVALID;
    uvm->last = region;
    return touch(uvm, processor, region, index, &touched, kind, now_ns, work);
}

bool um_uvm_would_fault(const um_uvm_t *uvm, int32_t device, uint64_t addr, uint64_t bytes,
                        um_access_kind_t kind)
{
    uint32_t processor, index;
    um_region_t *region;
    const um_block_t *block;
    um_run_t run;

    if (!locate(uvm, device, addr, bytes, &processor, &region, &index, &run))
        return true;
    block = um_uvm_region_block(region, index);
    if (!block->pages)
        return whole_faults(block, processor, kind);
    return !um_set_has_run(allowed(block->pages, processor, kind), run);
}

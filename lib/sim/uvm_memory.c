/* Memory of the GPUs: chunks, the order in which they are taken back, and what a move does. */
#include <stdlib.h>

#include "sim/uvm_state.h"

/* ---- chunks and their lists ---- */

um_chunk_t *um_block_chunk(const um_block_t *block, uint32_t processor)
{
    um_chunk_t *chunk = block->chunks;

    while (chunk && chunk->processor != processor)
        chunk = chunk->of_block;
    return chunk;
}

static void unlink_chunk(um_uvm_t *uvm, um_chunk_t *chunk)
{
    um_gpu_t *gpu = &uvm->gpu[chunk->processor];

    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        gpu->list[chunk->list].head = chunk->next;
    if (chunk->next)
        chunk->next->prev = chunk->prev;
    else
        gpu->list[chunk->list].tail = chunk->prev;
}

static void link_chunk(um_uvm_t *uvm, um_chunk_t *chunk, um_list_t list)
{
    um_gpu_t *gpu = &uvm->gpu[chunk->processor];

    chunk->list = (uint8_t)list;
    chunk->next = NULL;
    chunk->prev = gpu->list[list].tail;
    if (chunk->prev)
        chunk->prev->next = chunk;
    else
        gpu->list[list].head = chunk;
    gpu->list[list].tail = chunk;
}

void um_chunk_put(um_uvm_t *uvm, um_chunk_t *chunk, um_list_t list)
{
    unlink_chunk(uvm, chunk);
    link_chunk(uvm, chunk, list);
}

/* Gives the memory back; nothing may be resident in it any more. */
void um_chunk_free(um_uvm_t *uvm, um_chunk_t *chunk)
{
    um_chunk_t **at = &chunk->block->chunks;

    while (*at != chunk)
        at = &(*at)->of_block;
    *at = chunk->of_block;
    unlink_chunk(uvm, chunk);
    uvm->gpu[chunk->processor].allocated -= UM_BLOCK_BYTES;
    chunk->next = uvm->free_chunks;
    uvm->free_chunks = chunk;
}

/* ---- eviction ---- */

/* Empties one chunk: copies are dropped, discarded pages forgotten, the rest goes to the host. */
static um_status_t evict(um_uvm_t *uvm, um_chunk_t *chunk, uint64_t now_ns, um_uvm_work_t *work)
{
    uint32_t gpu = chunk->processor;
    um_set_t nothing = {{0}}, gone, dead, last;
    um_visit_t visit;
    um_status_t status =
        um_visit_begin(&visit, uvm, chunk->block, chunk->window, chunk->region, now_ns, work);

    if (status != UM_OK)
        return status;
    gone = visit.pages->of[gpu].resident;
    if (!um_set_empty(&gone)) {
        work->evicted_blocks++;
        work->evicted_bytes += (uint64_t)um_set_count(&gone) * UM_PAGE_BYTES;
    }
    last = gone;
    for (uint32_t p = 0; p < uvm->n_processors; p++)
        if (p != gpu)
            um_set_drop(&last, &visit.pages->of[p].resident);
    dead = um_set_and(&last, &visit.pages->discarded);
    work->discarded_bytes += (uint64_t)um_set_count(&dead) * UM_PAGE_BYTES;
    um_set_drop(&last, &dead);
    um_visit_move(&visit, UM_CPU, &last, &nothing, UM_CAUSE_EVICTION, false);
    um_visit_map_accessed_by(&visit, &last);

    um_set_drop(&gone, &last);
    um_visit_waste(&visit, &gone);
    um_visit_unmap(&visit, gpu, &gone);
    um_visit_leave(&visit, gpu, &gone);
    um_visit_unmap_stranded(&visit);
    um_set_drop(&visit.pages->discarded, &dead);
    um_chunk_free(uvm, chunk);
    um_visit_end(&visit);
    return UM_OK;
}

static um_status_t make_room(um_uvm_t *uvm, uint32_t processor, uint64_t now_ns,
                             um_uvm_work_t *work)
{
    um_gpu_t *gpu = &uvm->gpu[processor];

    while (gpu->capacity - gpu->allocated < UM_BLOCK_BYTES) {
        um_chunk_t *victim = NULL;
        um_status_t status;

        for (int list = 0; list < UM_LIST_COUNT && !victim; list++)
            victim = gpu->list[list].head;
        if (!victim)
            return UM_ERR_FULL; /* cannot be: a block fits into an empty GPU */
        status = evict(uvm, victim, now_ns, work);
        if (status != UM_OK)
            return status;
    }
    return UM_OK;
}

um_status_t um_visit_allocate(um_visit_t *visit, uint32_t processor)
{
    um_uvm_t *uvm = visit->uvm;
    um_chunk_t *chunk;
    um_status_t status;

    if (processor == UM_CPU || um_block_chunk(visit->block, processor))
        return UM_OK;
    status = make_room(uvm, processor, visit->now_ns, visit->work);
    if (status != UM_OK)
        return status;
    chunk = uvm->free_chunks;
    if (chunk)
        uvm->free_chunks = chunk->next;
    else if (!(chunk = malloc(sizeof(*chunk))))
        return UM_ERR_NO_MEMORY;
    chunk->block = visit->block;
    chunk->window = visit->window;
    chunk->region = visit->region;
    chunk->processor = (uint8_t)processor;
    chunk->of_block = visit->block->chunks;
    visit->block->chunks = chunk;
    link_chunk(uvm, chunk, UM_LIST_UNUSED);
    uvm->gpu[processor].allocated += UM_BLOCK_BYTES;
    return UM_OK;
}

/* ---- moving ---- */

static uint32_t size_class(uint32_t pages)
{
    uint32_t class = pages > 1 ? 32 - (uint32_t)__builtin_clz(pages - 1) : 0;

    return class < UM_UVM_SIZES ? class : UM_UVM_SIZES - 1;
}

/* One DMA transfer of a run of pages. */
static void transfer(um_visit_t *visit, uint32_t from, uint32_t to, um_run_t run,
                     um_migrate_cause_t cause)
{
    um_uvm_work_t *work = visit->work;
    uint32_t class = size_class(run.end - run.first);
    uint64_t bytes = (uint64_t)(run.end - run.first) * UM_PAGE_BYTES;
    uint64_t addr = um_visit_addr(visit, run.first);
    um_event_t event = {.type = UM_EV_MIGRATE};

    if (from == UM_CPU) {
        work->transfers_to_device[class]++;
        work->bytes_to_device += bytes;
        if (cause == UM_CAUSE_PREFETCH)
            work->prefetched_bytes += bytes;
    } else if (to == UM_CPU) {
        work->transfers_to_host[class]++;
        work->bytes_to_host += bytes;
    } else {
        work->transfers_peer[class]++;
        work->bytes_peer += bytes;
    }
    event.u.migrate = (um_ev_migrate_t){.addr = addr,
                                        .bytes = bytes,
                                        .src = um_device_of(from),
                                        .dst = um_device_of(to),
                                        .cause = cause,
                                        .region = um_visit_region(visit, addr)};
    um_uvm_tell(visit->uvm, &event);
}

/* Copies pages by runs, in address order; a run ends where the cause changes. */
static void copy(um_visit_t *visit, uint32_t from, uint32_t to, const um_set_t *faulted,
                 const um_set_t *prefetched, um_migrate_cause_t cause)
{
    um_run_t fault = {0, 0}, extra = {0, 0};
    bool more_faults = um_set_next_run(faulted, &fault);
    bool more_extra = um_set_next_run(prefetched, &extra);

    while (more_faults || more_extra) {
        if (more_faults && (!more_extra || fault.first < extra.first)) {
            transfer(visit, from, to, fault, cause);
            more_faults = um_set_next_run(faulted, &fault);
        } else {
            transfer(visit, from, to, extra, UM_CAUSE_PREFETCH);
            more_extra = um_set_next_run(prefetched, &extra);
        }
    }
}

/* Pages that leave where a prefetch brought them, untouched. */
void um_visit_waste(um_visit_t *visit, const um_set_t *pages)
{
    um_set_t wasted = um_set_and(pages, &visit->pages->fresh);

    visit->work->wasted_bytes += (uint64_t)um_set_count(&wasted) * UM_PAGE_BYTES;
    um_set_drop(&visit->pages->fresh, &wasted);
}

static void populate(um_visit_t *visit, uint32_t to, const um_set_t *pages)
{
    uint64_t bytes = (uint64_t)um_set_count(pages) * UM_PAGE_BYTES;

    if (to == UM_CPU)
        visit->work->populated_host_bytes += bytes;
    else
        visit->work->populated_device_bytes += bytes;
}

/* Fetches from the best source first: a peer where there is a link, then the host, then others. */
static void fetch(um_visit_t *visit, uint32_t to, um_set_t faulted, um_set_t prefetched,
                  um_migrate_cause_t cause)
{
    const um_uvm_t *uvm = visit->uvm;
    uint32_t start = uvm->config.peers ? 1 : 0;

    for (uint32_t i = 0; i < uvm->n_processors; i++) {
        uint32_t from = (start + i) % uvm->n_processors;
        um_set_t f = um_set_and(&faulted, &visit->pages->of[from].resident);
        um_set_t p = um_set_and(&prefetched, &visit->pages->of[from].resident);

        if (from == to)
            continue;
        if (from == UM_CPU || to == UM_CPU || uvm->config.peers) {
            copy(visit, from, to, &f, &p, cause);
        } else {
            copy(visit, from, UM_CPU, &f, &p, cause);
            copy(visit, UM_CPU, to, &f, &p, cause);
        }
        um_set_drop(&faulted, &f);
        um_set_drop(&prefetched, &p);
    }
}

void um_visit_move(um_visit_t *visit, uint32_t to, const um_set_t *faulted,
                   const um_set_t *prefetched, um_migrate_cause_t cause, bool keep)
{
    um_pages_t *pages = visit->pages;
    um_set_t f = um_set_less(faulted, &pages->of[to].resident);
    um_set_t p = um_set_less(prefetched, &pages->of[to].resident);
    um_set_t all, alive, born;

    um_set_drop(&p, &f);
    all = um_set_or(&f, &p);
    if (um_set_empty(&all))
        return;
    alive = um_visit_populated(visit);
    um_set_drop(&alive, &pages->discarded);
    born = um_set_less(&all, &alive);
    populate(visit, to, &born);
    fetch(visit, to, um_set_and(&f, &alive), um_set_and(&p, &alive), cause);

    if (!keep)
        um_visit_waste(visit, &all);
    for (uint32_t q = 0; q < visit->uvm->n_processors; q++) {
        if (q == to)
            continue;
        if (keep) {
            um_set_drop(&pages->of[q].writable, &all);
        } else {
            um_visit_unmap(visit, q, &all);
            um_visit_leave(visit, q, &all);
        }
    }
    um_visit_unmap(visit, to, &all); /* a remote mapping of what is now here */
    um_visit_settle(visit, to, &all);
    um_set_drop(&pages->discarded, &all);
    if (cause == UM_CAUSE_USER)
        um_set_add(&pages->fresh, &all);
    else
        um_set_add(&pages->fresh, &p);
    if (to != UM_CPU)
        um_chunk_put(visit->uvm, um_block_chunk(visit->block, to), UM_LIST_USED);
}

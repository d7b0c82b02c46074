/*
 * One pass over the steps, last to first. Each run of pages remembers who will read it before anybody
 * writes it; the writer, when the pass comes to it, knows for whom it wrote.
 */
#include "flows.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define BLOCK_PAGES (UM_BLOCK_BYTES / UM_PAGE_BYTES)

typedef enum um_actor { NOBODY = 0, HOST = 1, HERE = 2, ELSEWHERE = 3 } um_actor_t;

/* Pages of a block, from the end of the run before. Steps are stored plus one, 0 = nobody. */
typedef struct run {
    uint32_t here;       /* the next launch here that reads it */
    uint32_t last;       /* the last launch here that does before a writer comes */
    uint32_t host;       /* the next host phase that reads it */
    uint32_t first_step; /* who touches it first, as far as the pass has come */
    uint16_t end;
    uint8_t elsewhere; /* another GPU reads it */
    uint8_t first;     /* um_actor_t */
} run_t;

typedef struct block {
    run_t one; /* all of it, where runs == NULL */
    run_t *runs;
    uint32_t n, size;
} block_t;

typedef struct region {
    uint32_t region;
    uint64_t addr, bytes;
    block_t *blocks; /* NULL = not touched */
} region_t;

typedef struct pass {
    region_t *regions; /* ascending by id */
    size_t n_regions, regions_size;
    um_flows_t *flows;
    uint32_t now; /* step plus one */
    um_actor_t actor;
    um_status_t status;
} pass_t;

/* ---- flows -------------------------------------------------------------------------------------- */

static void flow_add(pass_t *pass, um_flow_kind_t kind, uint32_t to, uint64_t bytes)
{
    um_flow_list_t *list = &pass->flows->list[kind];

    if (list->n > list->open && list->flow[list->n - 1].to == to - 1) {
        list->flow[list->n - 1].bytes += bytes;
        return;
    }
    if (!um_grow(&list->flow, &list->size, list->n + 1, sizeof(*list->flow))) {
        pass->status = UM_ERR_NO_MEMORY;
        return;
    }
    list->flow[list->n++] = (um_flow_t){pass->now - 1, to - 1, bytes};
}

static int by_reader(const void *a, const void *b)
{
    uint32_t x = ((const um_flow_t *)a)->to, y = ((const um_flow_t *)b)->to;

    return (x > y) - (x < y);
}

/* One flow for each reader of the step that is done. */
static void flow_close(um_flow_list_t *list)
{
    size_t n = list->open;

    if (list->n > list->open + 1)
        qsort(list->flow + list->open, list->n - list->open, sizeof(um_flow_t), by_reader);
    for (size_t i = list->open; i < list->n; i++) {
        if (n > list->open && list->flow[n - 1].to == list->flow[i].to)
            list->flow[n - 1].bytes += list->flow[i].bytes;
        else
            list->flow[n++] = list->flow[i];
    }
    list->n = list->open = n;
}

uint64_t um_flow_bytes(const um_flow_list_t *list)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < list->n; i++)
        sum += list->flow[i].bytes;
    return sum;
}

/* ---- runs of pages ------------------------------------------------------------------------------ */

/* A writer before readers: it wrote for them. A reader joins them. */
static void visit(pass_t *pass, run_t *run, uint64_t bytes, uint32_t kind)
{
    if (kind != UM_ACCESS_READ) {
        if (run->here && pass->actor != HERE)
            flow_add(pass, UM_FLOW_IN, run->here, bytes);
        if (pass->actor == HERE) {
            if (run->here)
                flow_add(pass, UM_FLOW_KEPT, run->here, bytes);
            if (run->host)
                flow_add(pass, UM_FLOW_OUT, run->host, bytes);
            else if (run->here && !run->elsewhere)
                flow_add(pass, UM_FLOW_DIRTY, run->last, bytes);
        }
        run->here = run->last = run->host = run->elsewhere = 0;
    }
    if (kind != UM_ACCESS_WRITE) {
        if (pass->actor == HOST) {
            run->host = pass->now;
        } else if (pass->actor == HERE) {
            if (run->here && run->here != pass->now)
                flow_add(pass, UM_FLOW_KEPT, run->here, bytes);
            run->here = pass->now;
            run->last = run->last ? run->last : pass->now;
        } else {
            run->elsewhere = 1;
        }
    }
    run->first = (uint8_t)pass->actor;
    run->first_step = pass->now;
}

/* What a copy or a memset puts there needs nothing, and nothing is known of how it got there. */
static void forget(run_t *run)
{
    run->here = run->last = run->host = run->elsewhere = 0;
    run->first = ELSEWHERE;
}

static bool same(const run_t *a, const run_t *b)
{
    return a->here == b->here && a->last == b->last && a->host == b->host &&
           a->elsewhere == b->elsewhere && a->first == b->first;
}

/* Makes a run end at `page`; returns the index of the one after. */
static uint32_t split(block_t *block, uint32_t page)
{
    uint32_t i = 0;

    if (page == 0)
        return 0;
    while (block->runs[i].end < page)
        i++;
    if (block->runs[i].end == page)
        return i + 1;
    memmove(&block->runs[i + 1], &block->runs[i], (block->n - i) * sizeof(run_t));
    block->runs[i].end = (uint16_t)page;
    block->n++;
    return i + 1;
}

static bool room_for_two(block_t *block)
{
    uint32_t size = block->size ? block->size * 2 : 4;
    run_t *runs;

    if (block->runs && block->n + 2 <= block->size)
        return true;
    runs = realloc(block->runs, size * sizeof(run_t));
    if (!runs)
        return false;
    if (!block->runs) {
        runs[0] = block->one;
        runs[0].end = BLOCK_PAGES;
        block->n = 1;
    }
    block->runs = runs;
    block->size = size;
    return true;
}

static void join(block_t *block)
{
    uint32_t n = 1;

    for (uint32_t i = 1; i < block->n; i++) {
        if (same(&block->runs[n - 1], &block->runs[i]))
            block->runs[n - 1].end = block->runs[i].end;
        else
            block->runs[n++] = block->runs[i];
    }
    block->n = n;
    if (n == 1) {
        block->one = block->runs[0];
        free(block->runs);
        block->runs = NULL;
        block->n = block->size = 0;
    }
}

/* kind UM_ACCESS_UNKNOWN = forget. */
static void block_touch(pass_t *pass, block_t *block, uint32_t first, uint32_t end, uint32_t kind)
{
    uint32_t from, to;

    if (!block->runs && first == 0 && end == BLOCK_PAGES) {
        if (kind == UM_ACCESS_UNKNOWN)
            forget(&block->one);
        else
            visit(pass, &block->one, UM_BLOCK_BYTES, kind);
        return;
    }
    if (!room_for_two(block)) {
        pass->status = UM_ERR_NO_MEMORY;
        return;
    }
    from = split(block, first);
    to = split(block, end);
    for (uint32_t i = from; i < to; i++) {
        uint32_t begin = i ? block->runs[i - 1].end : 0;

        if (kind == UM_ACCESS_UNKNOWN)
            forget(&block->runs[i]);
        else
            visit(pass, &block->runs[i], (uint64_t)(block->runs[i].end - begin) * UM_PAGE_BYTES,
                  kind);
    }
    join(block);
}

/* ---- regions ------------------------------------------------------------------------------------ */

static uint64_t block_number(uint64_t addr)
{
    return addr / UM_BLOCK_BYTES;
}

static uint64_t page_down(uint64_t addr)
{
    return addr / UM_PAGE_BYTES * UM_PAGE_BYTES;
}

static uint64_t page_up(uint64_t addr)
{
    return page_down(addr + UM_PAGE_BYTES - 1);
}

static uint64_t region_blocks(const region_t *region)
{
    return block_number(region->addr + region->bytes - 1) - block_number(region->addr) + 1;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const region_t *)a)->region, y = ((const region_t *)b)->region;

    return (x > y) - (x < y);
}

static region_t *region_find(const pass_t *pass, uint32_t id)
{
    region_t key = {.region = id};

    return pass->n_regions ? bsearch(&key, pass->regions, pass->n_regions, sizeof(key), by_id)
                           : NULL;
}

static void regions_collect(pass_t *pass, const um_workload_t *w)
{
    bool sorted = true;

    for (uint64_t i = 0; i < w->n_steps; i++) {
        const um_event_t *event = w->steps[i].event;
        const um_ev_region_alloc_t *alloc;

        if (!event || event->type != UM_EV_REGION_ALLOC)
            continue;
        alloc = &event->u.region_alloc;
        if (alloc->bytes == 0)
            continue;
        if (!um_grow(&pass->regions, &pass->regions_size, pass->n_regions + 1,
                     sizeof(*pass->regions))) {
            pass->status = UM_ERR_NO_MEMORY;
            return;
        }
        sorted = sorted &&
                 (!pass->n_regions || pass->regions[pass->n_regions - 1].region < alloc->region);
        pass->regions[pass->n_regions++] =
            (region_t){.region = alloc->region, .addr = alloc->addr, .bytes = alloc->bytes};
    }
    if (!sorted)
        qsort(pass->regions, pass->n_regions, sizeof(region_t), by_id);
}

/* Pages that the region may share with another are left alone: they count for neither. */
static void region_touch(pass_t *pass, uint32_t id, uint64_t addr, uint64_t bytes, uint32_t kind)
{
    region_t *region = region_find(pass, id);
    uint64_t end = addr + bytes, first;

    if (!region || bytes == 0)
        return;
    addr = page_down(addr > region->addr ? addr : page_up(region->addr));
    end = page_up(end);
    if (end > region->addr + region->bytes)
        end = page_down(region->addr + region->bytes);
    if (addr >= end)
        return;
    if (!region->blocks)
        region->blocks = calloc(region_blocks(region), sizeof(block_t));
    if (!region->blocks) {
        pass->status = UM_ERR_NO_MEMORY;
        return;
    }
    first = block_number(region->addr);
    while (addr < end && !pass->status) {
        uint64_t base = addr & ~(uint64_t)(UM_BLOCK_BYTES - 1);
        uint64_t until = base + UM_BLOCK_BYTES < end ? base + UM_BLOCK_BYTES : end;

        block_touch(pass, &region->blocks[block_number(addr) - first],
                    (uint32_t)((addr - base) / UM_PAGE_BYTES),
                    (uint32_t)((until - base) / UM_PAGE_BYTES), kind);
        addr = until;
    }
}

static void first_add(pass_t *pass, const run_t *run, uint64_t bytes)
{
    if (run->first == HERE)
        flow_add(pass, UM_FLOW_FIRST_HERE, run->first_step, bytes);
    else if (run->first == HOST)
        flow_add(pass, UM_FLOW_FIRST_HOST, run->first_step, bytes);
}

/* The pass has come to where the region begins: nobody was there before, unless its block is others',
 * too. */
static void region_begin(pass_t *pass, region_t *region)
{
    uint64_t n = region_blocks(region), at = block_number(region->addr) * UM_BLOCK_BYTES;

    if (!region->blocks)
        return;
    for (uint64_t b = 0; b < n; b++, at += UM_BLOCK_BYTES) {
        block_t *block = &region->blocks[b];
        bool shared = at < region->addr || at + UM_BLOCK_BYTES > region->addr + region->bytes;
        uint32_t begin = 0;

        if (!block->runs && !shared)
            first_add(pass, &block->one, UM_BLOCK_BYTES);
        for (uint32_t i = 0; block->runs && i < block->n && !shared; i++) {
            first_add(pass, &block->runs[i],
                      (uint64_t)(block->runs[i].end - begin) * UM_PAGE_BYTES);
            begin = block->runs[i].end;
        }
        free(block->runs);
    }
    free(region->blocks);
    region->blocks = NULL;
}

/* ---- the pass ----------------------------------------------------------------------------------- */

static void step_back(pass_t *pass, const um_workload_t *w, const um_step_t *step, int32_t device)
{
    const um_event_t *event = step->event;
    region_t *region;

    if (!event)
        pass->actor = HOST;
    else if (event->type == UM_EV_LAUNCH)
        pass->actor = event->u.launch.device == device ? HERE : ELSEWHERE;
    else if (event->type == UM_EV_SET)
        region_touch(pass, event->u.set.region, event->u.set.addr, event->u.set.bytes,
                     UM_ACCESS_UNKNOWN);
    else if (event->type == UM_EV_COPY)
        region_touch(pass, event->u.copy.dst_region, event->u.copy.dst_addr, event->u.copy.bytes,
                     UM_ACCESS_UNKNOWN);
    if (!event || event->type == UM_EV_LAUNCH) {
        for (uint32_t i = step->n_touches; i-- > 0 && !pass->status;) {
            const um_touch_t *touch = &w->touches[step->first_touch + i];

            region_touch(pass, touch->region, touch->addr, touch->bytes, touch->kind);
        }
    }
    if (event && event->type == UM_EV_REGION_ALLOC &&
        (region = region_find(pass, event->u.region_alloc.region)))
        region_begin(pass, region);
    for (int k = 0; k < UM_FLOW_KINDS; k++)
        flow_close(&pass->flows->list[k]);
}

um_status_t um_flows_find(const um_workload_t *workload, int32_t device, um_flows_t *out)
{
    um_flows_t flows = {0};
    pass_t pass = {.flows = &flows};

    if (workload->n_steps >= UINT32_MAX)
        return UM_ERR_INVALID;
    regions_collect(&pass, workload);
    for (uint64_t i = workload->n_steps; i-- > 0 && !pass.status;) {
        pass.now = (uint32_t)i + 1;
        step_back(&pass, workload, &workload->steps[i], device);
    }
    for (size_t i = 0; i < pass.n_regions; i++) /* after a failure */
        region_begin(&pass, &pass.regions[i]);
    free(pass.regions);
    if (pass.status)
        um_flows_free(&flows);
    else
        *out = flows;
    return pass.status;
}

void um_flows_free(um_flows_t *flows)
{
    for (int k = 0; k < UM_FLOW_KINDS; k++)
        free(flows->list[k].flow);
    *flows = (um_flows_t){0};
}

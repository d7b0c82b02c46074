/*
 * The rules against the real driver: traces recorded on an H200 (driver 580.159) say which pages
 * faulted together; the model is given those and must answer with the same moves, in the same runs,
 * for the same causes, and find the same pages thrashing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim_uvm.h"
#include "um_trace.h"

typedef struct list {
    um_event_t *event;
    size_t n, room;
} list_t;

static void list_add(void *ctx, const um_event_t *event)
{
    list_t *list = ctx;

    if (list->n == list->room) {
        list->room = list->room ? list->room * 2 : 1024;
        list->event = realloc(list->event, list->room * sizeof(*event));
        cr_assert_not_null(list->event);
    }
    list->event[list->n++] = *event;
}

static list_t trace_read(const char *name)
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    char path[4096], error[256] = "";
    list_t list = {0};

    snprintf(path, sizeof(path), "%s/tests/data/h200/%s.umt", getenv("UM_SRCDIR"), name);
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, sizeof(error)),
                 UM_OK, "%s", error);
    while (um_trace_reader_next(reader, &event) == UM_OK)
        list_add(&list, event);
    um_trace_reader_close(reader);
    return list;
}

typedef struct replay {
    um_uvm_t *uvm;
    um_uvm_work_t work;
    list_t said; /* by the model */
    /* Pages that faulted in the visit that is being read. */
    uint64_t window, end, begin_ns, end_ns, pages[UM_UVM_PAGE_WORDS];
} replay_t;

static void visit_close(replay_t *replay)
{
    if (!replay->window)
        return;
    cr_assert_eq(um_uvm_touch_pages(replay->uvm, 0, replay->window, replay->pages, UM_ACCESS_WRITE,
                                    replay->begin_ns, &replay->work),
                 UM_OK);
    replay->window = 0;
    memset(replay->pages, 0, sizeof(replay->pages));
}

/* Moves of one visit follow each other in time and address. */
static void visit_add(replay_t *replay, const um_event_t *event)
{
    const um_ev_migrate_t *move = &event->u.migrate;
    uint64_t window = move->addr / BLOCK * BLOCK;

    if (replay->window != window || move->addr < replay->end ||
        event->time_ns > replay->end_ns + 20000)
        visit_close(replay);
    if (!replay->window)
        replay->begin_ns = event->time_ns;
    replay->window = window;
    replay->end = move->addr + move->bytes;
    replay->end_ns = event->time_ns + move->duration_ns;
    if (move->cause != UM_CAUSE_COHERENCE)
        return;
    for (uint64_t addr = move->addr; addr < replay->end; addr += PAGE)
        replay->pages[(addr - window) / PAGE / 64] |= 1ull << ((addr - window) / PAGE % 64);
}

/* The driver told of the fault before it moved the page, the detector looks at the time of the move. */
static uint64_t time_of_move(const list_t *trace, size_t at)
{
    uint64_t addr = trace->event[at].u.cpu_fault.addr / PAGE * PAGE;

    for (size_t i = at + 1; i < trace->n && i < at + 64; i++)
        if (trace->event[i].type == UM_EV_MIGRATE && trace->event[i].u.migrate.addr == addr)
            return trace->event[i].time_ns;
    return trace->event[at].time_ns;
}

/* The GPU populates a region that nobody touched; which pages fault together is not recorded. */
static void populate(replay_t *replay, const um_event_t *fault, const um_event_t *region)
{
    uint64_t addr = region->u.region_alloc.addr, bytes = region->u.region_alloc.bytes;
    um_extent_t extent;

    if (fault->u.gpu_fault.addr < addr || fault->u.gpu_fault.addr >= addr + bytes)
        return;
    if (um_uvm_extents(replay->uvm, addr, bytes, &extent, 1) == 1 &&
        extent.where == UM_WHERE_UNTOUCHED)
        um_uvm_prefetch(replay->uvm, 0, addr, bytes, fault->time_ns, &replay->work);
}

static void step(replay_t *replay, const list_t *trace, size_t at, um_event_t *region)
{
    const um_event_t *event = &trace->event[at];

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        cr_assert_eq(um_uvm_alloc(replay->uvm, event->u.region_alloc.region,
                                  event->u.region_alloc.addr, event->u.region_alloc.bytes),
                     UM_OK);
        *region = *event;
        break;
    case UM_EV_REGION_FREE:
        visit_close(replay);
        cr_assert_eq(um_uvm_release(replay->uvm, event->u.region_free.region), UM_OK);
        break;
    case UM_EV_CPU_FAULT:
        visit_close(replay);
        cr_assert_eq(um_uvm_touch(replay->uvm, HOST, event->u.cpu_fault.addr, 1,
                                  (um_access_kind_t)event->u.cpu_fault.access,
                                  time_of_move(trace, at), &replay->work),
                     UM_OK);
        break;
    case UM_EV_GPU_FAULT:
        populate(replay, event, region);
        break;
    case UM_EV_MIGRATE:
        if (event->u.migrate.src == HOST)
            visit_add(replay, event);
        break;
    default:
        break;
    }
}

static size_t next_of(const list_t *list, size_t at, um_event_type_t type)
{
    while (at < list->n && list->event[at].type != type)
        at++;
    return at;
}

static void compare(const char *name, const list_t *real, const list_t *said, um_event_type_t type)
{
    size_t i = next_of(real, 0, type), j = next_of(said, 0, type), n = 0;

    for (; i < real->n && j < said->n; n++) {
        const um_event_t *a = &real->event[i], *b = &said->event[j];

        if (type == UM_EV_MIGRATE) {
            const um_ev_migrate_t *x = &a->u.migrate, *y = &b->u.migrate;

            cr_assert(x->addr == y->addr && x->bytes == y->bytes && x->src == y->src &&
                          x->dst == y->dst && x->cause == y->cause,
                      "%s: move %zu: %#llx+%llu cause %u, not %#llx+%llu cause %u", name, n,
                      (unsigned long long)x->addr, (unsigned long long)x->bytes, x->cause,
                      (unsigned long long)y->addr, (unsigned long long)y->bytes, y->cause);
        } else {
            const um_ev_thrash_t *x = &a->u.thrash, *y = &b->u.thrash;

            cr_assert(x->addr == y->addr && x->bytes == y->bytes && x->processors == y->processors,
                      "%s: thrashing page %zu: %#llx, not %#llx", name, n,
                      (unsigned long long)x->addr, (unsigned long long)y->addr);
        }
        i = next_of(real, i + 1, type);
        j = next_of(said, j + 1, type);
    }
    cr_assert(i == real->n && j == said->n, "%s: one has more than %zu %s events", name, n,
              um_event_type_name(type));
}

static void replay_trace(const char *name, size_t least_moves, size_t thrashing)
{
    um_uvm_config_t config = {.n_gpus = 1, .capacity_bytes = {1ull << 37}, .event = list_add};
    replay_t replay = {0};
    list_t real = trace_read(name);
    um_event_t region = {0};
    size_t moves = 0, thrash = 0;
    char error[200];

    um_uvm_params_default(&config.params);
    config.event_ctx = &replay.said;
    cr_assert_eq(um_uvm_new(&config, &replay.uvm), UM_OK);
    for (size_t i = 0; i < real.n; i++) {
        step(&replay, &real, i, &region);
        moves += real.event[i].type == UM_EV_MIGRATE;
        thrash += real.event[i].type == UM_EV_THRASH;
    }
    visit_close(&replay);
    cr_assert(um_uvm_check(replay.uvm, error, sizeof(error)), "%s", error);
    cr_assert_geq(moves, least_moves, "%s has only %zu moves", name, moves);
    cr_assert_eq(thrash, thrashing);
    compare(name, &real, &replay.said, UM_EV_MIGRATE);
    compare(name, &real, &replay.said, UM_EV_THRASH);
    um_uvm_free(replay.uvm);
    free(real.event);
    free(replay.said.event);
}

Test(sim_uvm_traces, a_region_that_goes_back_and_forth_moves_as_recorded)
{
    replay_trace("alternate", 8000, 0);
}

Test(sim_uvm_traces, regions_of_many_streams_move_as_recorded)
{
    replay_trace("streams", 16000, 0);
}

Test(sim_uvm_traces, a_sparse_gather_moves_as_recorded)
{
    replay_trace("gather", 3000, 0);
}

Test(sim_uvm_traces, a_table_and_its_results_move_as_recorded)
{
    replay_trace("table", 2000, 0);
}

Test(sim_uvm_traces, a_window_read_by_the_cpu_thrashes_as_recorded)
{
    replay_trace("stencil", 2000, 32);
}

Test(sim_uvm_traces, a_counter_that_bounces_thrashes_calms_and_thrashes_as_recorded)
{
    replay_trace("churn", 20, 17);
}

/*
 * The hint loop of the live library, unchanged, in simulated time: the program's calls reach it after
 * the bus's delay, records of faults and migrations later, outcomes of hints like calls.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "core/bus.h"
#include "exec/hinter.h"

#define WORKERS       2u
#define HEADROOM      ((uint64_t)512 << 20) /* as by default, but never more than a part */
#define HEADROOM_PART 16u
#define PIECE         ((uint64_t)32 << 20)

typedef struct note {
    struct note *next;
    uint64_t due_ns;
    um_event_t event[]; /* packed */
} note_t;

typedef struct notes {
    note_t *head, *tail;
} notes_t;

struct um_hint_loop {
    um_actor_t actor;
    um_engine_t *engine;
    um_executor_t *executor;
    um_hinter_t *hinter;
    um_sink_t sink;
    notes_t calls, records;
    bool at_once; /* the hints are the program's own doing: no delay */
    bool telling;
};

/* ---- events on their way ---- */

static note_t *first(um_hint_loop_t *loop, notes_t **from)
{
    note_t *call = loop->calls.head, *record = loop->records.head;

    *from = call && (!record || call->due_ns <= record->due_ns) ? &loop->calls : &loop->records;
    return (*from)->head;
}

static void wake(um_hint_loop_t *loop)
{
    notes_t *from;
    note_t *note = first(loop, &from);

    if (note)
        um_actor_wake(loop->engine, &loop->actor, note->due_ns);
}

void um_hint_loop_tell(um_hint_loop_t *loop, const um_event_t *event, bool is_record)
{
    um_engine_t *engine = loop->engine;
    notes_t *notes = is_record ? &loop->records : &loop->calls;
    double delay = is_record ? engine->machine->record_delay_ns : engine->machine->hint_delay_ns;
    size_t bytes = um_event_pack(event, NULL, 0);
    note_t *note;

    if (loop->at_once && !loop->telling && !is_record) {
        loop->telling = true;
        loop->sink.event(loop->sink.ctx, event);
        loop->telling = false;
        return;
    }
    note = malloc(sizeof(*note) + bytes);
    if (!note) {
        um_engine_fail(engine, UM_ERR_NO_MEMORY);
        return;
    }
    um_event_pack(event, note->event, bytes);
    note->next = NULL;
    note->due_ns = engine->now_ns + (uint64_t)delay;
    if (notes->tail)
        notes->tail->next = note;
    else
        notes->head = note;
    notes->tail = note;
    wake(loop);
}

static void act(um_engine_t *engine, um_actor_t *actor)
{
    um_hint_loop_t *loop = (um_hint_loop_t *)actor;
    notes_t *from;
    note_t *note = first(loop, &from);

    if (!note)
        return;
    from->head = note->next;
    if (!from->head)
        from->tail = NULL;
    loop->sink.event(loop->sink.ctx, note->event);
    free(note);
    note = first(loop, &from);
    if ((!note || note->due_ns > engine->now_ns) && loop->sink.idle)
        loop->sink.idle(loop->sink.ctx);
    wake(loop);
}

/* What became of a hint: seen by whoever listens at once, by the loop like a call. */
static void post(void *ctx, const um_event_t *event)
{
    um_hint_loop_t *loop = ctx;
    um_event_t copy = *event;

    copy.time_ns = loop->engine->now_ns;
    um_engine_tell(loop->engine, &copy, false);
}

/* ---- the simulator's page tables ---- */

static um_status_t present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out, size_t max,
                           size_t *n, uint64_t *present_bytes)
{
    um_hint_loop_t *loop = ctx;
    size_t found = um_uvm_host_mapped(loop->engine->uvm, addr, bytes, out, max);

    *present_bytes = 0;
    *n = found < max ? found : max;
    for (size_t i = 0; i < *n; i++)
        *present_bytes += out[i].bytes;
    /* More than were asked for: the rest counts as one. */
    if (found > max && max) {
        *present_bytes += addr + bytes - (out[max - 1].addr + out[max - 1].bytes);
        out[max - 1].bytes = addr + bytes - out[max - 1].addr;
    }
    return UM_OK;
}

static bool page(void *ctx, uint64_t addr)
{
    um_hint_loop_t *loop = ctx;
    um_extent_t extent;

    return um_uvm_host_mapped(loop->engine->uvm, addr / UM_PAGE_BYTES * UM_PAGE_BYTES,
                              UM_PAGE_BYTES, &extent, 1) > 0;
}

static uint64_t now_ns(void *ctx)
{
    return ((um_hint_loop_t *)ctx)->engine->now_ns;
}

/* ---- life ---- */

void um_hint_loop_op_done(um_hint_loop_t *loop)
{
    um_executor_sim_serve(loop->executor);
}

void um_hint_loop_region_going(um_hint_loop_t *loop, uint64_t addr)
{
    um_hinter_region_going(loop->hinter, addr, loop->engine->now_ns);
}

void um_hint_loop_count(const um_hint_loop_t *loop, um_sim_result_t *result)
{
    um_hinter_stats_t stats;

    um_hinter_stats(loop->hinter, &stats);
    result->hints += stats.gate.applied;
    for (int i = 0; i < UM_HINT_RESULT_COUNT; i++)
        result->hints_refused += stats.gate.refused[i];
    if (loop->engine->config.learned)
        um_hinter_learned(loop->hinter, loop->engine->config.learned,
                          loop->engine->config.learned_ctx);
}

void um_hint_loop_free(um_hint_loop_t *loop)
{
    notes_t *from;

    if (!loop)
        return;
    for (note_t *note; (note = first(loop, &from));) {
        from->head = note->next;
        free(note);
    }
    um_hinter_free(loop->hinter);
    if (loop->executor)
        loop->executor->ops->free(loop->executor);
    free(loop);
}

um_status_t um_hint_loop_new(um_engine_t *engine, um_hint_loop_t **out)
{
    um_hint_loop_t *loop = calloc(1, sizeof(*loop));
    uint64_t capacity = engine->capacity_bytes;
    um_page_tables_t tables = {.ctx = loop, .present = present, .page = page, .now_ns = now_ns};
    um_hinter_config_t config = {.page_tables = &tables,
                                 .table = engine->config.policy->table,
                                 .advisors = engine->config.policy->advisors,
                                 .gate = {.piece_bytes = PIECE},
                                 .post = post,
                                 .post_ctx = loop};
    um_status_t status;

    if (!loop)
        return UM_ERR_NO_MEMORY;
    *out = loop; /* the caller frees it, also on failure */
    loop->engine = engine;
    loop->at_once = engine->config.policy->table == um_baseline_table;
    um_actor_init(engine, &loop->actor, act);
    if (!engine->regions && (status = um_regions_new(&engine->regions)) != UM_OK)
        return status;
    if ((status = um_executor_sim_new(engine, WORKERS, &loop->executor)) != UM_OK)
        return status;
    config.regions = engine->regions;
    config.executor = loop->executor;
    config.gate.headroom_bytes =
        capacity / HEADROOM_PART < HEADROOM ? capacity / HEADROOM_PART : HEADROOM;
    if ((status = um_hinter_new(&config, &loop->hinter)) != UM_OK)
        return status;
    loop->sink = um_hinter_sink(loop->hinter);
    for (size_t i = 0; i < engine->config.n_known; i++)
        loop->sink.event(loop->sink.ctx, &engine->config.known[i]);
    return UM_OK;
}

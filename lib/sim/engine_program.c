/*
 * The program: its steps start in the order of the list, each on its own thread's clock. A thread that
 * waits or faults keeps the steps of others back only when one of its own stands before them.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define NAP_LATE_NS 60000u /* that a sleeping thread wakes after its time (measured, MODEL.md) */
#define MAX_NAPS    64u    /* of one touch; then the page is taken to be pinned */

typedef enum state { STATE_FREE, STATE_DUE, STATE_WALK, STATE_WAIT } state_t;

typedef struct thread {
    um_actor_t actor;
    struct thread *next;
    uint32_t tid;
    state_t state;
    uint64_t free_ns; /* its last call returned */
    uint64_t base_ns; /* the work before its next step counts from here */
    const um_step_t *step;
    um_walk_t walk;
    uint64_t start_ns;
    uint32_t naps;
    /* what it waits for: all ops before a number */
    int32_t device;
    const um_stream_t *stream;
    uint64_t number;
    bool stalls; /* the wait is a hint's or a free's, not the program's own */
} thread_t;

typedef struct um_program {
    thread_t *threads;
    thread_t *last; /* found last */
    uint64_t next;  /* step to be started */
    uint64_t started_ns;
} program_t;

static void thread_act(um_engine_t *engine, um_actor_t *actor);

static thread_t *find(um_engine_t *engine, uint32_t tid)
{
    program_t *program = engine->program;
    thread_t **at = &program->threads;

    if (program->last && program->last->tid == tid)
        return program->last;
    while (*at && (*at)->tid != tid)
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        if (!*at) {
            um_engine_fail(engine, UM_ERR_NO_MEMORY);
            return NULL;
        }
        (*at)->tid = tid;
        um_actor_init(engine, &(*at)->actor, thread_act);
    }
    return program->last = *at;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- which step is next ---- */

/* The tid of a host phase is that of the step before it. */
static uint32_t tid_of(const program_t *program, const um_step_t *step)
{
    if (step->event && step->event->tid)
        return step->event->tid;
    return program->last ? program->last->tid : step->event ? step->event->tid : 0;
}

/* The next step of the list becomes due when its thread has nothing else to do. */
static void prepare(um_engine_t *engine)
{
    program_t *program = engine->program;
    const um_step_t *step;
    thread_t *thread;
    uint64_t at_ns;

    if (program->next == engine->workload->n_steps)
        return;
    step = &engine->workload->steps[program->next];
    thread = find(engine, tid_of(program, step));
    if (!thread || thread->state != STATE_FREE)
        return;
    at_ns = thread->free_ns;
    if (step->event)
        at_ns = later(at_ns, thread->base_ns + step->cpu_ns);
    thread->state = STATE_DUE;
    thread->step = step;
    um_actor_wake(engine, &thread->actor, later(at_ns, program->started_ns));
}

/* The thread's step is over: it returned at free_ns, and its own work counts from base_ns. */
static void finish(um_engine_t *engine, thread_t *thread, uint64_t free_ns, uint64_t base_ns)
{
    thread->free_ns = free_ns;
    thread->base_ns = base_ns;
    thread->state = STATE_FREE;
    if (free_ns > engine->end_ns)
        engine->end_ns = free_ns;
    prepare(engine);
}

static void finish_call(um_engine_t *engine, thread_t *thread, double call_ns)
{
    finish(engine, thread, engine->now_ns + (uint64_t)call_ns, engine->now_ns);
}

static void say(um_engine_t *engine, const um_event_t *event)
{
    um_event_t copy = *event;

    if (!engine->listening)
        return;
    copy.time_ns = engine->now_ns;
    um_engine_tell(engine, &copy, false);
}

/* ---- waiting ---- */

static void wait_over(um_engine_t *engine, thread_t *thread);

static void wait_for(um_engine_t *engine, thread_t *thread, int32_t device,
                     const um_stream_t *stream, uint64_t number, bool stalls)
{
    thread->state = STATE_WAIT;
    thread->start_ns = engine->now_ns;
    thread->device = device;
    thread->stream = stream;
    thread->number = number;
    thread->stalls = stalls;
    if (um_streams_done(engine, device, stream, number))
        wait_over(engine, thread);
}

void um_program_op_done(um_engine_t *engine)
{
    for (thread_t *thread = engine->program->threads; thread; thread = thread->next)
        if (thread->state == STATE_WAIT &&
            um_streams_done(engine, thread->device, thread->stream, thread->number))
            wait_over(engine, thread);
}

static void release(um_engine_t *engine, const um_ev_region_free_t *freed)
{
    if (engine->loop)
        um_hint_loop_region_going(engine->loop, freed->addr);
    um_engine_region_remove(engine, freed->region);
}

static void wait_over(um_engine_t *engine, thread_t *thread)
{
    const um_machine_t *machine = engine->machine;
    const um_event_t *event = thread->step->event;
    uint64_t end = engine->now_ns;

    if (thread->stalls)
        engine->result.host_stall_ns += engine->now_ns - thread->start_ns;
    if (event->type == UM_EV_SYNC) {
        um_event_t leave = *event;

        end += (uint64_t)machine->sync_call_ns;
        leave.time_ns = engine->now_ns;
        leave.u.sync.exit = 1;
        um_engine_tell(engine, &leave, false);
    } else if (event->type == UM_EV_REGION_FREE) {
        um_sim_region_t *region = um_engine_region(engine, event->u.region_free.region);

        if (region) {
            end += (uint64_t)(machine->free_call_ns +
                              (double)region->bytes / (1u << 20) * machine->free_ns_per_mib);
            say(engine, event);
            release(engine, &event->u.region_free);
        }
    }
    finish(engine, thread, end, end);
}

/* ---- host phases ---- */

static void host_begin(um_engine_t *engine, thread_t *thread, uint64_t work_ns)
{
    const um_step_t *step = thread->step;

    thread->state = STATE_WALK;
    um_walk_start(&thread->walk, engine->workload->touches + step->first_touch, step->n_touches,
                  work_ns, UM_BLOCK_BYTES);
    um_actor_wake(engine, &thread->actor, engine->now_ns);
}

/* A piece is touched by the CPU. false = it has to be tried again. */
static bool host_touch(um_engine_t *engine, thread_t *thread, const um_piece_t *piece,
                       uint64_t *end)
{
    const um_machine_t *machine = engine->machine;
    um_block_t *block = um_engine_block(engine, piece->region, piece->addr);
    um_uvm_work_t work = {0};
    uint64_t moved;
    double fixed = 0;

    *end = engine->now_ns;
    if (block && block->ready_ns > engine->now_ns) {
        if (block->hinted)
            engine->result.late_bytes += piece->bytes;
        block->hinted = false;
        *end = block->ready_ns;
        return false;
    }
    if (machine->coherent && um_uvm_would_fault(engine->uvm, UM_DEVICE_HOST, piece->addr,
                                                piece->bytes, (um_access_kind_t)piece->kind)) {
        um_extent_t extent;

        um_uvm_extents(engine->uvm, piece->addr, piece->bytes, &extent, 1);
        if (extent.where == UM_WHERE_DEVICE) {
            work.remote_read_bytes = piece->bytes;
            *end += um_cost_remote(engine, extent.device, *end, &work);
            return true;
        }
    }
    if (um_uvm_touch(engine->uvm, UM_DEVICE_HOST, piece->addr, piece->bytes,
                     (um_access_kind_t)piece->kind, engine->now_ns, &work) != UM_OK)
        return true;
    if (work.throttles && thread->naps++ < MAX_NAPS) {
        um_cost_charge(engine, UM_COST_FAULT, engine->now_ns, 0, &work);
        *end += work.nap_ns + NAP_LATE_NS;
        return false;
    }
    thread->naps = 0;
    moved = um_moved_bytes(&work);
    if (moved && block)
        block->faulted_ns = engine->now_ns;
    work.batches_blocks = 0; /* those are the GPU's handler's */
    if (piece->kind != UM_ACCESS_READ && work.bytes_to_host)
        fixed = work.cpu_faults * machine->cpu_write_fault_ns;
    *end = um_cost_charge(engine, UM_COST_FAULT, engine->now_ns, (uint64_t)fixed, &work);
    *end += um_cost_remote(engine, engine->moved_device, *end, &work);
    return true;
}

static void host_act(um_engine_t *engine, thread_t *thread)
{
    const um_piece_t *at = um_walk_piece(engine, &thread->walk, 0);
    um_piece_t piece;
    uint64_t end;
    bool done;

    if (!at) {
        end = engine->now_ns + um_walk_rest(&thread->walk);
        finish(engine, thread, end, end);
        return;
    }
    piece = *at;
    done = host_touch(engine, thread, &piece, &end);
    engine->result.host_stall_ns += end - engine->now_ns;
    if (done) {
        um_engine_touched(engine, UM_DEVICE_HOST, &piece);
        end += um_walk_step(&thread->walk);
    }
    um_actor_wake(engine, &thread->actor, end);
}

/* ---- calls ---- */

static void on_launch(um_engine_t *engine, thread_t *thread)
{
    const um_step_t *step = thread->step;
    um_event_t event = *step->event;
    um_ev_launch_t *launch = &event.u.launch;
    um_stream_t *stream;

    if (!launch->correlation)
        launch->correlation = step->launch + 1;
    if (launch->context < 64)
        engine->context_device[launch->context] = launch->device;
    stream =
        um_stream_find(engine,
                       (uint32_t)launch->device < engine->workload->n_gpus ? launch->device : 0,
                       launch->stream);
    engine->launching = engine->loop ? stream : NULL;
    say(engine, &event);
    engine->launching = NULL;
    if (stream && !(launch->flags & UM_LAUNCH_CAPTURED))
        um_stream_push(engine, stream,
                       &(um_op_t){.type = UM_OP_KERNEL,
                                  .event = step->event,
                                  .compute_ns =
                                      (uint64_t)((double)step->compute_ns * engine->time_scale),
                                  .touches = engine->workload->touches + step->first_touch,
                                  .n_touches = step->n_touches,
                                  .correlation = launch->correlation});
    finish_call(engine, thread, engine->machine->launch_call_ns);
}

static void on_sync(um_engine_t *engine, thread_t *thread)
{
    const um_ev_sync_t *sync = &thread->step->event->u.sync;
    int32_t device = um_engine_context_device(engine, sync->context);
    bool one = sync->kind == UM_SYNC_STREAM || sync->kind == UM_SYNC_COPY;

    if (sync->exit) {
        finish(engine, thread, engine->now_ns, engine->now_ns);
        return;
    }
    say(engine, thread->step->event);
    wait_for(engine, thread, device, one ? um_stream_find(engine, device, sync->stream) : NULL,
             engine->n_ops, false);
}

/* A trace may give a call more bytes than its region has: beyond it nothing can ever be brought. */
static uint64_t inside(const um_sim_region_t *region, uint64_t addr, uint64_t bytes)
{
    uint64_t left;

    if (addr < region->addr || addr - region->addr >= region->bytes)
        return 0;
    left = region->bytes - (addr - region->addr);
    return bytes < left ? bytes : left;
}

/* What a copy or set touches of a managed region. */
static void transfer_touch(um_engine_t *engine, um_op_t *op, uint32_t region, uint64_t addr,
                           uint64_t bytes, um_access_kind_t kind)
{
    const um_sim_region_t *r = um_engine_region(engine, region);

    bytes = r ? inside(r, addr, bytes) : 0;
    if (!bytes)
        return;
    op->own_touch[op->n_touches] = (um_touch_t){.addr = addr,
                                                .bytes = bytes,
                                                .region = region,
                                                .kind = (uint8_t)kind,
                                                .beside = op->n_touches > 0};
    op->n_touches++;
}

static void on_transfer(um_engine_t *engine, thread_t *thread)
{
    const um_event_t *event = thread->step->event;
    bool is_copy = event->type == UM_EV_COPY;
    const um_ev_copy_t *copy = &event->u.copy;
    const um_ev_set_t *set = &event->u.set;
    uint32_t flags = is_copy ? copy->flags : set->flags;
    int32_t device = is_copy ? copy->device : set->device;
    um_op_t op = {.type = UM_OP_TRANSFER, .event = event};
    um_stream_t *stream;
    uint64_t number;

    say(engine, event);
    if (device < 0 || (uint32_t)device >= engine->workload->n_gpus)
        device = 0;
    stream = um_stream_find(engine, device, is_copy ? copy->stream : set->stream);
    if (!stream || (flags & UM_TRANSFER_CAPTURED)) {
        finish_call(engine, thread, 0);
        return;
    }
    op.touches = op.own_touch;
    if (is_copy) {
        transfer_touch(engine, &op, copy->src_region, copy->src_addr, copy->bytes, UM_ACCESS_READ);
        transfer_touch(engine, &op, copy->dst_region, copy->dst_addr, copy->bytes, UM_ACCESS_WRITE);
    } else {
        transfer_touch(engine, &op, set->region, set->addr, set->bytes, UM_ACCESS_WRITE);
    }
    number = um_stream_push(engine, stream, &op);
    if (is_copy && !(flags & UM_TRANSFER_ASYNC))
        wait_for(engine, thread, device, stream, number + 1, false);
    else
        finish_call(engine, thread, engine->machine->copy_call_ns);
}

/* On an idle stream the caller carries the prefetch out itself; on a busy one it is left for later. */
static void on_hint(um_engine_t *engine, thread_t *thread)
{
    const um_event_t *event = thread->step->event;
    const um_ev_hint_t *hint = &event->u.hint;
    int32_t device = hint->device >= 0 ? hint->device : 0;
    um_op_t op = {.type = UM_OP_PREFETCH,
                  .submitted_ns = engine->now_ns,
                  .hint = {.kind = hint->kind,
                           .addr = hint->addr,
                           .bytes = hint->bytes,
                           .device = hint->device,
                           .region = hint->region}};
    um_stream_t *stream;
    uint64_t number;
    bool idle;

    if (!engine->app_hints || strcmp(hint->who, "app") != 0 || hint->result == UM_HINT_FAILED ||
        !um_engine_region(engine, hint->region) || (uint32_t)device >= engine->workload->n_gpus) {
        finish(engine, thread, engine->now_ns, engine->now_ns);
        return;
    }
    op.hint.bytes = inside(um_engine_region(engine, hint->region), hint->addr, hint->bytes);
    engine->result.hints++;
    say(engine, event);
    if (hint->kind != UM_HINT_PREFETCH) {
        uint64_t end = um_stream_advise(engine, &op.hint, engine->now_ns);

        engine->result.host_stall_ns += end - engine->now_ns;
        finish(engine, thread, end, end);
        return;
    }
    stream = um_stream_find(engine, device, hint->stream);
    if (!stream) {
        finish_call(engine, thread, 0);
        return;
    }
    idle = !stream->head;
    number = um_stream_push(engine, stream, &op);
    if (idle)
        wait_for(engine, thread, device, stream, number + 1, true);
    else
        finish_call(engine, thread, engine->machine->prefetch_call_ns);
}

static void on_alloc(um_engine_t *engine, thread_t *thread)
{
    const um_ev_region_alloc_t *alloc = &thread->step->event->u.region_alloc;
    um_status_t status = um_engine_region_add(engine, alloc, engine->now_ns);

    if (status != UM_OK && status != UM_ERR_INVALID)
        um_engine_fail(engine, status);
    say(engine, thread->step->event);
    finish_call(engine, thread,
                alloc->family == UM_FAMILY_MANAGED ? engine->machine->alloc_call_ns : 0);
}

/* Memory is given back when the GPUs are done with all that was asked of them. */
static void on_free(um_engine_t *engine, thread_t *thread)
{
    const um_ev_region_free_t *freed = &thread->step->event->u.region_free;

    if (!um_engine_region(engine, freed->region)) {
        say(engine, thread->step->event);
        um_engine_region_remove(engine, freed->region);
        finish_call(engine, thread, 0);
        return;
    }
    wait_for(engine, thread, UM_DEVICE_NONE, NULL, engine->n_ops, false);
}

static void on_context(um_engine_t *engine, thread_t *thread)
{
    const um_ev_context_t *context = &thread->step->event->u.context;

    if (context->context < 64 && context->device >= 0 &&
        (uint32_t)context->device < engine->workload->n_gpus)
        engine->context_device[context->context] = context->device;
    say(engine, thread->step->event);
    finish_call(engine, thread, 0);
}

static void on_other(um_engine_t *engine, thread_t *thread)
{
    if (thread->step->event->type != UM_EV_DEVICE) /* this machine's were told at the start */
        say(engine, thread->step->event);
    finish_call(engine, thread, 0);
}

static void start_step(um_engine_t *engine, thread_t *thread)
{
    static void (*const type[UM_EV_TYPE_COUNT])(um_engine_t * engine, thread_t * thread) = {
        [UM_EV_REGION_ALLOC] = on_alloc, [UM_EV_REGION_FREE] = on_free, [UM_EV_LAUNCH] = on_launch,
        [UM_EV_SYNC] = on_sync,          [UM_EV_COPY] = on_transfer,    [UM_EV_SET] = on_transfer,
        [UM_EV_HINT] = on_hint,          [UM_EV_CONTEXT] = on_context,
    };
    program_t *program = engine->program;
    const um_step_t *step = thread->step;

    program->started_ns = engine->now_ns;
    program->next++;
    if (!step->event)
        host_begin(engine, thread, step->cpu_ns);
    else if (step->event->type < UM_EV_TYPE_COUNT && type[step->event->type])
        type[step->event->type](engine, thread);
    else
        on_other(engine, thread);
    prepare(engine);
}

static void thread_act(um_engine_t *engine, um_actor_t *actor)
{
    thread_t *thread = (thread_t *)actor;

    if (thread->state == STATE_DUE)
        start_step(engine, thread);
    else if (thread->state == STATE_WALK)
        host_act(engine, thread);
}

/* ---- life ---- */

um_status_t um_program_start(um_engine_t *engine)
{
    engine->program = calloc(1, sizeof(*engine->program));
    if (!engine->program)
        return UM_ERR_NO_MEMORY;
    prepare(engine);
    return UM_OK;
}

void um_program_free(um_engine_t *engine)
{
    program_t *program = engine->program;

    while (program && program->threads) {
        thread_t *thread = program->threads;

        program->threads = thread->next;
        um_walk_fini(&thread->walk);
        free(thread);
    }
    free(program);
}

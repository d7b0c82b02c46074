/*
 * What runs on a stream of a GPU, one after the other: kernels, prefetches, copies. A worker that
 * carries out hints is a stream of its own.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAPS     64u /* of one touch; then the page is taken to be pinned */
#define FAULT_STRIDE 8u  /* pages; measured: 80 to 100 transfers for a dense block */
#define IDLE_TURNS   64u /* blocks in which a prefetch finds nothing to do, at once */

/* ---- ends ---- */

static void pop(um_engine_t *engine, um_stream_t *stream)
{
    um_op_t *op = stream->head;

    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    stream->running = false;
    if (engine->now_ns > engine->end_ns && !stream->is_worker)
        engine->end_ns = engine->now_ns;
    if (stream->head)
        um_actor_wake(engine, &stream->actor, engine->now_ns);
    if (op->owner)
        um_executor_sim_done(op->owner, stream, op);
    if (!stream->is_worker)
        um_program_op_done(engine);
    if (!stream->is_worker && engine->loop)
        um_hint_loop_op_done(engine->loop);
    if (engine->oracle)
        um_oracle_poke(engine->oracle);
    free(op);
}

/* ---- kernels ---- */

static void kernel_end(um_engine_t *engine, um_stream_t *stream)
{
    const um_op_t *op = stream->head;

    if (engine->listening && op->type == UM_OP_KERNEL) {
        const um_ev_launch_t *launch = &op->event->u.launch;
        um_event_t event = {.type = UM_EV_KERNEL_EXEC, .time_ns = stream->start_ns};

        event.u.kernel_exec =
            (um_ev_kernel_exec_t){.correlation = op->correlation,
                                  .kernel = launch->kernel,
                                  .duration_ns = engine->now_ns - stream->start_ns,
                                  .device = stream->device,
                                  .context = launch->context,
                                  .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
                                  .block = {launch->block[0], launch->block[1], launch->block[2]}};
        um_engine_tell(engine, &event, true);
    }
    pop(engine, stream);
}

/* The processors of the GPU are shared: a kernel that fills all of them keeps others waiting. */
static uint64_t compute(um_engine_t *engine, const um_stream_t *stream, uint64_t ns)
{
    um_engine_gpu_t *gpu = &engine->gpu[stream->device];
    uint64_t start = gpu->compute_ns > engine->now_ns ? gpu->compute_ns : engine->now_ns;
    const um_op_t *op = stream->head;
    double part = 1;

    if (op->type == UM_OP_KERNEL) {
        const um_ev_launch_t *launch = &op->event->u.launch;
        double threads = 1;

        for (int i = 0; i < 3; i++)
            threads *= (double)launch->grid[i] * launch->block[i];
        if (threads > 0 && threads < gpu->threads)
            part = threads / gpu->threads;
    }
    gpu->compute_ns = start + (uint64_t)((double)ns * part);
    engine->result.compute_ns += ns;
    return start + ns;
}

static void stall(um_engine_t *engine, um_stream_t *stream, uint64_t until_ns)
{
    engine->result.stall_ns += until_ns - engine->now_ns;
    um_actor_wake(engine, &stream->actor, until_ns);
}

/* The pages of a piece that fault at once: threads are all over it, so that one in so many is the
 * first of its neighbours. */
static um_status_t touch_some(um_engine_t *engine, int32_t device, const um_piece_t *piece,
                              um_uvm_work_t *work)
{
    uint64_t pages[UM_UVM_PAGE_WORDS] = {0};
    uint32_t first = (uint32_t)(piece->addr % UM_BLOCK_BYTES / UM_PAGE_BYTES);
    uint32_t end = first + (uint32_t)((piece->bytes + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES);

    for (uint32_t page = first; page < end; page += FAULT_STRIDE)
        pages[page / 64] |= (uint64_t)1 << page % 64;
    return um_uvm_touch_pages(engine->uvm, device, piece->addr, pages,
                              (um_access_kind_t)piece->kind, engine->now_ns, work);
}

/* What is touched and not there faults; what those faults did not bring along faults after them. */
static um_status_t fault(um_engine_t *engine, int32_t device, const um_piece_t *piece,
                         um_uvm_work_t *work)
{
    um_status_t status = UM_OK;

    if (piece->bytes > UM_BIG_PAGE_BYTES)
        status = touch_some(engine, device, piece, work);
    if (status != UM_OK || work->throttles)
        return status;
    return um_uvm_touch(engine->uvm, device, piece->addr, piece->bytes,
                        (um_access_kind_t)piece->kind, engine->now_ns, work);
}

/* Whether more of the round would take the memory of what it has just got, or of what the rounds before
 * got and the kernel has not come to yet: a round may push out a quarter of what there is room for. */
static bool pushes_itself_out(const um_engine_t *engine, const um_uvm_work_t *sum)
{
    return (uint64_t)(sum->evicted_blocks + 1) * 4 * UM_BLOCK_BYTES >= engine->capacity_bytes;
}

/*
 * One round of the fault handler: the piece at hand, and with it what the GPU has under way beyond it.
 * Rounds are as many as the fullest block needs or as the faults fill.
 */
static void serve(um_engine_t *engine, um_stream_t *stream, const um_piece_t *piece)
{
    const um_machine_t *machine = engine->machine;
    uint32_t count = engine->params.uvm_perf_fault_batch_count, most = count ? count : 1;
    uint32_t rounds = 0, full;
    um_uvm_work_t sum = {0};
    uint64_t window = 0, fixed, end;

    for (uint32_t i = 0; piece; piece = um_walk_piece(engine, &stream->walk, ++i)) {
        um_block_t *block = um_engine_block(engine, piece->region, piece->addr);
        um_uvm_work_t work = {0};

        window += piece->bytes;
        if (i && (window > machine->fault_window_bytes || sum.gpu_faults >= most ||
                  pushes_itself_out(engine, &sum)))
            break;
        if (i && ((block && block->ready_ns > engine->now_ns) ||
                  !um_uvm_would_fault(engine->uvm, stream->device, piece->addr, piece->bytes,
                                      (um_access_kind_t)piece->kind)))
            continue;
        if (fault(engine, stream->device, piece, &work) != UM_OK)
            continue;
        if (!i && work.throttles && stream->naps++ < MAX_NAPS) {
            engine->moved_device = stream->device;
            um_cost_charge(engine, UM_COST_FAULT, engine->now_ns, 0, &work);
            stall(engine, stream, engine->now_ns + work.nap_ns);
            return;
        }
        if (block && um_moved_bytes(&work))
            block->faulted_ns = engine->now_ns;
        if (work.batches_blocks > rounds)
            rounds = work.batches_blocks;
        um_uvm_work_add(&sum, &work);
    }
    full = (sum.gpu_faults + most - 1) / most;
    rounds = rounds > full ? rounds : full;
    rounds = rounds ? rounds : 1;
    engine->result.fault_batches += rounds;
    fixed = (uint64_t)(rounds * machine->fault_batch_ns);
    engine->moved_device = stream->device;
    end = um_cost_charge(engine, UM_COST_FAULT, engine->now_ns, fixed, &sum);
    end += um_cost_remote(engine, stream->device, end, &sum);
    stream->wrote |= sum.remote_written_bytes > 0;
    engine->gpu[stream->device].handler_ns = end;
    stream->served = true;
    stall(engine, stream, end);
}

/* Hardware that reaches the other side's memory: what is there is used where it is. */
static uint64_t reach(um_engine_t *engine, int32_t device, const um_piece_t *piece,
                      um_uvm_work_t *work)
{
    um_extent_t extent[8];
    size_t n = um_uvm_extents(engine->uvm, piece->addr, piece->bytes, extent, 8);
    uint64_t away = 0;

    for (size_t i = 0; i < n && i < 8; i++)
        if (extent[i].where == UM_WHERE_HOST ||
            (extent[i].where == UM_WHERE_DEVICE && extent[i].device != device))
            away += extent[i].bytes;
    if (piece->kind == UM_ACCESS_READ)
        work->remote_read_bytes += away;
    else
        work->remote_written_bytes += away;
    return away;
}

/* The data is there or within reach: the kernel goes on by one piece. */
static void go_on(um_engine_t *engine, um_stream_t *stream, um_piece_t piece)
{
    um_uvm_work_t work = {0};
    uint64_t ns, end, remote;

    if (engine->machine->coherent && !stream->served)
        reach(engine, stream->device, &piece, &work);
    else if (!stream->served)
        um_uvm_touch(engine->uvm, stream->device, piece.addr, piece.bytes,
                     (um_access_kind_t)piece.kind, engine->now_ns, &work);
    stream->served = false;
    stream->naps = 0;
    um_engine_touched(engine, stream->device, &piece);
    ns = um_walk_step(&stream->walk);
    remote = um_cost_remote(engine, stream->device, engine->now_ns, &work);
    stream->wrote |= work.remote_written_bytes > 0;
    end = compute(engine, stream, ns);
    if (engine->now_ns + remote > end) {
        engine->result.stall_ns += engine->now_ns + remote - end;
        end = engine->now_ns + remote;
    }
    engine->n_heard = 0;
    um_actor_wake(engine, &stream->actor, end);
}

static bool in_reach(um_engine_t *engine, const um_piece_t *piece)
{
    um_extent_t extent;

    return engine->machine->coherent &&
           (um_uvm_extents(engine->uvm, piece->addr, piece->bytes, &extent, 1) > 1 ||
            extent.where != UM_WHERE_UNTOUCHED);
}

static void kernel_act(um_engine_t *engine, um_stream_t *stream)
{
    const um_piece_t *piece = um_walk_piece(engine, &stream->walk, 0);
    um_engine_gpu_t *gpu = &engine->gpu[stream->device];
    um_block_t *block;

    if (!piece) {
        uint64_t rest = um_walk_rest(&stream->walk);

        /* What it wrote over the link arrives before it ends. */
        if (stream->wrote && gpu->link.to_host_ns > engine->now_ns) {
            stream->wrote = false;
            stall(engine, stream, gpu->link.to_host_ns);
            return;
        }

        if (!stream->begun && rest) {
            stream->begun = true;
            stream->walk.spent_ns += rest;
            um_actor_wake(engine, &stream->actor, compute(engine, stream, rest));
            return;
        }
        kernel_end(engine, stream);
        return;
    }
    block = um_engine_block(engine, piece->region, piece->addr);
    if (block && block->ready_ns > engine->now_ns && !stream->served) {
        if (block->hinted) {
            engine->result.late_bytes += piece->bytes;
            block->hinted = false;
        }
        stall(engine, stream, block->ready_ns + (uint64_t)engine->machine->fault_batch_ns);
        return;
    }
    if (stream->served || in_reach(engine, piece) ||
        !um_uvm_would_fault(engine->uvm, stream->device, piece->addr, piece->bytes,
                            (um_access_kind_t)piece->kind)) {
        go_on(engine, stream, *piece);
        return;
    }
    if (gpu->handler_ns > engine->now_ns)
        stall(engine, stream, gpu->handler_ns);
    else
        serve(engine, stream, piece);
}

static void kernel_start(um_engine_t *engine, um_stream_t *stream)
{
    const um_op_t *op = stream->head;
    uint64_t delay = op->type == UM_OP_KERNEL ? (uint64_t)engine->machine->kernel_start_ns : 0;

    um_walk_start(&stream->walk, op->touches, op->n_touches, op->compute_ns,
                  engine->machine->fault_window_bytes);
    stream->begun = stream->served = stream->wrote = false;
    stream->naps = 0;
    stream->start_ns = engine->now_ns + delay;
    um_actor_wake(engine, &stream->actor, stream->start_ns);
}

/* ---- copies and sets ---- */

static bool on_host(uint32_t memory)
{
    return memory == UM_MEMORY_PAGEABLE || memory == UM_MEMORY_PINNED;
}

/* The side that is not managed decides which way it goes; its time is the link's. */
static void transfer_start(um_engine_t *engine, um_stream_t *stream)
{
    um_op_t *op = stream->head;
    const um_machine_t *machine = engine->machine;
    uint64_t end = engine->now_ns;

    if (op->event->type == UM_EV_COPY) {
        const um_ev_copy_t *copy = &op->event->u.copy;
        bool to_device = on_host(copy->src_memory), to_host = on_host(copy->dst_memory);

        if (to_device != to_host)
            end = um_cost_copy(engine, stream->device, to_device, end, copy->bytes);
        else
            op->compute_ns = (uint64_t)((double)copy->bytes / machine->device_gb_per_s);
        if (copy->src_memory == UM_MEMORY_PAGEABLE || copy->dst_memory == UM_MEMORY_PAGEABLE) {
            uint64_t pageable =
                engine->now_ns + (uint64_t)((double)copy->bytes / machine->pageable_copy_gb_per_s);

            end = pageable > end ? pageable : end;
        }
    } else {
        op->compute_ns = (uint64_t)((double)op->event->u.set.bytes / machine->device_gb_per_s);
    }
    kernel_start(engine, stream);
    um_actor_wake(engine, &stream->actor, end);
}

/* ---- prefetches ---- */

static void prefetch_start(um_engine_t *engine, um_stream_t *stream)
{
    stream->start_ns = engine->now_ns;
    stream->at = stream->head->hint.addr;
    stream->moved = false;
    stream->moved_bytes = 0;
    um_actor_wake(engine, &stream->actor,
                  engine->now_ns + (uint64_t)engine->machine->prefetch_call_ns);
}

/* One block of it; when the caller can go on to the next. */
static uint64_t prefetch_block(um_engine_t *engine, um_stream_t *stream, uint64_t at_ns,
                               uint64_t bytes)
{
    const um_machine_t *machine = engine->machine;
    const um_op_t *op = stream->head;
    um_block_t *block = um_engine_block(engine, op->hint.region, stream->at);
    um_uvm_work_t work = {0};
    uint64_t fixed = (uint64_t)machine->prefetch_block_ns, end, moved;

    if (!block)
        return at_ns;
    engine->moved_device = stream->device;
    if (um_uvm_prefetch(engine->uvm, op->hint.device, stream->at, bytes, at_ns, &work) != UM_OK)
        return at_ns;
    moved = um_moved_bytes(&work) - work.evicted_bytes;
    if (um_linked_bytes(&work) && !stream->moved) {
        fixed += (uint64_t)machine->prefetch_start_ns;
        stream->moved = true;
    }
    stream->moved_bytes += moved;
    engine->result.hinted_bytes += moved;
    end = um_cost_charge(engine, UM_COST_CALL, at_ns, fixed, &work);
    if (moved) {
        block->ready_ns = end;
        block->hinted = true;
    }
    if (block->faulted_ns != UM_NEVER && block->faulted_ns >= op->submitted_ns && moved < bytes)
        engine->result.late_bytes += bytes - moved;
    return end;
}

static void prefetch_act(um_engine_t *engine, um_stream_t *stream)
{
    const um_op_t *op = stream->head;
    uint64_t stop = op->hint.addr + op->hint.bytes, at_ns = engine->now_ns, before;

    for (uint32_t i = 0; i < IDLE_TURNS && stream->at < stop && !op->cancelled; i++) {
        uint64_t bytes = UM_BLOCK_BYTES - stream->at % UM_BLOCK_BYTES;

        if (bytes > stop - stream->at)
            bytes = stop - stream->at;
        before = stream->moved_bytes;
        at_ns = prefetch_block(engine, stream, at_ns, bytes);
        stream->at += bytes;
        if (stream->moved_bytes != before)
            break;
    }
    if (at_ns == engine->now_ns && (stream->at >= stop || op->cancelled))
        pop(engine, stream);
    else
        um_actor_wake(engine, &stream->actor, at_ns);
}

/* ---- advice ---- */

/* MiB of a range that are somewhere. */
static double populated_mib(const um_engine_t *engine, uint64_t addr, uint64_t bytes)
{
    uint64_t end = addr + bytes, sum = 0;
    um_extent_t extent[32];
    size_t n;

    while (addr < end && (n = um_uvm_extents(engine->uvm, addr, end - addr, extent, 32)) > 0) {
        n = n < 32 ? n : 32;
        for (size_t i = 0; i < n; i++)
            if (extent[i].where != UM_WHERE_UNTOUCHED)
                sum += extent[i].bytes;
        addr = extent[n - 1].addr + extent[n - 1].bytes;
    }
    return (double)sum / (1u << 20);
}

uint64_t um_stream_advise(um_engine_t *engine, const um_hint_t *hint, uint64_t at_ns)
{
    const um_machine_t *machine = engine->machine;
    um_uvm_work_t work = {0};
    double fixed = machine->advise_call_ns;

    engine->moved_device = hint->device >= 0 ? hint->device : 0;
    if (hint->kind == UM_HINT_DISCARD)
        um_uvm_discard(engine->uvm, hint->addr, hint->bytes, &work);
    else
        um_uvm_advise(engine->uvm, (um_hint_kind_t)hint->kind, hint->device, hint->addr,
                      hint->bytes, &work);
    if (hint->kind == UM_HINT_PREFERRED_LOCATION)
        fixed +=
            populated_mib(engine, hint->addr, hint->bytes) * machine->preferred_location_ns_per_mib;
    if (hint->kind == UM_HINT_READ_MOSTLY)
        fixed += populated_mib(engine, hint->addr, hint->bytes) * machine->read_mostly_ns_per_mib;
    engine->result.hinted_bytes += um_moved_bytes(&work);
    return um_cost_charge(engine, UM_COST_CALL, at_ns, (uint64_t)fixed, &work);
}

static void advise_act(um_engine_t *engine, um_stream_t *stream)
{
    if (stream->begun || stream->head->cancelled) {
        pop(engine, stream);
        return;
    }
    stream->begun = true;
    um_actor_wake(engine, &stream->actor,
                  um_stream_advise(engine, &stream->head->hint, engine->now_ns));
}

static void advise_start(um_engine_t *engine, um_stream_t *stream)
{
    stream->start_ns = engine->now_ns;
    stream->begun = false;
    um_actor_wake(engine, &stream->actor, engine->now_ns);
}

/* ---- a stream ---- */

static void act(um_engine_t *engine, um_actor_t *actor)
{
    static const struct {
        void (*start)(um_engine_t *engine, um_stream_t *stream);
        void (*act)(um_engine_t *engine, um_stream_t *stream);
    } type[] = {
        [UM_OP_KERNEL] = {kernel_start, kernel_act},
        [UM_OP_PREFETCH] = {prefetch_start, prefetch_act},
        [UM_OP_ADVISE] = {advise_start, advise_act},
        [UM_OP_TRANSFER] = {transfer_start, kernel_act},
    };
    um_stream_t *stream = (um_stream_t *)actor;

    if (!stream->head)
        return;
    if (stream->running) {
        type[stream->head->type].act(engine, stream);
        return;
    }
    stream->running = true;
    type[stream->head->type].start(engine, stream);
}

um_stream_t *um_stream_new(um_engine_t *engine, int32_t device, uint64_t handle, bool is_worker)
{
    um_stream_t *stream = calloc(1, sizeof(*stream));

    if (!stream) {
        um_engine_fail(engine, UM_ERR_NO_MEMORY);
        return NULL;
    }
    stream->device = device;
    stream->handle = handle;
    stream->is_worker = is_worker;
    um_actor_init(engine, &stream->actor, act);
    return stream;
}

void um_stream_free(um_stream_t *stream)
{
    if (!stream)
        return;
    while (stream->head) {
        um_op_t *op = stream->head;

        stream->head = op->next;
        free(op);
    }
    um_walk_fini(&stream->walk);
    free(stream);
}

um_stream_t *um_stream_find(um_engine_t *engine, int32_t device, uint64_t handle)
{
    um_stream_t *stream, **grown;

    for (uint32_t i = engine->n_streams; i-- > 0;)
        if (engine->stream[i]->device == device && engine->stream[i]->handle == handle)
            return engine->stream[i];
    if (engine->n_streams == engine->stream_room) {
        uint32_t room = engine->stream_room ? 2 * engine->stream_room : 16;

        grown = realloc(engine->stream, room * sizeof(*grown));
        if (!grown) {
            um_engine_fail(engine, UM_ERR_NO_MEMORY);
            return NULL;
        }
        engine->stream = grown;
        engine->stream_room = room;
    }
    stream = um_stream_new(engine, device, handle, false);
    if (stream)
        engine->stream[engine->n_streams++] = stream;
    return stream;
}

uint64_t um_stream_push(um_engine_t *engine, um_stream_t *stream, const um_op_t *op)
{
    um_op_t *copy = malloc(sizeof(*copy));

    if (!copy) {
        um_engine_fail(engine, UM_ERR_NO_MEMORY);
        return UINT64_MAX;
    }
    *copy = *op;
    copy->next = NULL;
    copy->number = engine->n_ops++;
    if (op->touches == op->own_touch)
        copy->touches = copy->own_touch;
    if (stream->tail)
        stream->tail->next = copy;
    else
        stream->head = copy;
    stream->tail = copy;
    if (stream->head == copy)
        um_actor_wake(engine, &stream->actor, engine->now_ns);
    return copy->number;
}

bool um_streams_done(um_engine_t *engine, int32_t device, const um_stream_t *stream,
                     uint64_t number)
{
    for (uint32_t i = 0; i < engine->n_streams; i++) {
        const um_stream_t *one = engine->stream[i];

        if ((stream && one != stream) || (device != UM_DEVICE_NONE && one->device != device))
            continue;
        if (one->head && one->head->number < number)
            return false;
    }
    return true;
}

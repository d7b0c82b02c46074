/*
 * engine.h - what the parts of the simulation share; nobody else includes it.
 *
 *   engine.c          clocks, set-up and result
 *   engine_program.c  the program's threads: steps, host phases, waits, calls
 *   engine_stream.c   what runs on a GPU's stream or on a worker: kernels, prefetches, copies
 *   engine_walk.c     the order in which touches are reached
 *   engine_cost.c     what the driver had to do, as time
 *   engine_hints.c    the hint loop in simulated time
 *   sim_executor.c    the executor behind it
 *   oracle.c          hints from the future
 */
#ifndef UM_ENGINE_H
#define UM_ENGINE_H

#include "core/regions.h"
#include "exec/executor.h"
#include "sim.h"

#define UM_NEVER UINT64_MAX

typedef struct um_engine um_engine_t;

/* ---- clocks (engine.c) ---- */

/* Something with a clock. Asleep, or due at a time; ties go by `order`. */
typedef struct um_actor {
    void (*act)(um_engine_t *engine, struct um_actor *actor);
    uint64_t at_ns;
    uint32_t order;
    uint32_t place; /* in the queue, from 1; 0 = asleep */
} um_actor_t;

void um_actor_init(um_engine_t *engine, um_actor_t *actor,
                   void (*act)(um_engine_t *engine, um_actor_t *actor));
/* Due at at_ns, whatever it was before; never before now. */
void um_actor_wake(um_engine_t *engine, um_actor_t *actor, uint64_t at_ns);

/* ---- the order of touches (engine_walk.c) ---- */

/* What is touched at once: pages inside one 2 MiB block. */
typedef struct um_piece {
    uint64_t addr, bytes;
    uint32_t region;
    uint8_t kind;
} um_piece_t;

#define UM_WALK_AHEAD 128 /* pieces that can be looked at in advance */

typedef struct um_walk_lane {
    uint64_t start, at, end;
    const um_touch_t *touch;
} um_walk_lane_t;

/* Touches one after the other; those side by side interleaved by how far each has got. */
typedef struct um_walk {
    const um_touch_t *next, *end;
    um_walk_lane_t *lane; /* a heap: the one that has got least far first */
    uint32_t n_lanes, room;
    um_piece_t ahead[UM_WALK_AHEAD];
    uint32_t first, n_ahead;
    uint64_t grain_bytes, total_bytes, done_bytes;
    uint64_t work_ns, spent_ns; /* spread over the bytes */
} um_walk_t;

/* grain_bytes: no piece is larger or crosses a multiple of it; a power of two up to a block. */
void um_walk_start(um_walk_t *walk, const um_touch_t *touches, uint32_t n, uint64_t work_ns,
                   uint64_t grain_bytes);
void um_walk_fini(um_walk_t *walk);
/* The i-th piece from here; NULL = there are not so many (or i is too far ahead). */
const um_piece_t *um_walk_piece(um_engine_t *engine, um_walk_t *walk, uint32_t i);
/* Leaves the first piece behind; the part of work_ns that belongs to it. */
uint64_t um_walk_step(um_walk_t *walk);
/* What is left of work_ns when there are no more pieces. */
uint64_t um_walk_rest(const um_walk_t *walk);

/* ---- regions and their blocks (engine.c) ---- */

typedef struct um_block {
    uint64_t ready_ns;   /* its data is on its way until then */
    uint64_t faulted_ns; /* when a fault last brought something, UM_NEVER = none did */
    bool hinted;         /* ready_ns is a hint's */
} um_block_t;

typedef struct um_sim_region {
    uint32_t id;
    uint64_t addr, bytes;
    um_block_t *block; /* by addr / UM_BLOCK_BYTES - first */
    uint64_t first, n;
} um_sim_region_t;

um_sim_region_t *um_engine_region(um_engine_t *engine, uint32_t region); /* NULL = not alive */
um_block_t *um_engine_block(um_engine_t *engine, uint32_t region, uint64_t addr);

/* ---- time (engine_cost.c) ---- */

/* What one round of driver work is for. */
typedef enum um_cost_kind { UM_COST_FAULT, UM_COST_CALL } um_cost_kind_t;

/* Charges `work`, done from at_ns on behalf of one caller who also needs fixed_ns: when it is over.
 * Takes its turn on the links and on the host's page allocator. Adds the work to the totals and tells
 * the events that the driver's rules made of it. */
uint64_t um_cost_charge(um_engine_t *engine, um_cost_kind_t kind, uint64_t at_ns, uint64_t fixed_ns,
                        const um_uvm_work_t *work);
void um_cost_count(um_sim_result_t *sum, const um_uvm_work_t *work); /* no time */
/* How long the remote accesses of a touch keep its kernel or thread waiting; 0 = there were none. Writes
 * are posted: they keep their link busy for longer than their writer. */
uint64_t um_cost_remote(um_engine_t *engine, int32_t device, uint64_t at_ns,
                        const um_uvm_work_t *work);
/* A plain DMA transfer. */
uint64_t um_cost_copy(um_engine_t *engine, int32_t device, bool to_device, uint64_t at_ns,
                      uint64_t bytes);
void um_cost_init(um_engine_t *engine);
/* The driver's rules speak: um_uvm_config_t.event. */
void um_cost_heard(void *engine, const um_event_t *event);

/* Bytes that got a place on their new side. */
static inline uint64_t um_moved_bytes(const um_uvm_work_t *work)
{
    return work->bytes_to_device + work->bytes_to_host + work->bytes_peer +
           work->populated_device_bytes + work->populated_host_bytes;
}

static inline uint64_t um_linked_bytes(const um_uvm_work_t *work)
{
    return work->bytes_to_device + work->bytes_to_host + work->bytes_peer;
}

/* ---- streams (engine_stream.c) ---- */

typedef enum um_op_type {
    UM_OP_KERNEL,
    UM_OP_PREFETCH,
    UM_OP_ADVISE,
    UM_OP_TRANSFER, /* a copy or a set */
} um_op_type_t;

typedef struct um_op {
    struct um_op *next;
    um_op_type_t type;
    uint64_t number;         /* over all streams, in the order of the program */
    const um_event_t *event; /* KERNEL: the launch; TRANSFER: the copy or set */
    uint64_t compute_ns;
    const um_touch_t *touches;
    uint32_t n_touches;
    um_touch_t own_touch[2]; /* of a transfer */
    uint32_t correlation;
    um_hint_t hint;        /* PREFETCH, ADVISE */
    uint64_t submitted_ns; /* of a hint */
    uint32_t context;
    bool cancelled;       /* no more blocks of it */
    um_executor_t *owner; /* who is told of its end; NULL = the program */
} um_op_t;

typedef struct um_stream {
    um_actor_t actor;
    int32_t device;
    uint64_t handle;
    bool is_worker;
    um_op_t *head, *tail; /* head is under way when `running` */
    bool running;
    uint64_t start_ns;
    /* kernel */
    um_walk_t walk;
    bool wrote;         /* over the link */
    bool begun, served; /* first access made; the first piece's fault was served */
    uint32_t naps;
    /* prefetch */
    uint64_t at; /* next address */
    bool moved;  /* something had to be moved */
    uint64_t moved_bytes;
} um_stream_t;

um_stream_t *um_stream_find(um_engine_t *engine, int32_t device, uint64_t handle);
um_stream_t *um_stream_new(um_engine_t *engine, int32_t device, uint64_t handle, bool is_worker);
void um_stream_free(um_stream_t *stream);
/* Copies the op to the end of the stream; its number, UINT64_MAX = no memory. */
uint64_t um_stream_push(um_engine_t *engine, um_stream_t *stream, const um_op_t *op);
/* All ops before this number on a device (NONE = any) and stream (NULL = any) are over. */
bool um_streams_done(um_engine_t *engine, int32_t device, const um_stream_t *stream,
                     uint64_t number);
/* A hint at once, on the caller's own time: when it is over. */
uint64_t um_stream_advise(um_engine_t *engine, const um_hint_t *hint, uint64_t at_ns);

/* ---- the program (engine_program.c) ---- */

um_status_t um_program_start(um_engine_t *engine);
void um_program_free(um_engine_t *engine);
void um_program_op_done(um_engine_t *engine); /* somebody may have waited for it */

/* ---- hints (engine_hints.c, sim_executor.c) ---- */

typedef struct um_hint_loop um_hint_loop_t;

um_status_t um_hint_loop_new(um_engine_t *engine, um_hint_loop_t **out);
void um_hint_loop_free(um_hint_loop_t *loop);
/* An event of the program (at once) or a record of what happened (later). */
void um_hint_loop_tell(um_hint_loop_t *loop, const um_event_t *event, bool is_record);
void um_hint_loop_region_going(um_hint_loop_t *loop, uint64_t addr);
void um_hint_loop_op_done(um_hint_loop_t *loop); /* something may have waited for it */
void um_hint_loop_count(const um_hint_loop_t *loop, um_sim_result_t *result);

um_status_t um_executor_sim_new(um_engine_t *engine, unsigned workers, um_executor_t **out);
/* An op of this executor has ended. */
void um_executor_sim_done(um_executor_t *executor, const um_stream_t *stream, const um_op_t *op);
/* Gives idle workers what may be started now. */
void um_executor_sim_serve(um_executor_t *executor);

/* ---- the oracle (oracle.c) ---- */

typedef struct um_oracle um_oracle_t;

um_status_t um_oracle_new(um_engine_t *engine, um_oracle_t **out);
void um_oracle_free(um_oracle_t *oracle);
/* A piece was reached: what comes next for its block is another use. */
void um_oracle_used(um_oracle_t *oracle, int32_t processor, const um_piece_t *piece);
void um_oracle_poke(um_oracle_t *oracle); /* something has changed */

/* ---- all of it ---- */

typedef struct um_link {
    uint64_t to_device_ns, to_host_ns, peer_ns; /* busy until */
} um_link_t;

typedef struct um_engine_gpu {
    um_link_t link;
    uint64_t handler_ns;  /* the fault handler is busy until */
    uint64_t compute_ns;  /* the processors are */
    uint64_t populate_ns; /* pages are zeroed until */
    double threads;       /* that run at once on all of it */
} um_engine_gpu_t;

struct um_program;

struct um_engine {
    um_sim_config_t config;
    const um_workload_t *workload;
    const um_machine_t *machine;
    um_uvm_t *uvm;
    um_uvm_params_t params;
    uint64_t capacity_bytes; /* of each GPU */
    double time_scale;       /* of kernels */
    bool app_hints;
    bool listening; /* somebody wants events */

    uint64_t now_ns, end_ns;
    um_actor_t **queue; /* a heap by time, then order */
    uint32_t n_queue, queue_room, n_actors;

    um_engine_gpu_t gpu[UM_UVM_GPUS_MAX];
    uint64_t host_alloc_ns;          /* the host's page allocator is busy until */
    double size_ns[3][UM_UVM_SIZES]; /* of one transfer: to device, to host, peer */
    int32_t moved_device;            /* whose link the work under way uses */

    um_sim_region_t **region; /* by id */
    uint32_t n_regions;
    um_regions_t *regions; /* as the live library keeps them */

    um_stream_t **stream;
    uint32_t n_streams, stream_room;
    uint64_t n_ops;
    int32_t context_device[64]; /* by context id; NONE = not seen */

    struct um_program *program;
    um_hint_loop_t *loop;
    um_oracle_t *oracle;
    um_stream_t *launching; /* whose launch is being told to the hint loop at once */

    um_event_t *heard; /* of the work under way, without times */
    size_t n_heard, heard_room;

    um_sim_result_t result;
    um_status_t status; /* the first thing that went wrong */
};

void um_engine_fail(um_engine_t *engine, um_status_t status);
/* To whoever listens, at the event's own time: the caller of um_sim_run and the hint loop. */
void um_engine_tell(um_engine_t *engine, const um_event_t *event, bool is_record);
/* The device that a context is on; 0 where nothing said. */
int32_t um_engine_context_device(const um_engine_t *engine, uint32_t context);
um_status_t um_engine_region_add(um_engine_t *engine, const um_ev_region_alloc_t *alloc,
                                 uint64_t now_ns);
void um_engine_region_remove(um_engine_t *engine, uint32_t region);
/* A piece is touched by whom it is meant for. */
void um_engine_touched(um_engine_t *engine, int32_t processor, const um_piece_t *piece);

#endif

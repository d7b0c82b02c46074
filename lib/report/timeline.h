/*
 * timeline.h - the program's phases: the ones it names (NVTX, um_phase_*), or else the turns that
 * GPU and CPU take, from kernel times, syncs and CPU faults.
 */
#ifndef UM_TIMELINE_H
#define UM_TIMELINE_H

#include "map.h"

typedef enum um_phase_kind {
    UM_PHASE_CPU = 0,
    UM_PHASE_GPU = 1,
    UM_PHASE_NAMED = 2
} um_phase_kind_t;

typedef struct um_phase {
    char *name; /* of NAMED, else NULL */
    uint32_t kind;
    uint32_t trace;
    uint64_t start_ns, end_ns; /* CPU, GPU; of NAMED: first start and summed time in end - start */
    uint64_t times;            /* how often (NAMED); 1 otherwise */
    uint64_t launches, gpu_faults, cpu_faults, in_bytes, out_bytes;
} um_phase_t;

/* Once that a named phase lasted, for the time line of a page. */
typedef struct um_span {
    uint32_t named, trace; /* named: index into um_timeline_t.named */
    uint64_t start_ns, end_ns;
} um_span_t;

#define UM_SPANS_MAX  4096u /* the first ones */
#define UM_PHASES_MAX 4096u /* turns kept one by one; later ones are added to the last two */

typedef struct um_timeline {
    um_phase_t *turns;
    size_t n_turns, turns_size;
    uint64_t merged; /* turns beyond UM_PHASES_MAX */
    um_phase_t *named;
    size_t n_named, named_size;
    um_map_t named_of;
    um_span_t *spans; /* in the order in which they ended */
    size_t n_spans;
    uint64_t spans_left; /* beyond UM_SPANS_MAX */
    struct um_open_mark {
        uint64_t id, start_ns;
        uint32_t tid, named;
        bool range; /* START/END; else PUSH/POP */
    } * open;
    size_t n_open, open_size;
    uint64_t gpu_until_ns; /* kernels seen so far have ended by then */
    bool saw_exec;
    uint32_t trace;
} um_timeline_t;

um_status_t um_timeline_event(um_timeline_t *timeline, const um_event_t *event);
void um_timeline_end(um_timeline_t *timeline, uint64_t now_ns);
void um_timeline_free(um_timeline_t *timeline);

#endif

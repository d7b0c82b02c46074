/*
 * The engine's rules for what waits for what (engine_program.c, engine_stream.c) without its driver:
 * a thread for each tid, a line for each stream of a GPU; kernels of several streams do not hold each
 * other up.
 */
#include "least_time.h"

#include <stdlib.h>

#include "core/grow.h"

#define MIB      ((double)(1u << 20))
#define CONTEXTS 64 /* as many as the engine knows */

/* Whoever can populate a GPU's memory at the same time: two workers for hints, the fault handler, and
 * one to be sure; a program's own prefetches may come on any number of streams. */
#define HANDS 4

typedef struct line {
    bool is_thread;
    uint32_t tid;
    int32_t device;
    uint64_t stream;
    uint64_t ns;      /* done with all it was given; a thread: its last call returned */
    uint64_t base_ns; /* a thread's own work before its next step counts from here */
} line_t;

typedef struct timeline {
    const um_workload_t *w;
    const um_machine_t *machine;
    double scale;
    double ns_per_byte[UM_NEED_KINDS];
    um_needs_t *needs;
    uint64_t *begin; /* of each step; of a launch: on its stream */
    line_t *line;
    size_t n_lines, lines_size;
    int32_t context_device[CONTEXTS];
    uint64_t started_ns; /* of the step before: they start in order */
    um_status_t status;
} timeline_t;

/* ---- needs -------------------------------------------------------------------------------------- */

um_status_t um_needs_add(um_needs_t *needs, const um_flow_list_t *list)
{
    um_need_t *need;

    if (!list->n)
        return UM_OK;
    need = realloc(needs->need, (needs->n + list->n) * sizeof(*need));
    if (!need)
        return UM_ERR_NO_MEMORY;
    needs->need = need;
    for (size_t i = 0; i < list->n; i++)
        need[needs->n++] = (um_need_t){list->flow[i].to, list->flow[i].from, list->flow[i].bytes};
    return UM_OK;
}

static int by_step(const void *a, const void *b)
{
    const um_need_t *x = a, *y = b;

    if (x->to != y->to)
        return (x->to > y->to) - (x->to < y->to);
    return (x->from < y->from) - (x->from > y->from); /* the latest writer first */
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When all that step i needs of one kind can be there: its bytes, one after the other. */
static uint64_t needs_ns(timeline_t *t, uint64_t i, um_need_kind_t kind)
{
    um_needs_t *needs = &t->needs[kind];
    uint64_t latest = 0, since = UINT64_MAX, bytes = 0;

    for (; needs->next < needs->n && needs->need[needs->next].to == i; needs->next++) {
        const um_need_t *need = &needs->need[needs->next];

        bytes += need->bytes;
        since = t->begin[need->from] < since ? t->begin[need->from] : since;
        latest = later(latest, since + (uint64_t)((double)bytes * t->ns_per_byte[kind]));
    }
    return latest;
}

/* ---- lines -------------------------------------------------------------------------------------- */

static line_t *line_of(timeline_t *t, bool is_thread, uint32_t tid, int32_t device, uint64_t stream)
{
    for (size_t i = 0; i < t->n_lines; i++) {
        line_t *line = &t->line[i];

        if (line->is_thread == is_thread && line->tid == tid && line->device == device &&
            line->stream == stream)
            return line;
    }
    if (!um_grow(&t->line, &t->lines_size, t->n_lines + 1, sizeof(*t->line))) {
        t->status = UM_ERR_NO_MEMORY;
        return NULL;
    }
    t->line[t->n_lines] =
        (line_t){.is_thread = is_thread, .tid = tid, .device = device, .stream = stream};
    return &t->line[t->n_lines++];
}

static line_t *stream_of(timeline_t *t, int32_t device, uint64_t stream)
{
    return line_of(t, false, 0, device >= 0 && (uint32_t)device < t->w->n_gpus ? device : 0,
                   stream);
}

static int32_t device_of(const timeline_t *t, uint32_t context)
{
    return context < CONTEXTS ? t->context_device[context] : 0;
}

/* ---- steps; each says when its thread goes on ---------------------------------------------------- */

static uint64_t on_launch(timeline_t *t, const um_step_t *step, uint64_t i, uint64_t now)
{
    const um_ev_launch_t *launch = &step->event->u.launch;
    line_t *stream = stream_of(t, launch->device, launch->stream);
    uint64_t end;

    t->begin[i] = now;
    if (launch->context < CONTEXTS)
        t->context_device[launch->context] = launch->device;
    if (!stream || (launch->flags & UM_LAUNCH_CAPTURED))
        return now + (uint64_t)t->machine->launch_call_ns;
    t->begin[i] = later(now, stream->ns);
    end = t->begin[i] + (uint64_t)t->machine->kernel_start_ns +
          (uint64_t)((double)step->compute_ns * t->scale);
    end = later(end, needs_ns(t, i, UM_NEED_IN));
    stream->ns = later(end, needs_ns(t, i, UM_NEED_FIRST_HERE));
    return now + (uint64_t)t->machine->launch_call_ns;
}

static uint64_t on_sync(timeline_t *t, const um_ev_sync_t *sync, uint64_t now)
{
    bool one = sync->kind == UM_SYNC_STREAM || sync->kind == UM_SYNC_COPY;
    int32_t device = device_of(t, sync->context);

    if (sync->exit)
        return now;
    for (size_t l = 0; l < t->n_lines; l++) {
        const line_t *line = &t->line[l];

        if (!line->is_thread && line->device == device && (!one || line->stream == sync->stream))
            now = later(now, line->ns);
    }
    return now + (uint64_t)t->machine->sync_call_ns;
}

static uint64_t on_copy(timeline_t *t, const um_ev_copy_t *copy, uint64_t now)
{
    const line_t *stream = stream_of(t, copy->device, copy->stream);

    if (!stream || (copy->flags & UM_TRANSFER_CAPTURED))
        return now;
    return copy->flags & UM_TRANSFER_ASYNC ? now + (uint64_t)t->machine->copy_call_ns
                                           : later(now, stream->ns);
}

/* A step with an event; *base_ns: where the work before the next one counts from. */
static uint64_t on_event(timeline_t *t, const um_step_t *step, uint64_t i, uint64_t now,
                         uint64_t *base_ns)
{
    const um_event_t *event = step->event;
    uint64_t end = now;

    *base_ns = now;
    switch (event->type) {
    case UM_EV_LAUNCH:
        return on_launch(t, step, i, now);
    case UM_EV_SYNC:
        end = on_sync(t, &event->u.sync, now);
        *base_ns = end;
        return end;
    case UM_EV_COPY:
        end = on_copy(t, &event->u.copy, now);
        if (!(event->u.copy.flags & UM_TRANSFER_ASYNC))
            *base_ns = end;
        return end;
    case UM_EV_REGION_ALLOC:
        if (event->u.region_alloc.family == UM_FAMILY_MANAGED)
            end += (uint64_t)t->machine->alloc_call_ns;
        return end;
    case UM_EV_CONTEXT:
        if (event->u.context.context < CONTEXTS && event->u.context.device >= 0 &&
            (uint32_t)event->u.context.device < t->w->n_gpus)
            t->context_device[event->u.context.context] = event->u.context.device;
        return end;
    default:
        return end;
    }
}

static void step_add(timeline_t *t, uint64_t i, uint32_t tid)
{
    const um_step_t *step = &t->w->steps[i];
    line_t *thread = line_of(t, true, tid, 0, 0);
    uint64_t now, end, base;
    size_t at;

    if (!thread)
        return;
    at = (size_t)(thread - t->line); /* lines move when one is added */
    now = later(thread->ns, t->started_ns);
    if (step->event)
        now = later(now, thread->base_ns + step->cpu_ns);
    t->started_ns = t->begin[i] = now;
    if (step->event) {
        end = on_event(t, step, i, now, &base);
    } else {
        end = later(now + step->cpu_ns, needs_ns(t, i, UM_NEED_OUT));
        base = end = later(end, needs_ns(t, i, UM_NEED_FIRST_HOST));
    }
    t->line[at].ns = end;
    t->line[at].base_ns = base;
}

static double hands_of(const um_workload_t *w)
{
    double hands = HANDS;

    for (uint64_t i = 0; i < w->n_steps; i++)
        hands += w->steps[i].event && w->steps[i].event->type == UM_EV_HINT;
    return hands;
}

um_status_t um_least_time_find(const um_workload_t *workload, const um_machine_t *machine,
                               double kernel_time_scale, const um_least_rates_t *rates,
                               um_needs_t needs[UM_NEED_KINDS], uint64_t *out_ns)
{
    double host_ns = machine->populate_host_ns_per_mib < machine->host_alloc_ns_per_mib
                         ? machine->populate_host_ns_per_mib
                         : machine->host_alloc_ns_per_mib;
    timeline_t t = {
        .w = workload,
        .machine = machine,
        .scale = kernel_time_scale,
        .ns_per_byte = {[UM_NEED_IN] = rates->in_ns,
                        [UM_NEED_OUT] = rates->out_ns,
                        [UM_NEED_FIRST_HERE] =
                            machine->populate_device_ns_per_mib / MIB / hands_of(workload),
                        /* A CPU that reaches the GPU's memory needs none of its own. */
                        [UM_NEED_FIRST_HOST] = machine->coherent ? 0 : host_ns / MIB},
        .needs = needs,
        .begin = calloc(workload->n_steps + 1, sizeof(*t.begin)),
    };
    uint32_t tid = 0; /* a step that does not say belongs to the thread of the step before */
    uint64_t end = 0;

    if (!t.begin)
        return UM_ERR_NO_MEMORY;
    for (int k = 0; k < UM_NEED_KINDS; k++) {
        if (needs[k].n)
            qsort(needs[k].need, needs[k].n, sizeof(um_need_t), by_step);
    }
    for (uint64_t i = 0; i < workload->n_steps && !t.status; i++) {
        const um_event_t *event = workload->steps[i].event;

        tid = event && event->tid ? event->tid : tid;
        step_add(&t, i, tid);
    }
    for (size_t l = 0; l < t.n_lines; l++)
        end = later(end, t.line[l].ns);
    free(t.line);
    free(t.begin);
    if (!t.status)
        *out_ns = end;
    return t.status;
}

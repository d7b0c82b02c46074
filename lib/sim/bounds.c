/*
 * What no policy can beat on this workload: fewest bytes over the links, shortest time. Both from the
 * flows (flows.h); the rules and why they are bounds are in MODEL.md, "Bounds".
 */
#include "sim.h"

#include <stdlib.h>

#include "flows.h"

/* ---- the order that is certain ------------------------------------------------------------------ */

/* A stream as one thread of the program uses it: launches there run one after the other. */
typedef struct queue {
    uint32_t tid, context;
    uint64_t stream;
} queue_t;

typedef struct queues {
    queue_t *queue; /* with launches that nobody has waited for */
    size_t n, size;
} queues_t;

static bool queues_add(queues_t *queues, queue_t one)
{
    for (size_t i = 0; i < queues->n; i++) {
        if (queues->queue[i].tid == one.tid && queues->queue[i].stream == one.stream &&
            queues->queue[i].context == one.context)
            return true;
    }
    if (queues->n == queues->size) {
        size_t size = queues->size ? queues->size * 2 : 8;
        queue_t *queue = realloc(queues->queue, size * sizeof(*queue));

        if (!queue)
            return false;
        queues->queue = queue;
        queues->size = size;
    }
    queues->queue[queues->n++] = one;
    return true;
}

/* Whether `sync` waits for all that its thread put on the queue. */
static bool waits_for(const um_event_t *event, uint32_t tid, uint32_t context, uint64_t stream,
                      bool one_gpu)
{
    const um_ev_sync_t *sync = &event->u.sync;

    if (event->tid != tid || sync->exit)
        return false;
    if (sync->kind == UM_SYNC_DEVICE)
        return one_gpu || (sync->context && sync->context == context);
    return (sync->kind == UM_SYNC_STREAM || sync->kind == UM_SYNC_COPY) && sync->stream == stream &&
           (one_gpu || sync->context == context);
}

/* Launches of one epoch may run in any order; those of a later one run after them. */
static um_status_t epochs_find(const um_workload_t *w, int32_t device, uint32_t *epoch,
                               uint32_t *n_epochs)
{
    queues_t open = {0};
    um_status_t status = UM_OK;
    uint32_t now = 0;

    for (uint64_t i = 0; i < w->n_steps && !status; i++) {
        const um_event_t *event = w->steps[i].event;

        if (event && event->type == UM_EV_LAUNCH && event->u.launch.device == device) {
            const um_ev_launch_t *launch = &event->u.launch;

            if (!queues_add(&open, (queue_t){event->tid, launch->context, launch->stream}))
                status = UM_ERR_NO_MEMORY;
            if (open.n == 1)
                now++;
        } else if (event && event->type == UM_EV_SYNC) {
            for (size_t q = 0; q < open.n;) {
                queue_t *queue = &open.queue[q];

                if (waits_for(event, queue->tid, queue->context, queue->stream, w->n_gpus == 1))
                    *queue = open.queue[--open.n];
                else
                    q++;
            }
        }
        epoch[i] = now;
    }
    *n_epochs = now + 1;
    free(open.queue);
    return status;
}

/* ---- Belady ------------------------------------------------------------------------------------- */

/* Ends of what is kept; the latest on top. */
typedef struct heap {
    uint32_t *end;
    size_t n, size;
} heap_t;

static bool heap_push(heap_t *heap, uint32_t end)
{
    size_t i = heap->n;

    if (heap->n == heap->size) {
        size_t size = heap->size ? heap->size * 2 : 64;
        uint32_t *grown = realloc(heap->end, size * sizeof(*grown));

        if (!grown)
            return false;
        heap->end = grown;
        heap->size = size;
    }
    heap->n++;
    for (; i && heap->end[(i - 1) / 2] < end; i = (i - 1) / 2)
        heap->end[i] = heap->end[(i - 1) / 2];
    heap->end[i] = end;
    return true;
}

static void heap_pop(heap_t *heap)
{
    uint32_t last = heap->end[--heap->n];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < heap->n) {
        if (child + 1 < heap->n && heap->end[child + 1] > heap->end[child])
            child++;
        if (heap->end[child] <= last)
            break;
        heap->end[i] = heap->end[child];
        i = child;
    }
    if (heap->n)
        heap->end[i] = last;
}

/* Fewest bytes of these flows that cannot stay on the device until they are needed: what is needed
 * last goes first. */
static um_status_t dropped_find(const um_flow_list_t *list, const uint32_t *epoch,
                                uint32_t n_epochs, uint64_t capacity, uint64_t *dropped)
{
    uint64_t *ending = calloc(n_epochs, sizeof(*ending)); /* bytes kept until then */
    uint64_t kept = 0;
    heap_t heap = {0};
    um_status_t status = ending ? UM_OK : UM_ERR_NO_MEMORY;
    uint32_t now = 0;

    *dropped = 0;
    for (size_t i = list->n; i-- > 0 && !status;) {
        const um_flow_t *flow = &list->flow[i];
        uint32_t end = epoch[flow->to];

        for (; now < epoch[flow->from]; now++)
            kept -= ending[now + 1];
        if (end <= now)
            continue;
        if (ending[end] == 0 && !heap_push(&heap, end))
            status = UM_ERR_NO_MEMORY;
        ending[end] += flow->bytes;
        kept += flow->bytes;
        while (kept > capacity && !status) {
            uint64_t *last = &ending[heap.end[0]];
            uint64_t over = kept - capacity < *last ? kept - capacity : *last;

            *last -= over;
            kept -= over;
            *dropped += over;
            if (*last == 0)
                heap_pop(&heap);
        }
    }
    free(heap.end);
    free(ending);
    return status;
}

/* ---- time --------------------------------------------------------------------------------------- */

/* A step must have these bytes, and nobody had them before `from` began. */
typedef struct need {
    uint32_t to, from;
    uint64_t bytes;
} need_t;

typedef struct needs {
    need_t *need;
    size_t n, size;
} needs_t;

static um_status_t needs_add(needs_t *needs, const um_flow_list_t *list)
{
    if (needs->n + list->n > needs->size) {
        size_t size = needs->n + list->n;
        need_t *need = realloc(needs->need, size * sizeof(*need));

        if (!need)
            return UM_ERR_NO_MEMORY;
        needs->need = need;
        needs->size = size;
    }
    for (size_t i = 0; i < list->n; i++)
        needs->need[needs->n++] =
            (need_t){list->flow[i].to, list->flow[i].from, list->flow[i].bytes};
    return UM_OK;
}

static int by_step(const void *a, const void *b)
{
    const need_t *x = a, *y = b;

    if (x->to != y->to)
        return (x->to > y->to) - (x->to < y->to);
    return (x->from < y->from) - (x->from > y->from); /* the latest writer first */
}

/* A program thread, or one of its streams. */
typedef struct line {
    uint32_t tid, context;
    int32_t device; /* UM_DEVICE_HOST: a thread */
    uint64_t stream;
    uint64_t ns; /* it is done with all it was given */
} line_t;

/* The program when every byte moves at the best rate there is from the moment its writer began. */
typedef struct timeline {
    const needs_t *needs;
    size_t next;     /* need */
    uint64_t *begin; /* of each step */
    double ns_per_byte_in, ns_per_byte_out, scale;
    line_t *line;
    size_t n_lines, lines_size;
} timeline_t;

static um_status_t line_of(timeline_t *t, line_t key, line_t **out)
{
    for (size_t i = 0; i < t->n_lines; i++) {
        line_t *line = &t->line[i];

        if (line->tid == key.tid && line->device == key.device && line->stream == key.stream &&
            line->context == key.context) {
            *out = line;
            return UM_OK;
        }
    }
    if (t->n_lines == t->lines_size) {
        size_t size = t->lines_size ? t->lines_size * 2 : 8;
        line_t *line = realloc(t->line, size * sizeof(*line));

        if (!line)
            return UM_ERR_NO_MEMORY;
        t->line = line;
        t->lines_size = size;
    }
    t->line[t->n_lines] = key;
    *out = &t->line[t->n_lines++];
    return UM_OK;
}

/* When all that step i needs can be there: its bytes from the latest writers, one after the other. */
static uint64_t needs_ns(timeline_t *t, uint64_t i, double ns_per_byte)
{
    uint64_t latest = 0, since = UINT64_MAX, bytes = 0;

    for (; t->next < t->needs->n && t->needs->need[t->next].to == i; t->next++) {
        const need_t *need = &t->needs->need[t->next];
        uint64_t done;

        bytes += need->bytes;
        since = t->begin[need->from] < since ? t->begin[need->from] : since;
        done = since + (uint64_t)((double)bytes * ns_per_byte);
        latest = done > latest ? done : latest;
    }
    return latest;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static um_status_t launch_add(timeline_t *t, const um_step_t *step, uint64_t i, uint64_t now)
{
    const um_ev_launch_t *launch = &step->event->u.launch;
    line_t *stream;
    um_status_t status = line_of(t,
                                 (line_t){.tid = step->event->tid,
                                          .context = launch->context,
                                          .device = launch->device,
                                          .stream = launch->stream},
                                 &stream);

    if (status)
        return status;
    t->begin[i] = later(now, stream->ns);
    stream->ns = later(t->begin[i] + (uint64_t)((double)step->compute_ns * t->scale),
                       needs_ns(t, i, t->ns_per_byte_in));
    return UM_OK;
}

static um_status_t time_find(timeline_t *t, const um_workload_t *w, uint64_t *out)
{
    uint32_t tid = 0; /* a host phase belongs to the thread of the step before it */
    uint64_t end = 0;
    um_status_t status = UM_OK;

    for (uint64_t i = 0; i < w->n_steps && !status; i++) {
        const um_step_t *step = &w->steps[i];
        const um_event_t *event = step->event;
        line_t *thread;
        size_t self;

        tid = event ? event->tid : tid;
        status = line_of(t, (line_t){.tid = tid, .device = UM_DEVICE_HOST}, &thread);
        if (status)
            break;
        self = (size_t)(thread - t->line);
        t->begin[i] = thread->ns;
        thread->ns += step->cpu_ns;
        if (!event) {
            thread->ns = later(thread->ns, needs_ns(t, i, t->ns_per_byte_out));
        } else if (event->type == UM_EV_LAUNCH) {
            status = launch_add(t, step, i, thread->ns);
        } else if (event->type == UM_EV_SYNC) {
            for (size_t l = 0; l < t->n_lines; l++) {
                const line_t *line = &t->line[l];

                if (line->device != UM_DEVICE_HOST &&
                    waits_for(event, line->tid, line->context, line->stream, w->n_gpus == 1))
                    t->line[self].ns = later(t->line[self].ns, line->ns);
            }
        }
    }
    for (size_t l = 0; l < t->n_lines; l++)
        end = later(end, t->line[l].ns);
    *out = end;
    return status;
}

static double faster(double a, double b)
{
    return a > b ? a : b;
}

static double best_rate(const um_curve_t *curve, double other)
{
    for (uint32_t i = 0; i < curve->n; i++)
        other = faster(curve->point[i].gb_per_s, other);
    return other;
}

/* ---- both --------------------------------------------------------------------------------------- */

typedef struct device_least {
    uint64_t in_bytes, out_bytes;
} device_least_t;

static um_status_t device_find(const um_workload_t *w, int32_t device, uint64_t gpu_bytes,
                               uint32_t *epoch, needs_t *needs, device_least_t *out)
{
    um_flows_t flows;
    uint32_t n_epochs;
    uint64_t again = 0, back = 0;
    um_status_t status = um_flows_find(w, device, &flows);

    if (status)
        return status;
    status = epochs_find(w, device, epoch, &n_epochs);
    if (!status)
        status = dropped_find(&flows.list[UM_FLOW_KEPT], epoch, n_epochs, gpu_bytes, &again);
    if (!status)
        status = dropped_find(&flows.list[UM_FLOW_DIRTY], epoch, n_epochs, gpu_bytes, &back);
    if (!status)
        status = needs_add(needs, &flows.list[UM_FLOW_IN]);
    if (!status)
        status = needs_add(needs, &flows.list[UM_FLOW_OUT]);
    out->in_bytes = um_flow_bytes(&flows.list[UM_FLOW_IN]) + again;
    out->out_bytes = um_flow_bytes(&flows.list[UM_FLOW_OUT]) + back;
    um_flows_free(&flows);
    return status;
}

um_status_t um_bounds_find(const um_workload_t *workload, const um_machine_t *machine,
                           uint64_t gpu_bytes, double kernel_time_scale, um_bounds_t *out)
{
    double peer = workload->n_gpus > 1 ? best_rate(&machine->link_peer, 0) : 0;
    needs_t needs = {0};
    timeline_t t = {
        .needs = &needs,
        .ns_per_byte_in =
            1 / best_rate(&machine->link_to_device, faster(machine->remote_read_gb_per_s, peer)),
        .ns_per_byte_out =
            1 / best_rate(&machine->link_to_host, faster(machine->remote_write_gb_per_s, peer)),
        .scale = kernel_time_scale > 0 ? kernel_time_scale : machine->kernel_time_scale,
    };
    uint32_t *epoch = calloc(workload->n_steps + 1, sizeof(*epoch));
    um_bounds_t bounds = {0};
    um_status_t status = epoch ? UM_OK : UM_ERR_NO_MEMORY;
    uint64_t links = 0;

    gpu_bytes = gpu_bytes ? gpu_bytes : machine->memory_bytes;
    for (uint32_t g = 0; g < workload->n_gpus && !status; g++) {
        device_least_t least;

        status = device_find(workload, (int32_t)g, gpu_bytes, epoch, &needs, &least);
        if (status)
            break;
        bounds.least_to_device += least.in_bytes;
        bounds.least_to_host += least.out_bytes;
        links = later(links, (uint64_t)((double)least.in_bytes * t.ns_per_byte_in));
        links = later(links, (uint64_t)((double)least.out_bytes * t.ns_per_byte_out));
    }
    if (!status) {
        if (needs.n)
            qsort(needs.need, needs.n, sizeof(need_t), by_step);
        t.begin = calloc(workload->n_steps + 1, sizeof(*t.begin));
        status = t.begin ? time_find(&t, workload, &bounds.least_ns) : UM_ERR_NO_MEMORY;
    }
    if (!status) {
        bounds.least_bytes = bounds.least_to_device + bounds.least_to_host;
        bounds.least_ns = later(bounds.least_ns, links);
        *out = bounds;
    }
    free(t.begin);
    free(t.line);
    free(needs.need);
    free(epoch);
    return status;
}

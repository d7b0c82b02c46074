/*
 * What no policy can beat on this workload: fewest bytes over the links, shortest time. Both from the
 * flows (flows.h); the rules and why they are bounds are in MODEL.md, "Bounds".
 */
#include "sim.h"

#include <stdlib.h>

#include "core/grow.h"
#include "flows.h"
#include "least_time.h"

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
    if (!um_grow(&queues->queue, &queues->size, queues->n + 1, sizeof(*queues->queue)))
        return false;
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

    if (!um_grow(&heap->end, &heap->size, heap->n + 1, sizeof(*heap->end)))
        return false;
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
        while (kept > capacity && heap.n && !status) {
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

/* ---- both --------------------------------------------------------------------------------------- */

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

/* The simulator counts whole nanoseconds, a block at a time or less often. */
static double ns_per_byte(double gb_per_s)
{
    double ns = 1 / gb_per_s - 1.0 / UM_BLOCK_BYTES;

    return ns > 0 ? ns : 0;
}

static um_least_rates_t rates_of(const um_workload_t *w, const um_machine_t *machine)
{
    double peer = w->n_gpus > 1 ? best_rate(&machine->link_peer, 0) : 0;
    double in = best_rate(&machine->link_to_device, faster(machine->remote_read_gb_per_s, peer));
    double out = best_rate(&machine->link_to_host, faster(machine->remote_write_gb_per_s, peer));

    if (machine->coherent) /* either side may fetch or put */
        in = out = in + out;
    return (um_least_rates_t){.in_ns = ns_per_byte(in), .out_ns = ns_per_byte(out)};
}

/* Flows of one GPU: their part of the bytes, and what has to be there when. */
static um_status_t device_find(const um_workload_t *w, int32_t device, uint64_t gpu_bytes,
                               uint32_t *epoch, um_needs_t needs[UM_NEED_KINDS], uint64_t *in,
                               uint64_t *out)
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
        status = um_needs_add(&needs[UM_NEED_IN], &flows.list[UM_FLOW_IN]);
    if (!status)
        status = um_needs_add(&needs[UM_NEED_OUT], &flows.list[UM_FLOW_OUT]);
    if (!status)
        status = um_needs_add(&needs[UM_NEED_FIRST_HERE], &flows.list[UM_FLOW_FIRST_HERE]);
    if (!status && device == 0) /* the same for all */
        status = um_needs_add(&needs[UM_NEED_FIRST_HOST], &flows.list[UM_FLOW_FIRST_HOST]);
    *in = um_flow_bytes(&flows.list[UM_FLOW_IN]) + again;
    *out = um_flow_bytes(&flows.list[UM_FLOW_OUT]) + back;
    um_flows_free(&flows);
    return status;
}

um_status_t um_bounds_find(const um_workload_t *workload, const um_machine_t *machine,
                           uint64_t gpu_bytes, double kernel_time_scale, um_bounds_t *out)
{
    um_needs_t needs[UM_NEED_KINDS] = {0};
    um_least_rates_t rates = rates_of(workload, machine);
    uint32_t *epoch = calloc(workload->n_steps + 1, sizeof(*epoch));
    um_bounds_t bounds = {0};
    um_status_t status = epoch ? UM_OK : UM_ERR_NO_MEMORY;
    double links_ns = 0;

    if (!(kernel_time_scale > 0))
        kernel_time_scale = um_sim_time_scale(workload, machine);
    gpu_bytes = gpu_bytes ? gpu_bytes : machine->memory_bytes;
    for (uint32_t g = 0; g < workload->n_gpus && !status; g++) {
        uint64_t to_device = 0, to_host = 0;

        status = device_find(workload, (int32_t)g, gpu_bytes, epoch, needs, &to_device, &to_host);
        bounds.least_to_device += to_device;
        bounds.least_to_host += to_host;
        links_ns = faster(links_ns, (double)to_device * rates.in_ns);
        links_ns = faster(links_ns, (double)to_host * rates.out_ns);
    }
    if (!status)
        status = um_least_time_find(workload, machine, kernel_time_scale, &rates, needs,
                                    &bounds.least_ns);
    if (!status) {
        bounds.least_bytes = bounds.least_to_device + bounds.least_to_host;
        if ((uint64_t)links_ns > bounds.least_ns)
            bounds.least_ns = (uint64_t)links_ns;
        *out = bounds;
    }
    for (int k = 0; k < UM_NEED_KINDS; k++)
        free(needs[k].need);
    free(epoch);
    return status;
}

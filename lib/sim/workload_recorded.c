/* workload_recorded.c - what events say of touches, and of when the GPU worked, as they come. */
#include "workload_recorded_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

/* A CPU fault keeps its thread for so long, and where the driver populates pages, longer by a
 * nanosecond for so many bytes (an H200's host takes 350 ms to touch 1 GiB first). */
#define CPU_FAULT_NS    UINT64_C(50000)
#define POPULATED_IN_NS 3
/* Between two pieces of fault service the GPU still waits: for the next fault to be told. */
#define SERVICE_GAP_NS UINT64_C(30000)

/* ---- pieces ------------------------------------------------------------------------------------ */

static void add(um_recorded_t *r, um_recorded_piece_t piece)
{
    um_recorded_piece_t *last = r->n_pieces ? &r->pieces[r->n_pieces - 1] : NULL;

    /* Blocks stay apart: each has its place in the order. */
    if (last && um_recorded_goes_on(last, &piece) && piece.addr % UM_BLOCK_BYTES != 0) {
        last->end = piece.end;
        return;
    }
    if (!um_grow(&r->pieces, &r->pieces_size, r->n_pieces + 1, sizeof *r->pieces)) {
        r->status = UM_ERR_NO_MEMORY;
        return;
    }
    piece.rank = r->n_pieces;
    r->pieces[r->n_pieces++] = piece;
}

/* The GPU may have the region from now on. */
static void was_launched(um_recorded_t *r, uint32_t region)
{
    if (!um_ids_find(&r->launched, region) && um_ids_put(&r->launched, region, 1) != UM_OK)
        r->status = UM_ERR_NO_MEMORY;
}

static void add_range(um_recorded_t *r, um_recorded_piece_t piece, uint64_t addr, uint64_t bytes)
{
    if (!um_workload_builder_clip(r->builder, piece.step, &piece.region, &addr, &bytes)) {
        um_workload_builder_skip(r->builder, 1);
        return;
    }
    if (!piece.host)
        was_launched(r, piece.region);
    /* by block: that is how they are ordered */
    for (uint64_t end = addr + bytes; addr < end; addr = piece.end) {
        piece.addr = addr;
        piece.end = (addr | (UM_BLOCK_BYTES - 1)) + 1;
        if (piece.end > end || !piece.end) /* the last block there is */
            piece.end = end;
        add(r, piece);
    }
}

/* ---- the GPU ----------------------------------------------------------------------------------- */

static um_recorded_launch_t *launch_of(um_recorded_t *r, uint32_t correlation)
{
    const um_id_t *found = correlation ? um_ids_find(&r->by_correlation, correlation) : NULL;

    return found ? &r->launches[found->value] : NULL;
}

/* The GPU waited for that. */
static void served(um_recorded_launch_t *l, uint64_t from, uint64_t duration_ns)
{
    uint64_t end = from + duration_ns;

    if (end < from || l->end_ns == 0)
        return;
    if (l->served_until_ns && from < l->served_until_ns + SERVICE_GAP_NS)
        from = l->served_until_ns;
    if (from < l->start_ns)
        from = l->start_ns;
    if (end > l->end_ns)
        end = l->end_ns;
    if (end > from) {
        l->served_ns += end - from;
        l->served_until_ns = end;
    }
}

static void attributed(void *ctx, const um_event_t *event, const um_attributed_t *who)
{
    um_recorded_t *r = ctx;
    um_recorded_launch_t *l = who->to == UM_TO_KERNEL ? launch_of(r, who->correlation) : NULL;
    um_recorded_piece_t piece = {0};

    if (who->to == UM_TO_COPY)
        return;
    if (!l) {
        um_workload_builder_skip(r->builder, 1);
        return;
    }
    piece.step = (uint32_t)l->step;
    if (event->type == UM_EV_GPU_FAULT) {
        const um_ev_gpu_fault_t *f = &event->u.gpu_fault;

        served(l, event->time_ns, f->duration_ns);
        piece.region = f->region;
        piece.populated = 1;
        piece.reads = f->access == UM_ACCESS_READ || f->access == UM_ACCESS_ATOMIC;
        piece.writes = f->access == UM_ACCESS_WRITE || f->access == UM_ACCESS_ATOMIC;
        add_range(r, piece, f->addr & ~(uint64_t)(UM_PAGE_BYTES - 1), UM_PAGE_BYTES);
    } else if (event->type == UM_EV_MIGRATE) {
        const um_ev_migrate_t *m = &event->u.migrate;

        served(l, event->time_ns, m->duration_ns);
        piece.region = m->region;
        if (m->dst >= 0)
            add_range(r, piece, m->addr, m->bytes);
    } else if (event->type == UM_EV_THROTTLE) {
        served(l, event->time_ns, event->u.throttle.duration_ns);
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

um_status_t um_recorded_launch(um_recorded_t *r, const um_event_t *event, size_t step)
{
    const um_ev_launch_t *l = &event->u.launch;
    um_recorded_launch_t launch = {.step = step, .work = mix(1, l->kernel)};

    if (l->graph)
        launch.work = mix(launch.work, l->graph);
    for (int i = 0; i < 3; i++)
        launch.work = mix(mix(launch.work, l->grid[i]), l->block[i]);
    launch.alike = launch.work;
    for (uint32_t i = 0; i < l->n_args; i++)
        launch.alike = mix(mix(mix(launch.alike, l->args[i].slot), l->args[i].region),
                           l->args[i].region_offset_bytes);
    /* Of what is not known nothing is alike. */
    if (l->flags & UM_LAUNCH_ARGS_UNKNOWN || (!l->kernel && !l->graph))
        launch.alike = mix(launch.alike, ~(uint64_t)step);
    if (!um_grow(&r->launches, &r->launches_size, r->n_launches + 1, sizeof *r->launches) ||
        (l->correlation &&
         um_ids_put(&r->by_correlation, l->correlation, (uint32_t)r->n_launches) != UM_OK))
        return r->status = UM_ERR_NO_MEMORY;
    r->launches[r->n_launches++] = launch;
    for (uint32_t i = 0; i < l->n_args; i++)
        was_launched(r, l->args[i].region);
    return r->status;
}

static void executed(um_recorded_t *r, const um_event_t *event)
{
    const um_ev_kernel_exec_t *exec = &event->u.kernel_exec;
    um_recorded_launch_t *l = launch_of(r, exec->correlation);
    uint64_t from = event->time_ns, end = from + exec->duration_ns;

    if (!l || end < from)
        return;
    if (!l->end_ns)
        l->start_ns = from;
    if (from < l->end_ns)
        from = l->end_ns;
    if (end > from) {
        l->busy_ns += end - from;
        l->end_ns = end;
    }
}

static void defined(um_recorded_t *r, const um_ev_kernel_t *kernel)
{
    um_recorded_kernel_t k = {.n = kernel->n_params};

    if (!um_grow(&r->kernels, &r->kernels_size, r->n_kernels + 1, sizeof *r->kernels) ||
        um_ids_put(&r->by_kernel, kernel->kernel, (uint32_t)r->n_kernels) != UM_OK ||
        (k.n && !(k.flags = calloc(k.n, sizeof *k.flags)))) {
        r->status = UM_ERR_NO_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < k.n; i++)
        k.flags[i] = kernel->params[i].flags;
    r->kernels[r->n_kernels++] = k;
}

um_status_t um_recorded_event(um_recorded_t *r, const um_event_t *event)
{
    um_status_t status;

    if (event->type == UM_EV_KERNEL_EXEC)
        executed(r, event);
    else if (event->type == UM_EV_KERNEL)
        defined(r, &event->u.kernel);
    status = um_attribution_event(r->attribution, event);
    if (status != UM_OK && r->status == UM_OK)
        r->status = status;
    return r->status;
}

/* ---- the CPU ----------------------------------------------------------------------------------- */

bool um_recorded_is_host(const um_event_t *event)
{
    const um_ev_migrate_t *m = &event->u.migrate;

    return event->type == UM_EV_CPU_FAULT ||
           (event->type == UM_EV_MIGRATE && m->dst == UM_DEVICE_HOST && m->cause != UM_CAUSE_USER &&
            m->cause != UM_CAUSE_EVICTION);
}

static uint64_t host_fault(um_recorded_t *r, const um_ev_cpu_fault_t *fault,
                           um_recorded_piece_t piece)
{
    uint64_t addr = fault->addr & ~(uint64_t)(UM_PAGE_BYTES - 1), page = addr, bytes = 1;
    uint32_t region = fault->region;
    bool first;

    if (r->host_step != piece.step || r->host_first > addr ||
        r->host_first / UM_BLOCK_BYTES != addr / UM_BLOCK_BYTES)
        r->host_first = addr;
    r->host_step = piece.step;
    um_workload_builder_clip(r->builder, piece.step, &region, &page, &bytes);
    first = !um_ids_find(&r->launched, region);
    bytes = um_recorded_grown(r->host_first, addr);
    /* nvprof does not say; who touches memory before the GPU does fills it */
    r->host_writes = fault->access == UM_ACCESS_WRITE || fault->access == UM_ACCESS_ATOMIC ||
                     (fault->access == UM_ACCESS_UNKNOWN && first);
    piece.region = region;
    piece.writes = r->host_writes;
    piece.reads = !piece.writes;
    add_range(r, piece, addr, bytes);
    return first ? CPU_FAULT_NS + bytes / POPULATED_IN_NS : CPU_FAULT_NS;
}

um_status_t um_recorded_host(um_recorded_t *r, const um_event_t *event, size_t step,
                             uint64_t *stalled_ns)
{
    const um_ev_migrate_t *m = &event->u.migrate;
    um_recorded_piece_t piece = {.step = (uint32_t)step, .host = 1};

    if (event->type == UM_EV_CPU_FAULT) {
        *stalled_ns = host_fault(r, &event->u.cpu_fault, piece);
        return r->status;
    }
    piece.region = m->region;
    piece.writes = r->host_step == step && r->host_writes;
    piece.reads = !piece.writes;
    add_range(r, piece, m->addr, m->bytes);
    *stalled_ns = m->duration_ns;
    return r->status;
}

/* ---- life ------------------------------------------------------------------------------------- */

void um_recorded_deep(um_recorded_t *r)
{
    r->deep = true;
}

um_status_t um_recorded_new(um_workload_builder_t *builder, um_recorded_t **out)
{
    um_recorded_t *r = calloc(1, sizeof *r);

    if (!r || um_attribution_new(attributed, r, &r->attribution) != UM_OK) {
        free(r);
        return UM_ERR_NO_MEMORY;
    }
    r->builder = builder;
    r->host_step = SIZE_MAX;
    *out = r;
    return UM_OK;
}

void um_recorded_free(um_recorded_t *r)
{
    if (!r)
        return;
    um_attribution_free(r->attribution);
    for (size_t i = 0; i < r->n_kernels; i++)
        free(r->kernels[i].flags);
    free(r->kernels);
    free(r->launches);
    free(r->pieces);
    um_ids_free(&r->by_correlation);
    um_ids_free(&r->by_kernel);
    um_ids_free(&r->launched);
    free(r);
}

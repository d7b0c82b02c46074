/* workload_recorded.c - faults and migrations become touches, their absence compute time. */
#include "workload_recorded.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "model/attribution.h"
#include "workload_ids.h"

/* A CPU fault keeps its thread for so long, and where the driver populates pages, longer by a
 * nanosecond for so many bytes (an H200's host takes 350 ms to touch 1 GiB first). */
#define CPU_FAULT_NS    UINT64_C(50000)
#define POPULATED_IN_NS 3
/* Between two pieces of fault service the GPU still waits: for the next fault to be told. */
#define SERVICE_GAP_NS UINT64_C(30000)
/* No launch is faster than its bytes: 4 TB/s, as streaming kernels reach on an H200. */
#define BYTES_IN_NS UINT64_C(4000)
#define TOUCHES_MAX ((size_t)2 << 20) /* that launches may owe to others like them */

typedef struct piece {
    uint64_t addr, end;
    uint64_t rank; /* of its block: when it was first needed */
    uint32_t step;
    uint32_t region;
    uint8_t reads, writes; /* faults said so */
    uint8_t populated;     /* a fault, no migration: it may only have been populated */
    uint8_t host;
} piece_t;

typedef struct launch {
    size_t step;
    uint64_t alike;            /* equal for launches alike */
    uint64_t work;             /* equal for launches of one kernel and grid */
    uint64_t start_ns, end_ns; /* on the GPU */
    uint64_t busy_ns;          /* a graph's nodes overlap */
    uint64_t served_ns;        /* of which faults were served */
    uint64_t served_until_ns;
    uint64_t bytes; /* touched */
} launch_t;

typedef struct kernel {
    uint32_t n;
    uint32_t *flags;
} kernel_t;

struct um_recorded {
    um_workload_builder_t *builder;
    bool deep;
    um_attribution_t *attribution;
    um_status_t status;
    launch_t *launches;
    size_t n_launches, launches_size;
    um_ids_t by_correlation;
    kernel_t *kernels;
    size_t n_kernels, kernels_size;
    um_ids_t by_kernel;
    piece_t *pieces;
    size_t n_pieces, pieces_size;
    um_ids_t launched;   /* regions that some launch has had */
    bool host_writes;    /* the last CPU fault was one of a write */
    uint64_t host_first; /* the first fault of the CPU in this block and phase */
    size_t host_step;
};

/* ---- pieces ------------------------------------------------------------------------------------ */

/* Whether b is more of the same and goes on where a ends. */
static bool goes_on(const piece_t *a, const piece_t *b)
{
    return a->step == b->step && a->region == b->region && a->end == b->addr &&
           a->reads == b->reads && a->writes == b->writes && a->populated == b->populated;
}

static void add(um_recorded_t *r, piece_t piece)
{
    piece_t *last = r->n_pieces ? &r->pieces[r->n_pieces - 1] : NULL;

    /* Blocks stay apart: each has its place in the order. */
    if (last && goes_on(last, &piece) && piece.addr % UM_BLOCK_BYTES != 0) {
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

static void add_range(um_recorded_t *r, piece_t piece, uint64_t addr, uint64_t bytes)
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
        if (piece.end > end)
            piece.end = end;
        add(r, piece);
    }
}

/* What the driver populates or moves at a fault, when it has had faults in this block from `first`
 * on: its tree doubles what it has, down to a big page. */
static uint64_t grown(uint64_t first, uint64_t addr)
{
    uint64_t bytes = UM_BIG_PAGE_BYTES;

    if (first <= addr && first / UM_BLOCK_BYTES == addr / UM_BLOCK_BYTES)
        while (bytes < addr - first)
            bytes *= 2;
    return bytes;
}

/* ---- the GPU ----------------------------------------------------------------------------------- */

static launch_t *launch_of(um_recorded_t *r, uint32_t correlation)
{
    const um_id_t *found = correlation ? um_ids_find(&r->by_correlation, correlation) : NULL;

    return found ? &r->launches[found->value] : NULL;
}

/* The GPU waited for that. */
static void served(launch_t *l, uint64_t from, uint64_t duration_ns)
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
    launch_t *l = who->to == UM_TO_KERNEL ? launch_of(r, who->correlation) : NULL;
    piece_t piece = {0};

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
    launch_t launch = {.step = step, .work = mix(1, l->kernel)};

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
    launch_t *l = launch_of(r, exec->correlation);
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
    kernel_t k = {.n = kernel->n_params};

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

static uint64_t host_fault(um_recorded_t *r, const um_ev_cpu_fault_t *fault, piece_t piece)
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
    bytes = grown(r->host_first, addr);
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
    piece_t piece = {.step = (uint32_t)step, .host = 1};

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

/* ---- the whole --------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const piece_t *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_need(const void *a, const void *b)
{
    const piece_t *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* One block of one step, its pieces by address. Only where nothing migrated do faults stand for more
 * than their pages: the GPU populates between them, from the first to what the last one makes. Leaves
 * the runs at `to`, returns how many. */
static size_t block_runs(const um_recorded_t *r, const piece_t *from, size_t n, piece_t *to)
{
    uint64_t rank = UINT64_MAX;
    bool migrated = false, reads = false, writes = false;
    size_t made = 0;
    piece_t run = from[0];

    for (size_t i = 0; i < n; i++) {
        rank = from[i].rank < rank ? from[i].rank : rank;
        migrated |= !from[i].populated;
        reads |= from[i].reads;
        writes |= from[i].writes;
    }
    if (!migrated && !run.host) {
        uint64_t last = from[n - 1].addr;

        run.addr &= ~(uint64_t)(UM_BIG_PAGE_BYTES - 1);
        run.end = last + grown(run.addr, last);
        if (run.end > (run.addr | (UM_BLOCK_BYTES - 1)) + 1)
            run.end = (run.addr | (UM_BLOCK_BYTES - 1)) + 1;
        uint64_t bytes = run.end - run.addr;
        if (!um_workload_builder_clip(r->builder, run.step, &run.region, &run.addr, &bytes))
            return 0;
        run.end = run.addr + bytes;
        n = 1;
    }
    run.rank = rank;
    run.reads = reads;
    run.writes = writes;
    for (size_t i = 1; i < n; i++) {
        if (from[i].addr <= run.end && from[i].region == run.region) {
            run.end = from[i].end > run.end ? from[i].end : run.end;
            continue;
        }
        to[made++] = run;
        run.addr = from[i].addr;
        run.end = from[i].end;
        run.region = from[i].region;
    }
    to[made++] = run;
    return made;
}

/* Sorted and merged in place; returns how many are left. */
static size_t runs_of(const um_recorded_t *r, piece_t *pieces, size_t n)
{
    size_t to = 0;

    qsort(pieces, n, sizeof *pieces, by_place);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && pieces[end].step == pieces[i].step &&
                          pieces[end].addr / UM_BLOCK_BYTES == pieces[i].addr / UM_BLOCK_BYTES;
             end++)
            ;
        to += block_runs(r, &pieces[i], end - i, &pieces[to]);
    }
    return to;
}

/* In the order of need; what goes on from block to block becomes one. Returns how many are left. */
static size_t in_order(piece_t *pieces, size_t n)
{
    size_t to = 0;

    if (n)
        qsort(pieces, n, sizeof *pieces, by_need);
    for (size_t i = 0; i < n; i++) {
        if (to && goes_on(&pieces[to - 1], &pieces[i]))
            pieces[to - 1].end = pieces[i].end;
        else
            pieces[to++] = pieces[i];
    }
    return to;
}

static int by_likeness(const void *a, const void *b)
{
    const launch_t *x = a, *y = b;

    if (x->alike != y->alike)
        return x->alike < y->alike ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static piece_t *pieces_of(const um_recorded_t *r, size_t step, size_t *n)
{
    size_t low = 0, high = r->n_pieces, end;

    *n = 0;
    if (!high)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->pieces[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < r->n_pieces && r->pieces[end].step == step; end++)
        ;
    *n = end - low;
    return r->pieces + low;
}

/* What any of the launches alike touched, each of them did. */
static um_status_t share(um_recorded_t *r, const launch_t *alike, size_t n, piece_t **all,
                         size_t *n_all, size_t *size)
{
    piece_t *sum = NULL;
    size_t n_sum = 0, sum_size = 0;

    for (size_t i = 0; i < n; i++) {
        size_t count;
        piece_t *own = pieces_of(r, alike[i].step, &count);

        if (!um_grow(&sum, &sum_size, n_sum + count, sizeof *sum))
            goto no_memory;
        if (count)
            memcpy(&sum[n_sum], own, count * sizeof *sum);
        for (size_t k = n_sum; k < n_sum + count; k++)
            sum[k].step = (uint32_t)alike[0].step;
        n_sum += count;
    }
    for (size_t i = 0; i < n_sum; i++)
        sum[i].populated = 0; /* they are runs by now */
    n_sum = n_sum ? in_order(sum, runs_of(r, sum, n_sum)) : 0;
    if (*n_all > TOUCHES_MAX || n_sum > (TOUCHES_MAX - *n_all) / n)
        n_sum = 0; /* too many to tell: each keeps its own */
    for (size_t i = 0; i < n; i++) {
        size_t count;
        const piece_t *own = pieces_of(r, alike[i].step, &count);
        const piece_t *from = n_sum ? sum : own;

        count = n_sum ? n_sum : count;
        if (!um_grow(all, size, *n_all + count, sizeof **all))
            goto no_memory;
        for (size_t k = 0; k < count; k++) {
            (*all)[*n_all] = from[k];
            (*all)[(*n_all)++].step = (uint32_t)alike[i].step;
        }
    }
    free(sum);
    return UM_OK;
no_memory:
    free(sum);
    return UM_ERR_NO_MEMORY;
}

static um_status_t share_all(um_recorded_t *r)
{
    piece_t *all = NULL;
    size_t n_all = 0, size = 0;
    um_status_t status = UM_OK;
    launch_t *launches = malloc((r->n_launches + 1) * sizeof *launches);

    if (!launches)
        return UM_ERR_NO_MEMORY;
    if (r->n_launches)
        memcpy(launches, r->launches, r->n_launches * sizeof *launches);
    qsort(launches, r->n_launches, sizeof *launches, by_likeness);
    for (size_t i = 0, end; status == UM_OK && i < r->n_launches; i = end) {
        for (end = i + 1; end < r->n_launches && launches[end].alike == launches[i].alike; end++)
            ;
        status = share(r, &launches[i], end - i, &all, &n_all, &size);
    }
    for (size_t i = 0; status == UM_OK && i < r->n_pieces; i++) {
        if (!r->pieces[i].host)
            continue;
        status = um_grow(&all, &size, n_all + 1, sizeof *all) ? UM_OK : UM_ERR_NO_MEMORY;
        if (status == UM_OK)
            all[n_all++] = r->pieces[i];
    }
    free(launches);
    if (status != UM_OK) {
        free(all);
        return status;
    }
    free(r->pieces);
    r->pieces = all;
    r->n_pieces = n_all;
    r->pieces_size = size;
    return UM_OK;
}

/* Whether the launch can write the region: what it gets only through pointers to const it cannot. */
static bool can_write(const um_recorded_t *r, const um_event_t *event, uint32_t region)
{
    const um_ev_launch_t *l = &event->u.launch;
    const um_id_t *found = um_ids_find(&r->by_kernel, l->kernel);
    const kernel_t *kernel = found ? &r->kernels[found->value] : NULL;
    bool given = false;

    for (uint32_t i = 0; i < l->n_args; i++) {
        if (l->args[i].region != region)
            continue;
        given = true;
        if (!kernel || l->args[i].slot >= kernel->n ||
            !(kernel->flags[l->args[i].slot] & UM_PARAM_CONST_POINTER))
            return true;
    }
    return !given;
}

static um_status_t tell(um_recorded_t *r, const piece_t *piece)
{
    const um_step_t *step = um_workload_builder_at(r->builder, piece->step);
    um_touch_t touch = {.addr = piece->addr,
                        .bytes = piece->end - piece->addr,
                        .region = piece->region};
    bool writes = step->event ? can_write(r, step->event, piece->region) : piece->writes;
    bool reads = piece->reads || !piece->writes || !writes;
    uint64_t addr = touch.addr, bytes = touch.bytes;
    uint32_t region = touch.region;
    um_status_t status = UM_OK;

    /* A launch alike may have come before a region that only another one was led to. */
    if (!um_workload_builder_clip(r->builder, piece->step, &region, &addr, &bytes) ||
        region != touch.region || bytes != touch.bytes)
        return UM_OK;
    touch.kind = UM_ACCESS_READ;
    if (reads)
        status = um_workload_builder_touch_at(r->builder, piece->step, &touch);
    touch.kind = UM_ACCESS_WRITE;
    touch.beside = reads;
    if (status == UM_OK && writes)
        status = um_workload_builder_touch_at(r->builder, piece->step, &touch);
    return status;
}

static int by_work(const void *a, const void *b)
{
    const launch_t *x = a, *y = b;

    if (x->work != y->work)
        return x->work < y->work ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* With all data there: what is left of an execution without the service of its faults, and never less
 * than the fastest undisturbed one of the same kernel and grid. */
static void compute_times(um_recorded_t *r)
{
    for (size_t i = 0; i < r->n_launches; i++) {
        size_t n;
        const piece_t *pieces = pieces_of(r, r->launches[i].step, &n);

        for (size_t k = 0; k < n; k++)
            r->launches[i].bytes += 2 * (pieces[k].end - pieces[k].addr); /* read and written */
    }
    qsort(r->launches, r->n_launches, sizeof *r->launches, by_work);
    for (size_t i = 0, end; i < r->n_launches; i = end) {
        uint64_t fastest_ns = UINT64_MAX;

        for (end = i; end < r->n_launches && r->launches[end].work == r->launches[i].work; end++)
            if (!r->launches[end].served_ns && r->launches[end].busy_ns &&
                r->launches[end].busy_ns < fastest_ns)
                fastest_ns = r->launches[end].busy_ns;
        for (size_t k = i; k < end; k++) {
            launch_t *l = &r->launches[k];
            uint64_t ns = l->busy_ns > l->served_ns ? l->busy_ns - l->served_ns : 0;

            if (l->served_ns && fastest_ns != UINT64_MAX && ns < fastest_ns)
                ns = fastest_ns;
            if (l->served_ns && ns < l->bytes / BYTES_IN_NS)
                ns = l->bytes / BYTES_IN_NS;
            um_workload_builder_at(r->builder, l->step)->compute_ns = ns;
        }
    }
}

um_status_t um_recorded_finish(um_recorded_t *r)
{
    um_attribution_finish(r->attribution);
    if (r->status != UM_OK || !r->n_launches)
        return r->status;
    r->n_pieces = r->n_pieces ? runs_of(r, r->pieces, r->n_pieces) : 0;
    if (!r->deep)
        r->status = share_all(r);
    r->n_pieces = in_order(r->pieces, r->n_pieces);
    for (size_t i = 0; r->status == UM_OK && i < r->n_pieces; i++)
        r->status = tell(r, &r->pieces[i]);
    compute_times(r);
    return r->status;
}

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

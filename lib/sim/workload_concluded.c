/* workload_concluded.c - what the pieces of a whole recording come to: runs, what launches alike share, compute
 * times. */
#include "workload_recorded_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

/* No launch is faster than its bytes: 4 TB/s, as streaming kernels reach on an H200. */
#define BYTES_IN_NS UINT64_C(4000)
#define TOUCHES_MAX ((size_t)2 << 20) /* that launches may owe to others like them */

static int by_place(const void *a, const void *b)
{
    const um_recorded_piece_t *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_need(const void *a, const void *b)
{
    const um_recorded_piece_t *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* One block of one step, its pieces by address. Only where nothing migrated do faults stand for more
 * than their pages: the GPU populates between them, from the first to what the last one makes. Leaves
 * the runs at `to`, returns how many. */
static size_t block_runs(const um_recorded_t *r, const um_recorded_piece_t *from, size_t n,
                         um_recorded_piece_t *to)
{
    uint64_t rank = UINT64_MAX;
    bool migrated = false, reads = false, writes = false;
    size_t made = 0;
    um_recorded_piece_t run = from[0];

    for (size_t i = 0; i < n; i++) {
        rank = from[i].rank < rank ? from[i].rank : rank;
        migrated |= !from[i].populated;
        reads |= from[i].reads;
        writes |= from[i].writes;
    }
    if (!migrated && !run.host) {
        uint64_t last = from[n - 1].addr;

        run.addr &= ~(uint64_t)(UM_BIG_PAGE_BYTES - 1);
        run.end = last + um_recorded_grown(run.addr, last);
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
static size_t runs_of(const um_recorded_t *r, um_recorded_piece_t *pieces, size_t n)
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
static size_t in_order(um_recorded_piece_t *pieces, size_t n)
{
    size_t to = 0;

    if (n)
        qsort(pieces, n, sizeof *pieces, by_need);
    for (size_t i = 0; i < n; i++) {
        if (to && um_recorded_goes_on(&pieces[to - 1], &pieces[i]))
            pieces[to - 1].end = pieces[i].end;
        else
            pieces[to++] = pieces[i];
    }
    return to;
}

static int by_likeness(const void *a, const void *b)
{
    const um_recorded_launch_t *x = a, *y = b;

    if (x->alike != y->alike)
        return x->alike < y->alike ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static um_recorded_piece_t *pieces_of(const um_recorded_t *r, size_t step, size_t *n)
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
static um_status_t share(um_recorded_t *r, const um_recorded_launch_t *alike, size_t n,
                         um_recorded_piece_t **all, size_t *n_all, size_t *size)
{
    um_recorded_piece_t *sum = NULL;
    size_t n_sum = 0, sum_size = 0;

    for (size_t i = 0; i < n; i++) {
        size_t count;
        um_recorded_piece_t *own = pieces_of(r, alike[i].step, &count);

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
        const um_recorded_piece_t *own = pieces_of(r, alike[i].step, &count);
        const um_recorded_piece_t *from = n_sum ? sum : own;

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
    um_recorded_piece_t *all = NULL;
    size_t n_all = 0, size = 0;
    um_status_t status = UM_OK;
    um_recorded_launch_t *launches = malloc((r->n_launches + 1) * sizeof *launches);

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
    const um_recorded_kernel_t *kernel = found ? &r->kernels[found->value] : NULL;
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

static um_status_t tell(um_recorded_t *r, const um_recorded_piece_t *piece)
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
    const um_recorded_launch_t *x = a, *y = b;

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
        const um_recorded_piece_t *pieces = pieces_of(r, r->launches[i].step, &n);

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
            um_recorded_launch_t *l = &r->launches[k];
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

#include "ranges.h"

#include <string.h>

static uint32_t slot_of(const um_ev_launch_t *launch, uint32_t arg)
{
    return launch->flags & UM_LAUNCH_GRAPH
               ? arg
               : launch->args[arg].slot | launch->args[arg].offset_bytes / 4 << 12;
}

/* A pointer, put where it belongs. Returns how many there are now. */
static uint32_t add(um_range_t *range, uint32_t n, uint32_t max, const um_argument_t *argument)
{
    uint32_t at = 0;

    while (at < n && range[at].argument.region != argument->region)
        at++;
    while (at < n && range[at].argument.region == argument->region &&
           range[at].argument.addr / UM_BLOCK_BYTES < argument->addr / UM_BLOCK_BYTES)
        at++;
    if (at < n && range[at].argument.region == argument->region &&
        range[at].argument.addr / UM_BLOCK_BYTES == argument->addr / UM_BLOCK_BYTES) {
        if (argument->addr < range[at].argument.addr)
            range[at].argument = *argument;
        return n;
    }
    if (n == max)
        return n;
    memmove(&range[at + 1], &range[at], (n - at) * sizeof(*range));
    range[at] = (um_range_t){.argument = *argument};
    return n + 1;
}

static void bound(const um_range_sources_t *from, const um_ev_launch_t *launch, uint64_t kernel,
                  um_range_t *range)
{
    const um_argument_t *argument = &range->argument;
    uint64_t addr = 0, bytes = 0;

    um_residency_region(from->residency, argument->region, &addr, &bytes);
    range->addr = argument->addr;
    range->end = addr + um_slices_end(from->slices, argument->region, argument->addr - addr, bytes);
    if (range->end > argument->limit)
        range->end = argument->limit;
    range->known = um_footprints_expect_of(from->footprints, kernel, launch, argument,
                                           range->end - range->addr);
    if (range->known.launches) {
        range->addr = argument->addr + range->known.first_bytes;
        range->end = argument->addr + range->known.end_bytes;
    }
    range->stride = um_footprints_stride(from->footprints, kernel, launch, argument);
    if (range->stride.stride) {
        range->known.backwards = false;
        range->known.density_percent = 100; /* of the runs */
    }
}

/* The pointers, put where they belong. */
static uint32_t collect(const um_range_sources_t *from, const um_ev_launch_t *launch, bool note,
                        um_range_t *out, uint32_t max)
{
    uint32_t n = 0;

    for (uint32_t a = 0; a < launch->n_args; a++) {
        const um_arg_t *arg = &launch->args[a];
        uint64_t addr, bytes;

        if (!um_residency_region(from->residency, arg->region, &addr, &bytes) ||
            arg->region_offset_bytes >= bytes)
            continue;
        if (note)
            um_slices_note(from->slices, arg->region, arg->region_offset_bytes);
        n = add(out, n, max,
                &(um_argument_t){.region = arg->region,
                                 .slot = slot_of(launch, a),
                                 .addr = addr + arg->region_offset_bytes,
                                 .limit = addr + bytes});
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        if (out[i + 1].argument.region == out[i].argument.region)
            out[i].argument.limit = out[i + 1].argument.addr;
    return n;
}

uint32_t um_ranges_collect(const um_range_sources_t *from, const um_event_t *event, um_range_t *out,
                           uint32_t max)
{
    const um_ev_launch_t *launch = &event->u.launch;
    uint64_t kernel = um_footprints_kernel(from->footprints, launch);
    uint32_t n = collect(from, launch, true, out, max);

    if (n)
        um_footprints_launch(from->footprints, launch, event->time_ns);
    for (uint32_t i = 0; i < n; i++) {
        um_footprints_take(from->footprints, launch, &out[i].argument);
        bound(from, launch, kernel, &out[i]);
    }
    return n;
}

uint32_t um_ranges_expect(const um_range_sources_t *from, const um_ev_launch_t *launch,
                          uint64_t kernel, um_range_t *out, uint32_t max)
{
    uint32_t n = collect(from, launch, false, out, max);

    for (uint32_t i = 0; i < n; i++)
        bound(from, launch, kernel, &out[i]);
    return n;
}

/* ---- stretches ---- */

void um_range_start(um_range_t *range)
{
    range->next = range->known.backwards ? range->end : range->addr;
}

bool um_range_is_whole(const um_range_t *range)
{
    return range->next == (range->known.backwards ? range->end : range->addr);
}

bool um_range_has_more(const um_range_t *range)
{
    return range->known.backwards ? range->next > range->addr : range->next < range->end;
}

/* The run that `at` is in, or the next one, cut to the range; false = there is none. */
static bool run_at(const um_range_t *range, uint64_t at, uint64_t *addr, uint64_t *end)
{
    const um_stride_t *stride = &range->stride;
    uint64_t slack = um_stride_slack(stride), base = range->argument.addr + stride->first;
    uint64_t i = at < base + stride->run + slack
                     ? 0
                     : (at - base - stride->run - slack) / stride->stride + 1;
    uint64_t from = base + i * stride->stride, to = from + stride->run + slack;

    from -= from > slack ? slack : from;
    *addr = from > range->addr ? from : range->addr;
    *end = to < range->end ? to : range->end;
    return *addr < *end;
}

/* The next stretch of it. */
static bool next_of_run(um_range_t *range, uint64_t *addr, uint64_t *bytes)
{
    uint64_t from, end, stop;

    if (!run_at(range, range->next, &from, &end)) {
        range->next = range->end;
        return false;
    }
    from = from > range->next ? from : range->next;
    stop = from / UM_BLOCK_BYTES * UM_BLOCK_BYTES + UM_VIEW_STRETCH_BYTES;
    range->next = stop < end ? stop : end;
    *addr = from;
    *bytes = range->next - from;
    return true;
}

bool um_range_next(um_range_t *range, uint64_t *addr, uint64_t *bytes)
{
    uint64_t from = range->next, to;

    if (!um_range_has_more(range))
        return false;
    if (range->stride.stride)
        return next_of_run(range, addr, bytes);
    if (range->known.backwards) {
        to = range->next;
        from = ((to - 1) / UM_BLOCK_BYTES + 1) * UM_BLOCK_BYTES;
        from =
            from > range->addr + UM_VIEW_STRETCH_BYTES ? from - UM_VIEW_STRETCH_BYTES : range->addr;
        range->next = from;
    } else {
        to = from / UM_BLOCK_BYTES * UM_BLOCK_BYTES + UM_VIEW_STRETCH_BYTES;
        to = to < range->end ? to : range->end;
        range->next = to;
    }
    *addr = from;
    *bytes = to - from;
    return true;
}

/* ---- regions ---- */

uint32_t um_ranges_of_region(const um_range_t *range, uint32_t n)
{
    uint32_t i = 1;

    while (i < n && range[i].argument.region == range[0].argument.region)
        i++;
    return i;
}

static void leave(um_residency_t *residency, uint32_t region, uint64_t from, uint64_t to)
{
    from = (from + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    to = to / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    if (from < to)
        um_residency_leave(residency, region, from, to - from);
}

/* What is between its runs. */
static void leave_between(um_residency_t *residency, const um_range_t *range)
{
    uint64_t from, end, at = range->addr;

    while (at < range->end && run_at(range, at, &from, &end)) {
        if (from > at)
            leave(residency, range->argument.region, at, from);
        at = end;
    }
    if (at < range->end)
        leave(residency, range->argument.region, at, range->end);
}

void um_ranges_leave_gaps(const um_range_t *range, uint32_t n, um_residency_t *residency)
{
    bool asked = false;

    for (uint32_t i = 0; i < n; i++)
        asked |= range[i].asked;
    for (uint32_t i = 0; asked && i < n; i++) {
        if (!range[i].asked && !range[i].settled)
            leave(residency, range->argument.region, range[i].addr, range[i].end);
        else if (range[i].stride.stride)
            leave_between(residency, &range[i]);
        if (i + 1 < n)
            leave(residency, range->argument.region, range[i].end, range[i + 1].addr);
    }
}

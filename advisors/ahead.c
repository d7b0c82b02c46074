/*
 * ahead - bring what the CPU has to the GPU while the kernel that gets it is already running.
 *
 * The prefetches race the kernel front to back; on an H200 they move 48 GB/s where its faults move 9.
 * Whether the kernel uses all of an argument is not known yet: up to a size it is taken to, since
 * prefetching pays from about 18 % on; above it nothing is assumed.
 */
#include "um_advisor.h"

typedef struct ahead {
    uint64_t dense_limit, min;
} ahead_t;

static const um_advisor_option_t options[] = {
    {"dense_limit", "bytes of the largest argument that is taken to be used all over",
     (uint64_t)2 << 30, 0, UINT64_MAX, offsetof(ahead_t, dense_limit)},
    {"min", "bytes of the smallest stretch worth a call", 65536, 0, UINT64_MAX,
     offsetof(ahead_t, min)},
    {0},
};

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const ahead_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    size_t n;

    if (stretch->range_bytes > self->dense_limit)
        um_hints_decline(hints);
    if (stretch->range_bytes > self->dense_limit || stretch->range_bytes < self->min)
        return; /* without a question: it is asking that costs */
    n = um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, extent,
                        UM_VIEW_STRETCH_EXTENTS);
    for (size_t i = 0; i < n; i++)
        if ((extent[i].where == UM_WHERE_HOST || extent[i].where == UM_WHERE_UNKNOWN) &&
            extent[i].bytes >= self->min)
            um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                             .order = UM_ORDER_RACING,
                                             .addr = extent[i].addr,
                                             .bytes = extent[i].bytes,
                                             .device = um_view_launch(view)->device,
                                             .why = extent[i].where == UM_WHERE_HOST
                                                        ? "the cpu has it"
                                                        : "not known to be on the gpu"});
}

const um_advisor_ops_t um_advisor_ahead = {
    .abi = UM_ADVISOR_ABI,
    .name = "ahead",
    .doc = "what the cpu has of a launch's arguments: to its gpu, racing the kernel",
    .state_bytes = sizeof(ahead_t),
    .options = options,
    .decide = decide,
};

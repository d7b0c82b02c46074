/*
 * ahead - bring what the CPU has to the GPU while the kernel that gets it is already running.
 *
 * The prefetches race the kernel front to back; on an H200 they move 48 GB/s where its faults move 9. So it
 * pays from a touched share of about 18 % on: of a kernel that is known to touch less, nothing is brought.
 * What is not known is taken to be touched all over, up to a size (4 GiB: at worst 90 ms for nothing,
 * once); above it the launch is left to its faults once, and so shows what it touches.
 */
#include "um_advisor.h"

typedef struct ahead {
    uint64_t dense_limit, min, pays_off;
} ahead_t;

static const um_advisor_option_t options[] = {
    {"dense_limit", "bytes of the largest argument taken to be used all over when it is not known",
     (uint64_t)4 << 30, 0, UINT64_MAX, offsetof(ahead_t, dense_limit)},
    {"min", "bytes of the smallest stretch worth a call", 65536, 0, UINT64_MAX,
     offsetof(ahead_t, min)},
    {"pays_off", "percent of an argument that must be touched for it to be brought", 18, 0, 100,
     offsetof(ahead_t, pays_off)},
    {0},
};

/* Is it worth bringing all of it? */
static bool pays(const ahead_t *self, const um_view_t *view, uint64_t range_bytes)
{
    um_footprint_t known = um_view_footprint(view);

    return known.launches ? known.density_percent >= self->pays_off
                          : range_bytes <= self->dense_limit;
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const ahead_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    size_t n;

    if (stretch->range_bytes < self->min)
        return; /* without a question: it is asking that costs */
    if (!pays(self, view, stretch->range_bytes)) {
        um_hints_decline(hints);
        return;
    }
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

/*
 * first_touch - populate on the GPU what the GPU is the first to touch.
 *
 * On an H200 faulting in 1 GiB of fresh pages takes 75 ms, prefetching them first 5.8 ms: where a kernel is
 * known to touch less than a twelfth, faults are cheaper. So they are for little where a wait is over before
 * a prefetch begins (0.15 to 0.6 ms after the launch).
 */
#include "um_advisor.h"

#define HURRIED_NS 1000000u

typedef struct first_touch {
    uint64_t limit, min, min_hurried, pays_off;
} first_touch_t;

static const um_advisor_option_t options[] = {
    {"limit", "bytes of the largest argument taken to be used all over when it is not known",
     (uint64_t)2 << 30, 0, UINT64_MAX, offsetof(first_touch_t, limit)},
    {"min", "bytes of the smallest stretch worth a call", 64 << 10, 0, UINT64_MAX,
     offsetof(first_touch_t, min)},
    {"min_hurried", "the same where waits end less than a millisecond apart", 256 << 10, 0,
     UINT64_MAX, offsetof(first_touch_t, min_hurried)},
    {"pays_off", "percent of an argument that must be touched for it to be populated", 8, 0, 100,
     offsetof(first_touch_t, pays_off)},
    {0},
};

/* Is it worth populating all of it? */
static bool pays(const first_touch_t *self, const um_view_t *view, uint64_t range_bytes)
{
    um_footprint_t known = um_view_footprint(view);

    return known.launches ? known.density_percent >= self->pays_off : range_bytes <= self->limit;
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const first_touch_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t pace_ns = um_view_pace_ns(view),
             min = pace_ns && pace_ns < HURRIED_NS ? self->min_hurried : self->min;
    size_t n;

    if (stretch->range_bytes < min ||
        um_view_word(view, stretch->region) & UM_REGION_HINT_CPU_FIRST)
        return; /* without a question: it is asking that costs */
    if (!pays(self, view, stretch->range_bytes)) {
        um_hints_decline(hints);
        return;
    }
    n = um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, extent,
                        UM_VIEW_STRETCH_EXTENTS);
    for (size_t i = 0; i < n; i++)
        if (extent[i].where == UM_WHERE_UNTOUCHED && extent[i].bytes >= min)
            um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                             .order = UM_ORDER_RACING,
                                             .addr = extent[i].addr,
                                             .bytes = extent[i].bytes,
                                             .device = um_view_launch(view)->device,
                                             .why = "first touched by the gpu"});
}

const um_advisor_ops_t um_advisor_first_touch = {
    .abi = UM_ADVISOR_ABI,
    .name = "first_touch",
    .doc = "pages nobody has written: to the gpu of the launch that gets them first",
    .state_bytes = sizeof(first_touch_t),
    .options = options,
    .decide = decide,
};

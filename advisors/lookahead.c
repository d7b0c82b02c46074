/*
 * lookahead - on idle link time, what the launches that are expected next will need.
 *
 * What a launch needs is brought racing it, once it is there (ahead, first_touch). Where the program waits or works
 * between its launches, the link has nothing to do meanwhile: what the next ones are known to touch and the CPU no
 * longer does can be there before they come. The model says what comes (by the loop, or by what another run did from its
 * first launch on), how much of it is touched, and what the CPU does until then; nobody knows the last: one block of each
 * stretch goes first, and only when it is found still there are all of them brought so early.
 *
 * Nothing is pushed out for it: what does not fit into free memory stays where it is.
 */
#include "um_advisor.h"

typedef struct lookahead {
    uint64_t steps, limit, min, trial, pays_off, populate_off;
} lookahead_t;

static const um_advisor_option_t options[] = {
    {"steps", "launches and waits looked ahead", 16, 0, 32, offsetof(lookahead_t, steps)},
    {"limit", "bytes of the largest argument taken to be used all over when it is not known",
     (uint64_t)1 << 30, 0, UINT64_MAX, offsetof(lookahead_t, limit)},
    {"min", "bytes of the smallest stretch worth a call", UM_BLOCK_BYTES, 0, UINT64_MAX,
     offsetof(lookahead_t, min)},
    {"trial", "bytes of a stretch brought the first time", UM_BLOCK_BYTES, UM_BLOCK_BYTES,
     UINT64_MAX, offsetof(lookahead_t, trial)},
    {"pays_off", "percent of an argument that must be touched for it to be brought", 18, 0, 100,
     offsetof(lookahead_t, pays_off)},
    {"populate_off", "percent of an argument that must be touched for it to be populated", 8, 0,
     100, offsetof(lookahead_t, populate_off)},
    {0},
};

/* Is it worth bringing all of what is there? */
static bool pays(const lookahead_t *self, const um_view_t *view, const um_extent_t *extent)
{
    um_footprint_t known = um_view_footprint(view);
    bool fresh = extent->where == UM_WHERE_UNTOUCHED;

    if (extent->where != UM_WHERE_HOST && !fresh)
        return false;
    if (fresh && um_view_word(view, um_view_stretch(view)->region) & UM_REGION_HINT_CPU_FIRST)
        return false;
    return !known.launches ||
           known.density_percent >= (fresh ? self->populate_off : self->pays_off);
}

/* Whole blocks: a part of one would not show whether the CPU takes it back. */
static void propose(const um_view_t *view, um_hints_t *hints, const um_extent_t *extent,
                    uint64_t most)
{
    int32_t device = um_view_launch(view)->device;
    uint64_t end = extent->addr + extent->bytes;

    if (most < extent->bytes)
        end = (extent->addr + most + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    if (end > extent->addr + extent->bytes)
        end = extent->addr + extent->bytes;
    if (um_view_room_bytes(view, device) < end - extent->addr)
        return;
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                     .order = UM_ORDER_IDLE,
                                     .addr = extent->addr,
                                     .bytes = end - extent->addr,
                                     .device = device,
                                     .why = extent->where == UM_WHERE_UNTOUCHED
                                                ? "a launch to come touches it first"
                                                : "a launch to come needs it"});
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const lookahead_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint32_t steps = um_view_steps(view);
    um_cpu_t cpu;
    size_t n;

    if (!steps || steps > self->steps || stretch->range_bytes < self->min ||
        (!um_view_footprint(view).launches && stretch->range_bytes > self->limit))
        return; /* without a question: it is asking that costs */
    cpu = um_view_cpu(view);
    if (cpu == UM_CPU_TAKES) {
        um_hints_decline(hints);
        return;
    }
    n = um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, extent,
                        UM_VIEW_STRETCH_EXTENTS);
    for (size_t i = 0; i < n; i++) {
        if (extent[i].bytes < self->min || !pays(self, view, &extent[i]))
            continue;
        propose(view, hints, &extent[i], cpu == UM_CPU_LEAVES ? extent[i].bytes : self->trial);
        if (cpu != UM_CPU_LEAVES)
            return;
    }
}

const um_advisor_ops_t um_advisor_lookahead = {
    .abi = UM_ADVISOR_ABI,
    .name = "lookahead",
    .doc = "what the launches expected next will need: to their gpu, while the link is idle",
    .state_bytes = sizeof(lookahead_t),
    .options = options,
    .decide = decide,
    .ahead = true,
};

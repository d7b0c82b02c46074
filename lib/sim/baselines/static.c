/*
 * static - a baseline: every managed argument of every launch, its whole allocation, every time.
 *
 * What RMM, GrCUDA and 60-line injection libraries do: a prefetch call a buffer on the kernel's stream,
 * wherever the data are and whether or not there is room. Blind, so that it pays for each call.
 */
#include "um_advisor.h"

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    uint64_t addr, bytes;

    (void)state;
    if (!um_view_region(view, stretch->region, &addr, &bytes) || !stretch->first_of_region)
        return; /* the call was made */
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                     .order = UM_ORDER_BEFORE,
                                     .addr = addr,
                                     .bytes = bytes,
                                     .device = um_view_launch(view)->device,
                                     .why = "an argument"});
}

const um_advisor_ops_t um_baseline_static = {
    .abi = UM_ADVISOR_ABI,
    .name = "static",
    .doc =
        "every managed argument whole, before every launch, wherever it is (as RMM and GrCUDA do)",
    .decide = decide,
    .blind = true,
};

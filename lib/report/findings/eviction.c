/*
 * Eviction: what the GPU had no room for was pushed out and came back. A sweep that is longer than the
 * memory is a finding of its own: the block that is evicted is always the one needed next but one round.
 */
#include "finding.h"

#define WHERE_MOST 4u /* regions by name */

static bool evicts(const um_report_t *r, const um_uses_t *uses)
{
    return uses->returned_bytes >= r->limits.evicted_bytes;
}

static bool in_order(const um_report_t *r, const um_uses_t *uses)
{
    return uses->sweeps &&
           (uses->ascending + uses->sweeps) * 100 >= uses->returns * r->limits.cyclic_percent &&
           uses->sweeps * 4 <= uses->returns;
}

/* The same order each time: from a block to one that is not beside it, it goes to the same as before.
 * Where nothing has come back twice, in order of address. */
static bool cyclic(const um_report_t *r, const um_uses_t *uses)
{
    if (!evicts(r, uses) || uses->returns < 2)
        return false;
    return uses->jumps ? uses->jumps_again * 100 >= uses->jumps * r->limits.cyclic_percent
                       : in_order(r, uses);
}

uint64_t um_returned_ns(const um_group_t *group)
{
    uint64_t in = group->uses.in_bytes, back = group->uses.returned_bytes;

    return !in          ? 0
           : back >= in ? group->sums.gpu_ns
                        : (uint64_t)((double)group->sums.gpu_ns * (double)back / (double)in);
}

static void say_where(um_finding_t *f, const um_report_t *r, uint32_t g, uint64_t nth)
{
    const um_kernel_region_t *worst = um_kernels_stat_worst(&r->kernels, g);
    char name[200], kernel[160];

    if (nth > WHERE_MOST)
        return;
    um_finding_region(r, g, name, sizeof(name));
    um_say_in(f->where, "%s%s, %s", nth > 1 ? "; " : "", name,
              um_h(um_bytes(r->regions.groups[g].bytes)));
    if (!worst)
        return;
    f->kernel = f->kernel ? f->kernel : worst->kernel + 1;
    um_finding_kernel(&r->kernels.kernels[worst->kernel], kernel, sizeof(kernel));
    um_say_in(f->where, "; kernel %s", kernel);
}

static void advise(um_finding_t *f, bool cyclic_one)
{
    f->change = cyclic_one ? UM_CHANGE_KEEP_PART : UM_CHANGE_MAP;
    um_say_in(f->advice, "%s",
              cyclic_one
                  ? "keep on the GPU what fits (first n bytes) and map the rest, which stays with "
                    "the CPU; or sweep to and fro instead of round"
                  : "work on less at once, or map what is used least: it stays with the CPU and "
                    "makes no other data leave");
}

/* What does not fit is all of it together: one finding, its regions are the places. */
static um_status_t find(const um_report_t *r, const um_finding_kind_t *kind, bool want_cyclic,
                        um_findings_t *out)
{
    um_finding_t f = {.kind = kind, .confidence = want_cyclic ? 85 : 80};
    um_uses_t sum = {0};
    uint64_t spent = 0, regions = 0;
    bool ordered = true;

    if (um_held_back(r) || um_pushed_out_by_prefetch(r))
        return UM_OK;
    for (uint32_t g = 0; g < r->regions.n_groups; g++) {
        const um_group_t *group = &r->regions.groups[g];
        const um_uses_t *uses = &group->uses;

        if (!evicts(r, uses) || cyclic(r, uses) != want_cyclic)
            continue;
        regions++;
        ordered = ordered && in_order(r, uses);
        spent += um_returned_ns(group);
        sum.in_bytes += uses->in_bytes;
        sum.evicted_bytes += uses->evicted_bytes;
        sum.returned_bytes += uses->returned_bytes;
        sum.returns += uses->returns;
        sum.ascending += uses->ascending;
        sum.sweeps += uses->sweeps;
        sum.jumps += uses->jumps;
        sum.jumps_again += uses->jumps_again;
        say_where(&f, r, g, regions);
        um_finding_place(&f, r, g, (um_place_t){.bytes = uses->returned_bytes});
    }
    if (!regions)
        return UM_OK;
    if (regions > WHERE_MOST)
        um_say_in(f.where, " and %s more", um_h(um_count(regions - WHERE_MOST)));
    um_say_in(f.title, want_cyclic ? "A sweep that is longer than the GPU's memory"
                                   : "Evicted and brought back");
    um_say_in(f.seen,
              "%s were pushed out of the GPU to make room and %s of what had been pushed out came "
              "back, in %s return%s of 2 MiB blocks",
              um_h(um_bytes(sum.evicted_bytes)), um_h(um_bytes(sum.returned_bytes)),
              um_h(um_count(sum.returns)), sum.returns == 1 ? "" : "s");
    if (want_cyclic && ordered)
        um_say_in(f.seen, ", in order of address, %s sweep%s over it", um_h(um_count(sum.sweeps)),
                  sum.sweeps == 1 ? "" : "s");
    else if (want_cyclic)
        um_say_in(f.seen, ", in the same order each time");
    advise(&f, want_cyclic);
    um_finding_win(&f, r, "of GPU fault service for what came back", spent, UM_TO_DEVICE,
                   sum.returned_bytes);
    um_finding_evidence(&f, "evicted_bytes", um_bytes(sum.evicted_bytes));
    um_finding_evidence(&f, "returned_bytes", um_bytes(sum.returned_bytes));
    um_finding_evidence(&f, "returns", um_count(sum.returns));
    um_finding_evidence(&f, "in_order", um_count(sum.ascending));
    um_finding_evidence(&f, "sweeps", um_count(sum.sweeps));
    um_finding_evidence(&f, "jumps", um_count(sum.jumps));
    um_finding_evidence(&f, "jumps_again", um_count(sum.jumps_again));
    um_finding_evidence(&f, "to_device_bytes", um_bytes(sum.in_bytes));
    um_finding_evidence(&f, "managed_peak_bytes",
                        um_bytes(r->regions.uses.peak_bytes[UM_FAMILY_MANAGED]));
    return um_findings_add(out, &f);
}

UM_DETECTOR(um_detect_eviction)
{
    return find(report, kind, false, out);
}

UM_DETECTOR(um_detect_cyclic_sweep)
{
    return find(report, kind, true, out);
}

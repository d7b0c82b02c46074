/*
 * Eviction: what the GPU had no room for was pushed out and came back. A sweep that is longer than the
 * memory is a finding of its own: the block that is evicted is always the one needed next but one round.
 */
#include "finding.h"

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

static void describe(um_finding_t *f, const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];
    const um_uses_t *uses = &group->uses;
    const um_kernel_region_t *worst = um_kernels_stat_worst(&r->kernels, g);
    char name[200], kernel[160];

    um_finding_region(r, g, name, sizeof(name));
    um_say_in(f->where, "%s, %s", name, um_h(um_bytes(group->bytes)));
    f->kernel = worst ? worst->kernel + 1 : 0;
    if (worst) {
        um_finding_kernel(&r->kernels.kernels[worst->kernel], kernel, sizeof(kernel));
        um_say_in(f->where, "; kernel %s", kernel);
    }
    um_say_in(f->seen,
              "%s were pushed out of the GPU to make room and %s of what had been pushed out came "
              "back, in %s return%s of 2 MiB blocks",
              um_h(um_bytes(uses->evicted_bytes)), um_h(um_bytes(uses->returned_bytes)),
              um_h(um_count(uses->returns)), uses->returns == 1 ? "" : "s");
    um_finding_win(f, r, "of GPU fault service for what came back", um_returned_ns(group),
                   UM_TO_DEVICE, uses->returned_bytes);
    um_finding_evidence(f, "evicted_bytes", um_bytes(uses->evicted_bytes));
    um_finding_evidence(f, "returned_bytes", um_bytes(uses->returned_bytes));
    um_finding_evidence(f, "returns", um_count(uses->returns));
    um_finding_evidence(f, "in_order", um_count(uses->ascending));
    um_finding_evidence(f, "sweeps", um_count(uses->sweeps));
    um_finding_evidence(f, "jumps", um_count(uses->jumps));
    um_finding_evidence(f, "jumps_again", um_count(uses->jumps_again));
    um_finding_evidence(f, "to_device_bytes", um_bytes(uses->in_bytes));
    um_finding_evidence(f, "managed_peak_bytes",
                        um_bytes(r->regions.uses.peak_bytes[UM_FAMILY_MANAGED]));
    um_finding_place(f, r, g, (um_place_t){.bytes = uses->returned_bytes});
}

static um_status_t find(const um_report_t *r, const um_finding_kind_t *kind, bool want_cyclic,
                        um_findings_t *out)
{
    if (um_held_back(r) || um_pushed_out_by_prefetch(r))
        return UM_OK;
    for (uint32_t g = 0; g < r->regions.n_groups; g++) {
        const um_uses_t *uses = &r->regions.groups[g].uses;
        um_finding_t f = {.kind = kind, .confidence = want_cyclic ? 85 : 80};
        um_status_t status;

        if (!evicts(r, uses) || cyclic(r, uses) != want_cyclic)
            continue;
        um_say_in(f.title, want_cyclic ? "A sweep that is longer than the GPU's memory"
                                       : "Evicted and brought back");
        describe(&f, r, g);
        if (want_cyclic) {
            if (in_order(r, uses))
                um_say_in(f.seen, ", in order of address, %s sweep%s over it",
                          um_h(um_count(uses->sweeps)), uses->sweeps == 1 ? "" : "s");
            else
                um_say_in(f.seen, ", in the same order each time");
            um_say_in(f.advice, "keep on the GPU what fits (first n bytes) and map the rest, which "
                                "stays with the CPU; or sweep to and fro instead of round");
            f.change = UM_CHANGE_KEEP_PART;
        } else {
            um_say_in(f.advice,
                      "work on less at once, or map what is used least: it stays with the "
                      "CPU and makes no other data leave");
            f.change = UM_CHANGE_MAP;
        }
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

UM_DETECTOR(um_detect_eviction)
{
    return find(report, kind, false, out);
}

UM_DETECTOR(um_detect_cyclic_sweep)
{
    return find(report, kind, true, out);
}

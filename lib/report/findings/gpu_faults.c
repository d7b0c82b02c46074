/*
 * What a kernel's GPU faults were for: data that had to come from the CPU (demand faulting), or pages
 * that nobody had written (first touch). One finding a kernel; its regions are the places.
 */
#include "finding.h"

/* Populating by prefetch instead of by fault was measured 13 times cheaper on an H200. */
#define POPULATE_SPEEDUP 13u

/* "; of 190 launches only the first 2 faulted". `faults` are the finding's: where the kernel had others,
 * too, its launches that faulted are not this finding's. */
static void which_launches(um_finding_t *f, const um_report_t *r, const um_kernel_stat_t *kernel,
                           uint64_t faults)
{
    uint64_t launches = um_kernel_launches(kernel),
             all = r->kernels.total_execs ? r->kernels.total_execs : r->kernels.total_launches;

    if (kernel->copy || !kernel->faulted || !launches)
        return;
    if (r->n_traces == 1 && r->kernels.total_faulted == r->kernels.last_faulted_exec &&
        r->kernels.total_faulted < all) {
        um_say_in(f->seen, "; of the trace's %s launches only the first %s faulted",
                  um_h(um_count(all)),
                  r->kernels.total_faulted == 1 ? "one" : um_h(um_count(r->kernels.total_faulted)));
        return;
    }
    if (launches == 1) {
        um_say_in(f->seen, "; in its only launch");
        return;
    }
    if (faults != kernel->faults)
        return;
    um_say_in(f->seen, "; %s of its %s launches faulted", um_h(um_count(kernel->faulted)),
              um_h(um_count(launches)));
    if (r->n_traces == 1 && kernel->last_faulted == kernel->faulted && kernel->faulted < launches)
        um_say_in(f->seen, ", the first %s only",
                  kernel->faulted == 1 ? "one" : um_h(um_count(kernel->faulted)));
}

static uint32_t sure(uint64_t confidence, uint64_t faults)
{
    uint64_t mean = faults ? confidence / faults : 0;

    return mean > 95 ? 95 : mean < 40 ? 40 : (uint32_t)mean;
}

static bool dense(const um_report_t *r, const um_group_t *group)
{
    return group->pages_in && group->pages_in * 100 >= group->block_pages * r->limits.dense_percent;
}

/* The part of a whole that is not ping-pong's: that has its own finding. */
static uint64_t less(uint64_t part, uint64_t ping_pong, uint64_t whole)
{
    if (!whole || ping_pong >= whole)
        return 0;
    return (uint64_t)((double)part * (double)(whole - ping_pong) / (double)whole);
}

/* All that faults brought to a GPU. */
static uint64_t brought(const um_group_t *group)
{
    return group->uses.peer_bytes + group->uses.in_bytes;
}

static um_status_t demand_of(const um_report_t *r, const um_finding_kind_t *kind, uint32_t k,
                             bool want_dense, um_findings_t *out)
{
    const um_kernel_stat_t *kernel = &r->kernels.kernels[k];
    um_finding_t f = {.kind = kind};
    uint64_t ns = 0, bytes = 0, faults = 0, all = 0, groups = 0, confidence = 0, in = 0, of = 0;
    char name[160];

    for (size_t p = 0; p < r->kernels.n_pairs; p++) {
        const um_kernel_region_t *pair = &r->kernels.pairs[p];
        const um_group_t *group = &r->regions.groups[pair->group];
        uint64_t pair_ns, pair_bytes, pair_faults, late;

        if (pair->kernel != k || !pair->in_bytes || dense(r, group) != want_dense ||
            um_used_once(r, pair->group))
            continue;
        pair_ns = less(pair->ns - pair->first_ns, group->ping_pong.gpu_ns, group->sums.gpu_ns);
        pair_bytes = less(pair->in_bytes, group->ping_pong.in_bytes, group->sums.in_bytes);
        pair_faults = less(pair->faults - pair->first_faults, group->ping_pong.gpu_faults,
                           group->sums.gpu_faults);
        if (group->uses.returned_bytes >= r->limits.evicted_bytes) { /* eviction's to tell */
            pair_ns = less(pair_ns, group->uses.returned_bytes, group->uses.in_bytes);
            pair_bytes = less(pair_bytes, group->uses.returned_bytes, group->uses.in_bytes);
            pair_faults = less(pair_faults, group->uses.returned_bytes, group->uses.in_bytes);
        }
        late = um_late_ns(r, pair->group);
        if (late) {
            pair_faults = less(pair_faults, late, group->sums.gpu_ns);
            pair_bytes = less(pair_bytes, late, group->sums.gpu_ns);
            pair_ns = less(pair_ns, late, group->sums.gpu_ns);
        }
        if (group->uses.peer_bytes) { /* what came from another GPU did not come from the CPU */
            pair_faults = less(pair_faults, group->uses.peer_bytes, brought(group));
            pair_ns = less(pair_ns, group->uses.peer_bytes, brought(group));
        }
        if (!pair_bytes)
            continue;
        ns += pair_ns;
        bytes += pair_bytes;
        faults += pair_faults;
        all += pair->faults;
        groups += pair->groups;
        confidence += pair->confidence;
        in += group->pages_in;
        of += group->block_pages;
        um_finding_place(&f, r, pair->group,
                         (um_place_t){.bytes = pair_bytes, .faults = pair_faults, .ns = pair_ns});
    }
    if (!faults || !bytes ||
        (!want_dense && faults < r->limits.storm_faults && ns < r->limits.storm_ns))
        return UM_OK;
    um_finding_kernel(kernel, name, sizeof(name));
    um_say_in(f.title, "%s demand faulting%s", want_dense ? "Dense" : "Sparse",
              kernel->copy ? " by copies" : "");
    um_say_in(f.where, "%s%s", kernel->copy || !*kernel->name ? "" : "kernel ", name);
    um_say_in(f.seen,
              "%s came from the CPU in answer to %s GPU fault record%s, %s %% of the blocks that "
              "it touched",
              um_h(um_bytes(bytes)), um_h(um_count(faults)), faults == 1 ? "" : "s",
              um_h(um_count(of ? in * 100 / of : 0)));
    which_launches(&f, r, kernel, faults);
    um_say_in(f.advice,
              !want_dense
                  ? "let the GPU read it over the link: keep it with the CPU; if it is used often "
                    "and fits, prefetch all of it, the holes, too"
              : kernel->copy
                  ? "prefetch the managed side of the copy to the GPU first, or let the "
                    "source be the managed buffer itself"
                  : "prefetch the data to the GPU before the launch, or copy it there in "
                    "one piece");
    f.change = want_dense ? UM_CHANGE_PREFETCH : UM_CHANGE_MAP;
    f.kernel = k + 1;
    um_finding_win(&f, r, "of GPU fault service", ns, UM_TO_DEVICE, bytes);
    f.confidence = sure(confidence, all);
    um_finding_evidence(&f, "gpu_faults", um_count(faults));
    um_finding_evidence(&f, "gpu_fault_groups", um_count(groups));
    um_finding_evidence(&f, "gpu_fault_ns", um_ns(ns));
    um_finding_evidence(&f, "to_device_bytes", um_bytes(bytes));
    um_finding_evidence(&f, "density_percent", um_percent(of ? in * 100 / of : 0));
    um_finding_evidence(&f, "launches", um_count(um_kernel_launches(kernel)));
    um_finding_evidence(&f, "launches_that_faulted", um_count(kernel->faulted));
    um_finding_evidence(&f, "last_launch_that_faulted", um_count(kernel->last_faulted));
    um_finding_evidence(&f, "launches_in_trace", um_count(r->kernels.total_execs));
    um_finding_evidence(&f, "launches_in_trace_that_faulted", um_count(r->kernels.total_faulted));
    return um_findings_add(out, &f);
}

static um_status_t demand(const um_report_t *report, const um_finding_kind_t *kind, bool want_dense,
                          um_findings_t *out)
{
    for (uint32_t k = 0; k < report->kernels.n_kernels; k++) {
        um_status_t status =
            report->kernels.kernels[k].faults ? demand_of(report, kind, k, want_dense, out) : UM_OK;

        if (status)
            return status;
    }
    return UM_OK;
}

UM_DETECTOR(um_detect_demand_faulting)
{
    return demand(report, kind, true, out);
}

UM_DETECTOR(um_detect_sparse_faulting)
{
    return demand(report, kind, false, out);
}

static um_status_t first_of(const um_report_t *r, const um_finding_kind_t *kind, uint32_t k,
                            um_findings_t *out)
{
    const um_kernel_stat_t *kernel = &r->kernels.kernels[k];
    um_finding_t f = {.kind = kind};
    uint64_t ns = 0, faults = 0, all = 0, confidence = 0, region_bytes = 0;
    char name[160];

    for (size_t p = 0; p < r->kernels.n_pairs; p++) {
        const um_kernel_region_t *pair = &r->kernels.pairs[p];
        const um_group_t *group = &r->regions.groups[pair->group];

        if (pair->kernel != k || !pair->first_faults || um_churned(r, pair->group) ||
            um_never_on_cpu(r, pair->group))
            continue;
        ns += pair->first_ns;
        faults += pair->first_faults;
        all += pair->faults;
        confidence += pair->confidence;
        region_bytes += group->bytes * group->regions;
        um_finding_place(&f, r, pair->group,
                         (um_place_t){.bytes = group->bytes * group->regions,
                                      .faults = pair->first_faults,
                                      .ns = pair->first_ns});
    }
    if (faults < r->limits.storm_faults && ns < r->limits.storm_ns)
        return UM_OK;
    um_finding_kernel(kernel, name, sizeof(name));
    um_say_in(f.title, "First-touch storm");
    um_say_in(f.where, "%s%s", kernel->copy || !*kernel->name ? "" : "kernel ", name);
    um_say_in(f.seen,
              "%s GPU fault records on pages that the CPU was never seen to touch and for which "
              "nothing had to be moved, in %s of regions",
              um_h(um_count(faults)), um_h(um_bytes(region_bytes)));
    which_launches(&f, r, kernel, faults);
    um_say_in(f.advice,
              "populate the memory on the GPU before the kernel touches it; where the CPU "
              "never needs it, allocate it with cudaMalloc");
    f.change = UM_CHANGE_PREFETCH;
    f.asks = UM_CHANGE_POPULATE;
    f.kernel = k + 1;
    f.win_ns = ns - ns / POPULATE_SPEEDUP;
    um_say_in(f.basis,
              "%s of GPU fault service, less one %uth of it (populating by prefetch against by "
              "fault, measured on an H200)",
              um_h(um_ns(ns)), POPULATE_SPEEDUP);
    f.confidence = sure(confidence, all);
    um_finding_evidence(&f, "gpu_faults", um_count(faults));
    um_finding_evidence(&f, "gpu_fault_ns", um_ns(ns));
    um_finding_evidence(&f, "region_bytes", um_bytes(region_bytes));
    um_finding_evidence(&f, "launches", um_count(um_kernel_launches(kernel)));
    um_finding_evidence(&f, "launches_that_faulted", um_count(kernel->faulted));
    um_finding_evidence(&f, "last_launch_that_faulted", um_count(kernel->last_faulted));
    return um_findings_add(out, &f);
}

/* That nobody wrote a page is concluded from what is not in the trace: only when nothing is lost. */
UM_DETECTOR(um_detect_first_touch)
{
    if (!um_report_complete(report))
        return UM_OK;
    for (uint32_t k = 0; k < report->kernels.n_kernels; k++) {
        um_status_t status =
            report->kernels.kernels[k].faults ? first_of(report, kind, k, out) : UM_OK;

        if (status)
            return status;
    }
    return UM_OK;
}

/* Memory in the wrong family or allocated too often. */
#include "finding.h"

static uint64_t first_touch_ns(const um_report_t *r, uint32_t g)
{
    uint64_t ns = 0;

    for (size_t p = 0; p < r->kernels.n_pairs; p++)
        ns += r->kernels.pairs[p].group == g ? r->kernels.pairs[p].first_ns : 0;
    return ns;
}

UM_DETECTOR(um_detect_churn)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        um_finding_t f = {.kind = kind,
                          .confidence = 90,
                          .also = {group->sums.gpu_faults ? "first-touch" : NULL}};
        um_status_t status;
        char name[200];

        if (!um_churned(report, g))
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "Allocation churn");
        um_say_in(f.where, "%s, %s memory", name, um_family_name(group->family));
        um_say_in(
            f.seen,
            "%s allocations of %s, %s of them after one of the same kind had been freed; they "
            "lived %s on average",
            um_h(um_count(group->regions)), um_h(um_bytes(group->bytes)),
            um_h(um_count(group->reused)),
            um_h(um_ns(group->freed ? group->lifetime_ns / group->freed : 0)));
        if (group->sums.gpu_faults)
            um_say_in(f.seen, "; each new one faults again: %s GPU fault records",
                      um_h(um_count(group->sums.gpu_faults)));
        um_say_in(f.advice, "keep the buffer, or take it from a pool");
        /* What the CPU writes has to come to each new one, and to one that is kept as well. */
        f.change = group->gpu_only == group->regions ? UM_CHANGE_DEVICE : UM_CHANGE_NONE;
        f.asks = UM_CHANGE_POOL;
        f.win_ns = first_touch_ns(report, g);
        um_say_in(f.basis,
                  "GPU fault service for the first touches of these short-lived regions; the "
                  "calls' own time is not in the trace");
        um_finding_evidence(&f, "allocations", um_count(group->regions));
        um_finding_evidence(&f, "reallocations", um_count(group->reused));
        um_finding_evidence(&f, "bytes_each", um_bytes(group->bytes));
        um_finding_evidence(&f, "mean_lifetime_ns",
                            um_ns(group->freed ? group->lifetime_ns / group->freed : 0));
        um_finding_evidence(&f, "gpu_faults", um_count(group->sums.gpu_faults));
        um_finding_evidence(&f, "gpu_fault_ns", um_ns(group->sums.gpu_ns));
        um_finding_place(&f, report, g,
                         (um_place_t){.bytes = group->bytes, .ns = group->sums.gpu_ns});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

UM_DETECTOR(um_detect_never_on_cpu)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        um_finding_t f = {.kind = kind,
                          .confidence = 80,
                          .also = {group->sums.gpu_faults ? "first-touch" : NULL}};
        um_status_t status;
        char name[200];

        if (!um_never_on_cpu(report, g))
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "Never touched by the CPU");
        um_say_in(f.where, "%s", name);
        um_say_in(f.seen,
                  "the GPU uses %s (%s of managed memory); no CPU fault in or beside it, nothing "
                  "moved from or to the CPU, in a trace that lost nothing",
                  group->regions == 1 ? "it" : "all of them",
                  um_h(um_bytes(group->bytes * group->regions)));
        um_say_in(f.advice,
                  "it gains nothing from being managed: device memory has no faults, and a "
                  "pool makes short-lived buffers cheap");
        f.change = UM_CHANGE_DEVICE;
        f.win_ns = group->sums.gpu_ns;
        um_say_in(f.basis, "GPU fault service in it");
        um_finding_evidence(&f, "regions", um_count(group->regions));
        um_finding_evidence(&f, "bytes", um_bytes(group->bytes * group->regions));
        um_finding_evidence(&f, "gpu_faults", um_count(group->sums.gpu_faults));
        um_finding_evidence(&f, "gpu_fault_ns", um_ns(group->sums.gpu_ns));
        um_finding_place(&f, report, g,
                         (um_place_t){.bytes = group->bytes * group->regions,
                                      .faults = group->sums.gpu_faults,
                                      .ns = group->sums.gpu_ns});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

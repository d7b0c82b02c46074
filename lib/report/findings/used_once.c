/* Written once by the CPU and read once by the GPU: to move it into managed pages is the dearest way. */
#include "finding.h"

bool um_used_once(const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];
    uint64_t all = group->bytes * group->regions;

    return group->family == UM_FAMILY_MANAGED && group->first_region &&
           group->bytes >= r->limits.once_bytes && group->uses.launches &&
           group->uses.launches <= group->regions * r->limits.once_launches &&
           group->first[UM_TOUCHED_BY_GPU] == 0 && group->sums.in_bytes <= all &&
           group->sums.in_bytes >= all / 100 * r->limits.once_percent && !group->uses.out_bytes &&
           !group->ping_pong.pages;
}

UM_DETECTOR(um_detect_used_once)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        um_finding_t f = {.kind = kind, .confidence = 85, .also = {"demand-faulting"}};
        const um_kernel_region_t *worst;
        um_status_t status;
        char name[200], kernel[160];

        if (!um_used_once(report, g))
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "Written once by the CPU, read once by the GPU");
        um_say_in(f.where, "%s", name);
        worst = um_kernels_stat_worst(&report->kernels, g);
        f.kernel = worst ? worst->kernel + 1 : 0;
        if (worst) {
            um_finding_kernel(&report->kernels.kernels[worst->kernel], kernel, sizeof(kernel));
            um_say_in(f.where, "; kernel %s", kernel);
        }
        um_say_in(f.seen,
                  "%s launch%s took %s; %s came from the CPU in answer to %s GPU fault records and "
                  "never went back",
                  um_h(um_count(group->uses.launches)), group->uses.launches == 1 ? "" : "es",
                  group->regions == 1 ? "it" : "these regions, one each",
                  um_h(um_bytes(group->sums.in_bytes)), um_h(um_count(group->sums.gpu_faults)));
        um_say_in(f.advice,
                  "let the GPU read it over the link: pinned and mapped memory, or advice "
                  "that keeps it with the CPU; or copy it from pinned memory");
        f.change = UM_CHANGE_MAP;
        um_finding_win(&f, report, "of GPU fault service", group->sums.gpu_ns, UM_TO_DEVICE,
                       group->sums.in_bytes);
        um_finding_evidence(&f, "regions", um_count(group->regions));
        um_finding_evidence(&f, "launches", um_count(group->uses.launches));
        um_finding_evidence(&f, "to_device_bytes", um_bytes(group->sums.in_bytes));
        um_finding_evidence(&f, "gpu_faults", um_count(group->sums.gpu_faults));
        um_finding_evidence(&f, "gpu_fault_ns", um_ns(group->sums.gpu_ns));
        um_finding_place(&f, report, g,
                         (um_place_t){.bytes = group->sums.in_bytes,
                                      .faults = group->sums.gpu_faults,
                                      .ns = group->sums.gpu_ns});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

/* ReadMostly on what the GPU writes: each write takes all other copies back first. */
#include "finding.h"

UM_DETECTOR(um_detect_read_mostly_written)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        const um_uses_t *uses = &group->uses;
        um_finding_t f = {.kind = kind, .confidence = 95};
        um_status_t status;
        char name[200];

        if (!uses->written_faults)
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "ReadMostly on written data");
        um_say_in(f.where, "%s", name);
        um_finding_advised(&f, report, g, UM_HINT_READ_MOSTLY);
        um_say_in(f.seen, "%s GPU fault record%s for writing while ReadMostly held there",
                  um_h(um_count(uses->written_faults)), uses->written_faults == 1 ? "" : "s");
        um_say_in(f.advice, "take the advice away before the phase that writes, or leave it out");
        f.win_ns = uses->written_ns;
        um_say_in(f.basis, "%s of GPU fault service for these writes",
                  um_h(um_ns(uses->written_ns)));
        f.change = UM_CHANGE_NO_READ_MOSTLY;
        um_finding_evidence(&f, "write_faults", um_count(uses->written_faults));
        um_finding_evidence(&f, "write_fault_ns", um_ns(uses->written_ns));
        um_finding_place(&f, report, g,
                         (um_place_t){.bytes = group->bytes,
                                      .faults = uses->written_faults,
                                      .ns = uses->written_ns});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

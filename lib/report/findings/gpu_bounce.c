/* Blocks that GPUs take from each other, again and again. */
#include "finding.h"

UM_DETECTOR(um_detect_gpu_bounce)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        const um_uses_t *uses = &group->uses;
        uint64_t moved = uses->peer_bytes + group->sums.in_bytes;
        um_finding_t f = {.kind = kind, .confidence = 90};
        uint64_t fault_ns;
        um_status_t status;
        char name[200];

        if (uses->peer_turns < report->limits.bounce_moves)
            continue;
        fault_ns = (uint64_t)((double)group->sums.gpu_ns * (double)uses->peer_bytes /
                              (double)(moved ? moved : 1));
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "GPUs take it from each other");
        um_say_in(f.where, "%s", name);
        um_say_in(f.seen,
                  "%s went from GPU to GPU; blocks that had come to one GPU moved on to "
                  "another %s times",
                  um_h(um_bytes(uses->peer_bytes)), um_h(um_count(uses->peer_turns)));
        um_say_in(f.advice,
                  "let it stay on one GPU and map it for the others; what all of them only "
                  "read can be ReadMostly");
        f.change = UM_CHANGE_OWNER;
        f.win_ns = fault_ns > uses->peer_ns ? fault_ns : uses->peer_ns;
        um_say_in(f.basis, "%s of %s for what came from another GPU", um_h(um_ns(f.win_ns)),
                  fault_ns > uses->peer_ns ? "GPU fault service" : "copying");
        um_finding_evidence(&f, "peer_bytes", um_bytes(uses->peer_bytes));
        um_finding_evidence(&f, "moved_on", um_count(uses->peer_turns));
        um_finding_evidence(&f, "peer_ns", um_ns(uses->peer_ns));
        um_finding_evidence(&f, "gpu_fault_ns", um_ns(group->sums.gpu_ns));
        um_finding_place(&f, report, g, (um_place_t){.bytes = uses->peer_bytes, .ns = f.win_ns});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

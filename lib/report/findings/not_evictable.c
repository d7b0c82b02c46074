/* Memory that cannot be evicted leaves managed memory too little room on the GPU. */
#include "finding.h"

static bool held(uint32_t family)
{
    return family == UM_FAMILY_DEVICE || family == UM_FAMILY_POOL || family == UM_FAMILY_VMM;
}

UM_DETECTOR(um_detect_not_evictable)
{
    uint64_t bytes = um_held_bytes(report);
    uint64_t memory = report->n_traces ? report->traces[0].gpu_memory_bytes : 0;
    um_finding_t f = {.kind = kind, .confidence = 80};
    uint64_t evicted = 0, returned = 0, spent = 0;

    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];

        evicted += group->uses.evicted_bytes;
        returned += group->uses.returned_bytes;
        spent += um_returned_ns(group);
        if (held(group->family) && group->bytes >= bytes / 16 && bytes)
            um_finding_place(&f, report, g, (um_place_t){.bytes = group->bytes});
    }
    if (returned < report->limits.evicted_bytes || !um_held_back(report))
        return UM_OK;
    um_say_in(f.title, "Memory that cannot be evicted leaves too little room");
    um_say_in(f.where, "%s of cudaMalloc, pool and mapped memory at most at once",
              um_h(um_bytes(bytes)));
    um_say_in(f.seen,
              "that is %s %% of the GPU's %s, while %s of managed memory were evicted and %s came "
              "back",
              um_h(um_count((uint64_t)((double)bytes * 100 / (double)memory))),
              um_h(um_bytes(memory)), um_h(um_bytes(evicted)), um_h(um_bytes(returned)));
    um_say_in(f.seen, "; without it the managed data, %s at most at once, would fit",
              um_h(um_bytes(report->regions.uses.peak_bytes[UM_FAMILY_MANAGED])));
    um_say_in(f.advice, "free or shrink the largest of them while managed data is swept, or make "
                        "those that are used seldom managed");
    f.change = UM_CHANGE_ROOM;
    um_finding_win(&f, report, "of GPU fault service for what came back", spent, UM_TO_DEVICE,
                   returned);
    um_finding_evidence(&f, "not_evictable_bytes", um_bytes(bytes));
    um_finding_evidence(&f, "gpu_bytes", um_bytes(memory));
    um_finding_evidence(&f, "evicted_bytes", um_bytes(evicted));
    um_finding_evidence(&f, "returned_bytes", um_bytes(returned));
    return um_findings_add(out, &f);
}

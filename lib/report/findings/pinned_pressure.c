/* So much of the host's memory pinned that the rest of the machine has to do without. */
#include "finding.h"

static bool pinned(uint32_t family)
{
    return family == UM_FAMILY_PINNED || family == UM_FAMILY_MAPPED ||
           family == UM_FAMILY_REGISTERED;
}

UM_DETECTOR(um_detect_pinned_pressure)
{
    const uint64_t *peak = report->regions.uses.peak_bytes;
    uint64_t bytes = peak[UM_FAMILY_PINNED] + peak[UM_FAMILY_MAPPED] + peak[UM_FAMILY_REGISTERED];
    uint64_t memory = report->n_traces ? report->traces[0].host_memory_bytes : 0;
    um_finding_t f = {.kind = kind, .confidence = 85, .timeless = true};

    if (!memory || bytes < memory / 100 * report->limits.pinned_percent)
        return UM_OK;
    um_say_in(f.title, "Pinned memory presses the host");
    um_say_in(f.where, "pinned, mapped and registered memory, %s at most at once",
              um_h(um_bytes(bytes)));
    um_say_in(f.seen,
              "that is %s %% of the %s that the host %s; none of it can be swapped or "
              "reclaimed",
              um_h(um_count((uint64_t)((double)bytes * 100 / (double)memory))),
              um_h(um_bytes(memory)), "has, or that its control group allows");
    um_say_in(f.advice, "pin a few buffers and use them in turns; large tables can be managed and "
                        "preferred on the CPU");
    f.asks = UM_CHANGE_STAGE;
    um_say_in(f.basis, "what the rest of the machine loses is not in the trace");
    um_finding_evidence(&f, "pinned_bytes", um_bytes(bytes));
    um_finding_evidence(&f, "host_bytes", um_bytes(memory));
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];

        if (pinned(group->family) && group->bytes >= bytes / 16)
            um_finding_place(&f, report, g, (um_place_t){.bytes = group->bytes});
    }
    return um_findings_add(out, &f);
}

/* The driver's own verdict, where ping-pong does not tell the story already (between GPUs, say). */
#include "finding.h"

UM_DETECTOR(um_detect_thrashing)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        um_finding_t f = {.kind = kind, .confidence = 95};
        uint64_t thrash = group->sums.thrash - group->ping_pong.thrash;
        uint64_t throttle = group->sums.throttle_ns - group->ping_pong.throttle_ns;
        um_status_t status;
        char name[200];

        if (!thrash && !throttle)
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "%s",
                  !throttle ? "Thrashing"
                  : thrash  ? "Thrashing and throttling"
                            : "Throttling");
        um_say_in(f.where, "%s", name);
        um_say_in(f.seen, "the driver's thrashing detector named pages of 4 KiB %s time%s",
                  um_h(um_count(thrash)), thrash == 1 ? "" : "s");
        if (throttle)
            um_say_in(f.seen, " and held processors back for %s", um_h(um_ns(throttle)));
        um_say_in(f.advice,
                  "decide where the range lives: pin it with a preferred location and map it "
                  "for the others");
        f.change = UM_CHANGE_MAP;
        f.win_ns = throttle;
        um_say_in(f.basis, "the time throttled");
        um_finding_evidence(&f, "thrash_pages_4k", um_count(thrash));
        um_finding_evidence(&f, "throttles", um_count(group->sums.throttles));
        um_finding_evidence(&f, "throttle_ns", um_ns(throttle));
        um_finding_place(&f, report, g, (um_place_t){.bytes = group->bytes, .ns = throttle});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

/*
 * A preferred location where nobody works: the CPU for what only GPUs use, or a GPU for what the CPU
 * keeps taking back or another GPU uses.
 */
#include "finding.h"

typedef enum um_wrong { RIGHT, KEPT_FROM_GPU, TAKEN_BY_CPU, OTHER_GPU } um_wrong_t;

static um_wrong_t wrong(const um_report_t *r, const um_group_t *group)
{
    const um_uses_t *uses = &group->uses;
    uint64_t launches = r->limits.location_launches;

    if (uses->far_launches >= launches * group->regions && uses->far_launches &&
        !uses->far_cpu_faults && group->bytes > r->limits.ping_pong_small_bytes &&
        !uses->out_bytes && um_report_complete(r))
        return KEPT_FROM_GPU;
    if (uses->near_cpu_faults >= r->limits.location_cpu_faults && uses->near_out_bytes &&
        group->ping_pong.pages)
        return TAKEN_BY_CPU;
    if (uses->other_launches >= launches && uses->other_launches * 2 > uses->launches)
        return OTHER_GPU;
    return RIGHT;
}

static void describe(um_finding_t *f, const um_report_t *r, const um_group_t *group,
                     um_wrong_t what)
{
    const um_uses_t *uses = &group->uses;
    um_rate_t rate = um_report_rate(r, UM_TO_DEVICE);
    uint64_t launches = what == OTHER_GPU ? uses->other_launches : uses->far_launches;

    if (what == TAKEN_BY_CPU) {
        um_say_in(f->seen,
                  "it is preferred on a GPU, yet %s CPU faults took %s of it to the CPU, and it "
                  "went back again",
                  um_h(um_count(uses->near_cpu_faults)), um_h(um_bytes(uses->near_out_bytes)));
        um_say_in(f->advice, "keep it with the CPU and map it for the GPU");
        f->change = UM_CHANGE_MAP;
        f->win_ns = group->sums.gpu_ns + group->sums.wait_ns;
        um_say_in(f->basis, "GPU fault service and CPU waiting in it");
        return;
    }
    um_say_in(f->seen, "it is preferred on %s, and %s launches on %s took it",
              what == OTHER_GPU ? "one GPU" : "the CPU", um_h(um_count(launches)),
              what == OTHER_GPU ? "another one" : "a GPU");
    if (what == KEPT_FROM_GPU)
        um_say_in(f->seen,
                  " over the link; no CPU fault and nothing moved back since (what the CPU "
                  "reads there does not fault: that it does not is for you to know)");
    um_say_in(f->advice, "prefer it where it is used, or take the advice away");
    f->change = UM_CHANGE_NO_LOCATION;
    f->win_ns = um_rate_ns(&rate, group->bytes) * (launches > 1 ? launches - 1 : 0);
    um_say_in(f->basis,
              "all of it over the link at %s (%s) in each launch but one, if each reads "
              "all of it",
              um_h(um_rate(rate.bytes_per_s)), rate.source);
}

UM_DETECTOR(um_detect_wrong_location)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        um_wrong_t what = wrong(report, group);
        um_finding_t f = {.kind = kind, .confidence = what == KEPT_FROM_GPU ? 50 : 85};
        um_status_t status;
        char name[200];

        if (what == RIGHT)
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "Preferred where it is not used");
        um_say_in(f.where, "%s", name);
        um_finding_advised(&f, report, g, UM_HINT_PREFERRED_LOCATION);
        describe(&f, report, group, what);
        um_finding_evidence(&f, "launches", um_count(group->uses.launches));
        um_finding_evidence(&f, "launches_far", um_count(group->uses.far_launches));
        um_finding_evidence(&f, "launches_on_another_gpu", um_count(group->uses.other_launches));
        um_finding_evidence(&f, "cpu_faults_near", um_count(group->uses.near_cpu_faults));
        um_finding_evidence(&f, "to_host_bytes", um_bytes(group->uses.near_out_bytes));
        um_finding_evidence(&f, "bytes", um_bytes(group->bytes));
        um_finding_place(&f, report, g, (um_place_t){.bytes = group->bytes});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

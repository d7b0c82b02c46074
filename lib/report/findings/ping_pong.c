/*
 * Ping-pong: 64 KiB pages that, by fault, changed direction at least three times (to the GPU, back,
 * to the GPU, back). Moves that the program asked for do not count.
 */
#include "finding.h"

static bool under_kernel(const um_report_t *r, const um_page_set_t *set)
{
    return set->cpu_faults_running &&
           set->cpu_faults_running * 100 >= set->cpu_faults * r->limits.ping_pong_running_percent;
}

/* Launches for each time that it comes. Up to a few a mapping beats any prefetch (measured on an H200: 1.5
 * to 2.5 times, as fast as copies from pinned memory). */
#define FEW_USES 4u

static bool few_uses(const um_group_t *group)
{
    return group->uses.launches && group->ping_pong.most_turns &&
           group->uses.launches <=
               group->regions * FEW_USES * (group->ping_pong.most_turns + 1) / 2;
}

static bool maps(const um_report_t *r, const um_group_t *group)
{
    const um_page_set_t *set = &group->ping_pong;

    return !under_kernel(r, set) &&
           (set->end_offset - set->first_offset <= r->limits.ping_pong_small_bytes ||
            few_uses(group));
}

static bool is_part(const um_group_t *group)
{
    return group->bytes > group->ping_pong.end_offset - group->ping_pong.first_offset;
}

bool um_ping_pong_maps_part(const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];

    return group->ping_pong.pages && group->first_region && is_part(group) && maps(r, group);
}

static void advise(um_finding_t *f, const um_report_t *r, const um_group_t *group)
{
    const um_page_set_t *set = &group->ping_pong;

    if (under_kernel(r, set)) {
        f->asks = UM_CHANGE_WAIT;
        um_say_in(f->advice, "the CPU touched these pages while a kernel ran: wait for the kernel "
                             "before the CPU touches them; where both must use them at once, keep "
                             "them in pinned host memory");
    } else if (maps(r, group)) {
        f->change = UM_CHANGE_MAP;
        if (group->first_region && is_part(group)) {
            f->part_from = set->first_offset;
            f->part_end = set->end_offset;
        }
        um_say_in(f->advice,
                  "%s that both sides use every round: keep it with the CPU and let the "
                  "GPU reach it over the link",
                  few_uses(group) ? "data" : "little data");
        if (is_part(group))
            um_say_in(f->advice, " (this part only, not all of the region)");
    } else {
        f->change = UM_CHANGE_BOTH_WAYS;
        um_say_in(f->advice,
                  "move it in one piece ahead of each side: to the GPU before the launch, "
                  "to the CPU before it reads");
    }
}

static void describe(um_finding_t *f, const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];
    const um_page_set_t *set = &group->ping_pong;
    const um_kernel_region_t *worst = um_kernels_stat_worst(&r->kernels, g);
    char name[200], kernel[160] = "";
    bool throttled = set->throttle_ns > 0, thrashed = set->thrash > 0;

    um_finding_region(r, g, name, sizeof(name));
    f->kernel = worst ? worst->kernel + 1 : 0;
    if (worst)
        um_finding_kernel(&r->kernels.kernels[worst->kernel], kernel, sizeof(kernel));
    um_say_in(f->title, "CPU-GPU ping-pong%s%s%s", thrashed || throttled ? ", with " : "",
              thrashed ? "thrashing" : "",
              thrashed && throttled ? " and throttling"
              : throttled           ? "throttling"
                                    : "");
    if (!group->first_region) /* addresses, where no allocation is known */
        um_say_in(f->where, "%s, addresses %s to %s", name, um_h(um_addr(set->first_offset)),
                  um_h(um_addr(set->end_offset)));
    else if (!set->first_offset && set->end_offset < group->bytes)
        um_say_in(f->where, "%s, its first %s", name, um_h(um_bytes(set->end_offset)));
    else if (!set->first_offset)
        um_say_in(f->where, "%s, all of it", name);
    else
        um_say_in(f->where, "%s, from %s to %s in it", name, um_h(um_bytes(set->first_offset)),
                  um_h(um_bytes(set->end_offset)));
    if (*kernel)
        um_say_in(f->where, "; kernel %s", kernel);
    if (set->pc)
        um_finding_pc(f->where, sizeof(f->where), r, set->pc);

    um_say_in(f->seen,
              "%s page%s of 64 KiB went to the GPU and came back again, %s changes of "
              "direction at most; %s of all %s device-to-host copies are here",
              um_h(um_count(set->pages)), set->pages == 1 ? "" : "s",
              um_h(um_count(set->most_turns)), um_h(um_count(set->out_copies)),
              um_h(um_count(r->regions.out_copies)));
    if (set->out_running || set->cpu_faults_running)
        um_say_in(f->seen, ", %s of them while a kernel still ran (%s CPU faults then)",
                  um_h(um_count(set->out_running)), um_h(um_count(set->cpu_faults_running)));
    if (thrashed)
        um_say_in(f->seen, "; the driver's thrashing detector named pages of 4 KiB %s time%s",
                  um_h(um_count(set->thrash)), set->thrash == 1 ? "" : "s");
    if (throttled)
        um_say_in(f->seen, "; throttled for %s", um_h(um_ns(set->throttle_ns)));
    advise(f, r, group);
}

/* What it took, less the same bytes in one piece each way. A way whose faults were not recorded has
 * neither. */
static void estimate(um_finding_t *f, const um_report_t *r, const um_page_set_t *set)
{
    bool gpu = um_report_recorded(r, UM_EV_GPU_FAULT), cpu = um_report_recorded(r, UM_EV_CPU_FAULT);
    um_rate_t in = um_report_rate(r, UM_TO_DEVICE), out = um_report_rate(r, UM_TO_HOST);
    bool rates = in.bytes_per_s && out.bytes_per_s && (gpu || cpu);
    uint64_t spent = set->gpu_ns + set->wait_ns;
    uint64_t cost =
        (gpu ? um_rate_ns(&in, set->in_bytes) : 0) + (cpu ? um_rate_ns(&out, set->out_bytes) : 0);

    f->win_ns = spent > cost ? spent - cost : 0;
    if (gpu)
        um_say_in(f->basis, "%s of GPU fault service and throttling", um_h(um_ns(set->gpu_ns)));
    if (cpu)
        um_say_in(f->basis, "%s%s of CPU waiting", gpu ? " and " : "", um_h(um_ns(set->wait_ns)));
    if (gpu || cpu)
        um_say_in(f->basis, " on these pages");
    if (rates && gpu)
        um_say_in(f->basis, ", less %s in at %s", um_h(um_bytes(set->in_bytes)),
                  um_h(um_rate(in.bytes_per_s)));
    if (rates && cpu)
        um_say_in(f->basis, "%s %s back at %s", gpu ? " and" : ", less",
                  um_h(um_bytes(set->out_bytes)), um_h(um_rate(out.bytes_per_s)));
    if (rates)
        um_say_in(f->basis, " (%s)", in.source);
    if (!gpu || !cpu)
        um_say_in(f->basis, "%s%s faults were not recorded", gpu || cpu ? "; " : "",
                  gpu   ? "CPU"
                  : cpu ? "GPU"
                        : "CPU and GPU");
}

UM_DETECTOR(um_detect_ping_pong)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_page_set_t *set = &report->regions.groups[g].ping_pong;
        um_finding_t f = {.kind = kind, .confidence = 95};
        um_status_t status;
        uint32_t also = 0;

        if (!set->pages || um_shared_page_only(report, g))
            continue;
        describe(&f, report, g);
        estimate(&f, report, set);
        if (set->thrash)
            f.also[also++] = "thrashing";
        if (set->throttle_ns)
            f.also[also++] = "throttling";
        um_finding_evidence(&f, "pages_64k", um_count(set->pages));
        um_finding_evidence(&f, "turns_most", um_count(set->most_turns));
        um_finding_evidence(&f, "to_device_copies", um_count(set->in_copies));
        um_finding_evidence(&f, "to_device_bytes", um_bytes(set->in_bytes));
        um_finding_evidence(&f, "to_host_copies", um_count(set->out_copies));
        um_finding_evidence(&f, "to_host_bytes", um_bytes(set->out_bytes));
        um_finding_evidence(&f, "to_host_copies_in_trace", um_count(report->regions.out_copies));
        um_finding_evidence(&f, "to_host_copies_while_kernel_ran", um_count(set->out_running));
        um_finding_evidence(&f, "cpu_faults", um_count(set->cpu_faults));
        um_finding_evidence(&f, "gpu_faults", um_count(set->gpu_faults));
        um_finding_evidence(&f, "gpu_fault_ns", um_ns(set->gpu_ns));
        um_finding_evidence(&f, "cpu_wait_ns", um_ns(set->wait_ns));
        um_finding_evidence(&f, "thrash_pages_4k", um_count(set->thrash));
        um_finding_evidence(&f, "throttle_ns", um_ns(set->throttle_ns));
        um_finding_place(&f, report, g,
                         (um_place_t){.bytes = set->in_bytes + set->out_bytes,
                                      .copies = set->in_copies + set->out_copies,
                                      .faults = set->gpu_faults + set->cpu_faults,
                                      .ns = set->gpu_ns + set->wait_ns});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

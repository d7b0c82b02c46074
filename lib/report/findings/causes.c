/*
 * Who tells a cost: what one cause explains is its finding's, and no other's as well. These say which
 * cause holds; the detectors of what follows from it leave that part out.
 */
#include "finding.h"

bool um_churned(const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];

    return group->reused >= r->limits.churn_allocations &&
           (group->family == UM_FAMILY_MANAGED || group->family == UM_FAMILY_DEVICE ||
            group->family == UM_FAMILY_PINNED);
}

/* Concluded from absence alone: CPU faults must have been recorded (one at least was seen), nothing
 * lost, every allocation seen from its start. */
bool um_never_on_cpu(const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];

    return um_report_complete(r) && r->counts[UM_EV_CPU_FAULT] && group->gpu_only &&
           group->gpu_only == group->regions;
}

bool um_shared_page_only(const um_report_t *r, uint32_t g)
{
    const um_page_set_t *set = &r->regions.groups[g].ping_pong;

    if (set->gpu_faults && set->cpu_faults)
        return false;
    for (size_t s = 0; s < r->regions.n_shared; s++) {
        const um_shared_page_t *page = &r->regions.shared[s];

        for (uint32_t i = 0; page->dragging_faults && i < page->n; i++) {
            if (page->sharer[i].group == g)
                return true;
        }
    }
    return false;
}

uint64_t um_late_ns(const um_report_t *r, uint32_t g)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < r->regions.uses.n_own; i++) {
        const um_own_hint_t *own = &r->regions.uses.own[i];

        if (own->group == g && um_own_verdict(r, own) == UM_OWN_LATE)
            ns += own->late_ns;
    }
    return ns;
}

uint64_t um_held_bytes(const um_report_t *r)
{
    const uint64_t *peak = r->regions.uses.peak_bytes;

    return peak[UM_FAMILY_DEVICE] + peak[UM_FAMILY_POOL] + peak[UM_FAMILY_VMM];
}

bool um_held_back(const um_report_t *r)
{
    uint64_t memory = r->n_traces ? r->traces[0].gpu_memory_bytes : 0, held = um_held_bytes(r);
    uint64_t managed = r->regions.uses.peak_bytes[UM_FAMILY_MANAGED];

    return memory && held >= memory / 100 * r->limits.held_percent && managed <= memory;
}

/* What a prefetch pushes out pushes something out itself when it comes back: hence half. */
bool um_pushed_out_by_prefetch(const um_report_t *r)
{
    uint64_t pushed = 0, evicted = 0;

    for (size_t i = 0; i < r->regions.uses.n_own; i++) {
        const um_own_hint_t *own = &r->regions.uses.own[i];

        if (um_own_verdict(r, own) == UM_OWN_HARMFUL)
            pushed += own->evicting_bytes;
    }
    for (uint32_t g = 0; g < r->regions.n_groups; g++)
        evicted += r->regions.groups[g].uses.evicted_bytes;
    return pushed && pushed * 2 >= evicted / 100 * r->limits.hint_percent;
}

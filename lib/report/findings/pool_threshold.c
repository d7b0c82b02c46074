/*
 * A stream-ordered pool that gives its memory back at every wait: so it does by default, and every
 * allocation after one has to map memory again.
 */
#include "finding.h"

/* Bytes/s at which fresh device memory is mapped: 1 GiB populated by prefetch in 5.8 ms, on an H200. */
#define MAP_RATE UINT64_C(185000000000)

UM_DETECTOR(um_detect_pool_threshold)
{
    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_group_t *group = &report->regions.groups[g];
        uint64_t again = group->uses.syncs_between;
        um_finding_t f = {.kind = kind, .confidence = 60};
        um_status_t status;
        char name[200];

        if (group->family != UM_FAMILY_POOL || again < report->limits.pool_allocations)
            continue;
        um_finding_region(report, g, name, sizeof(name));
        um_say_in(f.title, "A pool that gives its memory back at every wait");
        um_say_in(f.where, "%s, %s from a stream-ordered pool", name, um_h(um_bytes(group->bytes)));
        um_say_in(f.seen,
                  "%s of %s allocations came after a free and a wait: with the release threshold "
                  "at 0, its default, the pool had given the memory back by then",
                  um_h(um_count(again)), um_h(um_count(group->regions)));
        um_say_in(f.advice,
                  "tell the pool to keep what it has (if the program has not done that: the "
                  "trace does not say)");
        f.asks = UM_CHANGE_KEEP_POOL;
        f.win_ns = (uint64_t)((double)again * (double)group->bytes * 1e9 / (double)MAP_RATE);
        um_say_in(f.basis, "mapping %s of memory %s times at %s", um_h(um_bytes(group->bytes)),
                  um_h(um_count(again)), um_h(um_rate(MAP_RATE)));
        um_finding_evidence(&f, "allocations", um_count(group->regions));
        um_finding_evidence(&f, "after_a_wait", um_count(again));
        um_finding_evidence(&f, "bytes_each", um_bytes(group->bytes));
        um_finding_place(&f, report, g, (um_place_t){.bytes = group->bytes});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

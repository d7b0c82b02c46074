/*
 * change.h - a workload as it would be if the program's source were changed: the advice of a finding.
 *
 * The program's steps stay; hints are put in or left out, a family is another one. Simulated with the
 * program's own hints ("app"), the result says what the change is worth.
 */
#ifndef UM_CHANGE_H
#define UM_CHANGE_H

#include "report/findings/finding.h"
#include "workload.h"

/* What is changed: regions of a label, or else of a call site and size, as the report groups them. */
typedef struct um_changed_region {
    const char *label; /* NULL = none */
    uint64_t call_site, bytes;
    uint32_t first_region;        /* where there is neither */
    uint64_t part_from, part_end; /* of the region; end 0 = all */
} um_changed_region_t;

typedef struct um_workload_change {
    um_change_t change;
    const um_changed_region_t *regions;
    size_t n_regions;
    uint64_t call_site; /* DROP_HINT: of the calls that are left out; their kind and target */
    uint32_t hint_kind;
    bool to_host;
} um_workload_change_t;

/* gpu_bytes: what there is room for (KEEP_PART). Errors: UM_ERR_NO_MEMORY, UM_ERR_UNSUPPORTED for a change
 * that the model cannot make, UM_ERR_NOT_FOUND when none of the
 * regions is in the workload, UM_ERR_INVALID as the builder. */
um_status_t um_workload_changed(const um_workload_t *workload, const um_workload_change_t *changes,
                                size_t n_changes, uint64_t gpu_bytes, um_workload_t **out);

#endif

/*
 * predict.h - what each finding is worth: its advice is applied to the trace's workload and replayed.
 *
 * Pure: the same trace and machine give the same figures. Bounded by the work that it may do, not by a
 * clock; what is beyond keeps the estimate that the finding came with, and the report says so.
 */
#ifndef UM_PREDICT_H
#define UM_PREDICT_H

#include "report/findings/finding.h"
#include "sim.h"

typedef struct um_predict {
    const um_workload_t *workload;
    const um_machine_t *machine;
    const um_uvm_params_t *params; /* NULL = defaults */
    uint64_t gpu_bytes; /* for managed memory; 0 = what was recorded, less what is held */
    uint64_t work;      /* steps and touched blocks, over all replays; 0 = the default */
} um_predict_t;

/* What a predicted saving may be wrong by. What the change leaves as it is cancels; so it is a share of the
 * time that it takes away and of the time that it brings instead (moves by hint, over the link, by fault),
 * each of them as far off as the model was for measured pairs of runs (error_bar.h). */
uint64_t um_saving_error_ns(const um_machine_t *machine, uint32_t percent,
                            const um_sim_result_t *as_it_is, const um_sim_result_t *changed);

/* A um_predict_fn: fills what is replayed of the findings, which are ranked by their estimates. */
um_status_t um_predict_findings(void *predict, const um_report_t *report, um_findings_t *findings);

#endif

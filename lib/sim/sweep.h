/*
 * sweep.h - many simulations: workloads x machines x capacities x streams, each under every policy.
 *
 * A group is one workload on one machine with one capacity: one row of bounds and one result for each
 * policy. Everything that is simulated is a job of its own; jobs run on all threads, and on all ranks
 * when the command was started by mpirun. What comes out does not depend on how many there are.
 */
#ifndef UM_SWEEP_H
#define UM_SWEEP_H

#include "sim.h"

/* How much memory of each GPU. */
typedef enum um_capacity_kind {
    UM_CAPACITY_MACHINE = 0, /* what the machine has */
    UM_CAPACITY_PERCENT =
        1, /* of what the workload's managed peak takes on a GPU, in whole blocks */
    UM_CAPACITY_BYTES = 2
} um_capacity_kind_t;

typedef struct um_capacity {
    um_capacity_kind_t kind;
    uint64_t value; /* per cent or bytes */
    char text[32];  /* as it was given: "50%" */
} um_capacity_t;

uint64_t um_capacity_bytes(const um_capacity_t *capacity, const um_workload_t *workload,
                           const um_machine_t *machine);

typedef struct um_sweep_group {
    uint32_t file; /* which workload of the command line: the same for all its groups */
    const um_workload_t *workload;
    const um_machine_t *machine;
    const um_capacity_t *capacity;
    uint64_t gpu_bytes;
    uint32_t streams; /* side by side at most, 0 = as recorded; is in `workload` already */
    const um_uvm_params_t *params; /* the driver's; NULL = defaults */
} um_sweep_group_t;

/* What a job came to. Plain bytes: ranks send it to each other. */
typedef struct um_outcome {
    um_status_t status;
    union {
        um_bounds_t bounds;
        um_sim_result_t sim;
    } u;
    char error[256];
} um_outcome_t;

typedef struct um_sweep {
    um_sweep_group_t *groups;
    size_t n_groups;
    const um_policy_t *const *policies;
    size_t n_policies;
    um_outcome_t *outcomes; /* of each group: the bounds, then one for each policy */
} um_sweep_t;

const um_bounds_t *um_sweep_bounds(const um_sweep_t *sweep, size_t group);
const um_sim_result_t *um_sweep_result(const um_sweep_t *sweep, size_t group, size_t policy);

typedef struct um_sweep_options {
    uint32_t threads;    /* 1 and up */
    uint32_t rank, size; /* this rank's part; 0 and 1 without MPI */
    void (*progress)(void *ctx, size_t done, size_t all); /* of this rank; as in um_crew_run */
    void *progress_ctx;
} um_sweep_options_t;

/* Fills `outcomes` (allocated here, freed by um_sweep_fini) with this rank's part. A simulation that
 * fails says so in its outcome. UM_ERR_NO_MEMORY. */
um_status_t um_sweep_run(um_sweep_t *sweep, const um_sweep_options_t *options);
size_t um_sweep_jobs(const um_sweep_t *sweep);
/* The first job that failed, or NULL. *group is the one it belongs to. */
const um_outcome_t *um_sweep_failed(const um_sweep_t *sweep, size_t *group);
void um_sweep_fini(um_sweep_t *sweep);

#endif

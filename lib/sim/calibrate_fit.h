/*
 * calibrate_fit.h - the small programs of a calibration, and how a figure is fitted to one. Private to
 * calibrate.c.
 */
#ifndef UM_CALIBRATE_FIT_H
#define UM_CALIBRATE_FIT_H

#include "calibrate.h"
#include "workload.h"

#define UM_EXPERIMENT_JOBS    4
#define UM_EXPERIMENT_FIGURES 3

typedef struct um_experiment {
    const char *doc;
    uint64_t bytes;                            /* all jobs are on all of it */
    const char *figure[UM_EXPERIMENT_FIGURES]; /* scaled together */
    uint32_t n_setup, n_body;
    um_job_t setup[UM_EXPERIMENT_JOBS], body[UM_EXPERIMENT_JOBS];
} um_experiment_t;

/* In the order in which they are fitted: what a later one builds on comes first. */
extern const um_experiment_t um_experiments[];
extern const size_t um_n_experiments;
#define UM_EXPERIMENTS_MAX 32

/* An experiment that was measured. */
typedef struct um_trial {
    const um_experiment_t *experiment;
    um_job_program_t program;
    um_job_t setup[UM_EXPERIMENT_JOBS], body[UM_EXPERIMENT_JOBS];
    um_workload_t *before, *whole;
    uint64_t measured_ns;
    bool explained; /* the figures could be scaled so that the simulation takes as long */
} um_trial_t;

/* Index into um_machine_figures by name; that of its end when there is none. */
uint32_t um_figure_index(const char *name);

/* Errors: those of the GPU and of the builder; error may stay empty. */
um_status_t um_trial_measure(um_trial_t *trial, const um_experiment_t *experiment,
                             const um_calibrate_gpu_t *gpu, char *error, size_t error_bytes);
void um_trial_fini(um_trial_t *trial);

/* Scales the experiment's figures in *machine until it takes the measured time there too, and says in
 * trial->explained whether that could be; else *machine stays as it was. */
um_status_t um_trial_fit(um_trial_t *trial, um_machine_t *machine, char *error, size_t error_bytes);

#endif

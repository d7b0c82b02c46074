/* Small programs measured and simulated until a figure explains the difference. */
#include "calibrate_fit.h"

#include <math.h>
#include <string.h>

#include "sim.h"

#define MIB      ((uint64_t)1 << 20)
#define BYTES    (256 * MIB) /* of most experiments */
#define SMALL    (16 * MIB)  /* of those that take long a byte */
#define FACTOR   100.0       /* a figure is looked for from a 100th to 100 times its start */
#define HALVINGS 14

/* ---- experiments ---- */

#define HOST_WRITE                                                                                 \
    {                                                                                              \
        .kind = UM_JOB_HOST, .what = UM_JOB_HOST_WRITE, .step = UM_PAGE_BYTES                      \
    }
#define HOST_READ                                                                                  \
    {                                                                                              \
        .kind = UM_JOB_HOST, .what = UM_JOB_HOST_READ, .step = UM_PAGE_BYTES                       \
    }
#define KERNEL(name)                                                                               \
    {                                                                                              \
        .kind = UM_JOB_KERNEL, .what = (name)                                                      \
    }
#define PREFETCH(to, bytes)                                                                        \
    {                                                                                              \
        .kind = UM_JOB_PREFETCH, .device = (to), .step = (bytes)                                   \
    }
#define ADVISE(name, where)                                                                        \
    {                                                                                              \
        .kind = UM_JOB_ADVISE, .what = (name), .device = (where)                                   \
    }
#define WAIT                                                                                       \
    {                                                                                              \
        .kind = UM_JOB_SYNC                                                                        \
    }

/* Preferred on the host and mapped by the GPU: kernels reach it over the link. */
#define AT_THE_HOST                                                                                \
    HOST_WRITE, ADVISE(UM_JOB_PREFERRED_LOCATION, UM_DEVICE_HOST), ADVISE(UM_JOB_ACCESSED_BY, 0)
#define ON_THE_GPU PREFETCH(0, 32 * MIB), KERNEL(UM_JOB_WRITE)

#define SETUP(n, ...) .n_setup = (n), .setup = {__VA_ARGS__}
#define BODY(n, ...)  .n_body = (n), .body = {__VA_ARGS__}
#define FITS(...)     .figure = {__VA_ARGS__}

/* clang-format off */
const um_experiment_t um_experiments[] = {
    {"advice on memory that nobody touched", BYTES, FITS("advise_call_ns"),
     BODY(1, ADVISE(UM_JOB_ACCESSED_BY, 0))},
    {"a prefetch of 256 MiB that is there", BYTES, FITS("prefetch_block_ns"),
     SETUP(2, ON_THE_GPU), BODY(2, PREFETCH(0, BYTES), WAIT)},
    {"prefetches of 128 times 2 MiB that are there", BYTES, FITS("prefetch_call_ns"),
     SETUP(2, ON_THE_GPU), BODY(2, PREFETCH(0, 2 * MIB), WAIT)},
    {"a prefetch to the GPU of 256 MiB that nobody touched", BYTES,
     FITS("populate_device_ns_per_mib"), BODY(2, PREFETCH(0, BYTES), WAIT)},
    {"a prefetch to the GPU of 256 MiB that the host wrote", BYTES, FITS("unmap_host_ns_per_mib"),
     SETUP(1, HOST_WRITE), BODY(2, PREFETCH(0, BYTES), WAIT)},
    {"the same in calls of 2 MiB", BYTES, FITS("prefetch_start_ns"),
     SETUP(1, HOST_WRITE), BODY(2, PREFETCH(0, 2 * MIB), WAIT)},
    {"a kernel that writes 256 MiB that nobody touched", BYTES, FITS("fault_batch_ns"),
     BODY(2, KERNEL(UM_JOB_WRITE), WAIT)},
    {"a kernel that updates 256 MiB that the host wrote", BYTES,
     FITS("fault_block_ns", "fault_page_ns", "fault_transfer_ns"),
     SETUP(1, HOST_WRITE), BODY(2, KERNEL(UM_JOB_UPDATE), WAIT)},
    {"the host's first write to 256 MiB", BYTES, FITS("populate_host_ns_per_mib"),
     BODY(1, HOST_WRITE)},
    {"a prefetch to the host of 256 MiB that the GPU wrote", BYTES, FITS("host_alloc_ns_per_mib"),
     SETUP(2, ON_THE_GPU), BODY(2, PREFETCH(UM_DEVICE_HOST, BYTES), WAIT)},
    {"the host reads 256 MiB that the GPU wrote", BYTES, FITS("cpu_fault_ns"),
     SETUP(2, ON_THE_GPU), BODY(1, HOST_READ)},
    {"the host writes 256 MiB that the GPU wrote", BYTES, FITS("cpu_write_fault_ns"),
     SETUP(2, ON_THE_GPU), BODY(1, HOST_WRITE)},
    {"AccessedBy on 256 MiB that the host wrote", BYTES, FITS("map_remote_ns_per_mib"),
     SETUP(1, HOST_WRITE), BODY(1, ADVISE(UM_JOB_ACCESSED_BY, 0))},
    {"PreferredLocation on 256 MiB that the host wrote", BYTES,
     FITS("preferred_location_ns_per_mib"),
     SETUP(1, HOST_WRITE), BODY(1, ADVISE(UM_JOB_PREFERRED_LOCATION, 0))},
    {"ReadMostly on 256 MiB that the host wrote", BYTES, FITS("read_mostly_ns_per_mib"),
     SETUP(1, HOST_WRITE), BODY(1, ADVISE(UM_JOB_READ_MOSTLY, 0))},
    {"a kernel that reads 256 MiB of the host's over the link", BYTES,
     FITS("remote_read_gb_per_s"), SETUP(3, AT_THE_HOST), BODY(2, KERNEL(UM_JOB_READ), WAIT)},
    {"a kernel that writes 256 MiB of the host's over the link", BYTES,
     FITS("remote_write_gb_per_s"), SETUP(3, AT_THE_HOST), BODY(2, KERNEL(UM_JOB_WRITE), WAIT)},
    {"a kernel that updates 256 MiB of the host's over the link", BYTES,
     FITS("remote_write_wait"), SETUP(3, AT_THE_HOST), BODY(2, KERNEL(UM_JOB_UPDATE), WAIT)},
    {"a prefetch of 256 MiB that is ReadMostly", BYTES, FITS("duplicate_block_ns"),
     SETUP(2, HOST_WRITE, ADVISE(UM_JOB_READ_MOSTLY, 0)), BODY(2, PREFETCH(0, 32 * MIB), WAIT)},
    {"a kernel that writes 16 MiB that are ReadMostly", SMALL, FITS("collapse_page_ns"),
     SETUP(3, HOST_WRITE, ADVISE(UM_JOB_READ_MOSTLY, 0), PREFETCH(0, 32 * MIB)),
     BODY(2, KERNEL(UM_JOB_UPDATE), WAIT)},
};
/* clang-format on */
const size_t um_n_experiments = sizeof um_experiments / sizeof um_experiments[0];

/* ---- measured and simulated ---- */

um_status_t um_trial_measure(um_trial_t *trial, const um_experiment_t *experiment,
                             const um_calibrate_gpu_t *gpu, char *error, size_t error_bytes)
{
    um_status_t status;

    *trial = (um_trial_t){.experiment = experiment};
    memcpy(trial->setup, experiment->setup, sizeof trial->setup);
    memcpy(trial->body, experiment->body, sizeof trial->body);
    for (int i = 0; i < UM_EXPERIMENT_JOBS; i++)
        trial->setup[i].bytes = trial->body[i].bytes = experiment->bytes;
    trial->program = (um_job_program_t){.name = experiment->doc,
                                        .gpu = gpu->name,
                                        .piece_bytes = 32 * MIB,
                                        .racers = 1,
                                        .n_regions = 1,
                                        .region_bytes = {experiment->bytes},
                                        .setup = {experiment->n_setup, trial->setup},
                                        .body = {experiment->n_body, trial->body}};
    status = gpu->measure(gpu->ctx, &trial->program, &trial->measured_ns);
    if (status == UM_OK)
        status = um_job_workload(&trial->program, 0, 0, &trial->before, error, error_bytes);
    if (status == UM_OK)
        status = um_job_workload(&trial->program, 0, 1, &trial->whole, error, error_bytes);
    return status;
}

void um_trial_fini(um_trial_t *trial)
{
    um_workload_free(trial->before);
    um_workload_free(trial->whole);
}

static um_status_t simulate(const um_trial_t *trial, const um_machine_t *machine, double *out_ns,
                            char *error, size_t error_bytes)
{
    um_sim_config_t config = {.machine = machine,
                              .policy = um_policy_find("app"),
                              .kernel_time_scale = 1};
    um_sim_result_t before, whole;
    um_status_t status;

    config.workload = trial->before;
    status = um_sim_run(&config, &before, error, error_bytes);
    config.workload = trial->whole;
    if (status == UM_OK)
        status = um_sim_run(&config, &whole, error, error_bytes);
    if (status == UM_OK)
        *out_ns = (double)whole.total_ns - (double)before.total_ns;
    return status;
}

/* ---- fitted ---- */

uint32_t um_figure_index(const char *name)
{
    uint32_t i = 0;

    while (um_machine_figures[i].name && strcmp(um_machine_figures[i].name, name))
        i++;
    return i;
}

/* The start's figures of an experiment times `factor`, inside their ranges. */
static void scale(const um_experiment_t *experiment, const um_machine_t *start, double factor,
                  um_machine_t *to)
{
    for (int i = 0; i < UM_EXPERIMENT_FIGURES && experiment->figure[i]; i++) {
        const um_machine_figure_t *figure =
            &um_machine_figures[um_figure_index(experiment->figure[i])];
        double value;

        if (!figure->name)
            continue;
        value = *(const double *)((const char *)start + figure->offset);
        if (!(value > 0)) /* from nothing there is no scaling up */
            value = fmax(figure->max * 1e-6, figure->min);
        *(double *)((char *)to + figure->offset) =
            fmin(fmax(value * factor, figure->min), figure->max);
    }
}

um_status_t um_trial_fit(um_trial_t *trial, um_machine_t *machine, char *error, size_t error_bytes)
{
    const um_experiment_t *experiment = trial->experiment;
    const um_machine_t start = *machine;
    double low = -log(FACTOR), high = log(FACTOR), at_low = 0, at_high = 0, ns = 0;
    double wanted = (double)trial->measured_ns;
    um_status_t status;

    scale(experiment, &start, exp(low), machine);
    status = simulate(trial, machine, &at_low, error, error_bytes);
    scale(experiment, &start, exp(high), machine);
    if (status == UM_OK)
        status = simulate(trial, machine, &at_high, error, error_bytes);
    trial->explained = (wanted >= at_low) == (wanted <= at_high); /* between them, either way */
    for (int i = 0; status == UM_OK && trial->explained && i < HALVINGS; i++) {
        double middle = (low + high) / 2;

        scale(experiment, &start, exp(middle), machine);
        status = simulate(trial, machine, &ns, error, error_bytes);
        if ((ns < wanted) == (at_low < at_high))
            low = middle;
        else
            high = middle;
    }
    /* Out of reach: something else is wrong, and an extreme figure would hide it. */
    if (!trial->explained)
        *machine = start;
    return status;
}

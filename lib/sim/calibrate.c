/* calibrate.c - small programs measured and simulated until a figure explains the difference. */
#include "calibrate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MIB   ((uint64_t)1 << 20)
#define BYTES (256 * MIB) /* of most experiments */
#define SMALL (16 * MIB)  /* of those that take long a byte */
/* Of a kernel that reads and writes 256 MiB: tests/data/h200/backtest.json, stream/256. */
#define H200_UPDATE_NS 201000.0
#define PASSES         3 /* figures depend on each other a little: one after the other, three times */
#define FACTOR         100.0 /* a figure is looked for from a 100th to 100 times its start */
#define HALVINGS       30

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

#define JOBS_MAX 4
#define FIT_MAX  3

typedef struct experiment {
    const char *doc;
    uint64_t bytes;              /* all jobs are on all of it */
    const char *figure[FIT_MAX]; /* scaled together */
    uint32_t n_setup, n_body;
    um_job_t setup[JOBS_MAX], body[JOBS_MAX];
} experiment_t;

/* In the order in which they are fitted: what a later one builds on comes first. */
static const experiment_t experiments[] = {
    {"advice on memory that nobody touched",
     BYTES,
     {"advise_call_ns"},
     0,
     1,
     .body = {ADVISE(UM_JOB_ACCESSED_BY, 0)}},
    {"a prefetch of 256 MiB that is there",
     BYTES,
     {"prefetch_block_ns"},
     2,
     2,
     {PREFETCH(0, 32 * MIB), KERNEL(UM_JOB_WRITE)},
     {PREFETCH(0, BYTES), WAIT}},
    {"prefetches of 128 times 2 MiB that are there",
     BYTES,
     {"prefetch_call_ns"},
     2,
     2,
     {PREFETCH(0, 32 * MIB), KERNEL(UM_JOB_WRITE)},
     {PREFETCH(0, 2 * MIB), WAIT}},
    {"a prefetch to the GPU of 256 MiB that nobody touched",
     BYTES,
     {"populate_device_ns_per_mib"},
     0,
     2,
     .body = {PREFETCH(0, BYTES), WAIT}},
    {"a prefetch to the GPU of 256 MiB that the host wrote",
     BYTES,
     {"unmap_host_ns_per_mib"},
     1,
     2,
     {HOST_WRITE},
     {PREFETCH(0, BYTES), WAIT}},
    {"the same in calls of 2 MiB",
     BYTES,
     {"prefetch_start_ns"},
     1,
     2,
     {HOST_WRITE},
     {PREFETCH(0, 2 * MIB), WAIT}},
    {"a kernel that writes 256 MiB that nobody touched",
     BYTES,
     {"fault_batch_ns"},
     0,
     2,
     .body = {KERNEL(UM_JOB_WRITE), WAIT}},
    {"a kernel that updates 256 MiB that the host wrote",
     BYTES,
     {"fault_block_ns", "fault_page_ns", "fault_transfer_ns"},
     1,
     2,
     {HOST_WRITE},
     {KERNEL(UM_JOB_UPDATE), WAIT}},
    {"the host's first write to 256 MiB",
     BYTES,
     {"populate_host_ns_per_mib"},
     0,
     1,
     .body = {HOST_WRITE}},
    {"a prefetch to the host of 256 MiB that the GPU wrote",
     BYTES,
     {"host_alloc_ns_per_mib"},
     2,
     2,
     {PREFETCH(0, 32 * MIB), KERNEL(UM_JOB_WRITE)},
     {PREFETCH(UM_DEVICE_HOST, BYTES), WAIT}},
    {"the host reads 256 MiB that the GPU wrote",
     BYTES,
     {"cpu_fault_ns"},
     2,
     1,
     {PREFETCH(0, 32 * MIB), KERNEL(UM_JOB_WRITE)},
     {HOST_READ}},
    {"AccessedBy on 256 MiB that the host wrote",
     BYTES,
     {"map_remote_ns_per_mib"},
     1,
     1,
     {HOST_WRITE},
     {ADVISE(UM_JOB_ACCESSED_BY, 0)}},
    {"PreferredLocation on 256 MiB that the host wrote",
     BYTES,
     {"preferred_location_ns_per_mib"},
     1,
     1,
     {HOST_WRITE},
     {ADVISE(UM_JOB_PREFERRED_LOCATION, 0)}},
    {"a kernel that reads 256 MiB of the host's over the link",
     BYTES,
     {"remote_read_gb_per_s"},
     3,
     2,
     {HOST_WRITE, ADVISE(UM_JOB_PREFERRED_LOCATION, UM_DEVICE_HOST), ADVISE(UM_JOB_ACCESSED_BY, 0)},
     {KERNEL(UM_JOB_READ), WAIT}},
    {"a kernel that writes 256 MiB of the host's over the link",
     BYTES,
     {"remote_write_gb_per_s"},
     3,
     2,
     {HOST_WRITE, ADVISE(UM_JOB_PREFERRED_LOCATION, UM_DEVICE_HOST), ADVISE(UM_JOB_ACCESSED_BY, 0)},
     {KERNEL(UM_JOB_WRITE), WAIT}},
    {"a prefetch of 256 MiB that is ReadMostly",
     BYTES,
     {"duplicate_block_ns"},
     2,
     2,
     {HOST_WRITE, ADVISE(UM_JOB_READ_MOSTLY, 0)},
     {PREFETCH(0, 32 * MIB), WAIT}},
    {"a kernel that writes 16 MiB that are ReadMostly",
     SMALL,
     {"collapse_page_ns"},
     3,
     2,
     {HOST_WRITE, ADVISE(UM_JOB_READ_MOSTLY, 0), PREFETCH(0, 32 * MIB)},
     {KERNEL(UM_JOB_UPDATE), WAIT}},
};
#define EXPERIMENTS (sizeof experiments / sizeof experiments[0])

/* An experiment on its way. */
typedef struct trial {
    um_job_program_t program;
    um_job_t setup[JOBS_MAX], body[JOBS_MAX];
    um_workload_t *before, *whole;
    uint64_t measured_ns;
    bool explained; /* the figures could be scaled so that the simulation takes as long */
} trial_t;

typedef struct calibrator {
    const um_calibrate_gpu_t *gpu;
    const char *date;
    um_calibration_t *out;
    trial_t trial[EXPERIMENTS];
    char *error;
    size_t error_bytes;
} calibrator_t;

/* ---- figures by name ---- */

static uint32_t figure_index(const char *name)
{
    uint32_t i = 0;

    while (um_machine_figures[i].name && strcmp(um_machine_figures[i].name, name))
        i++;
    return i;
}

static double *figure_value(um_machine_t *machine, const char *name)
{
    const um_machine_figure_t *figure = &um_machine_figures[figure_index(name)];

    return figure->name ? (double *)((char *)machine + figure->offset) : NULL;
}

static void __attribute__((format(printf, 3, 4)))
say_source(calibrator_t *c, const char *name, const char *format, ...)
{
    uint32_t i = figure_index(name);
    char how[128];
    va_list args;

    if (i >= UM_CALIBRATE_FIGURES || !um_machine_figures[i].name)
        return;
    va_start(args, format);
    vsnprintf(how, sizeof how, format, args);
    va_end(args);
    c->out->measured += strncmp(c->out->source[i], "estimate", 8) == 0;
    snprintf(c->out->source[i], sizeof c->out->source[i], "measured %s: %s", c->date, how);
}

static double ms(uint64_t ns)
{
    return (double)ns * 1e-6;
}

static um_status_t failed(calibrator_t *c, um_status_t status, const char *what)
{
    if (!c->error[0])
        snprintf(c->error, c->error_bytes, "%s: %s", what, um_status_string(status));
    return status;
}

/* ---- what is timed directly ---- */

static um_status_t time_calls(calibrator_t *c)
{
    static const struct {
        const char *figure, *doc;
    } calls[UM_CALIBRATE_TURN] = {
        [UM_CALIBRATE_ALLOC] = {"alloc_call_ns", "an allocation of 2 MiB"},
        [UM_CALIBRATE_FREE] = {"free_call_ns", "a free of what nobody touched"},
        [UM_CALIBRATE_LAUNCH] = {"launch_call_ns", "a launch"},
        [UM_CALIBRATE_SYNC] = {"sync_call_ns", "a wait that finds all done"},
    };
    um_machine_t *machine = &c->out->machine;
    uint64_t ns[UM_CALIBRATE_CALLS];

    for (uint32_t i = 0; i < UM_CALIBRATE_CALLS; i++) {
        um_status_t status = c->gpu->call(c->gpu->ctx, (um_calibrate_call_t)i, &ns[i]);
        if (status != UM_OK)
            return failed(c, status, "timing a call");
    }
    for (uint32_t i = 0; i < UM_CALIBRATE_TURN; i++) {
        double *value = figure_value(machine, calls[i].figure);
        if (value)
            *value = (double)ns[i];
        say_source(c, calls[i].figure, "%.4f ms for %s", ms(ns[i]), calls[i].doc);
    }
    double start = (double)ns[UM_CALIBRATE_TURN] - (double)ns[UM_CALIBRATE_LAUNCH] -
                   (double)ns[UM_CALIBRATE_SYNC];
    double *value = figure_value(machine, "kernel_start_ns");
    if (value)
        *value = start > 0 ? start : 0;
    say_source(c, "kernel_start_ns", "%.4f ms for an empty kernel with its wait",
               ms(ns[UM_CALIBRATE_TURN]));
    return UM_OK;
}

static um_status_t time_curve(calibrator_t *c, um_calibrate_transfer_t transfer, const char *name,
                              um_curve_t *curve)
{
    uint64_t ns = 1;

    curve->n = 0;
    for (uint64_t bytes = UM_PAGE_BYTES; bytes <= UM_BLOCK_BYTES; bytes *= 2) {
        um_status_t status = c->gpu->transfer(c->gpu->ctx, transfer, bytes, &ns);
        if (status != UM_OK)
            return failed(c, status, "timing a transfer");
        curve->point[curve->n].bytes = bytes;
        curve->point[curve->n++].gb_per_s = (double)bytes / (double)(ns ? ns : 1);
    }
    say_source(c, name, "%.4f ms for 2 MiB of pinned memory, copies in a row", ms(ns));
    return UM_OK;
}

static um_status_t time_copies(calibrator_t *c)
{
    static const struct {
        um_calibrate_transfer_t transfer;
        const char *figure, *doc;
    } copies[] = {
        {UM_CALIBRATE_PAGEABLE, "pageable_copy_gb_per_s", "64 MiB from pageable memory"},
        {UM_CALIBRATE_INSIDE, "device_gb_per_s", "64 MiB inside the device"},
    };
    um_status_t status =
        time_curve(c, UM_CALIBRATE_TO_DEVICE, "link_to_device", &c->out->machine.link_to_device);

    if (status == UM_OK)
        status = time_curve(c, UM_CALIBRATE_TO_HOST, "link_to_host", &c->out->machine.link_to_host);
    for (size_t i = 0; status == UM_OK && i < sizeof copies / sizeof copies[0]; i++) {
        double *value = figure_value(&c->out->machine, copies[i].figure);
        uint64_t ns;
        status = c->gpu->transfer(c->gpu->ctx, copies[i].transfer, 64 * MIB, &ns);
        if (status != UM_OK)
            return failed(c, status, "timing a copy");
        if (value && ns)
            *value = (double)(64 * MIB) / (double)ns;
        say_source(c, copies[i].figure, "%.4f ms for %s", ms(ns), copies[i].doc);
    }
    return status;
}

/* ---- what is fitted ---- */

static um_status_t measure(calibrator_t *c, size_t i)
{
    const experiment_t *e = &experiments[i];
    trial_t *t = &c->trial[i];
    um_status_t status;

    memcpy(t->setup, e->setup, sizeof t->setup);
    memcpy(t->body, e->body, sizeof t->body);
    t->program = (um_job_program_t){.name = e->doc,
                                    .gpu = c->gpu->name,
                                    .piece_bytes = 32 * MIB,
                                    .racers = 1,
                                    .n_regions = 1,
                                    .region_bytes = {e->bytes},
                                    .setup = {e->n_setup, t->setup},
                                    .body = {e->n_body, t->body}};
    for (int j = 0; j < JOBS_MAX; j++)
        t->setup[j].bytes = t->body[j].bytes = e->bytes;
    status = c->gpu->measure(c->gpu->ctx, &t->program, &t->measured_ns);
    if (status != UM_OK)
        return failed(c, status, e->doc);
    status = um_job_workload(&t->program, 0, 0, &t->before, c->error, c->error_bytes);
    if (status == UM_OK)
        status = um_job_workload(&t->program, 0, 1, &t->whole, c->error, c->error_bytes);
    return status;
}

static um_status_t simulate(calibrator_t *c, const trial_t *t, const um_machine_t *machine,
                            double *out_ns)
{
    um_sim_config_t config = {.machine = machine,
                              .policy = um_policy_find("app"),
                              .kernel_time_scale = 1};
    um_sim_result_t before, whole;
    um_status_t status;

    config.workload = t->before;
    status = um_sim_run(&config, &before, c->error, c->error_bytes);
    config.workload = t->whole;
    if (status == UM_OK)
        status = um_sim_run(&config, &whole, c->error, c->error_bytes);
    if (status == UM_OK)
        *out_ns = (double)whole.total_ns - (double)before.total_ns;
    return status;
}

/* The start's figures of an experiment times `factor`, inside their ranges. */
static void scale(const experiment_t *e, const um_machine_t *start, double factor, um_machine_t *to)
{
    for (int i = 0; i < FIT_MAX && e->figure[i]; i++) {
        const um_machine_figure_t *figure = &um_machine_figures[figure_index(e->figure[i])];
        double value;
        if (!figure->name)
            continue;
        value = *(const double *)((const char *)start + figure->offset);
        value = (value > 0 ? value : 1) * factor; /* from nothing there is no scaling up */
        *(double *)((char *)to + figure->offset) = fmin(fmax(value, figure->min), figure->max);
    }
}

/* Scales the figures of one experiment until it takes the measured time in the model as well. */
static um_status_t fit(calibrator_t *c, size_t i)
{
    const experiment_t *e = &experiments[i];
    trial_t *t = &c->trial[i];
    const um_machine_t start = c->out->machine;
    um_machine_t *machine = &c->out->machine;
    double low = -log(FACTOR), high = log(FACTOR), at_low = 0, at_high = 0, ns,
           wanted = (double)t->measured_ns;
    um_status_t status;

    scale(e, &start, exp(low), machine);
    status = simulate(c, t, machine, &at_low);
    scale(e, &start, exp(high), machine);
    if (status == UM_OK)
        status = simulate(c, t, machine, &at_high);
    t->explained = (wanted >= at_low) == (wanted <= at_high); /* between them, either way round */
    for (int n = 0; status == UM_OK && t->explained && n < HALVINGS; n++) {
        double middle = (low + high) / 2;
        scale(e, &start, exp(middle), machine);
        status = simulate(c, t, machine, &ns);
        if ((ns < wanted) == (at_low < at_high))
            low = middle;
        else
            high = middle;
    }
    /* Out of reach: something else is wrong, and an extreme figure would hide it. */
    if (status == UM_OK && !t->explained)
        *machine = start;
    return status;
}

static void say_fitted(calibrator_t *c, size_t i)
{
    const experiment_t *e = &experiments[i];

    for (int j = 0; j < FIT_MAX && e->figure[j]; j++) {
        uint32_t k = figure_index(e->figure[j]);
        if (c->trial[i].explained) {
            say_source(c, e->figure[j], "fitted to %.3f ms for %s", ms(c->trial[i].measured_ns),
                       e->doc);
        } else if (k < UM_CALIBRATE_FIGURES) {
            snprintf(c->out->source[k], sizeof c->out->source[k],
                     "estimate: as %s; it does not explain %.3f ms for %s", c->out->nearest,
                     ms(c->trial[i].measured_ns), e->doc);
        }
    }
}

/* ---- where to start from ---- */

static const char *const known[] = {"h200-pcie5",     "a100-pcie4",    "v100-pcie3",
                                    "v100-nvlink-p9", "rtx4090-pcie4", "gh200-c2c"};

static double apart(double a, double b)
{
    return a > 0 && b > 0 ? fabs(log(a / b)) : 10;
}

/* The known machine of this GPU, else the one nearest in kernel speed and link. */
static um_status_t nearest(calibrator_t *c, double kernel_scale, double link_gb_per_s,
                           um_machine_t *out)
{
    double best = INFINITY;

    if (um_machine_for_gpu(c->gpu->name, out) == UM_OK)
        return UM_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        um_machine_t machine;
        double distance;
        if (um_machine_load(known[i], &machine, c->error, c->error_bytes) != UM_OK)
            continue;
        distance = apart(machine.kernel_time_scale, kernel_scale) +
                   apart((double)UM_BLOCK_BYTES /
                             (double)um_curve_ns(&machine.link_to_device, UM_BLOCK_BYTES),
                         link_gb_per_s) +
                   (machine.coherent == c->gpu->coherent ? 0 : 100);
        if (distance < best) {
            best = distance;
            *out = machine;
        }
    }
    if (isinf(best))
        return failed(c, UM_ERR_NOT_FOUND, "no known machine to start from");
    c->error[0] = '\0';
    return UM_OK;
}

/* "NVIDIA H200 NVL" becomes "nvidia-h200-nvl". */
static void name_machine(um_machine_t *machine, const char *gpu)
{
    size_t n = 0;

    for (const char *from = gpu; *from && n + 1 < sizeof machine->name; from++) {
        bool letter = (*from >= 'a' && *from <= 'z') || (*from >= '0' && *from <= '9');
        if (*from >= 'A' && *from <= 'Z')
            machine->name[n++] = (char)(*from - 'A' + 'a');
        else if (letter)
            machine->name[n++] = *from;
        else if (n && machine->name[n - 1] != '-')
            machine->name[n++] = '-';
    }
    machine->name[n] = '\0';
    snprintf(machine->gpu, sizeof machine->gpu, "%s", gpu);
}

static um_status_t start(calibrator_t *c)
{
    um_calibration_t *out = c->out;
    um_job_t update = KERNEL(UM_JOB_UPDATE), prefetch = PREFETCH(0, 32 * MIB);
    um_job_program_t program = {.name = "a kernel that updates 256 MiB",
                                .gpu = c->gpu->name,
                                .racers = 1,
                                .piece_bytes = 32 * MIB,
                                .n_regions = 1,
                                .region_bytes = {BYTES},
                                .setup = {1, &prefetch},
                                .body = {1, &update}};
    uint64_t total_ns, block_ns;
    um_status_t status;

    update.bytes = prefetch.bytes = BYTES;
    status = c->gpu->measure(c->gpu->ctx, &program, &total_ns);
    if (status == UM_OK)
        status = c->gpu->transfer(c->gpu->ctx, UM_CALIBRATE_TO_DEVICE, UM_BLOCK_BYTES, &block_ns);
    if (status != UM_OK)
        return failed(c, status, program.name);
    double kernel_scale = (double)update.ns / H200_UPDATE_NS;
    status = nearest(c, kernel_scale, (double)UM_BLOCK_BYTES / (double)(block_ns ? block_ns : 1),
                     &out->machine);
    if (status != UM_OK)
        return status;
    snprintf(out->nearest, sizeof out->nearest, "%s", out->machine.name);
    for (out->figures = 0; um_machine_figures[out->figures].name; out->figures++)
        if (out->figures < UM_CALIBRATE_FIGURES)
            snprintf(out->source[out->figures], sizeof out->source[0], "estimate: as %s",
                     out->nearest);
    name_machine(&out->machine, c->gpu->name);
    out->machine.memory_bytes = c->gpu->memory_bytes;
    out->machine.coherent = c->gpu->coherent;
    out->machine.kernel_time_scale = kernel_scale;
    say_source(c, "memory_bytes", "what the driver says");
    say_source(c, "coherent", "what the driver says");
    say_source(c, "kernel_time_scale", "%.4f ms for %s, %.4f ms on an H200", ms(update.ns),
               program.name, H200_UPDATE_NS * 1e-6);
    return UM_OK;
}

um_status_t um_calibrate(const um_calibrate_gpu_t *gpu, const char *date, um_calibration_t *out,
                         char *error, size_t error_bytes)
{
    calibrator_t *c = calloc(1, sizeof *c);
    um_status_t status;

    error[0] = '\0';
    memset(out, 0, sizeof *out);
    if (!c) {
        snprintf(error, error_bytes, "%s", um_status_string(UM_ERR_NO_MEMORY));
        return UM_ERR_NO_MEMORY;
    }
    *c = (calibrator_t){
        .gpu = gpu, .date = date, .out = out, .error = error, .error_bytes = error_bytes};
    status = start(c);
    if (status == UM_OK)
        status = time_calls(c);
    if (status == UM_OK)
        status = time_copies(c);
    for (size_t i = 0; status == UM_OK && i < EXPERIMENTS; i++)
        status = measure(c, i);
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; status == UM_OK && i < EXPERIMENTS; i++)
            status = fit(c, i);
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        if (status == UM_OK)
            say_fitted(c, i);
        um_workload_free(c->trial[i].before);
        um_workload_free(c->trial[i].whole);
    }
    out->machine.estimates = out->figures - out->measured;
    free(c);
    return status;
}

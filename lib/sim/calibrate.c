/* The figures of a machine: timed where that can be, fitted (calibrate_fit.c), or the nearest's. */
#include "calibrate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate_fit.h"

#define MIB   ((uint64_t)1 << 20)
#define BYTES (256 * MIB)
/* Of a kernel that reads and writes 256 MiB: tests/data/h200/backtest.json, stream/256. */
#define H200_UPDATE_NS 201000.0
#define PASSES         3 /* figures depend on each other a little */

typedef struct calibrator {
    const um_calibrate_gpu_t *gpu;
    const char *date;
    um_calibration_t *out;
    um_trial_t trial[UM_EXPERIMENTS_MAX];
    char *error;
    size_t error_bytes;
} calibrator_t;

/* ---- figures by name ---- */

static double *figure_value(um_machine_t *machine, const char *name)
{
    const um_machine_figure_t *figure = &um_machine_figures[um_figure_index(name)];

    return figure->name ? (double *)((char *)machine + figure->offset) : NULL;
}

static void __attribute__((format(printf, 3, 4)))
say_source(calibrator_t *c, const char *name, const char *format, ...)
{
    uint32_t i = um_figure_index(name);
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

static void say_fitted(calibrator_t *c, size_t i)
{
    const um_trial_t *trial = &c->trial[i];
    const um_experiment_t *e = trial->experiment;

    for (int j = 0; j < UM_EXPERIMENT_FIGURES && e->figure[j]; j++) {
        uint32_t k = um_figure_index(e->figure[j]);
        if (trial->explained) {
            say_source(c, e->figure[j], "fitted to %.3f ms for %s", ms(trial->measured_ns), e->doc);
        } else if (k < UM_CALIBRATE_FIGURES) {
            snprintf(c->out->source[k], sizeof c->out->source[k],
                     "estimate: as %s; it does not explain %.3f ms for %s", c->out->nearest,
                     ms(trial->measured_ns), e->doc);
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
    um_job_t update = {.kind = UM_JOB_KERNEL, .what = UM_JOB_UPDATE, .bytes = BYTES};
    um_job_t prefetch = {.kind = UM_JOB_PREFETCH, .step = 32 * MIB, .bytes = BYTES};
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
    for (size_t i = 0; status == UM_OK && i < um_n_experiments; i++) {
        status = um_trial_measure(&c->trial[i], &um_experiments[i], gpu, error, error_bytes);
        if (status != UM_OK)
            failed(c, status, um_experiments[i].doc);
    }
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; status == UM_OK && i < um_n_experiments; i++)
            status = um_trial_fit(&c->trial[i], &out->machine, error, error_bytes);
    for (size_t i = 0; i < um_n_experiments; i++) {
        if (status == UM_OK)
            say_fitted(c, i);
        um_trial_fini(&c->trial[i]);
    }
    out->machine.estimates = out->figures - out->measured;
    free(c);
    return status;
}

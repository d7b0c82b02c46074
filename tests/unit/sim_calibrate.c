/* Calibration against a simulated machine: it finds the figures that are behind the times. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/calibrate.h"
#include "sim/sim.h"

/* The machine that is measured, and how long a kernel takes on it. */
typedef struct hidden {
    um_machine_t machine;
    uint64_t kernel_ns, calls_ns[UM_CALIBRATE_CALLS];
    const char *fails; /* the program that cannot be measured */
} hidden_t;

static um_status_t measure(void *ctx, um_job_program_t *program, uint64_t *out_ns)
{
    const hidden_t *hidden = ctx;
    um_sim_config_t config = {.machine = &hidden->machine,
                              .policy = um_policy_find("app"),
                              .kernel_time_scale = 1};
    um_sim_result_t before, whole;
    um_workload_t *workload;
    char error[256];

    if (hidden->fails && !strcmp(hidden->fails, program->name))
        return UM_ERR_UNSUPPORTED;
    for (size_t i = 0; i < program->body.n; i++)
        if (program->body.jobs[i].kind == UM_JOB_KERNEL)
            program->body.jobs[i].ns = hidden->kernel_ns;
    for (uint32_t rounds = 0; rounds < 2; rounds++) {
        cr_assert_eq(um_job_workload(program, 0, rounds, &workload, error, sizeof error), UM_OK,
                     "%s", error);
        config.workload = workload;
        cr_assert_eq(um_sim_run(&config, rounds ? &whole : &before, error, sizeof error), UM_OK);
        um_workload_free(workload);
    }
    *out_ns = whole.total_ns - before.total_ns;
    return UM_OK;
}

static um_status_t call(void *ctx, um_calibrate_call_t which, uint64_t *out_ns)
{
    *out_ns = ((const hidden_t *)ctx)->calls_ns[which];
    return UM_OK;
}

static um_status_t transfer(void *ctx, um_calibrate_transfer_t which, uint64_t bytes,
                            uint64_t *out_ns)
{
    const um_machine_t *machine = &((const hidden_t *)ctx)->machine;

    *out_ns = um_curve_ns(which == UM_CALIBRATE_TO_HOST ? &machine->link_to_host
                                                        : &machine->link_to_device,
                          bytes);
    return UM_OK;
}

/* An H200 whose figures were all changed. */
static void hide(um_calibrate_gpu_t *gpu)
{
    static hidden_t hidden;
    char error[256];

    cr_assert_eq(um_machine_load("h200-pcie5", &hidden.machine, error, sizeof error), UM_OK, "%s",
                 error);
    hidden.kernel_ns = 402000;
    for (int i = 0; i < UM_CALIBRATE_CALLS; i++)
        hidden.calls_ns[i] = 2000 * (uint64_t)(i + 1);
    *gpu = (um_calibrate_gpu_t){.ctx = &hidden,
                                .name = "Hidden GPU",
                                .memory_bytes = 1ull << 34,
                                .measure = measure,
                                .call = call,
                                .transfer = transfer};
}

static double figure(const um_machine_t *machine, const char *name)
{
    for (const um_machine_figure_t *f = um_machine_figures; f->name; f++)
        if (!strcmp(f->name, name))
            return *(const double *)((const char *)machine + f->offset);
    cr_assert_fail("no figure %s", name);
    return 0;
}

static const char *source(const um_calibration_t *calibration, const char *name)
{
    for (uint32_t i = 0; um_machine_figures[i].name; i++)
        if (!strcmp(um_machine_figures[i].name, name))
            return calibration->source[i];
    return "";
}

Test(calibrate, finds_the_figures_behind_the_times)
{
    static const char *const found[] = {"populate_device_ns_per_mib", "populate_host_ns_per_mib",
                                        "host_alloc_ns_per_mib",      "map_remote_ns_per_mib",
                                        "remote_read_gb_per_s",       "cpu_fault_ns"};
    um_calibrate_gpu_t gpu;
    um_calibration_t calibration;
    char error[512];

    hide(&gpu);
    hidden_t *hidden = gpu.ctx;
    hidden->machine.populate_device_ns_per_mib *= 2;
    hidden->machine.populate_host_ns_per_mib *= 0.5;
    hidden->machine.host_alloc_ns_per_mib *= 3;
    hidden->machine.map_remote_ns_per_mib *= 0.25;
    hidden->machine.remote_read_gb_per_s *= 0.5;
    hidden->machine.cpu_fault_ns *= 1.5;
    for (int i = 0; i < 4; i++) /* the calls, as the machine has them */
        hidden->calls_ns[i] = (uint64_t[]){20000, 20000, (uint64_t)hidden->machine.launch_call_ns,
                                           (uint64_t)hidden->machine.sync_call_ns}[i];
    hidden->calls_ns[UM_CALIBRATE_TURN] =
        (uint64_t)(hidden->machine.launch_call_ns + hidden->machine.sync_call_ns +
                   hidden->machine.kernel_start_ns);
    cr_assert_eq(um_calibrate(&gpu, "2026-11-30", &calibration, error, sizeof error), UM_OK, "%s",
                 error);
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        double is = figure(&calibration.machine, found[i]),
               want = figure(&hidden->machine, found[i]);
        cr_expect_lt(fabs(is / want - 1), 0.1, "%s: %g, should be %g", found[i], is, want);
    }
    cr_assert_str_eq(calibration.machine.name, "hidden-gpu");
    cr_assert_float_eq(calibration.machine.kernel_time_scale, 2.0, 1e-9);
    cr_assert_eq(calibration.machine.memory_bytes, 1ull << 34);
}

Test(calibrate, says_of_each_figure_where_it_comes_from)
{
    um_calibrate_gpu_t gpu;
    um_calibration_t calibration;
    char error[512], path[] = "/tmp/um-machine-XXXXXX.json";
    const char *sources[UM_CALIBRATE_FIGURES];
    um_machine_t again;

    hide(&gpu);
    cr_assert_eq(um_calibrate(&gpu, "2026-11-30", &calibration, error, sizeof error), UM_OK, "%s",
                 error);
    cr_assert_str_eq(calibration.nearest, "h200-pcie5");
    cr_assert_str_eq(source(&calibration, "hint_delay_ns"), "estimate: as h200-pcie5");
    cr_assert(strstr(source(&calibration, "cpu_fault_ns"), "measured 2026-11-30: fitted to "));
    cr_assert(strstr(source(&calibration, "launch_call_ns"), "measured 2026-11-30: 0.0060 ms"));
    cr_assert_geq(calibration.measured, 25);
    for (uint32_t i = 0; i < UM_CALIBRATE_FIGURES; i++)
        sources[i] = calibration.source[i];
    close(mkstemps(path, 5));
    cr_assert_eq(um_machine_save(&calibration.machine, sources, "2026-11-30", path), UM_OK);
    cr_assert_eq(um_machine_load(path, &again, error, sizeof error), UM_OK, "%s", error);
    unlink(path);
    cr_assert_str_eq(again.gpu, "Hidden GPU");
    cr_assert_eq(again.estimates, calibration.machine.estimates);
}

Test(calibrate, a_measurement_that_fails_is_named)
{
    um_calibrate_gpu_t gpu;
    um_calibration_t calibration;
    char error[512];

    hide(&gpu);
    hidden_t *hidden = gpu.ctx;
    hidden->fails = "the host's first write to 256 MiB";
    cr_assert_eq(um_calibrate(&gpu, "2026-11-30", &calibration, error, sizeof error),
                 UM_ERR_UNSUPPORTED);
    cr_assert(strstr(error, hidden->fails), "%s", error);
}

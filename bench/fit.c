/*
 * fit - adjusts a machine's figures to the fit half of the back-test, by coordinate descent.
 *
 *   fit [-m MACHINE] [-b BACKTEST] [-o FILE] [-p PASSES] [FIGURE...]
 *
 * Each figure in turn is scaled up and down by a step that halves from pass to pass, and kept where
 * the mean squared logarithm of predicted over measured falls, with a slight pull to where it
 * started. Only runs of the fit half are looked at; three numbers of the judge half are printed at
 * the end. No random numbers: the same input gives the same figures.
 */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/backtest.h"

#define THREADS_MAX 64
#define FIRST_STEP  1.4 /* a figure times or over this */
#define MARGIN      1e-5
/* A figure moved by the factor e must take a thousandth off the mean squared error: what the fit
 * half hardly shows stays where a direct measurement put it. */
#define PULL 1e-3

/* What no run of a back-test shows, or what is given (fault_block_ns: by a recorded gather). */
static const char *const fixed[] = {"memory_bytes",
                                    "kernel_time_scale",
                                    "coherent",
                                    "link_peer",
                                    "link_to_host",
                                    "evict_block_ns",
                                    "free_call_ns",
                                    "free_ns_per_mib",
                                    "alloc_call_ns",
                                    "copy_call_ns",
                                    "hint_delay_ns",
                                    "record_delay_ns",
                                    "pageable_copy_gb_per_s",
                                    "device_gb_per_s",
                                    "fault_window_bytes",
                                    "fault_block_ns",
                                    NULL};

static um_backtest_t *backtest;
static um_machine_t start, machine, trial;
static uint64_t *predicted;
static atomic_uint next_run;
static um_backtest_half_t half;

static void *predict(void *unused)
{
    uint32_t i;
    char error[512];

    (void)unused;
    while ((i = atomic_fetch_add(&next_run, 1)) < backtest->n_runs) {
        if (half != UM_BACKTEST_BOTH && backtest->runs[i].half != (uint32_t)half)
            continue;
        if (um_backtest_predict(backtest, i, &trial, NULL, &predicted[i], error, sizeof error) !=
            UM_OK) {
            fprintf(stderr, "fit: %s: %s\n", backtest->runs[i].name, error);
            exit(1);
        }
    }
    return NULL;
}

static void predict_all(um_backtest_half_t which)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread[THREADS_MAX];
    int n = 0;

    half = which;
    next_run = 0;
    while (n + 1 < cores && n < THREADS_MAX && pthread_create(&thread[n], NULL, predict, NULL) == 0)
        n++;
    predict(NULL);
    while (n > 0)
        pthread_join(thread[--n], NULL);
}

/* How far a figure was moved from where it started, as the square of a logarithm. */
static double pull(const um_machine_figure_t *figure)
{
    const void *was = (const char *)&start + figure->offset;
    const void *is = (const char *)&trial + figure->offset;
    double factor = 1;

    if (figure->type == 0 && *(const double *)was > 0)
        factor = *(const double *)is / *(const double *)was;
    if (figure->type == 1 && ((const um_curve_t *)was)->n)
        factor = ((const um_curve_t *)is)->point[0].gb_per_s /
                 ((const um_curve_t *)was)->point[0].gb_per_s;
    return factor > 0 ? log(factor) * log(factor) : 0;
}

static double badness(void)
{
    double sum = 0, prior = 0;
    uint32_t n = 0;

    for (const um_machine_figure_t *f = um_machine_figures; f->name; f++)
        prior += pull(f);
    predict_all(UM_BACKTEST_FIT);
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        const um_backtest_run_t *run = &backtest->runs[i];
        double error;
        if (run->half != UM_BACKTEST_FIT)
            continue;
        error = log(((double)predicted[i] + 1) / (double)run->measured_ns);
        sum += error * error;
        n++;
    }
    return sum / (n ? n : 1) + PULL * prior;
}

/* The figure times `factor`; false = it cannot be scaled. */
static bool scale(const um_machine_figure_t *figure, double factor, um_machine_t *to)
{
    void *field = (char *)to + figure->offset;
    um_curve_t *curve = field;

    switch (figure->type) {
    case 0:
        *(double *)field = fmin(fmax(*(double *)field * factor, figure->min), figure->max);
        return true;
    case 1:
        for (uint32_t i = 0; i < curve->n; i++)
            curve->point[i].gb_per_s *= factor;
        return curve->n > 0;
    case 2:
        *(uint64_t *)field = (uint64_t)((double)*(uint64_t *)field * factor + 0.5);
        return true;
    default:
        return false;
    }
}

static bool wanted(const char *name, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    for (const char *const *f = fixed; n == 0 && *f; f++)
        if (!strcmp(*f, name))
            return false;
    return n == 0;
}

static void print_half(const char *name, um_backtest_half_t which)
{
    um_backtest_stats_t stats;

    um_backtest_stats(backtest, predicted, which, &stats);
    /* Which run of the judge half is off is not for those who fit to know. */
    printf("%-6s %3u runs: median %5.1f %%, worst %5.1f %%, pairs %u of %u\n", name, stats.runs,
           100 * stats.median_error, 100 * stats.worst_error, stats.pairs_right, stats.pairs);
}

static void print_table(void)
{
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        const um_backtest_run_t *run = &backtest->runs[i];
        if (run->half == UM_BACKTEST_FIT)
            printf("%-32s %10.3f ms measured %10.3f predicted %+7.1f %%\n", run->name,
                   (double)run->measured_ns * 1e-6, (double)predicted[i] * 1e-6,
                   100 * ((double)predicted[i] / (double)run->measured_ns - 1));
    }
}

static void descend(int passes, char **names, int n_names)
{
    double best = badness(), step = FIRST_STEP;

    printf("start: %.5f\n", best);
    for (int pass = 0; pass < passes; pass++, step = sqrt(step)) {
        for (const um_machine_figure_t *f = um_machine_figures; f->name; f++) {
            if (!wanted(f->name, names, n_names))
                continue;
            for (int up = 0; up < 2; up++) {
                double factor = up ? step : 1 / step, found;
                bool moved = false;
                for (int tries = 0; tries < 8; tries++) {
                    trial = machine;
                    if (!scale(f, factor, &trial) || (found = badness()) > best - MARGIN)
                        break;
                    best = found;
                    machine = trial;
                    moved = true;
                }
                if (moved)
                    break;
            }
        }
        printf("pass %d, step %.3f: %.5f\n", pass + 1, step, best);
        fflush(stdout);
    }
}

static json_t *curve_json(const um_curve_t *curve)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < curve->n; i++)
        json_array_append_new(array, json_pack("[I, f]", (json_int_t)curve->point[i].bytes,
                                               curve->point[i].gb_per_s));
    return array;
}

/* The machine's own file again, with the values that were moved and where they now come from. */
static int save(const um_machine_t *before, const char *path)
{
    json_t *root = json_load_file(machine.path, 0, NULL);
    json_t *figures = json_object_get(root, "figures");
    int status;

    for (const um_machine_figure_t *f = um_machine_figures; f->name; f++) {
        json_t *figure = json_object_get(figures, f->name);
        const void *field = (const char *)&machine + f->offset;
        size_t bytes = f->type == 1 ? sizeof(um_curve_t) : f->type == 3 ? sizeof(bool) : 8;
        char source[96];
        if (!memcmp((const char *)before + f->offset, field, bytes))
            continue;
        snprintf(source, sizeof source, "fitted to the fit half of the back-test of %s",
                 backtest->date);
        json_object_set_new(figure, "source", json_string(source));
        if (f->type == 0)
            json_object_set_new(figure, "value", json_real(*(const double *)field));
        else if (f->type == 2)
            json_object_set_new(figure, "value",
                                json_integer((json_int_t) * (const uint64_t *)field));
        else
            json_object_set_new(figure, "value", curve_json(field));
    }
    status = json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(root);
    return status;
}

int main(int argc, char **argv)
{
    const char *name = "h200-pcie5", *path = NULL, *output = NULL;
    um_machine_t before;
    char error[512];
    int option, passes = 6;

    while ((option = getopt(argc, argv, "m:b:o:p:")) != -1) {
        switch (option) {
        case 'm':
            name = optarg;
            break;
        case 'b':
            path = optarg;
            break;
        case 'o':
            output = optarg;
            break;
        case 'p':
            passes = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    if (um_machine_load(name, &machine, error, sizeof error) != UM_OK ||
        um_backtest_load(path, &backtest, error, sizeof error) != UM_OK) {
        fprintf(stderr, "fit: %s\n", error);
        return 2;
    }
    predicted = calloc(backtest->n_runs, sizeof *predicted);
    if (!predicted)
        return 1;
    before = start = trial = machine;
    descend(passes, argv + optind, argc - optind);
    trial = machine;
    predict_all(UM_BACKTEST_BOTH);
    print_table();
    print_half("fit", UM_BACKTEST_FIT);
    print_half("judge", UM_BACKTEST_JUDGE);
    if (output && save(&before, output) != 0) {
        fprintf(stderr, "fit: %s: cannot be written\n", output);
        return 1;
    }
    um_backtest_free(backtest);
    free(predicted);
    return 0;
}

/* backtest.c - the file of measured runs, its two halves, and what is said about the error. */
#include "backtest.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs.h"

#define SCHEMA "umrt.backtest/1"

/* Far above what is ever measured, below what would take minutes or overflow. */
#define RUNS_MAX     4096
#define JOBS_MAX     4096
#define ROUNDS_MAX   1000
#define RACERS_MAX   16
#define STREAM_MAX   63
#define REGION_MAX   ((json_int_t)1 << 40)
#define DURATION_MAX ((json_int_t)1 << 50)
#define STEPS_MAX    1e6 /* calls and touches of one run */
/* What counts as really different. */
#define PAIR_DIFFERS 1.10

typedef struct loader {
    const char *path;
    const char *run; /* the one being read, NULL before the first */
    char *error;
    size_t error_bytes;
    um_job_program_t program;
} loader_t;

static um_status_t refuse(loader_t *loader, const char *what, const char *reason)
{
    snprintf(loader->error, loader->error_bytes, "%s: %s%s%s%s%s", loader->path,
             loader->run ? loader->run : "", loader->run ? ": " : "", what, what[0] ? ": " : "",
             reason);
    return UM_ERR_FORMAT;
}

/* A whole number in [min, max]. */
static um_status_t number(loader_t *loader, const json_t *object, const char *key, json_int_t min,
                          json_int_t max, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);
    char reason[96];

    if (!json_is_integer(value))
        return refuse(loader, key, "not a whole number");
    if (json_integer_value(value) < min || json_integer_value(value) > max) {
        snprintf(reason, sizeof reason, "%lld is not in %lld..%lld",
                 (long long)json_integer_value(value), (long long)min, (long long)max);
        return refuse(loader, key, reason);
    }
    *out = (uint64_t)json_integer_value(value);
    return UM_OK;
}

static um_status_t text(loader_t *loader, const json_t *object, const char *key, char *out,
                        size_t out_bytes)
{
    const char *value = json_string_value(json_object_get(object, key));

    if (!value || !value[0])
        return refuse(loader, key, "not a text");
    if (strlen(value) >= out_bytes)
        return refuse(loader, key, "too long");
    strcpy(out, value);
    return UM_OK;
}

static um_status_t one_of(loader_t *loader, const json_t *object, const char *key,
                          const char *const *names, uint32_t *out)
{
    const char *value = json_string_value(json_object_get(object, key));

    for (uint32_t i = 0; value && names[i]; i++) {
        if (!strcmp(value, names[i])) {
            *out = i;
            return UM_OK;
        }
    }
    return refuse(loader, key, value ? value : "not a text");
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        um_status_t try_status = (call);                                                           \
        if (try_status != UM_OK)                                                                   \
            return try_status;                                                                     \
    } while (0)

static um_status_t read_job(loader_t *loader, const json_t *object, um_job_t *job)
{
    const char *const *const names[] = {[UM_JOB_HOST] = um_job_host_names,
                                        [UM_JOB_KERNEL] = um_job_kernel_names,
                                        [UM_JOB_PREFETCH] = NULL,
                                        [UM_JOB_ADVISE] = um_job_advice_names,
                                        [UM_JOB_SYNC] = NULL};
    const um_job_program_t *program = &loader->program;
    uint64_t value;
    json_int_t bytes;

    memset(job, 0, sizeof *job);
    TRY(one_of(loader, object, "op", um_job_kind_names, &job->kind));
    if (job->kind == UM_JOB_SYNC)
        return UM_OK;
    TRY(number(loader, object, "region", 0, program->n_regions - 1, &value));
    job->region = (uint32_t)value;
    bytes = (json_int_t)program->region_bytes[job->region];
    TRY(number(loader, object, "at", 0, bytes - 1, &job->at));
    TRY(number(loader, object, "bytes", 1, bytes - (json_int_t)job->at, &job->bytes));
    if (names[job->kind])
        TRY(one_of(loader, object, "name", names[job->kind], &job->what));
    if (job->kind == UM_JOB_HOST || job->kind == UM_JOB_PREFETCH)
        TRY(number(loader, object, "step", 8, REGION_MAX, &job->step));
    if (job->kind == UM_JOB_HOST || job->kind == UM_JOB_KERNEL)
        TRY(number(loader, object, "ns", 0, DURATION_MAX, &job->ns));
    if (job->kind == UM_JOB_KERNEL || job->kind == UM_JOB_PREFETCH) {
        TRY(number(loader, object, "stream", 0, STREAM_MAX, &value));
        job->stream = (uint32_t)value;
    }
    if (job->kind == UM_JOB_PREFETCH || job->kind == UM_JOB_ADVISE) {
        json_t *to = json_object_get(object, "to");
        if (!json_is_integer(to) || (json_integer_value(to) != 0 && json_integer_value(to) != -1))
            return refuse(loader, "to", "neither 0, the GPU, nor -1, the host");
        job->device = json_integer_value(to) ? UM_DEVICE_HOST : 0;
    }
    if (job->kind == UM_JOB_KERNEL && json_object_get(object, "other")) {
        TRY(number(loader, object, "other", 0, program->n_regions - 1, &value));
        job->other = (uint32_t)value;
        if (job->at + job->bytes > program->region_bytes[job->other])
            return refuse(loader, "other", "a smaller region");
    }
    job->race = json_is_true(json_object_get(object, "race"));
    return UM_OK;
}

static um_status_t read_jobs(loader_t *loader, const json_t *run, const char *key,
                             um_job_list_t *list)
{
    const json_t *array = json_object_get(run, key);
    size_t n = json_array_size(array);

    if (!json_is_array(array) || n > JOBS_MAX)
        return refuse(loader, key, "not a list of at most 4096 jobs");
    list->jobs = calloc(n ? n : 1, sizeof *list->jobs);
    if (!list->jobs)
        return UM_ERR_NO_MEMORY;
    for (list->n = 0; list->n < n; list->n++)
        TRY(read_job(loader, json_array_get(array, list->n), &list->jobs[list->n]));
    return UM_OK;
}

static double steps_of(const um_job_program_t *program, const um_job_list_t *list)
{
    double steps = 1;

    for (size_t i = 0; i < list->n; i++) {
        const um_job_t *job = &list->jobs[i];
        steps += 3;
        if (job->kind == UM_JOB_PREFETCH || (job->kind == UM_JOB_HOST && job->step > UM_PAGE_BYTES))
            steps += (double)job->bytes / (double)job->step;
        if (job->kind == UM_JOB_KERNEL)
            steps += (double)job->bytes / UM_PAGE_BYTES / 100;
        if (job->race)
            steps += (double)job->bytes / (double)program->piece_bytes;
    }
    return steps;
}

static um_status_t read_regions(loader_t *loader, const json_t *run)
{
    const json_t *array = json_object_get(run, "regions");
    um_job_program_t *program = &loader->program;

    if (json_array_size(array) < 1 || json_array_size(array) > UM_JOB_REGIONS_MAX)
        return refuse(loader, "regions", "not a list of 1 to 64 sizes");
    program->n_regions = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < program->n_regions; i++) {
        const json_t *bytes = json_array_get(array, i);
        if (!json_is_integer(bytes) || json_integer_value(bytes) < UM_PAGE_BYTES ||
            json_integer_value(bytes) > REGION_MAX)
            return refuse(loader, "regions", "a size below one page or over 1 TiB");
        program->region_bytes[i] = (uint64_t)json_integer_value(bytes);
    }
    return UM_OK;
}

static um_status_t read_run(loader_t *loader, const json_t *object, um_backtest_run_t *run)
{
    um_job_program_t *program = &loader->program;
    uint64_t warm, rounds;

    TRY(text(loader, object, "run", run->name, sizeof run->name));
    loader->run = program->name = run->name;
    TRY(text(loader, object, "pattern", run->pattern, sizeof run->pattern));
    TRY(text(loader, object, "variant", run->variant, sizeof run->variant));
    TRY(number(loader, object, "bytes", 1, REGION_MAX, &run->bytes));
    TRY(number(loader, object, "median_ns", 1, DURATION_MAX, &run->measured_ns));
    TRY(number(loader, object, "q1_ns", 1, (json_int_t)run->measured_ns, &run->q1_ns));
    TRY(number(loader, object, "q3_ns", (json_int_t)run->measured_ns, DURATION_MAX, &run->q3_ns));
    TRY(number(loader, object, "warm", 0, ROUNDS_MAX, &warm));
    TRY(number(loader, object, "iterations", 1, ROUNDS_MAX, &rounds));
    TRY(read_regions(loader, object));
    TRY(read_jobs(loader, object, "setup", &program->setup));
    TRY(read_jobs(loader, object, "body", &program->body));
    if (steps_of(program, &program->setup) +
            (double)(warm + rounds) * steps_of(program, &program->body) >
        STEPS_MAX)
        return refuse(loader, "body", "more than a million steps");
    TRY(um_job_workload(program, (uint32_t)warm, (uint32_t)warm, &run->before, loader->error,
                        loader->error_bytes));
    return um_job_workload(program, (uint32_t)warm, (uint32_t)(warm + rounds), &run->whole,
                           loader->error, loader->error_bytes);
}

static uint64_t fnv1a(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

static int by_hash(const void *a, const void *b)
{
    const um_backtest_run_t *const *left = a, *const *right = b;
    uint64_t x = fnv1a((*left)->name), y = fnv1a((*right)->name);

    return x < y ? -1 : x > y ? 1 : strcmp((*left)->name, (*right)->name);
}

/* Halves and groups; refuses two runs of one name. */
static um_status_t sort_out(loader_t *loader, um_backtest_t *backtest)
{
    um_backtest_run_t **sorted = calloc(backtest->n_runs, sizeof(*sorted));
    um_status_t status = UM_OK;
    uint32_t groups = 0;

    if (!sorted)
        return UM_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        um_backtest_run_t *run = sorted[i] = &backtest->runs[i];
        run->group = groups;
        for (uint32_t j = 0; j < i; j++) {
            if (backtest->runs[j].bytes == run->bytes &&
                !strcmp(backtest->runs[j].pattern, run->pattern))
                run->group = backtest->runs[j].group;
        }
        groups += run->group == groups;
    }
    qsort(sorted, backtest->n_runs, sizeof(*sorted), by_hash);
    loader->run = NULL;
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        sorted[i]->half = i % 2 || backtest->held_out ? UM_BACKTEST_JUDGE : UM_BACKTEST_FIT;
        if (i && !strcmp(sorted[i]->name, sorted[i - 1]->name))
            status = refuse(loader, sorted[i]->name, "there twice");
    }
    free(sorted);
    return status;
}

static um_status_t read_all(loader_t *loader, const json_t *root, um_backtest_t *backtest)
{
    const json_t *runs = json_object_get(root, "runs");
    const char *schema = json_string_value(json_object_get(root, "schema"));
    uint64_t racers;

    if (!schema || strcmp(schema, SCHEMA))
        return refuse(loader, "schema", "not " SCHEMA);
    TRY(text(loader, root, "date", backtest->date, sizeof backtest->date));
    TRY(text(loader, root, "gpu", backtest->gpu, sizeof backtest->gpu));
    TRY(text(loader, root, "driver", backtest->driver, sizeof backtest->driver));
    TRY(number(loader, root, "piece_bytes", UM_PAGE_BYTES, REGION_MAX,
               &loader->program.piece_bytes));
    TRY(number(loader, root, "racers", 1, RACERS_MAX, &racers));
    loader->program.racers = (uint32_t)racers;
    backtest->held_out = json_is_true(json_object_get(root, "held_out"));
    loader->program.gpu = backtest->gpu;
    if (json_array_size(runs) < 1 || json_array_size(runs) > RUNS_MAX)
        return refuse(loader, "runs", "not a list of 1 to 4096 runs");
    backtest->runs = calloc(json_array_size(runs), sizeof *backtest->runs);
    if (!backtest->runs)
        return UM_ERR_NO_MEMORY;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        um_status_t status;
        backtest->n_runs++;
        status = read_run(loader, json_array_get(runs, i), &backtest->runs[i]);
        free(loader->program.setup.jobs);
        free(loader->program.body.jobs);
        loader->program.setup = loader->program.body = (um_job_list_t){0};
        if (status != UM_OK)
            return status;
    }
    return sort_out(loader, backtest);
}

/* In the order in which they are looked at; the last is named when there is none. */
static const char *default_path(void)
{
    const char *path = getenv("UMRT_BACKTEST");

    if (path && path[0])
        return path;
    return access(UM_BACKTEST_FILE, R_OK) == 0 ? UM_BACKTEST_FILE : UM_BACKTEST_SOURCE_FILE;
}

um_status_t um_backtest_load(const char *path, um_backtest_t **out, char *error, size_t error_bytes)
{
    loader_t loader = {.path = path ? path : default_path(),
                       .error = error,
                       .error_bytes = error_bytes};
    um_backtest_t *backtest = calloc(1, sizeof *backtest);
    json_error_t json_error;
    um_status_t status = UM_OK;
    json_t *root = NULL;
    FILE *file = NULL;

    error[0] = '\0';
    if (!backtest) {
        status = UM_ERR_NO_MEMORY;
        goto done;
    }
    snprintf(backtest->path, sizeof backtest->path, "%s", loader.path);
    file = fopen(loader.path, "re");
    if (!file) {
        snprintf(error, error_bytes, "%s: %s", loader.path, strerror(errno));
        status = UM_ERR_IO;
        goto done;
    }
    root = json_loadf(file, JSON_REJECT_DUPLICATES, &json_error);
    if (!root) {
        snprintf(error, error_bytes, "%s:%d: %s", loader.path, json_error.line, json_error.text);
        status = UM_ERR_FORMAT;
        goto done;
    }
    status = read_all(&loader, root, backtest);
done:
    if (status == UM_ERR_NO_MEMORY && !error[0])
        snprintf(error, error_bytes, "%s: %s", loader.path, um_status_string(status));
    if (file)
        fclose(file);
    json_decref(root);
    if (status == UM_OK)
        *out = backtest;
    else
        um_backtest_free(backtest);
    return status;
}

void um_backtest_free(um_backtest_t *backtest)
{
    if (!backtest)
        return;
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        um_workload_free(backtest->runs[i].before);
        um_workload_free(backtest->runs[i].whole);
    }
    free(backtest->runs);
    free(backtest);
}

um_status_t um_backtest_predict(const um_backtest_t *backtest, uint32_t run,
                                const um_machine_t *machine, const um_uvm_params_t *params,
                                uint64_t *out_ns, char *error, size_t error_bytes)
{
    um_sim_config_t config = {.machine = machine,
                              .policy = um_policy_find("app"),
                              .params = params};
    um_sim_result_t before, whole;

    if (run >= backtest->n_runs || !config.policy) {
        snprintf(error, error_bytes, "%s: no such run or policy", backtest->path);
        return UM_ERR_INVALID;
    }
    config.workload = backtest->runs[run].before;
    TRY(um_sim_run(&config, &before, error, error_bytes));
    config.workload = backtest->runs[run].whole;
    TRY(um_sim_run(&config, &whole, error, error_bytes));
    *out_ns = whole.total_ns > before.total_ns ? whole.total_ns - before.total_ns : 0;
    return UM_OK;
}

static bool in_half(const um_backtest_run_t *run, um_backtest_half_t half)
{
    return half == UM_BACKTEST_BOTH || run->half == half;
}

static bool really_differ(const um_backtest_run_t *a, const um_backtest_run_t *b)
{
    const um_backtest_run_t *low = a->measured_ns < b->measured_ns ? a : b,
                            *high = low == a ? b : a;

    return (double)high->measured_ns > PAIR_DIFFERS * (double)low->measured_ns &&
           high->q1_ns > low->q3_ns;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void um_backtest_stats(const um_backtest_t *backtest, const uint64_t *predicted_ns,
                       um_backtest_half_t half, um_backtest_stats_t *out)
{
    double errors[RUNS_MAX];

    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        const um_backtest_run_t *a = &backtest->runs[i];
        double error;
        if (!in_half(a, half))
            continue;
        error = fabs((double)predicted_ns[i] - (double)a->measured_ns) / (double)a->measured_ns;
        if (!out->runs || error > out->worst_error) {
            out->worst_error = error;
            out->worst_run = i;
        }
        errors[out->runs++] = error;
        for (uint32_t j = 0; j < i; j++) {
            const um_backtest_run_t *b = &backtest->runs[j];
            if (b->group != a->group || !in_half(b, half) || !really_differ(a, b))
                continue;
            out->pairs++;
            out->pairs_right += a->measured_ns < b->measured_ns ? predicted_ns[i] < predicted_ns[j]
                                                                : predicted_ns[i] > predicted_ns[j];
        }
    }
    qsort(errors, out->runs, sizeof errors[0], by_value);
    if (out->runs)
        out->median_error = (errors[(out->runs - 1) / 2] + errors[out->runs / 2]) / 2;
}

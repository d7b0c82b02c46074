/* gen.c - a pattern's events, into a file or into a workload. */
#include "gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen_program.h"
#include "um_trace.h"
#include "workload_load.h"

#define ITERATIONS_MAX 1000000u
#define GPUS_MAX       8u

const um_gen_pattern_t *um_gen_find(const char *name)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

um_status_t um_gen_complete(const um_gen_pattern_t *pattern, um_gen_options_t *options, char *error,
                            size_t error_bytes)
{
    const um_gen_options_t *d = &pattern->defaults;
    const char *wrong = NULL;

    if (options->gpus > 1 && d->gpus <= 1)
        wrong = "runs on one GPU";
    options->bytes = options->bytes ? options->bytes : d->bytes;
    options->iterations = options->iterations ? options->iterations : d->iterations;
    options->gpus = options->gpus ? options->gpus : d->gpus;
    /* Where nothing is drawn by lot every seed gives the same. */
    options->seed = !d->seed || !options->seed ? d->seed : options->seed;
    options->compute = options->compute != 0 ? options->compute : d->compute;
    if (options->bytes < UM_GEN_BYTES_MIN || options->bytes > UM_GEN_BYTES_MAX)
        wrong = "takes 1 MiB to 64 TiB";
    else if (options->iterations > ITERATIONS_MAX)
        wrong = "takes 1 to 1,000,000 iterations";
    else if (options->gpus > GPUS_MAX)
        wrong = "takes at most 8 GPUs";
    else if (!(options->compute >= 1e-3 && options->compute <= 1e6))
        wrong = "takes a compute factor of 0.001 to 1,000,000";
    if (!wrong)
        return UM_OK;
    if (error)
        snprintf(error, error_bytes, "%s %s", pattern->name, wrong);
    return UM_ERR_INVALID;
}

um_status_t um_gen_events(const um_gen_pattern_t *pattern, const um_gen_options_t *options,
                          um_event_fn fn, void *ctx)
{
    return um_gen_run(options, pattern->run, fn, ctx);
}

/* ---- files ------------------------------------------------------------------------------------- */

typedef struct writing {
    um_trace_writer_t *writer;
    um_status_t status;
} writing_t;

static void write_event(void *ctx, const um_event_t *event)
{
    writing_t *w = ctx;

    if (w->status == UM_OK)
        w->status = um_trace_writer_put(w->writer, event);
}

um_status_t um_gen_file(const um_gen_pattern_t *pattern, const um_gen_options_t *options,
                        const char *version, const char *path)
{
    char text[256], command[320];
    um_ev_fact_t facts[] = {{"umrt.version", version},
                            {"process.command", command},
                            {"um.tracing", "off"},
                            {"um.tracing.evidence",
                             "a made-up program, of which only accesses are told"},
                            {"workload.accesses", "exact"},
                            {"workload.pattern", pattern->name},
                            {"workload.options", text}};
    writing_t w = {.status = UM_OK};
    um_status_t made, closed;
    int n;

    n = snprintf(text, sizeof text, "--size=%" PRIu64 " --iterations=%" PRIu32 " --compute=%.6g",
                 options->bytes, options->iterations, options->compute);
    if (options->seed)
        n += snprintf(text + n, sizeof text - (size_t)n, " --seed=%" PRIu64, options->seed);
    if (options->gpus > 1)
        snprintf(text + n, sizeof text - (size_t)n, " --gpus=%" PRIu32, options->gpus);
    snprintf(command, sizeof command, "umrt gen %s %s", pattern->name, text);
    w.status = um_trace_writer_open(path, facts, sizeof facts / sizeof facts[0], NULL, &w.writer);
    if (w.status != UM_OK)
        return w.status;
    made = um_gen_events(pattern, options, write_event, &w);
    closed = um_trace_writer_close(w.writer);
    if (made != UM_OK)
        return made;
    return w.status != UM_OK ? w.status : closed;
}

/* ---- workloads --------------------------------------------------------------------------------- */

static void load_event(void *ctx, const um_event_t *event)
{
    um_workload_loader_event(ctx, event);
}

um_status_t um_gen_workload(const char *pattern, const um_gen_options_t *options,
                            um_workload_t **out)
{
    const um_gen_pattern_t *p = um_gen_find(pattern);
    um_gen_options_t complete = options ? *options : (um_gen_options_t){0};
    um_workload_loader_t *loader;
    um_status_t status;

    if (!p)
        return UM_ERR_NOT_FOUND;
    status = um_gen_complete(p, &complete, NULL, 0);
    if (status == UM_OK)
        status = um_workload_loader_new(p->name, UM_WORKLOAD_GENERATED, false, &loader);
    if (status != UM_OK)
        return status;
    status = um_gen_events(p, &complete, load_event, loader);
    if (status == UM_OK)
        return um_workload_loader_finish(loader, out, NULL, 0);
    um_workload_loader_drop(loader);
    return status;
}

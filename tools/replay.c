/* umrt replay: what each policy would do for the programs of these traces. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "sim/ranks.h"
#include "sim/replay.h"
#include "sim/streams.h"
#include "trace/import.h"
#include "um_tools.h"
#include "um_trace.h"

#define DEFAULT_MACHINE "h200-pcie5"
#define ERROR_BYTES     1024

/* Everything between the command line and the tables. */
typedef struct um_replaying {
    const um_replay_args_t *args;
    um_ranks_t ranks;
    um_replay_file_t *files;
    char (*damage)[ERROR_BYTES]; /* of each file, a line; "" = none */
    um_workload_t **workloads;
    um_machine_t *own;      /* each workload's, where no machine was asked for */
    um_streams_t **limited; /* of each file, for each number of streams; NULL = as recorded */
    const um_policy_t **policies;
    um_sweep_t sweep;
    bool damaged;
} um_replaying_t;

/* ---- inputs ------------------------------------------------------------------------------------- */

static int fail(um_status_t status, char *error, const char *what)
{
    if (!*error)
        snprintf(error, ERROR_BYTES, "%s: %s", what, um_status_string(status));
    return status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
}

/* The driver's parameters: as asked for, else as the trace's header has them, else the defaults. */
static um_uvm_params_t params_of(const um_replay_args_t *args, const char *path)
{
    um_uvm_params_t params = args->params;
    um_trace_reader_t *reader;

    if (um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, NULL, 0) != UM_OK)
        return params;
    for (unsigned i = 0; um_uvm_param_table[i].name; i++) {
        const um_uvm_param_t *param = &um_uvm_param_table[i];
        const char *value;
        char key[64], *end;
        unsigned long long recorded;

        snprintf(key, sizeof(key), "uvm.%s", param->name);
        value = um_trace_reader_fact(reader, key);
        if (!value || *value < '0' || *value > '9' || args->params_set & 1u << i)
            continue;
        recorded = strtoull(value, &end, 10);
        if (!*end) /* one outside its range stays what it was */
            um_uvm_param_set(&params, param, recorded);
    }
    um_trace_reader_close(reader);
    return params;
}

/* Nothing tells what the kernels touch of the managed memory that there is: a trace of `umrt run`. */
static bool is_blind(const um_workload_t *w)
{
    return w->kind == UM_WORKLOAD_RECORDED && w->n_touches == 0 && w->managed_peak_bytes > 0;
}

static int load_file(um_replaying_t *r, size_t f, char *error)
{
    const char *path = r->args->paths[f];
    um_import_kind_t kind;
    bool whole = true;
    um_status_t status = um_input_check_trace(path, error, ERROR_BYTES);

    if (!status)
        status = um_import_recognise(path, &kind, error, ERROR_BYTES);
    if (!status && kind != UM_IMPORT_UMT) {
        snprintf(error, ERROR_BYTES, "%s: is of %s; make a trace of it first: umrt import %s", path,
                 um_import_kind_name(kind), path);
        return UM_EXIT_USAGE;
    }
    if (!status)
        status = um_workload_load(path, &r->workloads[f], &whole, error, ERROR_BYTES);
    if (status)
        return fail(status, error, path);
    if (!whole)
        strcpy(r->damage[f], error);
    *error = '\0';
    r->files[f] = (um_replay_file_t){path, r->workloads[f], whole, params_of(r->args, path)};
    r->damaged = r->damaged || !whole;
    if (!is_blind(r->workloads[f]))
        return UM_EXIT_OK;
    snprintf(error, ERROR_BYTES,
             "%s: has no faults and no migrations, so what its program touches is not known; "
             "'umrt record' makes a trace with them, --deep one with every touch",
             path);
    return UM_EXIT_USAGE;
}

static int load_own_machine(um_replaying_t *r, size_t f, char *error)
{
    const char *gpu = r->workloads[f]->source_gpu;
    um_status_t status = *gpu ? um_machine_for_gpu(gpu, &r->own[f]) : UM_ERR_NOT_FOUND;

    if (status == UM_ERR_NOT_FOUND)
        status = um_machine_load(DEFAULT_MACHINE, &r->own[f], error, ERROR_BYTES);
    return status ? fail(status, error, r->args->paths[f]) : UM_EXIT_OK;
}

static int load(um_replaying_t *r, char *error)
{
    const um_replay_args_t *args = r->args;
    int status = UM_EXIT_OK;

    r->files = calloc(args->n_paths, sizeof(*r->files));
    r->damage = calloc(args->n_paths, sizeof(*r->damage));
    r->workloads = calloc(args->n_paths, sizeof(*r->workloads));
    r->own = calloc(args->n_paths, sizeof(*r->own));
    r->limited = calloc(args->n_paths * args->n_streams, sizeof(*r->limited));
    if (!r->files || !r->damage || !r->workloads || !r->own || !r->limited)
        return fail(UM_ERR_NO_MEMORY, error, "replay");
    for (size_t f = 0; f < args->n_paths && status == UM_EXIT_OK; f++) {
        status = load_file(r, f, error);
        if (status == UM_EXIT_OK && !args->n_machines)
            status = load_own_machine(r, f, error);
        for (size_t s = 0; s < args->n_streams && status == UM_EXIT_OK; s++) {
            um_streams_t **limited = &r->limited[f * args->n_streams + s];

            if (args->streams[s] && um_streams_limit(r->workloads[f], args->streams[s], limited))
                status = fail(UM_ERR_NO_MEMORY, error, "replay");
        }
    }
    return status;
}

/* ---- what is to be simulated -------------------------------------------------------------------- */

static bool has_hints(const um_replaying_t *r)
{
    for (size_t f = 0; f < r->args->n_paths; f++) {
        const um_workload_t *w = r->workloads[f];

        for (uint64_t i = 0; i < w->n_steps; i++) {
            if (w->steps[i].event && w->steps[i].event->type == UM_EV_HINT)
                return true;
        }
    }
    return false;
}

static void add_policy(um_replaying_t *r, const um_policy_t *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < r->sweep.n_policies; i++) {
        if (r->policies[i] == policy)
            return;
    }
    r->policies[r->sweep.n_policies++] = policy;
}

/* Every table begins with what they are measured by. */
static int choose_policies(um_replaying_t *r, char *error)
{
    r->policies = calloc(r->args->n_policies + 6, sizeof(*r->policies));
    if (!r->policies)
        return fail(UM_ERR_NO_MEMORY, error, "replay");
    add_policy(r, um_policy_find("none"));
    add_policy(r, um_policy_find("driver"));
    for (size_t i = 0; i < r->args->n_policies; i++)
        add_policy(r, r->args->policies[i]);
    if (!r->args->n_policies) {
        if (has_hints(r))
            add_policy(r, um_policy_find("app"));
        add_policy(r, um_policy_find("run"));
        add_policy(r, um_policy_find("umrt"));
        add_policy(r, um_policy_find("oracle"));
    }
    r->sweep.policies = r->policies;
    return UM_EXIT_OK;
}

static int add_group(um_replaying_t *r, size_t f, const um_machine_t *machine, size_t s, size_t c,
                     char *error)
{
    const um_replay_args_t *args = r->args;
    const um_streams_t *limited = r->limited[f * args->n_streams + s];
    const um_workload_t *w = limited ? um_streams_workload(limited) : r->workloads[f];
    um_sweep_group_t *group = &r->sweep.groups[r->sweep.n_groups++];

    *group = (um_sweep_group_t){
        .file = (uint32_t)f,
        .workload = w,
        .machine = machine,
        .capacity = &args->capacities[c],
        .gpu_bytes = um_capacity_bytes(&args->capacities[c], w, machine),
        .streams = args->streams[s],
        .params = &r->files[f].params,
    };
    if (group->gpu_bytes >= UM_BLOCK_BYTES)
        return UM_EXIT_OK;
    snprintf(error, ERROR_BYTES, "%s: --gpu-mem %s is less than one block of 2 MiB", args->paths[f],
             args->capacities[c].text);
    return UM_EXIT_USAGE;
}

static int plan(um_replaying_t *r, char *error)
{
    const um_replay_args_t *args = r->args;
    size_t n_machines = args->n_machines ? args->n_machines : 1;
    int status = choose_policies(r, error);

    r->sweep.groups = calloc(args->n_paths * n_machines * args->n_streams * args->n_capacities,
                             sizeof(*r->sweep.groups));
    if (!r->sweep.groups)
        return fail(UM_ERR_NO_MEMORY, error, "replay");
    for (size_t f = 0; f < args->n_paths; f++)
        for (size_t m = 0; m < n_machines; m++)
            for (size_t s = 0; s < args->n_streams; s++)
                for (size_t c = 0; c < args->n_capacities && status == UM_EXIT_OK; c++)
                    status = add_group(r, f, args->n_machines ? &args->machines[m] : &r->own[f], s,
                                       c, error);
    return status;
}

/* ---- running ------------------------------------------------------------------------------------ */

static int simulate(um_replaying_t *r, char *error)
{
    const um_sweep_options_t options = {
        .threads = r->args->threads,
        .rank = r->ranks.rank,
        .size = r->ranks.size,
        .progress = r->args->no_terminal ? NULL : um_progress_simulating,
    };
    um_status_t status = um_sweep_run(&r->sweep, &options);

    return status ? fail(status, error, "replay") : UM_EXIT_OK;
}

/* ---- results ------------------------------------------------------------------------------------ */

/* The line is said here. */
static int write_page(const um_replay_t *replay, const char *path)
{
    um_output_t output;
    um_status_t status;
    int exit_status = um_output_open(&output, path, "<!DOCTYPE html>", "a page");

    if (exit_status != UM_EXIT_OK)
        return exit_status;
    status = um_replay_html(replay, output.file);
    if (status)
        um_say("%s: %s", path, um_status_string(status));
    return um_output_close(&output, status ? UM_EXIT_FAILED : UM_EXIT_OK);
}

static int show(um_replaying_t *r, char *error)
{
    const um_replay_t replay = {r->files, r->args->n_paths, &r->sweep};
    um_emitter_t *e;
    size_t group = 0;
    const um_outcome_t *failed = um_sweep_failed(&r->sweep, &group);
    um_status_t status;

    if (failed) {
        const char *path = r->args->paths[r->sweep.groups[group].file];

        snprintf(error, ERROR_BYTES, "%s: %s", path,
                 *failed->error ? failed->error : um_status_string(failed->status));
        return fail(failed->status, error, path);
    }
    if (r->args->html && write_page(&replay, r->args->html) != UM_EXIT_OK)
        return UM_EXIT_FAILED;
    status = um_emitter_open(&r->args->report, stdout, &e);
    if (status)
        return fail(status, error, "replay");
    um_replay_print(&replay, e);
    status = um_emitter_close(e);
    if (status == UM_ERR_IO) /* said by um_say_end */
        return UM_EXIT_FAILED;
    return status ? fail(status, error, "replay") : r->damaged ? UM_EXIT_USAGE : UM_EXIT_OK;
}

static void say_damage(const um_replaying_t *r)
{
    for (size_t f = 0; r->damage && f < r->args->n_paths; f++) {
        if (*r->damage[f])
            um_say("%s", r->damage[f]);
    }
}

static void release(um_replaying_t *r)
{
    for (size_t i = 0; r->limited && i < r->args->n_paths * r->args->n_streams; i++)
        um_streams_free(r->limited[i]);
    for (size_t f = 0; r->workloads && f < r->args->n_paths; f++)
        um_workload_free(r->workloads[f]);
    um_sweep_fini(&r->sweep);
    free(r->sweep.groups);
    free(r->policies);
    free(r->limited);
    free(r->own);
    free(r->workloads);
    free(r->damage);
    free(r->files);
}

/* Ranks go through the same steps; where one of them fails all end, and the first of those says why. */
static int replay(const um_replay_args_t *args, const um_ranks_t *ranks)
{
    um_replaying_t r = {.args = args, .ranks = *ranks};
    char error[ERROR_BYTES] = "";
    int status = load(&r, error);
    uint32_t failed;

    if (status == UM_EXIT_OK)
        status = plan(&r, error);
    if (status == UM_EXIT_OK)
        status = simulate(&r, error);
    failed = um_ranks_first(ranks, status != UM_EXIT_OK);
    if (failed == UM_RANKS_NONE) {
        if (um_ranks_gather(ranks, &r.sweep))
            status = UM_EXIT_FAILED;
        else if (ranks->rank == 0)
            status = show(&r, error);
        if (*error)
            um_say("%s", error);
    } else if (failed == ranks->rank) {
        um_say("%s", error);
    }
    if (ranks->rank == (failed == UM_RANKS_NONE ? 0 : failed))
        say_damage(&r);
    release(&r);
    return status;
}

int um_cmd_replay(int argc, char **argv)
{
    um_replay_args_t args = {0};
    um_ranks_t ranks;
    bool done;
    int status;

    um_ranks_begin(&ranks);
    args.silent = ranks.rank != 0;
    args.no_terminal = ranks.launched;
    status = um_replay_args_parse(argc, argv, &args, &done);
    if (status == UM_EXIT_OK && !done) {
        if (ranks.lonely)
            um_say("replay: this umrt is built without MPI: every rank does all of it");
        if (args.backtest)
            status = ranks.rank == 0 ? um_replay_backtest(&args, args.n_paths ? *args.paths : NULL)
                                     : UM_EXIT_OK;
        else if (args.open)
            status = ranks.rank == 0 ? um_replay_open(&args) : UM_EXIT_OK;
        else
            status = replay(&args, &ranks);
    }
    um_replay_args_free(&args);
    um_ranks_end(&ranks);
    return status;
}

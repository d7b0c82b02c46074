/* The tables of `umrt replay`: said once, for text and JSON. */
#include "replay.h"

#include <inttypes.h>
#include <string.h>

#include "report/units.h"

const um_column_t um_replay_columns[UM_REPLAY_COLUMNS] = {
    {.key = "policy", .title = "policy", .left = true},
    {.key = "time_ns", .title = "time"},
    {.key = "time_error_ns", .title = "+-", .hide = "-"},
    {.key = "speedup", .title = "speed-up"},
    {.key = "time_to_least", .title = "/least time"},
    {.key = "bytes_to_least", .title = "/least bytes"},
    {.key = "bytes_to_device", .title = "to GPU"},
    {.key = "bytes_to_host", .title = "to host"},
    {.key = "bytes_peer", .title = "GPU-GPU", .hide = "0 B"},
    {.key = "bytes_remote", .title = "remote", .hide = "0 B"},
    {.key = "gpu_faults", .title = "faults", .spare = true},
    {.key = "cpu_faults", .title = "by CPU", .spare = true},
    {.key = "evicted_blocks", .title = "evicted", .spare = true},
    {.key = "wasted_bytes", .title = "wasted", .spare = true},
    {.key = "late_bytes", .title = "late", .spare = true},
    {.key = "hints", .title = NULL},
    {.key = "hints_refused", .title = NULL},
    {.key = "stall_ns", .title = NULL},
};

static size_t policy_index(const um_sweep_t *sweep, const char *name)
{
    size_t i = 0;

    while (i < sweep->n_policies && strcmp(sweep->policies[i]->name, name) != 0)
        i++;
    return i;
}

/* a / b in thousandths; "-" where there is nothing to compare with. */
static um_value_t ratio(uint64_t a, uint64_t b)
{
    if (b == 0)
        return a == 0 ? um_ratio(1000) : um_none();
    return um_ratio((uint64_t)((double)a / (double)b * 1000 + 0.5));
}

const um_error_bar_t *um_error_bar_find(const um_machine_t *machine)
{
    for (const um_error_bar_t *bar = um_error_bars; bar->machine; bar++) {
        if (!strcmp(bar->machine, machine->name))
            return bar;
    }
    return NULL;
}

void um_replay_row(const um_replay_t *replay, size_t group, size_t policy,
                   um_value_t row[UM_REPLAY_COLUMNS])
{
    const um_sweep_t *sweep = replay->sweep;
    const um_sim_result_t *r = um_sweep_result(sweep, group, policy);
    const um_bounds_t *least = um_sweep_bounds(sweep, group);
    const um_error_bar_t *bar = um_error_bar_find(sweep->groups[group].machine);
    size_t driver = policy_index(sweep, "driver");
    uint64_t moved = r->bytes_to_device + r->bytes_to_host + r->bytes_peer + r->bytes_remote;
    const um_value_t values[UM_REPLAY_COLUMNS] = {
        um_text(sweep->policies[policy]->name),
        um_ns(r->total_ns),
        bar ? um_ns(r->total_ns / 100 * bar->median_percent) : um_none(),
        driver < sweep->n_policies
            ? ratio(um_sweep_result(sweep, group, driver)->total_ns, r->total_ns)
            : um_none(),
        ratio(r->total_ns, least->least_ns),
        ratio(moved, least->least_bytes),
        um_bytes(r->bytes_to_device),
        um_bytes(r->bytes_to_host),
        um_bytes(r->bytes_peer),
        um_bytes(r->bytes_remote),
        um_count(r->gpu_faults),
        um_count(r->cpu_faults),
        um_count(r->evicted_blocks),
        um_bytes(r->wasted_bytes),
        um_bytes(r->late_bytes),
        um_count(r->hints),
        um_count(r->hints_refused),
        um_ns(r->stall_ns),
    };

    memcpy(row, values, sizeof(values));
}

void um_replay_title(const um_sweep_group_t *group, char *out, size_t bytes)
{
    char memory[32], streams[48] = "";
    const char *of = "";

    um_units_bytes(group->gpu_bytes, memory, sizeof(memory));
    if (group->capacity->kind == UM_CAPACITY_PERCENT)
        of = " of the managed peak";
    else if (group->capacity->kind == UM_CAPACITY_MACHINE)
        of = "all of it";
    if (group->streams)
        snprintf(streams, sizeof(streams), ", at most %" PRIu32 " stream%s side by side",
                 group->streams, group->streams > 1 ? "s" : "");
    snprintf(out, bytes, "%s, %s of GPU memory (%s%s)%s", group->machine->name, memory,
             group->capacity->kind == UM_CAPACITY_MACHINE ? "" : group->capacity->text, of,
             streams);
}

void um_replay_trust(const um_sweep_group_t *group, char *out, size_t bytes)
{
    const um_machine_t *machine = group->machine;
    const um_error_bar_t *bar = um_error_bar_find(machine);
    bool evicts = group->gpu_bytes < group->workload->memory_peak_bytes;

    if (bar)
        snprintf(out, bytes,
                 "of %" PRIu32 " runs measured on such a machine, half were within %" PRIu32
                 " %% of what the model says and all within %" PRIu32 " %%; +- is the former%s",
                 bar->runs, bar->median_percent, bar->worst_percent,
                 evicts ? ". None of them had too little memory: evictions were never measured"
                        : "");
    else
        snprintf(out, bytes,
                 "never compared with a real machine; %" PRIu32
                 " figures of its description are estimates: trust the order, not the times",
                 machine->estimates);
}

static void print_group(const um_replay_t *replay, um_emitter_t *e, size_t g)
{
    const um_sweep_t *sweep = replay->sweep;
    const um_sweep_group_t *group = &sweep->groups[g];
    const um_bounds_t *least = um_sweep_bounds(sweep, g);
    const um_error_bar_t *bar = um_error_bar_find(group->machine);
    um_value_t row[UM_REPLAY_COLUMNS];
    char text[256], ns[32], moved[32], in[32], back[32];

    um_emitter_object(e, NULL);
    um_replay_title(group, text, sizeof(text));
    um_emitter_heading(e, text);
    um_emitter_pair(e, "machine", NULL, um_text(group->machine->name));
    um_emitter_pair(e, "estimates", NULL, um_count(group->machine->estimates));
    um_emitter_pair(e, "gpu_mem", NULL, um_text(group->capacity->text));
    um_emitter_pair(e, "gpu_bytes", NULL, um_bytes(group->gpu_bytes));
    um_emitter_pair(e, "streams", NULL, um_count(group->streams));
    um_emitter_pair(e, "least_ns", NULL, um_ns(least->least_ns));
    um_emitter_pair(e, "least_bytes", NULL, um_bytes(least->least_bytes));
    um_emitter_pair(e, "least_to_device_bytes", NULL, um_bytes(least->least_to_device));
    um_emitter_pair(e, "least_to_host_bytes", NULL, um_bytes(least->least_to_host));
    um_emitter_pair(e, "error_median_percent", NULL,
                    bar ? um_percent(bar->median_percent) : um_none());
    um_emitter_pair(e, "error_worst_percent", NULL,
                    bar ? um_percent(bar->worst_percent) : um_none());
    um_emitter_pair(e, "error_runs", NULL, um_count(bar ? bar->runs : 0));
    um_units_ns(least->least_ns, ns, sizeof(ns));
    um_units_bytes(least->least_bytes, moved, sizeof(moved));
    um_units_bytes(least->least_to_device, in, sizeof(in));
    um_units_bytes(least->least_to_host, back, sizeof(back));
    snprintf(text, sizeof(text), "%s; %s moved, %s to the GPU and %s to the host", ns, moved, in,
             back);
    um_emitter_wrap(e, "at least", text);
    um_replay_trust(group, text, sizeof(text));
    um_emitter_wrap(e, "times", text);
    um_emitter_table(e, "results", um_replay_columns, UM_REPLAY_COLUMNS);
    for (size_t p = 0; p < sweep->n_policies; p++) {
        um_replay_row(replay, g, p, row);
        um_emitter_row(e, row);
    }
    um_emitter_table_end(e, 0);
    um_emitter_end(e);
}

/* The driver's parameters: all of them for programs, those that are not the default for people. */
static void print_params(um_emitter_t *e, const um_uvm_params_t *params)
{
    char text[1024] = "";

    um_emitter_object(e, "uvm");
    for (const um_uvm_param_t *param = um_uvm_param_table; param->name; param++) {
        uint64_t value = um_uvm_param(params, param);
        size_t used = strlen(text);

        um_emitter_pair(e, param->name, NULL, um_count(value));
        if (value != param->fallback)
            snprintf(text + used, sizeof(text) - used, "%s%s=%" PRIu64 " (default %" PRIu64 ")",
                     used ? ", " : "", param->name, value, param->fallback);
    }
    um_emitter_end(e);
    if (*text)
        um_emitter_wrap(e, "uvm", text);
}

static void print_file(const um_replay_t *replay, um_emitter_t *e, size_t f)
{
    const um_replay_file_t *file = &replay->files[f];
    const um_workload_t *w = file->workload;
    const um_sweep_t *sweep = replay->sweep;
    char text[256], launches[32], peak[32], touched[32];

    um_emitter_object(e, NULL);
    um_emitter_pair(e, "path", "replay of", um_text(file->path));
    um_emitter_pair(e, "name", NULL, um_text(w->name));
    um_emitter_pair(e, "kind", NULL, um_text(um_workload_kind_name(w->kind)));
    um_emitter_pair(e, "means", um_workload_kind_name(w->kind),
                    um_text(um_workload_kind_means(w->kind)));
    um_emitter_pair(e, "whole", NULL, um_bool(file->whole));
    if (!file->whole)
        um_emitter_wrap(e, "note", "the file is damaged or was not closed: used as far as it goes");
    um_emitter_pair(e, "source_gpu", NULL, *w->source_gpu ? um_text(w->source_gpu) : um_none());
    um_emitter_pair(e, "gpus", NULL, um_count(w->n_gpus));
    um_emitter_pair(e, "launches", NULL, um_count(w->n_launches));
    um_emitter_pair(e, "managed_peak_bytes", NULL, um_bytes(w->managed_peak_bytes));
    um_emitter_pair(e, "touched_bytes", NULL, um_bytes(w->touched_bytes));
    um_emitter_pair(e, "skipped_events", NULL, um_count(w->skipped));
    um_units_count(w->n_launches, launches, sizeof(launches));
    um_units_bytes(w->managed_peak_bytes, peak, sizeof(peak));
    um_units_bytes(w->touched_bytes, touched, sizeof(touched));
    snprintf(text, sizeof(text), "%s launches on %" PRIu32 " GPU%s touch %s; managed at most %s",
             launches, w->n_gpus, w->n_gpus > 1 ? "s" : "", touched, peak);
    um_emitter_wrap(e, "program", text);
    print_params(e, &file->params);
    um_emitter_array(e, "tables");
    for (size_t g = 0; g < sweep->n_groups; g++) {
        if (sweep->groups[g].file == f)
            print_group(replay, e, g);
    }
    um_emitter_end(e);
    um_emitter_end(e);
}

void um_replay_print(const um_replay_t *replay, um_emitter_t *e)
{
    um_emitter_pair(e, "schema", NULL, um_text("umrt.replay/1"));
    um_emitter_array(e, "workloads");
    for (size_t f = 0; f < replay->n_files; f++)
        print_file(replay, e, f);
    um_emitter_end(e);
}

/* planted_run.c - a made-up program is simulated, recorded and reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planted.h"
#include "report/findings/finding.h"
#include "sim/predict.h"
#include "sim/workload_load.h"
#include "um_trace.h"

#define LOST_IN  6u /* of so many records one is lost, in runs */
#define LOST_RUN 40u

const char *const um_recording_name[UM_RECORDINGS] = {"exact", "ordinary", "records lost",
                                                      "no CPU faults"};

typedef struct running {
    const um_planted_case_t *of;
    um_report_t *report;
    um_trace_writer_t *writer;
    um_predict_t with;
    um_first_t first;
    uint64_t now_ns, records, lost, held_bytes;
    uint64_t burst_ns, burst_end_ns;
    um_status_t status;
} running_t;

static void keep(running_t *r, um_status_t status)
{
    if (!r->status)
        r->status = status;
}

/* What CUPTI tells of: of these some can be lost, of program and driver calls none. */
static bool is_record(const um_event_t *event)
{
    return event->type == UM_EV_MIGRATE || event->type == UM_EV_GPU_FAULT ||
           event->type == UM_EV_CPU_FAULT;
}

/* Told as CUPTI tells it: pieces that one fault or prefetch moves come one after the other. */
static uint64_t one_by_one(running_t *r, const um_event_t *event)
{
    const um_ev_migrate_t *m = &event->u.migrate;

    if (event->time_ns != r->burst_ns)
        r->burst_ns = r->burst_end_ns = event->time_ns;
    r->burst_end_ns += m->duration_ns;
    return r->burst_end_ns - m->duration_ns;
}

static void record(void *ctx, const um_event_t *event)
{
    running_t *r = ctx;
    um_event_t told = *event;

    if (event->time_ns > r->now_ns)
        r->now_ns = event->time_ns;
    if (event->type == UM_EV_MIGRATE)
        told.time_ns = one_by_one(r, event);
    if (event->type == UM_EV_DEVICE) /* the simulator's has room for managed memory alone */
        told.u.device.memory_bytes += r->held_bytes;
    if (event->type == UM_EV_ACCESS ||
        (r->of->recording == UM_RECORDING_NO_CPU && event->type == UM_EV_CPU_FAULT))
        return;
    if (r->of->recording == UM_RECORDING_LOSSY && is_record(event) &&
        r->records++ / LOST_RUN % LOST_IN == LOST_IN - 1) {
        r->lost++;
        return;
    }
    keep(r, um_trace_writer_put(r->writer, &told));
}

/* Most at once of what cannot be evicted. */
static uint64_t held(const um_workload_t *workload)
{
    uint64_t now = 0, most = 0, *bytes = calloc(workload->n_steps + 1, sizeof(*bytes));

    for (uint64_t i = 0; bytes && i < workload->n_steps; i++) {
        const um_event_t *event = workload->steps[i].event;

        if (event && event->type == UM_EV_REGION_ALLOC &&
            (event->u.region_alloc.family == UM_FAMILY_DEVICE ||
             event->u.region_alloc.family == UM_FAMILY_POOL)) {
            bytes[event->u.region_alloc.region] = event->u.region_alloc.bytes;
            now += event->u.region_alloc.bytes;
        } else if (event && event->type == UM_EV_REGION_FREE) {
            now -= bytes[event->u.region_free.region];
        }
        most = now > most ? now : most;
    }
    free(bytes);
    return most;
}

static void to_loader(void *ctx, const um_event_t *event)
{
    um_workload_loader_event(ctx, event);
}

/* Its first finding by the rules' estimates, then by replay. */
static um_status_t look(void *ctx, const um_report_t *report, um_findings_t *findings)
{
    running_t *r = ctx;
    um_status_t status;

    snprintf(r->first.estimate, sizeof(r->first.estimate), "%s",
             findings->worth ? findings->list[0].kind->name : "");
    status = um_predict_findings(&r->with, report, findings);
    um_findings_rank(findings);
    um_findings_fold(report, findings);
    snprintf(r->first.replay, sizeof(r->first.replay), "%s",
             findings->worth ? findings->list[0].kind->name : "");
    return status;
}

static um_status_t generated(const um_planted_case_t *of, um_workload_t **out, char error[256])
{
    um_workload_loader_t *loader;
    um_status_t status =
        um_workload_loader_new(of->program->name, UM_WORKLOAD_GENERATED, false, &loader);

    if (!status)
        status = um_gen_run(&of->options, of->program->run, to_loader, loader);
    return status ? status : um_workload_loader_finish(loader, out, error, 256);
}

/* What a trace that is not whole says of itself. */
static void confess(running_t *r)
{
    if (r->of->recording == UM_RECORDING_LOSSY)
        record(r, &(um_event_t){.time_ns = r->now_ns,
                                .type = UM_EV_LOSS,
                                .u.loss = {.count = r->lost, .reason = "buffers full"}});
    if (r->of->recording == UM_RECORDING_NO_CPU)
        record(r, &(um_event_t){.type = UM_EV_OPTION,
                                .u.option = {"nsys.cuda-um-cpu-page-faults", "off", "file"}});
}

static um_status_t simulate(running_t *r, const um_machine_t *machine, um_workload_t *workload,
                            char error[256])
{
    const um_planted_case_t *of = r->of;
    um_beside_t beside = {.fn = record, .ctx = r, .random = of->options.seed};
    um_sim_result_t result;
    um_sim_config_t config = {.machine = machine,
                              .policy = um_policy_find("app"),
                              .workload = workload,
                              .gpu_bytes =
                                  of->room ? workload->memory_peak_bytes / 100 * of->room : 0,
                              .event = record,
                              .event_ctx = r};

    r->with =
        (um_predict_t){.workload = workload, .machine = machine, .gpu_bytes = config.gpu_bytes};
    keep(r, um_sim_run(&config, &result, error, 256));
    beside.now_ns = r->now_ns;
    if (of->program->beside)
        of->program->beside(&beside);
    confess(r);
    return r->status;
}

/* As umrt report reads a file: once for the report, once for the replay. */
static um_status_t read_back(running_t *r, const char *path, um_workload_t **out, char error[256])
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    um_status_t status = um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, 256);

    if (status)
        return status;
    while (!(status = um_trace_reader_next(reader, &event)))
        keep(r, um_report_event(r->report, event));
    um_trace_reader_close(reader);
    keep(r, status == UM_ERR_NOT_FOUND ? UM_OK : status);
    return r->status ? r->status : um_workload_load(path, out, NULL, error, 256);
}

bool um_planted_first(const um_planted_case_t *of, FILE *text, um_first_t *out)
{
    char path[] = "/tmp/um-planted-XXXXXX", error[256] = "";
    running_t r = {.of = of};
    um_report_options_t as = {
        .format = UM_REPORT_TEXT, .top = 10, .width = 100, .predict = look, .predict_ctx = &r};
    um_workload_t *whole = NULL, *recorded = NULL;
    um_machine_t machine;
    int fd = mkstemp(path);
    FILE *null = text ? NULL : fopen("/dev/null", "w");
    um_status_t status = fd < 0 || (!text && !null) ? UM_ERR_IO : UM_OK;

    if (!status)
        status = um_machine_load("h200-pcie5", &machine, error, sizeof(error));
    if (!status)
        status = generated(of, &whole, error);
    if (!status)
        status = um_report_new(&r.report);
    if (!status)
        status = um_report_begin(r.report, of->program->name, NULL, 0);
    if (!status)
        status = um_trace_writer_open(path, NULL, 0, NULL, &r.writer);
    if (!status)
        r.held_bytes = held(whole);
    if (!status)
        status = simulate(&r, &machine, whole, error);
    if (r.writer)
        keep(&r, um_trace_writer_close(r.writer));
    if (!status)
        status = read_back(&r, path, &recorded, error);
    if (!status && of->recording != UM_RECORDING_EXACT)
        r.with = (um_predict_t){.workload = recorded, .machine = &machine};
    if (!status)
        status = r.status ? r.status : um_report_write(r.report, &as, text ? text : null);
    if (status)
        fprintf(stderr, "%s (%s): %s %s\n", of->program->name, um_recording_name[of->recording],
                um_status_string(status), error);
    *out = r.first;
    um_report_free(r.report);
    um_workload_free(whole);
    um_workload_free(recorded);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    if (null)
        fclose(null);
    return !status;
}

void um_accuracy_add(um_accuracy_t *to, const um_planted_t *program, const char *first)
{
    to->planted += program->kind != NULL;
    to->healthy += program->kind == NULL;
    to->said += *first != '\0';
    to->right += program->kind && !strcmp(first, program->kind);
}

double um_accuracy_precision(const um_accuracy_t *of)
{
    return of->said ? (double)of->right / of->said : 1;
}

double um_accuracy_recall(const um_accuracy_t *of)
{
    return of->planted ? (double)of->right / of->planted : 1;
}

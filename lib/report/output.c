/* The sections of a report, in the order in which they are read. Each reads the collected data and
 * writes text and JSON at once. */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "findings/explain.h"
#include "findings/finding.h"
#include "sarif.h"
#include "sections.h"
#include "units.h"

/* ---- header ----------------------------------------------------------------------------------- */

static const char *const tracing_name[] = {"unknown", "on", "off", "unsupported"};

/* How many records of each type, then what was not recorded, and what perhaps was not. */
static void say_counts(const um_trace_stat_t *t, char *line, size_t bytes)
{
    static const struct {
        um_event_type_t type;
        const char *counted, *named;
    } said[] = {
        {UM_EV_GPU_FAULT, "GPU fault records", "GPU faults"},
        {UM_EV_CPU_FAULT, "CPU faults", "CPU faults"},
        {UM_EV_MIGRATE, "migrations", "migrations"},
        {UM_EV_THRASH, "thrash", "thrash"},
        {UM_EV_THROTTLE, "throttle", "throttle"},
        {UM_EV_REMOTE_MAP, "remote maps", "remote maps"},
    };
    const uint32_t absent[] = {t->off | t->unsure, t->off, t->unsure};
    static const char *const before[] = {"on: ", "; not recorded: ", "; not recorded, or none: "};

    *line = 0;
    for (int pass = 0; pass < 3; pass++) {
        const char *between = before[pass];

        for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
            uint64_t count = t->counts[said[i].type];

            bool missing = !count && (absent[pass] >> said[i].type & 1);

            if (missing == !pass)
                continue;
            if (pass)
                um_finding_say(line, bytes, "%s%s", between, said[i].named);
            else
                um_finding_say(line, bytes, "%s%s %s", between, um_h(um_count(count)),
                               said[i].counted);
            between = ", ";
        }
    }
}

static bool is_generated(const um_trace_stat_t *t)
{
    return t->accesses && !strcmp(t->accesses, "exact");
}

static bool is_deep(const um_trace_stat_t *t)
{
    return t->accesses && !strcmp(t->accesses, "deep");
}

static void say_tracing(um_emitter_t *e, const um_trace_stat_t *t)
{
    static const char *const meaning[] = {
        [UM_TRACING_UNKNOWN] = "the source does not say whether faults and migrations were "
                               "recorded, and there are none: nothing is concluded from that",
        [UM_TRACING_OFF] = "off: faults and migrations were not recorded, so none could be seen",
        [UM_TRACING_UNSUPPORTED] = "faults and migrations cannot be recorded on that machine",
    };
    bool any = t->counts[UM_EV_GPU_FAULT] || t->counts[UM_EV_CPU_FAULT] || t->counts[UM_EV_MIGRATE];
    char line[600];

    if (is_generated(t))
        snprintf(line, sizeof(line),
                 "none: a made-up program whose every access is known; umrt replay says what they "
                 "would cost");
    else if (is_deep(t))
        snprintf(line, sizeof(line),
                 "deep: before each launch its memory was pushed to the host, so faults and "
                 "migrations are what it touches, not what it costs the program");
    else if (t->tracing != UM_TRACING_ON)
        snprintf(line, sizeof(line), "%s%s%s", meaning[t->tracing], t->tracing_evidence ? ": " : "",
                 t->tracing_evidence ? t->tracing_evidence : "");
    else if (any)
        say_counts(t, line, sizeof(line));
    else
        snprintf(line, sizeof(line), "on, and there was no fault and no migration");
    um_emitter_pair(e, NULL, "recording", um_text(line));
}

static void say_loss(um_emitter_t *e, const um_trace_stat_t *t)
{
    char line[400];

    if (!t->losses) {
        um_emitter_pair(e, NULL, "loss", um_text("none known"));
        return;
    }
    snprintf(line, sizeof(line), "%s record%s lost",
             t->lost_records ? um_h(um_count(t->lost_records)) : "an unknown number of",
             t->lost_records == 1 ? "" : "s");
    if (t->lost_bytes)
        um_finding_say(line, sizeof(line), " (%s of migrations)", um_h(um_bytes(t->lost_bytes)));
    um_finding_say(line, sizeof(line), ": %s; what is not seen below may have happened",
                   t->loss_reason ? t->loss_reason : "no reason given");
    um_emitter_pair(e, NULL, "loss", um_text(line));
}

static void write_trace(um_emitter_t *e, const um_report_t *r, const um_trace_stat_t *t)
{
    uint64_t span = t->last_ns > t->first_ns ? t->last_ns - t->first_ns : 0;
    char span_text[200], machine[300] = "";

    um_emitter_object(e, NULL);
    um_emitter_pair(e, "path", r->n_traces > 1 ? "trace" : NULL, um_text(t->path));
    um_emitter_pair(e, "program", t->command ? "program" : NULL, um_text(t->command));
    um_emitter_pair(e, "rank", t->rank ? "rank" : NULL, um_text(t->rank));
    if (t->host || t->kernel)
        snprintf(machine, sizeof(machine), "%s%s%s", t->host ? t->host : "",
                 t->host && t->kernel ? ", " : "", t->kernel ? t->kernel : "");
    um_emitter_pair(e, NULL, *machine ? "machine" : NULL, um_text(machine));
    um_emitter_pair(e, "host", NULL, um_text(t->host));
    um_emitter_pair(e, "kernel", NULL, um_text(t->kernel));
    um_emitter_pair(e, "gpu", t->device ? "gpu" : NULL, um_text(t->device));
    um_emitter_pair(e, "gpu_uuid", NULL, um_text(t->uuid));
    um_emitter_pair(e, "gpus", t->devices > 1 ? "gpus" : NULL, um_count(t->devices));
    um_emitter_pair(e, "driver", t->driver ? "driver" : NULL, um_text(t->driver));
    um_emitter_pair(e, "cuda", t->cuda ? "cuda" : NULL, um_text(t->cuda));
    um_emitter_pair(e, "source", t->tool ? "source" : NULL, um_text(t->tool));
    snprintf(span_text, sizeof(span_text), "%s, %s events", um_h(um_ns(span)),
             um_h(um_count(t->events)));
    um_emitter_pair(e, NULL, "span", um_text(span_text));
    um_emitter_pair(e, "span_ns", NULL, um_ns(span));
    um_emitter_pair(e, "first_ns", NULL, um_count(t->first_ns));
    um_emitter_pair(e, "events", NULL, um_count(t->events));
    um_emitter_pair(e, "tracing", NULL, um_text(tracing_name[t->tracing]));
    um_emitter_pair(e, "tracing_evidence", NULL, um_text(t->tracing_evidence));
    if (um_emitter_is_text(e))
        say_tracing(e, t);
    um_emitter_object(e, "records");
    for (uint32_t type = 1; type < UM_EV_TYPE_COUNT; type++) {
        if (t->counts[type])
            um_emitter_pair(e, um_event_type_name(type), NULL, um_count(t->counts[type]));
    }
    um_emitter_end(e);
    um_emitter_object(e, "loss");
    um_emitter_pair(e, "events", NULL, um_count(t->losses));
    um_emitter_pair(e, "records", NULL, um_count(t->lost_records));
    um_emitter_pair(e, "bytes", NULL, um_bytes(t->lost_bytes));
    um_emitter_pair(e, "reason", NULL, um_text(t->loss_reason));
    um_emitter_end(e);
    if (um_emitter_is_text(e))
        say_loss(e, t);
    um_emitter_pair(e, "note", t->note ? "note" : NULL, um_text(t->note));
    um_emitter_pair(e, "to_device_bytes", NULL, um_bytes(t->moves[UM_TO_DEVICE].bytes));
    um_emitter_pair(e, "to_host_bytes", NULL, um_bytes(t->moves[UM_TO_HOST].bytes));
    um_emitter_end(e);
}

static um_value_t recorded(const um_trace_stat_t *t, um_event_type_t type)
{
    return t->counts[type] || !((t->off | t->unsure) >> type & 1) ? um_count(t->counts[type])
                                                                  : um_none();
}

/* Many ranks: one line each instead of one header each. */
static void write_ranks(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {NULL, "trace", true, false, NULL},       {NULL, "rank", true, false, NULL},
        {NULL, "span", false, false, NULL},       {NULL, "GPU faults", false, false, NULL},
        {NULL, "CPU faults", false, false, NULL}, {NULL, "to GPU", false, false, NULL},
        {NULL, "to CPU", false, false, NULL},     {NULL, "lost", false, false, NULL},
    };

    if (r->n_traces < 2 || !um_emitter_is_text(e))
        return;
    um_emitter_heading(e, "By trace");
    um_emitter_table(e, NULL, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < r->n_traces && i < um_emitter_options(e)->top; i++) {
        const um_trace_stat_t *t = &r->traces[i];

        um_emitter_row(e, (um_value_t[]){
                              um_text(t->path),
                              um_text(t->rank),
                              um_ns(t->last_ns > t->first_ns ? t->last_ns - t->first_ns : 0),
                              recorded(t, UM_EV_GPU_FAULT),
                              recorded(t, UM_EV_CPU_FAULT),
                              um_bytes(t->moves[UM_TO_DEVICE].bytes),
                              um_bytes(t->moves[UM_TO_HOST].bytes),
                              t->losses ? um_count(t->lost_records) : um_text("-"),
                          });
    }
    um_emitter_table_end(e, r->n_traces > um_emitter_options(e)->top
                                ? r->n_traces - um_emitter_options(e)->top
                                : 0);
}

void um_section_header(um_emitter_t *e, const um_report_t *r)
{
    um_emitter_pair(e, "schema", NULL, um_text("umrt.report/1"));
    if (um_emitter_is_text(e)) {
        char *path = r->n_traces == 1 ? um_text_clean(r->traces[0].path) : NULL;

        um_emitter_line(e, path ? "umrt report: %s" : "umrt report of several traces", path);
        free(path);
    }
    um_emitter_array(e, "traces");
    for (size_t i = 0; i < r->n_traces; i++) {
        if (i && um_emitter_is_text(e)) {
            if (i >= 3) {
                um_emitter_line(e, "\n  ... and %zu more traces, in the table below",
                                r->n_traces - i);
                break;
            }
            um_emitter_line(e, "%s", "");
        }
        write_trace(e, r, &r->traces[i]);
    }
    um_emitter_end(e);
    write_ranks(e, r);
}

/* ---- totals ----------------------------------------------------------------------------------- */

/* What the tables add up to, whatever --top cuts off: what two runs are compared by. */
static void all_in_all(um_emitter_t *e, const um_report_t *r)
{
    um_region_sums_t sums = {0};
    uint64_t span = 0;

    for (size_t i = 0; i < r->regions.n_groups; i++) {
        um_sum(&sums.gpu_groups, r->regions.groups[i].sums.gpu_groups);
        um_sum(&sums.gpu_ns, r->regions.groups[i].sums.gpu_ns);
        um_sum(&sums.wait_ns, r->regions.groups[i].sums.wait_ns);
        um_sum(&sums.throttle_ns, r->regions.groups[i].sums.throttle_ns);
    }
    for (size_t i = 0; i < r->n_traces; i++) {
        const um_trace_stat_t *t = &r->traces[i];

        um_sum(&span, t->last_ns > t->first_ns ? t->last_ns - t->first_ns : 0);
        um_sum(&sums.in_bytes, t->moves[UM_TO_DEVICE].bytes);
        um_sum(&sums.out_bytes, t->moves[UM_TO_HOST].bytes);
    }
    um_emitter_object(e, "totals");
    um_emitter_pair(e, "span_ns", NULL, um_ns(span));
    um_emitter_pair(e, "gpu_faults", NULL,
                    um_report_records(r, UM_EV_GPU_FAULT, r->counts[UM_EV_GPU_FAULT]));
    um_emitter_pair(e, "gpu_fault_groups", NULL,
                    um_report_records(r, UM_EV_GPU_FAULT, sums.gpu_groups));
    um_emitter_pair(e, "cpu_faults", NULL,
                    um_report_records(r, UM_EV_CPU_FAULT, r->counts[UM_EV_CPU_FAULT]));
    um_emitter_pair(e, "to_device_bytes", NULL, um_bytes(sums.in_bytes));
    um_emitter_pair(e, "to_host_bytes", NULL, um_bytes(sums.out_bytes));
    um_emitter_pair(e, "gpu_fault_ns", NULL,
                    um_report_recorded(r, UM_EV_GPU_FAULT) ? um_ns(sums.gpu_ns) : um_none());
    um_emitter_pair(e, "cpu_wait_ns", NULL,
                    um_report_recorded(r, UM_EV_CPU_FAULT) ? um_ns(sums.wait_ns) : um_none());
    um_emitter_pair(e, "throttle_ns", NULL, um_ns(sums.throttle_ns));
    um_emitter_end(e);
}

void um_section_totals(um_emitter_t *e, const um_report_t *r)
{
    static const char *const direction[] = {"CPU to GPU", "GPU to CPU", "GPU to GPU"};
    static const um_column_t columns[] = {
        {"direction", "direction", true, false, NULL},
        {"cause", "cause", true, false, NULL},
        {"records", "records", false, false, NULL},
        {"bytes", "bytes", false, false, NULL},
        {"ns", "time", false, false, NULL},
        {"rate", "rate", false, true, NULL},
    };

    um_emitter_heading(e, "Migrations");
    um_emitter_table(e, "migrations", columns, sizeof(columns) / sizeof(columns[0]));
    for (int d = 0; d < UM_DIRECTIONS; d++) {
        for (int c = 0; c < UM_CAUSES; c++) {
            const um_moves_t *m = &r->moves[d][c];

            if (!m->records)
                continue;
            um_emitter_row(e,
                           (um_value_t[]){um_text(direction[d]), um_text(um_migrate_cause_name(c)),
                                          um_count(m->records), um_bytes(m->bytes), um_ns(m->ns),
                                          m->ns ? um_rate((uint64_t)((double)m->bytes * 1e9 /
                                                                     (double)m->ns))
                                                : um_none()});
        }
    }
    um_emitter_table_end(e, 0);
    all_in_all(e, r);
}

void um_section_copies(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"from", "copies from", true, false, NULL}, {"to", "to", true, false, NULL},
        {"bytes_each", "each", false, false, NULL}, {"count", "count", false, false, NULL},
        {"bytes", "bytes", false, true, NULL},      {"ns", "time", false, false, NULL},
        {"async", "async", false, false, NULL},     {"on_gpu", NULL, false, false, NULL},
    };
    uint32_t top = um_emitter_options(e)->top;
    size_t n = r->copies.n_classes;
    uint64_t rows = 0;

    if (!n && um_emitter_is_text(e))
        return;
    um_emitter_heading(e, "Copies");
    um_emitter_table(e, "copies", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n; i++) {
        const um_copy_class_t *c = &r->copies.classes[i];

        if (!um_copies_counted(&r->copies, c) || rows++ >= top)
            continue;
        um_emitter_row(e, (um_value_t[]){um_text(um_memory_kind_name(c->src)),
                                         um_text(um_memory_kind_name(c->dst)),
                                         c->bytes ? um_bytes(c->bytes) : um_none(),
                                         um_count(c->count), um_bytes(c->total_bytes), um_ns(c->ns),
                                         um_count(c->async), um_bool(c->on_gpu)});
    }
    um_emitter_table_end(e, rows > top ? rows - top : 0);
}

/* ---- findings --------------------------------------------------------------------------------- */

static void finding_json(um_emitter_t *e, const um_report_t *r, const um_findings_t *all,
                         const um_finding_t *f, uint64_t rank, const um_target_t *target)
{
    um_emitter_object(e, NULL);
    um_emitter_pair(e, "rank", NULL, um_count(rank));
    um_emitter_pair(e, "kind", NULL, um_text(f->kind->name));
    um_emitter_array(e, "also");
    for (int i = 0; i < 3 && f->also[i]; i++)
        um_emitter_element(e, um_text(f->also[i]));
    um_emitter_end(e);
    um_emitter_pair(e, "title", NULL, um_text(f->title));
    um_emitter_pair(e, "where", NULL, um_text(f->where));
    um_emitter_pair(e, "seen", NULL, um_text(f->seen));
    um_emitter_pair(e, "todo", NULL, um_text(f->advice));
    um_emitter_pair(e, "unless", NULL, um_text(um_explain(f->kind->name)->unless));
    um_section_code(e, r, f, target);
    um_emitter_pair(e, "win_ns", NULL, um_ns(f->win_ns));
    um_emitter_pair(e, "win_basis", NULL, um_text(f->basis));
    um_emitter_pair(e, "predicted_ns", NULL,
                    f->replayed ? um_ns(um_finding_worth_ns(f)) : um_none());
    um_emitter_pair(e, "predicted_basis", NULL, um_text(f->predicted));
    um_emitter_pair(e, "predicted_error_ns", NULL,
                    f->replayed && all->error_percent ? um_ns(f->error_ns) : um_none());
    um_emitter_pair(e, "predicted_together_ns", NULL,
                    f->together && f->together_ns > 0 ? um_ns((uint64_t)f->together_ns)
                                                      : um_none());
    um_emitter_pair(e, "worth_ns", NULL, um_ns(um_finding_worth_ns(f)));
    um_emitter_pair(e, "worth_by", NULL, um_text(um_finding_worth_by(f)));
    um_emitter_pair(e, "worth_it", NULL, um_bool(rank <= all->worth));
    um_emitter_pair(e, "confidence", NULL, um_percent(f->confidence));
    um_emitter_object(e, "evidence");
    for (uint32_t i = 0; i < f->n_evidence; i++)
        um_emitter_pair(e, f->evidence[i].key, NULL, f->evidence[i].value);
    um_emitter_end(e);
    um_emitter_array(e, "places");
    for (uint32_t i = 0; i < f->n_places; i++) {
        um_emitter_object(e, NULL);
        um_emitter_pair(e, "region", NULL, um_text(f->places[i].region));
        um_emitter_pair(e, "bytes", NULL, um_bytes(f->places[i].bytes));
        um_emitter_pair(e, "copies", NULL, um_count(f->places[i].copies));
        um_emitter_pair(e, "faults", NULL, um_count(f->places[i].faults));
        um_emitter_pair(e, "ns", NULL, um_ns(f->places[i].ns));
        um_emitter_end(e);
    }
    um_emitter_end(e);
    um_emitter_end(e);
}

static void finding_text(um_emitter_t *e, const um_report_t *r, const um_finding_t *f,
                         uint64_t rank, const um_target_t *target)
{
    uint32_t width = um_emitter_options(e)->width;
    bool bold = um_emitter_options(e)->color;
    char win[100], left[300], basis[700], places[900] = "";
    size_t used;

    um_finding_win_text(f, win, sizeof(win));
    snprintf(left, sizeof(left), "%llu. %s", (unsigned long long)rank, f->title);
    used = um_text_columns(left) + strlen(win);
    if (used + 2 <= width)
        um_emitter_line(e, bold ? "\n\033[1m%s\033[0m%*s%s" : "\n%s%*s%s", left,
                        (int)(width - used), "", win);
    else /* under it */
        um_emitter_line(e, bold ? "\n\033[1m%s\033[0m\n%*s" : "\n%s\n%*s", left, (int)width, win);
    um_emitter_wrap(e, "where", f->where);
    um_emitter_wrap(e, "seen", f->seen);
    for (uint32_t i = 0; f->n_places > 1 && i < f->n_places; i++) {
        const um_place_t *p = &f->places[i];

        um_finding_say(places, sizeof(places), "%s%s %s", i ? ", " : "", p->region,
                       um_h(um_bytes(p->bytes)));
        if (p->faults)
            um_finding_say(places, sizeof(places), " (%s fault%s)", um_h(um_count(p->faults)),
                           p->faults == 1 ? "" : "s");
    }
    if (f->places_left)
        um_finding_say(places, sizeof(places), " and %s more", um_h(um_count(f->places_left)));
    if (*places)
        um_emitter_wrap(e, "regions", places);
    um_emitter_wrap(e, "do", f->advice);
    um_emitter_wrap(e, "unless", um_explain(f->kind->name)->unless);
    um_section_code(e, r, f, target);
    if (*f->predicted)
        um_emitter_wrap(e, "predicted", f->predicted);
    if (f->together > 1) {
        char with[120];

        snprintf(with, sizeof(with), "%s less with the %u replayed above it",
                 um_h(um_ns(f->together_ns > 0 ? (uint64_t)f->together_ns : 0)), f->together - 1);
        um_emitter_wrap(e, "together", with);
    }
    snprintf(basis, sizeof(basis), "%s%s%s; confidence %u %%",
             f->replayed ? um_h(um_ns(f->win_ns)) : "", f->replayed ? ": " : "", f->basis,
             f->confidence);
    um_emitter_wrap(e, "estimate", basis);
}

/* A line each: less than the model can tell, or than matters. */
static void not_worth_it(um_emitter_t *e, const um_findings_t *findings, uint32_t top)
{
    um_emitter_line(e, "\nNot worth it (below the error bar, or 1 %% of the time)");
    for (size_t i = findings->worth; i < findings->n && i < top; i++) {
        const um_finding_t *f = &findings->list[i];
        char line[700];

        snprintf(line, sizeof(line), "%s: %s%s", f->kind->name, f->title,
                 f->replayed && f->alone_ns < 0 ? ", whose advice makes it slower" : "");
        um_say_in(line, " (%s)", f->where);
        um_emitter_wrap(e, um_h(um_ns(um_finding_worth_ns(f))), line);
    }
}

void um_section_findings(um_emitter_t *e, const um_report_t *r, const um_findings_t *findings,
                         const um_target_t *target)
{
    uint32_t top = um_emitter_options(e)->top;

    um_emitter_pair(e, "findings_found", NULL, um_count(findings->found));
    um_emitter_heading(e, "Findings, by time to win (which may overlap)");
    um_emitter_array(e, "findings");
    for (size_t i = 0; i < findings->n && i < top; i++) {
        if (um_emitter_is_text(e) && i >= findings->worth)
            continue;
        if (um_emitter_is_text(e))
            finding_text(e, r, &findings->list[i], i + 1, target);
        else
            finding_json(e, r, findings, &findings->list[i], i + 1, target);
    }
    um_emitter_end(e);
    if (findings->worth < findings->n && um_emitter_is_text(e))
        not_worth_it(e, findings, top);
    if (*findings->why_not && findings->n) {
        char *why_not = um_text_clean(findings->why_not); /* may name what the trace does */

        um_emitter_line(e, "\n  not replayed: %s", why_not ? why_not : "");
        free(why_not);
    }
    if (!findings->found)
        um_emitter_line(e, um_report_complete(r)
                               ? "  none: nothing that umrt looks for is in this trace"
                               : "  none in what was recorded, which is not all (see above)");
    if (findings->found > top)
        um_emitter_line(e, "\n  ... and %s more (--top)", um_h(um_count(findings->found - top)));
}

/* ---- all of it -------------------------------------------------------------------------------- */

/* The next thing to type. */
static void um_section_next(um_emitter_t *e, const um_report_t *r, const um_findings_t *findings)
{
    const um_trace_stat_t *t = &r->traces[0];
    /* Never half a command. */
    const char *program = t->command && strlen(t->command) < 4096 ? t->command : "PROGRAM";
    char command[4200];

    if (is_generated(t) || is_deep(t))
        snprintf(command, sizeof(command), "umrt replay %s --policy all",
                 strlen(t->path) < 4096 ? t->path : "FILE");
    else if (t->tracing == UM_TRACING_OFF || t->tracing == UM_TRACING_UNKNOWN)
        snprintf(command, sizeof(command), "umrt record -- %s", program);
    else if (findings->found && !r->hinted)
        snprintf(command, sizeof(command), "umrt run -- %s", program);
    else
        snprintf(command, sizeof(command), "umrt report --json %s",
                 strlen(t->path) < 4096 ? t->path : "FILE");
    um_emitter_pair(e, "next", NULL, um_text(command));
    if (um_emitter_is_text(e)) {
        char *clean = um_text_clean(command);

        um_emitter_line(e, "\nNext: %s", clean ? clean : command);
        free(clean);
    }
}

um_status_t um_report_findings(um_report_t *r, const um_report_options_t *options,
                               um_findings_t *out)
{
    um_status_t status;

    um_report_end_trace(r);
    um_places_debug_dirs(r->places, options->debug_dirs);
    if (options->limits)
        r->limits = *options->limits;
    status = um_findings_detect(r, out);
    if (!status && options->predict) {
        status = options->predict(options->predict_ctx, r, out);
        um_findings_rank(out);
        um_findings_fold(r, out);
    }
    return status;
}

um_status_t um_report_write(um_report_t *r, const um_report_options_t *options, FILE *out)
{
    um_findings_t findings;
    um_target_t target;
    um_emitter_t *e;
    um_status_t status;

    if (!r || !options || !out || options->width < 60 || options->width > 400 || !options->top ||
        options->top > 1000000 || options->format > UM_REPORT_SARIF)
        return UM_ERR_INVALID;
    if (!r->n_traces)
        return UM_ERR_STATE;
    status = um_report_findings(r, options, &findings);
    target = um_target_of(r, options->cuda);
    if (!status)
        status = um_emitter_open(options, out, &e);
    if (!status && options->format == UM_REPORT_SARIF) {
        um_sarif_write(e, r, &findings, &target);
        status = um_emitter_close(e);
    } else if (!status) {
        um_section_header(e, r);
        um_section_totals(e, r);
        um_section_findings(e, r, &findings, &target);
        um_section_families(e, r);
        um_section_own_hints(e, r);
        um_section_regions(e, r);
        um_section_places(e, r);
        um_section_kernels(e, r);
        um_section_copies(e, r);
        um_section_timeline(e, r);
        if (!options->without_map)
            um_section_heatmap(e, r);
        um_section_next(e, r, &findings);
        status = um_emitter_close(e);
    }
    um_findings_free(&findings);
    return status;
}

#include "sarif.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "findings/explain.h"
#include "same.h"

static void message(um_emitter_t *e, const char *key, const char *text)
{
    um_emitter_object(e, key);
    um_emitter_pair(e, "text", NULL, um_text(text));
    um_emitter_end(e);
}

static void write_rules(um_emitter_t *e)
{
    um_emitter_array(e, "rules");
    for (const um_finding_kind_t *kind = um_finding_table; kind->name; kind++) {
        um_emitter_object(e, NULL);
        um_emitter_pair(e, "id", NULL, um_text(kind->name));
        message(e, "shortDescription", kind->title);
        um_emitter_object(e, "defaultConfiguration");
        um_emitter_pair(e, "level", NULL, um_text("warning"));
        um_emitter_end(e);
        um_emitter_end(e);
    }
    um_emitter_end(e);
}

/* A relative path stays one, an absolute one is a file URI; whatever a URI cannot hold is escaped. */
static char *uri_of(const char *path, size_t n)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~+";
    char *uri = malloc(n * 3 + sizeof("file://")), *to = uri;

    if (!uri)
        return NULL;
    if (*path == '/')
        to = stpcpy(to, "file://");
    for (size_t i = 0; i < n; i++) {
        if (strchr(plain, path[i]) && path[i])
            *to++ = path[i];
        else
            to += sprintf(to, "%%%02X", (unsigned char)path[i]);
    }
    *to = '\0';
    return uri;
}

static void write_physical(um_emitter_t *e, const char *file, size_t n, unsigned line)
{
    char *uri = uri_of(file, n);

    um_emitter_object(e, "physicalLocation");
    um_emitter_object(e, "artifactLocation");
    um_emitter_pair(e, "uri", NULL, um_text(uri ? uri : ""));
    um_emitter_end(e);
    um_emitter_object(e, "region");
    um_emitter_pair(e, "startLine", NULL, um_count(line ? line : 1));
    um_emitter_end(e);
    um_emitter_end(e);
    free(uri);
}

#define LINES_MAX 16u

/* Source lines of one finding, each once. */
typedef struct um_lines {
    struct {
        const char *file;
        size_t bytes;
        unsigned line;
    } at[LINES_MAX];
    unsigned n;
} um_lines_t;

static void add_lines(um_lines_t *lines, const char *text)
{
    const char *file;
    size_t bytes;
    unsigned line, i;

    while (text && lines->n < LINES_MAX && (text = um_same_source(text, &file, &bytes, &line))) {
        for (i = 0; i < lines->n; i++) {
            if (lines->at[i].bytes == bytes && lines->at[i].line == line &&
                !memcmp(lines->at[i].file, file, bytes))
                break;
        }
        lines->at[i].file = file;
        lines->at[i].bytes = bytes;
        lines->at[i].line = line;
        lines->n += i == lines->n;
    }
}

/* The first source line that `where` names, or else where its regions come from, is the place; all
 * others are related to it. */
static void write_locations(um_emitter_t *e, const um_report_t *r, const um_finding_t *f)
{
    um_lines_t lines = {.n = 0};

    add_lines(&lines, f->where);
    for (uint32_t i = 0; i < f->n_places; i++)
        add_lines(&lines, um_report_place(r, r->regions.groups[f->places[i].group].call_site));
    um_emitter_array(e, "locations");
    um_emitter_object(e, NULL);
    if (lines.n)
        write_physical(e, lines.at[0].file, lines.at[0].bytes, lines.at[0].line);
    um_emitter_array(e, "logicalLocations");
    um_emitter_object(e, NULL);
    um_emitter_pair(e, "fullyQualifiedName", NULL, um_text(f->where));
    um_emitter_pair(e, "kind", NULL, um_text("resource"));
    um_emitter_end(e);
    um_emitter_end(e);
    um_emitter_end(e);
    um_emitter_end(e);
    um_emitter_array(e, "relatedLocations");
    for (unsigned i = 1; i < lines.n; i++) {
        um_emitter_object(e, NULL);
        um_emitter_pair(e, "id", NULL, um_count(i));
        write_physical(e, lines.at[i].file, lines.at[i].bytes, lines.at[i].line);
        um_emitter_end(e);
    }
    um_emitter_end(e);
}

/* "What is seen. What to do: the code. When not to." */
static void write_message(um_emitter_t *e, const um_finding_t *f, const um_code_t *code,
                          const um_dialect_t *of)
{
    const char *unless = um_explain(f->kind->name)->unless;
    char *text = NULL, win[100];

    um_finding_win_text(f, win, sizeof(win));
    if (um_finding_worth_ns(f) || f->replayed)
        um_say_in(win, " by %s", um_finding_worth_by(f));
    if (asprintf(&text, "%s: %s. %s. To do, %s: %s.\nCode (%s):\n%s\nUndo:\n%s\n%s", f->title,
                 f->where, f->seen, win, f->advice, of->title, code->code, code->undo, unless) < 0)
        text = NULL;
    um_emitter_object(e, "message");
    um_emitter_pair(e, "text", NULL, um_code(text ? text : f->title));
    um_emitter_end(e);
    free(text);
}

static uint64_t fingerprint(const um_finding_t *f)
{
    char name[sizeof(f->where)];

    um_same_name(f->where, name, sizeof(name));
    return um_map_hash(name, strlen(name), um_map_hash(f->kind->name, strlen(f->kind->name), 0));
}

/* Findings that another run could not tell apart are numbered. */
static void write_fingerprint(um_emitter_t *e, const um_findings_t *findings, size_t at)
{
    uint64_t print = fingerprint(&findings->list[at]);
    unsigned number = 1;
    char text[40];

    for (size_t i = 0; i < at; i++)
        number += fingerprint(&findings->list[i]) == print;
    snprintf(text, sizeof(text), "%016" PRIx64 ":%u", print, number);
    um_emitter_object(e, "partialFingerprints");
    um_emitter_pair(e, "umrtFinding/v1", NULL, um_text(text));
    um_emitter_end(e);
}

static void write_result(um_emitter_t *e, const um_report_t *r, const um_findings_t *findings,
                         size_t at, const um_target_t *target)
{
    const um_finding_t *f = &findings->list[at];
    uint64_t worth_ns = um_finding_worth_ns(f);
    uint64_t most_ns = um_finding_worth_ns(&findings->list[0]);
    const um_dialect_t *of;
    um_code_t code;

    if (um_code_for(r, f, target, &code, &of)) {
        um_emitter_fail(e);
        return;
    }

    um_emitter_object(e, NULL);
    um_emitter_pair(e, "ruleId", NULL, um_text(f->kind->name));
    um_emitter_pair(e, "ruleIndex", NULL, um_count((uint64_t)(f->kind - um_finding_table)));
    /* What is not worth it, or has no time of its own, is worth a note. */
    um_emitter_pair(e, "level", NULL,
                    um_text(worth_ns && at < findings->worth ? "warning" : "note"));
    write_message(e, f, &code, of);
    write_locations(e, r, f);
    write_fingerprint(e, findings, at);
    um_emitter_pair(e, "rank", NULL,
                    um_percent(worth_ns >= most_ns
                                   ? (most_ns ? 100 : 0)
                                   : (uint64_t)(100.0 * (double)worth_ns / (double)most_ns)));
    um_emitter_object(e, "properties");
    um_emitter_pair(e, "win_ns", NULL, um_ns(f->win_ns));
    um_emitter_pair(e, "win_basis", NULL, um_text(f->basis));
    um_emitter_pair(e, "predicted_ns", NULL, f->replayed ? um_ns(worth_ns) : um_none());
    um_emitter_pair(e, "predicted_basis", NULL, um_text(f->predicted));
    um_emitter_pair(e, "predicted_error_ns", NULL,
                    f->replayed && f->error_ns ? um_ns(f->error_ns) : um_none());
    um_emitter_pair(e, "worth_ns", NULL, um_ns(worth_ns));
    um_emitter_pair(e, "worth_by", NULL, um_text(um_finding_worth_by(f)));
    um_emitter_pair(e, "worth_it", NULL, um_bool(at < findings->worth));
    um_emitter_pair(e, "confidence", NULL, um_percent(f->confidence));
    um_emitter_pair(e, "code", NULL, um_code(code.code));
    um_emitter_pair(e, "code_for", NULL, um_text(of->key));
    um_emitter_pair(e, "undo", NULL, um_code(code.undo));
    um_emitter_pair(e, "unless", NULL, um_text(um_explain(f->kind->name)->unless));
    um_code_free(&code);
    um_emitter_object(e, "evidence");
    for (uint32_t i = 0; i < f->n_evidence; i++)
        um_emitter_pair(e, f->evidence[i].key, NULL, f->evidence[i].value);
    um_emitter_end(e);
    um_emitter_end(e);
    um_emitter_end(e);
}

static void notify(um_emitter_t *e, const char *path, const char *text)
{
    char *line = NULL;

    if (asprintf(&line, "%s: %s", path, text) < 0)
        line = NULL;
    um_emitter_object(e, NULL);
    um_emitter_pair(e, "level", NULL, um_text("warning"));
    message(e, "message", line ? line : text);
    um_emitter_end(e);
    free(line);
}

/* What keeps the log from being all that happened. */
static void write_invocation(um_emitter_t *e, const um_report_t *r)
{
    um_emitter_array(e, "invocations");
    um_emitter_object(e, NULL);
    um_emitter_pair(e, "executionSuccessful", NULL, um_bool(true));
    um_emitter_array(e, "toolExecutionNotifications");
    for (size_t i = 0; i < r->n_traces; i++) {
        const um_trace_stat_t *t = &r->traces[i];

        if (t->note)
            notify(e, t->path, t->note);
        if (t->losses)
            notify(e, t->path, "records were lost while it was recorded");
        if (t->tracing != UM_TRACING_ON)
            notify(e, t->path, "faults and migrations were not recorded, or there were none");
    }
    um_emitter_end(e);
    um_emitter_end(e);
    um_emitter_end(e);
}

void um_sarif_write(um_emitter_t *e, const um_report_t *r, const um_findings_t *findings,
                    const um_target_t *target)
{
    um_emitter_pair(e, "$schema", NULL, um_text("https://json.schemastore.org/sarif-2.1.0.json"));
    um_emitter_pair(e, "version", NULL, um_text("2.1.0"));
    um_emitter_array(e, "runs");
    um_emitter_object(e, NULL);
    um_emitter_object(e, "tool");
    um_emitter_object(e, "driver");
    um_emitter_pair(e, "name", NULL, um_text("umrt"));
    um_emitter_pair(e, "version", NULL, um_text(UM_VERSION));
    write_rules(e);
    um_emitter_end(e);
    um_emitter_end(e);
    write_invocation(e, r);
    um_emitter_pair(e, "columnKind", NULL, um_text("unicodeCodePoints"));
    um_emitter_array(e, "results");
    for (size_t i = 0; i < findings->n && i < um_emitter_options(e)->top; i++)
        write_result(e, r, findings, i, target);
    um_emitter_end(e);
    um_emitter_end(e);
    um_emitter_end(e);
}

/* A diff as text and as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"
#include "emitter.h"
#include "rank_test.h"

static const char *const verdicts[] = {
    [UM_DIFF_SAME] = "same",     [UM_DIFF_BETTER] = "better",   [UM_DIFF_WORSE] = "worse",
    [UM_DIFF_UNSURE] = "unsure", [UM_DIFF_UNKNOWN] = "unknown",
};

/* ---- values ----------------------------------------------------------------------------------- */

static void print(double value, um_diff_metric_t metric, char *out, size_t bytes)
{
    uint64_t n = value < 9e18 ? (uint64_t)(value + 0.5) : UINT64_C(9000000000000000000);

    um_value_print(isnan(value)               ? um_none()
                   : metric == UM_DIFF_FAULTS ? um_count(n)
                   : metric == UM_DIFF_BYTES  ? um_bytes(n)
                                              : um_ns(n),
                   out, bytes);
}

static void print_percent(const um_diff_change_t *change, char *out, size_t bytes)
{
    if (isnan(change->a) || isnan(change->b))
        snprintf(out, bytes, "-");
    else if (change->a == change->b)
        snprintf(out, bytes, "0 %%");
    else if (change->a <= 0)
        snprintf(out, bytes, "from 0");
    else if (change->b >= change->a * 10)
        snprintf(out, bytes, "x %.3g", change->b / change->a);
    else
        snprintf(out, bytes, "%+.1f %%", (change->b / change->a - 1) * 100);
}

void um_diff_say(const um_diff_change_t *change, um_diff_metric_t metric, bool percent, char *out,
                 size_t bytes)
{
    char a[40], b[40], by[40];

    print(change->a, metric, a, sizeof(a));
    print(change->b, metric, b, sizeof(b));
    print_percent(change, by, sizeof(by));
    if (change->verdict == UM_DIFF_SAME)
        snprintf(out, bytes, "%s", a);
    else if (percent)
        snprintf(out, bytes, "%s -> %s (%s)", a, b, by);
    else
        snprintf(out, bytes, "%s -> %s", a, b);
}

/* Medians of counts are whole or halves. */
static um_value_t figure(double value)
{
    return isnan(value)            ? um_none()
           : value == floor(value) ? um_count((uint64_t)value)
                                   : um_real(value);
}

static um_value_t change_percent(const um_diff_change_t *change)
{
    return change->a > 0 && !isnan(change->b) ? um_real((change->b / change->a - 1) * 100)
           : change->a == change->b           ? um_real(0)
                                              : um_none();
}

static um_value_t chance(const um_diff_t *diff, const um_diff_change_t *change)
{
    bool tested = diff->side[0].n + diff->side[1].n > 2 && !isnan(change->p);

    return tested ? um_real(change->p) : um_none();
}

/* "worse (p 0.029)" */
static void print_verdict(const um_diff_t *diff, const um_diff_change_t *change, char *out,
                          size_t bytes)
{
    if (chance(diff, change).kind == UM_VALUE_NONE || change->verdict == UM_DIFF_SAME)
        snprintf(out, bytes, "%s", verdicts[change->verdict]);
    else if (change->p < 0.001)
        snprintf(out, bytes, "%s (p < 0.001)", verdicts[change->verdict]);
    else
        snprintf(out, bytes, "%s (p %.2g)", verdicts[change->verdict], change->p);
}

/* ---- header ----------------------------------------------------------------------------------- */

static void write_side(um_emitter_t *e, const um_diff_t *diff, int side)
{
    const um_diff_side_t *s = &diff->side[side];
    char line[300];

    um_emitter_array(e, side ? "b" : "a");
    for (size_t i = 0; i < s->n; i++)
        um_emitter_element(e, um_text(s->paths[i]));
    um_emitter_end(e);
    if (s->n == 1)
        um_emitter_pair(e, NULL, side ? "B, new" : "A, old", um_text(s->paths[0]));
    else {
        snprintf(line, sizeof(line), "%.120s .. %.120s (%zu)", s->paths[0], s->paths[s->n - 1],
                 s->n);
        um_emitter_pair(e, NULL, side ? "B, new" : "A, old", um_text(line));
    }
}

static void write_test(um_emitter_t *e, const um_diff_t *diff)
{
    size_t n = diff->side[0].n, m = diff->side[1].n;
    double least = um_rank_test_least(n, m);
    char line[400];

    um_emitter_object(e, "test");
    um_emitter_pair(e, "name", NULL, n + m > 2 ? um_text("Mann-Whitney U, two-sided") : um_none());
    um_emitter_pair(e, "alpha", NULL, um_real(UM_DIFF_ALPHA));
    um_emitter_pair(e, "least_p", NULL, n + m > 2 ? um_real(least) : um_none());
    um_emitter_end(e);
    if (n + m <= 2)
        snprintf(line, sizeof(line),
                 "none: with one trace a side nothing tells a change from chance");
    else if (least <= UM_DIFF_ALPHA)
        snprintf(line, sizeof(line),
                 "medians; better and worse where Mann-Whitney's U, two-sided, has p <= %g",
                 UM_DIFF_ALPHA);
    else
        snprintf(line, sizeof(line),
                 "medians; Mann-Whitney's U, two-sided, cannot have p below %.2g with %zu and %zu "
                 "traces, so nothing is significant at %g: better and worse where one side lies "
                 "beyond all of the other",
                 least, n, m, UM_DIFF_ALPHA);
    um_emitter_pair(e, NULL, "test", um_text(line));
}

static void note(um_emitter_t *e, const char *path, const char *text)
{
    char line[600];

    snprintf(line, sizeof(line), "%.400s: %s", path, text);
    um_emitter_element(e, um_text(line));
    um_emitter_pair(e, NULL, "note", um_text(line));
}

static void note_traces(um_emitter_t *e, const char *path, const json_t *report, const char **gpu)
{
    const json_t *trace;
    size_t i;

    json_array_foreach(json_object_get(report, "traces"), i, trace)
    {
        const json_t *loss = json_object_get(json_object_get(trace, "loss"), "events");
        const char *tracing = json_string_value(json_object_get(trace, "tracing"));
        const char *name = json_string_value(json_object_get(trace, "gpu"));

        if (json_integer_value(loss) > 0)
            note(e, path, "records were lost: its figures are too low");
        if (tracing && strcmp(tracing, "on") != 0)
            note(e, path, "faults and migrations were not recorded, or there were none");
        if (*gpu && name && strcmp(*gpu, name) != 0)
            note(e, path, "recorded on another GPU than those before it");
        *gpu = name ? name : *gpu;
    }
}

/* What keeps the two sides from being comparable. JSON: elements of an array; text: pairs. */
static void write_notes(um_emitter_t *e, const um_diff_t *diff)
{
    const char *gpu = NULL;

    um_emitter_array(e, "notes");
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < diff->side[side].n; i++) {
            bool cut = false;

            note_traces(e, diff->side[side].paths[i], diff->side[side].reports[i], &gpu);
            for (int table = UM_DIFF_FINDINGS; table < UM_DIFF_TABLES; table++)
                cut |= um_diff_cut(diff, (um_diff_kind_t)table, side, i);
            if (cut)
                note(e, diff->side[side].paths[i],
                     "the report was made with a --top that cut rows off; what it lacks is not "
                     "known");
        }
    }
    um_emitter_end(e);
}

/* ---- tables ----------------------------------------------------------------------------------- */

static void write_totals(um_emitter_t *e, const um_diff_t *diff)
{
    static const char *const units[] = {"faults", "bytes", "ns"};
    static const um_column_t columns[] = {
        {"total", "total", true, false, NULL},
        {"unit", NULL, true, false, NULL},
        {NULL, "A", false, false, NULL},
        {NULL, "B", false, false, NULL},
        {NULL, "change", false, false, NULL},
        {NULL, "verdict", true, false, NULL},
        {"a", NULL, false, false, NULL},
        {"b", NULL, false, false, NULL},
        {"change_percent", NULL, false, false, NULL},
        {"p", NULL, false, false, NULL},
        {"verdict", NULL, true, false, NULL},
    };
    const um_diff_table_t *table = &diff->table[UM_DIFF_TOTALS];

    um_emitter_heading(e, "Totals");
    um_emitter_table(e, "totals", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < table->n; i++) {
        um_diff_metric_t metric = um_diff_totals[i].metric;
        const um_diff_change_t *change = &table->items[i].change[metric];
        char a[40], b[40], by[40], verdict[60];

        print(change->a, metric, a, sizeof(a));
        print(change->b, metric, b, sizeof(b));
        print_percent(change, by, sizeof(by));
        print_verdict(diff, change, verdict, sizeof(verdict));
        um_emitter_row(e,
                       (um_value_t[]){um_text(table->items[i].name), um_text(units[metric]),
                                      um_text(a), um_text(b), um_text(by), um_text(verdict),
                                      figure(change->a), figure(change->b), change_percent(change),
                                      chance(diff, change), um_text(verdicts[change->verdict])});
    }
    um_emitter_table_end(e, 0);
}

#define METRIC_COLUMNS(name)                                                                       \
    {name "_a", NULL, false, false, NULL}, {name "_b", NULL, false, false, NULL},                  \
        {name "_change_percent", NULL, false, false, NULL}, {name "_p", NULL, false, false, NULL}, \
    {                                                                                              \
        name "_verdict", NULL, true, false, NULL                                                   \
    }
#define ITEM_COLUMNS(title)                                                                        \
    {NULL, title, true, false, NULL}, {"name", NULL, true, false, NULL},                           \
        {NULL, "faults", false, true, NULL}, {NULL, "bytes", false, true, NULL},                   \
        {NULL, "time", false, false, NULL}, {NULL, "verdict", true, false, NULL},                  \
        METRIC_COLUMNS("faults"), METRIC_COLUMNS("bytes"), METRIC_COLUMNS("time")
#define ITEM_VALUES 21

/* The figure that speaks for the row: time where there is any, else bytes, else faults. */
static const um_diff_change_t *speaker(const um_diff_item_t *item)
{
    for (int metric = UM_DIFF_METRICS - 1; metric > 0; metric--) {
        const um_diff_change_t *change = &item->change[metric];

        if (change->verdict != UM_DIFF_UNKNOWN && (change->a > 0 || change->b > 0))
            return change;
    }
    return &item->change[UM_DIFF_FAULTS];
}

typedef struct um_diff_words {
    char line[3][120], verdict[60];
} um_diff_words_t;

static void item_values(const um_diff_t *diff, const um_diff_item_t *item, const char *name,
                        um_diff_words_t *words, um_value_t values[ITEM_VALUES])
{
    size_t n = 0;

    print_verdict(diff, speaker(item), words->verdict, sizeof(words->verdict));
    values[n++] = um_text(name);
    values[n++] = um_text(item->name);
    for (int metric = 0; metric < UM_DIFF_METRICS; metric++) {
        um_diff_say(&item->change[metric], (um_diff_metric_t)metric, false, words->line[metric],
                    sizeof(words->line[metric]));
        values[n++] = um_text(words->line[metric]);
    }
    values[n++] = um_text(words->verdict);
    for (int metric = 0; metric < UM_DIFF_METRICS; metric++) {
        const um_diff_change_t *change = &item->change[metric];

        values[n++] = figure(change->a);
        values[n++] = figure(change->b);
        values[n++] = change_percent(change);
        values[n++] = chance(diff, change);
        values[n++] = um_text(verdicts[change->verdict]);
    }
}

/* Text shows what changed; JSON all. */
static bool shown(const um_emitter_t *e, const um_diff_item_t *item)
{
    bool changed = false;

    for (int metric = 0; metric < UM_DIFF_METRICS; metric++)
        changed |= item->change[metric].verdict != UM_DIFF_SAME &&
                   item->change[metric].verdict != UM_DIFF_UNKNOWN;
    return changed || !um_emitter_is_text(e);
}

static void end_of_table(um_emitter_t *e, uint64_t rows, uint32_t top, const char *without_rows)
{
    if (rows || !um_emitter_is_text(e))
        um_emitter_table_end(e, rows > top ? rows - top : 0);
    else
        um_emitter_line(e, "%s", without_rows);
}

static void write_items(um_emitter_t *e, const um_diff_t *diff, um_diff_kind_t kind,
                        const char *key, const char *heading)
{
    static const um_column_t region[] = {ITEM_COLUMNS("region")};
    static const um_column_t kernel[] = {ITEM_COLUMNS("kernel")};
    const um_diff_table_t *table = &diff->table[kind];
    uint32_t top = um_emitter_options(e)->top;
    uint64_t rows = 0;

    um_emitter_heading(e, heading);
    um_emitter_table(e, key, kind == UM_DIFF_REGIONS ? region : kernel, ITEM_VALUES);
    for (size_t i = 0; i < table->n; i++) {
        um_diff_words_t words;
        um_value_t values[ITEM_VALUES];

        if (!shown(e, &table->items[i]) || rows++ >= top)
            continue;
        item_values(diff, &table->items[i], table->items[i].name, &words, values);
        um_emitter_row(e, values);
    }
    end_of_table(e, rows, top, "  no difference");
}

static const char *state_of(const um_diff_t *diff, const um_diff_item_t *item)
{
    bool in_a = item->there[0] * 2 > diff->side[0].n, in_b = item->there[1] * 2 > diff->side[1].n;

    if (item->cut[0] || item->cut[1])
        return "unknown";
    if (um_diff_is_new(diff, item))
        return "new";
    return in_a && item->there[1] * 2 < diff->side[1].n ? "gone"
           : in_a && in_b                               ? "both"
                                                        : "sometimes";
}

static void write_findings(um_emitter_t *e, const um_diff_t *diff)
{
    static const um_column_t columns[] = {ITEM_COLUMNS("finding"),
                                          {"kind", NULL, true, false, NULL},
                                          {"state", "in", true, false, NULL},
                                          {"time_by", "by", true, false, NULL},
                                          {"time_error_ns", NULL, false, false, NULL},
                                          {"worth_it", NULL, true, false, NULL}};
    const um_diff_table_t *table = &diff->table[UM_DIFF_FINDINGS];
    uint32_t top = um_emitter_options(e)->top;
    uint64_t rows = 0, folded = 0;

    um_emitter_heading(e, "Findings (time: what there is to win, by replay or estimate)");
    um_emitter_table(e, "findings", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < table->n; i++) {
        const um_diff_item_t *item = &table->items[i];
        um_value_t values[sizeof(columns) / sizeof(columns[0])];
        bool worth = item->worth[0] || item->worth[1];
        um_diff_words_t words;
        char name[600];

        if (!shown(e, item))
            continue;
        if (!worth && um_emitter_is_text(e)) {
            folded++;
            continue;
        }
        if (rows++ >= top)
            continue;
        snprintf(name, sizeof(name), "%.60s: %.500s", item->kind, item->name);
        item_values(diff, item, name, &words, values);
        values[ITEM_VALUES] = um_text(item->kind);
        values[ITEM_VALUES + 1] = um_text(state_of(diff, item));
        values[ITEM_VALUES + 2] = um_text(item->estimated ? "estimate" : "replay");
        values[ITEM_VALUES + 3] =
            item->estimated || item->error_ns == 0 ? um_none() : um_ns((uint64_t)item->error_ns);
        values[ITEM_VALUES + 4] = um_bool(worth);
        um_emitter_row(e, values);
    }
    end_of_table(e, rows, top, folded ? "  no difference that is worth it" : "  no difference");
    if (folded)
        um_emitter_line(e, "  and %llu that changed and %s not worth it on either side",
                        (unsigned long long)folded, folded == 1 ? "is" : "are");
}

static void write_gate(um_emitter_t *e, const um_diff_t *diff)
{
    bool failed = false;

    if (diff->n_judged)
        um_emitter_heading(e, "Fail on");
    um_emitter_array(e, "fail_on");
    for (size_t i = 0; i < diff->n_judged; i++) {
        const um_diff_judged_t *judged = &diff->judged[i];
        char *line = NULL, *clean;

        failed |= judged->fired;
        um_emitter_object(e, NULL);
        um_emitter_pair(e, "condition", NULL, um_text(judged->condition));
        um_emitter_pair(e, "fired", NULL, um_bool(judged->fired));
        um_emitter_pair(e, "why", NULL, um_text(judged->why));
        um_emitter_end(e);
        if (!um_emitter_is_text(e) ||
            asprintf(&line, "  %s  %s: %s", judged->fired ? "FAILED" : "passed", judged->condition,
                     judged->why) < 0)
            continue;
        clean = um_text_clean(line);
        um_emitter_line(e, "%s", clean ? clean : "");
        free(clean);
        free(line);
    }
    um_emitter_end(e);
    um_emitter_pair(e, "failed", NULL, um_bool(failed));
}

um_status_t um_diff_write(const um_diff_t *diff, const um_report_options_t *options, FILE *out)
{
    um_emitter_t *e;
    um_status_t status = um_emitter_open(options, out, &e);

    if (status)
        return status;
    um_emitter_pair(e, "schema", NULL, um_text("umrt.diff/1"));
    um_emitter_line(e, "umrt diff");
    write_side(e, diff, 0);
    write_side(e, diff, 1);
    write_test(e, diff);
    write_notes(e, diff);
    write_totals(e, diff);
    write_findings(e, diff);
    write_items(e, diff, UM_DIFF_REGIONS, "regions", "Regions");
    write_items(e, diff, UM_DIFF_KERNELS, "kernels", "Kernels");
    write_gate(e, diff);
    return um_emitter_close(e);
}

#include "diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "diff_parts.h"
#include "findings/finding.h"
#include "rank_test.h"
#include "same.h"

/* Of an item's value, while reading. */
#define NOT_THERE (-1.0)

const um_diff_total_t um_diff_totals[] = {
    {"faults", UM_DIFF_FAULTS, {"gpu_faults", "cpu_faults"}},
    {"gpu-faults", UM_DIFF_FAULTS, {"gpu_faults", NULL}},
    {"cpu-faults", UM_DIFF_FAULTS, {"cpu_faults", NULL}},
    {"bytes", UM_DIFF_BYTES, {"to_device_bytes", "to_host_bytes"}},
    {"bytes-to-gpu", UM_DIFF_BYTES, {"to_device_bytes", NULL}},
    {"bytes-to-cpu", UM_DIFF_BYTES, {"to_host_bytes", NULL}},
    {"time", UM_DIFF_TIME, {"gpu_fault_ns", "cpu_wait_ns"}},
    {"gpu-stall", UM_DIFF_TIME, {"gpu_fault_ns", NULL}},
    {"cpu-wait", UM_DIFF_TIME, {"cpu_wait_ns", NULL}},
    {"span", UM_DIFF_TIME, {"span_ns", NULL}},
    {NULL, UM_DIFF_FAULTS, {NULL, NULL}},
};

const char *um_diff_total(size_t i)
{
    return i < sizeof(um_diff_totals) / sizeof(um_diff_totals[0]) ? um_diff_totals[i].name : NULL;
}

/* ---- life ------------------------------------------------------------------------------------- */

um_status_t um_diff_new(um_diff_t **out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? UM_OK : UM_ERR_NO_MEMORY;
}

static void free_table(um_diff_table_t *table)
{
    for (size_t i = 0; i < table->n; i++) {
        free(table->items[i].name);
        free(table->items[i].kind);
        free(table->items[i].values);
    }
    free(table->items);
    um_map_free(&table->by_key);
}

void um_diff_free(um_diff_t *diff)
{
    if (!diff)
        return;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < diff->side[side].n; i++) {
            free(diff->side[side].paths[i]);
            json_decref(diff->side[side].reports[i]);
        }
        free(diff->side[side].paths);
        free(diff->side[side].reports);
    }
    for (int t = 0; t < UM_DIFF_TABLES; t++)
        free_table(&diff->table[t]);
    for (size_t i = 0; i < diff->n_judged; i++)
        free(diff->judged[i].condition);
    free(diff->judged);
    free(diff);
}

/* The first note about a trace of the report that is not whole, or NULL. */
static const char *damage_of(const json_t *report)
{
    const json_t *trace;
    size_t i;

    json_array_foreach(json_object_get(report, "traces"), i, trace)
    {
        if (json_is_string(json_object_get(trace, "note")))
            return json_string_value(json_object_get(trace, "note"));
    }
    return NULL;
}

um_status_t um_diff_add(um_diff_t *diff, int side, const char *path, json_t *report, char *error,
                        size_t error_bytes)
{
    static const char *const arrays[] = {"traces", "findings", "regions", "kernels"};
    const char *schema = json_string_value(json_object_get(report, "schema"));
    um_diff_side_t *to = &diff->side[side];
    const char *damage = damage_of(report);
    char **paths;
    json_t **reports;

    if (!schema || strcmp(schema, "umrt.report/1") != 0) {
        snprintf(error, error_bytes, "%s: is no report of umrt (umrt.report/1)", path);
        return UM_ERR_FORMAT;
    }
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        if (json_is_array(json_object_get(report, arrays[i])) &&
            json_is_object(json_object_get(report, "totals")))
            continue;
        snprintf(error, error_bytes, "%s: the report has no totals or no %s", path, arrays[i]);
        return UM_ERR_FORMAT;
    }
    if (damage) {
        snprintf(error, error_bytes, "%s: not whole, so it cannot be compared: %s", path, damage);
        return UM_ERR_FORMAT;
    }
    if (to->n == UM_DIFF_REPORTS) {
        snprintf(error, error_bytes, "%s: more than %u reports a side", path, UM_DIFF_REPORTS);
        return UM_ERR_FULL;
    }
    paths = realloc(to->paths, (to->n + 1) * sizeof(*paths));
    if (paths)
        to->paths = paths;
    reports = realloc(to->reports, (to->n + 1) * sizeof(*reports));
    if (reports)
        to->reports = reports;
    if (!paths || !reports || !(paths[to->n] = strdup(path))) {
        snprintf(error, error_bytes, "%s: out of memory", path);
        return UM_ERR_NO_MEMORY;
    }
    reports[to->n++] = json_incref(report);
    return UM_OK;
}

/* ---- items ------------------------------------------------------------------------------------ */

static size_t n_reports(const um_diff_t *diff)
{
    return diff->side[0].n + diff->side[1].n;
}

double *um_diff_series(const um_diff_t *diff, const um_diff_item_t *item, int side,
                       um_diff_metric_t metric)
{
    return item->values + n_reports(diff) * metric + (side ? diff->side[0].n : 0);
}

static um_status_t item_at(um_diff_t *diff, um_diff_table_t *table, const char *kind,
                           const char *key, const char *name, um_diff_item_t **out)
{
    uint64_t hash = um_map_hash(key, strlen(key), um_map_hash(kind, strlen(kind), 0));
    uint32_t at = um_map_find(&table->by_key, hash);
    size_t n = n_reports(diff);
    um_diff_item_t *item;

    if (at == UM_MAP_NONE) {
        if (!um_grow(&table->items, &table->size, table->n + 1, sizeof(*table->items)))
            return UM_ERR_NO_MEMORY;
        item = &table->items[table->n];
        *item = (um_diff_item_t){.name = strdup(name),
                                 .kind = strdup(kind),
                                 .values = calloc(n * UM_DIFF_METRICS, sizeof(double))};
        if (!item->name || !item->kind || !item->values ||
            um_map_put(&table->by_key, hash, (uint32_t)table->n)) {
            free(item->name);
            free(item->kind);
            free(item->values);
            return UM_ERR_NO_MEMORY;
        }
        for (size_t i = 0; i < n * UM_DIFF_METRICS; i++)
            item->values[i] = NOT_THERE;
        at = (uint32_t)table->n++;
    }
    *out = &table->items[at];
    return UM_OK;
}

/* Adds to what is there; NAN where it is not known. */
static void tell(const um_diff_t *diff, um_diff_item_t *item, int side, size_t i,
                 um_diff_metric_t metric, double value)
{
    double *at = um_diff_series(diff, item, side, metric) + i;

    *at = *at == NOT_THERE ? value : *at + value;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) && json_integer_value(value) >= 0
               ? (double)json_integer_value(value)
               : NAN;
}

/* The sum of what is known of two, NAN where nothing is. */
static double sum_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static um_status_t read_totals(um_diff_t *diff, int side, size_t i)
{
    const json_t *totals = json_object_get(diff->side[side].reports[i], "totals");

    for (const um_diff_total_t *total = um_diff_totals; total->name; total++) {
        um_diff_item_t *item;
        double value = number(totals, total->keys[0]);
        um_status_t status =
            item_at(diff, &diff->table[UM_DIFF_TOTALS], "", total->name, total->name, &item);

        if (status)
            return status;
        tell(diff, item, side, i, total->metric,
             total->keys[1] ? value + number(totals, total->keys[1]) : value);
    }
    return UM_OK;
}

static bool same_finding(um_diff_t *diff, const json_t *finding, um_status_t *status,
                         um_diff_item_t **item)
{
    const char *where = text_of(finding, "where");
    char key[1024];

    um_same_name(where, key, sizeof(key));
    *status =
        item_at(diff, &diff->table[UM_DIFF_FINDINGS], text_of(finding, "kind"), key, where, item);
    return !*status;
}

/* By replay if all have one, else all by estimate: like is compared with like. */
static um_status_t find_measure(um_diff_t *diff, int side, size_t i)
{
    um_status_t status = UM_OK;
    const json_t *finding;
    size_t at;

    json_array_foreach(json_object_get(diff->side[side].reports[i], "findings"), at, finding)
    {
        double error_ns = number(finding, "predicted_error_ns");
        um_diff_item_t *item;

        if (!same_finding(diff, finding, &status, &item))
            return status;
        item->estimated |= isnan(number(finding, "predicted_ns"));
        item->error_ns = error_ns > item->error_ns ? error_ns : item->error_ns;
        item->worth[side] |= !json_is_false(json_object_get(finding, "worth_it"));
    }
    return UM_OK;
}

static um_status_t read_findings(um_diff_t *diff, int side, size_t i)
{
    const json_t *finding;
    size_t at;

    json_array_foreach(json_object_get(diff->side[side].reports[i], "findings"), at, finding)
    {
        const json_t *evidence = json_object_get(finding, "evidence");
        um_diff_item_t *item;
        um_status_t status;

        if (!same_finding(diff, finding, &status, &item))
            return status;
        tell(diff, item, side, i, UM_DIFF_FAULTS,
             sum_known(number(evidence, "gpu_faults"), number(evidence, "cpu_faults")));
        tell(diff, item, side, i, UM_DIFF_BYTES,
             sum_known(number(evidence, "to_device_bytes"), number(evidence, "to_host_bytes")));
        tell(diff, item, side, i, UM_DIFF_TIME,
             number(finding, item->estimated ? "win_ns" : "predicted_ns"));
    }
    return UM_OK;
}

static int by_number(const void *x, const void *y)
{
    double a = number(*(const json_t *const *)x, "region");
    double b = number(*(const json_t *const *)y, "region");

    return a < b ? -1 : a > b;
}

/* By label; or else by size and call site, and by order of allocation where several are alike, which
 * `alike` counts. */
static um_status_t region_key(const json_t *region, um_map_t *alike, char *key, size_t bytes)
{
    const char *name = text_of(region, "name");
    uint64_t hash;
    uint32_t before;
    size_t n;

    um_same_name(name, key, bytes);
    if (!strcmp(key, name))
        return UM_OK;
    n = strnlen(key, bytes / 2);
    um_same_name(text_of(region,
                         json_is_string(json_object_get(region, "place")) ? "place" : "call_site"),
                 key + n, bytes - n - 16);
    n = strlen(key);
    hash = um_map_hash(key, n, 0);
    before = um_map_find(alike, hash);
    before = before == UM_MAP_NONE ? 0 : before;
    snprintf(key + n, bytes - n, " %u", before);
    return um_map_put(alike, hash, before + 1);
}

static um_status_t read_region(um_diff_t *diff, int side, size_t i, const json_t *region,
                               um_map_t *alike)
{
    um_diff_item_t *item;
    char key[1024];
    um_status_t status = region_key(region, alike, key, sizeof(key));

    if (!status)
        status =
            item_at(diff, &diff->table[UM_DIFF_REGIONS], "", key, text_of(region, "name"), &item);
    if (status)
        return status;
    tell(diff, item, side, i, UM_DIFF_FAULTS,
         sum_known(number(region, "gpu_faults"), number(region, "cpu_faults")));
    tell(diff, item, side, i, UM_DIFF_BYTES,
         number(region, "to_device_bytes") + number(region, "to_host_bytes"));
    tell(diff, item, side, i, UM_DIFF_TIME,
         sum_known(number(region, "gpu_fault_ns"), number(region, "cpu_wait_ns")));
    return UM_OK;
}

static um_status_t read_regions(um_diff_t *diff, int side, size_t i)
{
    const json_t *regions = json_object_get(diff->side[side].reports[i], "regions");
    size_t n = json_array_size(regions);
    const json_t **sorted = calloc(n + 1, sizeof(const json_t *));
    um_map_t alike = {0};
    um_status_t status = sorted ? UM_OK : UM_ERR_NO_MEMORY;

    for (size_t k = 0; sorted && k < n; k++)
        sorted[k] = json_array_get(regions, k);
    if (n && sorted)
        qsort(sorted, n, sizeof(const json_t *), by_number);
    for (size_t k = 0; !status && k < n; k++)
        status = read_region(diff, side, i, sorted[k], &alike);
    um_map_free(&alike);
    free(sorted);
    return status;
}

static um_status_t read_kernels(um_diff_t *diff, int side, size_t i)
{
    const json_t *kernel;
    size_t at;

    json_array_foreach(json_object_get(diff->side[side].reports[i], "kernels"), at, kernel)
    {
        const char *name = text_of(kernel, "name");
        um_diff_item_t *item;
        um_status_t status = item_at(diff, &diff->table[UM_DIFF_KERNELS], "", name, name, &item);

        if (status)
            return status;
        tell(diff, item, side, i, UM_DIFF_FAULTS, number(kernel, "gpu_faults"));
        tell(diff, item, side, i, UM_DIFF_BYTES, number(kernel, "to_device_bytes"));
        tell(diff, item, side, i, UM_DIFF_TIME, number(kernel, "gpu_fault_ns"));
    }
    return UM_OK;
}

/* ---- comparing -------------------------------------------------------------------------------- */

bool um_diff_cut(const um_diff_t *diff, um_diff_kind_t table, int side, size_t i)
{
    static const char *const names[][2] = {[UM_DIFF_FINDINGS] = {"findings", "findings_found"},
                                           [UM_DIFF_REGIONS] = {"regions", "regions_found"},
                                           [UM_DIFF_KERNELS] = {"kernels", "kernels_found"}};
    const json_t *report = diff->side[side].reports[i];

    return table != UM_DIFF_TOTALS &&
           number(report, names[table][1]) >
               (double)json_array_size(json_object_get(report, names[table][0]));
}

/* What a report does not have is nothing there, or unknown where its table was cut off. */
static void fill(const um_diff_t *diff, um_diff_kind_t table, um_diff_item_t *item)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < diff->side[side].n; i++) {
            bool there = um_diff_series(diff, item, side, UM_DIFF_TIME)[i] != NOT_THERE;
            bool cut = um_diff_cut(diff, table, side, i);

            item->there[side] += there;
            item->cut[side] |= cut && !there;
            for (int metric = 0; metric < UM_DIFF_METRICS; metric++) {
                double *at = um_diff_series(diff, item, side, (um_diff_metric_t)metric) + i;

                if (*at == NOT_THERE)
                    *at = cut ? NAN : 0;
            }
        }
    }
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return a < b ? -1 : a > b;
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static um_status_t test(double *a, size_t n, double *b, size_t m, um_diff_change_t *out)
{
    double least = um_rank_test_least(n, m);

    out->a = median(a, n);
    out->b = median(b, m);
    out->p = um_rank_test(a, n, b, m);
    if (out->p < 0)
        return UM_ERR_NO_MEMORY;
    /* A little more than the least: the two were computed in their own ways. */
    out->surely = out->p <= fmax(UM_DIFF_ALPHA, least * (1 + 1e-9));
    out->verdict = out->a == out->b  ? UM_DIFF_SAME
                   : !out->surely    ? UM_DIFF_UNSURE
                   : out->b < out->a ? UM_DIFF_BETTER
                                     : UM_DIFF_WORSE;
    return UM_OK;
}

static um_status_t compare(const um_diff_t *diff, const um_diff_item_t *item,
                           um_diff_metric_t metric, um_diff_change_t *out)
{
    double *known[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    um_status_t status = UM_OK;

    *out = (um_diff_change_t){.verdict = UM_DIFF_UNKNOWN, .a = NAN, .b = NAN, .p = NAN};
    for (int side = 0; side < 2; side++) {
        const double *all = um_diff_series(diff, item, side, metric);

        known[side] = malloc((diff->side[side].n + 1) * sizeof(double));
        if (!known[side])
            status = UM_ERR_NO_MEMORY;
        for (size_t i = 0; !status && i < diff->side[side].n; i++) {
            if (!isnan(all[i]))
                known[side][n[side]++] = all[i];
        }
    }
    if (!status && n[0] && n[1])
        status = test(known[0], n[0], known[1], n[1], out);
    else if (!status && n[0] + n[1])
        *(n[0] ? &out->a : &out->b) = median(known[!n[0]], n[!n[0]]);
    free(known[0]);
    free(known[1]);
    return status;
}

static double moved(const um_diff_item_t *item, int metric)
{
    double by = fabs(item->change[metric].b - item->change[metric].a);

    return isnan(by) ? 0 : by;
}

/* What changed most in time first, then in bytes, in faults. */
static int by_change(const void *x, const void *y)
{
    const um_diff_item_t *a = x, *b = y;
    int kinds = strcmp(a->kind, b->kind);

    for (int metric = UM_DIFF_METRICS - 1; metric >= 0; metric--) {
        if (moved(a, metric) != moved(b, metric))
            return moved(a, metric) < moved(b, metric) ? 1 : -1;
    }
    return kinds ? kinds : strcmp(a->name, b->name);
}

static um_status_t compare_table(um_diff_t *diff, um_diff_kind_t kind)
{
    um_diff_table_t *table = &diff->table[kind];
    um_status_t status = UM_OK;

    for (size_t i = 0; !status && i < table->n; i++) {
        fill(diff, kind, &table->items[i]);
        for (int metric = 0; !status && metric < UM_DIFF_METRICS; metric++)
            status = compare(diff, &table->items[i], (um_diff_metric_t)metric,
                             &table->items[i].change[metric]);
    }
    um_map_free(&table->by_key); /* indices no longer hold */
    memset(&table->by_key, 0, sizeof(table->by_key));
    if (kind != UM_DIFF_TOTALS && table->n)
        qsort(table->items, table->n, sizeof(*table->items), by_change);
    return status;
}

um_status_t um_diff_compare(um_diff_t *diff)
{
    static um_status_t (*const read[])(um_diff_t * diff, int side,
                                       size_t i) = {read_totals, read_findings, read_regions,
                                                    read_kernels};
    um_status_t status = UM_OK;

    if (!diff->side[0].n || !diff->side[1].n || diff->compared)
        return UM_ERR_STATE;
    diff->compared = true;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; !status && i < diff->side[side].n; i++)
            status = find_measure(diff, side, i);
    }
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < diff->side[side].n; i++) {
            for (int t = 0; !status && t < UM_DIFF_TABLES; t++)
                status = read[t](diff, side, i);
        }
    }
    for (int t = 0; !status && t < UM_DIFF_TABLES; t++)
        status = compare_table(diff, (um_diff_kind_t)t);
    return status;
}

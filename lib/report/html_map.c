/* The part "map" of a page: the heat map's cells, the lanes and the phases of the time line. Numbers by
 * the thousand go as little-endian base-128 (LEB128) in base64; page.js is the other side. */
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "demangle.h"
#include "html.h"

/* Of base64, all cells together. */
#define CELLS_BYTES (3u * 1024 * 1024)

/* ---- numbers ------------------------------------------------------------------------------------ */

typedef struct um_numbers {
    uint8_t *data;
    size_t n, size;
    bool failed;
} um_numbers_t;

static void put(um_numbers_t *to, uint64_t number)
{
    if (to->n + 10 > to->size) {
        size_t size = to->size ? to->size * 2 : 4096;
        uint8_t *data = realloc(to->data, size);

        if (!data) {
            to->failed = true;
            return;
        }
        to->data = data;
        to->size = size;
    }
    for (; number >= 0x80; number >>= 7)
        to->data[to->n++] = (uint8_t)(number | 0x80);
    to->data[to->n++] = (uint8_t)number;
}

/* Emits them and begins anew. */
static um_status_t say(um_emitter_t *e, const char *key, um_numbers_t *numbers)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = numbers->failed ? NULL : malloc((numbers->n + 2) / 3 * 4 + 1), *to = text;

    if (!text)
        return UM_ERR_NO_MEMORY;
    for (size_t i = 0; i < numbers->n; i += 3) {
        size_t left = numbers->n - i;
        uint32_t three = (uint32_t)numbers->data[i] << 16 |
                         (left > 1 ? (uint32_t)numbers->data[i + 1] << 8 : 0) |
                         (left > 2 ? numbers->data[i + 2] : 0);

        *to++ = digit[three >> 18];
        *to++ = digit[three >> 12 & 63];
        *to++ = left > 1 ? digit[three >> 6 & 63] : '=';
        *to++ = left > 2 ? digit[three & 63] : '=';
    }
    *to = 0;
    um_emitter_pair(e, key, NULL, um_text(text));
    free(text);
    numbers->n = 0;
    return UM_OK;
}

/* ---- cells -------------------------------------------------------------------------------------- */

/* Kernels that the map or the lanes name, numbered in the order of first use; 0 = none. */
typedef struct um_named {
    uint32_t *number; /* by index in kernels_stat */
    uint32_t *index;  /* by number - 1 */
    uint32_t n;
} um_named_t;

static uint32_t number_of(um_named_t *named, const um_report_t *r, uint32_t kernel)
{
    if (kernel >= r->kernels.n_kernels)
        return 0;
    if (!named->number[kernel]) {
        named->index[named->n++] = kernel;
        named->number[kernel] = named->n;
    }
    return named->number[kernel];
}

/* [first, last) are a group's: distance from the cell before, pages in and out, faults, kernel. */
static void put_cells(um_numbers_t *to, const um_report_t *r, um_named_t *named, size_t first,
                      size_t last)
{
    uint64_t before = 0;

    for (size_t i = first; i < last; i++) {
        const um_heat_cell_t *cell = &r->heat.cells[i];
        uint64_t at = (uint64_t)cell->row * r->heat.columns_max + cell->column;

        put(to, at - before);
        put(to, cell->in_pages);
        put(to, cell->out_pages);
        put(to, cell->faults);
        put(to, number_of(named, r, cell->kernel));
        before = at;
    }
}

static size_t group_end(const um_report_t *r, size_t first)
{
    size_t last = first;

    while (last < r->heat.n_cells && r->heat.cells[last].group == r->heat.cells[first].group)
        last++;
    return last;
}

static bool too_many(const um_report_t *r, um_named_t *named, um_numbers_t *numbers)
{
    bool many;

    for (size_t i = 0, end; i < r->heat.n_cells; i = end) {
        end = group_end(r, i);
        put_cells(numbers, r, named, i, end);
    }
    many = numbers->n / 3 * 4 > CELLS_BYTES;
    numbers->n = 0;
    return many;
}

static um_status_t say_regions(um_emitter_t *e, um_report_t *r, um_named_t *named,
                               um_numbers_t *numbers)
{
    um_status_t status = UM_OK;

    um_heatmap_sort(&r->heat);
    while (!status && too_many(r, named, numbers)) {
        status = um_heatmap_coarsen(&r->heat);
        um_heatmap_sort(&r->heat);
    }
    if (status && status != UM_ERR_FULL)
        return status;
    um_emitter_pair(e, "column_ns", NULL, um_count(r->heat.column_ns));
    um_emitter_pair(e, "columns", NULL, um_count(r->heat.columns_max));
    um_emitter_pair(e, "skipped", NULL, um_bool(r->heat.skipped));
    um_emitter_array(e, "regions");
    status = UM_OK;
    for (size_t i = 0, end; !status && i < r->heat.n_cells; i = end) {
        uint32_t g = r->heat.cells[i].group;
        const um_group_t *group = &r->regions.groups[g];
        char name[200];

        end = group_end(r, i);
        um_group_name(group, name, sizeof(name));
        um_emitter_object(e, NULL);
        um_emitter_pair(e, "name", NULL, um_text(name));
        um_emitter_pair(e, "addr", NULL, um_addr(group->first_addr));
        um_emitter_pair(e, "bytes", NULL, um_bytes(group->bytes));
        um_emitter_pair(e, "regions", NULL, um_count(group->regions));
        um_emitter_pair(e, "row_bytes", NULL, um_bytes(r->heat.row_bytes[g]));
        um_emitter_pair(e, "rows", NULL, um_count(r->heat.rows[g]));
        put_cells(numbers, r, named, i, end);
        status = say(e, "cells", numbers);
        um_emitter_end(e);
    }
    um_emitter_end(e);
    return status;
}

/* ---- time line ---------------------------------------------------------------------------------- */

static um_status_t say_lanes(um_emitter_t *e, const um_report_t *r, um_named_t *named,
                             um_numbers_t *numbers)
{
    static const struct {
        const char *key;
        size_t offset;
    } lane[] = {
        {"kernel_ns", offsetof(um_lane_t, kernel_ns)},
        {"kernels", offsetof(um_lane_t, kernels)},
        {"launches", offsetof(um_lane_t, launches)},
        {"gpu_faults", offsetof(um_lane_t, gpu_faults)},
        {"cpu_faults", offsetof(um_lane_t, cpu_faults)},
        {"to_device_bytes", offsetof(um_lane_t, in_bytes)},
        {"to_host_bytes", offsetof(um_lane_t, out_bytes)},
        {"evicted_bytes", offsetof(um_lane_t, evicted_bytes)},
        {"hints", offsetof(um_lane_t, hints)},
    };
    const um_lanes_t *lanes = &r->lanes;
    um_status_t status = UM_OK;

    um_emitter_object(e, "lanes");
    um_emitter_pair(e, "column_ns", NULL, um_count(lanes->column_ns));
    um_emitter_pair(e, "columns", NULL, um_count(lanes->n_columns));
    for (size_t i = 0; !status && i < sizeof(lane) / sizeof(lane[0]); i++) {
        for (uint32_t c = 0; c < lanes->n_columns; c++) {
            uint64_t number;

            memcpy(&number, (const char *)&lanes->column[c] + lane[i].offset, sizeof(number));
            put(numbers, number);
        }
        status = say(e, lane[i].key, numbers);
    }
    for (uint32_t c = 0; c < lanes->n_columns; c++)
        put(numbers, number_of(named, r, lanes->column[c].kernel));
    if (!status)
        status = say(e, "kernel", numbers);
    um_emitter_end(e);
    return status;
}

static void put_span(um_numbers_t *to, const um_report_t *r, uint64_t what, uint32_t trace,
                     uint64_t start_ns, uint64_t end_ns)
{
    uint64_t first_ns = r->traces[trace].first_ns;

    put(to, what);
    put(to, start_ns > first_ns ? start_ns - first_ns : 0);
    put(to, end_ns > start_ns ? end_ns - start_ns : 0);
}

/* Each a name or kind, a start and how long it lasted. */
static um_status_t say_phases(um_emitter_t *e, const um_report_t *r, um_numbers_t *numbers)
{
    const um_timeline_t *t = &r->timeline;
    um_status_t status;

    um_emitter_array(e, "names");
    for (size_t i = 0; t->n_spans && i < t->n_named; i++)
        um_emitter_element(e, um_text(t->named[i].name));
    um_emitter_end(e);
    um_emitter_pair(e, "spans_left", NULL, um_count(t->spans_left));
    for (size_t i = 0; i < t->n_spans; i++)
        put_span(numbers, r, t->spans[i].named, t->spans[i].trace, t->spans[i].start_ns,
                 t->spans[i].end_ns);
    status = say(e, "spans", numbers);
    for (size_t i = 0; i < t->n_turns; i++)
        put_span(numbers, r, t->turns[i].kind, t->turns[i].trace, t->turns[i].start_ns,
                 t->turns[i].end_ns);
    return status ? status : say(e, "turns", numbers);
}

static void say_names(um_emitter_t *e, const um_report_t *r, const um_named_t *named)
{
    um_emitter_array(e, "kernels");
    for (uint32_t i = 0; i < named->n; i++) {
        const um_kernel_stat_t *kernel = &r->kernels.kernels[named->index[i]];
        char *name = *kernel->name ? um_demangle_short(kernel->name) : NULL;

        um_emitter_element(e, um_text(name ? name : "a kernel"));
        free(name);
    }
    um_emitter_end(e);
}

char *um_html_map(um_report_t *r)
{
    const um_report_options_t options = {.format = UM_REPORT_JSON, .top = 1, .width = 100};
    um_named_t named = {.number = calloc(r->kernels.n_kernels + 1, sizeof(uint32_t)),
                        .index = calloc(r->kernels.n_kernels + 1, sizeof(uint32_t))};
    um_numbers_t numbers = {0};
    um_status_t status = named.number && named.index ? UM_OK : UM_ERR_NO_MEMORY;
    um_emitter_t *e = NULL;
    char *json = NULL;
    size_t bytes;
    FILE *out = open_memstream(&json, &bytes);

    if (!out || (!status && (status = um_emitter_open(&options, out, &e))))
        status = UM_ERR_NO_MEMORY;
    if (!status)
        status = say_regions(e, r, &named, &numbers);
    if (!status)
        status = say_lanes(e, r, &named, &numbers);
    if (!status)
        status = say_phases(e, r, &numbers);
    if (!status)
        say_names(e, r, &named);
    if (e && status)
        um_emitter_abandon(e);
    else if (e)
        status = um_emitter_close(e);
    if (out && fclose(out))
        status = UM_ERR_NO_MEMORY;
    free(named.number);
    free(named.index);
    free(numbers.data);
    if (status) {
        free(json);
        return NULL;
    }
    return json;
}

/* What a page is made of: heat map and lanes that lose nothing as they grow, parts that end no element. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/heatmap.h"
#include "report/html.h"
#include "report/lanes.h"
#include "report_stream.h"

static char *page_of(um_report_t *r, const char *replay)
{
    const um_report_options_t options = {.top = 1000, .width = 100};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    cr_assert_eq(um_html_report(r, &options, replay, out), UM_OK);
    fclose(out);
    um_report_free(r);
    return text;
}

static size_t times(const char *text, const char *word)
{
    size_t n = 0;

    while ((text = strstr(text, word))) {
        text += strlen(word);
        n++;
    }
    return n;
}

/* The JSON of a part. */
static json_t *part(const char *page, const char *name)
{
    char begin[64];
    const char *from, *to;
    json_t *json;

    snprintf(begin, sizeof(begin), "id=\"part-%s\">", name);
    from = strstr(page, begin);
    cr_assert_not_null(from);
    from += strlen(begin);
    to = strstr(from, "</script>");
    cr_assert_not_null(to);
    json = json_loadb(from, (size_t)(to - from), 0, NULL);
    cr_assert_not_null(json, "part %s is no JSON", name);
    return json;
}

Test(html, a_label_that_ends_a_script_stays_a_label)
{
    static const char label[] = "</script><img src=x onerror=alert(1)><!--\\\" ]]>";
    um_report_t *r = stream_new("<!--<script>.umt");
    char *page, *bare;
    json_t *report;

    stream_alloc(r, 1, 1, BASE, MIB, label);
    stream_kernel(r, 1, label);
    stream_exec(r, 2, 10, 1);
    stream_gpu_fault(r, 3, 1, BASE);
    stream_move(r, 4, 1, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    page = page_of(r, "{\"absent\": \"</script>\"}");
    r = stream_new("x");
    bare = page_of(r, NULL);
    cr_assert_eq(times(page, "</script"), times(bare, "</script") + 1); /* the part replay's own */
    cr_assert_eq(times(page, "<!--"), times(bare, "<!--"));
    cr_assert_eq(times(page, "<img"), 0);
    report = part(page, "report");
    cr_assert_str_eq(json_string_value(
                         json_object_get(json_array_get(json_object_get(report, "regions"), 0),
                                         "name")),
                     label);
    json_decref(report);
    free(page);
    free(bare);
}

Test(html, its_report_is_that_of_json)
{
    um_report_t *r = stream_new("t.umt");
    json_t *wanted, *got;
    char *page;

    stream_alloc(r, 1, 1, BASE, 4 * MIB, "two  spaces and \\ \"quotes\"");
    for (uint64_t i = 0; i < 40; i++)
        stream_gpu_fault(r, 3 + i, 1, BASE + i * 64 * KIB);
    wanted = stream_json(r);
    json_object_del(wanted, "map");
    page = page_of(r, NULL);
    got = part(page, "report");
    cr_assert(json_equal(wanted, got));
    json_decref(wanted);
    json_decref(got);
    free(page);
}

Test(html, many_rows_and_cells_stay_under_5_mb)
{
    um_report_t *r = stream_new("t.umt");
    char name[600], *page;
    json_t *report;
    uint64_t lot = 88172645463325252u;

    for (uint32_t i = 0; i < 2000; i++) {
        int n = snprintf(name, sizeof(name), "%u ", i);

        memset(name + n, 'x', sizeof(name) - (size_t)n - 1);
        name[sizeof(name) - 1] = 0;
        stream_alloc(r, 1, i + 1, BASE + i * 16 * MIB, 8 * MIB, name);
        stream_kernel(r, i + 1, name);
    }
    for (uint32_t i = 0; i < 350000; i++) {
        lot ^= lot << 13;
        lot ^= lot >> 7;
        lot ^= lot << 17;
        stream_gpu_fault(r, 10 + i, 1, BASE + lot % 2000 * 16 * MIB + lot / 2000 % (8 * MIB));
    }
    page = page_of(r, NULL);
    cr_assert_lt(strlen(page), 5000000);
    cr_assert_gt(strlen(page), 1500000);
    report = part(page, "report");
    cr_assert_geq(json_array_size(json_object_get(report, "regions")), 20);
    json_decref(report);
    free(page);
}

/* ---- heat map ----------------------------------------------------------------------------------- */

static um_heat_cell_t sum(const um_heatmap_t *map)
{
    um_heat_cell_t all = {0};

    for (size_t i = 0; i < map->n_cells; i++) {
        const um_heat_cell_t *cell = &map->cells[i];

        all.in_pages += cell->in_pages;
        all.out_pages += cell->out_pages;
        all.faults += cell->faults;
        cr_assert_lt(cell->row, map->rows[cell->group]);
        cr_assert_lt(cell->column, map->columns_max);
        cr_assert(!i || cell[-1].group < cell->group ||
                      (cell[-1].group == cell->group &&
                       (cell[-1].row < cell->row ||
                        (cell[-1].row == cell->row && cell[-1].column < cell->column))),
                  "cell %zu is not behind the one before", i);
    }
    return all;
}

Test(heatmap, what_is_merged_is_not_lost)
{
    um_heatmap_t map = {0};
    um_heat_cell_t all;
    uint64_t lot = 88172645463325252u;

    for (uint32_t i = 0; i < 400000; i++) {
        lot ^= lot << 13;
        lot ^= lot >> 7;
        lot ^= lot << 17;
        cr_assert_eq(um_heatmap_fault(&map, lot % 7, 64 * MIB, i * UINT64_C(1000),
                                      lot / 7 % (64 * MIB)),
                     UM_OK);
        cr_assert_leq(map.n_cells, UM_HEAT_CELLS_MAX);
    }
    cr_assert_eq(um_heatmap_move(&map, 3, 64 * MIB, 1, 0, 64 * MIB, true), UM_OK);
    cr_assert_eq(um_heatmap_move(&map, 3, 64 * MIB, UINT64_MAX, 0, 4096, false), UM_OK);
    um_heatmap_sort(&map);
    all = sum(&map);
    cr_assert_eq(all.faults, 400000);
    cr_assert_eq(all.in_pages, 64 * MIB / 4096);
    cr_assert_eq(all.out_pages, 1);
    cr_assert(!map.skipped);
    um_heatmap_free(&map);
}

Test(heatmap, a_coarser_one_has_the_same_in_it)
{
    um_heatmap_t map = {0};
    um_status_t status;
    size_t n;

    for (uint32_t i = 0; i < 4096; i++)
        cr_assert_eq(um_heatmap_fault(&map, 0, 4 * MIB, i * UINT64_C(1000), i % 1024 * 4096),
                     UM_OK);
    do {
        n = map.n_cells;
        status = um_heatmap_coarsen(&map);
        um_heatmap_sort(&map);
        cr_assert_leq(map.n_cells, n);
        cr_assert_eq(sum(&map).faults, 4096);
    } while (status == UM_OK);
    cr_assert_eq(status, UM_ERR_FULL);
    cr_assert_eq(map.n_cells, UM_HEAT_COLUMNS); /* of one row */
    um_heatmap_free(&map);
}

Test(heatmap, a_short_trace_is_seen_finely)
{
    um_heatmap_t map = {0};

    cr_assert_eq(um_heatmap_fault(&map, 0, 4 * MIB, 0, 0), UM_OK);
    cr_assert_eq(um_heatmap_fault(&map, 0, 4 * MIB, 1000, 4096), UM_OK);
    cr_assert_eq(map.n_cells, 2);
    cr_assert_eq(map.cells[1].row, 1);
    cr_assert_eq(map.cells[1].column, 1);
    um_heatmap_free(&map);
}

Test(heatmap, a_cell_is_of_the_kernel_that_most_was_for)
{
    um_heatmap_t map = {0};

    cr_assert_eq(um_heatmap_fault(&map, 0, MIB, 0, 0), UM_OK);
    cr_assert_eq(map.cells[0].kernel, UM_MAP_NONE);
    um_heatmap_kernel(&map, 0, 0, 0, 4, 1);
    um_heatmap_kernel(&map, 0, 0, 0, 9, 3);
    um_heatmap_kernel(&map, 0, 0, 0, 4, 1);
    cr_assert_eq(map.cells[0].kernel, 9);
    um_heatmap_kernel(&map, 5, 0, 0, 4, 1); /* a place that nobody told of */
    um_heatmap_kernel(&map, 0, 500000, 0, 4, 1);
    cr_assert_eq(map.n_cells, 1);
    um_heatmap_free(&map);
}

Test(heatmap, no_allocation_no_map)
{
    um_heatmap_t map = {0};

    cr_assert_eq(um_heatmap_fault(&map, 0, 0, 0, 0), UM_OK);
    cr_assert_eq(um_heatmap_fault(&map, UM_HEAT_GROUPS, MIB, 0, 0), UM_OK);
    cr_assert(map.skipped);
    cr_assert(!um_heatmap_has(&map, 0));
    cr_assert_eq(um_heatmap_grid_ns(&map), 0);
    um_heatmap_free(&map);
}

/* ---- lanes -------------------------------------------------------------------------------------- */

Test(lanes, what_is_merged_is_not_lost)
{
    um_lanes_t lanes = {0};
    uint64_t ns = 0, faults = 0, in = 0;

    for (uint64_t i = 0; i < 20000; i++) {
        const um_event_t run = {.type = UM_EV_KERNEL_EXEC, .u.kernel_exec.duration_ns = 7777};
        const um_event_t fault = {.type = UM_EV_GPU_FAULT};
        const um_event_t move = {.type = UM_EV_MIGRATE,
                                 .u.migrate = {.bytes = 4096, .src = -1, .dst = 0}};

        cr_assert_eq(um_lanes_event(&lanes, &run, i * 10000, 3), UM_OK);
        cr_assert_eq(um_lanes_event(&lanes, &fault, i * 10000, UM_MAP_NONE), UM_OK);
        cr_assert_eq(um_lanes_event(&lanes, &move, i * 10000, UM_MAP_NONE), UM_OK);
    }
    for (uint32_t c = 0; c < lanes.n_columns; c++) {
        ns += lanes.column[c].kernel_ns;
        faults += lanes.column[c].gpu_faults;
        in += lanes.column[c].in_bytes;
        cr_assert_leq(lanes.column[c].kernel_ns, lanes.column_ns);
        cr_assert_eq(lanes.column[c].kernel, 3);
    }
    cr_assert_eq(ns, UINT64_C(20000) * 7777);
    cr_assert_eq(faults, 20000);
    cr_assert_eq(in, UINT64_C(20000) * 4096);
    um_lanes_free(&lanes);
}

Test(lanes, absurd_times_are_no_trouble)
{
    const um_event_t run = {.type = UM_EV_KERNEL_EXEC, .u.kernel_exec.duration_ns = UINT64_MAX};
    um_lanes_t lanes = {0};

    cr_assert_eq(um_lanes_event(&lanes, &run, UINT64_MAX - 5, 0), UM_OK);
    cr_assert_eq(um_lanes_event(&lanes, &run, 0, 0), UM_OK);
    cr_assert_leq(lanes.n_columns, UM_LANES_COLUMNS);
    cr_assert_gt(lanes.n_columns, 0);
    um_lanes_free(&lanes);
}

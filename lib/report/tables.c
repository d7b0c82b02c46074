/* The tables of a report: regions, kernels, phases, and the map. */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "sections.h"
#include "units.h"

/* Indices 0..n-1 ordered by weight, largest first; ties keep their order. NULL: no memory. */
static uint32_t *order(size_t n, uint64_t (*weight)(const void *ctx, uint32_t i), const void *ctx)
{
    struct {
        uint64_t weight;
        uint32_t i;
    } *keys = malloc((n + 1) * sizeof(*keys)), swap;
    uint32_t *result = malloc((n + 1) * sizeof(*result));

    for (size_t i = 0; keys && i < n; i++) {
        keys[i].weight = weight(ctx, (uint32_t)i);
        keys[i].i = (uint32_t)i;
    }
    /* Heap sort: (weight, index) pairs are distinct, so the order is one only. */
    for (size_t start = n / 2, end = n; keys && result && end > 1;) {
        size_t root;

        if (start) {
            start--;
        } else {
            swap = keys[--end];
            keys[end] = keys[0];
            keys[0] = swap;
        }
        for (root = start; 2 * root + 1 < end;) {
            size_t child = 2 * root + 1;
#define AFTER(a, b) ((a).weight != (b).weight ? (a).weight < (b).weight : (a).i > (b).i)
            if (child + 1 < end && AFTER(keys[child + 1], keys[child]))
                child++;
            if (!AFTER(keys[child], keys[root]))
                break;
            swap = keys[root];
            keys[root] = keys[child];
            keys[child] = swap;
            root = child;
        }
#undef AFTER
    }
    for (size_t i = 0; keys && result && i < n; i++)
        result[i] = keys[i].i;
    free(keys);
    return result;
}

/* ---- regions ---------------------------------------------------------------------------------- */

static uint64_t group_weight(const void *ctx, uint32_t i)
{
    const um_region_sums_t *s = &((const um_group_t *)ctx)[i].sums;

    return s->gpu_ns + s->wait_ns + (s->in_bytes + s->out_bytes) / 64 + s->gpu_faults +
           s->cpu_faults + s->user_in_bytes / 64 + s->user_out_bytes / 64;
}

static const char *first_touch(const um_group_t *group)
{
    return group->first_cpu && group->first_gpu ? "both"
           : group->first_cpu                   ? "CPU"
           : group->first_gpu                   ? "GPU"
                                                : "-";
}

static bool worth_a_row(const um_group_t *group)
{
    /* Labels can empty a group; stand-ins for unknown memory show only what happened there. */
    return group->regions && (group->first_region || group_weight(group, 0));
}

void um_section_regions(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"name", "region", true},
        {"region", NULL, false},
        {"addr", NULL, false},
        {"family", "family", true},
        {"bytes", "size", false},
        {"regions", "n", false},
        {"traces", NULL, false},
        {"call_site", NULL, true},
        {"first_touch", "first", true},
        {"gpu_faults", "GPU faults", false},
        {"gpu_fault_groups", NULL, false},
        {"cpu_faults", "CPU faults", false},
        {"to_device_bytes", "to GPU", false},
        {"to_host_bytes", "to CPU", false},
        {"prefetched_to_device_bytes", NULL, false},
        {"prefetched_to_host_bytes", NULL, false},
        {"evicted_bytes", NULL, false},
        {"gpu_fault_ns", "GPU stall", false},
        {"cpu_wait_ns", "CPU wait", false},
        {"thrash_pages_4k", NULL, false},
        {"throttle_ns", NULL, false},
        {"remote_maps", NULL, false},
    };
    const um_regions_stat_t *s = &r->regions;
    uint32_t *by = order(s->n_groups, group_weight, s->groups), top = um_emitter_options(e)->top;
    uint64_t rows = 0;

    if (!by)
        return;
    um_emitter_heading(e, "Regions (allocations of one label, or of one call site and size)");
    um_emitter_table(e, "regions", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < s->n_groups; i++) {
        const um_group_t *g = &s->groups[by[i]];
        char name[200];

        if (!worth_a_row(g))
            continue;
        if (rows++ >= top)
            continue;
        um_group_name(g, name, sizeof(name));
        um_emitter_row(e, (um_value_t[]){um_text(name),
                                         g->first_region ? um_count(g->first_region) : um_none(),
                                         um_addr(g->first_addr),
                                         um_text(um_family_name(g->family)),
                                         g->first_region ? um_bytes(g->bytes) : um_none(),
                                         um_count(g->regions),
                                         um_count(g->traces),
                                         um_text(um_report_site(r, g->call_site)),
                                         um_text(first_touch(g)),
                                         um_count(g->sums.gpu_faults),
                                         um_count(g->sums.gpu_groups),
                                         um_count(g->sums.cpu_faults),
                                         um_bytes(g->sums.in_bytes),
                                         um_bytes(g->sums.out_bytes),
                                         um_bytes(g->sums.user_in_bytes),
                                         um_bytes(g->sums.user_out_bytes),
                                         um_bytes(g->sums.evict_bytes),
                                         um_ns(g->sums.gpu_ns),
                                         um_ns(g->sums.wait_ns),
                                         um_count(g->sums.thrash),
                                         um_ns(g->sums.throttle_ns),
                                         um_count(g->sums.remote_maps)});
    }
    um_emitter_table_end(e, rows > top ? rows - top : 0);
    free(by);
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static uint64_t kernel_weight(const void *ctx, uint32_t i)
{
    const um_kernel_stat_t *k = &((const um_kernel_stat_t *)ctx)[i];

    return k->ns > UINT64_MAX / 2 ? k->ns : k->ns * 2 + k->exec_ns / 1024 + k->faults;
}

void um_section_kernels(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"name", "kernel", true},
        {"mangled", NULL, true},
        {"launches", "launches", false},
        {"exec_ns", "time", false},
        {"launches_that_faulted", "faulting", false},
        {"last_launch_that_faulted", NULL, false},
        {"gpu_faults", "faults", false},
        {"gpu_fault_groups", "groups", false},
        {"to_device_bytes", "to GPU", false},
        {"gpu_fault_ns", "GPU stall", false},
        {"throttle_ns", NULL, false},
        {"evicted_bytes", NULL, false},
        {"confidence", "sure", false},
    };
    const um_kernels_stat_t *s = &r->kernels;
    uint32_t *by = order(s->n_kernels, kernel_weight, s->kernels);
    uint32_t top = um_emitter_options(e)->top;

    if (!by)
        return;
    if (s->n_kernels || !um_emitter_is_text(e)) {
        um_emitter_heading(e, "Kernels");
        um_emitter_table(e, "kernels", columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->n_kernels && i < top; i++) {
            const um_kernel_stat_t *k = &s->kernels[by[i]];
            char *name = *k->name ? um_demangle(k->name) : NULL;

            um_emitter_row(e, (um_value_t[]){um_text(name ? name : "(not attributed)"),
                                             k->copy || !*k->name ? um_none() : um_text(k->name),
                                             k->copy ? um_none() : um_count(um_kernel_launches(k)),
                                             k->copy ? um_none() : um_ns(k->exec_ns),
                                             k->copy ? um_none() : um_count(k->faulted),
                                             k->copy ? um_none() : um_count(k->last_faulted),
                                             um_count(k->faults), um_count(k->groups),
                                             um_bytes(k->in_bytes), um_ns(k->ns),
                                             um_ns(k->throttle_ns), um_bytes(k->evict_bytes),
                                             k->faults ? um_percent(k->confidence / k->faults)
                                                       : um_none()});
            free(name);
        }
        um_emitter_table_end(e, s->n_kernels > top ? s->n_kernels - top : 0);
    }
    free(by);
}

/* ---- phases ----------------------------------------------------------------------------------- */

void um_section_timeline(um_emitter_t *e, const um_report_t *r)
{
    static const char *const kind[] = {"CPU", "GPU", "named"};
    static const um_column_t columns[] = {
        {"name", "phase", true},
        {"kind", NULL, true},
        {"trace", NULL, false},
        {"start_ns", "from", false},
        {"duration_ns", "lasts", false},
        {"times", "times", false},
        {"launches", "launches", false},
        {"gpu_faults", "GPU faults", false},
        {"cpu_faults", "CPU faults", false},
        {"to_device_bytes", "to GPU", false},
        {"to_host_bytes", "to CPU", false},
    };
    bool named = r->timeline.n_named > 0;
    const um_phase_t *phases = named ? r->timeline.named : r->timeline.turns;
    size_t n = named ? r->timeline.n_named : r->timeline.n_turns;
    uint32_t top = um_emitter_options(e)->top;

    if (!n && um_emitter_is_text(e))
        return;
    um_emitter_heading(e, named ? "Phases (as the program names them)"
                                : "Phases (turns of CPU and GPU, from kernels and CPU faults)");
    um_emitter_table(e, "phases", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n && i < top; i++) {
        const um_phase_t *p = &phases[i];
        uint64_t first = r->traces[p->trace].first_ns;

        um_emitter_row(e, (um_value_t[]){um_text(p->name ? p->name : kind[p->kind]),
                                         um_text(kind[p->kind]), um_count(p->trace),
                                         um_ns(p->start_ns > first ? p->start_ns - first : 0),
                                         um_ns(p->end_ns - p->start_ns), um_count(p->times),
                                         um_count(p->launches), um_count(p->gpu_faults),
                                         um_count(p->cpu_faults), um_bytes(p->in_bytes),
                                         um_bytes(p->out_bytes)});
    }
    um_emitter_table_end(e, n > top ? n - top : 0);
}

/* ---- map -------------------------------------------------------------------------------------- */

#define MAP_LABEL  22u
#define MAP_GROUPS 8u
/* A cell is heavy from 64 KiB a map column on. */
#define HEAVY_PAGES 16u

static uint64_t heat_weight(const void *ctx, uint32_t i)
{
    const um_report_t *r = ctx;

    return i < r->heat.size && r->heat.grids[i] ? group_weight(r->regions.groups, i) + 1 : 0;
}

/* Upper half: to the GPU; lower half: to the CPU; both: a full cell; a dot: faults without a move. */
static const char *glyph(const um_heat_cell_t *cell, bool utf8)
{
    static const char *const block[] = {" ",
                                        "\xc2\xb7",
                                        "\xe2\x96\x9d",
                                        "\xe2\x96\x80",
                                        "\xe2\x96\x97",
                                        "\xe2\x96\x84",
                                        "\xe2\x96\x9e",
                                        "\xe2\x96\x88"};
    static const char *const ascii[] = {" ", ".", "'", "^", ",", "v", "x", "X"};
    bool heavy = cell->in_pages + cell->out_pages >= HEAVY_PAGES;
    int i = cell->in_pages && cell->out_pages ? 6 + heavy
            : cell->out_pages                 ? 4 + heavy
            : cell->in_pages                  ? 2 + heavy
                                              : cell->faults > 0;

    return utf8 ? block[i] : ascii[i];
}

static void map_row(um_emitter_t *e, const um_heat_grid_t *grid, uint32_t row, uint32_t used,
                    uint32_t width, const char *label)
{
    static const char *const color[] = {"", "\033[34m", "\033[31m", "\033[35m"};
    const um_report_options_t *options = um_emitter_options(e);
    char line[4096];
    size_t n = 0;

    for (uint32_t c = 0; c < width && n + 32 < sizeof(line); c++) {
        uint32_t from = c * used / width, to = (c + 1) * used / width;
        um_heat_cell_t sum = {0};
        int way;

        for (uint32_t k = from; k < (to > from ? to : from + 1); k++) {
            /* saturated counts are capped so that sums do not wrap */
            sum.in_pages += grid->cell[row][k].in_pages & 0x1ffffff;
            sum.out_pages += grid->cell[row][k].out_pages & 0x1ffffff;
            sum.faults |= grid->cell[row][k].faults;
        }
        way = (sum.in_pages > 0) | (sum.out_pages > 0) << 1;
        n +=
            (size_t)snprintf(line + n, sizeof(line) - n, "%s%s%s", options->color ? color[way] : "",
                             glyph(&sum, options->utf8), options->color && way ? "\033[0m" : "");
    }
    um_emitter_line(e, "  %*s |%s|", (int)MAP_LABEL, label, line);
}

static void map_text(um_emitter_t *e, const um_report_t *r, uint32_t g, uint32_t used)
{
    const um_heat_grid_t *grid = r->heat.grids[g];
    uint32_t width = um_emitter_options(e)->width - MAP_LABEL - 5;
    char name[200], label[64], *clean;

    width = width > used ? used * (width / used ? width / used : 1) : width;
    um_group_name(&r->regions.groups[g], name, sizeof(name));
    clean = um_text_clean(name);
    um_emitter_line(e, "  %s", clean ? clean : "");
    free(clean);
    for (uint32_t row = 0; row < grid->rows; row++) {
        bool empty = true;

        for (uint32_t c = 0; c < used; c++)
            empty &= !grid->cell[row][c].faults && !grid->cell[row][c].in_pages &&
                     !grid->cell[row][c].out_pages;
        if (empty)
            continue;
        snprintf(label, sizeof(label), "+%s", um_h(um_bytes(row * grid->row_bytes)));
        map_row(e, grid, row, used, width, label);
    }
}

static void map_json(um_emitter_t *e, const um_report_t *r, uint32_t g, uint32_t used)
{
    const um_heat_grid_t *grid = r->heat.grids[g];
    char name[200];

    um_group_name(&r->regions.groups[g], name, sizeof(name));
    um_emitter_object(e, NULL);
    um_emitter_pair(e, "name", NULL, um_text(name));
    um_emitter_pair(e, "row_bytes", NULL, um_bytes(grid->row_bytes));
    um_emitter_pair(e, "rows", NULL, um_count(grid->rows));
    /* [row, column, 4 KiB pages to the device, to the host, faults], empty cells left out */
    um_emitter_array(e, "cells");
    for (uint32_t row = 0; row < grid->rows; row++) {
        for (uint32_t c = 0; c < used; c++) {
            const um_heat_cell_t *cell = &grid->cell[row][c];

            if (!cell->in_pages && !cell->out_pages && !cell->faults)
                continue;
            um_emitter_array(e, NULL);
            um_emitter_element(e, um_count(row));
            um_emitter_element(e, um_count(c));
            um_emitter_element(e, um_count(cell->in_pages));
            um_emitter_element(e, um_count(cell->out_pages));
            um_emitter_element(e, um_count(cell->faults));
            um_emitter_end(e);
        }
    }
    um_emitter_end(e);
    um_emitter_end(e);
}

void um_section_heatmap(um_emitter_t *e, const um_report_t *r)
{
    uint32_t *by = order(r->regions.n_groups, heat_weight, r), used = 1, shown = 0;
    uint64_t span = 0;

    if (!by)
        return;
    for (size_t i = 0; i < r->n_traces; i++) {
        const um_trace_stat_t *t = &r->traces[i];

        if (t->last_ns > t->first_ns && t->last_ns - t->first_ns > span)
            span = t->last_ns - t->first_ns;
    }
    if (r->heat.column_ns && span / r->heat.column_ns + 1 < UM_HEAT_COLUMNS)
        used = (uint32_t)(span / r->heat.column_ns) + 1;
    else if (r->heat.column_ns)
        used = UM_HEAT_COLUMNS;
    if (r->heat.n_grids && um_emitter_is_text(e)) {
        um_emitter_heading(e, "Map: offset in the region (down) by time (across)");
        um_emitter_line(
            e,
            um_emitter_options(e)->utf8
                ? "  \xe2\x96\x80 to the GPU  \xe2\x96\x84 to the CPU  \xe2\x96\x88 both "
                  " (\xe2\x96\x9d \xe2\x96\x97 \xe2\x96\x9e under 64 KiB)  \xc2\xb7 "
                  "faults only; %s across"
                : "  ^ to the GPU  v to the CPU  X both  (' , x under 64 KiB)  . faults "
                  "only; %s across",
            um_h(um_ns(used * r->heat.column_ns)));
    }
    um_emitter_object(e, "map");
    um_emitter_pair(e, "column_ns", NULL, um_ns(r->heat.column_ns));
    um_emitter_pair(e, "columns", NULL, um_count(r->heat.n_grids ? used : 0));
    um_emitter_array(e, "regions");
    for (size_t i = 0; i < r->regions.n_groups && shown < MAP_GROUPS; i++) {
        if (!heat_weight(r, by[i]))
            break;
        if (um_emitter_is_text(e))
            map_text(e, r, by[i], used);
        else
            map_json(e, r, by[i], used);
        shown++;
    }
    um_emitter_end(e);
    um_emitter_end(e);
    free(by);
}

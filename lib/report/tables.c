/* The tables of a report: regions, kernels, phases, and the map. */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "findings/finding.h"
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

    if (!keys || !result) {
        free(keys);
        free(result);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        keys[i].weight = weight(ctx, (uint32_t)i);
        keys[i].i = (uint32_t)i;
    }
    /* Heap sort: (weight, index) pairs are distinct, so the order is one only. */
    for (size_t start = n / 2, end = n; end > 1;) {
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
    for (size_t i = 0; i < n; i++)
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
    bool cpu = group->first[UM_TOUCHED_BY_CPU], gpu = group->first[UM_TOUCHED_BY_GPU];
    bool surely = group->first[UM_TOUCHED_BY_CPU_SURELY];

    return (cpu || surely) && gpu ? "both" : cpu ? "CPU" : gpu ? "GPU" : surely ? "CPU?" : "-";
}

/* For a table that has the size in a column of its own: label or number, then where it was made. */
static void short_name(const um_report_t *r, const um_group_t *group, char *out, size_t bytes)
{
    um_call_place_t place;
    const char *site = NULL;

    if (!um_places_site(r->places, group->call_site, &place))
        site = *place.from ? place.from : place.brief;

    if (group->label || !group->first_region) {
        um_group_name(group, out, bytes);
        return;
    }
    snprintf(out, bytes, "%s%u%s", site ? "" : "region ", group->first_region,
             group->regions > 1 ? ".." : "");
    if (site)
        um_finding_say(out, bytes, " %s", site);
}

static bool worth_a_row(const um_group_t *group)
{
    /* Labels can empty a group; stand-ins for unknown memory show only what happened there. */
    return group->regions && (group->first_region || group_weight(group, 0));
}

void um_section_regions(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {NULL, "region", true, false, NULL},
        {"name", NULL, true, false, NULL},
        {"region", NULL, false, false, NULL},
        {"addr", NULL, false, false, NULL},
        {"family", "family", true, false, "managed"},
        {"bytes", "size", false, true, NULL},
        {"regions", "n", false, false, "1"},
        {"traces", NULL, false, false, NULL},
        {"call_site", NULL, true, false, NULL},
        {"place", NULL, true, false, NULL},
        {"first_touch", "first", true, true, NULL},
        {"gpu_faults", "GPU faults", false, true, NULL},
        {"gpu_fault_groups", NULL, false, false, NULL},
        {"cpu_faults", "CPU faults", false, true, NULL},
        {"to_device_bytes", "to GPU", false, false, NULL},
        {"to_host_bytes", "to CPU", false, false, NULL},
        {"prefetched_to_device_bytes", "fetched", false, false, "0 B"},
        {"prefetched_to_host_bytes", NULL, false, false, NULL},
        {"evicted_bytes", "evicted", false, false, "0 B"},
        {"gpu_fault_ns", "GPU stall", false, false, NULL},
        {"cpu_wait_ns", "CPU wait", false, false, NULL},
        {"thrash_pages_4k", NULL, false, false, NULL},
        {"throttle_ns", NULL, false, false, NULL},
        {"remote_maps", NULL, false, false, NULL},
    };
    const um_regions_stat_t *s = &r->regions;
    uint32_t *by = order(s->n_groups, group_weight, s->groups), top = um_emitter_options(e)->top;
    bool gpu_faults = um_report_recorded(r, UM_EV_GPU_FAULT);
    bool cpu_faults = um_report_recorded(r, UM_EV_CPU_FAULT);
    uint64_t rows = 0;

    if (!by)
        return;
    um_emitter_heading(e, "Regions (by label, or by call site and size)");
    um_emitter_table(e, "regions", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < s->n_groups; i++) {
        const um_group_t *g = &s->groups[by[i]];
        char name[200], brief[200];

        if (!worth_a_row(g))
            continue;
        if (rows++ >= top)
            continue;
        um_group_name(g, name, sizeof(name));
        short_name(r, g, brief, sizeof(brief));
        um_emitter_row(e,
                       (um_value_t[]){um_text(brief),
                                      um_text(name),
                                      g->first_region ? um_count(g->first_region) : um_none(),
                                      um_addr(g->first_addr),
                                      um_text(um_family_name(g->family)),
                                      g->first_region ? um_bytes(g->bytes) : um_none(),
                                      um_count(g->regions),
                                      um_count(g->traces),
                                      um_text(um_report_site(r, g->call_site)),
                                      um_text(um_report_place(r, g->call_site)),
                                      um_text(first_touch(g)),
                                      um_report_records(r, UM_EV_GPU_FAULT, g->sums.gpu_faults),
                                      um_report_records(r, UM_EV_GPU_FAULT, g->sums.gpu_groups),
                                      um_report_records(r, UM_EV_CPU_FAULT, g->sums.cpu_faults),
                                      um_bytes(g->sums.in_bytes),
                                      um_bytes(g->sums.out_bytes),
                                      um_bytes(g->sums.user_in_bytes),
                                      um_bytes(g->sums.user_out_bytes),
                                      um_bytes(g->sums.evict_bytes),
                                      gpu_faults ? um_ns(g->sums.gpu_ns) : um_none(),
                                      cpu_faults ? um_ns(g->sums.wait_ns) : um_none(),
                                      um_report_records(r, UM_EV_THRASH, g->sums.thrash),
                                      um_ns(g->sums.throttle_ns),
                                      um_report_records(r, UM_EV_REMOTE_MAP, g->sums.remote_maps)});
    }
    um_emitter_table_end(e, rows > top ? rows - top : 0);
    um_emitter_pair(e, "regions_found", NULL, um_count(rows));
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
        {NULL, "kernel", true, false, NULL},
        {"name", NULL, true, false, NULL},
        {"mangled", NULL, true, false, NULL},
        {"launches", "launches", false, true, NULL},
        {"exec_ns", "time", false, false, NULL},
        {"launches_that_faulted", "faulting", false, true, NULL},
        {"last_launch_that_faulted", NULL, false, false, NULL},
        {"gpu_faults", "faults", false, false, NULL},
        {"gpu_fault_groups", "groups", false, true, NULL},
        {"to_device_bytes", "to GPU", false, false, NULL},
        {"gpu_fault_ns", "GPU stall", false, false, NULL},
        {"throttle_ns", NULL, false, false, NULL},
        {"evicted_bytes", NULL, false, false, NULL},
        {"confidence", "sure", false, false, NULL},
    };
    const um_kernels_stat_t *s = &r->kernels;
    uint32_t *by = order(s->n_kernels, kernel_weight, s->kernels);
    uint32_t top = um_emitter_options(e)->top;
    bool faults = um_report_recorded(r, UM_EV_GPU_FAULT);

    if (!by)
        return;
    if (s->n_kernels || !um_emitter_is_text(e)) {
        um_emitter_heading(e, "Kernels");
        um_emitter_table(e, "kernels", columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->n_kernels && i < top; i++) {
            const um_kernel_stat_t *k = &s->kernels[by[i]];
            char *name = *k->name ? um_demangle(k->name) : NULL;
            char *brief = *k->name && !k->copy ? um_demangle_short(k->name) : NULL;

            um_emitter_row(
                e, (um_value_t[]){um_text(brief  ? brief
                                          : name ? name
                                                 : "(not attributed)"),
                                  um_text(name ? name : "(not attributed)"),
                                  k->copy || !*k->name ? um_none() : um_text(k->name),
                                  k->copy ? um_none() : um_count(um_kernel_launches(k)),
                                  k->copy ? um_none() : um_ns(k->exec_ns),
                                  k->copy || !faults ? um_none() : um_count(k->faulted),
                                  k->copy || !faults ? um_none() : um_count(k->last_faulted),
                                  faults ? um_count(k->faults) : um_none(),
                                  faults ? um_count(k->groups) : um_none(), um_bytes(k->in_bytes),
                                  faults ? um_ns(k->ns) : um_none(), um_ns(k->throttle_ns),
                                  um_bytes(k->evict_bytes),
                                  k->faults ? um_percent(k->confidence / k->faults) : um_none()});
            free(name);
            free(brief);
        }
        um_emitter_table_end(e, s->n_kernels > top ? s->n_kernels - top : 0);
        um_emitter_pair(e, "kernels_found", NULL, um_count(s->n_kernels));
    }
    free(by);
}

/* ---- phases ----------------------------------------------------------------------------------- */

/* How often and how long each side had its turn, over all that the table may have cut off. */
static void turns_in_all(um_emitter_t *e, const um_report_t *r)
{
    static const char *const key[] = {"cpu", "gpu"};
    uint64_t times[2] = {0}, ns[2] = {0};

    for (size_t i = 0; i < r->timeline.n_turns; i++) {
        const um_phase_t *turn = &r->timeline.turns[i];

        times[turn->kind] += turn->times;
        ns[turn->kind] += turn->end_ns - turn->start_ns;
    }
    um_emitter_object(e, "turns");
    for (int kind = 0; kind < 2; kind++) {
        um_emitter_object(e, key[kind]);
        um_emitter_pair(e, "times", NULL, um_count(times[kind]));
        um_emitter_pair(e, "ns", NULL, um_ns(ns[kind]));
        um_emitter_end(e);
    }
    um_emitter_end(e);
    if (r->timeline.n_turns)
        um_emitter_line(e, "  in all: CPU %s in %s turn%s, GPU %s in %s",
                        um_h(um_ns(ns[UM_PHASE_CPU])), um_h(um_count(times[UM_PHASE_CPU])),
                        times[UM_PHASE_CPU] == 1 ? "" : "s", um_h(um_ns(ns[UM_PHASE_GPU])),
                        um_h(um_count(times[UM_PHASE_GPU])));
}

void um_section_timeline(um_emitter_t *e, const um_report_t *r)
{
    static const char *const kind[] = {"CPU", "GPU", "named"};
    static const um_column_t columns[] = {
        {"name", "phase", true, false, NULL},
        {"kind", NULL, true, false, NULL},
        {"trace", NULL, false, false, NULL},
        {"start_ns", "from", false, false, NULL},
        {"duration_ns", "lasts", false, false, NULL},
        {"times", "times", false, false, "1"},
        {"launches", "launches", false, true, NULL},
        {"gpu_faults", "GPU faults", false, true, NULL},
        {"cpu_faults", "CPU faults", false, true, NULL},
        {"to_device_bytes", "to GPU", false, false, NULL},
        {"to_host_bytes", "to CPU", false, false, NULL},
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
                                         um_count(p->launches),
                                         um_report_records(r, UM_EV_GPU_FAULT, p->gpu_faults),
                                         um_report_records(r, UM_EV_CPU_FAULT, p->cpu_faults),
                                         um_bytes(p->in_bytes), um_bytes(p->out_bytes)});
    }
    um_emitter_table_end(e, n > top ? n - top : 0);
    turns_in_all(e, r);
}

/* ---- map -------------------------------------------------------------------------------------- */

#define MAP_LABEL  22u
#define MAP_GROUPS 8u
/* A cell is heavy from 64 KiB a map column on. */
#define HEAVY_PAGES 16u

static uint64_t heat_weight(const void *ctx, uint32_t i)
{
    const um_report_t *r = ctx;

    return um_heatmap_has(&r->heat, i) ? group_weight(r->regions.groups, i) + 1 : 0;
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
    bool heavy = cell->in_pages >= HEAVY_PAGES || cell->out_pages >= HEAVY_PAGES;
    int i = cell->in_pages && cell->out_pages ? 6 + heavy
            : cell->out_pages                 ? 4 + heavy
            : cell->in_pages                  ? 2 + heavy
                                              : cell->faults > 0;

    return utf8 ? block[i] : ascii[i];
}

#define MAP_LINE 4096u

static void map_row(const um_report_options_t *options, const um_heat_grid_t *grid, uint32_t row,
                    uint32_t used, uint32_t width, char *line)
{
    static const char *const color[] = {"", "\033[34m", "\033[31m", "\033[35m"};
    size_t n = 0;

    for (uint32_t c = 0; c < width && n + 32 < MAP_LINE; c++) {
        uint32_t from = c * used / width, to = (c + 1) * used / width;
        um_heat_cell_t sum = {0};
        int way;

        for (uint32_t k = from; k < (to > from ? to : from + 1); k++) {
            /* capped, so that the sum of a few does not wrap */
            sum.in_pages += grid->cell[row][k].in_pages > 0;
            sum.out_pages += grid->cell[row][k].out_pages > 0;
            sum.in_pages |= grid->cell[row][k].in_pages & ~(HEAVY_PAGES - 1) ? HEAVY_PAGES : 0;
            sum.out_pages |= grid->cell[row][k].out_pages & ~(HEAVY_PAGES - 1) ? HEAVY_PAGES : 0;
            sum.faults |= grid->cell[row][k].faults;
        }
        way = (sum.in_pages > 0) | (sum.out_pages > 0) << 1;
        n += (size_t)snprintf(line + n, MAP_LINE - n, "%s%s%s", options->color ? color[way] : "",
                              glyph(&sum, options->utf8), options->color && way ? "\033[0m" : "");
    }
}

static bool row_empty(const um_heat_grid_t *grid, uint32_t row, uint32_t used)
{
    for (uint32_t c = 0; c < used; c++) {
        const um_heat_cell_t *cell = &grid->cell[row][c];

        if (cell->faults || cell->in_pages || cell->out_pages)
            return false;
    }
    return true;
}

/* Rows that look alike are one, labelled with where the first begins and the last ends. */
static void map_text(um_emitter_t *e, const um_report_t *r, uint32_t g, const um_heat_grid_t *grid,
                     uint32_t used)
{
    const um_report_options_t *options = um_emitter_options(e);
    uint32_t width = options->width - MAP_LABEL - 5;
    uint64_t bytes = r->regions.groups[g].bytes;
    char name[200], label[96], line[MAP_LINE], next[MAP_LINE], *clean;

    if (width > used)
        width = width / used * used;
    um_group_name(&r->regions.groups[g], name, sizeof(name));
    clean = um_text_clean(name);
    um_emitter_line(e, "  %s", clean ? clean : "");
    free(clean);
    for (uint32_t row = 0, last; row < grid->rows; row = last) {
        uint64_t end;

        map_row(options, grid, row, used, width, line);
        for (last = row + 1; last < grid->rows; last++) {
            map_row(options, grid, last, used, width, next);
            if (strcmp(line, next) != 0)
                break;
        }
        if (row_empty(grid, row, used))
            continue;
        end = last < grid->rows ? last * grid->row_bytes : bytes;
        snprintf(label, sizeof(label), "%s .. %s", um_h(um_bytes(row * grid->row_bytes)),
                 um_h(um_bytes(end)));
        um_emitter_line(e, "  %*s |%s|", (int)MAP_LABEL, label, line);
    }
}

static void map_json(um_emitter_t *e, const um_report_t *r, uint32_t g, const um_heat_grid_t *grid,
                     uint32_t used)
{
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
    uint64_t span = 0, column_ns = um_heatmap_grid_ns(&r->heat);
    um_heat_grid_t *grid = malloc(sizeof(*grid));

    if (!by || !grid)
        goto out;
    for (size_t i = 0; i < r->n_traces; i++) {
        const um_trace_stat_t *t = &r->traces[i];

        if (t->last_ns > t->first_ns && t->last_ns - t->first_ns > span)
            span = t->last_ns - t->first_ns;
    }
    if (column_ns)
        used = span / column_ns + 1 < UM_HEAT_COLUMNS ? (uint32_t)(span / column_ns) + 1
                                                      : UM_HEAT_COLUMNS;
    if (column_ns && um_emitter_is_text(e)) {
        char title[100];

        snprintf(title, sizeof(title), "Map: offset in the region by time, %s across",
                 um_h(um_ns(used * column_ns)));
        um_emitter_heading(e, title);
        um_emitter_line(
            e, um_emitter_options(e)->utf8
                   ? "  \xe2\x96\x80 to GPU  \xe2\x96\x84 to CPU  \xe2\x96\x88 both  "
                     "(\xe2\x96\x9d \xe2\x96\x97 \xe2\x96\x9e under 64 KiB)  \xc2\xb7 fault"
                   : "  ^ to GPU  v to CPU  X both  (' , x under 64 KiB)  . fault");
    }
    um_emitter_object(e, "map");
    um_emitter_pair(e, "column_ns", NULL, um_ns(column_ns));
    um_emitter_pair(e, "columns", NULL, um_count(column_ns ? used : 0));
    um_emitter_array(e, "regions");
    for (size_t i = 0; i < r->regions.n_groups && shown < MAP_GROUPS; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): order() fills n_groups of them */
        if (!heat_weight(r, by[i]))
            break;
        um_heatmap_grid(&r->heat, by[i], grid);
        if (um_emitter_is_text(e))
            map_text(e, r, by[i], grid, used);
        else
            map_json(e, r, by[i], grid, used);
        shown++;
    }
    um_emitter_end(e);
    um_emitter_end(e);
out:
    free(by);
    free(grid);
}

#include "heatmap.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define FIRST_COLUMN_NS 1000u
#define COLUMNS_LEAST   UM_HEAT_COLUMNS

static void add(uint32_t *to, uint64_t n)
{
    *to = n > UINT32_MAX - *to ? UINT32_MAX : *to + (uint32_t)n;
}

/* ---- cells -------------------------------------------------------------------------------------- */

/* Boyer and Moore: whoever has more than half of the votes is left at the end. */
static void vote(um_heat_cell_t *cell, uint32_t kernel, uint32_t weight)
{
    if (cell->kernel == kernel) {
        add(&cell->votes, weight);
    } else if (cell->votes >= weight) {
        cell->votes -= weight;
    } else {
        cell->kernel = kernel;
        cell->votes = weight - cell->votes;
    }
}

static void merge(um_heat_cell_t *to, const um_heat_cell_t *from)
{
    add(&to->in_pages, from->in_pages);
    add(&to->out_pages, from->out_pages);
    add(&to->faults, from->faults);
    vote(to, from->kernel, from->votes);
}

static uint64_t key_of(uint32_t group, uint64_t row, uint32_t column)
{
    return (uint64_t)group << 32 | row << 16 | column;
}

static bool is(const um_heat_cell_t *cell, uint32_t group, uint64_t row, uint32_t column)
{
    return cell->group == group && cell->row == row && cell->column == column;
}

/* The cell, or UM_MAP_NONE. Most are asked for again soon: a fault, its move, whose it was. */
static uint32_t find(um_heatmap_t *map, uint32_t group, uint64_t row, uint32_t column)
{
    uint32_t *recent = &map->recent[(row * 31 + column * 7 + group) % UM_HEAT_RECENT];

    if (*recent >= map->n_cells || !is(&map->cells[*recent], group, row, column)) {
        uint32_t found = um_map_find(&map->at, key_of(group, row, column));

        if (found == UM_MAP_NONE)
            return found;
        *recent = found;
    }
    return *recent;
}

/* Indexes the cells anew after their rows or columns changed; equal ones become one. */
static um_status_t gather(um_heatmap_t *map)
{
    size_t n = 0;

    um_map_free(&map->at);
    for (size_t i = 0; i < map->n_cells; i++) {
        uint64_t key = key_of(map->cells[i].group, map->cells[i].row, map->cells[i].column);
        uint32_t known = um_map_find(&map->at, key);
        um_status_t status;

        if (known != UM_MAP_NONE) {
            merge(&map->cells[known], &map->cells[i]);
            continue;
        }
        status = um_map_put(&map->at, key, (uint32_t)n);
        if (status)
            return status;
        map->cells[n++] = map->cells[i];
    }
    map->n_cells = n;
    return UM_OK;
}

/* Twice as much time a column. */
static um_status_t widen(um_heatmap_t *map)
{
    map->column_ns *= 2;
    for (size_t i = 0; i < map->n_cells; i++)
        map->cells[i].column /= 2;
    return map->n_cells ? gather(map) : UM_OK;
}

/* Groups of more than rows_max rows get rows of twice the size. */
static um_status_t heighten(um_heatmap_t *map)
{
    for (size_t i = 0; i < map->n_cells; i++) {
        if (map->rows[map->cells[i].group] > map->rows_max)
            map->cells[i].row /= 2;
    }
    for (uint32_t g = 0; g < UM_HEAT_GROUPS; g++) {
        if (map->rows[g] > map->rows_max) {
            map->rows[g] = (map->rows[g] + 1) / 2;
            map->row_bytes[g] *= 2;
        }
    }
    return gather(map);
}

/* Columns or rows, whichever are more. */
um_status_t um_heatmap_coarsen(um_heatmap_t *map)
{
    if (map->columns_max == COLUMNS_LEAST && map->rows_max == 1)
        return UM_ERR_FULL;
    if (map->columns_max > COLUMNS_LEAST && map->columns_max >= 4 * map->rows_max) {
        map->columns_max /= 2;
        return widen(map);
    }
    map->rows_max /= 2;
    return heighten(map);
}

static um_status_t begin(um_heatmap_t *map)
{
    map->row_bytes = calloc(UM_HEAT_GROUPS, sizeof(*map->row_bytes));
    map->rows = calloc(UM_HEAT_GROUPS, sizeof(*map->rows));
    map->column_ns = FIRST_COLUMN_NS;
    map->columns_max = UM_HEAT_COLUMNS_MAX;
    map->rows_max = UM_HEAT_ROWS_MAX;
    return map->row_bytes && map->rows ? UM_OK : UM_ERR_NO_MEMORY;
}

/* Column of a time, after making the columns wide enough for it. */
static um_status_t column_of(um_heatmap_t *map, uint64_t at_ns, uint32_t *out)
{
    um_status_t status = UM_OK;

    map->last_ns = at_ns > map->last_ns ? at_ns : map->last_ns;
    while (!status && at_ns / map->column_ns >= map->columns_max) {
        if (map->column_ns > UINT64_MAX / 4) {
            *out = map->columns_max - 1;
            return UM_OK;
        }
        status = widen(map);
    }
    *out = (uint32_t)(at_ns / map->column_ns);
    return status;
}

/* *out NULL: there is no room for it. */
static um_status_t cell_get(um_heatmap_t *map, uint32_t group, uint64_t offset, uint64_t at_ns,
                            um_heat_cell_t **out)
{
    uint32_t column, i;
    uint64_t row;
    um_status_t status = column_of(map, at_ns, &column);

    *out = NULL;
    if (status)
        return status;
    row = offset / map->row_bytes[group];
    i = find(map, group, row, column);
    if (i == UM_MAP_NONE && map->n_cells == UM_HEAT_CELLS_MAX) {
        status = um_heatmap_coarsen(map);
        if (!status)
            return cell_get(map, group, offset, at_ns, out);
        map->skipped = true;
        return status == UM_ERR_FULL ? UM_OK : status;
    }
    if (i == UM_MAP_NONE) {
        if (!um_grow(&map->cells, &map->cells_size, map->n_cells + 1, sizeof(*map->cells)))
            return UM_ERR_NO_MEMORY;
        i = (uint32_t)map->n_cells;
        status = um_map_put(&map->at, key_of(group, row, column), i);
        if (status)
            return status;
        map->cells[map->n_cells++] = (um_heat_cell_t){.group = group,
                                                      .row = (uint32_t)row,
                                                      .column = column,
                                                      .kernel = UM_MAP_NONE};
    }
    *out = &map->cells[i];
    return UM_OK;
}

/* ---- what happened ------------------------------------------------------------------------------ */

/* Whether the group has a map, which begins here. */
static um_status_t group_get(um_heatmap_t *map, uint32_t group, uint64_t group_bytes, bool *out)
{
    um_status_t status;

    *out = group_bytes && group < UM_HEAT_GROUPS;
    map->skipped |= group_bytes && group >= UM_HEAT_GROUPS;
    if (!*out)
        return UM_OK;
    status = map->rows ? UM_OK : begin(map);
    *out = !status;
    if (status || map->row_bytes[group])
        return status;
    map->row_bytes[group] = UM_PAGE_BYTES;
    while ((group_bytes - 1) / map->row_bytes[group] >= map->rows_max)
        map->row_bytes[group] *= 2;
    map->rows[group] = (uint32_t)((group_bytes - 1) / map->row_bytes[group]) + 1;
    return UM_OK;
}

um_status_t um_heatmap_move(um_heatmap_t *map, uint32_t group, uint64_t group_bytes, uint64_t at_ns,
                            uint64_t offset, uint64_t bytes, bool in)
{
    bool has;
    um_status_t status = group_get(map, group, group_bytes, &has);
    uint64_t end;

    if (status || !has || offset >= group_bytes)
        return status;
    end = bytes > group_bytes - offset ? group_bytes : offset + bytes;
    while (offset < end && !status) {
        uint64_t piece = map->row_bytes[group] - offset % map->row_bytes[group];
        um_heat_cell_t *cell;

        status = cell_get(map, group, offset, at_ns, &cell);
        if (piece > end - offset)
            piece = end - offset;
        if (cell)
            add(in ? &cell->in_pages : &cell->out_pages, (piece - 1) / UM_PAGE_BYTES + 1);
        offset += piece;
    }
    return status;
}

um_status_t um_heatmap_fault(um_heatmap_t *map, uint32_t group, uint64_t group_bytes,
                             uint64_t at_ns, uint64_t offset)
{
    um_heat_cell_t *cell;
    bool has;
    um_status_t status = group_get(map, group, group_bytes, &has);

    if (status || !has || offset >= group_bytes)
        return status;
    status = cell_get(map, group, offset, at_ns, &cell);
    if (cell)
        add(&cell->faults, 1);
    return status;
}

void um_heatmap_kernel(um_heatmap_t *map, uint32_t group, uint64_t at_ns, uint64_t offset,
                       uint32_t kernel, uint32_t weight)
{
    uint32_t i;

    if (!um_heatmap_has(map, group) || at_ns / map->column_ns >= map->columns_max)
        return;
    i = find(map, group, offset / map->row_bytes[group], (uint32_t)(at_ns / map->column_ns));
    if (i != UM_MAP_NONE)
        vote(&map->cells[i], kernel, weight);
}

static int by_place(const void *a, const void *b)
{
    const um_heat_cell_t *x = a, *y = b;
    uint64_t left = key_of(x->group, x->row, x->column),
             right = key_of(y->group, y->row, y->column);

    return left < right ? -1 : left > right;
}

void um_heatmap_sort(um_heatmap_t *map)
{
    if (map->n_cells)
        qsort(map->cells, map->n_cells, sizeof(*map->cells), by_place);
    um_map_free(&map->at);
}

void um_heatmap_free(um_heatmap_t *map)
{
    free(map->cells);
    free(map->row_bytes);
    free(map->rows);
    um_map_free(&map->at);
}

/* ---- seen coarsely ------------------------------------------------------------------------------ */

bool um_heatmap_has(const um_heatmap_t *map, uint32_t group)
{
    return map->rows && group < UM_HEAT_GROUPS && map->rows[group];
}

/* How many columns are one of a grid. */
static uint32_t columns_together(const um_heatmap_t *map)
{
    uint32_t n = 1;

    while (n < UM_HEAT_COLUMNS_MAX && map->last_ns / n / map->column_ns >= UM_HEAT_COLUMNS)
        n *= 2;
    return n;
}

uint64_t um_heatmap_grid_ns(const um_heatmap_t *map)
{
    return map->column_ns ? map->column_ns * columns_together(map) : 0;
}

void um_heatmap_grid(const um_heatmap_t *map, uint32_t group, um_heat_grid_t *grid)
{
    uint32_t down = 1, along;

    memset(grid, 0, sizeof(*grid));
    if (!um_heatmap_has(map, group))
        return;
    grid->row_bytes = map->row_bytes[group];
    grid->rows = map->rows[group];
    while (grid->rows > UM_HEAT_ROWS) {
        grid->rows = (grid->rows + 1) / 2;
        grid->row_bytes *= 2;
        down *= 2;
    }
    along = columns_together(map);
    grid->column_ns = map->column_ns * along;
    for (size_t i = 0; i < map->n_cells; i++) {
        const um_heat_cell_t *cell = &map->cells[i];

        if (cell->group == group && cell->column / along < UM_HEAT_COLUMNS)
            merge(&grid->cell[cell->row / down][cell->column / along], cell);
    }
}

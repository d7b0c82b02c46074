#include "heatmap.h"

#include <stdlib.h>

static void add(uint32_t *to, uint64_t n)
{
    *to = n > UINT32_MAX - *to ? UINT32_MAX : *to + (uint32_t)n;
}

/* Twice as much time a column: neighbours become one. */
static void widen(um_heatmap_t *map)
{
    for (size_t g = 0; g < map->size; g++) {
        um_heat_grid_t *grid = map->grids[g];

        for (uint32_t r = 0; grid && r < grid->rows; r++) {
            for (uint32_t c = 0; c < UM_HEAT_COLUMNS; c++) {
                um_heat_cell_t a = {0}, b = {0};

                if (2 * c + 1 < UM_HEAT_COLUMNS) {
                    a = grid->cell[r][2 * c];
                    b = grid->cell[r][2 * c + 1];
                }
                add(&a.in_pages, b.in_pages);
                add(&a.out_pages, b.out_pages);
                add(&a.faults, b.faults);
                grid->cell[r][c] = a;
            }
        }
    }
    map->column_ns *= 2;
}

static um_heat_grid_t *grid_get(um_heatmap_t *map, uint32_t group, uint64_t group_bytes)
{
    if (!group_bytes || group >= UM_HEAT_GROUPS) {
        map->skipped |= group_bytes != 0;
        return NULL;
    }
    if (!map->grids) {
        map->grids = calloc(UM_HEAT_GROUPS, sizeof(um_heat_grid_t *));
        if (!map->grids)
            return NULL;
        map->size = UM_HEAT_GROUPS;
        map->column_ns = 1000;
    }
    if (!map->grids[group]) {
        um_heat_grid_t *grid = calloc(1, sizeof(*grid));

        if (!grid)
            return NULL;
        grid->row_bytes = UM_PAGE_BYTES;
        while ((group_bytes - 1) / grid->row_bytes >= UM_HEAT_ROWS)
            grid->row_bytes *= 2;
        grid->rows = (uint32_t)((group_bytes - 1) / grid->row_bytes) + 1;
        map->grids[group] = grid;
        map->n_grids++;
    }
    return map->grids[group];
}

static uint32_t column(um_heatmap_t *map, uint64_t at_ns)
{
    while (at_ns / map->column_ns >= UM_HEAT_COLUMNS) {
        if (map->column_ns > UINT64_MAX / 4)
            return UM_HEAT_COLUMNS - 1;
        widen(map);
    }
    return (uint32_t)(at_ns / map->column_ns);
}

um_status_t um_heatmap_move(um_heatmap_t *map, uint32_t group, uint64_t group_bytes, uint64_t at_ns,
                            uint64_t offset, uint64_t bytes, bool in)
{
    um_heat_grid_t *grid = grid_get(map, group, group_bytes);
    uint64_t end;
    uint32_t c;

    if (!grid || offset >= group_bytes)
        return UM_OK;
    end = bytes > group_bytes - offset ? group_bytes : offset + bytes;
    c = column(map, at_ns);
    while (offset < end) {
        uint64_t piece = grid->row_bytes - offset % grid->row_bytes;
        um_heat_cell_t *cell = &grid->cell[offset / grid->row_bytes][c];

        if (piece > end - offset)
            piece = end - offset;
        add(in ? &cell->in_pages : &cell->out_pages, (piece - 1) / UM_PAGE_BYTES + 1);
        offset += piece;
    }
    return UM_OK;
}

um_status_t um_heatmap_fault(um_heatmap_t *map, uint32_t group, uint64_t group_bytes,
                             uint64_t at_ns, uint64_t offset)
{
    um_heat_grid_t *grid = grid_get(map, group, group_bytes);

    if (grid && offset < group_bytes)
        add(&grid->cell[offset / grid->row_bytes][column(map, at_ns)].faults, 1);
    return UM_OK;
}

void um_heatmap_free(um_heatmap_t *map)
{
    for (size_t g = 0; g < map->size; g++)
        free(map->grids[g]);
    free(map->grids);
}

/*
 * heatmap.h - which part of which region was busy when.
 *
 * Cells of equal time and of equal parts of a group's regions (same size), by offset; only those in
 * which something happened. One pass is enough: when the trace grows beyond the columns, or there are
 * too many cells, neighbours become one, in time or in address by turns. So memory is bounded (some
 * 16 MiB) and a short trace is seen as finely as a long one.
 */
#ifndef UM_HEATMAP_H
#define UM_HEATMAP_H

#include "map.h"

#define UM_HEAT_COLUMNS_MAX 4096u /* of the cells that are kept */
#define UM_HEAT_ROWS_MAX    1024u /* a group */
#define UM_HEAT_CELLS_MAX   (1u << 18)
#define UM_HEAT_GROUPS      4096u /* groups with a map; later ones have none */
#define UM_HEAT_RECENT      1024u

typedef struct um_heat_cell {
    uint32_t group, row, column;
    uint32_t in_pages, out_pages; /* 4 KiB pages moved, saturating */
    uint32_t faults;
    uint32_t kernel; /* that most of it was for, as far as one pass can tell; UM_MAP_NONE = none */
    uint32_t votes;
} um_heat_cell_t;

typedef struct um_heatmap {
    um_heat_cell_t *cells; /* in no order until um_heatmap_sort */
    size_t n_cells, cells_size;
    um_map_t at;         /* group, row and column -> cell */
    uint64_t *row_bytes; /* by group: a power of two, at least 4 KiB; 0 = nothing happened there */
    uint32_t *rows;
    uint32_t columns_max, rows_max;
    uint64_t column_ns;              /* width of a column: 1 us, doubled */
    uint64_t last_ns;                /* latest time seen */
    uint32_t recent[UM_HEAT_RECENT]; /* cells found lately, by a hash of what they are */
    bool skipped;                    /* a group or a cell had no room */
} um_heatmap_t;                      /* zeroed = empty */

/* Something at [offset, offset+bytes) of a region of group_bytes (0 = no known allocation: ignored),
 * at_ns after the start of its trace. UM_ERR_NO_MEMORY. */
um_status_t um_heatmap_move(um_heatmap_t *map, uint32_t group, uint64_t group_bytes, uint64_t at_ns,
                            uint64_t offset, uint64_t bytes, bool in);
um_status_t um_heatmap_fault(um_heatmap_t *map, uint32_t group, uint64_t group_bytes,
                             uint64_t at_ns, uint64_t offset);
/* What happened at a place and time already told was `weight` times for that kernel. */
void um_heatmap_kernel(um_heatmap_t *map, uint32_t group, uint64_t at_ns, uint64_t offset,
                       uint32_t kernel, uint32_t weight);
/* Makes fewer of the cells. UM_ERR_FULL: they are as coarse as can be. UM_ERR_NO_MEMORY. */
um_status_t um_heatmap_coarsen(um_heatmap_t *map);
/* By group, row, column. Nothing may be added after. */
void um_heatmap_sort(um_heatmap_t *map);
void um_heatmap_free(um_heatmap_t *map);

/* One group, seen coarsely: for text and JSON. */
#define UM_HEAT_COLUMNS 128u
#define UM_HEAT_ROWS    16u
typedef struct um_heat_grid {
    uint64_t row_bytes, column_ns;
    uint32_t rows;
    um_heat_cell_t cell[UM_HEAT_ROWS][UM_HEAT_COLUMNS];
} um_heat_grid_t;

bool um_heatmap_has(const um_heatmap_t *map, uint32_t group);
void um_heatmap_grid(const um_heatmap_t *map, uint32_t group, um_heat_grid_t *grid);
uint64_t um_heatmap_grid_ns(const um_heatmap_t *map); /* width of a grid's column; 0 = no map */

#endif

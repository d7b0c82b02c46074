/*
 * heatmap.h - which part of which region was busy when.
 *
 * Columns are time: a fixed number of equal bins whose width doubles as the trace grows, so one pass
 * is enough. Rows are equal parts of a group's regions (same size), by offset.
 */
#ifndef UM_HEATMAP_H
#define UM_HEATMAP_H

#include "um_event.h"

#define UM_HEAT_COLUMNS 128u
#define UM_HEAT_ROWS    16u
#define UM_HEAT_GROUPS                                                                             \
    1024u /* groups with a map; later ones have none (6 KiB a group ... 32 MiB) */

typedef struct um_heat_cell {
    uint32_t in_pages, out_pages; /* 4 KiB pages moved, saturating */
    uint32_t faults;
} um_heat_cell_t;

typedef struct um_heat_grid {
    uint64_t row_bytes; /* a power of two, at least 4 KiB */
    uint32_t rows;
    um_heat_cell_t cell[UM_HEAT_ROWS][UM_HEAT_COLUMNS];
} um_heat_grid_t;

typedef struct um_heatmap {
    um_heat_grid_t **grids; /* by group; NULL = nothing happened there */
    size_t size, n_grids;
    uint64_t column_ns; /* width of a column */
    bool skipped;       /* a group had no room */
} um_heatmap_t;

/* Something at [offset, offset+bytes) of a region of group_bytes (0 = no known allocation: ignored),
 * at_ns after the start of its trace. UM_ERR_NO_MEMORY. */
um_status_t um_heatmap_move(um_heatmap_t *map, uint32_t group, uint64_t group_bytes, uint64_t at_ns,
                            uint64_t offset, uint64_t bytes, bool in);
um_status_t um_heatmap_fault(um_heatmap_t *map, uint32_t group, uint64_t group_bytes,
                             uint64_t at_ns, uint64_t offset);
void um_heatmap_free(um_heatmap_t *map);

#endif

/*
 * import_cells.h - the tables that nvprof prints: a header line, then rows whose cells stand under it.
 * Pure functions on one line at a time.
 */
#ifndef UM_IMPORT_CELLS_H
#define UM_IMPORT_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The columns that mean something to us; a table has those that its rows need, in any order. */
typedef enum um_cell {
    UM_CELL_START,
    UM_CELL_DURATION,
    UM_CELL_GRID, /* "(22 22 1)"; CSV has one column a dimension instead */
    UM_CELL_BLOCK,
    UM_CELL_GRID_X,
    UM_CELL_GRID_Y,
    UM_CELL_GRID_Z,
    UM_CELL_BLOCK_X,
    UM_CELL_BLOCK_Y,
    UM_CELL_BLOCK_Z,
    UM_CELL_SIZE,
    UM_CELL_SRC_MEMORY,
    UM_CELL_DST_MEMORY,
    UM_CELL_DEVICE,
    UM_CELL_CONTEXT,
    UM_CELL_STREAM,
    UM_CELL_UNIFIED, /* a size, fault groups or "PC 0x...", as the row's name says */
    UM_CELL_ADDRESS,
    UM_CELL_CORRELATION, /* CSV only; text has it at the end of the name: "kernel(int) [110]" */
    UM_CELL_NAME,
    UM_CELL_OTHER,
    UM_CELL_COUNT = UM_CELL_OTHER
} um_cell_t;

enum { UM_TABLE_COLUMNS = 48 };

typedef struct um_table {
    bool csv;
    size_t n;
    um_cell_t column[UM_TABLE_COLUMNS];
    size_t right[UM_TABLE_COLUMNS]; /* text: cells are right-aligned, where the heading ends */
    bool has[UM_CELL_COUNT];
    char unit[UM_CELL_COUNT][8]; /* CSV: from the line under the header, "" without */
} um_table_t;

/* Cells of one row, NUL-terminated and trimmed, inside the line they came from; "" where the column or
 * the value ("-") is absent. */
typedef struct um_row {
    const char *cell[UM_CELL_COUNT];
} um_row_t;

/* Whether the line is the header of a GPU or API trace, and its columns. Changes nothing in line. */
bool um_table_header(um_table_t *table, const char *line);
/* The line of units under a CSV header. Changes line. */
bool um_table_units(um_table_t *table, char *line);
/* Cuts the line into cells. False when the cells are not as many as the columns. Changes line. */
bool um_table_row(const um_table_t *table, char *line, um_row_t *row);

/* "455.39ms", or "455.39" with the unit given, in ns, rounded; s, ms, us, ns. */
bool um_cell_time(const char *cell, const char *unit, uint64_t *ns);
/* "64.000000KB" in bytes; B, KB, MB, GB, TB are powers of 1024 in nvprof. Sizes that can only be whole
 * pages as printed (unified memory) are rounded to them with `pages`. */
bool um_cell_bytes(const char *cell, const char *unit, bool pages, uint64_t *bytes);
bool um_cell_number(const char *cell, uint64_t *number); /* decimal or 0x... */
bool um_cell_dim3(const char *cell, uint32_t dim[3]);    /* "(22 22 1)" */

#endif

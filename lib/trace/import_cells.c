#include "trace/import_cells.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "um_event.h"

/* Headings of the text table and of --csv. */
static const struct {
    const char *heading;
    um_cell_t cell;
} headings[] = {
    {"Start", UM_CELL_START},
    {"Duration", UM_CELL_DURATION},
    {"Grid Size", UM_CELL_GRID},
    {"Block Size", UM_CELL_BLOCK},
    {"Grid X", UM_CELL_GRID_X},
    {"Grid Y", UM_CELL_GRID_Y},
    {"Grid Z", UM_CELL_GRID_Z},
    {"Block X", UM_CELL_BLOCK_X},
    {"Block Y", UM_CELL_BLOCK_Y},
    {"Block Z", UM_CELL_BLOCK_Z},
    {"Size", UM_CELL_SIZE},
    {"SrcMemType", UM_CELL_SRC_MEMORY},
    {"DstMemType", UM_CELL_DST_MEMORY},
    {"Device", UM_CELL_DEVICE},
    {"Context", UM_CELL_CONTEXT},
    {"Stream", UM_CELL_STREAM},
    {"Unified Memory", UM_CELL_UNIFIED},
    {"Virtual Address", UM_CELL_ADDRESS},
    {"Correlation_ID", UM_CELL_CORRELATION},
    {"Name", UM_CELL_NAME},
};

static um_cell_t heading_cell(const char *text, size_t n)
{
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        if (strlen(headings[i].heading) == n && memcmp(headings[i].heading, text, n) == 0)
            return headings[i].cell;
    return UM_CELL_OTHER;
}

static bool add_column(um_table_t *table, const char *text, size_t n, size_t right)
{
    um_cell_t cell = heading_cell(text, n);

    if (table->n == UM_TABLE_COLUMNS)
        return false;
    if (cell != UM_CELL_OTHER) {
        if (table->has[cell]) /* twice the same: not a table we know */
            return false;
        table->has[cell] = true;
    }
    table->right[table->n] = right;
    table->column[table->n++] = cell;
    return true;
}

/* Columns of a text table are two or more spaces apart; a heading has single spaces in it. */
static size_t cell_length(const char *text)
{
    const char *end = text;

    while (*end != '\0' && !(end[0] == ' ' && (end[1] == ' ' || end[1] == '\0')))
        end++;
    return (size_t)(end - text);
}

/* One field of a CSV line: start and length without quotes; *line moves past the comma. NULL at the
 * end. nvprof doubles no quotes: a quoted field ends at the quote before a comma or the end. */
static const char *csv_field(const char **line, size_t *n)
{
    const char *start = *line, *end;

    if (start == NULL)
        return NULL;
    if (*start == '"') {
        start++;
        for (end = start; *end != '\0'; end++)
            if (*end == '"' && (end[1] == ',' || end[1] == '\0'))
                break;
        *n = (size_t)(end - start);
        end += *end == '"';
    } else {
        end = start + strcspn(start, ",");
        *n = (size_t)(end - start);
    }
    *line = *end == ',' ? end + 1 : NULL;
    return start;
}

bool um_table_header(um_table_t *table, const char *line)
{
    const char *field;
    size_t n;

    *table = (um_table_t){.csv = line[0] == '"'};
    if (table->csv) {
        if (strncmp(line, "\"Start\",\"Duration\",", 19) != 0)
            return false;
        while ((field = csv_field(&line, &n)) != NULL)
            if (!add_column(table, field, n, 0))
                return false;
    } else {
        const char *at = line + strspn(line, " ");

        if (strncmp(at, "Start  ", 7) != 0)
            return false;
        while (*at != '\0') {
            n = cell_length(at);
            if (!add_column(table, at, n, (size_t)(at - line) + n))
                return false;
            at += n;
            at += strspn(at, " ");
        }
    }
    /* The name is last in text, where it may hold anything. */
    return table->has[UM_CELL_START] && table->has[UM_CELL_DURATION] && table->has[UM_CELL_NAME] &&
           (table->csv || table->column[table->n - 1] == UM_CELL_NAME);
}

static char *trim(char *text, size_t n)
{
    while (n > 0 && text[0] == ' ')
        text++, n--;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    text[n] = '\0';
    return strcmp(text, "-") == 0 ? text + 1 : text;
}

/* The places where the cells of a text row end: under the headings, where every cell keeps to its
 * column, else wherever two spaces are. */
static bool text_ends(const um_table_t *table, const char *line, size_t end[UM_TABLE_COLUMNS])
{
    size_t length = strlen(line), last = table->n - 1, i;
    const char *at = line + strspn(line, " ");

    for (i = 0; i < last; i++) {
        size_t right = table->right[i];

        if (right + 2 > length || line[right - 1] == ' ' || line[right] != ' ' ||
            line[right + 1] != ' ')
            break;
        end[i] = right;
    }
    if (i == last)
        return true;
    for (i = 0; i < last && *at != '\0'; i++) {
        at += cell_length(at);
        end[i] = (size_t)(at - line);
        at += strspn(at, " ");
    }
    return i == last && *at != '\0';
}

static void row_clear(um_row_t *row)
{
    for (size_t i = 0; i < UM_CELL_COUNT; i++)
        row->cell[i] = "";
}

static bool csv_cells(const um_table_t *table, char *line, char *cell[UM_TABLE_COLUMNS])
{
    const char *rest = line;
    size_t n, length[UM_TABLE_COLUMNS], i = 0;
    const char *field;

    while ((field = csv_field(&rest, &n)) != NULL) {
        if (i == table->n)
            return false;
        cell[i] = line + (field - line);
        length[i++] = n;
    }
    if (i != table->n)
        return false;
    for (i = 0; i < table->n; i++)
        cell[i] = trim(cell[i], length[i]);
    return true;
}

bool um_table_units(um_table_t *table, char *line)
{
    char *cell[UM_TABLE_COLUMNS];

    if (!csv_cells(table, line, cell))
        return false;
    for (size_t i = 0; i < table->n; i++)
        if (table->column[i] != UM_CELL_OTHER)
            strncpy(table->unit[table->column[i]], cell[i], sizeof table->unit[0] - 1);
    return true;
}

bool um_table_row(const um_table_t *table, char *line, um_row_t *row)
{
    char *cell[UM_TABLE_COLUMNS];
    size_t end[UM_TABLE_COLUMNS], from = 0;

    row_clear(row);
    if (table->csv) {
        if (!csv_cells(table, line, cell))
            return false;
    } else {
        if (!text_ends(table, line, end))
            return false;
        end[table->n - 1] = strlen(line);
        for (size_t i = 0; i < table->n; i++) {
            cell[i] = line + from;
            from = end[i] + 1; /* the space behind a cell becomes its NUL */
        }
        for (size_t i = 0; i < table->n; i++)
            cell[i] = trim(cell[i], (size_t)(line + end[i] - cell[i]));
    }
    for (size_t i = 0; i < table->n; i++)
        if (table->column[i] != UM_CELL_OTHER)
            row->cell[table->column[i]] = cell[i];
    return true;
}

/* value and unit of "64.000000KB"; the unit stays inside the cell. */
static bool cell_value(const char *cell, const char **unit, double *value)
{
    char *end;

    if (!isdigit((unsigned char)cell[0]) || cell[1] == 'x' || cell[1] == 'X')
        return false;
    *value = strtod(cell, &end);
    if (*end != '\0')
        *unit = end;
    return isfinite(*value);
}

typedef struct um_unit {
    const char *name;
    double scale;
} um_unit_t;

static bool cell_scaled(const char *cell, const char *unit, const um_unit_t *units, double *value)
{
    if (!cell_value(cell, &unit, value))
        return false;
    for (const um_unit_t *u = units; u->name != NULL; u++)
        if (strcmp(u->name, unit) == 0) {
            *value *= u->scale;
            return *value < 9.2e18; /* what a 64-bit count holds, signed or not */
        }
    return false;
}

bool um_cell_time(const char *cell, const char *unit, uint64_t *ns)
{
    static const um_unit_t units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {NULL, 0}};
    double value;

    if (!cell_scaled(cell, unit, units, &value))
        return false;
    *ns = (uint64_t)(value + 0.5);
    return true;
}

bool um_cell_bytes(const char *cell, const char *unit, bool pages, uint64_t *bytes)
{
    static const um_unit_t units[] = {{"B", 1},       {"KB", 0x1p10}, {"MB", 0x1p20},
                                      {"GB", 0x1p30}, {"TB", 0x1p40}, {NULL, 0}};
    double value;
    uint64_t whole;

    if (!cell_scaled(cell, unit, units, &value))
        return false;
    *bytes = (uint64_t)(value + 0.5);
    whole = (*bytes + UM_PAGE_BYTES / 2) / UM_PAGE_BYTES * UM_PAGE_BYTES;
    /* Sizes of a MiB and more are printed to a millionth: nearer to a whole page than that is one. */
    if (pages && whole > 0 && *bytes + *bytes / 1000000 + 1 >= whole &&
        *bytes <= whole + *bytes / 1000000 + 1)
        *bytes = whole;
    return true;
}

bool um_cell_number(const char *cell, uint64_t *number)
{
    bool hex = cell[0] == '0' && (cell[1] == 'x' || cell[1] == 'X');
    char *end;

    if (!isdigit((unsigned char)cell[0]))
        return false;
    errno = 0;
    *number = strtoull(cell, &end, hex ? 16 : 10);
    return errno == 0 && *end == '\0';
}

bool um_cell_dim3(const char *cell, uint32_t dim[3])
{
    char *end = (char *)cell + 1;

    if (cell[0] != '(')
        return false;
    for (int i = 0; i < 3; i++) {
        unsigned long v;

        end += strspn(end, " ");
        if (!isdigit((unsigned char)*end))
            return false;
        v = strtoul(end, &end, 10);
        if (v > UINT32_MAX)
            return false;
        dim[i] = (uint32_t)v;
    }
    return strcmp(end, ")") == 0;
}

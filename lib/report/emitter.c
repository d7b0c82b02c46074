#include "emitter.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

#define DEPTH_MAX   16
#define LABEL_WIDTH 11
#define COLUMNS_MAX 32

struct um_emitter {
    um_report_options_t options;
    FILE *out;
    um_status_t status;
    json_t *root, *stack[DEPTH_MAX]; /* borrowed from root but for stack[0] */
    size_t depth;
    const um_column_t *columns;
    size_t n_columns, n_rows, rows_size;
    char **cells; /* text: n_rows x n_columns */
};

static void fail(um_emitter_t *e, um_status_t status)
{
    if (!e->status)
        e->status = status;
}

um_status_t um_emitter_open(const um_report_options_t *options, FILE *out, um_emitter_t **result)
{
    um_emitter_t *e = calloc(1, sizeof(*e));

    if (!e)
        return UM_ERR_NO_MEMORY;
    e->options = *options;
    e->out = out;
    if (options->format != UM_REPORT_TEXT) {
        e->root = e->stack[0] = json_object();
        if (!e->root) {
            free(e);
            return UM_ERR_NO_MEMORY;
        }
        e->depth = 1;
    }
    *result = e;
    return UM_OK;
}

static void drop_rows(um_emitter_t *e)
{
    for (size_t i = 0; i < e->n_rows * e->n_columns; i++)
        free(e->cells[i]);
    e->n_rows = 0;
}

um_status_t um_emitter_close(um_emitter_t *e)
{
    um_status_t status;

    if (e->root && !e->status &&
        (json_dumpf(e->root, e->out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) ||
         fputc('\n', e->out) == EOF))
        fail(e, UM_ERR_IO);
    if (fflush(e->out) || ferror(e->out))
        fail(e, UM_ERR_IO);
    status = e->status;
    um_emitter_abandon(e);
    return status;
}

void um_emitter_abandon(um_emitter_t *e)
{
    json_decref(e->root);
    drop_rows(e);
    free(e->cells);
    free(e);
}

bool um_emitter_is_text(const um_emitter_t *e)
{
    return !e->root;
}

void um_emitter_fail(um_emitter_t *e)
{
    fail(e, UM_ERR_NO_MEMORY);
}

const um_report_options_t *um_emitter_options(const um_emitter_t *e)
{
    return &e->options;
}

/* ---- values ----------------------------------------------------------------------------------- */

void um_value_print(um_value_t value, char *out, size_t bytes)
{
    switch (value.kind) {
    case UM_VALUE_NONE:
        snprintf(out, bytes, "-");
        break;
    case UM_VALUE_COUNT:
        um_units_count(value.n, out, bytes);
        break;
    case UM_VALUE_BYTES:
        um_units_bytes(value.n, out, bytes);
        break;
    case UM_VALUE_NS:
        um_units_ns(value.n, out, bytes);
        break;
    case UM_VALUE_RATE:
        um_units_rate(value.n, out, bytes);
        break;
    case UM_VALUE_PERCENT:
        snprintf(out, bytes, "%" PRIu64 " %%", value.n);
        break;
    case UM_VALUE_RATIO:
        snprintf(out, bytes, "%.*fx",
                 value.n < 10000    ? 2
                 : value.n < 100000 ? 1
                                    : 0,
                 (double)value.n / 1000);
        break;
    case UM_VALUE_ADDR:
        snprintf(out, bytes, "0x%" PRIx64, value.n);
        break;
    case UM_VALUE_BOOL:
        snprintf(out, bytes, "%s", value.n ? "yes" : "no");
        break;
    case UM_VALUE_REAL:
        snprintf(out, bytes, "%.4g", value.real);
        break;
    case UM_VALUE_TEXT:
    case UM_VALUE_CODE:
        snprintf(out, bytes, "%s", value.text ? value.text : "-");
        break;
    }
}

static char *value_text(um_value_t value)
{
    char text[64];

    if (value.kind == UM_VALUE_TEXT || value.kind == UM_VALUE_CODE)
        return um_text_clean(value.text ? value.text : "-");
    um_value_print(value, text, sizeof(text));
    return strdup(text);
}

static json_t *value_json(um_value_t value)
{
    char text[64];
    char *clean;
    json_t *json;

    switch (value.kind) {
    case UM_VALUE_NONE:
        return json_null();
    case UM_VALUE_BOOL:
        return json_boolean(value.n);
    case UM_VALUE_RATIO:
        return json_real((double)value.n / 1000);
    case UM_VALUE_REAL:
        return json_real(value.real);
    case UM_VALUE_ADDR:
        um_value_print(value, text, sizeof(text));
        return json_string(text);
    case UM_VALUE_TEXT:
    case UM_VALUE_CODE:
        if (!value.text)
            return json_null();
        clean = value.kind == UM_VALUE_CODE ? um_text_clean_lines(value.text)
                                            : um_text_clean(value.text);
        json = clean ? json_string_nocheck(clean) : NULL;
        free(clean);
        return json;
    default:
        return json_integer(value.n > INT64_MAX ? INT64_MAX : (json_int_t)value.n);
    }
}

/* ---- JSON structure --------------------------------------------------------------------------- */

static void put(um_emitter_t *e, const char *key, json_t *json)
{
    json_t *top = e->stack[e->depth - 1];
    int error = !json                ? -1
                : json_is_array(top) ? json_array_append_new(top, json)
                                     : json_object_set_new(top, key, json);

    if (error)
        fail(e, UM_ERR_NO_MEMORY);
}

static void push(um_emitter_t *e, const char *key, json_t *json)
{
    if (e->depth == DEPTH_MAX || !json) {
        json_decref(json);
        fail(e, UM_ERR_NO_MEMORY);
        return;
    }
    put(e, key, json);
    e->stack[e->depth++] = json;
}

void um_emitter_object(um_emitter_t *e, const char *key)
{
    if (e->root)
        push(e, key, json_object());
}

void um_emitter_array(um_emitter_t *e, const char *key)
{
    if (e->root)
        push(e, key, json_array());
}

void um_emitter_end(um_emitter_t *e)
{
    if (e->root && e->depth > 1)
        e->depth--;
}

void um_emitter_element(um_emitter_t *e, um_value_t value)
{
    if (e->root)
        put(e, NULL, value_json(value));
}

void um_emitter_pair(um_emitter_t *e, const char *key, const char *label, um_value_t value)
{
    if (e->root && key)
        put(e, key, value_json(value));
    if (!e->root && label) {
        char *text = value_text(value);

        if (text)
            um_emitter_wrap(e, label, text);
        else
            fail(e, UM_ERR_NO_MEMORY);
        free(text);
    }
}

/* ---- text ------------------------------------------------------------------------------------- */

void um_emitter_heading(um_emitter_t *e, const char *title)
{
    if (!e->root)
        fprintf(e->out, e->options.color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", title);
}

void um_emitter_line(um_emitter_t *e, const char *format, ...)
{
    va_list args;

    if (e->root)
        return;
    va_start(args, format);
    vfprintf(e->out, format, args);
    va_end(args);
    fputc('\n', e->out);
}

void um_emitter_wrap(um_emitter_t *e, const char *label, const char *text)
{
    size_t indent = LABEL_WIDTH + 3, room = e->options.width - indent;
    char *clean;
    const char *at;

    if (e->root)
        return;
    clean = um_text_clean(text);
    if (!clean) {
        fail(e, UM_ERR_NO_MEMORY);
        return;
    }
    fprintf(e->out, "  %-*s ", LABEL_WIDTH, label);
    for (at = clean; um_text_columns(at) > room;) {
        const char *cut = NULL, *p = at;
        bool comment = false; /* behind code: stays in one piece */
        size_t n = 0;

        for (; *p && n <= room; p++) {
            if (p > at && p[0] == '/' && p[1] == '*')
                comment = true;
            if (*p == ' ' && !comment)
                cut = p;
            n += ((unsigned char)p[1] & 0xc0) != 0x80;
        }
        if (!cut || cut == at) { /* one long word: let it stick out */
            cut = strchr(at + 1, ' ');
            if (!cut)
                break;
        }
        for (p = cut; p > at && p[-1] == ' ';)
            p--;
        fprintf(e->out, "%.*s\n%*s", (int)(p - at), at, (int)indent, "");
        at = cut + strspn(cut, " ");
    }
    fprintf(e->out, "%s\n", at);
    free(clean);
}

void um_emitter_lines(um_emitter_t *e, const char *label, const char *text)
{
    char *copy = e->root ? NULL : strdup(text), *at = copy, *line;

    if (!e->root && !copy)
        fail(e, UM_ERR_NO_MEMORY);
    while (copy && (line = strsep(&at, "\n")) != NULL) {
        um_emitter_wrap(e, label, line);
        label = "";
    }
    free(copy);
}

/* ---- tables ----------------------------------------------------------------------------------- */

void um_emitter_table(um_emitter_t *e, const char *key, const um_column_t *columns, size_t n)
{
    e->columns = columns;
    e->n_columns = n < COLUMNS_MAX ? n : COLUMNS_MAX;
    if (e->root && key)
        um_emitter_array(e, key);
}

static void json_row(um_emitter_t *e, const um_value_t *values)
{
    um_emitter_object(e, NULL);
    for (size_t c = 0; c < e->n_columns; c++) {
        if (e->columns[c].key)
            put(e, e->columns[c].key, value_json(values[c]));
    }
    um_emitter_end(e);
}

void um_emitter_row(um_emitter_t *e, const um_value_t *values)
{
    if (e->root) {
        json_row(e, values);
        return;
    }
    if (e->n_rows == e->rows_size) {
        size_t size = e->rows_size ? e->rows_size * 2 : 32;
        char **cells = realloc(e->cells, size * COLUMNS_MAX * sizeof(char *));

        if (!cells) {
            fail(e, UM_ERR_NO_MEMORY);
            return;
        }
        e->cells = cells;
        e->rows_size = size;
    }
    for (size_t c = 0; c < e->n_columns; c++) {
        char *text = value_text(values[c]);

        if (!text)
            fail(e, UM_ERR_NO_MEMORY);
        e->cells[e->n_rows * e->n_columns + c] = text;
    }
    e->n_rows++;
}

static const char *cell(const um_emitter_t *e, size_t row, size_t column)
{
    const char *text = e->cells[row * e->n_columns + column];

    return text ? text : "";
}

/* One cell, padded, or cut to the width with the sign for "there was more". */
static void print_cell(um_emitter_t *e, const char *text, size_t width, bool left, bool last)
{
    size_t columns = um_text_columns(text);

    if (columns > width) {
        const char *more = e->options.utf8 ? "\xe2\x80\xa6" : "~";
        size_t n = 0, bytes = 0;

        while (text[bytes] && n < width - 1) {
            do
                bytes++;
            while (((unsigned char)text[bytes] & 0xc0) == 0x80);
            n++;
        }
        fprintf(e->out, "%.*s%s", (int)bytes, text, more);
    } else if (left) {
        fprintf(e->out, "%s%*s", text, last ? 0 : (int)(width - columns), "");
    } else {
        fprintf(e->out, "%*s%s", (int)(width - columns), "", text);
    }
}

/* Whether a column is in the text: it has a title and something to tell. */
static bool shown(const um_emitter_t *e, size_t column)
{
    const um_column_t *of = &e->columns[column];

    for (size_t r = 0; of->title && of->hide && r < e->n_rows; r++) {
        if (strcmp(cell(e, r, column), of->hide) != 0)
            return true;
    }
    return of->title && !of->hide;
}

/* Widths of the columns that fit; 0 = left out. Returns the last one shown. */
static size_t fit(const um_emitter_t *e, size_t width[COLUMNS_MAX])
{
    size_t total = 0, gives = COLUMNS_MAX, last = 0, room = e->options.width;

    for (size_t c = 0; c < e->n_columns; c++) {
        width[c] = 0;
        if (!shown(e, c))
            continue;
        width[c] = um_text_columns(e->columns[c].title);
        for (size_t r = 0; r < e->n_rows; r++) {
            size_t n = um_text_columns(cell(e, r, c));

            width[c] = n > width[c] ? n : width[c];
        }
        total += width[c] + 2;
        if (e->columns[c].left && gives == COLUMNS_MAX)
            gives = c;
    }
    if (gives < COLUMNS_MAX && width[gives] > 12) /* rather than that a spare column goes */
        room += width[gives] < 12 + 8 ? width[gives] - 12 : 8;
    for (size_t c = e->n_columns; c-- > 0 && total > room;) {
        if (width[c] && e->columns[c].spare) {
            total -= width[c] + 2;
            width[c] = 0;
        }
    }
    if (gives < COLUMNS_MAX && total > e->options.width) {
        size_t over = total - e->options.width;

        width[gives] = width[gives] > over + 12 ? width[gives] - over
                       : width[gives] > 12      ? 12
                                                : width[gives];
    }
    for (size_t c = 0; c < e->n_columns; c++)
        last = width[c] ? c : last;
    return last;
}

void um_emitter_table_end(um_emitter_t *e, uint64_t more)
{
    size_t width[COLUMNS_MAX] = {0}, last;

    if (e->root) {
        um_emitter_end(e);
        return;
    }
    if (!e->n_rows) {
        fputs("  none\n", e->out);
        return;
    }
    last = fit(e, width);
    for (size_t r = 0; r <= e->n_rows; r++) {
        for (size_t c = 0; c < e->n_columns; c++) {
            if (!width[c])
                continue;
            fputs("  ", e->out);
            print_cell(e, r ? cell(e, r - 1, c) : e->columns[c].title, width[c], e->columns[c].left,
                       c == last);
        }
        fputc('\n', e->out);
    }
    if (more)
        fprintf(e->out, "  ... and %" PRIu64 " more (--top)\n", more);
    drop_rows(e);
}

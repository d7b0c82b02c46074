/* A database of umrt's own (export.h), back to its events: each type's rows in order, merged by seq. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "trace/export_shape.h"
#include "trace/import_sqlite.h"

/* As in a .umt (um_trace.h). */
#define ELEMENTS_MAX 131072u

/* The rows of one array; `there`: it stands at one. */
typedef struct um_back_array {
    sqlite3_stmt *rows;
    bool there;
} um_back_array_t;

typedef struct um_back {
    um_event_type_t type;
    sqlite3_stmt *rows;
    int64_t seq;         /* of the row that comes next */
    uint64_t from_start; /* bit i: field i is stored as the time plus it */
    bool row;
    um_back_array_t array[UM_SCHEMA_ARRAYS]; /* in the order of the schema */
} um_back_t;

static sqlite3_stmt *statement(um_import_t *im, sqlite3 *db, sqlite3_str *sql)
{
    char *text = sqlite3_str_finish(sql);
    sqlite3_stmt *stmt = NULL;

    if (!text || sqlite3_prepare_v2(db, text, -1, &stmt, NULL) == SQLITE_NOMEM)
        im->status = UM_ERR_NO_MEMORY;
    sqlite3_free(text);
    return stmt;
}

/* Adds ", column" for fields from..to-1, NULL for those that the table does not have. */
static void select_fields(um_sql_t *sql, sqlite3_str *text, const char *table, um_event_type_t type,
                          size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const um_field_t *field = &um_schema_table[type].fields[i];
        char column[UM_EXPORT_NAME_BYTES];
        bool from_start;

        if (field->kind == UM_FIELD_ARRAY) {
            i += field->elements;
            continue;
        }
        um_export_column(type, field, column, &from_start);
        if (um_sql_has_column(sql, table, column))
            sqlite3_str_appendf(text, ", \"%w\"", column);
        else
            sqlite3_str_appendall(text, ", NULL");
    }
}

static um_status_t damaged(um_import_t *im, sqlite3 *db, const um_back_t *back, int result)
{
    if (result == SQLITE_INTERRUPT)
        return um_import_fail(im, UM_ERR_FORMAT, "%s: damaged, more rows than fit into the file",
                              um_schema_table[back->type].name);
    return um_import_fail(im, result == SQLITE_NOMEM ? UM_ERR_NO_MEMORY : UM_ERR_FORMAT, "%s: %s",
                          um_schema_table[back->type].name, sqlite3_errmsg(db));
}

static um_status_t next(um_import_t *im, sqlite3 *db, um_back_t *back, sqlite3_stmt *stmt,
                        bool *there)
{
    int result = stmt ? sqlite3_step(stmt) : SQLITE_DONE;

    *there = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? UM_OK : damaged(im, db, back, result);
}

static um_status_t advance(um_import_t *im, sqlite3 *db, um_back_t *back)
{
    um_status_t status = next(im, db, back, back->rows, &back->row);

    if (!status && back->row)
        back->seq = sqlite3_column_int64(back->rows, 0);
    return status;
}

/* Its rows in order, and those of its arrays; nothing where there is no such table. */
static um_status_t open_type(um_sql_t *sql, um_back_t *back)
{
    const um_schema_t *schema = &um_schema_table[back->type];
    um_back_array_t *elements = back->array;
    char table[UM_EXPORT_NAME_BYTES];
    sqlite3_str *text;
    bool shared;
    um_status_t status;

    um_export_table(back->type, table, &shared);
    if (!um_sql_has_column(sql, table, "seq") || !um_sql_has_column(sql, table, "start"))
        return UM_OK;
    text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, "SELECT seq, start, %s",
                        um_sql_has_column(sql, table, "tid") ? "tid" : "NULL");
    select_fields(sql, text, table, back->type, 0, schema->n_fields);
    sqlite3_str_appendf(text, " FROM \"%w\"", table);
    if (shared)
        sqlite3_str_appendf(text, " WHERE umrtType = %d", (int)back->type);
    sqlite3_str_appendall(text, " ORDER BY seq");
    back->rows = statement(sql->im, sql->db, text);
    status = advance(sql->im, sql->db, back);
    for (size_t i = 0; !status && i < schema->n_fields; i++) {
        const um_field_t *array = &schema->fields[i];
        bool from_start;

        if (array->kind != UM_FIELD_ARRAY) {
            um_export_column(back->type, array, table, &from_start);
            back->from_start |= (uint64_t)from_start << i;
            continue;
        }
        um_export_elements(back->type, array, table);
        text = sqlite3_str_new(NULL);
        sqlite3_str_appendall(text, "SELECT seq");
        select_fields(sql, text, table, back->type, i + 1, i + 1 + array->elements);
        sqlite3_str_appendf(text, " FROM \"%w\" ORDER BY seq, i", table);
        if (um_sql_has_column(sql, table, "seq") && um_sql_has_column(sql, table, "i"))
            elements->rows = statement(sql->im, sql->db, text);
        else
            sqlite3_free(sqlite3_str_finish(text));
        status = next(sql->im, sql->db, back, elements->rows, &elements->there);
        elements++;
        i += array->elements;
    }
    return status ? status : sql->im->status;
}

/* The elements of the row, malloc'ed into the event; those of rows that are not there are passed over. */
static um_status_t read_array(um_import_t *im, sqlite3 *db, um_back_t *back, um_back_array_t *from,
                              const um_field_t *array, char *member, void **elements)
{
    size_t size = 0;
    uint32_t count = 0;
    um_status_t status = UM_OK;

    while (!status && from->there && sqlite3_column_int64(from->rows, 0) <= back->seq) {
        if (sqlite3_column_int64(from->rows, 0) == back->seq && count < ELEMENTS_MAX) {
            if (count == size) {
                void *grown;

                size = size ? size * 2 : 8;
                grown = realloc(*elements, size * array->element_bytes);
                if (!grown)
                    return UM_ERR_NO_MEMORY;
                *elements = grown;
            }
            for (int k = 1; k <= array->elements; k++)
                um_export_store(&array[k], (char *)*elements + count * array->element_bytes,
                                sqlite3_column_int64(from->rows, k));
            count++;
        }
        status = next(im, db, back, from->rows, &from->there);
    }
    memcpy(member + array->offset, &count, sizeof(count));
    memcpy(member + array->array_offset, elements, sizeof(*elements));
    return status;
}

static um_status_t hand_over(um_import_t *im, sqlite3 *db, um_back_t *back)
{
    const um_schema_t *schema = &um_schema_table[back->type];
    int64_t start = sqlite3_column_int64(back->rows, 1);
    um_event_t event = {.tid = (uint32_t)sqlite3_column_int64(back->rows, 2)};
    char *member = (char *)&event.u;
    void *elements[UM_SCHEMA_ARRAYS] = {NULL};
    um_status_t status = UM_OK;
    size_t arrays = 0;
    int column = 3;

    for (size_t i = 0; !status && i < schema->n_fields; i++) {
        const um_field_t *field = &schema->fields[i];

        if (field->kind == UM_FIELD_ARRAY) {
            status =
                read_array(im, db, back, &back->array[arrays], field, member, &elements[arrays]);
            arrays++;
            i += field->elements;
        } else if (field->kind == UM_FIELD_STRING) {
            const char *text = (const char *)sqlite3_column_text(back->rows, column++);

            text = text ? text : "";
            memcpy(member + field->offset, &text, sizeof(text));
        } else {
            uint64_t value = (uint64_t)sqlite3_column_int64(back->rows, column++);

            value -= back->from_start >> i & 1 ? (uint64_t)start : 0;
            um_export_store(field, member, (int64_t)value);
        }
    }
    if (!status)
        um_import_emit(im, back->type, (uint64_t)start, &event);
    for (size_t i = 0; i < UM_SCHEMA_ARRAYS; i++)
        free(elements[i]);
    return status;
}

/* The one process that is in it, where another is asked for. */
static um_status_t check_process(um_sql_t *sql)
{
    int64_t process = um_sql_number(
        sql, 0, "SELECT CAST(value AS INTEGER) FROM META_DATA_CAPTURE WHERE name = 'process.pid'");

    if (sql->im->process == 0 || sql->im->process == process)
        return UM_OK;
    return um_import_fail(sql->im, UM_ERR_NOT_FOUND, "has no records of process %u",
                          sql->im->process);
}

um_status_t um_import_export(um_import_t *im, sqlite3 *db)
{
    um_sql_t sql = {.im = im, .db = db};
    um_back_t types[UM_EV_TYPE_COUNT] = {0}, *first;
    um_status_t status = check_process(&sql);

    for (int type = 1; !status && type < UM_EV_TYPE_COUNT; type++) {
        types[type].type = (um_event_type_t)type;
        status = um_schema_table[type].fields ? open_type(&sql, &types[type]) : UM_OK;
    }
    while (!status) {
        first = NULL;
        for (int type = 1; type < UM_EV_TYPE_COUNT; type++) {
            if (types[type].row && (!first || types[type].seq < first->seq))
                first = &types[type];
        }
        if (!first)
            break;
        status = hand_over(im, db, first);
        if (!status)
            status = advance(im, db, first);
    }
    for (int type = 1; type < UM_EV_TYPE_COUNT; type++) {
        sqlite3_finalize(types[type].rows);
        for (size_t i = 0; i < UM_SCHEMA_ARRAYS; i++)
            sqlite3_finalize(types[type].array[i].rows);
    }
    return status;
}

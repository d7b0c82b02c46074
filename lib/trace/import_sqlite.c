#include "trace/import_sqlite.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool um_sql_has_column(um_sql_t *sql, const char *table, const char *column)
{
    return sqlite3_table_column_metadata(sql->db, "main", table, column, NULL, NULL, NULL, NULL,
                                         NULL) == SQLITE_OK;
}

bool um_sql_has_table(um_sql_t *sql, const char *table)
{
    return um_sql_has_column(sql, table, NULL);
}

static sqlite3_stmt *prepare(um_sql_t *sql, const char *format, va_list args)
{
    char *query = sqlite3_vmprintf(format, args);
    sqlite3_stmt *stmt = NULL;

    if (query == NULL)
        sql->im->status = UM_ERR_NO_MEMORY;
    else if (sqlite3_prepare_v2(sql->db, query, -1, &stmt, NULL) == SQLITE_NOMEM)
        sql->im->status = UM_ERR_NO_MEMORY;
    sqlite3_free(query);
    return stmt;
}

sqlite3_stmt *um_sql_prepare(um_sql_t *sql, const char *format, ...)
{
    va_list args;
    sqlite3_stmt *stmt;

    va_start(args, format);
    stmt = prepare(sql, format, args);
    va_end(args);
    return stmt;
}

int64_t um_sql_number(um_sql_t *sql, int64_t fallback, const char *format, ...)
{
    va_list args;
    sqlite3_stmt *stmt;

    va_start(args, format);
    stmt = prepare(sql, format, args);
    va_end(args);
    if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW &&
        sqlite3_column_type(stmt, 0) == SQLITE_INTEGER)
        fallback = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return fallback;
}

/* " AND ..." that keeps the rows of sql->process, "" where the table has no process ids. */
static char *process_condition(um_sql_t *sql, const char *table)
{
    if (sql->process == 0 || !um_sql_has_column(sql, table, sql->process_column))
        return sqlite3_mprintf("");
    return sqlite3_mprintf(" AND (%s IS NULL OR %s = %u)", sql->process_column, sql->process_sql,
                           sql->process);
}

int64_t um_sql_count(um_sql_t *sql, const char *table, const char *where, int64_t limit)
{
    char *condition = process_condition(sql, table);
    int64_t n =
        um_sql_number(sql, 0, "SELECT count(*) FROM (SELECT 1 FROM %s WHERE (%s)%s LIMIT %lld)",
                      table, where != NULL ? where : "1", condition != NULL ? condition : "",
                      (long long)limit);

    sqlite3_free(condition);
    return n;
}

void um_sql_fact(um_sql_t *sql, const char *key, const char *query)
{
    sqlite3_stmt *stmt = um_sql_prepare(sql, "%s", query);

    if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW)
        um_import_fact(sql->im, key, (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
}

static um_status_t choose_process(um_sql_t *sql, const char *const *tables, size_t n, char *others,
                                  size_t others_bytes)
{
    uint32_t wanted = sql->im->process;

    others[0] = '\0';
    for (size_t i = 0; i < n && sql->process == 0; i++) {
        sqlite3_stmt *stmt = um_sql_prepare(
            sql, "SELECT %s AS pid, count(*) FROM %s GROUP BY pid ORDER BY pid <> %u, 2 DESC, 1",
            sql->process_sql, tables[i], wanted);
        size_t used = 0;

        while (stmt != NULL && used < others_bytes && sqlite3_step(stmt) == SQLITE_ROW) {
            int64_t pid = sqlite3_column_int64(stmt, 0);

            if (pid <= 0 || pid > UINT32_MAX)
                continue;
            if (sql->process == 0 && (wanted == 0 || pid == wanted)) {
                sql->process = (uint32_t)pid;
                continue;
            }
            used += (size_t)snprintf(others + used, others_bytes - used,
                                     "%s%lld rows of process %lld", used > 0 ? ", " : "",
                                     (long long)sqlite3_column_int64(stmt, 1), (long long)pid);
        }
        sqlite3_finalize(stmt);
    }
    if (wanted != 0 && sql->process == 0)
        return um_import_fail(sql->im, UM_ERR_NOT_FOUND, "has no records of process %u", wanted);
    return UM_OK;
}

/* ---- merge ------------------------------------------------------------------------------------ */

typedef struct cursor {
    const um_sql_source_t *source;
    um_sql_row_t row;
    int64_t time; /* as stored */
} cursor_t;

/* SELECT order, column or NULL, ... FROM table WHERE ... ORDER BY order */
static sqlite3_stmt *open_source(um_sql_t *sql, const um_sql_source_t *source)
{
    char *condition = process_condition(sql, source->table), *query;
    sqlite3_str *text = sqlite3_str_new(sql->db);
    sqlite3_stmt *stmt = NULL;

    sqlite3_str_appendf(text, "SELECT \"%w\"", source->order);
    for (size_t i = 0; i < UM_SQL_COLUMNS && source->columns[i] != NULL; i++) {
        if (um_sql_has_column(sql, source->table, source->columns[i]))
            sqlite3_str_appendf(text, ", \"%w\"", source->columns[i]);
        else
            sqlite3_str_appendall(text, ", NULL");
    }
    sqlite3_str_appendf(text, " FROM \"%w\" WHERE 1", source->table);
    if (source->where != NULL)
        sqlite3_str_appendf(text, " AND (%s)", source->where);
    sqlite3_str_appendf(text, "%s ORDER BY \"%w\"", condition != NULL ? condition : "",
                        source->order);
    sqlite3_free(condition);
    query = sqlite3_str_finish(text);
    if (query != NULL)
        stmt = um_sql_prepare(sql, "%s", query);
    else
        sql->im->status = UM_ERR_NO_MEMORY;
    sqlite3_free(query);
    return stmt;
}

/* Moves to the next row that has a time. UM_ERR_NOT_FOUND at the end. */
static um_status_t advance(um_sql_t *sql, cursor_t *c)
{
    int result;

    while ((result = sqlite3_step(c->row.stmt)) == SQLITE_ROW) {
        int type = sqlite3_column_type(c->row.stmt, 0);

        c->time = sqlite3_column_int64(c->row.stmt, 0);
        if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
            return UM_OK;
        sql->skipped++;
    }
    if (result == SQLITE_DONE)
        return UM_ERR_NOT_FOUND;
    if (result == SQLITE_INTERRUPT)
        return um_import_fail(sql->im, UM_ERR_FORMAT,
                              "table %s: damaged, it has more rows than fit into the file",
                              c->source->table);
    return um_import_fail(sql->im, result == SQLITE_NOMEM ? UM_ERR_NO_MEMORY : UM_ERR_FORMAT,
                          "table %s: %s", c->source->table, sqlite3_errmsg(sql->db));
}

static um_status_t open_cursors(um_sql_t *sql, const um_sql_source_t *sources, size_t n,
                                cursor_t *cursors, size_t *n_cursors)
{
    for (size_t i = 0; i < n; i++) {
        cursor_t *c = &cursors[*n_cursors];
        um_status_t status;

        /* A condition on a column that is absent would not compile: no such rows then. */
        if (!um_sql_has_table(sql, sources[i].table) ||
            !um_sql_has_column(sql, sources[i].table, sources[i].order))
            continue;
        *c = (cursor_t){.source = &sources[i], .row.stmt = open_source(sql, &sources[i])};
        if (c->row.stmt == NULL) {
            if (sql->im->status != UM_OK)
                return sql->im->status;
            continue;
        }
        status = advance(sql, c);
        if (status == UM_OK) {
            ++*n_cursors;
            continue;
        }
        sqlite3_finalize(c->row.stmt);
        if (status != UM_ERR_NOT_FOUND)
            return status;
    }
    return UM_OK;
}

static cursor_t *earliest(cursor_t *cursors, size_t n)
{
    cursor_t *first = NULL;

    for (size_t i = 0; i < n; i++)
        if (first == NULL || cursors[i].time < first->time)
            first = &cursors[i];
    return first;
}

static um_status_t merge(um_sql_t *sql, const um_sql_source_t *sources, size_t n,
                         void (*ready)(um_sql_t *sql, const char *others), const char *others)
{
    cursor_t cursors[UM_SQL_SOURCES], *c;
    size_t left = 0;
    um_status_t status = open_cursors(sql, sources, n, cursors, &left);

    if (status == UM_OK) {
        c = earliest(cursors, left);
        if (c != NULL) {
            sql->base = c->time < 0 ? c->time : 0;
            sql->im->now_ns = (uint64_t)c->time - (uint64_t)sql->base;
        }
        ready(sql, others);
    }
    while (status == UM_OK && (c = earliest(cursors, left)) != NULL) {
        c->row.time_ns = (uint64_t)c->time - (uint64_t)sql->base;
        c->source->row(sql, &c->row);
        status = sql->im->status;
        if (status == UM_OK)
            status = advance(sql, c);
        if (status == UM_ERR_NOT_FOUND) {
            sqlite3_finalize(c->row.stmt);
            /* Keeps the order of the sources, which decides between equal times. */
            memmove(c, c + 1, (size_t)(cursors + --left - c) * sizeof *c);
            status = UM_OK;
        }
    }
    for (size_t i = 0; i < left; i++)
        sqlite3_finalize(cursors[i].row.stmt);
    if (status == UM_OK && sql->skipped > 0)
        um_import_loss(sql->im, sql->skipped, "rows without a time");
    return status;
}

um_status_t um_sql_read(um_sql_t *sql, const char *const *tables, size_t n_tables,
                        const um_sql_source_t *sources, size_t n_sources,
                        void (*ready)(um_sql_t *sql, const char *others))
{
    char others[256];
    um_status_t status = choose_process(sql, tables, n_tables, others, sizeof others);

    if (status == UM_OK)
        status = merge(sql, sources, n_sources, ready, others);
    sqlite3_finalize(sql->names);
    sql->names = NULL;
    return status;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* Column 0 of the statement is the order. */
static sqlite3_stmt *at(const um_sql_row_t *row, int *column)
{
    ++*column;
    return row->stmt;
}

bool um_sql_has(const um_sql_row_t *row, int column)
{
    sqlite3_stmt *stmt = at(row, &column);

    return sqlite3_column_type(stmt, column) != SQLITE_NULL;
}

uint64_t um_sql_u64(const um_sql_row_t *row, int column)
{
    sqlite3_stmt *stmt = at(row, &column);

    return (uint64_t)sqlite3_column_int64(stmt, column);
}

uint32_t um_sql_u32(const um_sql_row_t *row, int column)
{
    uint64_t value = um_sql_u64(row, column);

    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

int32_t um_sql_device(const um_sql_row_t *row, int column)
{
    int64_t value = (int64_t)um_sql_u64(row, column);

    if (!um_sql_has(row, column))
        return UM_DEVICE_NONE;
    if (value == -1 || value == UINT32_MAX)
        return UM_DEVICE_HOST;
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : UM_DEVICE_NONE;
}

uint64_t um_sql_duration(const um_sql_row_t *row, int start, int end)
{
    int64_t a = (int64_t)um_sql_u64(row, start), b = (int64_t)um_sql_u64(row, end);

    return um_sql_has(row, start) && b > a ? (uint64_t)b - (uint64_t)a : 0;
}

const char *um_sql_text(const um_sql_row_t *row, int column)
{
    sqlite3_stmt *stmt = at(row, &column);
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    return text != NULL ? text : "";
}

const char *um_sql_name(um_sql_t *sql, int64_t id)
{
    const char *text = NULL;

    if (sql->names == NULL)
        sql->names = um_sql_prepare(sql, "SELECT value FROM %s WHERE %s = ?1", sql->names_table,
                                    sql->names_id);
    if (sql->names == NULL)
        return "";
    sqlite3_reset(sql->names);
    sqlite3_bind_int64(sql->names, 1, id);
    if (sqlite3_step(sql->names) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(sql->names, 0);
    return text != NULL ? text : "";
}

uint32_t um_sql_kernel(um_sql_t *sql, const um_sql_row_t *row, int column)
{
    int64_t id = (int64_t)um_sql_u64(row, column);
    size_t slot = (uint64_t)id % UM_SQL_NAMES;
    const char *name;

    if (!um_sql_has(row, column))
        return 0;
    if (sql->kernels[slot].kernel == 0 || sql->kernels[slot].id != id) {
        name = um_sql_name(sql, id);
        sql->kernels[slot].id = id;
        sql->kernels[slot].kernel =
            name[0] != '\0' ? um_import_kernel(sql->im, row->time_ns, name) : 0;
    }
    return sql->kernels[slot].kernel;
}

/* ---- waits ------------------------------------------------------------------------------------ */

static void wait_event(um_sql_t *sql, const um_sql_row_t *row, uint32_t left)
{
    /* CUpti_ActivitySynchronizationType; 2, a stream waiting for an event, is no wait of the CPU */
    static const uint32_t kinds[] = {UM_SYNC_UNKNOWN, UM_SYNC_EVENT, UM_SYNC_UNKNOWN,
                                     UM_SYNC_STREAM, UM_SYNC_DEVICE};
    enum { TYPE, CORRELATION, CONTEXT, STREAM };
    uint32_t type = um_sql_u32(row, TYPE);
    um_event_t event = {0};

    if (type == 2)
        return;
    event.u.sync = (um_ev_sync_t){.sync = um_sql_u32(row, CORRELATION),
                                  .kind = type < 5 ? kinds[type] : (uint32_t)UM_SYNC_UNKNOWN,
                                  .exit = left,
                                  .context = um_sql_u32(row, CONTEXT),
                                  .stream = um_sql_u32(row, STREAM)};
    um_import_emit(sql->im, UM_EV_SYNC, row->time_ns, &event);
}

void um_sql_row_wait(um_sql_t *sql, const um_sql_row_t *row)
{
    wait_event(sql, row, 0);
}

void um_sql_row_wait_end(um_sql_t *sql, const um_sql_row_t *row)
{
    wait_event(sql, row, 1);
}

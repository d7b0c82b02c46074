#include "trace/export.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "trace/export_shape.h"

#define COLUMNS_MAX UM_SCHEMA_MAX_FIELDS

/* How the rows of one type go in; made at its first event. */
typedef struct um_export_type {
    sqlite3_stmt *row;
    sqlite3_stmt *elements[UM_SCHEMA_ARRAYS]; /* of its arrays, in the order of the schema */
    uint64_t from_start;                      /* bit i: field i is stored as the time plus it */
    bool shared;
} um_export_type_t;

struct um_export {
    sqlite3 *db;
    um_export_type_t types[UM_EV_TYPE_COUNT];
    sqlite3_stmt *string;          /* into StringIds */
    sqlite3_stmt *range, *closing; /* NVTX_EVENTS */
    int64_t seq;
    int64_t process;     /* of the fact process.pid, as globalPid */
    uint64_t named[256]; /* instructions that have a name already, by hash */
    um_status_t status;
    char error[256];
};

/* ---- statements ------------------------------------------------------------------------------- */

static um_status_t fail(um_export_t *to, int result)
{
    if (!to->status) {
        to->status = result == SQLITE_NOMEM ? UM_ERR_NO_MEMORY : UM_ERR_IO;
        snprintf(to->error, sizeof(to->error), "%s", sqlite3_errmsg(to->db));
    }
    return to->status;
}

/* Takes the text over. */
static void run(um_export_t *to, char *sql)
{
    int result = sql ? sqlite3_exec(to->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

    if (result != SQLITE_OK)
        fail(to, result);
    sqlite3_free(sql);
}

static sqlite3_stmt *prepare(um_export_t *to, char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int result = sql ? sqlite3_prepare_v3(to->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL)
                     : SQLITE_NOMEM;

    if (result != SQLITE_OK)
        fail(to, result);
    sqlite3_free(sql);
    return stmt;
}

static void step(um_export_t *to, sqlite3_stmt *stmt)
{
    int result = sqlite3_step(stmt);

    if (result != SQLITE_DONE)
        fail(to, result);
    sqlite3_reset(stmt);
}

/* ---- tables ----------------------------------------------------------------------------------- */

typedef void (*um_column_fn)(void *ctx, const char *column, const um_field_t *field, bool own);

/* Every column that the type's table has for a field, once: the type's own, in their order, and those of
 * the types that share the table. */
static void each_column(um_event_type_t type, um_column_fn fn, void *ctx)
{
    char table[UM_EXPORT_NAME_BYTES], seen[COLUMNS_MAX * 2][UM_EXPORT_NAME_BYTES];
    size_t n = 0;
    bool shared;

    um_export_table(type, table, &shared);
    for (uint32_t at = 0; at < UM_EV_TYPE_COUNT; at++) {
        um_event_type_t of = at ? (um_event_type_t)at : type; /* itself first */
        const um_schema_t *schema = &um_schema_table[of];
        char name[UM_EXPORT_NAME_BYTES];

        if (!schema->fields)
            continue;
        um_export_table(of, name, &shared);
        for (size_t i = 0; !strcmp(name, table) && i < schema->n_fields; i++) {
            const um_field_t *field = &schema->fields[i];
            bool from_start;
            size_t k = 0;

            if (field->kind == UM_FIELD_ARRAY) {
                i += field->elements;
                continue;
            }
            um_export_column(of, field, seen[n], &from_start);
            while (strcmp(seen[k], seen[n]) != 0)
                k++;
            if (k == n && n + 1 < COLUMNS_MAX * 2)
                fn(ctx, seen[n++], field, of == type);
        }
    }
}

static void define(void *ctx, const char *column, const um_field_t *field, bool own)
{
    (void)own;
    sqlite3_str_appendf(ctx, ", \"%w\" %s", column,
                        field->kind == UM_FIELD_STRING ? "TEXT" : "INTEGER");
}

static void name_it(void *ctx, const char *column, const um_field_t *field, bool own)
{
    (void)field;
    (void)own;
    sqlite3_str_appendf(ctx, ", \"%w\"", column);
}

static void bind_it(void *ctx, const char *column, const um_field_t *field, bool own)
{
    (void)field;
    sqlite3_str_appendf(ctx, ", %s AS \"%w\"", own ? "?" : "NULL", column);
}

/* Expressions speak of PROCESS. */
static void add_expression(sqlite3_str *sql, const char *as, int64_t process)
{
    const char *at = strstr(as, "PROCESS");

    if (at)
        sqlite3_str_appendf(sql, ", %.*s%lld%s", (int)(at - as), as, (long long)process,
                            at + strlen("PROCESS"));
    else
        sqlite3_str_appendf(sql, ", %s", as);
}

/* INSERT INTO table(..., computed) SELECT ..., expressions FROM (SELECT ? AS seq, ? AS start, ...) */
static char *insertion(const um_export_t *to, um_event_type_t type, const char *table,
                       const char *type_column)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    const char *column, *as;

    sqlite3_str_appendf(sql, "INSERT INTO \"%w\"(seq, start, tid%s", table, type_column);
    each_column(type, name_it, sql);
    for (size_t i = 0; (column = um_export_computed(type, i, &as)); i++)
        sqlite3_str_appendf(sql, ", \"%w\"", column);
    sqlite3_str_appendf(sql, ") SELECT seq, start, tid%s", type_column);
    each_column(type, name_it, sql);
    for (size_t i = 0; um_export_computed(type, i, &as); i++)
        add_expression(sql, as, to->process);
    sqlite3_str_appendf(sql, " FROM (SELECT ? AS seq, ? AS start, ? AS tid%s",
                        *type_column ? ", ? AS umrtType" : "");
    each_column(type, bind_it, sql);
    sqlite3_str_appendall(sql, ")");
    return sqlite3_str_finish(sql);
}

static sqlite3_stmt *make_elements(um_export_t *to, um_event_type_t type, const um_field_t *array)
{
    char table[UM_EXPORT_NAME_BYTES];
    sqlite3_str *sql = sqlite3_str_new(NULL);

    um_export_elements(type, array, table);
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(seq INTEGER NOT NULL, i INTEGER NOT NULL", table);
    for (size_t i = 1; i <= array->elements; i++)
        sqlite3_str_appendf(sql, ", \"%w\" INTEGER", array[i].name);
    sqlite3_str_appendall(sql, ", PRIMARY KEY(seq, i)) WITHOUT ROWID");
    run(to, sqlite3_str_finish(sql));
    sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES(?, ?", table);
    for (size_t i = 1; i <= array->elements; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    return prepare(to, sqlite3_str_finish(sql));
}

/* The type's table and how to write to it. */
static void make_type(um_export_t *to, um_event_type_t type)
{
    um_export_type_t *made = &to->types[type];
    const um_schema_t *schema = &um_schema_table[type];
    char table[UM_EXPORT_NAME_BYTES], name[UM_EXPORT_NAME_BYTES];
    const char *column, *as;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    bool from_start;
    size_t arrays = 0;

    um_export_table(type, table, &made->shared);
    sqlite3_str_appendf(sql,
                        "CREATE TABLE IF NOT EXISTS \"%w\"(seq INTEGER PRIMARY KEY, start INTEGER "
                        "NOT NULL, tid INTEGER%s",
                        table, made->shared ? ", umrtType INTEGER NOT NULL" : "");
    each_column(type, define, sql);
    for (size_t i = 0; (column = um_export_computed(type, i, &as)); i++)
        sqlite3_str_appendf(sql, ", \"%w\" INTEGER", column);
    sqlite3_str_appendall(sql, ")");
    run(to, sqlite3_str_finish(sql));
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *field = &schema->fields[i];

        if (field->kind == UM_FIELD_ARRAY) {
            made->elements[arrays++] = make_elements(to, type, field);
            i += field->elements;
            continue;
        }
        um_export_column(type, field, name, &from_start);
        made->from_start |= (uint64_t)from_start << i;
    }
    made->row = prepare(to, insertion(to, type, table, made->shared ? ", umrtType" : ""));
}

/* ---- what Nsight has besides ------------------------------------------------------------------ */

static void put_string(um_export_t *to, int64_t id, const char *text)
{
    sqlite3_bind_int64(to->string, 1, id);
    sqlite3_bind_text(to->string, 2, text, -1, SQLITE_STATIC);
    step(to, to->string);
}

/* The names that the rows of a kernel's runs refer to. */
static void name_kernel(um_export_t *to, const um_ev_kernel_t *kernel)
{
    for (int64_t i = 1; i <= 3; i++)
        put_string(to, kernel->kernel * INT64_C(4) + i, kernel->name);
}

/* Function, file and line of an instruction where the trace knows them, else its address. */
static void name_instruction(um_export_t *to, uint64_t pc, const char *name)
{
    uint64_t *named = &to->named[pc * UINT64_C(0x9e3779b97f4a7c15) >> 56];
    char address[24];

    if (*named == pc)
        return;
    *named = pc;
    snprintf(address, sizeof(address), "0x%" PRIx64, pc);
    put_string(to, (int64_t)(0 - pc), name ? name : address);
}

/* A range is a row at its begin and gets its end later: 34 is a mark, 59 a nested range, 60 a free one. */
static void put_range(um_export_t *to, const um_event_t *event)
{
    const um_ev_mark_t *mark = &event->u.mark;
    bool nested = mark->kind == UM_MARK_PUSH || mark->kind == UM_MARK_POP;
    bool closes = mark->kind == UM_MARK_POP || mark->kind == UM_MARK_END;
    sqlite3_stmt *stmt = closes ? to->closing : to->range;

    sqlite3_bind_int64(stmt, 1, (int64_t)event->time_ns);
    sqlite3_bind_int(stmt, 2, mark->kind == UM_MARK_INSTANT ? 34 : nested ? 59 : 60);
    sqlite3_bind_int64(stmt, 3, nested ? event->tid : (int64_t)mark->id);
    if (!closes) {
        sqlite3_bind_text(stmt, 4, mark->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 5, to->process | (event->tid & 0xffffff));
    }
    step(to, stmt);
}

static void put_besides(um_export_t *to, const um_event_t *event)
{
    if (event->type == UM_EV_FACT && !strcmp(event->u.fact.key, "process.pid"))
        to->process = (int64_t)(strtoull(event->u.fact.value, NULL, 10) & 0xffffff) << 24;
    else if (event->type == UM_EV_KERNEL)
        name_kernel(to, &event->u.kernel);
    else if (event->type == UM_EV_CALL_SITE)
        name_instruction(to, event->u.call_site.call_site, event->u.call_site.frames);
    else if (event->type == UM_EV_CPU_FAULT)
        name_instruction(to, event->u.cpu_fault.pc, NULL);
    else if (event->type == UM_EV_MARK)
        put_range(to, event);
}

/* ---- life ------------------------------------------------------------------------------------- */

um_status_t um_export_open(const char *path, um_export_t **out, char *error, size_t error_bytes)
{
    um_export_t *to = calloc(1, sizeof(*to));
    int result;

    if (!to) {
        snprintf(error, error_bytes, "%s: out of memory", path);
        return UM_ERR_NO_MEMORY;
    }
    result = access(path, F_OK) == 0
                 ? SQLITE_CANTOPEN
                 : sqlite3_open_v2(path, &to->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (result != SQLITE_OK)
        fail(to, result);
    /* The file is nobody's until it is whole: no journal, one transaction, no waiting for the disk. */
    run(to,
        sqlite3_mprintf(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA application_id = %u; "
            "BEGIN; CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL); "
            "INSERT INTO StringIds VALUES(0, '[Unknown]'), (1, ''), (2, '[Unknown]'), (3, "
            "'[Unknown]'); "
            "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT); "
            "INSERT INTO META_DATA_EXPORT VALUES('umrt.version', '%q'), ('umrt.export', '1'); "
            "CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, \"end\" INTEGER, eventType INTEGER "
            "NOT NULL, rangeId INTEGER, text TEXT, globalTid INTEGER); "
            "CREATE INDEX openRanges ON NVTX_EVENTS(eventType, rangeId) WHERE \"end\" IS NULL",
            UM_EXPORT_APPLICATION, PACKAGE_VERSION));
    to->string = prepare(to, sqlite3_mprintf("INSERT INTO StringIds VALUES(?, ?) ON CONFLICT DO "
                                             "NOTHING"));
    to->range =
        prepare(to, sqlite3_mprintf(
                        "INSERT INTO NVTX_EVENTS(start, eventType, rangeId, text, globalTid) "
                        "VALUES(?, ?, ?, ?, ?)"));
    to->closing =
        prepare(to, sqlite3_mprintf(
                        "UPDATE NVTX_EVENTS SET \"end\" = ?1 WHERE rowid = (SELECT max(rowid) "
                        "FROM NVTX_EVENTS WHERE eventType = ?2 AND rangeId = ?3 AND \"end\" IS "
                        "NULL)"));
    if (!to->status) {
        *out = to;
        return UM_OK;
    }
    return um_export_close(to, error, error_bytes);
}

static void put_array(um_export_t *to, sqlite3_stmt *stmt, const um_field_t *array,
                      const char *member)
{
    const char *element;
    uint32_t count;

    memcpy(&count, member + array->offset, sizeof(count));
    memcpy(&element, member + array->array_offset, sizeof(element));
    for (uint32_t i = 0; !to->status && i < count; i++, element += array->element_bytes) {
        sqlite3_bind_int64(stmt, 1, to->seq);
        sqlite3_bind_int64(stmt, 2, i);
        for (int k = 1; k <= array->elements; k++)
            sqlite3_bind_int64(stmt, 2 + k, um_export_load(&array[k], element));
        step(to, stmt);
    }
}

um_status_t um_export_event(um_export_t *to, const um_event_t *event)
{
    um_event_type_t type = (um_event_type_t)event->type;
    const char *member = (const char *)&event->u;
    const um_schema_t *schema;
    um_export_type_t *made;
    int column = 4;
    size_t arrays = 0;

    if (to->status)
        return to->status;
    if (event->type >= UM_EV_TYPE_COUNT || !um_schema_table[event->type].fields)
        return UM_ERR_INVALID;
    schema = &um_schema_table[type];
    made = &to->types[type];
    put_besides(to, event);
    if (!made->row)
        make_type(to, type);
    if (to->status)
        return to->status;
    to->seq++;
    sqlite3_bind_int64(made->row, 1, to->seq);
    sqlite3_bind_int64(made->row, 2, (int64_t)event->time_ns);
    sqlite3_bind_int64(made->row, 3, event->tid);
    if (made->shared)
        sqlite3_bind_int64(made->row, column++, type);
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *field = &schema->fields[i];

        if (field->kind == UM_FIELD_ARRAY) {
            put_array(to, made->elements[arrays++], field, member);
            i += field->elements;
        } else if (field->kind == UM_FIELD_STRING) {
            const char *text;

            memcpy(&text, member + field->offset, sizeof(text));
            sqlite3_bind_text(made->row, column++, text ? text : "", -1, SQLITE_STATIC);
        } else {
            uint64_t value = (uint64_t)um_export_load(field, member);

            value += made->from_start >> i & 1 ? event->time_ns : 0;
            sqlite3_bind_int64(made->row, column++, (int64_t)value);
        }
    }
    step(to, made->row);
    return to->status;
}

/* Waits of the CPU as Nsight has them: one row for both ends. CUPTI's kinds are 1 event, 3 stream, 4
 * context. */
static void make_waits(um_export_t *to)
{
    if (!to->types[UM_EV_SYNC].row)
        return;
    run(to, sqlite3_mprintf(
                "CREATE INDEX waits ON UMRT_SYNC(sync, \"exit\", seq); "
                "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS SELECT start, (SELECT o.start "
                "FROM UMRT_SYNC o WHERE o.sync = s.sync AND o.\"exit\" = 1 AND o.seq > s.seq ORDER "
                "BY o.seq LIMIT 1) AS \"end\", sync AS correlationId, context AS contextId, stream "
                "AS streamId, CASE kind WHEN 1 THEN 4 WHEN 3 THEN 1 ELSE 3 END AS syncType, "
                "%lld AS globalPid FROM UMRT_SYNC s WHERE \"exit\" = 0",
                (long long)to->process));
}

um_status_t um_export_close(um_export_t *to, char *error, size_t error_bytes)
{
    um_status_t status;
    sqlite3_stmt *own[] = {to->string, to->range, to->closing};

    if (!to->status)
        make_waits(to);
    if (!to->status)
        run(to, sqlite3_mprintf("COMMIT"));
    for (int type = 0; type < UM_EV_TYPE_COUNT; type++) {
        sqlite3_finalize(to->types[type].row);
        for (size_t i = 0; i < UM_SCHEMA_ARRAYS; i++)
            sqlite3_finalize(to->types[type].elements[i]);
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sqlite3_finalize(own[i]);
    if (sqlite3_close(to->db) != SQLITE_OK && !to->status)
        fail(to, SQLITE_IOERR);
    status = to->status;
    if (status)
        snprintf(error, error_bytes, "%s", to->error);
    free(to);
    return status;
}

bool um_export_is(const char *path)
{
    static const char magic[16] = "SQLite format 3", application[4] = {'U', 'M', 'R', 'T'};
    char head[72];
    FILE *file = fopen(path, "re");
    bool is = file && fread(head, 1, sizeof(head), file) == sizeof(head) &&
              !memcmp(head, magic, sizeof(magic)) &&
              !memcmp(head + 68, application, sizeof(application));

    if (file)
        fclose(file);
    return is;
}

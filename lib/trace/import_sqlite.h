/*
 * import_sqlite.h - reading profiler databases: whatever tables and columns are there, in time order,
 * in constant memory. A source is one table in the order of one time column; all sources are merged.
 */
#ifndef UM_IMPORT_SQLITE_H
#define UM_IMPORT_SQLITE_H

#include <sqlite3.h>

#include "trace/import_sink.h"

enum { UM_SQL_COLUMNS = 20, UM_SQL_SOURCES = 16, UM_SQL_NAMES = 256 };

typedef struct um_sql um_sql_t;

/* One row of a source: the values of its columns, by index; absent columns are NULL values. */
typedef struct um_sql_row {
    sqlite3_stmt *stmt;
    uint64_t time_ns; /* of the event: the order column, moved up if the trace begins below zero */
} um_sql_row_t;

typedef struct um_sql_source {
    const char *table;
    const char *order;                   /* the time column */
    const char *where;                   /* extra condition, NULL = none */
    const char *columns[UM_SQL_COLUMNS]; /* NULL-terminated */
    void (*row)(um_sql_t *sql, const um_sql_row_t *row);
} um_sql_source_t;

struct um_sql {
    um_import_t *im;
    sqlite3 *db;
    const char *names_table; /* id to text */
    const char *names_id;
    sqlite3_stmt *names;
    const char *process_sql; /* expression that gives a row's process id, from process_column */
    const char *process_column;
    uint32_t process; /* whose rows are read; 0 = all (the database has no process ids) */
    int64_t base;     /* subtracted from every time: 0, or the first time when that is negative */
    uint64_t skipped; /* rows without a time */
    struct {
        int64_t id; /* text id */
        uint32_t kernel;
    } kernels[UM_SQL_NAMES]; /* the last kernel ids by text id */
};

bool um_sql_has_table(um_sql_t *sql, const char *table);
bool um_sql_has_column(um_sql_t *sql, const char *table, const char *column);
/* A statement, NULL when it does not compile (a table or column of it is absent). */
sqlite3_stmt *um_sql_prepare(um_sql_t *sql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* First value of the first row of a query, fallback without one. */
int64_t um_sql_number(um_sql_t *sql, int64_t fallback, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Rows of `table` that meet `where` (NULL = all) and belong to sql->process, counted up to `limit`. */
int64_t um_sql_count(um_sql_t *sql, const char *table, const char *where, int64_t limit);
/* Adds one FACT whose value is the first value of a query, if there is one. */
void um_sql_fact(um_sql_t *sql, const char *key, const char *query);

/*
 * Reads all of it. First picks sql->process: the one that is wanted (im->process), else the process with most
 * rows in the first of the tables that have any with a process id. Tables may be followed by a condition:
 * "MEMCPY WHERE copyKind > 10". UM_ERR_NOT_FOUND when there is nothing of the one wanted. Then opens every
 * source that is there, calls ready once (im->now_ns is the first time: facts go out there; `others` says
 * which processes are left out), then every row's function in time order.
 */
um_status_t um_sql_read(um_sql_t *sql, const char *const *tables, size_t n_tables,
                        const um_sql_source_t *sources, size_t n_sources,
                        void (*ready)(um_sql_t *sql, const char *others));

/* Values of a row. Addresses and counts are unsigned in the profiler and stored signed. */
bool um_sql_has(const um_sql_row_t *row, int column);
uint64_t um_sql_u64(const um_sql_row_t *row, int column); /* 0 when absent or not a number */
uint32_t um_sql_u32(const um_sql_row_t *row, int column); /* 0 also when it does not fit */
int32_t um_sql_device(const um_sql_row_t *row,
                      int column); /* NONE when absent, HOST for 2^32-1, -1 */
uint64_t um_sql_duration(const um_sql_row_t *row, int start,
                         int end); /* 0 when backward or absent */
const char *um_sql_text(const um_sql_row_t *row,
                        int column); /* "" when absent; valid in this call */
/* The text of an id, "" when unknown; valid until the next call. */
const char *um_sql_name(um_sql_t *sql, int64_t id);
uint32_t um_sql_kernel(um_sql_t *sql, const um_sql_row_t *row, int column);

/* The two ends of a wait of the CPU, a source each: its row selects CUPTI's synchronisation type, the
 * correlation id, the context and the stream, in this order. */
void um_sql_row_wait(um_sql_t *sql, const um_sql_row_t *row);
void um_sql_row_wait_end(um_sql_t *sql, const um_sql_row_t *row);

#endif

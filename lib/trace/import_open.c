#include "trace/import_open.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/export_shape.h"

/* Steps of SQLite's machine: a pass over a row takes about 40 and there are about ten passes; a row is at
 * least 15 bytes long. */
enum {
    MAX_VALUE_BYTES = 16 << 20,
    STEPS_A_CALL = 100000,
    STEPS_A_BYTE = 500,
    STEPS_MORE = 10000000
};

/* Whether PATH-wal or PATH-journal holds something that belongs to the database. */
static bool has_companion(const char *path, const char *suffix)
{
    char *name = sqlite3_mprintf("%s%s", path, suffix);
    struct stat st;
    bool there = name != NULL && stat(name, &st) == 0 && st.st_size > 0;

    sqlite3_free(name);
    return there;
}

/* file:PATH?mode=ro[&immutable=1], everything unusual in the path escaped. */
static char *uri_of(const char *path, bool immutable)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    sqlite3_str *uri = sqlite3_str_new(NULL);

    /* "//" would begin a host name. */
    sqlite3_str_appendall(uri, path[0] == '/' && path[1] == '/' ? "file://" : "file:");
    for (const char *c = path; *c != '\0'; c++) {
        if (strchr(plain, *c) != NULL)
            sqlite3_str_append(uri, c, 1);
        else
            sqlite3_str_appendf(uri, "%%%02x", (unsigned)(unsigned char)*c);
    }
    sqlite3_str_appendall(uri, immutable ? "?mode=ro&immutable=1" : "?mode=ro");
    return sqlite3_str_finish(uri);
}

static int64_t pragma(sqlite3 *db, const char *query)
{
    sqlite3_stmt *stmt = NULL;
    int64_t value = 0;

    if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}

/* Called every STEPS_A_CALL steps; not 0 stops the statement. */
static int spend(void *ctx)
{
    um_import_t *im = ctx;

    if (im->steps_left <= STEPS_A_CALL)
        return 1;
    im->steps_left -= STEPS_A_CALL;
    return 0;
}

void um_import_distrust(um_import_t *im, sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_exec(db, "PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0; PRAGMA temp_store = 1",
                 NULL, NULL, NULL);
    im->steps_left = STEPS_MORE + STEPS_A_BYTE * pragma(db, "PRAGMA page_count") *
                                      pragma(db, "PRAGMA page_size");
    sqlite3_progress_handler(db, STEPS_A_CALL, spend, im);
}

/* SQLite takes what is missing of the last page for zeros. */
static um_status_t check_size(um_import_t *im, sqlite3 *db)
{
    int64_t bytes = pragma(db, "PRAGMA page_count") * pragma(db, "PRAGMA page_size");
    struct stat st;

    if (stat(im->path, &st) != 0 || st.st_size >= bytes)
        return UM_OK;
    return um_import_fail(im, UM_ERR_TRUNCATED, "cut off: %lld of %lld bytes",
                          (long long)st.st_size, (long long)bytes);
}

um_status_t um_import_open_sqlite(um_import_t *im, sqlite3 **out)
{
    /* Reading a write-ahead log needs its lock file, which may have to be created; without a log (or
     * the journal of an interrupted write) nothing beside the database is touched or needed. */
    bool immutable = !has_companion(im->path, "-wal") && !has_companion(im->path, "-journal");
    char *uri = uri_of(im->path, immutable);
    sqlite3 *db = NULL;
    int result;

    if (uri == NULL)
        return um_import_fail(im, UM_ERR_NO_MEMORY, "out of memory");
    result = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    sqlite3_free(uri);
    *out = db;
    if (result == SQLITE_OK) {
        um_import_distrust(im, db);
        result = sqlite3_exec(db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    if (result == SQLITE_OK)
        return immutable ? check_size(im, db) : UM_OK;
    if (!immutable && result != SQLITE_CORRUPT && result != SQLITE_NOTADB)
        return um_import_fail(
            im, UM_ERR_IO,
            "%s; its write-ahead log or journal could not be used: copy the files "
            "to a writable folder, or export the report again",
            sqlite3_errmsg(db));
    return um_import_fail(im, result == SQLITE_NOMEM ? UM_ERR_NO_MEMORY : UM_ERR_FORMAT, "%s",
                          sqlite3_errmsg(db));
}

um_status_t um_import_sqlite_kind(um_import_t *im, sqlite3 *db, um_import_kind_t *out)
{
    /* nvprof has StringTable, nsys StringIds; files without any name at all are told by the rest. */
    static const struct {
        const char *condition;
        um_import_kind_t kind;
    } kinds[] = {
        {"name = 'StringTable'", UM_IMPORT_NVPROF_SQLITE},
        {"name = 'CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER'", UM_IMPORT_NVPROF_SQLITE},
        {"name IN ('StringIds', 'META_DATA_EXPORT', 'META_DATA_CAPTURE', 'TARGET_INFO_GPU') OR "
         "name LIKE 'CUDA\\_UM\\_%' ESCAPE '\\'",
         UM_IMPORT_NSYS_SQLITE},
    };

    if (pragma(db, "PRAGMA application_id") == UM_EXPORT_APPLICATION) {
        *out = UM_IMPORT_EXPORT;
        return UM_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *query = sqlite3_mprintf("SELECT 1 FROM sqlite_master WHERE type = 'table' AND (%s)",
                                      kinds[i].condition);
        sqlite3_stmt *stmt = NULL;
        bool found = query != NULL && sqlite3_prepare_v2(db, query, -1, &stmt, NULL) == SQLITE_OK &&
                     sqlite3_step(stmt) == SQLITE_ROW;

        sqlite3_finalize(stmt);
        sqlite3_free(query);
        if (found) {
            *out = kinds[i].kind;
            return UM_OK;
        }
    }
    return um_import_fail(
        im, UM_ERR_FORMAT,
        "an SQLite database, but neither nvprof's, nor an Nsight Systems export, nor one of umrt");
}

/* What an Nsight Systems export says about itself: settings, command, cards, losses, and whether
 * unified-memory tracing was on. */
#include "trace/import_nsys.h"

static const char cpu_faults[] = "CUDA_UM_CPU_PAGE_FAULT_EVENTS";
static const char gpu_faults[] = "CUDA_UM_GPU_PAGE_FAULT_EVENTS";
static const char copies[] = "CUPTI_ACTIVITY_KIND_MEMCPY";

/* ---- was unified memory traced? --------------------------------------------------------------- */

static bool has_rows(um_sql_t *sql, const char *table)
{
    return um_sql_count(sql, table, NULL, 1) == 1;
}

/* A capture setting as a switch: 1, 0, or -1 when the file does not say. */
static int setting(um_sql_t *sql, const char *like)
{
    return (int)um_sql_number(
        sql, -1,
        "SELECT max(lower(value) IN ('true', '1', 'on', 'yes')) FROM META_DATA_CAPTURE "
        "WHERE name LIKE '%s' ESCAPE '\\'",
        like);
}

/* The words of nsys when it could not trace unified memory, "" without. */
static void unsupported(um_sql_t *sql, char *out, size_t out_bytes)
{
    sqlite3_stmt *stmt = um_sql_prepare(
        sql,
        "SELECT text FROM DIAGNOSTIC_EVENT WHERE text LIKE '%%unified memory%%' AND "
        "(text LIKE '%%not support%%' OR text LIKE '%%cannot%%' OR text LIKE '%%don''t support%%' "
        "OR text LIKE '%%unsupported%%') LIMIT 1");
    const char *text = NULL;

    if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(stmt, 0);
    snprintf(out, out_bytes, "%s", text != NULL ? text : "");
    sqlite3_finalize(stmt);
}

/* CUDA was traced: an activity table has come of it, or the settings say so. */
static bool traced_cuda(um_sql_t *sql)
{
    return um_sql_number(sql, 0,
                         "SELECT 1 FROM sqlite_master WHERE type = 'table' AND "
                         "name LIKE 'CUPTI\\_ACTIVITY\\_KIND\\_%%' ESCAPE '\\' LIMIT 1") == 1 ||
           um_sql_number(sql, 0,
                         "SELECT 1 FROM META_DATA_CAPTURE WHERE name = 'CAPTURE_EVENT_TYPE' "
                         "AND value = 'Cuda' LIMIT 1") == 1;
}

static void fault_option(um_sql_t *sql, const char *name, bool rows, int set, bool missed)
{
    const char *value = "off or no records";

    if (rows || set == 1)
        value = "on";
    else if (set == 0 || missed)
        value = "off";
    um_import_option(sql->im, name, value, set >= 0 ? "file" : "observed");
}

/*
 * Migrations are traced whenever CUDA is; faults only with --cuda-um-cpu-page-faults and
 * --cuda-um-gpu-page-faults, and their tables exist only with rows.
 */
static void emit_tracing(um_sql_t *sql)
{
    bool cpu = has_rows(sql, cpu_faults), gpu = has_rows(sql, gpu_faults);
    int cpu_set = setting(sql, "%um%cpu%page%fault%");
    int gpu_set = setting(sql, "%um%gpu%page%fault%");
    int64_t moved = um_sql_count(sql, copies, "copyKind BETWEEN 11 AND 13", INT64_MAX);
    int64_t demanded =
        um_sql_count(sql, copies, "copyKind BETWEEN 11 AND 13 AND migrationCause = 2", INT64_MAX);
    char words[256], seen[128], quoted[300];

    unsupported(sql, words, sizeof words);
    snprintf(quoted, sizeof quoted, "nsys says: %s", words);
    snprintf(seen, sizeof seen,
             "%lld migrations, %lld of them on demand; %s GPU faults, %s CPU faults",
             (long long)moved, (long long)demanded, gpu ? "with" : "no", cpu ? "with" : "no");

    const struct {
        bool when; /* the first that holds */
        const char *tracing, *evidence;
    } cases[] = {
        {cpu || gpu || moved > 0, "on", seen},
        {words[0] != '\0', "unsupported", quoted},
        {!traced_cuda(sql), "off", "no CUDA activity in the file: CUDA was not traced"},
        {cpu_set == 1 || gpu_set == 1, "on, no records",
         "the capture settings have page faults on, and there are none"},
        {cpu_set == 0 && gpu_set == 0, "off",
         "the capture settings have page faults off, and nothing migrated"},
        {true, "off or no records",
         "CUDA was traced and nothing migrated; there are no page-fault tables, which is so both "
         "without --cuda-um-gpu-page-faults and --cuda-um-cpu-page-faults and without faults"},
    };
    size_t i = 0;

    while (!cases[i].when)
        i++;
    um_import_fact(sql->im, "um.tracing", cases[i].tracing);
    um_import_fact(sql->im, "um.tracing.evidence", cases[i].evidence);
    fault_option(sql, "nsys.cuda-um-cpu-page-faults", cpu, cpu_set, false);
    /* Pages were demanded by faults that are not in the file. */
    fault_option(sql, "nsys.cuda-um-gpu-page-faults", gpu, gpu_set, gpu_set < 0 && demanded > 0);
    um_import_option(sql->im, "nsys.cuda-memory-usage",
                     has_rows(sql, "CUDA_GPU_MEMORY_USAGE_EVENTS") ? "on" : "off or no records",
                     "observed");
}

/* ---- the rest --------------------------------------------------------------------------------- */

/* The command as it was given to nsys: PROCESS_0:COMMAND and PROCESS_0:ARGUMENT_n. */
static void emit_command(um_sql_t *sql)
{
    sqlite3_stmt *stmt =
        um_sql_prepare(sql,
                       "SELECT value FROM META_DATA_CAPTURE WHERE name = 'PROCESS_0:COMMAND' OR "
                       "name LIKE 'PROCESS\\_0:ARGUMENT\\_%%' ESCAPE '\\' "
                       "ORDER BY name <> 'PROCESS_0:COMMAND', CAST(substr(name, 20) AS INTEGER)");
    char command[4096] = "";
    size_t n = 0;

    while (stmt != NULL && n < sizeof command && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *word = (const char *)sqlite3_column_text(stmt, 0);

        if (word != NULL)
            n += (size_t)snprintf(command + n, sizeof command - n, "%s%s", n > 0 ? " " : "", word);
    }
    sqlite3_finalize(stmt);
    if (n == 0 && sql->process != 0) {
        stmt = um_sql_prepare(sql, "SELECT name FROM PROCESSES WHERE %s = %u", sql->process_sql,
                              sql->process);
        if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW &&
            sqlite3_column_text(stmt, 0) != NULL)
            snprintf(command, sizeof command, "%s", (const char *)sqlite3_column_text(stmt, 0));
        sqlite3_finalize(stmt);
    }
    um_import_fact(sql->im, "process.command", command);
}

/* TARGET_INFO_GPU has one row a card; cuDevice is the CUDA ordinal where the version has it, else id. */
static void emit_devices(um_sql_t *sql)
{
    static const char table[] = "TARGET_INFO_GPU";
    static const char *const columns[] = {"id",           "cuDevice", "computeMajor",
                                          "computeMinor", "smCount",  "totalMemory",
                                          "name",         "uuid",     "busLocation"};
    const char *have[sizeof columns / sizeof columns[0]];
    sqlite3_stmt *stmt;

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        have[i] = um_sql_has_column(sql, table, columns[i]) ? columns[i] : "NULL";
    stmt = um_sql_prepare(sql,
                          "SELECT coalesce(%s, %s), %s, %s, %s, %s, coalesce(%s, ''), "
                          "coalesce(%s, ''), coalesce(%s, '') FROM %s ORDER BY 1",
                          have[1], have[0], have[2], have[3], have[4], have[5], have[6], have[7],
                          have[8], table);
    while (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text[3];
        um_event_t event = {0};

        for (int i = 0; i < 3; i++) {
            text[i] = (const char *)sqlite3_column_text(stmt, 5 + i);
            if (text[i] == NULL)
                text[i] = "";
        }
        event.u.device = (um_ev_device_t){.device = sqlite3_column_int(stmt, 0),
                                          .cc_major = (uint32_t)sqlite3_column_int(stmt, 1),
                                          .cc_minor = (uint32_t)sqlite3_column_int(stmt, 2),
                                          .sm_count = (uint32_t)sqlite3_column_int(stmt, 3),
                                          .memory_bytes = (uint64_t)sqlite3_column_int64(stmt, 4),
                                          .name = text[0],
                                          .uuid = text[1],
                                          .pci = text[2]};
        um_import_emit(sql->im, UM_EV_DEVICE, sql->im->now_ns, &event);
    }
    sqlite3_finalize(stmt);
}

/* What nsys says that it lost, in its own words. */
static void emit_losses(um_sql_t *sql)
{
    sqlite3_stmt *stmt =
        um_sql_prepare(sql, "SELECT text FROM DIAGNOSTIC_EVENT WHERE text LIKE '%%dropped%%' OR "
                            "text LIKE '%%not all%%collected%%' OR text LIKE '%%lost%%' LIMIT 16");

    while (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);

        um_import_loss(sql->im, 0, text != NULL ? text : "");
    }
    sqlite3_finalize(stmt);
}

void um_import_nsys_facts(um_sql_t *sql, const char *others)
{
    um_import_header(sql->im, UM_IMPORT_NSYS_SQLITE);
    um_sql_fact(sql, "import.tool.version",
                "SELECT value FROM META_DATA_EXPORT WHERE name IN ('EXPORT_PRODUCT_VERSION', "
                "'PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION') ORDER BY name = "
                "'EXPORT_SCHEMA_VERSION', name LIMIT 1");
    if (sql->process != 0)
        um_import_fact_number(sql->im, "process.pid", sql->process);
    emit_command(sql);
    um_import_fact(sql->im, "import.other-processes", others);
    emit_tracing(sql);
    emit_devices(sql);
    emit_losses(sql);
}

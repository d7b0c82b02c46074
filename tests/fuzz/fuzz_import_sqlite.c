/*
 * The database readers on arbitrary bytes: an input that begins like a database is one; any other is a
 * recipe for the rows of a well-formed one, whose values are arbitrary.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "import_check.h"
#include "trace/import_open.h"
#include "trace/import_sink.h"

static const char *const tables[] = {
    /* nsys */
    "CUDA_GPU_MEMORY_USAGE_EVENTS(start, address, bytes, memKind, memoryOperationType, deviceId, "
    "pc,"
    " streamId, localMemoryPoolAddress, name, globalPid)",
    "NVTX_EVENTS(start, end, eventType, text, textId, rangeId, globalTid)",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS(start, end, deviceId, address, numberOfPageFaults,"
    " faultAccessType, globalPid)",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS(start, address, originalFaultPc, CpuInstruction, module,"
    " sourceFile, sourceLine, globalPid)",
    "CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, bytes, copyKind, srcKind, dstKind, "
    "srcDeviceId,"
    " dstDeviceId, migrationCause, virtualAddress, globalPid)",
    "META_DATA_CAPTURE(name, value)",
    "TARGET_INFO_GPU(id, name, totalMemory, smCount, cuDevice, uuid)",
    "DIAGNOSTIC_EVENT(text)",
    "StringIds(id INTEGER PRIMARY KEY, value)",
    /* nvprof */
    "StringTable(_id_ INTEGER PRIMARY KEY, value)",
    "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER(counterKind, value, start, end, address, srcId, "
    "dstId,"
    " flags, processId)",
    "CUPTI_ACTIVITY_KIND_MEMORY(memoryKind, address, bytes, start, end, deviceId, allocPC, freePC,"
    " processId, name)",
    "CUPTI_ACTIVITY_KIND_MARKER(timestamp, flags, id, name, domain)",
    "CUPTI_ACTIVITY_KIND_DEVICE(id, name, globalMemorySize)",
    /* both */
    "CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, gridX, blockZ,"
    " correlationId, name, shortName, globalPid)",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, end, type, syncType, correlationId, streamId)",
    "CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, bytes, memKind, memoryKind, value)",
};
enum { TABLES = sizeof tables / sizeof tables[0] };

/* A value of up to 8 bytes: its tag says the type and the length. */
static void add_value(sqlite3_str *sql, const uint8_t **data, size_t *size)
{
    uint8_t tag = *size > 0 ? (*data)[0] : 0;
    size_t n = tag & 7;
    int64_t value = 0;

    if (*size > 0)
        ++*data, --*size;
    if (n > *size)
        n = *size;
    for (size_t i = 0; i < n; i++)
        value = (int64_t)((uint64_t)value << 8 | (*data)[i]);
    if (tag & 8)
        value = (int64_t)((uint64_t)value << 8 ^ 0xffffffffffffffff);
    switch (tag >> 4 & 7) {
    case 0:
        sqlite3_str_appendall(sql, "NULL");
        break;
    case 1:
        sqlite3_str_appendf(sql, "'%.*q'", (int)n, (const char *)*data);
        break;
    case 2:
        sqlite3_str_appendf(sql, "%lld.5e%d", (long long)value, tag);
        break;
    case 3:
        sqlite3_str_appendf(sql, "x'%04x'", (unsigned)value & 0xffff);
        break;
    case 4:
        sqlite3_str_appendf(sql, "%d", (int)(value & 15));
        break;
    default:
        sqlite3_str_appendf(sql, "%lld", (long long)value);
    }
    *data += n;
    *size -= n;
}

static void fill(sqlite3 *db, const uint8_t *data, size_t size)
{
    bool made[TABLES] = {false};

    while (size > 1) {
        size_t which = data[0] % TABLES;
        const char *table = tables[which];
        sqlite3_str *sql = sqlite3_str_new(db);
        int columns = 1;
        char *text;

        for (const char *c = table; *c != '\0'; c++)
            columns += *c == ',';
        data++, size--;
        if (!made[which])
            sqlite3_str_appendf(sql, "CREATE TABLE %s;", table);
        made[which] = true;
        sqlite3_str_appendf(sql, "INSERT INTO %.*s VALUES (", (int)strcspn(table, "("), table);
        for (int i = 0; i < columns; i++) {
            if (i > 0)
                sqlite3_str_appendchar(sql, 1, ',');
            add_value(sql, &data, &size);
        }
        sqlite3_str_appendall(sql, ")");
        text = sqlite3_str_finish(sql);
        sqlite3_exec(db, text, NULL, NULL, NULL);
        sqlite3_free(text);
    }
}

static void import(sqlite3 *db, um_status_t (*read)(um_import_t *im, sqlite3 *db))
{
    char error[256];
    um_check_t check = {0};
    um_import_t im;

    um_import_begin(&im, "x.sqlite", um_check_event, &check, error, sizeof error);
    um_import_distrust(&im, db);
    um_check_status(read(&im, db), error);
    um_import_end(&im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sqlite3 *db = NULL;
    uint8_t *copy = NULL;

    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        return 0;
    if (size > 16 && memcmp(data, "SQLite format 3", 16) == 0) {
        copy = malloc(size);
        um_must(copy != NULL);
        memcpy(copy, data, size);
        sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_READONLY);
    } else {
        sqlite3_exec(db, "PRAGMA journal_mode = OFF", NULL, NULL, NULL);
        fill(db, data, size);
    }
    import(db, um_import_nsys_sqlite);
    import(db, um_import_nvprof_sqlite);
    sqlite3_close(db);
    free(copy);
    return 0;
}

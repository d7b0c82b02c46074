/* nvprof -o file: CUPTI's activity records, a table a kind. */
#include "trace/import_sqlite.h"

#include <string.h>

/* CUpti_ActivityMemoryKind */
static uint32_t memory_kind(uint32_t kind)
{
    static const uint32_t kinds[] = {UM_MEMORY_UNKNOWN, UM_MEMORY_PAGEABLE, UM_MEMORY_PINNED,
                                     UM_MEMORY_DEVICE,  UM_MEMORY_ARRAY,    UM_MEMORY_MANAGED,
                                     UM_MEMORY_DEVICE,  UM_MEMORY_MANAGED};

    return kind < sizeof kinds / sizeof kinds[0] ? kinds[kind] : UM_MEMORY_UNKNOWN;
}

/* ---- unified memory --------------------------------------------------------------------------- */

enum { UM_KIND, UM_VALUE, UM_START, UM_END, UM_ADDRESS, UM_SRC, UM_DST, UM_FLAGS };

static void row_unified(um_sql_t *sql, const um_sql_row_t *row)
{
    uint64_t addr = um_sql_u64(row, UM_ADDRESS), value = um_sql_u64(row, UM_VALUE);
    uint64_t duration = um_sql_duration(row, UM_START, UM_END);
    uint32_t flags = um_sql_u32(row, UM_FLAGS), region = um_import_region_at(sql->im, addr);
    int32_t src = um_sql_device(row, UM_SRC), dst = um_sql_device(row, UM_DST);
    um_event_t event = {0};

    switch (um_sql_u32(row, UM_KIND)) {
    case 1: /* bytes host to device */
    case 2: /* device to host */
    case 8: /* device to device */
        event.u.migrate = (um_ev_migrate_t){.addr = addr,
                                            .bytes = value,
                                            .duration_ns = duration,
                                            .src = src,
                                            .dst = dst,
                                            .cause = flags <= UM_CAUSE_ACCESS_COUNTERS
                                                         ? flags
                                                         : (uint32_t)UM_CAUSE_UNKNOWN,
                                            .region = region};
        um_import_emit(sql->im, UM_EV_MIGRATE, row->time_ns, &event);
        break;
    case 3: /* CPU fault: value is the program counter */
        event.u.cpu_fault = (um_ev_cpu_fault_t){.addr = addr, .pc = value, .region = region};
        um_import_emit(sql->im, UM_EV_CPU_FAULT, row->time_ns, &event);
        break;
    case 4: /* GPU fault: value is the fault groups on that page */
        event.u.gpu_fault =
            (um_ev_gpu_fault_t){.addr = addr,
                                .duration_ns = duration,
                                .groups = value <= UINT32_MAX ? (uint32_t)value : UINT32_MAX,
                                .access = flags <= UM_ACCESS_PREFETCH ? flags
                                                                      : (uint32_t)UM_ACCESS_UNKNOWN,
                                .device = src,
                                .region = region};
        um_import_emit(sql->im, UM_EV_GPU_FAULT, row->time_ns, &event);
        break;
    case 5: /* thrashing: srcId is a mask of devices, flag 1 says that the CPU is one of them */
        event.u.thrash = (um_ev_thrash_t){.addr = addr,
                                          .bytes = value,
                                          .processors = um_sql_u32(row, UM_SRC) |
                                                        (flags & 1 ? UINT64_C(1) << 63 : 0),
                                          .region = region};
        um_import_emit(sql->im, UM_EV_THRASH, row->time_ns, &event);
        break;
    case 6: /* throttling: flag 1 says that the CPU had to wait */
        event.u.throttle = (um_ev_throttle_t){.addr = addr,
                                              .duration_ns = duration,
                                              .device = flags & 1 ? UM_DEVICE_HOST : src,
                                              .region = region};
        um_import_emit(sql->im, UM_EV_THROTTLE, row->time_ns, &event);
        break;
    case 7: /* remote map */
        event.u.remote_map =
            (um_ev_remote_map_t){.addr = addr,
                                 .bytes = value,
                                 .src = src,
                                 .dst = dst,
                                 .cause = flags <= UM_REMOTE_EVICTION ? flags
                                                                      : (uint32_t)UM_REMOTE_UNKNOWN,
                                 .region = region};
        um_import_emit(sql->im, UM_EV_REMOTE_MAP, row->time_ns, &event);
        break;
    default:
        um_import_loss(sql->im, 1, "unified-memory record of a kind that is not known here");
    }
}

/* ---- kernels, copies, sets -------------------------------------------------------------------- */

enum {
    K_START,
    K_END,
    K_DEVICE,
    K_CONTEXT,
    K_STREAM,
    K_GRID,
    K_BLOCK = K_GRID + 3,
    K_CORRELATION = K_BLOCK + 3,
    K_NAME
};

static void row_kernel(um_sql_t *sql, const um_sql_row_t *row)
{
    um_event_t event = {0};
    um_ev_kernel_exec_t *exec = &event.u.kernel_exec;

    *exec = (um_ev_kernel_exec_t){.correlation = um_sql_u32(row, K_CORRELATION),
                                  .kernel = um_sql_kernel(sql, row, K_NAME),
                                  .duration_ns = um_sql_duration(row, K_START, K_END),
                                  .device = um_sql_device(row, K_DEVICE),
                                  .context = um_sql_u32(row, K_CONTEXT),
                                  .stream_id = um_sql_u32(row, K_STREAM)};
    for (int i = 0; i < 3; i++) {
        exec->grid[i] = um_sql_u32(row, K_GRID + i);
        exec->block[i] = um_sql_u32(row, K_BLOCK + i);
    }
    um_import_emit(sql->im, UM_EV_KERNEL_EXEC, row->time_ns, &event);
}

enum { C_START, C_END, C_DEVICE, C_STREAM, C_CORRELATION, C_BYTES, C_SRC, C_DST, C_FLAGS };

static void row_copy(um_sql_t *sql, const um_sql_row_t *row)
{
    um_event_t event = {0};

    event.u.copy = (um_ev_copy_t){.bytes = um_sql_u64(row, C_BYTES),
                                  .duration_ns = um_sql_duration(row, C_START, C_END),
                                  .src_memory = memory_kind(um_sql_u32(row, C_SRC)),
                                  .dst_memory = memory_kind(um_sql_u32(row, C_DST)),
                                  .device = um_sql_device(row, C_DEVICE),
                                  .correlation = um_sql_u32(row, C_CORRELATION),
                                  .stream = um_sql_u32(row, C_STREAM),
                                  .flags = UM_TRANSFER_ON_GPU |
                                           (um_sql_u32(row, C_FLAGS) & 1 ? UM_TRANSFER_ASYNC : 0u)};
    um_import_emit(sql->im, UM_EV_COPY, row->time_ns, &event);
}

enum { S_START, S_END, S_DEVICE, S_STREAM, S_CORRELATION, S_BYTES, S_MEMORY, S_VALUE, S_FLAGS };

static void row_set(um_sql_t *sql, const um_sql_row_t *row)
{
    um_event_t event = {0};

    event.u.set = (um_ev_set_t){.bytes = um_sql_u64(row, S_BYTES),
                                .duration_ns = um_sql_duration(row, S_START, S_END),
                                .value = um_sql_u32(row, S_VALUE),
                                .memory = memory_kind(um_sql_u32(row, S_MEMORY)),
                                .device = um_sql_device(row, S_DEVICE),
                                .correlation = um_sql_u32(row, S_CORRELATION),
                                .stream = um_sql_u32(row, S_STREAM),
                                .flags = UM_TRANSFER_ON_GPU |
                                         (um_sql_u32(row, S_FLAGS) & 1 ? UM_TRANSFER_ASYNC : 0u)};
    um_import_emit(sql->im, UM_EV_SET, row->time_ns, &event);
}

/* ---- allocations (nvprof --track-memory-allocations on): one row has both ends ---------------- */

enum { M_KIND, M_ADDRESS, M_BYTES, M_DEVICE, M_ALLOC_PC, M_FREE_PC, M_NAME };

static void row_alloc(um_sql_t *sql, const um_sql_row_t *row)
{
    static const struct {
        uint32_t family, flags;
    } kinds[] = {{UM_FAMILY_UNKNOWN, 0},
                 {UM_FAMILY_SYSTEM, 0},
                 {UM_FAMILY_PINNED, 0},
                 {UM_FAMILY_DEVICE, 0},
                 {UM_FAMILY_DEVICE, 0},
                 {UM_FAMILY_MANAGED, 0},
                 {UM_FAMILY_DEVICE, UM_REGION_STATIC},
                 {UM_FAMILY_MANAGED, UM_REGION_STATIC}};
    uint32_t kind = um_sql_u32(row, M_KIND), region;
    um_ev_region_alloc_t alloc = {.addr = um_sql_u64(row, M_ADDRESS),
                                  .bytes = um_sql_u64(row, M_BYTES),
                                  .device = um_sql_device(row, M_DEVICE),
                                  .call_site = um_sql_u64(row, M_ALLOC_PC)};

    if (kind < sizeof kinds / sizeof kinds[0]) {
        alloc.family = kinds[kind].family;
        alloc.flags = kinds[kind].flags;
    }
    if (alloc.family == UM_FAMILY_MANAGED)
        alloc.device = UM_DEVICE_NONE;
    else if (alloc.family == UM_FAMILY_PINNED || alloc.family == UM_FAMILY_SYSTEM)
        alloc.device = UM_DEVICE_HOST;
    region = um_import_region_alloc(sql->im, row->time_ns, &alloc);
    if (um_sql_has(row, M_NAME))
        um_import_region_label(sql->im, row->time_ns, region,
                               um_sql_name(sql, (int64_t)um_sql_u64(row, M_NAME)));
}

static void row_free(um_sql_t *sql, const um_sql_row_t *row)
{
    um_import_region_free(sql->im, row->time_ns, um_sql_u64(row, M_ADDRESS));
}

/* ---- NVTX, waits ------------------------------------------------------------------------------ */

enum { N_FLAGS, N_ID, N_NAME, N_DOMAIN };

static void row_marker(um_sql_t *sql, const um_sql_row_t *row)
{
    uint32_t flags = um_sql_u32(row, N_FLAGS);
    um_event_t event = {0};
    char domain[128];

    snprintf(domain, sizeof domain, "%s",
             um_sql_has(row, N_DOMAIN) ? um_sql_name(sql, (int64_t)um_sql_u64(row, N_DOMAIN)) : "");
    event.u.mark =
        (um_ev_mark_t){.kind = flags & 4   ? UM_MARK_END
                               : flags & 2 ? UM_MARK_START
                                           : UM_MARK_INSTANT,
                       .id = um_sql_u64(row, N_ID),
                       .domain = domain,
                       .name = flags & 4 ? "" : um_sql_name(sql, (int64_t)um_sql_u64(row, N_NAME))};
    um_import_emit(sql->im, UM_EV_MARK, row->time_ns, &event);
}

/* ---- tables ----------------------------------------------------------------------------------- */

#define KERNEL_COLUMNS                                                                             \
    {                                                                                              \
        "start", "end", "deviceId", "contextId", "streamId", "gridX", "gridY", "gridZ", "blockX",  \
            "blockY", "blockZ", "correlationId", "name"                                            \
    }
#define MEMORY_COLUMNS                                                                             \
    {                                                                                              \
        "memoryKind", "address", "bytes", "deviceId", "allocPC", "freePC", "name"                  \
    }
#define WAIT_COLUMNS                                                                               \
    {                                                                                              \
        "type", "correlationId", "contextId", "streamId"                                           \
    }

/* In this order where times are equal: memory is there before it is used. */
static const um_sql_source_t sources[] = {
    {"CUPTI_ACTIVITY_KIND_MEMORY", "end", "\"end\" > 0", MEMORY_COLUMNS, row_free},
    {"CUPTI_ACTIVITY_KIND_MEMORY", "start", NULL, MEMORY_COLUMNS, row_alloc},
    {"CUPTI_ACTIVITY_KIND_MARKER",
     "timestamp",
     NULL,
     {"flags", "id", "name", "domain"},
     row_marker},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start", NULL, WAIT_COLUMNS, um_sql_row_wait},
    {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "start", NULL, KERNEL_COLUMNS, row_kernel},
    {"CUPTI_ACTIVITY_KIND_KERNEL", "start", NULL, KERNEL_COLUMNS, row_kernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "start",
     NULL,
     {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "srcKind", "dstKind",
      "flags"},
     row_copy},
    {"CUPTI_ACTIVITY_KIND_MEMCPY2",
     "start",
     NULL,
     {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "srcKind", "dstKind",
      "flags"},
     row_copy},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     "start",
     NULL,
     {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "memoryKind", "value",
      "flags"},
     row_set},
    {"CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER",
     "start",
     NULL,
     {"counterKind", "value", "start", "end", "address", "srcId", "dstId", "flags"},
     row_unified},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "end", NULL, WAIT_COLUMNS, um_sql_row_wait_end},
};

static const char unified[] = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER";

static void emit_devices(um_sql_t *sql)
{
    sqlite3_stmt *stmt = um_sql_prepare(sql, "SELECT * FROM CUPTI_ACTIVITY_KIND_DEVICE");
    int id = -1, name = -1, memory = -1, sms = -1, major = -1, minor = -1;
    const struct {
        const char *column;
        int *index;
    } columns[] = {{"id", &id},
                   {"name", &name},
                   {"globalMemorySize", &memory},
                   {"numMultiprocessors", &sms},
                   {"computeCapabilityMajor", &major},
                   {"computeCapabilityMinor", &minor}};

    for (int c = 0; stmt != NULL && c < sqlite3_column_count(stmt); c++)
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
            if (sqlite3_stricmp(sqlite3_column_name(stmt, c), columns[i].column) == 0)
                *columns[i].index = c;
    /* Reading column -1 gives NULL, which is 0 as a number. */
    while (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text = "";
        um_event_t event = {0};

        /* The name is an id of StringTable, or the text itself in some versions. */
        if (sqlite3_column_type(stmt, name) == SQLITE_INTEGER)
            text = um_sql_name(sql, sqlite3_column_int64(stmt, name));
        else if (sqlite3_column_type(stmt, name) == SQLITE_TEXT)
            text = (const char *)sqlite3_column_text(stmt, name);
        event.u.device =
            (um_ev_device_t){.device = sqlite3_column_int(stmt, id),
                             .cc_major = (uint32_t)sqlite3_column_int(stmt, major),
                             .cc_minor = (uint32_t)sqlite3_column_int(stmt, minor),
                             .sm_count = (uint32_t)sqlite3_column_int(stmt, sms),
                             .memory_bytes = (uint64_t)sqlite3_column_int64(stmt, memory),
                             .name = text != NULL ? text : "",
                             .uuid = "",
                             .pci = ""};
        um_import_emit(sql->im, UM_EV_DEVICE, sql->im->now_ns, &event);
    }
    sqlite3_finalize(stmt);
}

static void emit_tracing(um_sql_t *sql)
{
    bool table = um_sql_has_table(sql, unified);
    bool rows = table && um_sql_count(sql, unified, NULL, 1) == 1;

    if (rows) {
        um_import_fact(sql->im, "um.tracing", "on");
        um_import_fact(sql->im, "um.tracing.evidence", "the unified-memory table has rows");
    } else {
        um_import_fact(sql->im, "um.tracing", "off or no records");
        um_import_fact(sql->im, "um.tracing.evidence",
                       table ? "the unified-memory table is empty, both with "
                               "--unified-memory-profiling off and when nothing faulted or moved"
                             : "there is no unified-memory table");
    }
    um_import_option(sql->im, "nvprof.unified-memory-profiling", rows ? "on" : "off or no records",
                     "observed");
}

static void emit_facts(um_sql_t *sql, const char *others)
{
    um_import_header(sql->im, UM_IMPORT_NVPROF_SQLITE);
    um_sql_fact(sql, "import.tool.version", "SELECT version FROM Version");
    if (sql->process != 0)
        um_import_fact_number(sql->im, "process.pid", sql->process);
    um_import_fact(sql->im, "import.other-processes", others);
    emit_tracing(sql);
    emit_devices(sql);
}

um_status_t um_import_nvprof_sqlite(um_import_t *im, sqlite3 *db)
{
    static const char *const processes[] = {unified, "CUPTI_ACTIVITY_KIND_RUNTIME"};
    um_sql_t sql = {.im = im,
                    .db = db,
                    .names_table = "StringTable",
                    .names_id = "_id_",
                    .process_sql = "processId",
                    .process_column = "processId"};

    return um_sql_read(&sql, processes, sizeof processes / sizeof processes[0], sources,
                       sizeof sources / sizeof sources[0], emit_facts);
}

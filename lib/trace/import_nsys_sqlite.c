/* nsys export --type sqlite: tables exist only when they have rows, columns differ from version to
 * version. The meanings of the numbers are those of the ENUM_ tables of every version seen. */
#include "trace/import_nsys.h"

#include <string.h>

/* ENUM_CUDA_MEM_KIND: 0 pageable, 1 pinned, 2 device, 3 array, 4 managed, 5 device static, 6 managed
 * static, 7 unknown. */
static const struct {
    uint32_t memory, family, flags;
} kinds[] = {
    {UM_MEMORY_PAGEABLE, UM_FAMILY_SYSTEM, 0},
    {UM_MEMORY_PINNED, UM_FAMILY_PINNED, 0},
    {UM_MEMORY_DEVICE, UM_FAMILY_DEVICE, 0},
    {UM_MEMORY_ARRAY, UM_FAMILY_DEVICE, 0},
    {UM_MEMORY_MANAGED, UM_FAMILY_MANAGED, 0},
    {UM_MEMORY_DEVICE, UM_FAMILY_DEVICE, UM_REGION_STATIC},
    {UM_MEMORY_MANAGED, UM_FAMILY_MANAGED, UM_REGION_STATIC},
    {UM_MEMORY_UNKNOWN, UM_FAMILY_UNKNOWN, 0},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Index into kinds; 0 is pageable here, so an absent value must not be read as 0. */
static size_t kind_of(const um_sql_row_t *row, int column)
{
    uint64_t kind = um_sql_u64(row, column);

    return um_sql_has(row, column) && kind < KINDS ? kind : KINDS - 1;
}

/* ---- unified memory --------------------------------------------------------------------------- */

enum { G_START, G_END, G_DEVICE, G_ADDRESS, G_FAULTS, G_ACCESS };

static void row_gpu_fault(um_sql_t *sql, const um_sql_row_t *row)
{
    uint64_t addr = um_sql_u64(row, G_ADDRESS), groups = um_sql_u64(row, G_FAULTS);
    uint32_t access = um_sql_u32(row, G_ACCESS);
    um_event_t event = {0};

    event.u.gpu_fault =
        (um_ev_gpu_fault_t){.addr = addr,
                            .duration_ns = um_sql_duration(row, G_START, G_END),
                            .groups = groups <= UINT32_MAX ? (uint32_t)groups : UINT32_MAX,
                            .access =
                                access <= UM_ACCESS_PREFETCH ? access : (uint32_t)UM_ACCESS_UNKNOWN,
                            .device = um_sql_device(row, G_DEVICE),
                            .region = um_import_region_at(sql->im, addr)};
    um_import_emit(sql->im, UM_EV_GPU_FAULT, row->time_ns, &event);
}

enum { F_ADDRESS, F_PC, F_FUNCTION, F_MODULE, F_FILE, F_LINE };

/* Where the faulting instruction is: "function (file:line)" or "module!function". */
static void call_site(um_sql_t *sql, const um_sql_row_t *row, uint64_t pc)
{
    char frames[1024], place[512], function[384];
    um_event_t event = {.u.call_site = {.call_site = pc, .frames = frames}};

    if (pc == 0 || !um_sql_has(row, F_FUNCTION) || !um_import_call_site_new(sql->im, pc))
        return;
    snprintf(function, sizeof function, "%s",
             um_sql_name(sql, (int64_t)um_sql_u64(row, F_FUNCTION)));
    if (um_sql_has(row, F_FILE)) {
        snprintf(place, sizeof place, "%s", um_sql_name(sql, (int64_t)um_sql_u64(row, F_FILE)));
        snprintf(frames, sizeof frames, "%s (%s:%u)", function, place, um_sql_u32(row, F_LINE));
    } else {
        snprintf(place, sizeof place, "%s", um_sql_name(sql, (int64_t)um_sql_u64(row, F_MODULE)));
        snprintf(frames, sizeof frames, "%s!%s", place, function);
    }
    um_import_emit(sql->im, UM_EV_CALL_SITE, row->time_ns, &event);
}

static void row_cpu_fault(um_sql_t *sql, const um_sql_row_t *row)
{
    uint64_t addr = um_sql_u64(row, F_ADDRESS), pc = um_sql_u64(row, F_PC);
    um_event_t event = {0};

    call_site(sql, row, pc);
    event.u.cpu_fault =
        (um_ev_cpu_fault_t){.addr = addr, .pc = pc, .region = um_import_region_at(sql->im, addr)};
    um_import_emit(sql->im, UM_EV_CPU_FAULT, row->time_ns, &event);
}

/* ---- copies and migrations share a table ------------------------------------------------------ */

enum {
    C_START,
    C_END,
    C_DEVICE,
    C_STREAM,
    C_CORRELATION,
    C_BYTES,
    C_COPY,
    C_SRC,
    C_DST,
    C_SRC_DEVICE,
    C_DST_DEVICE,
    C_CAUSE,
    C_ADDRESS,
    C_NODE
};

/* ENUM_CUDA_MEMCPY_OPER */
enum { COPY_UM_HTOD = 11, COPY_UM_DTOH = 12, COPY_UM_DTOD = 13 };

static void row_migrate(um_sql_t *sql, const um_sql_row_t *row, uint32_t kind)
{
    uint64_t addr = um_sql_u64(row, C_ADDRESS);
    uint32_t cause = um_sql_u32(row, C_CAUSE);
    int32_t device = um_sql_device(row, C_DEVICE);
    int32_t src = kind == COPY_UM_HTOD ? UM_DEVICE_HOST : device;
    int32_t dst = kind == COPY_UM_DTOH ? UM_DEVICE_HOST : device;
    um_event_t event = {0};

    if (kind == COPY_UM_DTOD) {
        src = um_sql_device(row, C_SRC_DEVICE);
        if (um_sql_has(row, C_DST_DEVICE))
            dst = um_sql_device(row, C_DST_DEVICE);
    }
    event.u.migrate =
        (um_ev_migrate_t){.addr = addr,
                          .bytes = um_sql_u64(row, C_BYTES),
                          .duration_ns = um_sql_duration(row, C_START, C_END),
                          .src = src,
                          .dst = dst,
                          .cause = cause <= UM_CAUSE_ACCESS_COUNTERS ? cause
                                                                     : (uint32_t)UM_CAUSE_UNKNOWN,
                          .region = um_import_region_at(sql->im, addr)};
    um_import_emit(sql->im, UM_EV_MIGRATE, row->time_ns, &event);
}

static void row_copy(um_sql_t *sql, const um_sql_row_t *row)
{
    uint32_t kind = um_sql_u32(row, C_COPY);
    um_event_t event = {0};

    if (kind >= COPY_UM_HTOD && kind <= COPY_UM_DTOD) {
        row_migrate(sql, row, kind);
        return;
    }
    event.u.copy = (um_ev_copy_t){.bytes = um_sql_u64(row, C_BYTES),
                                  .duration_ns = um_sql_duration(row, C_START, C_END),
                                  .src_memory = kinds[kind_of(row, C_SRC)].memory,
                                  .dst_memory = kinds[kind_of(row, C_DST)].memory,
                                  .device = um_sql_device(row, C_DEVICE),
                                  .correlation = um_sql_u32(row, C_CORRELATION),
                                  .stream = um_sql_u32(row, C_STREAM),
                                  .flags = UM_TRANSFER_ON_GPU};
    um_import_emit(sql->im, UM_EV_COPY, row->time_ns, &event);
}

enum { S_START, S_END, S_DEVICE, S_STREAM, S_CORRELATION, S_BYTES, S_MEMORY, S_VALUE };

static void row_set(um_sql_t *sql, const um_sql_row_t *row)
{
    um_event_t event = {0};

    event.u.set = (um_ev_set_t){.bytes = um_sql_u64(row, S_BYTES),
                                .duration_ns = um_sql_duration(row, S_START, S_END),
                                .value = um_sql_u32(row, S_VALUE),
                                .memory = kinds[kind_of(row, S_MEMORY)].memory,
                                .device = um_sql_device(row, S_DEVICE),
                                .correlation = um_sql_u32(row, S_CORRELATION),
                                .stream = um_sql_u32(row, S_STREAM),
                                .flags = UM_TRANSFER_ON_GPU};
    um_import_emit(sql->im, UM_EV_SET, row->time_ns, &event);
}

/* ---- kernels ---------------------------------------------------------------------------------- */

enum {
    K_START,
    K_END,
    K_DEVICE,
    K_CONTEXT,
    K_STREAM,
    K_GRID,
    K_BLOCK = K_GRID + 3,
    K_CORRELATION = K_BLOCK + 3,
    K_MANGLED,
    K_DEMANGLED,
    K_SHORT
};

static void row_kernel(um_sql_t *sql, const um_sql_row_t *row)
{
    um_event_t event = {0};
    um_ev_kernel_exec_t *exec = &event.u.kernel_exec;

    *exec = (um_ev_kernel_exec_t){.correlation = um_sql_u32(row, K_CORRELATION),
                                  .duration_ns = um_sql_duration(row, K_START, K_END),
                                  .device = um_sql_device(row, K_DEVICE),
                                  .context = um_sql_u32(row, K_CONTEXT),
                                  .stream_id = um_sql_u32(row, K_STREAM)};
    for (int name = K_MANGLED; name <= K_SHORT && exec->kernel == 0; name++)
        exec->kernel = um_sql_kernel(sql, row, name);
    for (int i = 0; i < 3; i++) {
        exec->grid[i] = um_sql_u32(row, K_GRID + i);
        exec->block[i] = um_sql_u32(row, K_BLOCK + i);
    }
    um_import_emit(sql->im, UM_EV_KERNEL_EXEC, row->time_ns, &event);
}

enum {
    GRAPH_START,
    GRAPH_END,
    GRAPH_DEVICE,
    GRAPH_CONTEXT,
    GRAPH_STREAM,
    GRAPH_CORRELATION,
    GRAPH_ID
};

/* A whole graph as one unit (--cuda-graph-trace=graph, the default): its kernels are not in the file. */
static void row_graph(um_sql_t *sql, const um_sql_row_t *row)
{
    um_event_t event = {0};
    char name[32];

    snprintf(name, sizeof name, "graph %u", um_sql_u32(row, GRAPH_ID));
    event.u.kernel_exec =
        (um_ev_kernel_exec_t){.correlation = um_sql_u32(row, GRAPH_CORRELATION),
                              .kernel = um_import_kernel(sql->im, row->time_ns, name),
                              .duration_ns = um_sql_duration(row, GRAPH_START, GRAPH_END),
                              .device = um_sql_device(row, GRAPH_DEVICE),
                              .context = um_sql_u32(row, GRAPH_CONTEXT),
                              .stream_id = um_sql_u32(row, GRAPH_STREAM)};
    um_import_emit(sql->im, UM_EV_KERNEL_EXEC, row->time_ns, &event);
}

/* ---- allocations (--cuda-memory-usage=true) --------------------------------------------------- */

enum { M_ADDRESS, M_BYTES, M_KIND, M_OPERATION, M_DEVICE, M_PC, M_STREAM, M_POOL, M_NAME };

static void row_memory(um_sql_t *sql, const um_sql_row_t *row)
{
    size_t kind = kind_of(row, M_KIND);
    um_ev_region_alloc_t alloc = {.family = kinds[kind].family,
                                  .addr = um_sql_u64(row, M_ADDRESS),
                                  .bytes = um_sql_u64(row, M_BYTES),
                                  .flags = kinds[kind].flags,
                                  .device = um_sql_device(row, M_DEVICE)};
    uint32_t region;

    if (um_sql_u32(row, M_OPERATION) == 1) {
        um_import_region_free(sql->im, row->time_ns, alloc.addr);
        return;
    }
    if (um_sql_u64(row, M_POOL) != 0) {
        alloc.flags |= UM_REGION_POOL | UM_REGION_ASYNC;
        if (alloc.family == UM_FAMILY_DEVICE)
            alloc.family = UM_FAMILY_POOL;
    }
    if (alloc.family == UM_FAMILY_MANAGED)
        alloc.device = UM_DEVICE_NONE;
    else if (alloc.family == UM_FAMILY_PINNED || alloc.family == UM_FAMILY_SYSTEM)
        alloc.device = UM_DEVICE_HOST;
    region = um_import_region_alloc(sql->im, row->time_ns, &alloc);
    um_import_region_label(sql->im, row->time_ns, region, um_sql_text(row, M_NAME));
}

/* ---- NVTX ------------------------------------------------------------------------------ */

enum { N_TYPE, N_TEXT, N_TEXT_ID, N_RANGE, N_TID };

static void mark(um_sql_t *sql, const um_sql_row_t *row, um_mark_kind_t kind, bool named)
{
    um_event_t event = {.tid = (uint32_t)(um_sql_u64(row, N_TID) & 0xffffff)};
    const char *name = "";

    if (named)
        name = um_sql_text(row, N_TEXT);
    if (named && name[0] == '\0' && um_sql_has(row, N_TEXT_ID))
        name = um_sql_name(sql, (int64_t)um_sql_u64(row, N_TEXT_ID));
    event.u.mark =
        (um_ev_mark_t){.kind = kind, .id = um_sql_u64(row, N_RANGE), .domain = "", .name = name};
    um_import_emit(sql->im, UM_EV_MARK, row->time_ns, &event);
}

/* eventType: 34 mark, 59 push/pop range, 60 start/end range; others name domains and threads. */
static void row_nvtx(um_sql_t *sql, const um_sql_row_t *row)
{
    uint32_t type = um_sql_u32(row, N_TYPE);

    mark(sql, row, type == 59 ? UM_MARK_PUSH : type == 60 ? UM_MARK_START : UM_MARK_INSTANT, true);
}

static void row_nvtx_end(um_sql_t *sql, const um_sql_row_t *row)
{
    mark(sql, row, um_sql_u32(row, N_TYPE) == 59 ? UM_MARK_POP : UM_MARK_END, false);
}

/* ---- tables ----------------------------------------------------------------------------------- */

#define WAIT_COLUMNS                                                                               \
    {                                                                                              \
        "syncType", "correlationId", "contextId", "streamId"                                       \
    }
#define NVTX_COLUMNS                                                                               \
    {                                                                                              \
        "eventType", "text", "textId", "rangeId", "globalTid"                                      \
    }

/* In this order where times are equal: memory is there before it is used. */
static const um_sql_source_t sources[] = {
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "start",
     NULL,
     {"address", "bytes", "memKind", "memoryOperationType", "deviceId", "pc", "streamId",
      "localMemoryPoolAddress", "name"},
     row_memory},
    {"NVTX_EVENTS", "start", "eventType IN (34, 59, 60)", NVTX_COLUMNS, row_nvtx},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start", NULL, WAIT_COLUMNS, um_sql_row_wait},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "start",
     NULL,
     {"start", "end", "deviceId", "contextId", "streamId", "gridX", "gridY", "gridZ", "blockX",
      "blockY", "blockZ", "correlationId", "mangledName", "demangledName", "shortName"},
     row_kernel},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     "start",
     NULL,
     {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "graphId"},
     row_graph},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     "start",
     NULL,
     {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "memKind", "value"},
     row_set},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
     "start",
     NULL,
     {"start", "end", "deviceId", "address", "numberOfPageFaults", "faultAccessType"},
     row_gpu_fault},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
     "start",
     NULL,
     {"address", "originalFaultPc", "CpuInstruction", "module", "sourceFile", "sourceLine"},
     row_cpu_fault},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "start",
     NULL,
     {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind", "srcKind",
      "dstKind", "srcDeviceId", "dstDeviceId", "migrationCause", "virtualAddress", "graphNodeId"},
     row_copy},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "end", NULL, WAIT_COLUMNS, um_sql_row_wait_end},
    {"NVTX_EVENTS", "end", "eventType IN (59, 60) AND \"end\" IS NOT NULL", NVTX_COLUMNS,
     row_nvtx_end},
};

um_status_t um_import_nsys_sqlite(um_import_t *im, sqlite3 *db)
{
    static const char *const processes[] = {
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS", "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind BETWEEN 11 AND 13", "CUPTI_ACTIVITY_KIND_KERNEL",
        "CUPTI_ACTIVITY_KIND_MEMCPY"};
    um_sql_t sql = {.im = im,
                    .db = db,
                    .names_table = "StringIds",
                    .names_id = "id",
                    .process_sql = "globalPid >> 24 & 0xffffff",
                    .process_column = "globalPid"};

    return um_sql_read(&sql, processes, sizeof processes / sizeof processes[0], sources,
                       sizeof sources / sizeof sources[0], um_import_nsys_facts);
}

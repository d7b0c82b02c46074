/* Nsight Systems exports made here: tables exist only with rows, columns differ by version. */
#include <criterion/criterion.h>
#include <string.h>

#include "import_collect.h"

#define PID(pid) "((" #pid ") << 24)"
#define STRINGS                                                                                    \
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);"                         \
    "INSERT INTO StringIds VALUES (1, '_Z4stepPKfPf'), (2, 'step(float const*, float*)'),"         \
    " (3, 'step'), (4, 'main'), (5, 'bin/app'), (6, 'app.cu'), (7, 'phase');"
#define GPU_FAULTS                                                                                 \
    "CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS(start INT NOT NULL, end INT NOT NULL,"             \
    " globalPid INT NOT NULL, deviceId INT NOT NULL, address INT NOT NULL,"                        \
    " numberOfPageFaults INT NOT NULL, faultAccessType INT NOT NULL);"
#define CPU_FAULTS                                                                                 \
    "CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS(start INT NOT NULL, globalPid INT NOT NULL,"       \
    " address INT NOT NULL, originalFaultPc INT, CpuInstruction INT NOT NULL, module INT NOT "     \
    "NULL,"                                                                                        \
    " unresolvedFaultPc INT, sourceFile INT, sourceLine INT);"
#define COPIES                                                                                     \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, contextId INT,"     \
    " streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT,"       \
    " dstKind INT, srcDeviceId INT, srcContextId INT, dstDeviceId INT, dstContextId INT,"          \
    " migrationCause INT, graphNodeId INT, virtualAddress INT);"
#define MOVED(start, bytes, kind, cause, address)                                                  \
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (" #start ", " #start                           \
    " + 100, 0, 1, 0, NULL, " PID(500) ", " #bytes ", " #kind                                      \
                                       ", NULL, NULL, 0, NULL, 1, NULL, " #cause                   \
                                       ", NULL, " #address ");"
#define KERNELS                                                                                    \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT,"     \
    " streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT,"           \
    " mangledName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT);"
#define RAN(start)                                                                                 \
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" #start ", " #start                           \
    " + 500, 0, 1, 7, 9, " PID(500) ", 2, 3, 1, 4, 3, 2, 64, 2, 1);"
#define CAPTURE(name, value)                                                                       \
    "CREATE TABLE IF NOT EXISTS META_DATA_CAPTURE(name TEXT NOT NULL, value TEXT);"                \
    "INSERT INTO META_DATA_CAPTURE VALUES ('" name "', '" value "');"
#define SAID(text)                                                                                 \
    "CREATE TABLE DIAGNOSTIC_EVENT(timestamp INT, timestampType INT, source INT, severity INT,"    \
    " text TEXT, globalPid INT); INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 1, 2, '" text "', 0);"

Test(import_nsys_sqlite, faults_and_migrations_have_their_exact_meaning)
{
    um_collected_t c;
    const um_event_t *e;

    um_collect_sql(&c, STRINGS GPU_FAULTS CPU_FAULTS COPIES
                   "INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (1000, 1700, " PID(
                       500) ", 1, 4096, 37, 3);"
                            "INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES"
                            " (1100, " PID(
                                500) ", -9223372036854771712, 4198588, 4, 5, 0, 6, 42),"
                                     " (1150, " PID(500) ", 4096, 4198588, 4, 5, 0, 6, 42);" MOVED(
                                         1200, 65536, 11, 3, 4096) MOVED(1300, 4096, 12, 4, 8192)
                                         MOVED(1400, 2097152, 13, 5, 0));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_assert(um_collected_ordered(&c));
    e = um_collected_at(&c, UM_EV_GPU_FAULT, 0);
    cr_expect_eq(e->time_ns, 1000);
    cr_expect_eq(e->u.gpu_fault.groups, 37);
    cr_expect_eq(e->u.gpu_fault.access, UM_ACCESS_ATOMIC);
    cr_expect_eq(e->u.gpu_fault.device, 1);
    cr_expect_eq(e->u.gpu_fault.duration_ns, 700);
    e = um_collected_at(&c, UM_EV_CPU_FAULT, 0);
    cr_expect_eq(e->u.cpu_fault.addr, 0x8000000000001000);
    cr_expect_eq(e->u.cpu_fault.pc, 4198588);
    cr_expect_eq(um_collected_count(&c, UM_EV_CALL_SITE), 1, "one PC, one call site");
    cr_expect_eq(um_collected_at(&c, UM_EV_CALL_SITE, 0)->u.call_site.call_site, 4198588);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_CALL_SITE, 0)->u.call_site.frames,
                     "main (app.cu:42)");
    e = um_collected_at(&c, UM_EV_MIGRATE, 0);
    cr_expect_eq(e->u.migrate.src, UM_DEVICE_HOST);
    cr_expect_eq(e->u.migrate.dst, 0);
    cr_expect_eq(e->u.migrate.cause, UM_CAUSE_PREFETCH);
    cr_expect_eq(e->u.migrate.addr, 4096);
    cr_expect_eq(e->u.migrate.duration_ns, 100);
    e = um_collected_at(&c, UM_EV_MIGRATE, 1);
    cr_expect_eq(e->u.migrate.src, 0);
    cr_expect_eq(e->u.migrate.dst, UM_DEVICE_HOST);
    cr_expect_eq(e->u.migrate.cause, UM_CAUSE_EVICTION);
    e = um_collected_at(&c, UM_EV_MIGRATE, 2);
    cr_expect_eq(e->u.migrate.src, 0);
    cr_expect_eq(e->u.migrate.dst, 1);
    cr_expect_eq(e->u.migrate.cause, UM_CAUSE_ACCESS_COUNTERS);
    cr_expect_eq(um_collected_count(&c, UM_EV_COPY), 0);
    cr_expect_str_eq(um_collected_fact(&c, "process.pid"), "500");
    um_collected_free(&c);
}

Test(import_nsys_sqlite, a_copy_is_no_migration_and_keeps_its_memory_kinds)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS COPIES
                   "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES"
                   " (10, 20, 0, 1, 7, 5, " PID(
                       500) ", 4096, 1, 0, 2, 0, 0, 0, 0, NULL, NULL, NULL),"
                            " (30, 40, 0, 1, 7, 6, " PID(
                                500) ", 4096, 2, 2, 1, 0, 0, 0, 0, NULL, NULL, NULL),"
                                     " (50, 60, 0, 1, 7, 7, " PID(
                                         500) ", 4096, 8, 4, NULL, 0, 0, 0, 0, NULL, NULL, NULL);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 0)->u.copy.src_memory, UM_MEMORY_PAGEABLE);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 0)->u.copy.dst_memory, UM_MEMORY_DEVICE);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 1)->u.copy.dst_memory, UM_MEMORY_PINNED);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 2)->u.copy.src_memory, UM_MEMORY_MANAGED);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 2)->u.copy.dst_memory, UM_MEMORY_UNKNOWN,
                 "an absent kind is not 0, pageable");
    um_collected_free(&c);
}

Test(import_nsys_sqlite, allocations_are_regions_that_records_fall_into)
{
    um_collected_t c;
    const um_ev_region_alloc_t *a;

    um_collect_sql(
        &c, STRINGS COPIES
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, globalPid INT, deviceId INT,"
        " contextId INT, address INT, pc INT, bytes INT, memKind INT, memoryOperationType INT,"
        " name TEXT, correlationId INT, streamId INT, localMemoryPoolAddress INT);"
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
        " (10, " PID(
            500) ", 0, 1, 1048576, 5, 65536, 4, 0, 'grid', 1, NULL, NULL),"
                 " (20, " PID(
                     500) ", 1, 1, 2097152, 5, 100, 2, 0, NULL, 2, NULL, 77),"
                          " (25, " PID(
                              500) ", 0, 1, 4194304, 5, 4096, 1, 0, NULL, 2, NULL, NULL),"
                                   " (30, " PID(
                                       500) ", 0, 1, 3145728, 5, 8, 6, 0, 'flag', 2, NULL, NULL),"
                                            " (300, " PID(
                                                500) ", 0, 1, 1048576, 5, 65536, 4, 1, NULL, 3, "
                                                     "NULL, NULL),"
                                                     " (400, " PID(
                                                         500) ", 0, 1, 1048576, 5, 4096, 4, 0, "
                                                              "NULL, 4, NULL, NULL);" MOVED(
                                                                  200, 4096, 11, 2, 1114111)
                                                                  MOVED(350, 4096, 11, 2, 1048576)
                                                                      MOVED(500, 4096, 11, 2,
                                                                            1048576));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    a = &um_collected_at(&c, UM_EV_REGION_ALLOC, 0)->u.region_alloc;
    cr_expect_eq(a->family, UM_FAMILY_MANAGED);
    cr_expect_eq(a->device, UM_DEVICE_NONE);
    cr_expect_eq(a->region, 1);
    a = &um_collected_at(&c, UM_EV_REGION_ALLOC, 1)->u.region_alloc;
    cr_expect_eq(a->family, UM_FAMILY_POOL);
    cr_expect_eq(a->flags, UM_REGION_POOL | UM_REGION_ASYNC);
    cr_expect_eq(a->device, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_REGION_ALLOC, 2)->u.region_alloc.family,
                 UM_FAMILY_PINNED);
    a = &um_collected_at(&c, UM_EV_REGION_ALLOC, 3)->u.region_alloc;
    cr_expect_eq(a->family, UM_FAMILY_MANAGED);
    cr_expect_eq(a->flags, UM_REGION_STATIC);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_REGION_LABEL, 0)->u.region_label.label, "grid");
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.region, 1, "its last byte");
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 1)->u.migrate.region, 0, "after its free");
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 2)->u.migrate.region, 5, "a new region there");
    cr_expect_eq(um_collected_at(&c, UM_EV_REGION_FREE, 0)->u.region_free.region, 1);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, kernel_names_are_mangled_where_the_version_has_them)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS KERNELS RAN(10) RAN(20));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_KERNEL), 1);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_KERNEL, 0)->u.kernel.name, "_Z4stepPKfPf");
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 1)->u.kernel_exec.kernel, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.grid[2], 2);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.block[0], 64);
    um_collected_free(&c);

    /* an older version: no mangledName, no globalPid */
    um_collect_sql(&c, STRINGS "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, "
                               "shortName INT, demangledName INT);"
                               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 3, 2);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_KERNEL, 0)->u.kernel.name,
                     "step(float const*, float*)");
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.device, UM_DEVICE_NONE);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, off_unsupported_and_no_faults_are_told_apart)
{
    static const struct {
        const char *why, *sql, *tracing, *gpu_option, *evidence;
    } cases[] = {
        {"GPU faults there",
         STRINGS GPU_FAULTS
         "INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (1, 2, " PID(500) ", 0, 4096, 1, 1);",
         "on", "on", "with GPU faults"},
        {"pages moved on demand, but no fault tables", STRINGS COPIES MOVED(1, 4096, 11, 2, 4096),
         "on", "off", "1 migrations, 1 of them on demand; no GPU faults"},
        {"only prefetches moved pages", STRINGS COPIES MOVED(1, 4096, 11, 1, 4096), "on",
         "off or no records", "0 of them on demand"},
        {"nsys says that it cannot",
         STRINGS KERNELS RAN(1)
             SAID("CUDA device 0: Unified Memory cannot be traced on devices that "
                  "don''t support peer-to-peer transfers."),
         "unsupported", "off or no records", "peer-to-peer"},
        {"no CUDA at all", STRINGS, "off", "off or no records", "CUDA was not traced"},
        {"settings say that CUDA was traced", STRINGS CAPTURE("CAPTURE_EVENT_TYPE", "Cuda"),
         "off or no records", "off or no records", "nothing migrated"},
        {"settings say on, nothing came",
         STRINGS KERNELS RAN(1) CAPTURE("CUDA_UM_GPU_PAGE_FAULTS", "true")
             CAPTURE("CUDA_UM_CPU_PAGE_FAULTS", "false"),
         "on, no records", "on", "settings"},
        {"settings say off",
         STRINGS KERNELS RAN(1) CAPTURE("CUDA_UM_GPU_PAGE_FAULTS", "false")
             CAPTURE("CUDA_UM_CPU_PAGE_FAULTS", "false"),
         "off", "off", "settings"},
        {"CUDA traced, nothing said", STRINGS KERNELS RAN(1), "off or no records",
         "off or no records", "nothing migrated"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        um_collected_t c;

        um_collect_sql(&c, cases[i].sql);
        cr_expect_eq(c.status, UM_OK, "%s: %s", cases[i].why, c.error);
        cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), cases[i].tracing, "%s: %s",
                         cases[i].why, um_collected_fact(&c, "um.tracing"));
        cr_expect_str_eq(um_collected_option(&c, "nsys.cuda-um-gpu-page-faults"),
                         cases[i].gpu_option, "%s", cases[i].why);
        cr_expect_not_null(strstr(um_collected_fact(&c, "um.tracing.evidence"), cases[i].evidence),
                           "%s: %s", cases[i].why, um_collected_fact(&c, "um.tracing.evidence"));
        um_collected_free(&c);
    }
}

Test(import_nsys_sqlite, marks_and_waits_open_and_close_in_time)
{
    um_collected_t c;

    um_collect_sql(
        &c,
        STRINGS KERNELS RAN(
            60) "CREATE TABLE NVTX_EVENTS(start INT NOT NULL, end INT, eventType INT NOT NULL, "
                "rangeId INT,"
                " text TEXT, globalTid INT, textId INT);"
                "INSERT INTO NVTX_EVENTS VALUES (50, 900, 59, NULL, 'solve', " PID(
                    500) " + 501, NULL),"
                         " (70, NULL, 34, NULL, NULL, " PID(
                             500) " + 501, 7), (80, 90, 60, 3, 'io', 0, NULL),"
                                  " (5, NULL, 75, NULL, 'a domain', 0, NULL);"
                                  "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end "
                                  "INT, streamId INT,"
                                  " contextId INT, correlationId INT, globalPid INT, syncType INT);"
                                  "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (100, "
                                  "600, 7, 1, 8, " PID(500) ", 3);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_assert(um_collected_ordered(&c));
    cr_expect_eq(um_collected_count(&c, UM_EV_MARK), 5);
    cr_expect_eq(um_collected_at(&c, UM_EV_MARK, 0)->u.mark.kind, UM_MARK_PUSH);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_MARK, 0)->u.mark.name, "solve");
    cr_expect_eq(um_collected_at(&c, UM_EV_MARK, 0)->tid, 501);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_MARK, 1)->u.mark.name, "phase");
    cr_expect_eq(um_collected_at(&c, UM_EV_MARK, 3)->u.mark.kind, UM_MARK_END);
    cr_expect_eq(um_collected_at(&c, UM_EV_MARK, 4)->u.mark.kind, UM_MARK_POP);
    cr_expect_eq(um_collected_at(&c, UM_EV_MARK, 4)->time_ns, 900);
    cr_expect_eq(um_collected_at(&c, UM_EV_SYNC, 0)->u.sync.kind, UM_SYNC_STREAM);
    cr_expect_eq(um_collected_at(&c, UM_EV_SYNC, 1)->time_ns, 600);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, command_version_and_cards_become_facts)
{
    um_collected_t c;
    const um_ev_device_t *d;

    um_collect_sql(
        &c, STRINGS KERNELS RAN(60) CAPTURE("PROCESS_0:ARGUMENT_1", "two words")
                CAPTURE("PROCESS_0:COMMAND", "./app") CAPTURE("PROCESS_0:ARGUMENT_0", "-n")
                    CAPTURE("PROCESS_0:ARGUMENT_10", "last")
                        CAPTURE("PROCESS_0:ENVIRONMENT_0",
                                "SECRET=x") "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
                                            "INSERT INTO META_DATA_EXPORT VALUES "
                                            "('EXPORT_SCHEMA_VERSION', '3.1.0'),"
                                            " ('EXPORT_PRODUCT_VERSION', '2025.1.1');"
                                            "CREATE TABLE TARGET_INFO_GPU(vmId INT, id INT, name "
                                            "TEXT, busLocation TEXT, totalMemory INT,"
                                            " smCount INT, uuid TEXT, cuDevice INT, computeMajor "
                                            "INT, computeMinor INT);"
                                            "INSERT INTO TARGET_INFO_GPU VALUES (0, 4, 'NVIDIA "
                                            "A100', '0000:3b:00.0', 42505273344, 108,"
                                            " 'abc', 0, 8, 0);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_fact(&c, "process.command"), "./app -n two words last");
    cr_expect_str_eq(um_collected_fact(&c, "import.tool.version"), "2025.1.1");
    cr_expect_str_eq(um_collected_fact(&c, "import.kind"), "Nsight Systems SQLite");
    d = &um_collected_at(&c, UM_EV_DEVICE, 0)->u.device;
    cr_expect_eq(d->device, 0, "the CUDA ordinal, not the card's number");
    cr_expect_eq(d->sm_count, 108);
    cr_expect_eq(d->cc_major, 8);
    cr_expect_str_eq(d->name, "NVIDIA A100");
    cr_expect_str_eq(d->pci, "0000:3b:00.0");
    um_collected_free(&c);
}

Test(import_nsys_sqlite, times_below_zero_move_the_whole_trace_up)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS KERNELS RAN(-1000) RAN(500));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->time_ns, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 1)->time_ns, 1500);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.duration_ns, 500);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, only_the_process_with_most_records_is_read)
{
    um_collected_t c;

    um_collect_sql(&c,
                   STRINGS KERNELS RAN(1) COPIES MOVED(5, 4096, 11, 2, 4096)
                       MOVED(6, 4096, 11, 2,
                             8192) "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (7, 8, 0, 1, 0, "
                                   "0, " PID(501) ", 64, 11, 0, 0, 0, 0, 0, 0, 2, NULL, 4096);"
                                                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT "
                                                  "start, end, deviceId, contextId, streamId,"
                                                  " correlationId, " PID(
                                                      501) ", demangledName, shortName, "
                                                           "mangledName, 1, 1, 1, 1, 1, 1"
                                                           " FROM CUPTI_ACTIVITY_KIND_KERNEL;");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 2);
    cr_expect_eq(um_collected_count(&c, UM_EV_KERNEL_EXEC), 1);
    cr_expect_not_null(strstr(um_collected_fact(&c, "um.tracing.evidence"), "2 migrations"));
    cr_expect_str_eq(um_collected_fact(&c, "import.other-processes"), "1 rows of process 501");
    um_collected_free(&c);
}

Test(import_nsys_sqlite, the_process_asked_for_is_read_or_missed)
{
    static const char sql[] = STRINGS KERNELS RAN(1)
        COPIES MOVED(5, 4096, 11, 2,
                     4096) "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start, end, 0, 1, 7, "
                           "3, " PID(501) ", 2, 3, 1, 1, 1, 1, 1, 1, 1 FROM "
                                          "CUPTI_ACTIVITY_KIND_KERNEL;";
    um_collected_t c;

    um_collect_sql_process(&c, sql, 501);
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_KERNEL_EXEC), 1);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 0);
    cr_expect_str_eq(um_collected_fact(&c, "process.pid"), "501");
    um_collected_free(&c);
    um_collect_sql_process(&c, sql, 502);
    cr_expect_eq(c.status, UM_ERR_NOT_FOUND);
    cr_expect_not_null(strstr(c.error, "process 502"));
    um_collected_free(&c);
}

Test(import_nsys_sqlite, a_graph_traced_as_one_is_a_kernel_of_its_name)
{
    um_collected_t c;

    um_collect_sql(&c,
                   STRINGS "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT,"
                           " deviceId INT, streamId INT, graphId INT);"
                           "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 9, 0, 7, 12);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_KERNEL, 0)->u.kernel.name, "graph 12");
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.duration_ns, 8);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, what_nsys_dropped_is_a_loss)
{
    um_collected_t c;

    um_collect_sql(&c,
                   STRINGS KERNELS RAN(1) SAID("Not all CUDA events might have been collected."));
    cr_expect_eq(um_collected_count(&c, UM_EV_LOSS), 1);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, many_rows_in_no_order_come_out_in_time_order)
{
    um_collected_t c;

    um_collect_sql(
        &c, STRINGS GPU_FAULTS COPIES
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT i * 7919 % 20011, i * 7919 % 20011 + 5, 0, "
        "1,"
        " 0, 0, " PID(
            500) ", 4096, 11 + i % 2, 0, 0, 0, 0, 0, 0, 2, NULL, i * 4096 FROM n;"
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
                 " INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS SELECT i * 104729 % 20011, "
                 "30000, " PID(500) ", 0, i * 4096, 1, 1 FROM n;");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 20000);
    cr_expect_eq(um_collected_count(&c, UM_EV_GPU_FAULT), 10000);
    cr_assert(um_collected_ordered(&c));
    um_collected_free(&c);
}

/* ---- values that no profiler writes ----------------------------------------------------------- */

Test(import_nsys_sqlite, wrong_types_and_huge_values_do_no_harm)
{
    um_collected_t c;

    um_collect_sql(
        &c, STRINGS
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, streamId, correlationId,"
        " shortName, gridX);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('soon', 5, 0, 1, 1, 3, 1),"
        " (NULL, 5, 0, 1, 1, 3, 1), (x'00ff', 5, 0, 1, 1, 3, 1),"
        " (1.5e300, -1, 1e30, 'seven', -5, 'name', 99999999999999),"
        " (9223372036854775807, -9223372036854775808, 4294967295, 1, 1, 3, 1),"
        " (10, 5, 99999999999, 1, 1, 999, -1);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_KERNEL_EXEC), 3);
    cr_expect_eq(um_collected_at(&c, UM_EV_LOSS, 0)->u.loss.count, 3);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.duration_ns, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.kernel, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.device, UM_DEVICE_NONE);
    cr_assert(um_collected_ordered(&c));
    um_collected_free(&c);
}

Test(import_nsys_sqlite, regions_at_both_ends_of_the_address_space_and_over_each_other)
{
    um_collected_t c;

    um_collect_sql(
        &c, STRINGS COPIES
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, address INT, bytes INT, memKind INT,"
        " memoryOperationType INT);"
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, -4096, 4096, 4, 0), (2, -1, 2, 4, 0),"
        " (3, 0, 4096, 4, 0), (4, 4096, 0, 4, 0), (5, 8192, 4096, 4, 0), (6, 0, 65536, 4, 0),"
        " (7, 77, 1, 4, 1), (8, -4096, -1, 4, 0);" MOVED(100, 4096, 11, 2, -1)
            MOVED(101, 4096, 11, 2, 12287));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_REGION_ALLOC), 7);
    cr_expect_eq(um_collected_count(&c, UM_EV_REGION_FREE), 3, "two overrun, one asked for");
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.region, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 1)->u.migrate.region, 0);
    um_collected_free(&c);
}

Test(import_nsys_sqlite, views_and_triggers_of_the_file_do_not_run)
{
    um_collected_t c;

    um_collect_sql(
        &c,
        STRINGS "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS"
                " (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start AS end FROM n;");
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_KERNEL_EXEC), 0);
    um_collected_free(&c);
}

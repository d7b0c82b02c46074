/* nvprof databases made here, with the tables and the meanings of CUPTI's records. */
#include <criterion/criterion.h>
#include <string.h>

#include "import_collect.h"

#define STRINGS                                                                                    \
    "CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);"                              \
    "INSERT INTO StringTable VALUES (1, '_Z4stepPKfPf'), (2, 'Tesla P100'), (3, 'range'), (4, "    \
    "'dom');"
#define UNIFIED                                                                                    \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER(_id_ INTEGER PRIMARY KEY,"            \
    " counterKind INT, value INT, start INT, end INT, address INT, srcId INT, dstId INT,"          \
    " streamId INT, processId INT, flags INT);"
#define ROW(kind, value, start, end, address, src, dst, flags)                                     \
    "INSERT INTO CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER VALUES (NULL, " #kind ", " #value      \
    ", " #start ", " #end ", " #address ", " #src ", " #dst ", 0, 77, " #flags ");"

Test(import_nvprof_sqlite, each_counter_kind_has_its_exact_meaning)
{
    um_collected_t c;
    const um_event_t *e;

    um_collect_sql(&c, STRINGS UNIFIED
                           /* kind, value, start, end, address, src, dst, flags */
                           ROW(1, 65536, 1000, 1500, 4096, 4294967295, 1, 2) /* HtoD, by fault */
                   ROW(2, 4096, 1100, 1200, 8192, 0, -1, 4)                  /* DtoH, eviction */
                   ROW(3, 4198588, 1200, 1200, 12288, 4294967295, 0,
                       0)                                         /* CPU fault: value is a PC */
                   ROW(4, 37, 1300, 1900, 16384, 1, 0, 2)         /* GPU fault groups, write */
                   ROW(5, 8192, 1400, 0, 20480, 3, 0, 1)          /* thrash: devices 0, 1, CPU */
                   ROW(6, 0, 1500, 501500, 24576, 1, 0, 0)        /* throttle of device 1 */
                   ROW(6, 0, 1600, 2600, 28672, 4294967295, 0, 1) /* throttle of the CPU */
                   ROW(7, 65536, 1700, 0, 32768, 1, 0, 3)         /* remote map, policy */
                   ROW(8, 2097152, 1800, 2000, 36864, 0, 1, 5));  /* DtoD, access counters */
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_assert(um_collected_ordered(&c));

    e = um_collected_at(&c, UM_EV_MIGRATE, 0);
    cr_expect_eq(e->time_ns, 1000);
    cr_expect_eq(e->u.migrate.bytes, 65536);
    cr_expect_eq(e->u.migrate.duration_ns, 500);
    cr_expect_eq(e->u.migrate.src, UM_DEVICE_HOST);
    cr_expect_eq(e->u.migrate.dst, 1);
    cr_expect_eq(e->u.migrate.cause, UM_CAUSE_COHERENCE);
    e = um_collected_at(&c, UM_EV_MIGRATE, 1);
    cr_expect_eq(e->u.migrate.src, 0);
    cr_expect_eq(e->u.migrate.dst, UM_DEVICE_HOST);
    cr_expect_eq(e->u.migrate.cause, UM_CAUSE_EVICTION);
    e = um_collected_at(&c, UM_EV_MIGRATE, 2);
    cr_expect_eq(e->u.migrate.src, 0);
    cr_expect_eq(e->u.migrate.dst, 1);
    cr_expect_eq(e->u.migrate.cause, UM_CAUSE_ACCESS_COUNTERS);
    e = um_collected_at(&c, UM_EV_CPU_FAULT, 0);
    cr_expect_eq(e->u.cpu_fault.pc, 4198588);
    cr_expect_eq(e->u.cpu_fault.addr, 12288);
    e = um_collected_at(&c, UM_EV_GPU_FAULT, 0);
    cr_expect_eq(e->u.gpu_fault.groups, 37);
    cr_expect_eq(e->u.gpu_fault.access, UM_ACCESS_WRITE);
    cr_expect_eq(e->u.gpu_fault.device, 1);
    cr_expect_eq(e->u.gpu_fault.duration_ns, 600);
    e = um_collected_at(&c, UM_EV_THRASH, 0);
    cr_expect_eq(e->u.thrash.processors, UINT64_C(1) << 63 | 3);
    cr_expect_eq(e->u.thrash.bytes, 8192);
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 0)->u.throttle.device, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 0)->u.throttle.duration_ns, 500000);
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 1)->u.throttle.device, UM_DEVICE_HOST);
    e = um_collected_at(&c, UM_EV_REMOTE_MAP, 0);
    cr_expect_eq(e->u.remote_map.src, 1);
    cr_expect_eq(e->u.remote_map.dst, 0);
    cr_expect_eq(e->u.remote_map.cause, UM_REMOTE_POLICY);
    cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), "on");
    cr_expect_str_eq(um_collected_fact(&c, "process.pid"), "77");
    um_collected_free(&c);
}

Test(import_nvprof_sqlite, unsigned_addresses_stored_signed_come_back)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS UNIFIED ROW(3, -4096, 10, 10, -9223372036854771712, 0, 0, 0));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_at(&c, UM_EV_CPU_FAULT, 0)->u.cpu_fault.addr, 0x8000000000001000);
    cr_expect_eq(um_collected_at(&c, UM_EV_CPU_FAULT, 0)->u.cpu_fault.pc, 0xfffffffffffff000);
    um_collected_free(&c);
}

Test(import_nvprof_sqlite, causes_and_kinds_that_are_not_known_stay_unknown)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS UNIFIED ROW(1, 1, 1, 2, 4096, -1, 0, 99)
                           ROW(4, 99999999999, 2, 3, 4096, 0, 0, 9) ROW(9, 1, 3, 4, 4096, 0, 0, 0));
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.cause, UM_CAUSE_UNKNOWN);
    cr_expect_eq(um_collected_at(&c, UM_EV_GPU_FAULT, 0)->u.gpu_fault.groups, UINT32_MAX);
    cr_expect_eq(um_collected_at(&c, UM_EV_GPU_FAULT, 0)->u.gpu_fault.access, UM_ACCESS_UNKNOWN);
    cr_expect_eq(um_collected_count(&c, UM_EV_LOSS), 1);
    um_collected_free(&c);
}

Test(import_nvprof_sqlite, tables_are_merged_by_time)
{
    um_collected_t c;
    uint32_t order[16];
    size_t n = 0;
    static const uint32_t expected[] = {UM_EV_REGION_ALLOC, UM_EV_MARK,       UM_EV_KERNEL,
                                        UM_EV_KERNEL_EXEC,  UM_EV_SYNC,       UM_EV_MIGRATE,
                                        UM_EV_COPY,         UM_EV_SET,        UM_EV_SYNC,
                                        UM_EV_MARK,         UM_EV_REGION_FREE};

    um_collect_sql(
        &c,
        STRINGS UNIFIED ROW(
            1, 4096, 400, 450, 1048576, -1, 0,
            2) "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMORY(_id_ INTEGER PRIMARY KEY, memoryKind INT, "
               "address INT,"
               " bytes INT, start INT, end INT, allocPC INT, freePC INT, processId INT, deviceId "
               "INT,"
               " contextId INT, name INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_MEMORY VALUES"
               " (1, 5, 1048576, 65536, 100, 900, 11, 12, 77, 0, 1, 3);"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(_id_ INTEGER PRIMARY KEY, flags INT, "
               "timestamp INT,"
               " id INT, objectKind INT, objectId BLOB, name INT, domain INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 4, 800, 5, 2, NULL, 0, 4),"
               " (2, 2, 150, 5, 2, NULL, 3, 4);"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY, start "
               "INT,"
               " end INT, deviceId INT, contextId INT, streamId INT, gridX INT, gridY INT, gridZ "
               "INT,"
               " blockX INT, blockY INT, blockZ INT, correlationId INT, name INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES"
               " (1, 300, 700, 0, 1, 7, 10, 2, 1, 256, 1, 1, 42, 1);"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(_id_ INTEGER PRIMARY KEY, type "
               "INT,"
               " start INT, end INT, correlationId INT, contextId INT, streamId INT, cudaEventId "
               "INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1, 4, 350, 750, 43, 1, 0, "
               "0),"
               " (2, 2, 351, 352, 44, 1, 0, 0);"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(_id_ INTEGER PRIMARY KEY, copyKind INT, "
               "srcKind INT,"
               " dstKind INT, flags INT, bytes INT, start INT, end INT, deviceId INT, contextId "
               "INT,"
               " streamId INT, correlationId INT, runtimeCorrelationId INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 1, 1, 3, 1, 100, 500, 550, 0, 1, "
               "7, 45, 0);"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(_id_ INTEGER PRIMARY KEY, value INT, bytes "
               "INT,"
               " start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,"
               " flags INT, memoryKind INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1, 255, 64, 600, 610, 0, 1, 7, 46, "
               "0, 5);"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE(_id_ INTEGER PRIMARY KEY, id INT, name INT,"
               " globalMemorySize INT, numMultiprocessors INT, computeCapabilityMajor INT,"
               " computeCapabilityMinor INT);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (1, 0, 2, 17179869184, 56, 6, 0);"
               "CREATE TABLE Version(version INT); INSERT INTO Version VALUES (11);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_assert(um_collected_ordered(&c));
    for (size_t i = 0; i < c.n; i++) {
        uint32_t type = c.event[i].type;

        if (type != UM_EV_FACT && type != UM_EV_OPTION && type != UM_EV_DEVICE &&
            type != UM_EV_REGION_LABEL && n < 16)
            order[n++] = type;
    }
    cr_assert_eq(n, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(order[i], expected[i], "event %zu", i);

    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.region, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_REGION_FREE, 0)->u.region_free.region, 1);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_REGION_LABEL, 0)->u.region_label.label, "range");
    cr_expect_eq(um_collected_at(&c, UM_EV_REGION_ALLOC, 0)->u.region_alloc.call_site, 11);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_KERNEL, 0)->u.kernel.name, "_Z4stepPKfPf");
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.correlation, 42);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.duration_ns, 400);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 0)->u.copy.src_memory, UM_MEMORY_PAGEABLE);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 0)->u.copy.dst_memory, UM_MEMORY_DEVICE);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 0)->u.copy.flags,
                 UM_TRANSFER_ASYNC | UM_TRANSFER_ON_GPU);
    cr_expect_eq(um_collected_at(&c, UM_EV_SET, 0)->u.set.memory, UM_MEMORY_MANAGED);
    cr_expect_eq(um_collected_at(&c, UM_EV_SET, 0)->u.set.value, 255);
    cr_expect_eq(um_collected_at(&c, UM_EV_SYNC, 0)->u.sync.kind, UM_SYNC_DEVICE);
    cr_expect_eq(um_collected_at(&c, UM_EV_SYNC, 1)->u.sync.exit, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_SYNC, 1)->time_ns, 750);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_MARK, 0)->u.mark.name, "range");
    cr_expect_str_eq(um_collected_at(&c, UM_EV_MARK, 0)->u.mark.domain, "dom");
    cr_expect_eq(um_collected_at(&c, UM_EV_MARK, 1)->u.mark.kind, UM_MARK_END);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_DEVICE, 0)->u.device.name, "Tesla P100");
    cr_expect_eq(um_collected_at(&c, UM_EV_DEVICE, 0)->u.device.sm_count, 56);
    cr_expect_str_eq(um_collected_fact(&c, "import.tool.version"), "11");
    um_collected_free(&c);
}

Test(import_nvprof_sqlite, an_empty_table_and_no_table_say_so)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS UNIFIED);
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), "off or no records");
    um_collected_free(&c);
    um_collect_sql(&c, STRINGS);
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), "off or no records");
    cr_expect_str_eq(um_collected_fact(&c, "um.tracing.evidence"),
                     "there is no unified-memory table");
    um_collected_free(&c);
}

Test(import_nvprof_sqlite, other_processes_are_left_out_and_counted)
{
    um_collected_t c;

    um_collect_sql(&c, STRINGS UNIFIED ROW(1, 1, 1, 2, 4096, -1, 0, 2)
                           ROW(1, 2, 2, 3, 4096, -1, 0,
                               2) "INSERT INTO CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER VALUES"
                                  " (NULL, 1, 3, 3, 4, 4096, -1, 0, 0, 78, 2);");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 2);
    cr_expect_str_eq(um_collected_fact(&c, "process.pid"), "77");
    cr_expect_neq(strlen(um_collected_fact(&c, "import.other-processes")), 0);
    um_collected_free(&c);
}

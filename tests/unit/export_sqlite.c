/* Databases of `umrt export`: nothing is lost on the way there and back, Nsight's columns say what Nsight's
 * say, and a damaged one is refused. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <unistd.h>

#include "trace/export.h"
#include "trace/import.h"
#include "trace_events.h"

static char path[64];

static void name_file(void)
{
    snprintf(path, sizeof(path), "/tmp/umrt-export-%ld.sqlite", (long)getpid());
    unlink(path);
}

static void remove_file(void)
{
    unlink(path);
}

TestSuite(export, .init = name_file, .fini = remove_file);

static um_export_t *open_export(void)
{
    um_export_t *to;
    char error[200] = "";

    cr_assert_eq(um_export_open(path, &to, error, sizeof(error)), UM_OK, "%s", error);
    return to;
}

static void put(um_export_t *to, um_event_t event)
{
    cr_assert_eq(um_export_event(to, &event), UM_OK);
}

static void close_export(um_export_t *to)
{
    char error[200] = "";

    cr_assert_eq(um_export_close(to, error, sizeof(error)), UM_OK, "%s", error);
}

/* The n-th of a seeded stream whose times do not go back. */
static void nth(event_box_t *box, uint64_t n)
{
    stream_event(box, n);
    box->event.time_ns = 1000 + n / 3;
}

static uint64_t back, wrong;

static void compare(void *ctx, const um_event_t *event)
{
    event_box_t box;

    (void)ctx;
    nth(&box, back++);
    wrong += !same_event(&box.event, event);
}

Test(export, every_event_of_every_type_comes_back_as_it_was)
{
    um_export_t *to = open_export();
    char error[200] = "";
    uint64_t seen = 0;

    for (uint64_t n = 0; n < 5000; n++) {
        event_box_t box;

        nth(&box, n);
        seen |= UINT64_C(1) << box.event.type;
        put(to, box.event);
    }
    close_export(to);
    cr_assert_eq(seen, (UINT64_C(1) << UM_EV_TYPE_COUNT) - 2, "a type never came");
    cr_assert(um_export_is(path));
    cr_assert_eq(um_import_file(path, compare, NULL, error, sizeof(error)), UM_OK, "%s", error);
    cr_assert_eq(back, 5000);
    cr_assert_eq(wrong, 0, "%lu differ", (unsigned long)wrong);
}

static int64_t query(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    int64_t value;

    cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK, "%s: %s", sql,
                 sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(stmt), SQLITE_ROW, "%s", sql);
    value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

#define counts(expected, sql)                                                                      \
    cr_expect_eq(query("SELECT count(*) FROM " sql), (expected), "not %d: %s", (expected), sql)

Test(export, nsights_columns_have_nsights_meanings)
{
    um_export_t *to = open_export();

    put(to, (um_event_t){.type = UM_EV_FACT, .u.fact = {"process.pid", "77"}});
    put(to, (um_event_t){.type = UM_EV_KERNEL, .u.kernel = {.kernel = 9, .name = "_Z4stepPf"}});
    put(to, (um_event_t){.type = UM_EV_REGION_ALLOC,
                         .u.region_alloc = {.region = 1,
                                            .family = UM_FAMILY_MANAGED,
                                            .addr = UINT64_C(0xffff800000000000),
                                            .bytes = 4096,
                                            .device = UM_DEVICE_NONE}});
    put(to, (um_event_t){.time_ns = 10,
                         .type = UM_EV_KERNEL_EXEC,
                         .u.kernel_exec = {.kernel = 9, .duration_ns = 5, .grid = {1, 2, 3}}});
    for (int way = 0; way < 3; way++)
        put(to, (um_event_t){.time_ns = 20,
                             .type = UM_EV_MIGRATE,
                             .u.migrate = {.bytes = 100,
                                           .duration_ns = 7,
                                           .src = way == 0 ? UM_DEVICE_HOST : 1,
                                           .dst = way == 1 ? UM_DEVICE_HOST : 2,
                                           .cause = UM_CAUSE_EVICTION}});
    put(to, (um_event_t){.time_ns = 30,
                         .type = UM_EV_COPY,
                         .u.copy = {.bytes = 3,
                                    .src_memory = UM_MEMORY_PAGEABLE,
                                    .dst_memory = UM_MEMORY_DEVICE}});
    put(to, (um_event_t){.time_ns = 40,
                         .type = UM_EV_GPU_FAULT,
                         .u.gpu_fault = {.addr = 4096, .groups = 6, .access = UM_ACCESS_WRITE}});
    put(to, (um_event_t){.time_ns = 50, .type = UM_EV_CPU_FAULT, .u.cpu_fault = {1, 0xabc, 0, 0}});
    put(to,
        (um_event_t){.time_ns = 60, .type = UM_EV_SYNC, .u.sync = {5, UM_SYNC_DEVICE, 0, 0, 0}});
    put(to,
        (um_event_t){.time_ns = 65, .type = UM_EV_SYNC, .u.sync = {5, UM_SYNC_DEVICE, 1, 0, 0}});
    put(to, (um_event_t){
                .time_ns = 70, .tid = 3, .type = UM_EV_MARK, .u.mark = {UM_MARK_PUSH, 0, "", "a"}});
    put(to, (um_event_t){
                .time_ns = 71, .tid = 3, .type = UM_EV_MARK, .u.mark = {UM_MARK_PUSH, 0, "", "b"}});
    put(to, (um_event_t){
                .time_ns = 72, .tid = 4, .type = UM_EV_MARK, .u.mark = {UM_MARK_PUSH, 0, "", "c"}});
    put(to, (um_event_t){
                .time_ns = 73, .tid = 3, .type = UM_EV_MARK, .u.mark = {UM_MARK_POP, 0, "", ""}});
    put(to, (um_event_t){
                .time_ns = 74, .tid = 3, .type = UM_EV_MARK, .u.mark = {UM_MARK_POP, 0, "", ""}});
    close_export(to);

    counts(1, "CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName WHERE s.value = "
              "'_Z4stepPf' AND start = 10 AND \"end\" = 15 AND gridZ = 3 AND globalPid >> 24 = 77");
    counts(1,
           "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 11 AND dstDeviceId = 2 AND deviceId = 2");
    counts(1,
           "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 12 AND srcDeviceId = 1 AND deviceId = 1");
    counts(1, "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 13");
    counts(3, "CUPTI_ACTIVITY_KIND_MEMCPY WHERE migrationCause = 4 AND \"end\" - start = 7");
    counts(1, "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1 AND srcKind = 0 AND dstKind = 2 AND "
              "migrationCause IS NULL");
    counts(1, "CUDA_UM_GPU_PAGE_FAULT_EVENTS WHERE numberOfPageFaults = 6 AND faultAccessType = 2");
    counts(1, "CUDA_UM_CPU_PAGE_FAULT_EVENTS f JOIN StringIds s ON s.id = f.CpuInstruction WHERE "
              "s.value = '0xabc' AND originalFaultPc = 2748");
    counts(1, "CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 4 AND memoryOperationType = 0 AND "
              "address = -140737488355328");
    counts(
        1,
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION WHERE start = 60 AND \"end\" = 65 AND syncType = 4");
    counts(1, "NVTX_EVENTS WHERE text = 'a' AND start = 70 AND \"end\" = 74 AND eventType = 59");
    counts(1, "NVTX_EVENTS WHERE text = 'b' AND start = 71 AND \"end\" = 73");
    counts(1, "NVTX_EVENTS WHERE text = 'c' AND \"end\" IS NULL");
    /* What scripts ask a table for its columns with. */
    counts(1, "pragma_table_info('CUPTI_ACTIVITY_KIND_MEMCPY') WHERE name = 'copyKind'");
}

static void ignore(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_lt(event->type, (uint32_t)UM_EV_TYPE_COUNT);
    back++;
}

Test(export, a_damaged_database_gives_a_line_or_events_and_never_more)
{
    um_export_t *to = open_export();
    uint64_t state = 3, refused = 0;
    long bytes;
    char *whole;
    FILE *file;

    for (uint64_t n = 0; n < 300; n++) {
        event_box_t box;

        nth(&box, n);
        put(to, box.event);
    }
    close_export(to);
    file = fopen(path, "rb");
    cr_assert_not_null(file);
    fseek(file, 0, SEEK_END);
    bytes = ftell(file);
    rewind(file);
    whole = malloc((size_t)bytes);
    cr_assert_eq(fread(whole, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    for (int round = 0; round < 200; round++) {
        size_t at = 100 + next_random(&state) % ((size_t)bytes - 100),
               n = 1 + next_random(&state) % 8;
        char error[300] = "";

        file = fopen(path, "wb");
        cr_assert_not_null(file);
        fwrite(whole, 1, at, file);
        for (size_t i = 0; i < n; i++)
            fputc((int)(next_random(&state) & 255), file);
        if (round & 1 && at + n < (size_t)bytes)
            fwrite(whole + at + n, 1, (size_t)bytes - at - n, file);
        fclose(file);
        if (um_import_file(path, ignore, NULL, error, sizeof(error)) != UM_OK) {
            cr_assert_neq(*error, '\0', "round %d", round);
            refused++;
        }
    }
    cr_assert_geq(refused, 100, "all that are cut short are refused");
    free(whole);
}

Test(export, an_existing_file_is_not_written_over)
{
    um_export_t *to;
    char error[200] = "";
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    fputs("precious", file);
    fclose(file);
    cr_assert_eq(um_export_open(path, &to, error, sizeof(error)), UM_ERR_IO);
    cr_assert_neq(*error, '\0');
    cr_assert_not(um_export_is(path));
}

Test(export, another_process_than_the_one_in_it_is_not_found)
{
    um_export_t *to = open_export();
    char error[200] = "";

    put(to, (um_event_t){.type = UM_EV_FACT, .u.fact = {"process.pid", "77"}});
    close_export(to);
    cr_assert_eq(um_import_process(path, 77, ignore, NULL, error, sizeof(error)), UM_OK);
    cr_assert_eq(um_import_process(path, 78, ignore, NULL, error, sizeof(error)), UM_ERR_NOT_FOUND);
}

/* Variants of nvprof's tables, from the small logs of tests/data/import and from lines made here. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import_collect.h"

static void import_sample(um_collected_t *c, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/data/import/%s", getenv("UM_SRCDIR"), name);
    um_collect(c, path);
}

static void import_text(um_collected_t *c, const char *text, size_t n)
{
    char path[] = "/tmp/um_import_XXXXXX";
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    close(fd);
    um_collect(c, path);
    unlink(path);
}

#define BANNER "==5== NVPROF is profiling process 5, command: ./a b\n"
#define RESULT "==5== Profiling result:\n"
#define HEADER                                                                                     \
    "   Start  Duration  Device  Context  Stream  Unified Memory  Virtual Address  Name\n"
#define MOVED(start, size, addr)                                                                   \
    start "  1.0000us    V100        -       -  " size "      " addr                               \
          "  [Unified Memory Memcpy HtoD]\n"
#define ROW MOVED("1.0000ms", "   4.000000KB", "0x7f0000000")

Test(import_nvprof_text, every_row_kind_has_its_meaning)
{
    um_collected_t c;
    const um_event_t *e;

    import_sample(&c, "every-row.log");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_assert(um_collected_ordered(&c));

    e = um_collected_at(&c, UM_EV_CPU_FAULT, 0);
    cr_expect_eq(e->time_ns, 1000000000);
    cr_expect_eq(e->u.cpu_fault.pc, 0x400abc);
    cr_expect_eq(e->u.cpu_fault.addr, 0x7f0000000000);
    e = um_collected_at(&c, UM_EV_SET, 0);
    cr_expect_eq(e->u.set.bytes, 1024);
    cr_expect_eq(e->u.set.memory, UM_MEMORY_DEVICE);
    cr_expect_eq(e->u.set.duration_ns, 1056);
    e = um_collected_at(&c, UM_EV_COPY, 0);
    cr_expect_eq(e->u.copy.bytes, 2621440);
    cr_expect_eq(e->u.copy.src_memory, UM_MEMORY_PINNED);
    cr_expect_eq(e->u.copy.dst_memory, UM_MEMORY_DEVICE);
    cr_expect_eq(e->u.copy.stream, 13);
    cr_expect_eq(um_collected_at(&c, UM_EV_COPY, 1)->u.copy.dst_memory, UM_MEMORY_ARRAY);
    e = um_collected_at(&c, UM_EV_KERNEL, 0);
    cr_expect_str_eq(e->u.kernel.name, "void step<float, int=3>(float const *, float*)");
    e = um_collected_at(&c, UM_EV_KERNEL_EXEC, 0);
    cr_expect_eq(e->u.kernel_exec.kernel, 1);
    cr_expect_eq(e->u.kernel_exec.correlation, 17);
    cr_expect_eq(e->u.kernel_exec.grid[0], 65535);
    cr_expect_eq(e->u.kernel_exec.block[1], 4);
    cr_expect_eq(e->u.kernel_exec.duration_ns, 1500000);
    e = um_collected_at(&c, UM_EV_GPU_FAULT, 0);
    cr_expect_eq(e->u.gpu_fault.groups, 37);
    cr_expect_eq(e->u.gpu_fault.duration_ns, 20000);
    cr_expect_eq(e->u.gpu_fault.access, UM_ACCESS_UNKNOWN);
    e = um_collected_at(&c, UM_EV_MIGRATE, 0);
    cr_expect_eq(e->u.migrate.bytes, 61440);
    cr_expect_eq(e->u.migrate.src, UM_DEVICE_HOST);
    cr_expect_eq(e->u.migrate.dst, 0);
    e = um_collected_at(&c, UM_EV_MIGRATE, 1);
    cr_expect_eq(e->u.migrate.bytes, 2080768);
    cr_expect_eq(e->u.migrate.src, 0);
    cr_expect_eq(e->u.migrate.dst, UM_DEVICE_HOST);
    e = um_collected_at(&c, UM_EV_THRASH, 0);
    cr_expect_eq(e->u.thrash.processors, UINT64_C(1) << 63 | 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 0)->u.throttle.device, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 1)->u.throttle.device, UM_DEVICE_HOST);
    e = um_collected_at(&c, UM_EV_REMOTE_MAP, 0);
    cr_expect_eq(e->u.remote_map.dst, 0);
    cr_expect_eq(e->u.remote_map.bytes, 65536);
    um_collected_free(&c);
}

Test(import_nvprof_text, a_row_of_an_unknown_kind_is_a_loss_and_says_so)
{
    um_collected_t c;

    import_sample(&c, "every-row.log");
    cr_expect_eq(um_collected_count(&c, UM_EV_LOSS), 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_LOSS, 0)->u.loss.count, 1);
    um_collected_free(&c);
}

Test(import_nvprof_text, a_start_printed_earlier_than_the_row_before_keeps_its_place)
{
    um_collected_t c;
    const um_event_t *e;

    import_sample(&c, "every-row.log");
    e = um_collected_at(&c, UM_EV_MIGRATE, 2); /* printed 999.99ms after a row at 1.00009s */
    cr_expect_eq(e->time_ns, 1000090000);
    cr_expect_eq(e->u.migrate.duration_ns, 4000);
    cr_expect_eq(um_collected_at(&c, UM_EV_REMOTE_MAP, 0)->time_ns, 1000090000);
    cr_expect(e > um_collected_at(&c, UM_EV_REMOTE_MAP, 0));
    um_collected_free(&c);
}

Test(import_nvprof_text, columns_are_found_by_their_headings)
{
    um_collected_t c;

    import_sample(&c, "power9-no-copies.log");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_at(&c, UM_EV_CPU_FAULT, 0)->u.cpu_fault.addr, 0x200060000000);
    cr_expect_eq(um_collected_at(&c, UM_EV_CPU_FAULT, 0)->u.cpu_fault.region, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.region, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.stream_id, 7);
    cr_expect_eq(um_collected_count(&c, UM_EV_LOSS), 0);
    um_collected_free(&c);
}

Test(import_nvprof_text, cells_wider_than_their_column_are_told_apart)
{
    um_collected_t c;

    import_sample(&c, "two-devices-wide.log");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_DEVICE), 2);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.device, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 1)->u.kernel_exec.device, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.dst, 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.addr, 0x700000010000);
    um_collected_free(&c);
}

Test(import_nvprof_text, counted_cpu_faults_of_old_versions_become_that_many)
{
    um_collected_t c;

    import_sample(&c, "no-addresses.log");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_CPU_FAULT), 3);
    cr_expect_eq(um_collected_at(&c, UM_EV_CPU_FAULT, 2)->u.cpu_fault.pc, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.addr, 0);
    um_collected_free(&c);
}

Test(import_nvprof_text, csv_takes_units_from_its_second_line)
{
    um_collected_t c;
    const um_event_t *e;

    import_sample(&c, "table.csv");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_assert(um_collected_ordered(&c));
    e = um_collected_at(&c, UM_EV_CPU_FAULT, 0);
    cr_expect_eq(e->time_ns, 477983000);
    cr_expect_eq(e->u.cpu_fault.pc, 0x4f4da6f4);
    e = um_collected_at(&c, UM_EV_COPY, 0);
    cr_expect_eq(e->u.copy.bytes, 1572864);
    cr_expect_eq(e->u.copy.duration_ns, 147920);
    cr_expect_eq(e->u.copy.correlation, 110);
    e = um_collected_at(&c, UM_EV_KERNEL_EXEC, 0);
    cr_expect_eq(e->u.kernel_exec.grid[0], 128);
    cr_expect_eq(e->u.kernel_exec.block[0], 512);
    cr_expect_eq(e->u.kernel_exec.correlation, 145);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_KERNEL, 0)->u.kernel.name,
                     "Kernel(Node*, int*, bool*)");
    cr_expect_eq(um_collected_at(&c, UM_EV_GPU_FAULT, 0)->u.gpu_fault.groups, 2);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.bytes, 49152);
    um_collected_free(&c);
}

Test(import_nvprof_text, off_unsupported_and_nothing_are_told_apart)
{
    static const struct {
        const char *file, *tracing, *option;
    } cases[] = {
        {"every-row.log", "on", "on"},
        {"no-unified-columns.log", "off or no records", "off or no records"},
        {"unsupported.log", "unsupported", "unsupported"},
        {"nothing.log", "off or no records", "off or no records"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        um_collected_t c;

        import_sample(&c, cases[i].file);
        cr_expect_eq(c.status, UM_OK, "%s: %s", cases[i].file, c.error);
        cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), cases[i].tracing);
        cr_expect_str_neq(um_collected_fact(&c, "um.tracing.evidence"), "");
        cr_expect_str_eq(um_collected_option(&c, "nvprof.unified-memory-profiling"),
                         cases[i].option);
        um_collected_free(&c);
    }
}

Test(import_nvprof_text, a_table_with_the_column_and_no_such_row_is_on_without_records)
{
    static const char log[] = BANNER RESULT HEADER
        "1.0000ms  1.0000us    V100        1       7               -                -  [CUDA "
        "memset]\n"
        "1.0000ms  1.0000us    V100        1       7               -                -  API [3]\n\n";
    um_collected_t c;

    import_text(&c, log, sizeof log - 1);
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), "on, no records");
    um_collected_free(&c);
}

Test(import_nvprof_text, the_unsupported_warning_is_quoted)
{
    um_collected_t c;

    import_sample(&c, "unsupported.log");
    cr_expect_not_null(
        strstr(um_collected_fact(&c, "um.tracing.evidence"), "without peer-to-peer support"));
    um_collected_free(&c);
}

Test(import_nvprof_text, names_are_paired_with_ranges_by_order)
{
    static const struct {
        const char *file;
        const char *label[4];
    } cases[] = {{"names-after.log", {"x", "y"}}, {"names-some.log", {"data 1", "y", "data 3"}}};

    for (size_t i = 0; i < 2; i++) {
        um_collected_t c;

        import_sample(&c, cases[i].file);
        cr_assert_eq(c.status, UM_OK, "%s", c.error);
        for (size_t k = 0; cases[i].label[k] != NULL; k++)
            cr_expect_str_eq(um_collected_at(&c, UM_EV_REGION_LABEL, k)->u.region_label.label,
                             cases[i].label[k]);
        cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.region, 2);
        um_collected_free(&c);
    }
}

Test(import_nvprof_text, program_output_is_mined_for_nothing_else)
{
    static const char log[] =
        BANNER "alloc and more\nin api range: 0x10 0x10\nallocx y\n"
               "in api range: 0xzz\nin api range: 0x20 0x10\n" RESULT HEADER ROW;
    um_collected_t c;

    import_text(&c, log, sizeof log - 1);
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_REGION_ALLOC), 0);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 1);
    um_collected_free(&c);
}

Test(import_nvprof_text, of_two_processes_the_one_that_moved_pages_is_read)
{
    um_collected_t c;

    import_sample(&c, "two-processes.log");
    cr_assert_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_str_eq(um_collected_fact(&c, "process.pid"), "15");
    cr_expect_str_eq(um_collected_fact(&c, "process.command"), "./b");
    cr_expect_str_eq(um_collected_fact(&c, "import.other-processes"), "3 rows of process 14");
    cr_expect_eq(um_collected_count(&c, UM_EV_KERNEL_EXEC), 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.bytes, 2097152);
    um_collected_free(&c);
}

Test(import_nvprof_text, records_that_nvprof_lost_are_a_loss)
{
    static const char log[] = BANNER
        "==5== Warning: 56 records have invalid timestamps due to insufficient device buffer "
        "space.\n"
        "==5== Warning: 1 API trace records have same start and end timestamps.\n" RESULT HEADER
            ROW;
    um_collected_t c;

    import_text(&c, log, sizeof log - 1);
    cr_expect_eq(um_collected_count(&c, UM_EV_LOSS), 1);
    cr_expect_eq(um_collected_at(&c, UM_EV_LOSS, 0)->u.loss.count, 56);
    um_collected_free(&c);
}

Test(import_nvprof_text, a_summary_is_refused_with_what_to_do)
{
    um_collected_t c;

    import_sample(&c, "summary.log");
    cr_expect_eq(c.status, UM_ERR_UNSUPPORTED);
    cr_expect_not_null(strstr(c.error, "--print-gpu-trace"), "%s", c.error);
    cr_expect_eq(c.n, 0);
    um_collected_free(&c);
}

Test(import_nvprof_text, a_log_cut_anywhere_gives_its_whole_rows_and_one_line)
{
    static const char log[] =
        BANNER RESULT HEADER ROW MOVED("2.0000ms", "  64.000000KB", "0x7f0010000")
            MOVED("3.0000ms", "   1.000000MB", "0x7f0020000") "\nRegs: x\n";
    size_t rows = sizeof BANNER RESULT HEADER - 1, whole = rows, row = sizeof ROW - 1;

    for (size_t n = 1; n < sizeof log - 1; n++) {
        um_collected_t c;
        size_t done = 0;

        for (whole = rows; whole + row <= n + 1 && done < 3; whole += row)
            done++; /* a row without its newline is whole when its bracket is there */
        import_text(&c, log, n);
        cr_assert_eq(um_collected_count(&c, UM_EV_MIGRATE), done, "%zu bytes: %zu rows", n, done);
        if (c.status != UM_OK) {
            cr_assert(c.status == UM_ERR_TRUNCATED || c.status == UM_ERR_FORMAT, "%zu: %d", n,
                      c.status);
            cr_assert_neq(c.error[0], '\0');
            cr_assert_null(strchr(c.error, '\n'));
        } else {
            cr_assert_gt(done, 0);
        }
        um_collected_free(&c);
    }
}

Test(import_nvprof_text, a_row_that_cannot_be_read_is_counted_and_skipped)
{
    static const char log[] = BANNER RESULT HEADER ROW
        "1.5000ms  1.0000us\n"
        "1.6000ms  1.0000us    V100        -       -  many            0x7f0000000  "
        "[Unified Memory GPU page faults]\n" ROW "\n";
    um_collected_t c;

    import_text(&c, log, sizeof log - 1);
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 2);
    cr_expect_geq(um_collected_count(&c, UM_EV_LOSS), 1);
    um_collected_free(&c);
}

Test(import_nvprof_text, carriage_returns_and_endless_lines_do_no_harm)
{
    size_t n = 3 << 20;
    char *log = malloc(n + 1024);
    um_collected_t c;

    cr_assert_not_null(log);
    n = (size_t)sprintf(log, "%s", BANNER);
    memset(log + n, 'x', 3 << 20);
    n += 3 << 20;
    n += (size_t)sprintf(log + n, "\r\n%s%s%s", RESULT, HEADER,
                         MOVED("3.0000ms", "   1.000000MB", "0x7f0020000"));
    import_text(&c, log, n);
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 1);
    um_collected_free(&c);
    free(log);
}

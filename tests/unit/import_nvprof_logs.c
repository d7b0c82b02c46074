/* The real V100 logs: everything that was imported against figures that grep and awk take from the log. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import_collect.h"

static const char *const logs[] = {"v100-hotspot-512.log", "v100-gaussian-96.log",
                                   "v100-bfs-65536.log", "v100-power9-hotspot-256.log"};
enum { LOGS = sizeof logs / sizeof logs[0] };

static char log_path[4096];

static void import_log(um_collected_t *c, const char *name)
{
    const char *srcdir = getenv("UM_SRCDIR");

    snprintf(log_path, sizeof log_path, "%s/../shared/data/nvprof/%s", srcdir ? srcdir : ".", name);
    if (access(log_path, R_OK) != 0)
        cr_skip_test("no ../shared/data/nvprof/%s here", name);
    um_collect(c, log_path);
    cr_assert_eq(c->status, UM_OK, "%s", c->error);
    cr_assert(um_collected_ordered(c));
}

/* First number that a shell command prints; $LOG is the log. */
static double shell(const char *command)
{
    double value = -1;
    FILE *pipe;

    setenv("LOG", log_path, 1);
    pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    cr_assert_eq(fscanf(pipe, "%lf", &value), 1, "%s printed no number", command);
    pclose(pipe);
    return value;
}

#define FOR_EACH_LOG(c)                                                                            \
    for (size_t log_i = 0; log_i < LOGS; log_i++, um_collected_free(c))                            \
        if (import_log(c, logs[log_i]), true)

Test(import_nvprof_logs, every_row_becomes_one_event_of_its_kind)
{
    static const struct {
        um_event_type_t type;
        const char *rows; /* lines of the log, by grep */
    } kinds[] = {
        {UM_EV_CPU_FAULT, "grep -c 'Unified Memory CPU page faults' \"$LOG\""},
        {UM_EV_GPU_FAULT, "grep -c 'Unified Memory GPU page faults' \"$LOG\""},
        {UM_EV_MIGRATE, "grep -c 'Unified Memory Memcpy' \"$LOG\""},
        {UM_EV_THRASH, "grep -c 'Unified Memory page thrash' \"$LOG\""},
        {UM_EV_THROTTLE, "grep -c 'Unified Memory page throttle' \"$LOG\""},
        {UM_EV_COPY, "grep -c 'CUDA memcpy' \"$LOG\""},
        {UM_EV_SET, "grep -c 'CUDA memset' \"$LOG\""},
        {UM_EV_KERNEL_EXEC, "grep -c ') \\[[0-9]*\\]$' \"$LOG\""},
        {UM_EV_KERNEL,
         "grep ') \\[[0-9]*\\]$' \"$LOG\" | sed 's/.*  //; s/ \\[.*//' | sort -u | wc -l"},
        {UM_EV_REMOTE_MAP, "grep -c 'remote map' \"$LOG\""},
        {UM_EV_LOSS, "echo 0"},
    };
    um_collected_t c;

    FOR_EACH_LOG(&c)
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        cr_expect_eq(um_collected_count(&c, kinds[i].type), (size_t)shell(kinds[i].rows), "%s: %s",
                     logs[log_i], kinds[i].rows);
}

static double bytes(const um_collected_t *c, bool to_device)
{
    double sum = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->event[i].type == UM_EV_MIGRATE &&
            (c->event[i].u.migrate.src == UM_DEVICE_HOST) == to_device)
            sum += (double)c->event[i].u.migrate.bytes;
    return sum;
}

Test(import_nvprof_logs, bytes_by_direction_are_the_logs)
{
    /* Sum over the rows of the size cell, three fields before the end: "64.000000KB 0x... [Unified". */
#define SUM(way)                                                                                   \
    "awk '/Unified Memory Memcpy " way "/ { for (i = 1; i < NF; i++) if ($i ~ /^0x/) {"            \
    " s = $(i - 1); v = s + 0; if (s ~ /KB/) v *= 1024; else if (s ~ /MB/) v *= 1048576;"          \
    " t += v } } END { printf \"%.0f\\n\", t }' \"$LOG\""
    um_collected_t c;

    FOR_EACH_LOG(&c)
    {
        cr_expect_float_eq(bytes(&c, true), shell(SUM("HtoD")), 0.5, "%s", logs[log_i]);
        cr_expect_float_eq(bytes(&c, false), shell(SUM("DtoH")), 0.5, "%s", logs[log_i]);
    }
}

Test(import_nvprof_logs, durations_fault_groups_and_counters_add_up)
{
#define DURATION(name)                                                                             \
    "awk '/" name "/ { v = $2 + 0; if ($2 ~ /ms$/) v *= 1e6; else if ($2 ~ /us$/) v *= 1e3;"       \
    " t += v } END { printf \"%.0f\\n\", t }' \"$LOG\""
    um_collected_t c;

    FOR_EACH_LOG(&c)
    {
        double groups = 0, stalled = 0, kernels = 0;

        for (size_t i = 0; i < c.n; i++) {
            const um_event_t *e = &c.event[i];

            if (e->type == UM_EV_GPU_FAULT) {
                groups += e->u.gpu_fault.groups;
                stalled += (double)e->u.gpu_fault.duration_ns;
                cr_expect_eq(e->u.gpu_fault.device, 0);
            } else if (e->type == UM_EV_KERNEL_EXEC) {
                kernels += (double)e->u.kernel_exec.duration_ns;
            }
        }
        cr_expect_eq(groups, shell("awk '/GPU page faults/ { for (i = 1; i < NF; i++)"
                                   " if ($i ~ /^0x/) t += $(i - 1) } END { print t }' \"$LOG\""));
        cr_expect_float_eq(stalled, shell(DURATION("GPU page faults")), 1);
        cr_expect_float_eq(kernels, shell(DURATION("\\) \\[[0-9]+\\]$")), 1);
    }
}

Test(import_nvprof_logs, array_ranges_become_labelled_regions)
{
    um_collected_t c;

    FOR_EACH_LOG(&c)
    {
        cr_expect_eq(um_collected_count(&c, UM_EV_REGION_ALLOC),
                     (size_t)shell("grep -c 'in api range' \"$LOG\""));
        cr_expect_eq(um_collected_count(&c, UM_EV_REGION_LABEL),
                     um_collected_count(&c, UM_EV_REGION_ALLOC));
        for (size_t i = 0; i < um_collected_count(&c, UM_EV_REGION_ALLOC); i++) {
            const um_ev_region_alloc_t *a =
                &um_collected_at(&c, UM_EV_REGION_ALLOC, i)->u.region_alloc;
            char command[256];

            cr_expect_eq(a->family, UM_FAMILY_MANAGED);
            snprintf(command, sizeof command, "grep -c 'range: 0x%llx 0x%llx$' \"$LOG\"",
                     (unsigned long long)a->addr, (unsigned long long)(a->addr + a->bytes));
            cr_expect_eq(shell(command), 1);
            cr_expect_eq(um_collected_at(&c, UM_EV_REGION_LABEL, i)->u.region_label.region,
                         a->region);
        }
    }
}

Test(import_nvprof_logs, arrays_are_named_as_the_program_names_them)
{
    static const char *const names[LOGS][6] = {
        {"FilesavingTemp", "FilesavingPower", "data 3"},
        {"a", "b", "m"},
        {"h_graph_nodes", "h_graph_mask", "h_updating_graph_mask", "h_graph_visited",
         "h_graph_edges"},
        {"FilesavingTemp", "FilesavingPower", "data 3"},
    };
    um_collected_t c;

    FOR_EACH_LOG(&c)
    for (size_t i = 0; names[log_i][i] != NULL; i++)
        cr_expect_str_eq(um_collected_at(&c, UM_EV_REGION_LABEL, i)->u.region_label.label,
                         names[log_i][i]);
}

Test(import_nvprof_logs, every_unified_row_inside_an_array_names_its_region)
{
    um_collected_t c;

    FOR_EACH_LOG(&c)
    for (size_t i = 0; i < c.n; i++) {
        uint64_t addr = 0;
        uint32_t region = 0;
        const um_event_t *e = &c.event[i];

        if (e->type == UM_EV_MIGRATE)
            addr = e->u.migrate.addr, region = e->u.migrate.region;
        else if (e->type == UM_EV_CPU_FAULT)
            addr = e->u.cpu_fault.addr, region = e->u.cpu_fault.region;
        else if (e->type == UM_EV_GPU_FAULT)
            addr = e->u.gpu_fault.addr, region = e->u.gpu_fault.region;
        else
            continue;
        cr_assert_neq(addr, 0);
        for (size_t k = 0; k < um_collected_count(&c, UM_EV_REGION_ALLOC); k++) {
            const um_ev_region_alloc_t *a =
                &um_collected_at(&c, UM_EV_REGION_ALLOC, k)->u.region_alloc;

            if (addr >= a->addr && addr < a->addr + a->bytes)
                cr_expect_eq(region, a->region, "%s: 0x%llx", logs[log_i],
                             (unsigned long long)addr);
        }
    }
}

Test(import_nvprof_logs, hotspot_thrashes_between_the_cpu_and_device_0)
{
    um_collected_t c;

    import_log(&c, logs[0]);
    for (size_t i = 0; i < 16; i++) {
        const um_ev_thrash_t *t = &um_collected_at(&c, UM_EV_THRASH, i)->u.thrash;

        cr_expect_eq(t->processors, UINT64_C(1) << 63 | 1);
        cr_expect_eq(t->bytes, 4096);
        cr_expect_eq(t->region, 3);
    }
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 0)->u.throttle.duration_ns, 461730);
    cr_expect_eq(um_collected_at(&c, UM_EV_THROTTLE, 0)->u.throttle.device, 0);
    cr_expect_eq(um_collected_at(&c, UM_EV_CPU_FAULT, 0)->u.cpu_fault.pc, 0x57cd80a8);
    cr_expect_eq(um_collected_at(&c, UM_EV_MIGRATE, 0)->u.migrate.cause, UM_CAUSE_UNKNOWN);
    um_collected_free(&c);
}

Test(import_nvprof_logs, bfs_copies_keep_their_memory_kinds)
{
    um_collected_t c;
    const um_ev_copy_t *copy;

    import_log(&c, logs[2]);
    copy = &um_collected_at(&c, UM_EV_COPY, 0)->u.copy;
    cr_expect_eq(copy->bytes, 1536 * 1024);
    cr_expect_eq(copy->src_memory, UM_MEMORY_PAGEABLE);
    cr_expect_eq(copy->dst_memory, UM_MEMORY_DEVICE);
    copy = &um_collected_at(&c, UM_EV_COPY, 1)->u.copy;
    cr_expect_eq(copy->bytes, 256 * 1024);
    cr_expect_eq(copy->dst_memory, UM_MEMORY_MANAGED);
    copy = &um_collected_at(&c, UM_EV_COPY, 3)->u.copy;
    cr_expect_eq(copy->bytes, 1);
    cr_expect_eq(copy->src_memory, UM_MEMORY_DEVICE);
    cr_expect_eq(copy->dst_memory, UM_MEMORY_PAGEABLE);
    um_collected_free(&c);
}

Test(import_nvprof_logs, facts_say_what_the_log_says)
{
    um_collected_t c;

    import_log(&c, logs[3]);
    cr_expect_str_neq(um_collected_fact(&c, "umrt.version"), "");
    cr_expect_str_eq(um_collected_fact(&c, "import.kind"), "nvprof text");
    cr_expect_str_eq(um_collected_fact(&c, "import.file"), logs[3]);
    cr_expect_str_eq(um_collected_fact(&c, "process.pid"), "79029");
    cr_expect(strncmp(um_collected_fact(&c, "process.command"),
                      "./lassen-executable/hotspot_11 256 ", 35) == 0);
    cr_expect_str_eq(um_collected_fact(&c, "um.tracing"), "on");
    cr_expect_str_eq(um_collected_option(&c, "nvprof.unified-memory-profiling"), "on");
    cr_expect_eq(um_collected_count(&c, UM_EV_DEVICE), 1);
    cr_expect_str_eq(um_collected_at(&c, UM_EV_DEVICE, 0)->u.device.name, "Tesla V100-SXM2");
    cr_expect_str_eq(
        um_collected_at(&c, UM_EV_KERNEL, 0)->u.kernel.name,
        "calculate_temp(int, float*, float*, float*, int, int, int, int, float, float, "
        "float, float, float, float)");
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.grid[1], 22);
    cr_expect_eq(um_collected_at(&c, UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.correlation, 419);
    um_collected_free(&c);
}

Test(import_nvprof_logs, rows_keep_the_order_of_the_log)
{
    um_collected_t c;

    FOR_EACH_LOG(&c)
    {
        /* Addresses of the unified-memory rows, in order, as one hash on each side. */
        uint64_t sum = 0, n = 0;

        for (size_t i = 0; i < c.n; i++) {
            const um_event_t *e = &c.event[i];
            uint64_t addr = e->type == UM_EV_MIGRATE     ? e->u.migrate.addr
                            : e->type == UM_EV_CPU_FAULT ? e->u.cpu_fault.addr
                            : e->type == UM_EV_GPU_FAULT ? e->u.gpu_fault.addr
                                                         : 0;
            if (addr != 0)
                sum = (sum + ++n * (addr / 4096 % 65536)) % 1000003;
        }
        cr_expect_eq((double)sum,
                     shell("grep -E 'page faults]|Unified Memory Memcpy' \"$LOG\" |"
                           " grep -o ' 0x[0-9a-f]*  \\[' | tr -d ' [' | while read -r a; do"
                           " n=$((n + 1)); s=$(((s + n * (a / 4096 % 65536)) % 1000003));"
                           " echo $s; done | tail -1"),
                     "%s", logs[log_i]);
    }
}

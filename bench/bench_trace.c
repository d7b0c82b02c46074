/*
 * bench_trace - what .umt traces cost: bytes an event, events a second, memory of a large one.
 *
 *   bench_trace            the table, on the fault storm of storm.h
 *   bench_trace --big GB   writes a trace of that size, reads it in both orders, deletes it
 *   bench_trace --make N FILE   writes a trace of so many million events, of a program with 16 regions,
 *                               for `umrt report` to be measured on
 *
 * Rates are for one core: events by processor time of all threads. Files go to $TMPDIR or /tmp.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "storm.h"
#include "um_trace.h"

static char path[256];

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what, um_status_t status)
{
    fprintf(stderr, "bench_trace: %s: %s\n", what, um_status_string(status));
    unlink(path);
    exit(1);
}

typedef struct figures {
    uint64_t events, bytes;
    double cpu_s, wall_s;
    long rss_kib;
} figures_t;

/* VmHWM, not getrusage: that one remembers what the process was before exec. */
static long peak_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        sscanf(line, "VmHWM: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

/* Puts events over and over, with time going on, until there are n or the file has so many bytes. */
static figures_t write_trace(const storm_t *storm, uint64_t n, uint64_t bytes, uint64_t noise)
{
    um_trace_writer_t *writer;
    um_trace_write_stats_t stats = {0};
    figures_t f = {0};
    f.cpu_s = -seconds(CLOCK_PROCESS_CPUTIME_ID);
    f.wall_s = -seconds(CLOCK_MONOTONIC);
    um_status_t status = um_trace_writer_open(path, NULL, 0, NULL, &writer);
    if (status != UM_OK)
        die(path, status);
    uint64_t random = 88172645463325252ull;
    for (uint64_t round = 0; f.events < n && stats.bytes < bytes; round++) {
        for (size_t i = 0; i < storm->n && f.events < n; i++, f.events++) {
            um_event_t event = storm->events[i];
            event.time_ns += round * storm->now_ns;
            if (noise && event.type == UM_EV_MIGRATE) { /* nothing to compress */
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                event.u.migrate.addr ^= random & noise;
                event.u.migrate.duration_ns ^= random >> 8 & noise;
            }
            status = um_trace_writer_put(writer, &event);
            if (status != UM_OK)
                die("put", status);
        }
        um_trace_writer_stats(writer, &stats);
    }
    status = um_trace_writer_flush(writer);
    status = um_trace_writer_close(writer);
    if (status != UM_OK)
        die("close", status);
    f.cpu_s += seconds(CLOCK_PROCESS_CPUTIME_ID);
    f.wall_s += seconds(CLOCK_MONOTONIC);
    return f;
}

static figures_t read_trace(um_trace_order_t order)
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    char error[512] = "";
    figures_t f = {0};
    uint64_t sum = 0, last = 0;
    f.cpu_s = -seconds(CLOCK_PROCESS_CPUTIME_ID);
    f.wall_s = -seconds(CLOCK_MONOTONIC);
    um_status_t status = um_trace_reader_open(path, order, &reader, error, sizeof(error));
    if (status != UM_OK)
        die(error, status);
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        sum += event->u.migrate.addr;
        if (order == UM_TRACE_TIME_ORDER && event->time_ns < last)
            die("events out of order", UM_ERR_FORMAT);
        last = event->time_ns;
        f.events++;
    }
    if (status != UM_ERR_NOT_FOUND || sum == 0)
        die(um_trace_reader_error(reader), status);
    f.bytes = um_trace_reader_info(reader)->file_bytes;
    um_trace_reader_close(reader);
    f.cpu_s += seconds(CLOCK_PROCESS_CPUTIME_ID);
    f.wall_s += seconds(CLOCK_MONOTONIC);
    f.rss_kib = peak_kib();
    return f;
}

/* Runs a reading in a process of its own, so that its peak memory is its own. */
static figures_t read_apart(um_trace_order_t order)
{
    int ends[2];
    figures_t f = {0};
    if (pipe(ends) != 0)
        die("pipe", UM_ERR_IO);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "bench_trace", "--read", path,
              order == UM_TRACE_TIME_ORDER ? "time" : "file", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    bool whole = read(ends[0], &f, sizeof(f)) == (ssize_t)sizeof(f);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    if (!whole)
        die("reading in a child", UM_ERR_IO);
    return f;
}

static void print_reading(const char *what, const figures_t *f)
{
    printf("%-24s %6.1f M events/s   %5.1f s   peak memory %ld MiB\n", what,
           (double)f->events / f->cpu_s / 1e6, f->wall_s, f->rss_kib / 1024);
}

static void bench(const storm_t *storm, uint64_t n, uint64_t bytes, uint64_t noise)
{
    figures_t w = write_trace(storm, n, bytes, noise);
    figures_t in_file = read_apart(UM_TRACE_FILE_ORDER);
    figures_t in_time = read_apart(UM_TRACE_TIME_ORDER);
    printf("%-24s %6.1f M, %.1f MB\n", "events", (double)w.events / 1e6,
           (double)in_file.bytes / 1e6);
    printf("%-24s %6.2f\n", "bytes an event", (double)in_file.bytes / (double)w.events);
    printf("%-24s %6.1f M events/s   %5.1f s\n", "write", (double)w.events / w.cpu_s / 1e6,
           w.wall_s);
    print_reading("read, file order", &in_file);
    print_reading("read, time order", &in_time);
    unlink(path);
}

/* ---- a trace to keep ---- */

static void put(um_trace_writer_t *writer, const um_event_t *event)
{
    um_status_t status = um_trace_writer_put(writer, event);

    if (status != UM_OK)
        die("put", status);
}

#define REGIONS 16u

static uint64_t region_base(uint32_t region)
{
    return 0x7f1200000000 + ((uint64_t)region << 31);
}

static void put_definitions(um_trace_writer_t *writer)
{
    for (uint32_t r = 1; r <= REGIONS; r++) {
        um_event_t site = {.type = UM_EV_CALL_SITE, .time_ns = 1};
        um_event_t alloc = {.type = UM_EV_REGION_ALLOC, .time_ns = 1};
        um_event_t kernel = {.type = UM_EV_KERNEL, .time_ns = 1};
        char text[64];

        snprintf(text, sizeof(text), "app+0x%x", 0x1000 + r * 16);
        site.u.call_site = (um_ev_call_site_t){.call_site = r, .frames = text};
        put(writer, &site);
        alloc.u.region_alloc = (um_ev_region_alloc_t){.region = r,
                                                      .family = UM_FAMILY_MANAGED,
                                                      .addr = region_base(r),
                                                      .bytes = UINT64_C(1) << 30,
                                                      .device = UM_DEVICE_NONE,
                                                      .call_site = r};
        put(writer, &alloc);
        snprintf(text, sizeof(text), "_Z7sweep%02uPfm", r);
        kernel.u.kernel = (um_ev_kernel_t){.kernel = r, .name = text};
        put(writer, &kernel);
    }
}

static void put_launch(um_trace_writer_t *writer, uint32_t region, uint32_t correlation,
                       uint64_t start_ns, uint64_t end_ns)
{
    const um_arg_t arg = {.region = region};
    um_event_t launch = {.type = UM_EV_LAUNCH, .time_ns = start_ns};
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC, .time_ns = start_ns};

    launch.u.launch = (um_ev_launch_t){.correlation = correlation,
                                       .kernel = region,
                                       .grid = {1024, 1, 1},
                                       .block = {256, 1, 1},
                                       .n_args = 1,
                                       .args = &arg};
    put(writer, &launch);
    exec.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = correlation,
                                               .kernel = region,
                                               .duration_ns = end_ns - start_ns,
                                               .grid = {1024, 1, 1},
                                               .block = {256, 1, 1}};
    put(writer, &exec);
}

static void make_trace(storm_t *storm, uint64_t events, const char *file)
{
    um_trace_writer_t *writer;
    um_status_t status = um_trace_writer_open(file, NULL, 0, NULL, &writer);
    uint64_t n = 0, base_ns = 10;

    if (status != UM_OK)
        die(file, status);
    put_definitions(writer);
    for (uint32_t correlation = 1; n < events; correlation++) {
        uint32_t region = 1 + correlation % REGIONS;

        put_launch(writer, region, correlation, base_ns, base_ns + storm->now_ns / 2);
        for (size_t i = 0; i < storm->n && n < events; i++, n++) {
            um_event_t event = storm->events[i];
            uint64_t move = region_base(region) - storm->base;

            event.time_ns += base_ns;
            if (event.type == UM_EV_MIGRATE) {
                event.u.migrate.addr += move;
                event.u.migrate.region = region;
            } else if (event.type == UM_EV_GPU_FAULT) {
                event.u.gpu_fault.addr += move;
                event.u.gpu_fault.region = region;
            } else if (event.type == UM_EV_CPU_FAULT) {
                event.u.cpu_fault.addr += move;
                event.u.cpu_fault.region = region;
            }
            put(writer, &event);
        }
        base_ns += storm->now_ns;
    }
    if ((status = um_trace_writer_close(writer)) != UM_OK)
        die(file, status);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--read")) { /* the child of read_apart */
        snprintf(path, sizeof(path), "%s", argv[2]);
        figures_t f =
            read_trace(!strcmp(argv[3], "time") ? UM_TRACE_TIME_ORDER : UM_TRACE_FILE_ORDER);
        return write(STDOUT_FILENO, &f, sizeof(f)) != (ssize_t)sizeof(f);
    }

    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/bench_trace.%d.umt", directory ? directory : "/tmp",
             (int)getpid());
    storm_t storm = {.random = 20240607, .now_ns = 1, .base = 0x7f1200000000, .region = 3};
    storm_add(&storm);
    if (argc == 4 && !strcmp(argv[1], "--make")) {
        make_trace(&storm, (uint64_t)(atof(argv[2]) * 1e6), argv[3]);
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "--big")) {
        bench(&storm, UINT64_MAX, (uint64_t)(atof(argv[2]) * 1e9), UINT64_MAX);
        return 0;
    }
    printf("one storm: ");
    uint64_t counts[3] = {0};
    for (size_t i = 0; i < storm.n; i++) {
        const um_event_t *e = &storm.events[i];
        if (e->type == UM_EV_MIGRATE)
            counts[e->u.migrate.dst == UM_DEVICE_HOST]++;
        counts[2] += e->type == UM_EV_GPU_FAULT;
    }
    printf("%" PRIu64 " HtoD, %" PRIu64 " GPU faults, %" PRIu64 " DtoH, %zu events\n", counts[0],
           counts[2], counts[1], storm.n);
    write_trace(&storm, storm.n, UINT64_MAX, 0);
    figures_t one = read_apart(UM_TRACE_FILE_ORDER);
    printf("one storm: %.2f bytes an event, file headers included\n",
           (double)one.bytes / (double)one.events);
    for (int i = 1; i < 8; i++)
        storm_add(&storm);
    bench(&storm, 20000000, UINT64_MAX, 0);
    return 0;
}

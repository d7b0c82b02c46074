/*
 * How fast the simulator is, and how that grows: page accesses a second, a footprint of 1 TiB, cost over
 * three decades, two cores against one. `bench_sim FILE.svg` also draws the third.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/gen.h"
#include "sim/sim.h"
#include "sim/sweep.h"

#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)

static um_machine_t machine;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(um_status_t status, const char *what)
{
    if (status) {
        fprintf(stderr, "bench_sim: %s: %s\n", what, um_status_string(status));
        exit(1);
    }
}

static um_sim_result_t simulate(const um_workload_t *w, const char *policy)
{
    const um_sim_config_t config = {.workload = w,
                                    .machine = &machine,
                                    .policy = um_policy_find(policy)};
    um_sim_result_t result;
    char error[256];

    need(um_sim_run(&config, &result, error, sizeof(error)), policy);
    return result;
}

/* ---- page accesses a second ---------------------------------------------------------------------- */

static void speed(void)
{
    static const char *const patterns[] = {"stream", "stencil",   "sweep", "pipeline",
                                           "decode", "ping-pong", "gather"};
    static const char *const policies[] = {"driver", "umrt"};

    printf("page accesses a second, one core, defaults of umrt gen\n");
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        um_workload_t *w;

        need(um_gen_workload(patterns[i], NULL, &w), patterns[i]);
        printf("  %-10s", patterns[i]);
        for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
            double best = 1e9, start;
            uint64_t touches = 0;

            for (int round = 0; round < 3; round++) {
                start = now_s();
                touches = simulate(w, policies[p]).touches;
                start = now_s() - start;
                best = start < best ? start : best;
            }
            printf("   %s %7.1f M (%.3f s)", policies[p], (double)touches / best * 1e-6, best);
        }
        printf("\n");
        um_workload_free(w);
    }
}

/* ---- many launches over a large footprint --------------------------------------------------------- */

/* The CPU never touches it; each launch goes over the next piece of 1/100,000 TiB, reads and writes it, and
 * every tenth looks at one that may have been evicted since. */
static um_workload_t *long_run(uint32_t launches)
{
    const uint64_t addr = (uint64_t)0x700000000000,
                   piece = TIB / 100000 / UM_PAGE_BYTES * UM_PAGE_BYTES;
    um_workload_builder_t *builder;
    um_workload_t *w;
    char error[256];
    um_event_t event = {.type = UM_EV_REGION_ALLOC, .tid = 1};

    need(um_workload_builder_new(UM_WORKLOAD_GENERATED, "long run", &builder), "builder");
    event.u.region_alloc = (um_ev_region_alloc_t){.region = 1,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = addr,
                                                  .bytes = launches * piece,
                                                  .device = UM_DEVICE_NONE};
    need(um_workload_builder_step(builder, &event, 0, 0), "alloc");
    for (uint32_t i = 0; i < launches; i++) {
        um_arg_t arg = {.region = 1, .region_offset_bytes = i * piece};
        um_touch_t touch = {.addr = addr + i * piece, .bytes = piece, .region = 1};

        event = (um_event_t){.type = UM_EV_LAUNCH, .tid = 1, .time_ns = i};
        event.u.launch = (um_ev_launch_t){
            .correlation = i + 1, .kernel = 1, .context = 1, .n_args = 1, .args = &arg};
        need(um_workload_builder_step(builder, &event, 5000, 20000), "launch");
        touch.kind = UM_ACCESS_READ;
        need(um_workload_builder_touch(builder, &touch), "touch");
        touch.kind = UM_ACCESS_WRITE;
        touch.beside = 1;
        need(um_workload_builder_touch(builder, &touch), "touch");
        if (i % 10 == 9) {
            touch.addr = addr + i / 2 * piece;
            touch.kind = UM_ACCESS_READ;
            touch.beside = 0;
            need(um_workload_builder_touch(builder, &touch), "touch");
        }
    }
    need(um_workload_builder_finish(builder, &w, error, sizeof(error)), error);
    return w;
}

typedef struct measured {
    double build_s, simulate_s, bounds_s, mib;
    uint64_t touches;
} measured_t;

/* In a process of its own, so that its memory is its own. */
static measured_t measure_long_run(uint32_t launches)
{
    measured_t m = {0};
    struct rusage usage;
    int ends[2];
    pid_t pid;

    if (pipe(ends) != 0 || (pid = fork()) < 0)
        exit(1);
    if (pid == 0) {
        double start = cpu_s();
        um_workload_t *w = long_run(launches);
        um_bounds_t bounds;

        m.build_s = cpu_s() - start;
        start = cpu_s();
        m.touches = simulate(w, "driver").touches;
        m.simulate_s = cpu_s() - start;
        start = cpu_s();
        need(um_bounds_find(w, &machine, 0, 0, &bounds), "bounds");
        m.bounds_s = cpu_s() - start;
        getrusage(RUSAGE_SELF, &usage);
        m.mib = (double)usage.ru_maxrss / 1024;
        _exit(write(ends[1], &m, sizeof(m)) != sizeof(m));
    }
    close(ends[1]);
    if (read(ends[0], &m, sizeof(m)) != sizeof(m))
        exit(1);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return m;
}

static void plot(const char *path, const uint32_t *launches, const measured_t *m, size_t n)
{
    FILE *out = fopen(path, "w");
    double top = log10(m[n - 1].simulate_s + m[n - 1].bounds_s), left = log10(launches[0]);

    if (!out) {
        perror(path);
        exit(1);
    }
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 420 320\" "
          "font-family=\"sans-serif\" "
          "font-size=\"11\">\n<rect width=\"420\" height=\"320\" fill=\"#fff\"/>\n"
          "<text x=\"60\" y=\"20\">time of a replay by launches (both logarithmic; the line is of "
          "slope "
          "1)</text>\n",
          out);
    fputs("<line x1=\"60\" y1=\"290\" x2=\"400\" y2=\"40\" stroke=\"#bbb\"/>\n", out);
    for (size_t i = 0; i < n; i++) {
        double s = m[i].simulate_s + m[i].bounds_s;
        double x = 60 + (log10(launches[i]) - left) / 3 * 340;
        double y = 40 + (top - log10(s)) / 3 * 250;

        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#2a6fb0\"/>\n"
                "<text x=\"%.1f\" y=\"%.1f\">%" PRIu32 ": %.3g s</text>\n",
                x, y, x - (i == n - 1 ? 90 : -8), y + 12, launches[i], s);
    }
    fputs("</svg>\n", out);
    if (fclose(out) != 0)
        exit(1);
}

static void growth(const char *svg)
{
    static const uint32_t launches[] = {100, 300, 1000, 3000, 10000, 30000, 100000};
    measured_t m[sizeof(launches) / sizeof(launches[0])];
    size_t n = sizeof(launches) / sizeof(launches[0]);
    double slope;

    printf(
        "launches over 10.5 MiB more each, at the end 1 TiB; driver, bounds included; CPU time\n");
    for (size_t i = 0; i < n; i++) {
        m[i] = measure_long_run(launches[i]);
        printf("  %6" PRIu32 ": %8.3f s to simulate, %7.3f s for the bounds, %6.1f M page accesses "
               "a second, %6.1f MiB at most\n",
               launches[i], m[i].simulate_s, m[i].bounds_s,
               (double)m[i].touches / m[i].simulate_s * 1e-6, m[i].mib);
        fflush(stdout);
    }
    slope =
        log10((m[n - 1].simulate_s + m[n - 1].bounds_s) / (m[0].simulate_s + m[0].bounds_s)) / 3;
    printf("  grows as launches to the power of %.2f over three decades\n", slope);
    if (svg)
        plot(svg, launches, m, n);
}

/* ---- two cores ----------------------------------------------------------------------------------- */

typedef struct spent {
    double wall_s, cpu_s;
} spent_t;

/* The best of seven: other programs may be on these cores. */
static spent_t sweep_with(um_sweep_t *sweep, uint32_t threads)
{
    const um_sweep_options_t options = {.threads = threads, .size = 1};
    spent_t best = {1e9, 1e9};

    for (int round = 0; round < 7; round++) {
        double wall = now_s(), cpu = cpu_s();

        need(um_sweep_run(sweep, &options), "sweep");
        wall = now_s() - wall;
        cpu = cpu_s() - cpu;
        um_sweep_fini(sweep);
        best.wall_s = wall < best.wall_s ? wall : best.wall_s;
        best.cpu_s = cpu < best.cpu_s ? cpu : best.cpu_s;
    }
    return best;
}

static void cores(void)
{
    static const um_policy_t *policies[4];
    static const um_capacity_t capacity = {.kind = UM_CAPACITY_PERCENT, .value = 50};
    um_sweep_group_t groups[8];
    um_sweep_t sweep = {groups, 8, policies, 4, NULL};
    spent_t one, two;
    um_workload_t *w;

    need(um_gen_workload("stencil", NULL, &w), "stencil");
    policies[0] = um_policy_find("none");
    policies[1] = um_policy_find("driver");
    policies[2] = um_policy_find("umrt");
    policies[3] = um_policy_find("first_touch");
    for (size_t g = 0; g < 8; g++)
        groups[g] = (um_sweep_group_t){.workload = w,
                                       .machine = &machine,
                                       .capacity = &capacity,
                                       .gpu_bytes = um_capacity_bytes(&capacity, w, &machine)};
    one = sweep_with(&sweep, 1);
    two = sweep_with(&sweep, 2);
    printf(
        "a sweep of %zu jobs: %.2f s on one core, %.2f s on two: %.0f %% efficiency; CPU time %.2f "
        "and %.2f s\n",
        um_sweep_jobs(&sweep), one.wall_s, two.wall_s, one.wall_s / two.wall_s / 2 * 100, one.cpu_s,
        two.cpu_s);
    um_workload_free(w);
}

int main(int argc, char **argv)
{
    char error[512];

    need(um_machine_load("h200-pcie5", &machine, error, sizeof(error)), error);
    setvbuf(stdout, NULL, _IOLBF, 0);
    speed();
    growth(argc > 1 ? argv[1] : NULL);
    cores();
    return 0;
}

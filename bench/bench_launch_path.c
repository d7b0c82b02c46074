/*
 * What a launch callback spends in the core: kernel lookup, argument scan, posting an event.
 * Prints nanoseconds of CPU time each, on the calling thread. usage: bench_launch_path
 */
#include "core/bus.h"
#include "core/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N      5000000
#define PARAMS 6

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

#define MEASURE(what, statement)                                                                   \
    do {                                                                                           \
        double um_t0 = cpu_ns();                                                                   \
        for (uint64_t i = 0; i < N; i++)                                                           \
            statement;                                                                             \
        printf("%-52s %6.1f ns\n", what, (cpu_ns() - um_t0) / N);                                  \
    } while (0)

static void sink(void *ctx, const um_event_t *event)
{
    (*(uint64_t *)ctx) += event->type;
}

static void add(um_regions_t *regions, uint64_t addr, um_family_t family)
{
    um_region_t region = {.addr = addr, .bytes = 1 << 30, .family = (uint32_t)family};

    if (um_regions_add(regions, &region, NULL, 0, NULL) != UM_OK)
        exit(1);
}

static void bench_bus(void)
{
    uint64_t sum = 0;
    const um_sink_t counting = {.ctx = &sum, .event = sink};
    um_arg_t args[3] = {{0}};
    um_event_t sync = {.type = UM_EV_SYNC};
    um_scalar_t scalars[2] = {{0}};
    um_event_t launch = {
        .type = UM_EV_LAUNCH,
        .u.launch = {.n_args = 3, .args = args, .n_scalars = 2, .scalars = scalars}};
    um_event_t mark = {.type = UM_EV_MARK, .u.mark = {.domain = "umrt", .name = "time step"}};
    um_bus_t *bus;

    if (um_bus_new(1 << 20, 1000, &bus) != UM_OK || um_bus_add_sink(bus, &counting) != UM_OK ||
        um_bus_start(bus) != UM_OK)
        exit(1);
    MEASURE("post: no pointers (waits for room included)", um_bus_post(bus, &sync, false));
    MEASURE("post: a launch with 3 pointers and 2 integers", um_bus_post(bus, &launch, false));
    MEASURE("post: a mark with 2 strings", um_bus_post(bus, &mark, false));
    um_bus_stop(bus);
    printf("posted %llu, lost %llu\n", (unsigned long long)um_bus_posted(bus),
           (unsigned long long)um_bus_lost(bus));
    um_bus_free(bus);
}

int main(void)
{
    const uint64_t base = UINT64_C(0x7f1200000000);
    um_param_t layout[PARAMS];
    uint64_t value[PARAMS];
    void *params[PARAMS];
    um_arg_t args[16];
    um_scalar_t scalars[8];
    um_regions_t *regions;
    um_kernels_t *kernels;
    const um_kernel_t *kernel = NULL;

    for (uint32_t i = 0; i < PARAMS; i++) {
        layout[i] = (um_param_t){.offset_bytes = i * 8, .size_bytes = 8};
        value[i] = base + i * (UINT64_C(1) << 30) + 4096;
        params[i] = &value[i];
    }
    value[4] = 1000; /* four pointers, two integers */
    value[5] = 3;
    if (um_regions_new(&regions) != UM_OK || um_kernels_new(&kernels) != UM_OK)
        return 1;
    for (uint64_t i = 1; i <= 1000; i++)
        um_kernels_define(kernels, i * 64, "_Z4stepPKfPfS0_S1_ii", 1, layout, PARAMS, &kernel);
    MEASURE("find one of 1,000 kernels", kernel = um_kernels_find(kernels, (i % 1000 + 1) * 64));
    MEASURE("6 parameters, no region at all",
            um_kernel_args(kernel, regions, params, NULL, 0, args, 16));
    for (uint32_t i = 0; i < 4; i++)
        add(regions, base + i * (UINT64_C(1) << 30), UM_FAMILY_DEVICE);
    MEASURE("6 parameters, 4 of them pointers into regions",
            um_kernel_args(kernel, regions, params, NULL, 0, args, 16));
    MEASURE("and 2 that may be integers",
            um_kernel_scalars(kernel, params, NULL, 0, args, 4, scalars, 8));
    um_kernels_free(kernels);
    um_regions_free(regions);
    bench_bus();
    return 0;
}

/*
 * What the hint loop costs its own thread for a launch, with the page tables of this process and an
 * executor that does nothing. The program's threads pay none of it.
 * usage: bench_hint_loop [MIB] (default 256; the memory is touched)
 */
#include "exec/hinter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static um_sink_t sink;
static double first_ns;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void post(void *ctx, const um_event_t *event)
{
    (void)ctx;
    if (first_ns == 0)
        first_ns = now_ns();
    sink.event(sink.ctx, event);
}

static void feed(um_event_type_t type, const um_event_t *event)
{
    um_event_t copy = *event;

    copy.type = type;
    copy.time_ns = (uint64_t)now_ns();
    sink.event(sink.ctx, &copy);
}

static double launch(void)
{
    static const um_arg_t arg = {.region = 1};
    um_event_t event = {.u.launch = {.correlation = 1, .context = 1, .n_args = 1, .args = &arg}};
    double t = now_ns();

    first_ns = 0;
    feed(UM_EV_LAUNCH, &event);
    return now_ns() - t;
}

static void leave_wait(void)
{
    um_event_t event = {.u.sync = {.kind = UM_SYNC_DEVICE, .context = 1, .exit = 1}};

    feed(UM_EV_SYNC, &event);
}

static um_hinter_t *new_hinter(um_regions_t *regions, um_pagemap_t *pagemap,
                               um_executor_t *executor)
{
    um_page_tables_t tables;
    um_hinter_config_t config = {.regions = regions,
                                 .executor = executor,
                                 .page_tables = &tables,
                                 .gate = {.piece_bytes = 32u << 20},
                                 .post = post};
    um_hinter_t *hinter;

    um_page_tables_live(pagemap, &tables);
    return um_hinter_new(&config, &hinter) == UM_OK ? hinter : NULL;
}

int main(int argc, char **argv)
{
    enum { LAUNCHES = 20000 };
    uint64_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    um_region_t region = {.id = 1,
                          .family = UM_FAMILY_MANAGED,
                          .addr = (uint64_t)(uintptr_t)memory,
                          .bytes = bytes};
    um_event_t gpu = {.u.device = {.attributes = UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED,
                                   .name = "none",
                                   .uuid = "",
                                   .pci = ""}};
    um_event_t alloc = {.u.region_alloc = {.region = 1,
                                           .family = UM_FAMILY_MANAGED,
                                           .addr = region.addr,
                                           .bytes = bytes}};
    um_executor_t *executor;
    um_regions_t *regions;
    um_pagemap_t *pagemap;
    um_hinter_t *hinter;
    double t;

    if (memory == MAP_FAILED || um_pagemap_open(&pagemap) != UM_OK ||
        um_regions_new(&regions) != UM_OK ||
        um_regions_add(regions, &region, NULL, 0, NULL) != UM_OK ||
        um_executor_null_new(UINT64_MAX / 2, &executor) != UM_OK ||
        !(hinter = new_hinter(regions, pagemap, executor))) {
        fprintf(stderr, "bench_hint_loop: cannot start\n");
        return 1;
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    sink = um_hinter_sink(hinter);
    feed(UM_EV_DEVICE, &gpu);
    feed(UM_EV_REGION_ALLOC, &alloc);
    printf("%s, %llu MiB\n", um_pagemap_method(pagemap), (unsigned long long)(bytes >> 20));
    t = launch();
    printf("%-52s %9.1f us\n", "launch on memory nobody has touched", t * 1e-3);
    t = now_ns();
    for (int i = 0; i < LAUNCHES; i++)
        launch();
    printf("%-52s %9.3f us\n", "launch, no wait before it", (now_ns() - t) / LAUNCHES * 1e-3);
    t = now_ns();
    for (int i = 0; i < LAUNCHES; i++) {
        leave_wait();
        launch();
    }
    printf("%-52s %9.3f us\n", "launch after a wait, nothing moves (mean)",
           (now_ns() - t) / LAUNCHES * 1e-3);
    memset(memory, 1, bytes);
    leave_wait();
    t = now_ns();
    printf("%-52s %9.1f us\n", "launch after the CPU wrote it all", launch() * 1e-3);
    printf("%-52s %9.1f us\n", "  until the first piece is on its way", (first_ns - t) * 1e-3);
    um_hinter_free(hinter);
    executor->ops->free(executor);
    um_regions_free(regions);
    um_pagemap_close(pagemap);
    return 0;
}

/*
 * The driver model alone: page accesses a second on one core, and memory a block. Each line does the
 * question (would it fault?) and the touch, as the engine does. A GiB is 262,144 page accesses.
 * usage: bench_uvm [rounds]
 */
#include "sim/uvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define BASE UINT64_C(0x7f0000000000)
#define GIB  (UINT64_C(1) << 30)

static um_uvm_t *uvm;
static um_uvm_work_t work;
static uint64_t now_ns, accesses;

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double rss_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void start(uint64_t capacity, uint64_t bytes)
{
    um_uvm_config_t config = {.n_gpus = 1, .capacity_bytes = {capacity}};

    um_uvm_params_default(&config.params);
    if (um_uvm_new(&config, &uvm) != UM_OK || um_uvm_alloc(uvm, 1, BASE, bytes) != UM_OK)
        exit(1);
    accesses = 0;
}

static void touch(int32_t who, uint64_t at, uint64_t bytes)
{
    now_ns += 1000000;
    accesses += bytes / UM_PAGE_BYTES;
    if (um_uvm_would_fault(uvm, who, BASE + at, bytes, UM_ACCESS_WRITE))
        work.nap_ns++;
    if (um_uvm_touch(uvm, who, BASE + at, bytes, UM_ACCESS_WRITE, now_ns, &work) != UM_OK)
        exit(1);
}

static void sweep(int32_t who, uint64_t bytes, uint64_t step)
{
    for (uint64_t at = 0; at < bytes; at += step)
        touch(who, at, step);
}

/* Pages in random order, one in `one_in`. */
static void scatter(int32_t who, uint64_t bytes, uint64_t one_in)
{
    uint64_t pages = bytes / UM_PAGE_BYTES, at = 12345;

    for (uint64_t i = 0; i < pages / one_in; i++) {
        at = at * UINT64_C(6364136223846793005) + 1442695040888963407u;
        touch(who, (at >> 32) * pages >> 32 << 12, UM_PAGE_BYTES);
    }
}

static void line(const char *what, double since)
{
    double s = cpu_s() - since;

    printf("%-58s %9.1f M accesses/s\n", what, (double)accesses / s * 1e-6);
    accesses = 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    double t, before;

    start(4 * GIB, GIB);
    t = cpu_s();
    for (int i = 0; i < rounds; i++) {
        sweep(UM_DEVICE_HOST, GIB, UM_BLOCK_BYTES);
        sweep(0, GIB, UM_BLOCK_BYTES);
    }
    line("whole blocks back and forth", t);
    t = cpu_s();
    for (int i = 0; i < 100 * rounds; i++)
        sweep(0, GIB, UM_BLOCK_BYTES);
    line("whole blocks that are there", t);
    t = cpu_s();
    for (int i = 0; i < rounds; i++)
        sweep(0, GIB, UM_PAGE_BYTES);
    line("page by page, there, blocks alike", t);
    sweep(UM_DEVICE_HOST, GIB, UM_BLOCK_BYTES);
    accesses = 0;
    t = cpu_s();
    for (int i = 0; i < rounds; i++) {
        sweep(UM_DEVICE_HOST, GIB, UM_BLOCK_BYTES);
        sweep(0, GIB, UM_PAGE_BYTES);
    }
    line("the CPU by blocks, the GPU page by page", t);
    sweep(UM_DEVICE_HOST, GIB, UM_BLOCK_BYTES);
    accesses = 0;
    t = cpu_s();
    for (int i = 0; i < rounds; i++) {
        sweep(UM_DEVICE_HOST, GIB, UM_BLOCK_BYTES);
        scatter(0, GIB, 64);
    }
    line("the CPU by blocks, the GPU one page in 64 at random", t);
    t = cpu_s();
    for (int i = 0; i < rounds; i++)
        scatter(0, GIB, 1);
    line("one page at a time at random, blocks mixed", t);
    um_uvm_free(uvm);

    start(GIB, 2 * GIB);
    t = cpu_s();
    for (int i = 0; i < rounds; i++)
        sweep(0, 2 * GIB, UM_BLOCK_BYTES);
    line("a cyclic sweep over twice the memory", t);
    um_uvm_free(uvm);

    before = rss_mib();
    start(80 * GIB, 1024 * GIB);
    t = cpu_s();
    sweep(UM_DEVICE_HOST, 1024 * GIB, UM_BLOCK_BYTES);
    sweep(0, 1024 * GIB, UM_BLOCK_BYTES);
    line("a TiB, once by the CPU and once by the GPU", t);
    printf("%-58s %9.1f MiB\n", "memory for a TiB", rss_mib() - before);
    um_uvm_free(uvm);
    return 0;
}

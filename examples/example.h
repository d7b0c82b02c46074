/*
 * example.h - what the small programs share: options, the cap on managed memory, timing.
 *
 * Every program prints results (never times) on stdout, so that two runs can be compared byte for
 * byte; times go to the file named by --times, one line a step: "<phase> <milliseconds>".
 *
 * --hand    also prefetches by hand, as an expert would: what umrt is measured against
 * Built with -DWITH_UMRT the program calls um_runtime_init(NULL) first: the one-line use.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef WITH_UMRT
#include <um_runtime.h>
#endif

/* No program here ever holds more managed memory than this, nor more than a quarter of what the
 * device has free: oversubscribing a real GPU can hang it for everybody. */
#ifndef EXAMPLE_MANAGED_LIMIT
#define EXAMPLE_MANAGED_LIMIT ((size_t)8 << 30)
#endif

struct example {
    size_t bytes; /* --mib */
    int steps;    /* --steps */
    bool hand;
    FILE *times;
    size_t managed; /* live managed bytes */
    size_t limit;   /* of managed */
    int device;
};

static struct example example;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t check_error = (call);                                                          \
        if (check_error != cudaSuccess) {                                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(check_error));                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The context, and how much managed memory there may be in it. */
static inline void example_device(void)
{
    size_t free_bytes, total_bytes;

#ifdef WITH_UMRT
    um_runtime_init(NULL);
#endif
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(0));
    CHECK(cudaGetDevice(&example.device));
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    example.limit = free_bytes / 4 < EXAMPLE_MANAGED_LIMIT ? free_bytes / 4 : EXAMPLE_MANAGED_LIMIT;
}

static inline void example_start(int argc, char **argv, size_t mib, int steps)
{
    example.bytes = mib << 20;
    example.steps = steps;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--hand")) {
            example.hand = true;
        } else if (!strcmp(argv[i], "--mib") && i + 1 < argc) {
            example.bytes = (size_t)strtoull(argv[++i], NULL, 10) << 20;
        } else if (!strcmp(argv[i], "--steps") && i + 1 < argc) {
            example.steps = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--times") && i + 1 < argc) {
            example.times = fopen(argv[++i], "a");
        } else {
            fprintf(stderr, "usage: %s [--mib N] [--steps N] [--hand] [--times FILE]\n", argv[0]);
            exit(2);
        }
    }
    example_device();
}

/* Counts BYTES, or ends the program: no more than the limit is ever held. */
static inline void example_reserve(size_t bytes)
{
    if (bytes > example.limit || example.managed > example.limit - bytes) {
        fprintf(stderr, "refused: %zu MiB more of managed memory is over the limit\n", bytes >> 20);
        exit(2);
    }
    example.managed += bytes;
}

static inline void *example_managed(size_t bytes)
{
    void *p;

    example_reserve(bytes);
    CHECK(cudaMallocManaged(&p, bytes));
    return p;
}

static inline void example_free(void *p, size_t bytes)
{
    CHECK(cudaFree(p));
    example.managed -= bytes;
}

/* Prefetches in 32 MiB calls: one huge call would block the CPU (H200, 2026: 23 ms a GiB). */
static inline void example_prefetch(const void *p, size_t bytes, bool to_host, cudaStream_t stream)
{
#if CUDART_VERSION >= 13000
    struct cudaMemLocation where = {to_host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                    to_host ? 0 : example.device};
#endif
    for (size_t at = 0; at < bytes; at += (size_t)32 << 20) {
        size_t n = bytes - at < ((size_t)32 << 20) ? bytes - at : (size_t)32 << 20;
#if CUDART_VERSION >= 13000
        CHECK(cudaMemPrefetchAsync((const char *)p + at, n, where, 0, stream));
#else
        CHECK(cudaMemPrefetchAsync((const char *)p + at, n,
                                   to_host ? cudaCpuDeviceId : example.device, stream));
#endif
    }
}

static inline double example_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline void example_time(const char *phase, double since_ms)
{
    if (example.times)
        fprintf(example.times, "%s %.4f\n", phase, example_now_ms() - since_ms);
}

static inline int example_end(void)
{
    if (example.times)
        fclose(example.times);
    return 0;
}

#endif

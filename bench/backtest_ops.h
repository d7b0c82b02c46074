/*
 * backtest_ops.h - what single operations do: the kernels, the host's accesses, prefetches and advice,
 * all on the regions of the run that is carried out.
 */
#ifndef BACKTEST_OPS_H
#define BACKTEST_OPS_H

#include "../examples/example.h"

#include <algorithm>
#include <thread>

#include "backtest_run.h"

static std::vector<void *> memory;    /* of the run's regions */
static cudaStream_t streams[STREAMS]; /* made once, at the start */

/* ---- kernels: front to back, one element a thread ---- */

__device__ static float work(float v, int loops)
{
    for (int i = 0; i < loops; i++)
        v = v * 1.0001f + 0.5f;
    return v;
}

__global__ void k_update(float *a, size_t n, int loops)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = work(a[i], loops) + 1.0f;
}

__global__ void k_read(const float *a, size_t n, int loops, float *never)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n && work(a[i], loops) == -12345.0f)
        *never = 1.0f;
}

__global__ void k_write(float *a, size_t n, int loops)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = work((float)i, loops);
}

__global__ void k_copy(const float *a, float *b, size_t n, int loops)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = work(a[i], loops);
}

/* The page that the i-th warp of a gather reads; lib/sim/jobs.c has the same function. */
__device__ static uint64_t gather_page(uint64_t i, uint64_t pages)
{
    uint64_t h = (i + 1) * 0x9E3779B97F4A7C15ull;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull;
    return (h ^ h >> 32) % pages;
}

__global__ void k_gather(const float *a, uint64_t pages, float *never)
{
    if (a[gather_page(blockIdx.x, pages) * (PAGE / sizeof(float)) + threadIdx.x] == -12345.0f)
        *never = 1.0f;
}

static void launch(const op &o)
{
    static float *never;
    float *a = (float *)((char *)memory[o.region] + o.at);
    size_t n = o.bytes / sizeof(float);
    unsigned grid = (unsigned)((n + 255) / 256);
    cudaStream_t s = streams[o.stream];

    if (!never)
        CHECK(cudaMalloc(&never, sizeof(float)));
    if (o.name == "update")
        k_update<<<grid, 256, 0, s>>>(a, n, o.loops);
    else if (o.name == "read")
        k_read<<<grid, 256, 0, s>>>(a, n, o.loops, never);
    else if (o.name == "write")
        k_write<<<grid, 256, 0, s>>>(a, n, o.loops);
    else if (o.name == "copy")
        k_copy<<<grid, 256, 0, s>>>(a, (float *)((char *)memory[o.other] + o.at), n, o.loops);
    else /* gather: 1 % of the pages */
        k_gather<<<(unsigned)(o.bytes / PAGE / 100), 32, 0, s>>>(a, o.bytes / PAGE, never);
    CHECK(cudaGetLastError());
}

/* ---- host side ---- */

static volatile uint64_t host_sum;

static void host_access(bool write, char *start, size_t bytes, size_t step)
{
    uint64_t sum = 0;

    if (write) {
        for (size_t i = 0; i < bytes; i += step)
            *(volatile uint64_t *)(start + i) = i;
    } else {
        for (size_t i = 0; i < bytes; i += step)
            sum += *(volatile uint64_t *)(start + i);
    }
    host_sum += sum;
}

static const int FILLERS = 8;

/* Set-up only: several threads, to save time. */
static void host_fill(char *start, size_t bytes, size_t step)
{
    size_t slice = (bytes / FILLERS + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    std::vector<std::thread> threads;

    for (size_t at = 0; at < bytes; at += slice)
        threads.emplace_back(host_access, true, start + at, std::min(slice, bytes - at), step);
    for (auto &t : threads)
        t.join();
}

static void prefetch(void *p, size_t bytes, int to, cudaStream_t s)
{
#if CUDART_VERSION >= 13000
    struct cudaMemLocation where = {to < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                    to < 0 ? 0 : example.device};
    CHECK(cudaMemPrefetchAsync(p, bytes, where, 0, s));
#else
    CHECK(cudaMemPrefetchAsync(p, bytes, to < 0 ? cudaCpuDeviceId : example.device, s));
#endif
}

static void advise(const op &o)
{
    enum cudaMemoryAdvise advice = o.name == "read_mostly"   ? cudaMemAdviseSetReadMostly
                                   : o.name == "accessed_by" ? cudaMemAdviseSetAccessedBy
                                                             : cudaMemAdviseSetPreferredLocation;
    void *p = (char *)memory[o.region] + o.at;
#if CUDART_VERSION >= 13000
    struct cudaMemLocation where = {o.other < 0 ? cudaMemLocationTypeHost
                                                : cudaMemLocationTypeDevice,
                                    o.other < 0 ? 0 : example.device};
    CHECK(cudaMemAdvise(p, o.bytes, advice, where));
#else
    CHECK(cudaMemAdvise(p, o.bytes, advice, o.other < 0 ? cudaCpuDeviceId : example.device));
#endif
}

#endif

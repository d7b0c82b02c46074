/* Inlined functions, a lambda, library templates around the user's code. */
#include "gpu.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

namespace solver
{
static inline __attribute__((always_inline)) unsigned long long inlined(size_t bytes)
{
    unsigned long long grid = 0;

    cuMemAllocManaged(&grid, bytes, 1); // INLINED
    return grid;
}

template <class T> struct Grid {
    unsigned long long at;

    __attribute__((noinline)) explicit Grid(size_t n) : at(inlined(n * sizeof(T))) // GRID
    {
        asm volatile("" : : : "memory");
    }
};
} // namespace solver

/* Library code between the call and the user's function. */
namespace std
{
static __attribute__((noinline)) unsigned long long through_library(size_t bytes)
{
    unsigned long long grid = 0;

    cuMemAllocManaged(&grid, bytes, 1);
    asm volatile("" : : : "memory");
    return grid;
}
} // namespace std

static __attribute__((noinline)) unsigned long long by_library(size_t bytes)
{
    unsigned long long grid = std::through_library(bytes); // BY_LIBRARY

    asm volatile("" : : : "memory");
    return grid;
}

int main()
{
    std::vector<unsigned long long> grids;
    std::function<void(size_t)> add = [&](size_t bytes) {
        unsigned long long grid = 0;

        cuMemAllocManaged(&grid, bytes, 1); // LAMBDA
        grids.push_back(grid);
    };

    if (gpu_start())
        return 1;
    solver::Grid<float> a(1 << 20);
    add(2 << 20);
    grids.push_back(by_library(3 << 20));
    std::printf("%d\n", (int)grids.size() + (a.at == 0));
    return 0;
}

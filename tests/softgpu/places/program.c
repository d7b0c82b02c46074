/* Allocates in two places, hints, launches and touches: each line that a report must name says so. */
#include "gpu.h"

#include <stdio.h>

static const char module_text[] = "//softgpu kernel add ptr:p u64:n\n"
                                  "//softgpu   add f32 p n 1\n";

#ifdef WITH_LIBRARY
unsigned long long library_grid(size_t bytes);
#endif

static __attribute__((noinline)) unsigned long long make_grid(size_t bytes)
{
    unsigned long long grid = 0;

    cuMemAllocManaged(&grid, bytes, 1); /* MAKE_GRID */
    return grid;
}

static __attribute__((noinline)) void fill(volatile float *grid, size_t n)
{
    for (size_t i = 0; i < n; i++)
        grid[i] = 1; /* FILL */
}

static __attribute__((noinline)) void hint(unsigned long long grid, size_t bytes)
{
    cuMemAdvise(grid, bytes, 3, 0);           /* ADVISE */
    cuMemPrefetchAsync(grid, bytes, 0, NULL); /* PREFETCH */
}

static __attribute__((noinline)) void launch(void *kernel, unsigned long long grid, size_t n)
{
    void *params[] = {&grid, &n};

    cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL); /* LAUNCH */
    cuCtxSynchronize();
}

int main(void)
{
    unsigned long long a, b = 0, c = 0;
    void *module, *kernel;

    if (gpu_start() || cuModuleLoadData(&module, module_text) ||
        cuModuleGetFunction(&kernel, module, "add"))
        return 1;
    a = make_grid(1 << 20);
    cuMemAllocManaged(&b, 2 << 20, 1); /* MAIN */
#ifdef WITH_LIBRARY
    c = library_grid(3 << 20);
#endif
    fill((float *)a, (1 << 20) / 4);
    hint(b, 2 << 20);
    launch(kernel, a, (1 << 20) / 4);
    fill((float *)a, (1 << 20) / 4);
    printf("%d\n", (int)((float *)a)[0] + !b + (c == 1));
    return 0;
}

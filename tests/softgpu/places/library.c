/* An allocation in a shared library. */
#include "gpu.h"

unsigned long long library_grid(size_t bytes);

unsigned long long library_grid(size_t bytes)
{
    unsigned long long grid = 0;

    cuMemAllocManaged(&grid, bytes, 1); /* LIBRARY */
    return grid;
}

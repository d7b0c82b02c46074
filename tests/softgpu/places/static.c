/* Three sites behind a runtime that is part of the program, two of them in an allocator of its own. */
#include "gpu.h"

#include <stdio.h>

int cudaMallocManaged(unsigned long long *out, size_t bytes, unsigned flags);

__attribute__((noinline)) unsigned long long own_alloc(size_t bytes)
{
    unsigned long long grid = 0;

    cudaMallocManaged(&grid, bytes, 1); /* OWN_ALLOC */
    __asm__ volatile("" : : : "memory");
    return grid;
}

__attribute__((noinline)) unsigned long long coarse(void)
{
    unsigned long long grid = own_alloc(1 << 20); /* COARSE */

    __asm__ volatile("" : : : "memory");
    return grid;
}

__attribute__((noinline)) unsigned long long fine(void)
{
    unsigned long long grid = own_alloc(2 << 20); /* FINE */

    __asm__ volatile("" : : : "memory");
    return grid;
}

__attribute__((noinline)) unsigned long long direct(void)
{
    unsigned long long grid = 0;

    cudaMallocManaged(&grid, 3 << 20, 1); /* DIRECT */
    __asm__ volatile("" : : : "memory");
    return grid;
}

int main(void)
{
    if (gpu_start())
        return 1;
    printf("%d\n", !coarse() + !fine() + !direct());
    return 0;
}

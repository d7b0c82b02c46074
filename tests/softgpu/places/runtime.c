/* Stands for the CUDA runtime that nvcc links into a program: no debug information, its own symbols. */
#include "gpu.h"

int libcudart_static_0123456789abcdef(unsigned long long *out, size_t bytes);
int cudaMallocManaged(unsigned long long *out, size_t bytes, unsigned flags);

__attribute__((noinline)) int libcudart_static_0123456789abcdef(unsigned long long *out,
                                                                size_t bytes)
{
    int result = cuMemAllocManaged(out, bytes, 1);

    __asm__ volatile("" : : : "memory");
    return result;
}

__attribute__((noinline)) int cudaMallocManaged(unsigned long long *out, size_t bytes,
                                                unsigned flags)
{
    int result = libcudart_static_0123456789abcdef(out, bytes);

    __asm__ volatile("" : : : "memory");
    return result + 0 * (int)flags;
}

/* Stands for the CUDA runtime that nvcc links into a program. */
#include "gpu.h"

int cudaMallocManaged(void **out, size_t bytes, unsigned flags);
int cudaMalloc(void **out, size_t bytes);
int cudaMemAdvise(const void *data, size_t bytes, int advice, int device);

int cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    unsigned long long data = 0;
    int result = cuMemAllocManaged(&data, bytes, flags);

    *out = (void *)data;
    return result;
}

int cudaMalloc(void **out, size_t bytes)
{
    unsigned long long data = 0;
    int result = cuMemAlloc_v2(&data, bytes);

    *out = (void *)data;
    return result;
}

int cudaMemAdvise(const void *data, size_t bytes, int advice, int device)
{
    return cuMemAdvise((unsigned long long)data, bytes, advice, device);
}

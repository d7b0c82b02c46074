/*
 * managed_allocator.c - a PyTorch pluggable allocator on cudaMallocManaged, for tests.
 * Capped: beyond UM_TEST_MANAGED_LIMIT live bytes it refuses, so that no test can oversubscribe.
 * With HAND=1 in the environment it prefetches what it allocates to the GPU, as one does by hand.
 */
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define UM_TEST_MANAGED_LIMIT ((size_t)6 << 30)

static size_t live;

void *um_test_alloc(ptrdiff_t size, int device, cudaStream_t stream)
{
    struct cudaMemLocation gpu = {.type = cudaMemLocationTypeDevice, .id = device};
    void *p = NULL;

    if (size <= 0)
        return NULL;
    if (__atomic_add_fetch(&live, (size_t)size, __ATOMIC_RELAXED) > UM_TEST_MANAGED_LIMIT ||
        cudaMallocManaged(&p, (size_t)size, cudaMemAttachGlobal) != cudaSuccess) {
        __atomic_sub_fetch(&live, (size_t)size, __ATOMIC_RELAXED);
        fprintf(stderr, "managed_allocator: refused %td bytes\n", size);
        return NULL;
    }
    if (getenv("HAND"))
        cudaMemPrefetchAsync(p, (size_t)size, gpu, 0, stream);
    return p;
}

void um_test_free(void *p, ptrdiff_t size, int device, cudaStream_t stream)
{
    (void)device;
    (void)stream;
    cudaFree(p);
    __atomic_sub_fetch(&live, (size_t)size, __ATOMIC_RELAXED);
}

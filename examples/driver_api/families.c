/*
 * families [MIB] - the same numbers pass through every kind of memory that CUDA has: device, managed, pinned,
 * mapped, registered, pool, and back by copies of every direction.
 */
#include "driver_api.h"

int main(int argc, char **argv)
{
    uint64_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 2) << 18, bytes = n * sizeof(float);
    CUmodule module = start(argv[0], 0);
    CUfunction add_one;
    CUdeviceptr device, managed, pool, mapped;
    CUstream stream;
    void *pinned, *shared;
    float *pageable = malloc(bytes), *registered = aligned_alloc(4096, bytes);
    double sum = 0;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CHECK(cuMemAlloc(&device, bytes));
    CHECK(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocHost(&pinned, bytes));
    CHECK(cuMemHostAlloc(&shared, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cuMemHostGetDevicePointer(&mapped, shared, 0));
    CHECK(cuMemHostRegister(registered, bytes, 0));
    CHECK(cuMemAllocAsync(&pool, bytes, stream));

    for (uint64_t i = 0; i < n; i++)
        pageable[i] = 1;
    CHECK(cuMemcpyHtoD(device, pageable, bytes));
    launch(add_one, stream, (void *[]){&device, &n});
    CHECK(cuMemcpyDtoDAsync(pool, device, bytes, stream));
    launch(add_one, stream, (void *[]){&pool, &n});
    CHECK(cuMemcpyDtoHAsync(pinned, pool, bytes, stream));
    CHECK(cuMemFreeAsync(pool, stream));
    CHECK(cuStreamSynchronize(stream));
    memcpy(shared, pinned, bytes);
    launch(add_one, stream, (void *[]){&mapped, &n});
    CHECK(cuStreamSynchronize(stream));
    memcpy(floats(managed), shared, bytes);
    launch(add_one, stream, (void *[]){&managed, &n});
    CHECK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)registered, managed, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
    for (uint64_t i = 0; i < n; i++)
        sum += (double)registered[i];
    printf("mean %.3f\n", sum / (double)n);

    CHECK(cuMemHostUnregister(registered));
    CHECK(cuMemFreeHost(shared));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(managed));
    CHECK(cuMemFree(device));
    CHECK(cuStreamDestroy(stream));
    free(registered);
    free(pageable);
    return 0;
}

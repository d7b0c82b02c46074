/*
 * two_streams [MIB] - one stream scales an array, another adds it to a second one once an event says so; the
 * host is called back in stream order.
 */
#include "driver_api.h"

static void CUDA_CB count(void *counter)
{
    ++*(int *)counter;
}

int main(int argc, char **argv)
{
    uint64_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 4) << 18;
    CUmodule module = start(argv[0], 0);
    CUfunction add_one, axpy;
    CUdeviceptr x, y;
    CUstream first, second;
    CUevent ready;
    float a = 2;
    int called = 0;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuModuleGetFunction(&axpy, module, "_Z4axpyPfPKfmf"));
    CHECK(cuMemAllocManaged(&x, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&y, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    for (uint64_t i = 0; i < n; i++) {
        floats(x)[i] = 1;
        floats(y)[i] = 3;
    }
    for (int r = 0; r < 3; r++) {
        launch(add_one, first, (void *[]){&x, &n});
        CHECK(cuEventRecord(ready, first));
        CHECK(cuStreamWaitEvent(second, ready, 0));
        launch(axpy, second, (void *[]){&y, &x, &n, &a});
        CHECK(cuLaunchHostFunc(second, count, &called));
        CHECK(cuStreamSynchronize(second));
    }
    printf("y %.0f %.0f, called %d times\n", (double)floats(y)[0], (double)floats(y)[n - 1],
           called);
    CHECK(cuEventDestroy(ready));
    CHECK(cuStreamDestroy(first));
    CHECK(cuStreamDestroy(second));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
    return 0;
}

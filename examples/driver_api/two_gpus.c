/*
 * two_gpus [MIB] - two GPUs take turns at one managed array; with one GPU it takes both turns.
 */
#include "driver_api.h"

int main(int argc, char **argv)
{
    uint64_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 4) << 18;
    int gpus = 0;
    CUdeviceptr data;
    CUfunction add_one[2];
    CUcontext context[2];

    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&gpus));
    for (int i = 0; i < 2; i++) {
        CUmodule module = start(argv[0], i < gpus ? i : 0);
        CHECK(cuCtxGetCurrent(&context[i]));
        CHECK(cuModuleGetFunction(&add_one[i], module, "_Z7add_onePfm"));
    }
    CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    memset(floats(data), 0, n * sizeof(float));
    for (int turn = 0; turn < 6; turn++) {
        CHECK(cuCtxSetCurrent(context[turn % 2]));
        launch(add_one[turn % 2], NULL, (void *[]){&data, &n});
        CHECK(cuCtxSynchronize());
    }
    printf("%.0f %.0f\n", (double)floats(data)[0], (double)floats(data)[n - 1]);
    CHECK(cuMemFree(data));
    return 0;
}

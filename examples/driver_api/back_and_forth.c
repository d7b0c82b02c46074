/*
 * back_and_forth [MIB [ROUNDS [hand]]] - the CPU writes an array, the GPU adds one to it, the CPU reads it. With
 * `hand` it also prefetches both ways, as an expert would.
 */
#include "driver_api.h"

int main(int argc, char **argv)
{
    uint64_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 16) << 18;
    int rounds = argc > 2 ? atoi(argv[2]) : 3;
    bool hand = argc > 3 && strcmp(argv[3], "hand") == 0;
    CUmodule module = start(argv[0], 0);
    CUfunction add_one;
    CUdeviceptr data;
    double sum = 0;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    for (uint64_t i = 0; i < n; i++)
        floats(data)[i] = (float)(i % 7);
    for (int r = 0; r < rounds; r++) {
        if (hand)
            prefetch(data, n * sizeof(float), false);
        launch(add_one, NULL, (void *[]){&data, &n});
        if (hand)
            prefetch(data, n * sizeof(float), true);
        CHECK(cuCtxSynchronize());
        for (uint64_t i = 0; i < n; i++)
            sum += (double)floats(data)[i];
    }
    CHECK(cuMemFree(data));
    printf("sum %.0f\n", sum);
    return 0;
}

/*
 * graph [MIB [LAUNCHES]] - a step is captured once and launched many times; the CPU looks at it in between.
 */
#include "driver_api.h"

int main(int argc, char **argv)
{
    uint64_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 4) << 18;
    int launches = argc > 2 ? atoi(argv[2]) : 5;
    CUmodule module = start(argv[0], 0);
    CUfunction add_one, axpy;
    CUdeviceptr x, y;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    float a = 0.5f;
    double seen = 0;

    CHECK(cuModuleGetFunction(&add_one, module, "_Z7add_onePfm"));
    CHECK(cuModuleGetFunction(&axpy, module, "_Z4axpyPfPKfmf"));
    CHECK(cuMemAllocManaged(&x, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&y, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    memset(floats(x), 0, n * sizeof(float));

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemsetD8Async(y, 0, n * sizeof(float), stream));
    launch(add_one, stream, (void *[]){&x, &n});
    launch(axpy, stream, (void *[]){&y, &x, &n, &a});
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < launches; i++) {
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        seen += (double)floats(y)[n / 2];
    }
    printf("x %.0f, y seen %.1f\n", (double)floats(x)[n - 1], seen);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
    return 0;
}

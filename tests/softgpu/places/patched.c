/* Scratch that the CPU never touches, and a few numbers that go to and fro: each is a line of a diff. */
#include <stdio.h>
#ifdef REAL /* for a compiler, against CUDA's headers */
#include <cuda_runtime_api.h>
#endif
#include "gpu.h"
#ifndef REAL
int cudaMallocManaged(void **out, size_t bytes, unsigned flags);
int cudaMalloc(void **out, size_t bytes);
#define cudaMemAttachGlobal 1
#endif

static const char module_text[] = "//softgpu kernel add ptr:p u64:n\n"
                                  "//softgpu   add f32 p n 1\n";

static void launch(void *kernel, float *data, size_t n)
{
    void *params[] = {&data, &n};

    cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    cuCtxSynchronize();
}

int main(void)
{
    size_t n = 4 << 20, few = 16384;
    float *scratch = NULL, *sums = NULL;
    void *module, *kernel;

    if (gpu_start() || cuModuleLoadData(&module, module_text) ||
        cuModuleGetFunction(&kernel, module, "add"))
        return 1;
    cudaMallocManaged((void **)&scratch, n * sizeof(float), cudaMemAttachGlobal); /* SCRATCH */
    cudaMallocManaged((void **)&sums, few * sizeof(float), cudaMemAttachGlobal);  /* SUMS */
    for (int i = 0; i < 20; i++) {
        for (size_t k = 0; k < few; k++)
            sums[k] += 1;
        launch(kernel, sums, few);
        launch(kernel, scratch, n);
    }
    printf("%g\n", (double)sums[few - 1]);
    return 0;
}

/* churn - a scratch buffer is allocated, filled on the GPU, reduced and freed in every step. */
#include "example.h"

__global__ void fill(float *scratch, size_t n, float value)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        scratch[i] = value;
}

__global__ void reduce(const float *scratch, size_t n, unsigned long long *out)
{
    unsigned long long sum = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        sum += (unsigned long long)scratch[i];
    atomicAdd(out, sum);
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 64, 20);
    size_t n = example.bytes / sizeof(float);
    unsigned long long *out = (unsigned long long *)example_managed(sizeof(*out));

    for (int step = 0; step < example.steps; step++) {
        double t = example_now_ms();
        float *scratch = (float *)example_managed(example.bytes);
        if (example.hand)
            example_prefetch(scratch, example.bytes, false, 0);
        *out = 0;
        fill<<<(unsigned)((n + 255) / 256), 256>>>(scratch, n, (float)(step + 1));
        reduce<<<264, 256>>>(scratch, n, out);
        CHECK(cudaDeviceSynchronize());
        example_free(scratch, example.bytes);
        example_time("step", t);
        printf("step %d: %llu\n", step, *out);
    }
    example_free(out, sizeof(*out));
    return example_end();
}

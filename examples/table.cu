/* table - a table written once by the CPU is read by both sides in every step. */
#include "example.h"

__global__ void lookup(const float *__restrict__ table, size_t n, float *out, int step)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = table[i] + (float)step;
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 256, 8);
    size_t n = example.bytes / sizeof(float);
    float *table = (float *)example_managed(example.bytes);
    float *out = (float *)example_managed(example.bytes);

    for (size_t i = 0; i < n; i++)
        table[i] = (float)(i & 255);
    for (int step = 0; step < example.steps; step++) {
        double t = example_now_ms();
        if (example.hand) {
            example_prefetch(table, example.bytes, false, 0);
            example_prefetch(out, example.bytes, false, 0);
        }
        lookup<<<(unsigned)((n + 255) / 256), 256>>>(table, n, out, step);
        CHECK(cudaDeviceSynchronize());
        example_time("gpu", t);
        t = example_now_ms();
        double sum = 0;
        for (size_t i = 0; i < n / 4; i += 1024)
            sum += table[i];
        example_time("cpu-read", t);
        printf("step %d: %.0f %.0f\n", step, sum, out[n - 1]);
    }
    example_free(out, example.bytes);
    example_free(table, example.bytes);
    return example_end();
}

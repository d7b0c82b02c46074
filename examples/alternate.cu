/* alternate - the CPU writes an array, the GPU updates it, the CPU reads the result, over and over. */
#include "example.h"

__global__ void add_one(float *data, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[i] += 1.0f;
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 1024, 5);
    size_t n = example.bytes / sizeof(float);
    float *data = (float *)example_managed(example.bytes);

    for (int step = 0; step < example.steps; step++) {
        double t = example_now_ms();
        for (size_t i = 0; i < n; i += 16) /* a word a cache line: every page is dirty */
            data[i] = (float)step;
        example_time("cpu-write", t);

        t = example_now_ms();
        if (example.hand)
            example_prefetch(data, example.bytes, false, 0);
        add_one<<<(unsigned)((n + 255) / 256), 256>>>(data, n);
        CHECK(cudaDeviceSynchronize());
        example_time("gpu", t);

        t = example_now_ms();
        if (example.hand) {
            example_prefetch(data, example.bytes, true, 0);
            CHECK(cudaDeviceSynchronize());
        }
        double sum = 0;
        for (size_t i = 0; i < n; i += 1024)
            sum += data[i];
        example_time("cpu-read", t);
        printf("step %d: %.0f\n", step, sum);
    }
    example_free(data, example.bytes);
    return example_end();
}

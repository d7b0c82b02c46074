/* resident - many launches, each followed by a sync, on data that stays on the GPU: nothing to win. */
#include "example.h"

__global__ void add_one(float *data, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[i] += 1.0f;
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 1024, 10000);
    size_t n = example.bytes / sizeof(float);
    float *data = (float *)example_managed(example.bytes);
    unsigned blocks = (unsigned)((n + 255) / 256);

    example_prefetch(data, example.bytes, false, 0);
    add_one<<<blocks, 256>>>(data, n);
    CHECK(cudaDeviceSynchronize());
    /* Ten batches, so that the spread inside one run is seen. */
    for (int batch = 0; batch < 10; batch++) {
        double t = example_now_ms();
        for (int step = 0; step < example.steps / 10; step++) {
            add_one<<<blocks, 256>>>(data, n);
            CHECK(cudaDeviceSynchronize());
        }
        example_time("loop", t);
    }
    printf("%.0f %.0f\n", data[0], data[n - 1]);
    example_free(data, example.bytes);
    return example_end();
}

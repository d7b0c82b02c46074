/* first_touch - the GPU fills memory that nobody has written: every page is a fault. */
#include "example.h"

__global__ void fill(float *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = (float)(i & 1023);
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 1024, 5);
    size_t n = example.bytes / sizeof(float);

    for (int step = 0; step < example.steps; step++) {
        float *out = (float *)example_managed(example.bytes);
        double t = example_now_ms();
        if (example.hand)
            example_prefetch(out, example.bytes, false, 0);
        fill<<<(unsigned)((n + 255) / 256), 256>>>(out, n);
        CHECK(cudaDeviceSynchronize());
        example_time("gpu", t);
        printf("step %d: %.0f %.0f\n", step, out[1], out[n - 1]);
        example_free(out, example.bytes);
    }
    return example_end();
}

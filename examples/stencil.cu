/* stencil - two grids swapped each step; the CPU reads a small window of the result every step. */
#include "example.h"

__global__ void relax(const float *__restrict__ in, float *__restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= width || y >= height)
        return;
    size_t at = (size_t)y * width + x;
    float left = x ? in[at - 1] : 0, right = x + 1 < width ? in[at + 1] : 0;
    float up = y ? in[at - width] : 0, down = y + 1 < height ? in[at + width] : 0;
    out[at] = 0.25f * (left + right + up + down);
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 256, 20);
    int width = 4096, height = (int)(example.bytes / sizeof(float) / width);
    float *in = (float *)example_managed(example.bytes);
    float *out = (float *)example_managed(example.bytes);
    dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);

    for (size_t i = 0; i < (size_t)width * height; i++)
        in[i] = (float)(i % 97);
    for (int step = 0; step < example.steps; step++) {
        double t = example_now_ms();
        if (example.hand && step < 1) {
            example_prefetch(in, example.bytes, false, 0);
            example_prefetch(out, example.bytes, false, 0);
        }
        relax<<<grid, block>>>(in, out, width, height);
        CHECK(cudaDeviceSynchronize());
        example_time("gpu", t);
        t = example_now_ms();
        float sum = 0;
        for (int i = 0; i < 1024; i++)
            sum += out[(size_t)(height / 2) * width + i];
        example_time("cpu-read", t);
        printf("step %d: %.4f\n", step, sum);
        float *swap = in;
        in = out;
        out = swap;
    }
    example_free(in, example.bytes);
    example_free(out, example.bytes);
    return example_end();
}

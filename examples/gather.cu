/* gather - reads one page in a hundred of a large table: moving all of it would be waste. */
#include "example.h"

__global__ void gather(const float *table, const unsigned *index, float *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = table[(size_t)index[i] * 1024];
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 4096, 3);
    unsigned pages = (unsigned)(example.bytes >> 12), n = pages / 100;
    float *table = (float *)example_managed(example.bytes);
    unsigned *index = (unsigned *)example_managed(n * sizeof(*index));
    float *out = (float *)example_managed(n * sizeof(*out));
    uint32_t seed = 12345;

    for (size_t page = 0; page < pages; page++)
        table[page * 1024] = (float)(page & 0xffff);
    for (int step = 0; step < example.steps; step++) {
        for (unsigned i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            index[i] = (uint32_t)(((uint64_t)seed * pages) >> 32);
        }
        double t = example_now_ms();
        if (example.hand) {
            example_prefetch(index, n * sizeof(*index), false, 0);
            example_prefetch(out, n * sizeof(*out), false, 0);
        }
        gather<<<(n + 255) / 256, 256>>>(table, index, out, n);
        CHECK(cudaDeviceSynchronize());
        example_time("gpu", t);
        double sum = 0;
        for (unsigned i = 0; i < n; i++)
            sum += out[i];
        printf("step %d: %.0f\n", step, sum);
    }
    example_free(out, n * sizeof(*out));
    example_free(index, n * sizeof(*index));
    example_free(table, example.bytes);
    return example_end();
}

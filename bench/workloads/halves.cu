/* halves - two GPUs work on one array, half each; the CPU writes a part of it before each step and reads a
 * part after. Told which half by a pointer, or, with --indexed 1, by an index into the whole array: then
 * both get the same pointer, and whoever brings all of it to one takes it from the other. */
#include "workload.h"

static size_t mib = 256, indexed = 0, every = 16;

__global__ void add(uint32_t *data, size_t first, size_t n, uint32_t value)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[first + i] = data[first + i] * 3 + value;
}

int main(int argc, char **argv)
{
    int gpus = 0;

    work.steps = 20;
    work_start(argc, argv, {{"each its half, before", BEFORE}},
               {{"mib", "the array, in MiB", &mib},
                {"indexed", "1: halves are told by an index, not a pointer", &indexed},
                {"every", "the CPU writes and reads one word in N", &every}});
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < 2 || work.copies) {
        fprintf(stderr, "needs two GPUs, and has no variant with copies\n");
        return 2;
    }
    buffer<uint32_t> data = make<uint32_t>(mib << 18, SHARED);
    size_t half = data.n / 2;

    while (work_step()) {
        size_t part = data.n / 8 * (work.step % 8);
        uint64_t sum = 0;

        if (work.step == 0)
            parallel(data.n, [&](size_t from, size_t to) {
                cpu_write(data.cpu + from, to - from, (uint32_t)from);
            });
        else
            for (size_t i = part; i < part + data.n / 8; i += every)
                data.cpu[i] += (uint32_t)work.step;
        for (int g = 0; g < 2; g++) {
            uint32_t *own = data.gpu + (indexed ? 0 : half * (size_t)g);

            CHECK(cudaSetDevice(g));
            example.device = g;
            hint_gpu(data, half * (size_t)g, half);
            add<<<blocks_for(half), 256>>>(own, indexed ? half * (size_t)g : 0, half,
                                           (uint32_t)work.step);
        }
        for (int g = 0; g < 2; g++) {
            CHECK(cudaSetDevice(g));
            CHECK(cudaDeviceSynchronize());
        }
        for (size_t i = part; i < part + data.n / 8; i += every)
            sum = sum * 5 + data.cpu[i];
        work_sum(sum);
    }
    CHECK(cudaSetDevice(0));
    drop(data);
    return work_end();
}

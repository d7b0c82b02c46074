/* pingpong - the CPU writes an array, the GPU updates it, the CPU reads the result, over and over. */
#include "workload.h"

static size_t mib = 128;

__global__ void update(uint32_t *data, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[i] = data[i] * 3 + 1;
}

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK},
                {"race, back", RACE | BACK},
                {"race", RACE},
                {"map", MAP}},
               {{"mib", "the array, in MiB", &mib}});
    buffer<uint32_t> data = make<uint32_t>(mib << 18, SHARED);

    while (work_step()) {
        cpu_write(data.cpu, data.n, (uint32_t)work.step);
        to_gpu(data);
        update<<<blocks_for(data.n), 256>>>(data.gpu, data.n);
        to_cpu(data);
        sync_gpu();
        work_sum(cpu_read(data.cpu, data.n));
    }
    drop(data);
    return work_end();
}

/* eighth - the CPU updates another eighth of an array each step, the GPU works on all of it. */
#include "workload.h"

static size_t mib = 512;

__global__ void update(uint32_t *data, size_t n, uint32_t step)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[i] = data[i] * 5 + step;
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
    size_t part = data.n / 8;

    while (work_step()) {
        size_t first = work.step % 8 * part;
        uint64_t sum = 0;

        if (work.step == 0)
            parallel(data.n, [&](size_t from, size_t to) {
                cpu_write(data.cpu + from, to - from, (uint32_t)from);
            });
        for (size_t i = first; i < first + part; i++) {
            sum += data.cpu[i];
            data.cpu[i] += (uint32_t)work.step;
        }
        to_gpu(data, first, work.step ? part : data.n);
        update<<<blocks_for(data.n), 256>>>(data.gpu, data.n, (uint32_t)work.step);
        to_cpu(data, (work.step + 1) % 8 * part, part); /* the next one */
        sync_gpu();
        work_sum(sum);
    }
    drop(data);
    return work_end();
}

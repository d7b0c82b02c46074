/* churn - in every step a scratch buffer is allocated, filled on the GPU, reduced and freed. */
#include "workload.h"

static size_t mib = 256;

__global__ void fill(uint32_t *scratch, size_t n, uint32_t value)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        scratch[i] = (uint32_t)i ^ value;
}

int main(int argc, char **argv)
{
    work.steps = 20;
    work_start(argc, argv, {{"before", BEFORE}, {"race", RACE}},
               {{"mib", "the scratch buffer, in MiB", &mib}});
    buffer<unsigned long long> out = make<unsigned long long>(REDUCE_BLOCKS, SMALL);

    while (work_step()) {
        buffer<uint32_t> scratch = make<uint32_t>(mib << 18, SCRATCH);
        hint_gpu(scratch);
        fill<<<blocks_for(scratch.n), 256>>>(scratch.gpu, scratch.n, mix((uint32_t)work.step));
        reduce<<<REDUCE_BLOCKS, 256>>>(scratch.gpu, scratch.n, 1, out.gpu);
        to_cpu(out);
        sync_gpu();
        drop(scratch);
        work_sum(cpu_total(out));
    }
    drop(out);
    return work_end();
}

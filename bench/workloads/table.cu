/* table - the CPU writes a table once; from then on both sides read it in every step. */
#include "workload.h"

static size_t mib = 512, share = 4;

__global__ void lookup(const uint32_t *__restrict__ table, size_t n, uint32_t step,
                       unsigned long long *out)
{
    unsigned long long sum = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        sum += table[i] ^ step;
    block_sum(sum, out);
}

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK},
                {"race", RACE},
                {"read-mostly, before", BEFORE | DUPLICATE},
                {"read-mostly, race", RACE | DUPLICATE}},
               {{"mib", "the table, in MiB", &mib}, {"share", "the CPU reads 1/N of it", &share}});
    buffer<uint32_t> table = make<uint32_t>(mib << 18, TABLE);
    buffer<unsigned long long> out = make<unsigned long long>(REDUCE_BLOCKS, SMALL);
    size_t part = table.n / (share ? share : 1);

    while (work_step()) {
        if (work.step == 0) {
            parallel(table.n, [&](size_t from, size_t to) {
                cpu_write(table.cpu + from, to - from, (uint32_t)from);
            });
            to_gpu(table);
        } else if (!table.duplicated) {
            hint_gpu(table, 0, part);
        }
        lookup<<<REDUCE_BLOCKS, 256>>>(table.gpu, table.n, (uint32_t)work.step, out.gpu);
        to_cpu(out);
        if (!table.duplicated)
            hint_cpu(table, 0, part);
        sync_gpu();
        work_sum(cpu_total(out) + cpu_read(table.cpu, part));
    }
    drop(out);
    drop(table);
    return work_end();
}

/* gather - reads one page in a hundred of a large table, others in every step. */
#include "workload.h"

#define PAGE_WORDS 1024 /* 4 KiB */

static size_t mib = 4096, one_in = 100;

__global__ void gather(const uint32_t *__restrict__ table, const uint32_t *__restrict__ index,
                       uint32_t *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = table[(size_t)index[i] * PAGE_WORDS];
}

int main(int argc, char **argv)
{
    work_start(argc, argv, {{"map", MAP}, {"before, once", BEFORE}, {"race, once", RACE}},
               {{"mib", "the table, in MiB", &mib}, {"one-in", "pages read: one in N", &one_in}});
    size_t pages = mib << 8, n = pages / (one_in ? one_in : 1);
    buffer<uint32_t> table = make<uint32_t>(pages * PAGE_WORDS, SHARED);
    buffer<uint32_t> index = make<uint32_t>(n, SMALL), out = make<uint32_t>(n, SMALL);
    uint32_t seed = 1;

    while (work_step()) {
        if (work.step == 0) {
            parallel(pages, [&](size_t from, size_t to) {
                for (size_t page = from; page < to; page++)
                    table.cpu[page * PAGE_WORDS] = mix((uint32_t)page);
            });
            to_gpu(table);
        }
        for (size_t i = 0; i < n; i++)
            index.cpu[i] = (uint32_t)((uint64_t)mix(seed++) * pages >> 32);
        to_gpu(index);
        gather<<<blocks_for(n), 256>>>(table.gpu, index.gpu, out.gpu, n);
        to_cpu(out);
        sync_gpu();
        work_sum(cpu_read(out.cpu, n));
    }
    drop(out);
    drop(index);
    drop(table);
    return work_end();
}

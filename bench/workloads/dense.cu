/* dense - the CPU makes a new array each step, the GPU streams through all of it, once. */
#include "workload.h"

static size_t mib = 256;

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK},
                {"race, back", RACE | BACK},
                {"race", RACE},
                {"map", MAP}},
               {{"mib", "the array, in MiB", &mib}});
    buffer<uint32_t> in = make<uint32_t>(mib << 18, SHARED);
    buffer<unsigned long long> out = make<unsigned long long>(REDUCE_BLOCKS, SMALL);

    while (work_step()) {
        cpu_write(in.cpu, in.n, (uint32_t)work.step);
        double t = example_now_ms();
        to_gpu(in);
        if (work.copies) { /* the link's own rate, which the other variants are held against */
            sync_gpu();
            example_time("copy", t);
        }
        reduce<<<REDUCE_BLOCKS, 256>>>(in.gpu, in.n, 1, out.gpu);
        to_cpu(out);
        sync_gpu();
        example_time("gpu", t);
        work_sum(cpu_total(out));
        hint_cpu(in);
        sync_gpu();
    }
    drop(out);
    drop(in);
    return work_end();
}

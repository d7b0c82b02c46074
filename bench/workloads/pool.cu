/* pool - one managed pool; each kernel works on slices it has not had before, as pool allocators give
 * them out. */
#include "workload.h"

static size_t mib = 1024, slice_mib = 16, kernels = 4;

__global__ void transform(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i] * 7 + in[n - 1 - i];
}

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK},
                {"race, back", RACE | BACK},
                {"before", BEFORE},
                {"map", MAP}},
               {{"mib", "the pool, in MiB", &mib},
                {"slice-mib", "a slice, in MiB", &slice_mib},
                {"kernels", "a step, each with two slices", &kernels}});
    size_t n = slice_mib << 18, next = 0;
    buffer<uint32_t> pool = make<uint32_t>(mib << 18, SHARED);

    if (n == 0 || pool.n < 2 * n) {
        fprintf(stderr, "the pool must hold two slices\n");
        return 2;
    }
    while (work_step()) {
        uint64_t sum = 0;

        for (size_t k = 0; k < kernels; k++) {
            if (next + 2 * n > pool.n)
                next = 0;
            size_t in = next, out = next + n;
            next += 2 * n;
            cpu_write(pool.cpu + in, n, (uint32_t)(work.step * kernels + k));
            to_gpu(pool, in, n);
            hint_gpu(pool, out, n);
            transform<<<blocks_for(n), 256>>>(pool.gpu + in, pool.gpu + out, n);
            to_cpu(pool, out, n);
            sync_gpu();
            sum += cpu_read(pool.cpu + out, n);
        }
        work_sum(sum);
    }
    drop(pool);
    return work_end();
}

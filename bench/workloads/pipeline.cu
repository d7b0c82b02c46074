/* pipeline - five kernels one after the other, on independent chunks in streams of their own; the CPU
 * writes each chunk's input and reads its output. */
#include "workload.h"

#define STAGES 5

static size_t mib = 16, streams = 4;

__global__ void stage(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, size_t n,
                      uint32_t factor)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i] * factor + in[(i + factor * 32) % n];
}

struct lane {
    cudaStream_t stream;
    buffer<uint32_t> at[STAGES + 1]; /* input, what lies between, output */
};

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK},
                {"race, back", RACE | BACK},
                {"before", BEFORE},
                {"map", MAP}},
               {{"mib", "a chunk, in MiB", &mib}, {"streams", "and chunks", &streams}});
    std::vector<lane> lanes(streams);

    for (lane &l : lanes) {
        CHECK(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking));
        for (int s = 0; s <= STAGES; s++)
            l.at[s] = make<uint32_t>(mib << 18, s == 0 || s == STAGES ? SHARED : SCRATCH);
    }
    while (work_step()) {
        uint32_t chunk = 0;

        for (lane &l : lanes) {
            cpu_write(l.at[0].cpu, l.at[0].n, (uint32_t)work.step + 1000 * chunk++);
            to_gpu(l.at[0], l.stream);
            for (int s = 0; s < STAGES; s++) {
                if (s + 1 == STAGES || work.step == 0)
                    hint_gpu(l.at[s + 1], l.stream);
                stage<<<blocks_for(l.at[s].n), 256, 0, l.stream>>>(l.at[s].gpu, l.at[s + 1].gpu,
                                                                   l.at[s].n, s * 2 + 3);
            }
            to_cpu(l.at[STAGES], l.stream);
            hint_cpu(l.at[0], l.stream);
        }
        sync_gpu();
        for (lane &l : lanes)
            work_sum(cpu_read(l.at[STAGES].cpu, l.at[STAGES].n));
    }
    for (lane &l : lanes) {
        for (buffer<uint32_t> &b : l.at)
            drop(b);
        CHECK(cudaStreamDestroy(l.stream));
    }
    return work_end();
}

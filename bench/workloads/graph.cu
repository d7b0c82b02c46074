/* graph - a captured CUDA graph is replayed; the CPU writes its input and reads its output each time. */
#include "workload.h"

#define KERNELS 4

static size_t mib = 64;

__global__ void step(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, size_t n,
                     uint32_t factor)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i] * factor + (in[i] >> 7);
}

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK},
                {"race, back", RACE | BACK},
                {"before", BEFORE},
                {"map", MAP}},
               {{"mib", "input and output, in MiB each", &mib}});
    size_t n = mib << 18;
    buffer<uint32_t> in = make<uint32_t>(n, SHARED), out = make<uint32_t>(n, SHARED);
    buffer<uint32_t> between[2] = {make<uint32_t>(n, SCRATCH), make<uint32_t>(n, SCRATCH)};
    const uint32_t *from = in.gpu;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;

    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (uint32_t k = 0; k < KERNELS; k++) {
        uint32_t *to = k + 1 == KERNELS ? out.gpu : between[k % 2].gpu;
        step<<<blocks_for(n), 256, 0, stream>>>(from, to, n, 2 * k + 3);
        from = to;
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&replay, graph, 0));

    while (work_step()) {
        cpu_write(in.cpu, n, (uint32_t)work.step);
        to_gpu(in, stream);
        hint_gpu(out, stream);
        if (work.step == 0)
            for (buffer<uint32_t> &b : between)
                hint_gpu(b, stream);
        CHECK(cudaGraphLaunch(replay, stream));
        to_cpu(out, stream);
        hint_cpu(in, stream);
        sync_gpu();
        work_sum(cpu_read(out.cpu, n));
    }
    CHECK(cudaGraphExecDestroy(replay));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    for (buffer<uint32_t> &b : between)
        drop(b);
    drop(out);
    drop(in);
    return work_end();
}

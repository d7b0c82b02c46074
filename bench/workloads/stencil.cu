/* stencil - two grids swapped each step; the CPU reads a small window of the result. */
#include "workload.h"

#include <utility>

static size_t mib = 256, width = 8192, window_kib = 64;

__global__ void relax(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, int width,
                      int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= width || y >= height)
        return;
    size_t at = (size_t)y * width + x;
    uint32_t left = x ? in[at - 1] : 0, right = x + 1 < width ? in[at + 1] : 0;
    uint32_t up = y ? in[at - width] : 0, down = y + 1 < height ? in[at + width] : 0;
    out[at] = (left >> 2) + (right >> 2) + (up >> 2) + (down >> 2);
}

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before", BEFORE}, {"race", RACE}, {"before, window back", BEFORE | BACK}},
               {{"mib", "one grid, in MiB", &mib},
                {"width", "of the grids, in words", &width},
                {"window-kib", "what the CPU reads, in KiB", &window_kib}});
    size_t height = (mib << 18) / width, window = window_kib << 8;
    size_t at = height / 2 * width;
    buffer<uint32_t> in = make<uint32_t>(width * height, SHARED);
    buffer<uint32_t> out = make<uint32_t>(width * height, SHARED);
    dim3 block(32, 8), grid((unsigned)(width + 31) / 32, (unsigned)(height + 7) / 8);

    if (at + window > in.n) {
        fprintf(stderr, "the window is larger than half a grid\n");
        return 2;
    }
    while (work_step()) {
        if (work.step == 0) {
            cpu_write(in.cpu, in.n, 7);
            to_gpu(in);
            hint_gpu(out);
        } else if (work.how & BACK) {
            hint_gpu(in, at, window);
        }
        relax<<<grid, block>>>(in.gpu, out.gpu, (int)width, (int)height);
        to_cpu(out, at, window);
        sync_gpu();
        work_sum(cpu_read(out.cpu + at, window));
        std::swap(in, out);
    }
    drop(out);
    drop(in);
    return work_end();
}

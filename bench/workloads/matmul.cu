/* matmul - the CPU writes A, the GPU computes C = A * B in tiles, the CPU reads C; B stays. */
#include "workload.h"

#define TILE 32
#define ROWS 8 /* of threads a tile: each has TILE / ROWS results */

static size_t n = 4096;

/* Small integers in floats: every sum is exact, in any order. */
__global__ void multiply(const float *__restrict__ a, const float *__restrict__ b,
                         float *__restrict__ c, int n)
{
    __shared__ float of_a[TILE][TILE], of_b[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum[TILE / ROWS] = {};

    for (int tile = 0; tile < n; tile += TILE) {
        for (int r = 0; r < TILE; r += ROWS) {
            of_a[threadIdx.y + r][threadIdx.x] = a[(size_t)(row + r) * n + tile + threadIdx.x];
            of_b[threadIdx.y + r][threadIdx.x] = b[(size_t)(tile + threadIdx.y + r) * n + column];
        }
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            for (int r = 0; r < TILE / ROWS; r++)
                sum[r] += of_a[threadIdx.y + r * ROWS][k] * of_b[k][threadIdx.x];
        __syncthreads();
    }
    for (int r = 0; r < TILE / ROWS; r++)
        c[(size_t)(row + r * ROWS) * n + column] = sum[r];
}

static void fill(float *to, size_t count, uint32_t step)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)(((uint32_t)i * 2654435761u + step) >> 30);
}

int main(int argc, char **argv)
{
    work_start(argc, argv,
               {{"before, back", BEFORE | BACK}, {"race, back", RACE | BACK}, {"before", BEFORE}},
               {{"n", "rows and columns, a multiple of 32", &n}});
    if (n == 0 || n % TILE || n > 32768) {
        fprintf(stderr, "--n must be a multiple of %d, at most 32768\n", TILE);
        return 2;
    }
    buffer<float> a = make<float>(n * n, SHARED), b = make<float>(n * n, TABLE);
    buffer<float> c = make<float>(n * n, SHARED);
    dim3 grid((unsigned)(n / TILE), (unsigned)(n / TILE)), block(TILE, ROWS);

    while (work_step()) {
        uint64_t sum = 0;

        if (work.step == 0) {
            fill(b.cpu, b.n, 3);
            to_gpu(b);
        }
        fill(a.cpu, a.n, mix((uint32_t)work.step));
        to_gpu(a);
        hint_gpu(c);
        multiply<<<grid, block>>>(a.gpu, b.gpu, c.gpu, (int)n);
        to_cpu(c);
        hint_cpu(a);
        sync_gpu();
        for (size_t i = 0; i < c.n; i++)
            sum += (uint32_t)c.cpu[i];
        work_sum(sum);
    }
    drop(c);
    drop(b);
    drop(a);
    return work_end();
}

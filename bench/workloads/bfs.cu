/* bfs - breadth-first search on a graph of a few heavy and many light vertices; the CPU reads after each
 * level whether there was anything new, and one number at the end. */
#include "workload.h"

static size_t kilo_vertices = 2048, degree = 16;

/* One level: a warp takes a vertex of the frontier, its lanes take the edges. */
__global__ void expand(const uint32_t *__restrict__ first, const uint32_t *__restrict__ edges,
                       uint32_t *level, uint32_t n, uint32_t now, uint32_t *found)
{
    uint32_t v = (blockIdx.x * blockDim.x + threadIdx.x) / 32;

    if (v >= n || level[v] != now)
        return;
    for (uint32_t e = first[v] + threadIdx.x % 32; e < first[v + 1]; e += 32)
        if (level[edges[e]] == ~0u) {
            level[edges[e]] = now + 1; /* whoever writes, writes the same */
            *found = 1;
        }
}

__global__ void restart(uint32_t *level, uint32_t n, uint32_t source)
{
    uint32_t v = blockIdx.x * blockDim.x + threadIdx.x;

    if (v < n)
        level[v] = v == source ? 0 : ~0u;
}

/* Degrees fall like a power of the rank, ranks are scattered over the vertices. */
static uint32_t degree_of(uint32_t v)
{
    double rank = (mix(v) >> 8) / 16777216.0;              /* 0 .. 1 */
    double d = 0.5 * (double)degree / (rank + 1e-4) / 9.2; /* 9.2: the integral over the ranks */

    return (uint32_t)(d + 0.5 * (double)degree);
}

int main(int argc, char **argv)
{
    work.steps = 20;
    work_start(argc, argv,
               {{"before", BEFORE}, {"race", RACE}, {"read-mostly, before", BEFORE | DUPLICATE}},
               {{"kilo-vertices", "vertices, in 1024", &kilo_vertices},
                {"degree", "edges a vertex, about", &degree}});
    uint32_t n = (uint32_t)(kilo_vertices << 10);
    buffer<uint32_t> first = make<uint32_t>((size_t)n + 1, TABLE),
                     level = make<uint32_t>(n, SCRATCH);
    buffer<uint32_t> found = make<uint32_t>(1, SMALL), edges = {};
    buffer<unsigned long long> out = make<unsigned long long>(REDUCE_BLOCKS, SMALL);

    while (work_step()) {
        if (work.step == 0) {
            size_t total = 0;
            for (uint32_t v = 0; v <= n; v++) {
                first.cpu[v] = (uint32_t)total;
                total += v < n ? degree_of(v) : 0;
            }
            if (total >> 32) {
                fprintf(stderr, "too many edges\n");
                return 2;
            }
            edges = make<uint32_t>(first.cpu[n], TABLE);
            parallel(edges.n, [&](size_t from, size_t to) {
                for (size_t e = from; e < to; e++)
                    edges.cpu[e] = (uint32_t)((uint64_t)mix((uint32_t)e) * n >> 32);
            });
            to_gpu(first);
            to_gpu(edges);
            hint_gpu(level);
        }
        uint32_t now = 0;
        restart<<<blocks_for(n), 256>>>(level.gpu, n, mix((uint32_t)work.step + 99) % n);
        do {
            *found.cpu = 0;
            to_gpu(found);
            expand<<<blocks_for((size_t)n * 32), 256>>>(first.gpu, edges.gpu, level.gpu, n, now++,
                                                        found.gpu);
            to_cpu(found);
            sync_gpu();
        } while (*found.cpu);
        reduce<<<REDUCE_BLOCKS, 256>>>(level.gpu, n, 1, out.gpu);
        to_cpu(out);
        sync_gpu();
        work_sum(cpu_total(out) + ((uint64_t)now << 56));
    }
    drop(out);
    drop(found);
    drop(level);
    drop(edges);
    drop(first);
    return work_end();
}

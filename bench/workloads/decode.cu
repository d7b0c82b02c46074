/* decode - a transformer writes tokens one by one: weights that the CPU has loaded once, a key/value cache
 * that grows, a token read by the CPU in every step. 8-bit weights and integer sums, as in quantised models,
 * so that results do not depend on the order of additions. */
#include "workload.h"

static size_t layers = 16, width = 2048, heads = 16, context = 512, vocabulary = 8192;

#define BLOCK 256

__device__ static int clamp8(long long v)
{
    return v > 127 ? 127 : v < -127 ? -127 : (int)v;
}

/* to[row] = what of the row's product with FROM fits 8 bits, plus ADD[row]; a warp a row. */
__global__ void product(const int8_t *__restrict__ weights, const int8_t *__restrict__ from,
                        const int8_t *add, int8_t *to, int rows, int columns)
{
    int row = (blockIdx.x * BLOCK + threadIdx.x) / 32;
    int sum = 0;

    if (row >= rows)
        return;
    const char4 *w = (const char4 *)(weights + (size_t)row * columns), *x = (const char4 *)from;
    for (int i = threadIdx.x % 32; i < columns / 4; i += 32)
        sum += w[i].x * x[i].x + w[i].y * x[i].y + w[i].z * x[i].z + w[i].w * x[i].w;
    for (int lane = 16; lane; lane /= 2)
        sum += __shfl_down_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0)
        to[row] = (int8_t)clamp8((sum >> 13) + (add ? add[row] : 0));
}

/* The new key and value join the cache at POSITION; a block a head looks back over all of it. CACHE is one
 * layer's: a key and a value a position. */
__global__ void attend(const int8_t *__restrict__ qkv, int8_t *__restrict__ cache,
                       int8_t *__restrict__ to, int position, int width, int head_width)
{
    const int8_t *query = qkv + blockIdx.x * head_width;
    int8_t *key = cache + blockIdx.x * head_width, *value = key + width;
    __shared__ int weight[BLOCK];
    int mine = threadIdx.x; /* the element of the value */
    long long sum = 0, all = 1;

    if (mine < head_width) {
        key[(size_t)position * 2 * width + mine] = query[width + mine];
        value[(size_t)position * 2 * width + mine] = query[2 * width + mine];
    }
    __syncthreads();
    for (int start = 0; start <= position; start += BLOCK) {
        int at = start + threadIdx.x, dot = 0;

        if (at <= position)
            for (int i = 0; i < head_width; i++)
                dot += query[i] * key[(size_t)at * 2 * width + i];
        weight[threadIdx.x] = at <= position && dot > 0 ? dot >> 6 : 0; /* for the exponential */
        __syncthreads();
        for (int k = 0; k < BLOCK && start + k <= position; k++) {
            all += weight[k];
            if (mine < head_width)
                sum += (long long)weight[k] * value[(size_t)(start + k) * 2 * width + mine];
        }
        __syncthreads();
    }
    if (mine < head_width)
        to[blockIdx.x * head_width + mine] = (int8_t)(sum / all);
}

/* The activations of TOKEN. */
__global__ void embed(const int8_t *__restrict__ embedding, uint32_t token, int8_t *to, int width)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;

    if (i < width)
        to[i] = embedding[(size_t)token * width + i];
}

/* One block finds the largest, the first of equals. */
__global__ void choose(const int8_t *__restrict__ scores, int n, uint32_t *token)
{
    __shared__ int best[BLOCK];
    int mine = -(1 << 30);

    for (int i = threadIdx.x; i < n; i += BLOCK)
        mine = max(mine, scores[i] * n + n - 1 - i); /* score first, then the smaller index */
    best[threadIdx.x] = mine;
    __syncthreads();
    for (int half = BLOCK / 2; half; half /= 2) {
        if (threadIdx.x < half)
            best[threadIdx.x] = max(best[threadIdx.x], best[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *token = (uint32_t)(n - 1 - (best[0] + 128 * n) % n);
}

struct layer {
    buffer<int8_t> qkv, projection, up, down;
};

static buffer<int8_t> load(size_t rows, size_t columns)
{
    static uint32_t seed = 1;
    buffer<int8_t> b = make<int8_t>(rows * columns, TABLE);
    uint32_t s = seed++ << 20;

    parallel(b.n / 4, [&](size_t from, size_t to) {
        uint32_t *words = (uint32_t *)b.cpu;
        for (size_t i = from; i < to; i++)
            words[i] = mix(s + (uint32_t)i);
    });
    to_gpu(b);
    return b;
}

int main(int argc, char **argv)
{
    work.steps = 64;
    work_start(argc, argv,
               {{"before", BEFORE}, {"race", RACE}, {"read-mostly, before", BEFORE | DUPLICATE}},
               {{"layers", "of the model", &layers},
                {"width", "of a layer", &width},
                {"heads", "of attention", &heads},
                {"context", "tokens until it starts again", &context},
                {"vocabulary", "tokens there are", &vocabulary}});
    if (!heads || !context || !vocabulary || width % (4 * heads) || width / heads > BLOCK ||
        width > 16384 || vocabulary > 65536) {
        fprintf(stderr, "--width must be a multiple of 4 * --heads, at most %d * --heads\n", BLOCK);
        return 2;
    }
    std::vector<layer> model(layers);
    buffer<int8_t> embedding = {};
    buffer<int8_t> cache = make<int8_t>(layers * context * 2 * width, SCRATCH);
    buffer<int8_t> x = make<int8_t>(width, SCRATCH), y = make<int8_t>(3 * width, SCRATCH);
    buffer<int8_t> z = make<int8_t>(4 * width, SCRATCH), scores = make<int8_t>(vocabulary, SCRATCH);
    buffer<uint32_t> token = make<uint32_t>(1, SMALL);
    auto multiply = [](const buffer<int8_t> &weights, const int8_t *from, const int8_t *add,
                       int8_t *to, size_t columns) {
        size_t rows = weights.n / columns;
        product<<<(unsigned)((rows * 32 + BLOCK - 1) / BLOCK), BLOCK>>>(weights.gpu, from, add, to,
                                                                        (int)rows, (int)columns);
    };

    while (work_step()) {
        size_t position = work.step % context;

        if (work.step == 0) {
            embedding = load(vocabulary, width);
            for (layer &l : model)
                l = {load(3 * width, width), load(width, width), load(4 * width, width),
                     load(width, 4 * width)};
            hint_gpu(cache);
            for (buffer<int8_t> *b : {&x, &y, &z, &scores})
                hint_gpu(*b);
            *token.cpu = 1;
        }
        embed<<<(unsigned)((width + BLOCK - 1) / BLOCK), BLOCK>>>(embedding.gpu, *token.cpu, x.gpu,
                                                                  (int)width);
        for (size_t i = 0; i < layers; i++) {
            const layer &l = model[i];

            multiply(l.qkv, x.gpu, NULL, y.gpu, width);
            attend<<<(unsigned)heads, BLOCK>>>(y.gpu, cache.gpu + i * context * 2 * width, z.gpu,
                                               (int)position, (int)width, (int)(width / heads));
            multiply(l.projection, z.gpu, x.gpu, x.gpu, width);
            multiply(l.up, x.gpu, NULL, z.gpu, width);
            multiply(l.down, z.gpu, x.gpu, x.gpu, 4 * width);
        }
        multiply(embedding, x.gpu, NULL, scores.gpu, width);
        choose<<<1, BLOCK>>>(scores.gpu, (int)vocabulary, token.gpu);
        to_cpu(token);
        sync_gpu();
        work_sum(*token.cpu);
    }
    drop(token);
    for (buffer<int8_t> *b : {&scores, &z, &y, &x, &cache, &embedding})
        drop(*b);
    for (layer &l : model)
        for (buffer<int8_t> *b : {&l.qkv, &l.projection, &l.up, &l.down})
            drop(*b);
    return work_end();
}

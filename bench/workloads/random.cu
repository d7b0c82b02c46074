/* random - a program made up from --seed: how many buffers, of what sizes, which kernels in which streams and
 * order, dense or sparse, and what the CPU writes before and reads after them. Plain managed memory alone:
 * whether umrt ever makes such a program slower. */
#include "workload.h"

static size_t seed = 1, mib = 256;

static uint32_t drawn;
/* Of 0 .. below - 1. */
static uint32_t draw(uint32_t below)
{
    return (uint32_t)((uint64_t)mix(drawn++ * 0x9e3779b9u + (uint32_t)seed * 0x85ebca6bu) * below >>
                      32);
}

enum kind { UPDATE, COMBINE, STRIDED, GATHER, KINDS };

/* FROM and TO have N and M elements; the kernel works on [first, first + count) of TO. */
struct work_part {
    const uint32_t *from;
    uint32_t *to;
    size_t n, m, first, count, stride;
};

__global__ void update(work_part p, uint32_t salt)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < p.count)
        p.to[p.first + i] = p.to[p.first + i] * 3 + salt;
}
__global__ void combine(work_part p, uint32_t salt)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < p.count)
        p.to[p.first + i] += p.from[(p.first + i) % p.n] ^ salt;
}
__global__ void strided(work_part p, uint32_t salt)
{
    size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * p.stride;

    if (i < p.count)
        p.to[p.first + i] += salt;
}
__global__ void fill(uint32_t *to, size_t n, uint32_t salt)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        to[i] = mix((uint32_t)i + salt);
}
/* FROM is another buffer than TO: `combine` and this read it at other places than they write. */
__global__ void gather(work_part p, uint32_t salt)
{
    size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * p.stride;

    if (i < p.count)
        p.to[p.first + i] += p.from[((uint64_t)mix(salt + (uint32_t)i) * p.n) >> 32];
}

struct launch {
    enum kind kind;
    size_t from, to, stride, parts, part, every;
    bool moves; /* on to the next part, each time */
    unsigned stream;
};
/* What the CPU does with a buffer: every STRIDE-th word of one of PARTS, in each EVERY-th step. */
struct touch {
    bool any;
    size_t stride, parts, every;
};
struct plan {
    buffer<uint32_t> data;
    bool cpu_first; /* who touches it first, all of it */
    touch write, read;
};

static touch draw_touch(uint32_t chance)
{
    static const size_t strides[] = {1, 1, 16, 1024, 4096}, parts[] = {1, 1, 2, 8},
                        every[] = {1, 1, 1, 2, 5};

    return {draw(100) < chance, strides[draw(5)], parts[draw(4)], every[draw(5)]};
}

/* The words of a touch in this step: calls BODY(first, end). */
template <typename F> static void touched(const plan &b, const touch &t, F body)
{
    if (!t.any || work.step % t.every)
        return;
    size_t part = work.step % t.parts, first = b.data.n * part / t.parts,
           end = b.data.n * (part + 1) / t.parts;

    body(first, end);
}

static void run(const launch &l, const plan &from, const plan &to, cudaStream_t stream)
{
    static void (*const kernels[KINDS])(work_part, uint32_t) = {update, combine, strided, gather};
    size_t part = l.moves ? (l.part + work.step) % l.parts : l.part;
    size_t first = to.data.n * part / l.parts, end = to.data.n * (part + 1) / l.parts;
    work_part p = {from.data.gpu, to.data.gpu, from.data.n, to.data.n,
                   first,         end - first, l.stride};

    if (work.step % l.every || p.count == 0)
        return;
    kernels[l.kind]<<<blocks_for((p.count + l.stride - 1) / l.stride), 256, 0, stream>>>(
        p, mix((uint32_t)work.step + l.stream));
}

int main(int argc, char **argv)
{
    work_start(argc, argv, {},
               {{"seed", "what the program is made of", &seed},
                {"mib", "of all buffers at most", &mib}});
    std::vector<plan> plans;
    std::vector<launch> launches;
    std::vector<cudaStream_t> streams(1 + draw(4));
    size_t left = mib << 18, wanted = 2 * streams.size() + draw(5);

    /* A stream works on every n-th buffer, so that only the CPU sees what several streams have done. */
    for (size_t b = 0; b < wanted; b++) {
        size_t n = ((size_t)1024 << draw(15)) + 32 * draw(1024); /* 4 KiB to 64 MiB, and odd ones */
        n = n < left / (wanted - b) ? n : left / (wanted - b);
        left -= n;
        plans.push_back({make<uint32_t>(n, SHARED), draw(2) == 0, draw_touch(60), draw_touch(60)});
    }
    for (uint32_t k = 1 + draw(8); k; k--) {
        static const size_t strides[] = {1, 1, 1, 1, 2, 33, 1024}, parts[] = {1, 1, 1, 2, 4, 16},
                            every[] = {1, 1, 1, 1, 3};
        unsigned s = draw((uint32_t)streams.size());
        uint32_t own = (uint32_t)((wanted - s + streams.size() - 1) / streams.size());
        uint32_t to = draw(own), from = (to + 1 + draw(own - 1)) % own;
        launch l = {(kind)draw(KINDS),
                    s + from * streams.size(),
                    s + to * streams.size(),
                    1,
                    parts[draw(6)],
                    0,
                    every[draw(5)],
                    draw(2) == 0,
                    s};
        if (l.kind >= STRIDED)
            l.stride = strides[draw(7)];
        l.part = draw((uint32_t)l.parts);
        launches.push_back(l);
    }
    for (cudaStream_t &s : streams)
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    printf("%zu buffers, %zu MiB, %zu kernels, %zu streams: ", plans.size(),
           ((mib << 18) - left) >> 18, launches.size(), streams.size());

    while (work_step()) {
        uint64_t sum = 0;

        if (work.step == 0) {
            for (plan &b : plans)
                if (b.cpu_first)
                    cpu_write(b.data.cpu, b.data.n, 1);
                else
                    fill<<<blocks_for(b.data.n), 256>>>(b.data.gpu, b.data.n, 1);
            sync_gpu();
        }
        for (plan &b : plans)
            touched(b, b.write, [&](size_t first, size_t end) {
                for (size_t i = first; i < end; i += b.write.stride)
                    b.data.cpu[i] = (uint32_t)i * 5 + (uint32_t)work.step;
            });
        for (const launch &l : launches)
            run(l, plans[l.from], plans[l.to], streams[l.stream]);
        for (cudaStream_t s : streams)
            CHECK(cudaStreamSynchronize(s));
        for (plan &b : plans)
            touched(b, b.read, [&](size_t first, size_t end) {
                for (size_t i = first; i < end; i += b.read.stride)
                    sum = sum * 3 + b.data.cpu[i];
            });
        work_sum(sum);
    }
    for (plan &b : plans)
        drop(b.data);
    for (cudaStream_t s : streams)
        CHECK(cudaStreamDestroy(s));
    return work_end();
}

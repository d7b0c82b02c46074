/*
 * workload.h - what the measured workloads share, on top of examples/example.h: the variants, buffers
 * that know how a variant moves them, the step loop and its times.
 *
 * A workload is written once. It says what must be on which side (`to_gpu`, `to_cpu`: the other side has
 * new data there; `hint_gpu`, `hint_cpu`: it will be used there), and the variant decides what that
 * means:
 *
 * plain   nothing: managed memory, moved by faults
 * hand..  prefetches and advice, as the flags of `struct hand` say; each workload has a few such
 *         variants, of which the best one counts
 * copies  cudaMalloc and pinned host memory, copied; hints mean nothing
 *
 * stdout has one line, the sum over what the first --checked steps computed: the same bytes in every
 * variant and for any number of steps. --times FILE gets "step <ms>" a step, and "total <ms>" from the
 * first allocation to the end of the last step; the context is there before.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "../../examples/example.h"

#include <condition_variable>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

enum {
    BEFORE = 1, /* prefetch on the kernel's own stream, ahead of it */
    RACE = 2,   /* prefetch from two threads on streams of their own; the kernel starts at once */
    BACK = 4,   /* prefetch to the host what the CPU uses next */
    MAP = 8,    /* SHARED buffers stay on the CPU, the GPU reaches them over the link */
    DUPLICATE = 16 /* TABLE buffers are ReadMostly */
};
struct hand {
    const char *name;
    unsigned how;
};

/* Who uses a buffer: what advice an expert would consider for it. */
enum use {
    SHARED, /* both sides, step after step */
    SMALL,  /* the same, a few bytes: mapped in all hand variants */
    TABLE,  /* written once by the CPU, then only read */
    SCRATCH /* the GPU alone */
};

struct option {
    const char *name, *doc;
    size_t *value;
};

static struct work {
    size_t steps = 10, step = 0; /* asked for; the one that runs */
    size_t checked = 10, threads = 4;
    double seconds = 0; /* steps go on until so many have passed */
    bool copies = false;
    unsigned how = 0; /* of the hand variant; 0 in the others */
    uint64_t sum = 0;
    double start_ms = 0, step_ms = 0, total_ms = 0;
    bool running = false;
} work;

/* ---- racing prefetches --------------------------------------------------------------------- */

struct piece {
    const char *at;
    size_t bytes;
    bool to_host;
};

static struct racers {
    std::mutex lock; /* of all below */
    std::condition_variable more, idle;
    std::deque<piece> pieces;
    std::vector<std::thread> threads;
    int busy = 0;
    bool stop = false;
} racers;

static void racer(void)
{
    cudaStream_t stream;

    CHECK(cudaSetDevice(example.device));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::unique_lock<std::mutex> hold(racers.lock);
    for (;;) {
        racers.more.wait(hold, [] { return racers.stop || !racers.pieces.empty(); });
        if (racers.pieces.empty())
            break;
        piece p = racers.pieces.front();
        racers.pieces.pop_front();
        racers.busy++;
        hold.unlock();
        example_prefetch(p.at, p.bytes, p.to_host, stream);
        hold.lock();
        if (--racers.busy == 0 && racers.pieces.empty())
            racers.idle.notify_all();
    }
    CHECK(cudaStreamDestroy(stream));
}

static inline void race(const void *at, size_t bytes)
{
    const size_t most = (size_t)32 << 20;

    {
        std::lock_guard<std::mutex> hold(racers.lock);
        for (size_t done = 0; done < bytes; done += most)
            racers.pieces.push_back(
                {(const char *)at + done, bytes - done < most ? bytes - done : most, false});
    }
    racers.more.notify_all();
}

/* ---- start and end ------------------------------------------------------------------------- */

static std::string work_hand_name(size_t i)
{
    return i ? "hand" + std::to_string(i + 1) : "hand";
}

[[noreturn]] static void work_usage(const char *program, const std::vector<hand> &hands,
                                    const std::vector<option> &options)
{
    fprintf(stderr,
            "usage: %s [--variant NAME] [--steps N] [--seconds S] [--checked N] [--threads N]\n"
            "       [--times FILE] [--variants] [--SIZE N]...\nvariants: plain copies",
            program);
    for (size_t i = 0; i < hands.size(); i++)
        fprintf(stderr, " %s (%s)", work_hand_name(i).c_str(), hands[i].name);
    fprintf(stderr, "\nsizes:\n");
    for (const option &o : options)
        fprintf(stderr, "  --%-10s %s (%zu)\n", o.name, o.doc, *o.value);
    exit(2);
}

/* Names are plain, copies, hand, hand2, hand3 ...; false when there is none of that name. */
static bool work_variant(const char *name, const std::vector<hand> &hands)
{
    work.copies = !strcmp(name, "copies") && !hands.empty();
    if (work.copies || !strcmp(name, "plain"))
        return true;
    for (size_t i = 0; i < hands.size(); i++)
        if (work_hand_name(i) == name) {
            work.how = hands[i].how;
            return true;
        }
    return false;
}

/* An empty list of hands: the program has no variants but plain. */
static void work_start(int argc, char **argv, const std::vector<hand> &hands,
                       std::vector<option> options)
{
    const std::vector<option> common = {{"steps", "", &work.steps},
                                        {"checked", "", &work.checked},
                                        {"threads", "", &work.threads}};

    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : nullptr;
        const option *found = nullptr;
        char *end = nullptr;

        if (!strcmp(name, "--variants")) {
            printf("plain\n%s", hands.empty() ? "" : "copies\n");
            for (size_t n = 0; n < hands.size(); n++)
                printf("%s %s\n", work_hand_name(n).c_str(), hands[n].name);
            exit(0);
        }
        for (const std::vector<option> *list : {&common, (const std::vector<option> *)&options})
            for (const option &o : *list)
                if (!strncmp(name, "--", 2) && !strcmp(name + 2, o.name))
                    found = &o;
        if (value && found)
            *found->value = strtoull(value, &end, 10);
        else if (value && !strcmp(name, "--seconds"))
            work.seconds = strtod(value, &end);
        else if (value && !strcmp(name, "--times") && (example.times = fopen(value, "a")))
            end = (char *)"";
        else if (value && !strcmp(name, "--variant") && work_variant(value, hands))
            end = (char *)"";
        if (!end || end == value || *end)
            work_usage(argv[0], hands, options);
        i++;
    }
    if (!work.threads || !work.steps)
        work_usage(argv[0], hands, options);
    example_device();
    if (work.how & RACE)
        for (int i = 0; i < 2; i++)
            racers.threads.emplace_back(racer);
    work.start_ms = example_now_ms();
}

/* The step loop: while (work_step()) { ... work.step counts from 0 ... } */
static bool work_step(void)
{
    double now = example_now_ms();

    if (work.running) {
        if (example.times)
            fprintf(example.times, "step %.4f\n", now - work.step_ms);
        work.step++;
    }
    work.running = work.step < work.steps || now - work.start_ms < work.seconds * 1e3;
    work.total_ms = now - work.start_ms;
    work.step_ms = now;
    return work.running;
}

/* Takes a result of this step; the order counts. */
static void work_sum(uint64_t value)
{
    if (work.step < work.checked)
        work.sum = (work.sum ^ value) * 0x9e3779b97f4a7c15u + 1;
}

/* After the last free. */
static int work_end(void)
{
    {
        std::lock_guard<std::mutex> hold(racers.lock);
        racers.stop = true;
    }
    racers.more.notify_all();
    for (std::thread &t : racers.threads)
        t.join();
    CHECK(cudaDeviceSynchronize());
    printf("%016llx\n", (unsigned long long)work.sum);
    if (example.times)
        fprintf(example.times, "total %.4f\n", work.total_ms);
    return example_end();
}

/* All that was asked of the GPU is done, prefetches included. */
static inline void sync_gpu(void)
{
    if (work.how & RACE) {
        std::unique_lock<std::mutex> hold(racers.lock);
        racers.idle.wait(hold, [] { return racers.busy == 0 && racers.pieces.empty(); });
    }
    CHECK(cudaDeviceSynchronize());
}

/* ---- buffers ------------------------------------------------------------------------------- */

/* `cpu` and `gpu` are one pointer but in the copies variant. `still`: advice keeps it where it is. */
template <typename T> struct buffer {
    T *cpu, *gpu;
    size_t n;
    bool still, duplicated;
};

static void advise(const void *p, size_t bytes, cudaMemoryAdvise advice, bool host)
{
#if CUDART_VERSION >= 13000
    struct cudaMemLocation where = {host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                    host ? 0 : example.device};
    CHECK(cudaMemAdvise(p, bytes, advice, where));
#else
    CHECK(cudaMemAdvise(p, bytes, advice, host ? cudaCpuDeviceId : example.device));
#endif
}

template <typename T> static buffer<T> make(size_t n, use use)
{
    buffer<T> b = {};
    size_t bytes = n * sizeof(T);

    b.n = n;
    if (work.copies) {
        example_reserve(bytes);
        CHECK(cudaMalloc(&b.gpu, bytes));
        if (use != SCRATCH)
            CHECK(cudaMallocHost(&b.cpu, bytes));
        return b;
    }
    b.cpu = b.gpu = (T *)example_managed(bytes);
    b.still = work.how && (use == SMALL || (use == SHARED && work.how & MAP));
    b.duplicated = use == TABLE && work.how & DUPLICATE;
    if (b.still) {
        advise(b.cpu, bytes, cudaMemAdviseSetPreferredLocation, true);
        advise(b.cpu, bytes, cudaMemAdviseSetAccessedBy, false);
    }
    if (b.duplicated)
        advise(b.cpu, bytes, cudaMemAdviseSetReadMostly, false);
    return b;
}

template <typename T> static void drop(buffer<T> b)
{
    if (work.copies) {
        CHECK(cudaFree(b.gpu));
        CHECK(cudaFreeHost(b.cpu));
        example.managed -= b.n * sizeof(T);
    } else {
        example_free(b.cpu, b.n * sizeof(T));
    }
}

/* Elements [first, first + n) are used by the GPU next, in STREAM. */
template <typename T>
static void hint_gpu(const buffer<T> &b, size_t first, size_t n, cudaStream_t stream = 0)
{
    if (b.still)
        return;
    if (work.how & BEFORE)
        example_prefetch(b.gpu + first, n * sizeof(T), false, stream);
    else if (work.how & RACE)
        race(b.gpu + first, n * sizeof(T));
}
template <typename T> static void hint_gpu(const buffer<T> &b, cudaStream_t stream = 0)
{
    hint_gpu(b, 0, b.n, stream);
}

/* They are used by the CPU, once STREAM has come here. */
template <typename T>
static void hint_cpu(const buffer<T> &b, size_t first, size_t n, cudaStream_t stream = 0)
{
    if (!b.still && work.how & BACK)
        example_prefetch(b.cpu + first, n * sizeof(T), true, stream);
}
template <typename T> static void hint_cpu(const buffer<T> &b, cudaStream_t stream = 0)
{
    hint_cpu(b, 0, b.n, stream);
}

/* The same, and the CPU has written there since the GPU last looked. */
template <typename T>
static void to_gpu(const buffer<T> &b, size_t first, size_t n, cudaStream_t stream = 0)
{
    if (work.copies)
        CHECK(cudaMemcpyAsync(b.gpu + first, b.cpu + first, n * sizeof(T), cudaMemcpyHostToDevice,
                              stream));
    else
        hint_gpu(b, first, n, stream);
}
template <typename T> static void to_gpu(const buffer<T> &b, cudaStream_t stream = 0)
{
    to_gpu(b, 0, b.n, stream);
}

template <typename T>
static void to_cpu(const buffer<T> &b, size_t first, size_t n, cudaStream_t stream = 0)
{
    if (work.copies)
        CHECK(cudaMemcpyAsync(b.cpu + first, b.gpu + first, n * sizeof(T), cudaMemcpyDeviceToHost,
                              stream));
    else
        hint_cpu(b, first, n, stream);
}
template <typename T> static void to_cpu(const buffer<T> &b, cudaStream_t stream = 0)
{
    to_cpu(b, 0, b.n, stream);
}

/* ---- the CPU's and the GPU's common work --------------------------------------------------- */

/* Calls BODY(first, last) over [0, n) from --threads threads: large tables are not filled by one. */
template <typename F> static void parallel(size_t n, F body)
{
    std::vector<std::thread> threads;

    for (size_t t = 0; t < work.threads; t++)
        threads.emplace_back(body, n * t / work.threads, n * (t + 1) / work.threads);
    for (std::thread &t : threads)
        t.join();
}

static inline unsigned blocks_for(size_t n)
{
    return (unsigned)((n + 255) / 256);
}

__host__ __device__ static inline uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* Values that differ from step to step. */
static inline void cpu_write(uint32_t *to, size_t n, uint32_t step)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint32_t)i * 2654435761u + step;
}

static inline uint64_t cpu_read(const uint32_t *from, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += from[i];
    return sum;
}

/* out[block] = the block's sum: plain stores, so that OUT may lie on either side. */
#define REDUCE_BLOCKS 1056
__device__ static inline void block_sum(unsigned long long sum, unsigned long long *out)
{
    __shared__ unsigned long long warps[32];

    for (int lane = 16; lane; lane /= 2)
        sum += __shfl_down_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (unsigned w = 1; w < blockDim.x / 32; w++)
        sum += warps[w];
    out[blockIdx.x] = sum;
}

/* The sums of every STRIDE-th of in[0..n). */
__global__ static void reduce(const uint32_t *in, size_t n, size_t stride, unsigned long long *out)
{
    unsigned long long sum = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / stride;
         i += (size_t)gridDim.x * blockDim.x)
        sum += in[i * stride];
    block_sum(sum, out);
}

static inline uint64_t cpu_total(const buffer<unsigned long long> &sums)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < sums.n; i++)
        sum += sums.cpu[i];
    return sum;
}

#endif

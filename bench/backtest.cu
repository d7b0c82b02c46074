/*
 * backtest - measures what the driver model is judged by: patterns of managed memory, each in
 * several variants of hints, on the GPU that is here.
 *
 *   backtest [--only TEXT] [--mib N] [--seconds N] > backtest.json
 *
 * --mib measures every variant of every pattern at that size instead of the sizes of the table, and
 * marks the file as held out: nothing is ever fitted to its runs.
 *
 * A run is a list of operations (host access, kernel, prefetch, advice, wait). The program carries
 * the list out and prints it beside the times, so that lib/sim/backtest.c simulates the very same
 * list. Every repetition has fresh allocations: set-up (not timed), `warm` rounds of the body (not
 * timed), then `iterations` rounds. Timed is from before the first operation of these until all is
 * done: helper threads joined and the device idle. One repetition warms up and is thrown away.
 *
 * `ns` of a kernel or host access is its own time with all its data where it is needed, measured
 * here as well; `took_ns` is what the call took in the run, median over repetitions, for diagnosis.
 * Managed memory never exceeds 4 GiB (example.h refuses more); under 3 minutes on an H200.
 */
#define EXAMPLE_MANAGED_LIMIT ((size_t)4 << 30)
#include "../examples/example.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <sys/utsname.h>
#include <thread>
#include <time.h>
#include <vector>

static const size_t MIB = (size_t)1 << 20, PAGE = 4096, PIECE = 32 * MIB;
static const int REPETITIONS = 7, STREAMS = 4, RACERS = 2, FILLERS = 8;

enum op_type { HOST, KERNEL, PREFETCH, ADVISE, SYNC };
static const char *const op_names[] = {"host", "kernel", "prefetch", "advise", "sync"};

struct op {
    op_type type = SYNC;
    std::string name = ""; /* HOST: read, write; KERNEL: see launch(); ADVISE: the advice */
    int region = 0;
    size_t at = 0, bytes = 0;
    int other = 0;   /* KERNEL copy: the region written; PREFETCH, ADVISE: 0 the GPU, -1 the host */
    int stream = 0;  /* KERNEL, PREFETCH: 0..STREAMS-1 */
    size_t step = 0; /* HOST: one word every so many bytes; PREFETCH: bytes of one call */
    int loops = 0;   /* KERNEL: arithmetic on each element */
    bool race = false; /* RACERS threads prefetch the range to where it is used, meanwhile */
    double ns = 0;     /* HOST, KERNEL: with its data there */
    double took = 0;   /* in the repetition that runs, mean over iterations */
    std::vector<double> tooks = {};
};

struct run {
    std::string pattern, variant;
    size_t mib;
    std::vector<size_t> regions; /* bytes */
    std::vector<op> setup, body;
    int warm = 0, iterations = 1;
    std::vector<double> samples = {};
};

static std::vector<void *> memory; /* of the run's regions */
static cudaStream_t streams[STREAMS], side[RACERS];

static double now_ns()
{
    return example_now_ms() * 1e6;
}

/* ---- kernels: front to back, one element a thread ---- */

__device__ static float work(float v, int loops)
{
    for (int i = 0; i < loops; i++)
        v = v * 1.0001f + 0.5f;
    return v;
}

__global__ void k_update(float *a, size_t n, int loops)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = work(a[i], loops) + 1.0f;
}

__global__ void k_read(const float *a, size_t n, int loops, float *never)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n && work(a[i], loops) == -12345.0f)
        *never = 1.0f;
}

__global__ void k_write(float *a, size_t n, int loops)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = work((float)i, loops);
}

__global__ void k_copy(const float *a, float *b, size_t n, int loops)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = work(a[i], loops);
}

/* The page that the i-th warp of a gather reads; lib/sim/backtest.c has the same function. */
__device__ static uint64_t gather_page(uint64_t i, uint64_t pages)
{
    uint64_t h = (i + 1) * 0x9E3779B97F4A7C15ull;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull;
    return (h ^ h >> 32) % pages;
}

__global__ void k_gather(const float *a, uint64_t pages, float *never)
{
    if (a[gather_page(blockIdx.x, pages) * (PAGE / sizeof(float)) + threadIdx.x] == -12345.0f)
        *never = 1.0f;
}

static void launch(const op &o)
{
    static float *never;
    float *a = (float *)((char *)memory[o.region] + o.at);
    size_t n = o.bytes / sizeof(float);
    unsigned grid = (unsigned)((n + 255) / 256);
    cudaStream_t s = streams[o.stream];

    if (!never)
        CHECK(cudaMalloc(&never, sizeof(float)));
    if (o.name == "update")
        k_update<<<grid, 256, 0, s>>>(a, n, o.loops);
    else if (o.name == "read")
        k_read<<<grid, 256, 0, s>>>(a, n, o.loops, never);
    else if (o.name == "write")
        k_write<<<grid, 256, 0, s>>>(a, n, o.loops);
    else if (o.name == "copy")
        k_copy<<<grid, 256, 0, s>>>(a, (float *)((char *)memory[o.other] + o.at), n, o.loops);
    else /* gather: 1 % of the pages */
        k_gather<<<(unsigned)(o.bytes / PAGE / 100), 32, 0, s>>>(a, o.bytes / PAGE, never);
    CHECK(cudaGetLastError());
}

/* ---- host side ---- */

static volatile uint64_t host_sum;

static void host_access(bool write, char *start, size_t bytes, size_t step)
{
    uint64_t sum = 0;

    if (write) {
        for (size_t i = 0; i < bytes; i += step)
            *(volatile uint64_t *)(start + i) = i;
    } else {
        for (size_t i = 0; i < bytes; i += step)
            sum += *(volatile uint64_t *)(start + i);
    }
    host_sum += sum;
}

/* Set-up only: several threads, to save time. */
static void host_fill(char *start, size_t bytes, size_t step)
{
    size_t slice = (bytes / FILLERS + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    std::vector<std::thread> threads;

    for (size_t at = 0; at < bytes; at += slice)
        threads.emplace_back(host_access, true, start + at, std::min(slice, bytes - at), step);
    for (auto &t : threads)
        t.join();
}

static void prefetch(void *p, size_t bytes, int to, cudaStream_t s)
{
#if CUDART_VERSION >= 13000
    struct cudaMemLocation where = {to < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                    to < 0 ? 0 : example.device};
    CHECK(cudaMemPrefetchAsync(p, bytes, where, 0, s));
#else
    CHECK(cudaMemPrefetchAsync(p, bytes, to < 0 ? cudaCpuDeviceId : example.device, s));
#endif
}

static void advise(const op &o)
{
    enum cudaMemoryAdvise advice = o.name == "read_mostly"   ? cudaMemAdviseSetReadMostly
                                   : o.name == "accessed_by" ? cudaMemAdviseSetAccessedBy
                                                             : cudaMemAdviseSetPreferredLocation;
    void *p = (char *)memory[o.region] + o.at;
#if CUDART_VERSION >= 13000
    struct cudaMemLocation where = {o.other < 0 ? cudaMemLocationTypeHost
                                                : cudaMemLocationTypeDevice,
                                    o.other < 0 ? 0 : example.device};
    CHECK(cudaMemAdvise(p, o.bytes, advice, where));
#else
    CHECK(cudaMemAdvise(p, o.bytes, advice, o.other < 0 ? cudaCpuDeviceId : example.device));
#endif
}

/* ---- racing: threads that wait spinning, so that no wake-up time blurs the measurement ---- */

static struct {
    std::atomic<int> generation, done;
    std::atomic<bool> stop;
    int posted;
    char *start;
    size_t bytes;
    int to;
    std::vector<std::thread> threads;
} race;

static void racer(int me)
{
    CHECK(cudaSetDevice(example.device));
    for (int seen = 0;;) {
        int generation = race.generation.load();
        if (generation == seen) {
            if (race.stop)
                return;
            continue;
        }
        seen = generation;
        for (size_t at = me * PIECE; at < race.bytes; at += RACERS * PIECE)
            prefetch(race.start + at, std::min(PIECE, race.bytes - at), race.to, side[me]);
        race.done++;
    }
}

static void race_wait()
{
    while (race.done < race.posted)
        ;
}

static void race_post(const op &o)
{
    race_wait();
    race.start = (char *)memory[o.region] + o.at;
    race.bytes = o.bytes;
    race.to = o.type == HOST ? -1 : 0;
    race.posted += RACERS;
    race.generation++;
}

static void race_begin(const run &r)
{
    bool any = false;

    for (const op &o : r.body)
        any = any || o.race;
    race.generation = race.done = race.posted = 0;
    race.stop = false;
    for (int i = 0; any && i < RACERS; i++)
        race.threads.emplace_back(racer, i);
}

static void race_end()
{
    race.stop = true;
    for (auto &t : race.threads)
        t.join();
    race.threads.clear();
}

/* ---- carrying out ---- */

static void finish()
{
    race_wait();
    CHECK(cudaDeviceSynchronize());
}

static void carry_out(op &o, bool in_setup)
{
    char *start = o.type == SYNC ? NULL : (char *)memory[o.region] + o.at;

    if (o.race)
        race_post(o);
    switch (o.type) {
    case HOST:
        if (in_setup)
            host_fill(start, o.bytes, o.step);
        else
            host_access(o.name == "write", start, o.bytes, o.step);
        break;
    case KERNEL:
        launch(o);
        break;
    case PREFETCH:
        for (size_t at = 0; at < o.bytes; at += o.step)
            prefetch(start + at, std::min(o.step, o.bytes - at), o.other, streams[o.stream]);
        break;
    case ADVISE:
        advise(o);
        break;
    case SYNC:
        finish();
        break;
    }
}

static void take(const run &r)
{
    memory.clear();
    for (size_t bytes : r.regions)
        memory.push_back(example_managed(bytes));
}

static void give_back(const run &r)
{
    for (size_t i = 0; i < r.regions.size(); i++)
        example_free(memory[i], r.regions[i]);
}

static double repetition(run &r)
{
    take(r);
    race_begin(r);
    for (op &o : r.setup)
        carry_out(o, true);
    finish();
    for (int i = 0; i < r.warm; i++)
        for (op &o : r.body)
            carry_out(o, false);
    finish();
    for (op &o : r.body)
        o.took = 0;
    double start = now_ns();
    for (int i = 0; i < r.iterations; i++) {
        for (op &o : r.body) {
            double t = now_ns();
            carry_out(o, false);
            o.took += (now_ns() - t) / r.iterations;
        }
    }
    finish();
    double ns = now_ns() - start;
    race_end();
    give_back(r);
    return ns;
}

static double quantile(std::vector<double> v, double share)
{
    std::sort(v.begin(), v.end());
    double at = share * (v.size() - 1);
    size_t low = (size_t)at;
    return low + 1 < v.size() ? v[low] + (at - low) * (v[low + 1] - v[low]) : v[low];
}

/* Every kernel with everything on the GPU, every host access with everything on the host. */
static void measure_resident(run &r)
{
    cudaEvent_t from, to;

    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    take(r);
    for (int place = 0; place >= -1; place--) {
        for (size_t i = 0; i < r.regions.size(); i++)
            for (size_t at = 0; at < r.regions[i]; at += PIECE)
                prefetch((char *)memory[i] + at, std::min(PIECE, r.regions[i] - at), place,
                         streams[0]);
        CHECK(cudaDeviceSynchronize());
        for (op &o : r.body) {
            std::vector<double> times;
            if (o.type != (place ? HOST : KERNEL))
                continue;
            for (int i = 0; i < 4; i++) {
                double t = now_ns();
                if (o.type == HOST) {
                    host_access(o.name == "write", (char *)memory[o.region] + o.at, o.bytes,
                                o.step);
                    times.push_back(now_ns() - t);
                } else {
                    float ms;
                    launch(o); /* keeps the GPU busy while the three calls below are made */
                    CHECK(cudaEventRecord(from, streams[o.stream]));
                    launch(o);
                    CHECK(cudaEventRecord(to, streams[o.stream]));
                    CHECK(cudaEventSynchronize(to));
                    CHECK(cudaEventElapsedTime(&ms, from, to));
                    times.push_back(ms * 1e6);
                }
            }
            times.erase(times.begin()); /* warms up */
            o.ns = quantile(times, 0.5);
        }
    }
    give_back(r);
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
}

/* ---- putting runs together ---- */

static op host(const char *name, int region, size_t at, size_t bytes, size_t step = PAGE)
{
    return {HOST, name, region, at, bytes, 0, 0, step};
}

static op kernel(const char *name, int region, size_t at, size_t bytes, int stream = 0,
                 int loops = 1, int other = 0)
{
    return {KERNEL, name, region, at, bytes, other, stream, 0, loops};
}

static op hint(int region, size_t at, size_t bytes, int to, size_t step, int stream = 0)
{
    return {PREFETCH, "", region, at, bytes, to, stream, step ? step : bytes};
}

static const op sync_all = {SYNC};

/* The advice of a variant ("" = none). */
static void add_advice(std::vector<op> &list, const std::string &variant, int region, size_t bytes)
{
    if (variant.find("read_mostly") == 0)
        list.push_back({ADVISE, "read_mostly", region, 0, bytes, 0});
    if (variant == "preferred_gpu")
        list.push_back({ADVISE, "preferred_location", region, 0, bytes, 0});
    if (variant == "preferred_host")
        list.push_back({ADVISE, "preferred_location", region, 0, bytes, -1});
    if (variant == "preferred_host" || variant == "accessed_by")
        list.push_back({ADVISE, "accessed_by", region, 0, bytes, 0});
}

static bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

/* A kernel with the variant's prefetch before or beside it. */
static void add_kernel(std::vector<op> &list, const std::string &variant, op k)
{
    size_t step = has(variant, "before") ? k.bytes : has(variant, "chunk2") ? 2 * MIB : PIECE;

    if (has(variant, "before") || has(variant, "chunk"))
        list.push_back(hint(k.region, k.at, k.bytes, 0, step, k.stream));
    k.race = has(variant, "race");
    list.push_back(k);
}

/* A host read with the variant's prefetch to the host before or beside it. */
static void add_host_read(std::vector<op> &list, const std::string &variant, op h)
{
    if (has(variant, "to_host")) {
        list.push_back(hint(h.region, h.at, h.bytes, -1, has(variant, "one") ? h.bytes : PIECE));
        list.push_back(sync_all);
    }
    h.race = has(variant, "racing_host");
    list.push_back(h);
}

typedef void (*pattern_fn)(run &r, const std::string &v, size_t n);

/* The host filled it, the GPU updates it once; advice is timed. */
static void p_stream(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.body, v, 0, n);
    add_kernel(r.body, v, kernel("update", 0, 0, n));
    r.body.push_back(sync_all);
}

/* The same with arithmetic worth hiding the transfer behind. */
static void p_compute(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_kernel(r.body, v, kernel("update", 0, 0, n, 0, 2000));
    r.body.push_back(sync_all);
}

/* The host filled it, the GPU reads it three times; advice is timed. */
static void p_scan(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.body, v, 0, n);
    add_kernel(r.body, v, kernel("read", 0, 0, n));
    for (int i = 0; i < 2; i++)
        r.body.push_back(kernel("read", 0, 0, n));
    r.body.push_back(sync_all);
}

/* Nobody has touched it before the GPU writes it. */
static void p_first_touch(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    add_advice(r.body, v, 0, n);
    add_kernel(r.body, v, kernel("write", 0, 0, n));
    r.body.push_back(sync_all);
}

/* Nobody has touched it before the host writes it. */
static void p_host_touch(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    if (v == "to_host") {
        r.body = {hint(0, 0, n, -1, PIECE), sync_all};
    }
    r.body.push_back(host("write", 0, 0, n));
}

/* The GPU updates, the host reads it all back, again and again. */
static void p_ping_pong(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.setup, v, 0, n);
    add_kernel(r.body, v, kernel("update", 0, 0, n));
    r.body.push_back(sync_all);
    add_host_read(r.body, v, host("read", 0, 0, n));
    r.warm = 1;
    r.iterations = 3;
}

/* The host writes every 64th byte, the GPU reads, again and again. */
static void p_feed(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.setup, v, 0, n);
    r.body = {host("write", 0, 0, n, 64)};
    add_kernel(r.body, v, kernel("read", 0, 0, n));
    r.body.push_back(sync_all);
    r.warm = 1;
    r.iterations = 3;
}

/* The GPU made it, the host reads it once. */
static void p_read_back(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {hint(0, 0, n, 0, PIECE), kernel("write", 0, 0, n)};
    add_host_read(r.body, v, host("read", 0, 0, n));
}

/* The host changes an eighth, the GPU updates all. "exact" prefetches what changed. */
static void p_partial(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.setup, v, 0, n);
    r.body = {host("write", 0, n / 4, n / 8)};
    if (v == "exact")
        r.body.push_back(hint(0, n / 4, n / 8, 0, PIECE));
    add_kernel(r.body, v, kernel("update", 0, 0, n));
    r.body.push_back(sync_all);
    r.warm = 1;
    r.iterations = 4;
}

/* The host changes one page in each 2 MiB. */
static void p_sprinkle(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.setup, v, 0, n);
    r.body = {host("write", 0, 0, n, 2 * MIB)};
    add_kernel(r.body, v, kernel("update", 0, 0, n));
    r.body.push_back(sync_all);
    r.warm = 1;
    r.iterations = 4;
}

/* Two grids swapped, the host reads a small window of each result. */
static void p_stencil(run &r, const std::string &v, size_t n)
{
    r.regions = {n / 2, n / 2};
    r.setup = {host("write", 0, 0, n / 2)};
    for (int i = 0; i < 2; i++)
        add_advice(r.setup, v, i, n / 2);
    for (int i = 0; i < 2; i++) {
        if (v == "chunk")
            r.body.push_back(hint(1 - i, 0, n / 2, 0, PIECE));
        add_kernel(r.body, v, kernel("copy", i, 0, n / 2, 0, 1, 1 - i));
        r.body.push_back(sync_all);
        r.body.push_back(host("read", 1 - i, n / 4, 16384));
    }
    r.warm = v == "cold" ? 0 : 1;
    r.iterations = v == "cold" ? 1 : 4;
}

/* A table that both sides read, and results of the GPU. */
static void p_table(run &r, const std::string &v, size_t n)
{
    r.regions = {n / 2, n / 2};
    r.setup = {host("write", 0, 0, n / 2)};
    add_advice(r.setup, v, 0, n / 2);
    add_kernel(r.body, v, kernel("copy", 0, 0, n / 2, 0, 1, 1));
    r.body.push_back(sync_all);
    add_host_read(r.body, v, host("read", 0, 0, n / 2));
    r.warm = 1;
    r.iterations = 3;
}

/* One page in a hundred, in no order; advice is timed. */
static void p_gather(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    add_advice(r.body, v, 0, n);
    add_kernel(r.body, v, kernel("gather", 0, 0, n));
    r.body.push_back(sync_all);
}

/* Eight slices of one allocation, each filled by the host and used by a kernel of its own. "whole"
 * prefetches the allocation before each kernel. */
static void p_pool(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {host("write", 0, 0, n)};
    for (int i = 0; i < 8; i++) {
        r.body.push_back(host("write", 0, i * n / 8, n / 8));
        if (v == "whole")
            r.body.push_back(hint(0, 0, n, 0, PIECE));
        add_kernel(r.body, v, kernel("update", 0, i * n / 8, n / 8));
        r.body.push_back(sync_all);
    }
}

/* Four buffers on four streams, two kernels each, nothing between them. */
static void p_pipeline(run &r, const std::string &v, size_t n)
{
    r.regions = {n / 4, n / 4, n / 4, n / 4};
    for (int i = 0; i < 4; i++)
        r.setup.push_back(host("write", i, 0, n / 4));
    for (int i = 0; i < 4; i++) {
        add_kernel(r.body, v, kernel("update", i, 0, n / 4, i, 500));
        r.body.push_back(kernel("update", i, 0, n / 4, i, 500));
    }
    r.body.push_back(sync_all);
}

/* All on the GPU already: what asking again costs. */
static void p_resident(run &r, const std::string &v, size_t n)
{
    r.regions = {n};
    r.setup = {hint(0, 0, n, 0, PIECE)};
    add_kernel(r.body, v, kernel("update", 0, 0, n, 0, 100));
    r.body.push_back(sync_all);
    r.warm = 1;
    r.iterations = 10;
}

static const struct {
    const char *name;
    pattern_fn make;
    std::vector<size_t> mib;
    std::vector<std::string> variants;
} patterns[] = {
    {"stream",
     p_stream,
     {64, 256},
     {"plain", "before", "chunk", "chunk2", "race", "accessed_by", "preferred_gpu",
      "preferred_host"}},
    {"stream", p_stream, {1024}, {"plain", "before", "chunk", "race"}},
    {"stream", p_stream, {2048}, {"chunk", "race"}},
    {"stream", p_stream, {64}, {"read_mostly"}},
    {"compute", p_compute, {256}, {"plain", "before", "chunk", "race"}},
    {"scan",
     p_scan,
     {256},
     {"plain", "chunk", "race", "read_mostly", "read_mostly_chunk", "accessed_by",
      "preferred_host"}},
    {"first_touch", p_first_touch, {64, 1024}, {"plain", "chunk", "preferred_gpu"}},
    {"first_touch", p_first_touch, {256}, {"plain", "before", "chunk", "race", "preferred_gpu"}},
    {"host_touch", p_host_touch, {64, 256}, {"plain", "to_host"}},
    {"ping_pong",
     p_ping_pong,
     {64, 256},
     {"plain", "to_host", "chunk", "chunk_to_host", "race_racing_host", "preferred_gpu",
      "preferred_host"}},
    {"feed",
     p_feed,
     {128},
     {"plain", "chunk", "race", "read_mostly", "accessed_by", "preferred_host"}},
    {"read_back", p_read_back, {64}, {"plain", "to_host"}},
    {"read_back", p_read_back, {256, 1024}, {"plain", "to_host", "to_host_one", "racing_host"}},
    {"partial",
     p_partial,
     {256},
     {"plain", "chunk", "exact", "race", "accessed_by", "preferred_gpu"}},
    {"sprinkle", p_sprinkle, {256}, {"plain", "chunk", "race", "preferred_gpu"}},
    {"stencil", p_stencil, {256}, {"cold", "plain", "chunk", "preferred_gpu", "accessed_by"}},
    {"table",
     p_table,
     {256},
     {"plain", "chunk", "chunk_to_host", "read_mostly", "accessed_by", "preferred_host"}},
    {"gather",
     p_gather,
     {256},
     {"plain", "before", "chunk", "race", "accessed_by", "preferred_gpu", "preferred_host"}},
    {"gather", p_gather, {1024}, {"plain", "chunk", "accessed_by"}},
    {"pool", p_pool, {256}, {"plain", "before", "chunk", "whole", "race"}},
    {"pipeline", p_pipeline, {256}, {"plain", "before", "chunk"}},
    {"pipeline", p_pipeline, {1024}, {"plain", "chunk"}},
    {"resident", p_resident, {64, 256}, {"plain", "before", "chunk", "chunk2"}},
};

/* ---- printing ---- */

static void print_ops(const char *name, const std::vector<op> &ops)
{
    printf(", \"%s\": [", name);
    for (const op &o : ops) {
        printf("%s{\"op\": \"%s\"", &o == &ops[0] ? "" : ", ", op_names[o.type]);
        if (o.type != SYNC)
            printf(", \"region\": %d, \"at\": %zu, \"bytes\": %zu", o.region, o.at, o.bytes);
        if (!o.name.empty())
            printf(", \"name\": \"%s\"", o.name.c_str());
        if (o.type == HOST || o.type == PREFETCH)
            printf(", \"step\": %zu", o.step);
        if (o.type == KERNEL || o.type == PREFETCH)
            printf(", \"stream\": %d", o.stream);
        if (o.type == PREFETCH || o.type == ADVISE || o.name == "copy")
            printf(", \"%s\": %d", o.type == KERNEL ? "other" : "to", o.other);
        if (o.race)
            printf(", \"race\": true");
        if (o.type == HOST || o.type == KERNEL)
            printf(", \"ns\": %.0f", o.ns);
        if (!o.tooks.empty())
            printf(", \"took_ns\": %.0f", quantile(o.tooks, 0.5));
        printf("}");
    }
    printf("]");
}

static void print_run(const run &r, bool first)
{
    double compute = 0, host = 0;

    for (const op &o : r.body)
        (o.type == KERNEL ? compute : host) += o.ns;
    printf(
        "%s\n{\"run\": \"%s/%zu/%s\", \"pattern\": \"%s\", \"variant\": \"%s\", \"mib\": %zu, "
        "\"bytes\": %zu, \"warm\": %d, \"iterations\": %d, \"median_ns\": %.0f, \"q1_ns\": %.0f, "
        "\"q3_ns\": %.0f, \"compute_ns\": %.0f, \"host_ns_resident\": %.0f, \"samples_ns\": [",
        first ? "" : ",", r.pattern.c_str(), r.mib, r.variant.c_str(), r.pattern.c_str(),
        r.variant.c_str(), r.mib, r.mib * MIB, r.warm, r.iterations, quantile(r.samples, 0.5),
        quantile(r.samples, 0.25), quantile(r.samples, 0.75), compute, host);
    for (size_t i = 0; i < r.samples.size(); i++)
        printf("%s%.0f", i ? ", " : "", r.samples[i]);
    printf("], \"regions\": [");
    for (size_t i = 0; i < r.regions.size(); i++)
        printf("%s%zu", i ? ", " : "", r.regions[i]);
    printf("]");
    print_ops("setup", r.setup);
    print_ops("body", r.body);
    printf("}");
    fflush(stdout);
}

/* The first line of a file after `key`, without quotes and ends that JSON minds. */
static std::string line_of(const char *path, const char *key)
{
    char line[512];
    std::string found;
    FILE *f = fopen(path, "r");

    while (f && found.empty() && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)))
            continue;
        for (const char *c = line + strlen(key); *c && *c != '\n'; c++)
            if (*c != '"' && *c != '\\' && (unsigned char)*c >= ' ' &&
                (!found.empty() || !strchr(" :\t", *c)))
                found += *c;
    }
    if (f)
        fclose(f);
    return found;
}

static void print_header(bool held_out)
{
    cudaDeviceProp properties;
    struct utsname host;
    char date[16];
    time_t t = time(NULL);
    int driver, racers = RACERS;

    CHECK(cudaGetDeviceProperties(&properties, example.device));
    CHECK(cudaDriverGetVersion(&driver));
    uname(&host);
    strftime(date, sizeof date, "%F", gmtime(&t));
    printf(
        "{\"schema\": \"umrt.backtest/1\", \"date\": \"%s\", \"gpu\": \"%s\", \"gpu_bytes\": %zu,\n"
        "\"driver\": \"%s\", \"cuda\": %d, \"cpu\": \"%s\", \"kernel\": \"%s\",\n"
        "\"piece_bytes\": %zu, \"racers\": %d, %s\"runs\": [",
        date, properties.name, properties.totalGlobalMem,
        line_of("/proc/driver/nvidia/version", "NVRM version").c_str(), driver,
        line_of("/proc/cpuinfo", "model name").c_str(), host.release, PIECE, racers,
        held_out ? "\"held_out\": true, " : "");
}

int main(int argc, char **argv)
{
    const char *only = "";
    size_t size = 0;
    double seconds = 170;
    bool first = true;
    char *none[] = {argv[0], NULL};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc) {
            only = argv[++i];
        } else if (!strcmp(argv[i], "--mib") && i + 1 < argc) {
            size = strtoul(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: %s [--only TEXT] [--mib N] [--seconds N]\n", argv[0]);
            return 2;
        }
    }
    example_start(1, none, 0, 0);
    for (cudaStream_t &s : streams)
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (cudaStream_t &s : side)
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    print_header(size);
    double start = now_ns();
    std::set<std::string> made; /* --mib: the table names some variants at several sizes */
    for (const auto &p : patterns) {
        for (size_t mib : size ? std::vector<size_t>{size} : p.mib) {
            for (const std::string &variant : p.variants) {
                run r = {p.name, variant, mib, {}, {}, {}};
                std::string name = r.pattern + "/" + std::to_string(mib) + "/" + variant;
                if (!has(name, only) || !made.insert(name).second)
                    continue;
                p.make(r, variant, mib * MIB);
                measure_resident(r);
                repetition(r);
                /* over time: fewer repetitions rather than fewer runs */
                int n = now_ns() - start < seconds * 0.85e9 ? REPETITIONS : 3;
                for (int i = 0; i < n; i++) {
                    r.samples.push_back(repetition(r));
                    for (op &o : r.body)
                        o.tooks.push_back(o.took);
                }
                print_run(r, first);
                fprintf(stderr, "%6.1f s %-32s %9.3f ms\n", (now_ns() - start) * 1e-9, name.c_str(),
                        quantile(r.samples, 0.5) * 1e-6);
                first = false;
            }
        }
    }
    printf("\n]}\n");
    return 0;
}

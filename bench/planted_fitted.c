/* planted_fitted.c - the programs that the report's rules were written with. */
#include "planted.h"

#define MIB  (UINT64_C(1) << 20)
#define HOST UM_DEVICE_HOST

#define R UM_ACCESS_READ
#define W UM_ACCESS_WRITE

static uint64_t size(um_gen_t *gen)
{
    return um_gen_options(gen)->bytes;
}

static uint32_t times(um_gen_t *gen)
{
    return um_gen_options(gen)->iterations;
}

/* A launch that reads or updates a part of one region. */
static void use(um_gen_t *gen, um_access_kind_t kind, uint32_t region, uint64_t at, uint64_t bytes,
                int32_t device)
{
    static const char *const name[] = {[R] = "_Z4readPKfm", [W] = "_Z5writePfm"};
    uint32_t kernel = um_gen_kernel(gen, name[kind], kind == R ? "cv" : "pv");

    um_gen_launch(gen, kernel, 0, device, bytes / 4);
    um_gen_arg(gen, 0, region, at);
    um_gen_access(gen, kind, region, at, bytes, UM_GEN_AFTER);
    um_gen_end(gen);
}

/* On device memory, which no driver moves. */
static void compute(um_gen_t *gen, uint32_t region)
{
    um_gen_launch(gen, um_gen_kernel(gen, "_Z7computePfm", "pv"), 0, 0, size(gen) / 4);
    um_gen_arg(gen, 0, region, 0);
    um_gen_end(gen);
}

static void fetch(um_gen_t *gen, uint32_t region, int32_t device)
{
    um_gen_hint(gen, UM_HINT_PREFETCH, device, region, 0, size(gen), 0);
}

/* ---- faults ------------------------------------------------------------------------------------ */

static void to_and_fro(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    for (uint32_t i = 0; i < times(gen); i++) {
        um_gen_host(gen, W, data, 0, size(gen));
        use(gen, W, data, 0, size(gen), 0);
        um_gen_wait(gen);
    }
}

static void part_to_and_fro(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    fetch(gen, data, 0);
    for (uint32_t i = 0; i < 2 * times(gen); i++) {
        use(gen, W, data, 0, size(gen), 0);
        um_gen_wait(gen);
        um_gen_host(gen, R, data, 0, size(gen) / 8);
    }
}

static void touched_first(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    for (uint32_t i = 0; i < times(gen); i++)
        use(gen, W, data, 0, size(gen), 0);
    um_gen_wait(gen);
    um_gen_host(gen, R, data, 0, UM_PAGE_BYTES);
}

static void faulted_in(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    for (uint32_t i = 0; i < times(gen); i++)
        use(gen, R, data, 0, size(gen), 0);
    um_gen_wait(gen);
}

static void here_and_there(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen) * 4);
    uint32_t kernel = um_gen_kernel(gen, "_Z6gatherPKfm", "cv");

    um_gen_host(gen, W, data, 0, size(gen) * 4);
    for (uint32_t i = 0; i < 3; i++) {
        um_gen_launch(gen, kernel, 0, 0, 4096);
        um_gen_arg(gen, 0, data, 0);
        for (uint64_t at = i * 256 * 1024; at < size(gen) * 4; at += 2 * MIB)
            um_gen_access(gen, R, data, at, UM_PAGE_BYTES, UM_GEN_AFTER);
        um_gen_end(gen);
    }
    um_gen_wait(gen);
}

static void results_fault(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    fetch(gen, data, 0);
    use(gen, W, data, 0, size(gen), 0);
    um_gen_wait(gen);
    um_gen_host(gen, R, data, 0, size(gen));
}

static void churn(um_gen_t *gen)
{
    uint32_t sum = um_gen_region(gen, "sum", UM_PAGE_BYTES);

    um_gen_host(gen, W, sum, 0, 4);
    for (uint32_t i = 0; i < times(gen) + 10; i++) {
        uint32_t scratch = um_gen_region(gen, "scratch", size(gen) / 4);

        use(gen, W, scratch, 0, size(gen) / 4, 0);
        um_gen_wait(gen);
        um_gen_release(gen, scratch);
    }
}

static void gpu_alone(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen)), sum = um_gen_region(gen, "sum", 4096);

    um_gen_host(gen, W, sum, 0, 4);
    for (uint32_t i = 0; i < times(gen); i++)
        use(gen, W, data, 0, size(gen), 0);
    um_gen_wait(gen);
}

static void once(um_gen_t *gen)
{
    for (uint32_t i = 0; i < times(gen); i++) {
        uint32_t data = um_gen_region(gen, "frame", size(gen) / 4);

        um_gen_host(gen, W, data, 0, size(gen) / 4);
        use(gen, R, data, 0, size(gen) / 4, 0);
    }
    um_gen_wait(gen);
}

static void sweeps(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    for (uint32_t i = 0; i < times(gen); i++)
        for (uint64_t at = 0; at < size(gen); at += 4 * MIB)
            use(gen, R, data, at, 4 * MIB, 0);
    um_gen_wait(gen);
}

static void at_random(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    for (uint64_t i = 0; i < 4 * times(gen) * size(gen) / (4 * MIB); i++)
        use(gen, R, data, um_gen_random(gen, size(gen) / (4 * MIB)) * 4 * MIB, 4 * MIB, 0);
    um_gen_wait(gen);
}

static void held(um_gen_t *gen)
{
    um_gen_memory(gen, "weights", UINT64_C(64) << 30, UM_FAMILY_DEVICE);
    at_random(gen);
}

static void written_read_mostly(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    um_gen_hint(gen, UM_HINT_READ_MOSTLY, 0, data, 0, size(gen), 0);
    fetch(gen, data, 0);
    use(gen, W, data, 0, size(gen), 0);
    um_gen_wait(gen);
}

static void kept_away(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    um_gen_hint(gen, UM_HINT_PREFERRED_LOCATION, HOST, data, 0, size(gen), 0);
    um_gen_hint(gen, UM_HINT_ACCESSED_BY, 0, data, 0, size(gen), 0);
    for (uint32_t i = 0; i < 5 * times(gen); i++)
        use(gen, R, data, 0, size(gen), 0);
    um_gen_wait(gen);
}

static void bounce(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    for (uint32_t i = 0; i < 2 * times(gen); i++) {
        use(gen, W, data, 0, size(gen), (int32_t)(i % 2));
        um_gen_wait(gen);
    }
}

/* Behind another kernel in its stream, while the one that needs the data starts on the next. */
static void late(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));
    uint32_t other = um_gen_region(gen, "other", size(gen));
    uint32_t kernel = um_gen_kernel(gen, "_Z6updatePfm", "pv");

    um_gen_host(gen, W, other, 0, size(gen));
    fetch(gen, other, 0);
    for (uint32_t i = 0; i < times(gen); i++) {
        um_gen_host(gen, W, data, 0, size(gen));
        for (uint32_t k = 0; k < 30; k++)
            use(gen, W, other, 0, size(gen), 0);
        fetch(gen, data, 0);
        um_gen_launch(gen, kernel, 1, 0, size(gen) / 4);
        um_gen_arg(gen, 0, data, 0);
        um_gen_access(gen, W, data, 0, size(gen), UM_GEN_AFTER);
        um_gen_end(gen);
        um_gen_wait(gen);
        fetch(gen, data, HOST);
        um_gen_wait(gen);
    }
}

static void redundant(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    for (uint32_t i = 0; i < 20 * times(gen); i++) {
        fetch(gen, data, 0);
        use(gen, W, data, 0, size(gen), 0);
    }
    um_gen_wait(gen);
}

static void wasted(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));
    uint32_t other = um_gen_region(gen, "other", size(gen));

    um_gen_host(gen, W, other, 0, size(gen));
    fetch(gen, other, 0);
    um_gen_host(gen, W, data, 0, size(gen));
    fetch(gen, data, 0);
    use(gen, R, data, 0, size(gen), 0);
    um_gen_wait(gen);
    fetch(gen, data, HOST);
    um_gen_wait(gen);
    for (uint32_t i = 0; i < times(gen); i++) {
        fetch(gen, data, 0);
        use(gen, W, other, 0, size(gen), 0);
        um_gen_wait(gen);
        fetch(gen, data, HOST);
        um_gen_wait(gen);
        um_gen_host(gen, W, data, 0, size(gen));
    }
}

static void pushes_out(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));
    uint32_t other = um_gen_region(gen, "other", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    um_gen_host(gen, W, other, 0, size(gen));
    fetch(gen, other, 0);
    for (uint32_t i = 0; i < times(gen); i++) {
        use(gen, R, other, 0, size(gen), 0);
        um_gen_wait(gen);
        fetch(gen, data, 0);
        um_gen_wait(gen);
    }
    use(gen, R, data, 0, size(gen), 0);
    um_gen_wait(gen);
}

static void advises_again(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    fetch(gen, data, 0);
    for (uint32_t i = 0; i < 5 * times(gen); i++) {
        um_gen_hint(gen, UM_HINT_PREFERRED_LOCATION, 0, data, 0, size(gen), 0);
        use(gen, W, data, 0, size(gen), 0);
    }
    um_gen_wait(gen);
}

static void pool(um_gen_t *gen)
{
    for (uint32_t i = 0; i < times(gen) + 10; i++) {
        uint32_t scratch = um_gen_memory(gen, "scratch", size(gen), UM_FAMILY_POOL);

        compute(gen, scratch);
        um_gen_release(gen, scratch);
        um_gen_wait(gen);
    }
}

/* ---- healthy ones ------------------------------------------------------------------------------ */

static void device_alone(um_gen_t *gen)
{
    uint32_t data = um_gen_memory(gen, "data", size(gen), UM_FAMILY_DEVICE);

    for (uint32_t i = 0; i < times(gen); i++)
        compute(gen, data);
    um_gen_wait(gen);
}

static void fetched(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    fetch(gen, data, 0);
    for (uint32_t i = 0; i < times(gen); i++)
        use(gen, W, data, 0, size(gen), 0);
    um_gen_wait(gen);
}

static void fetched_and_back(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    for (uint32_t i = 0; i < times(gen); i++) {
        um_gen_host(gen, W, data, 0, size(gen));
        fetch(gen, data, 0);
        for (uint32_t k = 0; k < 20; k++)
            use(gen, W, data, 0, size(gen), 0);
        fetch(gen, data, HOST);
        um_gen_wait(gen);
    }
}

static void mapped(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_hint(gen, UM_HINT_PREFERRED_LOCATION, HOST, data, 0, size(gen), 0);
    um_gen_hint(gen, UM_HINT_ACCESSED_BY, 0, data, 0, size(gen), 0);
    for (uint32_t i = 0; i < times(gen); i++) {
        um_gen_host(gen, W, data, 0, size(gen));
        use(gen, R, data, 0, size(gen), 0);
        um_gen_wait(gen);
    }
}

static void read_mostly(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    um_gen_host(gen, W, data, 0, size(gen));
    um_gen_hint(gen, UM_HINT_READ_MOSTLY, 0, data, 0, size(gen), 0);
    fetch(gen, data, 0);
    for (uint32_t i = 0; i < times(gen); i++) {
        use(gen, R, data, 0, size(gen), 0);
        um_gen_host(gen, R, data, 0, size(gen) / 8);
    }
    um_gen_wait(gen);
}

static void populated(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));

    fetch(gen, data, 0);
    for (uint32_t i = 0; i < 5 * times(gen); i++)
        use(gen, W, data, 0, size(gen), 0);
    fetch(gen, data, HOST);
    um_gen_wait(gen);
    um_gen_host(gen, R, data, 0, size(gen));
}

static void cpu_alone(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", size(gen));
    uint32_t on_gpu = um_gen_memory(gen, "on gpu", size(gen), UM_FAMILY_DEVICE);

    for (uint32_t i = 0; i < times(gen); i++) {
        um_gen_host(gen, W, data, 0, size(gen));
        compute(gen, on_gpu);
        um_gen_wait(gen);
    }
}

static void computes(um_gen_t *gen)
{
    uint32_t data = um_gen_region(gen, "data", 4 * MIB);
    uint32_t large = um_gen_region(gen, "large", size(gen));

    um_gen_host(gen, W, data, 0, 4 * MIB);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, data, 0, 4 * MIB, 0);
    um_gen_host(gen, W, large, 0, size(gen));
    fetch(gen, large, 0);
    for (uint32_t i = 0; i < 500 * times(gen); i++)
        use(gen, W, i % 50 ? large : data, 0, i % 50 ? size(gen) : 4 * MIB, 0);
    um_gen_wait(gen);
}

static void own_gpus(um_gen_t *gen)
{
    uint32_t a = um_gen_region(gen, "a", size(gen)), b = um_gen_region(gen, "b", size(gen));

    fetch(gen, a, 0);
    fetch(gen, b, 1);
    for (uint32_t i = 0; i < 5 * times(gen); i++) {
        use(gen, W, a, 0, size(gen), 0);
        use(gen, W, b, 0, size(gen), 1);
    }
    um_gen_wait(gen);
}

static void pool_kept(um_gen_t *gen)
{
    for (uint32_t i = 0; i < 4 * times(gen); i++) {
        uint32_t scratch = um_gen_memory(gen, "scratch", size(gen), UM_FAMILY_POOL);

        compute(gen, scratch);
        um_gen_release(gen, scratch);
    }
    um_gen_wait(gen);
}

/* ---- what no simulation tells ------------------------------------------------------------------- */

#define AT UINT64_C(0x7f0000000000)

static void tell(um_beside_t *beside, um_event_t event)
{
    beside->fn(beside->ctx, &event);
    if (event.time_ns > beside->now_ns)
        beside->now_ns = event.time_ns;
}

static uint64_t now(const um_beside_t *beside)
{
    return beside->now_ns + 1000;
}

static void region(um_beside_t *beside, uint32_t id, uint64_t addr, uint64_t bytes,
                   um_family_t family)
{
    tell(beside, (um_event_t){.time_ns = now(beside),
                              .type = UM_EV_REGION_ALLOC,
                              .u.region_alloc = {
                                  .region = id, .family = family, .addr = addr, .bytes = bytes}});
}

static void loses(um_beside_t *beside)
{
    tell(beside, (um_event_t){.type = UM_EV_LOSS, .u.loss = {.count = 9, .reason = "queue full"}});
}

static void is_blind(um_beside_t *beside)
{
    tell(beside, (um_event_t){.type = UM_EV_OPTION,
                              .u.option = {"nsys.cuda-um-gpu-page-faults", "off", "file"}});
}

static void pins(um_beside_t *beside)
{
    tell(beside, (um_event_t){.type = UM_EV_FACT, .u.fact = {"host.memory_bytes", "68719476736"}});
    region(beside, 1000, AT, UINT64_C(48) << 30, UM_FAMILY_PINNED);
}

static void copies_pageable(um_beside_t *beside)
{
    for (uint32_t i = 0; i < 20; i++)
        tell(beside, (um_event_t){.time_ns = now(beside) + 3000000,
                                  .type = UM_EV_COPY,
                                  .u.copy = {.bytes = 16 * MIB,
                                             .duration_ns = 3000000,
                                             .src_memory = UM_MEMORY_PAGEABLE,
                                             .dst_memory = UM_MEMORY_DEVICE,
                                             .flags = UM_TRANSFER_ON_GPU}});
}

static void thrashes(um_beside_t *beside)
{
    region(beside, 1000, AT, 4 * MIB, UM_FAMILY_MANAGED);
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t at = now(beside) + 2000000;

        tell(beside, (um_event_t){.time_ns = at,
                                  .type = UM_EV_THRASH,
                                  .u.thrash = {.addr = AT + i * 4096, .bytes = 4096}});
        tell(beside, (um_event_t){.time_ns = at + 1000,
                                  .type = UM_EV_THROTTLE,
                                  .u.throttle = {.addr = AT + i * 4096, .duration_ns = 1000000}});
    }
}

static void shares(um_beside_t *beside)
{
    region(beside, 1000, AT, 2048, UM_FAMILY_MANAGED);
    region(beside, 1001, AT + 2048, 65536 - 2048, UM_FAMILY_MANAGED);
    for (uint32_t i = 0; i < 1; i++) {
        uint64_t at = now(beside);

        tell(beside, (um_event_t){.time_ns = at,
                                  .type = UM_EV_MIGRATE,
                                  .u.migrate = {AT, 65536, 20000, HOST, 0, UM_CAUSE_COHERENCE, 0}});
        tell(beside, (um_event_t){.time_ns = at + 100000,
                                  .type = UM_EV_CPU_FAULT,
                                  .u.cpu_fault = {.addr = AT, .pc = 1}});
        tell(beside, (um_event_t){.time_ns = at + 3000000,
                                  .type = UM_EV_MIGRATE,
                                  .u.migrate = {AT, 65536, 20000, 0, HOST, UM_CAUSE_COHERENCE, 0}});
        tell(beside, (um_event_t){.time_ns = at + 4000000,
                                  .type = UM_EV_MIGRATE,
                                  .u.migrate = {AT, 65536, 20000, HOST, 0, UM_CAUSE_COHERENCE, 0}});
    }
}

/* ---- the list: each twice, small and large ------------------------------------------------------ */

static const um_planted_t programs[] = {
    {"ping-pong", "to and fro", to_and_fro, 0, NULL, 1, 0},
    {"ping-pong", "part to and fro", part_to_and_fro, 0, NULL, 1, 0},
    {"first-touch", "touched first", touched_first, 0, NULL, 1, 0},
    {"demand-faulting", "faulted in", faulted_in, 0, NULL, 1, 0},
    {"sparse-faulting", "here and there", here_and_there, 0, NULL, 1, 0},
    {"host-read-tail", "results fault", results_fault, 0, NULL, 1, 0},
    {"false-sharing", "shared page", fetched, 0, shares, 1, 0},
    {"thrashing", "thrashes", fetched, 0, thrashes, 1, 0},
    {"allocation-churn", "churn", churn, 0, NULL, 1, 0},
    {"never-on-cpu", "GPU alone", gpu_alone, 0, NULL, 1, 0},
    {"pageable-copy", "pageable", fetched, 0, copies_pageable, 1, 0},
    {"used-once", "frames", once, 0, NULL, 1, 0},
    {"cyclic-sweep", "sweeps", sweeps, 75, NULL, 1, 0},
    {"eviction", "at random", at_random, 60, NULL, 1, 0},
    {"not-evictable", "held", held, 60, NULL, 1, 0},
    {"read-mostly-written", "written", written_read_mostly, 0, NULL, 1, 0},
    {"wrong-location", "kept away", kept_away, 0, NULL, 1, 0},
    {"gpu-bounce", "bounce", bounce, 0, NULL, 2, 0},
    {"late-prefetch", "late", late, 0, NULL, 1, 0},
    {"redundant-prefetch", "redundant", redundant, 0, NULL, 1, 0},
    {"wasted-prefetch", "wasted", wasted, 0, NULL, 1, 0},
    {"harmful-prefetch", "pushes out", pushes_out, 60, NULL, 1, 0},
    {"redundant-advice", "advises again", advises_again, 0, NULL, 1, 0},
    {"pool-threshold", "pool", pool, 0, NULL, 1, 0},
    {"pinned-pressure", "pins", fetched, 0, pins, 1, 0},
    {"lost-records", "loses", fetched, 0, loses, 1, 0},
    {"tracing-off", "blind", fetched, 0, is_blind, 1, 0},
    {NULL, "device alone", device_alone, 0, NULL, 1, 0},
    {NULL, "fetched", fetched, 0, NULL, 1, 0},
    {NULL, "fetched and back", fetched_and_back, 0, NULL, 1, 0},
    {NULL, "mapped", mapped, 0, NULL, 1, 0},
    {NULL, "read mostly", read_mostly, 0, NULL, 1, 0},
    {NULL, "populated", populated, 0, NULL, 1, 0},
    {NULL, "CPU alone", cpu_alone, 0, NULL, 1, 0},
    {NULL, "computes", computes, 0, NULL, 1, 0},
    {NULL, "own GPUs", own_gpus, 0, NULL, 2, 0},
    {NULL, "pool kept", pool_kept, 0, NULL, 1, 0},
};

static const struct {
    uint64_t bytes;
    uint32_t iterations;
} sizes[] = {{64 * MIB, 4}, {256 * MIB, 4}, {128 * MIB, 8}, {192 * MIB, 5}};

bool um_planted_fitted(size_t i, um_planted_case_t *out)
{
    for (size_t p = 0; p < sizeof(programs) / sizeof(programs[0]); p++) {
        size_t variants = programs[p].kind ? 2 : 4;

        if (i < variants) {
            *out = (um_planted_case_t){.program = &programs[p],
                                       .options = {sizes[i].bytes, sizes[i].iterations,
                                                   programs[p].gpus, 7, 1},
                                       .room = programs[p].room};
            return true;
        }
        i -= variants;
    }
    return false;
}

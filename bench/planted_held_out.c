/*
 * planted_held_out.c - programs that the report's rules were not written with.
 *
 * A scene is the data that the fault is in, cut into buffers of odd sizes, and healthy work beside it.
 * How the data is swept, and when the rest works, is drawn by lot from what a draw may use: the first three
 * draws share no structure, the fourth has any of them. The top byte of the seed is the draw.
 */
#include "planted.h"

#define KIB  (UINT64_C(1) << 10)
#define MIB  (UINT64_C(1) << 20)
#define HOST UM_DEVICE_HOST

#define R UM_ACCESS_READ
#define W UM_ACCESS_WRITE

#define BUFFERS_MAX 5u

/* How the data is swept. */
#define SLICED       (1u << 0) /* several launches a sweep, a slice each */
#define LOOSE        (1u << 1) /* other work of the GPU between two buffers */
#define JOINT        (1u << 2) /* one launch takes all the buffers */
#define STREAMS      (1u << 3) /* on three streams in turns */
#define BACKWARD     (1u << 4) /* from the last buffer to the first, slices likewise */
#define HOST_PIECES  (1u << 5) /* the CPU takes a piece of each buffer in turns */
#define MANY_KERNELS (1u << 6) /* each sweep by another kernel of three */
#define ZIPPED       (1u << 7) /* a slice of each buffer in turns, a launch each */
#define HOST_BACK    (1u << 8) /* the CPU goes from the end to the start */
/* When the healthy rest works. */
#define EVERY_ROUND   (1u << 9)
#define AROUND        (1u << 10) /* before and after, a phase of its own */
#define NOW_AND_AGAIN (1u << 11)

static const uint32_t structures[UM_PLANTED_DRAWS] = {
    SLICED | LOOSE | EVERY_ROUND,
    JOINT | STREAMS | BACKWARD | HOST_PIECES | AROUND,
    MANY_KERNELS | ZIPPED | HOST_BACK | NOW_AND_AGAIN,
    2 * NOW_AND_AGAIN - 1,
};

typedef struct scene {
    um_gen_t *gen;
    uint32_t structure;
    uint32_t n, region[BUFFERS_MAX]; /* the data */
    uint64_t bytes[BUFFERS_MAX], all;
    uint32_t slices, rounds, round, launches;
    uint32_t kernel[3][2][BUFFERS_MAX + 1];    /* by turn, written or not, pointers */
    uint32_t busy, table, calm, flag, results; /* the rest: device memory; managed and well kept */
    uint64_t busy_bytes, calm_bytes;
    uint32_t rest;
} scene_t;

static uint64_t between(scene_t *s, uint64_t least, uint64_t most)
{
    return least + um_gen_random(s->gen, most - least + 1);
}

/* Not a multiple of anything but a page. */
static uint64_t odd(uint64_t bytes)
{
    return bytes / UM_PAGE_BYTES * UM_PAGE_BYTES;
}

static uint32_t kernel_of(scene_t *s, um_access_kind_t kind, uint32_t pointers)
{
    static const char *const name[3][2] = {{"_ZN4heat6gatherEPKfm", "_ZN4heat4stepEPfm"},
                                           {"_ZN4heat4scanEPKfm", "_ZN4heat5relaxEPfm"},
                                           {"_ZN4heat6reduceEPKfm", "_ZN4heat7advanceEPfm"}};
    static const char *const params[2] = {"cccccv", "pppppv"};
    uint32_t turn = s->structure & MANY_KERNELS ? s->launches % 3 : 0;
    uint32_t *id = &s->kernel[turn][kind == W][pointers];

    if (!*id)
        *id = um_gen_kernel(s->gen, name[turn][kind == W],
                            params[kind == W] + BUFFERS_MAX - pointers);
    return *id;
}

static void launch(scene_t *s, um_access_kind_t kind, uint32_t pointers, uint64_t bytes,
                   int32_t device)
{
    uint32_t stream = s->structure & STREAMS ? s->launches % 3 : 0;

    um_gen_launch(s->gen, kernel_of(s, kind, pointers), stream, device, bytes / 4);
    s->launches++;
}

static void one(scene_t *s, um_access_kind_t kind, uint32_t region, uint64_t at, uint64_t bytes,
                int32_t device)
{
    launch(s, kind, 1, bytes, device);
    um_gen_arg(s->gen, 0, region, at);
    um_gen_access(s->gen, kind, region, at, bytes, UM_GEN_AFTER);
    um_gen_end(s->gen);
}

/* ---- the healthy rest -------------------------------------------------------------------------- */

static void on_device(scene_t *s, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        um_gen_launch(s->gen, kernel_of(s, W, 1), 0, 0, s->busy_bytes / 4);
        um_gen_arg(s->gen, 0, s->busy, 0);
        um_gen_end(s->gen);
    }
}

static void rest(scene_t *s)
{
    on_device(s, 1 + (uint32_t)um_gen_random(s->gen, 3));
    um_gen_host(s->gen, W, s->flag, 0, 64);
    one(s, R, s->flag, 0, UM_PAGE_BYTES, 0);
    one(s, W, s->calm, 0, s->calm_bytes, 0);
}

static void start_rest(scene_t *s)
{
    s->busy_bytes = odd(between(s, s->all / 60 + 64 * KIB, s->all / 20 + 64 * KIB));
    s->calm_bytes = odd(between(s, s->all / 40 + 64 * KIB, s->all / 16 + 128 * KIB));
    s->busy = um_gen_memory(s->gen, "work", s->busy_bytes, UM_FAMILY_DEVICE);
    s->flag = um_gen_region(s->gen, "flag", UM_PAGE_BYTES);
    s->calm = um_gen_region(s->gen, "calm", s->calm_bytes);
    um_gen_hint(s->gen, UM_HINT_PREFERRED_LOCATION, HOST, s->flag, 0, UM_PAGE_BYTES, 0);
    um_gen_hint(s->gen, UM_HINT_ACCESSED_BY, 0, s->flag, 0, UM_PAGE_BYTES, 0);
    um_gen_host(s->gen, W, s->calm, 0, s->calm_bytes);
    um_gen_hint(s->gen, UM_HINT_PREFETCH, 0, s->calm, 0, s->calm_bytes, 0);
    if (s->structure & AROUND)
        for (uint32_t i = 0; i < 5; i++)
            rest(s);
}

static void end_rest(scene_t *s)
{
    if (s->structure & AROUND)
        for (uint32_t i = 0; i < 4; i++)
            rest(s);
    um_gen_hint(s->gen, UM_HINT_PREFETCH, HOST, s->calm, 0, s->calm_bytes, 0);
    um_gen_wait(s->gen);
    um_gen_host(s->gen, R, s->calm, 0, s->calm_bytes);
}

/* ---- the data ---------------------------------------------------------------------------------- */

static scene_t scene(um_gen_t *gen)
{
    uint32_t draw = (uint32_t)(um_gen_options(gen)->seed >> 56);
    scene_t s = {.gen = gen, .rounds = um_gen_options(gen)->iterations};
    uint64_t left = um_gen_options(gen)->bytes;

    for (uint32_t bit = 1; bit <= NOW_AND_AGAIN; bit <<= 1)
        if (structures[draw] & bit && (bit >= EVERY_ROUND || um_gen_random(gen, 2)))
            s.structure |= bit;
    s.n = (uint32_t)between(&s, 1, BUFFERS_MAX);
    s.slices = (uint32_t)between(&s, 3, 11);
    s.all = left;
    for (uint32_t i = 0; i < s.n; i++) {
        s.bytes[i] = odd(i + 1 == s.n ? left : left * between(&s, 20, 60) / 100);
        left -= s.bytes[i];
    }
    start_rest(&s);
    return s;
}

static void buffers(scene_t *s, um_family_t family)
{
    static const char *const name[BUFFERS_MAX] = {"field", "next", "forces", "grid", "halo"};

    for (uint32_t i = 0; i < s->n; i++)
        s->region[i] = um_gen_memory(s->gen, name[i], s->bytes[i], family);
}

static scene_t managed(um_gen_t *gen)
{
    scene_t s = scene(gen);

    buffers(&s, UM_FAMILY_MANAGED);
    return s;
}

static void release(scene_t *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_release(s->gen, s->region[i]);
}

static uint64_t slice_at(const scene_t *s, uint32_t i, uint32_t k)
{
    return odd(s->bytes[i] * k / s->slices);
}

static void slice(scene_t *s, um_access_kind_t kind, uint32_t i, uint32_t k, int32_t device)
{
    uint64_t at = slice_at(s, i, k), end = k + 1 == s->slices ? s->bytes[i] : slice_at(s, i, k + 1);

    if (end > at)
        one(s, kind, s->region[i], at, end - at, device);
}

static void joint(scene_t *s, um_access_kind_t kind, int32_t device)
{
    launch(s, kind, s->n, s->all, device);
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_arg(s->gen, i, s->region[i], 0);
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_access(s->gen, kind, s->region[i], 0, s->bytes[i],
                      i % 2 ? UM_GEN_BESIDE : UM_GEN_AFTER);
    um_gen_end(s->gen);
}

/* The GPU sweeps all of it once. */
static void gpu(scene_t *s, um_access_kind_t kind, int32_t device)
{
    bool backward = s->structure & BACKWARD;

    if (s->structure & JOINT) {
        joint(s, kind, device);
        return;
    }
    if (s->structure & ZIPPED) {
        for (uint32_t k = 0; k < s->slices; k++)
            for (uint32_t i = 0; i < s->n; i++)
                slice(s, kind, i, k, device);
        return;
    }
    for (uint32_t j = 0; j < s->n; j++) {
        uint32_t i = backward ? s->n - 1 - j : j;

        if (s->structure & (SLICED | BACKWARD))
            for (uint32_t k = 0; k < s->slices; k++)
                slice(s, kind, i, backward ? s->slices - 1 - k : k, device);
        else
            one(s, kind, s->region[i], 0, s->bytes[i], device);
        if (s->structure & LOOSE)
            on_device(s, 1);
    }
}

/* The CPU, so many thousandths of each buffer from its start. */
static void cpu(scene_t *s, um_access_kind_t kind, uint32_t thousandths)
{
    uint32_t pieces = s->structure & (HOST_PIECES | HOST_BACK) ? s->slices : 1;

    for (uint32_t p = 0; p < pieces; p++)
        for (uint32_t i = 0; i < s->n; i++) {
            uint64_t part = odd(s->bytes[i] / 1000 * thousandths) + UM_PAGE_BYTES;
            uint32_t k = s->structure & HOST_BACK ? pieces - 1 - p : p;
            uint64_t at, end;

            part = part > s->bytes[i] ? s->bytes[i] : part;
            at = odd(part * k / pieces);
            end = k + 1 == pieces ? part : odd(part * (k + 1) / pieces);
            if (end > at)
                um_gen_host(s->gen, kind, s->region[i], at, end - at);
        }
}

static void hint(scene_t *s, um_hint_kind_t kind, int32_t device)
{
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_hint(s->gen, kind, device, s->region[i], 0, s->bytes[i], 0);
}

static void fetch(scene_t *s, int32_t device)
{
    hint(s, UM_HINT_PREFETCH, device);
}

static void wait(scene_t *s)
{
    um_gen_wait(s->gen);
}

static bool again(scene_t *s)
{
    uint32_t every = s->structure & EVERY_ROUND ? 1 : s->structure & NOW_AND_AGAIN ? 3 : 0;

    if (every && s->round % every == 0)
        rest(s);
    return s->round++ < s->rounds;
}

static void end(scene_t *s)
{
    wait(s);
    end_rest(s);
}

/* ---- faults ------------------------------------------------------------------------------------ */

static void to_and_fro(um_gen_t *gen)
{
    scene_t s = managed(gen);
    um_access_kind_t by_gpu = um_gen_random(gen, 2) ? R : W;

    while (again(&s)) {
        cpu(&s, W, 1000);
        gpu(&s, by_gpu, 0);
        wait(&s);
    }
    end(&s);
}

static void part_to_and_fro(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint32_t part = (uint32_t)between(&s, 60, 700);
    um_access_kind_t by_cpu = um_gen_random(gen, 2) ? R : W;

    cpu(&s, W, 1000);
    fetch(&s, 0);
    while (again(&s)) {
        gpu(&s, W, 0);
        gpu(&s, W, 0);
        wait(&s);
        cpu(&s, by_cpu, part);
    }
    end(&s);
}

static void touched_first(um_gen_t *gen)
{
    scene_t s = managed(gen);

    while (again(&s))
        gpu(&s, W, 0);
    wait(&s);
    cpu(&s, R, 0);
    end(&s);
}

static void faulted_in(um_gen_t *gen)
{
    scene_t s = managed(gen);
    um_access_kind_t by_gpu = um_gen_random(gen, 2) ? R : W;

    cpu(&s, W, 1000);
    while (again(&s))
        gpu(&s, by_gpu, 0);
    end(&s);
}

static void here_and_there(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint64_t stride = between(&s, 3, 16) * 256 * KIB, run = between(&s, 1, 12) * UM_PAGE_BYTES;

    cpu(&s, W, 1000);
    for (uint32_t turn = 0; turn < 3 && again(&s); turn++)
        for (uint32_t i = 0; i < s.n; i++) {
            launch(&s, R, 1, s.bytes[i] / 64, 0);
            um_gen_arg(gen, 0, s.region[i], 0);
            for (uint64_t at = um_gen_random(gen, 3) * 64 * KIB; at < s.bytes[i]; at += stride)
                um_gen_access(gen, R, s.region[i], at, run, UM_GEN_AFTER);
            um_gen_end(gen);
        }
    end(&s);
}

static void results_fault(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint32_t part = (uint32_t)between(&s, 500, 1000);

    fetch(&s, 0);
    while (again(&s))
        gpu(&s, W, 0);
    wait(&s);
    cpu(&s, R, part);
    end(&s);
}

static void churn(um_gen_t *gen)
{
    scene_t s = scene(gen);
    bool looks = um_gen_random(gen, 2);

    for (uint32_t i = 0; i < s.n; i++)
        s.bytes[i] = odd(s.bytes[i] / 4) + UM_PAGE_BYTES;
    for (s.rounds += 9; again(&s);) {
        buffers(&s, UM_FAMILY_MANAGED);
        gpu(&s, W, 0);
        gpu(&s, W, 0);
        wait(&s);
        if (looks)
            cpu(&s, R, 0);
        release(&s);
    }
    end(&s);
}

static void gpu_alone(um_gen_t *gen)
{
    scene_t s = managed(gen);

    while (again(&s)) {
        gpu(&s, W, 0);
        wait(&s);
    }
    end(&s);
}

static void once(um_gen_t *gen)
{
    scene_t s = scene(gen);
    bool freed = um_gen_random(gen, 2);

    for (uint32_t i = 0; i < s.n; i++)
        s.bytes[i] = odd(s.bytes[i] / 2) + 2 * MIB;
    s.structure &= ~(SLICED | ZIPPED | BACKWARD); /* one launch takes it, and no other */
    while (again(&s)) {
        buffers(&s, UM_FAMILY_MANAGED);
        cpu(&s, W, 1000);
        gpu(&s, R, 0);
        if (freed) {
            wait(&s);
            release(&s);
        }
    }
    end(&s);
}

static void sweeps(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    while (again(&s)) {
        gpu(&s, R, 0);
        wait(&s); /* or each stream would have its own buffer for itself */
    }
    end(&s);
}

static void at_random(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint64_t piece = between(&s, 1, 3) * 2 * MIB;

    cpu(&s, W, 1000);
    while (again(&s))
        for (uint64_t i = 0; i < 3 * s.all / piece; i++) {
            uint32_t b = (uint32_t)um_gen_random(gen, s.n);

            one(&s, R, s.region[b], um_gen_random(gen, s.bytes[b] / piece + 1) * piece, piece, 0);
        }
    end(&s);
}

static void held(um_gen_t *gen)
{
    um_gen_memory(gen, "weights", (48 + um_gen_random(gen, 40)) << 30, UM_FAMILY_DEVICE);
    if (um_gen_random(gen, 2))
        at_random(gen);
    else
        sweeps(gen);
}

static void written_read_mostly(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    hint(&s, UM_HINT_READ_MOSTLY, 0);
    fetch(&s, 0);
    while (again(&s)) {
        gpu(&s, R, 0);
        if (s.round % 3 == 0)
            gpu(&s, W, 0);
    }
    gpu(&s, W, 0);
    end(&s);
}

/* Many launches for each wait: between them the CPU cannot have had it. */
static void kept_away(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    hint(&s, UM_HINT_PREFERRED_LOCATION, HOST);
    hint(&s, UM_HINT_ACCESSED_BY, 0);
    while (again(&s))
        for (uint32_t k = 0; k < 6; k++)
            gpu(&s, R, 0);
    end(&s);
}

static void bounce(um_gen_t *gen)
{
    uint32_t gpus = um_gen_options(gen)->gpus;
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    for (s.rounds += 4; again(&s);) {
        gpu(&s, W, (int32_t)(s.round % gpus));
        wait(&s);
    }
    end(&s);
}

/* Behind other work in its stream, while the kernel that needs the data starts on the next. */
static void late(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint64_t bytes = odd(s.all * between(&s, 80, 120) / 100);
    uint32_t other = um_gen_region(gen, "ahead", bytes), queued = (uint32_t)between(&s, 35, 70);

    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, other, 0, bytes, 0);
    s.structure &= ~STREAMS;
    while (again(&s)) {
        uint32_t update = kernel_of(&s, W, 1);

        cpu(&s, W, 1000);
        for (uint32_t k = 0; k < queued; k++)
            one(&s, W, other, 0, bytes, 0);
        fetch(&s, 0);
        for (uint32_t i = 0; i < s.n; i++) {
            um_gen_launch(gen, update, 1, 0, s.bytes[i] / 4);
            um_gen_arg(gen, 0, s.region[i], 0);
            um_gen_access(gen, W, s.region[i], 0, s.bytes[i], UM_GEN_AFTER);
            um_gen_end(gen);
        }
        for (uint32_t k = 0; k < queued; k++) { /* all the rest waits for that */
            um_gen_launch(gen, update, 1, 0, s.bytes[0] / 4);
            um_gen_arg(gen, 0, s.region[0], 0);
            um_gen_access(gen, W, s.region[0], 0, s.bytes[0], UM_GEN_AFTER);
            um_gen_end(gen);
        }
        wait(&s);
        fetch(&s, HOST);
        wait(&s);
    }
    um_gen_hint(gen, UM_HINT_PREFETCH, HOST, other, 0, bytes, 0);
    end(&s);
}

static void redundant(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    for (s.rounds *= 11; again(&s);) {
        fetch(&s, 0);
        gpu(&s, W, 0);
    }
    fetch(&s, HOST);
    end(&s);
}

static void wasted(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint64_t bytes = odd(s.all * between(&s, 30, 90) / 100);
    uint32_t other = um_gen_region(gen, "used", bytes);

    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, other, 0, bytes, 0);
    while (again(&s)) {
        cpu(&s, W, 1000);
        fetch(&s, 0);
        one(&s, W, other, 0, bytes, 0);
        wait(&s);
        if (s.round == s.rounds / 2)
            gpu(&s, R, 0);
        fetch(&s, HOST);
        wait(&s);
    }
    um_gen_hint(gen, UM_HINT_PREFETCH, HOST, other, 0, bytes, 0);
    end(&s);
}

static void pushes_out(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint64_t bytes = odd(s.all * between(&s, 70, 130) / 100);
    uint32_t other = um_gen_region(gen, "pushed", bytes);

    cpu(&s, W, 1000);
    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, other, 0, bytes, 0);
    while (again(&s)) {
        one(&s, R, other, 0, bytes, 0);
        one(&s, R, other, 0, bytes, 0);
        wait(&s);
        fetch(&s, 0);
        wait(&s);
    }
    gpu(&s, R, 0);
    end(&s);
}

static void advises_again(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    fetch(&s, 0);
    for (s.rounds = s.rounds * 5 + 9; again(&s);) {
        hint(&s, UM_HINT_PREFERRED_LOCATION, 0);
        gpu(&s, W, 0);
    }
    end(&s);
}

static void pool(um_gen_t *gen)
{
    scene_t s = scene(gen);

    for (s.rounds += 10; again(&s);) {
        buffers(&s, UM_FAMILY_POOL);
        launch(&s, W, s.n, s.all, 0);
        for (uint32_t i = 0; i < s.n; i++)
            um_gen_arg(gen, i, s.region[i], 0);
        um_gen_end(gen);
        release(&s);
        wait(&s);
    }
    end(&s);
}

/* ---- healthy ones ------------------------------------------------------------------------------ */

static void device_alone(um_gen_t *gen)
{
    scene_t s = scene(gen);

    buffers(&s, UM_FAMILY_DEVICE);
    while (again(&s)) {
        on_device(&s, 9);
        wait(&s);
    }
    end(&s);
}

static void fetched(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    fetch(&s, 0);
    while (again(&s))
        gpu(&s, um_gen_random(gen, 2) ? R : W, 0);
    end(&s);
}

static void fetched_and_back(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint32_t times = (uint32_t)between(&s, 8, 30);

    while (again(&s)) {
        cpu(&s, W, 1000);
        fetch(&s, 0);
        for (uint32_t k = 0; k < times; k++)
            gpu(&s, W, 0);
        fetch(&s, HOST);
        wait(&s);
    }
    end(&s);
}

/* The CPU writes it before each time that the GPU reads it. */
static void mapped(um_gen_t *gen)
{
    scene_t s = managed(gen);

    hint(&s, UM_HINT_PREFERRED_LOCATION, HOST);
    hint(&s, UM_HINT_ACCESSED_BY, 0);
    for (s.rounds *= 2; again(&s);) {
        cpu(&s, W, 1000);
        gpu(&s, R, 0);
        wait(&s);
    }
    end(&s);
}

static void read_mostly(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint32_t part = (uint32_t)between(&s, 30, 1000);

    cpu(&s, W, 1000);
    hint(&s, UM_HINT_READ_MOSTLY, 0);
    fetch(&s, 0);
    while (again(&s)) {
        gpu(&s, R, 0);
        cpu(&s, R, part);
        wait(&s);
    }
    end(&s);
}

static void populated(um_gen_t *gen)
{
    scene_t s = managed(gen);

    fetch(&s, 0);
    for (s.rounds *= 3; again(&s);)
        gpu(&s, W, 0);
    fetch(&s, HOST);
    wait(&s);
    cpu(&s, R, 1000);
    end(&s);
}

static void cpu_alone(um_gen_t *gen)
{
    scene_t s = managed(gen);

    while (again(&s)) {
        cpu(&s, W, 1000);
        on_device(&s, 4);
        wait(&s);
    }
    end(&s);
}

/* It faults a little in once, and computes for long. */
static void computes(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint32_t small = um_gen_region(gen, "params", 256 * KIB);

    um_gen_host(gen, W, small, 0, 256 * KIB);
    cpu(&s, W, 1000);
    fetch(&s, 0);
    for (s.rounds *= 90; again(&s);) {
        one(&s, R, small, 0, 256 * KIB, 0);
        gpu(&s, W, 0);
        gpu(&s, W, 0);
    }
    fetch(&s, HOST);
    end(&s);
}

static void own_gpus(um_gen_t *gen)
{
    scene_t s = managed(gen);
    uint64_t bytes = odd(s.all * between(&s, 40, 140) / 100);
    uint32_t other = um_gen_region(gen, "second", bytes);

    cpu(&s, W, 1000);
    fetch(&s, 0);
    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 1, other, 0, bytes, 0);
    for (s.rounds *= 3; again(&s);) {
        gpu(&s, W, 0);
        one(&s, W, other, 0, bytes, 1);
        wait(&s);
    }
    end(&s);
}

static void pool_kept(um_gen_t *gen)
{
    scene_t s = scene(gen);

    for (s.rounds *= 4; again(&s);) {
        buffers(&s, UM_FAMILY_POOL);
        on_device(&s, 2);
        release(&s);
    }
    end(&s);
}

/* Two halves in turns: one is filled while the GPU has the other. */
static void two_in_turns(um_gen_t *gen)
{
    scene_t a = managed(gen), b = a;

    buffers(&b, UM_FAMILY_MANAGED);
    while (again(&a)) {
        scene_t *s = a.round % 2 ? &a : &b;

        cpu(s, W, 1000);
        fetch(s, 0);
        for (uint32_t k = 0; k < 12; k++)
            gpu(s, R, 0);
        a.launches = b.launches = s->launches;
        wait(s);
        fetch(s, HOST);
        wait(s);
    }
    end(&a);
}

/* Advice once, at the start, that fits. */
static void stays(um_gen_t *gen)
{
    scene_t s = managed(gen);

    cpu(&s, W, 1000);
    hint(&s, UM_HINT_PREFERRED_LOCATION, 0);
    fetch(&s, 0);
    for (s.rounds *= 2; again(&s);) {
        gpu(&s, W, 0);
        wait(&s);
    }
    fetch(&s, HOST);
    wait(&s);
    cpu(&s, R, 1000);
    end(&s);
}

/* ---- what no simulation tells ------------------------------------------------------------------- */

#define AT UINT64_C(0x7e0000000000)

static uint64_t lot(um_beside_t *b, uint64_t least, uint64_t most)
{
    b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (b->random >> 33) % (most - least + 1);
}

static void tell(um_beside_t *b, uint64_t after_ns, um_event_t event)
{
    event.time_ns = b->now_ns += after_ns;
    b->fn(b->ctx, &event);
}

static void region(um_beside_t *b, uint32_t id, uint64_t addr, uint64_t bytes, um_family_t family)
{
    tell(b, 1000,
         (um_event_t){
             .type = UM_EV_REGION_ALLOC,
             .u.region_alloc = {.region = id, .family = family, .addr = addr, .bytes = bytes}});
}

static void loses(um_beside_t *b)
{
    tell(b, 0,
         (um_event_t){.type = UM_EV_LOSS,
                      .u.loss = {.what = lot(b, 0, 1) ? UM_EV_MIGRATE : UM_EV_NONE,
                                 .count = lot(b, 0, 5000),
                                 .bytes = lot(b, 0, 1) * 3 * MIB,
                                 .reason = "buffers full"}});
}

static void is_blind(um_beside_t *b)
{
    b->fn(b->ctx, &(um_event_t){.type = UM_EV_OPTION,
                                .u.option = {lot(b, 0, 1) ? "nsys.cuda-um-cpu-page-faults"
                                                          : "nsys.cuda-um-gpu-page-faults",
                                             "off", "file"}});
}

static void pins(um_beside_t *b)
{
    uint32_t n = (uint32_t)lot(b, 2, 6);

    b->fn(b->ctx, &(um_event_t){.type = UM_EV_FACT,
                                .u.fact = {"host.memory_bytes", "135291469824"}}); /* 126 GiB */
    for (uint32_t i = 0; i < n; i++)
        region(b, 900 + i, AT + ((uint64_t)i << 40), (80 / n + 1) * (UINT64_C(1) << 30),
               i % 2 ? UM_FAMILY_REGISTERED : UM_FAMILY_PINNED);
}

static void copies_pageable(um_beside_t *b)
{
    uint32_t n = (uint32_t)lot(b, 9, 60), back = (uint32_t)lot(b, 2, 5);

    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = lot(b, 2, 40) * MIB + lot(b, 0, 9000), ns = bytes / 5;
        bool out = i % back == 0;

        tell(b, ns + lot(b, 0, 100000),
             (um_event_t){.type = UM_EV_COPY,
                          .u.copy = {.bytes = bytes,
                                     .duration_ns = ns,
                                     .src_memory = out ? UM_MEMORY_DEVICE : UM_MEMORY_PAGEABLE,
                                     .dst_memory = out ? UM_MEMORY_PAGEABLE : UM_MEMORY_DEVICE,
                                     .flags =
                                         UM_TRANSFER_ON_GPU | (i % 3 ? UM_TRANSFER_ASYNC : 0)}});
    }
}

/* Two GPUs, or a GPU and the CPU, that the driver holds back in turns. */
static void thrashes(um_beside_t *b)
{
    uint32_t n = (uint32_t)lot(b, 20, 90);
    int32_t other = lot(b, 0, 1) ? 1 : HOST;

    region(b, 900, AT, lot(b, 2, 30) * MIB + 12 * KIB, UM_FAMILY_MANAGED);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t page = AT + lot(b, 0, 500) * UM_PAGE_BYTES;

        tell(b, 1000000 + lot(b, 0, 900000),
             (um_event_t){.type = UM_EV_THRASH,
                          .u.thrash = {.addr = page, .bytes = UM_PAGE_BYTES}});
        tell(b, 1000,
             (um_event_t){.type = UM_EV_THROTTLE,
                          .u.throttle = {.addr = page,
                                         .duration_ns = lot(b, 500000, 900000),
                                         .device = i % 2 ? other : 0}});
    }
}

/* What the CPU counts in lies beside what the GPU works on: the page goes to and fro. */
static void shares(um_beside_t *b)
{
    uint64_t counters = lot(b, 1, 60) * 64, rounds = lot(b, 5, 30), pages = lot(b, 1, 3);

    for (uint32_t p = 0; p < pages; p++) {
        uint64_t at = AT + p * 4 * MIB;

        region(b, 900 + 2 * p, at, counters, UM_FAMILY_MANAGED);
        region(b, 901 + 2 * p, at + counters, 64 * KIB - counters, UM_FAMILY_MANAGED);
        for (uint32_t i = 0; i < rounds; i++) {
            tell(b, 200000,
                 (um_event_t){.type = UM_EV_GPU_FAULT,
                              .u.gpu_fault = {.addr = at + 32 * KIB,
                                              .duration_ns = 60000,
                                              .groups = 1,
                                              .access = UM_ACCESS_WRITE}});
            tell(b, 10000,
                 (um_event_t){.type = UM_EV_MIGRATE,
                              .u.migrate = {at, 64 * KIB, 9000, HOST, 0, UM_CAUSE_COHERENCE, 0}});
            tell(b, 300000,
                 (um_event_t){.type = UM_EV_CPU_FAULT,
                              .u.cpu_fault = {.addr = at + counters / 2, .pc = 0x401000}});
            tell(b, 900000,
                 (um_event_t){.type = UM_EV_MIGRATE,
                              .u.migrate = {at, 64 * KIB, 9000, 0, HOST, UM_CAUSE_COHERENCE, 0}});
        }
    }
}

/* Pinned both ways, large and small: as it should be. */
static void copies_pinned(um_beside_t *b)
{
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t bytes = lot(b, 0, 1) ? lot(b, 4, 60) * MIB : 256;

        tell(b, bytes / 50 + 2000,
             (um_event_t){.type = UM_EV_COPY,
                          .u.copy = {.bytes = bytes,
                                     .duration_ns = bytes / 50 + 1500,
                                     .src_memory = i % 2 ? UM_MEMORY_DEVICE : UM_MEMORY_PINNED,
                                     .dst_memory = i % 2 ? UM_MEMORY_PINNED : UM_MEMORY_DEVICE,
                                     .flags = UM_TRANSFER_ON_GPU | UM_TRANSFER_ASYNC}});
    }
}

/* ---- the list ---------------------------------------------------------------------------------- */

#define EXACT    (1u << UM_RECORDING_EXACT)
#define ORDINARY (1u << UM_RECORDING_ORDINARY)
#define WHOLE    (EXACT | ORDINARY)
#define ANY      (WHOLE | 1u << UM_RECORDING_LOSSY | 1u << UM_RECORDING_NO_CPU)
#define NO_CPU   (WHOLE | 1u << UM_RECORDING_NO_CPU)

/* Where a fault is told by what is not there, only a whole recording can show it. A recording with a
 * loss, or without CPU faults, is itself something to find: healthy ones are whole. */
static const um_planted_t programs[] = {
    {"ping-pong", "to and fro", to_and_fro, 0, NULL, 1, ANY},
    {"ping-pong", "part to and fro", part_to_and_fro, 0, NULL, 1, ANY},
    {"first-touch", "touched first", touched_first, 0, NULL, 1, WHOLE},
    {"demand-faulting", "faulted in", faulted_in, 0, NULL, 1, ANY},
    {"sparse-faulting", "here and there", here_and_there, 0, NULL, 1, WHOLE},
    {"host-read-tail", "results fault", results_fault, 0, NULL, 1, WHOLE},
    {"false-sharing", "shared pages", fetched, 0, shares, 1, WHOLE},
    {"thrashing", "thrashes", fetched, 0, thrashes, 1, NO_CPU},
    {"allocation-churn", "churn", churn, 0, NULL, 1, WHOLE},
    {"never-on-cpu", "GPU alone", gpu_alone, 0, NULL, 1, WHOLE},
    {"pageable-copy", "pageable", fetched, 0, copies_pageable, 1, ANY},
    {"used-once", "frames", once, 0, NULL, 1, WHOLE},
    {"cyclic-sweep", "sweeps", sweeps, 65, NULL, 1, WHOLE},
    {"eviction", "at random", at_random, 60, NULL, 1, WHOLE},
    {"not-evictable", "held", held, 60, NULL, 1, NO_CPU},
    {"read-mostly-written", "written", written_read_mostly, 0, NULL, 1, WHOLE},
    {"wrong-location", "kept away", kept_away, 0, NULL, 1, WHOLE},
    {"gpu-bounce", "bounce", bounce, 0, NULL, 2, ANY},
    {"gpu-bounce", "bounce by three", bounce, 0, NULL, 3, WHOLE},
    {"late-prefetch", "late", late, 0, NULL, 1, WHOLE},
    {"redundant-prefetch", "redundant", redundant, 0, NULL, 1, WHOLE},
    {"wasted-prefetch", "wasted", wasted, 0, NULL, 1, WHOLE},
    {"harmful-prefetch", "pushes out", pushes_out, 60, NULL, 1, WHOLE},
    {"redundant-advice", "advises again", advises_again, 0, NULL, 1, WHOLE},
    {"pool-threshold", "pool", pool, 0, NULL, 1, NO_CPU},
    {"pinned-pressure", "pins", fetched, 0, pins, 1, WHOLE},
    {"lost-records", "loses", fetched_and_back, 0, loses, 1, WHOLE},
    {"tracing-off", "blind", stays, 0, is_blind, 1, WHOLE},
    {NULL, "device alone", device_alone, 0, NULL, 1, WHOLE},
    {NULL, "fetched", fetched, 0, NULL, 1, WHOLE},
    {NULL, "fetched and back", fetched_and_back, 0, NULL, 1, WHOLE},
    {NULL, "mapped", mapped, 0, NULL, 1, WHOLE},
    {NULL, "read mostly", read_mostly, 0, NULL, 1, WHOLE},
    {NULL, "populated", populated, 0, NULL, 1, WHOLE},
    {NULL, "CPU alone", cpu_alone, 0, NULL, 1, WHOLE},
    {NULL, "computes", computes, 0, NULL, 1, WHOLE},
    {NULL, "own GPUs", own_gpus, 0, NULL, 2, WHOLE},
    {NULL, "pool kept", pool_kept, 0, NULL, 1, WHOLE},
    {NULL, "two in turns", two_in_turns, 0, NULL, 1, WHOLE},
    {NULL, "stays", stays, 0, NULL, 1, WHOLE},
    {NULL, "pinned copies", fetched, 0, copies_pinned, 1, WHOLE},
};

#define PLANTED_VARIANTS 3u
#define HEALTHY_VARIANTS 4u

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* One of those that it may come as, in turns. */
static um_recording_t recording(uint32_t allowed, size_t turn)
{
    uint32_t may[UM_RECORDINGS], n = 0;

    for (uint32_t i = 0; i < UM_RECORDINGS; i++)
        if (allowed >> i & 1)
            may[n++] = i;
    return (um_recording_t)may[turn % n];
}

bool um_planted_held_out(uint32_t draw, size_t i, um_planted_case_t *out)
{
    size_t at = i;

    for (size_t p = 0; draw < UM_PLANTED_DRAWS && p < sizeof(programs) / sizeof(programs[0]); p++) {
        size_t variants = programs[p].kind ? PLANTED_VARIANTS : HEALTHY_VARIANTS;
        uint64_t z = mix(UINT64_C(0x9E3779B97F4A7C15) * (i + 1) + ((uint64_t)draw << 40));

        if (at < variants) {
            *out = (um_planted_case_t){
                .program = &programs[p],
                .options = {.bytes = (20 + z % 220) * MIB + (z >> 10) % 500 * UM_PAGE_BYTES,
                            .iterations = 4 + (uint32_t)(z >> 20) % 9,
                            .gpus = programs[p].gpus,
                            .seed = (uint64_t)draw << 56 | z >> 8,
                            .compute = 0.5 + (double)((z >> 32) % 100) / 40.0},
                .room = programs[p].room ? programs[p].room + (uint32_t)((z >> 40) % 15) : 0,
                .recording = recording(programs[p].recordings, at + p + draw)};
            return true;
        }
        at -= variants;
    }
    return false;
}

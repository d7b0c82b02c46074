/* planted_held_out.c - programs that the report's rules were not written with. */
#include "planted_beside.h"
#include "planted_scene.h"

#define KIB  (UINT64_C(1) << 10)
#define MIB  (UINT64_C(1) << 20)
#define HOST UM_DEVICE_HOST

#define R UM_ACCESS_READ
#define W UM_ACCESS_WRITE

/* ---- faults ------------------------------------------------------------------------------------ */

static void to_and_fro(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    um_access_kind_t by_gpu = um_gen_random(gen, 2) ? R : W;

    while (um_scene_again(&s)) {
        um_scene_cpu(&s, W, 1000);
        um_scene_gpu(&s, by_gpu, 0);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void part_to_and_fro(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint32_t part = (uint32_t)um_scene_between(&s, 60, 700);
    um_access_kind_t by_cpu = um_gen_random(gen, 2) ? R : W;

    um_scene_cpu(&s, W, 1000);
    um_scene_fetch(&s, 0);
    while (um_scene_again(&s)) {
        um_scene_gpu(&s, W, 0);
        um_scene_gpu(&s, W, 0);
        um_gen_wait(gen);
        um_scene_cpu(&s, by_cpu, part);
    }
    um_scene_end(&s);
}

static void touched_first(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    while (um_scene_again(&s))
        um_scene_gpu(&s, W, 0);
    um_gen_wait(gen);
    um_scene_cpu(&s, R, 0);
    um_scene_end(&s);
}

static void faulted_in(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    um_access_kind_t by_gpu = um_gen_random(gen, 2) ? R : W;

    um_scene_cpu(&s, W, 1000);
    while (um_scene_again(&s))
        um_scene_gpu(&s, by_gpu, 0);
    um_scene_end(&s);
}

static void here_and_there(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint64_t stride = um_scene_between(&s, 3, 16) * 256 * KIB,
             run = um_scene_between(&s, 1, 12) * UM_PAGE_BYTES;

    um_scene_cpu(&s, W, 1000);
    for (uint32_t turn = 0; turn < 3 && um_scene_again(&s); turn++)
        for (uint32_t i = 0; i < s.n; i++) {
            um_scene_launch(&s, R, 1, s.bytes[i] / 64, 0);
            um_gen_arg(gen, 0, s.region[i], 0);
            for (uint64_t at = um_gen_random(gen, 3) * 64 * KIB; at < s.bytes[i]; at += stride)
                um_gen_access(gen, R, s.region[i], at, run, UM_GEN_AFTER);
            um_gen_end(gen);
        }
    um_scene_end(&s);
}

static void results_fault(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint32_t part = (uint32_t)um_scene_between(&s, 500, 1000);

    um_scene_fetch(&s, 0);
    while (um_scene_again(&s))
        um_scene_gpu(&s, W, 0);
    um_gen_wait(gen);
    um_scene_cpu(&s, R, part);
    um_scene_end(&s);
}

static void churn(um_gen_t *gen)
{
    um_scene_t s = um_scene(gen);
    bool looks = um_gen_random(gen, 2);

    for (uint32_t i = 0; i < s.n; i++)
        s.bytes[i] = um_scene_odd(s.bytes[i] / 4) + UM_PAGE_BYTES;
    for (s.rounds += 9; um_scene_again(&s);) {
        um_scene_buffers(&s, UM_FAMILY_MANAGED);
        um_scene_gpu(&s, W, 0);
        um_scene_gpu(&s, W, 0);
        um_gen_wait(gen);
        if (looks)
            um_scene_cpu(&s, R, 0);
        um_scene_release(&s);
    }
    um_scene_end(&s);
}

static void gpu_alone(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    while (um_scene_again(&s)) {
        um_scene_gpu(&s, W, 0);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void once(um_gen_t *gen)
{
    um_scene_t s = um_scene(gen);
    bool freed = um_gen_random(gen, 2);

    for (uint32_t i = 0; i < s.n; i++)
        s.bytes[i] = um_scene_odd(s.bytes[i] / 2) + 2 * MIB;
    s.structure &= ~(UM_SCENE_SLICED | UM_SCENE_ZIPPED |
                     UM_SCENE_BACKWARD); /* one launch takes it, and no other */
    while (um_scene_again(&s)) {
        um_scene_buffers(&s, UM_FAMILY_MANAGED);
        um_scene_cpu(&s, W, 1000);
        um_scene_gpu(&s, R, 0);
        if (freed) {
            um_gen_wait(gen);
            um_scene_release(&s);
        }
    }
    um_scene_end(&s);
}

static void sweeps(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    while (um_scene_again(&s)) {
        um_scene_gpu(&s, R, 0);
        um_gen_wait(gen); /* or each stream would have its own buffer for itself */
    }
    um_scene_end(&s);
}

static void at_random(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint64_t piece = um_scene_between(&s, 1, 3) * 2 * MIB;

    um_scene_cpu(&s, W, 1000);
    while (um_scene_again(&s))
        for (uint64_t i = 0; i < 3 * s.all / piece; i++) {
            uint32_t b = (uint32_t)um_gen_random(gen, s.n);

            um_scene_one(&s, R, s.region[b], um_gen_random(gen, s.bytes[b] / piece + 1) * piece,
                         piece, 0);
        }
    um_scene_end(&s);
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
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    um_scene_hint(&s, UM_HINT_READ_MOSTLY, 0);
    um_scene_fetch(&s, 0);
    while (um_scene_again(&s)) {
        um_scene_gpu(&s, R, 0);
        if (s.round % 3 == 0)
            um_scene_gpu(&s, W, 0);
    }
    um_scene_gpu(&s, W, 0);
    um_scene_end(&s);
}

/* Many launches for each wait: between them the CPU cannot have had it. */
static void kept_away(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    um_scene_hint(&s, UM_HINT_PREFERRED_LOCATION, HOST);
    um_scene_hint(&s, UM_HINT_ACCESSED_BY, 0);
    while (um_scene_again(&s))
        for (uint32_t k = 0; k < 6; k++)
            um_scene_gpu(&s, R, 0);
    um_scene_end(&s);
}

static void bounce(um_gen_t *gen)
{
    uint32_t gpus = um_gen_options(gen)->gpus;
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    for (s.rounds += 4; um_scene_again(&s);) {
        um_scene_gpu(&s, W, (int32_t)(s.round % gpus));
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void on_stream_1(um_scene_t *s, uint32_t kernel, uint32_t i)
{
    um_gen_launch(s->gen, kernel, 1, 0, s->bytes[i] / 4);
    um_gen_arg(s->gen, 0, s->region[i], 0);
    um_gen_access(s->gen, W, s->region[i], 0, s->bytes[i], UM_GEN_AFTER);
    um_gen_end(s->gen);
}

/* Behind other work in its stream, while the kernel that needs the data starts on the next. */
static void late(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint64_t bytes = um_scene_odd(s.all * um_scene_between(&s, 80, 120) / 100);
    uint32_t other = um_gen_region(gen, "ahead", bytes),
             queued = (uint32_t)um_scene_between(&s, 35, 70);

    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, other, 0, bytes, 0);
    s.structure &= ~UM_SCENE_STREAMS;
    while (um_scene_again(&s)) {
        uint32_t update = um_scene_kernel(&s, W, 1);

        um_scene_cpu(&s, W, 1000);
        for (uint32_t k = 0; k < queued; k++)
            um_scene_one(&s, W, other, 0, bytes, 0);
        um_scene_fetch(&s, 0);
        for (uint32_t i = 0; i < s.n; i++)
            on_stream_1(&s, update, i);
        for (uint32_t k = 0; k < queued; k++)
            on_stream_1(&s, update, 0); /* all the rest waits for that */
        um_gen_wait(gen);
        um_scene_fetch(&s, HOST);
        um_gen_wait(gen);
    }
    um_gen_hint(gen, UM_HINT_PREFETCH, HOST, other, 0, bytes, 0);
    um_scene_end(&s);
}

static void redundant(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    for (s.rounds *= 11; um_scene_again(&s);) {
        um_scene_fetch(&s, 0);
        um_scene_gpu(&s, W, 0);
    }
    um_scene_fetch(&s, HOST);
    um_scene_end(&s);
}

static void wasted(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint64_t bytes = um_scene_odd(s.all * um_scene_between(&s, 30, 90) / 100);
    uint32_t other = um_gen_region(gen, "used", bytes);

    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, other, 0, bytes, 0);
    while (um_scene_again(&s)) {
        um_scene_cpu(&s, W, 1000);
        um_scene_fetch(&s, 0);
        um_scene_one(&s, W, other, 0, bytes, 0);
        um_gen_wait(gen);
        if (s.round == s.rounds / 2)
            um_scene_gpu(&s, R, 0);
        um_scene_fetch(&s, HOST);
        um_gen_wait(gen);
    }
    um_gen_hint(gen, UM_HINT_PREFETCH, HOST, other, 0, bytes, 0);
    um_scene_end(&s);
}

static void pushes_out(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint64_t bytes = um_scene_odd(s.all * um_scene_between(&s, 70, 130) / 100);
    uint32_t other = um_gen_region(gen, "pushed", bytes);

    um_scene_cpu(&s, W, 1000);
    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 0, other, 0, bytes, 0);
    while (um_scene_again(&s)) {
        um_scene_one(&s, R, other, 0, bytes, 0);
        um_scene_one(&s, R, other, 0, bytes, 0);
        um_gen_wait(gen);
        um_scene_fetch(&s, 0);
        um_gen_wait(gen);
    }
    um_scene_gpu(&s, R, 0);
    um_scene_end(&s);
}

static void advises_again(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    um_scene_fetch(&s, 0);
    for (s.rounds = s.rounds * 5 + 9; um_scene_again(&s);) {
        um_scene_hint(&s, UM_HINT_PREFERRED_LOCATION, 0);
        um_scene_gpu(&s, W, 0);
    }
    um_scene_end(&s);
}

static void pool(um_gen_t *gen)
{
    um_scene_t s = um_scene(gen);

    for (s.rounds += 10; um_scene_again(&s);) {
        um_scene_buffers(&s, UM_FAMILY_POOL);
        um_scene_launch(&s, W, s.n, s.all, 0);
        for (uint32_t i = 0; i < s.n; i++)
            um_gen_arg(gen, i, s.region[i], 0);
        um_gen_end(gen);
        um_scene_release(&s);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

/* ---- healthy ones ------------------------------------------------------------------------------ */

static void device_alone(um_gen_t *gen)
{
    um_scene_t s = um_scene(gen);

    um_scene_buffers(&s, UM_FAMILY_DEVICE);
    while (um_scene_again(&s)) {
        um_scene_on_device(&s, 9);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void fetched(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    um_scene_fetch(&s, 0);
    while (um_scene_again(&s))
        um_scene_gpu(&s, um_gen_random(gen, 2) ? R : W, 0);
    um_scene_end(&s);
}

static void fetched_and_back(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint32_t times = (uint32_t)um_scene_between(&s, 8, 30);

    while (um_scene_again(&s)) {
        um_scene_cpu(&s, W, 1000);
        um_scene_fetch(&s, 0);
        for (uint32_t k = 0; k < times; k++)
            um_scene_gpu(&s, W, 0);
        um_scene_fetch(&s, HOST);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

/* The CPU writes it before each time that the GPU reads it. */
static void mapped(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_hint(&s, UM_HINT_PREFERRED_LOCATION, HOST);
    um_scene_hint(&s, UM_HINT_ACCESSED_BY, 0);
    for (s.rounds *= 2; um_scene_again(&s);) {
        um_scene_cpu(&s, W, 1000);
        um_scene_gpu(&s, R, 0);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void read_mostly(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint32_t part = (uint32_t)um_scene_between(&s, 30, 1000);

    um_scene_cpu(&s, W, 1000);
    um_scene_hint(&s, UM_HINT_READ_MOSTLY, 0);
    um_scene_fetch(&s, 0);
    while (um_scene_again(&s)) {
        um_scene_gpu(&s, R, 0);
        um_scene_cpu(&s, R, part);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void populated(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_fetch(&s, 0);
    for (s.rounds *= 3; um_scene_again(&s);)
        um_scene_gpu(&s, W, 0);
    um_scene_fetch(&s, HOST);
    um_gen_wait(gen);
    um_scene_cpu(&s, R, 1000);
    um_scene_end(&s);
}

static void cpu_alone(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    while (um_scene_again(&s)) {
        um_scene_cpu(&s, W, 1000);
        um_scene_on_device(&s, 4);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

/* It faults a little in once, and computes for long. */
static void computes(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint32_t small = um_gen_region(gen, "params", 256 * KIB);

    um_gen_host(gen, W, small, 0, 256 * KIB);
    um_scene_cpu(&s, W, 1000);
    um_scene_fetch(&s, 0);
    for (s.rounds *= 90; um_scene_again(&s);) {
        um_scene_one(&s, R, small, 0, 256 * KIB, 0);
        um_scene_gpu(&s, W, 0);
        um_scene_gpu(&s, W, 0);
    }
    um_scene_fetch(&s, HOST);
    um_scene_end(&s);
}

static void own_gpus(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);
    uint64_t bytes = um_scene_odd(s.all * um_scene_between(&s, 40, 140) / 100);
    uint32_t other = um_gen_region(gen, "second", bytes);

    um_scene_cpu(&s, W, 1000);
    um_scene_fetch(&s, 0);
    um_gen_host(gen, W, other, 0, bytes);
    um_gen_hint(gen, UM_HINT_PREFETCH, 1, other, 0, bytes, 0);
    for (s.rounds *= 3; um_scene_again(&s);) {
        um_scene_gpu(&s, W, 0);
        um_scene_one(&s, W, other, 0, bytes, 1);
        um_gen_wait(gen);
    }
    um_scene_end(&s);
}

static void pool_kept(um_gen_t *gen)
{
    um_scene_t s = um_scene(gen);

    for (s.rounds *= 4; um_scene_again(&s);) {
        um_scene_buffers(&s, UM_FAMILY_POOL);
        um_scene_on_device(&s, 2);
        um_scene_release(&s);
    }
    um_scene_end(&s);
}

/* Two halves in turns: one is filled while the GPU has the other. */
static void two_in_turns(um_gen_t *gen)
{
    um_scene_t a = um_scene_managed(gen), b = a;

    um_scene_buffers(&b, UM_FAMILY_MANAGED);
    while (um_scene_again(&a)) {
        um_scene_t *s = a.round % 2 ? &a : &b;

        um_scene_cpu(s, W, 1000);
        um_scene_fetch(s, 0);
        for (uint32_t k = 0; k < 12; k++)
            um_scene_gpu(s, R, 0);
        a.launches = b.launches = s->launches;
        um_gen_wait(gen);
        um_scene_fetch(s, HOST);
        um_gen_wait(gen);
    }
    um_scene_end(&a);
}

/* Advice once, at the start, that fits. */
static void stays(um_gen_t *gen)
{
    um_scene_t s = um_scene_managed(gen);

    um_scene_cpu(&s, W, 1000);
    um_scene_hint(&s, UM_HINT_PREFERRED_LOCATION, 0);
    um_scene_fetch(&s, 0);
    for (s.rounds *= 2; um_scene_again(&s);) {
        um_scene_gpu(&s, W, 0);
        um_gen_wait(gen);
    }
    um_scene_fetch(&s, HOST);
    um_gen_wait(gen);
    um_scene_cpu(&s, R, 1000);
    um_scene_end(&s);
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
    {"false-sharing", "shared pages", fetched, 0, um_beside_shares, 1, WHOLE},
    {"thrashing", "thrashes", fetched, 0, um_beside_thrashes, 1, NO_CPU},
    {"allocation-churn", "churn", churn, 0, NULL, 1, WHOLE},
    {"never-on-cpu", "GPU alone", gpu_alone, 0, NULL, 1, WHOLE},
    {"pageable-copy", "pageable", fetched, 0, um_beside_copies_pageable, 1, ANY},
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
    {"pinned-pressure", "pins", fetched, 0, um_beside_pins, 1, WHOLE},
    {"lost-records", "loses", fetched_and_back, 0, um_beside_loses, 1, WHOLE},
    {"tracing-off", "blind", stays, 0, um_beside_is_blind, 1, WHOLE},
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
    {NULL, "pinned copies", fetched, 0, um_beside_copies_pinned, 1, WHOLE},
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

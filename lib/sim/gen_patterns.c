/* gen_patterns.c - the patterns, and the one table that names them. */
#include <stddef.h>

#include "gen_program.h"

#define READ   UM_ACCESS_READ
#define WRITE  UM_ACCESS_WRITE
#define AFTER  UM_GEN_AFTER
#define BESIDE UM_GEN_BESIDE

/* The usual kernel: reads and writes all of its range, side by side. */
static void update(um_gen_t *gen, uint32_t kernel, uint32_t stream, uint32_t region, uint64_t at,
                   uint64_t bytes)
{
    um_gen_launch(gen, kernel, stream, 0, bytes / 4);
    um_gen_arg(gen, 0, region, at);
    um_gen_access(gen, READ, region, at, bytes, AFTER);
    um_gen_access(gen, WRITE, region, at, bytes, BESIDE);
    um_gen_end(gen);
}

/* STREAM's triad over three arrays, filled by the CPU, read by it at the end. */
static void stream(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t bytes = o->bytes / 3;
    uint32_t a = um_gen_region(gen, "a", bytes), b = um_gen_region(gen, "b", bytes);
    uint32_t c = um_gen_region(gen, "c", bytes);
    uint32_t triad = um_gen_kernel(gen, "_Z5triadPfPKfS1_fm", "pcciv");

    um_gen_host(gen, WRITE, b, 0, bytes);
    um_gen_host(gen, WRITE, c, 0, bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_launch(gen, triad, 0, 0, bytes / 4);
        um_gen_arg(gen, 0, a, 0);
        um_gen_arg(gen, 1, b, 0);
        um_gen_arg(gen, 2, c, 0);
        um_gen_access(gen, READ, b, 0, bytes, AFTER);
        um_gen_access(gen, READ, c, 0, bytes, BESIDE);
        um_gen_access(gen, WRITE, a, 0, bytes, BESIDE);
        um_gen_end(gen);
    }
    um_gen_wait(gen);
    um_gen_host(gen, READ, a, 0, bytes);
}

/* The CPU and the GPU take turns at updating all of one array. */
static void ping_pong(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint32_t data = um_gen_region(gen, "data", o->bytes);
    uint32_t kernel = um_gen_kernel(gen, "_Z6updatePfm", "pv");

    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_host(gen, WRITE, data, 0, o->bytes);
        update(gen, kernel, 0, data, 0, o->bytes);
        um_gen_wait(gen);
    }
    um_gen_host(gen, READ, data, 0, o->bytes);
}

/* A temporary is allocated, written and read by the GPU alone, and freed, again and again. */
static void first_touch(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint32_t fill = um_gen_kernel(gen, "_Z4fillPfmf", "pvi");
    uint32_t reduce = um_gen_kernel(gen, "_Z6reducePKfmPf", "cvp");
    uint32_t sum = um_gen_region(gen, "sum", UM_PAGE_BYTES);

    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        uint32_t temporary = um_gen_region(gen, "temporary", o->bytes);

        um_gen_launch(gen, fill, 0, 0, o->bytes / 4);
        um_gen_arg(gen, 0, temporary, 0);
        um_gen_access(gen, WRITE, temporary, 0, o->bytes, AFTER);
        um_gen_end(gen);
        um_gen_launch(gen, reduce, 0, 0, o->bytes / 4);
        um_gen_arg(gen, 0, temporary, 0);
        um_gen_arg(gen, 2, sum, 0);
        um_gen_access(gen, READ, temporary, 0, o->bytes, AFTER);
        um_gen_access(gen, UM_ACCESS_ATOMIC, sum, 0, 4, AFTER);
        um_gen_end(gen);
        um_gen_wait(gen);
        um_gen_host(gen, READ, sum, 0, 4);
        um_gen_release(gen, temporary);
    }
}

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* bytes, iterations, gpus, seed, compute */
const um_gen_pattern_t um_gen_patterns[] = {
    {"stream", "triad over three arrays", {GIB, 10, 1, 0, 1}, stream},
    {"ping-pong", "CPU and GPU update one array in turns", {256 * MIB, 10, 1, 0, 1}, ping_pong},
    {"first-touch",
     "temporaries that only the GPU touches, allocated and freed in a loop",
     {256 * MIB, 20, 1, 0, 1},
     first_touch},
    {NULL, NULL, {0}, NULL},
};

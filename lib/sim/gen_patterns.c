/* gen_patterns.c - the patterns, and the one table that names them. */
#include <inttypes.h>
#include <stdio.h>

#include "gen_program.h"

#define READ   UM_ACCESS_READ
#define WRITE  UM_ACCESS_WRITE
#define AFTER  UM_GEN_AFTER
#define BESIDE UM_GEN_BESIDE

#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)
#define LITTLE UINT64_C(65536) /* what the CPU looks at where it does not look at all */

static uint64_t pages(uint64_t bytes) /* whole ones, at least one */
{
    return bytes > UM_PAGE_BYTES ? bytes & ~(uint64_t)(UM_PAGE_BYTES - 1) : UM_PAGE_BYTES;
}

static uint64_t rest(uint64_t bytes, uint64_t at, uint64_t piece)
{
    return bytes - at < piece ? bytes - at : piece;
}

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

/* Reads a range of one array, writes as much of another. */
static void copy(um_gen_t *gen, uint32_t kernel, uint32_t stream, uint32_t from, uint64_t from_at,
                 uint32_t to, uint64_t to_at, uint64_t bytes)
{
    um_gen_launch(gen, kernel, stream, 0, bytes / 4);
    um_gen_arg(gen, 0, to, to_at);
    um_gen_arg(gen, 1, from, from_at);
    um_gen_access(gen, READ, from, from_at, bytes, AFTER);
    um_gen_access(gen, WRITE, to, to_at, bytes, BESIDE);
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

/* Two arrays that change places; the CPU looks at a little of the newer one after every sweep. */
static void stencil(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t bytes = o->bytes / 2;
    uint32_t field[2] = {um_gen_region(gen, "field 0", bytes),
                         um_gen_region(gen, "field 1", bytes)};
    uint32_t kernel = um_gen_kernel(gen, "_Z7stencilPfPKfmm", "pcvv");

    um_gen_host(gen, WRITE, field[0], 0, bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        copy(gen, kernel, 0, field[i % 2], 0, field[(i + 1) % 2], 0, bytes);
        um_gen_wait(gen);
        um_gen_host(gen, READ, field[(i + 1) % 2], bytes / 2, LITTLE);
    }
}

/* The GPU updates all of an array, the CPU an eighth of it, another one each time. */
static void partial_update(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t part = o->bytes / 8;
    uint32_t data = um_gen_region(gen, "data", o->bytes);
    uint32_t kernel = um_gen_kernel(gen, "_Z6updatePfm", "pv");

    um_gen_host(gen, WRITE, data, 0, o->bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        update(gen, kernel, 0, data, 0, o->bytes);
        um_gen_wait(gen);
        um_gen_host(gen, WRITE, data, i % 8 * part, part);
    }
    update(gen, kernel, 0, data, 0, o->bytes);
}

/* Pieces of the input go through five kernels each, spread over four streams. */
static void pipeline(um_gen_t *gen)
{
    enum { STAGES = 5, PIECES = 16, STREAMS = 4 };
    static const char *const labels[] = {"input",   "stage 1", "stage 2",
                                         "stage 3", "stage 4", "output"};
    static const char *const names[STAGES] = {"_Z6decodePfPKfmm", "_Z6filterPfPKfmm",
                                              "_Z5scalePfPKfmm", "_Z5blendPfPKfmm",
                                              "_Z6encodePfPKfmm"};
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t bytes = o->bytes / (STAGES + 1), piece = pages(bytes / PIECES);
    uint32_t buffer[STAGES + 1], kernel[STAGES];

    for (uint32_t k = 0; k <= STAGES; k++)
        buffer[k] = um_gen_region(gen, labels[k], bytes);
    for (uint32_t k = 0; k < STAGES; k++)
        kernel[k] = um_gen_kernel(gen, names[k], "pcvv");
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_host(gen, WRITE, buffer[0], 0, bytes);
        for (uint32_t p = 0; p < PIECES && p * piece < bytes; p++)
            for (uint32_t k = 0; k < STAGES; k++)
                copy(gen, kernel[k], p % STREAMS, buffer[k], p * piece, buffer[k + 1], p * piece,
                     rest(bytes, p * piece, piece));
        for (uint32_t p = 0; p < STREAMS; p++)
            um_gen_wait_stream(gen, p, 0);
        um_gen_host(gen, READ, buffer[STAGES], 0, bytes);
    }
}

/* A table that both sides look things up in and nobody writes after the start. */
static void table(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t bytes = o->bytes / 4 * 3, part = o->bytes / 8, looked = o->bytes / 256;
    uint32_t look = um_gen_region(gen, "table", bytes);
    uint32_t keys = um_gen_region(gen, "keys", part), values = um_gen_region(gen, "values", part);
    uint32_t kernel = um_gen_kernel(gen, "_Z6lookupPfPKfPKjm", "pccv");

    um_gen_host(gen, WRITE, look, 0, bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_host(gen, WRITE, keys, 0, part);
        um_gen_launch(gen, kernel, 0, 0, part / 4);
        um_gen_arg(gen, 0, values, 0);
        um_gen_arg(gen, 1, look, 0);
        um_gen_arg(gen, 2, keys, 0);
        um_gen_access(gen, READ, keys, 0, part, AFTER);
        um_gen_access(gen, READ, look, 0, bytes, BESIDE);
        um_gen_access(gen, WRITE, values, 0, part, BESIDE);
        um_gen_end(gen);
        for (uint32_t k = 0; k < 64; k++)
            um_gen_host(gen, READ, look, um_gen_random(gen, bytes), looked);
        um_gen_wait(gen);
        um_gen_host(gen, READ, values, 0, part);
    }
}

/* One page in a hundred, drawn anew each time; in a large array fewer but longer pieces. */
static void gather(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t wanted = o->bytes / 100, pieces = wanted / UM_PAGE_BYTES, piece;
    uint32_t data, index, out;
    uint32_t kernel = um_gen_kernel(gen, "_Z6gatherPfPKfPKmm", "pccv");

    pieces = pieces < 1 ? 1 : pieces > 65536 ? 65536 : pieces;
    piece = pages(wanted / pieces);
    data = um_gen_region(gen, "data", o->bytes);
    index = um_gen_region(gen, "index", pieces * 8);
    out = um_gen_region(gen, "out", pieces * 4);
    um_gen_host(gen, WRITE, data, 0, o->bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_host(gen, WRITE, index, 0, pieces * 8);
        um_gen_launch(gen, kernel, 0, 0, pieces * 32);
        um_gen_arg(gen, 0, out, 0);
        um_gen_arg(gen, 1, data, 0);
        um_gen_arg(gen, 2, index, 0);
        um_gen_access(gen, READ, index, 0, pieces * 8, AFTER);
        for (uint64_t k = 0; k < pieces && !um_gen_failed(gen); k++)
            um_gen_access(gen, READ, data, um_gen_random(gen, o->bytes), piece, AFTER);
        um_gen_access(gen, WRITE, out, 0, pieces * 4, BESIDE);
        um_gen_end(gen);
        um_gen_wait(gen);
        um_gen_host(gen, READ, out, 0, pieces * 4);
    }
}

/* As gather, of a table that the CPU keeps: it renews an eighth of it between, another one each time. */
static void lookup(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t part = o->bytes / 8, pieces = o->bytes / 100 / UM_PAGE_BYTES;
    uint32_t data = um_gen_region(gen, "table", o->bytes), out;
    uint32_t kernel = um_gen_kernel(gen, "_Z6lookupPfPKfm", "pcv");

    pieces = pieces < 1 ? 1 : pieces > 16384 ? 16384 : pieces;
    out = um_gen_region(gen, "out", pieces * 4);
    um_gen_host(gen, WRITE, data, 0, o->bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_launch(gen, kernel, 0, 0, pieces * 32);
        um_gen_arg(gen, 0, out, 0);
        um_gen_arg(gen, 1, data, 0);
        for (uint64_t k = 0; k < pieces && !um_gen_failed(gen); k++)
            um_gen_access(gen, READ, data, um_gen_random(gen, o->bytes), UM_PAGE_BYTES, AFTER);
        um_gen_access(gen, WRITE, out, 0, pieces * 4, BESIDE);
        um_gen_end(gen);
        um_gen_wait(gen);
        um_gen_host(gen, READ, out, 0, pieces * 4);
        um_gen_host(gen, WRITE, data, i % 8 * part, part);
    }
}

/* One level of a traversal: the lists of the frontier's vertices, whose lengths follow a power law. */
static void graph_level(um_gen_t *gen, uint32_t kernel, const uint32_t *region, double share,
                        uint64_t edges, uint64_t vertices)
{
    enum { LISTS = 512 };
    double weight[LISTS], sum = 0;

    for (uint32_t k = 0; k < LISTS; k++) /* P(degree > d) ~ 1/d */
        sum += weight[k] = 1 / um_gen_uniform(gen);
    um_gen_launch(gen, kernel, 0, 0, (uint64_t)(share * (double)vertices / 8) + 1);
    for (uint32_t k = 0; k < 4; k++)
        um_gen_arg(gen, k, region[k], 0);
    for (uint32_t k = 0; k < LISTS && !um_gen_failed(gen); k++) {
        uint64_t at = um_gen_random(gen, vertices), from = um_gen_random(gen, edges);
        uint64_t bytes = (uint64_t)(weight[k] / sum * share * (double)edges) + 4;

        um_gen_access(gen, READ, region[0], at, 8, AFTER);
        um_gen_access(gen, READ, region[1], from, bytes, AFTER);
        um_gen_access(gen, UM_ACCESS_ATOMIC, region[2], um_gen_random(gen, vertices), 4, AFTER);
    }
    um_gen_access(gen, UM_ACCESS_ATOMIC, region[3], 0, 4, AFTER);
    um_gen_end(gen);
}

/* Breadth first: a few vertices, then nearly all, then the rest; the CPU looks whether more is to do. */
static void graph(um_gen_t *gen)
{
    static const double shares[] = {1e-5, 1e-3, 0.03, 0.35, 0.4, 0.15, 0.02, 1e-3};
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t edges = o->bytes / 4 * 3, vertices = o->bytes / 8;
    uint32_t kernel = um_gen_kernel(gen, "_Z3bfsPKmPKjPiS3_m", "ccppv");
    uint32_t region[] = {um_gen_region(gen, "offsets", vertices),
                         um_gen_region(gen, "edges", edges),
                         um_gen_region(gen, "distances", vertices),
                         um_gen_region(gen, "changed", UM_PAGE_BYTES)};

    um_gen_host(gen, WRITE, region[0], 0, vertices);
    um_gen_host(gen, WRITE, region[1], 0, edges);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        um_gen_host(gen, WRITE, region[2], 0, vertices);
        for (uint32_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
            um_gen_host(gen, WRITE, region[3], 0, 4);
            graph_level(gen, kernel, region, shares[k], edges, vertices);
            um_gen_wait(gen);
            um_gen_host(gen, READ, region[3], 0, 4);
        }
    }
    um_gen_host(gen, READ, region[2], 0, vertices);
}

/* C = A B, tile by tile of C; each tile wants a row of tiles of A and a column of tiles of B. */
static void matmul(um_gen_t *gen)
{
    enum { TILES = 8 };
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t bytes = o->bytes / 3, panel = pages(bytes / TILES), tile = pages(panel / TILES);
    uint32_t a = um_gen_region(gen, "A", bytes), b = um_gen_region(gen, "B", bytes);
    uint32_t c = um_gen_region(gen, "C", bytes);
    uint32_t kernel = um_gen_kernel(gen, "_Z6matmulPfPKfS1_m", "pccv");

    um_gen_host(gen, WRITE, a, 0, bytes);
    um_gen_host(gen, WRITE, b, 0, bytes);
    for (uint32_t n = 0; n < o->iterations * (uint64_t)(TILES * TILES) && !um_gen_failed(gen);
         n++) {
        uint64_t i = n / TILES % TILES, k = n % TILES, at = i * panel + k * tile;

        if (at >= bytes)
            continue;
        um_gen_launch(gen, kernel, 0, 0, tile / 4);
        um_gen_arg(gen, 0, c, at);
        um_gen_arg(gen, 1, a, i * panel);
        um_gen_arg(gen, 2, b, k * panel);
        um_gen_access(gen, READ, a, i * panel, panel, AFTER);
        um_gen_access(gen, READ, b, k * panel, panel, BESIDE);
        um_gen_access(gen, WRITE, c, at, tile, BESIDE);
        um_gen_end(gen);
    }
    um_gen_wait(gen);
    um_gen_host(gen, READ, c, 0, bytes);
}

/* A token after another through all layers; each keeps what it knows of the tokens so far. */
static void decode(um_gen_t *gen)
{
    enum { LAYERS = 16 };
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t weights = o->bytes / 8 * 7 / LAYERS, cache = o->bytes / 8 / LAYERS;
    uint32_t layer[LAYERS], keys[LAYERS], state = um_gen_region(gen, "activations", MIB / 4);
    uint32_t attention = um_gen_kernel(gen, "_Z9attentionPfS_PKfm", "ppcv");
    uint32_t feed = um_gen_kernel(gen, "_Z12feed_forwardPfPKfm", "pcv");

    for (uint32_t k = 0; k < LAYERS; k++) {
        char label[32];

        snprintf(label, sizeof label, "layer %" PRIu32, k);
        layer[k] = um_gen_region(gen, label, weights);
        snprintf(label, sizeof label, "cache %" PRIu32, k);
        keys[k] = um_gen_region(gen, label, cache);
        um_gen_host(gen, WRITE, layer[k], 0, weights);
    }
    for (uint64_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        uint64_t known = cache * i / o->iterations, then = cache * (i + 1) / o->iterations;

        um_gen_host(gen, WRITE, state, 0, LITTLE);
        for (uint32_t k = 0; k < LAYERS; k++) {
            um_gen_launch(gen, attention, 0, 0, weights / 3 / 4);
            um_gen_arg(gen, 0, state, 0);
            um_gen_arg(gen, 1, keys[k], 0);
            um_gen_arg(gen, 2, layer[k], 0);
            um_gen_access(gen, READ, layer[k], 0, weights / 3, AFTER);
            um_gen_access(gen, WRITE, keys[k], known, then - known, AFTER);
            um_gen_access(gen, READ, keys[k], 0, then, AFTER);
            um_gen_access(gen, WRITE, state, 0, MIB / 4, AFTER);
            um_gen_end(gen);
            um_gen_launch(gen, feed, 0, 0, weights / 3 * 2 / 4);
            um_gen_arg(gen, 0, state, 0);
            um_gen_arg(gen, 1, layer[k], weights / 3);
            um_gen_access(gen, READ, layer[k], weights / 3, weights - weights / 3, AFTER);
            um_gen_access(gen, WRITE, state, 0, MIB / 4, AFTER);
            um_gen_end(gen);
        }
        um_gen_wait(gen);
        um_gen_host(gen, READ, state, 0, LITTLE);
    }
}

/* All buffers are slices of one allocation, as pool allocators make them. */
static void pool(um_gen_t *gen)
{
    enum { SLICES = 16 };
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t slice = pages(o->bytes / SLICES);
    uint32_t all = um_gen_region(gen, "pool", slice * SLICES);
    uint32_t kernel = um_gen_kernel(gen, "_Z9transformPfPKfmm", "pcvv");

    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        uint64_t in = i % SLICES * slice, temporary = (i + 5) % SLICES * slice;
        uint64_t out = (i + 10) % SLICES * slice;

        um_gen_host(gen, WRITE, all, in, slice);
        copy(gen, kernel, 0, all, in, all, temporary, slice);
        copy(gen, kernel, 0, all, temporary, all, out, slice);
        um_gen_wait(gen);
        um_gen_host(gen, READ, all, out, slice);
    }
}

/* The GPU goes over everything, a piece a launch, and again: the worst there is for an eviction of what
 * came first, once it is more than the GPU holds. */
static void sweep(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t piece = o->bytes / 16 < 8 * MIB ? pages(o->bytes / 16) : 8 * MIB;
    uint32_t data = um_gen_region(gen, "data", o->bytes);
    uint32_t kernel = um_gen_kernel(gen, "_Z6updatePfm", "pv");

    um_gen_host(gen, WRITE, data, 0, o->bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        for (uint64_t at = 0; at < o->bytes && !um_gen_failed(gen); at += piece)
            update(gen, kernel, 0, data, at, rest(o->bytes, at, piece));
        um_gen_wait(gen);
    }
}

/* Each GPU has a slab and reads the edges of its neighbours'. */
static void halo(um_gen_t *gen)
{
    const um_gen_options_t *o = um_gen_options(gen);
    uint32_t gpus = o->gpus, slab[2][8];
    uint64_t bytes = o->bytes / 2 / gpus, edge = pages(bytes / 64);
    uint32_t kernel = um_gen_kernel(gen, "_Z4stepPfPKfS1_S1_m", "pcccv");

    for (uint32_t g = 0; g < gpus; g++)
        for (uint32_t k = 0; k < 2; k++) {
            char label[32];

            snprintf(label, sizeof label, "slab %" PRIu32 ".%" PRIu32, g, k);
            slab[k][g] = um_gen_region(gen, label, bytes);
        }
    for (uint32_t g = 0; g < gpus; g++)
        um_gen_host(gen, WRITE, slab[0][g], 0, bytes);
    for (uint32_t i = 0; i < o->iterations && !um_gen_failed(gen); i++) {
        const uint32_t *in = slab[i % 2], *out = slab[(i + 1) % 2];

        for (uint32_t g = 0; g < gpus; g++) {
            uint32_t left = in[(g + gpus - 1) % gpus], right = in[(g + 1) % gpus];

            um_gen_launch(gen, kernel, 0, (int32_t)g, bytes / 4);
            um_gen_arg(gen, 0, out[g], 0);
            um_gen_arg(gen, 1, in[g], 0);
            um_gen_arg(gen, 2, left, bytes - edge);
            um_gen_arg(gen, 3, right, 0);
            um_gen_access(gen, READ, left, bytes - edge, edge, AFTER);
            um_gen_access(gen, READ, right, 0, edge, BESIDE);
            um_gen_access(gen, READ, in[g], 0, bytes, AFTER);
            um_gen_access(gen, WRITE, out[g], 0, bytes, BESIDE);
            um_gen_end(gen);
        }
        um_gen_wait(gen);
    }
    for (uint32_t g = 0; g < gpus; g++)
        um_gen_host(gen, READ, slab[o->iterations % 2][g], 0, bytes);
}

/* Eight kernels one after the other, each with an array of its own; the CPU waits for each, and reads a quarter of
 * what it made. */
static void stages(um_gen_t *gen)
{
    enum { STAGES = 8 };
    const um_gen_options_t *o = um_gen_options(gen);
    uint64_t bytes = o->bytes / STAGES;
    uint32_t kernel[STAGES], array[STAGES];
    char name[32];

    for (uint32_t s = 0; s < STAGES; s++) {
        snprintf(name, sizeof(name), "_Z6stage%" PRIu32 "Pfm", s);
        kernel[s] = um_gen_kernel(gen, name, "pv");
        snprintf(name, sizeof(name), "stage %" PRIu32, s);
        array[s] = um_gen_region(gen, name, bytes);
        um_gen_host(gen, WRITE, array[s], 0, bytes);
    }
    for (uint32_t i = 0; i < o->iterations; i++)
        for (uint32_t s = 0; s < STAGES && !um_gen_failed(gen); s++) {
            update(gen, kernel[s], 0, array[s], 0, bytes);
            um_gen_wait(gen);
            um_gen_host(gen, READ, array[s], 0, bytes / 4);
        }
}

/* bytes, iterations, gpus, seed, compute */
const um_gen_pattern_t um_gen_patterns[] = {
    {"stream", "triad over three arrays", {GIB, 10, 1, 0, 1}, stream},
    {"ping-pong", "CPU and GPU update one array in turns", {256 * MIB, 10, 1, 0, 1}, ping_pong},
    {"stencil",
     "two arrays change places, the CPU reads a little of the newer one",
     {GIB, 20, 1, 0, 1},
     stencil},
    {"first-touch",
     "temporaries that only the GPU touches, allocated and freed in a loop",
     {256 * MIB, 20, 1, 0, 1},
     first_touch},
    {"partial-update",
     "the GPU updates an array, the CPU an eighth of it",
     {512 * MIB, 16, 1, 0, 1},
     partial_update},
    {"pipeline", "pieces go through five kernels on four streams", {GIB, 5, 1, 0, 2}, pipeline},
    {"table", "CPU and GPU look things up in what nobody writes", {GIB, 40, 1, 1, 1}, table},
    {"gather", "one page in a hundred, drawn by lot", {4 * GIB, 5, 1, 1, 8}, gather},
    {"lookup",
     "one page in a hundred of a table that the CPU keeps renewing",
     {512 * MIB, 20, 1, 1, 8},
     lookup},
    {"graph", "breadth-first traversal, degrees by a power law", {2 * GIB, 3, 1, 1, 4}, graph},
    {"matmul", "matrix product in tiles", {GIB, 2, 1, 0, 16}, matmul},
    {"decode",
     "a transformer makes tokens: weights of 16 layers, a growing cache",
     {2 * GIB, 32, 1, 0, 1},
     decode},
    {"pool", "buffers are slices of one allocation", {GIB, 32, 1, 0, 1}, pool},
    {"sweep",
     "the GPU goes over everything in launches of 8 MiB, again and again",
     {GIB, 10, 1, 0, 1},
     sweep},
    {"stages",
     "eight kernels that the CPU waits for, each leaves it something to read",
     {GIB, 10, 1, 0, 16},
     stages},
    {"halo", "several GPUs, each reads its neighbours' edges", {GIB, 20, 2, 0, 1}, halo},
    {0},
};

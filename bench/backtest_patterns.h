/*
 * backtest_patterns.h - the patterns of managed memory and their variants, as lists of operations.
 */
#ifndef BACKTEST_PATTERNS_H
#define BACKTEST_PATTERNS_H

#include "backtest_run.h"

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

#endif

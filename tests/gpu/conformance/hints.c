/*
 * hints.c - prefetches, advice, batches, what is said of a range, page tables.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include <fcntl.h>
#include <unistd.h>

static const CUmemLocation on_no_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99},
                           nowhere = {.type = CU_MEM_LOCATION_TYPE_INVALID};

static void run_prefetch(void)
{
    CUmemLocation node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA},
                  here = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT},
                  no_node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 9999},
                  no_type = {.type = (CUmemLocationType)77};
    CUdeviceptr p, device;
    CUstream stream;
    static char host[MIB];
    void *pinned;
    size_t n = 4 * MIB;
    CUresult (*old)(CUdeviceptr, size_t, CUdevice, CUstream) = NULL;

    begin();
    p = managed(n);
    MUST(cuMemAlloc(&device, MIB));
    MUST(cuMemAllocHost(&pinned, MIB));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PROBE("to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, stream));
    PROBE("to the GPU on stream 0", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    PROBE("to the host", cuMemPrefetchAsync(p, n, on_host, 0, stream));
    PROBE("to a NUMA node", cuMemPrefetchAsync(p, n, node, 0, stream));
    PROBE("to the current NUMA node", cuMemPrefetchAsync(p, n, here, 0, stream));
    PROBE("to no NUMA node", cuMemPrefetchAsync(p, n, no_node, 0, stream));
    PROBE("to no GPU", cuMemPrefetchAsync(p, n, on_no_gpu, 0, stream));
    PROBE("to location 0", cuMemPrefetchAsync(p, n, nowhere, 0, stream));
    PROBE("to location 77", cuMemPrefetchAsync(p, n, no_type, 0, stream));
    PROBE("with flags", cuMemPrefetchAsync(p, n, on_gpu, 1, stream));
    PROBE("of 0 bytes", cuMemPrefetchAsync(p, 0, on_gpu, 0, stream));
    PROBE("of address 0", cuMemPrefetchAsync(0, n, on_gpu, 0, stream));
    PROBE("past the end", cuMemPrefetchAsync(p, n + 1, on_gpu, 0, stream));
    PROBE("past the end from the middle", cuMemPrefetchAsync(p + MIB, n, on_gpu, 0, stream));
    PROBE("of the middle", cuMemPrefetchAsync(p + MIB, MIB, on_gpu, 0, stream));
    PROBE("of one byte not at a page", cuMemPrefetchAsync(p + 5, 1, on_gpu, 0, stream));
    PROBE("of cuMemAlloc", cuMemPrefetchAsync(device, MIB, on_gpu, 0, stream));
    PROBE("of cuMemAllocHost", cuMemPrefetchAsync(address(pinned), MIB, on_gpu, 0, stream));
    PROBE("of malloc", cuMemPrefetchAsync(address(host), MIB, on_gpu, 0, stream));
    MUST(cuGetProcAddress("cuMemPrefetchAsync", (void **)&old, 12000, 0, NULL));
    PROBE("old call, to the GPU", old(p, n, 0, stream));
    PROBE("old call, to the host", old(p, n, CU_DEVICE_CPU, stream));
    PROBE("old call, to no GPU", old(p, n, 99, stream));
    PROBE("old call, to device -2", old(p, n, -2, stream));
    PROBE("old call, past the end", old(p, n + 1, 0, stream));
    PROBE("all that in the end", cuStreamSynchronize(stream));
}

static void run_advise(void)
{
    static const char *const names[] = {"",
                                        "ReadMostly",
                                        "UnsetReadMostly",
                                        "PreferredLocation",
                                        "UnsetPreferredLocation",
                                        "AccessedBy",
                                        "UnsetAccessedBy"};
    static const struct {
        const char *name;
        CUmemLocation where;
    } places[] = {
        {"the GPU", {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
        {"the host", {CU_MEM_LOCATION_TYPE_HOST, 0}},
        {"NUMA node 0", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}},
        {"no GPU", {CU_MEM_LOCATION_TYPE_DEVICE, 99}},
        {"location 0", {CU_MEM_LOCATION_TYPE_INVALID, 0}},
    };
    char what[64];
    CUdeviceptr p, device;
    static char host[MIB];
    size_t n = 4 * MIB;
    CUmem_advise set = CU_MEM_ADVISE_SET_READ_MOSTLY;

    begin();
    p = managed(n);
    MUST(cuMemAlloc(&device, MIB));
    for (int advice = 1; advice <= 6; advice++)
        for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
            snprintf(what, sizeof(what), "%s, %s", names[advice], places[i].name);
            PROBE(what, cuMemAdvise(p, n, (CUmem_advise)advice, places[i].where));
        }
    PROBE("advice 0", cuMemAdvise(p, n, (CUmem_advise)0, on_gpu));
    PROBE("advice 77", cuMemAdvise(p, n, (CUmem_advise)77, on_gpu));
    PROBE("of 0 bytes", cuMemAdvise(p, 0, set, on_gpu));
    PROBE("of address 0", cuMemAdvise(0, n, set, on_gpu));
    PROBE("past the end", cuMemAdvise(p, n + 1, set, on_gpu));
    PROBE("of one byte not at a page", cuMemAdvise(p + 5, 1, set, on_gpu));
    PROBE("of cuMemAlloc", cuMemAdvise(device, MIB, set, on_gpu));
    PROBE("of malloc", cuMemAdvise(address(host), MIB, set, on_gpu));
}

static void run_batch(void)
{
    CUdeviceptr p[2];
    size_t bytes[2] = {MIB, MIB}, first[2] = {0, 1};
    CUmemLocation where[2] = {on_gpu, on_host};
    CUstream stream;

    begin();
    p[0] = managed(4 * MIB);
    p[1] = p[0] + 2 * MIB;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PROBE("prefetch", cuMemPrefetchBatchAsync(p, bytes, 2, where, first, 2, 0, stream));
    PROBE("prefetch of none", cuMemPrefetchBatchAsync(p, bytes, 0, where, first, 1, 0, stream));
    PROBE("prefetch to nowhere", cuMemPrefetchBatchAsync(p, bytes, 2, where, first, 0, 0, stream));
    PROBE("prefetch with flags", cuMemPrefetchBatchAsync(p, bytes, 2, where, first, 2, 1, stream));
    PROBE("prefetch on stream 0", cuMemPrefetchBatchAsync(p, bytes, 2, where, first, 2, 0, NULL));
    first[0] = 1;
    PROBE("prefetch, the first has no place",
          cuMemPrefetchBatchAsync(p, bytes, 2, where, first, 1, 0, stream));
    first[0] = 0;
    bytes[1] = 4 * MIB;
    PROBE("prefetch, the second past the end",
          cuMemPrefetchBatchAsync(p, bytes, 2, where, first, 2, 0, stream));
    PROBE("discard, the second past the end", cuMemDiscardBatchAsync(p, bytes, 2, 0, stream));
    bytes[1] = MIB;
    PROBE("discard", cuMemDiscardBatchAsync(p, bytes, 2, 0, stream));
    PROBE("discard of none", cuMemDiscardBatchAsync(p, bytes, 0, 0, stream));
    PROBE("discard on stream 0", cuMemDiscardBatchAsync(p, bytes, 2, 0, NULL));
    PROBE("discard and prefetch",
          cuMemDiscardAndPrefetchBatchAsync(p, bytes, 2, where, first, 2, 0, stream));
    PROBE("all that in the end", cuStreamSynchronize(stream));
}

static void range_line(const char *what, CUmem_range_attribute attribute, CUdeviceptr p, size_t n)
{
    int value = 12345;
    CUresult result = cuMemRangeGetAttribute(&value, sizeof(value), attribute, p, n);

    say(what, "%d, %d", (int)result, value);
}

static void range_lines(const char *when, CUdeviceptr p, size_t n)
{
    static const char *const names[] = {"",
                                        "ReadMostly",
                                        "PreferredLocation",
                                        "AccessedBy",
                                        "LastPrefetchLocation",
                                        "PreferredLocationType",
                                        "",
                                        "LastPrefetchLocationType"};
    char what[64];

    for (int i = 1; i <= 7; i++)
        if (names[i][0]) {
            snprintf(what, sizeof(what), "%s, %s", names[i], when);
            range_line(what, (CUmem_range_attribute)i, p, n);
        }
}

static void run_ranges(void)
{
    CUdeviceptr p;
    size_t n = 4 * MIB, sizes[2] = {4, 4};
    int list[4] = {7, 7, 7, 7}, one = 7;
    void *data[2] = {&list[0], &one};
    CUmem_range_attribute which[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                      CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
    CUmem_range_attribute read_mostly = which[0];

    begin();
    p = managed(n);
    range_lines("at first", p, n);
    MUST(cuMemAdvise(p, n, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    MUST(cuMemAdvise(p, n, CU_MEM_ADVISE_SET_ACCESSED_BY, on_gpu));
    MUST(cuMemAdvise(p, n, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_host));
    MUST(cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    range_lines("advised and prefetched", p, n);
    MUST(cuMemAdvise(p, n / 2, CU_MEM_ADVISE_UNSET_READ_MOSTLY, on_gpu));
    MUST(cuMemAdvise(p, n / 2, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, on_gpu));
    MUST(cuMemAdvise(p, n / 2, CU_MEM_ADVISE_UNSET_ACCESSED_BY, on_gpu));
    MUST(cuMemPrefetchAsync(p, n / 2, on_host, 0, NULL));
    range_lines("of a mixed range", p, n);
    range_lines("of its second half", p + n / 2, n / 2);
    PROBE("AccessedBy of 16 bytes",
          cuMemRangeGetAttribute(list, 16, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p + n / 2, n / 2));
    say("it lists", "%d %d %d %d", list[0], list[1], list[2], list[3]);
    PROBE("to NULL", cuMemRangeGetAttribute(NULL, 4, read_mostly, p, n));
    PROBE("to 3 bytes", cuMemRangeGetAttribute(&one, 3, read_mostly, p, n));
    PROBE("to 8 bytes", cuMemRangeGetAttribute(list, 8, read_mostly, p, n));
    PROBE("no such attribute", cuMemRangeGetAttribute(&one, 4, (CUmem_range_attribute)77, p, n));
    PROBE("of 0 bytes", cuMemRangeGetAttribute(&one, 4, read_mostly, p, 0));
    PROBE("past the end", cuMemRangeGetAttribute(&one, 4, read_mostly, p, n + 1));
    PROBE("of malloc", cuMemRangeGetAttribute(&one, 4, read_mostly, address(&p), 4));
    PROBE("two at once", cuMemRangeGetAttributes(data, sizes, which, 2, p + n / 2, n / 2));
    say("they are", "%d %d", list[0], one);
    PROBE("none at once", cuMemRangeGetAttributes(data, sizes, which, 0, p, n));
}

/* ---- page tables ----------------------------------------------------------------------------------- */

/* KiB of [p, p+bytes) that the CPU maps. */
static void present(const char *what, CUdeviceptr p, size_t bytes)
{
    int fd = open("/proc/self/pagemap", O_RDONLY), n = 0;

    for (size_t at = 0; at < bytes; at += 4096) {
        uint64_t entry = 0;
        if (pread(fd, &entry, 8, (off_t)((p + at) / 4096 * 8)) == 8)
            n += entry >> 63 ? 4 : 0;
    }
    close(fd);
    say(what, "%d KiB", n);
}

static void run_page_tables(void)
{
    size_t n = 4 * MIB;
    CUstream stream;

    begin();
    CUfunction f = function(ADD_ONE);
    CUdeviceptr p = managed(n);
    float *numbers = pointer(p);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    present("nobody touched it", p, n);
    memset(numbers, 0, n);
    present("the CPU wrote", p, n);
    MUST(add_one(f, p, n / 4, stream));
    MUST(cuCtxSynchronize());
    present("a kernel worked on it", p, n);
    numbers[n / 8] += 1;
    present("the CPU then touched one number", p, n);
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, stream));
    MUST(cuCtxSynchronize());
    present("prefetched to the CPU", p, n);
    MUST(cuMemPrefetchAsync(p, n, on_gpu, 0, stream));
    MUST(cuCtxSynchronize());
    present("prefetched to the GPU", p, n);
    MUST(cuMemAdvise(p, n, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    say("a duplicate that the CPU reads", "%.0f", (double)numbers[n / 8]);
    present("that duplicate", p, n);
    managed_free(p, n);
}

const section_t um_probes_hints[] = {
    {"prefetch", run_prefetch}, {"advise", run_advise},           {"batch", run_batch},
    {"ranges", run_ranges},     {"page tables", run_page_tables}, {NULL, NULL},
};
#endif

/*
 * records.c - what may be enabled when, and what records tell of a small managed scenario.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include "cupti_calls.h"

#include <pthread.h>
#include <time.h>

#define KINDS 9
typedef struct tally {
    bool any;
    uint64_t asked,
        served;     /* bytes: at the user's request; for faults, or by the driver's own doing */
    uint32_t flags; /* bit n: some record had flags n */
    uint32_t src, dst;
    bool mixed; /* not all had these ends */
} tally_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tally_t tallies[KINDS];
static CUdeviceptr watched;
static size_t watched_bytes;
static unsigned kernel_records, kernels_wrong;
static size_t record_bytes; /* of a unified-memory record */
static bool ends;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *bytes = 8 * MIB;
    *buffer = aligned_alloc(8, *bytes);
    *most = 0;
}

static void on_record(const CUpti_ActivityUnifiedMemoryCounter3 *r)
{
    tally_t *t = &tallies[r->counterKind < KINDS ? r->counterKind : 0];
    bool bytes = r->counterKind == 1 || r->counterKind == 2 || r->counterKind == 8;

    if (r->address < watched || r->address >= watched + watched_bytes)
        return;
    if (t->any && (t->src != r->srcId || t->dst != r->dstId))
        t->mixed = true;
    t->any = true;
    t->src = r->srcId;
    t->dst = r->dstId;
    t->flags |= 1u << (r->flags & 31);
    if (bytes && r->flags == CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER)
        t->asked += r->value;
    else if (bytes)
        t->served += r->value;
}

static void on_kernel(const CUpti_ActivityKernel10 *k)
{
    kernel_records++;
    if (!k->name || strcmp(k->name, ADD_ONE) != 0 || k->gridX != 256 || k->blockX != 256 ||
        k->start == 0 || k->end < k->start || k->correlationId == 0 || k->deviceId != 0)
        kernels_wrong++;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
    CUpti_Activity *record = NULL, *before = NULL;

    (void)context;
    (void)stream;
    (void)bytes;
    pthread_mutex_lock(&lock);
    while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
            on_record((const CUpti_ActivityUnifiedMemoryCounter3 *)record);
        else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            on_kernel((const CUpti_ActivityKernel10 *)record);
        if (before && before->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
            record_bytes = (size_t)((char *)record - (char *)before);
        before = record;
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* CUPTI loses what is not fetched at once. */
static void *flush_often(void *ctx)
{
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        cupti.flush(0);
        sleep_ms(1);
    }
    return ctx;
}

static CUptiResult configure(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig config[8];

    for (int i = 0; i < 8; i++)
        config[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
            .kind = (CUpti_ActivityUnifiedMemoryCounterKind)(i + 1),
            .enable = 1};
    return cupti.configure(config, 8);
}

static const char *set_of(uint32_t flags)
{
    static char text[128];
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < 32; i++)
        if (flags >> i & 1)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", used ? "+" : "", i);
    return text;
}

static void say_tallies(const char *what)
{
    static const char *const names[KINDS] = {"other",  "HtoD",     "DtoH", "CPU fault", "GPU fault",
                                             "thrash", "throttle", "map",  "DtoD"};
    char line[1024] = "";
    size_t used = 0;

    sleep_ms(150); /* they come late, by up to 17 ms */
    cupti.flush(1);
    pthread_mutex_lock(&lock);
    for (int i = 1; i < KINDS; i++) {
        const tally_t *t = &tallies[i];
        bool bytes = i == 1 || i == 2 || i == 8;
        if (!t->any)
            continue;
        used +=
            (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", used ? "; " : "", names[i]);
        if (bytes)
            used += (size_t)snprintf(line + used, sizeof(line) - used, " %lld+%lld bytes",
                                     (long long)t->asked, (long long)t->served);
        /* Whether the driver prefetches in a block is its own affair: 2 and 3 are one cause here. */
        used +=
            (size_t)snprintf(line + used, sizeof(line) - used, " flags %s",
                             set_of(bytes && t->flags & 0xc ? (t->flags & ~0x8u) | 4 : t->flags));
        if (t->mixed)
            used += (size_t)snprintf(line + used, sizeof(line) - used, " of several");
        else
            used += (size_t)snprintf(line + used, sizeof(line) - used, " of %d, %d", (int)t->src,
                                     (int)t->dst);
    }
    memset(tallies, 0, sizeof(tallies));
    pthread_mutex_unlock(&lock);
    say(what, "%s", used ? line : "none");
}

static void watch(CUdeviceptr p, size_t bytes)
{
    pthread_mutex_lock(&lock);
    watched = p;
    watched_bytes = bytes;
    memset(tallies, 0, sizeof(tallies));
    pthread_mutex_unlock(&lock);
}

static void cpu_write(CUdeviceptr p, size_t bytes)
{
    memset(pointer(p), 0, bytes);
}

static void cpu_read(CUdeviceptr p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4096)
        (void)((volatile char *)pointer(p))[i];
}

static void run_enabling(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig one = {
        .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
        .kind = (CUpti_ActivityUnifiedMemoryCounterKind)77,
        .enable = 1};
    CUpti_ActivityKind um = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;

    open_cupti();
    PROBE("register no functions", cupti.buffers(NULL, NULL));
    PROBE("register functions", cupti.buffers(give_buffer, take_buffer));
    PROBE("enable before all else", cupti.enable(um));
    PROBE("configure before cuInit", configure());
    PROBE("enable kernels before cuInit", cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuInit(0));
    PROBE("configure before a context", configure());
    PROBE("enable before a context", cupti.enable(um));
    begin();
    PROBE("enable before it is configured", cupti.enable(um));
    PROBE("disable before it is configured", cupti.disable(um));
    PROBE("configure none", cupti.configure(NULL, 1));
    PROBE("configure 0 of them", cupti.configure(&one, 0));
    PROBE("configure kind 77", cupti.configure(&one, 1));
    PROBE("configure", configure());
    PROBE("configure again", configure());
    PROBE("enable", cupti.enable(um));
    PROBE("enable again", cupti.enable(um));
    PROBE("configure when enabled", configure());
    PROBE("enable kind 9999", cupti.enable((CUpti_ActivityKind)9999));
    PROBE("flush", cupti.flush(0));
    PROBE("disable", cupti.disable(um));
    PROBE("disable again", cupti.disable(um));
    PROBE("configure when disabled", configure());
    PROBE("enable once more", cupti.enable(um));
}

/* In which order allocation and enabling come decides whether anything is told. */
static void run_silence(void)
{
    size_t n = 8 * MIB;
    pthread_t flusher;

    begin();
    CUfunction f = function(ADD_ONE);
    CUdeviceptr p = managed(n);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    MUST(configure());
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    pthread_create(&flusher, NULL, flush_often, NULL);
    watch(p, n);
    cpu_write(p, n);
    MUST(add_one(f, p, n / 4, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("of a region older than the enabling");
    CUdeviceptr small = managed(4096);
    cpu_read(p, n);
    MUST(add_one(f, p, n / 4, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("once a small region was allocated");
    managed_free(small, 4096);
    cpu_read(p, n);
    MUST(cuCtxSynchronize());
    say_tallies("once it was freed");
    MUST(cupti.disable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    MUST(cuMemPrefetchAsync(p, n, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("when disabled");
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    cpu_read(p, n);
    say_tallies("when enabled again");
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(flusher, NULL);
}

/* What the module brings was allocated by no call. */
static void run_variable(void)
{
    static const char text[] =
        "//softgpu managed numbers 4194304\n"
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .global .attribute(.managed) .align 256 .b8 numbers[4194304];\n";
    pthread_t flusher;
    CUmodule module = NULL;
    CUdeviceptr p = 0;
    size_t n = 0;

    begin();
    CUfunction f = function(ADD_ONE);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    MUST(configure());
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    pthread_create(&flusher, NULL, flush_often, NULL);
    PROBE("load", cuModuleLoadData(&module, text));
    MUST(cuModuleGetGlobal(&p, &n, module, "numbers"));
    say("bytes", "%zu", n);
    watch(p, n);
    cpu_write(p, n);
    MUST(add_one(f, p, n / 4, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("before anything else is allocated");
    managed(4096);
    cpu_read(p, n);
    MUST(add_one(f, p, n / 4, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("once a small region was allocated");
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(flusher, NULL);
}

static void run_records(void)
{
    static const CUmemLocation on_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                               on_host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    size_t n = 64 * MIB;
    uint64_t floats = n / 4;
    float a = 1;
    CUdeviceptr p, y;
    pthread_t flusher;

    begin();
    CUfunction f = function(ADD_ONE), axpy = function(AXPY);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    MUST(configure());
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    pthread_create(&flusher, NULL, flush_often, NULL);
    MUST(cuMemAlloc(&y, n));
    MUST(cuMemsetD8(y, 0, n));
    p = managed(n);
    watch(p, n);
    void *read_p[] = {&y, &p, &floats, &a};

#define GPU_WRITES add_one(f, p, floats, NULL)
#define GPU_READS  cuLaunchKernel(axpy, 256, 1, 1, 256, 1, 1, 0, NULL, read_p, NULL)
#define STEP(what, call)                                                                           \
    do {                                                                                           \
        MUST(call);                                                                                \
        MUST(cuCtxSynchronize());                                                                  \
        say_tallies(what);                                                                         \
    } while (0)
    STEP("the CPU writes what nobody has touched", (cpu_write(p, n), 0));
    STEP("the GPU adds to it", GPU_WRITES);
    STEP("the GPU adds again", GPU_WRITES);
    STEP("the CPU reads it back", (cpu_read(p, n), 0));
    STEP("the CPU reads again", (cpu_read(p, n), 0));
    STEP("the GPU reads it", GPU_READS);
    STEP("the CPU writes one page", (cpu_write(p, 4096), 0));
    STEP("the GPU reads again", GPU_READS);
    STEP("prefetch to the host", cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    STEP("the CPU reads after the prefetch", (cpu_read(p, n), 0));
    STEP("prefetch to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("prefetch to the GPU again", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("the GPU adds after the prefetch", GPU_WRITES);
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("back to the host");
    STEP("ReadMostly", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    STEP("ReadMostly: the GPU reads", GPU_READS);
    STEP("ReadMostly: the CPU reads", (cpu_read(p, n), 0));
    STEP("ReadMostly: the CPU writes one page", (cpu_write(p, 4096), 0));
    STEP("ReadMostly: the GPU reads again", GPU_READS);
    STEP("ReadMostly: the GPU adds to 1 MiB", add_one(f, p + 2 * MIB, MIB / 4, NULL));
    STEP("ReadMostly: prefetch to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("ReadMostly ends", cuMemAdvise(p, n, CU_MEM_ADVISE_UNSET_READ_MOSTLY, on_gpu));
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("back to the host once more");
    STEP("AccessedBy the GPU", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_ACCESSED_BY, on_gpu));
    STEP("AccessedBy: the GPU adds", GPU_WRITES);
    STEP("AccessedBy: the CPU reads", (cpu_read(p, n), 0));
    STEP("AccessedBy: prefetch to the GPU", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("AccessedBy: the CPU reads it back", (cpu_read(p, n), 0));
    STEP("AccessedBy: the GPU adds again", GPU_WRITES);
    STEP("AccessedBy ends", cuMemAdvise(p, n, CU_MEM_ADVISE_UNSET_ACCESSED_BY, on_gpu));
    MUST(cuMemPrefetchAsync(p, n, on_host, 0, NULL));
    MUST(cuCtxSynchronize());
    say_tallies("back to the host again");
    STEP("PreferredLocation host",
         cuMemAdvise(p, n, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_host));
    STEP("PreferredLocation host: the GPU adds", GPU_WRITES);
    STEP("PreferredLocation host: the CPU reads", (cpu_read(p, n), 0));
    STEP("PreferredLocation GPU", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_gpu));
    STEP("PreferredLocation GPU: the GPU adds", GPU_WRITES);
    STEP("PreferredLocation GPU: the CPU reads", (cpu_read(p, n), 0));
    managed_free(p, n);
    p = managed(n);
    watch(p, n);
    STEP("the GPU adds to what nobody has touched", GPU_WRITES);
    managed_free(p, n);
    p = managed(n);
    watch(p, n);
    STEP("prefetch of what nobody has touched", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    STEP("cuMemcpy from it to the host", cuMemcpyDtoH(calloc(1, n), p, n));
    STEP("cuMemset of it", cuMemsetD8(p, 1, n));
    managed_free(p, n);
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(flusher, NULL);
    say("bytes of a record", "%zu", record_bytes);
}

static void run_kernels(void)
{
    CUdeviceptr p;

    begin();
    CUfunction f = function(ADD_ONE);
    open_cupti();
    MUST(cupti.buffers(give_buffer, take_buffer));
    PROBE("enable", cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuMemAlloc(&p, MIB));
    for (int i = 0; i < 10; i++)
        MUST(add_one(f, p, 1, NULL));
    MUST(cuCtxSynchronize());
    MUST(cupti.flush(1));
    say("records of 10 launches", "%u", kernel_records);
    say("of which wrong", "%u", kernels_wrong);
    PROBE("disable", cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(add_one(f, p, 1, NULL));
    MUST(cuCtxSynchronize());
    MUST(cupti.flush(1));
    say("records after one more", "%u", kernel_records);
}

const section_t um_probes_records[] = {
    {"enabling", run_enabling},
    {"silence", run_silence},
    {"managed variable", run_variable},
    {"kernel records", run_kernels},
    {"unified-memory records", run_records},
    {NULL, NULL},
};
#endif

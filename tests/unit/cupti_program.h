/* cupti_program.h - a program as the live CUDA source sees it: callbacks and records from a driver and a CUPTI
 * made for the test (tests/fake), and the events that they become on the bus. */
#ifndef UM_CUPTI_PROGRAM_H
#define UM_CUPTI_PROGRAM_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/live.h"

#define MAX_EVENTS (1 << 16)

static um_runtime_t runtime;
static um_event_t *events[MAX_EVENTS];
static _Atomic size_t n_events;
static void *fake_cuda, *fake_cupti;
static uint64_t page_tables; /* the settings */
static uint64_t deep;

static inline void keep(void *ctx, const um_event_t *event)
{
    size_t bytes = um_event_pack(event, NULL, 0);
    void *copy = malloc(bytes);

    (void)ctx;
    um_event_pack(event, copy, bytes);
    if (n_events < MAX_EVENTS)
        events[n_events++] = copy;
}

#define CUDA_SYMBOL(name)  dlsym(fake_cuda, name)
#define CUPTI_SYMBOL(name) dlsym(fake_cupti, name)
#define CUDA_INT(name)     (*(int *)CUDA_SYMBOL(name))
#define CUPTI_INT(name)    (*(int *)CUPTI_SYMBOL(name))

static inline void open_fakes(void)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/fake/libcuda.so.1", getenv("UM_BUILDDIR"));
    fake_cuda = dlopen(path, RTLD_NOW);
    cr_assert(fake_cuda, "%s", dlerror());
    snprintf(path, sizeof(path), "%s/tests/fake/libcupti.so.13", getenv("UM_BUILDDIR"));
    fake_cupti = dlopen(path, RTLD_NOW);
    cr_assert(fake_cupti, "%s", dlerror());
}

static inline void start(um_mode_t mode)
{
    um_sink_t sink = {.event = keep};
    char reason[256] = "";

    open_fakes();
    CUDA_INT("fake_cuda_initialised") = 0; /* as inside cuInit */
    runtime.settings = (um_settings_t){.mode = mode,
                                       .page_tables = page_tables,
                                       .deep = deep,
                                       .flush_us = 200,
                                       .call_sites = 1,
                                       .kernel_times = 1,
                                       .unified_memory = 1};
    cr_assert_eq(um_regions_new(&runtime.regions), UM_OK);
    cr_assert_eq(um_kernels_new(&runtime.kernels), UM_OK);
    cr_assert_eq(um_bus_new(1 << 20, 1000, &runtime.bus), UM_OK);
    um_bus_add_sink(runtime.bus, &sink);
    cr_assert_eq(um_bus_start(runtime.bus), UM_OK);
    cr_assert_eq(um_backend()->attach(&runtime, reason, sizeof(reason)), UM_OK, "%s", reason);
    CUDA_INT("fake_cuda_initialised") = 1;
}

/* The n-th event of a type, from 0; NULL when there are not that many. */
static inline const um_event_t *event_of(um_event_type_t type, size_t n)
{
    um_bus_sync(runtime.bus);
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == type && n-- == 0)
            return events[i];
    return NULL;
}

static inline size_t count_of(um_event_type_t type)
{
    size_t n = 0;

    um_bus_sync(runtime.bus);
    for (size_t i = 0; i < n_events; i++)
        n += events[i]->type == type;
    return n;
}

/* ---- the program's side -------------------------------------------------------------------- */

static uint32_t correlation;
static CUresult result;

static inline void enter_or_exit(CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *params, CUpti_ApiCallbackSite site, const char *symbol,
                                 uint64_t *data)
{
    static void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
    CUpti_CallbackData info = {
        .callbackSite = site,
        .functionParams = params,
        .functionReturnValue = &result,
        .symbolName = symbol,
        .context = (CUcontext)0x101,
        .contextUid = 1,
        .correlationData = data,
        .correlationId = correlation,
    };

    if (!call)
        *(void **)&call = CUPTI_SYMBOL("fake_cupti_call");
    call(domain, id, &info);
}

static inline void driver_call(CUpti_CallbackId id, const void *params, const char *symbol)
{
    uint64_t data = 0;

    correlation++;
    enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, id, params, CUPTI_API_ENTER, symbol, &data);
    enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, id, params, CUPTI_API_EXIT, symbol, &data);
}

static inline void create_context(void)
{
    CUcontext context = (CUcontext)0x101;
    cuDevicePrimaryCtxRetain_params params = {&context, 0};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain, &params, NULL);
}

static inline void alloc_managed(uint64_t addr, size_t bytes)
{
    CUdeviceptr where = addr;
    cuMemAllocManaged_params params = {&where, bytes, CU_MEM_ATTACH_GLOBAL};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, &params, NULL);
}

static inline void alloc_device(uint64_t addr, size_t bytes)
{
    CUdeviceptr where = addr;
    cuMemAlloc_v2_params params = {&where, bytes};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &params, NULL);
}

static inline void free_device(uint64_t addr)
{
    cuMemFree_v2_params params = {addr};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &params, NULL);
}

static inline void launch(uint64_t handle, uint64_t a, uint64_t b, CUstream stream)
{
    int n = 5;
    void *args[] = {&a, &b, &n};
    cuLaunchKernel_params params = {.f = (CUfunction)handle,
                                    .gridDimX = 10,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 256,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = 64,
                                    .hStream = stream,
                                    .kernelParams = args};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "_Z3addPfPKfi");
}

static inline void device_sync(void)
{
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, NULL, NULL);
}

static inline void record(const void *bytes, size_t n)
{
    static void (*put)(const void *, size_t);

    if (!put)
        *(void **)&put = CUPTI_SYMBOL("fake_cupti_record");
    put(bytes, n);
}

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CUpti_ActivityUnifiedMemoryCounter3 and CUpti_ActivityKernel9, which old headers lack. */
typedef struct counter {
    uint32_t kind, counter;
    uint64_t value, start, end, address;
    uint32_t src, dst, stream, process, flags, pad;
    uint64_t processors[5];
} counter_t;

typedef struct kernel_times {
    uint32_t kind, some[3];
    uint64_t start, end, completed;
    uint32_t device, context, stream, grid[3], block[3], more[4], correlation;
    uint64_t grid_id;
    const char *name;
    uint64_t rest[12];
} kernel_times_t;

static inline counter_t migration(uint64_t addr, uint64_t bytes)
{
    uint64_t now = clock_ns(CLOCK_REALTIME); /* the fake CUPTI's clock */

    return (counter_t){
        .kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
        .counter = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        .value = bytes,
        .start = now - 100,
        .end = now,
        .address = addr,
        .src = UINT32_MAX,
        .flags = 2,
    };
}

#define ID(api) CUPTI_DRIVER_TRACE_CBID_##api

#define CALL(api, ...)                                                                             \
    do {                                                                                           \
        api##_params p = __VA_ARGS__;                                                              \
        driver_call(CUPTI_DRIVER_TRACE_CBID_##api, &p, NULL);                                      \
    } while (0)

#define A 0x700000000000
#define B 0x700040000000
#define D 0x500000000000

#endif

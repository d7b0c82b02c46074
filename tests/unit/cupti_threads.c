/* The live source with the program's threads all inside it at once: launches, allocations, graphs,
 * records, and the end in the middle of it. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/live.h"

#define LAUNCHERS 3
#define CHURNERS  2
#define ROUNDS    2000u
#define FIRSTS    6 /* threads whose first allocations come at once */
#define FIXED     0x700000000000
#define CHURNED   0x710000000000

static um_runtime_t runtime;
static void *fake_cuda, *fake_cupti;
static void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
static void (*record)(const void *, size_t);
static _Atomic uint64_t seen[UM_EV_TYPE_COUNT];
static _Atomic uint32_t correlation;

static void count(void *ctx, const um_event_t *event)
{
    (void)ctx;
    /* Late drains are told as possible losses of a real CUPTI's; a busy test machine has them. */
    if (event->type != UM_EV_LOSS || !strstr(event->u.loss.reason, "fell behind"))
        seen[event->type]++;
}

static void *library(const char *name)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/fake/%s", getenv("UM_BUILDDIR"), name);
    void *handle = dlopen(path, RTLD_NOW);
    cr_assert(handle != NULL, "%s", dlerror());
    return handle;
}

static void driver_call(CUpti_CallbackId id, const void *params)
{
    uint64_t data = 0;
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData info = {
        .callbackSite = CUPTI_API_ENTER,
        .functionParams = params,
        .functionReturnValue = &result,
        .symbolName = "k",
        .context = (CUcontext)0x101,
        .contextUid = 1,
        .correlationData = &data,
        .correlationId = ++correlation,
    };

    call(CUPTI_CB_DOMAIN_DRIVER_API, id, &info);
    info.callbackSite = CUPTI_API_EXIT;
    call(CUPTI_CB_DOMAIN_DRIVER_API, id, &info);
}

static void alloc(uint64_t addr)
{
    CUdeviceptr where = addr;
    cuMemAllocManaged_params params = {&where, 1 << 20, CU_MEM_ATTACH_GLOBAL};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, &params);
}

static void *launch_much(void *ctx)
{
    uint64_t a = FIXED, b = CHURNED;
    int n = 1;
    void *args[] = {&a, &b, &n};
    uint64_t handle = 0x1000 + (uint64_t)(uintptr_t)ctx * 0x10;
    cuLaunchKernel_params params = {.f = (CUfunction)handle, .gridDimX = 1, .kernelParams = args};

    for (unsigned i = 0; i < ROUNDS; i++) {
        driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params);
        if (i % 16 == 0)
            driver_call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, NULL);
    }
    return NULL;
}

static void *churn(void *ctx)
{
    uint64_t addr = CHURNED + (uint64_t)(uintptr_t)ctx * 0x10000000;

    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        cuMemFree_v2_params params = {addr};
        alloc(addr);
        driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &params);
    }
    return NULL;
}

static void *graphs(void *ctx)
{
    CUgraphExec exec = (CUgraphExec)0xe0;
    cuGraphInstantiateWithFlags_params instantiate = {&exec, (CUgraph)0xd0, 0};
    cuGraphExecDestroy_params destroy = {exec};
    cuGraphLaunch_params go = {exec, NULL};

    for (unsigned i = 0; i < ROUNDS; i++) {
        if (ctx) {
            driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, &instantiate);
            driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy, &destroy);
        } else {
            driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &go);
        }
    }
    return NULL;
}

/* Migrations in pieces of 100 records, as fast as they are drained. */
static void feed(unsigned n)
{
    struct {
        uint32_t kind, counter;
        uint64_t value, start, end, address;
        uint32_t src, dst, stream, process, flags, pad;
        uint64_t processors[5];
    } moved = {.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
               .counter = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
               .value = 4096,
               .address = FIXED};
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    moved.start = moved.end = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    for (unsigned i = 0; i < n; i++)
        record(&moved, sizeof(moved));
}

static void start(void)
{
    um_sink_t sink = {.event = count};
    char reason[256] = "";
    CUcontext context = (CUcontext)0x101;
    cuDevicePrimaryCtxRetain_params retain = {&context, 0};

    fake_cuda = library("libcuda.so.1");
    fake_cupti = library("libcupti.so.13");
    *(void **)&call = dlsym(fake_cupti, "fake_cupti_call");
    *(void **)&record = dlsym(fake_cupti, "fake_cupti_record");
    *(int *)dlsym(fake_cuda, "fake_cuda_initialised") = 0;
    runtime.settings = (um_settings_t){.mode = UM_MODE_RECORD,
                                       .flush_us = 200,
                                       .page_tables = 1,
                                       .call_sites = 1,
                                       .kernel_times = 1,
                                       .unified_memory = 1};
    cr_assert_eq(um_regions_new(&runtime.regions), UM_OK);
    cr_assert_eq(um_kernels_new(&runtime.kernels), UM_OK);
    cr_assert_eq(um_bus_new(4 << 20, 60000, &runtime.bus), UM_OK);
    um_bus_add_sink(runtime.bus, &sink);
    cr_assert_eq(um_bus_start(runtime.bus), UM_OK);
    cr_assert_eq(um_backend()->attach(&runtime, reason, sizeof(reason)), UM_OK);
    *(int *)dlsym(fake_cuda, "fake_cuda_initialised") = 1;
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain, &retain);
}

static pthread_barrier_t together;

/* Allocates, and launches as soon as it has the address. */
static void *first(void *ctx)
{
    uint64_t addr = FIXED + (uint64_t)(uintptr_t)ctx * 0x10000000;
    int n = 1;
    void *args[] = {&addr, &addr, &n};
    cuLaunchKernel_params params = {.f = (CUfunction)0x1000, .gridDimX = 1, .kernelParams = args};

    pthread_barrier_wait(&together);
    alloc(addr);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params);
    return NULL;
}

/* One process has one live source, and one beginning of managed memory. */
static void begin_together(void)
{
    pthread_t thread[FIRSTS];

    pthread_barrier_init(&together, NULL, FIRSTS);
    for (intptr_t i = 0; i < FIRSTS; i++)
        pthread_create(&thread[i], NULL, first, (void *)i);
    for (int i = 0; i < FIRSTS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&together);
    um_bus_sync(runtime.bus);
    cr_assert_eq(seen[UM_EV_LAUNCH], FIRSTS, "no allocation returns before its launch is seen");
    cr_assert_eq(runtime.launches_managed, FIRSTS);
    cr_assert_eq(*(int *)dlsym(fake_cupti, "fake_cupti_kernels_enabled"), 1);
    cr_assert_eq(*(int *)dlsym(fake_cupti, "fake_cupti_callbacks_clash"), 0,
                 "CUPTI wants them one at a time");
}

Test(live_threads, everything_at_once_and_nothing_is_lost, .timeout = 300)
{
    pthread_t thread[LAUNCHERS + CHURNERS + 2];
    uint64_t a = FIXED;
    int n = 1, n_threads = 0;
    void *params[] = {&a, &a, &n, &a, &a, &n};

    start();
    *(void ***)dlsym(fake_cuda, "fake_cuda_node_params") = params;
    begin_together();
    for (intptr_t i = 0; i < LAUNCHERS; i++)
        pthread_create(&thread[n_threads++], NULL, launch_much, (void *)i);
    for (intptr_t i = 0; i < CHURNERS; i++)
        pthread_create(&thread[n_threads++], NULL, churn, (void *)i);
    pthread_create(&thread[n_threads++], NULL, graphs, NULL);
    pthread_create(&thread[n_threads++], NULL, graphs, (void *)1);
    for (int i = 0; i < 50; i++)
        feed(100);
    for (int i = 0; i < n_threads; i++)
        pthread_join(thread[i], NULL);
    um_backend()->detach();
    um_bus_sync(runtime.bus);
    cr_assert_eq(seen[UM_EV_LAUNCH], FIRSTS + (LAUNCHERS + 1) * ROUNDS);
    cr_assert_eq(seen[UM_EV_REGION_ALLOC], FIRSTS + CHURNERS * (ROUNDS / 4));
    cr_assert_eq(seen[UM_EV_REGION_FREE], CHURNERS * (ROUNDS / 4));
    cr_assert_eq(seen[UM_EV_MIGRATE], 5000);
    cr_assert_eq(seen[UM_EV_LOSS], 0);
    cr_assert_eq(um_bus_lost(runtime.bus), 0);
    um_bus_stop(runtime.bus);
}

/*
 * bench_callbacks - what umrt's callback adds to a launch, on the CPU, without CUPTI's own share (0.2 us
 * on an H200's host): the driver and the CUPTI of tests/fake call it. Needs no GPU. Before there is managed
 * memory CUPTI is not asked to call: what the first line shows is the fake's own time.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/live.h"

#define LAUNCHES 2000000u

static void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
static um_runtime_t runtime;

static void swallow(void *ctx, const um_event_t *event)
{
    (void)ctx;
    (void)event;
}

static void *open_fake(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);

    if (!library) {
        fprintf(stderr, "bench_callbacks: %s\n", dlerror());
        exit(1);
    }
    return library;
}

static void both(CUpti_CallbackId id, const void *params)
{
    static uint32_t correlation;
    uint64_t data = 0;
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData info = {
        .callbackSite = CUPTI_API_ENTER,
        .functionParams = params,
        .functionReturnValue = &result,
        .symbolName = "_Z3addPfPKfi",
        .context = (CUcontext)0x101,
        .contextUid = 1,
        .correlationData = &data,
        .correlationId = ++correlation,
    };

    call(CUPTI_CB_DOMAIN_DRIVER_API, id, &info);
    info.callbackSite = CUPTI_API_EXIT;
    call(CUPTI_CB_DOMAIN_DRIVER_API, id, &info);
}

static void alloc(CUpti_CallbackId id, uint64_t addr, size_t bytes)
{
    CUdeviceptr where = addr;
    cuMemAllocManaged_params params = {&where, bytes, CU_MEM_ATTACH_GLOBAL};

    both(id, &params);
}

static void measure(const char *what, uint64_t a, uint64_t b)
{
    int n = 1;
    void *args[] = {&a, &b, &n};
    cuLaunchKernel_params params = {.f = (CUfunction)0x1000,
                                    .gridDimX = 1,
                                    .blockDimX = 32,
                                    .kernelParams = args};
    struct timespec begin, end;
    double best = 1e9;

    for (int round = 0; round < 5; round++) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        for (uint32_t i = 0; i < LAUNCHES / 5; i++)
            both(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        double ns =
            ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
            (LAUNCHES / 5);
        best = ns < best ? ns : best;
    }
    printf("%-64s %6.1f ns a launch\n", what, best);
}

/* argv[1]: hint or record. One mode a process, as there is one live source. */
int main(int argc, char **argv)
{
    bool record = argc > 1 && strcmp(argv[1], "record") == 0;
    um_sink_t sink = {.event = swallow};
    char reason[256] = "";

    if (argc == 1) {
        char command[4096];
        snprintf(command, sizeof(command), "'%s' hint && '%s' record", argv[0], argv[0]);
        return system(command) == 0 ? 0 : 1;
    }
    void *cuda = open_fake("tests/fake/libcuda.so.1");
    *(void **)&call = dlsym(open_fake("tests/fake/libcupti.so.13"), "fake_cupti_call");
    *(int *)dlsym(cuda, "fake_cuda_initialised") = 0;
    runtime.settings = (um_settings_t){.mode = record ? UM_MODE_RECORD : UM_MODE_HINT,
                                       .flush_us = 1000,
                                       .unified_memory = 1,
                                       .kernel_times = 1};
    if (um_regions_new(&runtime.regions) != UM_OK || um_kernels_new(&runtime.kernels) != UM_OK ||
        um_bus_new(8 << 20, 100, &runtime.bus) != UM_OK ||
        um_bus_add_sink(runtime.bus, &sink) != UM_OK || um_bus_start(runtime.bus) != UM_OK ||
        um_backend()->attach(&runtime, reason, sizeof(reason)) != UM_OK) {
        fprintf(stderr, "bench_callbacks: cannot start: %s\n", reason);
        return 1;
    }
    *(int *)dlsym(cuda, "fake_cuda_initialised") = 1;
    const char *mode = record ? "record" : "hint";
    char what[128];
    for (uint64_t i = 0; i < 10000; i++)
        alloc(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, 0x500000000000 + i * 0x100000, 0x80000);
    snprintf(what, sizeof(what), "%s, 10,000 device buffers, no managed memory", mode);
    measure(what, 0x500000000000, 0x500000100000);
    alloc(CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, 0x700000000000, 1 << 20);
    snprintf(what, sizeof(what), "%s, a managed region lives, arguments on the device", mode);
    measure(what, 0x500000000000, 0x500000100000);
    snprintf(what, sizeof(what), "%s, a managed argument", mode);
    measure(what, 0x700000000000, 0x500000100000);
    um_backend()->detach();
    printf("%s: %llu events lost\n", mode, (unsigned long long)um_bus_lost(runtime.bus));
    return 0;
}

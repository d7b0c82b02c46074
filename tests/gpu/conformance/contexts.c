/*
 * contexts.c - starting, contexts, primary contexts and their reset.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include <pthread.h>

static void run_start(void)
{
    static const struct {
        const char *name;
        CUdevice_attribute attribute;
    } attributes[] = {
        {"managed memory", CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
        {"concurrent managed access", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
        {"pageable memory access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
        {"direct managed access from the host",
         CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
        {"integrated", CU_DEVICE_ATTRIBUTE_INTEGRATED},
        {"unified addressing", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
        {"memory pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    };
    int n = 0;
    CUdevice device;
    CUcontext context = NULL;
    CUdeviceptr p;
    CUstream stream;
    CUmodule module;
    size_t bytes, total;
    const char *text = NULL;

    PROBE("cuDriverGetVersion before cuInit", cuDriverGetVersion(&n));
    PROBE("cuDriverGetVersion to NULL", cuDriverGetVersion(NULL));
    PROBE("cuDeviceGetCount before cuInit", cuDeviceGetCount(&n));
    PROBE("cuCtxGetCurrent before cuInit", cuCtxGetCurrent(&context));
    PROBE("cuMemAlloc before cuInit", cuMemAlloc(&p, 1));
    PROBE("cuPointerGetAttribute before cuInit",
          cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(&n)));
    PROBE("cuInit with flags", cuInit(1));
    PROBE("cuInit", cuInit(0));
    PROBE("cuInit again", cuInit(0));
    PROBE("cuDeviceGetCount to NULL", cuDeviceGetCount(NULL));
    PROBE("cuDeviceGet -1", cuDeviceGet(&device, -1));
    PROBE("cuDeviceGet 99", cuDeviceGet(&device, 99));
    PROBE("cuDeviceGetAttribute, no such", cuDeviceGetAttribute(&n, (CUdevice_attribute)9999, 0));
    PROBE("cuDeviceGetAttribute, no such device",
          cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_INTEGRATED, 99));
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
        n = -1;
        CUresult result = cuDeviceGetAttribute(&n, attributes[i].attribute, 0);
        say(attributes[i].name, "%d, %d", (int)result, n);
    }
    PROBE("cuDeviceCanAccessPeer of itself", cuDeviceCanAccessPeer(&n, 0, 0));
    say("it reaches itself", "%d", n);
    PROBE("cuGetErrorName of no error", cuGetErrorName((CUresult)12345, &text));
    say("its name", "%s", text ? text : "NULL");
    cuGetErrorName(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, &text);
    say("name of 906", "%s", text);
    cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text);
    say("string of 700", "%s", text);

    PROBE("cuCtxGetCurrent without a context", cuCtxGetCurrent(&context));
    say("it gives a context", "%d", context != NULL);
    PROBE("cuCtxGetCurrent to NULL", cuCtxGetCurrent(NULL));
    PROBE("cuCtxGetDevice without a context", cuCtxGetDevice(&device));
    PROBE("cuCtxSynchronize without a context", cuCtxSynchronize());
    PROBE("cuCtxPopCurrent without a context", cuCtxPopCurrent(&context));
    PROBE("cuMemAlloc without a context", cuMemAlloc(&p, 1));
    PROBE("cuMemAllocManaged without a context", cuMemAllocManaged(&p, 1, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuMemFree of 0 without a context", cuMemFree(0));
    PROBE("cuMemGetInfo without a context", cuMemGetInfo(&bytes, &total));
    PROBE("cuStreamCreate without a context", cuStreamCreate(&stream, 0));
    PROBE("cuStreamSynchronize of 0 without a context", cuStreamSynchronize(NULL));
    PROBE("cuModuleLoadData without a context", cuModuleLoadData(&module, "x"));
    PROBE("cuPointerGetAttribute without a context",
          cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(&n)));
}

static void primary_state(const char *what)
{
    unsigned flags = 99;
    int active = -1;
    CUresult result = cuDevicePrimaryCtxGetState(0, &flags, &active);

    say(what, "%d, flags %u, active %d", (int)result, flags, active);
}

static void *with_a_dead_context(void *context)
{
    pthread_barrier_t *both = ((void **)context)[1];
    CUcontext now = NULL;
    CUdeviceptr p;

    cuCtxSetCurrent(((CUcontext *)context)[0]);
    pthread_barrier_wait(both);
    pthread_barrier_wait(both);
    PROBE("cuCtxSynchronize, destroyed by another thread", cuCtxSynchronize());
    PROBE("cuMemAlloc, destroyed by another thread", cuMemAlloc(&p, 1));
    PROBE("cuCtxGetCurrent, destroyed by another thread", cuCtxGetCurrent(&now));
    say("it is still current there", "%d", now == ((CUcontext *)context)[0]);
    return NULL;
}

static void run_contexts(void)
{
    CUcontext primary = NULL, own = NULL, now = NULL, popped = NULL;
    CUdevice device = -1;
    CUdeviceptr p = 0;
    pthread_barrier_t both;
    pthread_t thread;

    MUST(cuInit(0));
    primary_state("primary state at first");
    PROBE("cuDevicePrimaryCtxSetFlags, no such", cuDevicePrimaryCtxSetFlags(0, 0xffff00));
    PROBE("cuDevicePrimaryCtxRetain, no such device", cuDevicePrimaryCtxRetain(&primary, 99));
    PROBE("cuDevicePrimaryCtxRelease of none", cuDevicePrimaryCtxRelease(0));
    PROBE("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&primary, 0));
    primary_state("primary state when retained");
    PROBE("cuDevicePrimaryCtxSetFlags when active",
          cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    primary_state("primary state after that");
    cuCtxGetCurrent(&now);
    say("retaining makes it current", "%d", now != NULL);
    PROBE("cuCtxSetCurrent", cuCtxSetCurrent(primary));
    PROBE("cuCtxGetDevice", cuCtxGetDevice(&device));
    say("the device", "%d", device);
    PROBE("cuCtxPushCurrent of NULL", cuCtxPushCurrent(NULL));
    PROBE("cuCtxDestroy of NULL", cuCtxDestroy(NULL));
    PROBE("cuCtxCreate, no such device", cuCtxCreate(&own, NULL, 0, 99));
    own = NULL;
    PROBE("cuCtxCreate, no such flags", cuCtxCreate(&own, NULL, 0xffff00, 0));
    if (own)
        MUST(cuCtxDestroy(own));
    PROBE("cuCtxCreate", cuCtxCreate(&own, NULL, 0, 0));
    cuCtxGetCurrent(&now);
    say("creating makes it current", "%d", now == own);
    PROBE("cuMemAlloc in it", cuMemAlloc(&p, MIB));
    PROBE("cuCtxDestroy", cuCtxDestroy(own));
    PROBE("cuCtxGetCurrent after cuCtxDestroy", cuCtxGetCurrent(&now));
    say("current after cuCtxDestroy", "%s",
        !now             ? "none"
        : now == primary ? "the one before"
                         : "?");
    PROBE("cuMemFree of what went with it", cuMemFree(p));

    pthread_barrier_init(&both, NULL, 2);
    MUST(cuCtxCreate(&own, NULL, 0, 0));
    pthread_create(&thread, NULL, with_a_dead_context, (void *[]){own, &both});
    pthread_barrier_wait(&both);
    MUST(cuCtxDestroy(own));
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);

    PROBE("cuCtxSetCurrent to NULL", cuCtxSetCurrent(NULL));
    cuCtxGetCurrent(&now);
    say("current after that", "%s", !now ? "none" : "some");
    PROBE("cuCtxPushCurrent", cuCtxPushCurrent(primary));
    PROBE("cuCtxPushCurrent again", cuCtxPushCurrent(primary));
    PROBE("cuCtxPopCurrent", cuCtxPopCurrent(&popped));
    PROBE("cuCtxPopCurrent again", cuCtxPopCurrent(&popped));
    PROBE("cuCtxPopCurrent of none", cuCtxPopCurrent(&popped));
    PROBE("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease(0));
    primary_state("primary state when released");
    PROBE("cuDevicePrimaryCtxRelease once too often", cuDevicePrimaryCtxRelease(0));
}

static void run_reset(void)
{
    CUcontext before = begin(), now = NULL, after = NULL;
    CUdeviceptr p = managed(2 * MIB), q;
    CUdevice device;
    unsigned type;

    PROBE("cuDevicePrimaryCtxReset, no such device", cuDevicePrimaryCtxReset(99));
    PROBE("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset(0));
    primary_state("primary state");
    PROBE("cuCtxGetCurrent", cuCtxGetCurrent(&now));
    say("current", "%s", !now ? "none" : now == before ? "the one before" : "?");
    PROBE("cuCtxGetDevice", cuCtxGetDevice(&device));
    PROBE("cuCtxSynchronize", cuCtxSynchronize());
    PROBE("cuMemAlloc", cuMemAlloc(&q, MIB));
    PROBE("cuMemAllocManaged", cuMemAllocManaged(&q, MIB, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuMemFree of what went with it", cuMemFree(p));
    PROBE("cuPointerGetAttribute of what went with it",
          cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    PROBE("cuDevicePrimaryCtxReset again", cuDevicePrimaryCtxReset(0));
    PROBE("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&after, 0));
    say("the handle is as before", "%d", after == before);
    PROBE("cuMemAlloc when retained again", cuMemAlloc(&q, MIB));
    PROBE("cuCtxSetCurrent", cuCtxSetCurrent(after));
    PROBE("cuMemAlloc when current again", cuMemAlloc(&q, MIB));
}

const section_t um_probes_contexts[] = {
    {"start", run_start},
    {"contexts", run_contexts},
    {"reset", run_reset},
    {NULL, NULL},
};
#endif

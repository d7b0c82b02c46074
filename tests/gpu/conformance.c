/*
 * conformance.c - one fixed sequence of probes of the driver API and of CUPTI, a line each: what a real
 * driver answers, and whether a software one answers the same.
 *
 *   cc -o conformance conformance.c conformance_cupti.c -lcuda -ldl -pthread     (headers of CUDA 13.0 or later)
 *   KERNELS=examples/driver_api/kernels.ptx ./conformance [SECTION]...
 *
 * Each section runs in a process of its own, so that none can spoil another, and for no more than a
 * minute. Nothing here passes what a driver may dereference without a check: no made-up handle, no handle
 * that is gone.
 */
#include "conformance.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *um_conformance_section = "";

#if CUDA_VERSION < 13000
int main(void)
{
    printf("conformance: the headers are of CUDA before 13.0\n");
    return 77;
}
#else

static const CUmemLocation on_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                           on_host = {.type = CU_MEM_LOCATION_TYPE_HOST},
                           on_no_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99},
                           nowhere = {.type = CU_MEM_LOCATION_TYPE_INVALID};

/* ---- starting, contexts ------------------------------------------------------------------------ */

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
    CUcontext primary, own, now = NULL, popped = NULL;
    CUdevice device = -1;
    CUdeviceptr p;
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

/* ---- memory --------------------------------------------------------------------------------------- */

static void run_device_memory(void)
{
    CUdeviceptr p, base = 0;
    size_t bytes = 0, pitch = 0;
    void *host = malloc(MIB);

    begin();
    PROBE("cuMemAlloc of 0 bytes", cuMemAlloc(&p, 0));
    PROBE("cuMemAlloc to NULL", cuMemAlloc(NULL, MIB));
    PROBE("cuMemAlloc of 1 PiB", cuMemAlloc(&p, (size_t)1 << 50));
    PROBE("cuMemAlloc of 1,000,000 bytes", cuMemAlloc(&p, 1000000));
    PROBE("cuMemGetAddressRange", cuMemGetAddressRange(&base, &bytes, p + 5000));
    say("it gives", "start %d, bytes %zu", base == p, bytes);
    PROBE("cuMemGetAddressRange of its end", cuMemGetAddressRange(&base, &bytes, p + 1000000));
    PROBE("cuMemGetAddressRange of 0", cuMemGetAddressRange(&base, &bytes, 0));
    PROBE("cuMemGetAddressRange of malloc", cuMemGetAddressRange(&base, &bytes, address(host)));
    PROBE("cuMemFree of its middle", cuMemFree(p + 512));
    PROBE("cuMemFreeHost of it", cuMemFreeHost(pointer(p)));
    PROBE("cuMemFree", cuMemFree(p));
    PROBE("cuMemFree again", cuMemFree(p));
    PROBE("cuMemFree of 0", cuMemFree(0));
    PROBE("cuMemFree of malloc", cuMemFree(address(host)));
    PROBE("cuMemAllocPitch of width 0", cuMemAllocPitch(&p, &pitch, 0, 1, 4));
    PROBE("cuMemAllocPitch of height 0", cuMemAllocPitch(&p, &pitch, 1, 0, 4));
    PROBE("cuMemAllocPitch of elements of 3", cuMemAllocPitch(&p, &pitch, 1000, 10, 3));
    PROBE("cuMemAllocPitch", cuMemAllocPitch(&p, &pitch, 1000, 10, 4));
    say("the pitch", "%zu", pitch);
    PROBE("cuMemFree of a pitched one", cuMemFree(p));
    free(host);
}

static void run_host_memory(void)
{
    void *pinned = NULL, *host = aligned_alloc(4096, MIB);
    CUdeviceptr p = 0;
    unsigned flags = 99;

    begin();
    PROBE("cuMemAllocHost of 0 bytes", cuMemAllocHost(&pinned, 0));
    PROBE("cuMemHostAlloc, no such flags", cuMemHostAlloc(&pinned, MIB, 0x80));
    PROBE("cuMemAllocHost", cuMemAllocHost(&pinned, MIB));
    PROBE("cuMemHostGetDevicePointer", cuMemHostGetDevicePointer(&p, pinned, 0));
    say("it is the same address", "%d", p == address(pinned));
    PROBE("cuMemHostGetDevicePointer with flags", cuMemHostGetDevicePointer(&p, pinned, 1));
    PROBE("cuMemHostGetDevicePointer of malloc", cuMemHostGetDevicePointer(&p, host, 0));
    PROBE("cuMemHostGetFlags", cuMemHostGetFlags(&flags, pinned));
    say("the flags", "%u", flags);
    PROBE("cuMemHostGetFlags of malloc", cuMemHostGetFlags(&flags, host));
    PROBE("cuMemHostRegister of a pinned one", cuMemHostRegister(pinned, MIB, 0));
    PROBE("cuMemFree of a pinned one", cuMemFree(address(pinned)));
    PROBE("cuMemFreeHost of its middle", cuMemFreeHost((char *)pinned + 4096));
    PROBE("cuMemFreeHost", cuMemFreeHost(pinned));
    PROBE("cuMemFreeHost again", cuMemFreeHost(pinned));
    PROBE("cuMemFreeHost of malloc", cuMemFreeHost(host));
    PROBE("cuMemFreeHost of NULL", cuMemFreeHost(NULL));
    PROBE("cuMemHostAlloc, mapped", cuMemHostAlloc(&pinned, MIB, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetFlags(&flags, pinned));
    say("the flags, mapped", "%u", flags);
    MUST(cuMemFreeHost(pinned));

    PROBE("cuMemHostRegister of NULL", cuMemHostRegister(NULL, MIB, 0));
    PROBE("cuMemHostRegister of 0 bytes", cuMemHostRegister(host, 0, 0));
    PROBE("cuMemHostRegister, no such flags", cuMemHostRegister(host, MIB, 0x800));
    cuMemHostUnregister(host);
    PROBE("cuMemHostRegister", cuMemHostRegister(host, MIB, 0));
    PROBE("cuMemHostRegister again", cuMemHostRegister(host, MIB, 0));
    PROBE("cuMemHostUnregister of its middle", cuMemHostUnregister((char *)host + 4096));
    PROBE("cuMemFreeHost of a registered one", cuMemFreeHost(host));
    PROBE("cuMemHostUnregister", cuMemHostUnregister(host));
    PROBE("cuMemHostUnregister again", cuMemHostUnregister(host));
    free(host);
}

static void run_managed(void)
{
    CUdeviceptr p = 0, q = 0;
    size_t bytes = 0;

    begin();
    PROBE("cuMemAllocManaged of 0 bytes", cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuMemAllocManaged to NULL", cuMemAllocManaged(NULL, MIB, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuMemAllocManaged with flags 0", cuMemAllocManaged(&p, MIB, 0));
    PROBE("cuMemAllocManaged with flags 3", cuMemAllocManaged(&p, MIB, 3));
    PROBE("cuMemAllocManaged for a single stream",
          cuMemAllocManaged(&p, MIB, CU_MEM_ATTACH_SINGLE));
    PROBE("cuMemAllocManaged for the host", cuMemAllocManaged(&p, MIB, CU_MEM_ATTACH_HOST));
    PROBE("cuMemFree", cuMemFree(p));
    PROBE("cuMemAllocManaged of 10,000 bytes", cuMemAllocManaged(&p, 10000, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuMemAllocManaged of 10,000 more", cuMemAllocManaged(&q, 10000, CU_MEM_ATTACH_GLOBAL));
    say("small ones share a block of 2 MiB", "%d", p / (2 * MIB) == q / (2 * MIB));
    PROBE("cuMemGetAddressRange", cuMemGetAddressRange(NULL, &bytes, p + 8192));
    say("its bytes", "%zu", bytes);
    PROBE("cuMemHostGetDevicePointer", cuMemHostGetDevicePointer(&q, pointer(p), 0));
    PROBE("cuMemFreeHost of it", cuMemFreeHost(pointer(p)));
    PROBE("cuMemFree of its middle", cuMemFree(p + 4096));
    PROBE("cuMemFree of the small one", cuMemFree(p));
    PROBE("cuMemFree again", cuMemFree(p));
    p = managed(4 * MIB);
    say("large ones begin at a block of 2 MiB", "%d", p % (2 * MIB) == 0);
    PROBE("cuStreamAttachMemAsync", cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuStreamAttachMemAsync of its middle",
          cuStreamAttachMemAsync(NULL, p + 4096, 0, CU_MEM_ATTACH_GLOBAL));
    PROBE("cuStreamAttachMemAsync with flags 8", cuStreamAttachMemAsync(NULL, p, 0, 8));
    PROBE("cuStreamAttachMemAsync to a single stream 0",
          cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE));
    PROBE("cuStreamAttachMemAsync of malloc",
          cuStreamAttachMemAsync(NULL, address(&p), 0, CU_MEM_ATTACH_GLOBAL));
    managed_free(p, 4 * MIB);
}

static void run_pools(void)
{
    CUmemoryPool pool = NULL, own = NULL;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_gpu};
    CUdeviceptr p = 0, plain;
    CUstream stream;
    cuuint64_t threshold = 99, used = 99;
    unsigned char is_managed = 99;

    begin();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&plain, MIB));
    PROBE("cuDeviceGetDefaultMemPool, no such device", cuDeviceGetDefaultMemPool(&pool, 99));
    PROBE("cuDeviceGetDefaultMemPool", cuDeviceGetDefaultMemPool(&pool, 0));
    PROBE("release threshold",
          cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    say("it is", "%llu", (unsigned long long)threshold);
    PROBE("cuMemAllocAsync of 0 bytes", cuMemAllocAsync(&p, 0, stream));
    PROBE("cuMemAllocAsync of 1 PiB", cuMemAllocAsync(&p, (size_t)1 << 50, stream));
    PROBE("cuMemAllocFromPoolAsync, pool NULL", cuMemAllocFromPoolAsync(&p, MIB, NULL, stream));
    PROBE("cuMemAllocAsync", cuMemAllocAsync(&p, MIB, stream));
    PROBE("cuMemFreeAsync of its middle", cuMemFreeAsync(p + 512, stream));
    PROBE("cuMemFreeAsync", cuMemFreeAsync(p, stream));
    MUST(cuStreamSynchronize(stream));
    PROBE("cuMemFreeAsync again", cuMemFreeAsync(p, stream));
    PROBE("cuMemFreeAsync of 0", cuMemFreeAsync(0, stream));
    PROBE("cuMemFreeAsync of malloc", cuMemFreeAsync(address(&p), stream));
    PROBE("cuMemFreeAsync of cuMemAlloc", cuMemFreeAsync(plain, stream));
    MUST(cuMemAllocAsync(&p, MIB, stream));
    PROBE("cuMemFree of a pool's", cuMemFree(p));
    PROBE("cuMemPoolTrimTo", cuMemPoolTrimTo(pool, 0));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    say("used at the end", "%llu", (unsigned long long)used);
    PROBE("cuMemPoolDestroy of the default one", cuMemPoolDestroy(pool));
    props.location.id = 99;
    PROBE("cuMemPoolCreate, no such device", cuMemPoolCreate(&own, &props));
    props.location.id = 0;
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    PROBE("cuMemPoolCreate, no type", cuMemPoolCreate(&own, &props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    PROBE("cuMemPoolCreate", cuMemPoolCreate(&own, &props));
    PROBE("cuMemPoolDestroy", cuMemPoolDestroy(own));
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    CUresult result = cuMemPoolCreate(&own, &props);
    say("cuMemPoolCreate of managed memory", "%d", (int)result);
    if (result == CUDA_SUCCESS) {
        MUST(cuMemAllocFromPoolAsync(&p, 2 * MIB, own, stream));
        MUST(cuStreamSynchronize(stream));
        cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
        say("its memory is managed", "%u", is_managed);
        PROBE("cuMemPrefetchAsync of its memory",
              cuMemPrefetchAsync(p, 2 * MIB, on_gpu, 0, stream));
        PROBE("cuMemAdvise of its memory",
              cuMemAdvise(p, 2 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
        PROBE("cuMemFreeAsync of its memory", cuMemFreeAsync(p, stream));
        MUST(cuStreamSynchronize(stream));
        MUST(cuMemPoolDestroy(own));
    }
    MUST(cuStreamDestroy(stream));
}

static void run_mappings(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_gpu};
    CUmemAccessDesc access = {.location = on_gpu, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p = 0;
    size_t unit = 0;

    begin();
    PROBE("cuMemGetAllocationGranularity",
          cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    say("it is", "%zu", unit);
    PROBE("cuMemAddressReserve of 0 bytes", cuMemAddressReserve(&p, 0, 0, 0, 0));
    PROBE("cuMemAddressReserve of 1 byte", cuMemAddressReserve(&p, 1, 0, 0, 0));
    PROBE("cuMemAddressReserve", cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    PROBE("cuMemCreate of 1 byte", cuMemCreate(&handle, 1, &prop, 0));
    PROBE("cuMemCreate of 0 bytes", cuMemCreate(&handle, 0, &prop, 0));
    prop.location.id = 99;
    PROBE("cuMemCreate, no such device", cuMemCreate(&handle, 2 * MIB, &prop, 0));
    prop.location.id = 0;
    PROBE("cuMemCreate", cuMemCreate(&handle, 2 * MIB, &prop, 0));
    PROBE("cuMemMap past its end", cuMemMap(p, 4 * MIB, 0, handle, 0));
    PROBE("cuMemMap", cuMemMap(p, 2 * MIB, 0, handle, 0));
    PROBE("cuMemMap where something is", cuMemMap(p, 2 * MIB, 0, handle, 0));
    PROBE("cuMemSetAccess of what is not mapped", cuMemSetAccess(p + 2 * MIB, 2 * MIB, &access, 1));
    PROBE("cuMemSetAccess", cuMemSetAccess(p, 2 * MIB, &access, 1));
    PROBE("cuMemsetD8 of it", cuMemsetD8(p, 1, 2 * MIB));
    PROBE("cuMemFree of it", cuMemFree(p));
    PROBE("cuMemPrefetchAsync of it", cuMemPrefetchAsync(p, 2 * MIB, on_gpu, 0, NULL));
    PROBE("cuMemRelease while mapped", cuMemRelease(handle));
    PROBE("cuMemUnmap", cuMemUnmap(p, 2 * MIB));
    PROBE("cuMemUnmap again", cuMemUnmap(p, 2 * MIB));
    PROBE("cuMemAddressFree of a part", cuMemAddressFree(p, 2 * MIB));
    PROBE("cuMemAddressFree", cuMemAddressFree(p, 4 * MIB));
}

/* ---- hints ------------------------------------------------------------------------------------------ */

static void run_prefetch(void)
{
    CUmemLocation node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA},
                  here = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT},
                  no_node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 9999},
                  no_type = {.type = (CUmemLocationType)77};
    CUdeviceptr p, device;
    CUstream stream;
    void *host = malloc(MIB), *pinned;
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
    void *host = malloc(MIB);
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

/* ---- what is known of an address ------------------------------------------------------------------- */

static void pointer_lines(const char *family, CUdeviceptr p)
{
    static const struct {
        const char *name;
        CUpointer_attribute attribute;
    } table[] = {
        {"context", CU_POINTER_ATTRIBUTE_CONTEXT},
        {"type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
        {"device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER},
        {"host pointer", CU_POINTER_ATTRIBUTE_HOST_POINTER},
        {"managed", CU_POINTER_ATTRIBUTE_IS_MANAGED},
        {"ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
        {"start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR},
        {"bytes", CU_POINTER_ATTRIBUTE_RANGE_SIZE},
        {"mapped", CU_POINTER_ATTRIBUTE_MAPPED},
        {"pool", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE},
    };
    size_t n = sizeof(table) / sizeof(*table), used;
    char line[512], what[64];

    for (size_t i = used = 0; i < n; i++) {
        uint64_t value = 0;
        CUresult result = cuPointerGetAttribute(&value, table[i].attribute, p);
        bool address = i == 0 || i == 2 || i == 3 || i == 6 || i == 9;
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s ", i ? ", " : "",
                                 table[i].name);
        if (result != CUDA_SUCCESS)
            used += (size_t)snprintf(line + used, sizeof(line) - used, "error %d", (int)result);
        else if (address)
            used += (size_t)snprintf(line + used, sizeof(line) - used, "%s",
                                     value == p ? "itself"
                                     : value    ? "some"
                                                : "none");
        else
            used += (size_t)snprintf(line + used, sizeof(line) - used, "%d", (int)value);
    }
    say(family, "%s", line);

    CUpointer_attribute two[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned type = 77;
    unsigned char is_managed = 77;
    int ordinal = 77;
    size_t bytes = 77;
    void *data[] = {&type, &is_managed, &ordinal, &bytes};
    CUresult result = cuPointerGetAttributes(4, two, data, p);
    snprintf(what, sizeof(what), "%s, together", family);
    say(what, "%d, type %u, managed %u, ordinal %d, bytes %zu", (int)result, type, is_managed,
        ordinal, bytes);
}

static void run_pointers(void)
{
    CUdeviceptr device, freed, pool;
    void *host = malloc(MIB), *pinned, *registered = aligned_alloc(4096, MIB);
    CUstream stream;
    uint64_t value;

    begin();
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuMemAlloc(&device, MIB));
    MUST(cuMemAlloc(&freed, 32 * MIB));
    MUST(cuMemFree(freed));
    MUST(cuMemAllocHost(&pinned, MIB));
    MUST(cuMemHostRegister(registered, MIB, 0));
    MUST(cuMemAllocAsync(&pool, MIB, stream));
    MUST(cuStreamSynchronize(stream));
    pointer_lines("cuMemAlloc", device);
    pointer_lines("cuMemAllocManaged", managed(4 * MIB));
    pointer_lines("cuMemAllocHost", address(pinned));
    pointer_lines("cuMemHostRegister", address(registered));
    pointer_lines("cuMemAllocAsync", pool);
    pointer_lines("malloc", address(host));
    pointer_lines("freed", freed);
    pointer_lines("0", 0);
    PROBE("no such attribute", cuPointerGetAttribute(&value, (CUpointer_attribute)77, device));
    PROBE("to NULL", cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    PROBE("none together", cuPointerGetAttributes(0, NULL, NULL, device));
}

/* ---- symbols ------------------------------------------------------------------------------------------ */

static void run_symbols(void)
{
    static const struct {
        const char *name;
        int version;
        uint64_t flags;
    } table[] = {
        {"cuMemAlloc", 2000, 0},
        {"cuMemAlloc", 13000, 0},
        {"cuMemAlloc_v2", 13000, 0},
        {"cuMemPrefetchAsync", 7000, 0},
        {"cuMemPrefetchAsync", 12000, 0},
        {"cuMemPrefetchAsync", 12020, 0},
        {"cuMemPrefetchAsync", 13000, 0},
        {"cuMemPrefetchAsync_v2", 12020, 0},
        {"cuMemAdvise", 12000, 0},
        {"cuMemAdvise", 13000, 0},
        {"cuMemPrefetchBatchAsync", 12080, 0},
        {"cuMemPrefetchBatchAsync", 13000, 0},
        {"cuFuncGetParamInfo", 12030, 0},
        {"cuFuncGetParamInfo", 12040, 0},
        {"cuCtxCreate", 11040, 0},
        {"cuCtxCreate", 13000, 0},
        {"cuStreamGetCaptureInfo", 11030, 0},
        {"cuGetProcAddress", 11030, 0},
        {"cuGetProcAddress", 12000, 0},
        {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM},
        {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuLaunchKernel_ptsz", 13000, 0},
        {"cuMemAllocManaged", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuMemAlloc", 99000, 0},
        {"cuMemAlloc", 0, 0},
        {"cuMemAlloc", -1, 0},
        {"cuNoSuchCall", 13000, 0},
        {"", 13000, 0},
    };
    static const char *const exported[] = {"cuMemPrefetchAsync",
                                           "cuMemPrefetchAsync_v2",
                                           "cuMemPrefetchAsync_v2_ptsz",
                                           "cuMemPrefetchAsync_v3",
                                           "cuMemAdvise",
                                           "cuMemAdvise_v2",
                                           "cuMemAdvise_v3",
                                           "cuMemPrefetchBatchAsync",
                                           "cuMemDiscardBatchAsync",
                                           "cuLaunchKernel_ptsz",
                                           "cuLaunchKernelEx",
                                           "cuFuncGetParamInfo",
                                           "cuKernelGetParamInfo",
                                           "cuCtxCreate_v4",
                                           "cuGetProcAddress",
                                           "cuGetProcAddress_v2",
                                           "cuStreamGetCaptureInfo_v2",
                                           "cuMemGetAddressRange",
                                           "cuMemGetAddressRange_v2",
                                           "cuDevicePrimaryCtxReset",
                                           "cuMemcpyBatchAsync_v2",
                                           "cuDevicePrimaryCtxReset_v2"};
    char what[96];
    void *fn = NULL, *other = NULL;
    CUdriverProcAddressQueryResult status;

    MUST(cuInit(0));
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        fn = (void *)1;
        status = (CUdriverProcAddressQueryResult)77;
        CUresult result =
            cuGetProcAddress(table[i].name, &fn, table[i].version, table[i].flags, &status);
        snprintf(what, sizeof(what), "\"%s\" of %d, flags %d", table[i].name, table[i].version,
                 (int)table[i].flags);
        say(what, "%d, status %d, %s", (int)result, (int)status,
            !fn               ? "none"
            : fn == (void *)1 ? "untouched"
                              : "some");
    }
    PROBE("name NULL", cuGetProcAddress(NULL, &fn, 13000, 0, &status));
    PROBE("to NULL", cuGetProcAddress("cuInit", NULL, 13000, 0, &status));
    PROBE("status to NULL", cuGetProcAddress("cuInit", &fn, 13000, 0, NULL));
    PROBE("flags 1 and 2", cuGetProcAddress("cuInit", &fn, 13000, 3, &status));
    PROBE("flags 64", cuGetProcAddress("cuInit", &fn, 13000, 64, &status));
    cuGetProcAddress("cuMemPrefetchAsync", &fn, 12020, 0, NULL);
    cuGetProcAddress("cuMemPrefetchAsync", &other, 13000, 0, NULL);
    say("prefetch of 12.2 is that of 13.0", "%d", fn == other);
    cuGetProcAddress("cuMemPrefetchAsync", &fn, 12000, 0, NULL);
    say("prefetch of 12.0 is that of 13.0", "%d", fn == other);
    say("prefetch of 13.0 is the exported _v2", "%d",
        other == dlsym(RTLD_DEFAULT, "cuMemPrefetchAsync_v2"));
    cuGetProcAddress("cuLaunchKernel", &fn, 13000, 0, NULL);
    cuGetProcAddress("cuLaunchKernel", &other, 13000, 2, NULL);
    say("a per-thread call is another one", "%d", fn != other);
    for (size_t i = 0; i < sizeof(exported) / sizeof(*exported); i++) {
        snprintf(what, sizeof(what), "%s is exported", exported[i]);
        say(what, "%d", dlsym(RTLD_DEFAULT, exported[i]) != NULL);
    }
}

/* ---- modules, launches ---------------------------------------------------------------------------------- */

static void run_modules(void)
{
    const char *text = kernels_text(), *name = NULL;
    CUmodule module, other;
    CUfunction f = NULL;
    CUlibrary library;
    CUkernel kernel = NULL;
    CUdeviceptr p;
    size_t bytes, offset;
    int value;

    begin();
    PROBE("cuModuleLoadData of words", cuModuleLoadData(&other, "these are words"));
    PROBE("cuModuleLoadData of nothing", cuModuleLoadData(&other, ""));
    PROBE("cuModuleLoad of no file", cuModuleLoad(&other, "/nonexistent/kernels.ptx"));
    PROBE("cuModuleLoadData", cuModuleLoadData(&module, text));
    PROBE("cuModuleGetFunction", cuModuleGetFunction(&f, module, AXPY));
    PROBE("cuModuleGetFunction, no such", cuModuleGetFunction(&f, module, "nothing"));
    PROBE("cuModuleGetFunction, no name", cuModuleGetFunction(&f, module, ""));
    PROBE("cuModuleGetFunction of module NULL", cuModuleGetFunction(&f, NULL, AXPY));
    PROBE("cuModuleGetGlobal, no such", cuModuleGetGlobal(&p, &bytes, module, "nothing"));
    MUST(cuModuleGetFunction(&f, module, AXPY));
    for (int i = 0; i < 5; i++) {
        char what[64];
        offset = bytes = 99;
        CUresult result = cuFuncGetParamInfo(f, (size_t)i, &offset, &bytes);
        snprintf(what, sizeof(what), "cuFuncGetParamInfo of %d", i);
        say(what, "%d, offset %zu, bytes %zu", (int)result, offset, bytes);
    }
    PROBE("cuFuncGetName", cuFuncGetName(&name, f));
    say("the name", "%s", name);
    PROBE("cuFuncGetAttribute",
          cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    say("threads a block", "%d", value);
    PROBE("cuFuncGetAttribute, no such", cuFuncGetAttribute(&value, (CUfunction_attribute)77, f));
    PROBE("cuFuncGetAttribute of NULL",
          cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, NULL));
    PROBE("cuFuncGetParamInfo of NULL", cuFuncGetParamInfo(NULL, 0, &offset, &bytes));
    PROBE("cuModuleUnload", cuModuleUnload(module));
    PROBE("cuModuleUnload of NULL", cuModuleUnload(NULL));
    PROBE("cuLibraryLoadData of words",
          cuLibraryLoadData(&library, "these are words", NULL, NULL, 0, NULL, NULL, 0));
    PROBE("cuLibraryLoadData", cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    PROBE("cuLibraryGetKernel, no such", cuLibraryGetKernel(&kernel, library, "nothing"));
    PROBE("cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, ADD_ONE));
    PROBE("cuLibraryGetManaged, no such", cuLibraryGetManaged(&p, &bytes, library, "nothing"));
    PROBE("cuKernelGetParamInfo", cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
    PROBE("cuKernelGetParamInfo past the last", cuKernelGetParamInfo(kernel, 2, &offset, &bytes));
    PROBE("cuFuncGetParamInfo of a kernel",
          cuFuncGetParamInfo((CUfunction)kernel, 1, &offset, &bytes));
    PROBE("cuKernelGetFunction", cuKernelGetFunction(&f, kernel));
    say("a function is not its kernel", "%d", (void *)f != (void *)kernel);
    PROBE("cuLibraryGetModule", cuLibraryGetModule(&module, library));
    MUST(cuMemAlloc(&p, MIB));
    PROBE("launch of a kernel", add_one((CUfunction)kernel, p, 1, NULL));
    MUST(cuCtxSynchronize());
    PROBE("cuLibraryUnload", cuLibraryUnload(library));
}

static void run_launches(void)
{
    CUdeviceptr p;
    uint64_t n = 1024;
    struct {
        CUdeviceptr p;
        uint64_t n, spare[8];
    } block;
    size_t bytes = 16, short_bytes = 8;
    void *params[] = {&p, &n};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    void *short_extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                           &short_bytes, CU_LAUNCH_PARAM_END};
    CUlaunchConfig config = {1, 1, 1, 256, 1, 1, 0, NULL, NULL, 0};
    float seen = 0;

    begin();
    CUfunction f = function(ADD_ONE);
    MUST(cuMemAlloc(&p, MIB));
    MUST(cuMemsetD8(p, 0, MIB));
    memset(&block, 0, sizeof(block));
    block.p = p;
    block.n = n;
    PROBE("plain", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("with extra", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
    PROBE("with extra too short",
          cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, short_extra));
    PROBE("with both", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params, extra));
    PROBE("extended", cuLaunchKernelEx(&config, f, params, NULL));
    PROBE("cooperative", cuLaunchCooperativeKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params));
    PROBE("cooperative, too many blocks",
          cuLaunchCooperativeKernel(f, 1 << 20, 1, 1, 256, 1, 1, 0, NULL, params));
    PROBE("grid 0", cuLaunchKernel(f, 0, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("grid too high", cuLaunchKernel(f, 1, 70000, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("block 0", cuLaunchKernel(f, 1, 1, 1, 256, 0, 1, 0, NULL, params, NULL));
    PROBE("block of 2048", cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL));
    PROBE("block too deep", cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL));
    PROBE("1 MiB shared", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, MIB, NULL, params, NULL));
    PROBE("function NULL", cuLaunchKernel(NULL, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("host function NULL", cuLaunchHostFunc(NULL, NULL, NULL));
    PROBE("all that in the end", cuCtxSynchronize());
    MUST(cuMemcpyDtoH(&seen, p, sizeof(seen)));
    say("kernels that ran", "%.0f", (double)seen);
    n = 1;
    p += (size_t)1 << 44;
    PROBE("of an address that is no memory",
          cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    PROBE("the context then", cuCtxSynchronize());
    PROBE("cuMemAlloc then", cuMemAlloc(&p, MIB));
    PROBE("cuStreamQuery then", cuStreamQuery(NULL));
    PROBE("cuCtxSynchronize then", cuCtxSynchronize());
}

/* ---- streams and events ------------------------------------------------------------------------------------ */

static void wait_for_flag(void *flag)
{
    while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void run_streams(void)
{
    CUstream blocking, other, priority;
    CUevent event, later, untimed;
    CUcontext context = NULL, own = begin();
    unsigned flags = 99;
    int least, greatest, got = 99, go = 0;
    float ms;
    CUdeviceptr p;

    PROBE("cuStreamCreate with flags 2", cuStreamCreate(&other, 2));
    PROBE("cuStreamCreate to NULL", cuStreamCreate(NULL, 0));
    PROBE("cuStreamCreate, blocking", cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    PROBE("cuStreamCreate, not blocking", cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    PROBE("cuStreamGetFlags", cuStreamGetFlags(other, &flags));
    say("the flags", "%u", flags);
    PROBE("cuStreamGetCtx", cuStreamGetCtx(other, &context));
    say("it is ours", "%d", context == own);
    PROBE("cuStreamGetCtx of 0", cuStreamGetCtx(NULL, &context));
    PROBE("cuCtxGetStreamPriorityRange", cuCtxGetStreamPriorityRange(&least, &greatest));
    say("the range", "%d to %d", least, greatest);
    PROBE("cuStreamCreateWithPriority", cuStreamCreateWithPriority(&priority, 0, -1000));
    MUST(cuStreamGetPriority(priority, &got));
    say("out of range it is", "%s", got == greatest ? "the greatest" : "another");
    PROBE("cuStreamDestroy of one with priority", cuStreamDestroy(priority));
    PROBE("cuStreamDestroy of 0", cuStreamDestroy(NULL));
    PROBE("cuStreamDestroy of the legacy one", cuStreamDestroy(CU_STREAM_LEGACY));
    PROBE("cuStreamSynchronize of the legacy one", cuStreamSynchronize(CU_STREAM_LEGACY));
    PROBE("cuStreamSynchronize of the thread's", cuStreamSynchronize(CU_STREAM_PER_THREAD));
    PROBE("cuStreamQuery when idle", cuStreamQuery(other));

    PROBE("cuEventCreate, no such flags", cuEventCreate(&event, 0x80));
    PROBE("cuEventCreate to NULL", cuEventCreate(NULL, 0));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&later, CU_EVENT_BLOCKING_SYNC));
    MUST(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    PROBE("cuEventQuery, never recorded", cuEventQuery(event));
    PROBE("cuEventSynchronize, never recorded", cuEventSynchronize(event));
    PROBE("cuStreamWaitEvent, never recorded", cuStreamWaitEvent(other, event, 0));
    PROBE("cuEventElapsedTime, never recorded", cuEventElapsedTime(&ms, event, later));
    PROBE("cuEventRecord of NULL", cuEventRecord(NULL, other));
    PROBE("cuEventQuery of NULL", cuEventQuery(NULL));
    PROBE("cuEventSynchronize of NULL", cuEventSynchronize(NULL));
    PROBE("cuStreamWaitEvent of NULL", cuStreamWaitEvent(other, NULL, 0));
    PROBE("cuStreamWaitEvent, no such flags", cuStreamWaitEvent(other, event, 0x80));
    PROBE("cuEventDestroy of NULL", cuEventDestroy(NULL));

    CUfunction f = function(ADD_ONE);
    MUST(cuMemAlloc(&p, MIB));
    MUST(add_one(f, p, 1, other)); /* loaded from here on */
    MUST(cuCtxSynchronize());
    MUST(cuEventRecord(event, blocking));
    MUST(cuLaunchHostFunc(blocking, wait_for_flag, &go));
    PROBE("cuEventRecord", cuEventRecord(later, blocking));
    PROBE("cuStreamQuery when busy", cuStreamQuery(blocking));
    PROBE("cuStreamQuery of another", cuStreamQuery(other));
    PROBE("cuEventQuery when pending", cuEventQuery(later));
    PROBE("cuEventElapsedTime when pending", cuEventElapsedTime(&ms, event, later));
    MUST(add_one(f, p, 1, NULL));
    PROBE("cuStreamQuery of 0 behind a blocking one", cuStreamQuery(NULL));
    MUST(add_one(f, p, 1, other));
    PROBE("cuStreamSynchronize of one not blocking", cuStreamSynchronize(other));
    PROBE("cuStreamWaitEvent when pending", cuStreamWaitEvent(other, later, 0));
    PROBE("cuStreamQuery of one that waits", cuStreamQuery(other));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    PROBE("cuEventSynchronize", cuEventSynchronize(later));
    PROBE("cuEventElapsedTime", cuEventElapsedTime(&ms, event, later));
    PROBE("cuStreamSynchronize", cuStreamSynchronize(blocking));
    MUST(cuEventRecord(untimed, blocking));
    MUST(cuEventSynchronize(untimed));
    PROBE("cuEventElapsedTime, one without timing", cuEventElapsedTime(&ms, event, untimed));
    PROBE("cuEventDestroy", cuEventDestroy(event));
    PROBE("cuStreamDestroy", cuStreamDestroy(other));
    PROBE("cuCtxSynchronize", cuCtxSynchronize());
}

static void run_copies(void)
{
    CUdeviceptr p, q;
    CUdeviceptr to[1], from[1];
    size_t n = 4 * MIB, bytes[1] = {1}, first[1] = {0};
    char *host = calloc(1, n + MIB), *second = calloc(1, n);
    CUcontext context = begin();
    CUstream stream;
    CUmemcpyAttributes attribute = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUDA_MEMCPY2D two = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = host,
                         .srcPitch = 64,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstPitch = 64,
                         .WidthInBytes = 100,
                         .Height = 2};

    MUST(cuMemAlloc(&p, n));
    q = managed(n);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    to[0] = q;
    from[0] = p;
    two.dstDevice = p;
    PROBE("cuMemcpyHtoD", cuMemcpyHtoD(p, host, n));
    PROBE("cuMemcpyHtoD of 0 bytes", cuMemcpyHtoD(p, host, 0));
    PROBE("cuMemcpyHtoD to 0", cuMemcpyHtoD(0, host, 1));
    PROBE("cuMemcpyHtoD to malloc", cuMemcpyHtoD(address(second), host, 1));
    PROBE("cuMemcpyDtoH from managed", cuMemcpyDtoH(host, q, n));
    PROBE("cuMemcpyDtoH from malloc", cuMemcpyDtoH(host, address(second), 1));
    PROBE("cuMemcpyDtoD", cuMemcpyDtoD(q, p, n));
    PROBE("cuMemcpyDtoD from malloc", cuMemcpyDtoD(q, address(second), 1));
    PROBE("cuMemcpy", cuMemcpy(q, p, n));
    PROBE("cuMemcpy of malloc to malloc", cuMemcpy(address(second), address(host), 1));
    PROBE("cuMemcpyAsync", cuMemcpyAsync(q, p, n, stream));
    PROBE("cuMemcpyPeer of itself", cuMemcpyPeer(q, context, p, context, n));
    PROBE("cuMemcpy2D wider than its pitch", cuMemcpy2D(&two));
    two.WidthInBytes = 64;
    PROBE("cuMemcpy2D", cuMemcpy2D(&two));
    PROBE("cuMemcpyBatchAsync",
          cuMemcpyBatchAsync(to, from, bytes, 1, &attribute, first, 1, stream));
    PROBE("cuMemcpyBatchAsync on stream 0",
          cuMemcpyBatchAsync(to, from, bytes, 1, &attribute, first, 1, NULL));
    PROBE("cuMemcpyBatchAsync of none",
          cuMemcpyBatchAsync(to, from, bytes, 0, &attribute, first, 1, stream));
    PROBE("cuMemsetD8", cuMemsetD8(p, 1, n));
    PROBE("cuMemsetD8 of none", cuMemsetD8(p, 1, 0));
    PROBE("cuMemsetD8 of 0", cuMemsetD8(0, 1, 1));
    PROBE("cuMemsetD8 of malloc", cuMemsetD8(address(second), 1, 1));
    PROBE("cuMemsetD32 not aligned", cuMemsetD32(p + 2, 1, 1));
    PROBE("cuMemsetD2D8 wider than its pitch", cuMemsetD2D8(p, 64, 1, 100, 2));
    PROBE("cuMemsetD8 of managed", cuMemsetD8Async(q, 1, n, stream));
    MUST(cuCtxSynchronize());
    PROBE("cuMemcpyHtoD past the end", cuMemcpyHtoD(p, host, n + 1));
    PROBE("cuMemsetD8 past the end", cuMemsetD8(p, 1, n + 1));
    PROBE("all that in the end", cuCtxSynchronize());
}

/* ---- capture and graphs -------------------------------------------------------------------------------------- */

static struct {
    CUstream stream, other;
    CUstreamCaptureMode mode;
} capturing;

static void capture_begin(CUstreamCaptureMode mode)
{
    capturing.mode = mode;
    MUST(cuStreamBeginCapture(capturing.stream, mode));
}

/* What the call gave, what became of the capture, how its end went, nodes in the graph. */
static void capture_end(const char *what, CUresult result)
{
    static const char *const modes[] = {"global", "thread", "relaxed"};
    static const char *const states[] = {"none", "active", "invalid"};
    char full[96];
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    size_t nodes = 0;

    cuStreamIsCapturing(capturing.stream, &state);
    CUresult ended = cuStreamEndCapture(capturing.stream, &graph);
    if (graph)
        cuGraphGetNodes(graph, NULL, &nodes);
    snprintf(full, sizeof(full), "%s, %s", what, modes[capturing.mode]);
    say(full, "%d, then %s, ends %d, nodes %zu", (int)result, states[state], (int)ended, nodes);
    if (graph)
        MUST(cuGraphDestroy(graph));
}

#define CAPTURED(mode, what, call)                                                                 \
    do {                                                                                           \
        capture_begin(CU_STREAM_CAPTURE_MODE_##mode);                                              \
        capture_end(what, (call));                                                                 \
    } while (0)

static void *end_elsewhere(void *context)
{
    CUgraph graph = NULL;

    cuCtxSetCurrent(context);
    return (void *)(uintptr_t)cuStreamEndCapture(capturing.stream, &graph);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void run_capture(void)
{
    CUcontext context = begin();
    CUdeviceptr p, q, made, spare[3] = {0};
    CUevent outside, inside;
    CUmodule module;
    CUstream quiet;
    CUgraph graph = NULL;
    CUstreamCaptureStatus status;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    pthread_t thread;
    void *pinned, *result;
    char host[64] = "";
    size_t free_bytes, n = 2 * MIB;
    unsigned type;

    CUfunction f = function(ADD_ONE);
    p = managed(n);
    MUST(cuMemAlloc(&q, n));
    MUST(cuMemAllocHost(&pinned, n));
    for (int i = 0; i < 3; i++)
        MUST(cuMemAlloc(&spare[i], MIB));
    MUST(cuStreamCreate(&capturing.stream, CU_STREAM_DEFAULT));
    MUST(cuStreamCreate(&capturing.other, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&quiet, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(outside, capturing.other));
    MUST(add_one(f, q, 1, capturing.other));
    MUST(cuCtxSynchronize());
    CUstream s = capturing.stream;

    CAPTURED(GLOBAL, "nothing", CUDA_SUCCESS);
    CAPTURED(GLOBAL, "launch", add_one(f, q, 1, s));
    CAPTURED(GLOBAL, "cuMemcpyAsync from pinned", cuMemcpyHtoDAsync(q, pinned, n, s));
    CAPTURED(GLOBAL, "cuMemcpyAsync from the stack", cuMemcpyHtoDAsync(q, host, 64, s));
    CAPTURED(GLOBAL, "cuMemsetD8Async", cuMemsetD8Async(q, 0, n, s));
    CAPTURED(GLOBAL, "cuLaunchHostFunc", cuLaunchHostFunc(s, nothing, NULL));
    CAPTURED(GLOBAL, "cuMemAllocAsync", cuMemAllocAsync(&made, MIB, s));
    CAPTURED(GLOBAL, "cuMemAlloc", cuMemAlloc(&made, n));
    CAPTURED(THREAD_LOCAL, "cuMemAlloc", cuMemAlloc(&made, n));
    CAPTURED(RELAXED, "cuMemAlloc", cuMemAlloc(&made, n));
    CAPTURED(GLOBAL, "cuMemAllocManaged", cuMemAllocManaged(&made, MIB, CU_MEM_ATTACH_GLOBAL));
    CAPTURED(GLOBAL, "cuMemAllocHost", cuMemAllocHost(&pinned, n));
    CAPTURED(GLOBAL, "cuMemFree", cuMemFree(spare[0]));
    CAPTURED(RELAXED, "cuMemFree", cuMemFree(spare[2]));
    CAPTURED(GLOBAL, "cuMemFreeAsync of what is outside", cuMemFreeAsync(q, s));
    CAPTURED(GLOBAL, "cuModuleLoadData", cuModuleLoadData(&module, kernels_text()));
    CAPTURED(GLOBAL, "cuCtxSynchronize", cuCtxSynchronize());
    CAPTURED(RELAXED, "cuCtxSynchronize", cuCtxSynchronize());
    CAPTURED(GLOBAL, "cuStreamSynchronize", cuStreamSynchronize(s));
    CAPTURED(RELAXED, "cuStreamSynchronize", cuStreamSynchronize(s));
    CAPTURED(GLOBAL, "cuStreamQuery", cuStreamQuery(s));
    CAPTURED(GLOBAL, "cuStreamSynchronize of another", cuStreamSynchronize(capturing.other));
    CAPTURED(GLOBAL, "cuStreamQuery of another", cuStreamQuery(capturing.other));
    CAPTURED(GLOBAL, "cuEventQuery of one outside", cuEventQuery(outside));
    CAPTURED(GLOBAL, "cuEventSynchronize of one outside", cuEventSynchronize(outside));
    CAPTURED(GLOBAL, "cuStreamWaitEvent of one outside", cuStreamWaitEvent(s, outside, 0));
    CAPTURED(GLOBAL, "cuEventRecord", cuEventRecord(inside, s));
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    capture_end("cuEventQuery", cuEventQuery(inside));
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    capture_end("cuEventSynchronize", cuEventSynchronize(inside));
    CAPTURED(GLOBAL, "launch on stream 0", add_one(f, q, 1, NULL));
    CAPTURED(RELAXED, "launch on stream 0", add_one(f, q, 1, NULL));
    CAPTURED(GLOBAL, "launch on another stream", add_one(f, q, 1, capturing.other));
    CAPTURED(GLOBAL, "cuMemcpyHtoD", cuMemcpyHtoD(q, host, 64));
    CAPTURED(GLOBAL, "cuStreamQuery of 0", cuStreamQuery(NULL));
    CAPTURED(GLOBAL, "cuStreamIsCapturing of 0", cuStreamIsCapturing(NULL, &status));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync", cuMemPrefetchAsync(p, n, on_gpu, 0, s));
    CAPTURED(RELAXED, "cuMemPrefetchAsync", cuMemPrefetchAsync(p, n, on_gpu, 0, s));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync of no range", cuMemPrefetchAsync(0, n, on_gpu, 0, s));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync on another stream",
             cuMemPrefetchAsync(p, n, on_gpu, 0, capturing.other));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync on stream 0", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    CAPTURED(GLOBAL, "cuMemAdvise", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    CAPTURED(GLOBAL, "cuPointerGetAttribute",
             cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    CAPTURED(GLOBAL, "cuMemGetInfo", cuMemGetInfo(&free_bytes, &n));
    n = 2 * MIB;
    CAPTURED(GLOBAL, "cuStreamCreate", cuStreamCreate(&quiet, CU_STREAM_NON_BLOCKING));
    CAPTURED(GLOBAL, "cuStreamAttachMemAsync",
             cuStreamAttachMemAsync(s, p, 0, CU_MEM_ATTACH_GLOBAL));
    CAPTURED(GLOBAL, "cuStreamBeginCapture again",
             cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CAPTURED(GLOBAL, "an error of a call that is captured",
             cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s, (void *[]){&q, &n}, NULL));

    PROBE("cuStreamEndCapture without a beginning", cuStreamEndCapture(s, &graph));
    PROBE("cuStreamBeginCapture of 0", cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PROBE("cuStreamBeginCapture, no such mode", cuStreamBeginCapture(s, (CUstreamCaptureMode)7));
    cuStreamEndCapture(s, &graph);
    PROBE("cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode(&mode));
    say("the mode before", "%d", (int)mode);
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    capture_end("cuMemAlloc in a relaxed thread", cuMemAlloc(&made, n));
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));

    /* forks and joins */
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    PROBE("a fork", cuStreamWaitEvent(capturing.other, inside, 0));
    MUST(cuStreamIsCapturing(capturing.other, &status));
    say("the other stream is then", "%d", (int)status);
    PROBE("launch there", add_one(f, q, 1, capturing.other));
    PROBE("cuStreamEndCapture there", cuStreamEndCapture(capturing.other, &graph));
    capture_end("a fork that never joins", CUDA_SUCCESS);
    MUST(cuStreamIsCapturing(capturing.other, &status));
    say("the other stream is then, once ended", "%d", (int)status);
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    MUST(cuStreamWaitEvent(capturing.other, inside, 0));
    MUST(add_one(f, q, 1, capturing.other));
    MUST(cuEventRecord(inside, capturing.other));
    capture_end("a fork that joins", cuStreamWaitEvent(s, inside, 0));
    PROBE("cuEventQuery after the capture", cuEventQuery(inside));
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuStreamBeginCapture(capturing.other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuEventRecord(inside, s));
    PROBE("two captures meet", cuStreamWaitEvent(capturing.other, inside, 0));
    PROBE("the end of the second", cuStreamEndCapture(capturing.other, &graph));
    capture_end("two captures meet, the first", CUDA_SUCCESS);
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    pthread_create(&thread, NULL, end_elsewhere, context);
    pthread_join(thread, &result);
    capture_end("cuStreamEndCapture by another thread", (CUresult)(uintptr_t)result);
    PROBE("all that in the end", cuCtxSynchronize());
}

static void run_graphs(void)
{
    CUgraph graph, copy;
    CUgraphExec exec, empty;
    CUgraphNode nodes[4] = {NULL}, node;
    CUgraphNodeType type;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS params;
    CUstream stream;
    CUdeviceptr p;
    float seen = 0;
    size_t n = 4;

    begin();
    CUfunction f = function(ADD_ONE);
    MUST(cuMemAlloc(&p, MIB));
    MUST(cuMemsetD8(p, 0, MIB));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PROBE("cuGraphCreate with flags", cuGraphCreate(&graph, 1));
    PROBE("cuGraphCreate", cuGraphCreate(&graph, 0));
    PROBE("cuGraphInstantiate of an empty one", cuGraphInstantiate(&empty, graph, 0));
    PROBE("cuGraphLaunch of an empty one", cuGraphLaunch(empty, stream));
    PROBE("cuGraphLaunch of NULL", cuGraphLaunch(NULL, stream));
    PROBE("cuGraphInstantiate of NULL", cuGraphInstantiate(&exec, NULL, 0));
    PROBE("cuGraphInstantiate, no such flags", cuGraphInstantiate(&exec, graph, 0xff00));
    PROBE("cuGraphAddEmptyNode", cuGraphAddEmptyNode(&node, graph, NULL, 0));
    PROBE("cuGraphDestroy", cuGraphDestroy(graph));
    PROBE("cuGraphDestroy of NULL", cuGraphDestroy(NULL));
    PROBE("cuGraphExecDestroy of NULL", cuGraphExecDestroy(NULL));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemsetD8Async(p, 0, MIB, stream));
    MUST(add_one(f, p, 4, stream));
    MUST(cuLaunchHostFunc(stream, nothing, NULL));
    PROBE("cuGraphLaunch of another in a capture", cuGraphLaunch(empty, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    PROBE("cuGraphGetNodes", cuGraphGetNodes(graph, nodes, &n));
    say("nodes", "%zu", n);
    for (size_t i = 0; i < n && i < 4; i++) {
        char what[32];
        MUST(cuGraphNodeGetType(nodes[i], &type));
        snprintf(what, sizeof(what), "type of node %zu", i);
        say(what, "%d", (int)type);
        if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
            PROBE("cuGraphKernelNodeGetParams", cuGraphKernelNodeGetParams(nodes[i], &params));
            say("its parameters", "grid %u, function the same %d, kernel %d, first %d",
                params.gridDimX, params.func == f, params.kern != NULL,
                *(CUdeviceptr *)params.kernelParams[0] == p);
        } else {
            snprintf(what, sizeof(what), "wrong kind of node %zu", i);
            PROBE(what, cuGraphKernelNodeGetParams(nodes[i], &params));
        }
    }
    PROBE("cuGraphInstantiate", cuGraphInstantiate(&exec, graph, 0));
    PROBE("cuGraphLaunch", cuGraphLaunch(exec, stream));
    PROBE("cuGraphLaunch again", cuGraphLaunch(exec, stream));
    PROBE("cuStreamSynchronize", cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(&seen, p, sizeof(seen)));
    say("the result", "%.0f", (double)seen);
    PROBE("cuGraphExecUpdate", cuGraphExecUpdate(exec, graph, &info));
    say("it says", "%d", (int)info.result);
    MUST(cuGraphCreate(&copy, 0));
    MUST(cuGraphAddEmptyNode(&node, copy, NULL, 0));
    PROBE("cuGraphExecUpdate with another shape", cuGraphExecUpdate(exec, copy, &info));
    say("it says then", "%d", (int)info.result);
    PROBE("cuGraphExecDestroy", cuGraphExecDestroy(exec));
    PROBE("cuGraphDestroy of a captured one", cuGraphDestroy(graph));
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

static const section_t sections[] = {
    {"start", run_start},
    {"contexts", run_contexts},
    {"reset", run_reset},
    {"device memory", run_device_memory},
    {"host memory", run_host_memory},
    {"managed memory", run_managed},
    {"pools", run_pools},
    {"mappings", run_mappings},
    {"prefetch", run_prefetch},
    {"advise", run_advise},
    {"batch", run_batch},
    {"ranges", run_ranges},
    {"pointers", run_pointers},
    {"symbols", run_symbols},
    {"modules", run_modules},
    {"launches", run_launches},
    {"streams", run_streams},
    {"copies", run_copies},
    {"capture", run_capture},
    {"graphs", run_graphs},
    {NULL, NULL},
};

static void run(const section_t *section)
{
    int status = 0;
    pid_t child;

    um_conformance_section = section->name;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(SECTION_SECONDS);
        section->run();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        say("ended", "signal %d", WTERMSIG(status));
    else
        say("ended", "%d", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    const section_t *const tables[] = {sections, um_conformance_cupti};

    for (int t = 0; t < 2; t++)
        for (const section_t *s = tables[t]; s->name; s++) {
            bool wanted = argc == 1;
            for (int i = 1; i < argc; i++)
                wanted |= strcmp(argv[i], s->name) == 0;
            if (wanted)
                run(s);
        }
    return 0;
}
#endif

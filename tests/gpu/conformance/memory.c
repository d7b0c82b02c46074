/*
 * memory.c - the families of memory, and what is known of an address.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000

static void run_device_memory(void)
{
    CUdeviceptr p = 0, base = 0;
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
    CUipcMemHandle ipc;
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
    PROBE("cuIpcGetMemHandle", cuIpcGetMemHandle(&ipc, p));
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
    CUmemGenericAllocationHandle handle = 0;
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

const section_t um_probes_memory[] = {
    {"device memory", run_device_memory},
    {"host memory", run_host_memory},
    {"managed memory", run_managed},
    {"pools", run_pools},
    {"mappings", run_mappings},
    {"pointers", run_pointers},
    {NULL, NULL},
};
#endif

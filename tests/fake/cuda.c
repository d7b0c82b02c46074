/*
 * A libcuda.so.1 with no GPU behind it: just enough for the live source to run in a test. Addresses
 * it was told of with fake_cuda_memory are the only ones that it knows.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <stdbool.h>

#include <cuda.h>

#if CUDA_VERSION < 12000
typedef void *CUkernel;
#endif

#undef cuDeviceTotalMem
#undef cuStreamDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuMemFree
#undef cuMemGetInfo
#undef cuDevicePrimaryCtxRelease

typedef struct memory {
    uint64_t addr, bytes;
    unsigned type, managed;
} memory_t;

int fake_cuda_version = 13000;
int fake_cuda_initialised = 1;
int fake_cuda_managed_allocations;
int fake_cuda_calls; /* of anything that a launch path must not call */
void *fake_cuda_context;
static memory_t memories[64];
static int n_memories;

void fake_cuda_memory(uint64_t addr, uint64_t bytes, unsigned type, unsigned managed)
{
    memories[n_memories++] = (memory_t){addr, bytes, type, managed};
}

void fake_cuda_forget(void)
{
    n_memories = 0;
}

static const memory_t *find(uint64_t addr)
{
    for (int i = 0; i < n_memories; i++)
        if (addr >= memories[i].addr && addr - memories[i].addr < memories[i].bytes)
            return &memories[i];
    return NULL;
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    return fake_cuda_initialised ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = fake_cuda_version;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return fake_cuda_initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY ||
             (attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS &&
              !getenv("FAKE_CUDA_NO_CONCURRENT")) ||
             attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    (void)device;
    strncpy(name, "Fake GPU", (size_t)bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = 1ull << 34;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    (void)device;
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0x10 + i);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)0x99;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    const char *mib = getenv("FAKE_CUDA_FREE_MIB");

    *total_bytes = 1ull << 34;
    *free_bytes = mib ? strtoull(mib, NULL, 10) << 20 : *total_bytes;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    fake_cuda_context = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    *context = fake_cuda_context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = fake_cuda_context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = (CUstream)0x77;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status =
        stream == (CUstream)0xcab ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *addr, size_t bytes, unsigned flags)
{
    (void)bytes;
    (void)flags;
    *addr = 0x600000000000;
    fake_cuda_managed_allocations++;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr addr)
{
    const memory_t *memory = find(addr);

    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    *(unsigned *)data =
        attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED ? memory->managed : memory->type;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *what, void **data,
                                CUdeviceptr addr)
{
    const memory_t *memory = find(addr);

    fake_cuda_calls++;
    for (unsigned i = 0; memory && i < count; i++) {
        if (what[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            *(CUdeviceptr *)data[i] = memory->addr;
        else if (what[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
            *(size_t *)data[i] = memory->bytes;
        else if (what[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED)
            *(unsigned *)data[i] = memory->managed;
        else if (what[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(unsigned *)data[i] = memory->type;
    }
    return CUDA_SUCCESS;
}

/* Kernels have two pointers and an int. Handles under 0x10000 are CUfunction, others CUkernel. */
static CUresult param_info(size_t index, size_t *offset, size_t *bytes)
{
    static const size_t size[] = {8, 8, 4};

    fake_cuda_calls++;
    errno = ENOTTY; /* as calls into the kernel may leave it */
    if (index > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = index * 8;
    *bytes = size[index];
    return CUDA_SUCCESS;
}

/* The real driver dereferences whatever it is asked about. */
static void known(const void *handle)
{
    if ((uintptr_t)handle >> 32)
        abort();
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    known(function);
    if ((uintptr_t)function >= 0x10000)
        return CUDA_ERROR_INVALID_HANDLE;
    return param_info(index, offset, bytes);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    known(kernel);
    if ((uintptr_t)kernel < 0x10000)
        return CUDA_ERROR_INVALID_HANDLE;
    return param_info(index, offset, bytes);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    known(function);
    *name = "node_kernel";
    return CUDA_SUCCESS;
}

/* Graphs have two nodes, kernels both: handles 1 and 2. Or the second is conditional; its body, graph 0xd1, has one
 * kernel: handle 3. */
void **fake_cuda_node_params;
int fake_cuda_conditional;

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    bool body = graph == (CUgraph)0xd1;

    if (nodes) {
        nodes[0] = body ? (CUgraphNode)3 : (CUgraphNode)1;
        if (!body)
            nodes[1] = (CUgraphNode)2;
    }
    *count = body ? 1 : 2;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    *type = CU_GRAPH_NODE_TYPE_KERNEL;
    if (fake_cuda_conditional && node == (CUgraphNode)2)
        *type = (CUgraphNodeType)13;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    memset(params, 0, sizeof(*params));
    params->func = (CUfunction)0x2000;
    params->kernelParams = fake_cuda_node_params + ((uintptr_t)node - 1) * 3;
    return CUDA_SUCCESS;
}

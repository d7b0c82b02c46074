/*
 * mappings.c - virtual memory management: ranges reserved, memory created, one mapped into the other.
 */
#include "softgpu.h"

#include <stdlib.h>
#include <sys/mman.h>

#define GRANULE (2u << 20)
typedef struct backing {
    char *data;
    uint64_t bytes;
    int device;
} backing_t;

CUresult sg_vmm_granularity(size_t *out, const CUmemAllocationProp *prop,
                            CUmemAllocationGranularity_flags option)
{
    (void)prop;
    (void)option;
    *out = GRANULE;
    return CUDA_SUCCESS;
}

CUresult sg_vmm_reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr addr,
                        unsigned long long flags)
{
    (void)alignment;
    (void)addr;
    if (flags || bytes == 0 || bytes % GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    char *at =
        mmap(NULL, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = ((uintptr_t)at + GRANULE - 1) / GRANULE * GRANULE;
    return CUDA_SUCCESS;
}

CUresult sg_vmm_unreserve(CUdeviceptr addr, size_t bytes)
{
    return munmap((void *)(uintptr_t)addr, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_vmm_create(CUmemGenericAllocationHandle *out, size_t bytes,
                       const CUmemAllocationProp *prop, unsigned long long flags)
{
    backing_t *backing = calloc(1, sizeof(*backing));

    *backing = (backing_t){NULL, bytes, prop->location.id};
    if (flags || bytes == 0 || bytes % GRANULE || !sg_memory_reserve(backing->device, bytes)) {
        free(backing);
        return flags || bytes % GRANULE ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    backing->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *out = (uintptr_t)backing;
    return CUDA_SUCCESS;
}

/* What is mapped stays until it is unmapped; the bytes are kept, for a test's sake. */
CUresult sg_vmm_release(CUmemGenericAllocationHandle handle)
{
    backing_t *backing = (backing_t *)(uintptr_t)handle; /* NOLINT: an address */

    sg_memory_unreserve(backing->device, backing->bytes);
    return CUDA_SUCCESS;
}

CUresult sg_vmm_map(CUdeviceptr addr, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    const backing_t *backing = (backing_t *)(uintptr_t)handle; /* NOLINT: an address */
    sg_memory_t memory = {.addr = addr,
                          .bytes = bytes,
                          .data = backing->data + offset,
                          .family = SG_MAPPED,
                          .context = sg_context(),
                          .device = backing->device},
                known;

    if (flags || offset + bytes > backing->bytes || sg_memory_find(addr, &known))
        return CUDA_ERROR_INVALID_VALUE;
    sg_memory_add(&memory);
    return CUDA_SUCCESS;
}

CUresult sg_vmm_unmap(CUdeviceptr addr, size_t bytes)
{
    bool any = false;

    for (uint64_t at = addr; at < addr + bytes; at += GRANULE)
        any |= sg_memory_free(at, 1u << SG_MAPPED) == CUDA_SUCCESS;
    return any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_vmm_access(CUdeviceptr addr, size_t bytes, const CUmemAccessDesc *desc, size_t n)
{
    sg_memory_t memory;

    (void)bytes;
    (void)desc;
    return n && sg_memory_find(addr, &memory) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

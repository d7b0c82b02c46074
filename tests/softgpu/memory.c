/*
 * memory.c - the families of memory, pools, and what is known of an address.
 *
 * Device memory has two addresses: the program's, which the CPU cannot touch, and ours.
 */
#include "softgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct node {
    struct node *next;
    sg_memory_t m;
} node_t;
static node_t *memories; /* under sg_lock */
static uint64_t n_memories, used[SG_GPUS];

struct CUmemPoolHandle_st {
    uint32_t magic;
    int device;
    bool managed;
    uint64_t threshold, used, high;
};
static struct CUmemPoolHandle_st default_pools[SG_GPUS];

#define PAGE 4096u
static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- the table ------------------------------------------------------------------------------------ */

static node_t *find(uint64_t addr)
{
    for (node_t *n = memories; n; n = n->next)
        if (addr >= n->m.addr && addr - n->m.addr < n->m.bytes)
            return n;
    return NULL;
}

bool sg_memory_find(uint64_t addr, sg_memory_t *out)
{
    pthread_mutex_lock(&sg_lock);
    node_t *n = find(addr);
    if (n)
        *out = n->m;
    pthread_mutex_unlock(&sg_lock);
    return n != NULL;
}

void sg_memory_add(const sg_memory_t *memory)
{
    node_t *n = calloc(1, sizeof(*n));

    n->m = *memory;
    pthread_mutex_lock(&sg_lock);
    n->m.id = ++n_memories;
    n->next = memories;
    memories = n;
    pthread_mutex_unlock(&sg_lock);
}

uint64_t sg_memory_used(int device)
{
    return used[device] + sg_managed_resident(device);
}

bool sg_memory_reserve(int device, uint64_t bytes)
{
    uint64_t managed = sg_managed_resident(device);

    pthread_mutex_lock(&sg_lock);
    (void)managed; /* what is managed makes room */
    bool fits = used[device] + bytes + sg_gpu_used(device) <= sg_gpu_bytes(device);
    if (fits)
        used[device] += bytes;
    pthread_mutex_unlock(&sg_lock);
    return fits;
}

void sg_memory_unreserve(int device, uint64_t bytes)
{
    pthread_mutex_lock(&sg_lock);
    used[device] -= bytes;
    pthread_mutex_unlock(&sg_lock);
}

CUresult sg_memory_new(sg_family_t family, uint64_t bytes, unsigned flags, CUdeviceptr *addr)
{
    sg_context_t *context = sg_context();
    sg_memory_t memory = {.bytes = bytes,
                          .family = family,
                          .context = context,
                          .device = context->device,
                          .flags = flags};
    bool device = family == SG_DEVICE || family == SG_POOLED;

    if (!addr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    memory.mapped_bytes = round_up(bytes, device ? 512 : PAGE);
    if (bytes > 1ull << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (device && !sg_memory_reserve(memory.device, memory.mapped_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (family == SG_MANAGED) {
        CUresult result = sg_managed_new(&memory);
        if (result != CUDA_SUCCESS)
            return result;
    } else {
        memory.data = mmap(NULL, memory.mapped_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory.addr = (uintptr_t)memory.data;
        if (device)
            memory.addr = (uintptr_t)mmap(NULL, memory.mapped_bytes, PROT_NONE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory.data == MAP_FAILED || memory.addr == (uintptr_t)MAP_FAILED)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_memory_add(&memory);
    *addr = memory.addr;
    return CUDA_SUCCESS;
}

static void drop(node_t *n)
{
    sg_memory_t *m = &n->m;

    if (m->family == SG_MANAGED)
        sg_managed_free(m);
    if (m->family == SG_DEVICE || m->family == SG_POOLED) {
        munmap((void *)(uintptr_t)m->addr, m->mapped_bytes);
        used[m->device] -= m->mapped_bytes;
    }
    if (m->family == SG_DEVICE || m->family == SG_POOLED || m->family == SG_PINNED)
        munmap(m->data, m->mapped_bytes);
    if (m->pool)
        m->pool->used -= m->mapped_bytes;
    free(n);
}

static node_t *take(uint64_t addr, uint64_t families)
{
    for (node_t **at = &memories; *at; at = &(*at)->next) {
        node_t *n = *at;
        if (n->m.addr == addr && (families >> n->m.family & 1)) {
            *at = n->next;
            return n;
        }
    }
    return NULL;
}

CUresult sg_memory_free(uint64_t addr, uint64_t families)
{
    pthread_mutex_lock(&sg_lock);
    node_t *n = take(addr, families);
    if (n)
        drop(n);
    pthread_mutex_unlock(&sg_lock);
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void sg_memory_of_context_free(sg_context_t *context)
{
    pthread_mutex_lock(&sg_lock);
    for (node_t **at = &memories; *at;) {
        node_t *n = *at;
        if (n->m.context == context && n->m.family != SG_MAPPED) {
            *at = n->next;
            drop(n);
        } else {
            at = &n->next;
        }
    }
    pthread_mutex_unlock(&sg_lock);
}

char *sg_touch(int device, uint64_t addr, uint64_t bytes, bool write, bool host)
{
    sg_memory_t memory;

    if (!sg_memory_find(addr, &memory))
        return host ? (char *)(uintptr_t)addr : NULL; /* NOLINT: an address */
    if (bytes > memory.bytes - (addr - memory.addr))
        return NULL;
    if (memory.family == SG_MANAGED)
        sg_managed_touch(&memory, device, addr, bytes, write);
    return memory.data + (addr - memory.addr);
}

/* ---- allocation ------------------------------------------------------------------------------------ */

CUresult sg_mem_alloc(CUdeviceptr *addr, size_t bytes)
{
    return sg_memory_new(SG_DEVICE, bytes, 0, addr);
}

CUresult sg_mem_alloc_pitch(CUdeviceptr *addr, size_t *pitch, size_t width, size_t height,
                            unsigned element)
{
    if (element != 4 && element != 8 && element != 16)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = round_up(width, 512);
    return sg_memory_new(SG_DEVICE, *pitch * height, 0, addr);
}

CUresult sg_mem_alloc_managed(CUdeviceptr *addr, size_t bytes, unsigned flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_memory_new(SG_MANAGED, bytes, flags, addr);
    if (result == CUDA_SUCCESS && sg_client)
        sg_client->managed();
    return result;
}

CUresult sg_mem_host_alloc(void **addr, size_t bytes, unsigned flags)
{
    CUdeviceptr at = 0;
    if (flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    sg_context_wait_closed(sg_context());
    CUresult result = sg_memory_new(SG_PINNED, bytes, flags, &at);

    if (result == CUDA_SUCCESS)
        *addr = (void *)(uintptr_t)at; /* NOLINT: an address */
    return result;
}

CUresult sg_mem_alloc_host(void **addr, size_t bytes)
{
    return sg_mem_host_alloc(addr, bytes, 0);
}

CUresult sg_mem_register(void *addr, size_t bytes, unsigned flags)
{
    sg_memory_t memory = {.addr = (uintptr_t)addr,
                          .bytes = bytes,
                          .data = addr,
                          .family = SG_REGISTERED,
                          .context = sg_context(),
                          .device = sg_context()->device,
                          .flags = flags},
                known;

    if (!addr || bytes == 0 || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_memory_find(memory.addr, &known))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    sg_memory_add(&memory);
    return CUDA_SUCCESS;
}

CUresult sg_mem_unregister(void *addr)
{
    sg_context_wait_closed(sg_context());
    return sg_memory_free((uintptr_t)addr, 1u << SG_REGISTERED) == CUDA_SUCCESS
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult sg_mem_host_pointer(CUdeviceptr *out, void *addr, unsigned flags)
{
    sg_memory_t memory;

    if (flags || !sg_memory_find((uintptr_t)addr, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (uintptr_t)addr;
    return CUDA_SUCCESS;
}

CUresult sg_mem_host_flags(unsigned *flags, void *addr)
{
    sg_memory_t memory;

    if (!sg_memory_find((uintptr_t)addr, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = memory.flags;
    return CUDA_SUCCESS;
}

/* Freeing waits for the GPU, and nobody else gets in meanwhile. */
CUresult sg_mem_free(CUdeviceptr addr)
{
    if (!addr)
        return CUDA_SUCCESS;
    sg_context_wait_closed(sg_context());
    return sg_memory_free(addr, 1u << SG_DEVICE | 1u << SG_MANAGED | 1u << SG_POOLED);
}

CUresult sg_mem_free_host(void *addr)
{
    sg_context_wait_closed(sg_context());
    return addr == NULL ? CUDA_SUCCESS : sg_memory_free((uintptr_t)addr, 1u << SG_PINNED);
}

/* ---- pools ------------------------------------------------------------------------------------------- */

CUresult sg_device_pool(CUmemoryPool *out, CUdevice device)
{
    if (device < 0 || device >= sg_gpus())
        return CUDA_ERROR_INVALID_DEVICE;
    default_pools[device].magic = SG_POOL;
    default_pools[device].device = device;
    *out = &default_pools[device];
    return CUDA_SUCCESS;
}

CUresult sg_mem_alloc_pool(CUdeviceptr *addr, size_t bytes, CUmemoryPool pool, CUstream handle)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_is(pool, SG_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    result =
        sg_memory_new(pool->managed ? SG_MANAGED : SG_POOLED, bytes, CU_MEM_ATTACH_GLOBAL, addr);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&sg_lock);
    node_t *n = find(*addr);
    n->m.pool = pool;
    pool->used += n->m.mapped_bytes;
    if (pool->used > pool->high)
        pool->high = pool->used;
    pthread_mutex_unlock(&sg_lock);
    if (pool->managed && sg_client)
        sg_client->managed();
    return CUDA_SUCCESS;
}

CUresult sg_mem_alloc_async(CUdeviceptr *addr, size_t bytes, CUstream stream)
{
    CUmemoryPool pool = NULL;

    sg_device_pool(&pool, sg_context()->device);
    return sg_mem_alloc_pool(addr, bytes, pool, stream);
}

CUresult sg_mem_free_async(CUdeviceptr addr, CUstream handle)
{
    sg_stream_t *stream;
    sg_memory_t memory;
    CUresult result = sg_stream_of(handle, &stream);
    sg_op_t op = {.type = SG_OP_FREE, .u.free_addr = addr};

    if (result != CUDA_SUCCESS)
        return result;
    if (addr == 0)
        return CUDA_SUCCESS;
    if (!sg_memory_find(addr, &memory) || memory.addr != addr)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_enqueue(stream, &op);
}

CUresult sg_pool_create(CUmemoryPool *out, const CUmemPoolProps *props)
{
    struct CUmemPoolHandle_st *pool;

    if ((props->allocType != 1 && props->allocType != 2) || props->location.id < 0 ||
        (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE && props->location.id >= sg_gpus()))
        return CUDA_ERROR_INVALID_VALUE;
    pool = calloc(1, sizeof(*pool));
    pool->magic = SG_POOL;
    pool->device = props->location.id;
    pool->managed = props->allocType == 2; /* CU_MEM_ALLOCATION_TYPE_MANAGED of 13.0 */
    *out = pool;
    return CUDA_SUCCESS;
}

CUresult sg_pool_destroy(CUmemoryPool pool)
{
    if (!sg_is(pool, SG_POOL) ||
        (pool >= default_pools && pool < default_pools + SG_GPUS)) /* those stay */
        return CUDA_ERROR_INVALID_VALUE;
    pool->magic = SG_GONE;
    return CUDA_SUCCESS;
}

CUresult sg_pool_set(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (!sg_is(pool, SG_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(cuuint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult sg_pool_get(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (!sg_is(pool, SG_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(cuuint64_t *)value = pool->threshold;
    else if (attribute >= CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        *(cuuint64_t *)value =
            attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? pool->used : pool->high;
    else
        *(int *)value = 1;
    return CUDA_SUCCESS;
}

CUresult sg_pool_trim(CUmemoryPool pool, size_t bytes)
{
    (void)bytes;
    return sg_is(pool, SG_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- questions ------------------------------------------------------------------------------------------ */

CUresult sg_mem_info(size_t *free_bytes, size_t *total)
{
    int device = sg_context()->device;

    sg_context_open_wait(sg_context());
    uint64_t all = sg_gpu_bytes(device), taken = sg_memory_used(device) + sg_gpu_used(device);

    *total = all;
    *free_bytes = taken < all ? all - taken : 0;
    return CUDA_SUCCESS;
}

/* Documented: managed memory is not for other processes. Other memory's handles are not there. */
CUresult sg_ipc_handle(CUipcMemHandle *out, CUdeviceptr addr)
{
    sg_memory_t memory;

    if (!out || !sg_memory_find(addr, &memory) || memory.family != SG_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_mem_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr addr)
{
    sg_memory_t memory;

    if (!sg_memory_find(addr, &memory))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = memory.addr;
    if (bytes)
        *bytes = memory.bytes;
    return CUDA_SUCCESS;
}

static CUresult attribute_of(const sg_memory_t *m, void *data, CUpointer_attribute attribute,
                             CUdeviceptr addr)
{
    bool host = m->family == SG_PINNED || m->family == SG_REGISTERED;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = m->context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = addr;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && m->family != SG_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(uint64_t *)data = addr;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(uint64_t *)data = m->id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned char *)data = m->family == SG_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = m->device;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = m->addr;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = m->bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned char *)data = 1;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = m->pool;
        break;
    default:
        *(unsigned *)data = 0;
        break;
    }
    return CUDA_SUCCESS;
}

CUresult sg_pointer_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr addr)
{
    sg_memory_t memory;

    if (!data || !sg_memory_find(addr, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(&memory, data, attribute, addr);
}

/* Of an unknown address everything is zero, and that is no error. */
CUresult sg_pointer_attributes(unsigned n, CUpointer_attribute *attributes, void **data,
                               CUdeviceptr addr)
{
    sg_memory_t memory;
    bool known = sg_memory_find(addr, &memory);

    if (n == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        bool wide = attributes[i] <= CU_POINTER_ATTRIBUTE_HOST_POINTER &&
                    attributes[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        wide |= attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
        bool byte = attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED;
        memset(data[i], 0, wide ? 8 : byte ? 1 : 4);
        if (known)
            attribute_of(&memory, data[i], attributes[i], addr);
    }
    return CUDA_SUCCESS;
}

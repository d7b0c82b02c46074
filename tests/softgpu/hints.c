/*
 * hints.c - what programs ask of managed memory: prefetches, discards, advice, and what was asked for.
 */
#include "managed.h"

/* The region, if [addr, addr+bytes) is managed memory of one allocation. */
static managed_t *range(uint64_t addr, uint64_t bytes)
{
    managed_t *m = sg_managed_find(addr);

    return m && bytes && bytes <= m->bytes - (addr - m->addr) ? m : NULL;
}

CUresult sg_managed_prefetch(uint64_t addr, uint64_t bytes, int device)
{
    um_uvm_work_t work = {0};

    pthread_mutex_lock(&sg_uvm_lock);
    managed_t *m = range(addr, bytes);
    if (m) {
        uint64_t first = addr / PAGE * PAGE, end = (addr + bytes + PAGE - 1) / PAGE * PAGE;
        uint64_t now = sg_serve(first, end - first, 0);
        um_uvm_prefetch(sg_uvm, device, first, end - first, now, &work);
        sg_served();
    }
    pthread_mutex_unlock(&sg_uvm_lock);
    return CUDA_SUCCESS;
}

static CUresult check_device(int device)
{
    if (device == CU_DEVICE_CPU)
        return CUDA_SUCCESS;
    if (device < 0 || device >= sg_gpus() || !sg_concurrent(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

/* A GPU, the host, one of its NUMA nodes (there is one), the nearest. Which GPU is looked at elsewhere. */
static bool is_place(CUmemLocation where)
{
    return (int)where.type >= 1 && (int)where.type <= 4 && ((int)where.type != 3 || where.id == 0);
}

static int location_device(CUmemLocation where)
{
    return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id
           : (int)where.type >= 2                    ? CU_DEVICE_CPU
                                                     : CU_DEVICE_INVALID;
}

static CUresult prefetch(CUdeviceptr addr, size_t bytes, int device, CUstream handle, bool discard,
                         bool move)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);
    sg_op_t op = {.type = SG_OP_PREFETCH, .u.prefetch = {addr, bytes, device, discard, move}};

    if (result == CUDA_SUCCESS)
        result = check_device(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    sg_context_open_wait(stream->context);
    pthread_mutex_lock(&sg_uvm_lock);
    managed_t *m = range(addr, bytes);
    if (m)
        for (uint64_t i = (addr - m->addr) / PAGE; i <= (addr + bytes - 1 - m->addr) / PAGE; i++)
            m->asked[i].prefetched = device;
    pthread_mutex_unlock(&sg_uvm_lock);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_enqueue(stream, &op);
}

CUresult sg_prefetch(CUdeviceptr addr, size_t bytes, CUdevice device, CUstream stream)
{
    return prefetch(addr, bytes, device, stream, false, true);
}

CUresult sg_prefetch_v2(CUdeviceptr addr, size_t bytes, CUmemLocation where, unsigned flags,
                        CUstream stream)
{
    return flags || !is_place(where)
               ? CUDA_ERROR_INVALID_VALUE
               : prefetch(addr, bytes, location_device(where), stream, false, true);
}

static CUresult batch(CUdeviceptr *addr, size_t *bytes, size_t n, CUmemLocation *where,
                      const size_t *first, size_t n_where, unsigned long long flags,
                      CUstream stream, bool discard)
{
    bool move = where != NULL;

    if (flags || !n || !addr || !bytes || (move && (!first || !n_where || first[0] != 0)) ||
        !stream || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, k = 0; i < n; i++) {
        while (move && k + 1 < n_where && first[k + 1] <= i)
            k++;
        CUresult result =
            prefetch(addr[i], bytes[i], move ? location_device(where[k]) : CU_DEVICE_CPU, stream,
                     discard, move);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sg_prefetch_batch(CUdeviceptr *addr, size_t *bytes, size_t n, CUmemLocation *where,
                           size_t *first, size_t n_where, unsigned long long flags, CUstream stream)
{
    return where ? batch(addr, bytes, n, where, first, n_where, flags, stream, false)
                 : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_discard_batch(CUdeviceptr *addr, size_t *bytes, size_t n, unsigned long long flags,
                          CUstream stream)
{
    return batch(addr, bytes, n, NULL, NULL, 0, flags, stream, true);
}

CUresult sg_discard_prefetch_batch(CUdeviceptr *addr, size_t *bytes, size_t n, CUmemLocation *where,
                                   size_t *first, size_t n_where, unsigned long long flags,
                                   CUstream stream)
{
    return where ? batch(addr, bytes, n, where, first, n_where, flags, stream, true)
                 : CUDA_ERROR_INVALID_VALUE;
}

void sg_managed_discard(uint64_t addr, uint64_t bytes)
{
    um_uvm_work_t work = {0};

    pthread_mutex_lock(&sg_uvm_lock);
    if (range(addr, bytes)) {
        sg_serve(addr, bytes, 0);
        um_uvm_discard(sg_uvm, addr, bytes, &work);
        sg_served();
    }
    pthread_mutex_unlock(&sg_uvm_lock);
}

static void ask(asked_t *asked, CUmem_advise advice, int device)
{
    unsigned bit = 1u << (device < 0 ? SG_GPUS : device);

    if (advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY)
        asked->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
    else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
        asked->preferred = device;
    else if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        asked->preferred = CU_DEVICE_INVALID;
    else if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY)
        asked->accessed_by |= bit;
    else
        asked->accessed_by &= ~bit;
}

CUresult sg_advise(CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUdevice device)
{
    um_uvm_work_t work = {0};
    bool needs_device = advice != CU_MEM_ADVISE_SET_READ_MOSTLY &&
                        advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                        advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    CUresult result = needs_device ? check_device(device) : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS)
        return device >= sg_gpus() ? CUDA_ERROR_INVALID_VALUE : result;
    if (advice < 1 || advice > 6)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_capture_forbids())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&sg_uvm_lock);
    managed_t *m = range(addr, bytes);
    if (m) {
        uint64_t first = addr / PAGE * PAGE, end = (addr + bytes + PAGE - 1) / PAGE * PAGE;
        m->read_mostly |= advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        for (uint64_t i = (first - m->addr) / PAGE; i < (end - m->addr) / PAGE; i++)
            ask(&m->asked[i], advice, device);
        sg_serve(first, end - first, 0);
        /* um_hint_kind_t 2..7 are CUmem_advise 1..6. */
        um_uvm_advise(sg_uvm, (um_hint_kind_t)(advice + 1), device, first, end - first, &work);
        sg_served();
    }
    pthread_mutex_unlock(&sg_uvm_lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_advise_v2(CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
    bool accessed =
        advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;

    if (!is_place(where) || (accessed && (int)where.type > 2)) /* that takes no NUMA node */
        return CUDA_ERROR_INVALID_VALUE;
    return sg_advise(addr, bytes, advice, location_device(where));
}

/* What holds for all pages of [addr, addr+bytes): where they differ, nothing does. */
static asked_t asked_of(const managed_t *m, uint64_t addr, uint64_t bytes)
{
    uint64_t first = (addr - m->addr) / PAGE, last = (addr + bytes - 1 - m->addr) / PAGE;
    asked_t all = m->asked[first];

    for (uint64_t i = first + 1; i <= last; i++) {
        const asked_t *page = &m->asked[i];
        all.read_mostly &= page->read_mostly;
        all.accessed_by &= page->accessed_by;
        if (page->preferred != all.preferred)
            all.preferred = CU_DEVICE_INVALID;
        if (page->prefetched != all.prefetched)
            all.prefetched = CU_DEVICE_INVALID;
    }
    return all;
}

static int location_type(int device)
{
    return device >= 0 ? 1 : device == CU_DEVICE_CPU ? 2 : 0; /* CUmemLocationType */
}

/* What was asked for, not where anything is. */
CUresult sg_range_attribute(void *data, size_t data_bytes, CUmem_range_attribute attribute,
                            CUdeviceptr addr, size_t bytes)
{
    CUresult result = CUDA_SUCCESS;
    int *out = data;
    size_t n = data_bytes / sizeof(int);

    if (!data || n == 0 || data_bytes % sizeof(int) ||
        (n > 1 && attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sg_uvm_lock);
    managed_t *m = range(addr, bytes);
    asked_t all = m ? asked_of(m, addr, bytes) : (asked_t){0};
    if (!m)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
        *out = all.read_mostly;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
        *out = all.preferred;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
        *out = all.prefetched;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        for (int gpu = 0; gpu <= SG_GPUS && n; gpu++)
            if (all.accessed_by >> gpu & 1) {
                *out++ = gpu == SG_GPUS ? CU_DEVICE_CPU : gpu;
                n--;
            }
        while (n--)
            *out++ = CU_DEVICE_INVALID;
    } else if ((int)attribute == 5 || (int)attribute == 6) /* the type and the number of the two, */
        *out = attribute % 2 ? location_type(all.preferred) : all.preferred; /* from 12.3 on */
    else if ((int)attribute == 7 || (int)attribute == 8)
        *out = attribute % 2 ? location_type(all.prefetched) : all.prefetched;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&sg_uvm_lock);
    return result;
}

CUresult sg_range_attributes(void **data, size_t *data_bytes, CUmem_range_attribute *attributes,
                             size_t n, CUdeviceptr addr, size_t bytes)
{
    CUresult result = n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
        result = sg_range_attribute(data[i], data_bytes[i], attributes[i], addr, bytes);
    return result;
}

/*
 * copy.c - copies and sets of every form become one of two kinds of work, and all work is run from here.
 *
 * Every copy is a CUDA_MEMCPY3D as graphs know it. Assumed: the copy engine touches managed memory as a kernel
 * of the context's GPU would.
 */
#include "softgpu.h"

#include <stdlib.h>
#include <string.h>

void sg_managed_discard(uint64_t addr, uint64_t bytes);

static uint64_t side(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

static uint64_t source(const CUDA_MEMCPY3D *c)
{
    return side(c->srcMemoryType, c->srcHost, c->srcDevice) + c->srcXInBytes +
           (c->srcY + c->srcZ * (c->srcHeight ? c->srcHeight : c->Height)) * c->srcPitch;
}

static uint64_t destination(const CUDA_MEMCPY3D *c)
{
    return side(c->dstMemoryType, c->dstHost, c->dstDevice) + c->dstXInBytes +
           (c->dstY + c->dstZ * (c->dstHeight ? c->dstHeight : c->Height)) * c->dstPitch;
}

static CUresult copy_run(const CUDA_MEMCPY3D *c, const char *staged, int device)
{
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++) {
            uint64_t from =
                source(c) + (y + z * (c->srcHeight ? c->srcHeight : c->Height)) * c->srcPitch;
            uint64_t to =
                destination(c) + (y + z * (c->dstHeight ? c->dstHeight : c->Height)) * c->dstPitch;
            const char *x = staged ? staged + (y + z * c->Height) * c->WidthInBytes
                                   : sg_touch(device, from, c->WidthInBytes, false,
                                              c->srcMemoryType != CU_MEMORYTYPE_DEVICE);
            char *d = sg_touch(device, to, c->WidthInBytes, true,
                               c->dstMemoryType != CU_MEMORYTYPE_DEVICE);
            if (!x || !d)
                return CUDA_ERROR_ILLEGAL_ADDRESS;
            memmove(d, x, c->WidthInBytes);
        }
    return CUDA_SUCCESS;
}

static CUresult set_run(const CUDA_MEMSET_NODE_PARAMS *s, int device)
{
    for (size_t y = 0; y < s->height; y++) {
        char *at = sg_touch(device, s->dst + y * s->pitch, s->width * s->elementSize, true, false);
        if (!at)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        for (size_t i = 0; i < s->width; i++)
            memcpy(at + i * s->elementSize, &s->value, s->elementSize);
    }
    return CUDA_SUCCESS;
}

void sg_op_run(sg_op_t *op, sg_stream_t *stream)
{
    CUresult result = CUDA_SUCCESS;

    switch (op->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        sg_kernel_run(&op->u.kernel, stream, op->correlation);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        result = copy_run(&op->u.copy, op->staged, stream->context->device);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        result = set_run(&op->u.set, stream->context->device);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        op->u.host.fn(op->u.host.data);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        sg_graph_child_run(op->u.graph, stream, op->correlation);
        break;
    case SG_OP_CALLBACK:
        op->u.callback.fn(op->u.callback.stream, CUDA_SUCCESS, op->u.callback.data);
        break;
    case SG_OP_PREFETCH:
        if (op->u.prefetch.discard)
            sg_managed_discard(op->u.prefetch.addr, op->u.prefetch.bytes);
        if (op->u.prefetch.move)
            sg_managed_prefetch(op->u.prefetch.addr, op->u.prefetch.bytes, op->u.prefetch.device);
        break;
    case SG_OP_FREE:
        sg_memory_free(op->u.free_addr, 1u << SG_DEVICE | 1u << SG_MANAGED | 1u << SG_POOLED);
        break;
    case SG_OP_EVENT:
        op->u.event->time_ns = sg_now_ns();
        break;
    case SG_OP_LAUNCH:
        sg_graph_run(op->u.launch.exec, stream);
        break;
    default:
        break;
    }
    if (result != CUDA_SUCCESS)
        sg_context_fails(stream->context, result);
}

void sg_op_clear(sg_op_t *op)
{
    if (op->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        free(op->u.kernel.block_of_params);
        free(op->u.kernel.params);
    } else if (op->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        sg_graph_free(op->u.graph);
    }
    free(op->staged);
    op->staged = NULL;
    op->type = CU_GRAPH_NODE_TYPE_EMPTY;
}

CUresult sg_op_copy(sg_op_t *to, const sg_op_t *from)
{
    *to = *from;
    to->staged = NULL;
    if (from->type == CU_GRAPH_NODE_TYPE_GRAPH)
        to->u.graph = sg_graph_copy(from->u.graph);
    if (from->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        const sg_kernel_args_t *k = &from->u.kernel;
        to->u.kernel.block_of_params = NULL;
        to->u.kernel.params = NULL;
        return sg_kernel_pack(k->function, k->params, NULL, &to->u.kernel);
    }
    return CUDA_SUCCESS;
}

/* ---- copies ------------------------------------------------------------------------------------------------ */

static bool pageable(uint64_t addr)
{
    sg_memory_t memory;

    return !sg_memory_find(addr, &memory);
}

/* Rows of so many bytes each from addr on leave the memory that addr is in, or each other's way. */
static bool outside(uint64_t addr, uint64_t width, uint64_t rows, uint64_t pitch)
{
    sg_memory_t m;

    return (rows > 1 && pitch && pitch < width) ||
           (sg_memory_find(addr, &m) && addr - m.addr + (rows - 1) * pitch + width > m.bytes);
}

#define STAGED                                                                                     \
    (64u << 10) /* from pageable memory up to here the driver keeps a copy, and returns */

/* What is known of the addresses is checked at the call; what the CPU has in pageable memory is copied now. */
static CUresult copy(const CUDA_MEMCPY3D *c, CUstream handle, bool wait)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .u.copy = *c};
    size_t bytes = c->WidthInBytes * c->Height * c->Depth;

    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((c->srcMemoryType == CU_MEMORYTYPE_DEVICE && pageable(source(c))) ||
        (c->dstMemoryType == CU_MEMORYTYPE_DEVICE && pageable(destination(c))))
        return CUDA_ERROR_INVALID_VALUE;
    if (outside(source(c), c->WidthInBytes, c->Height, c->srcPitch) ||
        outside(destination(c), c->WidthInBytes, c->Height, c->dstPitch))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture && (wait || pageable(source(c)) || pageable(destination(c)))) {
        if (wait) {
            stream->capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    } else if (!wait && pageable(source(c))) {
        op.staged = malloc(bytes);
        for (size_t z = 0; z < c->Depth; z++)
            for (size_t y = 0; y < c->Height; y++)
                memcpy(op.staged + (y + z * c->Height) * c->WidthInBytes,
                       (char *)(uintptr_t)source(c) + /* NOLINT: an address */
                           (y + z * (c->srcHeight ? c->srcHeight : c->Height)) * c->srcPitch,
                       c->WidthInBytes);
    }
    bool closes =
        !stream->capture && (pageable(destination(c)) || (pageable(source(c)) && bytes > STAGED));
    result = sg_enqueue(stream, &op);
    if (result == CUDA_SUCCESS && closes)
        result = sg_wait_closed(stream);
    else if (result == CUDA_SUCCESS && wait)
        result = sg_wait(stream);
    return result;
}

static CUresult linear(uint64_t to, CUmemorytype to_type, uint64_t from, CUmemorytype from_type,
                       size_t bytes, CUstream stream, bool wait)
{
    CUDA_MEMCPY3D c = {.srcMemoryType = from_type,
                       .srcHost = (void *)(uintptr_t)from, /* NOLINT: an address */
                       .srcDevice = from,
                       .srcPitch = bytes,
                       .dstMemoryType = to_type,
                       .dstHost = (void *)(uintptr_t)to, /* NOLINT: an address */
                       .dstDevice = to,
                       .dstPitch = bytes,
                       .WidthInBytes = bytes,
                       .Height = 1,
                       .Depth = 1};
    return copy(&c, stream, wait);
}

#define HOST    CU_MEMORYTYPE_HOST
#define DEVICE  CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED

CUresult sg_copy(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return linear(to, UNIFIED, from, UNIFIED, n, NULL, true);
}
CUresult sg_copy_async(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return linear(to, UNIFIED, from, UNIFIED, n, s, false);
}
CUresult sg_copy_to_device(CUdeviceptr to, const void *from, size_t n)
{
    return linear(to, DEVICE, (uintptr_t)from, HOST, n, NULL, true);
}
CUresult sg_copy_to_device_async(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    return linear(to, DEVICE, (uintptr_t)from, HOST, n, s, false);
}
CUresult sg_copy_to_host(void *to, CUdeviceptr from, size_t n)
{
    return linear((uintptr_t)to, HOST, from, DEVICE, n, NULL, true);
}
CUresult sg_copy_to_host_async(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    return linear((uintptr_t)to, HOST, from, DEVICE, n, s, false);
}
CUresult sg_copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t n)
{
    (void)to_context;
    (void)from_context;
    return linear(to, DEVICE, from, DEVICE, n, NULL, true);
}
CUresult sg_copy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, size_t n, CUstream s)
{
    (void)to_context;
    (void)from_context;
    return linear(to, DEVICE, from, DEVICE, n, s, false);
}

static CUDA_MEMCPY3D from_2d(const CUDA_MEMCPY2D *c)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                           .srcY = c->srcY,
                           .srcMemoryType = c->srcMemoryType,
                           .srcHost = c->srcHost,
                           .srcDevice = c->srcDevice,
                           .srcPitch = c->srcPitch,
                           .dstXInBytes = c->dstXInBytes,
                           .dstY = c->dstY,
                           .dstMemoryType = c->dstMemoryType,
                           .dstHost = c->dstHost,
                           .dstDevice = c->dstDevice,
                           .dstPitch = c->dstPitch,
                           .WidthInBytes = c->WidthInBytes,
                           .Height = c->Height,
                           .Depth = 1};
}

CUresult sg_copy_2d(const CUDA_MEMCPY2D *c)
{
    CUDA_MEMCPY3D all = from_2d(c);
    return copy(&all, NULL, true);
}
CUresult sg_copy_2d_async(const CUDA_MEMCPY2D *c, CUstream s)
{
    CUDA_MEMCPY3D all = from_2d(c);
    return copy(&all, s, false);
}
CUresult sg_copy_3d(const CUDA_MEMCPY3D *c)
{
    return copy(c, NULL, true);
}
CUresult sg_copy_3d_async(const CUDA_MEMCPY3D *c, CUstream s)
{
    return copy(c, s, false);
}

static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                           size_t n, CUstream s)
{
    CUresult result = s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
        result = sg_copy_async(to[i], from[i], bytes[i], s);
    return result;
}

CUresult sg_copy_batch(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                       void *attributes, size_t *first, size_t n_attributes, size_t *failed,
                       CUstream s)
{
    (void)attributes;
    (void)first;
    (void)n_attributes;
    if (failed)
        *failed = SIZE_MAX;
    return copy_batch(to, from, bytes, n, s);
}

CUresult sg_copy_batch_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                          void *attributes, size_t *first, size_t n_attributes, CUstream s)
{
    (void)attributes;
    (void)first;
    (void)n_attributes;
    return copy_batch(to, from, bytes, n, s);
}

/* ---- sets --------------------------------------------------------------------------------------------------- */

static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, unsigned size, size_t width,
                    size_t height, CUstream handle, bool wait)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                  .u.set = {.dst = to,
                            .pitch = pitch,
                            .value = value,
                            .elementSize = size,
                            .width = width,
                            .height = height}};

    if (result != CUDA_SUCCESS)
        return result;
    if (width * height == 0)
        return CUDA_SUCCESS;
    if (pageable(to) || to % size || outside(to, width * size, height, pitch))
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_enqueue(stream, &op);
    if (result == CUDA_SUCCESS && wait)
        result = sg_wait(stream);
    return result;
}

#define SETS(bits, type)                                                                           \
    CUresult sg_set_##bits(CUdeviceptr to, type value, size_t n)                                   \
    {                                                                                              \
        return set(to, 0, value, (bits) / 8, n, 1, NULL, true);                                    \
    }                                                                                              \
    CUresult sg_set_##bits##_async(CUdeviceptr to, type value, size_t n, CUstream s)               \
    {                                                                                              \
        return set(to, 0, value, (bits) / 8, n, 1, s, false);                                      \
    }
#define SETS_2D(bits, type)                                                                        \
    CUresult sg_set_2d_##bits(CUdeviceptr to, size_t pitch, type value, size_t w, size_t h)        \
    {                                                                                              \
        return set(to, pitch, value, (bits) / 8, w, h, NULL, true);                                \
    }                                                                                              \
    CUresult sg_set_2d_##bits##_async(CUdeviceptr to, size_t pitch, type value, size_t w,          \
                                      size_t h, CUstream s)                                        \
    {                                                                                              \
        return set(to, pitch, value, (bits) / 8, w, h, s, false);                                  \
    }
SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned)
SETS_2D(8, unsigned char)
SETS_2D(32, unsigned)

/*
 * callbacks.c - which driver calls are followed from when on, and the one function that CUPTI calls.
 *
 * A program without managed memory pays nothing for its launches: they are not subscribed to before
 * there is some (um_later). What must be known by then is followed from the start: contexts, modules,
 * allocations, graphs as they are made.
 *
 * The table gives for each call its handler and where its parameters are. CUPTI hands parameters over
 * as a struct in argument order, whose layout never changes under one id; UM_W takes the places from
 * the headers, so the compiler checks them. Calls newer than CUDA 11.8 are listed by number and word,
 * and checked in tests/unit/cupti_driver.c where the headers have them.
 */
#include "executor.h"
#include "deep.h"
#include "live.h"
#include "records.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#undef cuMemcpy
#undef cuMemcpyAsync

#define UM_W(api, field) ((uint8_t)(offsetof(api##_params, field) / 8))
#define UM_ID(api)       CUPTI_DRIVER_TRACE_CBID_##api
#define UM_N             UM_NO_WORD

#define UM_COPY3(api, dst, src, fl)                                                                \
    {                                                                                              \
        UM_ID(api), um_on_copy, {UM_W(api, dst), UM_W(api, src), UM_W(api, ByteCount), UM_N},      \
            UM_N, fl, 0                                                                            \
    }
#define UM_COPY3S(api, dst, src, fl)                                                               \
    {                                                                                              \
        UM_ID(api), um_on_copy, {UM_W(api, dst), UM_W(api, src), UM_W(api, ByteCount), UM_N},      \
            UM_W(api, hStream), (fl) | UM_CALL_ASYNC, 0                                            \
    }
/* One end is an array: its address is not told. */
#define UM_COPY_DTOA(api, src, fl)                                                                 \
    {                                                                                              \
        UM_ID(api), um_on_copy, {UM_N, UM_W(api, src), UM_W(api, ByteCount), UM_N}, UM_N, fl, 0    \
    }
#define UM_COPY_ATOD(api, dst, fl)                                                                 \
    {                                                                                              \
        UM_ID(api), um_on_copy, {UM_W(api, dst), UM_N, UM_W(api, ByteCount), UM_N}, UM_N, fl, 0    \
    }
#define UM_COPY_DTOAS(api, src, fl)                                                                \
    {                                                                                              \
        UM_ID(api), um_on_copy, {UM_N, UM_W(api, src), UM_W(api, ByteCount), UM_N},                \
            UM_W(api, hStream), (fl) | UM_CALL_ASYNC, 0                                            \
    }
#define UM_COPY_ATODS(api, dst, fl)                                                                \
    {                                                                                              \
        UM_ID(api), um_on_copy, {UM_W(api, dst), UM_N, UM_W(api, ByteCount), UM_N},                \
            UM_W(api, hStream), (fl) | UM_CALL_ASYNC, 0                                            \
    }
#define UM_COPYND(api, fn, fl)                                                                     \
    {                                                                                              \
        UM_ID(api), fn, {UM_W(api, pCopy), UM_N, UM_N, UM_N}, UM_N, fl, 0                          \
    }
#define UM_COPYNDS(api, fn, fl)                                                                    \
    {                                                                                              \
        UM_ID(api), fn, {UM_W(api, pCopy), UM_N, UM_N, UM_N}, UM_W(api, hStream),                  \
            (fl) | UM_CALL_ASYNC, 0                                                                \
    }
#define UM_SET(api, value, size, fl)                                                               \
    {                                                                                              \
        UM_ID(api), um_on_set, {UM_W(api, dstDevice), UM_W(api, value), UM_W(api, N), UM_N}, UM_N, \
            fl, size                                                                               \
    }
#define UM_SETS(api, value, size, fl)                                                              \
    {                                                                                              \
        UM_ID(api), um_on_set, {UM_W(api, dstDevice), UM_W(api, value), UM_W(api, N), UM_N},       \
            UM_W(api, hStream), (fl) | UM_CALL_ASYNC, size                                         \
    }
#define UM_SET2(api, value, size, fl)                                                              \
    {                                                                                              \
        UM_ID(api), um_on_set_2d,                                                                  \
            {UM_W(api, dstDevice), UM_W(api, value), UM_W(api, Width), UM_W(api, Height)}, UM_N,   \
            fl, size                                                                               \
    }
#define UM_SET2S(api, value, size, fl)                                                             \
    {                                                                                              \
        UM_ID(api), um_on_set_2d,                                                                  \
            {UM_W(api, dstDevice), UM_W(api, value), UM_W(api, Width), UM_W(api, Height)},         \
            UM_W(api, hStream), (fl) | UM_CALL_ASYNC, size                                         \
    }
#define UM_PT UM_CALL_PER_THREAD
#define UM_HS UM_CALL_HOST_SRC
#define UM_HD UM_CALL_HOST_DST

static void um_on_sync(const CUpti_CallbackData *info, const um_call_t *call);
static void um_on_context_ready(const CUpti_CallbackData *info, const um_call_t *call);
static void um_on_context_going(const CUpti_CallbackData *info, const um_call_t *call);
static void um_on_primary_going(const CUpti_CallbackData *info, const um_call_t *call);
static void um_on_capture(const CUpti_CallbackData *info, const um_call_t *call);

static const um_call_t um_calls[] = {
    /* launches */
    {UM_ID(cuLaunchKernel),
     um_on_launch,
     {UM_W(cuLaunchKernel, extra), UM_N, UM_N, UM_N},
     UM_W(cuLaunchKernel, hStream),
     0,
     0},
    {UM_ID(cuLaunchKernel_ptsz),
     um_on_launch,
     {UM_W(cuLaunchKernel, extra), UM_N, UM_N, UM_N},
     UM_W(cuLaunchKernel, hStream),
     UM_PT,
     0},
    {UM_ID(cuLaunchCooperativeKernel),
     um_on_launch,
     {UM_N, UM_N, UM_N, UM_N},
     UM_W(cuLaunchCooperativeKernel, hStream),
     0,
     UM_LAUNCH_COOPERATIVE},
    {UM_ID(cuLaunchCooperativeKernel_ptsz),
     um_on_launch,
     {UM_N, UM_N, UM_N, UM_N},
     UM_W(cuLaunchCooperativeKernel, hStream),
     UM_PT,
     UM_LAUNCH_COOPERATIVE},
    {UM_ID(cuLaunchKernelEx), um_on_launch_ex, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuLaunchKernelEx_ptsz), um_on_launch_ex, {UM_N, UM_N, UM_N, UM_N}, UM_N, UM_PT, 0},
    {UM_ID(cuLaunchCooperativeKernelMultiDevice),
     um_on_launch_multi,
     {UM_N, UM_N, UM_N, UM_N},
     UM_N,
     0,
     0},
    {UM_ID(cuLaunch), um_on_launch_legacy, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuLaunchGrid), um_on_launch_legacy, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 1},
    {UM_ID(cuLaunchGridAsync),
     um_on_launch_legacy,
     {UM_N, UM_N, UM_N, UM_N},
     UM_W(cuLaunchGridAsync, hStream),
     0,
     1},
    {UM_ID(cuGraphLaunch), um_on_graph_launch, {UM_N, UM_N, UM_N, UM_N}, 1, 0, 0},
    {UM_ID(cuGraphLaunch_ptsz), um_on_graph_launch, {UM_N, UM_N, UM_N, UM_N}, 1, UM_PT, 0},

    /* graphs: where the executable graph is put, the graph */
    {712 /* cuGraphAddNode */, um_on_graph_add_node, {0, 4, UM_N, UM_N}, UM_N, 0, 0},
    {723 /* cuGraphAddNode_v2 */, um_on_graph_add_node, {0, 5, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuGraphInstantiate), um_on_graph_instantiate, {0, 1, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuGraphInstantiate_v2), um_on_graph_instantiate, {0, 1, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuGraphInstantiateWithFlags), um_on_graph_instantiate, {0, 1, UM_N, UM_N}, UM_N, 0, 0},
    {656 /* WithParams */, um_on_graph_instantiate, {0, 1, UM_N, UM_N}, UM_N, 0, 0},
    {657 /* WithParams_ptsz */, um_on_graph_instantiate, {0, 1, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuGraphExecUpdate), um_on_graph_update, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {696 /* cuGraphExecUpdate_v2 */, um_on_graph_update, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuGraphExecKernelNodeSetParams),
     um_on_graph_set_kernel,
     {UM_N, UM_N, UM_N, UM_N},
     UM_N,
     0,
     1},
    {692 /* cuGraphExecKernelNodeSetParams_v2 */,
     um_on_graph_set_kernel,
     {UM_N, UM_N, UM_N, UM_N},
     UM_N,
     0,
     2},
    {UM_ID(cuGraphExecDestroy), um_on_graph_destroy, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture), um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture_ptsz), um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture_v2), um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture_v2_ptsz), um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {720 /* cuStreamBeginCaptureToGraph */, um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {721 /* ..._ptsz */, um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuStreamEndCapture), um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 1},
    {UM_ID(cuStreamEndCapture_ptsz), um_on_capture, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 1},

    /* allocations: address, bytes, flags, rows */
    {UM_ID(cuMemAllocManaged), um_on_alloc, {0, 1, 2, UM_N}, UM_N, 0, UM_ALLOC_MANAGED},
    {UM_ID(cuMemAlloc_v2), um_on_alloc, {0, 1, UM_N, UM_N}, UM_N, 0, UM_ALLOC_DEVICE},
    {UM_ID(cuMemAllocPitch_v2),
     um_on_alloc,
     {0, 1, UM_N, UM_W(cuMemAllocPitch_v2, Height)},
     UM_N,
     0,
     UM_ALLOC_PITCH},
    {UM_ID(cuMemAllocHost_v2), um_on_alloc, {0, 1, UM_N, UM_N}, UM_N, 0, UM_ALLOC_PINNED},
    {UM_ID(cuMemHostAlloc), um_on_alloc, {0, 1, 2, UM_N}, UM_N, 0, UM_ALLOC_HOST},
    {271 /* cuMemHostAlloc_v2, which 13.5 no longer lists */,
     um_on_alloc,
     {0, 1, 2, UM_N},
     UM_N,
     0,
     UM_ALLOC_HOST},
    {UM_ID(cuMemHostRegister), um_on_alloc, {0, 1, 2, UM_N}, UM_N, 0, UM_ALLOC_REGISTER},
    {UM_ID(cuMemHostRegister_v2), um_on_alloc, {0, 1, 2, UM_N}, UM_N, 0, UM_ALLOC_REGISTER},
    {UM_ID(cuMemAllocAsync),
     um_on_alloc,
     {0, 1, UM_N, UM_N},
     UM_W(cuMemAllocAsync, hStream),
     0,
     UM_ALLOC_POOL},
    {UM_ID(cuMemAllocAsync_ptsz),
     um_on_alloc,
     {0, 1, UM_N, UM_N},
     UM_W(cuMemAllocAsync, hStream),
     UM_PT,
     UM_ALLOC_POOL},
    {UM_ID(cuMemAllocFromPoolAsync),
     um_on_alloc,
     {0, 1, UM_N, UM_N},
     UM_W(cuMemAllocFromPoolAsync, hStream),
     0,
     UM_ALLOC_POOL},
    {UM_ID(cuMemAllocFromPoolAsync_ptsz),
     um_on_alloc,
     {0, 1, UM_N, UM_N},
     UM_W(cuMemAllocFromPoolAsync, hStream),
     UM_PT,
     UM_ALLOC_POOL},
    {UM_ID(cuMemMap), um_on_alloc, {0, 1, UM_N, UM_N}, UM_N, 0, UM_ALLOC_MAP},
    {UM_ID(cuModuleGetGlobal_v2), um_on_alloc, {0, 1, UM_N, UM_N}, UM_N, 0, UM_ALLOC_STATIC},
    {684 /* cuLibraryGetGlobal */, um_on_alloc, {0, 1, UM_N, UM_N}, UM_N, 0, UM_ALLOC_STATIC},
    {685 /* cuLibraryGetManaged */, um_on_alloc, {0, 1, UM_N, UM_N}, UM_N, 0, UM_ALLOC_STATIC},
    {UM_ID(cuMemFree_v2), um_on_free, {0, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuMemFreeHost), um_on_free, {0, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuMemHostUnregister), um_on_free, {0, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuMemFreeAsync), um_on_free, {0, UM_N, UM_N, UM_N}, UM_W(cuMemFreeAsync, hStream), 0, 0},
    {UM_ID(cuMemFreeAsync_ptsz),
     um_on_free,
     {0, UM_N, UM_N, UM_N},
     UM_W(cuMemFreeAsync, hStream),
     UM_PT,
     0},
    {UM_ID(cuMemUnmap), um_on_unmap, {0, 1, UM_N, UM_N}, UM_N, 0, 0},

    /* copies: to, from, bytes */
    UM_COPY3(cuMemcpy, dst, src, 0),
    UM_COPY3(cuMemcpy_ptds, dst, src, UM_PT),
    UM_COPY3S(cuMemcpyAsync, dst, src, 0),
    UM_COPY3S(cuMemcpyAsync_ptsz, dst, src, UM_PT),
    UM_COPY3(cuMemcpyHtoD_v2, dstDevice, srcHost, UM_HS),
    UM_COPY3(cuMemcpyHtoD_v2_ptds, dstDevice, srcHost, UM_HS | UM_PT),
    UM_COPY3S(cuMemcpyHtoDAsync_v2, dstDevice, srcHost, UM_HS),
    UM_COPY3S(cuMemcpyHtoDAsync_v2_ptsz, dstDevice, srcHost, UM_HS | UM_PT),
    UM_COPY3(cuMemcpyDtoH_v2, dstHost, srcDevice, UM_HD),
    UM_COPY3(cuMemcpyDtoH_v2_ptds, dstHost, srcDevice, UM_HD | UM_PT),
    UM_COPY3S(cuMemcpyDtoHAsync_v2, dstHost, srcDevice, UM_HD),
    UM_COPY3S(cuMemcpyDtoHAsync_v2_ptsz, dstHost, srcDevice, UM_HD | UM_PT),
    UM_COPY3(cuMemcpyDtoD_v2, dstDevice, srcDevice, 0),
    UM_COPY3(cuMemcpyDtoD_v2_ptds, dstDevice, srcDevice, UM_PT),
    UM_COPY3S(cuMemcpyDtoDAsync_v2, dstDevice, srcDevice, 0),
    UM_COPY3S(cuMemcpyDtoDAsync_v2_ptsz, dstDevice, srcDevice, UM_PT),
    UM_COPY3(cuMemcpyPeer, dstDevice, srcDevice, 0),
    UM_COPY3(cuMemcpyPeer_ptds, dstDevice, srcDevice, UM_PT),
    UM_COPY3S(cuMemcpyPeerAsync, dstDevice, srcDevice, 0),
    UM_COPY3S(cuMemcpyPeerAsync_ptsz, dstDevice, srcDevice, UM_PT),
    UM_COPY_DTOA(cuMemcpyDtoA_v2, srcDevice, 0),
    UM_COPY_DTOA(cuMemcpyDtoA_v2_ptds, srcDevice, UM_PT),
    UM_COPY_ATOD(cuMemcpyAtoD_v2, dstDevice, 0),
    UM_COPY_ATOD(cuMemcpyAtoD_v2_ptds, dstDevice, UM_PT),
    UM_COPY_DTOA(cuMemcpyHtoA_v2, srcHost, UM_HS),
    UM_COPY_DTOA(cuMemcpyHtoA_v2_ptds, srcHost, UM_HS | UM_PT),
    UM_COPY_ATOD(cuMemcpyAtoH_v2, dstHost, UM_HD),
    UM_COPY_ATOD(cuMemcpyAtoH_v2_ptds, dstHost, UM_HD | UM_PT),
    UM_COPY_DTOAS(cuMemcpyHtoAAsync_v2, srcHost, UM_HS),
    UM_COPY_DTOAS(cuMemcpyHtoAAsync_v2_ptsz, srcHost, UM_HS | UM_PT),
    UM_COPY_ATODS(cuMemcpyAtoHAsync_v2, dstHost, UM_HD),
    UM_COPY_ATODS(cuMemcpyAtoHAsync_v2_ptsz, dstHost, UM_HD | UM_PT),
    {UM_ID(cuMemcpyAtoA_v2),
     um_on_copy,
     {UM_N, UM_N, UM_W(cuMemcpyAtoA_v2, ByteCount), UM_N},
     UM_N,
     0,
     0},
    {UM_ID(cuMemcpyAtoA_v2_ptds),
     um_on_copy,
     {UM_N, UM_N, UM_W(cuMemcpyAtoA_v2, ByteCount), UM_N},
     UM_N,
     UM_PT,
     0},
    UM_COPYND(cuMemcpy2D_v2, um_on_copy_2d, 0),
    UM_COPYND(cuMemcpy2D_v2_ptds, um_on_copy_2d, UM_PT),
    UM_COPYND(cuMemcpy2DUnaligned_v2, um_on_copy_2d, 0),
    UM_COPYND(cuMemcpy2DUnaligned_v2_ptds, um_on_copy_2d, UM_PT),
    UM_COPYNDS(cuMemcpy2DAsync_v2, um_on_copy_2d, 0),
    UM_COPYNDS(cuMemcpy2DAsync_v2_ptsz, um_on_copy_2d, UM_PT),
    UM_COPYND(cuMemcpy3D_v2, um_on_copy_3d, 0),
    UM_COPYND(cuMemcpy3D_v2_ptds, um_on_copy_3d, UM_PT),
    UM_COPYNDS(cuMemcpy3DAsync_v2, um_on_copy_3d, 0),
    UM_COPYNDS(cuMemcpy3DAsync_v2_ptsz, um_on_copy_3d, UM_PT),
    UM_COPYND(cuMemcpy3DPeer, um_on_copy_3d, 0),
    UM_COPYND(cuMemcpy3DPeer_ptds, um_on_copy_3d, UM_PT),
    UM_COPYNDS(cuMemcpy3DPeerAsync, um_on_copy_3d, 0),
    UM_COPYNDS(cuMemcpy3DPeerAsync_ptsz, um_on_copy_3d, UM_PT),
    {776 /* cuMemcpyBatchAsync */, um_on_copy_batch, {0, 1, 2, 3}, 8, UM_CALL_ASYNC, 0},
    {777, um_on_copy_batch, {0, 1, 2, 3}, 8, UM_CALL_ASYNC | UM_PT, 0},
    {796 /* cuMemcpyBatchAsync_v2 */, um_on_copy_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC, 0},
    {797, um_on_copy_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC | UM_PT, 0},

    /* sets */
    UM_SET(cuMemsetD8_v2, uc, 1, 0),
    UM_SET(cuMemsetD8_v2_ptds, uc, 1, UM_PT),
    UM_SET(cuMemsetD16_v2, us, 2, 0),
    UM_SET(cuMemsetD16_v2_ptds, us, 2, UM_PT),
    UM_SET(cuMemsetD32_v2, ui, 4, 0),
    UM_SET(cuMemsetD32_v2_ptds, ui, 4, UM_PT),
    UM_SETS(cuMemsetD8Async, uc, 1, 0),
    UM_SETS(cuMemsetD8Async_ptsz, uc, 1, UM_PT),
    UM_SETS(cuMemsetD16Async, us, 2, 0),
    UM_SETS(cuMemsetD16Async_ptsz, us, 2, UM_PT),
    UM_SETS(cuMemsetD32Async, ui, 4, 0),
    UM_SETS(cuMemsetD32Async_ptsz, ui, 4, UM_PT),
    UM_SET2(cuMemsetD2D8_v2, uc, 1, 0),
    UM_SET2(cuMemsetD2D8_v2_ptds, uc, 1, UM_PT),
    UM_SET2(cuMemsetD2D16_v2, us, 2, 0),
    UM_SET2(cuMemsetD2D16_v2_ptds, us, 2, UM_PT),
    UM_SET2(cuMemsetD2D32_v2, ui, 4, 0),
    UM_SET2(cuMemsetD2D32_v2_ptds, ui, 4, UM_PT),
    UM_SET2S(cuMemsetD2D8Async, uc, 1, 0),
    UM_SET2S(cuMemsetD2D8Async_ptsz, uc, 1, UM_PT),
    UM_SET2S(cuMemsetD2D16Async, us, 2, 0),
    UM_SET2S(cuMemsetD2D16Async_ptsz, us, 2, UM_PT),
    UM_SET2S(cuMemsetD2D32Async, ui, 4, 0),
    UM_SET2S(cuMemsetD2D32Async_ptsz, ui, 4, UM_PT),

    /* the program's own hints */
    {467 /* cuMemPrefetchAsync */, um_on_prefetch, {0, 1, 2, UM_N}, 3, UM_CALL_ASYNC, 0},
    {468, um_on_prefetch, {0, 1, 2, UM_N}, 3, UM_CALL_ASYNC | UM_PT, 0},
    {716 /* cuMemPrefetchAsync_v2 */, um_on_prefetch, {0, 1, 2, UM_N}, 4, UM_CALL_ASYNC, 1},
    {717, um_on_prefetch, {0, 1, 2, UM_N}, 4, UM_CALL_ASYNC | UM_PT, 1},
    {457 /* cuMemAdvise */, um_on_advise, {0, 1, 2, UM_N}, UM_N, 0, 0},
    {715 /* cuMemAdvise_v2 */, um_on_advise, {0, 1, 2, 3}, UM_N, 0, 1},
    {784 /* cuMemPrefetchBatchAsync */, um_on_prefetch_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC, 2},
    {785, um_on_prefetch_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC | UM_PT, 2},
    {789 /* cuMemDiscardBatchAsync */, um_on_prefetch_batch, {0, 1, 2, UM_N}, 4, UM_CALL_ASYNC, 1},
    {790, um_on_prefetch_batch, {0, 1, 2, UM_N}, 4, UM_CALL_ASYNC | UM_PT, 1},
    {791 /* cuMemDiscardAndPrefetchBatchAsync */,
     um_on_prefetch_batch,
     {0, 1, 2, 3},
     7,
     UM_CALL_ASYNC,
     3},
    {792, um_on_prefetch_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC | UM_PT, 3},

    /* waits */
    {UM_ID(cuCtxSynchronize), um_on_sync, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, UM_SYNC_DEVICE},
    {800 /* cuCtxSynchronize_v2 */, um_on_sync, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, UM_SYNC_DEVICE},
    {UM_ID(cuStreamSynchronize), um_on_sync, {UM_N, UM_N, UM_N, UM_N}, 0, 0, UM_SYNC_STREAM},
    {UM_ID(cuStreamSynchronize_ptsz),
     um_on_sync,
     {UM_N, UM_N, UM_N, UM_N},
     0,
     UM_PT,
     UM_SYNC_STREAM},
    {UM_ID(cuEventSynchronize), um_on_sync, {UM_N, UM_N, UM_N, UM_N}, 0, 0, UM_SYNC_EVENT},

    /* contexts */
    {UM_ID(cuCtxCreate_v2), um_on_context_ready, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuCtxCreate_v3), um_on_context_ready, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {757 /* cuCtxCreate_v4 */, um_on_context_ready, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuDevicePrimaryCtxRetain), um_on_context_ready, {UM_N, 1, UM_N, UM_N}, UM_N, 0, 1},
    {UM_ID(cuCtxDestroy_v2), um_on_context_going, {0, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuCtxDestroy), um_on_context_going, {0, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuDevicePrimaryCtxReset), um_on_primary_going, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 1},
    {UM_ID(cuDevicePrimaryCtxReset_v2), um_on_primary_going, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 1},
    {UM_ID(cuDevicePrimaryCtxRelease), um_on_primary_going, {UM_N, UM_N, UM_N, UM_N}, UM_N, 0, 0},
    {UM_ID(cuDevicePrimaryCtxRelease_v2),
     um_on_primary_going,
     {UM_N, UM_N, UM_N, UM_N},
     UM_N,
     0,
     0},
};
#define UM_CALLS (sizeof(um_calls) / sizeof(*um_calls))

/* By id; filled before the first callback. */
#define UM_MAX_ID 1024
static const um_call_t *um_call_by_id[UM_MAX_ID];

const um_call_t *um_call_find(uint32_t id)
{
    for (size_t i = 0; i < UM_CALLS; i++)
        if (um_calls[i].id == id)
            return &um_calls[i];
    return NULL;
}

size_t um_call_count(void)
{
    return UM_CALLS;
}

/* ---- waits, captures, contexts --------------------------------------------------------------- */

static void um_on_sync(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_entering(info) && !(call->what == UM_SYNC_EVENT && um_result(info) != CUDA_SUCCESS))
        um_live.sync = info->correlationId;
    if (!um_live.record && !um_live_managed())
        return;
    um_event_t event = um_live_event(UM_EV_SYNC);
    event.u.sync = (um_ev_sync_t){
        .sync = info->correlationId,
        .kind = call->what,
        .exit = !um_entering(info),
        .context = info->contextUid,
        .stream = um_call_stream(info, call),
    };
    um_live_post(&event, event.u.sync.exit ? um_live.runtime->hints_pending != 0
                                           : um_live.runtime->waiting);
}

/* what: 0 a capture begins, 1 it ends. */
static void um_on_capture(const CUpti_CallbackData *info, const um_call_t *call)
{
    bool ends = call->what;

    if (um_entering(info)) {
        if (!ends)
            um_live.capturing = true;
        return;
    }
    if (um_result(info) == CUDA_SUCCESS ||
        (ends && um_result(info) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED))
        um_deep_capture(!ends);
}

/* How often a device's primary context is held, as far as was seen: less than in truth after a late
 * start. Libraries hold it and let go all the time, and only the last one's going means anything. */
#define UM_DEVICES 64
static _Atomic int32_t um_holders[UM_DEVICES];

/* Only here, outside the driver's own locks, can records be switched on. */
static void um_on_context_ready(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (um_entering(info) || um_result(info) != CUDA_SUCCESS)
        return;
    uint32_t device = (uint32_t)um_word(info, call->word[1]);
    if (call->what && device < UM_DEVICES)
        um_holders[device]++;
    um_backend_tell_devices();
    um_activity_context();
}

static void um_post_context(uint32_t context, int32_t device, um_context_change_t change)
{
    um_event_t event = um_live_event(UM_EV_CONTEXT);

    event.u.context = (um_ev_context_t){context, device, change};
    um_live_post(&event, false);
}

static void um_on_context_going(const CUpti_CallbackData *info, const um_call_t *call)
{
    uint32_t context = 0;
    CUcontext handle = (CUcontext)(uintptr_t)um_word(info, call->word[0]);

    if (!um_entering(info)) {
        um_memory_sweep();
        return;
    }
    if (handle && um_live.cupti->context_id &&
        um_live.cupti->context_id(handle, &context) == CUPTI_SUCCESS)
        um_deep_context_gone(context);
    um_runtime_context_going(um_live.runtime, context);
}

/* The device's primary context is the one of this thread as a rule; id 0 stands for all of them. */
static void um_on_primary_going(const CUpti_CallbackData *info, const um_call_t *call)
{
    uint32_t device = *(const uint32_t *)info->functionParams; /* all there is: half a word */
    _Atomic int32_t *holders = device < UM_DEVICES ? &um_holders[device] : NULL;

    if (!um_entering(info)) {
        if (!holders || call->what || *holders <= 0)
            um_memory_sweep();
        return;
    }
    if (call->what)
        um_post_context(info->contextUid, (int32_t)device, UM_CONTEXT_RESET);
    else if (holders && atomic_fetch_sub(holders, 1) > 1)
        return;
    if (holders)
        *holders = 0;
    um_deep_context_gone(0);
    um_runtime_context_going(um_live.runtime, 0);
}

static void um_on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
    const CUpti_ModuleResourceData *module = data->resourceDescriptor;
    uint32_t context = 0;

    switch (id) {
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
        if (um_live.cupti->context_id)
            um_live.cupti->context_id(data->context, &context);
        um_cuda_context_is(context,
                           id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED ? data->context : NULL);
        um_post_context(context, UM_DEVICE_NONE,
                        id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED ? UM_CONTEXT_CREATED
                                                                  : UM_CONTEXT_DESTROYED);
        break;
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
        if (module)
            um_modules_loaded(module->moduleId, module->pCubin, module->cubinSize);
        break;
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
        if (module)
            um_modules_unloading(module->moduleId);
        break;
    default:
        break;
    }
}

/* ---- CUPTI's way in --------------------------------------------------------------------------- */

static void CUPTIAPI um_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
    int saved = errno;

    (void)ctx;
    if (!um_live.on || um_cuda_own)
        return;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        const um_call_t *call = id < UM_MAX_ID ? um_call_by_id[id] : NULL;
        const CUpti_CallbackData *info = data;
        if (um_live.want_context && info->context)
            um_activity_kick(info->context);
        if (call)
            call->fn(info, call);
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        um_on_resource(id, data);
    }
    errno = saved;
}

/* Says who holds CUPTI, where this CUPTI can tell. */
static CUptiResult um_subscribe(char *other, size_t other_bytes)
{
    const um_cupti_t *cupti = um_live.cupti;

    *other = '\0';
    if (!cupti->subscribe_v2)
        return cupti->subscribe(&um_live.subscriber, um_callback, NULL);
    um_subscriber_params_t params = {.struct_size = sizeof(params),
                                     .name = "umrt",
                                     .old_name = other,
                                     .old_name_bytes = other_bytes};
    return cupti->subscribe_v2(&um_live.subscriber, um_callback, NULL, &params);
}

/* The handlers with nothing to do before there is managed memory: what cannot fault is neither hinted
 * nor recorded. Transfers and waits are in a trace from its start all the same. Even a callback that
 * returns at once would cost each launch something (H200: 0.2 us and more). */
static const struct {
    um_call_fn fn;
    bool recorded_before;
} um_later[] = {
    {um_on_launch, false},        {um_on_launch_ex, false},    {um_on_launch_multi, false},
    {um_on_launch_legacy, false}, {um_on_graph_launch, false}, {um_on_sync, true},
    {um_on_copy, true},           {um_on_copy_2d, true},       {um_on_copy_3d, true},
    {um_on_copy_batch, true},     {um_on_set, true},           {um_on_set_2d, true},
};

static bool um_is_later(const um_call_t *call)
{
    for (size_t i = 0; i < sizeof(um_later) / sizeof(*um_later); i++)
        if (um_later[i].fn == call->fn)
            return !(um_later[i].recorded_before && um_live.record);
    return false;
}

/* CUPTI leaves it to its clients that these calls come one at a time. */
static pthread_mutex_t um_enabling = PTHREAD_MUTEX_INITIALIZER;

/* The last refusal, or success. Under um_enabling. A call that this CUPTI does not know yet is refused
 * as invalid and then never comes, which is none; every CUPTI knows the plain launch. */
static CUptiResult um_enable_calls(bool later)
{
    CUptiResult refused = CUPTI_SUCCESS;

    for (size_t i = 0; i < UM_CALLS; i++) {
        if (um_is_later(&um_calls[i]) != later)
            continue;
        CUptiResult result =
            um_live.cupti->enable_callback(1, um_live.subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                           um_calls[i].id);
        if (result != CUPTI_SUCCESS &&
            (result != CUPTI_ERROR_INVALID_PARAMETER || um_calls[i].id == UM_ID(cuLaunchKernel)))
            refused = result;
    }
    return refused;
}

static void um_say_refused(CUptiResult result)
{
    if (result == CUPTI_SUCCESS)
        return;
    um_log_once(UM_LOG_WARN, "not all launches and allocations are seen: %s (CUPTI error %d)",
                um_cupti_sentence(result), (int)result);
    if (um_live.record)
        um_records_loss(0, "cupti refused callbacks");
}

void um_callbacks_managed(void)
{
    static _Atomic bool enabled;
    CUptiResult result = CUPTI_SUCCESS;

    if (enabled)
        return;
    pthread_mutex_lock(&um_enabling);
    if (!enabled)
        result = um_enable_calls(true);
    enabled = true;
    pthread_mutex_unlock(&um_enabling);
    um_say_refused(result);
}

um_status_t um_callbacks_subscribe(char *reason, size_t reason_bytes)
{
    static const CUpti_CallbackId resources[] = {CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
                                                 CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
                                                 CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                                 CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING};
    const um_cupti_t *cupti = um_live.cupti;
    char other[128];

    for (size_t i = 0; i < UM_CALLS; i++)
        if (um_calls[i].id < UM_MAX_ID)
            um_call_by_id[um_calls[i].id] = &um_calls[i];

    CUptiResult result = um_subscribe(other, sizeof(other));
    if (result != CUPTI_SUCCESS) {
        bool named = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && *other;
        snprintf(reason, reason_bytes, "%s%s%s", um_cupti_sentence(result), named ? ": " : "",
                 named ? other : "");
        return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? UM_ERR_BUSY
                                                                        : UM_ERR_UNSUPPORTED;
    }
    um_live.on = true;
    /* The program's threads may be calling already, and one of them allocating its first managed
     * memory. */
    pthread_mutex_lock(&um_enabling);
    result = um_enable_calls(false);
    for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++)
        cupti->enable_callback(1, um_live.subscriber, CUPTI_CB_DOMAIN_RESOURCE, resources[i]);
    pthread_mutex_unlock(&um_enabling);
    um_say_refused(result);
    return UM_OK;
}

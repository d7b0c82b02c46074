/*
 * calls.c - the driver calls that are followed: for each its handler and where its parameters are.
 *
 * CUPTI hands parameters over as a struct in argument order, whose layout never changes under one id; UM_W
 * takes the places from the headers, so the compiler checks them. Calls newer than CUDA 11.8 are listed by
 * number and word, and checked in tests/unit/cupti_driver.c where the headers have them.
 */
#include "live.h"

#undef cuMemcpy
#undef cuMemcpyAsync

#define UM_W(api, field) ((uint8_t)(offsetof(api##_params, field) / 8))
#define UM_ID(api)       CUPTI_DRIVER_TRACE_CBID_##api
#define UM_N             UM_NO_WORD
#define UM_NOWHERE                                                                                 \
    {                                                                                              \
        UM_N, UM_N, UM_N, UM_N                                                                     \
    }
#define UM_AT(a)                                                                                   \
    {                                                                                              \
        a, UM_N, UM_N, UM_N                                                                        \
    }
#define UM_AT2(a, b)                                                                               \
    {                                                                                              \
        a, b, UM_N, UM_N                                                                           \
    }
#define UM_AT3(a, b, c)                                                                            \
    {                                                                                              \
        a, b, c, UM_N                                                                              \
    }

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

const um_call_t um_calls[] = {
    /* launches */
    {UM_ID(cuLaunchKernel), um_on_launch, UM_AT(UM_W(cuLaunchKernel, extra)),
     UM_W(cuLaunchKernel, hStream), 0, 0},
    {UM_ID(cuLaunchKernel_ptsz), um_on_launch, UM_AT(UM_W(cuLaunchKernel, extra)),
     UM_W(cuLaunchKernel, hStream), UM_PT, 0},
    {UM_ID(cuLaunchCooperativeKernel), um_on_launch, UM_NOWHERE,
     UM_W(cuLaunchCooperativeKernel, hStream), 0, UM_LAUNCH_COOPERATIVE},
    {UM_ID(cuLaunchCooperativeKernel_ptsz), um_on_launch, UM_NOWHERE,
     UM_W(cuLaunchCooperativeKernel, hStream), UM_PT, UM_LAUNCH_COOPERATIVE},
    {UM_ID(cuLaunchKernelEx), um_on_launch_ex, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuLaunchKernelEx_ptsz), um_on_launch_ex, UM_NOWHERE, UM_N, UM_PT, 0},
    {UM_ID(cuLaunchCooperativeKernelMultiDevice), um_on_launch_multi, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuLaunch), um_on_launch_legacy, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuLaunchGrid), um_on_launch_legacy, UM_NOWHERE, UM_N, 0, 1},
    {UM_ID(cuLaunchGridAsync), um_on_launch_legacy, UM_NOWHERE, UM_W(cuLaunchGridAsync, hStream), 0,
     1},
    {UM_ID(cuGraphLaunch), um_on_graph_launch, UM_NOWHERE, 1, 0, 0},
    {UM_ID(cuGraphLaunch_ptsz), um_on_graph_launch, UM_NOWHERE, 1, UM_PT, 0},

    /* graphs: where the executable graph is put, the graph */
    {712 /* cuGraphAddNode */, um_on_graph_add_node, UM_AT2(0, 4), UM_N, 0, 0},
    {723 /* cuGraphAddNode_v2 */, um_on_graph_add_node, UM_AT2(0, 5), UM_N, 0, 0},
    {UM_ID(cuGraphInstantiate), um_on_graph_instantiate, UM_AT2(0, 1), UM_N, 0, 0},
    {UM_ID(cuGraphInstantiate_v2), um_on_graph_instantiate, UM_AT2(0, 1), UM_N, 0, 0},
    {UM_ID(cuGraphInstantiateWithFlags), um_on_graph_instantiate, UM_AT2(0, 1), UM_N, 0, 0},
    {656 /* WithParams */, um_on_graph_instantiate, UM_AT2(0, 1), UM_N, 0, 0},
    {657 /* WithParams_ptsz */, um_on_graph_instantiate, UM_AT2(0, 1), UM_N, 0, 0},
    {UM_ID(cuGraphExecUpdate), um_on_graph_update, UM_NOWHERE, UM_N, 0, 0},
    {696 /* cuGraphExecUpdate_v2 */, um_on_graph_update, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuGraphExecKernelNodeSetParams), um_on_graph_set_kernel, UM_NOWHERE, UM_N, 0, 1},
    {692 /* cuGraphExecKernelNodeSetParams_v2 */, um_on_graph_set_kernel, UM_NOWHERE, UM_N, 0, 2},
    {UM_ID(cuGraphExecDestroy), um_on_graph_destroy, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture), um_on_capture, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture_ptsz), um_on_capture, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture_v2), um_on_capture, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuStreamBeginCapture_v2_ptsz), um_on_capture, UM_NOWHERE, UM_N, 0, 0},
    {720 /* cuStreamBeginCaptureToGraph */, um_on_capture, UM_NOWHERE, UM_N, 0, 0},
    {721 /* ..._ptsz */, um_on_capture, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuStreamEndCapture), um_on_capture, UM_NOWHERE, UM_N, 0, 1},
    {UM_ID(cuStreamEndCapture_ptsz), um_on_capture, UM_NOWHERE, UM_N, 0, 1},

    /* allocations: address, bytes, flags, rows */
    {UM_ID(cuMemAllocManaged), um_on_alloc, UM_AT3(0, 1, 2), UM_N, 0, UM_ALLOC_MANAGED},
    {UM_ID(cuMemAlloc_v2), um_on_alloc, UM_AT2(0, 1), UM_N, 0, UM_ALLOC_DEVICE},
    {UM_ID(cuMemAllocPitch_v2),
     um_on_alloc,
     {0, 1, UM_N, UM_W(cuMemAllocPitch_v2, Height)},
     UM_N,
     0,
     UM_ALLOC_PITCH},
    {UM_ID(cuMemAllocHost_v2), um_on_alloc, UM_AT2(0, 1), UM_N, 0, UM_ALLOC_PINNED},
    {UM_ID(cuMemHostAlloc), um_on_alloc, UM_AT3(0, 1, 2), UM_N, 0, UM_ALLOC_HOST},
    {271 /* cuMemHostAlloc_v2, which 13.5 no longer lists */, um_on_alloc, UM_AT3(0, 1, 2), UM_N, 0,
     UM_ALLOC_HOST},
    {UM_ID(cuMemHostRegister), um_on_alloc, UM_AT3(0, 1, 2), UM_N, 0, UM_ALLOC_REGISTER},
    {UM_ID(cuMemHostRegister_v2), um_on_alloc, UM_AT3(0, 1, 2), UM_N, 0, UM_ALLOC_REGISTER},
    {UM_ID(cuMemAllocAsync), um_on_alloc, UM_AT2(0, 1), UM_W(cuMemAllocAsync, hStream), 0,
     UM_ALLOC_POOL},
    {UM_ID(cuMemAllocAsync_ptsz), um_on_alloc, UM_AT2(0, 1), UM_W(cuMemAllocAsync, hStream), UM_PT,
     UM_ALLOC_POOL},
    {UM_ID(cuMemAllocFromPoolAsync), um_on_alloc, UM_AT2(0, 1),
     UM_W(cuMemAllocFromPoolAsync, hStream), 0, UM_ALLOC_POOL},
    {UM_ID(cuMemAllocFromPoolAsync_ptsz), um_on_alloc, UM_AT2(0, 1),
     UM_W(cuMemAllocFromPoolAsync, hStream), UM_PT, UM_ALLOC_POOL},
    {UM_ID(cuMemMap), um_on_alloc, UM_AT2(0, 1), UM_N, 0, UM_ALLOC_MAP},
    {UM_ID(cuModuleGetGlobal_v2), um_on_alloc, UM_AT2(0, 1), UM_N, 0, UM_ALLOC_STATIC},
    {684 /* cuLibraryGetGlobal */, um_on_alloc, UM_AT2(0, 1), UM_N, 0, UM_ALLOC_STATIC},
    {685 /* cuLibraryGetManaged */, um_on_alloc, UM_AT2(0, 1), UM_N, 0, UM_ALLOC_STATIC},
    {UM_ID(cuMemFree_v2), um_on_free, UM_AT(0), UM_N, 0, 0},
    {UM_ID(cuMemFreeHost), um_on_free, UM_AT(0), UM_N, 0, 0},
    {UM_ID(cuMemHostUnregister), um_on_free, UM_AT(0), UM_N, 0, 0},
    {UM_ID(cuMemFreeAsync), um_on_free, UM_AT(0), UM_W(cuMemFreeAsync, hStream), UM_CALL_ASYNC, 0},
    {UM_ID(cuMemFreeAsync_ptsz), um_on_free, UM_AT(0), UM_W(cuMemFreeAsync, hStream),
     UM_PT | UM_CALL_ASYNC, 0},
    {UM_ID(cuMemUnmap), um_on_unmap, UM_AT2(0, 1), UM_N, 0, 0},

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
    {467 /* cuMemPrefetchAsync */, um_on_prefetch, UM_AT3(0, 1, 2), 3, UM_CALL_ASYNC, 0},
    {468, um_on_prefetch, UM_AT3(0, 1, 2), 3, UM_CALL_ASYNC | UM_PT, 0},
    {716 /* cuMemPrefetchAsync_v2 */, um_on_prefetch, UM_AT3(0, 1, 2), 4, UM_CALL_ASYNC, 1},
    {717, um_on_prefetch, UM_AT3(0, 1, 2), 4, UM_CALL_ASYNC | UM_PT, 1},
    {457 /* cuMemAdvise */, um_on_advise, UM_AT3(0, 1, 2), UM_N, 0, 0},
    {715 /* cuMemAdvise_v2 */, um_on_advise, {0, 1, 2, 3}, UM_N, 0, 1},
    {784 /* cuMemPrefetchBatchAsync */, um_on_prefetch_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC, 2},
    {785, um_on_prefetch_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC | UM_PT, 2},
    {789 /* cuMemDiscardBatchAsync */, um_on_prefetch_batch, UM_AT3(0, 1, 2), 4, UM_CALL_ASYNC, 1},
    {790, um_on_prefetch_batch, UM_AT3(0, 1, 2), 4, UM_CALL_ASYNC | UM_PT, 1},
    {791 /* cuMemDiscardAndPrefetchBatchAsync */,
     um_on_prefetch_batch,
     {0, 1, 2, 3},
     7,
     UM_CALL_ASYNC,
     3},
    {792, um_on_prefetch_batch, {0, 1, 2, 3}, 7, UM_CALL_ASYNC | UM_PT, 3},

    /* waits */
    {UM_ID(cuCtxSynchronize), um_on_sync, UM_NOWHERE, UM_N, 0, UM_SYNC_DEVICE},
    {800 /* cuCtxSynchronize_v2 */, um_on_sync, UM_NOWHERE, UM_N, 0, UM_SYNC_DEVICE},
    {UM_ID(cuStreamSynchronize), um_on_sync, UM_NOWHERE, 0, 0, UM_SYNC_STREAM},
    {UM_ID(cuStreamSynchronize_ptsz), um_on_sync, UM_NOWHERE, 0, UM_PT, UM_SYNC_STREAM},
    {UM_ID(cuEventSynchronize), um_on_sync, UM_NOWHERE, 0, 0, UM_SYNC_EVENT},

    /* code */
    {678 /* cuLibraryLoadData */, um_on_library, UM_AT(0), UM_N, 0, 0},
    {679 /* cuLibraryLoadFromFile */, um_on_library, UM_AT(0), UM_N, 0, 0},

    /* contexts */
    {UM_ID(cuCtxCreate_v2), um_on_context_ready, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuCtxCreate_v3), um_on_context_ready, UM_NOWHERE, UM_N, 0, 0},
    {757 /* cuCtxCreate_v4 */, um_on_context_ready, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuDevicePrimaryCtxRetain), um_on_context_ready, {UM_N, 1, UM_N, UM_N}, UM_N, 0, 1},
    {UM_ID(cuCtxDestroy_v2), um_on_context_going, UM_AT(0), UM_N, 0, 0},
    {UM_ID(cuCtxDestroy), um_on_context_going, UM_AT(0), UM_N, 0, 0},
    {UM_ID(cuDevicePrimaryCtxReset), um_on_primary_going, UM_NOWHERE, UM_N, 0, 1},
    {UM_ID(cuDevicePrimaryCtxReset_v2), um_on_primary_going, UM_NOWHERE, UM_N, 0, 1},
    {UM_ID(cuDevicePrimaryCtxRelease), um_on_primary_going, UM_NOWHERE, UM_N, 0, 0},
    {UM_ID(cuDevicePrimaryCtxRelease_v2), um_on_primary_going, UM_NOWHERE, UM_N, 0, 0},
};
const size_t um_n_calls = sizeof(um_calls) / sizeof(*um_calls);

const um_call_t *um_call_find(uint32_t id)
{
    for (size_t i = 0; i < um_n_calls; i++)
        if (um_calls[i].id == id)
            return &um_calls[i];
    return NULL;
}

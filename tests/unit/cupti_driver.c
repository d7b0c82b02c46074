/* Finding symbols, and what refusals mean. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/driver.h"
#include "cupti/live.h"

/* Names that the headers redirect, and that are meant as they stand here. */
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#undef cuGraphAddNode
#undef cuMemcpyBatchAsync

static void path_of(const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/tests/fake/%s", getenv("UM_BUILDDIR"), name);
}

Test(driver, what_a_driver_lacks_is_null_and_the_rest_works)
{
    char path[1024], reason[256] = "";
    um_cuda_t cuda;

    path_of("libcuda.so.1", path, sizeof(path));
    cr_assert_eq(um_cuda_open(path, &cuda, reason, sizeof(reason)), UM_OK, "%s", reason);
    cr_assert_eq(cuda.version, 13000);
    cr_assert(cuda.func_param);
    cr_assert(cuda.pointer_attribute);
    cr_assert_null(cuda.mem_prefetch, "the fake has no prefetch in either form");
    cr_assert_null(cuda.mem_prefetch_v2);
}

Test(driver, a_missing_required_symbol_is_named_and_leaves_nothing_behind)
{
    char path[1024], reason[256] = "";
    um_cuda_t cuda;
    um_cupti_t cupti;

    memset(&cuda, 0xff, sizeof(cuda));
    path_of("libempty.so", path, sizeof(path));
    cr_assert_eq(um_cuda_open(path, &cuda, reason, sizeof(reason)), UM_ERR_UNSUPPORTED);
    cr_assert_str_eq(reason, "the library lacks cuInit");
    cr_assert_null(cuda.library);
    cr_assert_null(cuda.init);
    cr_assert_eq(um_cupti_open(path, &cupti, reason, sizeof(reason)), UM_ERR_UNSUPPORTED);
    cr_assert_str_eq(reason, "the library lacks cuptiGetVersion");
    cr_assert_null(cupti.subscribe);
}

Test(driver, a_missing_library_is_not_found)
{
    char reason[256] = "";
    um_cuda_t cuda;

    cr_assert_eq(um_cuda_open("/nonexistent/libcuda.so.1", &cuda, reason, sizeof(reason)),
                 UM_ERR_NOT_FOUND);
    cr_assert(strlen(reason) > 0);
}

Test(driver, each_refusal_has_a_sentence_of_its_own)
{
    static const int codes[] = {28, 29, 30, 31, 39};

    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++)
            cr_assert_str_neq(um_cupti_sentence((CUptiResult)codes[i]),
                              um_cupti_sentence((CUptiResult)codes[j]));
    cr_assert(strstr(um_cupti_sentence((CUptiResult)31), "MPS"));
    cr_assert(strstr(um_cupti_sentence((CUptiResult)30), "peer"));
    cr_assert(strstr(um_cupti_sentence((CUptiResult)39), "another profiler"));
}

/* ---- the table of calls ------------------------------------------------------------------------ */

Test(calls, no_id_is_listed_twice_and_each_has_a_handler)
{
    size_t n = 0;

    for (uint32_t id = 0; id < 1024; id++) {
        const um_call_t *call = um_call_find(id);
        if (!call)
            continue;
        cr_assert(call->fn, "%u", id);
        n++;
    }
    cr_assert_eq(n, um_n_calls, "an id is listed twice or is past the limit");
}

/* Calls younger than CUDA 11.8 are listed by number and word: checked where the headers know them. */
#define IS(api, number) cr_assert_eq(CUPTI_DRIVER_TRACE_CBID_##api, number)
#define WORD(api, number, index, field)                                                            \
    do {                                                                                           \
        IS(api, number);                                                                           \
        cr_assert_eq(um_call_find(number)->word[index], offsetof(api##_params, field) / 8);        \
    } while (0)
#define STREAM(api, number)                                                                        \
    cr_assert_eq(um_call_find(number)->stream, offsetof(api##_params, hStream) / 8)

Test(calls, numbers_and_words_are_those_of_the_headers)
{
#if CUDA_VERSION >= 13000
    WORD(cuMemPrefetchAsync, 467, 2, dstDevice);
    STREAM(cuMemPrefetchAsync, 467);
    IS(cuMemPrefetchAsync_ptsz, 468);
    WORD(cuMemPrefetchAsync_v2, 716, 2, location);
    STREAM(cuMemPrefetchAsync_v2, 716);
    IS(cuMemPrefetchAsync_v2_ptsz, 717);
    IS(cuMemAdvise, 457);
    IS(cuMemAdvise_v2, 715);
    cr_assert_eq(offsetof(cuMemAdvise_params, advice), 16);
    cr_assert_eq(offsetof(cuMemAdvise_params, device), 20);
    cr_assert_eq(offsetof(cuMemAdvise_v2_params, location), 20);
    WORD(cuMemPrefetchBatchAsync, 784, 3, prefetchLocs);
    STREAM(cuMemPrefetchBatchAsync, 784);
    IS(cuMemPrefetchBatchAsync_ptsz, 785);
    WORD(cuMemDiscardBatchAsync, 789, 2, count);
    STREAM(cuMemDiscardBatchAsync, 789);
    IS(cuMemDiscardBatchAsync_ptsz, 790);
    WORD(cuMemDiscardAndPrefetchBatchAsync, 791, 3, prefetchLocs);
    STREAM(cuMemDiscardAndPrefetchBatchAsync, 791);
    IS(cuMemDiscardAndPrefetchBatchAsync_ptsz, 792);
    WORD(cuMemcpyBatchAsync, 776, 3, count);
    STREAM(cuMemcpyBatchAsync, 776);
    WORD(cuMemcpyBatchAsync_v2, 796, 3, count);
    STREAM(cuMemcpyBatchAsync_v2, 796);
    WORD(cuGraphAddNode, 712, 1, nodeParams);
    WORD(cuGraphAddNode_v2, 723, 1, nodeParams);
    cr_assert_eq(offsetof(CUgraphNodeParams, conditional.size), 28);
    cr_assert_eq(offsetof(CUgraphNodeParams, conditional.phGraph_out), 32);
    IS(cuCtxSynchronize_v2, 800);
    IS(cuCtxCreate_v4, 757);
    WORD(cuLibraryGetManaged, 685, 1, bytes);
    WORD(cuLibraryGetGlobal, 684, 1, bytes);
    WORD(cuGraphInstantiateWithParams, 656, 1, hGraph);
    IS(cuGraphInstantiateWithParams_ptsz, 657);
    IS(cuGraphExecUpdate_v2, 696);
    IS(cuGraphExecKernelNodeSetParams_v2, 692);
    IS(cuStreamBeginCaptureToGraph, 720);
    IS(cuStreamBeginCaptureToGraph_ptsz, 721);
#else
    cr_skip_test("headers before CUDA 13.0");
#endif
}

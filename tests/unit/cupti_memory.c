/* Regions of every family, from allocation to the end of their context; what the program copies, sets and hints
 * in them. */
#include <criterion/criterion.h>

#include "cupti_program.h"

Test(live, every_family_becomes_a_region_of_its_kind)
{
    CUdeviceptr out = 0;
    void *host = NULL;
    size_t pitch = 512;
    void (*memory)(uint64_t, uint64_t, unsigned, unsigned);

    start(UM_MODE_RECORD);
    create_context();
    *(void **)&memory = CUDA_SYMBOL("fake_cuda_memory");
    out = 0x10000000;
    CALL(cuMemAlloc_v2, {&out, 100});
    out = 0x20000000;
    CALL(cuMemAllocPitch_v2, {&out, &pitch, 400, 10, 4});
    host = (void *)0x30000000;
    CALL(cuMemAllocHost_v2, {&host, 300});
    host = (void *)0x40000000;
    CALL(cuMemHostAlloc, {&host, 400, CU_MEMHOSTALLOC_DEVICEMAP});
    CALL(cuMemHostRegister_v2, {(void *)0x50000000, 500, CU_MEMHOSTREGISTER_DEVICEMAP});
    out = 0x60000000;
    CALL(cuMemAllocAsync, {&out, 600, (CUstream)6});
    out = 0x70000000;
    memory(0x70000000, 700, CU_MEMORYTYPE_DEVICE, 1);
    CALL(cuMemAllocFromPoolAsync, {&out, 700, NULL, (CUstream)7});
    CALL(cuMemMap, {0x80000000, 800, 0, 0, 0});
    static const struct {
        uint32_t family, flags;
        uint64_t bytes;
        int32_t device;
        uint64_t stream;
    } expected[] = {
        {UM_FAMILY_DEVICE, 0, 100, 0, 0},
        {UM_FAMILY_DEVICE, 0, 5120, 0, 0},
        {UM_FAMILY_PINNED, 0, 300, UM_DEVICE_HOST, 0},
        {UM_FAMILY_MAPPED, 0, 400, UM_DEVICE_HOST, 0},
        {UM_FAMILY_REGISTERED, UM_REGION_MAPPED, 500, UM_DEVICE_HOST, 0},
        {UM_FAMILY_POOL, UM_REGION_POOL | UM_REGION_ASYNC, 600, 0, 6},
        {UM_FAMILY_MANAGED, UM_REGION_POOL | UM_REGION_ASYNC, 700, UM_DEVICE_NONE, 7},
        {UM_FAMILY_VMM, 0, 800, 0, 0},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        const um_event_t *e = event_of(UM_EV_REGION_ALLOC, i);
        cr_assert(e, "allocation %zu", i);
        cr_assert_eq(e->u.region_alloc.addr, 0x10000000u * (i + 1));
        cr_assert_eq(e->u.region_alloc.family, expected[i].family, "allocation %zu", i);
        cr_assert_eq(e->u.region_alloc.flags, expected[i].flags, "allocation %zu", i);
        cr_assert_eq(e->u.region_alloc.bytes, expected[i].bytes, "allocation %zu", i);
        cr_assert_eq(e->u.region_alloc.device, expected[i].device, "allocation %zu", i);
        cr_assert_eq(e->u.region_alloc.stream, expected[i].stream, "allocation %zu", i);
    }
    CALL(cuMemFree_v2, {0x10000000});
    CALL(cuMemFreeHost, {(void *)0x30000000});
    CALL(cuMemHostUnregister, {(void *)0x50000000});
    CALL(cuMemFreeAsync, {0x60000000, (CUstream)6});
    CALL(cuMemUnmap, {0x80000000, 800});
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 5);
    cr_assert_eq(um_regions_count(runtime.regions, UM_FAMILY_UNKNOWN), 3);
}

Test(live, a_failed_allocation_is_no_region)
{
    start(UM_MODE_RECORD);
    create_context();
    result = CUDA_ERROR_OUT_OF_MEMORY;
    alloc_managed(A, 1 << 20);
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 0);
}

Test(live, an_address_that_comes_back_ends_the_region_whose_free_was_missed)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(A, 1 << 21);
    cr_assert_eq(event_of(UM_EV_REGION_FREE, 0)->u.region_free.region,
                 event_of(UM_EV_REGION_ALLOC, 0)->u.region_alloc.region);
    cr_assert_eq(um_regions_count(runtime.regions, UM_FAMILY_MANAGED), 1);
}

Test(live, a_primary_context_goes_with_the_last_who_holds_it)
{
    cuDevicePrimaryCtxRelease_v2_params release = {0};

    start(UM_MODE_RECORD);
    create_context();
    create_context();
    alloc_device(D, 4096); /* which the driver knows nothing of: it goes when anybody looks */
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2, &release, NULL);
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 0);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2, &release, NULL);
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 1);
    /* One more than was seen: a late start. */
    alloc_device(D, 4096);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2, &release, NULL);
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 2);
    create_context();
    create_context();
    alloc_device(D, 4096);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2, &release, NULL);
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 3);
}

Test(live, every_region_that_a_new_one_takes_the_place_of_is_told_as_gone)
{
    start(UM_MODE_RECORD);
    create_context();
    for (uint64_t i = 0; i < 600; i++)
        alloc_device(D + i * 8192, 4096);
    alloc_device(D, 600 * 8192 - 8192); /* their pool was destroyed, say; the last one stays */
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 599);
    cr_assert_eq(um_regions_count(runtime.regions, UM_FAMILY_UNKNOWN), 2);
    cr_assert_leq(event_of(UM_EV_REGION_FREE, 598)->time_ns,
                  event_of(UM_EV_REGION_ALLOC, 600)->time_ns);
}

Test(live, regions_of_a_destroyed_context_are_gone)
{
    void (*memory)(uint64_t, uint64_t, unsigned, unsigned);
    cuCtxDestroy_v2_params params = {(CUcontext)0x101};

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    *(void **)&memory = CUDA_SYMBOL("fake_cuda_memory");
    memory(B, 1 << 20, CU_MEMORYTYPE_DEVICE, 1); /* of another context */
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2, &params, NULL);
    cr_assert_eq(count_of(UM_EV_REGION_FREE), 1);
    cr_assert_eq(event_of(UM_EV_REGION_FREE, 0)->u.region_free.addr, A);
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, B, NULL);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.n_args, 2, "the rest goes on");
}

Test(live, a_managed_variable_is_found_when_its_address_is_asked_for)
{
    CUdeviceptr where = A;
    size_t bytes = 256;
    struct {
        CUdeviceptr *addr;
        size_t *bytes;
        void *library;
        const char *name;
    } params = {&where, &bytes, NULL, "counter"};
    void (*memory)(uint64_t, uint64_t, unsigned, unsigned);

    start(UM_MODE_RECORD);
    create_context();
    *(void **)&memory = CUDA_SYMBOL("fake_cuda_memory");
    driver_call(684, &params, NULL); /* a __device__ variable: the driver says it is not managed */
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 0);
    memory(A, 256, CU_MEMORYTYPE_DEVICE, 1);
    driver_call(685, &params, NULL);
    driver_call(685, &params, NULL);
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 1);
    const um_event_t *e = event_of(UM_EV_REGION_ALLOC, 0);
    cr_assert_eq(e->u.region_alloc.bytes, 256);
    cr_assert(e->u.region_alloc.flags & UM_REGION_STATIC);
}

/* ---- copies, sets, hints -------------------------------------------------------------------- */

Test(live, copies_name_both_ends)
{
    char host[64];

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_device(D, 1 << 20);
    CALL(cuMemcpyHtoD_v2, {D + 8, host, 64});
    CALL(cuMemcpyDtoDAsync_v2, {A, D, 128, (CUstream)3});
    const um_event_t *up = event_of(UM_EV_COPY, 0), *across = event_of(UM_EV_COPY, 1);
    cr_assert_eq(up->u.copy.bytes, 64);
    cr_assert_eq(up->u.copy.dst_addr, D + 8);
    cr_assert_eq(up->u.copy.src_memory, UM_MEMORY_PAGEABLE);
    cr_assert_eq(up->u.copy.dst_memory, UM_MEMORY_DEVICE);
    cr_assert_eq(up->u.copy.flags, 0);
    cr_assert_eq(across->u.copy.dst_memory, UM_MEMORY_MANAGED);
    cr_assert_eq(across->u.copy.flags, UM_TRANSFER_ASYNC);
    cr_assert_eq(across->u.copy.stream, 3);
    cr_assert_eq(count_of(UM_EV_SYNC), 2, "the blocking one is a wait, entered and left");
    cr_assert_eq(event_of(UM_EV_SYNC, 1)->u.sync.kind, UM_SYNC_COPY);
    cr_assert_eq(event_of(UM_EV_SYNC, 1)->u.sync.exit, 1);
}

Test(live, copies_in_two_and_three_dimensions_and_in_batches)
{
    char host[64];
    CUDA_MEMCPY2D two = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = host,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = A,
                         .WidthInBytes = 16,
                         .Height = 3};
    CUDA_MEMCPY3D three = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = A,
                           .WidthInBytes = 16,
                           .Height = 3,
                           .Depth = 2};
    CUdeviceptr dst[] = {A, A + 100}, src[] = {B, B + 100};
    size_t bytes[] = {10, 20};
    struct {
        void *dst, *src, *bytes;
        size_t n;
        void *attributes, *first;
        size_t n_attributes;
        CUstream stream;
    } batch = {dst, src, bytes, 2, NULL, NULL, 0, (CUstream)5}; /* cuMemcpyBatchAsync_v2 */

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    CALL(cuMemcpy2D_v2, {&two});
    CALL(cuMemcpy3DAsync_v2, {&three, (CUstream)4});
    driver_call(796, &batch, NULL);
    cr_assert_eq(event_of(UM_EV_COPY, 0)->u.copy.bytes, 48);
    cr_assert_eq(event_of(UM_EV_COPY, 0)->u.copy.src_memory, UM_MEMORY_PAGEABLE);
    cr_assert_eq(event_of(UM_EV_COPY, 1)->u.copy.bytes, 96);
    cr_assert_eq(event_of(UM_EV_COPY, 1)->u.copy.src_memory, UM_MEMORY_ARRAY);
    cr_assert_eq(event_of(UM_EV_COPY, 1)->u.copy.dst_memory, UM_MEMORY_MANAGED);
    cr_assert_eq(event_of(UM_EV_COPY, 3)->u.copy.bytes, 20);
    cr_assert_eq(event_of(UM_EV_COPY, 3)->u.copy.src_addr, B + 100);
    cr_assert_eq(event_of(UM_EV_COPY, 3)->u.copy.stream, 5);
}

/* After a launch that may be hinted: is there nothing left to catch up with once the call has begun? */
#define CAUGHT_UP_BY(expected, api, ...)                                                           \
    do {                                                                                           \
        api##_params p_ = __VA_ARGS__;                                                             \
        uint64_t data_ = 0;                                                                        \
        launch(1, A, B, NULL);                                                                     \
        cr_assert(um_live_is_behind(1));                                                           \
        correlation++;                                                                             \
        enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, ID(api), &p_, CUPTI_API_ENTER, NULL, &data_);    \
        cr_assert_neq(um_live_is_behind(1), expected, #api);                                       \
        enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, ID(api), &p_, CUPTI_API_EXIT, NULL, &data_);     \
    } while (0)

Test(live, what_was_launched_goes_before_calls_that_keep_others_out_of_the_driver)
{
    CUdeviceptr out = 0x40000000;
    void *host = (void *)0x30000000;
    char pageable[8];
    CUDA_MEMCPY2D two = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = A,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = pageable,
                         .WidthInBytes = 4,
                         .Height = 2};
    CUDA_MEMCPY2D *nowhere = (CUDA_MEMCPY2D *)16; /* not read where nothing was launched */

    start(UM_MODE_HINT);
    runtime.hinting = true;
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    result = CUDA_ERROR_INVALID_VALUE;
    CALL(cuMemcpy2DAsync_v2, {nowhere, NULL});
    result = CUDA_SUCCESS;
    CAUGHT_UP_BY(true, cuMemAllocHost_v2, {&host, 1 << 20});
    CAUGHT_UP_BY(true, cuMemHostAlloc, {&host, 1 << 20, 0});
    CAUGHT_UP_BY(true, cuMemHostRegister_v2, {(void *)0x50000000, 500, 0});
    CAUGHT_UP_BY(true, cuMemHostUnregister, {(void *)0x50000000});
    CAUGHT_UP_BY(true, cuMemcpyDtoHAsync_v2, {pageable, A, 4, NULL});
    CAUGHT_UP_BY(true, cuMemcpy2DAsync_v2, {&two, NULL});
    CAUGHT_UP_BY(true, cuMemcpyHtoDAsync_v2, {A, pageable, 1 << 20, NULL});
    CAUGHT_UP_BY(false, cuMemcpyHtoDAsync_v2, {A, pageable, 8, NULL});
    CAUGHT_UP_BY(false, cuMemcpyDtoHAsync_v2, {host, A, 4, NULL});
    CAUGHT_UP_BY(false, cuMemcpyDtoDAsync_v2, {A, B, 4, NULL});
    CAUGHT_UP_BY(false, cuMemAlloc_v2, {&out, 100});
    CAUGHT_UP_BY(false, cuMemAllocManaged, {&out, 100, CU_MEM_ATTACH_GLOBAL});
    CAUGHT_UP_BY(false, cuMemFreeAsync, {0x40000000, NULL});
    CAUGHT_UP_BY(true, cuMemFreeHost, {host});
    CAUGHT_UP_BY(true, cuMemFree_v2, {B});
}

Test(live, what_was_waited_for_needs_no_catching_up)
{
    start(UM_MODE_HINT);
    runtime.hinting = true;
    create_context();
    alloc_managed(A, 1 << 20);
    launch(1, A, A, NULL);
    cr_assert(um_live_is_behind(1));
    cr_assert_not(um_live_is_behind(2), "of another context");
    device_sync();
    cr_assert_not(um_live_is_behind(1));
    runtime.hinting = false; /* nothing is prefetched now */
    launch(1, A, A, NULL);
    cr_assert_not(um_live_is_behind(1));
}

/* After a launch: is there something left to catch up with once the call is over? */
#define LEAVES_BEHIND(expected, api, ...)                                                          \
    do {                                                                                           \
        launch(1, A, A, NULL);                                                                     \
        CALL(api, __VA_ARGS__);                                                                    \
        cr_assert_eq(um_live_is_behind(1), expected, #api);                                        \
    } while (0)

Test(live, what_only_looks_like_a_wait_leaves_something_to_catch_up_with)
{
    void *pinned = (void *)0x30000000;
    char pageable[8];

    start(UM_MODE_HINT);
    runtime.hinting = true;
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_device(D, 1 << 20);
    CALL(cuMemAllocHost_v2, {&pinned, 1 << 20});
    LEAVES_BEHIND(true, cuMemsetD8_v2, {A, 1, 64});
    LEAVES_BEHIND(true, cuMemcpyHtoD_v2, {D, pageable, sizeof(pageable)});
    LEAVES_BEHIND(true, cuMemcpyDtoD_v2, {D, A, 64});
    LEAVES_BEHIND(true, cuEventSynchronize, {(CUevent)0x44}); /* it may be of long ago */
    LEAVES_BEHIND(true, cuMemFree_v2, {0});
    LEAVES_BEHIND(false, cuMemcpyDtoH_v2, {pinned, D, 64});
    LEAVES_BEHIND(false, cuStreamSynchronize, {NULL});
    result = CUDA_ERROR_ILLEGAL_ADDRESS;
    LEAVES_BEHIND(true, cuStreamSynchronize, {NULL});
}

Test(live, sets_have_value_and_bytes)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    CALL(cuMemsetD8_v2, {A, 0x5a, 100});
    CALL(cuMemsetD32Async, {A, 0xdeadbeef, 100, (CUstream)3});
    CALL(cuMemsetD2D16_v2, {A, 512, 0x1234, 10, 4});
    cr_assert_eq(event_of(UM_EV_SET, 0)->u.set.value, 0x5a);
    cr_assert_eq(event_of(UM_EV_SET, 0)->u.set.bytes, 100);
    cr_assert_eq(event_of(UM_EV_SET, 1)->u.set.value, 0xdeadbeef);
    cr_assert_eq(event_of(UM_EV_SET, 1)->u.set.bytes, 400);
    cr_assert_eq(event_of(UM_EV_SET, 1)->u.set.memory, UM_MEMORY_MANAGED);
    cr_assert_eq(event_of(UM_EV_SET, 2)->u.set.bytes, 80);
}

/* The two forms of each call are told apart by id, not by what the headers name them. */
Test(live, the_programs_own_hints_are_told)
{
    struct {
        CUdeviceptr addr;
        size_t bytes;
        int device;
        CUstream stream;
    } old = {A, 4096, 0, (CUstream)3};
    struct {
        CUdeviceptr addr;
        size_t bytes;
        um_location_t where;
        unsigned flags;
        CUstream stream;
    } now = {A, 8192, {UM_LOCATION_HOST, 0}, 0, (CUstream)4};
    struct {
        CUdeviceptr addr;
        size_t bytes;
        int advice, device;
    } advise = {A, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, 0};
    struct {
        CUdeviceptr addr;
        size_t bytes;
        int advice;
        um_location_t where;
    } advise_now = {A, 100, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {UM_LOCATION_DEVICE, 1}};
    CUdeviceptr addr[] = {A, A + 4096, B};
    size_t bytes[] = {10, 20, 30}, first[] = {0, 2};
    um_location_t where[] = {{UM_LOCATION_DEVICE, 0}, {UM_LOCATION_HOST, 0}};
    struct {
        void *addr, *bytes;
        size_t n;
        void *where, *first;
        size_t n_where;
        unsigned long long flags;
        CUstream stream;
    } batch = {addr, bytes, 3, where, first, 2, 0, (CUstream)5};

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    driver_call(467, &old, NULL);
    driver_call(716, &now, NULL);
    driver_call(457, &advise, NULL);
    driver_call(715, &advise_now, NULL);
    driver_call(784, &batch, NULL);
    result = CUDA_ERROR_INVALID_VALUE;
    driver_call(467, &old, NULL);
    static const struct {
        uint32_t kind;
        uint64_t addr, bytes;
        int32_t device;
        uint64_t stream;
        uint32_t result;
    } expected[] = {
        {UM_HINT_PREFETCH, A, 4096, 0, 3, UM_HINT_APPLIED},
        {UM_HINT_PREFETCH, A, 8192, UM_DEVICE_HOST, 4, UM_HINT_APPLIED},
        {UM_HINT_READ_MOSTLY, A, 100, 0, 0, UM_HINT_APPLIED},
        {UM_HINT_PREFERRED_LOCATION, A, 100, 1, 0, UM_HINT_APPLIED},
        {UM_HINT_PREFETCH, A, 10, 0, 5, UM_HINT_APPLIED},
        {UM_HINT_PREFETCH, A + 4096, 20, 0, 5, UM_HINT_APPLIED},
        {UM_HINT_PREFETCH, B, 30, UM_DEVICE_HOST, 5, UM_HINT_APPLIED},
        {UM_HINT_PREFETCH, A, 4096, 0, 3, UM_HINT_FAILED},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        const um_event_t *e = event_of(UM_EV_HINT, i);
        cr_assert(e, "hint %zu", i);
        cr_assert_eq(e->u.hint.kind, expected[i].kind, "hint %zu", i);
        cr_assert_eq(e->u.hint.addr, expected[i].addr, "hint %zu", i);
        cr_assert_eq(e->u.hint.bytes, expected[i].bytes, "hint %zu", i);
        cr_assert_eq(e->u.hint.device, expected[i].device, "hint %zu", i);
        cr_assert_eq(e->u.hint.stream, expected[i].stream, "hint %zu", i);
        cr_assert_eq(e->u.hint.result, expected[i].result, "hint %zu", i);
        cr_assert_str_eq(e->u.hint.who, "app");
    }
    cr_assert_eq(event_of(UM_EV_HINT, 7)->u.hint.error, CUDA_ERROR_INVALID_VALUE);
}

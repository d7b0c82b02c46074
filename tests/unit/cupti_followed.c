/* What CUPTI is asked to tell of, and from when on: nothing that a program without managed memory would pay
 * for. */
#include <criterion/criterion.h>
#include <sched.h>

#include "cupti_program.h"

Test(live, a_program_without_managed_memory_pays_for_nothing)
{
    start(UM_MODE_HINT);
    create_context();
    alloc_device(D, 1 << 20);
    int before = CUDA_INT("fake_cuda_calls");
    for (int i = 0; i < 100; i++)
        launch(0x1000, D, D, NULL);
    cr_assert_eq(CUDA_INT("fake_cuda_calls"), before, "no driver call on the launch path");
    cr_assert_eq(count_of(UM_EV_LAUNCH), 0);
    cr_assert_eq(runtime.launches, 0, "not even the callback is made");
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 0);
    cr_assert_eq(CUPTI_INT("fake_cupti_flushes"), 0);
}

Test(live, launches_are_recorded_from_the_first_managed_region_on)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_device(D, 1 << 20);
    launch(0x1000, D, D, NULL);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 0);
    cr_assert_eq(runtime.launches, 0);
    alloc_managed(A, 1 << 20);
    launch(0x1000, D, D, NULL);
    cr_assert_eq(runtime.launches, 1);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 1);
    cr_assert_eq(count_of(UM_EV_KERNEL), 1);
}

static int is_enabled(CUpti_CallbackId id)
{
    static int (*ask)(CUpti_CallbackDomain, CUpti_CallbackId);

    if (!ask)
        *(void **)&ask = CUPTI_SYMBOL("fake_cupti_is_enabled");
    return ask(CUPTI_CB_DOMAIN_DRIVER_API, id);
}

/* By the callbacks that CUPTI is asked for: one that returns at once is too dear already. */
static const CUpti_CallbackId launch_ids[] = {ID(cuLaunchKernel),
                                              ID(cuLaunchKernel_ptsz),
                                              ID(cuLaunchKernelEx),
                                              ID(cuLaunchKernelEx_ptsz),
                                              ID(cuLaunchCooperativeKernel),
                                              ID(cuLaunchCooperativeKernel_ptsz),
                                              ID(cuLaunchCooperativeKernelMultiDevice),
                                              ID(cuLaunch),
                                              ID(cuLaunchGrid),
                                              ID(cuLaunchGridAsync),
                                              ID(cuGraphLaunch),
                                              ID(cuGraphLaunch_ptsz)};
static const CUpti_CallbackId work_ids[] = {ID(cuCtxSynchronize),   ID(cuStreamSynchronize),
                                            ID(cuEventSynchronize), ID(cuMemcpyAsync),
                                            ID(cuMemcpyHtoD_v2),    ID(cuMemcpy2D_v2),
                                            ID(cuMemcpy3DAsync_v2), 776 /* cuMemcpyBatchAsync */,
                                            ID(cuMemsetD8Async),    ID(cuMemsetD2D8_v2)};
static const CUpti_CallbackId early_ids[] = {
    ID(cuMemAllocManaged),           ID(cuMemAlloc_v2),        ID(cuMemFree_v2),
    ID(cuMemAllocFromPoolAsync),     ID(cuModuleGetGlobal_v2), 685 /* cuLibraryGetManaged */,
    ID(cuDevicePrimaryCtxRetain),    ID(cuCtxDestroy_v2),      ID(cuStreamBeginCapture_v2),
    ID(cuGraphInstantiateWithFlags), ID(cuGraphExecUpdate),    ID(cuGraphExecKernelNodeSetParams),
    ID(cuGraphExecDestroy)};
#define ALL_ARE(ids, expected, when)                                                               \
    for (size_t i = 0; i < sizeof(ids) / sizeof(*(ids)); i++)                                      \
    cr_assert_eq(is_enabled((ids)[i]), expected, "%u %s", (ids)[i], when)

static void follows(um_mode_t mode)
{
    start(mode);
    create_context();
    alloc_device(D, 1 << 20);
    ALL_ARE(early_ids, 1, "is needed from the start");
    ALL_ARE(launch_ids, 0, "before managed memory");
    ALL_ARE(work_ids, mode == UM_MODE_RECORD, "before managed memory");
    cr_assert_eq(CUPTI_INT("fake_cupti_kernels_enabled"), 0);
    alloc_managed(A, 1 << 20);
    ALL_ARE(launch_ids, 1, "with managed memory");
    ALL_ARE(work_ids, 1, "with managed memory");
    int asked = CUPTI_INT("fake_cupti_callbacks_asked");
    free_device(A);
    alloc_managed(A, 1 << 20);
    cr_assert_eq(CUPTI_INT("fake_cupti_callbacks_asked"), asked, "once and for all");
    ALL_ARE(launch_ids, 1, "for ever");
}

Test(live, a_trace_has_transfers_and_waits_from_the_start_and_launches_with_managed_memory)
{
    follows(UM_MODE_RECORD);
}

Test(live, hints_follow_neither_launches_nor_transfers_nor_waits_without_managed_memory)
{
    follows(UM_MODE_HINT);
}

Test(live, watching_is_no_dearer_than_hinting)
{
    follows(UM_MODE_OBSERVE);
}

Test(live, a_managed_pool_and_a_managed_variable_have_launches_followed)
{
    void (*memory)(uint64_t, uint64_t, unsigned, unsigned);
    CUdeviceptr where = D;
    cuMemAllocFromPoolAsync_params pool = {&where, 4096, NULL, NULL};

    start(UM_MODE_HINT);
    create_context();
    *(void **)&memory = CUDA_SYMBOL("fake_cuda_memory");
    driver_call(ID(cuMemAllocFromPoolAsync), &pool, NULL);
    cr_assert_not(is_enabled(ID(cuLaunchKernel)), "a pool of device memory");
    where = A;
    memory(A, 4096, CU_MEMORYTYPE_DEVICE, 1);
    driver_call(ID(cuMemAllocFromPoolAsync), &pool, NULL);
    cr_assert(is_enabled(ID(cuLaunchKernel)));
    launch(0x1000, A, D, NULL);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.n_args, 2);
}

Test(live, a_failed_managed_allocation_has_nothing_followed)
{
    start(UM_MODE_HINT);
    create_context();
    result = CUDA_ERROR_OUT_OF_MEMORY;
    alloc_managed(A, 1 << 20);
    cr_assert_not(is_enabled(ID(cuLaunchKernel)));
}

/* CUPTI may tell of the end of a call whose begin it did not tell of. */
Test(live, a_call_under_way_when_it_begins_to_be_followed_is_left_out)
{
    cuMemcpy_params copy = {A, D, 64};
    uint64_t data = 0;

    start(UM_MODE_HINT);
    create_context();
    enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, ID(cuMemcpy), &copy, CUPTI_API_ENTER, NULL, &data);
    alloc_managed(A, 1 << 20);
    enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, ID(cuMemcpy), &copy, CUPTI_API_EXIT, NULL, &data);
    cr_assert_eq(count_of(UM_EV_COPY), 0, "it has no beginning");
    driver_call(ID(cuMemcpy), &copy, NULL);
    cr_assert_eq(count_of(UM_EV_COPY), 1);
    cr_assert_neq(event_of(UM_EV_COPY, 0)->time_ns, 0);
}

static char said[512];
static unsigned n_said;

static void listen(void *ctx, int level, const char *line)
{
    (void)ctx;
    (void)level;
    n_said++;
    snprintf(said, sizeof(said), "%s", line);
}

Test(live, a_cupti_that_refuses_launches_is_one_line_and_the_program_goes_on_unhinted)
{
    start(UM_MODE_HINT);
    um_log_set(UM_LOG_WARN, listen, NULL);
    create_context();
    CUPTI_INT("fake_cupti_callback_result") = CUPTI_ERROR_INVALID_PARAMETER;
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    launch(0x1000, A, B, NULL);
    cr_assert_eq(n_said, 1);
    cr_assert(strstr(said, "not all launches"), "%s", said);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 0);
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 2);
    free_device(A);
    um_backend()->detach();
    cr_assert_eq(n_said, 1);
}

Test(live, a_trace_without_its_launches_says_so)
{
    start(UM_MODE_RECORD);
    um_log_set(UM_LOG_WARN, listen, NULL);
    create_context();
    CUPTI_INT("fake_cupti_callback_result") = CUPTI_ERROR_UNKNOWN;
    alloc_managed(A, 1 << 20);
    cr_assert_eq(n_said, 1);
    cr_assert(event_of(UM_EV_LOSS, 0));
    cr_assert_str_eq(event_of(UM_EV_LOSS, 0)->u.loss.reason, "cupti refused callbacks");
}

Test(live, only_launches_with_managed_arguments_reach_the_hint_loop)
{
    start(UM_MODE_HINT);
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_device(D, 1 << 20);
    launch(0x1000, D, D, NULL);
    launch(0x1000, D, A, NULL);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 1);
    cr_assert_eq(runtime.launches, 2);
    cr_assert_eq(runtime.launches_managed, 1);
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 0, "hints need no records");
    cr_assert_eq(CUPTI_INT("fake_cupti_kernels_enabled"), 0);
}

Test(live, kernel_times_begin_with_the_first_managed_region)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_device(D, 1 << 20);
    cr_assert_eq(CUPTI_INT("fake_cupti_kernels_enabled"), 0);
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    cr_assert_eq(CUPTI_INT("fake_cupti_kernels_enabled"), 1);
}

Test(live, a_late_start_finds_what_was_there_before, .timeout = 300)
{
    um_sink_t sink = {.event = keep};
    char reason[256];
    void (*memory)(uint64_t, uint64_t, unsigned, unsigned);

    open_fakes();
    *(void **)&memory = CUDA_SYMBOL("fake_cuda_memory");
    memory(A, 1 << 20, CU_MEMORYTYPE_DEVICE, 1);
    runtime.settings = (um_settings_t){.mode = UM_MODE_RECORD,
                                       .flush_us = 200,
                                       .unified_memory = 1,
                                       .kernel_times = 1};
    um_regions_new(&runtime.regions);
    um_kernels_new(&runtime.kernels);
    um_bus_new(1 << 20, 1000, &runtime.bus);
    um_bus_add_sink(runtime.bus, &sink);
    um_bus_start(runtime.bus);
    *(void **)CUDA_SYMBOL("fake_cuda_context") = (void *)0x101;
    cr_assert_eq(um_backend()->attach(&runtime, reason, sizeof(reason)), UM_OK);
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 1);
    ALL_ARE(launch_ids, 1, "for all we know there is managed memory");
    launch(0x1000, A + 100, 12345, NULL);
    const um_event_t *e = event_of(UM_EV_REGION_ALLOC, 0);
    cr_assert(e);
    cr_assert_eq(e->u.region_alloc.addr, A);
    cr_assert_eq(e->u.region_alloc.bytes, 1 << 20);
    cr_assert_eq(e->u.region_alloc.flags, UM_REGION_BEFORE_UMRT);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.n_args, 1);
    int asked = CUDA_INT("fake_cuda_calls");
    for (int i = 0; i < 10; i++)
        launch(0x1000, A + 100, 0x123456789a, NULL);
    cr_assert_eq(CUDA_INT("fake_cuda_calls"), asked + 1, "a word that is no pointer is asked once");
    volatile int *kicks = CUDA_SYMBOL("fake_cuda_managed_allocations");
    while (*kicks == 0) /* the kick, on the drain thread; a test that never ends is a failed one */
        sched_yield();
    um_backend()->detach();
    cr_assert_eq(*kicks, 1);
}

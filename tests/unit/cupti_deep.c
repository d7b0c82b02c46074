/* Deep recording: what a launch takes is pushed to the host before it, and the launch is waited for. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_program.h"
#include "model/residency.h"

/* What the driver would do, told in order. */
static char told[512];
static CUresult push_result;
static int not_ready; /* so often the stream is not done yet */

static CUresult fake_prefetch(CUdeviceptr addr, size_t bytes, um_location_t where, unsigned flags,
                              CUstream stream)
{
    char one[96];

    cr_assert_eq(flags, 0);
    cr_assert_eq(stream, (CUstream)0x77, "its own stream");
    cr_assert_eq(where.type, UM_LOCATION_HOST);
    snprintf(one, sizeof(one), "push %c %zu; ", addr == A ? 'a' : 'b', bytes);
    strncat(told, one, sizeof(told) - strlen(told) - 1);
    return push_result;
}

static CUresult fake_stream_sync(CUstream stream)
{
    cr_assert_eq(stream, (CUstream)0x77);
    strcat(told, "wait; ");
    return CUDA_SUCCESS;
}

static CUresult fake_stream_query(CUstream stream)
{
    char one[32];

    if (not_ready-- > 0)
        return CUDA_ERROR_NOT_READY;
    snprintf(one, sizeof(one), "done %lx; ", (unsigned long)(uintptr_t)stream);
    strcat(told, one);
    return CUDA_SUCCESS;
}

static void start_deep(void)
{
    um_cuda_t *cuda;

    deep = 1;
    start(UM_MODE_RECORD);
    cuda = (um_cuda_t *)um_cuda(); /* the table is ours, const only to its users */
    cuda->mem_prefetch_v2 = fake_prefetch;
    cuda->stream_sync = fake_stream_sync;
    cuda->stream_query = fake_stream_query;
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 2 << 20);
    told[0] = '\0';
}

static void driver_did(const char *what)
{
    cr_expect_str_eq(told, what);
    told[0] = '\0';
}

Test(deep, arguments_are_pushed_before_a_launch_which_is_then_waited_for)
{
    start_deep();
    not_ready = 3;
    launch(0x1000, A + 64, A + 128, (CUstream)0x10);
    driver_did("push a 1048576; wait; done 10; ");
    launch(0x1000, A, B, (CUstream)0x20);
    driver_did("push a 1048576; wait; push b 2097152; wait; done 20; ");

    const um_event_t *push = event_of(UM_EV_HINT, 0), *launched = event_of(UM_EV_LAUNCH, 0);
    cr_assert(push && launched);
    cr_assert_str_eq(push->u.hint.who, "deep");
    cr_assert_eq(push->u.hint.device, UM_DEVICE_HOST);
    cr_assert_eq(push->u.hint.result, UM_HINT_APPLIED);
    cr_assert_eq(push->u.hint.region, 1);
    cr_assert_leq(push->time_ns + push->u.hint.duration_ns, launched->time_ns);
    cr_assert_eq(count_of(UM_EV_HINT), 3);
    const um_event_t *fact = NULL;
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_FACT &&
            strcmp(events[i]->u.fact.key, "workload.accesses") == 0)
            fact = events[i];
    cr_assert(fact);
    cr_assert_str_eq(fact->u.fact.value, "deep");
}

Test(deep, captured_launches_and_all_while_a_capture_is_open_are_left_alone)
{
    cuStreamBeginCapture_v2_params begin = {(CUstream)0xcab, CU_STREAM_CAPTURE_MODE_GLOBAL};
    CUgraph graph;
    cuStreamEndCapture_params end = {(CUstream)0xcab, &graph};

    start_deep();
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    launch(0x1000, A, B, (CUstream)0xcab);
    launch(0x1000, A, B, (CUstream)0x10);
    driver_did("");
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &end, NULL);
    result = CUDA_SUCCESS;
    launch(0x1000, A, A, (CUstream)0x10);
    driver_did("push a 1048576; wait; done 10; ");
}

Test(deep, advised_regions_are_left_as_the_program_set_them)
{
    cuMemAdvise_params advise = {A, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0};

    start_deep();
    driver_call(457 /* cuMemAdvise */, &advise, NULL);
    launch(0x1000, A, B, (CUstream)0x10);
    driver_did("push b 2097152; wait; done 10; ");
}

Test(deep, of_a_launch_with_unknown_arguments_everything_is_pushed)
{
    cuLaunch_params params = {(CUfunction)0x1000};

    start_deep();
    alloc_device(D, 4096);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunch, &params, "k");
    driver_did("push a 1048576; wait; push b 2097152; wait; done 0; ");
}

Test(deep, a_push_that_fails_claims_nothing)
{
    start_deep();
    push_result = CUDA_ERROR_INVALID_DEVICE;
    launch(0x1000, A, A, (CUstream)0x10);
    driver_did("push a 1048576; done 10; ");
    cr_assert_eq(event_of(UM_EV_HINT, 0)->u.hint.result, UM_HINT_FAILED);
    for (size_t i = 0; i < n_events; i++)
        cr_assert(events[i]->type != UM_EV_FACT ||
                  strcmp(events[i]->u.fact.key, "workload.accesses") != 0);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 1, "the program goes on");
}

Test(deep, is_off_by_default)
{
    start_deep();
    um_live.deep = false;
    launch(0x1000, A, B, (CUstream)0x10);
    driver_did("");
}

Test(deep, what_the_cpu_has_of_a_region_is_told_once)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *memory;

    page_tables = 1;
    start_deep();
    /* Any memory of this process does: the page tables know it as they know managed memory. */
    memory = mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    memory[4 * page] = 1;
    alloc_managed((uint64_t)(uintptr_t)memory, 16 * page);
    um_pagemap_t *pagemap;
    if (um_pagemap_open(&pagemap) != UM_OK)
        cr_skip_test("no page tables to read");
    um_pagemap_close(pagemap);
    launch(0x1000, (uint64_t)(uintptr_t)memory, A, (CUstream)0x10);
    launch(0x1000, (uint64_t)(uintptr_t)memory, A, (CUstream)0x10);
    cr_assert_eq(count_of(UM_EV_ACCESS), 1);
    const um_event_t *access = event_of(UM_EV_ACCESS, 0);
    cr_assert_eq(access->u.access.addr, (uint64_t)(uintptr_t)memory + 4 * page);
    cr_assert_eq(access->u.access.bytes, page);
    cr_assert_eq(access->u.access.device, UM_DEVICE_HOST);
    cr_assert_eq(access->u.access.region, 3);
    cr_assert_lt(access->time_ns, event_of(UM_EV_LAUNCH, 0)->time_ns);
}

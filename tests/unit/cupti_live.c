/*
 * The live CUDA source from end to end against a driver and a CUPTI made for the test
 * (tests/fake): what the callbacks and records of a program become on the bus.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cupti/live.h"
#include "model/residency.h"

#define MAX_EVENTS 4096

static um_runtime_t runtime;
static um_event_t *events[MAX_EVENTS];
static _Atomic size_t n_events;
static void *fake_cuda, *fake_cupti;
static uint64_t page_tables; /* the settings */
static uint64_t deep;

static void keep(void *ctx, const um_event_t *event)
{
    size_t bytes = um_event_pack(event, NULL, 0);
    void *copy = malloc(bytes);

    (void)ctx;
    um_event_pack(event, copy, bytes);
    if (n_events < MAX_EVENTS)
        events[n_events++] = copy;
}

#define CUDA_SYMBOL(name)  dlsym(fake_cuda, name)
#define CUPTI_SYMBOL(name) dlsym(fake_cupti, name)
#define CUDA_INT(name)     (*(int *)CUDA_SYMBOL(name))
#define CUPTI_INT(name)    (*(int *)CUPTI_SYMBOL(name))

static void open_fakes(void)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/fake/libcuda.so.1", getenv("UM_BUILDDIR"));
    fake_cuda = dlopen(path, RTLD_NOW);
    cr_assert(fake_cuda, "%s", dlerror());
    snprintf(path, sizeof(path), "%s/tests/fake/libcupti.so.13", getenv("UM_BUILDDIR"));
    fake_cupti = dlopen(path, RTLD_NOW);
    cr_assert(fake_cupti, "%s", dlerror());
}

static void start(um_mode_t mode)
{
    um_sink_t sink = {.event = keep};
    char reason[256] = "";

    open_fakes();
    CUDA_INT("fake_cuda_initialised") = 0; /* as inside cuInit */
    runtime.settings = (um_settings_t){.mode = mode,
                                       .page_tables = page_tables,
                                       .deep = deep,
                                       .flush_us = 200,
                                       .call_sites = 1,
                                       .kernel_times = 1,
                                       .unified_memory = 1};
    cr_assert_eq(um_regions_new(&runtime.regions), UM_OK);
    cr_assert_eq(um_kernels_new(&runtime.kernels), UM_OK);
    cr_assert_eq(um_bus_new(1 << 20, 1000, &runtime.bus), UM_OK);
    um_bus_add_sink(runtime.bus, &sink);
    cr_assert_eq(um_bus_start(runtime.bus), UM_OK);
    cr_assert_eq(um_backend()->attach(&runtime, reason, sizeof(reason)), UM_OK, "%s", reason);
    CUDA_INT("fake_cuda_initialised") = 1;
}

/* The n-th event of a type, from 0; NULL when there are not that many. */
static const um_event_t *event_of(um_event_type_t type, size_t n)
{
    um_bus_sync(runtime.bus);
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == type && n-- == 0)
            return events[i];
    return NULL;
}

static size_t count_of(um_event_type_t type)
{
    size_t n = 0;

    um_bus_sync(runtime.bus);
    for (size_t i = 0; i < n_events; i++)
        n += events[i]->type == type;
    return n;
}

/* ---- the program's side -------------------------------------------------------------------- */

static uint32_t correlation;
static CUresult result;

static void enter_or_exit(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *params,
                          CUpti_ApiCallbackSite site, const char *symbol, uint64_t *data)
{
    static void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
    CUpti_CallbackData info = {
        .callbackSite = site,
        .functionParams = params,
        .functionReturnValue = &result,
        .symbolName = symbol,
        .context = (CUcontext)0x101,
        .contextUid = 1,
        .correlationData = data,
        .correlationId = correlation,
    };

    if (!call)
        *(void **)&call = CUPTI_SYMBOL("fake_cupti_call");
    call(domain, id, &info);
}

static void driver_call(CUpti_CallbackId id, const void *params, const char *symbol)
{
    uint64_t data = 0;

    correlation++;
    enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, id, params, CUPTI_API_ENTER, symbol, &data);
    enter_or_exit(CUPTI_CB_DOMAIN_DRIVER_API, id, params, CUPTI_API_EXIT, symbol, &data);
}

static void create_context(void)
{
    CUcontext context = (CUcontext)0x101;
    cuDevicePrimaryCtxRetain_params params = {&context, 0};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain, &params, NULL);
}

static void alloc_managed(uint64_t addr, size_t bytes)
{
    CUdeviceptr where = addr;
    cuMemAllocManaged_params params = {&where, bytes, CU_MEM_ATTACH_GLOBAL};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, &params, NULL);
}

static void alloc_device(uint64_t addr, size_t bytes)
{
    CUdeviceptr where = addr;
    cuMemAlloc_v2_params params = {&where, bytes};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &params, NULL);
}

static void free_device(uint64_t addr)
{
    cuMemFree_v2_params params = {addr};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &params, NULL);
}

static void launch(uint64_t handle, uint64_t a, uint64_t b, CUstream stream)
{
    int n = 5;
    void *args[] = {&a, &b, &n};
    cuLaunchKernel_params params = {.f = (CUfunction)handle,
                                    .gridDimX = 10,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 256,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = 64,
                                    .hStream = stream,
                                    .kernelParams = args};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "_Z3addPfPKfi");
}

static void device_sync(void)
{
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, NULL, NULL);
}

static void record(const void *bytes, size_t n)
{
    static void (*put)(const void *, size_t);

    if (!put)
        *(void **)&put = CUPTI_SYMBOL("fake_cupti_record");
    put(bytes, n);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CUpti_ActivityUnifiedMemoryCounter3 and CUpti_ActivityKernel9, which old headers lack. */
typedef struct counter {
    uint32_t kind, counter;
    uint64_t value, start, end, address;
    uint32_t src, dst, stream, process, flags, pad;
    uint64_t processors[5];
} counter_t;

typedef struct kernel_times {
    uint32_t kind, some[3];
    uint64_t start, end, completed;
    uint32_t device, context, stream, grid[3], block[3], more[4], correlation;
    uint64_t grid_id;
    const char *name;
    uint64_t rest[12];
} kernel_times_t;

static counter_t migration(uint64_t addr, uint64_t bytes)
{
    uint64_t now = clock_ns(CLOCK_REALTIME); /* the fake CUPTI's clock */

    return (counter_t){
        .kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
        .counter = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        .value = bytes,
        .start = now - 100,
        .end = now,
        .address = addr,
        .src = UINT32_MAX,
        .flags = 2,
    };
}

#define A 0x700000000000
#define B 0x700040000000
#define D 0x500000000000

/* ---- tests --------------------------------------------------------------------------------- */

Test(live, a_managed_program_is_recorded_from_allocation_to_migration)
{
    start(UM_MODE_RECORD);
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 0, "refused inside the injection: not tried");
    create_context();
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 1);
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    launch(0x1000, A + 64, B, (CUstream)0x10);
    counter_t moved = migration(A + 4096, 65536);
    record(&moved, sizeof(moved));
    free_device(A);
    um_backend()->detach();

    const um_event_t *alloc = event_of(UM_EV_REGION_ALLOC, 0);
    cr_assert(alloc);
    cr_assert_eq(alloc->u.region_alloc.family, UM_FAMILY_MANAGED);
    cr_assert_eq(alloc->u.region_alloc.addr, A);
    cr_assert_eq(alloc->u.region_alloc.bytes, 1 << 20);
    cr_assert_eq(alloc->u.region_alloc.flags, UM_REGION_ATTACH_GLOBAL);
    cr_assert_neq(alloc->u.region_alloc.call_site, 0);
    cr_assert_eq(alloc->tid, (uint32_t)gettid());
    const um_event_t *site = event_of(UM_EV_CALL_SITE, 0);
    cr_assert(site);
    cr_assert_eq(site->u.call_site.call_site, alloc->u.region_alloc.call_site);
    cr_assert(strstr(site->u.call_site.frames, "+0x"), "%s", site->u.call_site.frames);

    const um_event_t *kernel = event_of(UM_EV_KERNEL, 0);
    cr_assert(kernel);
    cr_assert_str_eq(kernel->u.kernel.name, "_Z3addPfPKfi");
    cr_assert_eq(kernel->u.kernel.n_params, 3);
    cr_assert_eq(kernel->u.kernel.layout_known, 1);

    const um_event_t *l = event_of(UM_EV_LAUNCH, 0);
    cr_assert(l);
    cr_assert_eq(l->u.launch.kernel, kernel->u.kernel.kernel);
    cr_assert_eq(l->u.launch.n_args, 2);
    cr_assert_eq(l->u.launch.args[0].region, alloc->u.region_alloc.region);
    cr_assert_eq(l->u.launch.args[0].region_offset_bytes, 64);
    cr_assert_eq(l->u.launch.args[1].slot, 1);
    cr_assert_eq(l->u.launch.grid[0], 10);
    cr_assert_eq(l->u.launch.block[0], 256);
    cr_assert_eq(l->u.launch.shared_bytes, 64);
    cr_assert_eq(l->u.launch.stream, 0x10);
    cr_assert_eq(l->u.launch.device, 0);
    cr_assert_geq(l->time_ns, kernel->time_ns);

    const um_event_t *m = event_of(UM_EV_MIGRATE, 0);
    cr_assert(m, "what was recorded before the exit is in the trace");
    cr_assert_eq(m->u.migrate.bytes, 65536);
    uint64_t age = clock_ns(CLOCK_MONOTONIC) - m->time_ns;
    cr_assert_lt(age, 3600ull * 1000000000u, "CUPTI's clock is brought to CLOCK_MONOTONIC");

    const um_event_t *gone = event_of(UM_EV_REGION_FREE, 0);
    cr_assert(gone);
    cr_assert_eq(gone->u.region_free.region, alloc->u.region_alloc.region);
    cr_assert_eq(CUPTI_INT("fake_cupti_disabled"), 0);
    cr_assert_eq(CUPTI_INT("fake_cupti_finalized"), 0);
    cr_assert_leq(CUPTI_INT("fake_cupti_forced"), 1, "one forced flush at exit at most");
}

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
#define ID(api) CUPTI_DRIVER_TRACE_CBID_##api
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

Test(live, records_are_switched_on_later_when_no_context_was_there)
{
    start(UM_MODE_RECORD);
    CUPTI_INT("fake_cupti_enable_result") = 13;
    create_context();
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 0);
    CUPTI_INT("fake_cupti_enable_result") = 0;
    alloc_managed(A, 1 << 20);
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 1);
}

Test(live, a_refusal_of_records_is_said_in_the_trace_and_the_program_goes_on)
{
    start(UM_MODE_RECORD);
    CUPTI_INT("fake_cupti_enable_result") = 31;
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, NULL);
    um_bus_sync(runtime.bus);
    const um_event_t *option = NULL;
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_OPTION &&
            strcmp(events[i]->u.option.name, "cupti.unified-memory") == 0)
            option = events[i];
    cr_assert(option);
    cr_assert(strstr(option->u.option.value, "Multi-Process Service"));
    cr_assert_eq(count_of(UM_EV_LAUNCH), 1);
}

Test(live, a_handle_may_be_a_kernel_or_a_function)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, NULL);  /* CUfunction */
    launch(0x20000, A, A, NULL); /* CUkernel */
    launch(0x20000, A, A, NULL);
    cr_assert_eq(count_of(UM_EV_KERNEL), 2);
    cr_assert_eq(event_of(UM_EV_KERNEL, 1)->u.kernel.n_params, 3);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 2)->u.launch.n_args, 2);
}

Test(live, an_extra_buffer_is_read)
{
    uint64_t block[3] = {A + 8, B, 5};
    size_t bytes = 20;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params params = {.f = (CUfunction)0x1000, .extra = extra};

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "k");
    const um_event_t *l = event_of(UM_EV_LAUNCH, 0);
    cr_assert_eq(l->u.launch.n_args, 1);
    cr_assert_eq(l->u.launch.args[0].region_offset_bytes, 8);
    cr_assert(l->u.launch.flags & UM_LAUNCH_EXTRA);
}

Test(live, cooperative_and_attributed_launches_are_seen)
{
    uint64_t a = A, b = A;
    int n = 1;
    void *args[] = {&a, &b, &n};
    cuLaunchCooperativeKernel_params cooperative = {.f = (CUfunction)0x1000,
                                                    .gridDimX = 4,
                                                    .hStream = (CUstream)9,
                                                    .kernelParams = args};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig config = {.gridDimX = 7, .attrs = &attribute, .numAttrs = 1};
    cuLaunchKernelEx_params ex = {&config, (CUfunction)0x1000, args, NULL};

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, &cooperative, "k");
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, &ex, "k");
    const um_event_t *first = event_of(UM_EV_LAUNCH, 0), *second = event_of(UM_EV_LAUNCH, 1);
    cr_assert_eq(first->u.launch.flags, UM_LAUNCH_COOPERATIVE);
    cr_assert_eq(first->u.launch.stream, 9);
    cr_assert_eq(first->u.launch.n_args, 2);
    cr_assert_eq(second->u.launch.flags, UM_LAUNCH_COOPERATIVE);
    cr_assert_eq(second->u.launch.grid[0], 7);
    cr_assert_eq(second->u.launch.stream, 2, "stream 0 of a _ptsz call is the per-thread stream");
}

Test(live, a_captured_launch_says_so)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, (CUstream)0xcab);
    cuStreamBeginCapture_v2_params begin = {(CUstream)0xcab, CU_STREAM_CAPTURE_MODE_GLOBAL};
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    launch(0x1000, A, A, (CUstream)0xcab);
    launch(0x1000, A, A, NULL);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.flags, 0, "nobody has begun a capture yet");
    cr_assert_eq(event_of(UM_EV_LAUNCH, 1)->u.launch.flags, UM_LAUNCH_CAPTURED);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 2)->u.launch.flags, 0);
}

Test(live, what_is_put_into_a_capture_is_not_told_as_run)
{
    CUstream captured = (CUstream)0xcab;
    cuStreamBeginCapture_v2_params begin = {captured, CU_STREAM_CAPTURE_MODE_GLOBAL};
    cuMemcpyAsync_params copy = {A, D, 4096, captured};
    cuMemsetD8Async_params set = {A, 7, 4096, captured}, set_now = {A, 7, 4096, NULL};
    cuGraphLaunch_params graph = {(CUgraphExec)0xe0, captured};

    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, &copy, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, &set, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, &set_now, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &graph, NULL);
    cr_assert_eq(event_of(UM_EV_COPY, 0)->u.copy.flags, UM_TRANSFER_ASYNC | UM_TRANSFER_CAPTURED);
    cr_assert_eq(event_of(UM_EV_SET, 0)->u.set.flags, UM_TRANSFER_ASYNC | UM_TRANSFER_CAPTURED);
    cr_assert_eq(event_of(UM_EV_SET, 1)->u.set.flags, UM_TRANSFER_ASYNC);
    cr_assert(event_of(UM_EV_LAUNCH, 0)->u.launch.flags & UM_LAUNCH_CAPTURED);
}

Test(live, the_device_of_a_launch_on_several_is_not_guessed)
{
    uint64_t a = A;
    int n = 1;
    void *args[] = {&a, &a, &n};
    CUDA_LAUNCH_PARAMS each[2] = {
        {.function = (CUfunction)0x1000, .gridDimX = 1, .blockDimX = 1, .kernelParams = args},
        {.function = (CUfunction)0x1000, .gridDimX = 1, .blockDimX = 1, .kernelParams = args}};
    cuLaunchCooperativeKernelMultiDevice_params params = {each, 2, 0};

    start(UM_MODE_HINT);
    create_context();
    alloc_managed(A, 1 << 20);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice, &params, NULL);
    params.numDevices = 1;
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice, &params, NULL);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.device, UM_DEVICE_NONE);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 1)->u.launch.device, UM_DEVICE_NONE);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 2)->u.launch.device, 0);
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

Test(live, callbacks_leave_errno_alone)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    errno = EDOM;
    launch(0x1000, A, A, NULL); /* the kernel's first: the driver is asked about it */
    cr_assert_eq(errno, EDOM);
}

Test(live, a_launch_of_nothing_asks_the_driver_nothing)
{
    start(UM_MODE_HINT);
    create_context();
    alloc_managed(A, 1 << 20);
    int before = CUDA_INT("fake_cuda_calls");
    launch(0, A, A, NULL);
    cr_assert_eq(CUDA_INT("fake_cuda_calls"), before);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 0);
}

Test(live, the_end_is_not_held_up_inside_cupti, .timeout = 60)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    CUPTI_INT("fake_cupti_stuck") = 1; /* as if the thread that ends held its lock */
    um_backend()->detach();
}

Test(live, a_graph_is_one_launch_with_the_arguments_of_all_its_nodes)
{
    uint64_t a = A, b = B, d = D;
    int n = 1;
    void *params[] = {&a, &d, &n, &b, &a, &n};
    CUgraphExec exec = (CUgraphExec)0xe0;
    cuGraphInstantiateWithFlags_params instantiate = {&exec, (CUgraph)0xd0, 0};
    cuGraphLaunch_params go = {exec, (CUstream)5};
    cuGraphExecDestroy_params destroy = {exec};

    start(UM_MODE_RECORD);
    *(void ***)CUDA_SYMBOL("fake_cuda_node_params") = params;
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, &instantiate, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &go, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy, &destroy, NULL);
    driver_call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &go, NULL);
    const um_event_t *l = event_of(UM_EV_LAUNCH, 0);
    cr_assert_eq(l->u.launch.flags, UM_LAUNCH_GRAPH);
    cr_assert_eq(l->u.launch.graph, 0xe0);
    cr_assert_eq(l->u.launch.n_args, 2, "A once, although both nodes take it");
    cr_assert_eq(l->u.launch.stream, 5);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 1)->u.launch.flags,
                 UM_LAUNCH_GRAPH | UM_LAUNCH_ARGS_UNKNOWN);
}

/* Whether its bodies run is decided on the GPU: what they take counts. */
Test(live, a_conditional_graph_takes_what_its_bodies_take)
{
    uint64_t a = A, b = B, d = D, node = 2, body = 0xd1;
    int n = 1;
    void *args[] = {&a, &d, &n, &d, &d, &n, &b, &d, &n};
    struct {
        int32_t node_type, reserved[3];
        uint64_t handle;
        int32_t type;
        uint32_t size;
        uint64_t *graphs;
        uint64_t context;
    } conditional = {.node_type = 13, .size = 1, .graphs = &body};
    uint64_t add[] = {(uintptr_t)&node, 0xd0, 0, 0, 0, (uintptr_t)&conditional};
    CUgraphExec exec = (CUgraphExec)0xe0;
    cuGraphInstantiateWithFlags_params instantiate = {&exec, (CUgraph)0xd0, 0};
    cuGraphLaunch_params go = {exec, (CUstream)5};

    start(UM_MODE_RECORD);
    *(void ***)CUDA_SYMBOL("fake_cuda_node_params") = args;
    CUDA_INT("fake_cuda_conditional") = 1;
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    driver_call(ID(cuGraphInstantiateWithFlags), &instantiate, NULL);
    driver_call(ID(cuGraphLaunch), &go, NULL);
    driver_call(723 /* cuGraphAddNode_v2 */, add, NULL);
    driver_call(ID(cuGraphInstantiateWithFlags), &instantiate, NULL);
    driver_call(ID(cuGraphLaunch), &go, NULL);
    const um_ev_launch_t *before = &event_of(UM_EV_LAUNCH, 0)->u.launch;
    const um_ev_launch_t *after = &event_of(UM_EV_LAUNCH, 1)->u.launch;
    cr_assert_eq(before->flags, UM_LAUNCH_GRAPH | UM_LAUNCH_ARGS_UNKNOWN);
    cr_assert_eq(before->n_args, 1);
    cr_assert_eq(after->flags, UM_LAUNCH_GRAPH);
    cr_assert_eq(after->n_args, 2);
}

/* Its nodes are read when it is made, and read again when they change. */
Test(live, a_graph_made_before_the_first_managed_memory_is_known)
{
    uint64_t a = D, b = D, d = D;
    int n = 1;
    void *params[] = {&d, &d, &n, &d, &d, &n}, *changed[] = {&a, &b, &n};
    CUgraphExec exec = (CUgraphExec)0xe0;
    cuGraphInstantiateWithFlags_params instantiate = {&exec, (CUgraph)0xd0, 0};
    CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = (CUfunction)0x2000, .kernelParams = changed};
    cuGraphExecKernelNodeSetParams_params set = {exec, (CUgraphNode)1, &node};
    cuGraphLaunch_params go = {exec, (CUstream)5};

    start(UM_MODE_RECORD);
    *(void ***)CUDA_SYMBOL("fake_cuda_node_params") = params;
    create_context();
    alloc_device(D, 1 << 20);
    driver_call(ID(cuGraphInstantiateWithFlags), &instantiate, NULL);
    driver_call(ID(cuGraphLaunch), &go, NULL);
    cr_assert_eq(count_of(UM_EV_LAUNCH), 0);
    alloc_managed(A, 1 << 20);
    driver_call(ID(cuGraphLaunch), &go, NULL);
    const um_ev_launch_t *l = &event_of(UM_EV_LAUNCH, 0)->u.launch;
    cr_assert_eq(l->flags, UM_LAUNCH_GRAPH, "its arguments are known");
    cr_assert_eq(l->n_args, 1);
    cr_assert_eq(l->args[0].region, event_of(UM_EV_REGION_ALLOC, 0)->u.region_alloc.region);
    a = A + 64;
    driver_call(ID(cuGraphExecKernelNodeSetParams), &set, NULL);
    driver_call(ID(cuGraphLaunch), &go, NULL);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 1)->u.launch.n_args, 2);
    cr_assert_eq(runtime.launches_managed, 1);
}

Test(live, every_family_becomes_a_region_of_its_kind)
{
    CUdeviceptr out = 0;
    void *host = NULL;
    size_t pitch = 512;
    void (*memory)(uint64_t, uint64_t, unsigned, unsigned);

    start(UM_MODE_RECORD);
    create_context();
    *(void **)&memory = CUDA_SYMBOL("fake_cuda_memory");
#define CALL(api, ...)                                                                             \
    do {                                                                                           \
        api##_params p = __VA_ARGS__;                                                              \
        driver_call(CUPTI_DRIVER_TRACE_CBID_##api, &p, NULL);                                      \
    } while (0)
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

Test(live, what_umrt_calls_itself_is_not_seen)
{
    start(UM_MODE_RECORD);
    create_context();
    um_cuda_own = true;
    alloc_managed(A, 1 << 20);
    um_cuda_own = false;
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 0);
}

Test(live, a_forked_child_is_inert)
{
    start(UM_MODE_RECORD);
    create_context();
    um_backend()->abandon();
    alloc_managed(A, 1 << 20);
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 0);
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

Test(live, a_late_start_finds_what_was_there_before, .timeout = 60)
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

Test(live, dropped_records_are_told)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    *(uint64_t *)CUPTI_SYMBOL("fake_cupti_dropped") = 7;
    counter_t moved = migration(A, 4096), zero = migration(A, 4096);
    zero.start = 0;
    record(&moved, sizeof(moved));
    record(&zero, sizeof(zero));
    um_backend()->detach();
    uint64_t dropped = 0, insane = 0;
    um_bus_sync(runtime.bus);
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_LOSS) {
            if (strstr(events[i]->u.loss.reason, "dropped"))
                dropped += events[i]->u.loss.count;
            if (strstr(events[i]->u.loss.reason, "sane time"))
                insane += events[i]->u.loss.count;
        }
    cr_assert_eq(dropped, 7);
    cr_assert_eq(insane, 1);
    cr_assert_eq(count_of(UM_EV_MIGRATE), 1);
}

Test(live, kernel_times_name_the_launched_kernel_and_those_of_graphs_by_name)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, NULL);
    uint64_t now = clock_ns(CLOCK_REALTIME);
    kernel_times_t mine = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                           .start = now - 1000,
                           .end = now,
                           .correlation = correlation,
                           .name = "_Z3addPfPKfi"};
    kernel_times_t of_a_graph = mine;
    of_a_graph.correlation = 999999;
    of_a_graph.name = "in_graph";
    record(&mine, sizeof(mine));
    record(&of_a_graph, sizeof(of_a_graph));
    um_backend()->detach();
    cr_assert_eq(event_of(UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.kernel,
                 event_of(UM_EV_KERNEL, 0)->u.kernel.kernel);
    cr_assert_eq(event_of(UM_EV_KERNEL_EXEC, 1)->u.kernel_exec.kernel,
                 event_of(UM_EV_KERNEL, 1)->u.kernel.kernel);
    cr_assert_str_eq(event_of(UM_EV_KERNEL, 1)->u.kernel.name, "in_graph");
}

Test(live, waits_come_in_pairs)
{
    start(UM_MODE_RECORD);
    create_context();
    device_sync();
    CALL(cuStreamSynchronize, {(CUstream)8});
    cr_assert_eq(count_of(UM_EV_SYNC), 4);
    const um_event_t *in = event_of(UM_EV_SYNC, 2), *out = event_of(UM_EV_SYNC, 3);
    cr_assert_eq(in->u.sync.kind, UM_SYNC_STREAM);
    cr_assert_eq(in->u.sync.stream, 8);
    cr_assert_eq(in->u.sync.exit, 0);
    cr_assert_eq(out->u.sync.exit, 1);
    cr_assert_eq(in->u.sync.sync, out->u.sync.sync);
}

/* The page tables do not care what kind of memory it is. */
Test(live, after_a_wait_the_page_tables_say_what_the_cpu_has, .timeout = 60)
{
    size_t bytes = 4 << 20, touched = 1 << 20;
    um_pagemap_t *pagemap;

    if (um_pagemap_open(&pagemap) != UM_OK)
        cr_skip_test("/proc/self/pagemap says nothing here");
    um_pagemap_close(pagemap);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(memory + touched, 1, touched);
    page_tables = 1;
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed((uintptr_t)memory, bytes);
    launch(0x1000, (uintptr_t)memory, 0, NULL);
    /* A look that comes too late, on a busy machine, is dropped: then the next wait brings another. */
    while (!event_of(UM_EV_RESIDENCY, 1)) {
        usleep(2000); /* and all events that are made meanwhile are kept */
        device_sync();
        launch(0x1000, (uintptr_t)memory, (uintptr_t)memory + 64, NULL);
        launch(0x1000, (uintptr_t)memory, 0, NULL);
    }
    const um_ev_residency_t *all = &event_of(UM_EV_RESIDENCY, 0)->u.residency;
    const um_ev_residency_t *part = &event_of(UM_EV_RESIDENCY, 1)->u.residency;
    cr_assert_eq(all->addr, (uintptr_t)memory);
    cr_assert_eq(all->bytes, bytes);
    cr_assert_eq(all->present_bytes, touched);
    cr_assert_neq(all->sync, 0);
    cr_assert_eq(part->addr, (uintptr_t)memory + touched);
    cr_assert_eq(part->bytes, touched);
    um_backend()->detach();
    cr_assert_eq(count_of(UM_EV_RESIDENCY) % 2, 0,
                 "a region that is named twice is looked at once");
}

/* ---- modules ------------------------------------------------------------------------------- */

static void module_event(CUpti_CallbackId id, const void *cubin, size_t bytes)
{
    static void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
    CUpti_ModuleResourceData module = {.moduleId = 9, .cubinSize = bytes, .pCubin = cubin};
    CUpti_ResourceData data = {.context = (CUcontext)0x101, .resourceDescriptor = &module};

    *(void **)&call = CUPTI_SYMBOL("fake_cupti_call");
    call(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

static void scale(uint64_t handle, uint64_t to, uint64_t from)
{
    float factor = 2;
    int n = 5;
    void *args[] = {&to, &from, &factor, &n};
    cuLaunchKernel_params params = {.f = (CUfunction)handle, .kernelParams = args};

    driver_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "_Z5scaleIfEvPT_PKS0_S0_i");
}

/* Before 12.4 the driver cannot tell a kernel's parameters. */
Test(live, an_old_drivers_layouts_come_from_the_loaded_module)
{
    char path[4096];
    static char cubin[1 << 16];

    snprintf(path, sizeof(path), "%s/tests/data/cubin/small_sm90.cubin", getenv("UM_SRCDIR"));
    FILE *file = fopen(path, "rb");
    cr_assert(file, "%s", path);
    size_t bytes = fread(cubin, 1, sizeof(cubin), file);
    fclose(file);
    start(UM_MODE_RECORD);
    um_cuda_t old = *um_live.cuda;
    old.func_param = NULL;
    old.kernel_param = NULL;
    um_live.cuda = &old;
    create_context();
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    scale(0x3000, A, B);
    cr_assert_eq(event_of(UM_EV_KERNEL, 0)->u.kernel.layout_known, 0);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.n_args, 0, "never past a known count");
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.flags, UM_LAUNCH_ARGS_UNKNOWN);

    module_event(CUPTI_CBID_RESOURCE_MODULE_LOADED, cubin, bytes);
    scale(0x3100, A, B);
    const um_ev_kernel_t *kernel = &event_of(UM_EV_KERNEL, 1)->u.kernel;
    cr_assert_eq(kernel->n_params, 4);
    cr_assert_eq(kernel->params[2].size_bytes, 4);
    cr_assert_neq(kernel->module_hash, 0);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 1)->u.launch.n_args, 2);

    /* The handle of an unloaded module comes back as another kernel. */
    module_event(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, NULL, 0);
    launch(0x3100, A, B, NULL);
    cr_assert_eq(count_of(UM_EV_KERNEL), 3);
    cr_assert_neq(event_of(UM_EV_KERNEL, 2)->u.kernel.kernel, kernel->kernel);
    /* Or the same one at another handle. */
    scale(0x3200, A, B);
    cr_assert_eq(count_of(UM_EV_KERNEL), 3);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 3)->u.launch.kernel, kernel->kernel);
}

Test(live, a_module_that_is_no_cubin_is_left_alone)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    module_event(CUPTI_CBID_RESOURCE_MODULE_LOADED, "garbage", 7);
    module_event(CUPTI_CBID_RESOURCE_MODULE_LOADED, NULL, 1 << 30);
    launch(0x1000, A, A, NULL);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 0)->u.launch.n_args, 2);
}

static um_status_t refused(int code, char *reason, size_t bytes)
{
    open_fakes();
    CUPTI_INT("fake_cupti_subscribe_result") = code;
    um_regions_new(&runtime.regions);
    um_kernels_new(&runtime.kernels);
    um_bus_new(1 << 20, 1000, &runtime.bus);
    um_bus_start(runtime.bus);
    return um_backend()->attach(&runtime, reason, bytes);
}

Test(live, another_client_is_named)
{
    char reason[256] = "";

    cr_assert_eq(refused(39, reason, sizeof(reason)), UM_ERR_BUSY);
    cr_assert_str_eq(reason, "another profiler or CUPTI client is already in this process: "
                             "CUPTI for Fake Profiler");
}

Test(live, any_other_refusal_has_its_reason)
{
    char reason[256] = "";

    cr_assert_eq(refused(999, reason, sizeof(reason)), UM_ERR_UNSUPPORTED);
    cr_assert_str_eq(reason, "the fake says no");
}

Test(live, the_probe_tells_devices_versions_and_what_can_be_done)
{
    um_regions_new(&runtime.regions);
    open_fakes();
    cr_assert_eq(um_backend()->probe(keep, NULL), UM_OK);
    const um_event_t *device = NULL;
    const char *record_fact = NULL, *hint_fact = NULL, *path = NULL;
    for (size_t i = 0; i < n_events; i++) {
        const um_event_t *e = events[i];
        if (e->type == UM_EV_DEVICE)
            device = e;
        else if (e->type == UM_EV_FACT && strcmp(e->u.fact.key, "can.record") == 0)
            record_fact = e->u.fact.value;
        else if (e->type == UM_EV_FACT && strcmp(e->u.fact.key, "can.hint") == 0)
            hint_fact = e->u.fact.value;
        else if (e->type == UM_EV_FACT && strcmp(e->u.fact.key, "cupti.path") == 0)
            path = e->u.fact.value;
    }
    cr_assert(device);
    cr_assert_str_eq(device->u.device.name, "Fake GPU");
    cr_assert_str_eq(device->u.device.uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
    cr_assert_eq(device->u.device.attributes, UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED);
    cr_assert_str_eq(record_fact, "yes");
    cr_assert_str_eq(hint_fact, "yes");
    cr_assert(path && strstr(path, "libcupti.so.13"), "%s", path);
}

Test(live, a_driver_that_does_not_start_is_the_reason)
{
    open_fakes();
    CUDA_INT("fake_cuda_initialised") = 0;
    um_backend()->probe(keep, NULL);
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_FACT && strncmp(events[i]->u.fact.key, "can.", 4) == 0)
            cr_assert_str_eq(events[i]->u.fact.value,
                             "no: the driver does not start (CUDA_ERROR_NO_DEVICE)");
}

/* ---- deep recording ------------------------------------------------------------------------------ */

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

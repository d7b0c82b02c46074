/* Launches in every form, with their arguments: kernels, graphs, captures, modules of old drivers. */
#include <criterion/criterion.h>

#include "cupti_program.h"

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

Test(live, a_launch_tells_its_integers)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, NULL);
    launch(0x1000, B, B, NULL); /* nothing that is managed */
    const um_ev_launch_t *l = &event_of(UM_EV_LAUNCH, 0)->u.launch;
    cr_assert_eq(l->n_scalars, 1);
    cr_assert(l->scalars[0].slot == 2 && l->scalars[0].size_bytes == 4);
    cr_assert_eq(event_of(UM_EV_LAUNCH, 1)->u.launch.n_scalars, 0);
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
    /* not its second pointer: the name says nothing of it, but it is 8 bytes of no known region */
    cr_assert_eq(l->u.launch.n_scalars, 2);
    cr_assert(l->u.launch.scalars[1].slot == 2 && l->u.launch.scalars[1].value == 5);
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

/* ---- graphs --------------------------------------------------------------------------------- */

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

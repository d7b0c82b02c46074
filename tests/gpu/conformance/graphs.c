/*
 * graphs.c - capture and graphs.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include <pthread.h>

static struct {
    CUstream stream, other;
    CUstreamCaptureMode mode;
} capturing;

static void capture_begin(CUstreamCaptureMode mode)
{
    capturing.mode = mode;
    MUST(cuStreamBeginCapture(capturing.stream, mode));
}

/* What the call gave, what became of the capture, how its end went, nodes in the graph. */
static void capture_end(const char *what, CUresult result)
{
    static const char *const modes[] = {"global", "thread", "relaxed"};
    static const char *const states[] = {"none", "active", "invalid"};
    char full[96];
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    size_t nodes = 0;

    cuStreamIsCapturing(capturing.stream, &state);
    CUresult ended = cuStreamEndCapture(capturing.stream, &graph);
    if (graph)
        cuGraphGetNodes(graph, NULL, &nodes);
    snprintf(full, sizeof(full), "%s, %s", what, modes[capturing.mode]);
    say(full, "%d, then %s, ends %d, nodes %zu", (int)result, states[state], (int)ended, nodes);
    if (graph)
        MUST(cuGraphDestroy(graph));
}

#define CAPTURED(mode, what, call)                                                                 \
    do {                                                                                           \
        capture_begin(CU_STREAM_CAPTURE_MODE_##mode);                                              \
        capture_end(what, (call));                                                                 \
    } while (0)

static void *end_elsewhere(void *context)
{
    CUgraph graph = NULL;

    cuCtxSetCurrent(context);
    return (void *)(uintptr_t)cuStreamEndCapture(capturing.stream, &graph);
}

/* What another thread does while this one captures: what programs do, and what umrt does as a relaxed thread. */
static struct {
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory, made;
    bool relaxed;
} beside;

#define ELSEWHERE(X)                                                                               \
    X("cuCtxSynchronize", context_sync, cuCtxSynchronize())                                        \
    X("cuStreamQuery of another", stream_query, cuStreamQuery(capturing.other))                    \
    X("cuStreamSynchronize of another", stream_sync, cuStreamSynchronize(capturing.other))         \
    X("cuStreamCreate", stream_create, cuStreamCreate(&beside.stream, CU_STREAM_NON_BLOCKING))     \
    X("cuStreamDestroy", stream_destroy, cuStreamDestroy(beside.stream))                           \
    X("cuModuleLoadData", module_load, cuModuleLoadData(&beside.module, kernels_text()))           \
    X("cuFuncLoad", function_load, cuFuncLoad(beside.function))                                    \
    X("cuModuleUnload", module_unload, cuModuleUnload(beside.module))                              \
    X("cuMemAllocManaged", memory_alloc,                                                           \
      cuMemAllocManaged(&beside.made, MIB, CU_MEM_ATTACH_GLOBAL))                                  \
    X("cuMemAdvise", memory_advise,                                                                \
      cuMemAdvise(beside.memory, MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu))                      \
    X("cuMemPrefetchAsync on another stream", memory_prefetch,                                     \
      cuMemPrefetchAsync(beside.memory, MIB, on_gpu, 0, capturing.other))                          \
    X("cuMemGetInfo", memory_info, cuMemGetInfo(&(size_t){0}, &(size_t){0}))                       \
    X("cuMemFree", memory_free, cuMemFree(beside.made))
#define FUNCTION(name, function, call)                                                             \
    static CUresult function(void)                                                                 \
    {                                                                                              \
        return call;                                                                               \
    }
ELSEWHERE(FUNCTION)
#define ROW(name, function, call) {name, function},
static const struct {
    const char *name;
    CUresult (*call)(void);
} elsewhere[] = {ELSEWHERE(ROW)};

static void *do_elsewhere(void *row)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    size_t i = (uintptr_t)row;

    cuCtxSetCurrent(beside.context);
    if (beside.relaxed)
        cuThreadExchangeStreamCaptureMode(&mode);
    return (void *)(uintptr_t)elsewhere[i].call();
}

static void run_elsewhere(CUcontext context, bool relaxed)
{
    pthread_t thread;
    void *result;

    beside.context = context;
    beside.relaxed = relaxed;
    beside.memory = managed(MIB);
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
        char what[80];
        snprintf(what, sizeof(what), "%s by another %sthread", elsewhere[i].name,
                 relaxed ? "relaxed " : "");
        if (elsewhere[i].call == function_load &&
            cuModuleGetFunction(&beside.function, beside.module, ADD_ONE) != CUDA_SUCCESS)
            continue;
        capture_begin(relaxed ? CU_STREAM_CAPTURE_MODE_GLOBAL
                              : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        pthread_create(&thread, NULL, do_elsewhere, (void *)(uintptr_t)i);
        pthread_join(thread, &result);
        capture_end(what, (CUresult)(uintptr_t)result);
    }
    MUST(cuMemFree(beside.memory));
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void run_capture(void)
{
    CUcontext context = begin();
    CUdeviceptr p, q, made, spare[3] = {0};
    CUevent outside, inside;
    CUmodule module;
    CUstream quiet;
    CUgraph graph = NULL;
    CUstreamCaptureStatus status;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    pthread_t thread;
    void *pinned, *result;
    char host[64] = "";
    size_t free_bytes, n = 2 * MIB;
    unsigned type;

    CUfunction f = function(ADD_ONE);
    p = managed(n);
    MUST(cuMemAlloc(&q, n));
    MUST(cuMemAllocHost(&pinned, n));
    for (int i = 0; i < 3; i++)
        MUST(cuMemAlloc(&spare[i], MIB));
    MUST(cuStreamCreate(&capturing.stream, CU_STREAM_DEFAULT));
    MUST(cuStreamCreate(&capturing.other, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&quiet, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(outside, capturing.other));
    MUST(add_one(f, q, 1, capturing.other));
    MUST(cuCtxSynchronize());
    CUstream s = capturing.stream;

    CAPTURED(GLOBAL, "nothing", CUDA_SUCCESS);
    CAPTURED(GLOBAL, "launch", add_one(f, q, 1, s));
    CAPTURED(GLOBAL, "cuMemcpyAsync from pinned", cuMemcpyHtoDAsync(q, pinned, n, s));
    CAPTURED(GLOBAL, "cuMemcpyAsync from the stack", cuMemcpyHtoDAsync(q, host, 64, s));
    CAPTURED(GLOBAL, "cuMemsetD8Async", cuMemsetD8Async(q, 0, n, s));
    CAPTURED(GLOBAL, "cuLaunchHostFunc", cuLaunchHostFunc(s, nothing, NULL));
    CAPTURED(GLOBAL, "cuMemAllocAsync", cuMemAllocAsync(&made, MIB, s));
    CAPTURED(GLOBAL, "cuMemAlloc", cuMemAlloc(&made, n));
    CAPTURED(THREAD_LOCAL, "cuMemAlloc", cuMemAlloc(&made, n));
    CAPTURED(RELAXED, "cuMemAlloc", cuMemAlloc(&made, n));
    CAPTURED(GLOBAL, "cuMemAllocManaged", cuMemAllocManaged(&made, MIB, CU_MEM_ATTACH_GLOBAL));
    CAPTURED(GLOBAL, "cuMemAllocHost", cuMemAllocHost(&pinned, n));
    CAPTURED(GLOBAL, "cuMemFree", cuMemFree(spare[0]));
    CAPTURED(RELAXED, "cuMemFree", cuMemFree(spare[2]));
    CAPTURED(GLOBAL, "cuMemFreeAsync of what is outside", cuMemFreeAsync(q, s));
    CAPTURED(GLOBAL, "cuModuleLoadData", cuModuleLoadData(&module, kernels_text()));
    CAPTURED(GLOBAL, "cuCtxSynchronize", cuCtxSynchronize());
    CAPTURED(RELAXED, "cuCtxSynchronize", cuCtxSynchronize());
    CAPTURED(GLOBAL, "cuStreamSynchronize", cuStreamSynchronize(s));
    CAPTURED(RELAXED, "cuStreamSynchronize", cuStreamSynchronize(s));
    CAPTURED(GLOBAL, "cuStreamQuery", cuStreamQuery(s));
    CAPTURED(GLOBAL, "cuStreamSynchronize of another", cuStreamSynchronize(capturing.other));
    CAPTURED(GLOBAL, "cuStreamQuery of another", cuStreamQuery(capturing.other));
    CAPTURED(GLOBAL, "cuEventQuery of one outside", cuEventQuery(outside));
    CAPTURED(GLOBAL, "cuEventSynchronize of one outside", cuEventSynchronize(outside));
    CAPTURED(GLOBAL, "cuStreamWaitEvent of one outside", cuStreamWaitEvent(s, outside, 0));
    CAPTURED(GLOBAL, "cuEventRecord", cuEventRecord(inside, s));
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    capture_end("cuEventQuery", cuEventQuery(inside));
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    capture_end("cuEventSynchronize", cuEventSynchronize(inside));
    CAPTURED(GLOBAL, "launch on stream 0", add_one(f, q, 1, NULL));
    CAPTURED(RELAXED, "launch on stream 0", add_one(f, q, 1, NULL));
    CAPTURED(GLOBAL, "launch on another stream", add_one(f, q, 1, capturing.other));
    CAPTURED(GLOBAL, "cuMemcpyHtoD", cuMemcpyHtoD(q, host, 64));
    CAPTURED(GLOBAL, "cuStreamQuery of 0", cuStreamQuery(NULL));
    CAPTURED(GLOBAL, "cuStreamIsCapturing of 0", cuStreamIsCapturing(NULL, &status));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync", cuMemPrefetchAsync(p, n, on_gpu, 0, s));
    CAPTURED(RELAXED, "cuMemPrefetchAsync", cuMemPrefetchAsync(p, n, on_gpu, 0, s));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync of no range", cuMemPrefetchAsync(0, n, on_gpu, 0, s));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync on another stream",
             cuMemPrefetchAsync(p, n, on_gpu, 0, capturing.other));
    CAPTURED(GLOBAL, "cuMemPrefetchAsync on stream 0", cuMemPrefetchAsync(p, n, on_gpu, 0, NULL));
    CAPTURED(GLOBAL, "cuMemAdvise", cuMemAdvise(p, n, CU_MEM_ADVISE_SET_READ_MOSTLY, on_gpu));
    CAPTURED(GLOBAL, "cuPointerGetAttribute",
             cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    CAPTURED(GLOBAL, "cuMemGetInfo", cuMemGetInfo(&free_bytes, &n));
    n = 2 * MIB;
    CAPTURED(GLOBAL, "cuStreamCreate", cuStreamCreate(&quiet, CU_STREAM_NON_BLOCKING));
    CAPTURED(GLOBAL, "cuStreamAttachMemAsync",
             cuStreamAttachMemAsync(s, p, 0, CU_MEM_ATTACH_GLOBAL));
    CAPTURED(GLOBAL, "cuStreamBeginCapture again",
             cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CAPTURED(GLOBAL, "an error of a call that is captured",
             cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s, (void *[]){&q, &n}, NULL));

    PROBE("cuStreamEndCapture without a beginning", cuStreamEndCapture(s, &graph));
    PROBE("cuStreamBeginCapture of 0", cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PROBE("cuStreamBeginCapture, no such mode", cuStreamBeginCapture(s, (CUstreamCaptureMode)7));
    cuStreamEndCapture(s, &graph);
    PROBE("cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode(&mode));
    say("the mode before", "%d", (int)mode);
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    capture_end("cuMemAlloc in a relaxed thread", cuMemAlloc(&made, n));
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));

    /* forks and joins */
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    PROBE("a fork", cuStreamWaitEvent(capturing.other, inside, 0));
    MUST(cuStreamIsCapturing(capturing.other, &status));
    say("the other stream is then", "%d", (int)status);
    PROBE("launch there", add_one(f, q, 1, capturing.other));
    PROBE("cuStreamEndCapture there", cuStreamEndCapture(capturing.other, &graph));
    capture_end("a fork that never joins", CUDA_SUCCESS);
    MUST(cuStreamIsCapturing(capturing.other, &status));
    say("the other stream is then, once ended", "%d", (int)status);
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuEventRecord(inside, s));
    MUST(cuStreamWaitEvent(capturing.other, inside, 0));
    MUST(add_one(f, q, 1, capturing.other));
    MUST(cuEventRecord(inside, capturing.other));
    capture_end("a fork that joins", cuStreamWaitEvent(s, inside, 0));
    PROBE("cuEventQuery after the capture", cuEventQuery(inside));
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuStreamBeginCapture(capturing.other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuEventRecord(inside, s));
    PROBE("two captures meet", cuStreamWaitEvent(capturing.other, inside, 0));
    PROBE("the end of the second", cuStreamEndCapture(capturing.other, &graph));
    capture_end("two captures meet, the first", CUDA_SUCCESS);
    capture_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    pthread_create(&thread, NULL, end_elsewhere, context);
    pthread_join(thread, &result);
    capture_end("cuStreamEndCapture by another thread", (CUresult)(uintptr_t)result);
    run_elsewhere(context, false);
    run_elsewhere(context, true);
    PROBE("all that in the end", cuCtxSynchronize());
}

static void run_graphs(void)
{
    CUgraph graph = NULL, copy;
    CUgraphExec exec = NULL, empty = NULL;
    CUgraphNode nodes[4] = {NULL}, node;
    CUgraphNodeType type;
    CUgraphExecUpdateResultInfo info = {0};
    CUDA_KERNEL_NODE_PARAMS params = {0};
    CUstream stream;
    CUdeviceptr p;
    float seen = 0;
    size_t n = 4;

    begin();
    CUfunction f = function(ADD_ONE);
    MUST(cuMemAlloc(&p, MIB));
    MUST(cuMemsetD8(p, 0, MIB));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PROBE("cuGraphCreate with flags", cuGraphCreate(&graph, 1));
    PROBE("cuGraphCreate", cuGraphCreate(&graph, 0));
    PROBE("cuGraphInstantiate of an empty one", cuGraphInstantiate(&empty, graph, 0));
    PROBE("cuGraphLaunch of an empty one", cuGraphLaunch(empty, stream));
    PROBE("cuGraphLaunch of NULL", cuGraphLaunch(NULL, stream));
    PROBE("cuGraphInstantiate of NULL", cuGraphInstantiate(&exec, NULL, 0));
    PROBE("cuGraphInstantiate, no such flags", cuGraphInstantiate(&exec, graph, 0xff00));
    PROBE("cuGraphAddEmptyNode", cuGraphAddEmptyNode(&node, graph, NULL, 0));
    PROBE("cuGraphDestroy", cuGraphDestroy(graph));
    PROBE("cuGraphDestroy of NULL", cuGraphDestroy(NULL));
    PROBE("cuGraphExecDestroy of NULL", cuGraphExecDestroy(NULL));
    MUST(add_one(f, p, 1, stream)); /* loaded from here on */
    MUST(cuStreamSynchronize(stream));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PROBE("cuGraphLaunch of another in a capture", cuGraphLaunch(empty, stream));
    PROBE("cuStreamEndCapture after that", cuStreamEndCapture(stream, &graph));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemsetD8Async(p, 0, MIB, stream));
    MUST(add_one(f, p, 4, stream));
    MUST(cuLaunchHostFunc(stream, nothing, NULL));
    MUST(cuStreamEndCapture(stream, &graph));
    PROBE("cuGraphGetNodes", cuGraphGetNodes(graph, nodes, &n));
    say("nodes", "%zu", n);
    for (size_t i = 0; i < n && i < 4; i++) {
        char what[32];
        MUST(cuGraphNodeGetType(nodes[i], &type));
        snprintf(what, sizeof(what), "type of node %zu", i);
        say(what, "%d", (int)type);
        if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
            PROBE("cuGraphKernelNodeGetParams", cuGraphKernelNodeGetParams(nodes[i], &params));
            say("its parameters", "grid %u, function the same %d, kernel %d, first %d",
                params.gridDimX, params.func == f, params.kern != NULL,
                params.kernelParams && *(CUdeviceptr *)params.kernelParams[0] == p);
        } else {
            snprintf(what, sizeof(what), "wrong kind of node %zu", i);
            PROBE(what, cuGraphKernelNodeGetParams(nodes[i], &params));
        }
    }
    PROBE("cuGraphInstantiate", cuGraphInstantiate(&exec, graph, 0));
    PROBE("cuGraphLaunch", cuGraphLaunch(exec, stream));
    PROBE("cuGraphLaunch again", cuGraphLaunch(exec, stream));
    PROBE("cuStreamSynchronize", cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(&seen, p, sizeof(seen)));
    say("the result", "%.0f", (double)seen);
    PROBE("cuGraphExecUpdate", cuGraphExecUpdate(exec, graph, &info));
    say("it says", "%d", (int)info.result);
    MUST(cuGraphCreate(&copy, 0));
    MUST(cuGraphAddEmptyNode(&node, copy, NULL, 0));
    PROBE("cuGraphExecUpdate with another shape", cuGraphExecUpdate(exec, copy, &info));
    say("it says then", "%d", (int)info.result);
    PROBE("cuGraphExecDestroy", cuGraphExecDestroy(exec));
    PROBE("cuGraphDestroy of a captured one", cuGraphDestroy(graph));
}

const section_t um_probes_graphs[] = {
    {"capture", run_capture},
    {"graphs", run_graphs},
    {NULL, NULL},
};
#endif

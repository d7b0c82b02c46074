/*
 * graphs.c - a graph is read when it is instantiated and is one unit when it is launched: its
 * arguments are those of all its nodes together.
 *
 * Readers (graph launches) take no lock: each executable graph has a fixed slot guarded by a sequence
 * number that is odd while the slot is being written. A launch that meets a writer, or a graph for
 * which no slot was free, says that its arguments are unknown.
 */
#include "executor.h"
#include "live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define UM_GRAPHS      1024 /* live executable graphs that are followed */
#define UM_GRAPH_ARGS  64   /* pointers of one graph */
#define UM_GRAPH_NODES 65536

typedef struct um_graph {
    _Atomic uint32_t sequence;
    _Atomic uint64_t exec; /* CUgraphExec, 0 = free */
    uint32_t n_args;
    uint32_t flags; /* um_launch_flag_t */
    um_arg_t args[UM_GRAPH_ARGS];
} um_graph_t;

static um_graph_t um_graphs[UM_GRAPHS];
/* Writers serialise here: instantiation, update, destruction. */
static pthread_mutex_t um_graphs_lock = PTHREAD_MUTEX_INITIALIZER;

/* CUDA_KERNEL_NODE_PARAMS of 12.0 (v2) and later; v1 ends after extra. */
typedef struct um_kernel_node {
    uint64_t function;
    uint32_t grid[3], block[3], shared_bytes;
    void **params, **extra;
    uint64_t kernel, context;
} um_kernel_node_t;
_Static_assert(offsetof(um_kernel_node_t, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS, extra),
               "CUDA_KERNEL_NODE_PARAMS");

static size_t um_graph_slot(uint64_t exec, size_t probe)
{
    return (size_t)((exec >> 4) * 0x9E3779B97F4A7C15u >> 32) + probe;
}

static um_graph_t *um_graph_find(uint64_t exec)
{
    for (size_t i = 0; i < UM_GRAPHS; i++) {
        um_graph_t *graph = &um_graphs[um_graph_slot(exec, i) % UM_GRAPHS];
        if (graph->exec == exec)
            return graph;
        if (i >= 16) /* inserted within 16 slots or not at all */
            break;
    }
    return NULL;
}

static void um_graph_add_arg(um_graph_t *into, const um_arg_t *arg)
{
    for (uint32_t i = 0; i < into->n_args; i++)
        if (into->args[i].region == arg->region &&
            into->args[i].region_offset_bytes == arg->region_offset_bytes)
            return;
    if (into->n_args < UM_GRAPH_ARGS)
        into->args[into->n_args++] = *arg;
    else
        into->flags |= UM_LAUNCH_ARGS_UNKNOWN;
}

static void um_graph_add_addr(um_graph_t *into, uint64_t addr)
{
    um_region_t region;

    if (addr && um_regions_find(um_live.runtime->regions, addr, &region)) {
        um_arg_t arg = {.region = region.id, .region_offset_bytes = addr - region.addr};
        um_graph_add_arg(into, &arg);
    }
}

static void um_graph_add_kernel(um_graph_t *into, const um_kernel_node_t *node)
{
    um_arg_t args[UM_GRAPH_ARGS];
    const um_kernel_t *kernel =
        um_launch_kernel(node->function ? node->function : node->kernel, NULL);

    if (!kernel || !kernel->layout_known || !node->params) {
        into->flags |= UM_LAUNCH_ARGS_UNKNOWN;
        return;
    }
    uint32_t n = um_kernel_args(kernel, um_live.runtime->regions, node->params, NULL, 0, args,
                                UM_GRAPH_ARGS);
    for (uint32_t i = 0; i < n && i < UM_GRAPH_ARGS; i++)
        um_graph_add_arg(into, &args[i]);
}

static void um_graph_read(um_graph_t *into, CUgraph graph, int depth);

static void um_graph_read_node(um_graph_t *into, CUgraphNode node, int depth)
{
    const um_cuda_t *cuda = um_live.cuda;
    CUgraphNodeType type;
    um_kernel_node_t kernel = {0};
    CUDA_MEMCPY3D copy = {0};
    CUDA_MEMSET_NODE_PARAMS set = {0};
    CUgraph child = NULL;

    if (cuda->graph_node_type(node, &type) != CUDA_SUCCESS)
        return;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (cuda->graph_kernel_params_v2
                ? cuda->graph_kernel_params_v2(node, &kernel) == CUDA_SUCCESS
                : cuda->graph_kernel_params &&
                      cuda->graph_kernel_params(node, &kernel) == CUDA_SUCCESS) {
            um_cuda_own = false; /* the definition sets and clears it itself */
            um_graph_add_kernel(into, &kernel);
            um_cuda_own = true;
        } else {
            into->flags |= UM_LAUNCH_ARGS_UNKNOWN;
        }
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (cuda->graph_memcpy_params && cuda->graph_memcpy_params(node, &copy) == CUDA_SUCCESS) {
            if (copy.dstMemoryType != CU_MEMORYTYPE_ARRAY)
                um_graph_add_addr(into, copy.dstDevice);
            if (copy.srcMemoryType != CU_MEMORYTYPE_ARRAY)
                um_graph_add_addr(into, copy.srcDevice);
        }
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (cuda->graph_memset_params && cuda->graph_memset_params(node, &set) == CUDA_SUCCESS)
            um_graph_add_addr(into, set.dst);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (cuda->graph_child && cuda->graph_child(node, &child) == CUDA_SUCCESS)
            um_graph_read(into, child, depth + 1);
        break;
    default:
        break;
    }
}

/* Our own calls: um_cuda_own is set. */
static void um_graph_read(um_graph_t *into, CUgraph graph, int depth)
{
    const um_cuda_t *cuda = um_live.cuda;
    size_t n = 0;
    CUgraphNode *nodes = NULL;

    if (depth > 8 || !cuda->graph_nodes || !cuda->graph_node_type ||
        cuda->graph_nodes(graph, NULL, &n) != CUDA_SUCCESS || n > UM_GRAPH_NODES ||
        (n && !(nodes = calloc(n, sizeof(*nodes)))) ||
        (n && cuda->graph_nodes(graph, nodes, &n) != CUDA_SUCCESS)) {
        into->flags |= UM_LAUNCH_ARGS_UNKNOWN;
        free(nodes);
        return;
    }
    for (size_t i = 0; i < n; i++)
        um_graph_read_node(into, nodes[i], depth);
    free(nodes);
}

/* Puts what was read into the graph's slot; exec 0 frees it. */
static void um_graph_store(uint64_t exec, const um_graph_t *read, bool add)
{
    pthread_mutex_lock(&um_graphs_lock);
    um_graph_t *graph = um_graph_find(exec);
    for (size_t i = 0; !graph && i < 16; i++) {
        um_graph_t *slot = &um_graphs[um_graph_slot(exec, i) % UM_GRAPHS];
        if (slot->exec == 0)
            graph = slot;
    }
    if (graph) {
        atomic_fetch_add(&graph->sequence, 1);
        graph->exec = exec;
        if (!add) {
            graph->n_args = read->n_args;
            graph->flags = read->flags;
            memcpy(graph->args, read->args, read->n_args * sizeof(*read->args));
        } else {
            graph->flags |= read->flags;
            for (uint32_t i = 0; i < read->n_args; i++)
                um_graph_add_arg(graph, &read->args[i]);
        }
        atomic_fetch_add(&graph->sequence, 1);
    }
    pthread_mutex_unlock(&um_graphs_lock);
}

/* Copies a graph out without a lock; false when unknown or being written. */
static bool um_graph_load(uint64_t exec, um_arg_t *args, uint32_t *n, uint32_t *flags)
{
    um_graph_t *graph = um_graph_find(exec);

    if (!graph)
        return false;
    uint32_t sequence = atomic_load_explicit(&graph->sequence, memory_order_acquire);
    *n = graph->n_args <= UM_GRAPH_ARGS ? graph->n_args : 0;
    *flags = graph->flags;
    memcpy(args, graph->args, *n * sizeof(*args));
    atomic_thread_fence(memory_order_acquire);
    return !(sequence & 1) && sequence == graph->sequence && graph->exec == exec;
}

/* word: where the executable graph is stored, the graph. */
void um_on_graph_instantiate(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_graph_t read = {0};

    if (um_entering(info) || um_result(info) != CUDA_SUCCESS)
        return;
    const uint64_t *exec = (const void *)(uintptr_t)um_word(info, call->word[0]);
    if (!exec || !*exec)
        return;
    um_cuda_own = true;
    um_graph_read(&read, (CUgraph)(uintptr_t)um_word(info, call->word[1]), 0);
    um_cuda_own = false;
    um_graph_store(*exec, &read, false);
}

/* cuGraphExecUpdate: the same topology with other parameters. */
void um_on_graph_update(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_graph_t read = {0};

    (void)call;
    if (um_entering(info) || um_result(info) != CUDA_SUCCESS)
        return;
    um_cuda_own = true;
    um_graph_read(&read, (CUgraph)(uintptr_t)um_word(info, 1), 0);
    um_cuda_own = false;
    um_graph_store(um_word(info, 0), &read, false);
}

/* cuGraphExecKernelNodeSetParams: one node's new arguments join the others, the old ones stay. */
void um_on_graph_set_kernel(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_graph_t read = {0};
    um_kernel_node_t node = {0};
    const void *params = (const void *)(uintptr_t)um_word(info, 2);

    if (um_entering(info) || um_result(info) != CUDA_SUCCESS || !params)
        return;
    memcpy(&node, params, call->what == 2 ? sizeof(node) : offsetof(um_kernel_node_t, kernel));
    um_graph_add_kernel(&read, &node);
    um_graph_store(um_word(info, 0), &read, true);
}

void um_on_graph_destroy(const CUpti_CallbackData *info, const um_call_t *call)
{
    (void)call;
    if (!um_entering(info))
        return;
    pthread_mutex_lock(&um_graphs_lock);
    um_graph_t *graph = um_graph_find(um_word(info, 0));
    if (graph) {
        atomic_fetch_add(&graph->sequence, 1);
        graph->exec = 0;
        graph->n_args = 0;
        atomic_fetch_add(&graph->sequence, 1);
    }
    pthread_mutex_unlock(&um_graphs_lock);
}

void um_on_graph_launch(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_runtime_t *runtime = um_live.runtime;
    um_arg_t args[UM_GRAPH_ARGS];
    uint32_t n = 0, flags = 0;
    bool managed = false;

    if (!um_entering(info))
        return;
    atomic_fetch_add_explicit(&runtime->launches, 1, memory_order_relaxed);
    if (!um_live.record && !um_live_managed())
        return;
    uint64_t exec = um_word(info, 0);
    if (!um_graph_load(exec, args, &n, &flags)) {
        n = 0;
        flags = UM_LAUNCH_ARGS_UNKNOWN;
    }
    managed = n && um_launch_touches_managed(args, n);
    if (managed) {
        atomic_fetch_add_explicit(&runtime->launches_managed, 1, memory_order_relaxed);
    } else if (!um_live.record) {
        return;
    }
    um_event_t event = um_live_event(UM_EV_LAUNCH);
    event.u.launch = (um_ev_launch_t){
        .correlation = info->correlationId,
        .stream = um_call_stream(info, call),
        .context = info->contextUid,
        .device = um_live_device(info->contextUid),
        .flags = UM_LAUNCH_GRAPH | flags,
        .graph = exec,
        .n_args = n,
        .args = args,
    };
    um_cuda_context_is(info->contextUid, info->context);
    um_live_post(&event, managed && runtime->hinting);
}

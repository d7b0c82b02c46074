/*
 * graphs.c - a graph is read when it is instantiated and is one unit when it is launched: its
 * arguments are those of all its nodes together.
 *
 * Readers (graph launches) take no lock: each executable graph has a fixed slot guarded by a sequence
 * number that is odd while the slot is being written. A launch that meets a writer, or a graph for
 * which no slot was free, says that its arguments are unknown.
 */
#include "executor.h"
#include "deep.h"
#include "live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define UM_GRAPHS      1024 /* live executable graphs that are followed */
#define UM_GRAPH_ARGS  64   /* pointers of one graph */
#define UM_GRAPH_NODES 65536

/* Conditional nodes, of CUDA 12.3+ and not in older headers. */
#define UM_NODE_CONDITIONAL 13
#define UM_CONDITIONALS     64 /* nodes whose bodies are remembered: the latest ones */
#define UM_BODIES           8  /* graphs of one of them */

/* CUgraphNodeParams of one. */
typedef struct um_conditional_params {
    int32_t node_type, reserved[3];
    uint64_t handle;
    int32_t type;
    uint32_t n_bodies;
    const uint64_t *body; /* CUgraph, made by the call */
    uint64_t context;
} um_conditional_params_t;

typedef struct um_graph {
    uint32_t n_args;
    uint32_t flags; /* um_launch_flag_t */
    um_arg_t args[UM_GRAPH_ARGS];
} um_graph_t;
#define UM_GRAPH_WORDS(n_args) (1 + (n_args) * (sizeof(um_arg_t) / 8))
_Static_assert(sizeof(um_graph_t) == 8 * UM_GRAPH_WORDS(UM_GRAPH_ARGS), "a graph is whole words");

typedef struct um_slot {
    _Atomic uint32_t sequence;
    _Atomic uint64_t exec;                                 /* CUgraphExec, 0 = free */
    _Atomic uint64_t words[UM_GRAPH_WORDS(UM_GRAPH_ARGS)]; /* of a um_graph_t */
} um_slot_t;

static um_slot_t um_slots[UM_GRAPHS];
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

/* An executable graph is within UM_PROBES slots of its hash, or is not followed. */
#define UM_PROBES 16
static um_slot_t *um_slot_find(uint64_t exec, uint64_t wanted)
{
    size_t first = (size_t)((exec >> 4) * 0x9E3779B97F4A7C15u >> 32);

    for (size_t i = 0; i < UM_PROBES; i++) {
        um_slot_t *slot = &um_slots[(first + i) % UM_GRAPHS];
        if (slot->exec == wanted)
            return slot;
    }
    return NULL;
}

/* Word by word, so that a reader that meets a writer reads nonsense but not undefined behaviour; the
 * sequence tells. */
static void um_slot_get(const um_slot_t *slot, um_graph_t *out)
{
    uint64_t words[UM_GRAPH_WORDS(UM_GRAPH_ARGS)];

    words[0] = atomic_load_explicit(&slot->words[0], memory_order_acquire);
    memcpy(out, words, 8);
    if (out->n_args > UM_GRAPH_ARGS)
        out->n_args = 0;
    for (size_t i = 1; i < UM_GRAPH_WORDS(out->n_args); i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
    memcpy(out->args, words + 1, out->n_args * sizeof(*out->args));
}

static void um_slot_put(um_slot_t *slot, uint64_t exec, const um_graph_t *graph)
{
    uint64_t words[UM_GRAPH_WORDS(UM_GRAPH_ARGS)];

    memcpy(words, graph, 8 * UM_GRAPH_WORDS(graph->n_args));
    atomic_fetch_add(&slot->sequence, 1);
    slot->exec = exec;
    for (size_t i = 0; i < UM_GRAPH_WORDS(graph->n_args); i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_release);
    atomic_fetch_add(&slot->sequence, 1);
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

/* What a node's bodies are is only said as it is made. */
static struct {
    uint64_t node, body[UM_BODIES];
    uint32_t n;
} um_conditionals[UM_CONDITIONALS];
static uint32_t um_n_conditionals;
static pthread_mutex_t um_conditionals_lock = PTHREAD_MUTEX_INITIALIZER;

/* word: the node made, and its parameters. */
void um_on_graph_add_node(const CUpti_CallbackData *info, const um_call_t *call)
{
    const uint64_t *node = (const void *)(uintptr_t)um_word(info, call->word[0]);
    const um_conditional_params_t *params = (const void *)(uintptr_t)um_word(info, call->word[1]);

    if (um_entering(info) || um_result(info) != CUDA_SUCCESS || !node || !params ||
        params->node_type != UM_NODE_CONDITIONAL || !params->body || params->n_bodies > UM_BODIES)
        return;
    pthread_mutex_lock(&um_conditionals_lock);
    uint32_t i = 0;
    while (i < UM_CONDITIONALS && um_conditionals[i].node != *node)
        i++;
    if (i == UM_CONDITIONALS)
        i = um_n_conditionals++ % UM_CONDITIONALS;
    um_conditionals[i].node = *node;
    um_conditionals[i].n = params->n_bodies;
    memcpy(um_conditionals[i].body, params->body, params->n_bodies * sizeof(*params->body));
    pthread_mutex_unlock(&um_conditionals_lock);
}

/* Which of them run is decided on the GPU: all that any of them takes. */
static void um_graph_read_conditional(um_graph_t *into, CUgraphNode node, int depth)
{
    uint64_t body[UM_BODIES];
    uint32_t n = 0;

    pthread_mutex_lock(&um_conditionals_lock);
    for (uint32_t i = 0; i < UM_CONDITIONALS; i++)
        if (um_conditionals[i].node == (uint64_t)(uintptr_t)node) {
            n = um_conditionals[i].n;
            memcpy(body, um_conditionals[i].body, n * sizeof(*body));
        }
    pthread_mutex_unlock(&um_conditionals_lock);
    if (n == 0) /* a clone, or made before us */
        into->flags |= UM_LAUNCH_ARGS_UNKNOWN;
    for (uint32_t i = 0; i < n; i++)
        um_graph_read(into, (CUgraph)(uintptr_t)body[i], depth + 1);
}

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
        if ((int)type == UM_NODE_CONDITIONAL)
            um_graph_read_conditional(into, node, depth);
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
        (n && !(nodes = calloc(n, sizeof(CUgraphNode)))) || /* NOLINT: an array of pointers */
        (n && cuda->graph_nodes(graph, nodes, &n) != CUDA_SUCCESS)) {
        into->flags |= UM_LAUNCH_ARGS_UNKNOWN;
        free(nodes);
        return;
    }
    for (size_t i = 0; i < n; i++)
        um_graph_read_node(into, nodes[i], depth);
    free(nodes);
}

/* Puts what was read into the graph's slot, or adds it to what is there. */
static void um_graph_store(uint64_t exec, const um_graph_t *read, bool add)
{
    um_graph_t graph = *read;

    pthread_mutex_lock(&um_graphs_lock);
    um_slot_t *slot = um_slot_find(exec, exec);
    if (slot && add) {
        um_slot_get(slot, &graph);
        graph.flags |= read->flags;
        for (uint32_t i = 0; i < read->n_args; i++)
            um_graph_add_arg(&graph, &read->args[i]);
    }
    if (!slot)
        slot = um_slot_find(exec, 0);
    if (slot)
        um_slot_put(slot, exec, &graph);
    pthread_mutex_unlock(&um_graphs_lock);
}

/* Without a lock; false when the graph is unknown or being written. */
static bool um_graph_load(uint64_t exec, um_graph_t *out)
{
    um_slot_t *slot = um_slot_find(exec, exec);

    if (!slot)
        return false;
    uint32_t sequence = slot->sequence;
    um_slot_get(slot, out);
    return !(sequence & 1) && sequence == slot->sequence && slot->exec == exec;
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
    um_slot_t *slot = um_slot_find(um_word(info, 0), um_word(info, 0));
    if (slot)
        um_slot_put(slot, 0, &(um_graph_t){0});
    pthread_mutex_unlock(&um_graphs_lock);
}

void um_on_graph_launch(const CUpti_CallbackData *info, const um_call_t *call)
{
    um_runtime_t *runtime = um_live.runtime;
    um_graph_t graph;
    bool managed = false;

    if (!um_entering(info)) {
        um_deep_launched(info, um_call_stream(info, call));
        return;
    }
    atomic_fetch_add_explicit(&runtime->launches, 1, memory_order_relaxed);
    if (!um_live.record && !um_live_managed())
        return;
    uint64_t exec = um_word(info, 0), stream = um_call_stream(info, call);
    if (!um_graph_load(exec, &graph)) {
        graph.n_args = 0;
        graph.flags = UM_LAUNCH_ARGS_UNKNOWN;
    }
    managed = graph.n_args && um_launch_touches_managed(graph.args, graph.n_args);
    if (managed) {
        atomic_fetch_add_explicit(&runtime->launches_managed, 1, memory_order_relaxed);
    } else if (!um_live.record) {
        return;
    }
    bool captured = um_is_captured(stream);
    if (!captured)
        um_deep_push(info, graph.args, graph.n_args, graph.flags & UM_LAUNCH_ARGS_UNKNOWN);
    um_event_t event = um_live_event(UM_EV_LAUNCH);
    event.u.launch = (um_ev_launch_t){
        .correlation = info->correlationId,
        .stream = stream,
        .context = info->contextUid,
        .device = um_live_device(info->contextUid),
        .flags = UM_LAUNCH_GRAPH | graph.flags | (captured ? UM_LAUNCH_CAPTURED : 0),
        .graph = exec,
        .call_site = runtime->settings.launch_sites ? um_callsite_here() : 0,
        .n_args = graph.n_args,
        .args = graph.args,
    };
    um_cuda_context_is(info->contextUid, info->context);
    um_live_post(&event, managed && runtime->hinting);
    if (managed && runtime->hinting && !captured)
        um_live_launched(info->contextUid);
}

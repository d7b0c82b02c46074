/*
 * graph.c - graphs: made by hand or by capturing streams, instantiated, updated, launched. A launch runs the
 * nodes one after the other in an order that their dependencies allow.
 */
#include "softgpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct CUgraphNode_st {
    uint32_t magic;
    sg_op_t op;
    struct CUgraphNode_st **on; /* earlier nodes of the same graph */
    size_t n_on;
    const struct CUgraphNode_st *of; /* in an executable graph: the node that it was made from */
} node_t;

typedef struct CUgraph_st {
    uint32_t magic;
    node_t **nodes; /* in the order made: dependencies always point back */
    size_t n;
} graph_t;

typedef struct CUgraphExec_st {
    uint32_t magic;
    graph_t *graph;
} exec_t;

static graph_t *graph_new(void)
{
    graph_t *graph = calloc(1, sizeof(*graph));

    graph->magic = SG_GRAPH;
    return graph;
}

/* Takes op. */
static node_t *node_add(graph_t *graph, const sg_op_t *op, node_t *const *on, size_t n_on)
{
    node_t *node = calloc(1, sizeof(*node));

    node->magic = SG_NODE;
    node->op = *op;
    node->n_on = n_on;
    node->on = calloc(n_on + 1, sizeof(node_t *)); /* NOLINT: an array of pointers */
    if (n_on)
        memcpy(node->on, on, n_on * sizeof(node_t *));                       /* NOLINT */
    graph->nodes = realloc(graph->nodes, (graph->n + 1) * sizeof(node_t *)); /* NOLINT */
    graph->nodes[graph->n++] = node;
    return node;
}

graph_t *sg_graph_copy(const graph_t *from)
{
    graph_t *to = graph_new();

    for (size_t i = 0; i < from->n; i++) {
        sg_op_t op;
        sg_op_copy(&op, &from->nodes[i]->op);
        node_add(to, &op, NULL, 0)->of = from->nodes[i];
    }
    return to;
}

void sg_graph_free(graph_t *graph)
{
    for (size_t i = 0; i < graph->n; i++) {
        graph->nodes[i]->magic = SG_GONE; /* handles to it may be asked about */
        sg_op_clear(&graph->nodes[i]->op);
        free(graph->nodes[i]->on);
    }
    free(graph->nodes);
    graph->magic = SG_GONE;
}

void sg_graph_child_run(graph_t *graph, sg_stream_t *stream, uint32_t correlation)
{
    for (size_t i = 0; i < graph->n; i++) {
        graph->nodes[i]->op.correlation = correlation;
        sg_op_run(&graph->nodes[i]->op, stream);
    }
}

void sg_graph_run(exec_t *exec, sg_stream_t *stream)
{
    sg_graph_child_run(exec->graph, stream, 0);
}

/* ---- capture, under sg_lock ------------------------------------------------------------------------- */

static sg_capture_t *captures; /* under way */
static uint64_t n_captures;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static uint64_t this_thread(void)
{
    return (uint64_t)pthread_self();
}

/* Duplicates of a dependency do no harm: nobody counts them. */
static void tail_is(sg_stream_t *stream, node_t *const *tail, size_t n, bool more)
{
    size_t before = more ? stream->n_tail : 0;

    stream->tail = realloc(stream->tail, (before + n + 1) * sizeof(node_t *)); /* NOLINT */
    if (n)
        memcpy(stream->tail + before, tail, n * sizeof(node_t *)); /* NOLINT */
    stream->n_tail = before + n;
}

CUresult sg_capture_add(sg_stream_t *stream, sg_op_t *op)
{
    sg_capture_t *capture = stream->capture;

    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (op->type >= SG_OP_PREFETCH) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    node_t *node = node_add(capture->graph, op, stream->tail, stream->n_tail);
    tail_is(stream, &node, 1, false);
    return CUDA_SUCCESS;
}

CUresult sg_capture_join(sg_stream_t *stream, node_t **tail, size_t n, sg_capture_t *capture)
{
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = capture;
    tail_is(stream, tail, n, true);
    return CUDA_SUCCESS;
}

bool sg_capture_in(sg_context_t *context, bool only_blocking)
{
    bool any = false;

    for (sg_stream_t *s = context->streams; s; s = s->next)
        if (s->capture && (s->blocking || !only_blocking))
            any = s->capture->invalid = true;
    return any;
}

/* Unsafe calls are forbidden to a thread by any global capture, and by its own thread-local ones; relaxed threads
 * may do anything. */
bool sg_capture_forbids(void)
{
    bool forbidden = false;

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    pthread_mutex_lock(&sg_lock);
    for (sg_capture_t *c = captures; c; c = c->next) {
        bool own = c->thread == this_thread();
        if ((c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             (own || thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) ||
            (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own)) {
            forbidden = true;
            c->invalid = true;
        }
    }
    pthread_mutex_unlock(&sg_lock);
    return forbidden;
}

CUresult sg_capture_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;

    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult sg_capture_begin_to(CUstream handle, CUgraph graph, const CUgraphNode *on,
                             const void *edges, size_t n, CUstreamCaptureMode mode)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);

    (void)edges;
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    sg_capture_t *capture = calloc(1, sizeof(*capture));
    pthread_mutex_lock(&sg_lock);
    *capture = (sg_capture_t){.id = ++n_captures,
                              .graph = graph ? graph : graph_new(),
                              .owns_graph = !graph,
                              .mode = mode,
                              .thread = this_thread(),
                              .origin = stream,
                              .next = captures};
    captures = capture;
    stream->capture = capture;
    tail_is(stream, on, n, false);
    pthread_mutex_unlock(&sg_lock);
    return CUDA_SUCCESS;
}

CUresult sg_capture_begin(CUstream stream, CUstreamCaptureMode mode)
{
    return sg_capture_begin_to(stream, NULL, NULL, NULL, 0, mode);
}

CUresult sg_capture_end(CUstream handle, CUgraph *out)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    sg_capture_t *capture = stream->capture;
    if (!capture || capture->origin != stream)
        return capture ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : CUDA_ERROR_ILLEGAL_STATE;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    pthread_mutex_lock(&sg_lock);
    for (sg_stream_t *s = stream->context->streams; s; s = s->next) {
        if (s->capture != capture)
            continue;
        for (size_t i = 0; s != stream && i < s->n_tail;
             i++) { /* must have been joined to the origin */
            bool joined = false;
            for (size_t k = 0; k < capture->graph->n && !joined; k++)
                for (size_t j = 0; j < capture->graph->nodes[k]->n_on; j++)
                    joined |= capture->graph->nodes[k]->on[j] == s->tail[i];
            for (size_t k = 0; k < stream->n_tail; k++)
                joined |= stream->tail[k] == s->tail[i];
            if (!joined && !capture->invalid)
                result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        }
        s->capture = NULL;
        s->n_tail = 0;
    }
    for (sg_capture_t **at = &captures; *at; at = &(*at)->next)
        if (*at == capture) {
            *at = capture->next;
            break;
        }
    pthread_mutex_unlock(&sg_lock);
    if (capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *out = result == CUDA_SUCCESS ? capture->graph : NULL;
    return result;
}

CUresult sg_capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                         CUgraph *graph, const CUgraphNode **on, size_t *n)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&sg_lock);
    const sg_capture_t *capture = stream->capture;
    if (stream->legacy && sg_capture_in(stream->context, true))
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture && id)
        *id = capture->id;
    if (capture && graph)
        *graph = capture->graph;
    if (capture && on && n) {
        *on = stream->tail;
        *n = stream->n_tail;
    }
    pthread_mutex_unlock(&sg_lock);
    return result;
}

CUresult sg_capture_status(CUstream handle, CUstreamCaptureStatus *status)
{
    return sg_capture_info(handle, status, NULL, NULL, NULL, NULL);
}

/* ---- graphs by hand ------------------------------------------------------------------------------------- */

CUresult sg_graph_create(CUgraph *out, unsigned flags)
{
    *out = graph_new();
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sg_graph_destroy(CUgraph graph)
{
    if (!sg_is(graph, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    sg_graph_free(graph);
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n, sg_op_t *op)
{
    if (!sg_is(graph, SG_GRAPH)) {
        sg_op_clear(op);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = node_add(graph, op, on, n);
    return CUDA_SUCCESS;
}

/* CUDA_KERNEL_NODE_PARAMS_v1, and what v2 adds to it. */
typedef struct kernel_node {
    CUfunction f;
    unsigned grid[3], block[3], shared_bytes;
    void **params, **extra;
    CUfunction kernel;
    CUcontext context;
} kernel_node_t;

static CUresult kernel_op(const void *params, bool v2, sg_op_t *op)
{
    kernel_node_t p = {0};
    sg_function_t *function;

    memcpy(&p, params, v2 ? sizeof(p) : offsetof(kernel_node_t, kernel));
    CUresult result = sg_function_of(p.f ? p.f : p.kernel, &function);
    *op = (sg_op_t){.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (result != CUDA_SUCCESS ||
        (result = sg_kernel_pack(function, p.params, p.extra, &op->u.kernel)) != CUDA_SUCCESS)
        return result;
    memcpy(op->u.kernel.grid, p.grid, sizeof(p.grid));
    memcpy(op->u.kernel.block, p.block, sizeof(p.block));
    op->u.kernel.shared_bytes = p.shared_bytes;
    return CUDA_SUCCESS;
}

CUresult sg_graph_add_kernel(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n,
                             const void *params)
{
    sg_op_t op;
    CUresult result = kernel_op(params, false, &op);
    return result ? result : add(out, graph, on, n, &op);
}

CUresult sg_graph_add_kernel_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n,
                                const void *params)
{
    sg_op_t op;
    CUresult result = kernel_op(params, true, &op);
    return result ? result : add(out, graph, on, n, &op);
}

CUresult sg_graph_add_copy(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n,
                           const CUDA_MEMCPY3D *params, CUcontext context)
{
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .u.copy = *params};
    (void)context;
    return add(out, graph, on, n, &op);
}

CUresult sg_graph_add_set(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n,
                          const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .u.set = *params};
    (void)context;
    return add(out, graph, on, n, &op);
}

CUresult sg_graph_add_host(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n,
                           const CUDA_HOST_NODE_PARAMS *params)
{
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_HOST, .u.host = {params->fn, params->userData}};
    return add(out, graph, on, n, &op);
}

CUresult sg_graph_add_child(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n,
                            CUgraph child)
{
    if (!sg_is(child, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .u.graph = sg_graph_copy(child)};
    return add(out, graph, on, n, &op);
}

CUresult sg_graph_add_empty(CUgraphNode *out, CUgraph graph, const CUgraphNode *on, size_t n)
{
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(out, graph, on, n, &op);
}

/* ---- questions -------------------------------------------------------------------------------------------- */

CUresult sg_graph_nodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    if (!sg_is(graph, SG_GRAPH) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *n; i++)
        nodes[i] = i < graph->n ? graph->nodes[i] : NULL;
    if (!nodes || *n > graph->n)
        *n = graph->n;
    return CUDA_SUCCESS;
}

#define NODE(node, wanted)                                                                         \
    if (!sg_is(node, SG_NODE) || (node)->op.type != (wanted))                                      \
    return CUDA_ERROR_INVALID_VALUE

CUresult sg_graph_node_type(CUgraphNode node, CUgraphNodeType *type)
{
    if (!sg_is(node, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *type = (CUgraphNodeType)node->op.type;
    return CUDA_SUCCESS;
}

static CUresult kernel_params(CUgraphNode node, void *out, bool v2)
{
    NODE(node, CU_GRAPH_NODE_TYPE_KERNEL);
    const sg_kernel_args_t *k = &node->op.u.kernel;
    kernel_node_t p = {.f = k->function, .shared_bytes = k->shared_bytes, .params = k->params};

    memcpy(p.grid, k->grid, sizeof(p.grid));
    memcpy(p.block, k->block, sizeof(p.block));
    memcpy(out, &p, v2 ? sizeof(p) : offsetof(kernel_node_t, kernel));
    return CUDA_SUCCESS;
}

CUresult sg_graph_kernel_params(CUgraphNode node, void *out)
{
    return kernel_params(node, out, false);
}

CUresult sg_graph_kernel_params_v2(CUgraphNode node, void *out)
{
    return kernel_params(node, out, true);
}

CUresult sg_graph_copy_params(CUgraphNode node, CUDA_MEMCPY3D *out)
{
    NODE(node, CU_GRAPH_NODE_TYPE_MEMCPY);
    *out = node->op.u.copy;
    return CUDA_SUCCESS;
}

CUresult sg_graph_set_params(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
    NODE(node, CU_GRAPH_NODE_TYPE_MEMSET);
    *out = node->op.u.set;
    return CUDA_SUCCESS;
}

CUresult sg_graph_child(CUgraphNode node, CUgraph *out)
{
    NODE(node, CU_GRAPH_NODE_TYPE_GRAPH);
    *out = node->op.u.graph;
    return CUDA_SUCCESS;
}

/* ---- executable graphs --------------------------------------------------------------------------------------- */

CUresult sg_graph_instantiate_flags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    if (!sg_is(graph, SG_GRAPH) || !out || flags > 15) /* four flags there are */
        return CUDA_ERROR_INVALID_VALUE;
    exec_t *exec = calloc(1, sizeof(*exec));
    exec->magic = SG_EXEC;
    exec->graph = sg_graph_copy(graph);
    *out = exec;
    return CUDA_SUCCESS;
}

CUresult sg_graph_instantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                              size_t bytes)
{
    (void)node;
    (void)log;
    (void)bytes;
    return sg_graph_instantiate_flags(out, graph, 0);
}

CUresult sg_graph_instantiate_params(CUgraphExec *out, CUgraph graph, void *params)
{
    (void)params;
    return sg_graph_instantiate_flags(out, graph, 0);
}

static CUresult update(CUgraphExec exec, CUgraph graph)
{
    if (!sg_is(exec, SG_EXEC) || !sg_is(graph, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (exec->graph->n != graph->n)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; i < graph->n; i++)
        if (exec->graph->nodes[i]->op.type != graph->nodes[i]->op.type)
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    sg_context_wait(sg_context()); /* no launch of it is under way */
    for (size_t i = 0; i < graph->n; i++) {
        sg_op_clear(&exec->graph->nodes[i]->op);
        sg_op_copy(&exec->graph->nodes[i]->op, &graph->nodes[i]->op);
        exec->graph->nodes[i]->of = graph->nodes[i];
    }
    return CUDA_SUCCESS;
}

CUresult sg_graph_update(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                         CUgraphExecUpdateResult *result)
{
    CUresult error = update(exec, graph);

    if (node)
        *node = NULL;
    *result = error ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return error;
}

#if CUDA_VERSION >= 12000
CUresult sg_graph_update_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUresult error = update(exec, graph);

    info->result =
        error ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return error;
}
#endif

static CUresult exec_set_kernel(CUgraphExec exec, CUgraphNode of, const void *params, bool v2)
{
    sg_op_t op;

    if (!sg_is(exec, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < exec->graph->n; i++) {
        if (exec->graph->nodes[i]->of != of)
            continue;
        CUresult result = kernel_op(params, v2, &op);
        if (result != CUDA_SUCCESS)
            return result;
        sg_context_wait(sg_context());
        sg_op_clear(&exec->graph->nodes[i]->op);
        exec->graph->nodes[i]->op = op;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_graph_exec_set_kernel(CUgraphExec exec, CUgraphNode node, const void *params)
{
    return exec_set_kernel(exec, node, params, false);
}

CUresult sg_graph_exec_set_kernel_v2(CUgraphExec exec, CUgraphNode node, const void *params)
{
    return exec_set_kernel(exec, node, params, true);
}

CUresult sg_graph_launch(CUgraphExec exec, CUstream handle)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_is(exec, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    sg_op_t op = {.type = SG_OP_LAUNCH, .u.launch = {exec}};
    return sg_enqueue(stream, &op);
}

/* What was launched still runs. */
CUresult sg_graph_exec_destroy(CUgraphExec exec)
{
    if (!sg_is(exec, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    sg_context_t *context = sg_context();
    if (context)
        sg_context_wait(context);
    exec->magic = SG_GONE;
    sg_graph_free(exec->graph);
    free(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

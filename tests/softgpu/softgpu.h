/*
 * softgpu.h - the software GPU's libcuda, inside. README.md says what it is.
 *
 * Locks: sg_lock guards contexts, modules, memory, streams, events, graphs and their queues. The managed
 * memory's own lock (managed.c) is taken inside or outside of nothing else but the client's, so that the
 * thread which serves page faults never waits for a thread that may itself be faulting with sg_lock held.
 * No callback is made and no kernel runs with either held.
 */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "hooks.h"

#if CUDA_VERSION < 12000
typedef struct CUkern_st *CUkernel;
typedef struct CUlib_st *CUlibrary;
#endif

/* ---- calls ------------------------------------------------------------------------------------ */

typedef struct sg_call {
    const char *name;
    int since;
    char needs;
    bool per_thread;
    uint32_t id;
    int symbol_at; /* where in the parameters the function handle is, -1 = nowhere */
    void *fn;
} sg_call_t;
extern const sg_call_t sg_calls[];
extern const int sg_n_calls;

typedef struct sg_frame {
    const sg_call_t *call;
    CUresult result;
    bool inner, told;
    sg_told_t info;
    uint64_t data;
    struct sg_frame *outer;
} sg_frame_t;

bool sg_enter(sg_frame_t *frame, int row, void *params, const void *caller);
CUresult sg_leave(sg_frame_t *frame);
bool sg_symbol_exists(int row);
uint32_t sg_correlation(void);       /* of the call that this thread is in */
bool sg_per_thread(void);            /* it is a _ptsz or _ptds one */
extern const sg_client_t *sg_client; /* NULL: no CUPTI */
void sg_inject(void);
CUresult sg_after_fork(void);

/* ---- settings and rules ------------------------------------------------------------------------ */

int sg_version(void); /* 118 ... 132, of $SOFTGPU_CUDA */
const char *sg_setting(const char *name, const char *otherwise);
uint64_t sg_setting_number(const char *name, uint64_t otherwise); /* K, M, G; suffix .<gpu> wins */
bool sg_rule_missing(const char *symbol);
int sg_rule(const char *symbol, const void *caller);
uint64_t sg_now_ns(void);
void sg_log(const char *key, uint64_t add); /* to the ground truth of $SOFTGPU_TRUTH */

/* ---- objects ------------------------------------------------------------------------------------ */

#define SG_GPUS 8

extern pthread_mutex_t sg_lock;

typedef struct sg_object {
    uint32_t magic;
} sg_object_t;
enum {
    SG_CONTEXT = 0x50475543,
    SG_STREAM,
    SG_EVENT,
    SG_MODULE,
    SG_FUNCTION,
    SG_KERNEL,
    SG_GRAPH,
    SG_NODE,
    SG_EXEC,
    SG_POOL,
    SG_GONE
};
/* Handles 1 and 2 are streams that have no object. */
#define sg_is(object, kind)                                                                        \
    ((uintptr_t)(object) > 2 && ((const sg_object_t *)(object))->magic == (kind))

typedef struct CUctx_st {
    uint32_t magic, id;
    int device;
    bool primary, alive;
    unsigned flags;
    CUresult sticky; /* what a kernel did to it */
    unsigned closed; /* threads that wait inside and keep others out */
    struct CUstream_st *legacy, *streams;
    struct CUctx_st *next;
} sg_context_t;

sg_context_t *sg_context(void); /* current one, NULL = none */
int sg_gpus(void);
uint64_t sg_gpu_bytes(int device);
uint64_t sg_gpu_used(int device); /* by other processes */
bool sg_concurrent(int device);
void sg_context_fails(sg_context_t *context, CUresult error);

/* ---- memory --------------------------------------------------------------------------------------- */

typedef enum sg_family {
    SG_DEVICE,
    SG_MANAGED,
    SG_PINNED,
    SG_REGISTERED,
    SG_POOLED,
    SG_MAPPED
} sg_family_t;

typedef struct sg_memory {
    uint64_t addr, bytes; /* as the program sees it */
    uint64_t id;
    char *data; /* where its bytes are for us: never faults */
    sg_family_t family;
    sg_context_t *context;
    int device;
    unsigned flags;
    void *managed; /* managed.c's */
    struct CUmemPoolHandle_st *pool;
    size_t mapped_bytes;
} sg_memory_t;

/* The memory that holds addr, copied out; false when it is nobody's. */
bool sg_memory_find(uint64_t addr, sg_memory_t *out);
CUresult sg_memory_new(sg_family_t family, uint64_t bytes, unsigned flags, CUdeviceptr *addr);
CUresult sg_memory_free(uint64_t addr, uint64_t families);
void sg_memory_add(const sg_memory_t *memory);
bool sg_memory_reserve(int device,
                       uint64_t bytes); /* so much of the GPU's; false: more than there is */
void sg_memory_unreserve(int device, uint64_t bytes);
void sg_memory_of_context_free(sg_context_t *context);
uint64_t sg_memory_used(int device);
/* The bytes [addr, addr+bytes) for device work, touched as `write` says by `device`; NULL when they are
 * not memory. Where nothing is known of an address it is host memory if `host`. */
char *sg_touch(int device, uint64_t addr, uint64_t bytes, bool write, bool host);

/* ---- managed memory -------------------------------------------------------------------------------- */

CUresult sg_managed_new(sg_memory_t *memory);
void sg_managed_free(sg_memory_t *memory);
void sg_managed_touch(const sg_memory_t *memory, int device, uint64_t addr, uint64_t bytes,
                      bool write);
CUresult sg_managed_prefetch(uint64_t addr, uint64_t bytes, int device);
uint64_t sg_managed_resident(int device);
/* Work that a GPU without concurrent access is given, has done, and the program has waited for. */
void sg_managed_launch(int device);
void sg_managed_done(int device);
void sg_managed_waited(void);
void sg_record(sg_record_t *record);

/* ---- work on streams --------------------------------------------------------------------------------- */

typedef struct sg_kernel_args {
    struct CUfunc_st *function;
    unsigned grid[3], block[3], shared_bytes;
    char *block_of_params; /* owned */
    void **params;         /* into it; owned */
} sg_kernel_args_t;

typedef struct sg_op {
    int type; /* CUgraphNodeType, or one of below */
    uint32_t correlation;
    union {
        sg_kernel_args_t kernel;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        struct {
            CUhostFn fn;
            void *data;
        } host;
        struct {
            CUstreamCallback fn;
            void *data;
            CUstream stream;
        } callback;
        struct {
            uint64_t addr, bytes;
            int device;
            bool discard, move;
        } prefetch;
        uint64_t free_addr;
        struct CUevent_st *event;
        struct CUgraph_st *graph; /* of a child node; owned */
        struct {
            struct CUgraphExec_st *exec;
        } launch;
    } u;
    char *staged; /* a copy of pageable host memory; owned */
} sg_op_t;
enum { SG_OP_PREFETCH = 1000, SG_OP_FREE, SG_OP_CALLBACK, SG_OP_LAUNCH, SG_OP_EVENT };

typedef struct CUstream_st {
    uint32_t magic, id;
    sg_context_t *context;
    bool blocking, legacy, alive;
    int priority;
    struct CUstream_st *next;
    struct sg_item *first, **last;
    uint64_t queued, done; /* never reset: an old count is always reached */
    bool started;
    pthread_t thread;
    struct sg_capture *capture;
    struct CUgraphNode_st **tail; /* of the capture: what the next node depends on */
    size_t n_tail;
} sg_stream_t;

typedef struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    sg_context_t *context;
    sg_stream_t *stream;
    uint64_t at, time_ns;
    struct sg_capture *capture; /* recorded in it */
    struct CUgraphNode_st **tail;
    size_t n_tail;
} sg_event_t;

/* The stream of a handle in the current context: 0, 1, 2 or a stream. */
CUresult sg_stream_of(CUstream handle, sg_stream_t **out);
/* Puts op on it, or into the graph that is being captured; takes what op owns in any case. */
CUresult sg_enqueue(sg_stream_t *stream, sg_op_t *op);
CUresult sg_wait(sg_stream_t *stream);
void sg_context_wait(sg_context_t *context);
/* Calls that close their context wait inside it for the GPU, for everything or for one stream, and keep
 * the prefetches of other threads out meanwhile; those begin with sg_context_open_wait. */
void sg_context_wait_closed(sg_context_t *context);
CUresult sg_wait_closed(sg_stream_t *stream);
void sg_context_open_wait(sg_context_t *context);
sg_stream_t *sg_stream_new(sg_context_t *context, unsigned flags);
void sg_streams_end(sg_context_t *context);
void sg_op_run(sg_op_t *op, sg_stream_t *stream);
void sg_op_clear(sg_op_t *op);
CUresult sg_op_copy(sg_op_t *to, const sg_op_t *from);

/* capture (graph.c), under sg_lock */
typedef struct sg_capture {
    uint64_t id;
    struct CUgraph_st *graph;
    bool owns_graph, invalid;
    CUstreamCaptureMode mode;
    uint64_t thread;
    sg_stream_t *origin;
    struct sg_capture *next;
} sg_capture_t;
CUresult sg_capture_add(sg_stream_t *stream, sg_op_t *op);
bool sg_capture_forbids(void); /* an unsafe call of this thread; ends what it breaks */
bool sg_capture_in(sg_context_t *context, bool only_blocking); /* any; it is broken */
CUresult sg_capture_join(sg_stream_t *stream, struct CUgraphNode_st **tail, size_t n,
                         sg_capture_t *capture);
void sg_graph_run(struct CUgraphExec_st *exec, sg_stream_t *stream);
void sg_graph_child_run(struct CUgraph_st *graph, sg_stream_t *stream, uint32_t correlation);
struct CUgraph_st *sg_graph_copy(const struct CUgraph_st *graph);
void sg_graph_free(struct CUgraph_st *graph);

/* ---- kernels --------------------------------------------------------------------------------------- */

#define SG_PARAMS 32
typedef struct sg_param {
    char name[32];
    size_t offset, bytes;
    char type; /* p pointer, i integer, f float, d double, s struct */
} sg_param_t;

typedef struct CUfunc_st {
    uint32_t magic;
    char *name;
    sg_param_t params[SG_PARAMS];
    unsigned n_params;
    size_t params_bytes;
    struct sg_step *steps;
    struct CUmod_st *module;
    struct CUfunc_st *next, *function; /* of a CUkernel: its function in the loaded module */
    bool loaded;                       /* its code is; otherwise the first launch loads it */
} sg_function_t;

char *sg_cubin(const sg_function_t *functions, size_t *bytes);
CUresult sg_function_of(CUfunction handle, sg_function_t **out);
CUresult sg_kernel_pack(sg_function_t *function, void **params, void **extra,
                        sg_kernel_args_t *out);
void sg_kernel_run(const sg_kernel_args_t *kernel, sg_stream_t *stream, uint32_t correlation);
void sg_modules_of_context_free(sg_context_t *context);

#endif

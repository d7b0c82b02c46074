/*
 * live.h - what the parts of the live CUDA source share. One process has one.
 *
 * Threads: the fields that are not atomic are written by attach before the first callback can come
 * and never after.
 */
#ifndef UM_LIVE_H
#define UM_LIVE_H

#include <pthread.h>

#include "core/runtime.h"
#include "driver.h"

typedef struct um_live {
    um_runtime_t *runtime;
    const um_cuda_t *cuda;
    const um_cupti_t *cupti;
    CUpti_SubscriberHandle subscriber;
    bool deep;         /* recording with everything pushed to the host before each launch: deep.h */
    bool record;       /* everything is wanted; otherwise only what has to do with managed memory */
    _Atomic bool late; /* CUDA was initialised before us: regions exist that nobody told us of */
    _Atomic bool on;   /* false: every callback returns at once */
    _Atomic bool want_context; /* the kick waits for a context of the program's */
    _Atomic bool capturing;    /* a stream capture has been begun in this process */
    _Atomic uint64_t hintable; /* GPUs that take hints, by bit; once they were told of */
    _Atomic uint32_t sync;     /* id of the last wait that ended, 0 = none since the last launch
                                      with managed arguments */
} um_live_t;

extern um_live_t um_live;

uint64_t um_live_now_ns(void); /* CLOCK_MONOTONIC */

/* Joins a thread that sets *done as its last act; false when it has not by until_ns, and is left. */
bool um_live_join(pthread_t thread, const _Atomic bool *done, uint64_t until_ns);
uint32_t um_live_tid(void);

/* An event of this thread, now; the rest zero. */
um_event_t um_live_event(um_event_type_t type);
/* Posts it; wake = the bus thread is to look at once. */
void um_live_post(const um_event_t *event, bool wake);
bool um_live_managed(void); /* is any managed region alive */

/* Some calls keep every other thread out of their context until the GPU is done: what frees (but for
 * FreeAsync) or pins memory, and copies to or from pageable memory. A prefetch of ours that comes after them
 * gets in when the kernel that it was for is over (H200, a kernel of 20 ms under way: after 16 to 20 ms
 * instead of 0.2; waits for a device, a stream or an event keep nobody out). So whoever makes such a call
 * first lets in what this thread has launched since it last waited. */
void um_live_launched(uint32_t context); /* a launch that may be hinted was posted */
void um_live_waited(uint32_t context);   /* what was launched there is over, as a rule */
void um_live_catch_up(uint32_t context);
bool um_live_is_behind(uint32_t context); /* there is something to catch up with */

/* Device of a context by CUPTI's id; asks the driver the first time (context is current or
 * NULL). UM_DEVICE_NONE when it cannot be told. */
int32_t um_live_device(uint32_t context);
void um_live_context_is_on(uint32_t context, int32_t device);

/* ---- the calls that we see ------------------------------------------------------------------ */

struct um_call;
typedef void (*um_call_fn)(const CUpti_CallbackData *info, const struct um_call *call);

/* One driver call: who handles it and in which 8-byte words of its parameters things are. */
typedef struct um_call {
    uint16_t id; /* CUpti_driver_api_trace_cbid; numbers are never reused */
    um_call_fn fn;
    uint8_t word[4]; /* the meaning is the handler's; UM_NO_WORD = not there */
    uint8_t stream;
    uint8_t flags; /* um_call_flag_t */
    uint8_t what;  /* the handler's */
} um_call_t;
#define UM_NO_WORD 0xff

typedef enum um_call_flag {
    UM_CALL_PER_THREAD = 1 << 0, /* _ptsz, _ptds: stream 0 is the per-thread one */
    UM_CALL_ASYNC = 1 << 1,
    UM_CALL_HOST_SRC = 1 << 2, /* the source can only be host memory */
    UM_CALL_HOST_DST = 1 << 3
} um_call_flag_t;

static inline uint64_t um_word(const CUpti_CallbackData *info, uint8_t word)
{
    return word == UM_NO_WORD ? 0 : ((const uint64_t *)info->functionParams)[word];
}

/* CU_STREAM_PER_THREAD is 2. */
static inline uint64_t um_call_stream(const CUpti_CallbackData *info, const um_call_t *call)
{
    uint64_t stream = um_word(info, call->stream);
    return stream == 0 && (call->flags & UM_CALL_PER_THREAD) ? 2 : stream;
}

static inline bool um_entering(const CUpti_CallbackData *info)
{
    return info->callbackSite == CUPTI_API_ENTER;
}

static inline CUresult um_result(const CUpti_CallbackData *info)
{
    return *(const CUresult *)info->functionReturnValue;
}

/* callbacks.c */
um_status_t um_callbacks_subscribe(char *reason, size_t reason_bytes);
/* Managed memory exists, or may: launches too are followed from now on (and outside recording copies,
 * sets and waits). Any thread, also inside a callback; when it returns CUPTI has been told, so that a
 * launch after the allocation that called this is seen. Free but for the first time. */
void um_callbacks_managed(void);
void um_on_sync(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_capture(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_context_ready(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_context_going(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_primary_going(const CUpti_CallbackData *info, const um_call_t *call);

/* calls.c */
extern const um_call_t um_calls[];
extern const size_t um_n_calls;
const um_call_t *um_call_find(uint32_t id); /* NULL when the call is not followed */

/* memory.c: allocations and frees of every family */
typedef enum um_memory_call {
    UM_ALLOC_DEVICE = 0,
    UM_ALLOC_PITCH,
    UM_ALLOC_MANAGED,
    UM_ALLOC_PINNED,   /* cuMemAllocHost */
    UM_ALLOC_HOST,     /* cuMemHostAlloc: flags decide */
    UM_ALLOC_REGISTER, /* cuMemHostRegister */
    UM_ALLOC_POOL,
    UM_ALLOC_MAP,   /* cuMemMap */
    UM_ALLOC_STATIC /* an address of a __managed__ variable was asked for */
} um_memory_call_t;
void um_on_alloc(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_free(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_unmap(const CUpti_CallbackData *info, const um_call_t *call);
/* Adds a region and posts REGION_ALLOC (and REGION_FREE for the stale ones it shows). */
void um_memory_add(const um_region_t *region, uint64_t stream);
/* Drops every region whose address the driver no longer knows (a context is gone). */
void um_memory_sweep(void);

/* transfer.c: copies, sets, the program's own hints */
void um_on_copy(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_copy_2d(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_copy_3d(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_copy_batch(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_set(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_set_2d(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_prefetch(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_advise(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_prefetch_batch(const CUpti_CallbackData *info, const um_call_t *call);

/* launch.c */
void um_on_launch(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_launch_ex(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_launch_multi(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_launch_legacy(const CUpti_CallbackData *info, const um_call_t *call);
void um_launch_init(void); /* before the first launch */
/* The kernel behind a handle, defined (with KERNEL posted) if this is its first sight. symbol may be
 * NULL. NULL when memory is out. */
const um_kernel_t *um_launch_kernel(uint64_t handle, const char *symbol);
/* The kernel of that name where no handle was seen; the driver is not asked about it. */
const um_kernel_t *um_launch_kernel_named(const char *name);

/* Enters the region that holds addr, where it may be older than umrt: asks the driver. */
void um_launch_discover(uint64_t addr);

/* Whether any of the arguments is managed. The first such launch after a wait has the page tables
 * looked at, while recording. No lock. */
bool um_launch_touches_managed(const um_arg_t *args, uint32_t n);

/* Whether what is put on the stream becomes part of a graph instead of running. */
bool um_is_captured(uint64_t stream);

/* graphs.c */
void um_on_graph_launch(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_graph_instantiate(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_graph_add_node(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_graph_update(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_graph_set_kernel(const CUpti_CallbackData *info, const um_call_t *call);
void um_on_graph_destroy(const CUpti_CallbackData *info, const um_call_t *call);

/* modules.c: cubins as they are loaded */
void um_modules_loaded(uint32_t module, const void *cubin, size_t bytes);
void um_modules_unloading(uint32_t module);
/* Layout and module hash of a kernel by name; false = not seen. params live as long as the process. */
bool um_modules_kernel(const char *name, uint64_t *module_hash, const um_param_t **params,
                       uint32_t *n_params);

/* preload.c: what the first launch of a kernel would load */
#define UM_PRELOAD_MAX 256u /* the option's upper end */
void um_on_library(const CUpti_CallbackData *info, const um_call_t *call);
/* This thread begins to wait for the whole context, or has done so. */
void um_preload_waits(uint32_t context, bool exit);

/* callsite.c */
uint64_t um_callsite_here(void); /* id of the program's stack; posts CALL_SITE once; 0 = off */
void um_callsite_prepare(void);  /* what backtrace allocates, now rather than in a callback */

/* arena.c: makes room in the calling thread's malloc arena, for CUPTI's worker; some 50 us. */
void um_arena_grow_ahead(void);

/* activity.c */
um_status_t um_activity_init(void); /* starts the drain thread, asleep */
void um_activity_context(void); /* a context exists: unified-memory records can be switched on */
bool um_activity_has_managed(void); /* has any managed memory been seen while recording */
void um_activity_managed(void);     /* managed memory exists: kernel times are on, drains begin */
/* Regions are there that CUPTI does not know, and it delivers nothing until it sees a managed
 * allocation: the drain thread makes a small one. context NULL = the next one seen in a callback. */
void um_activity_kick(CUcontext context);
/* The same at once, from the exit of a call that the program makes; where it fails the drain thread tries
 * again, and what may be missing until then is told as a loss. */
void um_activity_kick_here(CUcontext context);
void um_activity_stop(void); /* last records in; bounded */

/* probe.c */
um_status_t um_probe(um_event_fn fn, void *ctx);
void um_probe_versions(um_event_fn fn, void *ctx); /* FACTs of driver and CUPTI */
/* A DEVICE event for each GPU; the attributes that all and that any of them have. After cuInit. */
void um_probe_devices(um_event_fn fn, void *ctx, uint32_t *all, uint32_t *any);

/* backend.c */
void um_backend_tell_devices(void); /* posts the DEVICE events, once; after cuInit */

#endif

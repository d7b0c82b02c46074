/*
 * um_event.h - the one vocabulary of umrt.
 *
 * Everything that umrt sees (from CUPTI, a trace file or a simulator) and everything that it does is
 * an event of this header: what the recorder writes, the report reads, the advisors observe.
 *
 * Conventions that hold for every field:
 *   time      nanoseconds of CLOCK_MONOTONIC of the recorded host, or of the foreign tool's own
 *             origin in an imported trace; comparable only inside one trace.
 *   address   a virtual address of the recorded process, bytes.
 *   bytes     sizes are in bytes, never in pages or KiB.
 *   device    the CUDA ordinal inside the recorded process (after CUDA_VISIBLE_DEVICES), or
 *             UM_DEVICE_HOST for the CPU, or UM_DEVICE_NONE where the source does not say.
 *   strings   NUL-terminated UTF-8 as the source gave it (not validated); never NULL in an event
 *             that came out of a reader (absent is ""); owned by whoever made the event and valid
 *             only during the call that hands it over, unless that call says otherwise.
 *   zero      is "unknown" for every id, address and hash.
 *
 * Thread safety: events are plain data. Functions here touch no shared state.
 */
#ifndef UM_EVENT_H
#define UM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that libumrt exports; everything else is hidden. */
#define UM_API __attribute__((visibility("default")))

/* Result of every umrt function that can fail: UM_OK or a negative code. */
typedef enum um_status {
    UM_OK = 0,
    UM_ERR_INVALID = -1,     /* an argument is outside what the function documents */
    UM_ERR_NO_MEMORY = -2,   /* an allocation failed */
    UM_ERR_IO = -3,          /* the system refused to open, read or write; errno says why */
    UM_ERR_FORMAT = -4,      /* the input is not what its name or magic says, or is damaged */
    UM_ERR_TRUNCATED = -5,   /* the input ends inside a block; all whole blocks were delivered */
    UM_ERR_VERSION = -6,     /* the input needs a newer reader */
    UM_ERR_UNSUPPORTED = -7, /* this machine, driver or build cannot do it */
    UM_ERR_BUSY = -8,        /* somebody else holds what is needed (a CUPTI subscriber, say) */
    UM_ERR_NOT_FOUND = -9,   /* there is no such thing */
    UM_ERR_FULL = -10,       /* a fixed capacity is used up */
    UM_ERR_STATE = -11,      /* called at the wrong time (before init, after shutdown) */
    UM_STATUS_COUNT = 12     /* number of codes; not a status */
} um_status_t;

/* One lower-case phrase for a status; a static string, never NULL, "unknown status" for others. */
UM_API const char *um_status_string(um_status_t status);

#define UM_DEVICE_HOST ((int32_t)-1) /* the CPU (CUPTI writes 0xFFFFFFFF) */
#define UM_DEVICE_NONE ((int32_t)-2) /* not said by the source */

/* Sizes that the driver's rules are made of (FIELD: nvidia-uvm 595.45.04). */
#define UM_PAGE_BYTES     4096u
#define UM_BIG_PAGE_BYTES 65536u
#define UM_BLOCK_BYTES    2097152u /* the driver moves and evicts by 2 MiB blocks */

/*
 * The kinds of event. The numbers are the trace format's: never reuse or renumber one; add at the
 * end. UM_EV_NONE never occurs in a trace.
 */
typedef enum um_event_type {
    UM_EV_NONE = 0,
    UM_EV_FACT = 1,         /* a named fact about process, host, driver, module parameters */
    UM_EV_DEVICE = 2,       /* a GPU and its attributes */
    UM_EV_OPTION = 3,       /* one umrt or tracing option and where its value came from */
    UM_EV_LOSS = 4,         /* records that are known to be missing */
    UM_EV_CONTEXT = 5,      /* a CUDA context was created, reset or destroyed */
    UM_EV_CALL_SITE = 6,    /* the stack behind a call_site id */
    UM_EV_REGION_ALLOC = 7, /* memory of one of the families came to life */
    UM_EV_REGION_FREE = 8,  /* and went */
    UM_EV_REGION_LABEL = 9, /* a name for a region */
    UM_EV_KERNEL = 10,      /* definition of a kernel: name, module, parameter layout */
    UM_EV_LAUNCH = 11,      /* a kernel or graph was put on a stream by the CPU */
    UM_EV_KERNEL_EXEC = 12, /* it ran on the GPU */
    UM_EV_GPU_FAULT = 13,   /* fault groups on a page, raised by a GPU */
    UM_EV_CPU_FAULT = 14,   /* a CPU page fault on managed memory */
    UM_EV_MIGRATE = 15,     /* pages moved */
    UM_EV_THRASH = 16,      /* the driver's thrashing detector fired for a range */
    UM_EV_THROTTLE = 17,    /* the driver made a processor wait because of thrashing */
    UM_EV_REMOTE_MAP = 18,  /* pages were mapped over the link instead of moved */
    UM_EV_COPY = 19,        /* cudaMemcpy and its family */
    UM_EV_SET = 20,         /* cudaMemset and its family */
    UM_EV_SYNC = 21,        /* the CPU enters or leaves a wait for the GPU */
    UM_EV_HINT = 22,        /* a prefetch or advice: who, why, what became of it */
    UM_EV_MARK = 23,        /* NVTX range or um_phase_*: named time of the program */
    UM_EV_RESIDENCY = 24,   /* what the CPU page tables said about a range */
    UM_EV_ACCESS = 25,  /* a true access: simulator and deep recording only, never for advisors */
    UM_EV_MODULE = 26,  /* the program or a library was loaded: what makes places of PCs */
    UM_EV_LEARNED = 27, /* something that holds from run to run: what a profile is made of */
    UM_EV_REGION_HINT = 28, /* the program's word about a region (um_region_hint) */
    UM_EV_TYPE_COUNT = 29
} um_event_type_t;

/* Lower-case name of a type ("gpu_fault"), "unknown" outside the range; static. */
UM_API const char *um_event_type_name(um_event_type_t type);

/* The families of CUDA memory. */
typedef enum um_family {
    UM_FAMILY_UNKNOWN = 0,
    UM_FAMILY_DEVICE = 1,     /* cudaMalloc */
    UM_FAMILY_PINNED = 2,     /* cudaMallocHost, cudaHostAlloc without the mapped flag */
    UM_FAMILY_MAPPED = 3,     /* cudaHostAlloc with the mapped flag: zero-copy */
    UM_FAMILY_REGISTERED = 4, /* cudaHostRegister, mapped or not (um_region_flag_t says) */
    UM_FAMILY_MANAGED = 5,    /* cudaMallocManaged, __managed__ variables, managed pools */
    UM_FAMILY_POOL = 6,       /* cudaMallocAsync from a stream-ordered pool (device memory) */
    UM_FAMILY_VMM = 7,        /* cuMemCreate + cuMemMap */
    UM_FAMILY_SYSTEM = 8,     /* malloc memory that a GPU touches (HMM, ATS) */
    UM_FAMILY_COUNT = 9
} um_family_t;

UM_API const char *um_family_name(um_family_t family); /* "managed"; static, never NULL */

typedef enum um_region_flag {
    UM_REGION_ATTACH_GLOBAL = 1 << 0, /* cudaMemAttachGlobal */
    UM_REGION_ATTACH_HOST = 1 << 1,   /* cudaMemAttachHost */
    UM_REGION_STATIC = 1 << 2,        /* a __managed__ variable */
    UM_REGION_POOL = 1 << 3,          /* came out of a memory pool */
    UM_REGION_ASYNC = 1 << 4,         /* stream-ordered allocation */
    UM_REGION_MAPPED = 1 << 5,        /* host memory that the GPU can address */
    UM_REGION_BEFORE_UMRT = 1 << 6    /* existed before umrt was there: size and time are guesses */
} um_region_flag_t;

/* FACT: key and value. Well-known keys are listed in lib/trace/FORMAT.md. */
typedef struct um_ev_fact {
    const char *key;   /* "host.name", "driver.version", "uvm.uvm_perf_prefetch_threshold" */
    const char *value; /* text; numbers in decimal */
} um_ev_fact_t;

/* DEVICE: one visible GPU. */
typedef struct um_ev_device {
    int32_t device;    /* CUDA ordinal */
    uint32_t cc_major; /* compute capability */
    uint32_t cc_minor;
    uint32_t sm_count;
    uint64_t memory_bytes; /* cuDeviceTotalMem */
    uint32_t attributes;   /* um_device_attribute_t bits */
    const char *name;      /* "NVIDIA H200" */
    const char *uuid;      /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
    const char *pci;       /* "0000:19:00.0" */
} um_ev_device_t;

typedef enum um_device_attribute {
    UM_DEVICE_MANAGED = 1 << 0,            /* CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY */
    UM_DEVICE_CONCURRENT_MANAGED = 1 << 1, /* ..._CONCURRENT_MANAGED_ACCESS */
    UM_DEVICE_PAGEABLE = 1 << 2,           /* ..._PAGEABLE_MEMORY_ACCESS */
    UM_DEVICE_HOST_PAGE_TABLES = 1 << 3,   /* ..._PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */
    UM_DEVICE_DIRECT_HOST_ACCESS = 1 << 4, /* ..._DIRECT_MANAGED_MEM_ACCESS_FROM_HOST */
    UM_DEVICE_INTEGRATED = 1 << 5,         /* ..._INTEGRATED */
    UM_DEVICE_POOLS = 1 << 6               /* ..._MEMORY_POOLS_SUPPORTED */
} um_device_attribute_t;

/* OPTION: one switch in force, also foreign tools' ("nvprof.unified-memory-profiling"). */
typedef struct um_ev_option {
    const char *name;
    const char *value;
    const char *source; /* "default", "file", "environment", "command line", "observed" */
} um_ev_option_t;

/* LOSS: known-missing records. bytes is 0 where the source cannot say. */
typedef struct um_ev_loss {
    uint32_t what;      /* um_event_type_t that was lost, UM_EV_NONE = any */
    uint64_t count;     /* records, 0 = unknown: some may be missing */
    uint64_t bytes;     /* of MIGRATE bytes lost, where known */
    const char *reason; /* "queue full", "cupti dropped records", "disk full" */
} um_ev_loss_t;

typedef enum um_context_change {
    UM_CONTEXT_CREATED = 1,
    UM_CONTEXT_DESTROYED = 2,
    UM_CONTEXT_RESET = 3 /* cuDevicePrimaryCtxReset: every allocation of it is gone */
} um_context_change_t;

typedef struct um_ev_context {
    uint32_t context; /* small id, the recorder's own (CUPTI's context id) */
    int32_t device;
    uint32_t change; /* um_context_change_t */
} um_ev_context_t;

/* CALL_SITE: sent once, before the first event that names the id. */
typedef struct um_ev_call_site {
    uint64_t call_site; /* hash of the frames, stable from run to run of one build */
    /*
     * Innermost first, separated by ';': "module+0xoffset", where module is a MODULE's name and offset
     * an address of its file (as nm and addr2line count), inside the calling instruction; or
     * "file.py:12(function)" for a frame of a Python program. Importers: "function (file:line)".
     */
    const char *frames;
} um_ev_call_site_t;

/*
 * MODULE: the program, or a library, is in memory; sent before the first CALL_SITE or CPU_FAULT that
 * needs it. What was at its addresses before is gone.
 */
typedef struct um_ev_module {
    uint64_t addr;  /* of its first loaded byte */
    uint64_t bytes; /* to its last one */
    uint64_t
        load_bias; /* address in memory minus address in the file; 0: not position-independent */
    uint64_t file_bytes;  /* of the file, 0 = not known */
    uint64_t modified_ns; /* of the file, since 1970, 0 = not known */
    const char *name;     /* last component of the path; never twice for two files in a trace */
    const char *path;     /* as the loader knows it, absolute; "" = not known */
    const char *build_id; /* hexadecimal, "" = it has none */
} um_ev_module_t;

typedef struct um_ev_region_alloc {
    uint32_t region; /* id, 1 and up, never used twice in a trace, in order of allocation */
    uint32_t family; /* um_family_t */
    uint64_t addr;   /* start, as the device sees it */
    uint64_t bytes;  /* as asked for */
    uint64_t
        host_addr;  /* start as the CPU sees it, for REGISTERED/MAPPED where it differs; else 0 */
    int32_t device; /* whose memory, UM_DEVICE_HOST for host families, NONE for managed */
    uint32_t flags; /* um_region_flag_t bits */
    uint64_t call_site;
    uint64_t stream; /* stream-ordered allocations: the stream handle; else 0 */
} um_ev_region_alloc_t;

/* What stands for a region in another run, and for what is allocated in its place: where it is allocated
 * and how large. Never 0; regions of one role are taken to be used alike. */
static inline uint64_t um_region_role(const um_ev_region_alloc_t *alloc)
{
    uint64_t x = (alloc->call_site ^ (alloc->bytes + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;

    return (x ^ x >> 32) | 1;
}

typedef struct um_ev_region_free {
    uint32_t region;
    uint64_t addr;
    uint64_t call_site;
    uint64_t stream;
} um_ev_region_free_t;

typedef struct um_ev_region_label {
    uint32_t region;
    const char *label;
} um_ev_region_label_t;

typedef enum um_param_flag {
    UM_PARAM_CONST_POINTER =
        1 << 0,                /* pointer to const in the mangled name: no writes through it */
    UM_PARAM_POINTER = 1 << 1, /* pointer in the mangled name */
    UM_PARAM_FLOAT = 1 << 2    /* floating point in the mangled name */
} um_param_flag_t;

typedef struct um_param {
    uint32_t offset_bytes; /* inside the parameter block */
    uint32_t size_bytes;
    uint32_t flags; /* um_param_flag_t bits; 0 where the name does not say */
} um_param_t;

/* KERNEL: sent once, before the first LAUNCH that names the id. */
typedef struct um_ev_kernel {
    uint32_t kernel;       /* id, 1 and up */
    uint64_t module_hash;  /* XXH3-64 of the cubin, 0 where it was not seen */
    const char *name;      /* mangled */
    uint32_t n_params;     /* 0 also where the layout is unknown: see layout_known */
    uint32_t layout_known; /* 1 when params is the true layout */
    const um_param_t *params;
} um_ev_kernel_t;

typedef struct um_arg {
    uint32_t slot;         /* parameter index */
    uint32_t offset_bytes; /* of the pointer inside that parameter (by-value structs), else 0 */
    uint32_t region;       /* the region the pointer falls into */
    uint64_t region_offset_bytes; /* pointer minus the region's start */
} um_arg_t;

/* A parameter of 4 or 8 bytes that may be an integer: neither a pointer nor floating point as far as that is
 * known. What the kernel takes it for is not. */
typedef struct um_scalar {
    uint32_t slot;       /* parameter index */
    uint32_t size_bytes; /* 4 or 8 */
    uint64_t value;      /* its bytes, zero-extended */
} um_scalar_t;

typedef enum um_launch_flag {
    UM_LAUNCH_COOPERATIVE = 1 << 0,
    UM_LAUNCH_GRAPH = 1 << 1,       /* a whole graph; kernel = 0, args = union of its nodes' */
    UM_LAUNCH_CAPTURED = 1 << 2,    /* put into a graph being captured: does not run now */
    UM_LAUNCH_EXTRA = 1 << 3,       /* parameters came as an `extra` buffer */
    UM_LAUNCH_ARGS_UNKNOWN = 1 << 4 /* layout unknown: args are incomplete */
} um_launch_flag_t;

typedef struct um_ev_launch {
    uint32_t correlation; /* CUPTI's correlation id; joins LAUNCH and KERNEL_EXEC */
    uint32_t kernel;
    uint64_t stream; /* handle as the program passed it; 0 legacy, 1, 2 CUDA's special values */
    uint32_t context;
    int32_t device;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes; /* dynamic */
    uint32_t flags;        /* um_launch_flag_t bits */
    uint64_t graph;        /* executable graph handle for GRAPH, else 0 */
    uint64_t call_site;    /* 0 unless launch sites were asked for */
    uint32_t n_args;
    uint32_t n_scalars;
    const um_arg_t *args; /* pointers into known regions, in parameter order */
    /* In parameter order; live, the first 8 of them. None of a graph, where the layout is not known, where no argument
     * points to managed memory, and in foreign and older traces. */
    const um_scalar_t *scalars;
} um_ev_launch_t;

/* KERNEL_EXEC: time_ns is the start on the GPU. */
typedef struct um_ev_kernel_exec {
    uint32_t correlation; /* 0 in foreign traces that do not say */
    uint32_t kernel;      /* id, 0 when the definition was not seen */
    uint64_t duration_ns;
    int32_t device;
    uint32_t context;
    uint32_t stream_id; /* CUPTI's numbering, not a handle */
    uint32_t grid[3];
    uint32_t block[3];
} um_ev_kernel_exec_t;

typedef enum um_access_kind {
    UM_ACCESS_UNKNOWN = 0,
    UM_ACCESS_READ = 1, /* of a FAULT: proves nothing about later writes (H200: read-then-write
                           kernels report only reads) */
    UM_ACCESS_WRITE = 2,
    UM_ACCESS_ATOMIC = 3,
    UM_ACCESS_PREFETCH = 4 /* prefetch instruction inside a kernel */
} um_access_kind_t;

/* GPU_FAULT: time_ns is when the driver began on it. */
typedef struct um_ev_gpu_fault {
    uint64_t addr;
    uint64_t duration_ns; /* until the replay was queued */
    uint32_t groups;      /* fault groups on that page (CUPTI `value`) */
    uint32_t access;      /* um_access_kind_t */
    int32_t device;
    uint32_t region;
} um_ev_gpu_fault_t;

typedef struct um_ev_cpu_fault {
    uint64_t addr;
    uint64_t pc;     /* of the faulting instruction (CUPTI `value` is the PC, not a count) */
    uint32_t access; /* um_access_kind_t, UNKNOWN where the source has none */
    uint32_t region;
} um_ev_cpu_fault_t;

typedef enum um_migrate_cause {
    UM_CAUSE_UNKNOWN = 0,
    UM_CAUSE_USER = 1,      /* cudaMemPrefetchAsync and friends: the program's or ours */
    UM_CAUSE_COHERENCE = 2, /* a fault */
    UM_CAUSE_PREFETCH = 3,  /* the driver's own tree prefetch */
    UM_CAUSE_EVICTION = 4,
    UM_CAUSE_ACCESS_COUNTERS = 5
} um_migrate_cause_t;

UM_API const char *um_migrate_cause_name(um_migrate_cause_t cause); /* "fault" for COHERENCE */

typedef struct um_ev_migrate {
    uint64_t addr;
    uint64_t bytes;
    uint64_t duration_ns;
    int32_t src; /* device or HOST */
    int32_t dst;
    uint32_t cause; /* um_migrate_cause_t */
    uint32_t region;
} um_ev_migrate_t;

typedef struct um_ev_thrash {
    uint64_t addr;
    uint64_t bytes;
    uint64_t processors; /* bit i = device i; bit 63 = the CPU; 0 = not said */
    uint32_t region;
} um_ev_thrash_t;

typedef struct um_ev_throttle {
    uint64_t addr;
    uint64_t duration_ns;
    int32_t device; /* the processor that had to wait */
    uint32_t region;
} um_ev_throttle_t;

typedef enum um_remote_map_cause {
    UM_REMOTE_UNKNOWN = 0,
    UM_REMOTE_COHERENCE = 1,
    UM_REMOTE_THRASHING = 2,
    UM_REMOTE_POLICY = 3,
    UM_REMOTE_OUT_OF_MEMORY = 4,
    UM_REMOTE_EVICTION = 5
} um_remote_map_cause_t;

typedef struct um_ev_remote_map {
    uint64_t addr;
    uint64_t bytes;
    int32_t src;    /* where the data is */
    int32_t dst;    /* who maps it */
    uint32_t cause; /* um_remote_map_cause_t */
    uint32_t region;
} um_ev_remote_map_t;

typedef enum um_memory_kind {
    UM_MEMORY_UNKNOWN = 0,
    UM_MEMORY_PAGEABLE = 1,
    UM_MEMORY_PINNED = 2,
    UM_MEMORY_DEVICE = 3,
    UM_MEMORY_ARRAY = 4,
    UM_MEMORY_MANAGED = 5
} um_memory_kind_t;

typedef enum um_transfer_flag {
    UM_TRANSFER_ASYNC = 1 << 0,   /* an ...Async call */
    UM_TRANSFER_ON_GPU = 1 << 1,  /* times are the copy engine's, not the call's */
    UM_TRANSFER_CAPTURED = 1 << 2 /* put into a graph being captured */
} um_transfer_flag_t;

/* COPY: from a call (time_ns = call entered, duration = time in the call) or from a GPU record. */
typedef struct um_ev_copy {
    uint64_t dst_addr; /* 0 where the source does not say */
    uint64_t src_addr;
    uint64_t bytes;
    uint64_t duration_ns;
    uint32_t dst_memory; /* um_memory_kind_t */
    uint32_t src_memory;
    uint32_t dst_region;
    uint32_t src_region;
    int32_t device;
    uint32_t correlation;
    uint64_t stream;
    uint32_t flags; /* um_transfer_flag_t bits */
} um_ev_copy_t;

typedef struct um_ev_set {
    uint64_t addr;
    uint64_t bytes;
    uint64_t duration_ns;
    uint32_t value;
    uint32_t memory; /* um_memory_kind_t */
    uint32_t region;
    uint32_t correlation;
    int32_t device;
    uint64_t stream;
    uint32_t flags; /* um_transfer_flag_t bits */
} um_ev_set_t;

typedef enum um_sync_kind {
    UM_SYNC_UNKNOWN = 0,
    UM_SYNC_DEVICE = 1, /* cuCtxSynchronize */
    UM_SYNC_STREAM = 2,
    UM_SYNC_EVENT = 3,
    UM_SYNC_COPY = 4 /* a blocking copy or set */
} um_sync_kind_t;

/* SYNC: two events, the enter one first, joined by `sync`. */
typedef struct um_ev_sync {
    uint32_t sync; /* id of the pair (the call's correlation id) */
    uint32_t kind; /* um_sync_kind_t */
    uint32_t exit; /* 0 = the CPU enters the wait, 1 = it leaves */
    uint32_t context;
    uint64_t stream; /* or event handle for UM_SYNC_EVENT */
} um_ev_sync_t;

typedef enum um_hint_kind {
    UM_HINT_NONE = 0,
    UM_HINT_PREFETCH = 1, /* to `device`, HOST included */
    UM_HINT_READ_MOSTLY = 2,
    UM_HINT_UNSET_READ_MOSTLY = 3,
    UM_HINT_PREFERRED_LOCATION = 4,
    UM_HINT_UNSET_PREFERRED_LOCATION = 5,
    UM_HINT_ACCESSED_BY = 6,
    UM_HINT_UNSET_ACCESSED_BY = 7,
    UM_HINT_DISCARD = 8, /* only ever the program's own */
    UM_HINT_KIND_COUNT = 9
} um_hint_kind_t;

UM_API const char *um_hint_kind_name(um_hint_kind_t kind);

/* What became of a hint. The gate refuses with one of these reasons; the executor reports the rest. */
typedef enum um_hint_result {
    UM_HINT_PROPOSED = 0,
    UM_HINT_APPLIED = 1,            /* the driver accepted the call */
    UM_HINT_FAILED = 2,             /* the driver refused it: `error` says how */
    UM_HINT_REFUSED_RANGE = 3,      /* not inside one live managed region */
    UM_HINT_REFUSED_CAPTURE = 4,    /* the stream is being captured */
    UM_HINT_REFUSED_CAPABILITY = 5, /* concurrentManagedAccess is 0, or observe-only */
    UM_HINT_REFUSED_CAPACITY = 6,   /* would pass free memory less headroom */
    UM_HINT_REFUSED_QUOTA = 7,      /* bytes or calls per second used up, or the queue is full */
    UM_HINT_REFUSED_DUPLICATE = 8,  /* already there or already on its way */
    UM_HINT_REFUSED_COOLDOWN = 9,   /* this kind failed too often */
    UM_HINT_REFUSED_DISABLED =
        10,                 /* switched off by the user, or the program advises there itself */
    UM_HINT_CANCELLED = 11, /* region freed or context gone before it was issued */
    UM_HINT_REFUSED_BUSY =
        12, /* the wait does not cover all that may be at work on the range, or advice
                                  that keeps it elsewhere is on its way */
    UM_HINT_RESULT_COUNT = 13
} um_hint_result_t;

UM_API const char *um_hint_result_name(um_hint_result_t result); /* "refused: capacity" */

typedef struct um_ev_hint {
    uint32_t kind;   /* um_hint_kind_t */
    uint32_t result; /* um_hint_result_t */
    uint64_t addr;
    uint64_t bytes;
    int32_t device; /* target */
    uint32_t region;
    uint32_t correlation; /* the launch it was made for, 0 = none */
    int32_t error;        /* CUresult when FAILED, else 0 */
    uint64_t duration_ns; /* time inside the driver call(s) */
    uint64_t stream;
    uint64_t call_site; /* of the program's own hints */
    const char *who;    /* advisor name, or "app" for the program's own calls */
    const char *why;    /* a short phrase */
} um_ev_hint_t;

typedef enum um_mark_kind {
    UM_MARK_INSTANT = 0,
    UM_MARK_PUSH = 1, /* nested per thread, closed by POP */
    UM_MARK_POP = 2,
    UM_MARK_START = 3, /* free range, closed by END with the same id */
    UM_MARK_END = 4
} um_mark_kind_t;

typedef struct um_ev_mark {
    uint32_t kind;      /* um_mark_kind_t */
    uint64_t id;        /* of START/END pairs */
    const char *domain; /* NVTX domain, "umrt" for um_phase_* */
    const char *name;   /* "" for POP and END */
} um_ev_mark_t;

/* RESIDENCY: `present_bytes` of the range were mapped by the CPU at time_ns (page tables). */
typedef struct um_ev_residency {
    uint64_t addr;
    uint64_t bytes;
    uint64_t present_bytes; /* 0 .. bytes */
    uint32_t region;
    uint32_t sync; /* the sync it followed, 0 = none */
} um_ev_residency_t;

/*
 * ACCESS: a range that was truly accessed, all of its pages. Of one launch, those with an equal time_ns
 * are swept side by side, a later one comes after; the times need only order them. By the CPU (device
 * HOST, correlation 0) it belongs to a host phase at that place of the thread's events, and time_ns is
 * when its sweep was done. The fact workload.accesses says whether a trace has them all.
 */
typedef struct um_ev_access {
    uint64_t addr;
    uint64_t bytes;
    int32_t device;
    uint32_t kind;        /* um_access_kind_t */
    uint32_t correlation; /* launch, 0 for the CPU */
    uint32_t region;
} um_ev_access_t;

#define UM_SLOT_NONE      UINT32_MAX
#define UM_LEARNED_VALUES 6

/*
 * LEARNED: a conclusion that would hold in another run of the program. Its identity is all but the
 * values, count and age, and none of it is an address or an id of this run; what the values mean is the
 * business of `who`.
 */
typedef struct um_ev_learned {
    const char *who;      /* "footprint", "sequence", "guard", or an advisor's name */
    const char *what;     /* a word of who's own: "extent", "read" */
    const char *kernel;   /* mangled name, "" = about no kernel */
    uint64_t module_hash; /* of its cubin, 0 = not known */
    uint64_t shape;       /* who's own: a bucket of the grid, the part of a region; else 0 */
    uint64_t role;        /* of a region: um_region_role; 0 = about none */
    uint32_t slot;        /* parameter index, UM_SLOT_NONE = about none */
    uint32_t age;         /* runs since it was last seen to hold: 0 = in this run */
    uint64_t count;       /* observations behind it; 0 = it held in earlier runs and does no more */
    uint64_t value[UM_LEARNED_VALUES];
} um_ev_learned_t;

typedef enum um_region_hint_flag {
    UM_REGION_HINT_OFF = 1 << 0,       /* leave it alone: no hints for it */
    UM_REGION_HINT_READ_ONLY = 1 << 1, /* from now on nobody writes it */
    UM_REGION_HINT_CPU_FIRST = 1 << 2  /* the CPU will write what nobody has written yet */
} um_region_hint_flag_t;

/* REGION_HINT: what the program says about a region; it holds from now on, instead of what it said before. */
typedef struct um_ev_region_hint {
    uint32_t region;
    uint32_t flags; /* um_region_hint_flag_t bits, 0 = nothing special */
} um_ev_region_hint_t;

/* One event. `type` says which member of the union holds. */
typedef struct um_event {
    uint64_t time_ns;
    uint32_t type; /* um_event_type_t */
    uint32_t tid;  /* Linux thread id of the CPU thread that caused it, 0 = unknown or GPU */
    union {
        um_ev_fact_t fact;
        um_ev_device_t device;
        um_ev_option_t option;
        um_ev_loss_t loss;
        um_ev_context_t context;
        um_ev_call_site_t call_site;
        um_ev_module_t module;
        um_ev_region_alloc_t region_alloc;
        um_ev_region_free_t region_free;
        um_ev_region_label_t region_label;
        um_ev_kernel_t kernel;
        um_ev_launch_t launch;
        um_ev_kernel_exec_t kernel_exec;
        um_ev_gpu_fault_t gpu_fault;
        um_ev_cpu_fault_t cpu_fault;
        um_ev_migrate_t migrate;
        um_ev_thrash_t thrash;
        um_ev_throttle_t throttle;
        um_ev_remote_map_t remote_map;
        um_ev_copy_t copy;
        um_ev_set_t set;
        um_ev_sync_t sync;
        um_ev_hint_t hint;
        um_ev_mark_t mark;
        um_ev_residency_t residency;
        um_ev_access_t access;
        um_ev_learned_t learned;
        um_ev_region_hint_t region_hint;
    } u;
} um_event_t;

/* Receives events one at a time; `event` and all it points to are valid during the call only. */
typedef void (*um_event_fn)(void *ctx, const um_event_t *event);

#ifdef __cplusplus
}
#endif
#endif

#include "decode.h"

#include <string.h>

#include <cuda.h>
#include <cupti.h>

/* CUPTI's records are packed structs aligned to 8 bytes; these have no holes, so that no packing is
 * needed. */
typedef struct um_counter_1 {
    uint32_t kind, counter, scope, device;
    uint64_t value, timestamp;
    uint32_t process, pad;
} um_counter_1_t;

/* Layout 2 is layout 3 without processors. */
typedef struct um_counter_3 {
    uint32_t kind, counter;
    uint64_t value, start, end, address;
    uint32_t src, dst, stream, process, flags, pad;
    uint64_t processors[5];
} um_counter_3_t;
#define UM_COUNTER_2_BYTES offsetof(um_counter_3_t, processors)

/* What CUpti_ActivityKernel4 to 13 have in common, which is all we need. */
typedef struct um_kernel_record {
    uint32_t kind;
    uint8_t cache, shared;
    uint16_t registers;
    uint32_t partitioned_requested, partitioned_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
} um_kernel_record_t;

#define UM_SAME(ours, field, theirs, their_field)                                                  \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #theirs "." #their_field)
#define UM_SAME_COUNTER(theirs)                                                                    \
    UM_SAME(um_counter_3_t, counter, theirs, counterKind);                                         \
    UM_SAME(um_counter_3_t, value, theirs, value);                                                 \
    UM_SAME(um_counter_3_t, start, theirs, start);                                                 \
    UM_SAME(um_counter_3_t, end, theirs, end);                                                     \
    UM_SAME(um_counter_3_t, address, theirs, address);                                             \
    UM_SAME(um_counter_3_t, src, theirs, srcId);                                                   \
    UM_SAME(um_counter_3_t, dst, theirs, dstId);                                                   \
    UM_SAME(um_counter_3_t, process, theirs, processId);                                           \
    UM_SAME(um_counter_3_t, flags, theirs, flags)
#define UM_SAME_KERNEL(theirs)                                                                     \
    UM_SAME(um_kernel_record_t, start, theirs, start);                                             \
    UM_SAME(um_kernel_record_t, end, theirs, end);                                                 \
    UM_SAME(um_kernel_record_t, device, theirs, deviceId);                                         \
    UM_SAME(um_kernel_record_t, context, theirs, contextId);                                       \
    UM_SAME(um_kernel_record_t, stream, theirs, streamId);                                         \
    UM_SAME(um_kernel_record_t, grid, theirs, gridX);                                              \
    UM_SAME(um_kernel_record_t, block, theirs, blockX);                                            \
    UM_SAME(um_kernel_record_t, correlation, theirs, correlationId);                               \
    UM_SAME(um_kernel_record_t, name, theirs, name)

_Static_assert(sizeof(um_counter_1_t) == sizeof(CUpti_ActivityUnifiedMemoryCounter), "Counter");
_Static_assert(UM_COUNTER_2_BYTES == sizeof(CUpti_ActivityUnifiedMemoryCounter2), "Counter2");
UM_SAME_COUNTER(CUpti_ActivityUnifiedMemoryCounter2);
UM_SAME_KERNEL(CUpti_ActivityKernel4);
UM_SAME_KERNEL(CUpti_ActivityKernel8);
#if CUDA_VERSION >= 12000
UM_SAME_KERNEL(CUpti_ActivityKernel9);
#endif
#if CUDA_VERSION >= 12080
_Static_assert(sizeof(um_counter_3_t) == sizeof(CUpti_ActivityUnifiedMemoryCounter3), "Counter3");
UM_SAME_COUNTER(CUpti_ActivityUnifiedMemoryCounter3);
UM_SAME(um_counter_3_t, processors, CUpti_ActivityUnifiedMemoryCounter3, processors);
#endif
#if CUDA_VERSION >= 13000
UM_SAME_KERNEL(CUpti_ActivityKernel10);
#endif

um_counter_layout_t um_counter_layout(uint32_t cupti_api)
{
    /* API 26 came with CUDA 12.8, 6 with 7.0 (the value is CUPTI's own count until 12.9, then the
     * CUDA version times 100: 130000). */
    if (cupti_api >= 26)
        return UM_COUNTER_3;
    return cupti_api >= 6 ? UM_COUNTER_2 : UM_COUNTER_1;
}

size_t um_counter_bytes(um_counter_layout_t layout)
{
    static const size_t bytes[] = {[UM_COUNTER_1] = sizeof(um_counter_1_t),
                                   [UM_COUNTER_2] = UM_COUNTER_2_BYTES,
                                   [UM_COUNTER_3] = sizeof(um_counter_3_t)};

    return (size_t)layout < sizeof(bytes) / sizeof(*bytes) ? bytes[layout] : 0;
}

/* CUPTI writes 0xFFFFFFFF for the CPU, which is UM_DEVICE_HOST as a signed number. */
static int32_t um_processor(uint32_t id)
{
    return (int32_t)id;
}

static um_decode_result_t um_decode_counter_1(const um_counter_1_t *r, um_event_t *out)
{
    if (r->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER || r->value == 0 ||
        (r->counter != CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD &&
         r->counter != CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH))
        return UM_DECODE_IGNORED;
    if (r->timestamp == 0)
        return UM_DECODE_BAD_TIME;
    bool up = r->counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
    out->time_ns = r->timestamp;
    out->type = UM_EV_MIGRATE;
    out->u.migrate = (um_ev_migrate_t){
        .bytes = r->value,
        .src = up ? UM_DEVICE_HOST : um_processor(r->device),
        .dst = up ? um_processor(r->device) : UM_DEVICE_HOST,
    };
    return UM_DECODE_EVENT;
}

/* Layout 2 has room for 32 processors in src, layout 3 has its own words; bit 63 of an event is the
 * CPU, which CUPTI's masks leave out. */
static uint64_t um_processors(um_counter_layout_t layout, const um_counter_3_t *r)
{
    return layout == UM_COUNTER_3 && r->processors[0] ? r->processors[0] : r->src;
}

um_decode_result_t um_decode_counter(um_counter_layout_t layout, const void *record, size_t bytes,
                                     um_event_t *out)
{
    um_counter_3_t r = {0};
    size_t need = um_counter_bytes(layout);

    if (need == 0 || bytes < need)
        return UM_DECODE_SHORT;
    memset(out, 0, sizeof(*out));
    if (layout == UM_COUNTER_1) {
        um_counter_1_t old;
        memcpy(&old, record, sizeof(old));
        return um_decode_counter_1(&old, out);
    }
    memcpy(&r, record, need);
    if (r.kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
        return UM_DECODE_IGNORED;
    out->time_ns = r.start;
    uint64_t duration = r.end - r.start;
    bool timed = false; /* whether `end` means something for this kind */

    switch (r.counter) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
    case 8: /* ..._DTOD */
        timed = true;
        out->type = UM_EV_MIGRATE;
        /* The kind says which end is the CPU: its id is 0xFFFFFFFF from some drivers, but 0, as GPU
         * 0's, from others (580.159 with CUPTI 13.0 on an H200). */
        out->u.migrate = (um_ev_migrate_t){
            .addr = r.address,
            .bytes = r.value,
            .duration_ns = duration,
            .src = r.counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD
                       ? UM_DEVICE_HOST
                       : um_processor(r.src),
            .dst = r.counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH
                       ? UM_DEVICE_HOST
                       : um_processor(r.dst),
            .cause = r.flags <= UM_CAUSE_ACCESS_COUNTERS ? r.flags : UM_CAUSE_UNKNOWN,
        };
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT:
        out->type = UM_EV_CPU_FAULT;
        out->u.cpu_fault = (um_ev_cpu_fault_t){
            .addr = r.address,
            .pc = r.value,
            .access = r.flags <= UM_ACCESS_PREFETCH ? r.flags : UM_ACCESS_UNKNOWN,
        };
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
        timed = true;
        out->type = UM_EV_GPU_FAULT;
        out->u.gpu_fault = (um_ev_gpu_fault_t){
            .addr = r.address,
            .duration_ns = duration,
            .groups = r.value > UINT32_MAX ? UINT32_MAX : (uint32_t)r.value,
            .access = r.flags <= UM_ACCESS_PREFETCH ? r.flags : UM_ACCESS_UNKNOWN,
            .device = um_processor(r.src),
        };
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING:
        out->type = UM_EV_THRASH;
        out->u.thrash = (um_ev_thrash_t){.addr = r.address,
                                         .bytes = r.value,
                                         .processors = um_processors(layout, &r)};
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING:
        timed = true;
        out->type = UM_EV_THROTTLE;
        out->u.throttle = (um_ev_throttle_t){.addr = r.address,
                                             .duration_ns = duration,
                                             .device = um_processor(r.src)};
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP:
        out->type = UM_EV_REMOTE_MAP;
        out->u.remote_map = (um_ev_remote_map_t){
            .addr = r.address,
            .bytes = r.value,
            .src = um_processor(r.src),
            .dst = um_processor(r.dst),
            .cause = r.flags <= UM_REMOTE_EVICTION ? r.flags : UM_REMOTE_UNKNOWN,
        };
        break;
    default:
        return UM_DECODE_IGNORED;
    }
    if (r.start == 0 || (timed && r.end < r.start))
        return UM_DECODE_BAD_TIME;
    return UM_DECODE_EVENT;
}

um_decode_result_t um_decode_kernel(const void *record, size_t bytes, um_event_t *out,
                                    const char **name)
{
    um_kernel_record_t r;

    if (bytes < sizeof(r))
        return UM_DECODE_SHORT;
    memcpy(&r, record, sizeof(r));
    if (r.kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && r.kind != CUPTI_ACTIVITY_KIND_KERNEL)
        return UM_DECODE_IGNORED;
    if (r.start == 0 || r.end < r.start)
        return UM_DECODE_BAD_TIME;
    memset(out, 0, sizeof(*out));
    out->time_ns = r.start;
    out->type = UM_EV_KERNEL_EXEC;
    out->u.kernel_exec = (um_ev_kernel_exec_t){
        .correlation = r.correlation,
        .duration_ns = r.end - r.start,
        .device = um_processor(r.device),
        .context = r.context,
        .stream_id = r.stream,
        .grid = {(uint32_t)r.grid[0], (uint32_t)r.grid[1], (uint32_t)r.grid[2]},
        .block = {(uint32_t)r.block[0], (uint32_t)r.block[1], (uint32_t)r.block[2]},
    };
    *name = r.name;
    return UM_DECODE_EVENT;
}

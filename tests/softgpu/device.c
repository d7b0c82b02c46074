/*
 * device.c - GPUs as $SOFTGPU_* describe them, contexts, names of errors.
 */
#include "softgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sg_context_t *contexts; /* all that ever were; handles of dead ones stay valid to look at */
static uint32_t n_contexts;
static struct {
    sg_context_t *context;
    int holders;
    unsigned flags;
} primaries[SG_GPUS];
static _Thread_local sg_context_t *stack[32];
static _Thread_local int depth;

int sg_gpus(void)
{
    uint64_t n = sg_setting_number("GPUS", 1);

    return (int)(n < SG_GPUS ? n : SG_GPUS);
}

uint64_t sg_gpu_bytes(int device)
{
    (void)device;
    return sg_setting_number("MEMORY", 4ull << 30);
}

uint64_t sg_gpu_used(int device)
{
    uint64_t used = sg_setting_number("USED", 0), all = sg_gpu_bytes(device);

    return used < all ? used : all;
}

bool sg_concurrent(int device)
{
    (void)device;
    return sg_setting_number("CONCURRENT", 1) != 0;
}

/* ---- devices ------------------------------------------------------------------------------------ */

#define CHECK_DEVICE(device)                                                                       \
    if ((device) < 0 || (device) >= sg_gpus())                                                     \
    return CUDA_ERROR_INVALID_DEVICE

CUresult sg_device_count(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sg_gpus();
    return CUDA_SUCCESS;
}

CUresult sg_device_get(CUdevice *device, int ordinal)
{
    CHECK_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sg_device_name(char *name, int bytes, CUdevice device)
{
    CHECK_DEVICE(device);
    snprintf(name, (size_t)bytes, "%s", sg_setting("NAME", "Software GPU"));
    return CUDA_SUCCESS;
}

CUresult sg_device_uuid(CUuuid *uuid, CUdevice device)
{
    CHECK_DEVICE(device);
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0x50 + i);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult sg_device_total_mem(size_t *bytes, CUdevice device)
{
    CHECK_DEVICE(device);
    *bytes = sg_gpu_bytes(device);
    return CUDA_SUCCESS;
}

CUresult sg_device_pci(char *text, int bytes, CUdevice device)
{
    CHECK_DEVICE(device);
    snprintf(text, (size_t)bytes, "0000:%02X:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUresult sg_device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    /* By number, so that old headers do; the names are the headers'. */
    static const struct {
        int attribute;
        const char *setting;
        int value;
    } table[] = {
        {1, NULL, 1024},
        {2, NULL, 1024},
        {3, NULL, 1024},
        {4, NULL, 64},
        {5, NULL, INT32_MAX},
        {6, NULL, 65535},
        {7, NULL, 65535},
        {8, NULL, 49152},
        {9, NULL, 65536},
        {10, NULL, 32},
        {12, NULL, 65536},
        {13, NULL, 1000000},
        {16, NULL, 4},
        {18, "INTEGRATED", 0},
        {19, NULL, 1},
        {31, NULL, 1},
        {33, NULL, 1},
        {34, NULL, 0},
        {39, NULL, 2048},
        {40, NULL, 1},
        {41, NULL, 1},
        {75, NULL, 9},
        {76, NULL, 0},
        {78, NULL, 1},
        {83, "MANAGED", 1},
        {88, "PAGEABLE", 0},
        {89, "CONCURRENT", 1},
        {95, NULL, 1},
        {100, "HOST_PAGE_TABLES", 0},
        {101, NULL, 0},
        {102, NULL, 1},
        {115, NULL, 1},
    };

    CHECK_DEVICE(device);
    if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].attribute == (int)attribute)
            *value = table[i].setting
                         ? (int)sg_setting_number(table[i].setting, (uint64_t)table[i].value)
                         : table[i].value;
    return CUDA_SUCCESS;
}

CUresult sg_device_can_peer(int *can, CUdevice device, CUdevice peer)
{
    CHECK_DEVICE(device);
    CHECK_DEVICE(peer);
    *can = device != peer && sg_setting_number("PEERS", 1);
    return CUDA_SUCCESS;
}

CUresult sg_device_p2p(int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
    CUresult result = sg_device_can_peer(value, device, peer);

    if (attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
        *value = 0;
    return result;
}

/* ---- contexts ----------------------------------------------------------------------------------- */

sg_context_t *sg_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

bool sg_any_context(void)
{
    bool any = false;

    pthread_mutex_lock(&sg_lock);
    for (sg_context_t *c = contexts; c; c = c->next)
        any |= c->alive;
    pthread_mutex_unlock(&sg_lock);
    return any;
}

void sg_context_fails(sg_context_t *context, CUresult error)
{
    pthread_mutex_lock(&sg_lock);
    context->sticky = error;
    pthread_mutex_unlock(&sg_lock);
}

static sg_context_t *context_new(int device, unsigned flags, bool primary)
{
    sg_context_t *context = calloc(1, sizeof(*context));

    pthread_mutex_lock(&sg_lock);
    context->magic = SG_CONTEXT;
    context->id = ++n_contexts;
    context->device = device;
    context->flags = flags;
    context->primary = primary;
    context->alive = true;
    context->next = contexts;
    contexts = context;
    context->legacy = sg_stream_new(context, 0);
    context->legacy->legacy = true;
    pthread_mutex_unlock(&sg_lock);
    if (sg_client)
        sg_client->context(context, true);
    return context;
}

static void context_end(sg_context_t *context)
{
    if (!context->sticky)
        sg_context_wait(context);
    if (sg_client)
        sg_client->context(context, false);
    sg_streams_end(context);
    sg_modules_of_context_free(context);
    sg_memory_of_context_free(context);
    pthread_mutex_lock(&sg_lock);
    context->alive = false;
    pthread_mutex_unlock(&sg_lock);
}

CUresult sg_primary_retain(CUcontext *out, CUdevice device)
{
    CHECK_DEVICE(device);
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&making);
    sg_context_t *context = primaries[device].context;
    if (!context || !context->alive)
        primaries[device].context = context = context_new(device, primaries[device].flags, true);
    primaries[device].holders++;
    pthread_mutex_unlock(&making);
    *out = context;
    return CUDA_SUCCESS;
}

CUresult sg_primary_release(CUdevice device)
{
    CHECK_DEVICE(device);
    if (primaries[device].holders == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--primaries[device].holders == 0 && primaries[device].context->alive)
        context_end(primaries[device].context);
    return CUDA_SUCCESS;
}

/* Everything in it goes, whoever holds it; it comes back empty at the next retain. */
CUresult sg_primary_reset(CUdevice device)
{
    CHECK_DEVICE(device);
    if (primaries[device].context && primaries[device].context->alive)
        context_end(primaries[device].context);
    primaries[device].holders = 0;
    return CUDA_SUCCESS;
}

CUresult sg_primary_state(CUdevice device, unsigned *flags, int *active)
{
    CHECK_DEVICE(device);
    *flags = primaries[device].flags;
    *active = primaries[device].context && primaries[device].context->alive;
    return CUDA_SUCCESS;
}

CUresult sg_primary_flags(CUdevice device, unsigned flags)
{
    CHECK_DEVICE(device);
    if (flags > 0xff)
        return CUDA_ERROR_INVALID_VALUE;
    primaries[device].flags = flags;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_push(CUcontext context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(context, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (depth == 32)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_pop(CUcontext *out)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (out)
        *out = stack[depth];
    return CUDA_SUCCESS;
}

CUresult sg_ctx_create(CUcontext *out, unsigned flags, CUdevice device)
{
    CHECK_DEVICE(device);
    if (!out || flags > 0xff)
        return CUDA_ERROR_INVALID_VALUE;
    *out = context_new(device, flags, false);
    return sg_ctx_push(*out);
}

CUresult sg_ctx_create_v3(CUcontext *out, CUexecAffinityParam *affinity, int n, unsigned flags,
                          CUdevice device)
{
    (void)affinity;
    (void)n;
    return sg_ctx_create(out, flags, device);
}

#if CUDA_VERSION >= 12050
CUresult sg_ctx_create_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags,
                          CUdevice device)
{
    (void)params;
    return sg_ctx_create(out, flags, device);
}
#endif

CUresult sg_ctx_destroy(CUcontext context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(context, SG_CONTEXT) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context_end(context);
    if (depth && stack[depth - 1] == context)
        depth--;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_set(CUcontext context)
{
    if (!context) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    int before = depth;
    depth -= depth > 0;
    CUresult result = sg_ctx_push(context);
    if (result != CUDA_SUCCESS)
        depth = before;
    return result;
}

CUresult sg_ctx_get(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sg_context();
    return CUDA_SUCCESS;
}

CUresult sg_ctx_device(CUdevice *device)
{
    *device = sg_context()->device;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_api_version(CUcontext context, unsigned *version)
{
    (void)context;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_sync_v2(CUcontext context)
{
    if (!context)
        context = sg_context();
    pthread_mutex_lock(&sg_lock);
    bool captured = sg_capture_in(context, false); /* by whatever thread, in whatever mode */
    pthread_mutex_unlock(&sg_lock);
    if (captured)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    sg_context_wait(context);
    return context->sticky;
}

CUresult sg_ctx_sync(void)
{
    return sg_ctx_sync_v2(NULL);
}

CUresult sg_ctx_peer(CUcontext peer, unsigned flags)
{
    if (!sg_is(peer, SG_CONTEXT) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_setting_number("PEERS", 1) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

CUresult sg_ctx_no_peer(CUcontext peer)
{
    (void)peer;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_limit(size_t *value, CUlimit limit)
{
    (void)limit;
    *value = 1024;
    return CUDA_SUCCESS;
}

CUresult sg_ctx_priorities(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

/* ---- errors --------------------------------------------------------------------------------------- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult error_text(CUresult error, const char **out, bool name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == (int)error) {
            *out = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_error_name(CUresult error, const char **out)
{
    return error_text(error, out, true);
}

CUresult sg_error_string(CUresult error, const char **out)
{
    return error_text(error, out, false);
}

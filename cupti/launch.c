/*
 * launch.c - the hot path: a kernel is put on a stream.
 *
 * It is entered from the first managed memory on (um_callbacks_managed). With nothing to do it then
 * takes a few loads: no lock, no allocation, no driver call. A kernel's first launch defines it, which
 * may do all three, once.
 */
#include "deep.h"
#include "executor.h"
#include "live.h"
#include "records.h"

#include <stdatomic.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UM_MAX_PARAMS  256
#define UM_MAX_ARGS    128 /* pointers told of one launch; the rest is dropped */
#define UM_MAX_SCALARS 8   /* and of what may be integers */

typedef struct um_seen_launch {
    uint64_t handle;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes, flags;
    uint64_t stream;
    void *const *params;
    void *const *extra;
    const void *packed; /* what `extra` brings instead of params, NULL = nothing */
    size_t packed_bytes;
    bool elsewhere; /* perhaps on another device than that of the current context */
} um_seen_launch_t;

/* ---- definition, once a kernel ------------------------------------------------------------- */

/* The handle is a CUfunction or a CUkernel, and only trying tells which (H200). UM_MAX_PARAMS when
 * the driver cannot say. */
static uint32_t um_layout_by_driver(uint64_t handle, um_param_t *params)
{
    const um_cuda_t *cuda = um_live.cuda;
    void *object = (void *)(uintptr_t)handle;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    bool is_kernel = false;
    uint32_t n = 0;

    for (; n < UM_MAX_PARAMS; n++) {
        size_t offset = 0, bytes = 0;
        result = CUDA_ERROR_INVALID_HANDLE;
        if (!is_kernel && cuda->func_param)
            result = cuda->func_param(object, n, &offset, &bytes);
        if (n == 0 && result == CUDA_ERROR_INVALID_HANDLE)
            is_kernel = true;
        if (is_kernel && cuda->kernel_param)
            result = cuda->kernel_param(object, n, &offset, &bytes);
        if (result != CUDA_SUCCESS)
            break;
        params[n] = (um_param_t){.offset_bytes = (uint32_t)offset, .size_bytes = (uint32_t)bytes};
    }
    /* One past the last parameter is INVALID_VALUE; anything else is no answer. */
    return result == CUDA_ERROR_INVALID_VALUE ? n : UM_MAX_PARAMS;
}

static const char *um_name_by_driver(uint64_t handle)
{
    const um_cuda_t *cuda = um_live.cuda;
    void *object = (void *)(uintptr_t)handle;
    const char *name = NULL;

    if (cuda->func_name && cuda->func_name(&name, object) == CUDA_SUCCESS && name)
        return name;
    if (cuda->kernel_name && cuda->kernel_name(&name, object) == CUDA_SUCCESS && name)
        return name;
    return "";
}

/* Once a kernel, before any launch of it can be told. */
static void um_launch_new_kernel(void *ctx, const um_kernel_t *kernel)
{
    um_event_t event = um_live_event(UM_EV_KERNEL);

    (void)ctx;
    event.u.kernel = (um_ev_kernel_t){
        .kernel = kernel->id,
        .module_hash = kernel->module_hash,
        .name = kernel->name,
        .n_params = kernel->n_params,
        .layout_known = kernel->layout_known,
        .params = kernel->params,
    };
    um_live_post(&event, false);
}

void um_launch_init(void)
{
    um_kernels_on_new(um_live.runtime->kernels, um_launch_new_kernel, NULL);
}

/* Out of line, so that the launch path's frame stays small. `real`: the handle is the driver's, which
 * dereferences whatever it is asked about. */
static __attribute__((noinline)) const um_kernel_t *um_launch_define(uint64_t handle, bool real,
                                                                     const char *symbol)
{
    um_param_t by_driver[UM_MAX_PARAMS];
    const um_param_t *params = NULL, *seen = NULL;
    uint32_t n = UM_MAX_PARAMS, n_seen = 0;
    uint64_t module_hash = 0;
    const um_kernel_t *kernel = NULL;

    um_cuda_own = true;
    if (real && (um_live.cuda->func_param || um_live.cuda->kernel_param))
        n = um_layout_by_driver(handle, by_driver);
    if (real && !symbol)
        symbol = um_name_by_driver(handle);
    um_cuda_own = false;
    if (n < UM_MAX_PARAMS)
        params = by_driver;
    if (um_modules_kernel(symbol, &module_hash, &seen, &n_seen) && !params) {
        params = seen;
        n = n_seen;
    }
    if (um_kernels_define(um_live.runtime->kernels, handle, symbol, module_hash, params,
                          params ? n : 0, &kernel) != UM_OK)
        return NULL;
    return kernel;
}

const um_kernel_t *um_launch_kernel(uint64_t handle, const char *symbol)
{
    const um_kernel_t *kernel = um_kernels_find(um_live.runtime->kernels, handle);

    return kernel || !handle ? kernel : um_launch_define(handle, true, symbol);
}

const um_kernel_t *um_launch_kernel_named(const char *name)
{
    /* Handles are aligned pointers: an odd one is nobody's. */
    uint64_t handle = XXH3_64bits(name, strlen(name)) | 1;
    const um_kernel_t *kernel = um_kernels_find(um_live.runtime->kernels, handle);

    return kernel ? kernel : um_launch_define(handle, false, name);
}

/* ---- every launch ---------------------------------------------------------------------------- */

/* Asked only once a capture has begun somewhere: 20 ns. The legacy stream cannot be captured, and
 * asking about it while another is would be an error. */
bool um_is_captured(uint64_t stream)
{
    const um_cuda_t *cuda = um_live.cuda;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (!um_live.capturing || stream < 2 || !cuda->stream_is_capturing)
        return false;
    um_cuda_own = true;
    CUresult result = cuda->stream_is_capturing((CUstream)(uintptr_t)stream, &status);
    um_cuda_own = false;
    return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* cuLaunchKernel's `extra`: pairs of a code and a pointer, ended by 0. 1 = buffer, 2 = its size. */
static const void *um_extra_block(void *const *extra, size_t *bytes)
{
    const void *block = NULL;

    *bytes = 0;
    for (int i = 0; extra && i < 8 && extra[0]; i++, extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            block = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            *bytes = *(const size_t *)extra[1];
    }
    return *bytes ? block : NULL;
}

static uint32_t um_launch_args(const um_kernel_t *kernel, um_seen_launch_t *launch, um_arg_t *args)
{
    uint32_t n = 0;

    if (!launch->params)
        launch->packed = um_extra_block(launch->extra, &launch->packed_bytes);
    if (launch->packed)
        launch->flags |= UM_LAUNCH_EXTRA;
    if (!kernel->layout_known && !launch->packed)
        launch->flags |= UM_LAUNCH_ARGS_UNKNOWN;
    else if (launch->params || launch->packed)
        n = um_kernel_args(kernel, um_live.runtime->regions, launch->params, launch->packed,
                           launch->packed_bytes, args, UM_MAX_ARGS);
    return n < UM_MAX_ARGS ? n : UM_MAX_ARGS;
}

/* ---- after a late start ----------------------------------------------------------------------- */

#define UM_UNKNOWN 4096 /* words remembered as pointing nowhere */
static _Atomic uint64_t um_unknown[UM_UNKNOWN];

static bool um_in_no_region(uint64_t word)
{
    um_region_t region;

    return word >= 0x10000 && word >> 47 == 0 &&
           um_unknown[(word >> 4) * 0x9E3779B97F4A7C15u >> 52] != word &&
           !um_regions_find(um_live.runtime->regions, word, &region);
}

/* Asks the driver about a word that may be a pointer into something allocated before umrt came. */
static void um_discover(uint64_t word)
{
    unsigned type = 0, managed = 0;
    CUdeviceptr start = 0;
    size_t bytes = 0;
    int device = UM_DEVICE_NONE;
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                  CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *into[] = {&type, &managed, &start, &bytes, &device};

    um_cuda_own = true;
    CUresult result = um_live.cuda->pointer_attributes(5, what, into, word);
    um_cuda_own = false;
    if (result != CUDA_SUCCESS || type == 0 || start == 0 || bytes == 0) {
        um_unknown[(word >> 4) * 0x9E3779B97F4A7C15u >> 52] = word;
        return;
    }
    um_region_t region = {.addr = start, .bytes = bytes, .flags = UM_REGION_BEFORE_UMRT};
    region.family = managed                      ? UM_FAMILY_MANAGED
                    : type == CU_MEMORYTYPE_HOST ? UM_FAMILY_PINNED
                                                 : UM_FAMILY_DEVICE;
    region.device = managed ? UM_DEVICE_NONE : type == CU_MEMORYTYPE_HOST ? UM_DEVICE_HOST : device;
    um_memory_add(&region, 0);
}

void um_launch_discover(uint64_t addr)
{
    if (um_live.on && um_live.late && um_in_no_region(addr))
        um_discover(addr);
}

static void um_discover_args(const um_kernel_t *kernel, void *const *params)
{
    for (uint32_t i = 0; i < kernel->n_params; i++)
        for (uint32_t at = 0; params[i] && at + 8 <= kernel->params[i].size_bytes; at += 8) {
            uint64_t word;
            memcpy(&word, (const char *)params[i] + at, sizeof(word));
            if (um_in_no_region(word))
                um_discover(word);
        }
}

bool um_launch_touches_managed(const um_arg_t *args, uint32_t n)
{
    um_region_t regions[UM_RESIDENCY_REGIONS];
    /* A deep recording pushes: what the CPU has then says nothing. */
    uint32_t sync = um_live.record && !um_live.deep ? um_live.sync : 0, n_regions = 0;

    for (uint32_t i = 0; i < n; i++) {
        um_region_t *region = &regions[n_regions];
        if (!um_regions_find_id(um_live.runtime->regions, args[i].region, region) ||
            region->family != UM_FAMILY_MANAGED)
            continue;
        if (sync == 0)
            return true;
        bool again = false;
        for (uint32_t k = 0; k < n_regions; k++)
            again |= regions[k].id == region->id;
        if (!again && ++n_regions == UM_RESIDENCY_REGIONS)
            break;
    }
    if (n_regions == 0)
        return false;
    um_live.sync = 0;
    um_records_residency(regions, n_regions, sync);
    return true;
}

static void um_launch(const CUpti_CallbackData *info, um_seen_launch_t *launch)
{
    um_runtime_t *runtime = um_live.runtime;
    um_arg_t args[UM_MAX_ARGS];
    um_scalar_t scalars[UM_MAX_SCALARS];
    uint32_t n = 0, n_scalars = 0;
    bool managed = um_live_managed();
    const um_kernel_t *kernel = NULL;

    atomic_fetch_add_explicit(&runtime->launches, 1, memory_order_relaxed);
    /* After a late start launches come before managed memory is known of; a trace begins with it. */
    bool recording = um_live.record && um_activity_has_managed();
    if (!managed && !recording && !um_live.late)
        return;
    kernel = um_launch_kernel(launch->handle, info->symbolName);
    if (um_live.late && kernel && kernel->layout_known && launch->params &&
        um_live.cuda->pointer_attributes) {
        um_discover_args(kernel, launch->params);
        managed = um_live_managed();
    }
    if (!managed && !recording)
        return;
    /* Arguments are worth their time only where some can be managed. */
    if (!kernel || !managed)
        launch->flags |= UM_LAUNCH_ARGS_UNKNOWN;
    else
        n = um_launch_args(kernel, launch, args);
    managed = n && um_launch_touches_managed(args, n);
    if (managed)
        atomic_fetch_add_explicit(&runtime->launches_managed, 1, memory_order_relaxed);
    else if (!recording)
        return;
    if (um_is_captured(launch->stream))
        launch->flags |= UM_LAUNCH_CAPTURED;
    else
        um_deep_push(info, args, n, launch->flags & UM_LAUNCH_ARGS_UNKNOWN);
    if (managed)
        n_scalars = um_kernel_scalars(kernel, launch->params, launch->packed, launch->packed_bytes,
                                      args, n, scalars, UM_MAX_SCALARS);

    um_event_t event = um_live_event(UM_EV_LAUNCH);
    event.u.launch = (um_ev_launch_t){
        .correlation = info->correlationId,
        .kernel = kernel ? kernel->id : 0,
        .stream = launch->stream,
        .context = info->contextUid,
        .device = launch->elsewhere ? UM_DEVICE_NONE : um_live_device(info->contextUid),
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .shared_bytes = launch->shared_bytes,
        .flags = launch->flags,
        .call_site = um_live.runtime->settings.launch_sites ? um_callsite_here() : 0,
        .n_args = n,
        .n_scalars = n_scalars,
        .args = args,
        .scalars = scalars,
    };
    um_cuda_context_is(info->contextUid, info->context);
    if (kernel && recording)
        um_records_launched(info->correlationId, kernel->id);
    um_live_post(&event, managed && runtime->hinting);
    if (managed && runtime->hinting && !(launch->flags & UM_LAUNCH_CAPTURED))
        um_live_launched(info->contextUid);
}

/* cuLaunchKernel and cuLaunchCooperativeKernel begin alike; the latter has no `extra` and says so by
 * word[0] being absent. */
void um_on_launch(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_entering(info)) {
        um_deep_launched(info, um_call_stream(info, call));
        return;
    }
    const cuLaunchKernel_params *p = info->functionParams;
    um_seen_launch_t launch = {
        .handle = (uint64_t)(uintptr_t)p->f,
        .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
        .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
        .shared_bytes = p->sharedMemBytes,
        .flags = call->what,
        .stream = um_call_stream(info, call),
        .params = p->kernelParams,
        .extra = call->word[0] == UM_NO_WORD ? NULL : p->extra,
    };
    um_launch(info, &launch);
}

void um_on_launch_ex(const CUpti_CallbackData *info, const um_call_t *call)
{
    const cuLaunchKernelEx_params *p = info->functionParams;
    const CUlaunchConfig *c = p->config;
    if (!c)
        return;
    if (!um_entering(info)) {
        bool own = !c->hStream && call->flags & UM_CALL_PER_THREAD;
        um_deep_launched(info, own ? 2 : (uint64_t)(uintptr_t)c->hStream);
        return;
    }
    um_seen_launch_t launch = {
        .handle = (uint64_t)(uintptr_t)p->f,
        .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
        .shared_bytes = c->sharedMemBytes,
        .stream = (uint64_t)(uintptr_t)c->hStream,
        .params = p->kernelParams,
        .extra = p->extra,
    };
    if (launch.stream == 0 && (call->flags & UM_CALL_PER_THREAD))
        launch.stream = 2;
    for (unsigned i = 0; c->attrs && i < c->numAttrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs[i].value.cooperative)
            launch.flags |= UM_LAUNCH_COOPERATIVE;
    um_launch(info, &launch);
}

/* One call, a launch on each device; all carry the call's correlation. */
void um_on_launch_multi(const CUpti_CallbackData *info, const um_call_t *call)
{
    (void)call;
    const cuLaunchCooperativeKernelMultiDevice_params *p = info->functionParams;
    for (unsigned i = 0; p->launchParamsList && i < p->numDevices; i++) {
        const CUDA_LAUNCH_PARAMS *l = &p->launchParamsList[i];
        if (!um_entering(info)) {
            um_deep_launched(info, (uint64_t)(uintptr_t)l->hStream);
            continue;
        }
        um_seen_launch_t launch = {
            .handle = (uint64_t)(uintptr_t)l->function,
            .grid = {l->gridDimX, l->gridDimY, l->gridDimZ},
            .block = {l->blockDimX, l->blockDimY, l->blockDimZ},
            .shared_bytes = l->sharedMemBytes,
            .flags = UM_LAUNCH_COOPERATIVE,
            .stream = (uint64_t)(uintptr_t)l->hStream,
            .params = l->kernelParams,
            .elsewhere = p->numDevices > 1,
        };
        um_launch(info, &launch);
    }
}

/* cuLaunch, cuLaunchGrid, cuLaunchGridAsync: the parameters were set one by one before, and are not
 * followed. */
void um_on_launch_legacy(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_entering(info)) {
        um_deep_launched(info, um_call_stream(info, call));
        return;
    }
    um_seen_launch_t launch = {
        .handle = um_word(info, 0),
        .grid = {1, 1, 1},
        .flags = UM_LAUNCH_ARGS_UNKNOWN,
        .stream = um_call_stream(info, call),
    };
    if (call->what) { /* width and height share a word */
        uint64_t size = um_word(info, 1);
        launch.grid[0] = (uint32_t)size;
        launch.grid[1] = (uint32_t)(size >> 32);
    }
    um_launch(info, &launch);
}

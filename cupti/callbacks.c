/*
 * callbacks.c - from when on each call of calls.c is followed, and the one function that CUPTI calls.
 *
 * A program without managed memory pays nothing for its launches: they are not subscribed to before
 * there is some (um_later). What must be known by then is followed from the start: contexts, modules,
 * allocations, graphs as they are made.
 */
#include "executor.h"
#include "deep.h"
#include "live.h"
#include "records.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* By id; filled before the first callback. */
#define UM_MAX_ID 1024
static const um_call_t *um_call_by_id[UM_MAX_ID];

/* ---- waits, captures, contexts --------------------------------------------------------------- */

void um_on_sync(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (!um_entering(info) && !(call->what == UM_SYNC_EVENT && um_result(info) != CUDA_SUCCESS))
        um_live.sync = info->correlationId;
    if (!um_entering(info) && call->what != UM_SYNC_EVENT && um_result(info) == CUDA_SUCCESS)
        um_live_waited(info->contextUid);
    if (call->what == UM_SYNC_DEVICE && (um_entering(info) || um_result(info) == CUDA_SUCCESS))
        um_preload_waits(info->contextUid, !um_entering(info));
    if (!um_live.record && !um_live_managed())
        return;
    um_event_t event = um_live_event(UM_EV_SYNC);
    event.u.sync = (um_ev_sync_t){
        .sync = info->correlationId,
        .kind = call->what,
        .exit = !um_entering(info),
        .context = info->contextUid,
        .stream = um_call_stream(info, call),
    };
    um_live_post(&event, event.u.sync.exit ? um_live.runtime->hints_pending != 0
                                           : um_live.runtime->waiting);
}

/* what: 0 a capture begins, 1 it ends. */
void um_on_capture(const CUpti_CallbackData *info, const um_call_t *call)
{
    bool ends = call->what;

    if (um_entering(info)) {
        if (!ends) {
            um_live.capturing = true;
            um_deep_capture(true);
        }
        return;
    }
    CUresult result = um_result(info);
    if (ends ? result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
             : result != CUDA_SUCCESS)
        um_deep_capture(false);
}

/* How often a device's primary context is held, as far as was seen: less than in truth after a late
 * start. Libraries hold it and let go all the time, and only the last one's going means anything. */
#define UM_DEVICES 64
static _Atomic int32_t um_holders[UM_DEVICES];

/* Only here, outside the driver's own locks, can records be switched on. */
void um_on_context_ready(const CUpti_CallbackData *info, const um_call_t *call)
{
    if (um_entering(info) || um_result(info) != CUDA_SUCCESS)
        return;
    uint32_t device = (uint32_t)um_word(info, call->word[1]);
    if (call->what && device < UM_DEVICES)
        um_holders[device]++;
    um_backend_tell_devices();
    um_activity_context();
}

static void um_post_context(uint32_t context, int32_t device, um_context_change_t change)
{
    um_event_t event = um_live_event(UM_EV_CONTEXT);

    event.u.context = (um_ev_context_t){context, device, change};
    um_live_post(&event, false);
}

void um_on_context_going(const CUpti_CallbackData *info, const um_call_t *call)
{
    uint32_t context = 0;
    CUcontext handle = (CUcontext)(uintptr_t)um_word(info, call->word[0]);

    if (!um_entering(info)) {
        um_memory_sweep();
        return;
    }
    if (handle && um_live.cupti->context_id &&
        um_live.cupti->context_id(handle, &context) == CUPTI_SUCCESS)
        um_deep_context_gone(context);
    um_runtime_context_going(um_live.runtime, context);
}

/* The device's primary context is the one of this thread as a rule; id 0 stands for all of them. */
void um_on_primary_going(const CUpti_CallbackData *info, const um_call_t *call)
{
    uint32_t device = *(const uint32_t *)info->functionParams; /* all there is: half a word */
    _Atomic int32_t *holders = device < UM_DEVICES ? &um_holders[device] : NULL;

    if (!um_entering(info)) {
        if (!holders || call->what || *holders <= 0)
            um_memory_sweep();
        return;
    }
    if (call->what)
        um_post_context(info->contextUid, (int32_t)device, UM_CONTEXT_RESET);
    else if (holders && atomic_fetch_sub(holders, 1) > 1)
        return;
    if (holders)
        *holders = 0;
    um_deep_context_gone(0);
    um_runtime_context_going(um_live.runtime, 0);
}

static void um_on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
    const CUpti_ModuleResourceData *module = data->resourceDescriptor;
    uint32_t context = 0;

    switch (id) {
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
        if (um_live.cupti->context_id)
            um_live.cupti->context_id(data->context, &context);
        um_cuda_context_is(context,
                           id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED ? data->context : NULL);
        um_post_context(context, UM_DEVICE_NONE,
                        id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED ? UM_CONTEXT_CREATED
                                                                  : UM_CONTEXT_DESTROYED);
        break;
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
        if (module)
            um_modules_loaded(module->moduleId, module->pCubin, module->cubinSize);
        break;
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
        if (module)
            um_modules_unloading(module->moduleId);
        break;
    default:
        break;
    }
}

/* ---- CUPTI's way in --------------------------------------------------------------------------- */

static void CUPTIAPI um_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
    int saved = errno;

    (void)ctx;
    if (!um_live.on || um_cuda_own)
        return;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        const um_call_t *call = id < UM_MAX_ID ? um_call_by_id[id] : NULL;
        const CUpti_CallbackData *info = data;
        if (um_live.want_context && info->context)
            um_activity_kick(info->context);
        if (call)
            call->fn(info, call);
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        um_on_resource(id, data);
    }
    errno = saved;
}

/* Says who holds CUPTI, where this CUPTI can tell. */
static CUptiResult um_subscribe(char *other, size_t other_bytes)
{
    const um_cupti_t *cupti = um_live.cupti;

    *other = '\0';
    if (!cupti->subscribe_v2)
        return cupti->subscribe(&um_live.subscriber, um_callback, NULL);
    um_subscriber_params_t params = {.struct_size = sizeof(params),
                                     .name = "umrt",
                                     .old_name = other,
                                     .old_name_bytes = other_bytes};
    return cupti->subscribe_v2(&um_live.subscriber, um_callback, NULL, &params);
}

/* The handlers with nothing to do before there is managed memory: what cannot fault is neither hinted
 * nor recorded. Transfers and waits are in a trace from its start all the same. Even a callback that
 * returns at once would cost each launch something (H200: 0.2 us and more). */
static const struct {
    um_call_fn fn;
    bool recorded_before;
} um_later[] = {
    {um_on_launch, false},        {um_on_launch_ex, false},    {um_on_launch_multi, false},
    {um_on_launch_legacy, false}, {um_on_graph_launch, false}, {um_on_sync, true},
    {um_on_copy, true},           {um_on_copy_2d, true},       {um_on_copy_3d, true},
    {um_on_copy_batch, true},     {um_on_set, true},           {um_on_set_2d, true},
    {um_on_library, false},
};

static bool um_is_later(const um_call_t *call)
{
    for (size_t i = 0; i < sizeof(um_later) / sizeof(*um_later); i++)
        if (um_later[i].fn == call->fn)
            return !(um_later[i].recorded_before && um_live.record);
    return false;
}

/* CUPTI leaves it to its clients that these calls come one at a time. */
static pthread_mutex_t um_enabling = PTHREAD_MUTEX_INITIALIZER;

/* The last refusal, or success. Under um_enabling. A call that this CUPTI does not know yet is refused
 * as invalid and then never comes, which is none; every CUPTI knows the plain launch. */
static CUptiResult um_enable_calls(bool later)
{
    CUptiResult refused = CUPTI_SUCCESS;

    for (size_t i = 0; i < um_n_calls; i++) {
        if (um_is_later(&um_calls[i]) != later)
            continue;
        CUptiResult result =
            um_live.cupti->enable_callback(1, um_live.subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                           um_calls[i].id);
        if (result != CUPTI_SUCCESS && (result != CUPTI_ERROR_INVALID_PARAMETER ||
                                        um_calls[i].id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel))
            refused = result;
    }
    return refused;
}

static void um_say_refused(CUptiResult result)
{
    if (result == CUPTI_SUCCESS)
        return;
    um_log_once(UM_LOG_WARN, "not all launches and allocations are seen: %s (CUPTI error %d)",
                um_cupti_sentence(result), (int)result);
    if (um_live.record)
        um_records_loss(0, "cupti refused callbacks");
}

void um_callbacks_managed(void)
{
    static _Atomic bool enabled;
    CUptiResult result = CUPTI_SUCCESS;

    if (enabled)
        return;
    pthread_mutex_lock(&um_enabling);
    if (!enabled)
        result = um_enable_calls(true);
    enabled = true;
    pthread_mutex_unlock(&um_enabling);
    um_say_refused(result);
}

um_status_t um_callbacks_subscribe(char *reason, size_t reason_bytes)
{
    static const CUpti_CallbackId resources[] = {CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
                                                 CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
                                                 CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                                 CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING};
    const um_cupti_t *cupti = um_live.cupti;
    char other[128];

    for (size_t i = 0; i < um_n_calls; i++)
        if (um_calls[i].id < UM_MAX_ID)
            um_call_by_id[um_calls[i].id] = &um_calls[i];

    CUptiResult result = um_subscribe(other, sizeof(other));
    if (result != CUPTI_SUCCESS) {
        bool named = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && *other;
        snprintf(reason, reason_bytes, "%s%s%s", um_cupti_sentence(result), named ? ": " : "",
                 named ? other : "");
        return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? UM_ERR_BUSY
                                                                        : UM_ERR_UNSUPPORTED;
    }
    um_live.on = true;
    /* The program's threads may be calling already, and one of them allocating its first managed
     * memory. */
    pthread_mutex_lock(&um_enabling);
    result = um_enable_calls(false);
    for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++)
        cupti->enable_callback(1, um_live.subscriber, CUPTI_CB_DOMAIN_RESOURCE, resources[i]);
    pthread_mutex_unlock(&um_enabling);
    um_say_refused(result);
    return UM_OK;
}

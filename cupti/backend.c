/*
 * backend.c - the live CUDA source as the runtime sees it: attach, detach, abandon, probe.
 */
#include "executor.h"
#include "live.h"

#include "core/marks.h"
#include "exec/gate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void um_post_fact(void *ctx, const um_event_t *event)
{
    (void)ctx;
    um_live_post(event, false);
}

static void um_post_device(void *ctx, const um_event_t *event)
{
    const um_ev_device_t *device = &event->u.device;

    if (device->device >= 0 && device->device < 64 && !um_gate_refuses(device))
        atomic_fetch_or(&um_live.hintable, UINT64_C(1) << device->device);
    um_post_fact(ctx, event);
}

/* Facts about the devices can be had once cuInit is done, which it is not inside the injection. */
void um_backend_tell_devices(void)
{
    static _Atomic bool told;
    uint32_t all, any;
    int n = 0;
    bool own = um_cuda_own;

    if (told)
        return;
    um_cuda_own = true;
    if (um_live.cuda->device_count(&n) == CUDA_SUCCESS && n > 0 && !atomic_exchange(&told, true))
        um_probe_devices(um_post_device, NULL, &all, &any);
    um_cuda_own = own;
}

/* CUDA was initialised before us, perhaps with a context and allocations that nobody told us of. */
static void um_late_start(void)
{
    CUcontext context = NULL;
    int n = 0;

    um_cuda_own = true;
    bool up = um_live.cuda->device_count(&n) == CUDA_SUCCESS;
    if (up && um_live.cuda->ctx_get(&context) != CUDA_SUCCESS)
        context = NULL;
    um_cuda_own = false;
    if (!up)
        return;
    um_live.late = true;
    um_live.capturing = true; /* for all we know */
    um_callbacks_managed();   /* likewise */
    um_backend_tell_devices();
    if (context)
        um_activity_context();
    um_activity_kick(context);
}

static um_status_t um_attach(um_runtime_t *runtime, char *reason, size_t reason_bytes)
{
    um_status_t status;

    um_live.runtime = runtime;
    um_live.record = runtime->settings.mode == UM_MODE_RECORD;
    um_live.deep = um_live.record && runtime->settings.deep;
    um_live.cuda = um_cuda();
    if (!um_live.cuda->library) {
        snprintf(reason, reason_bytes, "%s", um_cuda_reason());
        return UM_ERR_UNSUPPORTED;
    }
    um_live.cupti = um_cupti();
    if (!um_live.cupti->library) {
        snprintf(reason, reason_bytes, "%s", um_cupti_reason());
        return UM_ERR_UNSUPPORTED;
    }
    um_callsite_prepare();
    um_probe_versions(um_post_fact, NULL);
    /* Before the first callback can come: they look at what this sets up. */
    um_launch_init();
    if ((status = um_activity_init()) != UM_OK ||
        (status = um_callbacks_subscribe(reason, reason_bytes)) != UM_OK) {
        um_activity_stop();
        return status;
    }
    if (um_live.record)
        um_marks_attach(runtime);
    um_late_start();
    return UM_OK;
}

/* No unsubscribing: CUPTI may be half gone already, and a callback that returns at once is harmless. */
static void um_detach(void)
{
    um_live.on = false;
    um_marks_attach(NULL);
    um_activity_stop();
}

/* A forked child: nothing of ours runs there, and no lock may be taken. */
static void um_abandon(void)
{
    um_live.on = false;
    um_marks_attach(NULL);
}

const um_backend_t *um_backend(void)
{
    static const um_backend_t backend = {
        .name = "cuda",
        .attach = um_attach,
        .detach = um_detach,
        .abandon = um_abandon,
        .probe = um_probe,
        .executor = um_cuda_executor_new,
        .discover = um_launch_discover,
    };

    return &backend;
}

/*
 * runtime.h - the one live runtime of a process, seen from its backend (cupti/).
 *
 * The backend sees (callbacks, activity) and calls in; the runtime owns bus, regions, kernels,
 * settings, trace writer and the hint loop.
 */
#ifndef UM_RUNTIME_INTERNAL_H
#define UM_RUNTIME_INTERNAL_H

#include "bus.h"
#include "config.h"
#include "kernels.h"
#include "log.h"
#include "regions.h"

typedef struct um_executor um_executor_t; /* lib/exec/executor.h */

typedef struct um_runtime {
    um_settings_t settings;
    um_regions_t *regions;
    um_kernels_t *kernels;
    um_bus_t *bus;
    /* True while a managed launch may need a hint at once: the launch path then posts LAUNCH with
     * wake = true. False: it posts without waking (the hint loop looks at its next tick). The hint
     * loop turns it on and off as the program starts and stops moving data. */
    _Atomic bool hinting;
    /* True while something is likely to be wanted at a wait: the backend then posts SYNC entries with
     * wake = true. The hint loop turns it on when something was and off when nothing was for some time. */
    _Atomic bool waiting;
    /* Hints that are not done and that the end of a wait is of interest to. While it is not 0 the backend
     * posts SYNC exits with wake = true: what is held for after a wait may go, and what is still queued for
     * a launch that is over would come too late. */
    _Atomic uint32_t hints_pending;
    bool
        expecting; /* a profile may say something about a region that is new: its REGION_ALLOC wakes */
    /* counters of the launch path, which begins with the first managed memory; relaxed */
    _Atomic uint64_t launches, launches_managed;
} um_runtime_t;

/* What a backend gives. All functions may be NULL but attach. */
typedef struct um_backend {
    const char *name; /* "cuda", "none" */
    /* Subscribes; the runtime is complete. Errors fill reason (one lower-case phrase). From then on
     * DEVICE events come before the first LAUNCH on that device: hints need to know it. */
    um_status_t (*attach)(um_runtime_t *runtime, char *reason, size_t reason_bytes);
    /* Last records in, no more callbacks of ours; no CUDA calls. Called at exit and shutdown. */
    void (*detach)(void);
    void (*abandon)(void);                           /* forked child */
    um_status_t (*probe)(um_event_fn fn, void *ctx); /* for um_machine_probe */
    /* HINT mode, before attach: what carries hints out (makes no CUDA call yet). NULL = cannot. */
    um_status_t (*executor)(um_runtime_t *runtime, um_executor_t **out);
    /* Enters the region that holds addr where it came to life before umrt did, if there is one. May ask
     * the driver. Any thread of the program. */
    void (*discover)(uint64_t addr);
} um_backend_t;

/* cupti/backend.c, or lib/core/backend_none.c in a build without CUDA. */
const um_backend_t *um_backend(void);

/* Tests: this backend instead of um_backend(); before um_runtime_init. */
void um_runtime_use_backend(const um_backend_t *backend);

/* The hint loop's doors for the backend, called synchronously at the entry of the driver's call, while
 * the region is still in runtime->regions. Nothing of ours is in flight there when they return (bounded
 * wait). Context 0 = every context. */
void um_runtime_region_going(um_runtime_t *runtime, uint64_t addr);
void um_runtime_context_going(um_runtime_t *runtime, uint32_t context);

/* At the entry of a call in which the driver keeps all other threads out of the context until the GPU is
 * done: what was launched before it is decided on, and its prefetches are in the driver, when this returns
 * (bounded wait). Later they would get in when the kernel that needed them is over. */
void um_runtime_catch_up(um_runtime_t *runtime, uint32_t context);

/* For the program's calls: UM_ERR_STATE before um_runtime_init, else UM_OK; *out is NULL where they have
 * nothing to do: before it, inert, ended, in a forked child. Any thread. */
um_status_t um_runtime_running(um_runtime_t **out);
/* The backend's discover, while it is running. */
void um_runtime_discover(uint64_t addr);

#endif

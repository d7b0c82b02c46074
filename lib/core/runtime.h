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

typedef struct um_runtime {
    um_settings_t settings;
    um_regions_t *regions;
    um_kernels_t *kernels;
    um_bus_t *bus;
    /* true once hints may be made: the launch path then wakes the bus for managed launches */
    _Atomic bool hinting;
    /* counters of the launch path; relaxed */
    _Atomic uint64_t launches, launches_managed;
} um_runtime_t;

/* What a backend gives. All functions may be NULL but attach. */
typedef struct um_backend {
    const char *name; /* "cuda", "none" */
    /* Subscribes; the runtime is complete. Errors fill reason (one lower-case phrase). */
    um_status_t (*attach)(um_runtime_t *runtime, char *reason, size_t reason_bytes);
    /* Last records in, no more callbacks of ours; no CUDA calls. Called at exit and shutdown. */
    void (*detach)(void);
    void (*abandon)(void); /* forked child */
    um_status_t (*probe)(um_event_fn fn, void *ctx); /* for um_machine_probe */
} um_backend_t;

/* cupti/backend.c, or lib/core/backend_none.c in a build without CUDA. */
const um_backend_t *um_backend(void);

/* The hint loop's doors for the backend, called synchronously at the entry of the driver's call: */
void um_runtime_region_going(um_runtime_t *runtime, uint64_t addr); /* nothing of ours in flight there
                                                                       when it returns (bounded wait) */
void um_runtime_context_going(um_runtime_t *runtime, uint32_t context); /* likewise for a context */

#endif

/* What every event of an importer must be, whatever the input; traps where it is not. */
#ifndef UM_FUZZ_IMPORT_CHECK_H
#define UM_FUZZ_IMPORT_CHECK_H

#include <string.h>

#include "um_event.h"

typedef struct um_check {
    uint64_t last_ns;
    uint32_t regions, kernels;
    bool others; /* something other than the first events has come */
} um_check_t;

static void um_must(bool condition)
{
    if (!condition)
        __builtin_trap();
}

static void um_check_event(void *ctx, const um_event_t *e)
{
    um_check_t *c = ctx;

    um_must(e->time_ns >= c->last_ns);
    c->last_ns = e->time_ns;
    if (e->type == UM_EV_FACT || e->type == UM_EV_OPTION)
        um_must(!c->others);
    else if (e->type != UM_EV_DEVICE && e->type != UM_EV_LOSS)
        c->others = true;
    switch (e->type) {
    case UM_EV_FACT:
        um_must(strlen(e->u.fact.key) > 0 && strlen(e->u.fact.value) > 0);
        break;
    case UM_EV_OPTION:
        um_must(strlen(e->u.option.name) > 0 && strlen(e->u.option.value) > 0 &&
                strlen(e->u.option.source) > 0);
        break;
    case UM_EV_DEVICE:
        um_must(strlen(e->u.device.name) < SIZE_MAX && strlen(e->u.device.uuid) < SIZE_MAX &&
                strlen(e->u.device.pci) < SIZE_MAX);
        break;
    case UM_EV_LOSS:
        um_must(strlen(e->u.loss.reason) < SIZE_MAX);
        break;
    case UM_EV_CALL_SITE:
        um_must(e->u.call_site.call_site != 0 && strlen(e->u.call_site.frames) < SIZE_MAX);
        break;
    case UM_EV_REGION_ALLOC:
        um_must(e->u.region_alloc.region == ++c->regions &&
                e->u.region_alloc.family < UM_FAMILY_COUNT);
        break;
    case UM_EV_REGION_FREE:
        um_must(e->u.region_free.region <= c->regions);
        break;
    case UM_EV_REGION_LABEL:
        um_must(e->u.region_label.region - 1 < c->regions && e->u.region_label.label[0] != '\0');
        break;
    case UM_EV_KERNEL:
        um_must(e->u.kernel.kernel == ++c->kernels && strlen(e->u.kernel.name) < SIZE_MAX);
        break;
    case UM_EV_KERNEL_EXEC:
        um_must(e->u.kernel_exec.kernel <= c->kernels);
        break;
    case UM_EV_GPU_FAULT:
        um_must(e->u.gpu_fault.access <= UM_ACCESS_PREFETCH && e->u.gpu_fault.region <= c->regions);
        break;
    case UM_EV_CPU_FAULT:
        um_must(e->u.cpu_fault.region <= c->regions);
        break;
    case UM_EV_MIGRATE:
        um_must(e->u.migrate.cause <= UM_CAUSE_ACCESS_COUNTERS &&
                e->u.migrate.region <= c->regions);
        break;
    case UM_EV_THRASH:
        um_must(e->u.thrash.region <= c->regions);
        break;
    case UM_EV_THROTTLE:
        um_must(e->u.throttle.region <= c->regions);
        break;
    case UM_EV_REMOTE_MAP:
        um_must(e->u.remote_map.cause <= UM_REMOTE_EVICTION &&
                e->u.remote_map.region <= c->regions);
        break;
    case UM_EV_COPY:
        um_must(e->u.copy.src_memory <= UM_MEMORY_MANAGED &&
                e->u.copy.dst_memory <= UM_MEMORY_MANAGED);
        break;
    case UM_EV_SET:
        um_must(e->u.set.memory <= UM_MEMORY_MANAGED);
        break;
    case UM_EV_SYNC:
        um_must(e->u.sync.kind <= UM_SYNC_COPY && e->u.sync.exit <= 1);
        break;
    case UM_EV_MARK:
        um_must(e->u.mark.kind <= UM_MARK_END && strlen(e->u.mark.domain) < SIZE_MAX &&
                strlen(e->u.mark.name) < SIZE_MAX);
        break;
    default:
        um_must(false);
    }
}

/* A failed import says why, in one line. */
static void um_check_status(um_status_t status, const char *error)
{
    um_must((status == UM_OK) == (error[0] == '\0'));
    um_must(strchr(error, '\n') == NULL);
}

#endif

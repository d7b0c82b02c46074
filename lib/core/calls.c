/* What the program itself says: labels, hints and phases become events. */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"
#include "um_runtime.h"

static _Thread_local unsigned open_phases;

static um_status_t post(um_runtime_t *runtime, um_event_t *event)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    event->time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    event->tid = (uint32_t)syscall(SYS_gettid);
    um_bus_post(runtime->bus, event, false);
    return UM_OK;
}

/* The region that holds it, also one that is older than umrt. */
static bool find_region(um_runtime_t *runtime, const void *addr, um_region_t *out)
{
    uint64_t at = (uint64_t)(uintptr_t)addr;

    if (um_regions_find(runtime->regions, at, out))
        return true;
    um_runtime_discover(at);
    return um_regions_find(runtime->regions, at, out);
}

um_status_t um_region_hint(const void *addr, uint32_t flags)
{
    const uint32_t known = UM_REGION_HINT_OFF | UM_REGION_HINT_READ_ONLY | UM_REGION_HINT_CPU_FIRST;
    um_event_t event = {.type = UM_EV_REGION_HINT};
    um_runtime_t *runtime;
    um_region_t region;

    if (um_runtime_running(&runtime) != UM_OK)
        return UM_ERR_STATE;
    if (flags & ~known)
        return UM_ERR_INVALID;
    if (!runtime)
        return UM_OK;
    if (!find_region(runtime, addr, &region))
        return UM_ERR_NOT_FOUND;
    event.u.region_hint = (um_ev_region_hint_t){.region = region.id, .flags = flags};
    return post(runtime, &event);
}

um_status_t um_region_label(const void *addr, const char *label)
{
    um_event_t event = {.type = UM_EV_REGION_LABEL};
    um_runtime_t *runtime;
    um_region_t region;
    char copy[128];

    if (um_runtime_running(&runtime) != UM_OK)
        return UM_ERR_STATE;
    if (!label)
        return UM_ERR_INVALID;
    if (!runtime)
        return UM_OK;
    if (!find_region(runtime, addr, &region))
        return UM_ERR_NOT_FOUND;
    snprintf(copy, sizeof(copy), "%s", label);
    event.u.region_label = (um_ev_region_label_t){.region = region.id, .label = copy};
    return post(runtime, &event);
}

static um_status_t mark(um_runtime_t *runtime, um_mark_kind_t kind, const char *name)
{
    um_event_t event = {.type = UM_EV_MARK,
                        .u.mark = {.kind = kind, .domain = "umrt", .name = name}};

    return runtime ? post(runtime, &event) : UM_OK;
}

um_status_t um_phase_begin(const char *name)
{
    um_runtime_t *runtime;

    if (um_runtime_running(&runtime) != UM_OK)
        return UM_ERR_STATE;
    if (!name)
        return UM_ERR_INVALID;
    open_phases++;
    return mark(runtime, UM_MARK_PUSH, name);
}

um_status_t um_phase_end(void)
{
    um_runtime_t *runtime;

    if (um_runtime_running(&runtime) != UM_OK || !open_phases)
        return UM_ERR_STATE;
    open_phases--;
    return mark(runtime, UM_MARK_POP, "");
}

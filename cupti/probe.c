/*
 * probe.c - what this machine is and can do with managed memory.
 */
#include "live.h"

#include <stdio.h>
#include <string.h>

static void um_tell_fact(um_event_fn fn, void *ctx, const char *key, const char *value)
{
    um_event_t event = um_live_event(UM_EV_FACT);

    event.u.fact = (um_ev_fact_t){.key = key, .value = value};
    fn(ctx, &event);
}

static void um_tell_version(um_event_fn fn, void *ctx, const char *key, int version)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
    um_tell_fact(fn, ctx, key, text);
}

static int um_attribute(const um_cuda_t *cuda, CUdevice device, int attribute)
{
    int value = 0;

    return cuda->device_attribute(&value, (CUdevice_attribute)attribute, device) == CUDA_SUCCESS
               ? value
               : 0;
}

static void um_uuid_text(const um_cuda_t *cuda, CUdevice device, char text[48])
{
    CUuuid uuid;
    char *at = text + sprintf(text, "GPU-");

    /* _v2 tells a MIG instance's own. */
    if (!(cuda->device_uuid_v2 && cuda->device_uuid_v2(&uuid, device) == CUDA_SUCCESS) &&
        !(cuda->device_uuid && cuda->device_uuid(&uuid, device) == CUDA_SUCCESS)) {
        *text = '\0';
        return;
    }
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)uuid.bytes[i]);
}

static uint32_t um_tell_device(um_event_fn fn, void *ctx, const um_cuda_t *cuda, int ordinal)
{
    static const struct {
        int attribute; /* CU_DEVICE_ATTRIBUTE_...: numbers, so that any headers do */
        uint32_t bit;
    } bits[] = {
        {83, UM_DEVICE_MANAGED},
        {89, UM_DEVICE_CONCURRENT_MANAGED},
        {88, UM_DEVICE_PAGEABLE},
        {100, UM_DEVICE_HOST_PAGE_TABLES},
        {101, UM_DEVICE_DIRECT_HOST_ACCESS},
        {18, UM_DEVICE_INTEGRATED},
        {115, UM_DEVICE_POOLS},
    };
    char name[256] = "", uuid[48] = "", pci[32] = "";
    um_event_t event = um_live_event(UM_EV_DEVICE);
    um_ev_device_t *d = &event.u.device;
    CUdevice device;
    size_t bytes = 0;

    if (cuda->device_get(&device, ordinal) != CUDA_SUCCESS)
        return 0;
    d->device = ordinal;
    d->cc_major =
        (uint32_t)um_attribute(cuda, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    d->cc_minor =
        (uint32_t)um_attribute(cuda, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    d->sm_count = (uint32_t)um_attribute(cuda, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++)
        if (um_attribute(cuda, device, bits[i].attribute))
            d->attributes |= bits[i].bit;
    if (cuda->device_total_bytes && cuda->device_total_bytes(&bytes, device) == CUDA_SUCCESS)
        d->memory_bytes = bytes;
    if (cuda->device_name)
        cuda->device_name(name, sizeof(name) - 1, device);
    if (cuda->device_pci)
        cuda->device_pci(pci, sizeof(pci) - 1, device);
    um_uuid_text(cuda, device, uuid);
    d->name = name;
    d->uuid = uuid;
    d->pci = pci;
    fn(ctx, &event);
    return d->attributes;
}

void um_probe_devices(um_event_fn fn, void *ctx, uint32_t *all, uint32_t *any)
{
    const um_cuda_t *cuda = um_cuda();
    int n = 0;

    *all = UINT32_MAX;
    *any = 0;
    if (!cuda->library || cuda->device_count(&n) != CUDA_SUCCESS)
        n = 0;
    for (int i = 0; i < n; i++) {
        uint32_t attributes = um_tell_device(fn, ctx, cuda, i);
        *all &= attributes;
        *any |= attributes;
    }
    if (n == 0)
        *all = 0;
}

void um_probe_versions(um_event_fn fn, void *ctx)
{
    const um_cuda_t *cuda = um_cuda();
    const um_cupti_t *cupti = um_cupti();
    char text[32];

    if (cuda->library)
        um_tell_version(fn, ctx, "cuda.driver", cuda->version);
    um_tell_version(fn, ctx, "cuda.headers", CUDA_VERSION);
    if (cupti->library) {
        snprintf(text, sizeof(text), "%u", cupti->api);
        um_tell_fact(fn, ctx, "cupti.api", text);
        um_tell_fact(fn, ctx, "cupti.path", cupti->path);
    }
}

/* Why hints or records are impossible here; "" when nothing is known against them. */
static const char *um_against_hints(CUresult init, uint32_t all, uint32_t any)
{
    static char text[128];
    const char *name = NULL;

    if (!um_cuda()->library)
        return um_cuda_reason();
    if (init != CUDA_SUCCESS) {
        if (um_cuda()->error_name)
            um_cuda()->error_name(init, &name);
        snprintf(text, sizeof(text), "the driver does not start (%s)",
                 name ? name : "unknown error");
        return text;
    }
    if (!any)
        return "no GPU";
    if (!(all & UM_DEVICE_MANAGED))
        return "a GPU without managed memory";
    if (!(all & UM_DEVICE_CONCURRENT_MANAGED))
        return "concurrentManagedAccess is 0 (WSL, vGPU, Jetson or a GPU before Pascal)";
    if (any & (UM_DEVICE_HOST_PAGE_TABLES | UM_DEVICE_INTEGRATED))
        return "a coherent system: CPU and GPU share page tables, pages need no prefetch";
    return "";
}

um_status_t um_probe(um_event_fn fn, void *ctx)
{
    char text[384];
    uint32_t all = 0, any = 0;
    CUresult init = CUDA_ERROR_NO_DEVICE;
    const char *hints, *records;

    um_cuda_own = true;
    if (um_cuda()->library)
        init = um_cuda()->init(0);
    um_probe_versions(fn, ctx);
    um_probe_devices(fn, ctx, &all, &any);
    um_cuda_own = false;

    hints = um_against_hints(init, all, any);
    snprintf(text, sizeof(text), "%s%s", *hints ? "no: " : "yes", hints);
    um_tell_fact(fn, ctx, "can.hint", text);
    records = !um_cuda()->library            ? um_cuda_reason()
              : init != CUDA_SUCCESS || !any ? hints
                                             : um_cupti_reason();
    snprintf(text, sizeof(text), "%s%s", *records ? "no: " : "yes", records);
    um_tell_fact(fn, ctx, "can.record", text);
    return UM_OK;
}

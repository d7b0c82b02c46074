#include "change.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "workload_build.h"

/* What the changes mean for one region. */
typedef struct region {
    const um_ev_region_alloc_t *alloc;
    const char *label;
    uint32_t changes; /* 1 << um_change_t */
    int32_t device;   /* that touches it first */
    uint64_t devices;
    uint64_t last_launch, last_host; /* steps + 1 */
    uint64_t stream;
    uint64_t part_from, part_end;   /* mapped */
    uint64_t moved_from, moved_end; /* prefetched */
    uint32_t advised;               /* 1 << um_hint_kind_t, that was said once */
    bool on_gpu;                    /* prefetched and not taken by the CPU since */
} region_t;

/* What the CPU reads after a launch: to be there by then. */
typedef struct back {
    uint32_t region, next; /* + 1: of the same step */
    uint64_t low, high;
} back_t;

typedef struct changing {
    const um_workload_t *workload;
    const um_workload_change_t *changes;
    size_t n_changes;
    uint64_t gpu_bytes;
    region_t *regions; /* by id */
    uint32_t n_regions;
    bool *fetch_after;    /* by step: what it touches is fetched behind it */
    uint32_t *back_after; /* by step: back + 1 that comes behind it */
    back_t *back;
    size_t n_back, back_size;
    um_workload_builder_t *builder;
    bool meant; /* some region is changed */
} changing_t;

#define HAS(region, what) ((region)->changes >> (what)&1u)

static region_t *region_of(const changing_t *c, uint32_t id)
{
    return id && id < c->n_regions && c->regions[id].alloc ? &c->regions[id] : NULL;
}

/* ---- which regions ---------------------------------------------------------------------------- */

static bool is_meant(const region_t *region, const um_changed_region_t *wanted)
{
    if (wanted->label || region->label)
        return wanted->label && region->label && !strcmp(wanted->label, region->label);
    if (wanted->call_site || region->alloc->call_site)
        return wanted->call_site == region->alloc->call_site &&
               wanted->bytes == region->alloc->bytes;
    return wanted->first_region == region->alloc->region;
}

static void add_change(region_t *region, um_change_t change, const um_changed_region_t *meant)
{
    uint64_t end = meant->part_end, from = end ? meant->part_from : 0;

    end = end && end < region->alloc->bytes ? end : region->alloc->bytes;
    region->changes |= 1u << change;
    if (change == UM_CHANGE_BOTH_WAYS)
        region->changes |= 1u << UM_CHANGE_PREFETCH | 1u << UM_CHANGE_PREFETCH_BACK;
    if (change == UM_CHANGE_MAP) {
        region->part_from = from;
        region->part_end = end;
        return;
    }
    /* What several ask for is one stretch. */
    region->moved_from = region->moved_end && region->moved_from < from ? region->moved_from : from;
    region->moved_end = region->moved_end > end ? region->moved_end : end;
}

/* What of a stretch is to be prefetched; false when nothing is. */
static bool clip(const region_t *region, uint64_t *low, uint64_t *high)
{
    uint64_t from = region->alloc->addr + region->moved_from,
             end = region->alloc->addr + region->moved_end;

    *low = *low > from ? *low : from;
    *high = *high < end ? *high : end;
    return *low < *high;
}

static bool is_mapped(const region_t *region)
{
    return HAS(region, UM_CHANGE_MAP) && !region->part_from &&
           region->part_end == region->alloc->bytes;
}

static um_status_t know_regions(changing_t *c)
{
    uint32_t most = 0;

    for (uint64_t s = 0; s < c->workload->n_steps; s++) {
        const um_event_t *event = c->workload->steps[s].event;

        if (event && event->type == UM_EV_REGION_ALLOC && event->u.region_alloc.region > most)
            most = event->u.region_alloc.region;
    }
    c->n_regions = most + 1;
    c->regions = calloc(c->n_regions, sizeof(*c->regions));
    if (!c->regions)
        return UM_ERR_NO_MEMORY;
    for (uint64_t s = 0; s < c->workload->n_steps; s++) {
        const um_event_t *event = c->workload->steps[s].event;

        if (event && event->type == UM_EV_REGION_ALLOC)
            c->regions[event->u.region_alloc.region].alloc = &event->u.region_alloc;
        else if (event && event->type == UM_EV_REGION_LABEL &&
                 event->u.region_label.region < c->n_regions && *event->u.region_label.label)
            c->regions[event->u.region_label.region].label = event->u.region_label.label;
    }
    for (uint32_t i = 1; i < c->n_regions; i++) {
        region_t *region = &c->regions[i];

        region->device = UM_DEVICE_NONE;
        for (size_t k = 0; region->alloc && k < c->n_changes; k++) {
            for (size_t w = 0; w < c->changes[k].n_regions; w++)
                if (is_meant(region, &c->changes[k].regions[w])) {
                    c->meant = true;
                    add_change(region, c->changes[k].change, &c->changes[k].regions[w]);
                }
        }
    }
    return UM_OK;
}

/* ---- where hints belong ----------------------------------------------------------------------- */

static um_status_t add_back(changing_t *c, uint64_t step, const um_touch_t *touch)
{
    uint64_t end = touch->addr + touch->bytes;

    for (uint32_t i = c->back_after[step]; i; i = c->back[i - 1].next) {
        back_t *back = &c->back[i - 1];

        if (back->region != touch->region)
            continue;
        back->low = touch->addr < back->low ? touch->addr : back->low;
        back->high = end > back->high ? end : back->high;
        return UM_OK;
    }
    if (!um_grow(&c->back, &c->back_size, c->n_back + 1, sizeof(*c->back)))
        return UM_ERR_NO_MEMORY;
    c->back[c->n_back++] = (back_t){touch->region, c->back_after[step], touch->addr, end};
    c->back_after[step] = (uint32_t)c->n_back;
    return UM_OK;
}

/* It takes them, also where nothing tells what it touches. */
static void take_args(changing_t *c, const um_ev_launch_t *launch, uint64_t step)
{
    for (uint32_t i = 0; i < launch->n_args; i++) {
        region_t *region = region_of(c, launch->args[i].region);

        if (region && HAS(region, UM_CHANGE_PREFETCH_BACK))
            region->last_launch = step + 1;
    }
}

/* Back to the CPU behind the last launch before it reads; to the GPU behind the CPU's last touch. */
static um_status_t find_places(changing_t *c)
{
    const um_workload_t *w = c->workload;
    um_status_t status = UM_OK;

    c->fetch_after = calloc(w->n_steps + 1, sizeof(*c->fetch_after));
    c->back_after = calloc(w->n_steps + 1, sizeof(*c->back_after));
    if (!c->fetch_after || !c->back_after)
        return UM_ERR_NO_MEMORY;
    for (uint64_t s = 0; s < w->n_steps && !status; s++) {
        const um_step_t *step = &w->steps[s];
        bool gpu = step->event && step->event->type == UM_EV_LAUNCH;

        if (gpu)
            take_args(c, &step->event->u.launch, s);
        for (uint32_t t = 0; t < step->n_touches && !status; t++) {
            const um_touch_t *touch = &w->touches[step->first_touch + t];
            region_t *region = region_of(c, touch->region);

            if (!region || !region->changes)
                continue;
            if (gpu) {
                const um_ev_launch_t *launch = &step->event->u.launch;

                if (region->device == UM_DEVICE_NONE)
                    region->device = launch->device;
                region->devices |= UINT64_C(1) << (launch->device & 63);
                if (HAS(region, UM_CHANGE_EARLIER) && region->last_host)
                    c->fetch_after[region->last_host - 1] = true;
                region->last_launch = s + 1;
                region->last_host = 0;
            } else {
                if (HAS(region, UM_CHANGE_PREFETCH_BACK) && region->last_launch &&
                    (touch->kind == UM_ACCESS_READ || HAS(region, UM_CHANGE_BOTH_WAYS)))
                    status = add_back(c, region->last_launch - 1, touch);
                else
                    region->last_launch = 0; /* it has it again */
                region->last_host = s + 1;
            }
        }
    }
    return status;
}

/* ---- the new steps ---------------------------------------------------------------------------- */

static um_status_t hint(changing_t *c, const um_event_t *near, um_hint_kind_t kind, int32_t device,
                        const region_t *region, uint64_t addr, uint64_t bytes)
{
    um_event_t event = {.time_ns = near ? near->time_ns : 0,
                        .type = UM_EV_HINT,
                        .tid = near ? near->tid : 0};

    event.u.hint = (um_ev_hint_t){.kind = kind,
                                  .result = UM_HINT_APPLIED,
                                  .addr = addr,
                                  .bytes = bytes,
                                  .device = device,
                                  .region = region->alloc->region,
                                  .stream = region->stream,
                                  .who = "app",
                                  .why = ""};
    return bytes ? um_workload_builder_step(c->builder, &event, 0, 0) : UM_OK;
}

static um_status_t advise_part(changing_t *c, const um_event_t *near, const region_t *region,
                               int32_t home, uint64_t at, uint64_t bytes)
{
    uint64_t addr = region->alloc->addr + at, users = region->devices;
    um_status_t status = hint(c, near, UM_HINT_PREFERRED_LOCATION, home, region, addr, bytes);

    for (int32_t device = 0; device < 64 && !status; device++) {
        if ((users >> device & 1) && device != home)
            status = hint(c, near, UM_HINT_ACCESSED_BY, device, region, addr, bytes);
    }
    return status;
}

static um_status_t advise(changing_t *c, const um_event_t *near, const region_t *region)
{
    uint64_t bytes = region->alloc->bytes, keep;

    if (region->alloc->family != UM_FAMILY_MANAGED)
        return UM_OK;
    if (HAS(region, UM_CHANGE_MAP))
        return advise_part(c, near, region, UM_DEVICE_HOST, region->part_from,
                           region->part_end - region->part_from);
    if (HAS(region, UM_CHANGE_OWNER) && region->device >= 0)
        return advise_part(c, near, region, region->device, 0, bytes);
    if (HAS(region, UM_CHANGE_KEEP_PART) && c->workload->memory_peak_bytes > c->gpu_bytes) {
        keep = (uint64_t)((double)bytes * (double)c->gpu_bytes * 0.9 /
                          (double)c->workload->memory_peak_bytes);
        keep = keep / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
        return advise_part(c, near, region, UM_DEVICE_HOST, keep, bytes - keep);
    }
    return UM_OK;
}

/* The extent of the step's touches in the region of its t-th; false when an earlier one told it. */
static bool extent(const um_touch_t *touches, uint32_t n, uint32_t t, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (touches[k].region != touches[t].region)
            continue;
        if (k < t)
            return false;
        *low = touches[k].addr < *low ? touches[k].addr : *low;
        *high =
            touches[k].addr + touches[k].bytes > *high ? touches[k].addr + touches[k].bytes : *high;
    }
    return true;
}

static um_status_t fetch(changing_t *c, const um_step_t *step, const um_event_t *near,
                         int32_t device, um_change_t change)
{
    const um_touch_t *touches = &c->workload->touches[step->first_touch];
    um_status_t status = UM_OK;

    for (uint32_t t = 0; t < step->n_touches && !status; t++) {
        region_t *region = region_of(c, touches[t].region);
        uint64_t low, high;

        if (!region || !HAS(region, change) || is_mapped(region) || HAS(region, UM_CHANGE_DEVICE) ||
            region->alloc->family != UM_FAMILY_MANAGED ||
            (change == UM_CHANGE_PREFETCH && region->on_gpu) ||
            !extent(touches, step->n_touches, t, &low, &high) || !clip(region, &low, &high))
            continue;
        region->on_gpu = device >= 0;
        status = hint(c, near, UM_HINT_PREFETCH, device >= 0 ? device : UM_DEVICE_HOST, region, low,
                      high - low);
    }
    return status;
}

static um_status_t bring_back(changing_t *c, uint64_t step, const um_event_t *near)
{
    um_status_t status = UM_OK;

    for (uint32_t i = c->back_after[step]; i && !status; i = c->back[i - 1].next) {
        const back_t *back = &c->back[i - 1];
        region_t *region = region_of(c, back->region);
        uint64_t low = back->low, high = back->high;

        if (is_mapped(region) || HAS(region, UM_CHANGE_DEVICE) ||
            region->alloc->family != UM_FAMILY_MANAGED || !clip(region, &low, &high))
            continue;
        region->on_gpu = false;
        status = hint(c, near, UM_HINT_PREFETCH, UM_DEVICE_HOST, region, low, high - low);
    }
    return status;
}

static bool left_out(const changing_t *c, const um_event_t *event)
{
    const um_ev_hint_t *h = &event->u.hint;
    region_t *region;

    if (event->type != UM_EV_HINT || strcmp(h->who, "app") != 0)
        return false;
    region = region_of(c, h->region);
    if (!region)
        return false;
    if (is_mapped(region) || HAS(region, UM_CHANGE_OWNER) || HAS(region, UM_CHANGE_DEVICE))
        return true;
    if (HAS(region, UM_CHANGE_NO_READ_MOSTLY) && h->kind == UM_HINT_READ_MOSTLY)
        return true;
    if (HAS(region, UM_CHANGE_NO_LOCATION) &&
        (h->kind == UM_HINT_PREFERRED_LOCATION || h->kind == UM_HINT_ACCESSED_BY))
        return true;
    if (HAS(region, UM_CHANGE_EARLIER) && h->kind == UM_HINT_PREFETCH && h->device >= 0)
        return true;
    if (HAS(region, UM_CHANGE_DROP_REPEATS) && h->kind == UM_HINT_PREFETCH && h->device >= 0) {
        bool there = region->on_gpu;

        region->on_gpu = true;
        return there;
    }
    if (HAS(region, UM_CHANGE_DROP_REPEATS) && h->kind != UM_HINT_PREFETCH) {
        bool said = region->advised >> h->kind & 1;

        region->advised |= 1u << h->kind;
        return said;
    }
    for (size_t k = 0; HAS(region, UM_CHANGE_DROP_HINT) && k < c->n_changes; k++) {
        const um_workload_change_t *change = &c->changes[k];

        if (change->change == UM_CHANGE_DROP_HINT && change->hint_kind == h->kind &&
            change->call_site == h->call_site && change->to_host == (h->device < 0))
            return true;
    }
    return false;
}

static um_status_t put(changing_t *c, const um_step_t *step)
{
    um_event_t event;
    um_status_t status;

    if (step->event) {
        event = *step->event;
        if (event.type == UM_EV_REGION_ALLOC) {
            const region_t *region = region_of(c, event.u.region_alloc.region);

            if (HAS(region, UM_CHANGE_DEVICE))
                event.u.region_alloc.family = UM_FAMILY_DEVICE;
        }
    }
    status = um_workload_builder_step(c->builder, step->event ? &event : NULL, step->cpu_ns,
                                      step->compute_ns);
    for (uint32_t t = 0; t < step->n_touches && !status; t++) {
        const um_touch_t *touch = &c->workload->touches[step->first_touch + t];
        const region_t *region = region_of(c, touch->region);

        if (!region || !HAS(region, UM_CHANGE_DEVICE))
            status = um_workload_builder_touch(c->builder, touch);
    }
    return status;
}

static um_status_t rebuild(changing_t *c)
{
    const um_workload_t *w = c->workload;
    const um_event_t *near = NULL;
    um_status_t status = UM_OK;

    for (uint64_t s = 0; s < w->n_steps && !status; s++) {
        const um_step_t *step = &w->steps[s];
        const um_event_t *event = step->event;
        bool launch = event && event->type == UM_EV_LAUNCH;

        near = event ? event : near;
        if (event && left_out(c, event))
            continue;
        for (uint32_t t = 0; t < step->n_touches; t++) {
            region_t *region = region_of(c, w->touches[step->first_touch + t].region);

            if (region && launch)
                region->stream = event->u.launch.stream;
            else if (region)
                region->on_gpu = false;
        }
        if (launch)
            status = fetch(c, step, event, event->u.launch.device, UM_CHANGE_PREFETCH);
        if (!status)
            status = put(c, step);
        if (!status && event && event->type == UM_EV_REGION_ALLOC)
            status = advise(c, event, region_of(c, event->u.region_alloc.region));
        if (!status && c->fetch_after[s])
            status = fetch(c, step, near, 0, UM_CHANGE_EARLIER);
        if (!status)
            status = bring_back(c, s, near);
    }
    return status;
}

um_status_t um_workload_changed(const um_workload_t *workload, const um_workload_change_t *changes,
                                size_t n_changes, uint64_t gpu_bytes, um_workload_t **out)
{
    changing_t c = {.workload = workload,
                    .changes = changes,
                    .n_changes = n_changes,
                    .gpu_bytes = gpu_bytes};
    um_status_t status;

    for (size_t k = 0; k < n_changes; k++)
        if (changes[k].change == UM_CHANGE_NONE || changes[k].change >= UM_CHANGE_COUNT)
            return UM_ERR_UNSUPPORTED;
    status = know_regions(&c);
    if (!status && !c.meant)
        status = UM_ERR_NOT_FOUND;
    if (!status)
        status = find_places(&c);
    if (!status)
        status =
            um_workload_builder_new((um_workload_kind_t)workload->kind, workload->name, &c.builder);
    if (!status) {
        status = rebuild(&c);
        if (status)
            um_workload_builder_drop(c.builder);
        else
            status = um_workload_builder_finish(c.builder, out, NULL, 0);
    }
    free(c.regions);
    free(c.fetch_after);
    free(c.back_after);
    free(c.back);
    return status;
}

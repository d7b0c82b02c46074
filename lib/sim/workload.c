/* workload.c - a workload is put together, checked on the way, and taken apart. */
#include "workload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bus.h"
#include "core/grow.h"
#include "workload_build.h"
#include "workload_lifetimes.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define GPUS_MAX    8
#define REGION_MAX  ((uint32_t)1 << 24) /* tables go by the number: 128 MiB of pointers */
/* Managed bytes alive at once. A simulation keeps some 100 bytes for each 2 MiB, used or not. */
#define MANAGED_MOST ((uint64_t)8 << 40)

/* Copies of events and of what they point to live in chunks, which never move. */
typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} chunk_t;

typedef struct owned {
    um_workload_t w; /* first: what the caller sees */
    chunk_t *chunks;
} owned_t;

struct um_workload_builder {
    owned_t *owned;
    um_step_t *steps;
    size_t n_steps, steps_size;
    um_touch_t *touches;
    uint32_t *step_of; /* one a touch */
    size_t n_touches, touches_size, step_of_size;
    bool sorted; /* touches are in order of their steps */

    um_lifetimes_t regions;

    bool forgive;
    um_status_t status; /* the first failure sticks */
    char error[512];
};

/* ---- words ------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *means;
} kinds[] = {
    [UM_WORKLOAD_GENERATED] = {"generated",
                               "every access is known exactly: times and bytes are as good as the "
                               "model"},
    [UM_WORKLOAD_DEEP] =
        {"deep", "each launch's whole footprint is known, in pieces of 64 KiB to 2 MiB; its "
                 "order within a launch is inferred, and sparse access looks denser than "
                 "it is"},
    [UM_WORKLOAD_RECORDED] = {"recorded",
                              "only pages that faulted or moved are known: accesses to data that "
                              "was in place are missing, so bytes and times under another capacity "
                              "or policy are lower bounds; umrt record --deep sees them all"},
};

const char *um_workload_kind_name(um_workload_kind_t kind)
{
    return (unsigned)kind <= UM_WORKLOAD_RECORDED ? kinds[kind].name : "unknown";
}

const char *um_workload_kind_means(um_workload_kind_t kind)
{
    return (unsigned)kind <= UM_WORKLOAD_RECORDED ? kinds[kind].means : "nothing is known of it";
}

/* ---- failing ----------------------------------------------------------------------------------- */

um_status_t um_workload_builder_fail(um_workload_builder_t *builder, um_status_t status)
{
    if (builder->status == UM_OK && status != UM_OK) {
        builder->status = status;
        snprintf(builder->error, sizeof builder->error, "%.200s: %s", builder->owned->w.name,
                 um_status_string(status));
    }
    return builder->status;
}

um_status_t um_workload_builder_refuse(um_workload_builder_t *builder, const um_event_t *event,
                                       const char *format, ...)
{
    char reason[160], where[96];
    va_list args;

    if (builder->status != UM_OK)
        return builder->status;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (event)
        snprintf(where, sizeof where, "%s at %" PRIu64 " ns",
                 um_event_type_name((um_event_type_t)event->type), event->time_ns);
    else
        snprintf(where, sizeof where, "step %zu", builder->n_steps);
    builder->status = UM_ERR_INVALID;
    snprintf(builder->error, sizeof builder->error, "%s: %s: %s", builder->owned->w.name, where,
             reason);
    return UM_ERR_INVALID;
}

/* A contradiction: the end of it, or in a trace with holes an event less. True = go on without. */
#define CONTRADICTION(builder, ...)                                                                \
    ((builder)->forgive ? ((builder)->owned->w.skipped++, UM_OK)                                   \
                        : um_workload_builder_refuse((builder), __VA_ARGS__))

/* ---- copies ------------------------------------------------------------------------------------ */

/* Room for n bytes, NULL = no memory. */
static void *keep(um_workload_builder_t *builder, size_t n)
{
    chunk_t *chunk = builder->owned->chunks;
    size_t rounded = (n + 15) & ~(size_t)15;
    void *at;

    if (!chunk || chunk->size - chunk->used < rounded) {
        size_t size = rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES;

        chunk = malloc(sizeof *chunk + size);
        if (!chunk)
            return NULL;
        chunk->used = 0;
        chunk->size = size;
        chunk->next = builder->owned->chunks;
        builder->owned->chunks = chunk;
    }
    at = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return at;
}

static const um_event_t *keep_event(um_workload_builder_t *builder, const um_event_t *event)
{
    size_t bytes = um_event_pack(event, NULL, 0);
    um_event_t *copy = keep(builder, bytes);

    if (copy)
        um_event_pack(event, copy, bytes);
    return copy;
}

/* ---- regions ----------------------------------------------------------------------------------- */

static um_status_t alloc(um_workload_builder_t *builder, const um_event_t *event)
{
    const um_ev_region_alloc_t *a = &event->u.region_alloc;
    um_lifetimes_t *regions = &builder->regions;
    um_workload_t *w = &builder->owned->w;
    um_lifetime_t r = {.addr = a->addr,
                       .bytes = a->bytes,
                       .born = builder->n_steps,
                       .gone = UM_STILL_ALIVE,
                       .id = a->region,
                       .managed = a->family == UM_FAMILY_MANAGED};
    const um_lifetime_t *over;

    if (!a->region || um_lifetimes_find(regions, a->region))
        return CONTRADICTION(builder, event, "region %" PRIu32 " %s", a->region,
                             a->region ? "was there before" : "is no number of a region");
    if (a->region > REGION_MAX)
        return um_workload_builder_refuse(builder, event,
                                          "region %" PRIu32 ": numbers go up to %" PRIu32
                                          ", one an allocation",
                                          a->region, REGION_MAX);
    if (r.managed &&
        (!a->addr || !a->bytes || a->addr + a->bytes < a->addr || um_lifetime_end(&r) < a->addr))
        return CONTRADICTION(builder, event,
                             "region %" PRIu32 " cannot be: %" PRIu64 " bytes at %#" PRIx64,
                             a->region, a->bytes, a->addr);
    over = r.managed ? um_lifetimes_over(regions, a->addr, a->bytes) : NULL;
    if (over)
        return CONTRADICTION(builder, event,
                             "region %" PRIu32 " lies over region %" PRIu32
                             ", which is still alive",
                             a->region, over->id);
    if (r.managed && a->bytes > MANAGED_MOST - regions->live_bytes)
        return um_workload_builder_refuse(builder, event,
                                          "region %" PRIu32 " of %" PRIu64 " bytes: no more than "
                                          "8 TiB of managed memory at a time",
                                          a->region, a->bytes);
    if (um_lifetimes_begin(regions, &r) != UM_OK)
        return um_workload_builder_fail(builder, UM_ERR_NO_MEMORY);
    if (regions->live_bytes > w->managed_peak_bytes)
        w->managed_peak_bytes = regions->live_bytes;
    if (regions->live_memory_bytes > w->memory_peak_bytes)
        w->memory_peak_bytes = regions->live_memory_bytes;
    return UM_ERR_BUSY; /* it becomes a step */
}

static um_status_t release(um_workload_builder_t *builder, const um_event_t *event)
{
    um_lifetime_t *r = um_lifetimes_find(&builder->regions, event->u.region_free.region);

    if (!r || r->gone != UM_STILL_ALIVE)
        return CONTRADICTION(builder, event, "region %" PRIu32 " is not alive",
                             event->u.region_free.region);
    um_lifetimes_end(&builder->regions, r, builder->n_steps);
    return UM_ERR_BUSY;
}

/* A graph holds on to pointers that nobody may follow any more: those are not judged. */
static um_status_t launch(um_workload_builder_t *builder, const um_event_t *event)
{
    const um_ev_launch_t *l = &event->u.launch;
    um_workload_t *w = &builder->owned->w;

    if (l->device >= GPUS_MAX)
        return um_workload_builder_refuse(builder, event,
                                          "device %" PRId32 ": there are at most %d", l->device,
                                          GPUS_MAX);
    for (uint32_t i = 0; i < l->n_args && !(l->flags & UM_LAUNCH_GRAPH); i++) {
        const um_lifetime_t *r = um_lifetimes_find(&builder->regions, l->args[i].region);

        if (!r || r->gone != UM_STILL_ALIVE)
            return CONTRADICTION(builder, event,
                                 "argument %" PRIu32 " of launch %" PRIu32
                                 " points into region %" PRIu32 ", which is not alive",
                                 l->args[i].slot, l->correlation, l->args[i].region);
    }
    if (l->device >= 0 && (uint32_t)l->device + 1 > w->n_gpus)
        w->n_gpus = (uint32_t)l->device + 1;
    return UM_ERR_BUSY;
}

bool um_workload_builder_clip(const um_workload_builder_t *builder, size_t step, uint32_t *region,
                              uint64_t *addr, uint64_t *bytes)
{
    return um_lifetimes_clip(&builder->regions, step, region, addr, bytes);
}

/* ---- putting together -------------------------------------------------------------------------- */

um_status_t um_workload_builder_new(um_workload_kind_t kind, const char *name,
                                    um_workload_builder_t **out)
{
    um_workload_builder_t *builder = calloc(1, sizeof *builder);
    owned_t *owned = calloc(1, sizeof *owned);
    size_t length = strlen(name);

    if (!builder || !owned) {
        free(builder);
        free(owned);
        return UM_ERR_NO_MEMORY;
    }
    owned->w.kind = (uint32_t)kind;
    owned->w.n_gpus = 1;
    /* The end of a long path says more than its beginning. */
    if (length >= sizeof owned->w.name)
        snprintf(owned->w.name, sizeof owned->w.name, "...%s",
                 name + length - (sizeof owned->w.name - 4));
    else
        snprintf(owned->w.name, sizeof owned->w.name, "%s", name);
    builder->owned = owned;
    builder->sorted = true;
    *out = builder;
    return UM_OK;
}

um_status_t um_workload_builder_step(um_workload_builder_t *builder, const um_event_t *event,
                                     uint64_t cpu_ns, uint64_t compute_ns)
{
    um_workload_t *w = &builder->owned->w;
    um_step_t step = {.cpu_ns = cpu_ns, .compute_ns = compute_ns};
    um_status_t status = UM_ERR_BUSY;

    if (builder->status != UM_OK)
        return builder->status;
    if (builder->n_steps >= UINT32_MAX - 1)
        return um_workload_builder_fail(builder, UM_ERR_FULL);
    if (event && event->type == UM_EV_REGION_ALLOC)
        status = alloc(builder, event);
    else if (event && event->type == UM_EV_REGION_FREE)
        status = release(builder, event);
    else if (event && event->type == UM_EV_LAUNCH)
        status = launch(builder, event);
    if (status != UM_ERR_BUSY)
        return status;
    if (!um_grow(&builder->steps, &builder->steps_size, builder->n_steps + 1,
                 sizeof *builder->steps))
        return um_workload_builder_fail(builder, UM_ERR_NO_MEMORY);
    if (event) {
        step.event = keep_event(builder, event);
        if (!step.event)
            return um_workload_builder_fail(builder, UM_ERR_NO_MEMORY);
        if (event->type == UM_EV_LAUNCH)
            step.launch = w->n_launches++;
        if (event->type == UM_EV_DEVICE && event->u.device.name &&
            (!w->source_gpu[0] || event->u.device.device == 0))
            snprintf(w->source_gpu, sizeof w->source_gpu, "%s", event->u.device.name);
    }
    builder->steps[builder->n_steps++] = step;
    return UM_OK;
}

um_status_t um_workload_builder_touch_at(um_workload_builder_t *builder, size_t step,
                                         const um_touch_t *touch)
{
    const um_lifetime_t *r;

    if (builder->status != UM_OK)
        return builder->status;
    if (step >= builder->n_steps || touch->kind < UM_ACCESS_READ ||
        touch->kind > UM_ACCESS_ATOMIC ||
        (builder->steps[step].event && builder->steps[step].event->type != UM_EV_LAUNCH))
        return um_workload_builder_fail(builder, UM_ERR_INVALID);
    r = um_lifetimes_find(&builder->regions, touch->region);
    if (!r || !r->managed || r->born > step || r->gone <= step || !touch->bytes ||
        touch->addr < r->addr || touch->addr + touch->bytes < touch->addr ||
        touch->addr + touch->bytes > um_lifetime_end(r))
        return CONTRADICTION(builder, builder->steps[step].event,
                             "access to %" PRIu64 " bytes at %#" PRIx64
                             ", which is not inside region %" PRIu32 " while that lives",
                             touch->bytes, touch->addr, touch->region);
    if (!um_grow(&builder->touches, &builder->touches_size, builder->n_touches + 1,
                 sizeof *builder->touches) ||
        !um_grow(&builder->step_of, &builder->step_of_size, builder->n_touches + 1,
                 sizeof *builder->step_of))
        return um_workload_builder_fail(builder, UM_ERR_NO_MEMORY);
    if (builder->n_touches > 0 && builder->step_of[builder->n_touches - 1] > step)
        builder->sorted = false;
    builder->step_of[builder->n_touches] = (uint32_t)step;
    builder->touches[builder->n_touches++] = *touch;
    builder->steps[step].n_touches++;
    return UM_OK;
}

um_status_t um_workload_builder_touch(um_workload_builder_t *builder, const um_touch_t *touch)
{
    if (builder->status != UM_OK)
        return builder->status;
    return builder->n_steps > 0 ? um_workload_builder_touch_at(builder, builder->n_steps - 1, touch)
                                : um_workload_builder_fail(builder, UM_ERR_INVALID);
}

size_t um_workload_builder_steps(const um_workload_builder_t *builder)
{
    return builder->n_steps;
}

um_step_t *um_workload_builder_at(um_workload_builder_t *builder, size_t step)
{
    return &builder->steps[step];
}

void um_workload_builder_kind(um_workload_builder_t *builder, um_workload_kind_t kind)
{
    builder->owned->w.kind = (uint32_t)kind;
}

void um_workload_builder_skip(um_workload_builder_t *builder, uint64_t events)
{
    builder->owned->w.skipped += events;
}

void um_workload_builder_forgive(um_workload_builder_t *builder)
{
    builder->forgive = true;
}

/* ---- handing over ------------------------------------------------------------------------------ */

/* Into the order of the steps, those of one step as they came. */
static um_status_t sort_touches(um_workload_builder_t *builder)
{
    um_touch_t *sorted;
    uint64_t at = 0;

    for (size_t i = 0; i < builder->n_steps; i++) {
        builder->steps[i].first_touch = at;
        at += builder->steps[i].n_touches;
    }
    if (builder->sorted || builder->n_touches == 0)
        return UM_OK;
    sorted = malloc(builder->n_touches * sizeof *sorted);
    if (!sorted)
        return um_workload_builder_fail(builder, UM_ERR_NO_MEMORY);
    for (size_t i = 0; i < builder->n_touches; i++)
        sorted[builder->steps[builder->step_of[i]].first_touch++] = builder->touches[i];
    for (size_t i = 0; i < builder->n_steps; i++)
        builder->steps[i].first_touch -= builder->steps[i].n_touches;
    free(builder->touches);
    builder->touches = sorted;
    return UM_OK;
}

/* Whether b goes on where a ends, and nothing is swept beside either: then they are one. */
static bool continues(const um_touch_t *a, const um_touch_t *b, const um_touch_t *behind)
{
    return !a->beside && !b->beside && !(behind && behind->beside) && a->region == b->region &&
           a->kind == b->kind && a->addr + a->bytes == b->addr;
}

static void merge_touches(um_workload_builder_t *builder)
{
    um_workload_t *w = &builder->owned->w;
    um_touch_t *touches = builder->touches;
    size_t to = 0;

    for (size_t i = 0; i < builder->n_steps; i++) {
        um_step_t *step = &builder->steps[i];
        size_t from = step->first_touch, end = from + step->n_touches, first = to;

        if (from < end)
            touches[from].beside = 0;
        for (; from < end; from++) {
            const um_touch_t *behind = from + 1 < end ? &touches[from + 1] : NULL;

            if (step->event)
                w->touched_bytes += touches[from].bytes;
            if (to > first && continues(&touches[to - 1], &touches[from], behind))
                touches[to - 1].bytes += touches[from].bytes;
            else
                touches[to++] = touches[from];
        }
        step->first_touch = first;
        step->n_touches = (uint32_t)(to - first);
    }
    builder->n_touches = to;
}

void um_workload_builder_drop(um_workload_builder_t *builder)
{
    if (!builder)
        return;
    free(builder->steps);
    free(builder->touches);
    free(builder->step_of);
    um_lifetimes_free(&builder->regions);
    um_workload_free((um_workload_t *)builder->owned);
    free(builder);
}

um_status_t um_workload_builder_finish(um_workload_builder_t *builder, um_workload_t **out,
                                       char *error, size_t error_bytes)
{
    um_workload_t *w = &builder->owned->w;
    um_status_t status;

    if (builder->status == UM_OK && w->n_launches == 0) {
        builder->status = UM_ERR_INVALID;
        snprintf(builder->error, sizeof builder->error, "%s: no launches in it", w->name);
    }
    if (builder->status == UM_OK)
        sort_touches(builder);
    status = builder->status;
    if (status == UM_OK) {
        merge_touches(builder);
        w->steps = builder->steps;
        w->n_steps = builder->n_steps;
        w->touches = builder->touches;
        w->n_touches = builder->n_touches;
        builder->steps = NULL;
        builder->touches = NULL;
        builder->owned = NULL;
        *out = w;
    } else if (error) {
        snprintf(error, error_bytes, "%s", builder->error);
    }
    um_workload_builder_drop(builder);
    return status;
}

void um_workload_free(um_workload_t *workload)
{
    owned_t *owned = (owned_t *)workload;

    if (!owned)
        return;
    for (chunk_t *chunk = owned->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free((void *)workload->steps);
    free((void *)workload->touches);
    free(owned);
}

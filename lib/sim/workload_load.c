/* workload_load.c - which events of a trace are steps, and what belongs to each. */
#include "workload_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "workload_build.h"
#include "workload_ids.h"
#include "workload_recorded.h"

#define NO_STEP SIZE_MAX

/* A launch, while what is known of it comes in. */
typedef struct launched {
    size_t step;
    uint64_t access_ns; /* of its last ACCESS */
    uint64_t busy_ns;   /* on the GPU; the nodes of a graph overlap */
    uint64_t end_ns;    /* of what busy_ns counts */
} launched_t;

/* A thread of the program: its work counts from here on. */
typedef struct thread {
    uint64_t from_ns;
} thread_t;

struct um_workload_loader {
    um_workload_builder_t *builder;
    um_workload_kind_t kind;
    um_recorded_t *recorded; /* NULL: accesses are told */
    bool strict; /* every access is told, nothing is missing: contradictions are refused */
    bool imported;
    bool unwaited; /* imported: kernels have begun since the last wait */
    uint32_t made; /* imported: ids for those that have none, from the top */
    uint32_t tid;  /* of the step before: faults of the CPU do not say theirs */
    launched_t *launches;
    size_t n_launches, launches_size;
    um_ids_t by_correlation; /* -> index of the launch */
    um_ids_t calls;          /* correlations of copies and sets seen as calls */
    thread_t *threads;
    size_t n_threads, threads_size;
    um_ids_t by_tid;
    size_t phase; /* the host phase that is going on */
    uint64_t phase_ns;
};

um_status_t um_workload_loader_new(const char *name, um_workload_kind_t kind, bool forgive,
                                   um_workload_loader_t **out)
{
    um_workload_loader_t *loader = calloc(1, sizeof *loader);

    if (!loader || um_workload_builder_new(kind, name, &loader->builder) != UM_OK ||
        (kind != UM_WORKLOAD_GENERATED &&
         um_recorded_new(loader->builder, &loader->recorded) != UM_OK)) {
        um_workload_loader_drop(loader);
        return UM_ERR_NO_MEMORY;
    }
    if (kind == UM_WORKLOAD_DEEP)
        um_recorded_deep(loader->recorded);
    if (forgive)
        um_workload_builder_forgive(loader->builder);
    loader->kind = kind;
    loader->strict = kind == UM_WORKLOAD_GENERATED && !forgive;
    loader->phase = NO_STEP;
    *out = loader;
    return UM_OK;
}

static void refuse(um_workload_loader_t *loader, um_status_t status)
{
    um_workload_builder_fail(loader->builder, status);
}

/* ---- time of the program's threads ------------------------------------------------------------- */

static thread_t *thread_of(um_workload_loader_t *loader, const um_event_t *event)
{
    const um_id_t *found = um_ids_find(&loader->by_tid, event->tid);

    if (found)
        return &loader->threads[found->value];
    if (!um_grow(&loader->threads, &loader->threads_size, loader->n_threads + 1,
                 sizeof *loader->threads) ||
        um_ids_put(&loader->by_tid, event->tid, (uint32_t)loader->n_threads) != UM_OK) {
        refuse(loader, UM_ERR_NO_MEMORY);
        return NULL;
    }
    loader->threads[loader->n_threads] = (thread_t){event->time_ns};
    return &loader->threads[loader->n_threads++];
}

/* What the thread did by itself until `event`; it is busy with that until busy_ns after. */
static uint64_t own_work(um_workload_loader_t *loader, const um_event_t *event, uint64_t busy_ns)
{
    thread_t *thread = thread_of(loader, event);
    uint64_t worked;

    if (!thread)
        return 0;
    worked = event->time_ns > thread->from_ns ? event->time_ns - thread->from_ns : 0;
    if (event->time_ns + busy_ns > thread->from_ns)
        thread->from_ns = event->time_ns + busy_ns;
    return worked;
}

/* own_work for records that may not say whose. */
static uint64_t stalled(um_workload_loader_t *loader, const um_event_t *event, uint64_t busy_ns)
{
    um_event_t by = {.time_ns = event->time_ns, .tid = event->tid ? event->tid : loader->tid};

    return own_work(loader, &by, busy_ns);
}

/* ---- steps ------------------------------------------------------------------------------------- */

static void step(um_workload_loader_t *loader, const um_event_t *event, uint64_t busy_ns)
{
    um_workload_builder_step(loader->builder, event, own_work(loader, event, busy_ns), 0);
    loader->phase = NO_STEP;
    loader->tid = event->tid;
}

static void launch(um_workload_loader_t *loader, const um_event_t *event)
{
    const um_ev_launch_t *l = &event->u.launch;
    size_t steps = um_workload_builder_steps(loader->builder);

    if (l->flags & UM_LAUNCH_CAPTURED) /* runs when its graph is launched */
        return;
    if (loader->strict && um_ids_find(&loader->by_correlation, l->correlation)) {
        um_workload_builder_refuse(loader->builder, event, "launch %" PRIu32 " was there before",
                                   l->correlation);
        return;
    }
    step(loader, event, 0);
    if (um_workload_builder_steps(loader->builder) == steps)
        return;
    if (!um_grow(&loader->launches, &loader->launches_size, loader->n_launches + 1,
                 sizeof *loader->launches) ||
        (l->correlation != 0 && um_ids_put(&loader->by_correlation, l->correlation,
                                           (uint32_t)loader->n_launches) != UM_OK)) {
        refuse(loader, UM_ERR_NO_MEMORY);
        return;
    }
    loader->launches[loader->n_launches++] = (launched_t){.step = steps};
    if (loader->recorded)
        refuse(loader, um_recorded_launch(loader->recorded, event, steps));
}

static launched_t *launched(um_workload_loader_t *loader, uint32_t correlation)
{
    const um_id_t *found =
        correlation != 0 ? um_ids_find(&loader->by_correlation, correlation) : NULL;

    return found ? &loader->launches[found->value] : NULL;
}

/* A copy or set that was called is a step; the GPU's record of it only where the call is not told. */
static void transfer(um_workload_loader_t *loader, const um_event_t *event, uint32_t correlation,
                     uint32_t flags, uint64_t duration_ns)
{
    if (flags & UM_TRANSFER_CAPTURED)
        return;
    if (flags & UM_TRANSFER_ON_GPU) {
        if (correlation != 0 && um_ids_find(&loader->calls, correlation))
            return;
        duration_ns = 0;
    } else if (correlation != 0 && um_ids_put(&loader->calls, correlation, 0) != UM_OK) {
        refuse(loader, UM_ERR_NO_MEMORY);
    }
    step(loader, event, duration_ns);
}

static void executed(um_workload_loader_t *loader, const um_event_t *event)
{
    const um_ev_kernel_exec_t *exec = &event->u.kernel_exec;
    launched_t *l = launched(loader, exec->correlation);
    uint64_t from = event->time_ns, end = event->time_ns + exec->duration_ns;

    if (!l || end < from) {
        if (loader->strict && exec->correlation != 0)
            um_workload_builder_refuse(loader->builder, event, "there is no launch %" PRIu32,
                                       exec->correlation);
        else
            um_workload_builder_skip(loader->builder, 1);
        return;
    }
    if (from < l->end_ns)
        from = l->end_ns;
    if (end > from) {
        l->busy_ns += end - from;
        l->end_ns = end;
    }
}

/* ---- accesses ---------------------------------------------------------------------------------- */

static void sync(um_workload_loader_t *loader, const um_event_t *event)
{
    if (event->u.sync.exit) {
        own_work(loader, event, 0); /* the wait was no work */
        return;
    }
    step(loader, event, 0);
    loader->unwaited = false;
}

/* ---- kernels of foreign traces ----------------------------------------------------------------- */

static um_event_t made(um_workload_loader_t *loader, um_event_type_t type, const um_event_t *at)
{
    return (um_event_t){.type = (uint32_t)type, .time_ns = at->time_ns, .tid = loader->tid};
}

/* Gives it a correlation and the launch behind that; nodes of a graph have one together. */
static void began(um_workload_loader_t *loader, um_event_t *event)
{
    um_ev_kernel_exec_t *exec = &event->u.kernel_exec;
    um_event_t put = made(loader, UM_EV_LAUNCH, event);

    if (!exec->correlation)
        exec->correlation = UINT32_MAX - loader->made++;
    if (launched(loader, exec->correlation))
        return;
    put.u.launch = (um_ev_launch_t){.correlation = exec->correlation,
                                    .kernel = exec->kernel,
                                    .stream = exec->stream_id,
                                    .context = exec->context,
                                    .device = exec->device,
                                    .flags = UM_LAUNCH_ARGS_UNKNOWN};
    memcpy(put.u.launch.grid, exec->grid, sizeof exec->grid);
    memcpy(put.u.launch.block, exec->block, sizeof exec->block);
    launch(loader, &put);
    stalled(loader, event, exec->duration_ns);
    loader->unwaited = true;
}

static void wait_for_kernels(um_workload_loader_t *loader, const um_event_t *event)
{
    um_event_t put = made(loader, UM_EV_SYNC, event);

    put.u.sync = (um_ev_sync_t){.sync = UINT32_MAX - loader->made++, .kind = UM_SYNC_DEVICE};
    if (loader->unwaited)
        sync(loader, &put);
}

/* The phase that an access of the host belongs to; its time is when the access is done. */
static size_t phase(um_workload_loader_t *loader, const um_event_t *event)
{
    uint64_t worked = stalled(loader, event, 0);

    if (loader->phase == NO_STEP) {
        loader->phase = um_workload_builder_steps(loader->builder);
        loader->phase_ns = UINT64_MAX;
        if (um_workload_builder_step(loader->builder, NULL, 0, 0) != UM_OK) {
            loader->phase =
                NO_STEP; /* the next access is not to write to a step that is not there */
            return NO_STEP;
        }
    }
    um_workload_builder_at(loader->builder, loader->phase)->cpu_ns += worked;
    return loader->phase;
}

static void access(um_workload_loader_t *loader, const um_event_t *event)
{
    const um_ev_access_t *a = &event->u.access;
    launched_t *l = launched(loader, a->correlation);
    um_touch_t touch = {.addr = a->addr, .bytes = a->bytes, .region = a->region};
    uint64_t *last_ns = NULL;
    size_t of;

    if (a->device == UM_DEVICE_HOST && a->correlation == 0) {
        of = phase(loader, event);
        last_ns = &loader->phase_ns;
    } else if (l) {
        of = l->step;
        last_ns = &l->access_ns;
    } else if (!loader->strict) {
        um_workload_builder_skip(loader->builder, 1);
        return;
    } else {
        um_workload_builder_refuse(loader->builder, event, "there is no launch %" PRIu32,
                                   a->correlation);
        return;
    }
    if (a->kind < UM_ACCESS_READ || a->kind > UM_ACCESS_ATOMIC) {
        um_workload_builder_refuse(loader->builder, event, "neither read, write nor atomic");
        return;
    }
    touch.kind = (uint8_t)a->kind;
    touch.beside = *last_ns == event->time_ns;
    *last_ns = event->time_ns;
    if (of == NO_STEP)
        return;
    if (loader->kind != UM_WORKLOAD_GENERATED &&
        !um_workload_builder_clip(loader->builder, of, &touch.region, &touch.addr, &touch.bytes))
        um_workload_builder_skip(loader->builder, 1);
    else
        um_workload_builder_touch_at(loader->builder, of, &touch);
}

/* A fault of the CPU, or what moved because of it. */
static void host_record(um_workload_loader_t *loader, const um_event_t *event)
{
    uint64_t stalled_ns = 0;
    size_t of;

    if (!um_recorded_is_host(event))
        return;
    wait_for_kernels(loader, event);
    of = phase(loader, event);
    if (of == NO_STEP)
        return;
    refuse(loader, um_recorded_host(loader->recorded, event, of, &stalled_ns));
    stalled(loader, event, stalled_ns);
}

/* ---- events ------------------------------------------------------------------------------------ */

void um_workload_loader_imported(um_workload_loader_t *loader)
{
    loader->imported = loader->recorded;
}

void um_workload_loader_event(um_workload_loader_t *loader, const um_event_t *event)
{
    um_event_t named;

    if (loader->imported && event->type == UM_EV_KERNEL_EXEC) {
        named = *event;
        event = &named;
        began(loader, &named);
    }
    if (loader->recorded) {
        refuse(loader, um_recorded_event(loader->recorded, event));
        host_record(loader, event);
    }
    switch (event->type) {
    case UM_EV_FACT:
        if (loader->recorded && strcmp(event->u.fact.key, "workload.accesses") == 0 &&
            strcmp(event->u.fact.value, "deep") == 0) {
            um_workload_builder_kind(loader->builder, UM_WORKLOAD_DEEP);
            um_recorded_deep(loader->recorded);
        }
        break;
    case UM_EV_REGION_ALLOC:
    case UM_EV_REGION_FREE:
    case UM_EV_REGION_LABEL:
    case UM_EV_KERNEL:
    case UM_EV_DEVICE:
    case UM_EV_CONTEXT:
    case UM_EV_CALL_SITE:
    case UM_EV_MARK:
        step(loader, event, 0);
        break;
    case UM_EV_SYNC:
        sync(loader, event);
        break;
    case UM_EV_HINT:
        if (strcmp(event->u.hint.who, "app") == 0)
            step(loader, event, event->u.hint.duration_ns);
        else if (strcmp(event->u.hint.who, "deep") == 0)
            own_work(loader, event, event->u.hint.duration_ns); /* the recorder's, not its own */
        break;
    case UM_EV_COPY:
        transfer(loader, event, event->u.copy.correlation, event->u.copy.flags,
                 event->u.copy.duration_ns);
        break;
    case UM_EV_SET:
        transfer(loader, event, event->u.set.correlation, event->u.set.flags,
                 event->u.set.duration_ns);
        break;
    case UM_EV_LAUNCH:
        launch(loader, event);
        break;
    case UM_EV_KERNEL_EXEC:
        executed(loader, event);
        break;
    case UM_EV_ACCESS:
        access(loader, event);
        break;
    default: /* what the program did not ask for */
        break;
    }
}

void um_workload_loader_drop(um_workload_loader_t *loader)
{
    if (!loader)
        return;
    um_workload_builder_drop(loader->builder);
    um_recorded_free(loader->recorded);
    free(loader->launches);
    free(loader->threads);
    um_ids_free(&loader->by_correlation);
    um_ids_free(&loader->calls);
    um_ids_free(&loader->by_tid);
    free(loader);
}

um_status_t um_workload_loader_finish(um_workload_loader_t *loader, um_workload_t **out,
                                      char *error, size_t error_bytes)
{
    um_status_t status;

    if (loader->recorded)
        refuse(loader, um_recorded_finish(loader->recorded));
    for (size_t i = 0; !loader->recorded && i < loader->n_launches; i++)
        um_workload_builder_at(loader->builder, loader->launches[i].step)->compute_ns =
            loader->launches[i].busy_ns;
    status = um_workload_builder_finish(loader->builder, out, error, error_bytes);
    loader->builder = NULL;
    um_workload_loader_drop(loader);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------- */

static um_workload_kind_t kind_of(const um_trace_reader_t *reader)
{
    const char *accesses = um_trace_reader_fact(reader, "workload.accesses");

    if (accesses && strcmp(accesses, "exact") == 0)
        return UM_WORKLOAD_GENERATED;
    if (accesses && strcmp(accesses, "deep") == 0)
        return UM_WORKLOAD_DEEP;
    return UM_WORKLOAD_RECORDED;
}

um_status_t um_workload_read(um_trace_reader_t *reader, const char *name, bool forgive,
                             um_workload_t **out, um_trace_whole_t *whole, char *error,
                             size_t error_bytes)
{
    um_workload_loader_t *loader;
    const um_event_t *event;
    bool lost = false;
    um_status_t status = um_workload_loader_new(name, kind_of(reader), forgive, &loader);

    if (status != UM_OK) {
        if (error)
            snprintf(error, error_bytes, "%s: %s", name, um_status_string(status));
        return status;
    }
    if (um_trace_reader_fact(reader, "import.kind"))
        um_workload_loader_imported(loader);
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        lost |= event->type == UM_EV_LOSS;
        um_workload_loader_event(loader, event);
    }
    *whole = status == UM_ERR_NOT_FOUND   ? UM_TRACE_IS_WHOLE
             : status == UM_ERR_TRUNCATED ? UM_TRACE_IS_CUT
                                          : UM_TRACE_HAS_HOLES;
    if (lost && *whole == UM_TRACE_IS_WHOLE)
        *whole = UM_TRACE_LOST_EVENTS;
    return um_workload_loader_finish(loader, out, error, error_bytes);
}

/* Where events are missing, contradictions are to be expected. */
um_status_t um_workload_load(const char *path, um_workload_t **out, bool *whole, char *error,
                             size_t error_bytes)
{
    um_trace_whole_t state = UM_TRACE_IS_WHOLE;
    um_trace_reader_t *reader;
    um_status_t status;

    for (int again = 0; again < 2; again++) {
        status = um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, error_bytes);
        if (status != UM_OK)
            return status;
        status = um_workload_read(reader, path, again, out, &state, error, error_bytes);
        /* Also where nothing is left to be a program: the damage is why. */
        if (error &&
            (status == UM_OK || (status == UM_ERR_INVALID && *um_trace_reader_error(reader))))
            snprintf(error, error_bytes, "%s", um_trace_reader_error(reader));
        um_trace_reader_close(reader);
        if (status != UM_ERR_INVALID ||
            (state != UM_TRACE_HAS_HOLES && state != UM_TRACE_LOST_EVENTS))
            break;
    }
    if (whole)
        *whole = state == UM_TRACE_IS_WHOLE || state == UM_TRACE_LOST_EVENTS;
    return status;
}

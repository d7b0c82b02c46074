#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define OPEN_MAX_MARKS 1024u
#define NAMED_MAX      4096u

static um_phase_t *current(um_timeline_t *t)
{
    um_phase_t *last = t->n_turns ? &t->turns[t->n_turns - 1] : NULL;

    return last && last->trace == t->trace ? last : NULL;
}

/* Begins a turn of `kind` at time_ns unless it is that kind's turn already. */
static um_status_t turn(um_timeline_t *t, uint32_t kind, uint64_t time_ns)
{
    um_phase_t *now = current(t);

    if (now && now->kind == kind)
        return UM_OK;
    if (now && time_ns < now->start_ns)
        time_ns = now->start_ns;
    if (now)
        now->end_ns = time_ns;
    if (t->n_turns >= UM_PHASES_MAX && now && t->n_turns > 1 &&
        t->turns[t->n_turns - 2].trace == t->trace) {
        /* The table is full: swap to the turn before, whose kind this is, and let it last longer:
         * its start moves so that end - start stays the time it had. */
        um_phase_t before = t->turns[t->n_turns - 2];

        t->merged++;
        t->turns[t->n_turns - 2] = *now;
        before.times++;
        before.start_ns = time_ns - (before.end_ns - before.start_ns);
        before.end_ns = time_ns;
        t->turns[t->n_turns - 1] = before;
        return UM_OK;
    }
    if (!um_grow(&t->turns, &t->turns_size, t->n_turns + 1, sizeof(*t->turns)))
        return UM_ERR_NO_MEMORY;
    t->turns[t->n_turns++] = (um_phase_t){
        .kind = kind, .trace = t->trace, .start_ns = time_ns, .end_ns = time_ns, .times = 1};
    return UM_OK;
}

static um_status_t name_get(um_timeline_t *t, const char *name, uint64_t time_ns, uint32_t *out)
{
    uint64_t key = um_map_hash(name, strlen(name), 0);
    um_status_t status;

    *out = um_map_find(&t->named_of, key);
    if (*out != UM_MAP_NONE)
        return UM_OK;
    if (t->n_named >= NAMED_MAX) {
        *out = 0;
        return UM_OK;
    }
    if (!um_grow(&t->named, &t->named_size, t->n_named + 1, sizeof(*t->named)))
        return UM_ERR_NO_MEMORY;
    status = um_map_put(&t->named_of, key, (uint32_t)t->n_named);
    if (status)
        return status;
    *out = (uint32_t)t->n_named;
    t->named[*out] = (um_phase_t){.name = strdup(name),
                                  .kind = UM_PHASE_NAMED,
                                  .trace = t->trace,
                                  .start_ns = time_ns,
                                  .end_ns = time_ns};
    if (!t->named[*out].name)
        return UM_ERR_NO_MEMORY;
    t->n_named++;
    return UM_OK;
}

static void close_mark(um_timeline_t *t, size_t at, uint64_t time_ns)
{
    um_phase_t *phase = &t->named[t->open[at].named];

    if (!t->spans)
        t->spans = malloc(UM_SPANS_MAX * sizeof(*t->spans));
    if (t->spans && t->n_spans < UM_SPANS_MAX)
        t->spans[t->n_spans++] = (um_span_t){.named = t->open[at].named,
                                             .trace = t->trace,
                                             .start_ns = t->open[at].start_ns,
                                             .end_ns = time_ns};
    else
        t->spans_left++;
    if (time_ns > t->open[at].start_ns)
        phase->end_ns += time_ns - t->open[at].start_ns;
    memmove(&t->open[at], &t->open[at + 1], (t->n_open - at - 1) * sizeof(*t->open));
    t->n_open--;
}

static um_status_t on_mark(um_timeline_t *t, const um_event_t *event)
{
    const um_ev_mark_t *mark = &event->u.mark;
    um_status_t status;
    uint32_t named;

    switch (mark->kind) {
    case UM_MARK_PUSH:
    case UM_MARK_START:
        status = name_get(t, mark->name, event->time_ns, &named);
        if (status || t->n_open >= OPEN_MAX_MARKS)
            return status;
        if (!um_grow(&t->open, &t->open_size, t->n_open + 1, sizeof(*t->open)))
            return UM_ERR_NO_MEMORY;
        t->named[named].times++;
        t->open[t->n_open++] = (struct um_open_mark){.id = mark->id,
                                                     .start_ns = event->time_ns,
                                                     .tid = event->tid,
                                                     .named = named,
                                                     .range = mark->kind == UM_MARK_START};
        break;
    case UM_MARK_POP:
    case UM_MARK_END:
        for (size_t i = t->n_open; i-- > 0;) {
            bool range = mark->kind == UM_MARK_END;

            if (t->open[i].range == range &&
                (range ? t->open[i].id == mark->id : t->open[i].tid == event->tid)) {
                close_mark(t, i, event->time_ns);
                break;
            }
        }
        break;
    default:
        break;
    }
    return UM_OK;
}

static void count(um_phase_t *phase, const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_KERNEL_EXEC:
    case UM_EV_LAUNCH:
        phase->launches++;
        break;
    case UM_EV_GPU_FAULT:
        phase->gpu_faults++;
        break;
    case UM_EV_CPU_FAULT:
        phase->cpu_faults++;
        break;
    case UM_EV_MIGRATE:
        if (event->u.migrate.dst >= 0)
            phase->in_bytes += event->u.migrate.bytes;
        else
            phase->out_bytes += event->u.migrate.bytes;
        break;
    default:
        break;
    }
}

um_status_t um_timeline_event(um_timeline_t *t, const um_event_t *event)
{
    um_phase_t *now;
    um_status_t status = UM_OK;
    uint64_t end;

    switch (event->type) {
    case UM_EV_MARK:
        return on_mark(t, event);
    case UM_EV_LAUNCH:
        if (t->saw_exec || event->u.launch.flags & UM_LAUNCH_CAPTURED)
            return UM_OK;
        status = turn(t, UM_PHASE_GPU, event->time_ns);
        t->gpu_until_ns = UINT64_MAX;
        break;
    case UM_EV_KERNEL_EXEC:
        if (!t->saw_exec) { /* times from here on: launches are not needed, nor counted twice */
            t->saw_exec = true;
            t->gpu_until_ns = 0;
            for (size_t i = 0; i < t->n_turns; i++)
                t->turns[i].launches = t->turns[i].trace == t->trace ? 0 : t->turns[i].launches;
            for (size_t i = 0; i < t->n_named; i++)
                t->named[i].launches = t->trace ? t->named[i].launches : 0;
        }
        status = turn(t, UM_PHASE_GPU, event->time_ns);
        end = event->time_ns + event->u.kernel_exec.duration_ns;
        if (end > t->gpu_until_ns)
            t->gpu_until_ns = end;
        break;
    case UM_EV_SYNC:
        if (!t->saw_exec && event->u.sync.exit && event->u.sync.kind != UM_SYNC_EVENT &&
            t->gpu_until_ns == UINT64_MAX)
            t->gpu_until_ns = event->time_ns;
        return UM_OK;
    case UM_EV_CPU_FAULT: /* the CPU's turn, unless it cuts in while kernels run */
        now = current(t);
        if (!now || event->time_ns >= t->gpu_until_ns)
            status = turn(t, UM_PHASE_CPU, now ? t->gpu_until_ns : event->time_ns);
        break;
    case UM_EV_GPU_FAULT: /* the GPU is at work, before the kernel's record says so or in a copy */
        status = turn(t, UM_PHASE_GPU, event->time_ns);
        end = event->time_ns + event->u.gpu_fault.duration_ns;
        if (end > t->gpu_until_ns && event->u.gpu_fault.duration_ns < UINT64_MAX / 2)
            t->gpu_until_ns = end;
        break;
    case UM_EV_MIGRATE:
        break;
    default:
        return UM_OK;
    }
    if (status)
        return status;
    now = current(t);
    if (now)
        count(now, event);
    if (t->n_open)
        count(&t->named[t->open[t->n_open - 1].named], event);
    return UM_OK;
}

void um_timeline_end(um_timeline_t *t, uint64_t now_ns)
{
    um_phase_t *now = current(t);

    if (now && now->kind == UM_PHASE_GPU && t->saw_exec && t->gpu_until_ns > now->start_ns)
        now->end_ns = t->gpu_until_ns;
    else if (now && now_ns > now->start_ns)
        now->end_ns = now_ns;
    while (t->n_open)
        close_mark(t, t->n_open - 1, now_ns);
    t->gpu_until_ns = 0;
    t->saw_exec = false;
    t->trace++;
}

void um_timeline_free(um_timeline_t *t)
{
    for (size_t i = 0; i < t->n_named; i++)
        free(t->named[i].name);
    free(t->turns);
    free(t->spans);
    free(t->named);
    free(t->open);
    um_map_free(&t->named_of);
}

#include "streams.h"

#include <stdlib.h>

#include "core/grow.h"

typedef struct seen {
    int32_t device;
    uint32_t context; /* 0 = not said */
    uint64_t stream, becomes;
} seen_t;

struct um_streams {
    um_workload_t workload;
    um_step_t *steps;
    um_event_t *events; /* copies of those that have a stream */
    seen_t *seen;
    size_t n_seen, seen_size;
};

/* What an event runs on; device UM_DEVICE_NONE = it only speaks of a stream. NULL = of none. */
static uint64_t *stream_of(um_event_t *event, int32_t *device, uint32_t *context)
{
    *device = UM_DEVICE_NONE;
    *context = 0;
    switch (event->type) {
    case UM_EV_LAUNCH:
        *device = event->u.launch.device;
        *context = event->u.launch.context;
        return &event->u.launch.stream;
    case UM_EV_COPY:
        *device = event->u.copy.device;
        return &event->u.copy.stream;
    case UM_EV_SET:
        *device = event->u.set.device;
        return &event->u.set.stream;
    case UM_EV_HINT:
        return &event->u.hint.stream;
    case UM_EV_SYNC:
        *context = event->u.sync.context;
        return event->u.sync.kind == UM_SYNC_STREAM || event->u.sync.kind == UM_SYNC_COPY
                   ? &event->u.sync.stream
                   : NULL;
    default:
        return NULL;
    }
}

/* The stream that is meant, as far as can be said: of this device, else of this context, else any of
 * that name. */
static seen_t *find(const um_streams_t *s, int32_t device, uint32_t context, uint64_t stream)
{
    seen_t *best = NULL;

    for (seen_t *seen = s->seen; seen < s->seen + s->n_seen; seen++) {
        if (seen->stream != stream)
            continue;
        if (device >= 0 && seen->device == device)
            return seen;
        if (device < 0 && (!best || (context && seen->context == context)))
            best = seen;
    }
    return best;
}

static um_status_t see(um_streams_t *s, int32_t device, uint32_t context, uint64_t stream,
                       uint32_t limit)
{
    uint64_t with = stream;
    uint32_t before = 0;

    for (size_t i = 0; i < s->n_seen; i++)
        before += s->seen[i].device == device;
    for (size_t i = 0, at = 0; i < s->n_seen && before >= limit; i++) {
        if (s->seen[i].device == device && at++ == before % limit) {
            with = s->seen[i].stream;
            break;
        }
    }
    if (!um_grow(&s->seen, &s->seen_size, s->n_seen + 1, sizeof(*s->seen)))
        return UM_ERR_NO_MEMORY;
    s->seen[s->n_seen++] = (seen_t){device, context, stream, with};
    return UM_OK;
}

um_status_t um_streams_limit(const um_workload_t *workload, uint32_t n, um_streams_t **out)
{
    um_streams_t *s = calloc(1, sizeof(*s));
    um_event_t *copy, event;
    um_status_t status = s ? UM_OK : UM_ERR_NO_MEMORY;
    size_t with_stream = 0;
    int32_t device;
    uint32_t context;

    for (uint64_t i = 0; i < workload->n_steps && !status; i++) {
        const uint64_t *stream;

        if (!workload->steps[i].event)
            continue;
        event = *workload->steps[i].event;
        stream = stream_of(&event, &device, &context);
        with_stream += stream != NULL;
        if (stream && device >= 0 && !find(s, device, context, *stream))
            status = see(s, device, context, *stream, n);
    }
    if (!status) {
        s->workload = *workload;
        s->steps = calloc(workload->n_steps + 1, sizeof(*s->steps));
        s->events = copy = calloc(with_stream + 1, sizeof(*s->events));
        status = s->steps && s->events ? UM_OK : UM_ERR_NO_MEMORY;
    }
    for (uint64_t i = 0; i < workload->n_steps && !status; i++) {
        uint64_t *stream;
        seen_t *seen;

        s->steps[i] = workload->steps[i];
        if (!s->steps[i].event)
            continue;
        *copy = *s->steps[i].event;
        stream = stream_of(copy, &device, &context);
        if (!stream || !(seen = find(s, device, context, *stream)))
            continue;
        *stream = seen->becomes;
        s->steps[i].event = copy++;
    }
    if (status) {
        um_streams_free(s);
        return status;
    }
    s->workload.steps = s->steps;
    *out = s;
    return UM_OK;
}

const um_workload_t *um_streams_workload(const um_streams_t *streams)
{
    return &streams->workload;
}

void um_streams_free(um_streams_t *streams)
{
    if (!streams)
        return;
    free(streams->steps);
    free(streams->events);
    free(streams->seen);
    free(streams);
}

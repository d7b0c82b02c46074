#include "uses.h"

#define PER_THREAD 2u /* CU_STREAM_PER_THREAD: one handle, another stream for each thread */

um_uses_stream_t um_uses_stream(uint64_t stream, uint32_t context, uint32_t tid)
{
    return (um_uses_stream_t){.stream = stream,
                              .context = context,
                              .tid = stream == PER_THREAD ? tid : 0};
}

static bool same(const um_uses_stream_t *a, const um_uses_stream_t *b)
{
    return a->stream == b->stream && a->context == b->context && a->tid == b->tid;
}

static bool covers(uint32_t kind, const um_uses_stream_t *own, const um_uses_stream_t *stream)
{
    switch (kind) {
    case UM_SYNC_DEVICE:
        return own->context == stream->context;
    case UM_SYNC_STREAM:
    case UM_SYNC_COPY:
        return same(own, stream);
    default:
        return false;
    }
}

void um_uses_launch(um_uses_t *uses, const um_event_t *launch, uint64_t addr, uint64_t bytes)
{
    um_uses_stream_t stream =
        um_uses_stream(launch->u.launch.stream, launch->u.launch.context, launch->tid);
    uint32_t i = 0, oldest = 0;

    for (; i < uses->n; i++) {
        if (same(&uses->use[i].stream, &stream) && uses->use[i].end == addr + bytes)
            break;
        if (uses->use[i].number < uses->use[oldest].number)
            oldest = i;
    }
    if (i == UM_USES_MAX)
        i = oldest;
    if (i == uses->n)
        uses->n++;
    else if (same(&uses->use[i].stream, &stream) && uses->use[i].addr < addr)
        addr = uses->use[i].addr;
    uses->use[i].stream = stream;
    uses->use[i].addr = addr;
    uses->use[i].end = addr + bytes;
    uses->use[i].number = ++uses->number;
}

void um_uses_sync(um_uses_t *uses, const um_event_t *event)
{
    const um_ev_sync_t *sync = &event->u.sync;
    um_uses_stream_t own = um_uses_stream(sync->stream, sync->context, event->tid);
    uint64_t before = 0;

    if (!sync->exit) {
        uses->wait[uses->n_waits % UM_USES_WAIT].sync = sync->sync;
        uses->wait[uses->n_waits++ % UM_USES_WAIT].number = uses->number;
        return;
    }
    for (uint32_t i = 0; i < UM_USES_WAIT && i < uses->n_waits; i++)
        if (uses->wait[i].sync == sync->sync)
            before = uses->wait[i].number;
    for (uint32_t i = uses->n; i-- > 0;)
        if (uses->use[i].number <= before && covers(sync->kind, &own, &uses->use[i].stream))
            uses->use[i] = uses->use[--uses->n];
}

bool um_uses_outlive(const um_uses_t *uses, uint32_t kind, const um_uses_stream_t *own,
                     uint64_t addr, uint64_t bytes)
{
    const um_uses_stream_t *only = NULL;

    for (uint32_t i = 0; i < uses->n; i++) {
        const um_uses_stream_t *stream = &uses->use[i].stream;

        if (uses->use[i].addr >= addr + bytes || addr >= uses->use[i].end)
            continue;
        if (kind == UM_SYNC_EVENT) {
            if (only && !same(only, stream))
                return true;
            only = stream;
        } else if (!covers(kind, own, stream)) {
            return true;
        }
    }
    return false;
}

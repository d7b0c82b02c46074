/* Any trace as events: umrt's own, or one that is imported on the way. */
#include "um_tools.h"

#include <string.h>

#include "progress.h"
#include "trace/import.h"
#include "um_trace.h"

typedef struct um_reading {
    um_events_fn fn;
    void *ctx;
    um_status_t status; /* the first that fn returned */
    uint64_t events;
} um_reading_t;

static void on_event(void *ctx, const um_event_t *event)
{
    um_reading_t *reading = ctx;

    um_progress_step(++reading->events);
    if (!reading->status)
        reading->status = reading->fn(reading->ctx, event);
}

static um_status_t read_umt(um_reading_t *reading, const char *path, char *damage, char *error,
                            size_t bytes)
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    const um_trace_info_t *info;
    um_status_t status = um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, bytes);

    if (status)
        return status;
    info = um_trace_reader_info(reader);
    um_progress_begin(path, info->events);
    for (size_t i = 0; i < info->n_facts; i++)
        on_event(reading, &(um_event_t){.type = UM_EV_FACT, .u.fact = info->facts[i]});
    while (!reading->status && !(status = um_trace_reader_next(reader, &event)))
        on_event(reading, event);
    if (status == UM_ERR_TRUNCATED || status == UM_ERR_FORMAT)
        snprintf(damage, bytes, "%s", um_trace_reader_error(reader));
    if (status == UM_ERR_NOT_FOUND || *damage)
        status = UM_OK;
    else if (status && *um_trace_reader_error(reader))
        snprintf(error, bytes, "%s", um_trace_reader_error(reader));
    else if (status)
        snprintf(error, bytes, "%s: %s", path, um_status_string(status));
    um_trace_reader_close(reader);
    return status;
}

um_status_t um_events_read(const char *path, um_events_fn fn, void *ctx, char *damage, char *error,
                           size_t bytes)
{
    um_reading_t reading = {.fn = fn, .ctx = ctx};
    um_import_kind_t kind;
    um_status_t status;

    *damage = *error = '\0';
    status = um_input_check_trace(path, error, bytes);
    if (!status)
        status = um_import_recognise(path, &kind, error, bytes);
    if (status)
        return status;
    if (kind == UM_IMPORT_UMT) {
        status = read_umt(&reading, path, damage, error, bytes);
    } else {
        um_progress_begin(path, 0);
        status = um_import_file(path, on_event, &reading, error, bytes);
    }
    um_progress_end();
    return status ? status : reading.status;
}

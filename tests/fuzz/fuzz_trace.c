/* The .umt reader on arbitrary bytes, in both orders. */
#include <stdio.h>

#include "trace/reader.h"
#include "trace_check.h"
#include "trace_mend.h"

static void read_all(const uint8_t *data, size_t size, um_trace_order_t order)
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    char line[256] = "";
    um_status_t status =
        um_trace_reader_open_memory(data, size, "fuzz", order, &reader, line, sizeof(line));
    if (status != UM_OK) {
        if (strncmp(line, "fuzz: offset ", 13) != 0)
            abort();
        return;
    }
    uint64_t last_ns = 0;
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        um_touch_event(event);
        if (order == UM_TRACE_TIME_ORDER && event->time_ns < last_ns)
            abort();
        last_ns = event->time_ns;
    }
    if (um_trace_reader_next(reader, &event) != status)
        abort();
    if ((status == UM_ERR_NOT_FOUND) != (um_trace_reader_error(reader)[0] == 0))
        abort();
    um_trace_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, UM_TRACE_FILE_ORDER);
    read_all(data, size, UM_TRACE_TIME_ORDER);
    return 0;
}

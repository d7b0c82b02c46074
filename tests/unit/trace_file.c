#include <criterion/criterion.h>

#include <stdio.h>
#include <unistd.h>

#include "trace_events.h"
#include "um_trace.h"

static char path[64];

static void setup(void)
{
    snprintf(path, sizeof(path), "trace_file.%d.umt", (int)getpid());
}

static void teardown(void)
{
    unlink(path);
}

TestSuite(trace_file, .init = setup, .fini = teardown);

static um_trace_writer_t *create(const um_trace_write_options_t *options)
{
    um_trace_writer_t *writer;
    cr_assert_eq(um_trace_writer_open(path, NULL, 0, options, &writer), UM_OK);
    return writer;
}

static um_trace_reader_t *open_trace(um_trace_order_t order)
{
    char error[256] = "";
    um_trace_reader_t *reader = NULL;
    cr_assert_eq(um_trace_reader_open(path, order, &reader, error, sizeof(error)), UM_OK, "%s",
                 error);
    return reader;
}

static void put_stream(um_trace_writer_t *writer, uint64_t n)
{
    event_box_t box;
    for (uint64_t i = 0; i < n; i++) {
        stream_event(&box, i);
        cr_assert_eq(um_trace_writer_put(writer, &box.event), UM_OK);
    }
}

Test(trace_file, gives_back_every_field_of_every_type)
{
    enum { N = 20000 };
    um_trace_writer_t *writer = create(&(um_trace_write_options_t){.block_events = 777});
    put_stream(writer, N);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    um_trace_reader_t *reader = open_trace(UM_TRACE_FILE_ORDER);
    const um_event_t *event;
    event_box_t box;
    for (uint64_t i = 0; i < N; i++) {
        cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
        stream_event(&box, i);
        cr_assert(same_event(&box.event, event), "event %llu of type %s", (unsigned long long)i,
                  um_schema_table[box.event.type].name);
    }
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_ERR_NOT_FOUND);
    cr_assert_str_eq(um_trace_reader_error(reader), "");
    const um_trace_info_t *info = um_trace_reader_info(reader);
    cr_assert(info->finished);
    cr_assert_eq(info->events, N);
    cr_assert_eq(info->blocks, (N + 776) / 777);
    cr_assert_geq(info->first_ns, 1000000);
    cr_assert_lt(info->last_ns, 1000000 + N * 100 + 5000);
    um_trace_reader_close(reader);
}

/* One thread puts, the writer's thread writes, others look at the figures: for ThreadSanitizer. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "trace_events.h"
#include "um_trace.h"

typedef struct watch {
    um_trace_writer_t *writer;
    atomic_bool stop;
    uint64_t looks;
} watch_t;

/* Figures only ever grow. */
static void *look(void *arg)
{
    watch_t *watch = arg;
    um_trace_write_stats_t before = {0}, now;
    do {
        um_trace_writer_stats(watch->writer, &now);
        if (now.events < before.events || now.bytes < before.bytes || now.status != UM_OK)
            return NULL;
        before = now;
        watch->looks++;
    } while (!atomic_load(&watch->stop));
    return watch;
}

Test(trace_threads, write_and_watch_at_once)
{
    enum { N = 60000 };
    char path[64];
    event_box_t box;
    watch_t watch[2];
    pthread_t threads[2];
    um_trace_writer_t *writer;
    um_trace_write_options_t options = {.block_events = 256, .queue_blocks = 2};

    snprintf(path, sizeof(path), "trace_threads.%d.umt", (int)getpid());
    cr_assert_eq(um_trace_writer_open(path, NULL, 0, &options, &writer), UM_OK);
    for (int i = 0; i < 2; i++) {
        watch[i] = (watch_t){.writer = writer};
        cr_assert_eq(pthread_create(&threads[i], NULL, look, &watch[i]), 0);
    }
    for (uint64_t i = 0; i < N; i++) {
        stream_event(&box, i);
        cr_assert_eq(um_trace_writer_put(writer, &box.event), UM_OK);
    }
    for (int i = 0; i < 2; i++) {
        void *result;
        atomic_store(&watch[i].stop, true);
        pthread_join(threads[i], &result);
        cr_assert_not_null(result, "the figures went backwards");
        cr_assert_gt(watch[i].looks, 0);
    }
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    um_trace_reader_t *reader;
    const um_event_t *event;
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, NULL, 0), UM_OK);
    for (uint64_t i = 0; i < N; i++) {
        cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
        stream_event(&box, i);
        cr_assert(same_event(&box.event, event));
    }
    um_trace_reader_close(reader);
    unlink(path);
}

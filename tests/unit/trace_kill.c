/* kill -9 of a busy writer, 200 times: what is in the file is a prefix of what was put, in whole
 * blocks, and one line tells about the rest. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace_events.h"
#include "um_trace.h"

enum { KILLS = 200 };

/* Puts the stream for ever, in blocks of many sizes. */
static void write_for_ever(const char *path, uint64_t seed)
{
    um_trace_writer_t *writer;
    um_trace_write_options_t options = {.block_events = 256 + (uint32_t)(seed % 3) * 500};
    event_box_t box;
    if (um_trace_writer_open(path, NULL, 0, &options, &writer) != UM_OK)
        _exit(1);
    for (uint64_t i = 0;; i++) {
        stream_event(&box, i);
        if (um_trace_writer_put(writer, &box.event) != UM_OK)
            _exit(1);
        if (next_random(&seed) % 50 == 0 && um_trace_writer_flush(writer) != UM_OK)
            _exit(1);
    }
}

/* Waits until the file has so many bytes, and then a moment that nobody knows. */
static void wait_for_bytes(const char *path, off_t bytes, pid_t child, uint64_t spin)
{
    struct stat st;
    while (stat(path, &st) != 0 || st.st_size < bytes) {
        cr_assert_eq(waitpid(child, NULL, WNOHANG), 0, "the writer ended by itself");
        usleep(20);
    }
    for (volatile uint64_t i = 0; i < spin; i++)
        ;
}

/* How many events there are; every one must be the next one of the stream. */
static uint64_t check_prefix(const char *path, off_t size)
{
    char line[256] = "";
    um_trace_reader_t *reader;
    const um_event_t *event;
    event_box_t box;
    um_status_t status =
        um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, line, sizeof(line));
    if (status != UM_OK) { /* killed before the header was whole */
        cr_assert_eq(status, size ? UM_ERR_TRUNCATED : UM_ERR_FORMAT, "%s", line);
        cr_assert_eq(strncmp(line, path, strlen(path)), 0, "%s", line);
        return 0;
    }
    cr_assert_not(um_trace_reader_info(reader)->finished);
    uint64_t n = 0;
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        stream_event(&box, n++);
        cr_assert(same_event(&box.event, event), "event %llu", (unsigned long long)n - 1);
    }
    cr_assert_eq(status, UM_ERR_TRUNCATED, "%s", um_trace_reader_error(reader));
    cr_assert_eq(strncmp(um_trace_reader_error(reader), path, strlen(path)), 0);
    cr_assert_null(strchr(um_trace_reader_error(reader), '\n'));
    cr_assert_eq(n, um_trace_reader_info(reader)->events, "all whole blocks");
    um_trace_reader_close(reader);
    return n;
}

Test(trace_kill, leaves_a_prefix_in_whole_blocks_200_times)
{
    char path[64];
    uint64_t random = 20240607, events = 0;
    snprintf(path, sizeof(path), "trace_kill.%d.umt", (int)getpid());
    for (int i = 0; i < KILLS; i++) {
        uint64_t seed = next_random(&random);
        off_t bytes = (off_t)(next_random(&random) % (i % 4 ? 150000 : 20000));
        pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0)
            write_for_ever(path, seed);
        wait_for_bytes(path, bytes, child, next_random(&random) % 300000);
        cr_assert_eq(kill(child, SIGKILL), 0);
        cr_assert_eq(waitpid(child, NULL, 0), child);

        struct stat st;
        cr_assert_eq(stat(path, &st), 0);
        uint64_t n = check_prefix(path, st.st_size);
        cr_assert(n > 0 || st.st_size < 30000, "%lld bytes and no event", (long long)st.st_size);
        events += n;
        unlink(path);
    }
    cr_assert_gt(events, KILLS);
}

/* A writer that cannot write: the trace ends cleanly, says so once, and the program goes on. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "core/recorder.h"
#include "trace_events.h"
#include "um_trace.h"

static char path[64];
static const um_trace_write_options_t small = {.block_events = 256, .queue_blocks = 2};

static void setup(void)
{
    snprintf(path, sizeof(path), "trace_writer.%d.umt", (int)getpid());
}

static void teardown(void)
{
    unlink(path);
}

TestSuite(trace_writer, .init = setup, .fini = teardown);

static um_trace_writer_t *create(const char *name)
{
    um_trace_writer_t *writer;
    cr_assert_eq(um_trace_writer_open(name, NULL, 0, &small, &writer), UM_OK);
    return writer;
}

/* Puts the stream until the error comes; returns how many puts there were. */
static uint64_t put_until_error(um_trace_writer_t *writer, int error)
{
    event_box_t box;
    for (uint64_t i = 0; i < 10000000; i++) {
        stream_event(&box, i);
        um_status_t status = um_trace_writer_put(writer, &box.event);
        if (status != UM_OK) {
            cr_assert_eq(status, UM_ERR_IO);
            cr_assert_eq(errno, error);
            return i + 1;
        }
    }
    cr_assert_fail("there was no error");
    return 0;
}

/* Reads the stream from its beginning; returns how far it goes. */
static uint64_t read_stream(um_status_t expected_end, const char *expected_line)
{
    char line[256];
    um_trace_reader_t *reader;
    const um_event_t *event;
    event_box_t box;
    um_status_t status;
    uint64_t n = 0;
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, line, sizeof(line)),
                 UM_OK, "%s", line);
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        stream_event(&box, n++);
        cr_assert(same_event(&box.event, event));
    }
    cr_assert_eq(status, expected_end, "%s", um_trace_reader_error(reader));
    cr_assert(strstr(um_trace_reader_error(reader), expected_line), "%s",
              um_trace_reader_error(reader));
    um_trace_reader_close(reader);
    return n;
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(trace_writer, ends_the_trace_at_a_whole_block_when_the_file_may_not_grow)
{
    um_trace_write_stats_t stats;
    event_box_t box;
    um_trace_writer_t *writer = create(path);
    limit_file_size(200000); /* SIGXFSZ has its deadly default action */
    uint64_t puts = put_until_error(writer, EFBIG);

    for (uint64_t i = 0; i < 1000; i++, puts++) {
        stream_event(&box, i);
        cr_assert_eq(um_trace_writer_put(writer, &box.event), UM_OK, "told once");
        cr_assert_eq(um_trace_writer_flush(writer), UM_OK);
    }
    um_trace_writer_stats(writer, &stats);
    cr_assert_eq(stats.status, UM_ERR_IO);
    cr_assert_eq(stats.error, EFBIG);
    cr_assert_geq(stats.dropped, 1000);
    cr_assert_eq(stats.events + stats.dropped, puts);
    cr_assert_lt(stats.bytes, 200000);
    cr_assert_eq(um_trace_writer_close(writer), UM_ERR_IO);
    cr_assert_eq(errno, EFBIG);

    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq((uint64_t)st.st_size, stats.bytes, "cut back to the last whole block");
    uint64_t n = read_stream(UM_ERR_TRUNCATED, "trace was not closed");
    cr_assert_eq(n % 256, 0);
    cr_assert_gt(n, 0);
    cr_assert_leq(n, stats.events);
    cr_assert_leq(stats.events, n + 4 * 256, "what is still on its way to being dropped");
}

static void count_line(void *ctx, int level, const char *line)
{
    (void)level;
    cr_assert(strstr(line, "File too large") && strstr(line, path), "%s", line);
    ++*(int *)ctx;
}

/* The recorder is who talks to the user: one line, whatever is put afterwards. */
Test(trace_writer, error_is_said_in_one_line_by_the_recorder)
{
    um_recorder_t *recorder;
    event_box_t box;
    int lines = 0;
    um_log_set(UM_LOG_WARN, count_line, &lines);
    cr_assert_eq(um_recorder_open(path, &recorder), UM_OK);
    um_sink_t sink = um_recorder_sink(recorder);
    limit_file_size(200000);
    for (uint64_t i = 0; i < 100000; i++) {
        stream_event(&box, i);
        sink.event(sink.ctx, &box.event);
        sink.idle(sink.ctx);
    }
    cr_assert_eq(um_recorder_close(recorder), UM_ERR_IO);
    um_recorder_free(recorder);
    cr_assert_eq(lines, 1);
    read_stream(UM_ERR_TRUNCATED, "trace was not closed");
}

Test(trace_writer, says_at_once_when_not_even_the_header_fits)
{
    um_trace_writer_t *writer = NULL;
    limit_file_size(100);
    cr_assert_eq(um_trace_writer_open(path, NULL, 0, NULL, &writer), UM_ERR_IO);
    cr_assert_eq(errno, EFBIG);
    cr_assert_null(writer);
}

Test(trace_writer, says_at_once_when_the_disk_is_full)
{
    um_trace_writer_t *writer = NULL;
    cr_assert_eq(um_trace_writer_open("/dev/full", NULL, 0, NULL, &writer), UM_ERR_IO);
    cr_assert_eq(errno, ENOSPC);
    cr_assert_null(writer);
}

Test(trace_writer, survives_a_pipe_whose_reader_went_away)
{
    int ends[2];
    char name[64];
    cr_assert_eq(pipe(ends), 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[1]);
    um_trace_writer_t *writer = create(name);
    close(ends[0]); /* SIGPIPE has its deadly default action */
    put_until_error(writer, EPIPE);
    cr_assert_eq(um_trace_writer_close(writer), UM_ERR_IO);
}

/* The descriptor of the trace file. */
static int find_descriptor(void)
{
    char link[64], target[512];
    struct stat trace, st;
    cr_assert_eq(stat(path, &trace), 0);
    for (int fd = 3; fd < 1024; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof(target)) > 0 && fstat(fd, &st) == 0 &&
            st.st_ino == trace.st_ino && st.st_dev == trace.st_dev)
            return fd;
    }
    cr_assert_fail("no descriptor");
    return -1;
}

Test(trace_writer, stays_away_from_low_descriptors)
{
    um_trace_writer_t *writer = create(path);
    cr_assert_geq(find_descriptor(), 128);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);
}

/* A program that closes every descriptor and then opens its own must not find our blocks in it. */
Test(trace_writer, never_writes_into_a_file_that_took_its_descriptor)
{
    char victim[80];
    struct stat st;
    um_trace_writer_t *writer = create(path);
    int ours = find_descriptor();
    snprintf(victim, sizeof(victim), "%s.victim", path);
    int fd = open(victim, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(dup2(fd, ours), ours);
    put_until_error(writer, EBADF);
    cr_assert_eq(um_trace_writer_close(writer), UM_ERR_IO);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq(st.st_size, 0);
    cr_assert_eq(fcntl(ours, F_GETFD), 0, "and it stays open");
    unlink(victim);
    cr_assert_eq(read_stream(UM_ERR_TRUNCATED, "trace was not closed"), 0);
}

Test(trace_writer, refuses_an_existing_file_when_asked_to)
{
    um_trace_writer_t *writer = NULL;
    um_trace_write_options_t options = {.exclusive = true};
    cr_assert_eq(um_trace_writer_close(create(path)), UM_OK);
    cr_assert_eq(um_trace_writer_open(path, NULL, 0, &options, &writer), UM_ERR_IO);
    cr_assert_eq(errno, EEXIST);
    cr_assert_eq(read_stream(UM_ERR_NOT_FOUND, ""), 0, "it is untouched");
}

Test(trace_writer, refuses_options_out_of_range)
{
    static const um_trace_write_options_t wrong[] = {{.zstd_level = -1},    {.zstd_level = 20},
                                                     {.block_events = 255}, {.block_events = 65537},
                                                     {.queue_blocks = 1},   {.queue_blocks = 257}};
    um_trace_writer_t *writer = NULL;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert_eq(um_trace_writer_open(path, NULL, 0, &wrong[i], &writer), UM_ERR_INVALID);
    cr_assert_eq(um_trace_writer_open(NULL, NULL, 0, NULL, &writer), UM_ERR_INVALID);
    cr_assert_eq(um_trace_writer_open(path, NULL, 3, NULL, &writer), UM_ERR_INVALID);
    cr_assert_eq(um_trace_writer_open("/no/such/directory/x", NULL, 0, NULL, &writer), UM_ERR_IO);
    cr_assert_eq(errno, ENOENT);
    cr_assert_neq(access(path, F_OK), 0, "nothing was created");
}

Test(trace_writer, leaves_the_file_alone_in_a_forked_child)
{
    enum { N = 1000 };
    um_trace_writer_t *writer = create(path);
    event_box_t box;
    for (uint64_t i = 0; i < N; i++) {
        stream_event(&box, i);
        cr_assert_eq(um_trace_writer_put(writer, &box.event), UM_OK);
        if (i != N / 2)
            continue;
        pid_t child = fork();
        if (child == 0) {
            int ours = find_descriptor();
            um_trace_writer_abandon(writer);
            _exit(fcntl(ours, F_GETFD) == -1 ? 17 : 1);
        }
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 17);
    }
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);
    cr_assert_eq(read_stream(UM_ERR_NOT_FOUND, ""), N);
}

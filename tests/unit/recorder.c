/* What a trace file is called, that it overwrites nothing, and that it holds what was sent. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/recorder.h"

static const um_recorder_names_t names = {.pid = 42, .rank = "7", .host = "node"};

Test(recorder, letters_of_the_pattern_are_filled_in)
{
    static const struct {
        const char *pattern;
        unsigned n;
        const char *name;
    } cases[] = {
        {"t.umt", 0, "t.umt"},
        {"t.umt", 1, "t.42.umt"},
        {"t.umt", 2, "t.42.2.umt"},
        {"out", 1, "out.42"},
        {"a.b/out", 1, "a.b/out.42"},
        {"dir/.hidden", 1, "dir/.hidden.42"},
        {"%h-%r-%p.umt", 0, "node-7-42.umt"},
        {"%h.%r", 1, "node.42.7"},
        {"100%%.umt", 0, "100%.umt"},
        {"50%", 0, "50%"},
        {"%x%p", 0, "%x42"},
    };
    char out[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(um_recorder_name(cases[i].pattern, &names, cases[i].n, out, sizeof(out)),
                     UM_OK);
        cr_assert_str_eq(out, cases[i].name);
    }
}

Test(recorder, names_that_cannot_be_are_refused)
{
    char out[8];

    cr_assert_eq(um_recorder_name("", &names, 0, out, sizeof(out)), UM_ERR_INVALID);
    cr_assert_eq(um_recorder_name("1234567", &names, 0, out, sizeof(out)), UM_OK);
    cr_assert_eq(um_recorder_name("12345678", &names, 0, out, sizeof(out)), UM_ERR_FULL);
    cr_assert_eq(um_recorder_name("%h%h", &names, 0, out, sizeof(out)), UM_ERR_FULL);
}

Test(recorder, the_rank_is_the_launchers)
{
    static const char *const variable[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                           "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < 5; i++)
        unsetenv(variable[i]);
    cr_assert_str_eq(um_recorder_rank(), "0");
    for (size_t i = 5; i-- > 0;) {
        char rank[8];

        snprintf(rank, sizeof(rank), "%zu", i + 10);
        setenv(variable[i], rank, 1);
        cr_assert_str_eq(um_recorder_rank(), rank);
    }
    setenv(variable[0], "../../etc", 1); /* goes into a file name */
    cr_assert_str_eq(um_recorder_rank(), "11");
}

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[128];

    if (!*dir) {
        snprintf(dir, sizeof(dir), "/tmp/um-recorder-XXXXXX");
        cr_assert_not_null(mkdtemp(dir));
    }
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

Test(recorder, a_second_one_takes_another_name)
{
    um_recorder_t *recorder[3];
    char want[160];
    struct stat file;

    for (int i = 0; i < 3; i++)
        cr_assert_eq(um_recorder_open(in_dir("t.umt"), &recorder[i]), UM_OK);
    cr_assert_str_eq(um_recorder_path(recorder[0]), in_dir("t.umt"));
    snprintf(want, sizeof(want), "%s/t.%ld.umt", dir, (long)getpid());
    cr_assert_str_eq(um_recorder_path(recorder[1]), want);
    snprintf(want, sizeof(want), "%s/t.%ld.2.umt", dir, (long)getpid());
    cr_assert_str_eq(um_recorder_path(recorder[2]), want);
    um_recorder_discard(recorder[2]);
    cr_assert_neq(stat(want, &file), 0);
    for (int i = 0; i < 3; i++) {
        unlink(um_recorder_path(recorder[i]));
        um_recorder_free(recorder[i]);
    }
    rmdir(dir);
}

Test(recorder, says_why_it_cannot_open)
{
    um_recorder_t *recorder;

    cr_assert_eq(um_recorder_open(in_dir("no/such/dir.umt"), &recorder), UM_ERR_IO);
    cr_assert_eq(errno, ENOENT);
    rmdir(dir);
}

Test(recorder, holds_what_the_sink_was_given)
{
    um_recorder_t *recorder;
    um_trace_reader_t *reader;
    um_trace_write_stats_t stats;
    const um_event_t *got;
    char error[256] = "", path[128];
    um_sink_t sink;
    unsigned n = 0;

    snprintf(path, sizeof(path), "%s", in_dir("t.umt"));
    cr_assert_eq(um_recorder_open(path, &recorder), UM_OK);
    sink = um_recorder_sink(recorder);
    for (unsigned i = 0; i < 1000; i++) {
        um_event_t event = {.type = UM_EV_MARK, .time_ns = 1000 + i};

        event.u.mark = (um_ev_mark_t){.kind = UM_MARK_INSTANT, .domain = "test", .name = "x"};
        sink.event(sink.ctx, &event);
        sink.idle(sink.ctx);
    }
    um_recorder_stats(recorder, &stats);
    cr_assert_eq(stats.events, 1000);
    cr_assert_eq(um_recorder_close(recorder), UM_OK);
    um_recorder_stats(recorder, &stats);
    cr_assert_eq(stats.events, 1000);
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, error, sizeof(error)),
                 UM_OK, "%s", error);
    cr_assert(um_trace_reader_info(reader)->finished);
    cr_assert_not_null(um_trace_reader_fact(reader, "process.pid"));
    while (um_trace_reader_next(reader, &got) == UM_OK)
        n += got->type == UM_EV_MARK && got->time_ns == 1000 + n;
    cr_assert_eq(n, 1000);
    um_trace_reader_close(reader);
    um_recorder_free(recorder);
    unlink(path);
    rmdir(dir);
}

#include "core/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char last[2048];
static int last_level, lines;

static void keep(void *ctx, int level, const char *line)
{
    snprintf(last, sizeof last, "%s", line);
    last_level = level;
    *(int *)ctx += 1;
}

Test(log, gives_whole_lines_to_the_callback)
{
    um_log_set(UM_LOG_INFO, keep, &lines);
    um_log(UM_LOG_INFO, "region %d of %s", 7, "a\nb");
    cr_assert_str_eq(last, "umrt: region 7 of a b", "one line stays one line");
    cr_assert_eq(last_level, UM_LOG_INFO);
}

static int evaluated;

static int evaluate(void)
{
    return ++evaluated;
}

Test(log, formats_nothing_below_the_level)
{
    um_log_set(UM_LOG_WARN, keep, &lines);
    um_log(UM_LOG_INFO, "%d", evaluate());
    cr_assert_eq(evaluated, 0);
    cr_assert_eq(lines, 0);
    cr_assert(um_log_on(UM_LOG_ERROR) && um_log_on(UM_LOG_WARN) && !um_log_on(UM_LOG_INFO));
    um_log(UM_LOG_WARN, "%d", evaluate());
    cr_assert_eq(lines, 1);
}

Test(log, says_a_line_of_one_place_once)
{
    um_log_set(UM_LOG_WARN, keep, &lines);
    for (int i = 0; i < 5; i++) {
        um_log_once(UM_LOG_INFO, "below the level: not said, and not used up");
        um_log_once(UM_LOG_WARN, "%d", i);
    }
    cr_assert_eq(lines, 1);
    cr_assert_str_eq(last, "umrt: 0");
}

Test(log, cuts_long_lines_and_says_so)
{
    char text[3000];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    um_log_set(UM_LOG_WARN, keep, &lines);
    um_log(UM_LOG_WARN, "%s", text);
    cr_assert_lt(strlen(last), 1024);
    cr_assert_str_eq(last + strlen(last) - 3, "...");
}

Test(log, leaves_errno_alone)
{
    um_log_set(UM_LOG_WARN, keep, &lines);
    errno = ENOSPC;
    um_log(UM_LOG_WARN, "trace");
    cr_assert_eq(errno, ENOSPC);
    cr_assert_eq(lines, 1);
}

Test(log, writes_one_line_to_stderr)
{
    char text[256] = "";
    int fd[2], saved = dup(STDERR_FILENO);

    cr_assert_eq(pipe(fd), 0);
    dup2(fd[1], STDERR_FILENO);
    um_log(UM_LOG_ERROR, "no driver");
    dup2(saved, STDERR_FILENO);
    cr_assert_gt(read(fd[0], text, sizeof text - 1), 0);
    cr_assert_str_eq(text, "umrt: no driver\n");
}

/* In a child, so that a death by SIGPIPE is seen as one. */
static int child_status(void (*run)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        run();
        _exit(42);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void log_to_closed(void)
{
    close(STDERR_FILENO);
    errno = EDOM;
    um_log(UM_LOG_ERROR, "nobody hears");
    if (errno != EDOM)
        _exit(1);
}

static void log_to_broken_pipe(void)
{
    sigset_t pending;
    int fd[2];

    signal(SIGPIPE, SIG_DFL);
    if (pipe(fd) != 0)
        _exit(1);
    dup2(fd[1], STDERR_FILENO);
    close(fd[0]);
    um_log(UM_LOG_ERROR, "nobody hears");
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE))
        _exit(2);
}

Test(log, survives_a_stderr_that_is_closed_or_broken)
{
    int status = child_status(log_to_closed);

    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    status = child_status(log_to_broken_pipe);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

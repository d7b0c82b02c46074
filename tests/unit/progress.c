/* The bar on stderr: on a terminal, after a while, gone at the end; nowhere else. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/progress.h"

static char seen[65536];
static size_t n_seen;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* stderr becomes a terminal of this width; the other end. */
static int terminal(unsigned short columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

    cr_assert_geq(master, 0);
    cr_assert_eq(grantpt(master), 0);
    cr_assert_eq(unlockpt(master), 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    cr_assert_geq(slave, 0);
    cr_assert_eq(ioctl(slave, TIOCSWINSZ, &size), 0);
    dup2(slave, STDERR_FILENO);
    return master;
}

static bool take(int fd, int wait_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t n;

    if (poll(&ready, 1, wait_ms) <= 0)
        return false;
    n = read(fd, seen + n_seen, sizeof seen - 1 - n_seen);
    n_seen += n > 0 ? (size_t)n : 0;
    seen[n_seen] = '\0';
    return n > 0;
}

/* Until it has been drawn once. */
static void step_until_drawn(int fd, uint64_t done)
{
    while (n_seen == 0) {
        um_progress_step(done);
        take(fd, 0);
    }
}

static void end(int fd)
{
    um_progress_end();
    while (n_seen < 4 || strcmp(seen + n_seen - 4, "\r\033[K") != 0)
        cr_assert(take(fd, 60000), "%s", seen);
}

static void shows(const char *what, uint64_t all, uint64_t done, const char *expected)
{
    int fd = terminal(120);

    um_progress_begin(what, all);
    step_until_drawn(fd, done);
    cr_assert_not_null(strstr(seen, expected), "%s", seen);
    end(fd);
}

Test(progress, draws_a_bar_and_takes_it_away)
{
    shows("t.umt", 1000000, 500000, "[###############...............]  50 %  t.umt");
}

Test(progress, counts_where_nobody_knows_the_end)
{
    shows("a.log", 0, 12345, "a.log  12,345");
}

Test(progress, is_never_more_than_all)
{
    shows("t.umt", 10, 11, "100 %");
}

Test(progress, keeps_to_one_line_and_to_plain_characters)
{
    int fd = terminal(70);
    const char *line; /* the last: where the terminal is slow it is drawn again */
    char name[300];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    name[0] = '\033';
    name[1] = '\n';
    um_progress_begin(name, 100);
    step_until_drawn(fd, 1);
    cr_assert_null(strchr(seen, '\n'));
    line = strrchr(seen, '\r');
    cr_assert_not_null(line);
    cr_assert_eq(strcspn(line + 1, "\033"), strlen(line + 1) - 3, "%s", seen); /* ours alone */
    cr_assert_lt(strlen(line), 70 + 5);
    end(fd);
}

/* As long as it takes on a terminal for something to be drawn, and longer. */
Test(progress, says_nothing_in_a_pipe)
{
    uint64_t start = now_ns();
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    um_progress_begin("t.umt", 100);
    for (uint64_t i = 0; now_ns() - start < 700000000; i++)
        um_progress_step(i % 100);
    um_progress_end();
    cr_assert_not(take(ends[0], 0));
}

Test(progress, says_nothing_of_what_is_short)
{
    int fd = terminal(80);
    uint64_t start = now_ns();

    um_progress_begin("t.umt", 2);
    um_progress_step(1);
    um_progress_step(2);
    um_progress_end();
    um_progress_end();
    if (now_ns() - start < 500000000) /* it was short */
        cr_assert_not(take(fd, 50));
}

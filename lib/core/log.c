#include "log.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UM_LINE_BYTES 1024

static _Atomic int um_log_threshold = UM_LOG_WARN;

/* Where lines go. fn and ctx belong together: `version` is odd while one is being changed. */
static struct {
    _Atomic unsigned version;
    _Atomic(um_log_fn) fn;
    _Atomic(void *) ctx;
} um_log_to;

void um_log_set(um_log_level_t threshold, um_log_fn fn, void *ctx)
{
    unsigned version;

    do {
        version = atomic_load(&um_log_to.version) & ~1u;
    } while (!atomic_compare_exchange_weak(&um_log_to.version, &version, version + 1));
    atomic_store(&um_log_to.fn, fn);
    atomic_store(&um_log_to.ctx, ctx);
    atomic_store(&um_log_to.version, version + 2);
    atomic_store_explicit(&um_log_threshold, (int)threshold, memory_order_relaxed);
}

bool um_log_on(um_log_level_t level)
{
    return (int)level <= atomic_load_explicit(&um_log_threshold, memory_order_relaxed);
}

static um_log_fn um_log_target(void **ctx)
{
    for (;;) {
        unsigned version = atomic_load(&um_log_to.version);
        um_log_fn fn = atomic_load(&um_log_to.fn);

        *ctx = atomic_load(&um_log_to.ctx);
        if ((version & 1) == 0 && atomic_load(&um_log_to.version) == version)
            return fn;
        sched_yield();
    }
}

/* One write(2), so that lines of several threads do not mix. A reader that closed the other end of
 * the pipe must not kill the program for a line of ours: SIGPIPE is held off and eaten. */
void um_log_write(const char *line, size_t bytes)
{
    const struct timespec at_once = {0, 0};
    sigset_t pipe_only, before, pending;
    bool was_pending;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    if (write(STDERR_FILENO, line, bytes) < 0 && errno == EPIPE && !was_pending)
        while (sigtimedwait(&pipe_only, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void um_log_line(um_log_level_t level, const char *format, ...)
{
    static const char prefix[] = "umrt: ";
    const size_t start = sizeof prefix - 1;
    char line[UM_LINE_BYTES];
    int saved = errno;
    void *ctx;
    um_log_fn fn;
    va_list args;
    size_t end;
    int n;

    memcpy(line, prefix, start);
    va_start(args, format);
    n = vsnprintf(line + start, sizeof line - start - 1, format, args);
    va_end(args);
    if (n < 0)
        goto out;
    end = start + (size_t)n;
    if (end > sizeof line - 2) {
        end = sizeof line - 2;
        memcpy(line + end - 3, "...", 3);
    }
    for (size_t i = start; i < end; i++) /* one line stays one line, whatever a name contains */
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    fn = um_log_target(&ctx);
    if (fn != NULL) {
        line[end] = '\0';
        fn(ctx, (int)level, line);
    } else {
        line[end] = '\n';
        um_log_write(line, end + 1);
    }
out:
    errno = saved;
}

/*
 * log.h - one line at a time to stderr or to the user's callback.
 *
 * Lines are lower case, name the thing and its exact cause, and start "umrt: ". The level is checked
 * before anything is formatted. A line already said is not said again (um_log_once).
 * A line is cut at 1 KiB. Any thread; takes no lock that a caller could hold; never changes errno;
 * a closed stderr, or one whose reader went away, is nothing to the program.
 */
#ifndef UM_LOG_H
#define UM_LOG_H

#include "um_runtime.h"

#include <stdatomic.h>
#include <stddef.h>

typedef enum um_log_level {
    UM_LOG_ERROR = 0,
    UM_LOG_WARN = 1, /* default threshold */
    UM_LOG_INFO = 2,
    UM_LOG_DEBUG = 3
} um_log_level_t;

void um_log_set(um_log_level_t threshold, um_log_fn fn, void *ctx); /* fn NULL = stderr */
bool um_log_on(um_log_level_t level);
void um_log_line(um_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The bytes as they are, in one write to stderr; a reader that went away does not kill the program. */
void um_log_write(const char *line, size_t bytes);

#define um_log(level, ...)                                                                         \
    do {                                                                                           \
        if (um_log_on(level))                                                                      \
            um_log_line((level), __VA_ARGS__);                                                     \
    } while (0)

/* Says it the first time this place is reached, whatever the arguments. */
#define um_log_once(level, ...)                                                                    \
    do {                                                                                           \
        static atomic_flag um_said = ATOMIC_FLAG_INIT;                                             \
        if (um_log_on(level) && !atomic_flag_test_and_set(&um_said))                               \
            um_log_line((level), __VA_ARGS__);                                                     \
    } while (0)

#endif

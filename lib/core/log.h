/*
 * log.h - one line at a time to stderr or to the user's callback.
 *
 * Lines are lower case, name the thing and its exact cause, and start "umrt: ". The level is checked
 * before anything is formatted. A line already said is not said again (um_log_once).
 * Any thread; takes no lock that a caller could hold; never changes errno.
 */
#ifndef UM_LOG_H
#define UM_LOG_H

#include "um_runtime.h"

typedef enum um_log_level {
    UM_LOG_ERROR = 0,
    UM_LOG_WARN = 1, /* default threshold */
    UM_LOG_INFO = 2,
    UM_LOG_DEBUG = 3
} um_log_level_t;

void um_log_set(um_log_level_t threshold, um_log_fn fn, void *ctx); /* fn NULL = stderr */
bool um_log_on(um_log_level_t level);
void um_log_line(um_log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define um_log(level, ...)                                                                         \
    do {                                                                                           \
        if (um_log_on(level))                                                                      \
            um_log_line((level), __VA_ARGS__);                                                     \
    } while (0)

/* Says it the first time this place is reached, whatever the arguments. */
#define um_log_once(level, ...)                                                                    \
    do {                                                                                           \
        static _Atomic bool um_said;                                                               \
        if (um_log_on(level) && !__atomic_exchange_n(&um_said, true, __ATOMIC_RELAXED))            \
            um_log_line((level), __VA_ARGS__);                                                     \
    } while (0)

#endif

/*
 * limits.h - from where on something is worth a finding: every threshold of every kind, in one table.
 */
#ifndef UM_LIMITS_H
#define UM_LIMITS_H

#include "um_event.h"

typedef struct um_limits { /* counts, bytes, ns or per cent: the table says which */
    uint64_t ping_pong_small_bytes, ping_pong_running_percent;
    uint64_t storm_faults, storm_ns, dense_percent;
    uint64_t churn_allocations;
    uint64_t copy_trips, copy_bytes, copy_ns;
    uint64_t evicted_bytes, cyclic_percent;
    uint64_t location_launches, location_cpu_faults;
    uint64_t once_bytes, once_percent, once_launches;
    uint64_t pinned_percent;
    uint64_t pool_allocations;
    uint64_t bounce_moves;
    uint64_t held_percent;
    uint64_t hint_bytes, hint_percent, hint_faults, advice_calls;
    uint64_t win_percent;
} um_limits_t;

typedef struct um_limit {
    const char *name; /* "first-touch.faults": a kind's name, or "all", and a word */
    size_t offset;    /* in um_limits_t */
    uint64_t fallback, most;
    const char *doc; /* one line, with the unit */
} um_limit_t;

extern const um_limit_t um_limit_table[]; /* ends with name == NULL */
extern const um_limits_t um_limits_default;

/* "NAME=VALUE". UM_ERR_NOT_FOUND: no such name; UM_ERR_INVALID: not a number, or above the most. */
um_status_t um_limits_set(um_limits_t *limits, const char *text);
uint64_t um_limit_value(const um_limits_t *limits, const um_limit_t *limit);

#endif

/*
 * guard.h - does hinting win? What is hinted is held against its own withheld baseline.
 *
 * A place is a launch that comes again (its kernel, grid and the roles of its regions) or a wait that
 * does (by the kernel launched last before it). A group is what one advisor proposes at one place. A
 * round of a place goes from one occurrence to the next that has a wait before it, and so holds whatever
 * the hint made faster or slower, the CPU's part too. Now and then one group, and never two at a time,
 * is withheld for a round, and held against the rounds right before it: a program whose rounds grow shorter or longer
 * by themselves does not mislead it. The median of these differences is what a group is judged by.
 *
 * Withholding is paid for: the time that it is expected to cost (by bytes at first, as measured later)
 * must fit in a small share of the time that has passed. So what is cheap to try is tried early, and what
 * is dear is tried in long runs only. A group that surely gains less than 1 % of its round is given up, but for a rare
 * second look. Advice stays in force and cannot be withheld for a round: its baseline is the rounds
 * before it, how the program moves by itself is part of the error, and when it does not win it is taken back.
 * Verdicts are kept for other runs; one that no run comes to again is forgotten after a few.
 *
 * Threads that launch side by side (teams.h) have their own places: a round is one thread's. Each is judged by
 * itself, and what loses in one is given up in all. But what they save at once does not add up to time that
 * the program saves, and nothing is said about that then.
 *
 * Times come from events; nothing here reads a clock.
 *
 * Threads: the one that feeds it; um_guard_stats from any.
 */
#ifndef UM_GUARD_H
#define UM_GUARD_H

#include "um_advisor.h"

#define UM_GUARD_ADVISORS 16u /* at most */

typedef struct um_guard um_guard_t;

typedef struct um_guard_config {
    uint32_t budget_per_mille; /* of the time passed that withheld rounds may cost; 0 = none */
    bool trial;                /* every other round is withheld, whatever it costs */
    const char *advisor[UM_GUARD_ADVISORS]; /* names (static), by index */
} um_guard_config_t;

um_status_t um_guard_new(const um_guard_config_t *config, um_guard_t **out);
void um_guard_free(um_guard_t *guard); /* NULL is fine */

/* Every event, a LAUNCH or SYNC before it is decided about. Guard's own LEARNED bring verdicts. */
void um_guard_observe(um_guard_t *guard, const um_event_t *event);

/* The advisors that may propose at the launch or the entry of the wait that was observed last: bit i
 * = config.advisor[i]. */
uint32_t um_guard_allowed(um_guard_t *guard);
/* Could that be taken back, if it lost? Advice that could not must not be given. */
bool um_guard_takes(um_guard_t *guard, unsigned advisor, const um_hint_t *hint);
/* The gate has admitted a proposal of theirs there. */
void um_guard_admitted(um_guard_t *guard, unsigned advisor, const um_hint_t *hint);
/* Advice that has lost: the hint that takes it back, and whose it was. False when there is no more. */
bool um_guard_take_back(um_guard_t *guard, um_hint_t *out, unsigned *advisor);

/* The verdicts as LEARNED events. */
void um_guard_learned(um_guard_t *guard, um_event_fn emit, void *ctx);

/* Of all groups, since the start. */
typedef struct um_guard_stats {
    uint64_t groups, won, lost; /* lost: given up */
    uint64_t rounds, withheld;  /* with hints; without */
    uint32_t
        at_once;   /* so many threads launch at once: what they save cannot be measured; else 0 */
    bool measured; /* some group has rounds of both sorts; only then: */
    int64_t saved_ns;  /* over all rounds with hints; may be negative */
    uint64_t error_ns; /* one standard error of that */
} um_guard_stats_t;
void um_guard_stats(const um_guard_t *guard, um_guard_stats_t *out);

#endif

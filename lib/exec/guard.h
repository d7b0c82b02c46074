/*
 * guard.h - does hinting win? Each group of hints is held against its own withheld baseline.
 *
 * A group is what one advisor proposes for one repeated place of the program: a launch (its kernel, grid
 * and the roles of its regions), or a wait. The program's time is cut into rounds: from a place to its
 * next occurrence, which holds everything that the hint may have made faster or slower, the CPU's part
 * as well. Now and then a group is withheld for whole rounds and their time compared. How often is a
 * matter of what it may cost: withholding is paid for out of a small share of the time that has passed.
 *
 * What bears it out or not without a trial is counted as well: pages brought to the GPU that the CPU took
 * back before a kernel had them are a loss that nobody has to measure.
 *
 * Verdicts, once reached, are kept: lost groups are not proposed again (but for a rare second look),
 * won ones are tried ever more seldom. Times come from events; nothing here reads a clock.
 *
 * Threads: the one that feeds it; um_guard_stats from any.
 */
#ifndef UM_GUARD_H
#define UM_GUARD_H

#include "um_advisor.h"

typedef struct um_guard um_guard_t;

typedef struct um_guard_config {
    uint32_t
        budget_per_mille; /* of the run's time that withheld rounds may cost, 0 = never withheld */
    uint64_t seed;        /* which rounds are withheld */
    bool trial;           /* UM_MODE_TRIAL: every other round, whatever it costs */
} um_guard_config_t;

um_status_t um_guard_new(const um_guard_config_t *config, um_guard_t **out);
void um_guard_free(um_guard_t *guard); /* NULL is fine */

/* Every event; LAUNCH and SYNC before the decision about them. LEARNED of "guard" brings verdicts. */
void um_guard_observe(um_guard_t *guard, const um_event_t *event);

/* May the advisor of that name propose for the launch or wait that was observed last? `reversible`: what it
 * proposes is undone by the next access; advice is not. */
bool um_guard_allows(um_guard_t *guard, const char *advisor);
/* It was allowed to, and so much was admitted by the gate. */
void um_guard_admitted(um_guard_t *guard, const char *advisor, uint64_t bytes);

/* The verdicts as LEARNED events. */
void um_guard_learned(const um_guard_t *guard, um_event_fn emit, void *ctx);

/* All groups of the run. Nanoseconds; a difference and its standard error. */
typedef struct um_guard_stats {
    uint64_t groups, won, lost; /* lost: given up */
    uint64_t rounds, withheld;  /* compared */
    int64_t saved_ns;           /* over the run, by the withheld rounds; may be negative */
    uint64_t error_ns;          /* of that: one standard error */
    bool measured;              /* some group had rounds of both sorts: the two above hold */
} um_guard_stats_t;
void um_guard_stats(const um_guard_t *guard, um_guard_stats_t *out);

#endif

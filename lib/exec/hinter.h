/*
 * hinter.h - the hint loop: events in, hints out.
 *
 * A sink of the bus. A LAUNCH is looked at stretch by stretch (um_advisor.h): the model says where the
 * bytes are, each advisor proposes, the gate checks and the executor acts while the next stretch is
 * looked at. At the entry of a SYNC each advisor is asked once more, for what the CPU will want after it;
 * that is held until the SYNC's exit and then moves while the CPU already reads (workers.h), unless a
 * kernel that the SYNC does not wait for may be at work on it (uses.h) or a new launch takes it meanwhile.
 * What became of a hint comes back as a HINT event.
 *
 * Threads: the bus thread, but for what is said below.
 */
#ifndef UM_HINTER_H
#define UM_HINTER_H

#include "core/bus.h"
#include "gate.h"
#include "guard.h"
#include "model/residency.h"

typedef struct um_hinter um_hinter_t;

typedef struct um_hinter_config {
    const um_regions_t *regions;
    um_executor_t *executor;              /* not owned; its `done` is taken over */
    const um_page_tables_t *page_tables;  /* copied; NULL = cannot be asked */
    const um_advisor_ops_t *const *table; /* NULL = um_advisor_table */
    const char *advisors;     /* comma list of names, "all" = the whole table; NULL or "" =
                             UM_ADVISORS_DEFAULT out of um_advisor_table, all of another table */
    uint32_t guard_per_mille; /* um_guard_config_t; 0 without guard_trial = no guard at all */
    bool guard_trial;
    um_gate_config_t gate; /* regions, executor and device_bytes are filled in */
    um_event_fn post;      /* where HINT outcomes go; any thread; they must come back as events */
    void *post_ctx;
    _Atomic bool *hinting; /* kept: may a managed launch need a hint at once? may be NULL */
    _Atomic bool *waiting; /* kept: has something been wanted at one of the last waits? likewise */
} um_hinter_config_t;

um_status_t um_hinter_new(const um_hinter_config_t *config, um_hinter_t **out);
um_sink_t um_hinter_sink(um_hinter_t *hinter);
void um_hinter_free(um_hinter_t *hinter); /* NULL is fine; executor stopped, bus stopped */

/* Any thread; see um_gate_region_going and um_gate_context_going. */
void um_hinter_region_going(um_hinter_t *hinter, uint64_t addr, uint64_t now_ns);
void um_hinter_context_going(um_hinter_t *hinter, uint32_t context, uint64_t now_ns);

/* All that the advisors and the model know and that would hold in another run, as LEARNED events. On the
 * bus thread, or once the bus has stopped. */
void um_hinter_learned(const um_hinter_t *hinter, um_event_fn fn, void *ctx);

/* What each advisor did so far; writes at most max, returns how many. On the bus thread, or once the bus
 * has stopped. */
typedef struct um_account um_account_t; /* view.h */
size_t um_hinter_accounts(const um_hinter_t *hinter, um_account_t *out, size_t max);

/* Adds the bytes of a managed region by um_where_t, as far as known without asking anybody; false: there is
 * none of that id. On the bus thread between events, or once the bus has stopped. */
bool um_hinter_where(const um_hinter_t *hinter, uint32_t region, uint64_t *bytes);

typedef struct um_hinter_stats {
    um_gate_stats_t gate;
    um_guard_stats_t guard;
    uint64_t hinted_launches; /* at least one piece was admitted for them */
    uint64_t declined;        /* arguments that advisors left alone on purpose */
    const char *
        no_hints; /* why nobody gives or takes hints here, NULL = a GPU takes them or none was seen */
} um_hinter_stats_t;
void um_hinter_stats(const um_hinter_t *hinter, um_hinter_stats_t *out); /* any thread */

#endif

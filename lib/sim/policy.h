/*
 * policy.h - who gives the hints in a simulation. One table; the only place to add a policy.
 */
#ifndef UM_POLICY_H
#define UM_POLICY_H

#include "um_advisor.h"

typedef struct um_policy {
    const char *name;
    const char *doc;      /* one line */
    bool tree_prefetch;   /* the driver's own prefetcher is on */
    bool app_hints;       /* the program's own hints are carried out */
    bool oracle;          /* hints come from the future (oracle.c) */
    bool again;           /* it is the second run: with what the first one learned */
    const char *advisors; /* comma list out of `table`, NULL = none */
    const um_advisor_ops_t *const *table;
} um_policy_t;

/* none, driver, app, static, deepum, oracle, first_touch, ahead, readback, read_mostly, calm,
 * placement, lookahead, evict;
 * "run": those that `umrt run` asks without options (UM_ADVISORS_DEFAULT, the one list of them); "umrt": all of
 * them together, as with --advisors=all. Nothing is withheld to be measured (exec/guard.h). Ends with name == NULL. */
extern const um_policy_t um_policies[];

const um_policy_t *um_policy_find(const char *name); /* NULL = there is none */

/* Several advisors together, "A+B+...": each one of um_advisor_table, or "run". "again" among them: told what the same
 * have learned in a run before. In one piece of memory, the caller's to free; NULL = no such advisor, or no
 * memory. */
um_policy_t *um_policy_join(const char *name);

/* Baselines that are advisors but not umrt's own: static, deepum. Ends with NULL. */
extern const um_advisor_ops_t *const um_baseline_table[];

#endif

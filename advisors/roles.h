/*
 * roles.h - what an advisor has found out about the regions of a role, in this run and in others.
 *
 * A role is an allocation site and size (um_region_role). Of each there is one finding: a few values, and how many
 * observations are behind them. Bounded and allocation-free.
 */
#ifndef UM_ROLES_H
#define UM_ROLES_H

#include "um_event.h"

#define UM_ROLES 256u /* by role modulo this: the latest ones */

/* Whether it wins to keep regions of the role with the CPU. */
typedef enum um_verdict { UM_VERDICT_NONE = 0, UM_WINS = 1, UM_LOSES = 2 } um_verdict_t;

typedef struct um_role {
    uint64_t role;
    uint64_t count; /* 0 = nothing is known; such a finding is not told */
    union {
        uint64_t value[UM_LEARNED_VALUES]; /* as they are told */
        struct {
            uint64_t verdict;    /* um_verdict_t */
            uint64_t first, end; /* offsets of what is kept */
            union {
                uint64_t gpu_first;   /* calm: the GPU was the first to touch it */
                uint64_t ns_per_take; /* placement: without */
            };
        };
        struct {               /* ahead */
            uint64_t launches; /* from its coming to the GPU to the CPU's taking it back */
            uint64_t backs;    /* times that it has */
        };
    };
} um_role_t;

typedef struct um_roles {
    um_role_t role[UM_ROLES];
} um_roles_t;

/* NULL = nothing is known. */
const um_role_t *um_roles_find(const um_roles_t *roles, uint64_t role);
/* What is to be written: empty where the role was not there, in the place of another. */
um_role_t *um_roles_entry(um_roles_t *roles, uint64_t role);
/* The same with this verdict, once more or as the first; the other values are for the caller to fill in. */
um_role_t *um_roles_conclude(um_roles_t *roles, uint64_t role, um_verdict_t verdict);

/* What was told in another run; NULL = it is not this advisor's. Of a verdict what makes no sense is passed over. */
um_role_t *um_roles_learn(um_roles_t *roles, const um_ev_learned_t *learned, const char *who,
                          const char *what);
void um_roles_learn_verdict(um_roles_t *roles, const um_ev_learned_t *learned, const char *who,
                            const char *what);
/* Tells all of it. */
void um_roles_tell(const um_roles_t *roles, const char *what, um_event_fn emit, void *ctx);

#endif

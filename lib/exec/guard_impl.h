/*
 * guard_impl.h - what the parts of the guard share; nobody else includes it.
 *
 *   guard.c          rounds, and what is concluded from them
 *   guard_places.c   places, and what is known of them from other teams and runs
 */
#ifndef UM_GUARD_IMPL_H
#define UM_GUARD_IMPL_H

#include <pthread.h>

#include "guard.h"
#include "in_force.h"
#include "samples.h"
#include "teams.h"

#define UM_GUARD_PLACES 4096u
#define UM_GUARD_NAMES  4096u /* regions and kernels known by id modulo this: the latest ones */

typedef enum um_guard_verdict {
    UM_GUARD_OPEN = 0,
    UM_GUARD_WON = 1,
    UM_GUARD_LOST = 2
} um_guard_verdict_t;

typedef struct um_guard_group {
    um_samples_t with, without;
    um_samples_t
        extra; /* what a round without took longer than those with right before it, or the other way
                               round at a second look; not of advice, of which nothing is withheld */
    uint64_t rounds;        /* with hints */
    uint64_t bytes, before; /* admitted in this round and in the last one that had any */
    uint32_t verdict;       /* um_guard_verdict_t */
    bool judged;            /* by what was measured in this run */
    uint32_t since, pause;  /* rounds since the last one without, or since it was lost; and how many
                                there have to be */
    bool advice, in_force;  /* it advises; all through this round something is in force */
    um_in_force_t back;     /* few groups give any */
} um_guard_group_t;

typedef struct um_guard_place {
    uint64_t key;   /* 0 = free */
    uint64_t shape; /* the same in every team */
    uint64_t used;
    uint64_t start_ns, waits, serial, launches; /* of its round */
    uint32_t team;
    uint32_t rounds;         /* that have ended */
    uint32_t withheld, lost; /* bits of advisors: in this round; given up */
    um_samples_t all;        /* rounds with nothing withheld */
    um_guard_group_t *group[UM_GUARD_ADVISORS];
    struct um_guard_place *next_advised; /* they have, or had, something in force */
    bool is_advised;
} um_guard_place_t;

/* A verdict of an earlier run. */
typedef struct um_guard_told {
    uint64_t shape;
    uint32_t advisor, verdict;
} um_guard_told_t;

typedef struct um_guard_name {
    uint32_t id;
    uint64_t key;
    uint64_t bytes; /* of a region */
} um_guard_name_t;

struct um_guard {
    um_guard_config_t config;
    uint32_t all; /* bits of the advisors there are */
    um_guard_name_t role[UM_GUARD_NAMES], kernel[UM_GUARD_NAMES];
    um_teams_t teams;
    struct {
        uint64_t last_kernel; /* its key */
        uint64_t serial; /* moves whenever `trying` comes to be, or ceases to be, in this team */
    } team[UM_TEAMS];
    uint64_t last_ns;   /* of the event before */
    uint64_t passed_ns; /* of the time of all teams */
    uint32_t beside;    /* teams that launched in the round that ended last, at least 1 */
    uint64_t occurrences;
    uint64_t alone, shared; /* rounds with hints: no other team has launched meanwhile; some has */
    uint32_t at_once;       /* of those, the most teams */
    um_guard_place_t *now;  /* where the program is; NULL = nowhere that counts */
    um_guard_place_t *advised; /* first of a list */
    um_guard_place_t *trying;  /* the one that has something withheld in its round */
    int64_t spent_ns;          /* by withholding */
    uint32_t n_back;           /* of all groups */
    bool advice_lost;          /* some group has advice that is to be taken back */
    um_guard_told_t *told;
    size_t n_told, told_room;
    um_guard_place_t place[UM_GUARD_PLACES];

    pthread_mutex_t lock; /* of everything: statistics are asked for by any thread */
};

/* ---- guard_places.c; with the lock held, or when nobody else is left ---- */

/* 0 = not known. */
uint64_t um_guard_named(const um_guard_name_t *table, uint32_t id);
uint64_t um_guard_key_of_kernel(const um_ev_kernel_t *kernel);
uint64_t um_guard_key_of_launch(const um_guard_t *guard, const um_ev_launch_t *launch);

/* NULL = it has not occurred, or is forgotten. */
um_guard_place_t *um_guard_place_find(um_guard_t *guard, uint64_t shape, uint32_t team);
/* Found, or made in the place of the one that has not occurred for longest. */
um_guard_place_t *um_guard_place_at(um_guard_t *guard, uint64_t shape, uint32_t team);
void um_guard_place_forget(um_guard_t *guard, um_guard_place_t *place);
/* What the advisor proposes there, found or made; NULL = there is no memory. */
um_guard_group_t *um_guard_group(um_guard_place_t *place, unsigned advisor);
/* It has lost. */
void um_guard_give_up(um_guard_t *guard, um_guard_place_t *place, unsigned advisor);
/* Nothing is withheld any more. */
void um_guard_stop_trying(um_guard_t *guard);
/* A verdict of another run. */
void um_guard_on_learned(um_guard_t *guard, const um_ev_learned_t *learned);

#endif

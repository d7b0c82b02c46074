/*
 * teams.h - which threads launch side by side, and which take turns.
 *
 * Threads that hand over to each other (a forward and a backward thread, say) are one team: the program has
 * one course, whoever walks it. One that launches while another of its team waits for the GPU walks beside it,
 * and gets a team of its own.
 *
 * A wait is its team's. What a thread waits for that has launched nothing since its last wait is the others':
 * it counts for the teams that have never waited themselves, and that of one that never launches for all.
 *
 * Threads: one.
 */
#ifndef UM_TEAMS_H
#define UM_TEAMS_H

#include "um_event.h"

#define UM_TEAMS         64u  /* more threads at once than this share */
#define UM_TEAMS_THREADS 512u /* known by id modulo this: the latest ones */

typedef struct um_teams {
    struct {
        uint64_t used;         /* number of its last launch */
        uint64_t waits;        /* with a launch before them */
        uint32_t waiting;      /* of its threads, now */
        bool launched, waited; /* since the last wait; ever */
    } team[UM_TEAMS];
    struct {
        uint32_t tid, team;
        bool known, waiting;
    } thread[UM_TEAMS_THREADS]; /* that have launched */
    uint64_t launches;
    uint32_t n, last; /* teams that there have been; the one that launched last */
} um_teams_t;

/* The team of a launch, of a wait that is entered. Below teams->n. */
uint32_t um_teams_launch(um_teams_t *teams, uint32_t tid);
uint32_t um_teams_enter(um_teams_t *teams, uint32_t tid);
void um_teams_leave(um_teams_t *teams, uint32_t tid); /* the wait is over */
/* Other teams that have launched since there had been so many launches. */
uint32_t um_teams_others(const um_teams_t *teams, uint32_t team, uint64_t launches);

#endif

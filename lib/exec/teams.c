#include "teams.h"

static bool is_known(const um_teams_t *teams, uint32_t tid)
{
    return teams->thread[tid % UM_TEAMS_THREADS].known &&
           teams->thread[tid % UM_TEAMS_THREADS].tid == tid;
}

static void set_waiting(um_teams_t *teams, uint32_t slot, bool waiting)
{
    if (teams->thread[slot].waiting == waiting)
        return;
    teams->thread[slot].waiting = waiting;
    teams->team[teams->thread[slot].team].waiting += waiting ? 1 : UINT32_MAX;
}

/* The one that has been silent for longest, a new one first. */
static uint32_t silent(const um_teams_t *teams)
{
    uint32_t best = 0;

    for (uint32_t t = 1; t < UM_TEAMS; t++)
        if (teams->team[t].used < teams->team[best].used)
            best = t;
    return best;
}

uint32_t um_teams_launch(um_teams_t *teams, uint32_t tid)
{
    uint32_t slot = tid % UM_TEAMS_THREADS, team, other;

    set_waiting(teams, slot, false); /* also where nobody said that the wait was over */
    if (!is_known(teams, tid)) {
        teams->thread[slot].tid = tid;
        teams->thread[slot].team = 0;
        teams->thread[slot].known = true;
    }
    team = teams->thread[slot].team;
    if (teams->team[team].waiting) {
        other = silent(teams);
        if (!teams->team[other].waiting)
            teams->thread[slot].team = team = other;
    }
    if (team >= teams->n)
        teams->n = team + 1;
    teams->team[team].used = ++teams->launches;
    teams->team[team].launched = true;
    return teams->last = team;
}

uint32_t um_teams_enter(um_teams_t *teams, uint32_t tid)
{
    if (!is_known(teams, tid))
        return teams->last;
    set_waiting(teams, tid % UM_TEAMS_THREADS, true);
    return teams->thread[tid % UM_TEAMS_THREADS].team;
}

static void count(um_teams_t *teams, uint32_t team)
{
    if (!teams->team[team].launched)
        return;
    teams->team[team].launched = false;
    teams->team[team].waits++;
}

void um_teams_leave(um_teams_t *teams, uint32_t tid)
{
    uint32_t slot = tid % UM_TEAMS_THREADS;
    bool known = is_known(teams, tid);

    if (known) {
        set_waiting(teams, slot, false);
        if (teams->team[teams->thread[slot].team].launched) {
            teams->team[teams->thread[slot].team].waited = true;
            count(teams, teams->thread[slot].team);
            return;
        }
    }
    for (uint32_t t = 0; t < teams->n; t++)
        if (!known || !teams->team[t].waited)
            count(teams, t);
}

uint32_t um_teams_others(const um_teams_t *teams, uint32_t team, uint64_t launches)
{
    uint32_t others = 0;

    for (uint32_t t = 0; t < teams->n; t++)
        others += t != team && teams->team[t].used > launches;
    return others;
}

#include <stdlib.h>

#include "advisors/mix.h"
#include "core/log.h"
#include "guard_impl.h"

#define ENOUGH 3u     /* rounds of a sort before anything is concluded from it */
#define BACK   16384u /* ranges of advice that can be taken back, of all groups */
#define SELDOM                                                                                     \
    4096u /* rounds; the longest pause between two without, or between two looks at what has lost */
#define GAIN   100 /* a group that surely gains less than 1/100 of its round is given up */
#define SHARED 10  /* with more than 1/10 of the rounds beside other teams' nothing sums up */

/* What it costs to leave bytes to faults instead of prefetching them, before it is measured. H200: 1 GiB
 * takes 112-136 ms by faults and 23 ms by prefetch. */
#define FAULTS_NS_PER_MIB 100000u

/* Advice has no rounds without that lie between those with: how far may the program itself have moved from the ones to
 * the others? */
static double moved(const um_guard_group_t *group)
{
    double with = um_samples_trend(&group->with), without = um_samples_trend(&group->without);
    double rounds = group->with.n - um_samples_kept(&group->with) / 2.0 +
                    um_samples_kept(&group->without) / 2.0;

    with = with < 0 ? -with : with;
    without = without < 0 ? -without : without;
    return (with > without ? with : without) * rounds;
}

/* What a round without it takes longer; false = not enough is known. */
static bool gain(const um_guard_group_t *group, uint32_t enough, int64_t *ns, double *error2)
{
    double with, without;

    if (um_samples_kept(&group->with) < enough || um_samples_kept(&group->without) < enough)
        return false;
    *ns = um_samples_median(&group->without, &without) - um_samples_median(&group->with, &with);
    if (group->advice) {
        *error2 = with + without + moved(group) * moved(group);
        return true;
    }
    if (um_samples_kept(&group->extra) < enough)
        return false;
    *ns = um_samples_median(&group->extra, error2);
    if (um_samples_kept(&group->extra) == 1) /* as good as one round is */
        *error2 = without * um_samples_kept(&group->without);
    return true;
}

/* ---- verdicts ---- */

/* What loses in one team does in all. */
static void lose(um_guard_t *guard, const um_guard_place_t *place, unsigned advisor, int64_t ns)
{
    for (uint32_t t = 0; t < guard->teams.n; t++) {
        um_guard_place_t *other = um_guard_place_find(guard, place->shape, t);

        if (other && !(other->lost >> advisor & 1))
            um_guard_give_up(guard, other, advisor);
    }
    um_log(UM_LOG_INFO, "%s is given up for one place: it %s %.3f ms a round",
           guard->config.advisor[advisor], ns < 0 ? "costs" : "gains only",
           (double)(ns < 0 ? -ns : ns) * 1e-6);
}

static void judge(um_guard_t *guard, um_guard_place_t *place, unsigned advisor)
{
    um_guard_group_t *group = place->group[advisor];
    int64_t round, error, ns;
    double error2, unused;

    /* At a second look the first round tells whether it is as it was. */
    if (!gain(group, group->verdict == UM_GUARD_LOST ? 1 : ENOUGH, &ns, &error2))
        return;
    error = 2 * (int64_t)um_samples_root(error2);
    round = um_samples_median(&group->without, &unused);
    if (ns > error) {
        group->verdict = UM_GUARD_WON;
        group->judged = true;
    } else if (ns + error < round / GAIN) {
        group->judged = true;
        if (!(place->lost >> advisor & 1))
            lose(guard, place, advisor, ns);
        return;
    }
    if (place->lost >> advisor & 1) { /* the second look says otherwise */
        place->lost &= ~(1u << advisor);
        group->since = 0;
    }
}

/* ---- rounds ---- */

/* A round with or without; what is usual at the time are those of the other sort. */
static void measure(um_guard_t *guard, um_guard_group_t *group, bool withheld, int64_t took)
{
    um_samples_t *sort = withheld ? &group->without : &group->with;
    const um_samples_t *usual = withheld ? &group->with : &group->without;

    um_samples_add(sort, took);
    if (group->advice || !um_samples_kept(usual) || (!withheld && group->verdict != UM_GUARD_LOST))
        return;
    took -= um_samples_lately(usual);
    um_samples_add(&group->extra, withheld ? took : -took);
    if (withheld)
        guard->spent_ns += took;
}

static void end_round(um_guard_t *guard, um_guard_place_t *place, uint64_t now_ns)
{
    int64_t took = (int64_t)(now_ns - place->start_ns);
    uint32_t others = um_teams_others(&guard->teams, place->team, place->launches);
    bool hinted = false;
    /* Something was withheld elsewhere meanwhile: says nothing about this place. */
    bool clean = place->serial == guard->team[place->team].serial &&
                 (!guard->trying || guard->trying == place || guard->trying->team != place->team);

    for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
        um_guard_group_t *group = place->group[a];
        bool withheld = place->withheld >> a & 1, with;

        if (!group)
            continue;
        with = group->advice ? group->in_force : group->bytes > 0;
        /* Advice that its advisor has taken back itself makes a round without. */
        withheld |= group->advice && !group->in_force && !group->back.n;
        group->in_force = group->back.n > 0 && group->verdict != UM_GUARD_LOST;
        if (with)
            group->rounds++;
        hinted |= with;
        group->since += !withheld && (with || place->lost >> a & 1);
        if (group->bytes)
            group->before = group->bytes;
        group->bytes = 0;
        /* The first round of all has more in it than the others. */
        if (!clean || !place->rounds)
            continue;
        if (group->advice && group->verdict == UM_GUARD_LOST)
            continue; /* once and for all */
        if (with || withheld) {
            measure(guard, group, withheld, took);
            judge(guard, place, a);
        } else if (place->lost >> a & 1 && !group->advice) {
            um_samples_add(&group->without, took);
        }
    }
    if (clean && place->rounds && !place->withheld)
        um_samples_add(&place->all, took);
    if (guard->trying == place)
        um_guard_stop_trying(guard);
    guard->beside = others + 1;
    guard->alone += hinted && !others;
    guard->shared += hinted && others;
    if (hinted && others >= guard->at_once)
        guard->at_once = others + 1;
    place->withheld = 0;
    place->rounds++;
}

static bool affordable(const um_guard_t *guard, const um_guard_group_t *group)
{
    int64_t budget = (int64_t)(guard->passed_ns / 1000 * guard->config.budget_per_mille);
    int64_t cost = (int64_t)(group->before * FAULTS_NS_PER_MIB >> 20);
    double unused;
    int64_t ns;

    if (gain(group, 1, &ns, &unused))
        cost = ns;
    return cost <= 0 || guard->spent_ns + cost <= budget;
}

/* Shall this round of the place go without what the advisor proposes? */
static bool withhold(const um_guard_t *guard, const um_guard_place_t *place, unsigned advisor)
{
    const um_guard_group_t *group = place->group[advisor];

    if (!group || group->advice || !group->before || place->lost >> advisor & 1)
        return false;
    if (guard->config.trial)
        return group->since > 0;
    return guard->config.budget_per_mille && um_samples_kept(&group->with) >= ENOUGH &&
           group->since >= group->pause && affordable(guard, group);
}

/* A lost group gets a round every so often in which it may hint. */
static uint32_t second_looks(um_guard_place_t *place)
{
    uint32_t bits = 0;

    for (unsigned a = 0; a < UM_GUARD_ADVISORS && place->lost; a++) {
        um_guard_group_t *group = place->group[a];

        if (!(place->lost >> a & 1) || group->advice || group->since < group->pause)
            continue;
        group->since = 0;
        group->pause = group->pause < SELDOM ? 2 * group->pause : SELDOM;
        group->with.n = group->extra.n = 0; /* what it was like then */
        bits |= 1u << a;
    }
    return bits;
}

/* Rounds with hints before the next without: known to win, ever more; known to lose, none. */
static uint32_t next_pause(const um_guard_group_t *group)
{
    double unused;
    int64_t ns;

    if (gain(group, 1, &ns, &unused) && ns < 0)
        return 0;
    if (um_samples_kept(&group->without) < ENOUGH)
        return ENOUGH;
    return group->pause < SELDOM ? 2 * group->pause + 1 : SELDOM;
}

static void begin_round(um_guard_t *guard, um_guard_place_t *place, uint64_t now_ns)
{
    place->lost &= ~second_looks(place);
    for (unsigned a = 0; a < UM_GUARD_ADVISORS && !guard->trying; a++) {
        um_guard_group_t *group = place->group[a];

        if (!withhold(guard, place, a))
            continue;
        guard->trying = place;
        guard->team[place->team].serial++;
        place->withheld = 1u << a;
        group->since = 0;
        group->pause = next_pause(group);
    }
    place->start_ns = now_ns;
    place->waits = guard->teams.team[place->team].waits;
    place->serial = guard->team[place->team].serial;
    place->launches = guard->teams.launches;
}

static void occur(um_guard_t *guard, uint64_t shape, uint32_t team, uint64_t now_ns)
{
    um_guard_place_t *place = um_guard_place_at(guard, shape, team);

    guard->now = place;
    place->used = ++guard->occurrences;
    if (place->start_ns && place->waits == guard->teams.team[team].waits)
        return; /* still in its round: nobody has waited since */
    if (place->start_ns)
        end_round(guard, place, now_ns);
    begin_round(guard, place, now_ns);
}

/* ---- advice in force ---- */

static void keep_advice(um_guard_t *guard, um_guard_place_t *place, um_guard_group_t *group,
                        const um_hint_t *hint)
{
    if (um_in_force_has(&group->back, hint) || !um_in_force_reserve(&group->back))
        return;
    if (!group->advice) {
        group->without = place->all; /* what it was like until now */
        group->with.n = 0;
        group->verdict = UM_GUARD_OPEN; /* if another run's, it has got its second look */
    }
    group->advice = true;
    um_in_force_add(&group->back, hint);
    guard->n_back++;
    if (place->is_advised)
        return;
    place->is_advised = true;
    place->next_advised = guard->advised;
    guard->advised = place;
}

/* ---- events ---- */

static void on_launch(um_guard_t *guard, const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;
    uint32_t team;

    guard->now = NULL;
    if (launch->flags & UM_LAUNCH_CAPTURED || !launch->n_args)
        return;
    team = um_teams_launch(&guard->teams, event->tid);
    guard->team[team].last_kernel = um_guard_named(guard->kernel, launch->kernel);
    occur(guard, um_guard_key_of_launch(guard, launch), team, event->time_ns);
}

static void on_sync(um_guard_t *guard, const um_event_t *event)
{
    uint32_t team;

    guard->now = NULL;
    if (event->u.sync.exit) {
        um_teams_leave(&guard->teams, event->tid);
        return;
    }
    team = um_teams_enter(&guard->teams, event->tid);
    occur(guard, um_mix(guard->team[team].last_kernel, event->u.sync.kind) | 1, team,
          event->time_ns);
}

/* What was in force in it is gone with it. */
static void on_free(um_guard_t *guard, const um_ev_region_free_t *region)
{
    const um_guard_name_t *name = &guard->role[region->region % UM_GUARD_NAMES];
    uint64_t bytes = name->id == region->region ? name->bytes : 1;

    for (um_guard_place_t *place = guard->advised; place; place = place->next_advised)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++)
            if (place->group[a])
                guard->n_back -=
                    um_in_force_drop(&place->group[a]->back, UM_HINT_NONE, region->addr, bytes);
}

void um_guard_observe(um_guard_t *guard, const um_event_t *event)
{
    pthread_mutex_lock(&guard->lock);
    if (guard->last_ns && event->time_ns > guard->last_ns)
        guard->passed_ns += (event->time_ns - guard->last_ns) * guard->beside;
    if (event->time_ns > guard->last_ns)
        guard->last_ns = event->time_ns;
    switch (event->type) {
    case UM_EV_KERNEL:
        guard->kernel[event->u.kernel.kernel % UM_GUARD_NAMES] =
            (um_guard_name_t){.id = event->u.kernel.kernel,
                              .key = um_guard_key_of_kernel(&event->u.kernel)};
        break;
    case UM_EV_REGION_ALLOC:
        guard->role[event->u.region_alloc.region % UM_GUARD_NAMES] =
            (um_guard_name_t){.id = event->u.region_alloc.region,
                              .key = um_region_role(&event->u.region_alloc),
                              .bytes = event->u.region_alloc.bytes};
        break;
    case UM_EV_REGION_FREE:
        on_free(guard, &event->u.region_free);
        break;
    case UM_EV_LAUNCH:
        on_launch(guard, event);
        break;
    case UM_EV_SYNC:
        on_sync(guard, event);
        break;
    case UM_EV_LEARNED:
        um_guard_on_learned(guard, &event->u.learned);
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&guard->lock);
}

/* ---- what the hint loop asks and tells ---- */

uint32_t um_guard_allowed(um_guard_t *guard)
{
    return guard->now ? guard->all & ~(guard->now->withheld | guard->now->lost) : guard->all;
}

bool um_guard_takes(um_guard_t *guard, unsigned advisor, const um_hint_t *hint)
{
    um_guard_group_t *group;
    bool takes;

    if (!guard->now || advisor >= UM_GUARD_ADVISORS || !um_in_force_is_advice(hint->kind))
        return true;
    pthread_mutex_lock(&guard->lock);
    group = um_guard_group(guard->now, advisor);
    takes = group && (um_in_force_has(&group->back, hint) ||
                      (guard->n_back < BACK && um_in_force_reserve(&group->back)));
    pthread_mutex_unlock(&guard->lock);
    return takes;
}

void um_guard_admitted(um_guard_t *guard, unsigned advisor, const um_hint_t *hint)
{
    um_guard_group_t *group;

    if (!guard->now || advisor >= UM_GUARD_ADVISORS)
        return;
    pthread_mutex_lock(&guard->lock);
    group = um_guard_group(guard->now, advisor);
    if (group) {
        group->bytes += hint->bytes;
        if (um_in_force_is_advice(hint->kind))
            keep_advice(guard, guard->now, group, hint);
        else if (hint->kind != UM_HINT_PREFETCH)
            guard->n_back -= um_in_force_drop(&group->back, hint->kind, hint->addr, hint->bytes);
    }
    pthread_mutex_unlock(&guard->lock);
}

bool um_guard_take_back(um_guard_t *guard, um_hint_t *out, unsigned *advisor)
{
    if (!guard->advice_lost)
        return false;
    for (const um_guard_place_t *place = guard->advised; place; place = place->next_advised)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++)
            if (place->lost >> a & 1 && place->group[a] &&
                um_in_force_next(&place->group[a]->back, out)) {
                *advisor = a;
                return true;
            }
    guard->advice_lost = false;
    return false;
}

/* ---- life ---- */

um_status_t um_guard_new(const um_guard_config_t *config, um_guard_t **out)
{
    um_guard_t *guard = calloc(1, sizeof(*guard));

    if (!guard)
        return UM_ERR_NO_MEMORY;
    guard->config = *config;
    guard->beside = 1;
    for (unsigned a = 0; a < UM_GUARD_ADVISORS && config->advisor[a]; a++)
        guard->all |= 1u << a;
    pthread_mutex_init(&guard->lock, NULL);
    *out = guard;
    return UM_OK;
}

void um_guard_free(um_guard_t *guard)
{
    if (!guard)
        return;
    for (size_t i = 0; i < UM_GUARD_PLACES; i++)
        um_guard_place_forget(guard, &guard->place[i]);
    pthread_mutex_destroy(&guard->lock);
    free(guard->told);
    free(guard);
}

void um_guard_stats(const um_guard_t *guard, um_guard_stats_t *out)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&guard->lock; /* not part of what is const */
    double variance = 0;

    *out = (um_guard_stats_t){0};
    pthread_mutex_lock(lock);
    for (size_t i = 0; i < UM_GUARD_PLACES; i++)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
            const um_guard_group_t *group = guard->place[i].group[a];
            double error2;
            int64_t ns;

            if (!group)
                continue;
            out->groups++;
            out->won += group->verdict == UM_GUARD_WON;
            out->lost += group->verdict == UM_GUARD_LOST;
            out->rounds += group->rounds;
            out->withheld += group->advice ? 0 : group->without.n;
            if (!gain(group, 1, &ns, &error2))
                continue;
            out->measured = true;
            out->saved_ns += ns * (int64_t)group->rounds;
            variance += error2 * (double)group->rounds * (double)group->rounds;
        }
    if (guard->shared * SHARED > guard->alone + guard->shared) {
        out->at_once = guard->at_once;
        out->measured = false;
        out->saved_ns = 0;
        variance = 0;
    }
    pthread_mutex_unlock(lock);
    out->error_ns = out->measured ? um_samples_root(variance) : 0;
}

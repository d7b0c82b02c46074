#include <stdlib.h>
#include <string.h>

#include "advisors/mix.h"
#include "guard_impl.h"

#define PROBES      8u
#define SECOND_LOOK 64u /* rounds after which a lost group is looked at again, doubling */
#define STALE       3u  /* runs; a verdict that none since has come to is not believed any more */
#define WHO         "guard"

/* ---- keys ---- */

uint64_t um_guard_named(const um_guard_name_t *table, uint32_t id)
{
    return table[id % UM_GUARD_NAMES].id == id ? table[id % UM_GUARD_NAMES].key : 0;
}

uint64_t um_guard_key_of_kernel(const um_ev_kernel_t *kernel)
{
    uint64_t key = kernel->module_hash;

    for (const char *c = kernel->name; *c; c++)
        key = um_mix(key, (unsigned char)*c);
    return key;
}

uint64_t um_guard_key_of_launch(const um_guard_t *guard, const um_ev_launch_t *launch)
{
    uint64_t key = um_mix(um_guard_named(guard->kernel, launch->kernel), launch->n_args);

    for (int i = 0; i < 3; i++)
        key = um_mix(key, (uint64_t)launch->grid[i] << 32 | launch->block[i]);
    for (uint32_t a = 0; a < launch->n_args; a++)
        key = um_mix(key, um_guard_named(guard->role, launch->args[a].region));
    return key | 1;
}

/* ---- places ---- */

/* Team 0's is the shape itself. */
static uint64_t key_in(uint64_t shape, uint32_t team)
{
    return team ? um_mix(shape, team) | 1 : shape;
}

um_guard_place_t *um_guard_place_find(um_guard_t *guard, uint64_t shape, uint32_t team)
{
    uint64_t key = key_in(shape, team);

    for (uint32_t i = 0; i < PROBES; i++)
        if (guard->place[(key + i) % UM_GUARD_PLACES].key == key)
            return &guard->place[(key + i) % UM_GUARD_PLACES];
    return NULL;
}

um_guard_group_t *um_guard_group(um_guard_place_t *place, unsigned advisor)
{
    if (!place->group[advisor])
        place->group[advisor] = calloc(1, sizeof(*place->group[advisor]));
    return place->group[advisor];
}

void um_guard_give_up(um_guard_t *guard, um_guard_place_t *place, unsigned advisor)
{
    um_guard_group_t *group = um_guard_group(place, advisor);

    if (!group)
        return;
    group->verdict = UM_GUARD_LOST;
    group->since = 0;
    group->pause = group->pause < SECOND_LOOK ? SECOND_LOOK : group->pause;
    group->back.taken = 0;
    guard->advice_lost |= group->back.n > 0;
    place->lost |= 1u << advisor;
}

/* What earlier runs found out about it, and other teams in this one. */
static void remember(um_guard_t *guard, um_guard_place_t *place)
{
    for (size_t i = 0; i < guard->n_told; i++) {
        const um_guard_told_t *told = &guard->told[i];
        um_guard_group_t *group;

        if (told->shape != place->shape)
            continue;
        if (told->verdict == UM_GUARD_LOST) {
            um_guard_give_up(guard, place, told->advisor);
        } else if ((group = um_guard_group(place, told->advisor))) {
            group->verdict = told->verdict;
            group->pause = SECOND_LOOK;
        }
    }
    for (uint32_t t = 0; t < guard->teams.n; t++) {
        const um_guard_place_t *other =
            t == place->team ? NULL : um_guard_place_find(guard, place->shape, t);

        for (unsigned a = 0; other && a < UM_GUARD_ADVISORS; a++)
            if (other->lost >> a & 1)
                um_guard_give_up(guard, place, a);
    }
}

void um_guard_stop_trying(um_guard_t *guard)
{
    guard->team[guard->trying->team].serial++;
    guard->trying = NULL;
}

void um_guard_place_forget(um_guard_t *guard, um_guard_place_t *place)
{
    if (guard->trying == place)
        um_guard_stop_trying(guard);
    if (guard->now == place)
        guard->now = NULL;
    for (um_guard_place_t **at = &guard->advised; *at && place->is_advised;
         at = &(*at)->next_advised)
        if (*at == place) {
            *at = place->next_advised;
            break;
        }
    for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
        if (!place->group[a])
            continue;
        guard->n_back -= place->group[a]->back.n;
        um_in_force_fini(&place->group[a]->back);
        free(place->group[a]);
    }
    *place = (um_guard_place_t){0};
}

/* One that has advice to take back is forgotten last. */
static bool is_older(const um_guard_place_t *place, const um_guard_place_t *than)
{
    return place->is_advised == than->is_advised ? place->used < than->used : than->is_advised;
}

um_guard_place_t *um_guard_place_at(um_guard_t *guard, uint64_t shape, uint32_t team)
{
    uint64_t key = key_in(shape, team);
    um_guard_place_t *oldest = um_guard_place_find(guard, shape, team);

    if (oldest)
        return oldest;
    oldest = &guard->place[key % UM_GUARD_PLACES];
    for (uint32_t i = 1; i < PROBES; i++)
        if (is_older(&guard->place[(key + i) % UM_GUARD_PLACES], oldest))
            oldest = &guard->place[(key + i) % UM_GUARD_PLACES];
    um_guard_place_forget(guard, oldest);
    oldest->key = key;
    oldest->shape = shape;
    oldest->team = team;
    remember(guard, oldest);
    return oldest;
}

/* ---- from run to run ---- */

void um_guard_on_learned(um_guard_t *guard, const um_ev_learned_t *learned)
{
    unsigned advisor = 0;

    if (strcmp(learned->who, WHO) != 0 ||
        (learned->value[0] != UM_GUARD_WON && learned->value[0] != UM_GUARD_LOST) ||
        learned->age > STALE)
        return;
    while (guard->all >> advisor & 1 && strcmp(guard->config.advisor[advisor], learned->what) != 0)
        advisor++;
    if (!(guard->all >> advisor & 1) || !learned->shape)
        return;
    if (guard->n_told == guard->told_room) {
        size_t room = guard->told_room ? 2 * guard->told_room : 64;
        um_guard_told_t *grown =
            room <= UM_GUARD_PLACES ? realloc(guard->told, room * sizeof(*grown)) : NULL;

        if (!grown)
            return;
        guard->told = grown;
        guard->told_room = room;
    }
    guard->told[guard->n_told++] = (um_guard_told_t){.shape = learned->shape,
                                                     .advisor = advisor,
                                                     .verdict = (uint32_t)learned->value[0]};
}

/* Has a team before this one come to a verdict there, too? */
static bool is_told(um_guard_t *guard, const um_guard_place_t *place, unsigned advisor)
{
    for (uint32_t t = 0; t < place->team; t++) {
        const um_guard_place_t *other = um_guard_place_find(guard, place->shape, t);

        if (other && other->group[advisor] && other->group[advisor]->judged &&
            other->group[advisor]->verdict != UM_GUARD_OPEN)
            return true;
    }
    return false;
}

void um_guard_learned(um_guard_t *guard, um_event_fn emit, void *ctx)
{
    for (size_t i = 0; i < UM_GUARD_PLACES; i++)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
            const um_guard_group_t *group = guard->place[i].group[a];
            um_event_t event = {.type = UM_EV_LEARNED};
            double unused;

            if (!group || !group->judged || group->verdict == UM_GUARD_OPEN ||
                is_told(guard, &guard->place[i], a))
                continue;
            event.u.learned = (um_ev_learned_t){.who = WHO,
                                                .what = guard->config.advisor[a],
                                                .kernel = "",
                                                .slot = UM_SLOT_NONE,
                                                .shape = guard->place[i].shape,
                                                .count = group->without.n,
                                                .value = {group->verdict}};
            if (um_samples_kept(&group->with))
                event.u.learned.value[1] = (uint64_t)um_samples_median(&group->with, &unused);
            if (um_samples_kept(&group->without))
                event.u.learned.value[2] = (uint64_t)um_samples_median(&group->without, &unused);
            emit(ctx, &event);
        }
}

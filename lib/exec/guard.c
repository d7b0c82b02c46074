#include "guard.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#define PLACES      4096u
#define PROBES      8u
#define SAMPLES     16u   /* of each sort, the latest ones */
#define ENOUGH      3u    /* rounds of a sort before anything is concluded from it */
#define NAMES       4096u /* regions and kernels known by id modulo this: the latest ones */
#define BACK        16u   /* ranges of advice that one group can take back */
#define SECOND_LOOK 64u   /* rounds after which a lost group is looked at again, doubling */
#define SELDOM      4096u /* the longest such pause */
#define GAIN        100   /* a group that surely gains less than 1/100 of its round is given up */

/* What it costs to leave bytes to faults instead of prefetching them, before it is measured. H200: 1 GiB
 * takes 112-136 ms by faults and 23 ms by prefetch. */
#define FAULTS_NS_PER_MIB 100000u

#define WHO "guard"

typedef enum verdict { OPEN = 0, WON = 1, LOST = 2 } verdict_t;

/* Durations of rounds. */
typedef struct samples {
    uint64_t ns[SAMPLES];
    uint32_t n; /* ever */
} samples_t;

typedef struct group {
    samples_t with, without;
    uint64_t rounds;        /* with hints */
    uint64_t bytes, before; /* admitted in this round and in the last one that had any */
    uint32_t verdict;       /* verdict_t */
    uint32_t since, pause;  /* rounds since the last one without, or since it was lost; and how many
                                there have to be */
    bool advice, in_force;  /* it advises; all through this round something is in force */
    uint32_t n_back, taken; /* of `back`: all, and those handed out after the group was lost */
    um_hint_t *back;        /* advice as it was admitted, BACK at most; few groups give any */
} group_t;

typedef struct place {
    uint64_t key; /* 0 = free */
    uint64_t used;
    uint64_t start_ns, waits, serial; /* of its round */
    uint32_t rounds;                  /* that have ended */
    uint32_t withheld, lost;          /* bits of advisors: in this round; given up */
    samples_t all;                    /* rounds with nothing withheld */
    group_t *group[UM_GUARD_ADVISORS];
} place_t;

/* A verdict of an earlier run. */
typedef struct told {
    uint64_t key;
    uint32_t advisor, verdict;
} told_t;

typedef struct name {
    uint32_t id;
    uint64_t key;
} name_t;

struct um_guard {
    um_guard_config_t config;
    uint32_t all; /* bits of the advisors there are */
    name_t role[NAMES], kernel[NAMES];
    uint64_t last_kernel; /* its key */
    uint64_t first_ns;
    uint64_t occurrences, waits; /* waits with a launch before them */
    bool launched;               /* since the last wait */
    place_t *now;                /* where the program is; NULL = nowhere that counts */
    place_t *trying;             /* the one that has something withheld in its round */
    uint64_t serial;             /* moves whenever that changes */
    int64_t spent_ns;            /* by withholding */
    bool advice_lost;            /* some group has advice that is to be taken back */
    told_t *told;
    size_t n_told, told_room;
    place_t place[PLACES];

    pthread_mutex_t lock; /* of everything: statistics are asked for by any thread */
};

/* ---- samples ---- */

static uint32_t kept(const samples_t *samples)
{
    return samples->n < SAMPLES ? samples->n : SAMPLES;
}

static void add(samples_t *samples, uint64_t ns)
{
    samples->ns[samples->n++ % SAMPLES] = ns;
}

static uint64_t median_of(uint64_t *ns, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && ns[k - 1] > ns[k]; k--) {
            uint64_t swap = ns[k];

            ns[k] = ns[k - 1];
            ns[k - 1] = swap;
        }
    return n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2;
}

/* The median, and the square of its standard error as the median deviation lets it be guessed. */
static uint64_t median(const samples_t *samples, double *error2)
{
    uint64_t ns[SAMPLES], middle;
    uint32_t n = kept(samples);
    double sigma;

    memcpy(ns, samples->ns, n * sizeof(ns[0]));
    middle = median_of(ns, n);
    for (uint32_t i = 0; i < n; i++)
        ns[i] = ns[i] > middle ? ns[i] - middle : middle - ns[i];
    sigma = 1.4826 * (double)median_of(ns, n);
    *error2 = 1.5708 * sigma * sigma / n;
    return middle;
}

static uint64_t root(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 64 && r * r > x; i++)
        r = (r + x / r) / 2;
    return (uint64_t)r;
}

/* What a round without it takes longer; false = not enough is known. */
static bool gain(const group_t *group, uint32_t enough, int64_t *ns, double *error2)
{
    double with, without;

    if (kept(&group->with) < enough || kept(&group->without) < enough)
        return false;
    *ns = (int64_t)median(&group->without, &without) - (int64_t)median(&group->with, &with);
    *error2 = with + without;
    return true;
}

/* ---- keys ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;

    return x ^ x >> 32;
}

static uint64_t named(const name_t *table, uint32_t id)
{
    return table[id % NAMES].id == id ? table[id % NAMES].key : 0;
}

static uint64_t key_of_kernel(const um_ev_kernel_t *kernel)
{
    uint64_t key = kernel->module_hash;

    for (const char *c = kernel->name; *c; c++)
        key = mix(key, (unsigned char)*c);
    return key;
}

static uint64_t key_of_launch(const um_guard_t *guard, const um_ev_launch_t *launch)
{
    uint64_t key = mix(named(guard->kernel, launch->kernel), launch->n_args);

    for (int i = 0; i < 3; i++)
        key = mix(key, (uint64_t)launch->grid[i] << 32 | launch->block[i]);
    for (uint32_t a = 0; a < launch->n_args; a++)
        key = mix(key, named(guard->role, launch->args[a].region));
    return key | 1;
}

/* ---- places ---- */

/* What earlier runs found out about it. */
static void remember(um_guard_t *guard, place_t *place)
{
    for (size_t i = 0; i < guard->n_told; i++) {
        const told_t *told = &guard->told[i];
        group_t **group = &place->group[told->advisor];

        if (told->key != place->key)
            continue;
        if (!*group && !(*group = calloc(1, sizeof(**group))))
            continue;
        (*group)->verdict = told->verdict;
        (*group)->pause = SECOND_LOOK;
        if (told->verdict == LOST)
            place->lost |= 1u << told->advisor;
    }
}

static void forget(um_guard_t *guard, place_t *place)
{
    if (guard->trying == place) {
        guard->trying = NULL;
        guard->serial++;
    }
    for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
        if (place->group[a])
            free(place->group[a]->back);
        free(place->group[a]);
    }
    *place = (place_t){0};
}

/* Found, or made in the place of the one that has not occurred for longest. */
static place_t *place_at(um_guard_t *guard, uint64_t key)
{
    place_t *oldest = &guard->place[key % PLACES];

    for (uint32_t i = 0; i < PROBES; i++) {
        place_t *place = &guard->place[(key + i) % PLACES];

        if (place->key == key)
            return place;
        if (place->used < oldest->used)
            oldest = place;
    }
    forget(guard, oldest);
    oldest->key = key;
    remember(guard, oldest);
    return oldest;
}

/* ---- verdicts ---- */

static void lose(um_guard_t *guard, place_t *place, unsigned advisor, int64_t ns)
{
    group_t *group = place->group[advisor];

    group->verdict = LOST;
    group->since = 0;
    group->pause = group->pause < SECOND_LOOK ? SECOND_LOOK : group->pause;
    group->taken = 0;
    guard->advice_lost |= group->n_back > 0;
    place->lost |= 1u << advisor;
    um_log(UM_LOG_INFO, "%s is given up for one place: it %s %.3f ms a round",
           guard->config.advisor[advisor], ns < 0 ? "costs" : "gains only",
           (double)(ns < 0 ? -ns : ns) * 1e-6);
}

static void judge(um_guard_t *guard, place_t *place, unsigned advisor)
{
    group_t *group = place->group[advisor];
    uint64_t round, error;
    double error2, unused;
    int64_t ns;

    /* At a second look the first round tells whether it is as it was. */
    if (!gain(group, group->verdict == LOST ? 1 : ENOUGH, &ns, &error2))
        return;
    error = 2 * root(error2);
    round = median(&group->without, &unused);
    if (ns > (int64_t)error) {
        group->verdict = WON;
    } else if (ns + (int64_t)error < (int64_t)(round / GAIN)) {
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

static void end_round(um_guard_t *guard, place_t *place, uint64_t now_ns)
{
    uint64_t took = now_ns - place->start_ns;
    /* Something was withheld elsewhere meanwhile: says nothing about this place. */
    bool clean = place->serial == guard->serial && (!guard->trying || guard->trying == place);

    for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
        group_t *group = place->group[a];
        bool withheld = place->withheld >> a & 1, with;

        if (!group)
            continue;
        with = group->advice ? group->in_force : group->bytes > 0;
        /* Advice that its advisor has taken back itself makes a round without. */
        withheld |= group->advice && !group->in_force && !group->n_back;
        group->in_force = group->n_back > 0 && group->verdict != LOST;
        if (with)
            group->rounds++;
        group->since += !withheld && (with || place->lost >> a & 1);
        if (group->bytes)
            group->before = group->bytes;
        group->bytes = 0;
        /* The first round of all has more in it than the others. */
        if (!clean || !place->rounds || (!with && !withheld))
            continue;
        add(withheld ? &group->without : &group->with, took);
        if (withheld && kept(&group->with))
            guard->spent_ns += (int64_t)took - (int64_t)median(&group->with, &(double){0});
        judge(guard, place, a);
    }
    if (clean && place->rounds && !place->withheld)
        add(&place->all, took);
    if (guard->trying == place) {
        guard->trying = NULL;
        guard->serial++;
    }
    place->withheld = 0;
    place->rounds++;
}

static bool affordable(const um_guard_t *guard, const group_t *group, uint64_t now_ns)
{
    int64_t budget = (int64_t)((now_ns - guard->first_ns) / 1000 * guard->config.budget_per_mille);
    int64_t cost = (int64_t)(group->before * FAULTS_NS_PER_MIB >> 20);
    double unused;
    int64_t ns;

    if (gain(group, 1, &ns, &unused))
        cost = ns;
    return cost <= 0 || guard->spent_ns + cost <= budget;
}

/* Shall this round of the place go without what the advisor proposes? */
static bool withhold(um_guard_t *guard, const place_t *place, unsigned advisor, uint64_t now_ns)
{
    const group_t *group = place->group[advisor];

    if (!group || group->advice || !group->before || place->lost >> advisor & 1)
        return false;
    if (guard->config.trial)
        return group->since > 0;
    return guard->config.budget_per_mille && kept(&group->with) >= ENOUGH &&
           group->since >= group->pause && affordable(guard, group, now_ns);
}

/* A lost group gets a round every so often in which it may hint. */
static uint32_t second_looks(place_t *place)
{
    uint32_t bits = 0;

    for (unsigned a = 0; a < UM_GUARD_ADVISORS && place->lost; a++) {
        group_t *group = place->group[a];

        if (!(place->lost >> a & 1) || group->advice || group->since < group->pause)
            continue;
        group->since = 0;
        group->pause = group->pause < SELDOM ? 2 * group->pause : SELDOM;
        group->with.n = 0; /* what it was like then */
        bits |= 1u << a;
    }
    return bits;
}

/* Rounds with hints before the next without: known to win, ever more; known to lose, none. */
static uint32_t next_pause(const group_t *group)
{
    double unused;
    int64_t ns;

    if (gain(group, 1, &ns, &unused) && ns < 0)
        return 0;
    if (kept(&group->without) < ENOUGH)
        return ENOUGH;
    return group->pause < SELDOM ? 2 * group->pause + 1 : SELDOM;
}

static void begin_round(um_guard_t *guard, place_t *place, uint64_t now_ns)
{
    place->lost &= ~second_looks(place);
    for (unsigned a = 0; a < UM_GUARD_ADVISORS && !guard->trying; a++) {
        group_t *group = place->group[a];

        if (!withhold(guard, place, a, now_ns))
            continue;
        guard->trying = place;
        guard->serial++;
        place->withheld = 1u << a;
        group->since = 0;
        group->pause = next_pause(group);
    }
    place->start_ns = now_ns;
    place->waits = guard->waits;
    place->serial = guard->serial;
}

static void occur(um_guard_t *guard, uint64_t key, uint64_t now_ns)
{
    place_t *place = place_at(guard, key);

    guard->now = place;
    place->used = ++guard->occurrences;
    if (place->start_ns && place->waits == guard->waits)
        return; /* still in its round: nobody has waited since */
    if (place->start_ns)
        end_round(guard, place, now_ns);
    begin_round(guard, place, now_ns);
}

/* ---- events ---- */

static void on_sync(um_guard_t *guard, const um_ev_sync_t *sync, uint64_t now_ns)
{
    guard->now = NULL;
    if (!sync->exit) {
        occur(guard, mix(guard->last_kernel, sync->kind) | 1, now_ns);
    } else if (guard->launched) {
        guard->launched = false;
        guard->waits++;
    }
}

static void on_learned(um_guard_t *guard, const um_ev_learned_t *learned)
{
    unsigned advisor = 0;

    if (strcmp(learned->who, WHO) != 0 || (learned->value[0] != WON && learned->value[0] != LOST))
        return;
    while (guard->all >> advisor & 1 && strcmp(guard->config.advisor[advisor], learned->what) != 0)
        advisor++;
    if (!(guard->all >> advisor & 1) || !learned->shape)
        return;
    if (guard->n_told == guard->told_room) {
        size_t room = guard->told_room ? 2 * guard->told_room : 64;
        told_t *grown = room <= PLACES ? realloc(guard->told, room * sizeof(*grown)) : NULL;

        if (!grown)
            return;
        guard->told = grown;
        guard->told_room = room;
    }
    guard->told[guard->n_told++] =
        (told_t){.key = learned->shape, .advisor = advisor, .verdict = (uint32_t)learned->value[0]};
}

void um_guard_observe(um_guard_t *guard, const um_event_t *event)
{
    pthread_mutex_lock(&guard->lock);
    if (!guard->first_ns)
        guard->first_ns = event->time_ns;
    switch (event->type) {
    case UM_EV_KERNEL:
        guard->kernel[event->u.kernel.kernel % NAMES] =
            (name_t){event->u.kernel.kernel, key_of_kernel(&event->u.kernel)};
        break;
    case UM_EV_REGION_ALLOC:
        guard->role[event->u.region_alloc.region % NAMES] =
            (name_t){event->u.region_alloc.region, um_region_role(&event->u.region_alloc)};
        break;
    case UM_EV_LAUNCH:
        guard->now = NULL;
        if (event->u.launch.flags & UM_LAUNCH_CAPTURED || !event->u.launch.n_args)
            break;
        guard->launched = true;
        guard->last_kernel = named(guard->kernel, event->u.launch.kernel);
        occur(guard, key_of_launch(guard, &event->u.launch), event->time_ns);
        break;
    case UM_EV_SYNC:
        on_sync(guard, &event->u.sync, event->time_ns);
        break;
    case UM_EV_LEARNED:
        on_learned(guard, &event->u.learned);
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

static bool is_advice(uint32_t kind)
{
    return kind == UM_HINT_READ_MOSTLY || kind == UM_HINT_PREFERRED_LOCATION ||
           kind == UM_HINT_ACCESSED_BY;
}

static uint32_t undoing(uint32_t kind)
{
    return kind == UM_HINT_READ_MOSTLY          ? UM_HINT_UNSET_READ_MOSTLY
           : kind == UM_HINT_PREFERRED_LOCATION ? UM_HINT_UNSET_PREFERRED_LOCATION
                                                : UM_HINT_UNSET_ACCESSED_BY;
}

static void keep_advice(const place_t *place, group_t *group, const um_hint_t *hint)
{
    for (uint32_t i = 0; i < group->n_back; i++)
        if (group->back[i].kind == hint->kind && group->back[i].addr == hint->addr)
            return;
    if (!group->back && !(group->back = calloc(BACK, sizeof(*group->back))))
        return;
    if (!group->advice) {
        group->without = place->all; /* what it was like until now */
        group->with.n = 0;
    }
    group->advice = true;
    if (group->n_back < BACK)
        group->back[group->n_back++] = *hint;
}

/* Its advisor takes advice back by itself. */
static void drop_advice(group_t *group, const um_hint_t *hint)
{
    for (uint32_t i = group->n_back; i-- > 0;)
        if (undoing(group->back[i].kind) == hint->kind && group->back[i].addr >= hint->addr &&
            group->back[i].addr < hint->addr + hint->bytes)
            group->back[i] = group->back[--group->n_back];
}

void um_guard_admitted(um_guard_t *guard, unsigned advisor, const um_hint_t *hint)
{
    group_t **group;

    if (!guard->now || advisor >= UM_GUARD_ADVISORS)
        return;
    pthread_mutex_lock(&guard->lock);
    group = &guard->now->group[advisor];
    if (*group || (*group = calloc(1, sizeof(**group)))) {
        (*group)->bytes += hint->bytes;
        if (is_advice(hint->kind))
            keep_advice(guard->now, *group, hint);
        else if (hint->kind != UM_HINT_PREFETCH)
            drop_advice(*group, hint);
    }
    pthread_mutex_unlock(&guard->lock);
}

/* The next lost group that still has advice in force, NULL = none. */
static group_t *with_advice(um_guard_t *guard, unsigned *advisor)
{
    for (size_t i = 0; i < PLACES; i++)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS && guard->place[i].lost; a++) {
            group_t *group = guard->place[i].group[a];

            *advisor = a;
            if (guard->place[i].lost >> a & 1 && group && group->taken < group->n_back)
                return group;
        }
    return NULL;
}

bool um_guard_take_back(um_guard_t *guard, um_hint_t *out, unsigned *advisor)
{
    group_t *group;

    if (!guard->advice_lost)
        return false;
    group = with_advice(guard, advisor);
    if (!group) {
        guard->advice_lost = false;
        return false;
    }
    *out = group->back[group->taken++];
    out->kind = undoing(out->kind);
    out->order = UM_ORDER_RACING;
    out->correlation = 0;
    out->why = "it did not win";
    return true;
}

void um_guard_learned(const um_guard_t *guard, um_event_fn emit, void *ctx)
{
    for (size_t i = 0; i < PLACES; i++)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
            const group_t *group = guard->place[i].group[a];
            um_event_t event = {.type = UM_EV_LEARNED};
            double unused;

            if (!group || group->verdict == OPEN)
                continue;
            event.u.learned = (um_ev_learned_t){.who = WHO,
                                                .what = guard->config.advisor[a],
                                                .kernel = "",
                                                .slot = UM_SLOT_NONE,
                                                .shape = guard->place[i].key,
                                                .count = group->without.n,
                                                .value = {group->verdict}};
            if (kept(&group->with))
                event.u.learned.value[1] = median(&group->with, &unused);
            if (kept(&group->without))
                event.u.learned.value[2] = median(&group->without, &unused);
            emit(ctx, &event);
        }
}

/* ---- life ---- */

um_status_t um_guard_new(const um_guard_config_t *config, um_guard_t **out)
{
    um_guard_t *guard = calloc(1, sizeof(*guard));

    if (!guard)
        return UM_ERR_NO_MEMORY;
    guard->config = *config;
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
    for (size_t i = 0; i < PLACES; i++)
        forget(guard, &guard->place[i]);
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
    for (size_t i = 0; i < PLACES; i++)
        for (unsigned a = 0; a < UM_GUARD_ADVISORS; a++) {
            const group_t *group = guard->place[i].group[a];
            double error2;
            int64_t ns;

            if (!group)
                continue;
            out->groups++;
            out->won += group->verdict == WON;
            out->lost += group->verdict == LOST;
            out->rounds += group->rounds;
            out->withheld += group->advice ? 0 : group->without.n;
            if (!gain(group, 1, &ns, &error2))
                continue;
            out->measured = true;
            out->saved_ns += ns * (int64_t)group->rounds;
            variance += error2 * (double)group->rounds * (double)group->rounds;
        }
    pthread_mutex_unlock(lock);
    out->error_ns = root(variance);
}

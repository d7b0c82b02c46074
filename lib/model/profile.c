#include "profile.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/bus.h"
#include "profile_set.h"

#define MOST_ENTRIES (4 * UM_PROFILE_MAX_FACTS) /* in memory, whatever a file holds */
#define LONGEST_WORD 64u                        /* of who and what */
#define LONGEST_NAME 16384u                     /* of a kernel */

um_status_t um_profile_new(um_profile_t **out)
{
    um_profile_t *profile = calloc(1, sizeof(*profile));

    if (!profile)
        return UM_ERR_NO_MEMORY;
    *out = profile;
    return UM_OK;
}

void um_profile_free(um_profile_t *profile)
{
    if (!profile)
        return;
    for (uint32_t i = 0; i < profile->n; i++)
        free(profile->entry[i].event);
    for (uint32_t i = 0; i < profile->n_gpus; i++)
        free(profile->gpu[i]);
    free(profile->entry);
    free(profile->slot);
    free(profile);
}

uint64_t um_profile_runs(const um_profile_t *profile)
{
    return profile->runs;
}

/* An event with all it points to, in one piece of memory. */
static um_event_t *copy_of(const um_event_t *event)
{
    size_t bytes = um_event_pack(event, NULL, 0);
    void *copy = malloc(bytes);

    if (copy)
        um_event_pack(event, copy, bytes);
    return copy;
}

/* ---- GPU models ---- */

/* Any GPU of the model will do; a part of one (MIG) has less memory. */
bool um_profile_same_model(const um_ev_device_t *a, const um_ev_device_t *b)
{
    return strcmp(a->name, b->name) == 0 && a->memory_bytes == b->memory_bytes;
}

uint32_t um_profile_gpu_number(const um_profile_t *profile, const um_ev_device_t *gpu)
{
    for (uint32_t i = 0; gpu && i < profile->n_gpus; i++)
        if (um_profile_same_model(&profile->gpu[i]->u.device, gpu))
            return i;
    return UM_PROFILE_NO_GPU;
}

uint32_t um_profile_gpu(um_profile_t *profile, const um_ev_device_t *gpu)
{
    um_event_t event = {.type = UM_EV_DEVICE};
    uint32_t i = um_profile_gpu_number(profile, gpu);

    if (i != UM_PROFILE_NO_GPU || profile->n_gpus == UM_PROFILE_MAX_GPUS)
        return i;
    event.u.device = *gpu;
    profile->gpu[profile->n_gpus] = copy_of(&event);
    return profile->gpu[profile->n_gpus] ? profile->n_gpus++ : UM_PROFILE_NO_GPU;
}

const um_ev_device_t *um_profile_gpu_at(const um_profile_t *profile, uint32_t number)
{
    return number < profile->n_gpus ? &profile->gpu[number]->u.device : NULL;
}

/* ---- identity ---- */

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

static uint64_t key_of(const um_ev_learned_t *l)
{
    uint64_t number[4] = {l->module_hash, l->shape, l->role, l->slot};

    return XXH3_64bits_withSeed(number, sizeof(number),
                                hash_text(l->who, hash_text(l->what, hash_text(l->kernel, 1))));
}

static bool same_identity(const um_ev_learned_t *a, const um_ev_learned_t *b)
{
    return a->module_hash == b->module_hash && a->shape == b->shape && a->role == b->role &&
           a->slot == b->slot && strcmp(a->who, b->who) == 0 && strcmp(a->what, b->what) == 0 &&
           strcmp(a->kernel, b->kernel) == 0;
}

/* The entry, or n where there is none; *slot is its place in the table, or the free one for it. */
static uint32_t look_up(const um_profile_t *profile, uint32_t gpu, const um_ev_learned_t *like,
                        uint64_t key, uint32_t *slot)
{
    for (uint32_t i = (uint32_t)key & (profile->slots - 1);; i = (i + 1) & (profile->slots - 1)) {
        uint32_t at = profile->slot[i];
        const um_profile_entry_t *entry = &profile->entry[at - 1];

        *slot = i;
        if (!at)
            return profile->n;
        if (entry->key == key && entry->gpu == gpu && same_identity(&entry->event->u.learned, like))
            return at - 1;
    }
}

const um_ev_learned_t *um_profile_find(const um_profile_t *profile, uint32_t gpu,
                                       const um_ev_learned_t *like)
{
    uint32_t i, slot;

    if (!profile->slots)
        return NULL;
    i = look_up(profile, gpu, like, key_of(like), &slot);
    return i < profile->n ? &profile->entry[i].event->u.learned : NULL;
}

/* ---- adding ---- */

static bool make_room(um_profile_t *profile)
{
    uint32_t slots = profile->slots ? 2 * profile->slots : 256;
    um_profile_entry_t *entry;
    uint32_t *table;

    if (2 * profile->n < profile->slots)
        return true;
    entry = realloc(profile->entry, slots * sizeof(*entry));
    if (entry)
        profile->entry = entry;
    table = calloc(slots, sizeof(*table));
    if (!entry || !table) {
        free(table);
        return false;
    }
    free(profile->slot);
    profile->slot = table;
    profile->slots = slots;
    for (uint32_t i = 0; i < profile->n; i++) {
        uint32_t at = (uint32_t)entry[i].key & (slots - 1);

        while (table[at])
            at = (at + 1) & (slots - 1);
        table[at] = i + 1;
    }
    return true;
}

bool um_profile_wins(const um_ev_learned_t *a, const um_ev_learned_t *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    if (a->age != b->age)
        return a->age < b->age;
    for (uint32_t i = 0; i < UM_LEARNED_VALUES; i++)
        if (a->value[i] != b->value[i])
            return a->value[i] > b->value[i];
    return false;
}

uint64_t um_profile_sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static void join(um_ev_learned_t *into, const um_ev_learned_t *other)
{
    if (um_profile_wins(other, into))
        memcpy(into->value, other->value, sizeof(into->value));
    into->count = um_profile_sum(into->count, other->count);
    if (other->age < into->age)
        into->age = other->age;
}

static void replace(um_ev_learned_t *what, const um_ev_learned_t *with)
{
    memcpy(what->value, with->value, sizeof(what->value));
    what->count = with->count;
    what->age = with->age;
}

static um_status_t enter(um_profile_t *profile, uint32_t gpu, const um_ev_learned_t *learned,
                         void (*known)(um_ev_learned_t *there, const um_ev_learned_t *new))
{
    um_event_t event = {.type = UM_EV_LEARNED};
    um_profile_entry_t entry = {.key = key_of(learned), .gpu = gpu};
    uint32_t i, slot;

    if (strlen(learned->who) > LONGEST_WORD || strlen(learned->what) > LONGEST_WORD ||
        strlen(learned->kernel) > LONGEST_NAME)
        return UM_ERR_INVALID;
    if (!make_room(profile))
        return UM_ERR_NO_MEMORY;
    i = look_up(profile, gpu, learned, entry.key, &slot);
    if (i < profile->n) {
        known(&profile->entry[i].event->u.learned, learned);
        return UM_OK;
    }
    if (profile->n == MOST_ENTRIES)
        return UM_ERR_FULL;
    event.u.learned = *learned;
    if (!(entry.event = copy_of(&event)))
        return UM_ERR_NO_MEMORY;
    profile->entry[profile->n++] = entry;
    profile->slot[slot] = profile->n;
    return UM_OK;
}

um_status_t um_profile_add(um_profile_t *profile, uint32_t gpu, const um_ev_learned_t *learned)
{
    return enter(profile, gpu, learned, join);
}

um_status_t um_profile_put(um_profile_t *profile, uint32_t gpu, const um_ev_learned_t *learned)
{
    return enter(profile, gpu, learned, replace);
}

um_status_t um_profile_merge(um_profile_t *profile, const um_profile_t *other)
{
    um_status_t status = UM_OK;

    for (uint32_t i = 0; i < other->n && status == UM_OK; i++) {
        const um_profile_entry_t *entry = &other->entry[i];
        const um_ev_device_t *gpu = um_profile_gpu_at(other, entry->gpu);

        status = um_profile_add(profile, gpu ? um_profile_gpu(profile, gpu) : UM_PROFILE_NO_GPU,
                                &entry->event->u.learned);
    }
    profile->runs += other->runs;
    if (other->aged_ns > profile->aged_ns)
        profile->aged_ns = other->aged_ns;
    return status;
}

/* ---- telling ---- */

static int order(const void *a, const void *b)
{
    const um_profile_entry_t *x = *(const um_profile_entry_t *const *)a;
    const um_profile_entry_t *y = *(const um_profile_entry_t *const *)b;
    const um_ev_learned_t *l = &x->event->u.learned, *m = &y->event->u.learned;
    const uint64_t ours[] = {l->slot, l->shape, l->role, l->module_hash};
    const uint64_t theirs[] = {m->slot, m->shape, m->role, m->module_hash};
    int by_text;

    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if ((by_text = strcmp(l->who, m->who)) != 0 || (by_text = strcmp(l->kernel, m->kernel)) != 0 ||
        (by_text = strcmp(l->what, m->what)) != 0)
        return by_text;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (ours[i] != theirs[i])
            return ours[i] < theirs[i] ? -1 : 1;
    return 0;
}

const um_profile_entry_t **um_profile_sorted(const um_profile_t *profile)
{
    const um_profile_entry_t **list = malloc((profile->n + 1) * sizeof(const um_profile_entry_t *));

    if (!list)
        return NULL;
    for (uint32_t i = 0; i < profile->n; i++)
        list[i] = &profile->entry[i];
    qsort(list, profile->n, sizeof(const um_profile_entry_t *), order);
    return list;
}

um_status_t um_profile_each(const um_profile_t *profile, um_profile_fn fn, void *ctx)
{
    const um_profile_entry_t **list = um_profile_sorted(profile);

    if (!list)
        return UM_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < profile->n; i++)
        fn(ctx, um_profile_gpu_at(profile, list[i]->gpu), &list[i]->event->u.learned);
    free(list);
    return UM_OK;
}

void um_profile_tell(const um_profile_t *profile, const um_ev_device_t *gpu, uint64_t now_ns,
                     um_event_fn fn, void *ctx)
{
    uint32_t own = um_profile_gpu_number(profile, gpu);

    for (uint32_t i = 0; i < profile->n; i++) {
        const um_profile_entry_t *entry = &profile->entry[i];
        um_event_t event = *entry->event;
        bool foreign = entry->gpu != own;

        if (foreign && own != UM_PROFILE_NO_GPU && um_profile_find(profile, own, &event.u.learned))
            continue;
        event.time_ns = now_ns;
        event.u.learned.age += foreign ? UM_PROFILE_FOREIGN : 1;
        fn(ctx, &event);
    }
}

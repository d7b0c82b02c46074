#include "roles.h"

#include <string.h>

const um_role_t *um_roles_find(const um_roles_t *roles, uint64_t role)
{
    const um_role_t *entry = &roles->role[role % UM_ROLES];

    return entry->role == role && entry->count ? entry : NULL;
}

um_role_t *um_roles_entry(um_roles_t *roles, uint64_t role)
{
    um_role_t *entry = &roles->role[role % UM_ROLES];

    if (entry->role != role)
        *entry = (um_role_t){.role = role};
    return entry;
}

um_role_t *um_roles_conclude(um_roles_t *roles, uint64_t role, um_verdict_t verdict)
{
    um_role_t *entry = um_roles_entry(roles, role);

    entry->count = entry->verdict == verdict ? entry->count + 1 : 1;
    entry->verdict = verdict;
    return entry;
}

um_role_t *um_roles_learn(um_roles_t *roles, const um_ev_learned_t *learned, const char *who,
                          const char *what)
{
    um_role_t *entry;

    if (strcmp(learned->who, who) != 0 || strcmp(learned->what, what) != 0)
        return NULL;
    entry = um_roles_entry(roles, learned->role);
    entry->count = learned->count;
    memcpy(entry->value, learned->value, sizeof(entry->value));
    return entry;
}

void um_roles_learn_verdict(um_roles_t *roles, const um_ev_learned_t *learned, const char *who,
                            const char *what)
{
    uint64_t verdict = learned->value[0];

    if ((verdict == UM_WINS || verdict == UM_LOSES) && learned->value[1] < learned->value[2])
        um_roles_learn(roles, learned, who, what);
}

void um_roles_tell(const um_roles_t *roles, const char *what, um_event_fn emit, void *ctx)
{
    for (uint32_t i = 0; i < UM_ROLES; i++) {
        const um_role_t *entry = &roles->role[i];
        um_event_t event = {.type = UM_EV_LEARNED};

        if (!entry->count)
            continue;
        event.u.learned = (um_ev_learned_t){.what = what,
                                            .kernel = "",
                                            .role = entry->role,
                                            .slot = UM_SLOT_NONE,
                                            .count = entry->count};
        memcpy(event.u.learned.value, entry->value, sizeof(entry->value));
        emit(ctx, &event);
    }
}

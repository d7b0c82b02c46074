#include "sharing.h"

static bool is_waited(const um_sharing_t *sharing, const um_sharing_use_t *use)
{
    uint32_t i = use->context % UM_SHARING_GPUS;

    return sharing->waited[i].context == use->context && sharing->waited[i].number >= use->number;
}

/* Of this device, or in the place of the one that took the region longest ago. */
static um_sharing_use_t *use_of(um_sharing_use_t *use, uint32_t *n, int32_t device)
{
    um_sharing_use_t *oldest = use;

    for (uint32_t i = 0; i < *n; i++) {
        if (use[i].device == device)
            return &use[i];
        if (use[i].when < oldest->when)
            oldest = &use[i];
    }
    if (*n < UM_SHARING_GPUS)
        oldest = &use[(*n)++];
    *oldest = (um_sharing_use_t){.device = device, .lowest = {UINT64_MAX, UINT64_MAX}};
    return oldest;
}

bool um_sharing_launch(um_sharing_t *sharing, const um_ev_launch_t *launch, uint32_t id,
                       uint64_t from, uint64_t *end)
{
    uint32_t slot = id % UM_SHARING_REGIONS, now;
    um_sharing_use_t *own;
    bool others = false;

    if (launch->device < 0)
        return false;
    if (sharing->region[slot].id != id) {
        sharing->region[slot].id = id;
        sharing->region[slot].launches = sharing->region[slot].n = sharing->region[slot].contended =
            0;
    }
    now = ++sharing->region[slot].launches;
    own = use_of(sharing->region[slot].use, &sharing->region[slot].n, launch->device);
    for (uint32_t i = 0; i < sharing->region[slot].n; i++) {
        const um_sharing_use_t *use = &sharing->region[slot].use[i];
        uint64_t theirs = use->lowest[use->lowest[1] < use->lowest[0]];

        if (use == own || now - use->when > UM_SHARING_RECENT)
            continue;
        others = true;
        if (theirs > from && theirs < *end)
            *end = theirs;
        if (use->last == from && !is_waited(sharing, use))
            sharing->region[slot].contended = now + UM_SHARING_RECENT;
    }
    if (others && now < sharing->region[slot].contended)
        *end = from;
    if (++own->launches % UM_SHARING_RECENT == 0 || now - own->when > UM_SHARING_RECENT) {
        own->lowest[1] = own->lowest[0];
        own->lowest[0] = UINT64_MAX;
    }
    own->lowest[0] = from < own->lowest[0] ? from : own->lowest[0];
    own->last = from;
    own->when = now;
    own->context = launch->context;
    own->number = ++sharing->number;
    return others;
}

bool um_sharing_is_shared(const um_sharing_t *sharing, uint32_t id, int32_t device)
{
    uint32_t slot = id % UM_SHARING_REGIONS;

    for (uint32_t i = 0; sharing->region[slot].id == id && i < sharing->region[slot].n; i++) {
        const um_sharing_use_t *use = &sharing->region[slot].use[i];

        if (use->device != device &&
            sharing->region[slot].launches - use->when <= UM_SHARING_RECENT)
            return true;
    }
    return false;
}

void um_sharing_sync(um_sharing_t *sharing, const um_ev_sync_t *sync)
{
    if (!sync->exit)
        return;
    sharing->waited[sync->context % UM_SHARING_GPUS].context = sync->context;
    sharing->waited[sync->context % UM_SHARING_GPUS].number = sharing->number;
}

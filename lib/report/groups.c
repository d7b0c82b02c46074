#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/grow.h"
#include "region_parts.h"
#include "units.h"

int um_group_name(const um_group_t *group, char *out, size_t bytes)
{
    char size[32];

    if (group->label)
        return snprintf(out, bytes, "%s", group->label);
    if (!group->first_region)
        return snprintf(out, bytes, "(no known allocation)");
    um_units_bytes(group->bytes, size, sizeof(size));
    if (group->regions > 1)
        return snprintf(out, bytes, "%" PRIu32 " regions of %s", group->regions, size);
    return snprintf(out, bytes, "region %" PRIu32 " (%s)", group->first_region, size);
}

um_status_t um_group_get(um_regions_stat_t *stat, uint64_t key, uint32_t *out)
{
    um_status_t status;

    *out = um_map_find(&stat->group_of, key);
    if (*out != UM_MAP_NONE)
        return UM_OK;
    if (!um_grow(&stat->groups, &stat->groups_size, stat->n_groups + 1, sizeof(*stat->groups)))
        return UM_ERR_NO_MEMORY;
    status = um_map_put(&stat->group_of, key, (uint32_t)stat->n_groups);
    if (status)
        return status;
    *out = (uint32_t)stat->n_groups++;
    memset(&stat->groups[*out], 0, sizeof(um_group_t));
    return UM_OK;
}

void um_group_join(um_regions_stat_t *stat, um_live_t *live)
{
    um_group_t *group = &stat->groups[live->group];

    if (!group->regions++) {
        group->bytes = live->id ? live->bytes : 0;
        group->family = live->family;
        group->call_site = live->call_site;
        group->first_region = live->id;
        group->first_addr = live->addr;
        group->last_trace = UINT32_MAX;
    }
    if (group->freed > group->reused)
        group->reused++;
    if (group->last_trace != stat->trace) {
        group->last_trace = stat->trace;
        group->traces++;
    }
}

uint64_t um_group_key(const um_regions_stat_t *stat, const um_live_t *live, const char *label)
{
    uint64_t fixed[4] = {live->bytes, live->family, live->call_site, 0};

    if (!live->id)
        return 1;
    if (label) {
        fixed[2] = 0;
        return um_map_hash(label, strlen(label), um_map_hash(fixed, sizeof(fixed), 1));
    }
    if (!live->call_site) { /* the same place and size again is the best sign of the same buffer */
        fixed[2] = live->addr;
        fixed[3] = stat->trace + 1;
    }
    return um_map_hash(fixed, sizeof(fixed), 2);
}

um_status_t um_group_set_label(um_regions_stat_t *stat, um_live_t *live, const char *label)
{
    um_group_t *group = &stat->groups[live->group];
    um_status_t status;
    uint32_t to;

    if (!*label || (group->label && !strcmp(group->label, label)))
        return UM_OK;
    if (live->active && group->regions > 1)
        return UM_OK; /* what it did is counted under the old name */
    if (!live->active) {
        status = um_group_get(stat, um_group_key(stat, live, label), &to);
        if (status)
            return status;
        group = &stat->groups[live->group];
        group->regions--;
        live->group = to;
        um_group_join(stat, live);
        group = &stat->groups[to];
    }
    if (!group->label) {
        group->label = strdup(label);
        if (!group->label)
            return UM_ERR_NO_MEMORY;
    }
    return UM_OK;
}

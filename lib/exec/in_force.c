#include "in_force.h"

#include <stdlib.h>

bool um_in_force_is_advice(uint32_t kind)
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

bool um_in_force_has(const um_in_force_t *list, const um_hint_t *hint)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->range[i].kind == hint->kind && list->range[i].addr == hint->addr)
            return true;
    return false;
}

bool um_in_force_reserve(um_in_force_t *list)
{
    uint32_t room = list->room ? 2 * list->room : 8;
    um_in_force_range_t *grown;

    if (list->n < list->room)
        return true;
    if (!(grown = realloc(list->range, room * sizeof(*grown))))
        return false;
    list->range = grown;
    list->room = room;
    return true;
}

void um_in_force_add(um_in_force_t *list, const um_hint_t *hint)
{
    list->range[list->n++] = (um_in_force_range_t){.addr = hint->addr,
                                                   .bytes = hint->bytes,
                                                   .kind = hint->kind,
                                                   .device = hint->device};
}

uint32_t um_in_force_drop(um_in_force_t *list, uint32_t kind, uint64_t addr, uint64_t bytes)
{
    uint32_t kept = 0, taken = 0, before = list->n;

    for (uint32_t i = 0; i < before; i++) {
        const um_in_force_range_t *range = &list->range[i];

        if ((kind == UM_HINT_NONE || undoing(range->kind) == kind) && range->addr >= addr &&
            range->addr - addr < bytes)
            continue;
        taken += i < list->taken;
        list->range[kept++] = *range;
    }
    list->n = kept;
    list->taken = taken;
    return before - kept;
}

bool um_in_force_next(um_in_force_t *list, um_hint_t *out)
{
    const um_in_force_range_t *range;

    if (list->taken >= list->n)
        return false;
    range = &list->range[list->taken++];
    *out = (um_hint_t){.kind = undoing(range->kind),
                       .order = UM_ORDER_RACING,
                       .addr = range->addr,
                       .bytes = range->bytes,
                       .device = range->device,
                       .why = "it did not win"};
    return true;
}

void um_in_force_fini(um_in_force_t *list)
{
    free(list->range);
    *list = (um_in_force_t){0};
}

#include "advised.h"

/* The sort of advice that a kind sets or unsets, 0 = it is none. */
static uint32_t sort_of(uint32_t kind, bool *unsets)
{
    static const struct {
        uint8_t sort;
        bool unsets;
    } table[UM_HINT_KIND_COUNT] = {
        [UM_HINT_READ_MOSTLY] = {1, false},        [UM_HINT_UNSET_READ_MOSTLY] = {1, true},
        [UM_HINT_PREFERRED_LOCATION] = {2, false}, [UM_HINT_UNSET_PREFERRED_LOCATION] = {2, true},
        [UM_HINT_ACCESSED_BY] = {4, false},        [UM_HINT_UNSET_ACCESSED_BY] = {4, true},
    };

    *unsets = kind < UM_HINT_KIND_COUNT && table[kind].unsets;
    return kind < UM_HINT_KIND_COUNT ? table[kind].sort : 0;
}

static void put(um_advised_t *advised, uint32_t region, uint32_t sorts, uint64_t addr, uint64_t end)
{
    for (uint32_t i = 0; i < advised->n; i++)
        if (advised->range[i].region == region && advised->range[i].sorts == sorts &&
            addr <= advised->range[i].end && advised->range[i].addr <= end) {
            if (addr < advised->range[i].addr)
                advised->range[i].addr = addr;
            if (end > advised->range[i].end)
                advised->range[i].end = end;
            return;
        }
    if (advised->n == UM_ADVISED_MAX) { /* of this region it is all the program's then */
        um_advised_region_gone(advised, region);
        sorts = 7;
        addr = 0;
        end = UINT64_MAX;
    }
    if (advised->n == UM_ADVISED_MAX) {
        advised->everything = true;
        return;
    }
    advised->range[advised->n].region = region;
    advised->range[advised->n].sorts = sorts;
    advised->range[advised->n].addr = addr;
    advised->range[advised->n++].end = end;
}

void um_advised_add(um_advised_t *advised, const um_ev_hint_t *hint)
{
    bool unsets;
    uint32_t sort = sort_of(hint->kind, &unsets);

    if (sort && hint->region && hint->result == UM_HINT_APPLIED)
        put(advised, hint->region, sort, hint->addr, hint->addr + hint->bytes);
}

void um_advised_region_gone(um_advised_t *advised, uint32_t region)
{
    for (uint32_t i = advised->n; i-- > 0;)
        if (advised->range[i].region == region)
            advised->range[i] = advised->range[--advised->n];
}

bool um_advised_forbids(const um_advised_t *advised, uint32_t kind, uint32_t region, uint64_t addr,
                        uint64_t bytes)
{
    bool unsets;
    uint32_t sort = sort_of(kind, &unsets);

    if (!sort)
        return false;
    for (uint32_t i = 0; i < advised->n; i++)
        if (advised->range[i].region == region && addr < advised->range[i].end &&
            advised->range[i].addr < addr + bytes && (!unsets || advised->range[i].sorts & sort))
            return true;
    return advised->everything;
}

#include "map.h"

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static size_t slot_of(const um_map_t *map, uint64_t key)
{
    uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (mixed ^ (mixed >> 32)) & (map->size - 1);

    while (map->slots[slot].value && map->slots[slot].key != key)
        slot = (slot + 1) & (map->size - 1);
    return slot;
}

uint32_t um_map_find(const um_map_t *map, uint64_t key)
{
    size_t slot;

    if (!map->size)
        return UM_MAP_NONE;
    slot = slot_of(map, key);
    return map->slots[slot].value ? map->slots[slot].value - 1 : UM_MAP_NONE;
}

static um_status_t grow(um_map_t *map)
{
    um_map_t bigger = {.size = map->size ? map->size * 2 : 64, .n = map->n};

    bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
    if (!bigger.slots)
        return UM_ERR_NO_MEMORY;
    for (size_t i = 0; i < map->size; i++) {
        if (map->slots[i].value)
            bigger.slots[slot_of(&bigger, map->slots[i].key)] = map->slots[i];
    }
    free(map->slots);
    *map = bigger;
    return UM_OK;
}

um_status_t um_map_put(um_map_t *map, uint64_t key, uint32_t value)
{
    size_t slot;

    if (map->n * 2 >= map->size) {
        um_status_t status = grow(map);

        if (status)
            return status;
    }
    slot = slot_of(map, key);
    if (!map->slots[slot].value)
        map->n++;
    map->slots[slot].key = key;
    map->slots[slot].value = value + 1;
    return UM_OK;
}

void um_map_free(um_map_t *map)
{
    free(map->slots);
    *map = (um_map_t){0};
}

uint64_t um_map_hash(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

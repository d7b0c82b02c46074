/*
 * map.h - a 64-bit key to a 32-bit index. Keys are only added. One thread.
 */
#ifndef UM_MAP_H
#define UM_MAP_H

#include "um_event.h"

typedef struct um_map {
    struct um_map_slot {
        uint64_t key;
        uint32_t value; /* index + 1, 0 = empty */
    } * slots;
    size_t n, size; /* size is a power of two */
} um_map_t;         /* zeroed = empty */

#define UM_MAP_NONE UINT32_MAX

uint32_t um_map_find(const um_map_t *map, uint64_t key); /* UM_MAP_NONE when it is not there */
/* value < UM_MAP_NONE; replaces. UM_ERR_NO_MEMORY leaves the map as it was. */
um_status_t um_map_put(um_map_t *map, uint64_t key, uint32_t value);
void um_map_free(um_map_t *map);

/* A well-mixed hash of n bytes, for keys made of strings. */
uint64_t um_map_hash(const void *data, size_t bytes, uint64_t seed);

#endif

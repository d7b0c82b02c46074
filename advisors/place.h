/*
 * place.h - which region is it that a program allocates here again and again?
 *
 * A place is a role (allocation site and size) and, among the regions of one role that are alive at once,
 * the first number that is free. A region that is freed and allocated again gets the place of the one
 * before, in this run and in the next; what is learned by place is inherited. Bounded and allocation-free.
 */
#ifndef UM_PLACE_H
#define UM_PLACE_H

#include "mix.h"
#include "um_event.h"

#define UM_PLACES       2048u
#define UM_PLACE_PROBES 8u
#define UM_PLACE_TWINS  32u /* of one role; more of them are told apart by their id alone */

typedef struct um_places {
    struct {
        uint64_t key;
        uint32_t region; /* 0 = free */
    } slot[UM_PLACES];
} um_places_t;

/* The region that has the place now; 0 = none. */
static inline uint32_t um_place_region(const um_places_t *places, uint64_t key)
{
    for (uint32_t i = 0; i < UM_PLACE_PROBES; i++)
        if (places->slot[(key + i) % UM_PLACES].key == key)
            return places->slot[(key + i) % UM_PLACES].region;
    return 0;
}

/* The place of a new region, not 0 unless the table is too full there. */
static inline uint64_t um_place_enter(um_places_t *places, const um_ev_region_alloc_t *alloc)
{
    uint64_t role = um_region_role(alloc), key = 0;

    for (uint64_t n = 0; n <= UM_PLACE_TWINS; n++) {
        key = um_mix(role, n < UM_PLACE_TWINS ? n : (uint64_t)alloc->region << 32) | 1;
        if (!um_place_region(places, key))
            break;
    }
    for (uint32_t i = 0; i < UM_PLACE_PROBES; i++)
        if (!places->slot[(key + i) % UM_PLACES].region) {
            places->slot[(key + i) % UM_PLACES].key = key;
            places->slot[(key + i) % UM_PLACES].region = alloc->region;
            return key;
        }
    return 0;
}

static inline void um_place_leave(um_places_t *places, uint64_t key, uint32_t region)
{
    for (uint32_t i = 0; i < UM_PLACE_PROBES; i++)
        if (places->slot[(key + i) % UM_PLACES].key == key &&
            places->slot[(key + i) % UM_PLACES].region == region)
            places->slot[(key + i) % UM_PLACES].region = 0;
}

#endif

/*
 * in_force.h - advice that is in force, to be taken back should it lose.
 *
 * Each list grows as it has to; what is freed, or taken back by its advisor, leaves it. Threads: one.
 */
#ifndef UM_IN_FORCE_H
#define UM_IN_FORCE_H

#include "um_advisor.h"

typedef struct um_in_force_range {
    uint64_t addr, bytes;
    uint32_t kind; /* um_hint_kind_t */
    int32_t device;
} um_in_force_range_t;

typedef struct um_in_force {
    uint32_t n, taken; /* ranges; those that um_in_force_next has handed out */
    uint32_t room;
    um_in_force_range_t *range;
} um_in_force_t;

/* Does the kind of hint last, until it is undone? */
bool um_in_force_is_advice(uint32_t kind);
bool um_in_force_has(const um_in_force_t *list, const um_hint_t *hint);
/* Room for one more, which um_in_force_add then takes. */
bool um_in_force_reserve(um_in_force_t *list);
void um_in_force_add(um_in_force_t *list, const um_hint_t *hint);
/* What begins in the range and is undone by that kind of hint (NONE = whatever it is) is no longer in force.
 * Returns how many. */
uint32_t um_in_force_drop(um_in_force_t *list, uint32_t kind, uint64_t addr, uint64_t bytes);
/* The hint that takes the next one back; false = there is no more. `taken` = 0 begins again. */
bool um_in_force_next(um_in_force_t *list, um_hint_t *out);
void um_in_force_fini(um_in_force_t *list);

#endif

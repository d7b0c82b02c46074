/*
 * advised.h - what the program advises on itself, and where umrt therefore gives no advice.
 *
 * Where the program has ever advised, whatever it was, nothing is advised; and what is of the program's own
 * kind of advice there is not undone. Threads: one.
 */
#ifndef UM_ADVISED_H
#define UM_ADVISED_H

#include "um_event.h"

#define UM_ADVISED_MAX 256u /* ranges; beyond them whole regions, and in the end everything */

typedef struct um_advised {
    struct {
        uint32_t region;
        uint32_t sorts; /* bit i: ReadMostly, PreferredLocation, AccessedBy */
        uint64_t addr, end;
    } range[UM_ADVISED_MAX];
    uint32_t n;
    bool everything;
} um_advised_t;

/* The program's own call; others than successful advice are ignored. */
void um_advised_add(um_advised_t *advised, const um_ev_hint_t *hint);
void um_advised_region_gone(um_advised_t *advised, uint32_t region);
/* Is the range the program's in what that kind of hint (um_hint_kind_t) is about? */
bool um_advised_forbids(const um_advised_t *advised, uint32_t kind, uint32_t region, uint64_t addr,
                        uint64_t bytes);

#endif

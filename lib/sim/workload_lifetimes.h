/*
 * workload_lifetimes.h - where each region of a workload lay, and from which step to which it lived.
 *
 * The managed ones alive do not lie over each other: whoever adds one has looked.
 */
#ifndef UM_WORKLOAD_LIFETIMES_H
#define UM_WORKLOAD_LIFETIMES_H

#include "workload_ids.h"

#define UM_STILL_ALIVE UINT64_MAX

typedef struct um_lifetime {
    uint64_t addr, bytes;
    uint64_t born, gone; /* steps; it is there from born on, and no more at gone */
    uint32_t id;
    bool managed;
} um_lifetime_t;

typedef struct um_lifetimes {
    um_lifetime_t *list; /* all that ever were, as they came */
    size_t n, size;
    um_ids_t ids;   /* region id -> index */
    uint32_t *live; /* indices of the managed ones alive, by address */
    size_t n_live, live_size;
    uint64_t live_bytes;
    uint64_t live_memory_bytes; /* what these take on a GPU */
} um_lifetimes_t;               /* {0} is an empty one */

/* Behind its last page. */
uint64_t um_lifetime_end(const um_lifetime_t *one);

/* NULL = there never was one of that id; valid until the next is added, as what the others return. */
um_lifetime_t *um_lifetimes_find(const um_lifetimes_t *of, uint32_t id);
/* A managed one alive that has some of these bytes, NULL = none. */
const um_lifetime_t *um_lifetimes_over(const um_lifetimes_t *of, uint64_t addr, uint64_t bytes);
/* Adds one that is alive, of an id that there was not. UM_ERR_NO_MEMORY: nothing has changed. */
um_status_t um_lifetimes_begin(um_lifetimes_t *of, const um_lifetime_t *one);
/* Of one that is alive. */
void um_lifetimes_end(um_lifetimes_t *of, um_lifetime_t *one, uint64_t step);
/* As um_workload_builder_clip. */
bool um_lifetimes_clip(const um_lifetimes_t *of, size_t step, uint32_t *region, uint64_t *addr,
                       uint64_t *bytes);
void um_lifetimes_free(um_lifetimes_t *of);

#endif

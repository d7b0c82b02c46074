/*
 * workload_ids.h - a map from the ids of a trace (regions, correlations) to numbers of our own.
 *
 * An array in order of id: ids nearly always come in that order, and then putting one is appending.
 */
#ifndef UM_WORKLOAD_IDS_H
#define UM_WORKLOAD_IDS_H

#include "um_event.h"

typedef struct um_id {
    uint32_t id;
    uint32_t value;
} um_id_t;

typedef struct um_ids {
    um_id_t *list;
    size_t n, size;
} um_ids_t; /* {0} is an empty one */

/* What was there under `id` is replaced. UM_ERR_NO_MEMORY. */
um_status_t um_ids_put(um_ids_t *ids, uint32_t id, uint32_t value);
/* NULL = none; valid until the next put. */
const um_id_t *um_ids_find(const um_ids_t *ids, uint32_t id);
void um_ids_free(um_ids_t *ids);

#endif

/*
 * streams.h - a workload with fewer streams side by side.
 *
 * The i-th stream of a GPU, in the order of first use, goes on the (i mod n)-th. Putting two streams
 * onto one only adds order, so what the program relied on still holds; taking one apart would need to
 * know which launches depend on each other, which no trace says: there is no way to have more streams
 * than were recorded.
 */
#ifndef UM_STREAMS_H
#define UM_STREAMS_H

#include "workload.h"

typedef struct um_streams um_streams_t;

/* `workload` with at most n (1 and up) streams a GPU; shares all but the steps with it, so it has to
 * outlive the result. UM_ERR_NO_MEMORY. */
um_status_t um_streams_limit(const um_workload_t *workload, uint32_t n, um_streams_t **out);
const um_workload_t *um_streams_workload(const um_streams_t *streams);
void um_streams_free(um_streams_t *streams); /* NULL is fine */

#endif

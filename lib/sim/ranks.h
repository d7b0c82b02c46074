/*
 * ranks.h - the processes of one `mpirun -n N umrt replay ...`: each does its part of a sweep.
 *
 * Built --without-mpi (the default) there is always one rank.
 */
#ifndef UM_RANKS_H
#define UM_RANKS_H

#include <stdbool.h>

#include "sweep.h"

typedef struct um_ranks {
    uint32_t rank, size;
    bool launched; /* by mpirun */
    bool lonely;   /* mpirun started several of us, but this umrt cannot talk to the others */
} um_ranks_t;

/* Starts MPI when, and only when, mpirun started this process. Once a process. */
void um_ranks_begin(um_ranks_t *out);
/* The first rank for which `it` is true, UM_RANKS_NONE = it is for none; all ranks call it. */
#define UM_RANKS_NONE UINT32_MAX
uint32_t um_ranks_first(const um_ranks_t *ranks, bool it);
/* Brings every rank's outcomes to rank 0; all ranks call it. UM_ERR_IO: MPI says no. */
um_status_t um_ranks_gather(const um_ranks_t *ranks, um_sweep_t *sweep);
void um_ranks_end(const um_ranks_t *ranks);

#endif

#include "ranks.h"

#include <limits.h>
#include <stdlib.h>

#ifdef UM_WITH_MPI
#include <mpi.h>
#endif

/* What the launchers of Open MPI, and of others, say to a process of theirs. */
static uint32_t launched(void)
{
    static const char *const says[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

    for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        const char *size = getenv(says[i]);

        if (size && atoi(size) > 0)
            return (uint32_t)atoi(size);
    }
    return 0;
}

#ifdef UM_WITH_MPI

void um_ranks_begin(um_ranks_t *out)
{
    int provided, rank = 0, size = 1;

    *out = (um_ranks_t){.size = 1, .launched = launched() > 0};
    if (!out->launched ||
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out->rank = (uint32_t)rank;
    out->size = (uint32_t)size;
}

uint32_t um_ranks_first(const um_ranks_t *ranks, bool it)
{
    uint32_t mine = it ? ranks->rank : UM_RANKS_NONE, first = mine;

    if (ranks->size > 1)
        MPI_Allreduce(&mine, &first, 1, MPI_UINT32_T, MPI_MIN, MPI_COMM_WORLD);
    return first;
}

/* A job that was another rank's is all zeros here: together they are all of it. */
um_status_t um_ranks_gather(const um_ranks_t *ranks, um_sweep_t *sweep)
{
    size_t bytes = um_sweep_jobs(sweep) * sizeof(um_outcome_t);
    char *at = (char *)sweep->outcomes;

    while (ranks->size > 1 && bytes) {
        int part = bytes < (1u << 30) ? (int)bytes : 1 << 30;

        if (MPI_Reduce(ranks->rank ? at : MPI_IN_PLACE, at, part, MPI_BYTE, MPI_BOR, 0,
                       MPI_COMM_WORLD) != MPI_SUCCESS)
            return UM_ERR_IO;
        at += part;
        bytes -= (size_t)part;
    }
    return UM_OK;
}

void um_ranks_end(const um_ranks_t *ranks)
{
    int running = 0;

    (void)ranks;
    if (MPI_Initialized(&running) == MPI_SUCCESS && running)
        MPI_Finalize();
}

#else

uint32_t um_ranks_first(const um_ranks_t *ranks, bool it)
{
    return it ? ranks->rank : UM_RANKS_NONE;
}

void um_ranks_begin(um_ranks_t *out)
{
    *out = (um_ranks_t){.size = 1, .launched = launched() > 0, .lonely = launched() > 1};
}

um_status_t um_ranks_gather(const um_ranks_t *ranks, um_sweep_t *sweep)
{
    (void)ranks;
    (void)sweep;
    return UM_OK;
}

void um_ranks_end(const um_ranks_t *ranks)
{
    (void)ranks;
}

#endif

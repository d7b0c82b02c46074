/*
 * share.h - how much of a GPU may this process fill: what the user says, or an even part of it for each
 * process that works there.
 *
 * Processes are counted in two ways, and the larger number holds: the ranks that the launcher says there are on this
 * machine, over the machine's GPUs; and the processes of umrt's, of this user, that hint for the very GPU
 * now. Each of those holds a lock in a file named by the GPU's uuid, in a folder that is the user's alone, where
 * nobody else can hold one; a lock is gone with its process, however that ends. Without such a folder a process
 * counts itself alone, and those in a container of their own are not seen, unless the containers have a
 * folder in common and are told of it.
 *
 * Threads: one, but for um_share_abandon.
 */
#ifndef UM_SHARE_H
#define UM_SHARE_H

#include "um_event.h"

typedef enum um_budget_kind {
    UM_BUDGET_AUTO = 0,   /* an even part where other processes work on the GPU, else all */
    UM_BUDGET_ALL = 1,    /* whatever others do */
    UM_BUDGET_BYTES = 2,  /* of each GPU */
    UM_BUDGET_PERCENT = 3 /* of each GPU's memory */
} um_budget_kind_t;

typedef struct um_budget {
    um_budget_kind_t kind;
    uint64_t value;
} um_budget_t;

/* "auto", "all", "20G", "25%" (1 to 100); false = none of these. */
bool um_budget_parse(const char *text, um_budget_t *out);

/* Processes of this job on this machine, as the launcher tells it: Open MPI, MPICH, MVAPICH, Cray and IBM
 * ones, torchrun, Slurm. 1 = nobody says. */
uint32_t um_local_ranks(void);

#define UM_SHARE_PROCESSES 64u /* that are counted on a GPU */

typedef struct um_share um_share_t;

typedef struct um_share_config {
    um_budget_t budget;
    uint32_t local_ranks;
    const char *folder; /* of the locks; NULL or "" = /dev/shm/umrt-UID, or /run/user/UID/umrt */
    const char *gpus;   /* folder with an entry for each GPU of the machine; NULL = the driver's */
} um_share_config_t;

um_status_t um_share_new(const um_share_config_t *config, um_share_t **out);
void um_share_free(um_share_t *share);    /* NULL is fine */
void um_share_abandon(um_share_t *share); /* forked child: it is not one more; async-signal-safe */

void um_share_device(um_share_t *share, const um_ev_device_t *device);
/* Processes on the GPU, this one among them, which from then on counts for others. Asks anew after a second;
 * a device that nobody described has 1. */
uint32_t um_share_processes(um_share_t *share, int32_t device, uint64_t now_ns);
/* The bytes of managed memory that this process may have there by prefetches; UINT64_MAX = no limit but
 * what is free. `headroom_bytes` stay free in all, whatever number of processes there is. */
uint64_t um_share_bytes(um_share_t *share, int32_t device, uint64_t total_bytes,
                        uint64_t headroom_bytes, uint64_t now_ns);

#endif

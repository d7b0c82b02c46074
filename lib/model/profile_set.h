/* profile_set.h - the inside of a profile, for profile.c and profile_file.c alone. */
#ifndef UM_PROFILE_SET_H
#define UM_PROFILE_SET_H

#include "profile.h"

#define UM_PROFILE_MAX_GPUS 16u

typedef struct um_profile_entry {
    um_event_t *event; /* LEARNED; one piece of memory, owned */
    uint64_t key;      /* hash of its identity without the GPU */
    uint32_t gpu;      /* number, or NO_GPU */
} um_profile_entry_t;

struct um_profile {
    um_event_t *gpu[UM_PROFILE_MAX_GPUS]; /* DEVICE */
    uint32_t n_gpus;
    uint32_t n; /* entries; there is room for `slots` of them */
    um_profile_entry_t *entry;
    uint32_t *slot; /* open addressing: number of the entry plus one, 0 = free */
    uint32_t slots; /* a power of two, or 0 */
    uint64_t runs;
    uint64_t aged_ns; /* when a run last let it age */
};

bool um_profile_same_model(const um_ev_device_t *a, const um_ev_device_t *b);
/* NO_GPU where there is none of that model. */
uint32_t um_profile_gpu_number(const um_profile_t *profile, const um_ev_device_t *gpu);
const um_ev_device_t *um_profile_gpu_at(const um_profile_t *profile, uint32_t number);

/* a's values hold against b's: more observations, else younger, else whatever is the same both ways. */
bool um_profile_wins(const um_ev_learned_t *a, const um_ev_learned_t *b);
uint64_t um_profile_sum(uint64_t a, uint64_t b); /* UINT64_MAX at most */

/* By GPU and identity; the list is the caller's to free, NULL = no memory. */
const um_profile_entry_t **um_profile_sorted(const um_profile_t *profile);

#endif

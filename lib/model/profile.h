/*
 * profile.h - what runs of a program have learned, kept in a file (.ump) for the next run.
 *
 * The file is a trace file (FORMAT.md) whose header has the fact "profile.version" and that holds
 * DEVICE and LEARNED events only. What a LEARNED event says was learned on the GPU model of the DEVICE
 * event before it. One file may hold what was learned on several models, and of several programs.
 *
 * Saving never loses what another process saved meanwhile: under a lock it takes what this run has added
 * to what it began with over to what is there now. The new file replaces the old one at once, so a
 * reader finds one or the other, and a process that is killed leaves the old one.
 *
 * Threads: one at a time for each profile. Files: any number of processes at once.
 */
#ifndef UM_PROFILE_H
#define UM_PROFILE_H

#include "um_event.h"

#define UM_PROFILE_VERSION   1u
#define UM_PROFILE_MAX_FACTS 8192u /* kept in a file: the youngest, of these the best proven */
#define UM_PROFILE_MAX_AGE   16u   /* runs after which what was not seen to hold is dropped */
#define UM_PROFILE_FOREIGN   8u    /* added to the age of what another GPU model taught */
#define UM_PROFILE_NO_GPU    UINT32_MAX

typedef struct um_profile um_profile_t;

um_status_t um_profile_new(um_profile_t **out);
void um_profile_free(um_profile_t *profile); /* NULL is fine */

/*
 * Reads `path`. Errors, with a line that names file and reason in `error`:
 * UM_ERR_IO (errno set; ENOENT when there is none yet), UM_ERR_FORMAT (not a profile), UM_ERR_VERSION (of
 * a newer umrt), UM_ERR_TRUNCATED (a profile, but cut short or damaged), UM_ERR_NO_MEMORY. An empty file
 * is an empty profile.
 */
um_status_t um_profile_load(const char *path, um_profile_t **out, char *error, size_t error_bytes);

/* The number of that GPU's model, which is added where it is new; NO_GPU when there are too many. */
uint32_t um_profile_gpu(um_profile_t *profile, const um_ev_device_t *gpu);

/* Adds what was learned on that model (NO_GPU = not known which). What is there of the same identity is
 * joined: counts add up, the values of the one with more observations win, the lower age holds. */
um_status_t um_profile_add(um_profile_t *profile, uint32_t gpu, const um_ev_learned_t *learned);

/* The same, but what is there of the identity is replaced. */
um_status_t um_profile_put(um_profile_t *profile, uint32_t gpu, const um_ev_learned_t *learned);

/* All of another profile, joined; and its runs. */
um_status_t um_profile_merge(um_profile_t *profile, const um_profile_t *other);

/* What is there of the identity, NULL = nothing; owned by the profile. */
const um_ev_learned_t *um_profile_find(const um_profile_t *profile, uint32_t gpu,
                                       const um_ev_learned_t *like);

/* Everything, by GPU model and identity. gpu NULL = not known. */
typedef void (*um_profile_fn)(void *ctx, const um_ev_device_t *gpu, const um_ev_learned_t *learned);
um_status_t um_profile_each(const um_profile_t *profile, um_profile_fn fn, void *ctx);
uint64_t um_profile_runs(const um_profile_t *profile); /* that have been saved into it */

/* For a run that begins on `gpu` (NULL = not known): everything as LEARNED events at now_ns, a run older
 * than it was saved, what other models taught older still; that only where the own one taught nothing of
 * the same identity. */
void um_profile_tell(const um_profile_t *profile, const um_ev_device_t *gpu, uint64_t now_ns,
                     um_event_fn fn, void *ctx);

/* Writes it as it is, in place of what is at `path`. UM_ERR_IO (errno set), UM_ERR_NO_MEMORY. */
um_status_t um_profile_write(const um_profile_t *profile, const char *path);

/* A run, for saving. Times are nanoseconds since 1970. */
typedef struct um_profile_run {
    const um_profile_t *base;  /* what it began with, NULL = nothing */
    const um_profile_t *ours;  /* what it knows; age 0 = seen to hold in it */
    const um_ev_device_t *gpu; /* that it ran on, NULL = not known */
    uint64_t began_ns, now_ns;
} um_profile_run_t;

/*
 * Brings what a run knows into the file. `count` of what it knows includes what it had been told; what it
 * did not see to hold stays as it is in the file, and ages: once a run, whatever number of processes it
 * had, because only the first to save of those that ran at once lets the rest age.
 * Waits two seconds at most for other processes. Errors as um_profile_load, but that a damaged profile is
 * replaced; UM_ERR_BUSY: others held the lock all the time.
 */
um_status_t um_profile_save(const char *path, const um_profile_run_t *run, char *error,
                            size_t error_bytes);

#endif

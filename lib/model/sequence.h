/*
 * sequence.h - what does the program do next?
 *
 * What a program does is a row of launches and waits. A launch is known by its signature: kernel (name and
 * module), grid, block, device, and the place (advisors/place.h) and offset of each managed pointer; a wait by its
 * kind and the launch before it. So the signature holds for a region that is allocated anew, and in another run. A
 * graph is one launch, known by its arguments. Waits one right after the other are one.
 *
 * What comes next is foretold in two ways. A loop is found by its period: once the row has repeated itself for a
 * whole period, it is taken to go on like that, however long the period is (2048 at most). Else the last 8, 4, 2 or
 * 1 of the row (the longest that has been seen before) say what came after them.
 * Each thread of the program has a row of its own, which begins with its first launch; what is learned of contexts
 * and signatures is common to all. So threads that take turns do not confuse each other's rows, and threads that
 * do the same learn from each other.
 *
 * The phases of the CPU are part of it, for each region of a launch, in two kinds of time (a region that no GPU has
 * had yet, and any other):
 *   - which extent of it the page tables show with the CPU when the launch comes: it has taken that before;
 *   - how long before the launch, counted in launches and waits, it is done with it. What is brought to the GPU
 *     earlier than the launch tells: still there when the launch comes, the CPU was done; gone back, it was not.
 *     Of a region that is new it is seen without trying: once its last block has been written, or never is.
 * And a wait after which the CPU was not seen to take anything back, 32 times in a row, is quiet: the page tables
 * need not be asked again on its account, but for one time in 8.
 *
 * Threads: one (the bus thread). Constant time for each event; memory is bounded, what was used longest ago is
 * forgotten.
 */
#ifndef UM_SEQUENCE_H
#define UM_SEQUENCE_H

#include "footprint.h"

#define UM_SEQUENCE_ARGS    12u /* managed pointers of a launch that are remembered: the first ones */
#define UM_SEQUENCE_SCALARS 8u  /* and integers */
#define UM_SEQUENCE_STEPS   32u /* launches and waits looked ahead, at most */

typedef struct um_sequences um_sequences_t;

/* footprints knows the kernels' names, residency the page tables (NULL = nothing will be brought ahead, so what only
 * that would need is not learned); neither is owned. UM_ERR_NO_MEMORY. */
um_status_t um_sequences_new(um_residency_t *residency, const um_footprints_t *footprints,
                             um_sequences_t **out);
void um_sequences_free(um_sequences_t *sequences); /* NULL is fine */

/* Every event, a LAUNCH before it is decided about. LEARNED of "sequence" brings what other runs knew. */
void um_sequences_observe(um_sequences_t *sequences, const um_event_t *event);

/* Of the exit of a wait, before it is observed: nothing need be looked up on its account. */
bool um_sequences_is_quiet(um_sequences_t *sequences, const um_event_t *event);

/* A launch that is expected. */
typedef struct um_next {
    um_ev_launch_t
        launch; /* kernel 0 where this run has not seen it yet, correlation 0; args is `arg`, of those
                              regions that are there now; scalars is `scalar`, of those that were the same the last
                              two times */
    um_arg_t arg[UM_SEQUENCE_ARGS];
    um_scalar_t scalar[UM_SEQUENCE_SCALARS];
    uint64_t signature;
    uint64_t kernel; /* as um_footprints_kernel says */
    uint32_t steps;  /* launches and waits from now: 1 = it is the next thing to come */
} um_next_t;

/* The launches that the thread which was heard of last will make next; at most max, within UM_SEQUENCE_STEPS.
 * Their args and scalars pointers hold as long as `out` stays where it is. */
uint32_t um_sequences_next(const um_sequences_t *sequences, um_next_t *out, uint32_t max);
/* Moves on with every launch, wait and managed region: nothing else is expected while it stays. */
uint64_t um_sequences_moves(const um_sequences_t *sequences);

/* What the CPU does with the region between now and that launch; *found: the page tables have shown it to have
 * taken some of the region before the latest of such launches. */
um_cpu_t um_sequences_cpu(const um_sequences_t *sequences, const um_next_t *next, uint32_t region,
                          bool *found);
/* [addr, addr+bytes) of the region is brought ahead for it: whether the CPU takes it back will be seen. */
void um_sequences_brought(um_sequences_t *sequences, const um_next_t *next, uint32_t region,
                          uint64_t addr, uint64_t bytes);

/* All that is known, as LEARNED events of "sequence". */
void um_sequences_learned(const um_sequences_t *sequences, um_event_fn emit, void *ctx);

/* Figures since the start. */
typedef struct um_sequence_stats {
    uint64_t launches, foretold; /* all; those that were expected as the next launch, of `asked` */
    uint64_t asked;              /* launches before which something was expected */
    uint64_t brought, kept, taken_back,
        in_vain;          /* extents brought; found there, with the CPU again, or their
                                                    launch did not come */
    uint64_t quiet_waits; /* waits that were not followed up */
} um_sequence_stats_t;
void um_sequences_stats(const um_sequences_t *sequences, um_sequence_stats_t *out);

#endif

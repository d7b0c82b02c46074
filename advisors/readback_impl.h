/*
 * readback_impl.h - what readback.c and readback_moving.c share: the waits, what the kernels before them were given,
 * and the ranges that the CPU reads after them.
 */
#ifndef UM_READBACK_IMPL_H
#define UM_READBACK_IMPL_H

#include "lru.h"
#include "place.h"
#include "readback_range.h"
#include "um_advisor.h"

#define UM_READ_REGIONS 1024u /* remembered by id modulo this: the latest ones */
#define UM_READ_KERNELS 4096u /* likewise */
#define UM_READ_STREAMS 64u
#define UM_READ_THREADS 64u
#define UM_READ_RECENT                                                                             \
    32u /* waits looked back over: reads after more than so many cannot be placed */
#define UM_READ_WAITS  256u
#define UM_READ_RANGES 16u /* of regions, of one wait */
#define UM_READ_SLOTS  4u  /* and so many of arguments */
#define UM_READ_ALL    (UM_READ_RANGES + UM_READ_SLOTS)
#define UM_READ_GIVEN  8u /* arguments of a kernel that are looked at: the first ones */

typedef struct um_read_use {
    uint64_t seq; /* 0 = none */
    uint64_t stream;
    uint32_t context;
} um_read_use_t;

/* The last two launches that took a region: what a launch finds the CPU to have taken was taken before
 * it. */
typedef struct um_read_region {
    uint32_t id;
    uint64_t addr, bytes, role, place;
    um_read_use_t last, before;
} um_read_region_t;

typedef struct um_read_kernel {
    uint32_t id;
    uint64_t key; /* of its name and module */
} um_read_kernel_t;

/* Pointers that a kernel was given, of a launch or of the one before a wait. */
typedef struct um_read_given {
    uint32_t n;
    struct {
        uint64_t slot; /* which argument; not 0 */
        uint64_t at;   /* from the start of the region */
        uint64_t end;  /* where the next pointer was that is known; UINT64_MAX = none is */
        uint32_t region;
    } arg[UM_READ_GIVEN];
} um_read_given_t;

/* A stream, or a context as a whole. */
typedef struct um_read_stream {
    uint64_t handle;
    uint32_t context;
    int32_t device;
    uint64_t kernel; /* key of the one launched last */
    um_read_given_t given;
} um_read_stream_t;

/* A thread of the program. */
typedef struct um_read_thread {
    uint32_t tid;
    uint32_t waits; /* entered since its latest launch */
} um_read_thread_t;

typedef struct um_read_recent {
    uint64_t seq;     /* in one row with the launches */
    uint64_t exit_ns; /* 0 = not left yet */
    uint64_t key, stream;
    uint32_t sync, kind, context;
    um_read_given_t given;
} um_read_recent_t;

typedef struct um_read_wait {
    um_lru_t lru; /* used: `seq` of its latest occurrence */
    um_range_t range
        [UM_READ_ALL]; /* first those of regions, then those of arguments, whose place is a slot */
} um_read_wait_t;

typedef struct um_readback {
    uint64_t limit;
    um_range_rules_t rules;
    uint64_t seq, launch,
        launch_before;     /* of the latest item, the latest launch and the one before */
    um_read_given_t given; /* of the latest launch */
    uint32_t n_recent;
    um_places_t places;
    um_read_region_t region[UM_READ_REGIONS];
    um_read_kernel_t kernel[UM_READ_KERNELS];
    um_read_stream_t stream[UM_READ_STREAMS], context[UM_READ_STREAMS];
    um_read_thread_t thread[UM_READ_THREADS];
    um_read_recent_t recent[UM_READ_RECENT];
    um_read_wait_t wait[UM_READ_WAITS];
} um_readback_t;

/* Where a range is counted from: what has its place now, or was given to the kernel in its slot. region NULL =
 * nothing. */
typedef struct um_read_origin {
    const um_read_region_t *region;
    uint64_t at, end; /* from the start of the region */
} um_read_origin_t;

static inline const um_read_region_t *um_read_region(const um_readback_t *self, uint32_t id)
{
    return id && self->region[id % UM_READ_REGIONS].id == id ? &self->region[id % UM_READ_REGIONS]
                                                             : NULL;
}

static inline um_read_wait_t *um_read_wait(const um_readback_t *self, uint64_t key)
{
    return um_lru_find(self->wait, UM_READ_WAITS, sizeof(um_read_wait_t), key);
}

static inline um_read_wait_t *um_read_make_wait(um_readback_t *self, uint64_t key)
{
    return um_lru_make(self->wait, UM_READ_WAITS, sizeof(um_read_wait_t), key);
}

/* The latest wait of that key; NULL = it was too long ago. */
static inline const um_read_recent_t *um_read_latest(const um_readback_t *self, uint64_t key)
{
    for (uint32_t i = 1; i <= UM_READ_RECENT && i <= self->n_recent; i++) {
        const um_read_recent_t *recent = &self->recent[(self->n_recent - i) % UM_READ_RECENT];

        if (recent->key == key)
            return recent;
    }
    return NULL;
}

/* ---- readback_moving.c: arguments whose pointer is another one each time ---- */

um_read_given_t um_read_given(const um_ev_launch_t *launch);
um_read_origin_t um_read_origin(const um_readback_t *self, const um_read_wait_t *wait, uint32_t i,
                                const um_read_given_t *given);
/* A wait of that key is entered: what moved since the latest one has a range of its own from now on. */
void um_read_follow(um_readback_t *self, uint64_t key, const um_read_given_t *given);
/* As far as what the kernels before the latest waits were given tells. */
void um_read_find_ends(const um_readback_t *self, um_read_given_t *given);
/* What the CPU has written for the launch that comes now was not read of the one before. */
void um_read_part_from_next(um_readback_t *self);
/* What lies in arguments that move is counted from their pointers. Returns what is left of the whole: its longest
 * stretch that lies in none. */
um_range_seen_t um_read_saw_of_arguments(const um_readback_t *self, um_read_wait_t *wait,
                                         const um_read_recent_t *cause,
                                         const um_read_region_t *region,
                                         const um_range_seen_t *whole);
/* At a launch, which need not take them: what has the CPU of the arguments of the waits since the launch before? */
void um_read_look_back(const um_readback_t *self, const um_view_t *view);

#endif

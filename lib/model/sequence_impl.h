/*
 * sequence_impl.h - what the parts of the sequence model share; nobody else includes it.
 *
 *   sequence.c          rows, signatures, and what comes next
 *   sequence_cpu.c      the phases of the CPU, and quiet waits
 *   sequence_profile.c  the way into and out of a profile
 */
#ifndef UM_SEQUENCE_IMPL_H
#define UM_SEQUENCE_IMPL_H

#include "advisors/lru.h"
#include "advisors/place.h"
#include "sequence.h"

#define UM_SEQ_ROW        2048u /* items of a row that are remembered: the longest period */
#define UM_SEQ_THREADS    8u
#define UM_SEQ_SIGNATURES 1024u
#define UM_SEQ_CONTEXTS   8192u
#define UM_SEQ_REGIONS    1024u /* by id modulo this: the latest ones */
#define UM_SEQ_WAITS      256u
#define UM_SEQ_PENDING    64u
#define UM_SEQ_PROBES     4u /* blocks of what is brought that are looked at afterwards */
#define UM_SEQ_YOUNG      64u
#define UM_SEQ_LONGEST    8u /* the longest context */
#define UM_SEQ_ORDERS     4u
#define UM_SEQ_START      1u /* stands in a row before its first item */
#define UM_SEQ_RESTS      64u /* items in which nothing is tried, after the first failure; doubling */
#define UM_SEQ_EARLY                                                                               \
    256u /* items of a row that are told to other runs although they came only once */

/* When the CPU is done with a region before a launch, in items before it; 0 = not known. */
typedef struct um_seq_fact {
    uint32_t from;    /* so early, what was brought was still there */
    uint32_t taken;   /* so early, it was not; all that is earlier, likewise */
    uint32_t strikes; /* in a row, that it was taken back or brought in vain */
    uint32_t found;   /* of the last occurrences: the CPU has had some of it */
    uint32_t rounds;  /* in which it was brought */
    uint64_t rests;   /* until so many items nothing is brought, */
    uint64_t tries;   /* and not again as early as `taken` */
} um_seq_fact_t;

enum { UM_SEQ_USED, UM_SEQ_NEW, UM_SEQ_AGES }; /* has a GPU had the region? */

typedef struct um_seq_arg {
    uint64_t place, role, offset_bytes; /* of the region; of the pointer in it */
    uint32_t slot, inside_bytes;        /* of the parameter; where in it, if it is a struct */
    um_seq_fact_t fact[UM_SEQ_AGES];    /* kept with the first pointer into the region */
} um_seq_arg_t;

typedef struct um_signature {
    um_lru_t lru; /* by its hash */
    uint64_t kernel, graph, stream;
    uint64_t seen;
    uint32_t id, context; /* of the kernel; 0 = not seen in this run */
    int32_t device;
    uint32_t grid[3], block[3], flags;
    uint32_t n;
    bool early; /* it is among the first items of a row */
    um_seq_arg_t arg[UM_SEQUENCE_ARGS];
    um_scalar_t scalar[UM_SEQUENCE_SCALARS]; /* of the latest launch; the hash is without them */
    uint32_t n_scalars, steady;              /* bit i: the i-th was so the time before, too */
} um_signature_t;

/* What came after the last so many items. */
typedef struct um_seq_context {
    um_lru_t lru;
    uint64_t next;
    uint64_t at;     /* of the longest: where in the row of `thread` it was last */
    uint32_t count;  /* times that it was so, of late */
    uint16_t thread; /* number + 1 */
    uint8_t order;
    bool told, early;
} um_seq_context_t;

typedef struct um_row {
    uint32_t tid;
    uint64_t used;
    uint64_t n; /* items so far */
    uint64_t item[UM_SEQ_ROW];
    uint64_t
        key[UM_SEQ_ORDERS]; /* of the contexts that the next item comes after, the longest first */
    uint64_t period, repeated; /* 0 = none; items that have repeated the ones a period before */
    bool waited;               /* the last item is a wait */
    uint64_t launch;           /* signature of the last launch */
} um_row_t;

typedef struct um_seq_region {
    uint32_t id;
    uint64_t addr, bytes, place, role;
    bool taken; /* by a launch */
} um_seq_region_t;

/* A region that no launch has taken. */
typedef struct um_seq_young {
    uint32_t region; /* 0 = free */
    uint32_t looks;
    um_row_t *row; /* NULL = not yet known whose */
    uint64_t since,
        ready; /* items of the row: when it was there; when its end was written, 0 = not yet */
} um_seq_young_t;

/* What was brought ahead for a launch that has not come yet. */
typedef struct um_seq_pending {
    uint64_t signature; /* 0 = free */
    uint64_t due;       /* items of all rows by which the launch must have come */
    uint64_t place;
    uint32_t region, steps, age, n;
    bool taken_back;
    uint64_t probe[UM_SEQ_PROBES]; /* addresses of blocks */
} um_seq_pending_t;

typedef struct um_seq_wait {
    um_lru_t lru;
    uint32_t quiet; /* in a row */
    uint32_t turn;
} um_seq_wait_t;

struct um_sequences {
    um_residency_t *residency;
    const um_footprints_t *footprints;
    um_places_t places;
    um_seq_region_t region[UM_SEQ_REGIONS];
    um_signature_t *signature; /* UM_SEQ_SIGNATURES */
    um_seq_context_t *context; /* UM_SEQ_CONTEXTS */
    um_row_t *row;             /* UM_SEQ_THREADS */
    um_row_t *last;            /* of the thread that was heard of last */
    uint64_t clock;            /* items of all rows */
    uint64_t moves;
    um_seq_pending_t pending[UM_SEQ_PENDING];
    um_seq_young_t young[UM_SEQ_YOUNG];
    uint32_t n_pending, n_young;
    um_seq_wait_t wait[UM_SEQ_WAITS];
    um_seq_wait_t *after; /* the wait that was left last; NULL = none */
    bool launched, loud;  /* since: a launch with managed memory; the CPU took something */
    um_sequence_stats_t stats;
};

/* ---- sequence.c ---- */

um_signature_t *um_sequence_find(const um_sequences_t *sequences, uint64_t hash);
/* Found, or made in the place of the one that has not come for longest. */
um_signature_t *um_sequence_signature(um_sequences_t *sequences, uint64_t hash);
um_seq_context_t *um_sequence_context(um_sequences_t *sequences, uint64_t key);
uint64_t um_sequence_wait_key(const um_row_t *row, const um_ev_sync_t *sync);
/* NULL = none of that id is remembered. */
um_seq_region_t *um_sequence_region(um_sequences_t *sequences, uint32_t id);

/* ---- sequence_cpu.c ---- */

/* A launch is the latest item of its row; its regions are as they were before it. */
void um_sequence_cpu_launch(um_sequences_t *sequences, um_row_t *row, um_signature_t *signature);
void um_sequence_cpu_wait(um_sequences_t *sequences, um_row_t *row, const um_ev_sync_t *sync);
void um_sequence_cpu_new(um_sequences_t *sequences, const um_seq_region_t *region);
void um_sequence_cpu_gone(um_sequences_t *sequences, uint32_t region);
/* The CPU was seen to take some of the region. */
void um_sequence_cpu_took(um_sequences_t *sequences, uint32_t region, uint64_t addr, uint64_t bytes,
                          bool shown);

/* ---- sequence_profile.c ---- */

void um_sequence_on_learned(um_sequences_t *sequences, const um_ev_learned_t *learned);

#endif

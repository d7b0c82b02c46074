/*
 * readback_range.h - a range that the CPU reads after a wait, occurrence by occurrence of that wait.
 *
 * Two occurrences have to agree on what is read and on how often (every time, or every n-th). What was read whole
 * after the first of all is brought at the second, to see: all but its last block, and if nobody takes that, it is as
 * if nothing had been. What is read may also move: by the same step each time, and from the end of its region back to
 * the start. What comes by prefetch no longer faults: now and then its last block is left out, and when nobody misses
 * it the CPU has stopped reading.
 * All bytes are counted from the range's origin, which is the caller's: the start of a region, or a pointer that a
 * kernel was given. Knows no clock, no regions.
 */
#ifndef UM_READBACK_RANGE_H
#define UM_READBACK_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#define UM_RANGE_AGREED 2u

/* What is seen of an occurrence, from three sources that may all tell of the same bytes. end 0 = nothing. */
typedef struct um_range_seen {
    uint64_t addr, end;
    uint64_t present_bytes, migrated_bytes, faults;
} um_range_seen_t;

typedef struct um_range {
    uint64_t place;         /* what its origin is of; 0 = free */
    uint64_t role;          /* of the region */
    uint32_t nth;           /* of those of this place */
    uint32_t count, period; /* occurrences since the last read; read every `period`-th */
    uint32_t agreed, missed;
    uint32_t brought;       /* occurrences served since a block was left out */
    bool pending, left_out; /* served at the latest occurrence; but for a block */
    uint32_t served;        /* the region, then */
    uint64_t served_end;    /* and where it ended then: another argument may begin within */
    bool tried;             /* brought after one read, to see; if in vain, two have to agree */
    bool held;              /* this run has seen for itself whether it is so */
    bool told;              /* earlier runs have told of it, */
    uint32_t age;           /* so long ago */
    uint64_t times;         /* it was seen, in all runs */
    uint64_t addr, end;     /* from the origin */
    int64_t step;           /* how far on it is the next time */
    um_range_seen_t seen;   /* since the latest occurrence */
} um_range_t;

typedef struct um_range_rules {
    uint64_t min;     /* bytes of the smallest range worth a call */
    uint64_t density; /* per cent of it that the CPU must have read */
    uint64_t check;   /* occurrences after which a block is left out */
} um_range_rules_t;

/* More of the latest occurrence. */
void um_range_saw(um_range_t *range, const um_range_seen_t *part);
/* Nothing from `end` on was of it: somebody else's begins there. */
void um_range_trim(um_range_t *range, uint64_t end);
/* The next occurrence is here: what came of the latest one. alive = the region served then is still there; of one
 * that went nobody looked whether the block left out was missed. */
void um_range_judge(um_range_t *range, const um_range_rules_t *rules, bool alive);
/* The occurrence that begins: `pending` says whether the range is read after it, `left_out` whether it is time to
 * leave a block out. `bytes` is what there is from the origin on, 0 = nothing that could be brought; of it what is
 * brought ends at `limit`. */
void um_range_foresee(um_range_t *range, const um_range_rules_t *rules, uint64_t bytes,
                      uint64_t limit, uint32_t region);

#endif

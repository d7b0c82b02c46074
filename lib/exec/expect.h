/*
 * expect.h - the advisors that look ahead are asked about the launches that come next.
 *
 * Asked when all that the program did has been seen: nearest launch first, an argument after the other, a stretch
 * after the other, until a little is on its way. The rest is asked about when that has arrived, by which time
 * something else may be expected: so what is foretold wrongly costs little. Where asking leads to nothing it becomes
 * rare.
 *
 * Threads: one.
 */
#ifndef UM_EXPECT_H
#define UM_EXPECT_H

#include "ranges.h"
#include "sharing.h"
#include "view.h"

#define UM_EXPECT_LAUNCHES 8u  /* at most so many ahead */
#define UM_EXPECT_RANGES   32u /* of one of them; more are left alone */
#define UM_EXPECT_PIECES   4u  /* on their way: no more are asked for */
#define UM_EXPECT_AGAIN    1u  /* or fewer: time to ask again */
#define UM_EXPECT_SHORT    3u /* drains between two questions, at most, while something is missing, */
#define UM_EXPECT_PAUSE    63u /* and else */

typedef struct um_expect {
    um_next_t next[UM_EXPECT_LAUNCHES];
    um_range_t range[UM_EXPECT_RANGES];
    uint64_t moves;        /* when it was last asked */
    bool unfinished;       /* then more was wanted than could be brought at once */
    uint32_t pause, since; /* drains to wait before the next question; waited so far */
    uint32_t context;      /* the latest, for launches that this run has not seen yet; 0 = none */
    uint64_t now_ns;       /* of the latest event */
    uint32_t correlation;  /* of the latest launch */
} um_expect_t;

/* Asks the advisors about the stretch that the view stands at; returns the pieces admitted. */
typedef uint32_t (*um_expect_fn)(void *ctx);

/* All that was posted has been seen. Returns the pieces admitted. */
uint32_t um_expect_idle(um_expect_t *expect, const um_range_sources_t *from,
                        const um_sharing_t *sharing, um_view_t *view, um_expect_fn ask, void *ctx);
/* There is something new: the next question need not wait. */
void um_expect_hurry(um_expect_t *expect);

#endif

/*
 * sweep.h - launches that go through a region piece by piece, each with a pointer one step further on: as programs
 * do that give each of several streams a piece. One that has gone so between two waits is taken to go so again.
 *
 * Constant time and memory. Threads: one.
 */
#ifndef UM_SWEEP_H
#define UM_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#define UM_SWEEP_PIECES 3u    /* at least, */
#define UM_SWEEP_MOST   1024u /* and at most */

/* The pointers that launches had since a wait; bytes from the start of the region. */
typedef struct um_sweep {
    uint64_t first, last, step; /* step 0: there is only one yet */
    uint32_t pieces;            /* 0 = none yet */
    int32_t device;
    /* One was not where the next piece would be, nor where one had been; or was on another device. */
    bool other;
} um_sweep_t;

typedef struct um_sweeps {
    um_sweep_t now;    /* since the latest wait */
    um_sweep_t before; /* the latest there was before that; pieces 0 = that was no sweep */
    uint32_t phase;    /* what `now` is of */
} um_sweeps_t;

/* A launch on that device has a pointer to there. phase: counts the waits. */
static inline void um_sweep_take(um_sweeps_t *sweeps, uint32_t phase, int32_t device, uint64_t at)
{
    um_sweep_t *now = &sweeps->now;

    if (sweeps->phase != phase || !now->pieces) {
        if (now->pieces)
            sweeps->before = now->other || now->pieces < UM_SWEEP_PIECES ? (um_sweep_t){0} : *now;
        *now = (um_sweep_t){.first = at, .last = at, .pieces = 1, .device = device};
        sweeps->phase = phase;
    } else if (at > now->last && (!now->step || at - now->last == now->step)) {
        now->step = at - now->last;
        now->last = at;
        now->pieces++;
    } else {
        now->other |= at < now->first || at > now->last;
    }
    now->other |= now->pieces > UM_SWEEP_MOST || device != now->device;
}

/* The piece that was taken last is one of a sweep that is known. */
static inline bool um_sweep_goes_on(const um_sweeps_t *sweeps)
{
    const um_sweep_t *now = &sweeps->now, *before = &sweeps->before;

    return before->pieces && !now->other && now->first == before->first &&
           (!now->step || now->step == before->step) && now->last < before->last;
}

#endif

/*
 * Touches are reached one after the other; those that are swept side by side by how far each has got:
 * of three arrays in one loop the first blocks of each come first.
 */
#include "engine.h"

#include <stdlib.h>

void um_walk_start(um_walk_t *walk, const um_touch_t *touches, uint32_t n, uint64_t work_ns,
                   uint64_t grain_bytes)
{
    walk->grain_bytes = UM_BLOCK_BYTES;
    while (walk->grain_bytes > grain_bytes && walk->grain_bytes > UM_PAGE_BYTES)
        walk->grain_bytes /= 2;
    walk->next = touches;
    walk->end = touches + n;
    walk->n_lanes = walk->n_ahead = walk->first = 0;
    walk->done_bytes = walk->spent_ns = walk->total_bytes = 0;
    walk->work_ns = work_ns;
    for (uint32_t i = 0; i < n; i++)
        walk->total_bytes += touches[i].bytes;
}

void um_walk_fini(um_walk_t *walk)
{
    free(walk->lane);
}

/* Has `a` got less far than `b`? */
static bool behind(const um_walk_lane_t *a, const um_walk_lane_t *b)
{
    double part_a = (double)(a->at - a->start) / (double)a->touch->bytes;
    double part_b = (double)(b->at - b->start) / (double)b->touch->bytes;

    return part_a < part_b || (part_a == part_b && a->touch < b->touch);
}

static void sift_down(um_walk_t *walk)
{
    uint32_t i = 0;

    for (;;) {
        uint32_t least = i, left = 2 * i + 1;
        um_walk_lane_t swap = walk->lane[i];

        if (left < walk->n_lanes && behind(&walk->lane[left], &walk->lane[least]))
            least = left;
        if (left + 1 < walk->n_lanes && behind(&walk->lane[left + 1], &walk->lane[least]))
            least = left + 1;
        if (least == i)
            return;
        walk->lane[i] = walk->lane[least];
        walk->lane[least] = swap;
        i = least;
    }
}

/* The next touch and all that are swept beside it. All start at 0: in order they are a heap. */
static bool next_group(um_engine_t *engine, um_walk_t *walk)
{
    const um_touch_t *touch = walk->next;

    while (touch < walk->end && (touch == walk->next || touch->beside)) {
        if (walk->n_lanes == walk->room) {
            uint32_t room = walk->room ? 2 * walk->room : 8;
            um_walk_lane_t *grown = realloc(walk->lane, room * sizeof(*grown));

            if (!grown) {
                um_engine_fail(engine, UM_ERR_NO_MEMORY);
                return false;
            }
            walk->lane = grown;
            walk->room = room;
        }
        if (touch->bytes)
            walk->lane[walk->n_lanes++] = (um_walk_lane_t){.start = touch->addr,
                                                           .at = touch->addr,
                                                           .end = touch->addr + touch->bytes,
                                                           .touch = touch};
        touch++;
    }
    walk->next = touch;
    return true;
}

static bool look_ahead(um_engine_t *engine, um_walk_t *walk)
{
    um_walk_lane_t *lane;
    um_piece_t *piece;

    while (!walk->n_lanes)
        if (walk->next == walk->end || !next_group(engine, walk))
            return false;
    lane = &walk->lane[0];
    piece = &walk->ahead[(walk->first + walk->n_ahead++) % UM_WALK_AHEAD];
    *piece = (um_piece_t){.addr = lane->at,
                          .bytes = walk->grain_bytes - lane->at % walk->grain_bytes,
                          .region = lane->touch->region,
                          .kind = lane->touch->kind};
    if (piece->bytes > lane->end - lane->at)
        piece->bytes = lane->end - lane->at;
    lane->at += piece->bytes;
    if (lane->at == lane->end)
        *lane = walk->lane[--walk->n_lanes];
    sift_down(walk);
    return true;
}

const um_piece_t *um_walk_piece(um_engine_t *engine, um_walk_t *walk, uint32_t i)
{
    if (i >= UM_WALK_AHEAD)
        return NULL;
    while (walk->n_ahead <= i)
        if (!look_ahead(engine, walk))
            return NULL;
    return &walk->ahead[(walk->first + i) % UM_WALK_AHEAD];
}

uint64_t um_walk_step(um_walk_t *walk)
{
    uint64_t spent;

    walk->done_bytes += walk->ahead[walk->first].bytes;
    walk->first = (walk->first + 1) % UM_WALK_AHEAD;
    walk->n_ahead--;
    spent =
        (uint64_t)((double)walk->work_ns * ((double)walk->done_bytes / (double)walk->total_bytes));
    if (spent > walk->work_ns)
        spent = walk->work_ns;
    spent -= walk->spent_ns;
    walk->spent_ns += spent;
    return spent;
}

uint64_t um_walk_rest(const um_walk_t *walk)
{
    return walk->work_ns - walk->spent_ns;
}

/*
 * decode.h - the payload of a block as events again, one at a time and without copying them all.
 *
 * A decoded block keeps one event per type with everything that is constant in the block already
 * filled in; the next event is that one with a row of the varying columns stored into it.
 */
#ifndef UM_DECODE_H
#define UM_DECODE_H

#include <string.h>

#include "format.h"

/* A varying column and the field that it goes to. */
typedef struct um_lane {
    const uint64_t *values;
    uint32_t offset; /* in um_event_t */
} um_lane_t;

/* The events of one type in a block. */
typedef struct um_type_rows {
    um_event_t event;
    um_lane_t *wide, *narrow; /* of 8 and of 4 bytes */
    uint32_t n_wide, n_narrow;
    uint32_t n, next; /* events, and the next one in file order */
} um_type_rows_t;

/* One block. Zero-initialise, reuse, free. */
typedef struct um_block {
    um_type_rows_t types[UM_EV_TYPE_COUNT];
    um_column_t time, type, tid;
    uint32_t n, at; /* events to deliver, and how many were */
    uint32_t stop;  /* deliver no more than up to here without asking (time order) */
    /* Both NULL when file order is delivery order and every type is known. Otherwise: where the
     * k-th event to deliver is, and which event of its type. */
    uint32_t *order, *row;
    uint64_t rank; /* for ties between blocks */
    um_arena_t arena;
    um_bytes_t raw;
} um_block_t;

/* Takes a payload apart that passed its checksum. by_time: deliver in order of time, ties as they
 * were. UM_ERR_FORMAT: malformed; UM_ERR_NO_MEMORY. zstd is a ZSTD_DCtx. */
um_status_t um_block_decode(um_block_t *block, const um_file_header_t *file,
                            const um_block_header_t *header, const uint8_t *payload, void *zstd,
                            bool by_time);
void um_block_free(um_block_t *block);

/* Time of the k-th event to deliver. */
static inline uint64_t um_block_time(const um_block_t *block, uint32_t k)
{
    return um_column_at(&block->time, block->order ? block->order[k] : k);
}

/* The next event; at < n. Valid until the next call for this block. */
static inline const um_event_t *um_block_next(um_block_t *block)
{
    uint32_t at = block->at++, i = block->order ? block->order[at] : at;
    um_type_rows_t *rows = &block->types[um_column_at(&block->type, i)];
    uint32_t row = block->row ? block->row[i] : rows->next++;
    uint8_t *event = (uint8_t *)&rows->event;

    rows->event.time_ns = um_column_at(&block->time, i);
    rows->event.tid = (uint32_t)um_column_at(&block->tid, i);
    for (uint32_t k = 0; k < rows->n_wide; k++)
        memcpy(event + rows->wide[k].offset, &rows->wide[k].values[row], 8);
    for (uint32_t k = 0; k < rows->n_narrow; k++) {
        uint32_t v = (uint32_t)rows->narrow[k].values[row];
        memcpy(event + rows->narrow[k].offset, &v, 4);
    }
    return &rows->event;
}

#endif

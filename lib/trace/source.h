/*
 * source.h - the bytes of a trace and the walk over its blocks.
 */
#ifndef UM_SOURCE_H
#define UM_SOURCE_H

#include "format.h"

/* Where bytes come from: a file, or memory when `memory` is not NULL. */
typedef struct um_source {
    int fd;
    const uint8_t *memory;
    uint64_t bytes; /* when it was opened */
} um_source_t;

/* Reads exactly n bytes; false past the end or when the system refuses (errno). */
bool um_source_read(const um_source_t *source, uint64_t offset, void *out, size_t n);
/* The first place at or after `offset` where the n bytes of `what` are; UINT64_MAX when nowhere
 * before `end`. Reads a piece at a time. */
uint64_t um_source_find(const um_source_t *source, uint64_t offset, uint64_t end, const void *what,
                        size_t n);

/* What is wrong with a file: the first place in full, the others counted. */
typedef struct um_damage {
    um_status_t status; /* UM_OK: nothing */
    uint64_t offset;
    const char *what; /* static phrase */
    uint32_t others;
} um_damage_t;

void um_damage_add(um_damage_t *damage, um_status_t status, uint64_t offset, const char *what);

/* A walk from block to block by their headers. It steps over what is damaged to the next block that
 * is whole, and says at the end what it met. */
typedef struct um_walk {
    const um_source_t *source;
    uint64_t seed;
    uint64_t at, end;    /* end: of the blocks; the index begins there in a finished file */
    uint64_t next_event; /* the number that the next block should begin with */
    bool finished;       /* `end` is known from a good trailer */
} um_walk_t;

/* Next block whose header is good and whose payload lies inside the file: true, *header and
 * *payload_at. false at the end; `damage` has been told of everything that was wrong. */
bool um_walk_next(um_walk_t *walk, um_damage_t *damage, um_block_header_t *header,
                  uint64_t *payload_at);

#endif

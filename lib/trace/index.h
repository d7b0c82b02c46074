/*
 * index.h - the table of blocks at the end of a finished file, and the trailer that finds it.
 */
#ifndef UM_INDEX_H
#define UM_INDEX_H

#include "source.h"

typedef struct um_index_entry {
    uint64_t offset;
    uint64_t first_ns, last_ns;
    uint32_t events, packed_bytes;
} um_index_entry_t;

/* Appends index and trailer; `offset` is where they will be in the file. */
bool um_index_build(um_bytes_t *out, const um_index_entry_t *entries, size_t n, uint64_t offset,
                    uint64_t seed);

/* Finds the index from the end of the file and hands its entries to fn, a piece at a time. true and
 * *offset (where the blocks end) when trailer and index are whole; what fn was told counts only
 * then. fn returns false to give up. */
typedef bool (*um_index_fn)(void *ctx, const um_index_entry_t *entry);
bool um_index_read(const um_source_t *source, uint64_t blocks_at, uint64_t seed, um_index_fn fn,
                   void *ctx, uint64_t *offset);

#endif

/* The mutator of targets that read a .umt: it mends checksums after most changes, or no change would
 * get past them. */
#ifndef TRACE_MEND_H
#define TRACE_MEND_H

#include <string.h>

#include "trace/index.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static void mend_header(uint8_t *copy, size_t bytes)
{
    um_put64(copy + 32, um_check(copy + UM_FILE_HEADER_BYTES, bytes - UM_FILE_HEADER_BYTES,
                                 um_check(copy, 32, 0)));
}

/* Blocks one after another, until something else comes. */
static size_t mend_blocks(uint8_t *data, size_t size, size_t at, uint64_t seed)
{
    while (size - at >= UM_BLOCK_HEADER_BYTES && um_get32(data + at) == UM_MAGIC_BLOCK) {
        uint8_t *header = data + at, *payload = header + UM_BLOCK_HEADER_BYTES;
        uint32_t packed = um_get32(header + 4);
        at += UM_BLOCK_HEADER_BYTES;
        if (packed <= size - at)
            um_put64(header + 40, um_check(payload, packed, seed));
        um_put64(header + 48, um_check(header, 48, seed));
        at += packed <= size - at ? packed : size - at;
    }
    return at;
}

static void mend(uint8_t *data, size_t size)
{
    size_t bytes = size >= UM_FILE_HEADER_BYTES ? um_header_bytes(data) : 0;
    if (!bytes || bytes > size)
        return;
    mend_header(data, bytes);
    uint64_t seed = um_header_seed(data);
    size_t at = bytes;
    if (size - at >= bytes && um_header_bytes(data + at) == bytes) {
        memcpy(data + at, data, bytes);
        at += bytes;
    }
    at = mend_blocks(data, size, at, seed);
    size_t tail = UM_INDEX_HEADER_BYTES + UM_TRAILER_BYTES;
    if (size - at < tail || um_get32(data + at) != UM_MAGIC_INDEX)
        return;
    uint8_t *trailer = data + size - UM_TRAILER_BYTES;
    um_put64(data + at + 16, um_check(data + at + UM_INDEX_HEADER_BYTES, size - at - tail,
                                      um_check(data + at, 16, seed)));
    um_put64(trailer + 40, um_check(trailer, 40, seed));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8)
        mend(data, size);
    return size;
}

#endif

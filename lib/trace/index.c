#include "index.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* index: magic 4, zero 4, entries 8, check 8, entries; the check covers what is before and after it
 * trailer: offset 8, index bytes 8, blocks 8, events 8, zero 4, magic 4, check 8 */

bool um_index_build(um_bytes_t *out, const um_index_entry_t *entries, size_t n, uint64_t offset,
                    uint64_t seed)
{
    size_t bytes = UM_INDEX_HEADER_BYTES + n * UM_INDEX_ENTRY_BYTES;
    size_t start = out->used;
    uint64_t events = 0;
    if (!um_bytes_add(out, bytes + UM_TRAILER_BYTES))
        return false;
    uint8_t *index = out->data + start, *at = index + UM_INDEX_HEADER_BYTES;
    for (size_t i = 0; i < n; i++, at += UM_INDEX_ENTRY_BYTES) {
        um_put64(at, entries[i].offset);
        um_put64(at + 8, entries[i].first_ns);
        um_put64(at + 16, entries[i].last_ns);
        um_put32(at + 24, entries[i].events);
        um_put32(at + 28, entries[i].packed_bytes);
        events += entries[i].events;
    }
    um_put32(index, UM_MAGIC_INDEX);
    um_put32(index + 4, 0);
    um_put64(index + 8, n);
    um_put64(index + 16, um_check(index + UM_INDEX_HEADER_BYTES, n * UM_INDEX_ENTRY_BYTES,
                                  um_check(index, 16, seed)));
    um_put64(at, offset);
    um_put64(at + 8, bytes);
    um_put64(at + 16, n);
    um_put64(at + 24, events);
    um_put32(at + 32, 0);
    um_put32(at + 36, UM_MAGIC_TRAILER);
    um_put64(at + 40, um_check(at, 40, seed));
    return true;
}

/* Where the index is and how many entries it has, from the last bytes of the file. */
static bool read_trailer(const um_source_t *source, uint64_t blocks_at, uint64_t seed,
                         uint64_t *offset, uint64_t *n)
{
    uint8_t t[UM_TRAILER_BYTES];
    if (source->bytes < UM_TRAILER_BYTES ||
        !um_source_read(source, source->bytes - sizeof(t), t, sizeof(t)) ||
        um_get32(t + 36) != UM_MAGIC_TRAILER || !um_check_matches(um_get64(t + 40), t, 40, seed))
        return false;
    *offset = um_get64(t);
    *n = um_get64(t + 16);
    uint64_t end = source->bytes - sizeof(t);
    return *offset >= blocks_at && *offset <= end && end - *offset >= UM_INDEX_HEADER_BYTES &&
           (end - *offset - UM_INDEX_HEADER_BYTES) / UM_INDEX_ENTRY_BYTES == *n &&
           (end - *offset - UM_INDEX_HEADER_BYTES) % UM_INDEX_ENTRY_BYTES == 0;
}

bool um_index_read(const um_source_t *source, uint64_t blocks_at, uint64_t seed, um_index_fn fn,
                   void *ctx, uint64_t *offset)
{
    uint8_t header[UM_INDEX_HEADER_BYTES], piece[256 * UM_INDEX_ENTRY_BYTES];
    uint64_t at, n;
    if (!read_trailer(source, blocks_at, seed, &at, &n) ||
        !um_source_read(source, at, header, sizeof(header)) || um_get32(header) != UM_MAGIC_INDEX ||
        um_get64(header + 8) != n)
        return false;

    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, um_check(header, 16, seed));
    *offset = at;
    at += sizeof(header);
    while (n > 0) {
        size_t now = n < 256 ? (size_t)n : 256;
        if (!um_source_read(source, at, piece, now * UM_INDEX_ENTRY_BYTES))
            return false;
        XXH3_64bits_update(&state, piece, now * UM_INDEX_ENTRY_BYTES);
        for (size_t i = 0; i < now; i++) {
            const uint8_t *e = piece + i * UM_INDEX_ENTRY_BYTES;
            um_index_entry_t entry = {um_get64(e), um_get64(e + 8), um_get64(e + 16),
                                      um_get32(e + 24), um_get32(e + 28)};
            if (!fn(ctx, &entry))
                return false;
        }
        at += now * UM_INDEX_ENTRY_BYTES;
        n -= now;
    }
    return um_get64(header + 16) == XXH3_64bits_digest(&state);
}

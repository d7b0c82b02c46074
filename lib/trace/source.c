#include "source.h"

#include <errno.h>
#include <endian.h>
#include <string.h>
#include <unistd.h>

bool um_source_read(const um_source_t *source, uint64_t offset, void *out, size_t n)
{
    if (offset > source->bytes || n > source->bytes - offset)
        return false;
    if (source->memory) {
        memcpy(out, source->memory + offset, n);
        return true;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(source->fd, (uint8_t *)out + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false; /* 0: the file became shorter since it was opened */
        done += (size_t)got;
    }
    return true;
}

uint64_t um_source_find(const um_source_t *source, uint64_t offset, uint64_t end, const void *what,
                        size_t n)
{
    uint8_t piece[16384];
    while (offset < end && end - offset >= n) {
        size_t bytes = end - offset < sizeof(piece) ? (size_t)(end - offset) : sizeof(piece);
        if (!um_source_read(source, offset, piece, bytes))
            break;
        const uint8_t *found = memmem(piece, bytes, what, n);
        if (found)
            return offset + (uint64_t)(found - piece);
        offset += bytes - n + 1;
    }
    return UINT64_MAX;
}

void um_damage_add(um_damage_t *damage, um_status_t status, uint64_t offset, const char *what)
{
    if (damage->status != UM_OK)
        damage->others++;
    else
        *damage = (um_damage_t){.status = status, .offset = offset, .what = what};
}

/* The header at `at`, if it is a good one of a block that comes after those already seen. */
static bool read_header(const um_walk_t *walk, uint64_t at, um_block_header_t *header)
{
    uint8_t bytes[UM_BLOCK_HEADER_BYTES];
    return walk->end - at >= sizeof(bytes) &&
           um_source_read(walk->source, at, bytes, sizeof(bytes)) &&
           um_block_header_get(header, walk->seed, bytes) &&
           header->first_event >= walk->next_event;
}

/* No block begins at walk->at. Says what is there, and moves to the next block header if there is
 * one. */
static bool resume(um_walk_t *walk, um_damage_t *damage, um_block_header_t *header)
{
    uint64_t start = walk->at, left = walk->end - start;
    const uint32_t block = htole32(UM_MAGIC_BLOCK), index = htole32(UM_MAGIC_INDEX);
    uint32_t magic = 0;

    um_source_read(walk->source, start, &magic, left < sizeof(magic) ? left : sizeof(magic));
    while ((walk->at = um_source_find(walk->source, walk->at + 1, walk->end, &block,
                                      sizeof(block))) != UINT64_MAX)
        if (read_header(walk, walk->at, header)) {
            um_damage_add(damage, UM_ERR_FORMAT, start, "block header is damaged");
            return true;
        }
    walk->at = walk->end;
    if (magic == index)
        um_damage_add(damage, UM_ERR_FORMAT, start, "index is damaged or cut short");
    else if (left < UM_BLOCK_HEADER_BYTES && !walk->finished)
        um_damage_add(damage, UM_ERR_TRUNCATED, start, "block header is cut short");
    else
        um_damage_add(damage, UM_ERR_FORMAT, start, "block header is damaged");
    return false;
}

bool um_walk_next(um_walk_t *walk, um_damage_t *damage, um_block_header_t *header,
                  uint64_t *payload_at)
{
    if (walk->at >= walk->end)
        return false;
    uint64_t start = walk->at;
    if (!read_header(walk, walk->at, header)) {
        if (!resume(walk, damage, header))
            return false;
    } else if (header->first_event > walk->next_event && damage->status == UM_OK) {
        um_damage_add(damage, UM_ERR_FORMAT, start, "blocks before this one are missing");
    }
    *payload_at = walk->at + UM_BLOCK_HEADER_BYTES;
    if (header->packed_bytes > walk->end - *payload_at) {
        um_damage_add(damage, UM_ERR_TRUNCATED, walk->at, "block is cut short");
        walk->at = walk->end;
        return false;
    }
    walk->at = *payload_at + header->packed_bytes;
    walk->next_event = header->first_event + header->events;
    return true;
}

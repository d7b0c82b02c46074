/*
 * format.h - the frame of a .umt file: magics, headers, limits. FORMAT.md describes all of it.
 *
 *   file header, the same again, block, block, ..., index, trailer
 */
#ifndef UM_FORMAT_H
#define UM_FORMAT_H

#include <endian.h>
#include <string.h>

#include "column.h"

#define UM_FORMAT_VERSION    1u /* of what this code writes */
#define UM_FORMAT_MIN_READER 1u /* the oldest reader that understands it */

/* A feature a reader must know; it refuses bits it does not know. */
#define UM_FEATURE_ZSTD 1ull
#define UM_FEATURES     UM_FEATURE_ZSTD

#define UM_MAGIC_FILE    "UMT\r\n\x1a\n"
#define UM_MAGIC_BYTES   8u
#define UM_MAGIC_BLOCK   0x424d55ffu /* ff 'U' 'M' 'B' */
#define UM_MAGIC_INDEX   0x494d55ffu /* ff 'U' 'M' 'I' */
#define UM_MAGIC_TRAILER 0x454d55ffu /* ff 'U' 'M' 'E' */

#define UM_FILE_HEADER_BYTES  40u
#define UM_BLOCK_HEADER_BYTES 56u
#define UM_INDEX_HEADER_BYTES 24u
#define UM_INDEX_ENTRY_BYTES  32u
#define UM_TRAILER_BYTES      48u

/* Nothing in a file may be larger; a reader refuses it before it allocates. */
#define UM_MAX_HEADER_BYTES   (16u << 20)
#define UM_MAX_BLOCK_BYTES    (16u << 20) /* unpacked */
#define UM_MAX_PACKED_BYTES   (17u << 20)
#define UM_MAX_BLOCK_EVENTS   65536u
#define UM_MAX_BLOCK_ELEMENTS (1u << 18) /* of one array column */
#define UM_MAX_ARRAY_ELEMENTS (1u << 17) /* of one event */
#define UM_MAX_STRING_BYTES   (1u << 20) /* longer ones are cut by the writer */

/* ---- file header ---- */

/* A schema as it was found in a file. `fields` of a type follow each other in `field`. */
typedef struct um_file_type {
    const char *name; /* NULL: the file has no such type */
    uint16_t first, n_fields;
} um_file_type_t;

typedef struct um_file_header {
    uint32_t version;
    uint64_t check; /* seeds every later checksum, so that blocks of another file never fit */
    uint64_t bytes; /* of one copy */
    um_file_type_t types[UM_SCHEMA_MAX_TYPES];
    um_field_t *fields; /* name points into `data` */
    size_t n_fields;
    um_ev_fact_t *facts;
    size_t n_facts;
    uint8_t *data; /* the copy itself */
} um_file_header_t;

/* Appends one copy of the header with um_schema_table and the facts. NO_MEMORY, or INVALID when
 * the facts are too large. */
um_status_t um_header_build(um_bytes_t *out, const um_ev_fact_t *facts, size_t n_facts);

/* The payload that follows the fixed part: how many bytes the whole copy has, 0 when `fixed` (at
 * least UM_FILE_HEADER_BYTES) is no sane file header. */
uint64_t um_header_bytes(const uint8_t *fixed);

/* What seeds the checksums of the blocks behind a header copy. */
uint64_t um_header_seed(const uint8_t *copy);

/* Takes a copy apart; owns `data` (malloc'ed) from now on, also on failure. FORMAT, VERSION,
 * NO_MEMORY; *why gets a static phrase. */
um_status_t um_header_parse(um_file_header_t *header, uint8_t *data, uint64_t bytes,
                            const char **why);
void um_header_free(um_file_header_t *header);

/* ---- block header ---- */

typedef struct um_block_header {
    uint32_t packed_bytes, raw_bytes;
    uint32_t events;      /* 1 .. UM_MAX_BLOCK_EVENTS */
    uint64_t first_event; /* events in the blocks before */
    uint64_t first_ns, last_ns;
    uint64_t payload_check;
} um_block_header_t;

void um_block_header_put(const um_block_header_t *header, uint64_t seed, uint8_t *out);
bool um_block_header_get(um_block_header_t *header, uint64_t seed, const uint8_t *in);

/* ---- numbers and checksums ---- */

/* Little-endian numbers at any address. */
static inline void um_put32(uint8_t *at, uint32_t v)
{
    v = htole32(v);
    memcpy(at, &v, sizeof(v));
}

static inline void um_put64(uint8_t *at, uint64_t v)
{
    v = htole64(v);
    memcpy(at, &v, sizeof(v));
}

static inline uint32_t um_get32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return le32toh(v);
}

static inline uint64_t um_get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return le64toh(v);
}

/* XXH3-64. */
uint64_t um_check(const void *data, size_t bytes, uint64_t seed);
bool um_check_matches(uint64_t found, const void *data, size_t bytes, uint64_t seed);

#endif

/*
 * encode.h - events gathered as rows, and a full set of rows as the bytes of a block.
 *
 * Adding is all that happens on the program's side; encoding happens on the writer's thread.
 */
#ifndef UM_ENCODE_H
#define UM_ENCODE_H

#include "format.h"

/* Events of one block to be. Zero-initialise. Strings are interned: the string table of the block
 * is `strings`, NUL after each, in order of first use; number 0 is "". */
typedef struct um_rows {
    um_bytes_t rows;     /* time, type, tid, then the member of the union; 8-byte aligned */
    um_bytes_t elements; /* array elements; the row holds where they begin instead of a pointer */
    um_bytes_t strings;
    uint32_t n_strings;
    uint32_t *slots; /* hash table of string numbers plus one */
    uint32_t n_slots;
    uint32_t *ends; /* by string number: offset behind its NUL */
    uint32_t events;
    uint32_t n_elements;
    uint32_t counts[UM_EV_TYPE_COUNT];
    uint64_t first_ns, last_ns;
} um_rows_t;

/* Copies an event with all it points to. INVALID: no such type, or an array that no block could
 * hold. NO_MEMORY: nothing was added. */
um_status_t um_rows_add(um_rows_t *rows, const um_event_t *event);
/* Whether the rows must be sealed before another event: with one more, whatever it is, they stay
 * below what a block can hold. */
bool um_rows_full(const um_rows_t *rows);
void um_rows_clear(um_rows_t *rows); /* keeps the memory */
void um_rows_free(um_rows_t *rows);

/* What encoding needs besides the rows; zero-initialise, reuse. */
typedef struct um_encoder {
    void *zstd;
    um_bytes_t raw;    /* the payload before compression */
    um_bytes_t values; /* scratch */
    um_bytes_t offsets;
} um_encoder_t;

/* Appends header and payload of a block to out. NO_MEMORY only. */
um_status_t um_rows_encode(const um_rows_t *rows, um_encoder_t *encoder, int level, uint64_t seed,
                           uint64_t first_event, um_bytes_t *out, um_block_header_t *header);
void um_encoder_free(um_encoder_t *encoder);

#endif

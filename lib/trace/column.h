/*
 * column.h - one column of numbers as bytes: the same field of many events, one after another.
 *
 * A column is a header of 18 bytes { width, shift, base, start } and `width` planes of one byte a
 * value: first the low byte of every value, then the next one. What is constant takes no plane, and
 * decoding has no branch that depends on the data. FORMAT.md says what the header means.
 *
 * Also here, because both sides of the trace build on them: a growing byte buffer, a cursor that
 * never passes its end, and an arena.
 */
#ifndef UM_COLUMN_H
#define UM_COLUMN_H

#include "schema.h"

#define UM_COLUMN_HEADER_BYTES 18u

/* ---- bytes going out ---- */

typedef struct um_bytes {
    uint8_t *data;
    size_t used, capacity;
} um_bytes_t;

/* Room for n more bytes at the end, counted as used; NULL when memory is out. */
uint8_t *um_bytes_add(um_bytes_t *bytes, size_t n);
bool um_bytes_u32(um_bytes_t *bytes, uint32_t value);
bool um_bytes_u64(um_bytes_t *bytes, uint64_t value);
/* Length (4 bytes), the bytes, a NUL. */
bool um_bytes_string(um_bytes_t *bytes, const char *text);
void um_bytes_free(um_bytes_t *bytes);

/* ---- bytes coming in ---- */

typedef struct um_cursor {
    const uint8_t *at, *end;
} um_cursor_t;

/* The next n bytes, or NULL when there are fewer left. */
const uint8_t *um_cursor_take(um_cursor_t *cursor, size_t n);
bool um_cursor_u32(um_cursor_t *cursor, uint32_t *out);
bool um_cursor_u64(um_cursor_t *cursor, uint64_t *out);
/* As um_bytes_string wrote it; points into the input. No NUL may be inside. */
bool um_cursor_string(um_cursor_t *cursor, const char **out);

/* ---- memory that goes all at once ---- */

typedef struct um_arena {
    struct um_arena_chunk *chunk;
    bool failed; /* memory was out since the last reset */
} um_arena_t;

void *um_arena_take(um_arena_t *arena, size_t bytes); /* 16-byte aligned, not zeroed */
void um_arena_reset(um_arena_t *arena);               /* keeps the newest (largest) chunk */
void um_arena_free(um_arena_t *arena);

/* ---- columns ---- */

/* Appends a column of n values, which it overwrites. sizes: CHAIN only, n values of its `ref`. */
bool um_column_write(um_bytes_t *out, um_field_kind_t kind, uint64_t *values, size_t n,
                     const uint64_t *sizes);

/* A column that was read: the same value everywhere, or one value a row. */
typedef struct um_column {
    uint64_t *values; /* NULL: constant */
    uint64_t constant;
} um_column_t;

static inline uint64_t um_column_at(const um_column_t *column, size_t i)
{
    return column->values ? column->values[i] : column->constant;
}

/* Reads a column of n values; values come from the arena. false: malformed, or memory is out. */
bool um_column_read(um_cursor_t *in, um_field_kind_t kind, size_t n, const um_column_t *sizes,
                    um_arena_t *arena, um_column_t *out);

#endif

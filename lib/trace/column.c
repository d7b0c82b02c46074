#include "column.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes going out ---------------------------------------------------------------------- */

uint8_t *um_bytes_add(um_bytes_t *bytes, size_t n)
{
    if (!bytes->data || n > bytes->capacity - bytes->used) {
        size_t capacity = bytes->capacity ? bytes->capacity : 4096;
        while (capacity - bytes->used < n)
            capacity *= 2;
        uint8_t *data = realloc(bytes->data, capacity);
        if (!data)
            return NULL;
        bytes->data = data;
        bytes->capacity = capacity;
    }
    uint8_t *at = bytes->data + bytes->used;
    bytes->used += n;
    return at;
}

bool um_bytes_u32(um_bytes_t *bytes, uint32_t value)
{
    uint8_t *at = um_bytes_add(bytes, sizeof(value));
    value = htole32(value);
    if (at)
        memcpy(at, &value, sizeof(value));
    return at;
}

bool um_bytes_u64(um_bytes_t *bytes, uint64_t value)
{
    uint8_t *at = um_bytes_add(bytes, sizeof(value));
    value = htole64(value);
    if (at)
        memcpy(at, &value, sizeof(value));
    return at;
}

bool um_bytes_string(um_bytes_t *bytes, const char *text)
{
    size_t length = strlen(text);
    if (!um_bytes_u32(bytes, (uint32_t)length))
        return false;
    uint8_t *at = um_bytes_add(bytes, length + 1);
    if (at)
        memcpy(at, text, length + 1);
    return at;
}

void um_bytes_free(um_bytes_t *bytes)
{
    free(bytes->data);
    *bytes = (um_bytes_t){0};
}

/* ---- bytes coming in ---------------------------------------------------------------------- */

const uint8_t *um_cursor_take(um_cursor_t *cursor, size_t n)
{
    if (n > (size_t)(cursor->end - cursor->at))
        return NULL;
    const uint8_t *at = cursor->at;
    cursor->at += n;
    return at;
}

bool um_cursor_u32(um_cursor_t *cursor, uint32_t *out)
{
    const uint8_t *at = um_cursor_take(cursor, sizeof(*out));
    if (!at)
        return false;
    memcpy(out, at, sizeof(*out));
    *out = le32toh(*out);
    return true;
}

bool um_cursor_u64(um_cursor_t *cursor, uint64_t *out)
{
    const uint8_t *at = um_cursor_take(cursor, sizeof(*out));
    if (!at)
        return false;
    memcpy(out, at, sizeof(*out));
    *out = le64toh(*out);
    return true;
}

bool um_cursor_string(um_cursor_t *cursor, const char **out)
{
    uint32_t length;
    if (!um_cursor_u32(cursor, &length))
        return false;
    const uint8_t *at = um_cursor_take(cursor, (size_t)length + 1);
    if (!at || memchr(at, 0, (size_t)length + 1) != at + length)
        return false;
    *out = (const char *)at;
    return true;
}

/* ---- arena -------------------------------------------------------------------------------- */

struct um_arena_chunk {
    struct um_arena_chunk *older;
    size_t used, bytes;
    _Alignas(16) uint8_t data[];
};

void *um_arena_take(um_arena_t *arena, size_t bytes)
{
    struct um_arena_chunk *chunk = arena->chunk;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!chunk || bytes > chunk->bytes - chunk->used) {
        size_t size = chunk ? chunk->bytes * 2 : 65536;
        while (size < bytes)
            size *= 2;
        chunk = malloc(sizeof(*chunk) + size);
        if (!chunk) {
            arena->failed = true;
            return NULL;
        }
        *chunk = (struct um_arena_chunk){.older = arena->chunk, .bytes = size};
        arena->chunk = chunk;
    }
    void *at = chunk->data + chunk->used;
    chunk->used += bytes;
    return at;
}

static void free_chunks(struct um_arena_chunk *chunk)
{
    while (chunk) {
        struct um_arena_chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
}

void um_arena_reset(um_arena_t *arena)
{
    arena->failed = false;
    if (!arena->chunk)
        return;
    free_chunks(arena->chunk->older);
    arena->chunk->older = NULL;
    arena->chunk->used = 0;
}

void um_arena_free(um_arena_t *arena)
{
    free_chunks(arena->chunk);
    arena->chunk = NULL;
}

/* ---- columns ------------------------------------------------------------------------------ */

static uint64_t zigzag(uint64_t v)
{
    return (v << 1) ^ (0 - (v >> 63));
}

static uint64_t unzigzag(uint64_t v)
{
    return (v >> 1) ^ (0 - (v & 1));
}

/* Columns are worked on a piece at a time: it stays in the nearest cache, and a loop over a known
 * count becomes vector instructions at -O2 too. */
#define PIECE  512u
#define KERNEL static inline __attribute__((always_inline))
#define BY_PIECES(n, first, call)                                                                  \
    do {                                                                                           \
        size_t first = 0, count = PIECE;                                                           \
        for (; (n)-first >= PIECE; first += PIECE)                                                 \
            call;                                                                                  \
        count = (n)-first;                                                                         \
        call;                                                                                      \
    } while (0)

/* Replaces values by differences to what the kind predicts; returns the start that makes the first
 * difference like the second, so that an even column becomes a constant one. */
static uint64_t difference(uint64_t *values, size_t n, const uint64_t *sizes)
{
    uint64_t start = values[0], before = values[0];
    for (size_t i = 1; i < n; i++) {
        uint64_t predicted = before + (sizes ? sizes[i - 1] : 0);
        before = values[i];
        values[i] -= predicted;
    }
    values[0] = n > 1 ? values[1] : 0;
    return start - values[0];
}

static uint64_t any_bits(const uint64_t *values, size_t n, uint64_t base)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= values[i] - base;
    return bits;
}

static uint64_t smallest(const uint64_t *values, size_t n, uint64_t sign)
{
    uint64_t min = values[0] ^ sign;
    for (size_t i = 1; i < n; i++)
        min = (values[i] ^ sign) < min ? values[i] ^ sign : min;
    return min ^ sign;
}

/* Divisible numbers, signed: shifts them down and folds the sign in. */
static void fold_signs(uint64_t *values, size_t n, unsigned shift)
{
    for (size_t i = 0; i < n; i++)
        values[i] = zigzag((uint64_t)((int64_t)values[i] >> shift));
}

KERNEL void split_piece(const uint64_t *restrict values, size_t n, uint64_t base, unsigned shift,
                        unsigned width, uint8_t *restrict planes, size_t stride)
{
    for (unsigned plane = 0; plane < width; plane++, planes += stride, shift += 8)
        for (size_t i = 0; i < n; i++)
            planes[i] = (uint8_t)((values[i] - base) >> shift);
}

bool um_column_write(um_bytes_t *out, um_field_kind_t kind, uint64_t *values, size_t n,
                     const uint64_t *sizes)
{
    bool differs = kind == UM_FIELD_DELTA || kind == UM_FIELD_CHAIN;
    uint64_t start = 0, base = 0, bits = 0;
    unsigned shift = 0, folded = 0, width = 0;

    if (n > 0 && differs) {
        start = difference(values, n, kind == UM_FIELD_CHAIN ? sizes : NULL);
        bits = any_bits(values, n, 0);
        folded = bits ? (unsigned)__builtin_ctzll(bits) : 0;
        fold_signs(values, n, folded);
    }
    if (n > 0) {
        base = smallest(values, n, kind == UM_FIELD_SINT ? 1ull << 63 : 0);
        bits = any_bits(values, n, base);
        shift = bits && !differs ? (unsigned)__builtin_ctzll(bits) : 0;
    }
    while (width < 8 && bits >> shift >> (8 * width))
        width++;

    uint8_t *at = um_bytes_add(out, UM_COLUMN_HEADER_BYTES + n * width);
    if (!at)
        return false;
    uint64_t words[2] = {htole64(base), htole64(start)};
    at[0] = (uint8_t)width;
    at[1] = (uint8_t)(differs ? folded : shift);
    memcpy(at + 2, words, sizeof(words));
    at += UM_COLUMN_HEADER_BYTES;
    BY_PIECES(n, first, split_piece(values + first, count, base, shift, width, at + first, n));
    return true;
}

/* Puts n values together from planes that are `stride` apart; the common widths in one pass. */
KERNEL void join_piece(const uint8_t *restrict p, size_t stride, unsigned width, size_t n,
                       uint64_t *restrict values)
{
    switch (width) {
    case 1:
        for (size_t i = 0; i < n; i++)
            values[i] = p[i];
        return;
    case 2:
        for (size_t i = 0; i < n; i++)
            values[i] = (uint32_t)(p[i] | p[stride + i] << 8);
        return;
    case 3:
        for (size_t i = 0; i < n; i++)
            values[i] = (uint32_t)(p[i] | p[stride + i] << 8 | p[2 * stride + i] << 16);
        return;
    }
    memset(values, 0, n * sizeof(*values));
    for (unsigned plane = 0; plane < width; plane++, p += stride)
        for (size_t i = 0; i < n; i++)
            values[i] |= (uint64_t)p[i] << (8 * plane);
}

/* Of a column in the making. */
typedef struct um_column_state {
    um_field_kind_t kind;
    unsigned shift;
    uint64_t base;
    uint64_t before; /* DELTA: the value before; CHAIN: plus its size */
} um_column_state_t;

KERNEL void finish_piece(um_column_state_t *state, uint64_t *restrict values, size_t n,
                         const um_column_t *sizes, size_t first)
{
    uint64_t base = state->base, before = state->before;
    unsigned shift = state->shift;
    if (state->kind != UM_FIELD_DELTA && state->kind != UM_FIELD_CHAIN) {
        for (size_t i = 0; i < n; i++)
            values[i] = base + (values[i] << shift);
        return;
    }
    for (size_t i = 0; i < n; i++)
        values[i] = unzigzag(values[i] + base) << shift;
    if (state->kind == UM_FIELD_DELTA) {
        for (size_t i = 0; i < n; i++)
            values[i] = before += values[i];
    } else {
        for (size_t i = 0; i < n; i++) {
            values[i] += before;
            before = values[i] + (sizes->values ? sizes->values[first + i] : sizes->constant);
        }
    }
    state->before = before;
}

bool um_column_read(um_cursor_t *in, um_field_kind_t kind, size_t n, const um_column_t *sizes,
                    um_arena_t *arena, um_column_t *out)
{
    const uint8_t *header = um_cursor_take(in, UM_COLUMN_HEADER_BYTES);
    if (!header || header[0] > 8 || header[1] > 63)
        return false;
    unsigned width = header[0];
    uint64_t words[2];
    memcpy(words, header + 2, sizeof(words));
    um_column_state_t state = {kind, header[1], le64toh(words[0]), le64toh(words[1])};
    const uint8_t *planes = um_cursor_take(in, n * width);
    if (!planes)
        return false;

    bool differs = kind == UM_FIELD_DELTA || kind == UM_FIELD_CHAIN;
    *out = (um_column_t){.constant = differs ? state.before : state.base};
    if (width == 0 && (!differs || (state.base == 0 && kind == UM_FIELD_DELTA)))
        return true;

    uint64_t *values = um_arena_take(arena, n * sizeof(*values));
    if (!values)
        return false;
    out->values = values;
    BY_PIECES(n, first, {
        join_piece(planes + first, n, width, count, values + first);
        finish_piece(&state, values + first, count, sizes, first);
    });
    return true;
}

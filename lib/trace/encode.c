#include "encode.h"

#include <string.h>

#include <zstd.h>

/* The rows of one type: where they are in rows->rows. */
typedef struct um_row_set {
    const uint8_t *rows;
    const uint32_t *offsets;
    size_t n;
} um_row_set_t;

/* A number of 4 or 8 bytes from each of n places; one loop a width. */
#define GATHER(n, place, field, values)                                                            \
    do {                                                                                           \
        if ((field)->bytes == 8) {                                                                 \
            for (size_t i = 0; i < (n); i++)                                                       \
                memcpy(&(values)[i], (place), 8);                                                  \
        } else if ((field)->kind == UM_FIELD_SINT) {                                               \
            for (size_t i = 0; i < (n); i++) {                                                     \
                int32_t v;                                                                         \
                memcpy(&v, (place), 4);                                                            \
                (values)[i] = (uint64_t)(int64_t)v;                                                \
            }                                                                                      \
        } else {                                                                                   \
            for (size_t i = 0; i < (n); i++) {                                                     \
                uint32_t v;                                                                        \
                memcpy(&v, (place), 4);                                                            \
                (values)[i] = v;                                                                   \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void gather(const um_row_set_t *set, const um_field_t *field, uint64_t *values)
{
    const uint8_t *base = set->rows + offsetof(um_event_t, u) + field->offset;
    GATHER(set->n, base + set->offsets[i], field, values);
}

static size_t count_elements(const um_row_set_t *set, const um_field_t *array)
{
    const uint8_t *base = set->rows + offsetof(um_event_t, u);
    size_t total = 0;
    for (size_t i = 0; i < set->n; i++) {
        uint32_t n;
        memcpy(&n, base + set->offsets[i] + array->offset, sizeof(n));
        total += n;
    }
    return total;
}

/* The array field and its element columns. */
static bool write_array(um_encoder_t *encoder, const um_row_set_t *set, const um_field_t *array,
                        const uint8_t *elements)
{
    const uint8_t *base = set->rows + offsetof(um_event_t, u);
    size_t total = count_elements(set, array);
    encoder->values.used = 0;
    if (!um_bytes_add(&encoder->values, (total > set->n ? total : set->n) * sizeof(uint64_t)))
        return false;
    uint64_t *values = (uint64_t *)encoder->values.data;

    gather(set, array, values);
    if (!um_column_write(&encoder->raw, UM_FIELD_UINT, values, set->n, NULL))
        return false;
    for (const um_field_t *f = array + 1; f <= array + array->elements; f++) {
        uint64_t *next = values;
        for (size_t r = 0; r < set->n; r++) {
            const uint8_t *member = base + set->offsets[r];
            uint32_t n;
            uint64_t start;
            memcpy(&n, member + array->offset, sizeof(n));
            memcpy(&start, member + array->array_offset, sizeof(start));
            const uint8_t *at = elements + start + f->offset;
            GATHER(n, at + i * array->element_bytes, f, next);
            next += n;
        }
        if (!um_column_write(&encoder->raw, f->kind, values, total, NULL))
            return false;
    }
    return true;
}

static bool write_type(um_encoder_t *encoder, const um_rows_t *rows, const um_row_set_t *set,
                       const um_schema_t *schema)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *f = &schema->fields[i];
        if (f->kind == UM_FIELD_ARRAY) {
            if (!write_array(encoder, set, f, rows->elements.data))
                return false;
            i += f->elements;
            continue;
        }
        encoder->values.used = 0;
        uint64_t *values = (uint64_t *)um_bytes_add(&encoder->values, set->n * 16);
        if (!values)
            return false;
        uint64_t *sizes = f->kind == UM_FIELD_CHAIN ? values + set->n : NULL;
        gather(set, f, values);
        if (sizes)
            gather(set, &schema->fields[f->ref], sizes);
        if (!um_column_write(&encoder->raw, f->kind, values, set->n, sizes))
            return false;
    }
    return true;
}

/* Time, type and thread of every event, in the order they were put; sorts the rows by type. */
static bool write_common(um_encoder_t *encoder, const um_rows_t *rows, uint32_t *starts)
{
    size_t n = rows->events;
    encoder->values.used = encoder->offsets.used = 0;
    uint64_t *values = (uint64_t *)um_bytes_add(&encoder->values, 3 * n * sizeof(*values));
    uint32_t *offsets = (uint32_t *)um_bytes_add(&encoder->offsets, n * sizeof(*offsets));
    if (!values || !offsets)
        return false;

    uint32_t next[UM_EV_TYPE_COUNT], at = 0;
    for (size_t t = 0; t < UM_EV_TYPE_COUNT; t++) {
        starts[t] = next[t] = at;
        at += rows->counts[t];
    }
    const uint8_t *row = rows->rows.data;
    for (size_t i = 0; i < n; i++) {
        uint64_t time_ns;
        uint32_t type, tid;
        memcpy(&time_ns, row + offsetof(um_event_t, time_ns), sizeof(time_ns));
        memcpy(&type, row + offsetof(um_event_t, type), sizeof(type));
        memcpy(&tid, row + offsetof(um_event_t, tid), sizeof(tid));
        values[i] = time_ns;
        values[n + i] = type;
        values[2 * n + i] = tid;
        offsets[next[type]++] = (uint32_t)(row - rows->rows.data);
        row += (offsetof(um_event_t, u) + um_schema_table[type].bytes + 7) & ~(size_t)7;
    }
    return um_column_write(&encoder->raw, UM_FIELD_DELTA, values, n, NULL) &&
           um_column_write(&encoder->raw, UM_FIELD_UINT, values + n, n, NULL) &&
           um_column_write(&encoder->raw, UM_FIELD_UINT, values + 2 * n, n, NULL);
}

static bool write_payload(um_encoder_t *encoder, const um_rows_t *rows)
{
    um_bytes_t *raw = &encoder->raw;
    uint32_t starts[UM_EV_TYPE_COUNT];

    raw->used = 0;
    if (!um_bytes_u32(raw, rows->n_strings) || !um_bytes_u32(raw, (uint32_t)rows->strings.used))
        return false;
    uint8_t *strings = um_bytes_add(raw, rows->strings.used);
    if (!strings)
        return false;
    if (rows->strings.used)
        memcpy(strings, rows->strings.data, rows->strings.used);
    if (!write_common(encoder, rows, starts))
        return false;
    for (size_t t = 0; t < UM_EV_TYPE_COUNT; t++) {
        um_row_set_t set = {rows->rows.data, (uint32_t *)encoder->offsets.data + starts[t],
                            rows->counts[t]};
        if (set.n && !write_type(encoder, rows, &set, &um_schema_table[t]))
            return false;
    }
    return true;
}

um_status_t um_rows_encode(const um_rows_t *rows, um_encoder_t *encoder, int level, uint64_t seed,
                           uint64_t first_event, um_bytes_t *out, um_block_header_t *header)
{
    size_t start = out->used;
    if (!encoder->zstd)
        encoder->zstd = ZSTD_createCCtx();
    if (!encoder->zstd || !write_payload(encoder, rows))
        return UM_ERR_NO_MEMORY;

    size_t bound = ZSTD_compressBound(encoder->raw.used);
    if (!um_bytes_add(out, UM_BLOCK_HEADER_BYTES + bound))
        return UM_ERR_NO_MEMORY;
    uint8_t *payload = out->data + start + UM_BLOCK_HEADER_BYTES;
    size_t packed = ZSTD_compressCCtx(encoder->zstd, payload, bound, encoder->raw.data,
                                      encoder->raw.used, level);
    if (ZSTD_isError(packed)) {
        out->used = start;
        return UM_ERR_NO_MEMORY; /* the bound was kept, so nothing else can be the cause */
    }
    out->used = start + UM_BLOCK_HEADER_BYTES + packed;
    *header = (um_block_header_t){
        .packed_bytes = (uint32_t)packed,
        .raw_bytes = (uint32_t)encoder->raw.used,
        .events = rows->events,
        .first_event = first_event,
        .first_ns = rows->first_ns,
        .last_ns = rows->last_ns,
        .payload_check = um_check(payload, packed, seed),
    };
    um_block_header_put(header, seed, out->data + start);
    return UM_OK;
}

void um_encoder_free(um_encoder_t *encoder)
{
    ZSTD_freeCCtx(encoder->zstd);
    um_bytes_free(&encoder->raw);
    um_bytes_free(&encoder->values);
    um_bytes_free(&encoder->offsets);
    *encoder = (um_encoder_t){0};
}

#include "decode.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

/* ---- taking apart ------------------------------------------------------------------------- */

typedef struct um_decoder {
    um_block_t *block;
    const um_file_header_t *file;
    um_cursor_t in;
    const char **strings; /* by number */
    uint32_t n_strings;
} um_decoder_t;

static bool read_strings(um_decoder_t *d)
{
    uint32_t bytes;
    if (!um_cursor_u32(&d->in, &d->n_strings) || !um_cursor_u32(&d->in, &bytes))
        return false;
    const char *text = (const char *)um_cursor_take(&d->in, bytes);
    if (!text || d->n_strings > bytes)
        return false;
    d->strings = um_arena_take(&d->block->arena, (d->n_strings + 1) * sizeof(void *));
    if (!d->strings)
        return false;
    for (uint32_t i = 0; i < d->n_strings; i++) {
        const char *end = memchr(text, 0, bytes);
        if (!end)
            return false;
        d->strings[i] = text;
        bytes -= (uint32_t)(end + 1 - text);
        text = end + 1;
    }
    return bytes == 0;
}

/* Sends a column to a field of the type's event: into the event at once when it is constant. */
static void bind_column(um_type_rows_t *rows, const um_column_t *column, size_t offset,
                        size_t bytes)
{
    offset += offsetof(um_event_t, u);
    if (!column->values) {
        uint32_t v = (uint32_t)column->constant;
        if (bytes == 8)
            memcpy((uint8_t *)&rows->event + offset, &column->constant, 8);
        else
            memcpy((uint8_t *)&rows->event + offset, &v, 4);
    } else if (bytes == 8) {
        rows->wide[rows->n_wide++] = (um_lane_t){column->values, (uint32_t)offset};
    } else {
        rows->narrow[rows->n_narrow++] = (um_lane_t){column->values, (uint32_t)offset};
    }
}

/* Numbers of strings become their addresses. */
static bool resolve_strings(um_decoder_t *d, um_column_t *column, size_t n)
{
    if (!column->values) {
        if (column->constant >= d->n_strings)
            return false;
        column->constant = (uintptr_t)d->strings[column->constant];
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (column->values[i] >= d->n_strings)
            return false;
        column->values[i] = (uintptr_t)d->strings[column->values[i]];
    }
    return true;
}

/* One column of array elements into the finished structs. */
static void scatter(uint8_t *elements, size_t stride, size_t n, const um_field_t *field,
                    const um_column_t *column)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v = um_column_at(column, i);
        uint32_t narrow = (uint32_t)v;
        if (field->bytes == 8)
            memcpy(elements + i * stride + field->offset, &v, 8);
        else if (field->bytes == 4)
            memcpy(elements + i * stride + field->offset, &narrow, 4);
    }
}

/* An array field: how many elements each event has, then the columns of the elements. */
static bool read_array(um_decoder_t *d, um_type_rows_t *rows, const um_field_t *array)
{
    um_arena_t *arena = &d->block->arena;
    um_column_t counts, pointers = {0}, column;
    if (!um_column_read(&d->in, UM_FIELD_UINT, rows->n, NULL, arena, &counts))
        return false;
    uint64_t total = 0;
    for (size_t i = 0; i < rows->n; i++) {
        total += um_column_at(&counts, i);
        if (um_column_at(&counts, i) > UM_MAX_BLOCK_ELEMENTS || total > UM_MAX_BLOCK_ELEMENTS)
            return false;
    }

    bool wanted = array->bytes;
    size_t stride = array->element_bytes;
    uint8_t *elements = NULL;
    if (wanted) {
        elements = um_arena_take(arena, total * stride);
        pointers.values = um_arena_take(arena, rows->n * sizeof(*pointers.values));
        if (!elements || !pointers.values)
            return false;
        memset(elements, 0, total * stride);
        uint8_t *next = elements;
        for (size_t i = 0; i < rows->n; i++) {
            pointers.values[i] = (uintptr_t)next;
            next += um_column_at(&counts, i) * stride;
        }
        bind_column(rows, &counts, array->offset, array->bytes);
        bind_column(rows, &pointers, array->array_offset, sizeof(void *));
    }
    for (const um_field_t *f = array + 1; f <= array + array->elements; f++) {
        if (!um_column_read(&d->in, f->kind, total, NULL, arena, &column))
            return false;
        if (wanted)
            scatter(elements, stride, total, f, &column);
    }
    return true;
}

/* Every string of a type is "" until its column says otherwise: never NULL, also in files of an
 * older version that lacks the field. */
static void set_empty(um_type_rows_t *rows, uint32_t type)
{
    static const void *const empty = "";
    const um_schema_t *schema = &um_schema_table[type];
    memset(&rows->event, 0, sizeof(rows->event));
    rows->event.type = type;
    for (size_t i = 0; i < schema->n_fields; i++)
        if (schema->fields[i].kind == UM_FIELD_STRING)
            memcpy((uint8_t *)&rows->event.u + schema->fields[i].offset, &empty, sizeof(empty));
}

/* All columns of one type. rows is a dummy when this reader does not know the type. */
static bool read_type(um_decoder_t *d, um_type_rows_t *rows, const um_file_type_t *type)
{
    const um_field_t *fields = d->file->fields + type->first;
    um_column_t columns[UM_SCHEMA_MAX_FIELDS] = {{0}};
    um_arena_t *arena = &d->block->arena;

    /* An array takes two lanes, and has an element field at least: never more lanes than fields. */
    um_lane_t *lanes = um_arena_take(arena, 2 * (type->n_fields + 1u) * sizeof(*lanes));
    if (!lanes)
        return false;
    rows->wide = lanes;
    rows->narrow = lanes + type->n_fields + 1;
    rows->n_wide = rows->n_narrow = rows->next = 0;
    for (size_t i = 0; i < type->n_fields; i++) {
        const um_field_t *f = &fields[i];
        if (f->kind == UM_FIELD_ARRAY) {
            if (!read_array(d, rows, f))
                return false;
            i += f->elements;
            continue;
        }
        const um_column_t *sizes = f->kind == UM_FIELD_CHAIN ? &columns[f->ref] : NULL;
        if (!um_column_read(&d->in, f->kind, rows->n, sizes, arena, &columns[i]))
            return false;
        if (f->kind == UM_FIELD_STRING && !resolve_strings(d, &columns[i], rows->n))
            return false;
        if (f->bytes)
            bind_column(rows, &columns[i], f->offset, f->bytes);
    }
    return true;
}

/* ---- order -------------------------------------------------------------------------------- */

/* Moves what is late back to where it belongs: nearly nothing to do on a trace. false: that was more
 * than a few moves an event, and the rest is left as it is. Stable. */
static bool insert_late(const uint64_t *time, uint32_t *order, uint32_t n)
{
    uint64_t moves = 0, most = 16 * (uint64_t)n;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t late = order[i], at = i;
        uint64_t t = time[late];
        for (; at > 0 && time[order[at - 1]] > t; at--)
            order[at] = order[at - 1];
        order[at] = late;
        moves += i - at;
        if (moves > most)
            return false;
    }
    return true;
}

/* Merges the two runs [a, b) and [b, end) of `from` into `to`. */
static void merge(const uint64_t *time, const uint32_t *from, uint32_t *to, uint32_t a, uint32_t b,
                  uint32_t end)
{
    for (uint32_t out = a, middle = b; out < end; out++) {
        bool left = b >= end || (a < middle && time[from[a]] <= time[from[b]]);
        to[out] = from[left ? a++ : b++];
    }
}

/* Where the sorted run that begins at `at` ends. */
static uint32_t run_end(const uint64_t *time, const uint32_t *order, uint32_t at, uint32_t n)
{
    while (++at < n && time[order[at]] >= time[order[at - 1]])
        ;
    return at < n ? at : n;
}

/* Sorts the positions in `order` by time, stable. */
static bool sort_by_time(um_block_t *block, uint32_t *order, uint32_t n)
{
    const uint64_t *time = block->time.values;
    if (insert_late(time, order, n))
        return true;
    uint32_t *from = order, *to = um_arena_take(&block->arena, n * sizeof(*to));
    if (!to)
        return false;
    for (uint32_t runs = 2; runs > 1;) {
        runs = 0;
        for (uint32_t a = 0; a < n; runs++) {
            uint32_t b = run_end(time, from, a, n);
            uint32_t end = b < n ? run_end(time, from, b, n) : n;
            merge(time, from, to, a, b, end);
            a = end;
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order)
        memcpy(order, from, n * sizeof(*order));
    return true;
}

static bool is_sorted(const um_column_t *time, uint32_t n)
{
    bool sorted = true;
    if (time->values)
        for (uint32_t i = 1; i < n; i++)
            sorted &= time->values[i] >= time->values[i - 1];
    return sorted;
}

/* Fills order and row, where they are needed. all_known: no type is left out. */
static bool make_order(um_block_t *block, uint32_t events, bool all_known, bool by_time)
{
    block->n = events;
    block->order = block->row = NULL;
    bool sorted = !by_time || is_sorted(&block->time, events);
    if (all_known && sorted)
        return true;

    uint32_t *order = um_arena_take(&block->arena, events * sizeof(*order));
    uint32_t *row = um_arena_take(&block->arena, events * sizeof(*row));
    if (!order || !row)
        return false;
    uint32_t next[UM_EV_TYPE_COUNT] = {0}, n = 0;
    for (uint32_t i = 0; i < events; i++) {
        uint64_t type = um_column_at(&block->type, i);
        if (type < UM_EV_TYPE_COUNT && um_schema_table[type].fields) {
            row[i] = next[type]++;
            order[n++] = i;
        }
    }
    if (!sorted && n > 0 && !sort_by_time(block, order, n))
        return false;
    block->order = order;
    block->row = row;
    block->n = n;
    return true;
}

/* Whether the block's header tells its times as they are: order between blocks relies on it. */
static bool times_match(const um_column_t *time, uint32_t n, const um_block_header_t *header)
{
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t t = um_column_at(time, i);
        first_ns = t < first_ns ? t : first_ns;
        last_ns = t > last_ns ? t : last_ns;
    }
    return first_ns == header->first_ns && last_ns == header->last_ns;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static bool decode(um_decoder_t *d, const um_block_header_t *header, bool by_time)
{
    uint32_t events = header->events;
    um_block_t *block = d->block;
    um_arena_t *arena = &block->arena;
    if (!read_strings(d) ||
        !um_column_read(&d->in, UM_FIELD_DELTA, events, NULL, arena, &block->time) ||
        !um_column_read(&d->in, UM_FIELD_UINT, events, NULL, arena, &block->type) ||
        !um_column_read(&d->in, UM_FIELD_UINT, events, NULL, arena, &block->tid))
        return false;

    if (!times_match(&block->time, events, header))
        return false;
    uint32_t counts[UM_SCHEMA_MAX_TYPES] = {0};
    for (uint32_t i = 0; i < events; i++) {
        uint64_t type = um_column_at(&block->type, i);
        if (type >= UM_SCHEMA_MAX_TYPES || !d->file->types[type].name)
            return false;
        counts[type]++;
    }
    bool all_known = true;
    for (uint32_t t = 0; t < UM_SCHEMA_MAX_TYPES; t++) {
        if (!counts[t])
            continue;
        bool known = t < UM_EV_TYPE_COUNT && um_schema_table[t].fields;
        um_type_rows_t nobody, *rows = known ? &block->types[t] : &nobody;
        rows->n = counts[t];
        if (known)
            set_empty(rows, t);
        all_known &= known;
        if (!read_type(d, rows, &d->file->types[t]))
            return false;
    }
    return d->in.at == d->in.end && make_order(block, events, all_known, by_time);
}

um_status_t um_block_decode(um_block_t *block, const um_file_header_t *file,
                            const um_block_header_t *header, const uint8_t *payload, void *zstd,
                            bool by_time)
{
    um_arena_reset(&block->arena);
    block->raw.used = 0;
    block->at = block->n = block->stop = 0;
    if (!um_bytes_add(&block->raw, header->raw_bytes))
        return UM_ERR_NO_MEMORY;
    size_t got = ZSTD_decompressDCtx(zstd, block->raw.data, header->raw_bytes, payload,
                                     header->packed_bytes);
    if (ZSTD_isError(got) || got != header->raw_bytes)
        return UM_ERR_FORMAT;
    um_decoder_t d = {.block = block,
                      .file = file,
                      .in = {block->raw.data, block->raw.data + header->raw_bytes}};
    if (decode(&d, header, by_time))
        return UM_OK;
    return block->arena.failed ? UM_ERR_NO_MEMORY : UM_ERR_FORMAT;
}

void um_block_free(um_block_t *block)
{
    um_arena_free(&block->arena);
    um_bytes_free(&block->raw);
}

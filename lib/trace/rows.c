#include "encode.h"

#include <stdlib.h>
#include <string.h>

/* One event adds at most 5 MiB of arrays and 3 MiB of strings, and a column takes at most a quarter
 * more than its rows: far below UM_MAX_BLOCK_BYTES. */
#define FULL_BYTES (4u << 20)

static bool grow_slots(um_rows_t *rows)
{
    uint32_t n = rows->n_slots ? rows->n_slots * 2 : 256;
    uint32_t *slots = calloc(n, sizeof(*slots));
    uint32_t *ends = realloc(rows->ends, n / 2 * sizeof(*ends));
    if (ends)
        rows->ends = ends;
    if (!slots || !ends) {
        free(slots);
        return false;
    }
    uint32_t start = 0;
    for (uint32_t i = 0; i < rows->n_strings; i++) {
        const uint8_t *text = rows->strings.data + start;
        uint32_t at = (uint32_t)um_check(text, ends[i] - start - 1, 0) & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = i + 1;
        start = ends[i];
    }
    free(rows->slots);
    rows->slots = slots;
    rows->n_slots = n;
    return true;
}

/* The number of a string in this block; added when it is new. */
static bool intern(um_rows_t *rows, const char *text, uint64_t *out)
{
    size_t length = text ? strnlen(text, UM_MAX_STRING_BYTES) : 0;
    if (rows->n_strings >= rows->n_slots / 2 && !grow_slots(rows))
        return false;
    uint32_t mask = rows->n_slots - 1;
    uint32_t at = (uint32_t)um_check(text, length, 0) & mask;
    for (; rows->slots[at]; at = (at + 1) & mask) {
        uint32_t i = rows->slots[at] - 1;
        uint32_t start = i ? rows->ends[i - 1] : 0;
        if (rows->ends[i] - start - 1 == length &&
            (length == 0 || memcmp(rows->strings.data + start, text, length) == 0)) {
            *out = i;
            return true;
        }
    }
    uint8_t *copy = um_bytes_add(&rows->strings, length + 1);
    if (!copy)
        return false;
    if (length)
        memcpy(copy, text, length);
    copy[length] = 0;
    *out = rows->n_strings++;
    rows->ends[*out] = (uint32_t)rows->strings.used;
    rows->slots[at] = rows->n_strings;
    return true;
}

/* Replaces the pointers of a row by what encoding needs instead. */
static um_status_t take_pointers(um_rows_t *rows, const um_schema_t *schema, uint8_t *member)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *f = &schema->fields[i];
        const void *pointer;
        uint64_t instead;
        if (f->kind == UM_FIELD_STRING) {
            memcpy(&pointer, member + f->offset, sizeof(pointer));
            if (!intern(rows, pointer, &instead))
                return UM_ERR_NO_MEMORY;
            memcpy(member + f->offset, &instead, sizeof(instead));
        } else if (f->kind == UM_FIELD_ARRAY) {
            uint32_t n;
            memcpy(&n, member + f->offset, sizeof(n));
            memcpy(&pointer, member + f->array_offset, sizeof(pointer));
            size_t bytes = (size_t)n * f->element_bytes;
            if (n > UM_MAX_ARRAY_ELEMENTS || (n && !pointer))
                return UM_ERR_INVALID;
            instead = rows->elements.used;
            uint8_t *copy = um_bytes_add(&rows->elements, bytes);
            if (!copy)
                return UM_ERR_NO_MEMORY;
            if (bytes)
                memcpy(copy, pointer, bytes);
            memcpy(member + f->array_offset, &instead, sizeof(instead));
            rows->n_elements += n;
        }
    }
    return UM_OK;
}

um_status_t um_rows_add(um_rows_t *rows, const um_event_t *event)
{
    uint32_t type = event->type;
    if (type >= UM_EV_TYPE_COUNT || !um_schema_table[type].fields)
        return UM_ERR_INVALID;
    const um_schema_t *schema = &um_schema_table[type];

    size_t used = rows->rows.used, elements = rows->elements.used;
    uint32_t n_elements = rows->n_elements;
    size_t head = offsetof(um_event_t, u);
    uint8_t *row = um_bytes_add(&rows->rows, (head + schema->bytes + 7) & ~(size_t)7);
    if (!row)
        return UM_ERR_NO_MEMORY;
    memcpy(row, event, head + schema->bytes);
    if (schema->points) {
        uint64_t empty;
        um_status_t status = UM_ERR_NO_MEMORY;
        if (rows->n_strings > 0 || intern(rows, "", &empty))
            status = take_pointers(rows, schema, row + head);
        if (status != UM_OK) {
            rows->rows.used = used;
            rows->elements.used = elements;
            rows->n_elements = n_elements;
            return status;
        }
    }

    if (rows->events == 0 || event->time_ns < rows->first_ns)
        rows->first_ns = event->time_ns;
    if (rows->events == 0 || event->time_ns > rows->last_ns)
        rows->last_ns = event->time_ns;
    rows->counts[type]++;
    rows->events++;
    return UM_OK;
}

bool um_rows_full(const um_rows_t *rows)
{
    return rows->rows.used + rows->elements.used + rows->strings.used >= FULL_BYTES ||
           rows->n_elements >= UM_MAX_BLOCK_ELEMENTS - UM_MAX_ARRAY_ELEMENTS;
}

void um_rows_clear(um_rows_t *rows)
{
    if (rows->n_strings)
        memset(rows->slots, 0, rows->n_slots * sizeof(*rows->slots));
    rows->rows.used = rows->elements.used = rows->strings.used = 0;
    rows->n_strings = rows->events = rows->n_elements = 0;
    memset(rows->counts, 0, sizeof(rows->counts));
}

void um_rows_free(um_rows_t *rows)
{
    um_bytes_free(&rows->rows);
    um_bytes_free(&rows->elements);
    um_bytes_free(&rows->strings);
    free(rows->slots);
    free(rows->ends);
    *rows = (um_rows_t){0};
}

/*
 * trace_events.h - random events made from the schema, and comparing them: for the trace tests.
 */
#ifndef TRACE_EVENTS_H
#define TRACE_EVENTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/schema.h"

/* splitmix64 */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* An event with all that it points to. */
typedef struct event_box {
    um_event_t event;
    char text[4][40];
    uint64_t elements[UM_SCHEMA_ARRAYS][5 * 4];
} event_box_t;

static inline void put_number(void *at, size_t bytes, uint64_t v)
{
    uint32_t narrow = (uint32_t)v;
    if (bytes == 8)
        memcpy(at, &v, 8);
    else
        memcpy(at, &narrow, 4);
}

/* Numbers of every magnitude: 0, small, large, all ones. */
static inline uint64_t random_number(uint64_t *state)
{
    uint64_t kind = next_random(state) % 8;
    uint64_t v = next_random(state);
    return kind == 0 ? 0 : kind == 1 ? UINT64_MAX : v >> (v % 64);
}

/* Fills every field of an event of the type; the same state gives the same event. */
static inline void make_event(event_box_t *box, uint32_t type, uint64_t time_ns, uint64_t *state)
{
    const um_schema_t *schema = &um_schema_table[type];
    uint8_t *member = (uint8_t *)&box->event.u;
    size_t n_text = 0, n_arrays = 0;

    memset(box, 0, sizeof(*box));
    box->event.time_ns = time_ns;
    box->event.type = type;
    box->event.tid = (uint32_t)(next_random(state) % 4);
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *f = &schema->fields[i];
        if (f->kind == UM_FIELD_STRING) {
            char *text = box->text[n_text++];
            snprintf(text, sizeof(box->text[0]), "%.*s%u", (int)(next_random(state) % 30),
                     "a name of some sort, \xc3\xa9\xff and so on",
                     (unsigned)next_random(state) % 9);
            memcpy(member + f->offset, &text, sizeof(text));
        } else if (f->kind == UM_FIELD_ARRAY) {
            uint32_t n = (uint32_t)(next_random(state) % 5);
            uint8_t *elements = (uint8_t *)box->elements[n_arrays++];
            memcpy(member + f->offset, &n, sizeof(n));
            memcpy(member + f->array_offset, &elements, sizeof(elements));
            for (uint32_t e = 0; e < n; e++)
                for (const um_field_t *k = f + 1; k <= f + f->elements; k++)
                    put_number(elements + e * f->element_bytes + k->offset, k->bytes,
                               random_number(state));
            i += f->elements;
        } else {
            put_number(member + f->offset, f->bytes, random_number(state));
        }
    }
}

/* Whether every field is the same, strings and elements by content. */
static inline bool same_event(const um_event_t *a, const um_event_t *b)
{
    if (a->time_ns != b->time_ns || a->type != b->type || a->tid != b->tid)
        return false;
    const um_schema_t *schema = &um_schema_table[a->type];
    const uint8_t *x = (const uint8_t *)&a->u, *y = (const uint8_t *)&b->u;
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *f = &schema->fields[i];
        if (f->kind == UM_FIELD_STRING) {
            const char *s, *t;
            memcpy(&s, x + f->offset, sizeof(s));
            memcpy(&t, y + f->offset, sizeof(t));
            if (!t || strcmp(s ? s : "", t) != 0)
                return false;
            continue;
        }
        if (memcmp(x + f->offset, y + f->offset, f->bytes) != 0)
            return false;
        if (f->kind == UM_FIELD_ARRAY) {
            uint32_t n;
            const uint8_t *s, *t;
            memcpy(&n, x + f->offset, sizeof(n));
            memcpy(&s, x + f->array_offset, sizeof(s));
            memcpy(&t, y + f->array_offset, sizeof(t));
            for (uint32_t e = 0; e < n; e++)
                for (const um_field_t *k = f + 1; k <= f + f->elements; k++)
                    if (memcmp(s + e * f->element_bytes + k->offset,
                               t + e * f->element_bytes + k->offset, k->bytes) != 0)
                        return false;
            i += f->elements;
        }
    }
    return true;
}

/* The n-th event of an endless seeded stream of all types, times nearly sorted. */
static inline void stream_event(event_box_t *box, uint64_t n)
{
    uint64_t state = n * 0x2545f4914f6cdd1dull + 1;
    uint32_t type = 1 + (uint32_t)(next_random(&state) % (UM_EV_TYPE_COUNT - 1));
    uint64_t jitter = next_random(&state) % 5000;
    make_event(box, type, 1000000 + n * 100 + jitter, &state);
}

#endif

/* Looks at everything that an event of a trace points to. */
#ifndef TRACE_CHECK_H
#define TRACE_CHECK_H

#include <stdlib.h>
#include <string.h>

#include "trace/schema.h"

static volatile uint64_t um_seen;

static inline void um_touch_event(const um_event_t *event)
{
    if (event->type >= UM_EV_TYPE_COUNT || !um_schema_table[event->type].fields)
        abort();
    const um_schema_t *schema = &um_schema_table[event->type];
    const uint8_t *member = (const uint8_t *)&event->u;
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *f = &schema->fields[i];
        if (f->kind == UM_FIELD_STRING) {
            const char *text;
            memcpy(&text, member + f->offset, sizeof(text));
            um_seen += strlen(text);
        } else if (f->kind == UM_FIELD_ARRAY) {
            uint32_t n;
            const uint8_t *elements;
            memcpy(&n, member + f->offset, sizeof(n));
            memcpy(&elements, member + f->array_offset, sizeof(elements));
            for (size_t k = 0; k < (size_t)n * f->element_bytes; k++)
                um_seen += elements[k];
            i += f->elements;
        }
    }
}

#endif

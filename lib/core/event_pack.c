/* um_event_pack: an event and everything it points to in one piece of memory. */
#include "bus.h"

#include <string.h>

#define UM_PACK_STRINGS 3
#define UM_PACK_ARRAYS  2

typedef struct um_pack_array {
    uint16_t at;    /* offset in um_event_t of the pointer to it; 0 ends them */
    uint16_t count; /* offset of its uint32_t length */
    uint16_t element_bytes;
} um_pack_array_t;

/* What an event of each type points to. */
typedef struct um_pack_shape {
    uint16_t string[UM_PACK_STRINGS]; /* offsets in um_event_t of const char *; 0 ends them */
    um_pack_array_t array[UM_PACK_ARRAYS];
} um_pack_shape_t;

#define UM_AT(field) offsetof(um_event_t, u.field)
static const um_pack_shape_t um_pack_shape[UM_EV_TYPE_COUNT] = {
    [UM_EV_FACT] = {.string = {UM_AT(fact.key), UM_AT(fact.value)}},
    [UM_EV_DEVICE] = {.string = {UM_AT(device.name), UM_AT(device.uuid), UM_AT(device.pci)}},
    [UM_EV_OPTION] = {.string = {UM_AT(option.name), UM_AT(option.value), UM_AT(option.source)}},
    [UM_EV_LOSS] = {.string = {UM_AT(loss.reason)}},
    [UM_EV_CALL_SITE] = {.string = {UM_AT(call_site.frames)}},
    [UM_EV_MODULE] = {.string = {UM_AT(module.name), UM_AT(module.path), UM_AT(module.build_id)}},
    [UM_EV_REGION_LABEL] = {.string = {UM_AT(region_label.label)}},
    [UM_EV_KERNEL] = {.string = {UM_AT(kernel.name)},
                      .array = {{UM_AT(kernel.params), UM_AT(kernel.n_params),
                                 sizeof(um_param_t)}}},
    [UM_EV_LAUNCH] = {.array = {{UM_AT(launch.args), UM_AT(launch.n_args), sizeof(um_arg_t)},
                                {UM_AT(launch.scalars), UM_AT(launch.n_scalars),
                                 sizeof(um_scalar_t)}}},
    [UM_EV_HINT] = {.string = {UM_AT(hint.who), UM_AT(hint.why)}},
    [UM_EV_LEARNED] = {.string = {UM_AT(learned.who), UM_AT(learned.what), UM_AT(learned.kernel)}},
    [UM_EV_MARK] = {.string = {UM_AT(mark.domain), UM_AT(mark.name)}},
};
#undef UM_AT

static const char *um_pointer_at(const um_event_t *event, size_t offset)
{
    const char *pointer;

    memcpy(&pointer, (const char *)event + offset, sizeof pointer);
    return pointer;
}

static void um_pointer_set(um_event_t *event, size_t offset, const char *pointer)
{
    memcpy((char *)event + offset, &pointer, sizeof pointer);
}

static size_t um_array_bytes(const um_event_t *event, const um_pack_array_t *array)
{
    uint32_t count;

    if (um_pointer_at(event, array->at) == NULL)
        return 0;
    memcpy(&count, (const char *)event + array->count, sizeof count);
    return (size_t)count * array->element_bytes;
}

size_t um_event_pack(const um_event_t *event, void *buffer, size_t bytes)
{
    static const um_pack_shape_t plain;
    const um_pack_shape_t *shape =
        event->type < UM_EV_TYPE_COUNT ? &um_pack_shape[event->type] : &plain;
    size_t array_bytes[UM_PACK_ARRAYS] = {0}, string_bytes[UM_PACK_STRINGS] = {0};
    size_t need = sizeof *event;
    um_event_t *copy = buffer;
    char *at;

    for (int i = 0; i < UM_PACK_ARRAYS && shape->array[i].at != 0; i++)
        need += array_bytes[i] = um_array_bytes(event, &shape->array[i]);
    for (int i = 0; i < UM_PACK_STRINGS && shape->string[i] != 0; i++) {
        const char *text = um_pointer_at(event, shape->string[i]);

        string_bytes[i] = text != NULL ? strlen(text) + 1 : 1;
        need += string_bytes[i];
    }
    need = (need + 7) & ~(size_t)7;
    if (buffer == NULL || bytes < need)
        return need;
    at = (char *)buffer + sizeof *event;

    *copy = *event;
    for (int i = 0; i < UM_PACK_ARRAYS && shape->array[i].at != 0; i++) {
        const um_pack_array_t *array = &shape->array[i];

        um_pointer_set(copy, array->at, array_bytes[i] != 0 ? at : NULL);
        if (array_bytes[i] != 0)
            memcpy(at, um_pointer_at(event, array->at), array_bytes[i]);
        else /* a count without an array would be read through NULL */
            memset((char *)copy + array->count, 0, sizeof(uint32_t));
        at += array_bytes[i];
    }
    for (int i = 0; i < UM_PACK_STRINGS && string_bytes[i] != 0; i++) {
        const char *text = um_pointer_at(event, shape->string[i]);

        memcpy(at, text != NULL ? text : "", string_bytes[i]);
        um_pointer_set(copy, shape->string[i], at);
        at += string_bytes[i];
    }
    return need;
}

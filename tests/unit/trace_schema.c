#include <criterion/criterion.h>

#include <stdio.h>

#include "trace_events.h"

Test(trace_schema, names_every_type_as_the_vocabulary_does)
{
    for (uint32_t t = 1; t < UM_EV_TYPE_COUNT; t++) {
        cr_assert(um_schema_table[t].fields, "type %u has no schema", t);
        cr_assert_str_eq(um_schema_table[t].name, um_event_type_name(t));
    }
    cr_assert_null(um_schema_table[UM_EV_NONE].fields);
}

Test(trace_schema, refers_only_to_earlier_numbers)
{
    for (uint32_t t = 1; t < UM_EV_TYPE_COUNT; t++) {
        const um_schema_t *schema = &um_schema_table[t];
        size_t arrays = 0;
        cr_assert_leq(schema->n_fields, UM_SCHEMA_MAX_FIELDS);
        for (size_t i = 0; i < schema->n_fields; i++) {
            const um_field_t *f = &schema->fields[i];
            cr_assert(f->bytes == 4 || f->bytes == 8, "%s.%s", schema->name, f->name);
            if (f->kind == UM_FIELD_CHAIN) {
                cr_assert_lt(f->ref, i, "%s.%s", schema->name, f->name);
                cr_assert_str_eq(schema->fields[f->ref].name, "bytes");
            }
            if (f->kind == UM_FIELD_STRING || f->kind == UM_FIELD_ARRAY)
                cr_assert(schema->points, "%s.%s", schema->name, f->name);
            arrays += f->kind == UM_FIELD_ARRAY;
        }
        cr_assert_leq(arrays, UM_SCHEMA_ARRAYS, "%s", schema->name);
    }
}

/* Every byte of a member that is not padding belongs to exactly one field. The compiler knows the
 * padding: a field that is added to um_event.h and forgotten in the table fails here. */
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
static void check_bytes(const char *what, const uint8_t *expected, size_t bytes,
                        const um_field_t *fields, size_t n, size_t skip_elements)
{
    uint8_t covered[256] = {0};
    for (size_t i = 0; i < n; i++) {
        const um_field_t *f = &fields[i];
        memset(covered + f->offset, 0xff, f->bytes);
        if (f->kind == UM_FIELD_ARRAY) {
            memset(covered + f->array_offset, 0xff, sizeof(void *));
            i += skip_elements * f->elements;
        }
    }
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(covered[i], expected[i], "%s: byte %zu is %s", what, i,
                     expected[i] ? "of no field" : "padding");
}

#define CHECK(id, t)                                                                               \
    do {                                                                                           \
        um_ev_##t##_t member;                                                                      \
        memset(&member, 0xff, sizeof(member));                                                     \
        __builtin_clear_padding(&member);                                                          \
        cr_assert_eq(um_schema_table[id].bytes, sizeof(member));                                   \
        check_bytes(#t, (uint8_t *)&member, sizeof(member), um_schema_table[id].fields,            \
                    um_schema_table[id].n_fields, 1);                                              \
        checked++;                                                                                 \
    } while (0)

Test(trace_schema, covers_every_byte_of_every_event)
{
    uint32_t checked = 0;
    CHECK(UM_EV_FACT, fact);
    CHECK(UM_EV_DEVICE, device);
    CHECK(UM_EV_OPTION, option);
    CHECK(UM_EV_LOSS, loss);
    CHECK(UM_EV_CONTEXT, context);
    CHECK(UM_EV_CALL_SITE, call_site);
    CHECK(UM_EV_REGION_ALLOC, region_alloc);
    CHECK(UM_EV_REGION_FREE, region_free);
    CHECK(UM_EV_REGION_LABEL, region_label);
    CHECK(UM_EV_KERNEL, kernel);
    CHECK(UM_EV_LAUNCH, launch);
    CHECK(UM_EV_KERNEL_EXEC, kernel_exec);
    CHECK(UM_EV_GPU_FAULT, gpu_fault);
    CHECK(UM_EV_CPU_FAULT, cpu_fault);
    CHECK(UM_EV_MIGRATE, migrate);
    CHECK(UM_EV_THRASH, thrash);
    CHECK(UM_EV_THROTTLE, throttle);
    CHECK(UM_EV_REMOTE_MAP, remote_map);
    CHECK(UM_EV_COPY, copy);
    CHECK(UM_EV_SET, set);
    CHECK(UM_EV_SYNC, sync);
    CHECK(UM_EV_HINT, hint);
    CHECK(UM_EV_MARK, mark);
    CHECK(UM_EV_RESIDENCY, residency);
    CHECK(UM_EV_ACCESS, access);
    CHECK(UM_EV_MODULE, module);
    CHECK(UM_EV_LEARNED, learned);
    CHECK(UM_EV_REGION_HINT, region_hint);
    cr_assert_eq(checked, UM_EV_TYPE_COUNT - 1);
}

#define CHECK_ELEMENT(id, array, type)                                                             \
    do {                                                                                           \
        type element;                                                                              \
        const um_field_t *f = um_schema_table[id].fields;                                          \
        memset(&element, 0xff, sizeof(element));                                                   \
        __builtin_clear_padding(&element);                                                         \
        while (strcmp(f->name, #array) != 0)                                                       \
            f++;                                                                                   \
        cr_assert_eq(f->element_bytes, sizeof(element));                                           \
        check_bytes(#type, (uint8_t *)&element, sizeof(element), f + 1, f->elements, 0);           \
    } while (0)

Test(trace_schema, covers_every_byte_of_array_elements)
{
    CHECK_ELEMENT(UM_EV_KERNEL, params, um_param_t);
    CHECK_ELEMENT(UM_EV_LAUNCH, args, um_arg_t);
    CHECK_ELEMENT(UM_EV_LAUNCH, scalars, um_scalar_t);
}
#else
Test(trace_schema, covers_every_byte_of_every_event)
{
    cr_skip("this compiler cannot tell padding (__builtin_clear_padding)");
}
#endif

/* The vocabulary's names, and um_event_pack. */
#include "core/bus.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *type_name(uint32_t n)
{
    return um_event_type_name((um_event_type_t)n);
}

static const char *family_name(uint32_t n)
{
    return um_family_name((um_family_t)n);
}

static const char *hint_kind_name(uint32_t n)
{
    return um_hint_kind_name((um_hint_kind_t)n);
}

static const char *hint_result_name(uint32_t n)
{
    return um_hint_result_name((um_hint_result_t)n);
}

static const char *cause_name(uint32_t n)
{
    return um_migrate_cause_name((um_migrate_cause_t)n);
}

Test(event, every_value_has_a_name_of_its_own_and_no_other_has_one)
{
    static const struct {
        const char *(*name)(uint32_t);
        uint32_t count;
    } table[] = {{type_name, UM_EV_TYPE_COUNT},
                 {family_name, UM_FAMILY_COUNT},
                 {hint_kind_name, UM_HINT_KIND_COUNT},
                 {hint_result_name, UM_HINT_RESULT_COUNT},
                 {cause_name, UM_CAUSE_ACCESS_COUNTERS + 1}};

    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        for (uint32_t i = 0; i < table[t].count; i++) {
            cr_assert(i == 0 || strcmp(table[t].name(i), "unknown") != 0, "%zu %u", t, i);
            for (uint32_t j = 0; j < i; j++)
                cr_assert_str_neq(table[t].name(i), table[t].name(j));
        }
        cr_assert_str_eq(table[t].name(table[t].count), "unknown");
        cr_assert_str_eq(table[t].name(UINT32_MAX), "unknown");
    }
}

Test(event, names_are_those_of_the_header)
{
    cr_assert_str_eq(um_event_type_name(UM_EV_GPU_FAULT), "gpu_fault");
    cr_assert_str_eq(um_family_name(UM_FAMILY_MANAGED), "managed");
    cr_assert_str_eq(um_migrate_cause_name(UM_CAUSE_COHERENCE), "fault");
    cr_assert_str_eq(um_hint_result_name(UM_HINT_REFUSED_CAPACITY), "refused: capacity");
    cr_assert_str_eq(um_status_string(UM_ERR_FULL), "capacity used up");
    cr_assert_str_eq(um_status_string((um_status_t)7), "unknown status");
}

/* Packs into a block of exactly the size asked for, then destroys what the event pointed to. */
static um_event_t *packed(const um_event_t *event)
{
    size_t bytes = um_event_pack(event, NULL, 0);
    um_event_t *copy = malloc(bytes);

    cr_assert_eq(bytes % 8, 0);
    cr_assert_eq(um_event_pack(event, copy, bytes - 1), bytes, "too small: only the size");
    cr_assert_eq(um_event_pack(event, copy, bytes), bytes);
    return copy;
}

Test(event, pack_copies_strings)
{
    char name[] = "NVIDIA H200", uuid[] = "GPU-1", pci[] = "";
    um_event_t event = {.type = UM_EV_DEVICE,
                        .time_ns = 5,
                        .u.device = {.device = 3, .name = name, .uuid = uuid, .pci = pci}};
    um_event_t *copy = packed(&event);

    memset(name, 'x', sizeof name - 1);
    memset(uuid, 'x', sizeof uuid - 1);
    cr_assert_eq(copy->time_ns, 5);
    cr_assert_eq(copy->u.device.device, 3);
    cr_assert_str_eq(copy->u.device.name, "NVIDIA H200");
    cr_assert_str_eq(copy->u.device.uuid, "GPU-1");
    cr_assert_str_eq(copy->u.device.pci, "");
    free(copy);
}

Test(event, pack_makes_an_absent_string_empty)
{
    um_event_t event = {.type = UM_EV_HINT};
    um_event_t *copy = packed(&event);

    cr_assert_str_eq(copy->u.hint.who, "");
    cr_assert_str_eq(copy->u.hint.why, "");
    free(copy);
}

Test(event, pack_copies_arrays)
{
    um_param_t params[] = {{0, 8, 1}, {8, 4, 0}};
    um_arg_t args[] = {{.slot = 1, .region = 9}};
    um_scalar_t scalars[] = {{2, 4, 7}, {3, 8, 1 << 20}};
    um_event_t kernel = {.type = UM_EV_KERNEL,
                         .u.kernel = {.name = "k", .n_params = 2, .params = params}};
    um_event_t launch = {.type = UM_EV_LAUNCH, .u.launch = {.n_args = 1, .args = args}};
    um_event_t both = {.type = UM_EV_LAUNCH,
                       .u.launch = {.n_args = 1, .args = args, .n_scalars = 2, .scalars = scalars}};
    um_event_t none = {.type = UM_EV_LAUNCH,
                       .u.launch = {.n_args = 5, .n_scalars = 2, .scalars = scalars}};
    um_event_t *copy = packed(&kernel);

    memset(params, 0, sizeof params);
    cr_assert_eq(copy->u.kernel.n_params, 2);
    cr_assert_eq(copy->u.kernel.params[1].offset_bytes, 8);
    cr_assert_str_eq(copy->u.kernel.name, "k");
    free(copy);
    copy = packed(&launch);
    cr_assert_eq(copy->u.launch.args[0].region, 9);
    cr_assert_eq(copy->u.launch.n_scalars, 0);
    free(copy);
    copy = packed(&none);
    cr_assert_eq(copy->u.launch.n_args, 0, "no array, no elements");
    cr_assert_null(copy->u.launch.args);
    cr_assert_eq(copy->u.launch.scalars[1].value, 1 << 20);
    free(copy);
    copy = packed(&both);
    memset(args, 0, sizeof args);
    memset(scalars, 0, sizeof scalars);
    cr_assert_eq(copy->u.launch.args[0].region, 9);
    cr_assert_eq(copy->u.launch.n_scalars, 2);
    cr_assert_eq(copy->u.launch.scalars[0].slot, 2);
    cr_assert_eq(copy->u.launch.scalars[1].value, 1 << 20);
    free(copy);
}

Test(event, pack_of_a_packed_event_is_the_same)
{
    um_event_t event = {.type = UM_EV_MARK, .u.mark = {.domain = "umrt", .name = "step"}};
    um_event_t *once = packed(&event), *twice = packed(once);

    cr_assert_eq(um_event_pack(once, NULL, 0), um_event_pack(twice, NULL, 0));
    cr_assert_str_eq(twice->u.mark.name, "step");
    cr_assert_neq(twice->u.mark.name, once->u.mark.name);
    free(once);
    free(twice);
}

Test(event, pack_takes_an_unknown_type_as_plain_data)
{
    um_event_t event = {.type = 4000, .time_ns = 8};
    um_event_t *copy = packed(&event);

    cr_assert_eq(copy->type, 4000);
    cr_assert_eq(copy->time_ns, 8);
    free(copy);
}

/* The family of memory that each buffer is said to belong in. */
#include <criterion/criterion.h>
#include <string.h>

#include "report_kinds.h"

TestSuite(families, .fini = drop_report);

static const char *best(um_report_t *r, const char *name, bool *change)
{
    json_t *row;
    size_t i;

    close_stream(r);
    json_array_foreach(json_object_get(json, "families"), i, row)
    {
        if (strcmp(text_of(row, "name"), name) != 0)
            continue;
        if (change)
            *change = json_is_true(json_object_get(row, "change"));
        return text_of(row, "best");
    }
    return "no such buffer";
}

/* The first 8 MiB to the GPU and back each round, with so many launches in it; the rest goes there, but once. */
static um_report_t *rounds_of(uint64_t bytes, uint32_t launches, uint32_t n_rounds)
{
    um_report_t *r = has(bytes, UM_FAMILY_MANAGED);

    for (uint32_t i = 4; i < bytes / (2 * MIB); i++)
        moves(r, 1 + i, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
    for (uint32_t n = 0; n < n_rounds; n++) {
        uint64_t us = 100 + n * 100000;

        for (uint32_t k = 0; k < launches; k++)
            launch(r, us + k, 0, 1);
        for (uint32_t i = 0; i < 4; i++)
            moves(r, us + 100 + i * 100, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
        for (uint32_t i = 0; i < 4; i++) {
            stream_cpu_fault(r, us + 1000 + i * 100, BASE + i * 2 * MIB);
            moves(r, us + 1010 + i * 100, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST,
                  UM_CAUSE_COHERENCE);
        }
    }
    return r;
}

static um_report_t *rounds(uint32_t launches)
{
    return rounds_of(8 * MIB, launches, 4);
}

Test(families, what_goes_to_and_fro_is_mapped_when_it_is_used_a_few_times_a_trip)
{
    bool change = false;

    cr_assert_str_eq(best(rounds(1), "field", &change), "mapped");
    cr_assert(change);
    cr_assert_str_eq(best(rounds(3), "field", NULL), "mapped");
    cr_assert_str_eq(best(rounds(20), "field", NULL), "device-copies");
}

Test(families, a_part_that_goes_to_and_fro_is_not_the_whole_region)
{
    static const uint64_t mib[] = {10, 12, 16, 40};

    for (size_t i = 0; i < sizeof(mib) / sizeof(mib[0]); i++) {
        const char *says = best(rounds_of(mib[i] * MIB, 1, 12), "field", NULL);

        cr_assert_str_eq(says, "managed-hints", "8 of %d MiB: %s", (int)mib[i], says);
        cr_assert_not_null(strstr(text_of(found("ping-pong"), "todo"), "this part only"));
    }
}

Test(families, scratch_of_the_gpu_alone_belongs_in_a_pool)
{
    um_report_t *r = stream_new("scratch.umt");

    stream_alloc(r, 1, 1, BASE + 64 * MIB, 64 * KIB, "other");
    stream_cpu_fault(r, 2, BASE + 64 * MIB);
    for (uint32_t n = 0; n < 20; n++) {
        stream_alloc(r, 10 + 100 * n, 2 + n, BASE, 8 * MIB, "scratch");
        stream_gpu_fault(r, 20 + 100 * n, 50, BASE);
        stream_free(r, 90 + 100 * n, 2 + n, BASE);
    }
    cr_assert_str_eq(best(r, "scratch", NULL), "pool");
}

Test(families, memory_of_the_gpu_alone_that_stays_is_cudamalloc_s)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_alloc(r, 1, 2, BASE + 64 * MIB, 64 * KIB, "other");
    stream_cpu_fault(r, 2, BASE + 64 * MIB);
    launch(r, 100, 0, 1);
    stream_gpu_fault(r, 120, 50, BASE);
    cr_assert_str_eq(best(r, "field", NULL), "device-copies");
}

Test(families, data_read_once_is_mapped_and_data_read_often_is_hinted)
{
    cr_assert_str_eq(best(goes_once(1), "field", NULL), "mapped");
    cr_assert_str_eq(best(goes_once(10), "field", NULL), "managed-hints");
}

Test(families, what_is_prefetched_already_needs_no_change)
{
    bool change = true;

    cr_assert_str_eq(best(prefetches(10, false), "field", &change), "managed-hints");
    cr_assert_not(change);
}

Test(families, other_families_stay_what_they_are_but_for_churn)
{
    bool change = true;
    um_report_t *r;

    cr_assert_str_eq(best(has(8 * MIB, UM_FAMILY_PINNED), "field", &change), "device-copies");
    cr_assert_not(change);
    cr_assert_str_eq(best(has(8 * MIB, UM_FAMILY_MAPPED), "field", &change), "mapped");
    cr_assert_not(change);
    cr_assert_str_eq(best(has(8 * MIB, UM_FAMILY_SYSTEM), "field", &change), "registered");
    cr_assert(change);
    r = stream_new("device.umt");
    for (uint32_t n = 0; n < 20; n++) {
        stream_put(r, (um_event_t){.time_ns = (10 + 100 * n) * US,
                                   .type = UM_EV_REGION_ALLOC,
                                   .u.region_alloc = {.region = 1 + n,
                                                      .family = UM_FAMILY_DEVICE,
                                                      .addr = BASE,
                                                      .bytes = 8 * MIB}});
        stream_free(r, 50 + 100 * n, 1 + n, BASE);
    }
    cr_assert_str_eq(best(r, "20 regions of 8.00 MiB", &change), "pool");
    cr_assert(change);
}

Test(families, evicted_data_keeps_a_part_and_maps_the_rest)
{
    cr_assert_str_eq(best(evicted(in_order, 3, true), "field", NULL), "managed-hints");
}

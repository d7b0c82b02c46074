/*
 * Streams that no driver would write: any type, any field, times in order. The report must stay valid
 * JSON and text, bounded in memory, and the same twice. Seeds are fixed.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "any_event.h"
#include "report_stream.h"

static um_report_t *scramble(uint64_t seed, uint32_t events)
{
    um_report_t *r = stream_new("random.umt");
    uint64_t time_ns = 0;

    any_state = seed;
    for (uint32_t i = 0; i < events; i++) {
        um_event_t event;

        time_ns += any_roll() % 3 ? any_roll() % 100000 : 0;
        event = any_event(time_ns);
        cr_assert_eq(um_report_event(r, &event), UM_OK, "seed %llu, event %u",
                     (unsigned long long)seed, i);
        if (i == events / 2)
            cr_assert_eq(um_report_begin(r, "second.umt", NULL, 0), UM_OK);
    }
    return r;
}

Test(random_streams, give_valid_reports)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        um_report_t *r = scramble(seed, 3000);
        json_t *json = stream_json(r);
        char *text = stream_text(r, UM_REPORT_TEXT, 60 + (uint32_t)seed * 8);

        cr_assert_gt(strlen(text), 100u);
        cr_assert_str_eq(json_string_value(json_object_get(json, "schema")), "umrt.report/1");
        json_decref(json);
        free(text);
        um_report_free(r);
    }
}

Test(random_streams, give_the_same_report_twice)
{
    um_report_t *a = scramble(77, 20000), *b = scramble(77, 20000);
    char *x = stream_text(a, UM_REPORT_JSON, 100), *y = stream_text(b, UM_REPORT_JSON, 100);

    cr_assert_str_eq(x, y);
    free(x);
    free(y);
    um_report_free(a);
    um_report_free(b);
}

Test(random_streams, at_the_end_of_time_do_not_wrap)
{
    um_report_t *r = stream_new("late.umt");
    json_t *json;

    stream_alloc(r, 1, 1, BASE, MIB, "late");
    for (uint64_t i = 0; i < 100; i++) {
        um_event_t event = any_event(UINT64_MAX - 100 + i);

        cr_assert_eq(um_report_event(r, &event), UM_OK);
    }
    json = stream_json(r);
    json_decref(json);
    um_report_free(r);
}

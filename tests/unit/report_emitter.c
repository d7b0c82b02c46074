/* What goes out: units, strings of unknown origin, tables in a width, names. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/demangle.h"
#include "report/emitter.h"
#include "report/units.h"

static void check(int (*print)(uint64_t, char *, size_t), uint64_t value, const char *expected)
{
    char text[64];

    cr_expect_eq(print(value, text, sizeof(text)), (int)strlen(expected));
    cr_expect_str_eq(text, expected);
}

Test(units, have_three_digits_and_the_right_unit)
{
    check(um_units_bytes, 0, "0 B");
    check(um_units_bytes, 1023, "1023 B");
    check(um_units_bytes, 1024, "1.00 KiB");
    check(um_units_bytes, 65536, "64.0 KiB");
    check(um_units_bytes, 1536 * UINT64_C(1048576), "1.50 GiB");
    check(um_units_bytes, UINT64_MAX, "16.0 EiB");
    check(um_units_ns, 999, "999 ns");
    check(um_units_ns, 12784, "12.8 us");
    check(um_units_ns, 461730, "0.46 ms");
    check(um_units_ns, 2703300, "2.70 ms");
    check(um_units_ns, UINT64_C(2981000000), "2.98 s");
    check(um_units_count, 999, "999");
    check(um_units_count, 1234567, "1,234,567");
    check(um_units_count, UINT64_MAX, "18,446,744,073,709,551,615");
    check(um_units_rate, UINT64_C(45000000000), "45.0 GB/s");
    check(um_units_rate, 649310, "0.65 MB/s");
}

static void check_clean(const char *in, const char *expected)
{
    char *out = um_text_clean(in);

    cr_expect_str_eq(out, expected);
    free(out);
}

Test(text, is_made_valid_utf8_without_controls)
{
    check_clean("plain", "plain");
    check_clean("sm\xc3\xb8rrebr\xc3\xb8"
                "d \xe2\x82\xac \xf0\x9f\x98\x80",
                "sm\xc3\xb8rrebr\xc3\xb8"
                "d \xe2\x82\xac \xf0\x9f\x98\x80");
    check_clean("a\x80z", "a\xef\xbf\xbdz");                             /* stray continuation */
    check_clean("a\xc3", "a\xef\xbf\xbd");                               /* cut off */
    check_clean("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");                 /* overlong '/' */
    check_clean("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* surrogate */
    check_clean("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_clean("\033[31mred\n\t\x7f", "?[31mred???"); /* no escape sequence reaches a terminal */
    check_clean("\xc2\x9b"
                "31m",
                "?31m"); /* nor the one-byte kind */
    cr_expect_eq(um_text_columns("sm\xc3\xb8r"), 4u);
}

static char *emitted;
static size_t emitted_bytes;

static um_emitter_t *begin(um_report_format_t format, uint32_t width, FILE **out)
{
    um_report_options_t options = {.format = format, .top = 10, .width = width};
    um_emitter_t *e;

    *out = open_memstream(&emitted, &emitted_bytes);
    cr_assert_eq(um_emitter_open(&options, *out, &e), UM_OK);
    return e;
}

Test(emitter, writes_valid_json_whatever_the_strings_hold)
{
    static const char nasty[] = "a\"b\\c\n\x01\xff</script>\xe2\x80\xa8";
    json_t *json;
    FILE *out;
    um_emitter_t *e = begin(UM_REPORT_JSON, 100, &out);

    um_emitter_pair(e, "name", "name", um_text(nasty));
    um_emitter_pair(e, "none", "none", um_text(NULL));
    um_emitter_pair(e, "big", NULL, um_bytes(UINT64_MAX));
    um_emitter_pair(e, "addr", NULL, um_addr(UINT64_C(0xfedcba9876543210)));
    um_emitter_pair(e, NULL, "text only", um_count(1));
    um_emitter_line(e, "not in JSON");
    cr_assert_eq(um_emitter_close(e), UM_OK);
    fclose(out);
    json = json_loads(emitted, 0, NULL);
    cr_assert_not_null(json, "%s", emitted);
    cr_assert_str_eq(json_string_value(json_object_get(json, "name")),
                     "a\"b\\c??\xef\xbf\xbd</script>?", "what ends a line to an editor is none");
    cr_assert(json_is_null(json_object_get(json, "none")));
    cr_assert_eq(json_integer_value(json_object_get(json, "big")), INT64_MAX);
    cr_assert_str_eq(json_string_value(json_object_get(json, "addr")), "0xfedcba9876543210");
    cr_assert_eq(json_object_size(json), 4u);
    json_decref(json);
    free(emitted);
}

Test(emitter, aligns_tables_and_cuts_the_name_to_the_width)
{
    static const um_column_t columns[] = {{"name", "name", true, false, NULL},
                                          {"n", "n", false, false, NULL},
                                          {"same", "same", false, false, "0"},
                                          {"bytes", "bytes", false, false, NULL}};
    FILE *out;
    um_emitter_t *e = begin(UM_REPORT_TEXT, 60, &out);

    um_emitter_table(e, "t", columns, 4);
    um_emitter_row(e, (um_value_t[]){um_text("short"), um_count(1), um_count(0), um_bytes(10)});
    um_emitter_row(e, (um_value_t[]){um_text("a very long name of something that goes on and on"),
                                     um_count(1234), um_count(0), um_bytes(65536)});
    um_emitter_table_end(e, 7);
    cr_assert_eq(um_emitter_close(e), UM_OK);
    fclose(out);
    cr_expect_str_eq(emitted, "  name                                           n     bytes\n"
                              "  short                                          1      10 B\n"
                              "  a very long name of something that goes ~  1,234  64.0 KiB\n"
                              "  ... and 7 more (--top)\n");
    cr_expect_eq(strcspn(emitted, "\n"), 60u);
    free(emitted);
}

Test(emitter, wraps_text_under_itself)
{
    FILE *out;
    um_emitter_t *e = begin(UM_REPORT_TEXT, 60, &out);

    um_emitter_wrap(e, "where", "one two three four five six seven eight nine  ten eleven twelve");
    um_emitter_close(e);
    fclose(out);
    cr_expect_str_eq(emitted, "  where       one two three four five six seven eight nine\n"
                              "              ten eleven twelve\n");
    free(emitted);
}

/* To be pasted: a comment that is cut in two reads badly. */
Test(emitter, keeps_a_comment_behind_code_in_one_piece)
{
    FILE *out;
    um_emitter_t *e = begin(UM_REPORT_TEXT, 60, &out);

    um_emitter_lines(e, "code",
                     "/* one two three four five six seven eight nine ten */\n"
                     "cudaMalloc((void **)&p, 33554432);  /* 32.0 MiB */");
    um_emitter_close(e);
    fclose(out);
    cr_expect_str_eq(emitted, "  code        /* one two three four five six seven eight\n"
                              "              nine ten */\n"
                              "              cudaMalloc((void **)&p, 33554432);\n"
                              "              /* 32.0 MiB */\n");
    free(emitted);
}

static void check_short(const char *name, const char *expected)
{
    char *out = um_demangle_short(name);

    cr_expect_str_eq(out, expected);
    free(out);
}

Test(demangle, leaves_parameters_and_return_types_out)
{
    char *full = um_demangle("_Z14calculate_tempiPf");

    if (!strcmp(full, "_Z14calculate_tempiPf"))
        cr_skip_test("no C++ runtime on this machine");
    cr_expect_str_eq(full, "calculate_temp(int, float*)");
    free(full);
    check_short("_Z14calculate_tempiPf", "calculate_temp");
    check_short("_ZN3foo3barIfEEvPT_", "foo::bar<float>");
    check_short("_ZN12_GLOBAL__N_14stepEPf", "(anonymous namespace)::step");
}

Test(demangle, takes_names_as_foreign_tools_print_them)
{
    check_short("Fan1(float*, float*, int, int)", "Fan1");
    check_short("kernel", "kernel");
    check_short("void scale<float, 4>(float*, int)", "scale<float, 4>");
    check_short("", "");
    check_short("_Zbroken", "_Zbroken");
}

/* The numbers and suggestions that the umrt command prints, and the numbers it reads. */
#include <criterion/criterion.h>

#include "tools/um_tools.h"

#define KIB UINT64_C(1024)

Test(say, counts_in_threes)
{
    static const struct {
        uint64_t count;
        const char *text;
    } cases[] = {
        {0, "0"},          {999, "999"},           {1000, "1,000"},
        {62345, "62,345"}, {1000000, "1,000,000"}, {UINT64_MAX, "18,446,744,073,709,551,615"}};
    char buffer[UM_SAY_BYTES];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_str_eq(um_say_count(buffer, cases[i].count), cases[i].text);
}

Test(say, sizes_in_the_unit_that_compares)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {1, "1 byte"},
                 {384, "384 bytes"},
                 {10 * KIB - 1, "10,239 bytes"},
                 {10 * KIB, "10.0 KiB"},
                 {64 * KIB, "64.0 KiB"},
                 {1536 * KIB, "1.5 MiB"},
                 {KIB * KIB * KIB, "1,024.0 MiB"},
                 {KIB * KIB * KIB - 4096, "1,024.0 MiB"},
                 {10 * KIB * KIB * KIB, "10.0 GiB"},
                 {KIB * KIB * KIB * KIB, "1.0 TiB"},
                 {UINT64_MAX, "16,777,216.0 TiB"}};
    char buffer[UM_SAY_BYTES];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_str_eq(um_say_bytes(buffer, cases[i].bytes), cases[i].text);
}

Test(say, a_number_is_whole_decimal_and_within_its_limits)
{
    static const char *const wrong[] = {"",    " 1",  "+1",  "-1",  "1 ", "0x10",
                                        "1.0", "1e2", "ten", "101", "0",  "18446744073709551616",
                                        "٣"};
    uint64_t n = 7;
    uint32_t small = 7;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_not(um_number(wrong[i], 1, 100, &n), "'%s'", wrong[i]);
        cr_assert_not(um_number_32(wrong[i], 1, 100, &small), "'%s'", wrong[i]);
    }
    cr_assert_eq(n, 7);
    cr_assert_eq(small, 7);
    cr_assert(um_number("18446744073709551615", 0, UINT64_MAX, &n));
    cr_assert_eq(n, UINT64_MAX);
    cr_assert_not(um_number_32("4294967297", 0, UINT32_MAX, &small));
    cr_assert(um_number_32("0100", 1, 100, &small));
    cr_assert_eq(small, 100);
}

static const char *word(const void *ctx, size_t i)
{
    return ((const char *const *)ctx)[i];
}

Test(say, suggests_only_what_is_near)
{
    static const char *const words[] = {"run", "record", "report", "import", "piece-bytes", NULL};

    cr_assert_str_eq(um_nearest("rceord", word, words), "record");
    cr_assert_str_eq(um_nearest("reprot", word, words), "report");
    cr_assert_str_eq(um_nearest("pieces-bytes", word, words), "piece-bytes");
    cr_assert_str_eq(um_nearest("rn", word, words), "run");
    cr_assert_str_eq(um_nearest("REPORT", word, words), "report");
    cr_assert_str_eq(um_nearest("pi", word, words), "piece-bytes");
    cr_assert_null(um_nearest("p", word, words));
    cr_assert_null(um_nearest("", word, words));
    cr_assert_null(um_nearest("xyzzyplugh", word, words));
    cr_assert_null(um_nearest("a-word-much-longer-than-the-row-of-the-distance", word, words));
}

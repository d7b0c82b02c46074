/* The numbers and suggestions that the umrt command prints. */
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
    cr_assert_null(um_nearest("xyzzyplugh", word, words));
    cr_assert_null(um_nearest("a-word-much-longer-than-the-row-of-the-distance", word, words));
}

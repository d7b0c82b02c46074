/* umrt report --patch on whatever the source holds. */
#include "report_patch.h"

TestSuite(patch, .init = start, .fini = finish);

/* Lines made of what parsers trip over: no crash, and what is written applies. */
Test(patch, whatever_the_source_holds)
{
    static const char *const pieces[] = {
        "cudaMallocManaged",
        "(",
        ")",
        "&a",
        ", ",
        "n",
        ";",
        "\n",
        "\r\n",
        "/*",
        "*/",
        "//",
        "\"",
        "'",
        "\\",
        "#define ",
        "<<<",
        ">>>",
        "{",
        "}",
        "[",
        "]",
        "R\"(",
        ")\"",
        "if (x) ",
        "CHECK(",
        " ",
        "\t",
        "= ",
        "cudaMallocManaged(&a, n);",
        "\xff",
        "\\\n",
        "R\"",
        "->",
        "&",
        "<",
        ",",
    };
    uint32_t seed = 1;
    unsigned written = 0;

    for (int round = 0; round < 900; round++) {
        char source[2048] = "";
        char *diff;
        unsigned lines = 1;

        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(source, pieces[(seed >> 16) % (sizeof(pieces) / sizeof(pieces[0]))]);
        }
        if (round % 3 == 0)
            strcat(source, "\n;\ncudaMallocManaged(&a, n);\n");
        for (const char *at = source; *at; at++)
            lines += *at == '\n';
        write_text("main.cu", source);
        seed = seed * 1664525u + 1013904223u;
        diff = at_line("main.cu", round % 3 ? 1 + (seed >> 16) % lines : lines - 1, 10, NULL);
        if (*diff && round % 20 == 0) {
            char *result = applied(diff, "main.cu");

            cr_assert_not_null(strstr(result, "cudaMalloc(&a, n)"));
            free(result);
        }
        written += *diff != 0;
        free(diff);
    }
    cr_assert(written > 20, "%u", written);
}

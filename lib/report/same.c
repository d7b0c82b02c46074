#include "same.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PC_CLAUSE "; CPU at pc "

/* "solver.cu:88" of n bytes: the length of the file name, or 0. */
static size_t file_of(const char *word, size_t n)
{
    size_t digits = 0, dot;

    while (digits < n && isdigit((unsigned char)word[n - 1 - digits]))
        digits++;
    if (!digits || digits > 9 || digits + 1 >= n || word[n - digits - 1] != ':')
        return 0;
    n -= digits + 1;
    for (dot = n; dot > 0 && isalnum((unsigned char)word[dot - 1]); dot--)
        ;
    return dot > 1 && dot < n && word[dot - 1] == '.' && isalpha((unsigned char)word[dot]) ? n : 0;
}

static bool ends_word(char c)
{
    return c == '\0' || strchr(" ();,", c) != NULL;
}

const char *um_same_source(const char *text, const char **file, size_t *bytes, unsigned *line)
{
    while (*text) {
        size_t n = 0, name;

        while (!ends_word(text[n]))
            n++;
        name = file_of(text, n);
        if (name) {
            *file = text;
            *bytes = name;
            *line = (unsigned)strtoul(text + name + 1, NULL, 10);
            return text + n;
        }
        text += n + (text[n] != '\0');
    }
    return NULL;
}

/* Bytes at `text` that are left out. */
static size_t differs(const char *text)
{
    size_t n = *text == '+';

    if (!strncmp(text, PC_CLAUSE, strlen(PC_CLAUSE)))
        return strlen(PC_CLAUSE) + strcspn(text + strlen(PC_CLAUSE), ";");
    if (!strncmp(text + n, "0x", 2) && isxdigit((unsigned char)text[n + 2])) {
        for (n += 2; isxdigit((unsigned char)text[n]); n++)
            ;
        return n;
    }
    if (*text != ':')
        return 0;
    for (n = 1; isdigit((unsigned char)text[n]); n++)
        ;
    return n > 1 && ends_word(text[n]) ? n : 0;
}

void um_same_name(const char *text, char *out, size_t bytes)
{
    size_t n = 0;

    while (*text && n + 1 < bytes) {
        size_t skip = differs(text);

        if (skip)
            text += skip;
        else
            out[n++] = *text++;
    }
    out[n] = '\0';
}

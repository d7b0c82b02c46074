#include "same.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* Clauses of a `where` about what a run happened to do; each goes on to the next semicolon. */
static size_t clause(const char *text)
{
    static const char *const begins[] = {"; CPU at pc ", "; and ", ", all of it", ", its first ",
                                         ", addresses "};
    size_t n = strcspn(text, ";");

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        size_t length = strlen(begins[i]);

        if (!strncmp(text, begins[i], length))
            return length + strcspn(text + length, ";");
    }
    /* ", from 32.0 MiB to 32.1 MiB in it" */
    return !strncmp(text, ", from ", 7) && n > 6 && !strncmp(text + n - 6, " in it", 6) ? n : 0;
}

/* "0x1f", "+0x1f". */
static size_t hexadecimal(const char *text)
{
    size_t n = *text == '+';

    if (strncmp(text + n, "0x", 2) != 0 || !isxdigit((unsigned char)text[n + 2]))
        return 0;
    for (n += 2; isxdigit((unsigned char)text[n]); n++)
        ;
    return n;
}

static size_t digits(const char *text)
{
    size_t n = 0;

    while (isdigit((unsigned char)text[n]))
        n++;
    return n;
}

/* Bytes at `text` that are left out. `word`: one begins here. */
static size_t differs(const char *text, bool word)
{
    size_t n = clause(text);

    if (!n)
        n = hexadecimal(text);
    if (!n && *text == ':' && digits(text + 1) && ends_word(text[1 + digits(text + 1)]))
        n = 1 + digits(text + 1);
    if (!n && word && digits(text) && !strncmp(text + digits(text), " regions of ", 12))
        n = digits(text) + 1;
    return n;
}

void um_same_name(const char *text, char *out, size_t bytes)
{
    size_t n = 0;

    while (*text && n + 1 < bytes) {
        bool word = n == 0 || ends_word(out[n - 1]);
        size_t skip = differs(text, word);

        if (skip) {
            text += skip;
            continue;
        }
        if (word && !strncmp(text, "region ", 7) && digits(text + 7)) { /* its number */
            size_t room = bytes - 1 - n, length = room < 6 ? room : 6;

            memcpy(out + n, text, length);
            n += length;
            text += 7 + digits(text + 7);
            continue;
        }
        out[n++] = *text++;
    }
    out[n] = '\0';
}

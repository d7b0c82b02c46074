#include "um_tools.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report/emitter.h"

static void line(const char *before, const char *format, va_list args, const char *after)
{
    /* One buffer, one write: lines of several processes do not mix. */
    char text[4096], *clean;
    int n = snprintf(text, sizeof text, "umrt: %s", before);

    n += vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    if (n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "%s", after);
    clean = um_text_clean(text);
    fflush(stdout);
    fprintf(stderr, "%s\n", clean != NULL ? clean : "umrt: out of memory");
    free(clean);
}

void um_print(const char *format, ...)
{
    char *text = NULL, *clean = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0)
        clean = um_text_clean(text);
    else
        text = NULL;
    va_end(args);
    if (clean != NULL)
        fputs(clean, stdout);
    free(clean);
    free(text);
}

void um_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line("", format, args, "");
    va_end(args);
}

int um_say_usage(const char *command, const char *format, ...)
{
    char before[64], after[128];
    size_t length = strlen(format);
    va_list args;

    snprintf(before, sizeof before, "%s: ", command);
    snprintf(after, sizeof after, "%ssee 'umrt %s --help'",
             length > 0 && format[length - 1] == '?' ? " " : "; ", command);
    va_start(args, format);
    line(before, format, args, after);
    va_end(args);
    return UM_EXIT_USAGE;
}

static const char *option_name(const void *ctx, size_t i)
{
    return ((const struct option *)ctx)[i].name;
}

int um_say_bad_option(const char *command, const struct option *options, int result, char **argv)
{
    const char *word = argv[optind - 1], *value = strchr(word, '='), *nearest;
    int length = value != NULL ? (int)(value - word) : (int)strlen(word);
    char name[64];

    /* Of short options only the letter is known; a long one is named as it was typed. */
    if (strncmp(word, "--", 2) != 0)
        return um_say_usage(command,
                            result == ':' ? "option -%c needs a value" : "unknown option -%c",
                            optopt);
    if (result == ':')
        return um_say_usage(command, "option %.*s needs a value", length, word);
    if (optopt != 0)
        return um_say_usage(command, "option %.*s takes no value", length, word);
    snprintf(name, sizeof name, "%.*s", length - 2, word + 2);
    nearest = um_nearest(name, option_name, options);
    if (nearest != NULL)
        return um_say_usage(command, "unknown option %.*s, did you mean --%s?", length, word,
                            nearest);
    return um_say_usage(command, "unknown option %.*s", length, word);
}

int um_say_end(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            um_say("standard output: %s", strerror(errno));
        return UM_EXIT_FAILED;
    }
    return status;
}

/* Digits in threes. */
const char *um_say_count(char *buffer, uint64_t count)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *to = buffer;

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buffer;
}

const char *um_say_bytes(char *buffer, uint64_t bytes)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    uint64_t tenths;
    char whole[UM_SAY_BYTES];

    if (bytes < 10240) {
        um_say_count(whole, bytes);
        snprintf(buffer, UM_SAY_BYTES, "%.16s byte%s", whole, bytes == 1 ? "" : "s");
        return buffer;
    }
    /* MiB up to 10 GiB, so that sizes of one run can be compared by eye. */
    for (u = 0; u < 3 && bytes >> (10 * (u + 1)) >= (u == 1 ? 10240 : 1024); u++)
        ;
    tenths = (bytes >> (10 * (u + 1))) * 10 +
             (((bytes & ((UINT64_C(1) << (10 * (u + 1))) - 1)) >> (10 * u)) * 10 + 512) / 1024;
    um_say_count(whole, tenths / 10);
    snprintf(buffer, UM_SAY_BYTES, "%.16s.%" PRIu64 " %s", whole, tenths % 10, unit[u]);
    return buffer;
}

bool um_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < least || value > most)
        return false;
    *out = value;
    return true;
}

bool um_number_32(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value;

    if (!um_number(text, least, most, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

/* Levenshtein distance over the first 31 characters, in one row; case does not count. */
static size_t distance(const char *a, const char *b)
{
    size_t row[32], n = strnlen(b, 31), m = strnlen(a, 31);

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best =
                diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

const char *um_nearest(const char *word, const char *(*name)(const void *ctx, size_t i),
                       const void *ctx)
{
    const char *nearest = NULL, *candidate;
    size_t best = strlen(word) / 3 + 2;

    for (size_t i = 0; (candidate = name(ctx, i)) != NULL; i++) {
        size_t d = distance(word, candidate);

        if (word[0] && word[1] && strncasecmp(word, candidate, strlen(word)) == 0 && d)
            d = 1; /* its beginning */
        if (d < best) {
            best = d;
            nearest = candidate;
        }
    }
    return nearest;
}

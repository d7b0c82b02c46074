/* Strings of unknown origin, made fit for a terminal and for JSON. */
#include <stdlib.h>
#include <string.h>

#include "emitter.h"

/* Controls, and what turns the line round or ends it: a terminal or an editor would obey. */
static bool commands(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c ||
           (point >= 0x200e && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

/* Length of the valid UTF-8 sequence at s, 0 when there is none; its point. */
static size_t sequence(const unsigned char *s, uint32_t *point_out)
{
    static const struct {
        unsigned char mask, lead, length;
        uint32_t least;
    } form[] = {{0x80, 0x00, 1, 0},
                {0xe0, 0xc0, 2, 0x80},
                {0xf0, 0xe0, 3, 0x800},
                {0xf8, 0xf0, 4, 0x10000}};

    for (size_t i = 0; i < 4; i++) {
        uint32_t point;

        if ((s[0] & form[i].mask) != form[i].lead)
            continue;
        point = s[0] & (unsigned char)~form[i].mask;
        for (size_t k = 1; k < form[i].length; k++) {
            if ((s[k] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (s[k] & 0x3f);
        }
        if (point < form[i].least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
            return 0;
        *point_out = point;
        return form[i].length;
    }
    return 0;
}

static char *clean(const char *text, bool lines)
{
    const unsigned char *in = (const unsigned char *)text;
    char *out = malloc(strlen(text) * 3 + 1), *to = out;

    if (!out)
        return NULL;
    while (*in) {
        uint32_t point = 0;
        size_t n = sequence(in, &point);

        if (!n) {
            memcpy(to, "\xef\xbf\xbd", 3); /* U+FFFD */
            to += 3;
            in++;
            continue;
        }
        if (lines && *in == '\n')
            *to++ = '\n';
        else if (commands(point))
            *to++ = '?';
        else
            to = (char *)memcpy(to, in, n) + n;
        in += n;
    }
    *to = 0;
    return out;
}

size_t um_text_plain(const char *text)
{
    uint32_t point = 0;
    size_t n = sequence((const unsigned char *)text, &point);

    return n && !commands(point) ? n : 0;
}

char *um_text_clean(const char *text)
{
    return clean(text, false);
}

char *um_text_clean_lines(const char *text)
{
    return clean(text, true);
}

size_t um_text_columns(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

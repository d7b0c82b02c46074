#include "call_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Behind the comment, string or character at `i`; i itself where there is none. A string that the line
 * does not close ends with it. */
static size_t skip(const char *line, size_t n, size_t i)
{
    char quote = line[i];

    if (quote == '/' && i + 1 < n && line[i + 1] == '/')
        return n;
    if (quote == '/' && i + 1 < n && line[i + 1] == '*') {
        for (i += 2; i + 1 < n; i++) {
            if (line[i] == '*' && line[i + 1] == '/')
                return i + 2;
        }
        return n;
    }
    if (quote != '"' && (quote != '\'' || (i && is_word(line[i - 1]))))
        return i;
    for (i++; i < n; i++) {
        if (line[i] == '\\')
            i++;
        else if (line[i] == quote)
            return i + 1;
    }
    return n;
}

static size_t blanks(const char *line, size_t n, size_t i)
{
    while (i < n && (line[i] == ' ' || line[i] == '\t'))
        i++;
    return i;
}

static size_t word(const char *line, size_t n, size_t i)
{
    size_t from = i;

    while (i < n && is_word(line[i]))
        i++;
    return i - from;
}

static um_piece_t trimmed(const char *line, size_t from, size_t to)
{
    while (from < to && isspace((unsigned char)line[from]))
        from++;
    while (to > from && isspace((unsigned char)line[to - 1]))
        to--;
    return (um_piece_t){from, to - from};
}

/* From behind an opening bracket to the closing one: pieces between commas. 0: it is not closed here, or
 * there are too many. */
static size_t pieces(const char *line, size_t n, size_t i, const char *close, um_piece_t *out,
                     uint32_t most, uint32_t *count)
{
    char open[64];
    size_t depth = 0, from = i, length = strlen(close);

    *count = 0;
    while (i < n) {
        size_t next = skip(line, n, i);
        char c = line[i];

        if (next != i) {
            i = next;
            continue;
        }
        if (!depth && n - i >= length && !memcmp(line + i, close, length)) {
            um_piece_t last = trimmed(line, from, i);

            if (last.n || *count) {
                if (*count == most)
                    return 0;
                out[(*count)++] = last;
            }
            return i + length;
        }
        if (strchr("([{", c)) {
            if (depth == sizeof(open))
                return 0;
            open[depth++] = c;
        } else if (strchr(")]}", c)) {
            if (!depth || open[--depth] != (c == ')' ? '(' : c == ']' ? '[' : '{'))
                return 0;
        } else if (c == ',' && !depth) {
            if (*count == most)
                return 0;
            out[(*count)++] = trimmed(line, from, i);
            from = i + 1;
        }
        i++;
    }
    return 0;
}

/* ---- around it -------------------------------------------------------------------------------- */

/* "CHECK(", "err = ", "cudaError_t err = ", "(void)" before the call; how many parentheses are open.
 * -1: something else. */
static int opening(const char *line, size_t at, bool *plain)
{
    static const char *const keywords[] = {"if",     "while",  "for",  "switch", "return",
                                           "sizeof", "assert", "else", "do",     "case"};
    size_t i = blanks(line, at, 0), words = 0, n, from = 0;

    *plain = true;
    if (at - i >= 6 && !memcmp(line + i, "(void)", 6))
        i = blanks(line, at, i + 6);
    while ((n = word(line, at, i)) > 0) {
        for (size_t k = 0; k < sizeof(keywords) / sizeof(keywords[0]); k++) {
            if (n == strlen(keywords[k]) && !memcmp(keywords[k], line + i, n))
                return -1;
        }
        from = i;
        words++;
        i = blanks(line, at, i + n);
    }
    if (words == 1 && i < at && line[i] == '(' && !isdigit((unsigned char)line[from])) {
        i = blanks(line, at, i + 1);
        return i == at ? 1 : -1;
    }
    if (words && words <= 3 && i < at && line[i] == '=') {
        *plain = false;
        i = blanks(line, at, i + 1);
        return i == at ? 0 : -1;
    }
    if (!words && at - i == 2 && line[i] == ':' && line[i + 1] == ':')
        return 0;
    return !words && i == at ? 0 : -1;
}

/* Parentheses that close, ';', and perhaps a comment. */
static bool closing(const char *line, size_t n, size_t i, int open)
{
    for (; open > 0; open--) {
        i = blanks(line, n, i);
        if (i >= n || line[i++] != ')')
            return false;
    }
    i = blanks(line, n, i);
    if (i >= n || line[i++] != ';')
        return false;
    i = blanks(line, n, i);
    if (i + 1 < n && line[i] == '/' && line[i + 1] == '*') { /* closed in this line? */
        i = skip(line, n, i);
        if (line[i - 1] != '/' || line[i - 2] != '*')
            return false;
        i = blanks(line, n, i);
    }
    if (i + 1 < n && line[i] == '/' && line[i + 1] == '/')
        return line[n - 1] != '\\';
    return i >= n;
}

static void look_around(const char *line, size_t n, um_call_text_t *out)
{
    int open = opening(line, out->name_at, &out->plain);

    out->alone = open >= 0 && closing(line, n, out->end, open);
}

/* ---- calls ------------------------------------------------------------------------------------ */

static bool is_one_of(const char *at, size_t n, const char *const *names)
{
    for (; *names; names++) {
        if (strlen(*names) == n && !memcmp(*names, at, n))
            return true;
    }
    return false;
}

const char *um_call_text_find(const char *line, size_t n, const char *const *names,
                              um_call_text_t *out)
{
    bool found = false;

    *out = (um_call_text_t){.n_args = 0};
    for (size_t i = 0; i < n;) {
        size_t next = skip(line, n, i), length, open;

        if (next != i) {
            i = next;
            continue;
        }
        length = word(line, n, i);
        if (!length) {
            i++;
            continue;
        }
        open = blanks(line, n, i + length);
        if (is_one_of(line + i, length, names)) {
            if (open >= n || line[open] != '(')
                return "it is not called by its plain name there";
            if (found)
                return "there is more than one such call in the line";
            found = true;
            out->name_at = i;
            out->end = pieces(line, n, open + 1, ")", out->args, UM_CALL_ARGS_MAX, &out->n_args);
            if (!out->end)
                return "the call goes over several lines";
        }
        i += length;
    }
    if (!found)
        return "the call is not in that line";
    look_around(line, n, out);
    return NULL;
}

/* Where the kernel's name begins, template arguments and all; `at` is that of "<<<". */
static size_t kernel_name(const char *line, size_t at, const char *name)
{
    size_t n = strlen(name), i = at;
    int depth = 0;

    while (i && isspace((unsigned char)line[i - 1]))
        i--;
    if (i && line[i - 1] == '>') { /* step<float, 4><<<...>>> */
        do {
            i--;
            depth += line[i] == '>' ? 1 : line[i] == '<' ? -1 : 0;
        } while (i && depth);
    }
    if (i < n || memcmp(line + i - n, name, n) != 0 || (i > n && is_word(line[i - n - 1])))
        return SIZE_MAX;
    i -= n;
    while (i >= 2 && line[i - 1] == ':' && line[i - 2] == ':') { /* solver::step */
        for (i -= 2; i && is_word(line[i - 1]); i--)
            ;
    }
    return i;
}

const char *um_call_text_launch(const char *line, size_t n, const char *name, um_call_text_t *out)
{
    size_t at = SIZE_MAX, i;

    *out = (um_call_text_t){.n_args = 0};
    for (i = 0; i < n;) {
        size_t next = skip(line, n, i);

        if (next != i) {
            i = next;
        } else if (n - i >= 3 && !memcmp(line + i, "<<<", 3)) {
            if (at != SIZE_MAX)
                return "there is more than one launch in the line";
            at = i;
            i += 3;
        } else {
            i++;
        }
    }
    if (at == SIZE_MAX)
        return "the launch is not in that line";
    out->name_at = kernel_name(line, at, name);
    if (out->name_at == SIZE_MAX)
        return "the launch in that line is another kernel's";
    i = pieces(line, n, at + 3, ">>>", out->config, 4, &out->n_config);
    i = i ? blanks(line, n, i) : 0;
    if (!i || i >= n || line[i] != '(')
        return "the launch goes over several lines";
    out->end = pieces(line, n, i + 1, ")", out->args, UM_CALL_ARGS_MAX, &out->n_args);
    if (!out->end)
        return "the launch goes over several lines";
    look_around(line, n, out);
    return NULL;
}

/* ---- arguments -------------------------------------------------------------------------------- */

static bool begins(const char *line, um_piece_t arg, const char *with, size_t *n)
{
    *n = strlen(with);
    return arg.n >= *n && !memcmp(line + arg.at, with, *n);
}

/* Of pointers: "(void **)", "(float *)", "reinterpret_cast<void **>(...)". */
static um_piece_t without_casts(const char *line, um_piece_t arg)
{
    static const char *const casts[] = {"reinterpret_cast<", "static_cast<", "const_cast<"};
    size_t n;

    for (bool more = true; more && arg.n;) {
        more = false;
        if (line[arg.at] == '(') {
            size_t i = arg.at + 1, end = arg.at + arg.n, stars = 0;

            while (i < end && (is_word(line[i]) || strchr(" :*", line[i])))
                stars += line[i++] == '*';
            if (i < end && line[i] == ')' && stars && i + 1 < end) {
                arg = trimmed(line, i + 1, end);
                more = true;
            }
        }
        for (size_t k = 0; k < sizeof(casts) / sizeof(casts[0]); k++) {
            size_t i, end = arg.at + arg.n;

            if (!begins(line, arg, casts[k], &n) || line[end - 1] != ')')
                continue;
            for (i = arg.at + n; i < end && line[i] != '>' && line[i] != '<'; i++)
                ;
            if (i + 1 < end && line[i] == '>' && line[i + 1] == '(') {
                arg = trimmed(line, i + 2, end - 1);
                more = true;
            }
        }
    }
    return arg;
}

/* "s->grid[i + 1].data": names, members and indices that change nothing. */
static bool is_place(const char *line, um_piece_t arg)
{
    size_t i = arg.at, end = arg.at + arg.n, depth = 0;

    if (!arg.n || !(isalpha((unsigned char)line[i]) || line[i] == '_'))
        return false;
    while (i < end) {
        size_t n = word(line, end, i);

        if (n) {
            i += n;
        } else if (i + 1 < end && (!memcmp(line + i, "->", 2) || !memcmp(line + i, "::", 2))) {
            i += 2;
        } else if (line[i] == '[') {
            depth++;
            i++;
        } else if (line[i] == ']' && depth) {
            depth--;
            i++;
        } else if (line[i] == '.' || (depth && line[i] == ' ')) {
            i++;
        } else if (depth && strchr("+-*", line[i]) && i + 1 < end && line[i + 1] != line[i] &&
                   line[i + 1] != '=') {
            i++;
        } else {
            return false;
        }
    }
    return !depth && (is_word(line[end - 1]) || line[end - 1] == ']');
}

static bool copy(const char *line, um_piece_t arg, const char *before, char *out, size_t bytes)
{
    return snprintf(out, bytes, "%s%.*s", before, (int)arg.n, line + arg.at) < (int)bytes;
}

bool um_call_text_pointer(const char *line, um_piece_t arg, char *out, size_t bytes)
{
    arg = without_casts(line, arg);
    if (arg.n && line[arg.at] == '&') {
        arg = trimmed(line, arg.at + 1, arg.at + arg.n);
        return is_place(line, arg) && copy(line, arg, "", out, bytes);
    }
    return arg.n == word(line, arg.at + arg.n, arg.at) && is_place(line, arg) &&
           copy(line, arg, "*", out, bytes);
}

bool um_call_text_name(const char *line, um_piece_t arg, char *out, size_t bytes)
{
    arg = without_casts(line, arg);
    return is_place(line, arg) && copy(line, arg, "", out, bytes);
}

bool um_call_text_repeatable(const char *line, um_piece_t arg)
{
    static const char *const harmless[] = {"sizeof", "alignof", "size",   "size_bytes",
                                           "max",    "min",     "size_t", NULL};
    size_t end = arg.at + arg.n;

    for (size_t i = arg.at; i < end;) {
        size_t n = word(line, end, i);

        if (n) {
            size_t open = blanks(line, end, i + n);

            if (open < end && line[open] == '(' && !isdigit((unsigned char)line[i]) &&
                !is_one_of(line + i, n, harmless))
                return false;
            i += n;
        } else if (skip(line, end, i) != i) {
            return false; /* a comment or a string */
        } else if (line[i] == '=' ||
                   (strchr("+-", line[i]) && i + 1 < end && line[i + 1] == line[i])) {
            return false;
        } else {
            i++;
        }
    }
    return arg.n > 0;
}

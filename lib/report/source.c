#include "source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX (8u << 20)
#define LINES_MAX (1u << 20)

/* ---- which file ------------------------------------------------------------------------------- */

/* As a diff's header has it. */
static bool can_be_named(const char *name)
{
    for (; *name; name++) {
        if ((unsigned char)*name < 0x20 || *name == 0x7f || *name == '"' || *name == '\\')
            return false;
    }
    return true;
}

static bool goes_up(const char *path)
{
    return !strncmp(path, "../", 3) || strstr(path, "/../") != NULL;
}

static char *joined(const char *folder, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", strcmp(folder, "/") != 0 ? folder : "", name) < 0 ? NULL : path;
}

static bool is_there(const char *folder, const char *name)
{
    char *path = joined(folder, name);
    struct stat file;
    bool there = path && !lstat(path, &file) && !S_ISDIR(file.st_mode);

    free(path);
    return there;
}

/* The part of `file` below the root; NULL = it is not there, or more than one is. */
static const char *name_below(const char *root, const char *file, bool by_its_end, char *why,
                              size_t bytes)
{
    const char *found = NULL, *at = file;
    size_t n = strlen(root);

    if (*file == '/' && !strncmp(file, root, n) && (file[n] == '/' || !strcmp(root, "/"))) {
        at = file + (strcmp(root, "/") != 0 ? n + 1 : 1);
        if (*at && !goes_up(at) && is_there(root, at))
            return at;
    }
    if (!by_its_end) {
        snprintf(why, bytes, "%s is not below the current folder: --source-root says where it is",
                 file);
        return NULL;
    }
    for (at = file; at; at = strchr(at, '/')) {
        at += strspn(at, "/");
        if (!*at || goes_up(at) || !is_there(root, at))
            continue;
        if (found) {
            snprintf(why, bytes, "%s may be %s or %s below the source root", file, found, at);
            return NULL;
        }
        found = at;
    }
    if (!found)
        snprintf(why, bytes, "%s is not below the source root", file);
    return found;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static um_status_t split(um_source_t *out)
{
    size_t lines = 1, n = 0;

    for (size_t i = 0; i < out->n_bytes; i++)
        lines += out->bytes[i] == '\n';
    if (lines > LINES_MAX)
        return UM_ERR_FULL;
    out->lines = calloc(lines, sizeof(*out->lines));
    if (!out->lines)
        return UM_ERR_NO_MEMORY;
    for (const char *at = out->bytes, *end = at + out->n_bytes; at < end;) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        um_text_line_t *line = &out->lines[n++];

        *line = (um_text_line_t){.at = at, .n = (size_t)((lf ? lf : end) - at), .lf = lf != NULL};
        line->cr = lf && line->n && at[line->n - 1] == '\r';
        line->n -= line->cr;
        at = lf ? lf + 1 : end;
    }
    out->n_lines = n;
    return UM_OK;
}

static um_status_t read_file(const char *path, um_source_t *out, char *why, size_t bytes)
{
    struct stat file;
    um_status_t status = UM_ERR_NOT_FOUND;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        snprintf(why, bytes, "%s: %s", path,
                 errno == ELOOP ? "it is a symbolic link" : strerror(errno));
        return status;
    }
    if (fstat(fd, &file) || !S_ISREG(file.st_mode)) {
        snprintf(why, bytes, "%s is not a regular file", path);
    } else if (file.st_size > BYTES_MAX) {
        snprintf(why, bytes, "%s is larger than %u MiB", path, BYTES_MAX >> 20);
    } else if (!(out->bytes = malloc((size_t)file.st_size + 1))) {
        status = UM_ERR_NO_MEMORY;
    } else {
        size_t n = 0;
        ssize_t got = 0;

        while (n < (size_t)file.st_size &&
               (got = read(fd, out->bytes + n, (size_t)file.st_size - n)) > 0)
            n += (size_t)got;
        out->bytes[n] = '\0';
        out->n_bytes = n;
        out->modified_ns =
            (uint64_t)file.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)file.st_mtim.tv_nsec;
        if (got < 0)
            snprintf(why, bytes, "%s: %s", path, strerror(errno));
        else if (memchr(out->bytes, '\0', n))
            snprintf(why, bytes, "%s is not text", path);
        else
            status = UM_OK;
    }
    close(fd);
    return status;
}

um_status_t um_source_open(const char *root, const char *file, um_source_t *out, char *why,
                           size_t bytes)
{
    char *folder = realpath(root ? root : ".", NULL), *path = NULL;
    const char *name;
    um_status_t status = UM_ERR_NOT_FOUND;

    *out = (um_source_t){.name = NULL};
    if (!folder) {
        snprintf(why, bytes, "%s: %s", root ? root : ".", strerror(errno));
        return status;
    }
    name = name_below(folder, file, root != NULL, why, bytes);
    if (name && !can_be_named(name)) {
        snprintf(why, bytes, "the name of %s cannot stand in a diff", file);
        name = NULL;
    }
    if (name) {
        path = joined(folder, name);
        out->name = strdup(name);
        status = path && out->name ? read_file(path, out, why, bytes) : UM_ERR_NO_MEMORY;
    }
    if (!status)
        status = split(out);
    if (status == UM_ERR_FULL) {
        snprintf(why, bytes, "%s has too many lines", path);
        status = UM_ERR_NOT_FOUND;
    }
    if (status)
        um_source_close(out);
    free(folder);
    free(path);
    return status;
}

void um_source_close(um_source_t *source)
{
    free(source->name);
    free(source->bytes);
    free(source->lines);
    *source = (um_source_t){.name = NULL};
}

/* ---- what a line stands in -------------------------------------------------------------------- */

typedef struct um_reader {
    const char *at, *end;
    bool line_start; /* nothing but blanks on this line so far */
    bool in_directive;
    char last;        /* character that counts; '#' behind a directive, 0 = none yet */
    int depth, least; /* braces; the fewest since `least` was set */
} um_reader_t;

static bool ends_raw(const char *at, const char *end, const char *mark, size_t n)
{
    return (size_t)(end - at) >= n + 2 && *at == ')' && !memcmp(at + 1, mark, n) &&
           at[n + 1] == '"';
}

/* Behind R"mark(...)mark"; NULL = it is none. */
static const char *skip_raw(const char *at, const char *end)
{
    const char *open = at + 2, *mark = open;
    size_t n = 0;

    if (end - at < 3 || at[0] != 'R' || at[1] != '"')
        return NULL;
    while (open + n < end && n <= 16 && open[n] != '(' && !strchr(" )\\\t\n\"", open[n]))
        n++;
    if (open + n >= end || open[n] != '(')
        return NULL;
    for (at = open + n + 1; at < end; at++) {
        if (ends_raw(at, end, mark, n))
            return at + n + 2;
    }
    return end;
}

/* Behind a string or character; at the end of the line where it is not closed. */
static const char *skip_quoted(const char *at, const char *end)
{
    char quote = *at++;

    for (; at < end && *at != '\n'; at++) {
        if (*at == '\\' && at + 1 < end)
            at += at[1] == '\r' && at + 2 < end && at[2] == '\n' ? 2 : 1;
        else if (*at == quote)
            return at + 1;
    }
    return at;
}

static const char *skip_comment(const char *at, const char *end)
{
    if (at[1] == '*') {
        for (at += 2; at < end; at++) {
            if (*at == '*' && at + 1 < end && at[1] == '/')
                return at + 2;
        }
        return end;
    }
    for (; at < end && *at != '\n'; at++) {
        if (*at == '\\' && at + 1 < end && at[1] == '\n')
            at++;
    }
    return at;
}

static bool is_continued(const um_reader_t *r, const char *newline, const char *start)
{
    const char *before = newline;

    if (before > start && before[-1] == '\r')
        before--;
    (void)r;
    return before > start && before[-1] == '\\';
}

/* One thing on: a character, or a whole comment, string or number. */
static void step(um_reader_t *r, const char *start)
{
    const char *at = r->at, *raw;
    bool comment = *at == '/' && at + 1 < r->end && (at[1] == '/' || at[1] == '*');
    bool word = at > start && (isalnum((unsigned char)at[-1]) || at[-1] == '_');

    if (*at == '\n') {
        bool more = is_continued(r, at, start);

        if (r->in_directive && !more) {
            r->in_directive = false;
            r->last = '#';
        }
        r->line_start = !more;
        r->at++;
        return;
    }
    if (comment) {
        r->at = skip_comment(at, r->end);
        return;
    }
    if (isspace((unsigned char)*at)) {
        r->at++;
        return;
    }
    if (*at == '#' && r->line_start)
        r->in_directive = true;
    r->line_start = false;
    raw = word ? NULL : skip_raw(at, r->end);
    if (raw) {
        r->at = raw;
    } else if (*at == '"' || (*at == '\'' && !word)) { /* 1'000 is a number */
        r->at = skip_quoted(at, r->end);
    } else {
        if (!r->in_directive)
            r->depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
        r->least = r->depth < r->least ? r->depth : r->least;
        r->at++;
    }
    if (!r->in_directive)
        r->last = *at;
}

um_source_state_t um_source_state(const um_source_t *source, size_t line)
{
    const char *to = source->lines[line - 1].at;
    um_reader_t r = {.at = source->bytes,
                     .end = source->bytes + source->n_bytes,
                     .line_start = true};
    um_source_state_t state;
    const char *first = to;

    while (r.at < to)
        step(&r, source->bytes);
    while (first < r.end && (*first == ' ' || *first == '\t'))
        first++;
    state.in_comment = r.at != to;
    state.in_macro = r.in_directive || !r.line_start || (first < r.end && *first == '#');
    state.fresh = !r.last || strchr(";{}:#", r.last) != NULL;
    state.depth = r.depth;
    return state;
}

bool um_source_in_block(const um_source_t *source, size_t from, size_t to)
{
    const char *begin = source->lines[from - 1].at, *end = source->lines[to - 1].at;
    um_reader_t r = {.at = source->bytes,
                     .end = source->bytes + source->n_bytes,
                     .line_start = true};
    int depth;

    while (r.at < begin)
        step(&r, source->bytes);
    depth = r.least = r.depth;
    while (r.at < end)
        step(&r, source->bytes);
    return r.least >= depth;
}

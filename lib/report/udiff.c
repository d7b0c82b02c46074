#include "udiff.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define CONTEXT 3u

/* A line of the result. */
typedef struct um_out_line {
    char mark; /* ' ', '-', '+' */
    const char *at;
    size_t n;
    bool cr, lf;
} um_out_line_t;

typedef struct um_result {
    um_out_line_t *list;
    size_t n, size;
} um_result_t;

static bool put(um_result_t *r, um_out_line_t line)
{
    if (!um_grow(&r->list, &r->size, r->n + 1, sizeof(*r->list)))
        return false;
    r->list[r->n++] = line;
    return true;
}

static bool put_text(um_result_t *r, const char *text, const um_text_line_t *beside)
{
    bool more = true, ok = true;

    while (more && ok) {
        size_t n = strcspn(text, "\n");

        more = text[n] == '\n';
        ok = put(r, (um_out_line_t){'+', text, n, beside->cr, true});
        text += n + more;
    }
    return ok;
}

static bool put_all(um_result_t *r, const um_edit_t *edits, size_t n, size_t line,
                    um_edit_kind_t kind, const um_text_line_t *beside)
{
    bool ok = true;

    for (size_t i = 0; i < n && ok; i++) {
        if (edits[i].line == line && edits[i].kind == kind)
            ok = put_text(r, edits[i].text, beside);
    }
    return ok;
}

static bool has(const um_edit_t *edits, size_t n, size_t line, um_edit_kind_t kind)
{
    for (size_t i = 0; i < n; i++) {
        if (edits[i].line == line && edits[i].kind == kind)
            return true;
    }
    return false;
}

static bool put_line(um_result_t *r, const um_source_t *source, const um_edit_t *edits, size_t n,
                     size_t number)
{
    const um_text_line_t *line = &source->lines[number - 1];
    um_out_line_t same = {' ', line->at, line->n, line->cr, line->lf};
    bool replaced = has(edits, n, number, UM_EDIT_REPLACE);
    bool removed = has(edits, n, number, UM_EDIT_REMOVE), ok;

    ok = put_all(r, edits, n, number, UM_EDIT_BEFORE, line);
    /* A last line without an ending gets one when something follows. */
    if (!removed && !replaced && !line->lf && has(edits, n, number, UM_EDIT_AFTER)) {
        same.mark = '-';
        ok = ok && put(r, same);
        same.mark = '+';
        same.lf = true;
        ok = ok && put(r, same);
    } else {
        same.mark = removed || replaced ? '-' : ' ';
        ok = ok && put(r, same);
    }
    ok = ok && put_all(r, edits, n, number, UM_EDIT_REPLACE, line) &&
         put_all(r, edits, n, number, UM_EDIT_AFTER, line);
    /* And what is last then has none. */
    if (ok && number == source->n_lines && !line->lf && r->list[r->n - 1].mark == '+')
        r->list[r->n - 1].lf = false;
    return ok;
}

/* Untouched lines at a time, the others one by one. */
static um_status_t make(const um_source_t *source, const um_edit_t *edits, size_t n,
                        um_result_t *out)
{
    for (size_t i = 1; i <= source->n_lines; i++) {
        const um_text_line_t *line = &source->lines[i - 1];
        bool touched = false, ok;

        for (size_t k = 0; k < n; k++)
            touched |= edits[k].line == i;
        ok = touched ? put_line(out, source, edits, n, i)
                     : put(out, (um_out_line_t){' ', line->at, line->n, line->cr, line->lf});
        if (!ok)
            return UM_ERR_NO_MEMORY;
    }
    return UM_OK;
}

static void print_line(const um_out_line_t *line, FILE *out)
{
    fputc(line->mark, out);
    fwrite(line->at, 1, line->n, out);
    fputs(line->cr ? "\r\n" : "\n", out);
    if (!line->lf)
        fputs("\\ No newline at end of file\n", out);
}

/* "3,7", "0,0" for nothing before the first line. */
static void print_range(size_t first, size_t lines, FILE *out)
{
    fprintf(out, lines == 1 ? "%zu" : "%zu,%zu", lines ? first : first - 1, lines);
}

static void print_hunk(const um_result_t *r, size_t from, size_t to, size_t old_line,
                       size_t new_line, FILE *out)
{
    size_t old_lines = 0, new_lines = 0;

    for (size_t i = from; i < to; i++) {
        old_lines += r->list[i].mark != '+';
        new_lines += r->list[i].mark != '-';
    }
    fputs("@@ -", out);
    print_range(old_line, old_lines, out);
    fputs(" +", out);
    print_range(new_line, new_lines, out);
    fputs(" @@\n", out);
    for (size_t i = from; i < to; i++)
        print_line(&r->list[i], out);
}

um_status_t um_udiff_write(const um_source_t *source, const um_edit_t *edits, size_t n, FILE *out)
{
    um_result_t r = {NULL, 0, 0};
    um_status_t status = make(source, edits, n, &r);
    size_t old_line = 1, new_line = 1, done = 0;
    const char *tab = strchr(source->name, ' ') ? "\t" : ""; /* where the name ends */

    if (!status)
        fprintf(out, "--- %s%s\n+++ %s%s\n", source->name, tab, source->name, tab);
    for (size_t i = 0; !status && i < r.n; i++) {
        size_t from, to, last;

        if (r.list[i].mark == ' ')
            continue;
        from = i > done + CONTEXT ? i - CONTEXT : done;
        for (last = to = i; to < r.n && to <= last + 2 * CONTEXT; to++)
            last = r.list[to].mark != ' ' ? to : last;
        to = last + CONTEXT + 1 < r.n ? last + CONTEXT + 1 : r.n;
        for (; done < from; done++) {
            old_line++;
            new_line++;
        }
        print_hunk(&r, from, to, old_line, new_line, out);
        for (; done < to; done++) {
            old_line += r.list[done].mark != '+';
            new_line += r.list[done].mark != '-';
        }
        i = to - 1;
    }
    free(r.list);
    return status;
}

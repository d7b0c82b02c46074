#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "core/grow.h"
#include "patch_impl.h"

static bool is_whole(um_edit_kind_t kind)
{
    return kind == UM_EDIT_REPLACE || kind == UM_EDIT_REMOVE;
}

void um_patch_plan(um_patching_t *p, const um_spot_line_t *at, um_edit_kind_t kind, char *text,
                   um_side_t located)
{
    for (size_t i = 0; text && i < p->n_planned; i++) {
        const um_planned_t *other = &p->planned[i];
        bool sized = p->change == UM_CHANGE_PAGES || other->change == UM_CHANGE_PAGES;

        if (other->source != at->source || other->edit.line != at->line)
            continue;
        if (other->edit.kind == kind && !strcmp(other->text, text)) { /* said already */
            free(text);
            return;
        }
        if ((other->change != p->change && !sized) ||
            (is_whole(kind) && is_whole(other->edit.kind))) {
            um_patch_refuse(p, "finding %" PRIu32 " changes that line already", other->finding);
            free(text);
            return;
        }
    }
    if (!text || !um_grow(&p->planned, &p->planned_size, p->n_planned + 1, sizeof(*p->planned))) {
        free(text);
        p->status = UM_ERR_NO_MEMORY;
        return;
    }
    p->planned[p->n_planned++] = (um_planned_t){.source = at->source,
                                                .finding = p->finding,
                                                .change = p->change,
                                                .edit = {.kind = kind, .line = at->line},
                                                .text = text,
                                                .located = located};
}

static const char *location_name(um_side_t to)
{
    return to == UM_SIDE_CPU ? "umrt_cpu" : "umrt_gpu";
}

static void put_word(um_patching_t *p, const um_patch_words_t *words, char field, FILE *out)
{
    switch (field) {
    case 'p':
    case 'v':
        fputs(words->pointer, out);
        break;
    case 'n':
    case 'b':
        fputs(words->bytes, out);
        break;
    case 'd':
        fputs(um_code_device(p->report, words->to), out);
        break;
    case 'l':
        fputs(location_name(words->to), out);
        break;
    case 's':
        fputs(words->stream, out);
        break;
    default:
        break;
    }
}

static size_t indent_of(const um_text_line_t *line)
{
    size_t n = 0;

    while (n < line->n && (line->at[n] == ' ' || line->at[n] == '\t'))
        n++;
    return n;
}

void um_patch_plan_call(um_patching_t *p, const um_spot_line_t *at, um_edit_kind_t kind,
                        const char *pattern, const um_patch_words_t *words)
{
    um_side_t located = strstr(pattern, "%l") ? words->to : UM_SIDE_NONE;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out) {
        p->status = UM_ERR_NO_MEMORY;
        return;
    }
    if (!located)
        fprintf(out, "%.*s", (int)indent_of(at->text), at->text->at);
    for (; *pattern; pattern++) {
        if (*pattern == '%')
            put_word(p, words, *++pattern, out);
        else
            fputc(*pattern, out);
    }
    if (fclose(out)) {
        free(text);
        text = NULL;
    }
    um_patch_plan(p, at, kind, text, located);
}

static bool same_block(const um_planned_t *a, const um_planned_t *b)
{
    return a->located && b->located && a->source == b->source && a->edit.kind == b->edit.kind &&
           a->edit.line == b->edit.line;
}

static void put_location(const um_patching_t *p, um_side_t to, const char *indent, int n, FILE *out)
{
    const char *name = location_name(to);

    fprintf(out, "%.*sstruct cudaMemLocation %s;\n", n, indent, name);
    fprintf(out, "%.*s%s.type = %s;\n", n, indent, name, um_code_location_type(to));
    fprintf(out, "%.*s%s.id = %s;\n", n, indent, name,
            to == UM_SIDE_CPU ? "0" : um_code_device(p->report, to));
}

/* One block for the i-th and those behind it that belong there. NULL: no memory. */
static char *block_of(const um_patching_t *p, size_t i)
{
    const um_planned_t *first = &p->planned[i];
    const um_text_line_t *line = &p->sources[first->source].lines[first->edit.line - 1];
    char indent[260], *text = NULL;
    int outer = snprintf(indent, 256, "%.*s", (int)indent_of(line), line->at), inner;
    bool located[UM_SIDE_COUNT] = {false};
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    outer = outer < 256 ? outer : 255;
    inner = outer + snprintf(indent + outer, sizeof(indent) - (size_t)outer, "%s",
                             strchr(indent, '\t') ? "\t" : "    ");
    fprintf(out, "%.*s{\n", outer, indent);
    for (size_t k = i; k < p->n_planned; k++) {
        const um_planned_t *planned = &p->planned[k];

        if (same_block(first, planned) && !located[planned->located])
            put_location(p, planned->located, indent, inner, out);
        if (same_block(first, planned))
            located[planned->located] = true;
    }
    for (size_t k = i; k < p->n_planned; k++) {
        if (same_block(first, &p->planned[k]))
            fprintf(out, "%.*s%s\n", inner, indent, p->planned[k].text);
    }
    fprintf(out, "%.*s}", outer, indent);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

void um_patch_drop(um_patching_t *p, size_t from)
{
    while (p->n_planned > from)
        free(p->planned[--p->n_planned].text);
}

static bool is_in_a_block_before(const um_patching_t *p, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (same_block(&p->planned[k], &p->planned[i]))
            return true;
    }
    return false;
}

/* The edits of one source; blocks[] are the caller's to free. */
static um_status_t edits_of(const um_patching_t *p, uint32_t source, um_edit_t *edits,
                            char **blocks, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < p->n_planned; i++) {
        const um_planned_t *planned = &p->planned[i];

        if (planned->source != source || is_in_a_block_before(p, i))
            continue;
        if (planned->located && !(blocks[i] = block_of(p, i)))
            return UM_ERR_NO_MEMORY;
        edits[*n] = planned->edit;
        edits[(*n)++].text = blocks[i] ? blocks[i] : planned->text;
    }
    return UM_OK;
}

um_status_t um_patch_write_files(um_patching_t *p, FILE *out)
{
    um_edit_t *edits = calloc(p->n_planned, sizeof(*edits));
    char **blocks = calloc(p->n_planned, sizeof(*blocks));
    um_status_t status = edits && blocks ? UM_OK : UM_ERR_NO_MEMORY;

    for (uint32_t s = 0; s < p->n_sources && !status; s++) {
        size_t n;

        status = edits_of(p, s, edits, blocks, &n);
        if (!status && n)
            status = um_udiff_write(&p->sources[s], edits, n, out);
    }
    for (size_t i = 0; blocks && i < p->n_planned; i++)
        free(blocks[i]);
    free(blocks);
    free(edits);
    return status;
}

#include "code.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/finding.h"

#define GROUPS_MAX 8u  /* that get a name of their own */
#define ONCE_MAX   16u /* lines that are said once */

typedef struct um_writing {
    const um_report_t *report;
    const um_dialect_t *dialect; /* that is asked first */
    const um_dialect_t *cuda;    /* does what it cannot */
    um_cuda_form_t form;
    uint32_t group[GROUPS_MAX];
    char name[GROUPS_MAX][64];
    uint32_t n_groups;
    bool located[UM_SIDE_COUNT]; /* its cudaMemLocation is used */
    bool named;                  /* the names of buffers are */
    const char *once[ONCE_MAX];  /* what was said; by address */
    uint32_t n_once;
    FILE *out;
} um_writing_t;

bool um_is_identifier(const char *text, size_t bytes)
{
    if (!bytes || isdigit((unsigned char)*text))
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    }
    return true;
}

const char *um_code_device(const um_report_t *r, um_side_t to)
{
    if (to == UM_SIDE_CPU)
        return "cudaCpuDeviceId";
    if (to == UM_SIDE_OTHER)
        return "other_device";
    return r->n_traces && r->traces[0].devices == 1 ? "0" : "device";
}

const char *um_code_location_type(um_side_t to)
{
    return to == UM_SIDE_CPU ? "cudaMemLocationTypeHost" : "cudaMemLocationTypeDevice";
}

static const char *location_name(um_side_t to)
{
    return to == UM_SIDE_CPU ? "cpu" : to == UM_SIDE_OTHER ? "other_gpu" : "gpu";
}

const char *um_code_stream(const um_report_t *r, uint32_t kernel)
{
    const um_kernel_stat_t *of =
        kernel != UM_NO_INDEX && kernel < r->kernels.n_kernels ? &r->kernels.kernels[kernel] : NULL;

    if (!of || !of->launches || of->many_streams)
        return "stream";
    return of->stream == 0 ? "0" : of->stream == 2 ? "cudaStreamPerThread" : "stream";
}

/* ---- comments --------------------------------------------------------------------------------- */

/* Text of the trace's inside a comment: it neither ends it nor breaks the line. */
static void put_safe(FILE *out, const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            fputc('?', out);
        else if (*text == '*' && text[1] == '/')
            fputs("* ", out);
        else if (*text == '\\' && !text[1]) /* would continue the line */
            fputs("\\ ", out);
        else
            fputc(*text, out);
    }
}

static void comment(um_writing_t *w, const char *before, const char *text, const char *after)
{
    fputs(w->dialect->python ? "# " : "/* ", w->out);
    fputs(before, w->out);
    put_safe(w->out, text);
    fputs(after, w->out);
    fputs(w->dialect->python ? "" : " */", w->out);
}

/* ---- names ------------------------------------------------------------------------------------ */

static const char *name_of(const um_writing_t *w, uint32_t group)
{
    for (uint32_t i = 0; i < w->n_groups; i++) {
        if (w->group[i] == group)
            return w->name[i];
    }
    return "p";
}

static bool is_taken(const um_writing_t *w, const char *name)
{
    /* What the patterns use, and words of the languages. */
    static const char *const ours[] = {
        "gpu",   "cpu",   "other_gpu", "device", "other_device", "stream", "copies", "there",
        "pool",  "keep",  "room",      "all",    "queue",        "n",      "rest",   "host",
        "flag",  "stage", "piece",     "int",    "float",        "double", "char",   "long",
        "short", "void",  "new",       "this",   "class",        "struct", "for",    "if",
        "in",    "is",    "not",       "and",    "or",           "do",     "else",   "while",
    };

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (!strcmp(ours[i], name))
            return true;
    }
    for (uint32_t i = 0; i < w->n_groups; i++) {
        if (!strcmp(w->name[i], name))
            return true;
    }
    return false;
}

/* The label where it can be a variable; else p, with what it is said before the code. */
static void name_groups(um_writing_t *w, const um_fix_step_t *steps, size_t n)
{
    uint32_t unnamed = 0, at = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            uint32_t group = steps[i].group, k;
            const char *label;

            for (k = 0; group != UM_NO_INDEX && k < w->n_groups && w->group[k] != group; k++)
                ;
            if (group == UM_NO_INDEX || k < w->n_groups || w->n_groups == GROUPS_MAX)
                continue;
            label = w->report->regions.groups[group].label;
            if (label && strlen(label) < sizeof(w->name[0]) &&
                um_is_identifier(label, strlen(label)) && !is_taken(w, label)) {
                snprintf(w->name[w->n_groups], sizeof(w->name[0]), "%s", label);
                w->group[w->n_groups++] = group;
            } else if (!pass) {
                for (k = 0; k < i && steps[k].group != group; k++)
                    ;
                unnamed += k == i;
            } else {
                do
                    snprintf(w->name[w->n_groups], sizeof(w->name[0]), unnamed > 1 ? "p%u" : "p",
                             ++at);
                while (is_taken(w, w->name[w->n_groups]));
                w->group[w->n_groups++] = group;
            }
        }
    }
}

static void say_names(um_writing_t *w)
{
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const um_group_t *group = &w->report->regions.groups[w->group[i]];
        char what[320], before[80];

        if (group->label && !strcmp(group->label, w->name[i]))
            continue;
        um_finding_region(w->report, w->group[i], what, sizeof(what));
        snprintf(before, sizeof(before), "%s: ", w->name[i]);
        comment(w, before, what, "");
        fputc('\n', w->out);
    }
}

/* ---- patterns --------------------------------------------------------------------------------- */

static void put_bytes(um_writing_t *w, const um_fix_step_t *step, uint64_t round)
{
    uint64_t bytes = step->bytes;

    if (bytes && bytes <= UINT64_MAX - round)
        fprintf(w->out, "%" PRIu64, (bytes + round - 1) / round * round);
    else if (round > 1)
        fprintf(w->out, "(n + %" PRIu64 ") / %" PRIu64 " * %" PRIu64, round - 1, round, round);
    else
        fputs(step->from || !step->whole ? "rest" : "n", w->out);
}

static void put_name(FILE *out, const char *pattern, const char *name)
{
    for (; *pattern; pattern++) {
        if (*pattern == '%' && pattern[1] == 'v') {
            fputs(name, out);
            pattern++;
        } else {
            fputc(*pattern, out);
        }
    }
}

static void put_pointer(um_writing_t *w, const um_fix_step_t *step)
{
    const char *name = name_of(w, step->group);
    const char *data = w->dialect->data ? w->dialect->data : "%v";

    if (step->from && !w->dialect->python)
        fputs("(char *)", w->out);
    put_name(w->out, data, name);
    if (step->from)
        fprintf(w->out, " + %" PRIu64, step->from);
}

static void put_own_call(um_writing_t *w, const um_fix_step_t *step)
{
    char name[240] = "the program's own call";

    if (step->own != UM_NO_INDEX)
        um_own_name(w->report, &w->report->regions.uses.own[step->own], name, sizeof(name));
    put_safe(w->out, name);
}

static void put_device(um_writing_t *w, const um_fix_step_t *step)
{
    if (step->to == UM_SIDE_CPU && w->dialect->python)
        fputs("cupy.cuda.runtime.cudaCpuDeviceId", w->out);
    else if (step->to == UM_SIDE_GPU && w->dialect->device)
        put_name(w->out, w->dialect->device, name_of(w, step->group));
    else
        fputs(um_code_device(w->report, step->to), w->out);
}

static void put_stream(um_writing_t *w, const um_fix_step_t *step)
{
    const char *stream = um_code_stream(w->report, step->kernel);

    if (!strcmp(stream, "0") && w->dialect->default_stream)
        stream = w->dialect->default_stream;
    else if (!strcmp(stream, "stream") && w->dialect->stream)
        stream = w->dialect->stream;
    fputs(stream, w->out);
}

/* One character behind '%'. */
static void put_field(um_writing_t *w, const um_fix_step_t *step, char field)
{
    switch (field) {
    case 'v':
        fputs(name_of(w, step->group), w->out);
        break;
    case 'p':
        put_pointer(w, step);
        break;
    case 'n':
        if (step->whole && w->dialect->bytes && step->group != UM_NO_INDEX)
            put_name(w->out, w->dialect->bytes, name_of(w, step->group));
        else
            put_bytes(w, step, 1);
        break;
    case 'b':
        put_bytes(w, step, 1);
        break;
    case 'N':
        put_bytes(w, step, UM_BIG_PAGE_BYTES);
        break;
    case 'd':
        put_device(w, step);
        break;
    case 'l':
        fputs(location_name(step->to), w->out);
        break;
    case 's':
        put_stream(w, step);
        break;
    case 'c':
        put_own_call(w, step);
        break;
    default:
        break;
    }
}

static void say_bytes(um_writing_t *w, const um_fix_step_t *step)
{
    if (!step->bytes || step->group == UM_NO_INDEX || step->when == UM_AT_CALL)
        return;
    fputs("  ", w->out);
    comment(w, "", um_h(um_bytes(step->bytes)), "");
}

/* A line of a pattern; false = said before, and once is enough. */
static bool put_line(um_writing_t *w, const um_fix_step_t *step, const char *line, size_t n,
                     bool undo)
{
    bool once = *line == '^', sized = false;

    for (uint32_t i = 0; once && i < w->n_once; i++) {
        if (w->once[i] == line)
            return false;
    }
    if (once && w->n_once < ONCE_MAX)
        w->once[w->n_once++] = line;
    for (size_t i = once; i < n; i++) {
        if (line[i] == '%') {
            sized |= strchr("nbN", line[++i]) != NULL;
            put_field(w, step, line[i]);
        } else {
            fputc(line[i], w->out);
        }
    }
    if (sized && !undo)
        say_bytes(w, step);
    fputc('\n', w->out);
    return true;
}

static void put_pattern(um_writing_t *w, const um_fix_step_t *step, const char *pattern, bool undo)
{
    while (*pattern) {
        size_t n = strcspn(pattern, "\n");

        put_line(w, step, pattern, n, undo);
        pattern += n + (pattern[n] != '\0');
    }
}

/* ---- steps ------------------------------------------------------------------------------------ */

static const um_pattern_t *pattern_of(const um_writing_t *w, const um_fix_step_t *step)
{
    const um_pattern_t *pattern = um_dialect_pattern(w->dialect, step);

    return pattern || w->dialect->python ? pattern : um_dialect_pattern(w->cuda, step);
}

/* A line of its own, before the first of the calls that belong there. */
static void say_when(um_writing_t *w, const um_fix_step_t *step)
{
    static const char *const when[UM_AT_COUNT] = {
        [UM_AT_ANY] = "",
        [UM_AT_ALLOCATION] = "once, after the allocation",
        [UM_AT_INSTEAD] = "instead of the managed allocation",
        [UM_AT_BEFORE_LAUNCH] = "before the launch",
        [UM_AT_AFTER_LAUNCH] = "after the last launch, before the CPU waits for it",
        [UM_AT_CALL] = "",
    };
    bool launch = step->when == UM_AT_BEFORE_LAUNCH || step->when == UM_AT_AFTER_LAUNCH;
    const um_kernel_stat_t *kernel =
        step->kernel == UM_NO_INDEX ? NULL : &w->report->kernels.kernels[step->kernel];
    char text[300], name[160];

    snprintf(text, sizeof(text), "%s", when[step->when]);
    if (step->action == UM_DO_WAIT)
        snprintf(text, sizeof(text), "after the launch, before the CPU's first touch");
    if (launch && kernel && kernel->copy)
        snprintf(text, sizeof(text), "before the copy");
    else if (launch && kernel && *kernel->name) {
        um_finding_kernel(kernel, name, sizeof(name));
        um_say_in(text, " (%s)", name);
    }
    if (*text) {
        comment(w, "", text, "");
        fputc('\n', w->out);
    }
}

/* CuPy for CUDA 13 takes every id that it is given for a GPU's. */
static bool cannot(const um_writing_t *w, const um_fix_step_t *step)
{
    return w->dialect->python && w->form == UM_CUDA_13 && step->to == UM_SIDE_CPU;
}

/* Said once, however many buffers it is true of. */
static void say_once(um_writing_t *w, const char *text, const char *more)
{
    for (uint32_t i = 0; i < w->n_once; i++) {
        if (w->once[i] == text)
            return;
    }
    if (w->n_once < ONCE_MAX)
        w->once[w->n_once++] = text;
    comment(w, text, more, "");
    fputc('\n', w->out);
}

static void write_steps(um_writing_t *w, const um_fix_step_t *steps, size_t n, bool undo)
{
    w->n_once = 0;
    for (size_t i = 0; i < n; i++) {
        const um_pattern_t *pattern = pattern_of(w, &steps[i]);
        const char *text = !pattern ? NULL : undo ? pattern->undo : pattern->code;

        if (cannot(w, &steps[i])) {
            say_once(w,
                     "CuPy for CUDA 13 takes every device for a GPU: to the CPU, call the runtime "
                     "from C",
                     "");
        } else if (!pattern) {
            say_once(w, "CuPy has no call for it: ", um_action_name(steps[i].action));
        } else if (!text) {
            say_once(w, "take it out again", "");
        } else {
            if (!undo && (!i || steps[i - 1].when != steps[i].when))
                say_when(w, &steps[i]);
            put_pattern(w, &steps[i], text, undo);
        }
    }
}

static void mark_locations(um_writing_t *w, const um_fix_step_t *steps, size_t n, bool undo)
{
    memset(w->located, 0, sizeof(w->located));
    w->named = false;
    for (size_t i = 0; i < n; i++) {
        const um_pattern_t *pattern = pattern_of(w, &steps[i]);
        const char *text = !pattern ? NULL : undo ? pattern->undo : pattern->code;

        if (text && strstr(text, "%l"))
            w->located[steps[i].to] = true;
        w->named |= text && (strstr(text, "%v") || strstr(text, "%p"));
    }
}

/* As statements: id has become a member of a union, and C++ has no names in initializers. */
static void write_locations(um_writing_t *w)
{
    for (int to = UM_SIDE_GPU; to < UM_SIDE_COUNT; to++) {
        if (!w->located[to])
            continue;
        fprintf(w->out,
                "struct cudaMemLocation %s; %s.type = %s; %s.id = ", location_name((um_side_t)to),
                location_name((um_side_t)to), um_code_location_type((um_side_t)to),
                location_name((um_side_t)to));
        if (to == UM_SIDE_CPU)
            fputc('0', w->out);
        else
            put_device(w, &(um_fix_step_t){.to = (um_side_t)to, .group = UM_NO_INDEX});
        fputs(";\n", w->out);
    }
}

static um_status_t write_text(um_writing_t *w, const um_fix_step_t *steps, size_t n, bool undo,
                              uint64_t left, char **out)
{
    size_t bytes;
    char line[80];

    w->out = open_memstream(out, &bytes);
    if (!w->out)
        return UM_ERR_NO_MEMORY;
    mark_locations(w, steps, n, undo);
    if (!undo && w->named)
        say_names(w);
    write_locations(w);
    write_steps(w, steps, n, undo);
    if (left && n) {
        snprintf(line, sizeof(line), "and %" PRIu64 " more buffer%s likewise", left,
                 left == 1 ? "" : "s");
        comment(w, "", line, "");
        fputc('\n', w->out);
    }
    if (fclose(w->out)) {
        free(*out);
        *out = NULL;
        return UM_ERR_NO_MEMORY;
    }
    while (bytes && (*out)[bytes - 1] == '\n')
        (*out)[--bytes] = '\0';
    return UM_OK;
}

um_status_t um_code_write(const um_report_t *r, const um_finding_t *f, const um_dialect_t *dialect,
                          um_cuda_form_t form, um_code_t *out)
{
    um_writing_t w = {.report = r, .dialect = dialect, .cuda = um_dialect_cuda(form), .form = form};
    um_fix_step_t steps[UM_STEPS_MAX];
    uint64_t left;
    size_t n = um_fix_steps(r, f, steps, &left);
    um_status_t status;

    *out = (um_code_t){NULL, NULL};
    if (n && steps[0].action == UM_DO_RECORD) { /* for the shell, whatever the program speaks */
        out->code = strdup(f->command);
        out->undo = strdup("");
        status = out->code && out->undo ? UM_OK : UM_ERR_NO_MEMORY;
    } else {
        name_groups(&w, steps, n);
        status = write_text(&w, steps, n, false, left, &out->code);
        if (!status)
            status = write_text(&w, steps, n, true, 0, &out->undo);
    }
    if (status)
        um_code_free(out);
    return status;
}

void um_code_free(um_code_t *code)
{
    free(code->code);
    free(code->undo);
    *code = (um_code_t){NULL, NULL};
}

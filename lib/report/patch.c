#include "patch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "core/grow.h"
#include "findings/finding.h"
#include "sections.h"
#include "source.h"
#include "target.h"
#include "udiff.h"

#define WHY_BYTES 500

typedef struct um_planned {
    uint32_t source;
    uint32_t finding; /* rank */
    um_change_t change;
    um_edit_t edit;
    char *text;
    um_side_t located; /* a statement that needs its cudaMemLocation; NONE = whole lines */
} um_planned_t;

/* Whose change a buffer has. */
typedef struct um_owner {
    uint32_t finding; /* 0 = nobody's */
    um_change_t change;
} um_owner_t;

typedef struct um_patching {
    um_report_t *report;
    const um_patch_t *patch;
    um_target_t target;
    um_source_t *sources;
    size_t n_sources, sources_size;
    um_planned_t *planned;
    size_t n_planned, planned_size;
    um_owner_t *owners; /* of groups */
    uint32_t finding;
    um_change_t change;
    char why[WHY_BYTES]; /* it is refused; "" = it is not */
    um_status_t status;  /* no memory */
} um_patching_t;

#define refuse(p, ...) snprintf((p)->why, sizeof((p)->why), __VA_ARGS__)

/* A line of the source that a call site comes to. */
typedef struct um_spot_line {
    uint32_t source; /* in sources */
    size_t line;
    const char *function;
    const um_text_line_t *text;
} um_spot_line_t;

/* ---- places ----------------------------------------------------------------------------------- */

static um_source_t *source_of(um_patching_t *p, const char *file, uint32_t *index)
{
    um_source_t source;
    um_status_t status = um_source_open(p->patch->root, file, &source, p->why, sizeof(p->why));

    if (status == UM_ERR_NOT_FOUND)
        return NULL;
    for (size_t i = 0; !status && i < p->n_sources; i++) {
        if (strcmp(p->sources[i].name, source.name) != 0)
            continue;
        um_source_close(&source);
        *index = (uint32_t)i;
        return &p->sources[i];
    }
    if (!status && !um_grow(&p->sources, &p->sources_size, p->n_sources + 1, sizeof(*p->sources))) {
        um_source_close(&source);
        status = UM_ERR_NO_MEMORY;
    }
    if (status) {
        p->status = status;
        return NULL;
    }
    *index = (uint32_t)p->n_sources;
    p->sources[p->n_sources++] = source;
    return &p->sources[*index];
}

/* When the file that the frame is in was built, or else when the trace was begun; 0 = not known. */
static uint64_t built_ns(const um_report_t *r, const um_call_place_t *place)
{
    const char *module = place->n_spots ? place->spots[place->chosen].module : "";

    for (size_t i = 0; *module && i < um_places_modules(r->places); i++) {
        const um_ev_module_t *file = um_places_module(r->places, i);

        if (!strcmp(file->name, module) && file->modified_ns)
            return file->modified_ns;
    }
    return r->traces[0].recorded_ns;
}

/* False: refused. what: "allocated". */
static bool find_line(um_patching_t *p, uint64_t site, const char *what, um_spot_line_t *out)
{
    um_call_place_t place;
    um_source_state_t state;
    um_source_t *source;
    uint64_t built;

    if (um_places_site(p->report->places, site, &place)) {
        refuse(p, "where it is %s was not recorded", what);
        return false;
    }
    if (!place.line.line || !*place.line.file) {
        refuse(p, "where it is %s has no source line: %s%s%s", what, place.text,
               place.n_spots && *place.spots[place.chosen].why ? ", " : "",
               place.n_spots ? place.spots[place.chosen].why : "");
        return false;
    }
    if (*place.from) {
        refuse(p, "it is %s in %s, through which other buffers go, too", what, place.text);
        return false;
    }
    source = source_of(p, place.line.file, &out->source);
    if (!source)
        return false;
    built = built_ns(p->report, &place);
    if (!built || source->modified_ns > built) {
        refuse(p,
               built ? "%s was changed after the program that was recorded had been built"
                     : "%s: when the program was built was not recorded",
               source->name);
        return false;
    }
    if (place.line.line > source->n_lines) {
        refuse(p, "%s has no line %" PRIu32, source->name, place.line.line);
        return false;
    }
    out->line = place.line.line;
    out->function = place.line.function;
    out->text = &source->lines[out->line - 1];
    state = um_source_state(source, out->line);
    if (state.in_comment || state.in_macro || !state.fresh) {
        refuse(p, "%s:%zu: the call is %s", source->name, out->line,
               state.in_comment ? "in a comment"
               : state.in_macro ? "in a macro"
                                : "part of what begins on a line above");
        return false;
    }
    return true;
}

static bool same_line(const um_report_t *r, uint64_t a, uint64_t b)
{
    um_call_place_t x, y;

    if (a == b)
        return true;
    return !um_places_site(r->places, a, &x) && !um_places_site(r->places, b, &y) && x.line.line &&
           x.line.line == y.line.line && !strcmp(x.line.file, y.line.file);
}

/* No other buffers than the finding's come from there. */
static bool is_alone_there(um_patching_t *p, const um_finding_t *f, uint64_t site)
{
    const um_report_t *r = p->report;

    for (uint32_t g = 0; g < r->regions.n_groups; g++) {
        bool mine = false;

        for (uint32_t i = 0; i < f->n_places; i++)
            mine |= f->places[i].group == g;
        if (mine || !r->regions.groups[g].regions || !r->regions.groups[g].call_site ||
            !same_line(r, site, r->regions.groups[g].call_site))
            continue;
        refuse(p, "other buffers are allocated on that line, too");
        return false;
    }
    return true;
}

/* ---- edits ------------------------------------------------------------------------------------ */

static bool is_whole(um_edit_kind_t kind)
{
    return kind == UM_EDIT_REPLACE || kind == UM_EDIT_REMOVE;
}

/* Takes the text. */
static void plan(um_patching_t *p, const um_spot_line_t *at, um_edit_kind_t kind, char *text,
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
            refuse(p, "finding %" PRIu32 " changes that line already", other->finding);
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

/* What the dialect's pattern says, with the source's own words. */
typedef struct um_words {
    const char *pointer, *bytes, *stream;
    um_side_t to;
} um_words_t;

static const char *location_name(um_side_t to)
{
    return to == UM_SIDE_CPU ? "umrt_cpu" : "umrt_gpu";
}

static void put_word(um_patching_t *p, const um_words_t *words, char field, FILE *out)
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

/* A statement beside a line; in a block where it needs a cudaMemLocation. */
static void plan_call(um_patching_t *p, const um_spot_line_t *at, um_edit_kind_t kind,
                      const char *pattern, const um_words_t *words)
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
    plan(p, at, kind, text, located);
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

static char *replaced(const um_text_line_t *line, size_t from, size_t to, const char *by)
{
    char *text = NULL;

    return asprintf(&text, "%.*s%s%.*s", (int)from, line->at, by, (int)(line->n - to),
                    line->at + to) < 0
               ? NULL
               : text;
}

/* ---- allocations ------------------------------------------------------------------------------ */

typedef struct um_allocation {
    um_spot_line_t at;
    um_call_text_t call;
    char pointer[256], bytes[512];
} um_allocation_t;

static bool find_allocation(um_patching_t *p, const um_finding_t *f, const um_group_t *group,
                            um_allocation_t *out)
{
    static const char *const names[] = {"cudaMallocManaged", NULL};
    const char *why, *name;
    um_piece_t size;

    if (!find_line(p, group->call_site, "allocated", &out->at) ||
        (f && !is_alone_there(p, f, group->call_site)))
        return false;
    name = p->sources[out->at.source].name;
    why = um_call_text_find(out->at.text->at, out->at.text->n, names, &out->call);
    if (!why && !out->call.alone)
        why = "the line holds more than the call";
    if (!why && (out->call.n_args < 2 || out->call.n_args > 3))
        why = "the call has other arguments than CUDA's";
    if (why) {
        refuse(p, "%s:%zu: no certain call of cudaMallocManaged: %s", name, out->at.line, why);
        return false;
    }
    size = out->call.args[1];
    if (!um_call_text_pointer(out->at.text->at, out->call.args[0], out->pointer,
                              sizeof(out->pointer)) ||
        !um_call_text_repeatable(out->at.text->at, size) || size.n >= sizeof(out->bytes)) {
        refuse(p, "%s:%zu: what is allocated there, or its size, cannot be written twice", name,
               out->at.line);
        return false;
    }
    snprintf(out->bytes, sizeof(out->bytes), "%.*s", (int)size.n, out->at.text->at + size.at);
    return true;
}

/* Of device memory they would be errors. */
static bool has_own_hints(const um_report_t *r, uint32_t group)
{
    for (size_t i = 0; i < r->regions.uses.n_own; i++) {
        if (r->regions.uses.own[i].group == group)
            return true;
    }
    return false;
}

static bool knows_gpu(um_patching_t *p, um_side_t to)
{
    if (to == UM_SIDE_CPU || strcmp(um_code_device(p->report, to), "0") == 0)
        return true;
    refuse(p, "which GPU it is for is the program's to say: there are several");
    return false;
}

static const um_pattern_t *pattern_of(um_patching_t *p, const um_fix_step_t *step)
{
    const um_pattern_t *pattern =
        um_dialect_pattern(um_dialect_cuda(um_target_form(&p->target)), step);

    if (pattern && pattern->code && !p->target.cuda) {
        refuse(p, "the program's CUDA version is not known: --cuda says it");
        return NULL;
    }
    return pattern;
}

static void at_allocation(um_patching_t *p, const um_finding_t *f, const um_fix_step_t *step)
{
    const um_group_t *group = &p->report->regions.groups[step->group];
    const um_pattern_t *pattern;
    um_allocation_t a;

    if (!step->whole) {
        refuse(p, "it is for a part of the buffer, whose place is known of one run only");
        return;
    }
    if (!knows_gpu(p, step->to) || !(pattern = pattern_of(p, step)) ||
        !find_allocation(p, f, group, &a))
        return;
    plan_call(p, &a.at, UM_EDIT_AFTER, pattern->code,
              &(um_words_t){a.pointer, a.bytes, "0", step->to});
}

static void instead_of_allocation(um_patching_t *p, const um_finding_t *f,
                                  const um_fix_step_t *step)
{
    const um_group_t *group = &p->report->regions.groups[step->group];
    um_allocation_t a;
    const char *line;
    char *call = NULL;
    um_piece_t pointer, size;

    if (step->action == UM_DO_ALLOC_DEVICE && has_own_hints(p->report, step->group)) {
        refuse(p, "the program's own prefetches and advice for it would have to go, too");
        return;
    }
    if (!find_allocation(p, f, group, &a))
        return;
    line = a.at.text->at;
    pointer = a.call.args[0];
    size = a.call.args[1];
    if (step->action == UM_DO_ALLOC_DEVICE) {
        if (asprintf(&call, "cudaMalloc(%.*s, %.*s)", (int)pointer.n, line + pointer.at,
                     (int)size.n, line + size.at) < 0)
            call = NULL;
        plan(p, &a.at, UM_EDIT_REPLACE,
             call ? replaced(a.at.text, a.call.name_at, a.call.end, call) : NULL, UM_SIDE_NONE);
    } else {
        if (asprintf(&call, "((%.*s) + %u) / %u * %u", (int)size.n, line + size.at,
                     UM_BIG_PAGE_BYTES - 1, UM_BIG_PAGE_BYTES, UM_BIG_PAGE_BYTES) < 0)
            call = NULL;
        plan(p, &a.at, UM_EDIT_REPLACE,
             call ? replaced(a.at.text, size.at, size.at + size.n, call) : NULL, UM_SIDE_NONE);
    }
    free(call);
}

/* ---- launches --------------------------------------------------------------------------------- */

/* "void solver::step<float>(...)", short: "step". */
static void last_word(const char *name, char *out, size_t bytes)
{
    size_t n = strcspn(name, "<("), from = n;

    while (from && name[from - 1] != ':' && name[from - 1] != ' ')
        from--;
    snprintf(out, bytes, "%.*s", (int)(n - from), name + from);
}

static const um_launch_place_t *launch_of(const um_report_t *r, const um_fix_step_t *step)
{
    const um_launch_place_t *only = NULL;

    if (step->kernel != UM_NO_INDEX)
        return um_kernels_stat_place(&r->kernels, step->kernel, step->group);
    for (size_t i = 0; i < r->kernels.n_places; i++) {
        if (r->kernels.places[i].group != step->group)
            continue;
        if (only)
            return NULL;
        only = &r->kernels.places[i];
    }
    return only;
}

/* Is the call worth it each time that it would be made? */
static bool is_as_often(um_patching_t *p, const um_launch_place_t *place, bool after)
{
    const um_kernel_stat_t *kernel = &p->report->kernels.kernels[place->kernel];
    uint64_t launches = um_kernel_launches(kernel);

    if (after && launches != 1) {
        refuse(p,
               "which launch is the last before the CPU reads is not certain: there are %" PRIu64,
               launches);
        return false;
    }
    if (!after && launches > 1 && kernel->faulted * 2 < launches) {
        refuse(p, "%" PRIu64 " of %" PRIu64 " launches need it: before the loop, by hand",
               kernel->faulted, launches);
        return false;
    }
    return true;
}

static void at_launch(um_patching_t *p, const um_fix_step_t *step, bool after)
{
    const um_report_t *r = p->report;
    const um_launch_place_t *place = launch_of(r, step);
    const um_pattern_t *pattern;
    um_allocation_t a;
    um_spot_line_t at;
    um_call_text_t call;
    const char *why, *line;
    char name[160], word[160], pointer[256], stream[128] = "0";

    if (!place) {
        refuse(p, "where the kernel is launched was not recorded, or is not one place: umrt "
                  "record --launch-sites on");
        return;
    }
    if (place->many) {
        refuse(p, "the kernel takes it at several places, or not from its start");
        return;
    }
    if (!step->whole) {
        refuse(p, "it is for a part of the buffer, whose place is known of one run only");
        return;
    }
    if (!is_as_often(p, place, after) || !knows_gpu(p, step->to) ||
        !(pattern = pattern_of(p, step)) ||
        !find_allocation(p, NULL, &r->regions.groups[step->group], &a) ||
        !find_line(p, place->site, "launched", &at))
        return;
    um_finding_kernel(&r->kernels.kernels[place->kernel], name, sizeof(name));
    last_word(name, word, sizeof(word));
    line = at.text->at;
    why = um_call_text_launch(line, at.text->n, word, &call);
    if (!why && (!call.alone || !call.plain))
        why = "the line holds more than the launch";
    if (!why && (place->slot >= call.n_args ||
                 !um_call_text_name(line, call.args[place->slot], pointer, sizeof(pointer))))
        why = "the argument is no plain pointer";
    if (!why && call.n_config == 4 &&
        !um_call_text_name(line, call.config[3], stream, sizeof(stream)) &&
        (call.config[3].n != 1 || line[call.config[3].at] != '0'))
        why = "the stream is an expression";
    if (why) {
        refuse(p, "%s:%zu: no certain launch of %s: %s", p->sources[at.source].name, at.line, word,
               why);
        return;
    }
    /* There the size is known by the words it was allocated with. */
    if (a.at.source != at.source || strcmp(a.at.function, at.function) != 0 ||
        a.at.line >= at.line || strcmp(a.pointer, pointer) != 0 ||
        !um_source_in_block(&p->sources[at.source], a.at.line, at.line)) {
        refuse(p,
               "%s:%zu: its size is not known there: it is allocated elsewhere, or by another "
               "name",
               p->sources[at.source].name, at.line);
        return;
    }
    plan_call(p, &at, after ? UM_EDIT_AFTER : UM_EDIT_BEFORE, pattern->code,
              &(um_words_t){pointer, a.bytes, stream, step->to});
}

/* ---- the program's own hints ------------------------------------------------------------------ */

/* Out with the call of this kind; *own is the only one of them for the group, else UM_NO_INDEX. */
static void drop_call(um_patching_t *p, uint32_t own)
{
    static const char *const prefetches[] = {"cudaMemPrefetchAsync", "cudaMemPrefetchAsync_v2",
                                             NULL};
    static const char *const advises[] = {"cudaMemAdvise", "cudaMemAdvise_v2", NULL};
    const um_uses_stat_t *uses = &p->report->regions.uses;
    const um_own_hint_t *hint = own == UM_NO_INDEX ? NULL : &uses->own[own];
    um_spot_line_t at;
    um_call_text_t call;
    const char *why;
    char *text;

    if (!hint) {
        refuse(p, "the program's own call of it is not known, or not one place");
        return;
    }
    for (size_t i = 0; i < uses->n_own; i++) {
        if (i != own && same_line(p->report, hint->call_site, uses->own[i].call_site) &&
            um_own_verdict(p->report, &uses->own[i]) == UM_OWN_USEFUL) {
            refuse(p, "the same call does other buffers good");
            return;
        }
    }
    if (!find_line(p, hint->call_site, "called", &at))
        return;
    why = um_call_text_find(at.text->at, at.text->n,
                            hint->kind == UM_HINT_PREFETCH ? prefetches : advises, &call);
    if (!why && (!call.alone || !call.plain))
        why = "the line holds more than the call";
    if (why) {
        refuse(p, "%s:%zu: no certain call of it: %s", p->sources[at.source].name, at.line, why);
        return;
    }
    text = strdup("");
    plan(p, &at, UM_EDIT_REMOVE, text, UM_SIDE_NONE);
}

static uint32_t own_of(const um_report_t *r, uint32_t group, um_hint_kind_t kind)
{
    uint32_t found = UM_NO_INDEX;

    for (size_t i = 0; i < r->regions.uses.n_own; i++) {
        const um_own_hint_t *own = &r->regions.uses.own[i];

        if (own->group != group || own->kind != (uint32_t)kind || own->failed == own->calls)
            continue;
        if (found != UM_NO_INDEX)
            return UM_NO_INDEX;
        found = (uint32_t)i;
    }
    return found;
}

/* ---- findings --------------------------------------------------------------------------------- */

/* What no diff can be certain of. */
static const char *never(um_action_t action)
{
    static const char *const why[UM_DO_COUNT] = {
        [UM_DO_ALLOC_POOL] = "where it is freed would have to change, too",
        [UM_DO_ALLOC_FLAG] = "which host variable it is was not recorded",
        [UM_DO_ALLOC_STAGE] = "how the pieces are used in turns is the program's to say",
        [UM_DO_PIN] = "which host buffer it is was not recorded",
        [UM_DO_WAIT] = "the place, before the CPU's first touch, is not a call",
        [UM_DO_KEEP_POOL] = "the place for it, at the start, is the program's to say",
        [UM_DO_TRIM_POOL] = "the place for it, between two phases, is the program's to say",
        [UM_DO_ASK_ROOM] = "how much less is prefetched is the program's to say",
        [UM_DO_DROP_REPEATS] = "some of the calls are needed: which ones is not certain",
        [UM_DO_EARLIER] = "where the stream is idle before is not certain",
        [UM_DO_RECORD] = "it is not about the program",
    };

    return why[action];
}

static void do_step(um_patching_t *p, const um_finding_t *f, const um_fix_step_t *step)
{
    const um_report_t *r = p->report;

    if (never(step->action))
        refuse(p, "%s", never(step->action));
    else if (step->group == UM_NO_INDEX || !r->regions.groups[step->group].first_region)
        refuse(p, "no allocation of it was recorded");
    else if (step->action == UM_DO_DROP_CALL)
        drop_call(p, step->own);
    else if (step->action == UM_DO_UNSET_READ_MOSTLY)
        drop_call(p, own_of(r, step->group, UM_HINT_READ_MOSTLY));
    else if (step->action == UM_DO_UNSET_PREFER)
        drop_call(p, own_of(r, step->group, UM_HINT_PREFERRED_LOCATION));
    else if (step->when == UM_AT_ALLOCATION)
        at_allocation(p, f, step);
    else if (step->when == UM_AT_INSTEAD)
        instead_of_allocation(p, f, step);
    else
        at_launch(p, step, step->when == UM_AT_AFTER_LAUNCH);
}

/* Two changes of one buffer would undo each other, but for its size. */
static bool is_free(um_patching_t *p, uint32_t group)
{
    const um_owner_t *owner = &p->owners[group];

    if (!owner->finding || owner->change == p->change || owner->change == UM_CHANGE_PAGES ||
        p->change == UM_CHANGE_PAGES)
        return true;
    refuse(p, "finding %" PRIu32 " changes the same buffer", owner->finding);
    return false;
}

static void drop_planned(um_patching_t *p, size_t from)
{
    while (p->n_planned > from)
        free(p->planned[--p->n_planned].text);
}

/* All steps of one buffer, or none. */
static bool do_group(um_patching_t *p, const um_finding_t *f, const um_fix_step_t *steps, size_t n,
                     uint32_t group)
{
    size_t before = p->n_planned;

    *p->why = '\0';
    for (size_t i = 0; i < n && !*p->why && !p->status; i++) {
        if (steps[i].group == group && (group == UM_NO_INDEX || is_free(p, group)))
            do_step(p, f, &steps[i]);
    }
    if (*p->why || p->status) {
        drop_planned(p, before);
        return false;
    }
    if (group != UM_NO_INDEX && !p->owners[group].finding)
        p->owners[group] = (um_owner_t){p->finding, p->change};
    return true;
}

static void say(const um_patching_t *p, const um_finding_t *f, const char *region, const char *why)
{
    char line[WHY_BYTES + 300], *clean;

    snprintf(line, sizeof(line), "finding %" PRIu32 " (%s)%s%s: %s", p->finding, f->kind->name,
             *region ? ", " : "", region, why);
    clean = um_text_clean(line);
    if (p->patch->refused && clean)
        p->patch->refused(p->patch->ctx, clean);
    free(clean);
}

static bool of_cuda(um_patching_t *p, const um_finding_t *f)
{
    char why[300];
    um_dialect_id_t library = um_target_dialect(p->report, &p->target, f, why, sizeof(why));

    if (!library)
        return true;
    refuse(p, "its memory is %s's (%s): the call to change is not CUDA's",
           um_dialect(library)->title, why);
    return false;
}

/* False: nothing of it could be written. Each buffer that is refused is said in the one line. */
static bool do_finding(um_patching_t *p, const um_finding_t *f, bool *all)
{
    um_fix_step_t steps[UM_STEPS_MAX];
    uint64_t left = 0;
    size_t n = um_fix_steps(p->report, f, steps, &left);
    char refused[WHY_BYTES] = "", region[96] = "";
    uint32_t groups = 0, good = 0;

    p->change = um_fix_change(f);
    *p->why = '\0';
    if (!n)
        refuse(p, "there is no call that does it");
    else if (!never(steps[0].action) && !of_cuda(p, f))
        n = 0;
    if (*p->why)
        snprintf(refused, sizeof(refused), "%s", p->why);
    for (size_t i = 0; i < n && !p->status; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen |= steps[k].group == steps[i].group;
        if (seen)
            continue;
        groups++;
        if (do_group(p, f, steps, n, steps[i].group)) {
            good++;
        } else if (!*refused) {
            snprintf(refused, sizeof(refused), "%s", p->why);
            if (steps[i].group != UM_NO_INDEX)
                um_group_name(&p->report->regions.groups[steps[i].group], region, sizeof(region));
        }
    }
    if (good < groups && groups - good > 1)
        um_say_in(refused, " (and %u more of its buffers)", groups - good - 1);
    if (!*refused && left)
        snprintf(refused, sizeof(refused), "%" PRIu64 " more of its buffers are too many", left);
    if (*refused && !p->status)
        say(p, f, region, refused);
    *all = !*refused;
    return good > 0;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void write_heading(const um_finding_t *f, uint32_t rank, FILE *out)
{
    char line[700], *clean;

    snprintf(line, sizeof(line), "finding %" PRIu32 " (%s): %s: %s", rank, f->kind->name, f->title,
             f->where);
    clean = um_text_clean(line);
    fprintf(out, "%s%s\n", UM_PATCH_START, clean ? clean : f->kind->name);
    free(clean);
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

static um_status_t write_files(um_patching_t *p, FILE *out)
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

static um_status_t write_patch(um_patching_t *p, const um_findings_t *findings, const bool *written,
                               FILE *out)
{
    um_status_t status = UM_OK;

    if (!p->n_planned)
        return UM_OK;
    for (uint32_t i = 0; i < findings->worth; i++) {
        if (written[i])
            write_heading(&findings->list[i], i + 1, out);
    }
    status = write_files(p, out);
    return !status && (fflush(out) || ferror(out)) ? UM_ERR_IO : status;
}

um_status_t um_report_patch(um_report_t *r, const um_report_options_t *options, um_patch_t *patch,
                            FILE *out)
{
    um_patching_t p = {.report = r, .patch = patch};
    um_findings_t findings = {0};
    bool *written = NULL;
    um_status_t status;

    if (!r || !options || !patch || !out)
        return UM_ERR_INVALID;
    if (!r->n_traces)
        return UM_ERR_STATE;
    patch->n_written = patch->n_refused = 0;
    status = um_report_findings(r, options, &findings);
    p.target = um_target_of(r, options->cuda);
    p.owners = calloc(r->regions.n_groups + 1, sizeof(*p.owners));
    written = calloc(findings.n + 1, sizeof(*written));
    if (!status && (!p.owners || !written))
        status = UM_ERR_NO_MEMORY;
    for (size_t i = 0; !status && i < findings.worth && i < options->top; i++) {
        bool all;

        p.finding = (uint32_t)i + 1;
        written[i] = do_finding(&p, &findings.list[i], &all);
        status = p.status;
        patch->n_written += written[i];
        patch->n_refused += !all;
    }
    if (!status)
        status = write_patch(&p, &findings, written, out);
    drop_planned(&p, 0);
    for (size_t i = 0; i < p.n_sources; i++)
        um_source_close(&p.sources[i]);
    free(p.sources);
    free(p.planned);
    free(p.owners);
    free(written);
    um_findings_free(&findings);
    return status;
}

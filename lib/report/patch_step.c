#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "code.h"
#include "patch_impl.h"
#include "sections.h"

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

    if (!um_patch_line(p, group->call_site, "allocated", &out->at) ||
        (f && !um_patch_is_alone(p, f, group->call_site)))
        return false;
    name = p->sources[out->at.source].name;
    why = um_call_text_find(out->at.text->at, out->at.text->n, names, &out->call);
    if (!why && !out->call.alone)
        why = "the line holds more than the call";
    if (!why && (out->call.n_args < 2 || out->call.n_args > 3))
        why = "the call has other arguments than CUDA's";
    if (why) {
        um_patch_refuse(p, "%s:%zu: no certain call of cudaMallocManaged: %s", name, out->at.line,
                        why);
        return false;
    }
    size = out->call.args[1];
    if (!um_call_text_pointer(out->at.text->at, out->call.args[0], out->pointer,
                              sizeof(out->pointer)) ||
        !um_call_text_repeatable(out->at.text->at, size) || size.n >= sizeof(out->bytes)) {
        um_patch_refuse(p, "%s:%zu: what is allocated there, or its size, cannot be written twice",
                        name, out->at.line);
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
    um_patch_refuse(p, "which GPU it is for is the program's to say: there are several");
    return false;
}

static const um_pattern_t *pattern_of(um_patching_t *p, const um_fix_step_t *step)
{
    const um_pattern_t *pattern =
        um_dialect_pattern(um_dialect_cuda(um_target_form(&p->target)), step);

    if (pattern && pattern->code && !p->target.cuda) {
        um_patch_refuse(p, "the program's CUDA version is not known: --cuda says it");
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
        um_patch_refuse(p, "it is for a part of the buffer, whose place is known of one run only");
        return;
    }
    if (!knows_gpu(p, step->to) || !(pattern = pattern_of(p, step)) ||
        !find_allocation(p, f, group, &a))
        return;
    um_patch_plan_call(p, &a.at, UM_EDIT_AFTER, pattern->code,
                       &(um_patch_words_t){a.pointer, a.bytes, "0", step->to});
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
        um_patch_refuse(p, "the program's own prefetches and advice for it would have to go, too");
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
        um_patch_plan(p, &a.at, UM_EDIT_REPLACE,
                      call ? replaced(a.at.text, a.call.name_at, a.call.end, call) : NULL,
                      UM_SIDE_NONE);
    } else {
        if (asprintf(&call, "((%.*s) + %u) / %u * %u", (int)size.n, line + size.at,
                     UM_BIG_PAGE_BYTES - 1, UM_BIG_PAGE_BYTES, UM_BIG_PAGE_BYTES) < 0)
            call = NULL;
        um_patch_plan(p, &a.at, UM_EDIT_REPLACE,
                      call ? replaced(a.at.text, size.at, size.at + size.n, call) : NULL,
                      UM_SIDE_NONE);
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
        um_patch_refuse(
            p, "which launch is the last before the CPU reads is not certain: there are %" PRIu64,
            launches);
        return false;
    }
    if (!after && launches > 1 && kernel->faulted * 2 < launches) {
        um_patch_refuse(p, "%" PRIu64 " of %" PRIu64 " launches need it: before the loop, by hand",
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
        um_patch_refuse(p,
                        "where the kernel is launched was not recorded, or is not one place: umrt "
                        "record --launch-sites on");
        return;
    }
    if (place->many) {
        um_patch_refuse(p, "the kernel takes it at several places, or not from its start");
        return;
    }
    if (!step->whole) {
        um_patch_refuse(p, "it is for a part of the buffer, whose place is known of one run only");
        return;
    }
    if (!is_as_often(p, place, after) || !knows_gpu(p, step->to) ||
        !(pattern = pattern_of(p, step)) ||
        !find_allocation(p, NULL, &r->regions.groups[step->group], &a) ||
        !um_patch_line(p, place->site, "launched", &at))
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
        um_patch_refuse(p, "%s:%zu: no certain launch of %s: %s", p->sources[at.source].name,
                        at.line, word, why);
        return;
    }
    /* There the size is known by the words it was allocated with. */
    if (a.at.source != at.source || strcmp(a.at.function, at.function) != 0 ||
        a.at.line >= at.line || strcmp(a.pointer, pointer) != 0 ||
        !um_source_in_block(&p->sources[at.source], a.at.line, at.line)) {
        um_patch_refuse(
            p,
            "%s:%zu: its size is not known there: it is allocated elsewhere, or by another "
            "name",
            p->sources[at.source].name, at.line);
        return;
    }
    um_patch_plan_call(p, &at, after ? UM_EDIT_AFTER : UM_EDIT_BEFORE, pattern->code,
                       &(um_patch_words_t){pointer, a.bytes, stream, step->to});
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
        um_patch_refuse(p, "the program's own call of it is not known, or not one place");
        return;
    }
    for (size_t i = 0; i < uses->n_own; i++) {
        if (i != own && um_patch_same_line(p->report, hint->call_site, uses->own[i].call_site) &&
            um_own_verdict(p->report, &uses->own[i]) == UM_OWN_USEFUL) {
            um_patch_refuse(p, "the same call does other buffers good");
            return;
        }
    }
    if (!um_patch_line(p, hint->call_site, "called", &at))
        return;
    why = um_call_text_find(at.text->at, at.text->n,
                            hint->kind == UM_HINT_PREFETCH ? prefetches : advises, &call);
    if (!why && (!call.alone || !call.plain))
        why = "the line holds more than the call";
    if (why) {
        um_patch_refuse(p, "%s:%zu: no certain call of it: %s", p->sources[at.source].name, at.line,
                        why);
        return;
    }
    text = strdup("");
    um_patch_plan(p, &at, UM_EDIT_REMOVE, text, UM_SIDE_NONE);
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

/* ---- all of them ------------------------------------------------------------------------------ */

const char *um_patch_never(um_action_t action)
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

void um_patch_step(um_patching_t *p, const um_finding_t *f, const um_fix_step_t *step)
{
    const um_report_t *r = p->report;

    if (um_patch_never(step->action))
        um_patch_refuse(p, "%s", um_patch_never(step->action));
    else if (step->group == UM_NO_INDEX || !r->regions.groups[step->group].first_region)
        um_patch_refuse(p, "no allocation of it was recorded");
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

/* A finding's code and how to undo it, for every version of CUDA and the library that was recognised. */
#include <stdlib.h>
#include <string.h>

#include "sections.h"

/* A dialect's text; CUDA's own of every version, then the library's where there is one. */
typedef struct um_written {
    um_code_t of[UM_CUDA_FORMS + 1];
    const um_dialect_t *dialect[UM_CUDA_FORMS + 1];
    size_t n, shown;
    char why[400]; /* the shown one */
} um_written_t;

static um_status_t write_code(const um_report_t *r, const um_finding_t *f,
                              const um_target_t *target, um_written_t *out)
{
    char why[300];
    um_dialect_id_t library = um_target_dialect(r, target, f, why, sizeof(why));
    um_cuda_form_t form = um_target_form(target);
    um_status_t status = UM_OK;

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < UM_CUDA_FORMS; i++)
        out->dialect[out->n++] = um_dialect_cuda((um_cuda_form_t)i);
    if (library)
        out->dialect[out->n++] = um_dialect(library);
    for (size_t i = 0; i < out->n && !status; i++)
        status = um_code_write(r, f, out->dialect[i], i < UM_CUDA_FORMS ? (um_cuda_form_t)i : form,
                               &out->of[i]);
    out->shown = library ? out->n - 1 : (size_t)form;
    if (library)
        um_say_in(out->why, "%s: %s", um_dialect(library)->title, why);
    if (*target->cuda_why)
        um_say_in(out->why, "%s%s: %s", *out->why ? "; " : "", um_dialect_cuda(form)->title,
                  target->cuda_why);
    if (!library && *why)
        um_say_in(out->why, "%s%s", *out->why ? "; " : "", why);
    return status;
}

static void free_code(um_written_t *written)
{
    for (size_t i = 0; i < written->n; i++)
        um_code_free(&written->of[i]);
}

static void steps_json(um_emitter_t *e, const um_report_t *r, const um_finding_t *f)
{
    static const char *const side[] = {"", "gpu", "cpu", "other-gpu"};
    um_fix_step_t steps[UM_STEPS_MAX];
    uint64_t left;
    size_t n = um_fix_steps(r, f, steps, &left);

    um_emitter_object(e, "change");
    um_emitter_pair(e, "kind", NULL, um_text(um_change_name(um_fix_change(f))));
    um_emitter_array(e, "steps");
    for (size_t i = 0; i < n; i++) {
        const um_fix_step_t *s = &steps[i];
        const um_group_t *group = s->group == UM_NO_INDEX ? NULL : &r->regions.groups[s->group];
        const um_kernel_stat_t *kernel =
            s->kernel == UM_NO_INDEX ? NULL : &r->kernels.kernels[s->kernel];
        char name[160];

        um_emitter_object(e, NULL);
        um_emitter_pair(e, "action", NULL, um_text(um_action_name(s->action)));
        um_emitter_pair(e, "when", NULL, um_text(um_when_name(s->when)));
        um_emitter_pair(e, "to", NULL, s->to ? um_text(side[s->to]) : um_none());
        if (group)
            um_group_name(group, name, sizeof(name));
        um_emitter_pair(e, "region", NULL, um_text(group ? name : NULL));
        um_emitter_pair(e, "allocated", NULL,
                        um_text(group ? um_report_place(r, group->call_site) : NULL));
        um_emitter_pair(e, "from", NULL, um_bytes(s->from));
        um_emitter_pair(e, "bytes", NULL, s->bytes ? um_bytes(s->bytes) : um_none());
        if (kernel)
            um_finding_kernel(kernel, name, sizeof(name));
        um_emitter_pair(e, "kernel", NULL, um_text(kernel ? name : NULL));
        um_emitter_end(e);
    }
    um_emitter_end(e);
    um_emitter_pair(e, "steps_left_out", NULL, um_count(left));
    um_emitter_end(e);
}

static void code_json(um_emitter_t *e, const um_report_t *r, const um_finding_t *f,
                      const um_written_t *written)
{
    um_emitter_object(e, "code");
    for (size_t i = 0; i < written->n; i++)
        um_emitter_pair(e, written->dialect[i]->key, NULL, um_code(written->of[i].code));
    um_emitter_end(e);
    um_emitter_object(e, "undo");
    for (size_t i = 0; i < written->n; i++)
        um_emitter_pair(e, written->dialect[i]->key, NULL, um_code(written->of[i].undo));
    um_emitter_end(e);
    um_emitter_pair(e, "written_for", NULL,
                    um_text(*written->why ? written->dialect[written->shown]->key : NULL));
    um_emitter_pair(e, "written_why", NULL, um_text(*written->why ? written->why : NULL));
    steps_json(e, r, f);
}

/* Where the version is not known, CUDA 13's beside the one that all before it understand. */
static void lines_of(um_emitter_t *e, const char *label, const char *label12, const char *shown,
                     const char *cuda13)
{
    bool both = shown && cuda13 && strcmp(shown, cuda13) != 0;

    if (!shown || !*shown)
        return;
    um_emitter_lines(e, both ? label12 : label, shown);
    if (both)
        um_emitter_lines(e, "  CUDA 13", cuda13);
}

static void code_text(um_emitter_t *e, const um_target_t *target, const um_written_t *written)
{
    const um_code_t *shown = &written->of[written->shown];
    const um_code_t *other =
        target->cuda || written->shown == UM_CUDA_FORMS ? NULL : &written->of[UM_CUDA_13];

    lines_of(e, "code", "code <= 12", shown->code, other ? other->code : NULL);
    lines_of(e, "undo", "undo <= 12", shown->undo, other ? other->undo : NULL);
    if (*written->why && *shown->code)
        um_emitter_wrap(e, "for", written->why);
}

void um_section_code(um_emitter_t *e, const um_report_t *r, const um_finding_t *f,
                     const um_target_t *target)
{
    um_written_t written;

    if (write_code(r, f, target, &written)) {
        free_code(&written);
        um_emitter_fail(e);
        return;
    }
    if (um_emitter_is_text(e))
        code_text(e, target, &written);
    else
        code_json(e, r, f, &written);
    free_code(&written);
}

um_status_t um_code_for(const um_report_t *r, const um_finding_t *f, const um_target_t *target,
                        um_code_t *out, const um_dialect_t **of)
{
    char why[300];
    um_dialect_id_t library = um_target_dialect(r, target, f, why, sizeof(why));
    um_cuda_form_t form = um_target_form(target);

    *of = library ? um_dialect(library) : um_dialect_cuda(form);
    return um_code_write(r, f, *of, form, out);
}

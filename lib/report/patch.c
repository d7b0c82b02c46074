#include "patch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "patch_impl.h"
#include "sections.h"

/* ---- findings --------------------------------------------------------------------------------- */

/* Two changes of one buffer would undo each other, but for its size. */
static bool is_free(um_patching_t *p, uint32_t group)
{
    const um_owner_t *owner = &p->owners[group];

    if (!owner->finding || owner->change == p->change || owner->change == UM_CHANGE_PAGES ||
        p->change == UM_CHANGE_PAGES)
        return true;
    um_patch_refuse(p, "finding %" PRIu32 " changes the same buffer", owner->finding);
    return false;
}

/* All steps of one buffer, or none. */
static bool do_group(um_patching_t *p, const um_finding_t *f, const um_fix_step_t *steps, size_t n,
                     uint32_t group)
{
    size_t before = p->n_planned;

    *p->why = '\0';
    for (size_t i = 0; i < n && !*p->why && !p->status; i++) {
        if (steps[i].group == group && (group == UM_NO_INDEX || is_free(p, group)))
            um_patch_step(p, f, &steps[i]);
    }
    if (*p->why || p->status) {
        um_patch_drop(p, before);
        return false;
    }
    if (group != UM_NO_INDEX && !p->owners[group].finding)
        p->owners[group] = (um_owner_t){p->finding, p->change};
    return true;
}

static void say(const um_patching_t *p, const um_finding_t *f, const char *region, const char *why)
{
    char line[UM_PATCH_WHY_BYTES + 300], *clean;

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
    um_patch_refuse(p, "its memory is %s's (%s): the call to change is not CUDA's",
                    um_dialect(library)->title, why);
    return false;
}

/* False: nothing of it could be written. Each buffer that is refused is said in the one line. */
static bool do_finding(um_patching_t *p, const um_finding_t *f, bool *all)
{
    um_fix_step_t steps[UM_STEPS_MAX];
    uint64_t left = 0;
    size_t n = um_fix_steps(p->report, f, steps, &left);
    char refused[UM_PATCH_WHY_BYTES] = "", region[96] = "";
    uint32_t groups = 0, good = 0;

    p->change = um_fix_change(f);
    *p->why = '\0';
    if (!n)
        um_patch_refuse(p, "there is no call that does it");
    else if (!um_patch_never(steps[0].action) && !of_cuda(p, f))
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
    status = um_patch_write_files(p, out);
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
    um_patch_drop(&p, 0);
    for (size_t i = 0; i < p.n_sources; i++)
        um_source_close(&p.sources[i]);
    free(p.sources);
    free(p.planned);
    free(p.owners);
    free(written);
    um_findings_free(&findings);
    return status;
}

/*
 * patch_impl.h - what the parts of the diff share; nobody else includes it.
 *
 *   patch.c        which changes are made, finding by finding
 *   patch_step.c   one step of a finding as edits of the source, or why not
 *   patch_edit.c   the edits, and the diff of them
 *   patch_line.c   the line of the source that a call site comes to
 */
#ifndef UM_PATCH_IMPL_H
#define UM_PATCH_IMPL_H

#include "findings/finding.h"
#include "patch.h"
#include "source.h"
#include "target.h"
#include "udiff.h"

#define UM_PATCH_WHY_BYTES 500

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
    char why[UM_PATCH_WHY_BYTES]; /* it is refused; "" = it is not */
    um_status_t status;           /* no memory */
} um_patching_t;

#define um_patch_refuse(p, ...) snprintf((p)->why, sizeof((p)->why), __VA_ARGS__)

/* A line of the source that a call site comes to. */
typedef struct um_spot_line {
    uint32_t source; /* in sources */
    size_t line;
    const char *function;
    const um_text_line_t *text;
} um_spot_line_t;

/* ---- patch_line.c ---- */

/* False: refused. what: "allocated". */
bool um_patch_line(um_patching_t *p, uint64_t site, const char *what, um_spot_line_t *out);
bool um_patch_same_line(const um_report_t *r, uint64_t a, uint64_t b);
/* No other buffers than the finding's come from there; else it is refused. */
bool um_patch_is_alone(um_patching_t *p, const um_finding_t *f, uint64_t site);

/* ---- patch_edit.c ---- */

/* What the dialect's pattern says, with the source's own words. */
typedef struct um_patch_words {
    const char *pointer, *bytes, *stream;
    um_side_t to;
} um_patch_words_t;

/* To be changed with the others, or refused where they contradict. Takes the text; NULL = no memory. located: a
 * statement that needs its cudaMemLocation; NONE = whole lines. */
void um_patch_plan(um_patching_t *p, const um_spot_line_t *at, um_edit_kind_t kind, char *text,
                   um_side_t located);
/* A statement beside a line; in a block where it needs a cudaMemLocation. */
void um_patch_plan_call(um_patching_t *p, const um_spot_line_t *at, um_edit_kind_t kind,
                        const char *pattern, const um_patch_words_t *words);
void um_patch_drop(um_patching_t *p, size_t from);
/* The diff of all that is planned. NO_MEMORY, IO. */
um_status_t um_patch_write_files(um_patching_t *p, FILE *out);

/* ---- patch_step.c ---- */

/* Why no diff can be certain of it; NULL = it can be. */
const char *um_patch_never(um_action_t action);
/* Plans the edits, or refuses. */
void um_patch_step(um_patching_t *p, const um_finding_t *f, const um_fix_step_t *step);

#endif

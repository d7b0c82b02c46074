/*
 * patch.h - the findings' changes as one unified diff of the program's source.
 *
 * Only where the place is certain: the file is there and no newer than the program that was recorded, its
 * line holds the one call that the trace means, as a statement of its own, no other buffer comes from it, and
 * what is put in says the same in every run. All else is refused, finding by finding, with the reason. Of
 * findings that contradict each other the first ranked has its way. Source files are only read.
 */
#ifndef UM_PATCH_H
#define UM_PATCH_H

#include "report.h"

typedef struct um_patch {
    const char *root; /* um_source_open; NULL = the current folder */
    /* A line for what is refused, without newline: "finding 2 (ping-pong), halo: ...". */
    void (*refused)(void *ctx, const char *line);
    void *ctx;
    size_t n_written,
        n_refused; /* out: findings that have a part in the diff; that have not, or in part */
} um_patch_t;

/* What such a diff begins with. */
#define UM_PATCH_START "umrt: "

/* Of the findings that are worth it, options->top at most. Nothing is written where nothing is certain.
 * IO, NO_MEMORY. */
um_status_t um_report_patch(um_report_t *report, const um_report_options_t *options,
                            um_patch_t *patch, FILE *out);

#endif

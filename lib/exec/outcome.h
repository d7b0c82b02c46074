/*
 * outcome.h - what a hinted run did and why, as a file for people or programs (umrt run --report).
 *
 * JSON where the name ends in ".json": schema "umrt-run", lib/report/SCHEMA.md. Else text. A pure function
 * of what it is given, but for the file.
 */
#ifndef UM_OUTCOME_H
#define UM_OUTCOME_H

#include "hinter.h"
#include "um_runtime.h"

typedef struct um_outcome {
    const char *mode;    /* "hint", "trial" */
    const char *reason;  /* why it did not do what was asked for, "" = it did */
    const char *summary; /* the line at exit */
    const char *profile; /* file, NULL = none */
    uint64_t told;       /* facts that came from it */
    um_runtime_stats_t stats;
    um_hinter_stats_t hints;
    const um_hinter_t *hinter; /* the bus has stopped; NULL = there was none */
} um_outcome_t;

/* Writes it to the file that `pattern` names, or, where that is there already, to one with ".<pid>" before
 * the extension, as for traces. UM_ERR_IO (errno set), UM_ERR_INVALID (no file name), UM_ERR_FULL (too
 * long). */
um_status_t um_outcome_write(const um_outcome_t *outcome, const char *pattern);

#endif

/*
 * diff.h - two sides of one or more reports each: what got better, what got worse, and is it chance?
 *
 * Reports are those of umrt.report/1 (a trace is made into one first). Totals, findings, regions and
 * kernels are compared by their medians; findings by kind and place (same.h), the others by name. Where
 * there are several reports a side each comparison has the p of rank_test.h, and is only called better or
 * worse where p is at most UM_DIFF_ALPHA, or the least that so many reports can give where that is more:
 * with one a side there is no test, with two or three one side has to lie beyond all of the other.
 */
#ifndef UM_DIFF_H
#define UM_DIFF_H

#include <jansson.h>
#include <stdio.h>

#include "report.h"

#define UM_DIFF_ALPHA   0.05
#define UM_DIFF_REPORTS 1024u /* a side */

typedef struct um_diff um_diff_t;

um_status_t um_diff_new(um_diff_t **out);
void um_diff_free(um_diff_t *diff);

/* Adds a report to side 0 ("A", the old one) or 1 ("B"); the diff keeps a reference of it. UM_ERR_FORMAT:
 * it is no umrt.report/1, or a report of a damaged trace; the line is in `error`. UM_ERR_FULL. */
um_status_t um_diff_add(um_diff_t *diff, int side, const char *path, json_t *report, char *error,
                        size_t error_bytes);

/* Compares. Both sides have a report. UM_ERR_NO_MEMORY, UM_ERR_STATE. */
um_status_t um_diff_compare(um_diff_t *diff);

/*
 * After um_diff_compare: judges "faults>10%,new-finding" and remembers it for um_diff_write. *fired says
 * whether a condition holds. A total fires when B's median is more than so much above A's and the
 * difference is not put down to chance (above). "new-finding" or "new-finding=KIND" fires on one that most
 * of B's reports have and most of A's have not, if it is worth it in one of them. UM_ERR_INVALID: no such condition, UM_ERR_UNSUPPORTED: what
 * it asks for was not recorded, or was cut off; the line is in `error`.
 */
um_status_t um_diff_fail_on(um_diff_t *diff, const char *conditions, bool *fired, char *error,
                            size_t error_bytes);
/* The i-th total that a condition can name, NULL after the last. */
const char *um_diff_total(size_t i);

/* Text, or JSON of umrt.diff/1. Errors as um_emitter_close. */
um_status_t um_diff_write(const um_diff_t *diff, const um_report_options_t *options, FILE *out);

#endif

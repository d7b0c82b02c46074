/*
 * predicting.h - what the findings of a trace are worth, by replay: for um_report_options_t.
 *
 * Of one file only, and of one that is not long; of others the report says why they were not replayed.
 */
#ifndef UM_PREDICTING_H
#define UM_PREDICTING_H

#include "report/findings/finding.h"

typedef struct um_predicting um_predicting_t;

/* Reads the file a second time, if it can be replayed. NULL: no memory. */
um_predicting_t *um_predicting_new(char *const *paths, int n);
void um_predicting_free(um_predicting_t *predicting); /* NULL is fine */
/* A um_predict_fn, with an um_predicting_t. */
um_status_t um_predicting_findings(void *predicting, const um_report_t *report,
                                   um_findings_t *findings);

#endif

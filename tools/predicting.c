/* What the findings of a trace are worth: the trace is read a second time, as a workload, for the replay. */
#include "predicting.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sim/predict.h"

#define REPLAY_BYTES (32 << 20) /* of the file */

struct um_predicting {
    um_workload_t *workload; /* NULL: it is not replayed */
    um_machine_t machine;
    um_predict_t with;
    char why_not[160];
};

um_status_t um_predicting_findings(void *predicting, const um_report_t *report,
                                   um_findings_t *findings)
{
    um_predicting_t *p = predicting;

    if (p->workload)
        return um_predict_findings(&p->with, report, findings);
    snprintf(findings->why_not, sizeof(findings->why_not), "%s", p->why_not);
    return UM_OK;
}

static void prepare(char *const *paths, int n, um_predicting_t *p)
{
    um_status_t status;
    struct stat file;

    if (n > 1) {
        snprintf(p->why_not, sizeof(p->why_not), "several traces");
        return;
    }
    if (stat(paths[0], &file) || file.st_size > REPLAY_BYTES) {
        snprintf(p->why_not, sizeof(p->why_not), "the trace is too long for it");
        return;
    }
    status = um_workload_load(paths[0], &p->workload, NULL, p->why_not, sizeof(p->why_not));
    if (!status)
        status = *p->workload->source_gpu ? um_machine_for_gpu(p->workload->source_gpu, &p->machine)
                                          : UM_ERR_NOT_FOUND;
    if (status == UM_ERR_NOT_FOUND)
        snprintf(p->why_not, sizeof(p->why_not), "there is no description of the GPU%s%s",
                 *p->workload->source_gpu ? ", " : "", p->workload->source_gpu);
    if (status) {
        um_workload_free(p->workload);
        p->workload = NULL;
    }
    p->with = (um_predict_t){.workload = p->workload, .machine = &p->machine};
}

um_predicting_t *um_predicting_new(char *const *paths, int n)
{
    um_predicting_t *p = calloc(1, sizeof(*p));

    if (p)
        prepare(paths, n, p);
    return p;
}

void um_predicting_free(um_predicting_t *p)
{
    if (p)
        um_workload_free(p->workload);
    free(p);
}

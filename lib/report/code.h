/*
 * code.h - a finding's change written out, to be pasted: in CUDA's calls of one version or in a library's,
 * with the program's own names where the trace has them, and how to undo it.
 *
 * Names and places come out of a trace and may hold anything: what is no identifier stays in comments,
 * and cannot end them.
 */
#ifndef UM_CODE_H
#define UM_CODE_H

#include "dialect.h"

typedef struct um_code {
    char *code; /* lines separated by '\n'; "" = no call does it */
    char *undo;
} um_code_t;

/* NO_MEMORY. Free with um_code_free. */
um_status_t um_code_write(const um_report_t *report, const struct um_finding *f,
                          const um_dialect_t *dialect, um_cuda_form_t form, um_code_t *out);
void um_code_free(um_code_t *code);

/* The target of a step as an expression of CUDA's: "0", "device", "cudaCpuDeviceId". */
const char *um_code_device(const um_report_t *report, um_side_t to);
/* "cudaMemLocationTypeDevice" */
const char *um_code_location_type(um_side_t to);
/* The stream a kernel runs on: "0" for the default one, "stream" where it is another or not known. */
const char *um_code_stream(const um_report_t *report, uint32_t kernel);
bool um_is_identifier(const char *text, size_t bytes);

#endif

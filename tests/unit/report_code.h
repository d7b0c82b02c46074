/* A finding for every kind of change, about buffers named and unnamed, for tests of what is written. */
#ifndef UM_TEST_REPORT_CODE_H
#define UM_TEST_REPORT_CODE_H

#include "report/target.h"
#include "report/findings/finding.h"
#include "report_stream.h"

/* Regions grid (64 MiB), halo (256 KiB) and one without a name, kernel step on the default stream. */
um_report_t *code_report(void);
/* The group that a region is in. */
uint32_t code_group(const um_report_t *r, uint32_t region);
/* About them; false where there is no such change to write. */
bool code_finding(const um_report_t *r, um_change_t change, um_finding_t *out);
/* What cuda12, rmm, ... stand for; false: nothing. */
bool code_dialect(const char *key, const um_dialect_t **dialect, um_cuda_form_t *form);

#endif

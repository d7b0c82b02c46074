/*
 * sarif.h - findings as a SARIF 2.1.0 log, for editors and code review.
 *
 * One run, one rule a kind of finding, one result a finding, at most options.top of them. A result has a
 * physical location where the report names a source line, and always a logical one: what the report
 * calls `where`. Its fingerprint is that of the same finding in another run of the program.
 */
#ifndef UM_SARIF_H
#define UM_SARIF_H

#include "findings/finding.h"
#include "target.h"

/* What such a file begins with. */
#define UM_SARIF_START                                                                             \
    "{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"version\": "        \
    "\"2.1.0\","

void um_sarif_write(um_emitter_t *e, const um_report_t *report, const um_findings_t *findings,
                    const um_target_t *target);

#endif

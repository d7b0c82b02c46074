/*
 * sections.h - the parts of a report. Each reads what was collected and writes it through the emitter.
 */
#ifndef UM_SECTIONS_H
#define UM_SECTIONS_H

#include "emitter.h"
#include "findings/finding.h"
#include "target.h"

void um_section_header(um_emitter_t *e, const um_report_t *report);
void um_section_totals(um_emitter_t *e, const um_report_t *report);
void um_section_findings(um_emitter_t *e, const um_report_t *report, const um_findings_t *findings,
                         const um_target_t *target);
/* What is found, what it is worth where options.predict says so, ranked and folded; the trace has ended. */
um_status_t um_report_findings(um_report_t *report, const um_report_options_t *options,
                               um_findings_t *out);
/* Of one finding, inside it. */
void um_section_code(um_emitter_t *e, const um_report_t *report, const um_finding_t *f,
                     const um_target_t *target);
void um_section_families(um_emitter_t *e, const um_report_t *report);
void um_section_own_hints(um_emitter_t *e, const um_report_t *report);
void um_section_regions(um_emitter_t *e, const um_report_t *report);
void um_section_places(um_emitter_t *e, const um_report_t *report);
void um_section_kernels(um_emitter_t *e, const um_report_t *report);
void um_section_copies(um_emitter_t *e, const um_report_t *report);
void um_section_timeline(um_emitter_t *e, const um_report_t *report);
void um_section_heatmap(um_emitter_t *e, const um_report_t *report);

#endif

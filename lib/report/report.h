/*
 * report.h - from events to what a developer should know. Used by the umrt command.
 */
#ifndef UM_REPORT_H
#define UM_REPORT_H

#include <stdio.h>

#include "um_event.h"

typedef struct um_report um_report_t;

typedef enum um_report_format {
    UM_REPORT_TEXT = 0,
    UM_REPORT_JSON = 1, /* umrt.report/1: SCHEMA.md, schema.json */
    UM_REPORT_SARIF = 2 /* findings alone, SARIF 2.1.0: sarif.h */
} um_report_format_t;

struct um_findings;
/* Says what findings are worth; sim/predict.h has one. */
typedef um_status_t (*um_predict_fn)(void *ctx, const um_report_t *report,
                                     struct um_findings *findings);

typedef struct um_report_options {
    um_report_format_t format;
    uint32_t top;   /* rows a table, 1..1000000 */
    uint32_t width; /* columns of the terminal, 60..400 */
    bool color;
    const char *cuda;               /* um_target_parse; NULL = as the trace says */
    const char *debug_dirs;         /* um_places_debug_dirs; NULL = the usual one */
    bool utf8;                      /* block characters in the heat map; else ASCII */
    const struct um_limits *limits; /* findings/limits.h; NULL = the defaults */
    um_predict_fn predict;          /* NULL = estimates alone */
    void *predict_ctx;
    bool without_map; /* JSON for a page, which has a finer one */
} um_report_options_t;

um_status_t um_report_new(um_report_t **out);
void um_report_free(um_report_t *report);
/* A new trace (rank, process) begins: its file name and header facts. */
um_status_t um_report_begin(um_report_t *report, const char *path, const um_ev_fact_t *facts,
                            size_t n_facts);
/* Its events in time order. */
um_status_t um_report_event(um_report_t *report, const um_event_t *event);
/* A line about the trace's condition (truncated, damaged) that the report must show. Nothing is then
 * concluded from what is not in it. */
um_status_t um_report_note(um_report_t *report, const char *line);
um_status_t um_report_write(um_report_t *report, const um_report_options_t *options, FILE *out);

#endif

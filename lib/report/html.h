/*
 * html.h - a page that needs nothing else: the template of html/ and what it shows, as JSON.
 *
 * The page's script makes all that is seen out of its parts and knows them by name: "report"
 * (umrt.report/1), "map" (cells and lanes, html_map.c), "replay" (umrt.replay/1, or {"absent": why}).
 * It renders what it finds, so that a key added to the JSON is on the page.
 */
#ifndef UM_HTML_H
#define UM_HTML_H

#include "report.h"

typedef struct um_html_part {
    const char *name;
    const char *json; /* NULL = the page has no such part */
} um_html_part_t;

/* UM_ERR_IO. */
um_status_t um_html_write(FILE *out, const um_html_part_t *parts, size_t n);

/* The page of a report; replay: a part's JSON. Under 5 MB: where the tables would take more, they have
 * fewer rows than options->top; where the map would, it is coarser. As um_report_write. */
um_status_t um_html_report(um_report_t *report, const um_report_options_t *options,
                           const char *replay, FILE *out);

/* The part "map"; caller frees. NULL: no memory. Makes the map coarser, if it must. */
char *um_html_map(um_report_t *report);

#endif

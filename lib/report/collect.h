/*
 * collect.h - all that a report knows. Filled by report.c, one way: event -> attribution and the
 * statistics -> findings -> emitter. Findings and sections only read it.
 */
#ifndef UM_COLLECT_H
#define UM_COLLECT_H

#include "copies_stat.h"
#include "emitter.h"
#include "findings/limits.h"
#include "heatmap.h"
#include "kernels_stat.h"
#include "lanes.h"
#include "places.h"
#include "regions_stat.h"
#include "report.h"
#include "timeline.h"
#include "trace_stat.h"

#define UM_CAUSES 6
/* Bytes per second with where the figure comes from. */
typedef struct um_rate {
    uint64_t bytes_per_s; /* 0 = no source */
    char source[96];
} um_rate_t;

struct um_report {
    um_limits_t limits; /* what the findings go by */
    um_trace_stat_t *traces;
    size_t n_traces, traces_size;
    um_moves_t moves[UM_DIRECTIONS][UM_CAUSES];
    um_moves_t big_moves[2]; /* host<->device records of 64 KiB and more: the link's own rate */
    uint64_t counts[UM_EV_TYPE_COUNT];
    uint64_t hints[UM_HINT_RESULT_COUNT];
    bool hinted; /* somebody prefetched or advised: what did not fault may have been helped */
    um_places_t *places;
    um_regions_stat_t regions;
    um_kernels_stat_t kernels;
    um_copies_stat_t copies;
    um_timeline_t timeline;
    um_heatmap_t heat;
    um_lanes_t lanes;
    um_attribution_t *attribution;
    um_status_t status; /* first error out of a callback */
    uint64_t now_ns;
    bool open; /* a trace is being read */
};

/* Absence means something: records flowed in every trace and none is known to be lost. */
bool um_report_complete(const um_report_t *report);
uint64_t um_report_total(const um_report_t *report, um_event_type_t type);
/* Some trace recorded that type, whether or not there was one. */
bool um_report_recorded(const um_report_t *report, um_event_type_t type);
/* A count of records of one type, out of all of them: "-" where no trace recorded that type, so that
 * its 0 says nothing. */
um_value_t um_report_records(const um_report_t *report, um_event_type_t type, uint64_t count);
/* What a move of this much in one piece could run at. */
um_rate_t um_report_rate(const um_report_t *report, um_direction_t direction);
uint64_t um_rate_ns(const um_rate_t *rate, uint64_t bytes); /* 0 without a rate */
/* The frames of a call site as they were recorded, NULL when it is not known. */
const char *um_report_site(const um_report_t *report, uint64_t call_site);
/* The same for people: "make_grid (src/grid.c:12)", the user's innermost frame; NULL likewise. Where many
 * sites go through that function (the program's own allocator), its caller too; else NULL. More, such
 * as file and line by themselves: um_places_site(report->places, ...). */
const char *um_report_place(const um_report_t *report, uint64_t call_site);
const char *um_report_place_from(const um_report_t *report, uint64_t call_site);
/* The place of a CPU fault's PC, NULL when it is not known. */
const char *um_report_pc(const um_report_t *report, uint64_t pc);
void um_report_end_trace(um_report_t *report);

#endif

/* diff_parts.h - between the files that make a diff: diff.c compares, diff_gate.c judges, diff_write.c
 * shows. */
#ifndef UM_DIFF_PARTS_H
#define UM_DIFF_PARTS_H

#include "diff.h"
#include "map.h"

typedef enum um_diff_metric {
    UM_DIFF_FAULTS = 0,
    UM_DIFF_BYTES = 1,
    UM_DIFF_TIME = 2, /* ns */
    UM_DIFF_METRICS = 3
} um_diff_metric_t;

typedef enum um_diff_verdict {
    UM_DIFF_SAME = 0,
    UM_DIFF_BETTER = 1,
    UM_DIFF_WORSE = 2,
    UM_DIFF_UNSURE = 3, /* different, but by chance for all one can say */
    UM_DIFF_UNKNOWN = 4 /* not recorded on one side, or cut off */
} um_diff_verdict_t;

/* What can be said of one figure: less is better. */
typedef struct um_diff_change {
    double a, b; /* medians; NAN = not known */
    double p;    /* NAN = nothing to compare */
    bool surely; /* not put down to chance (diff.h) */
    um_diff_verdict_t verdict;
} um_diff_change_t;

/* One total, finding, region or kernel. */
typedef struct um_diff_item {
    char *name, *kind; /* kind: of a finding, else "" */
    double *values;    /* by metric, side A, side B; after compare: NAN = not known */
    size_t there[2];   /* how many reports of a side have it */
    bool cut[2];       /* it may be in more of them: their table was cut off */
    /* Of a finding: */
    bool estimated; /* its time is the rule's estimate: it was not replayed in all of the reports */
    double error_ns; /* else the largest error bar */
    bool worth[2];   /* a report of that side has it among those that are worth it */
    um_diff_change_t change[UM_DIFF_METRICS];
} um_diff_item_t;

typedef enum um_diff_kind {
    UM_DIFF_TOTALS = 0,
    UM_DIFF_FINDINGS = 1,
    UM_DIFF_REGIONS = 2,
    UM_DIFF_KERNELS = 3,
    UM_DIFF_TABLES = 4
} um_diff_kind_t;

typedef struct um_diff_table {
    um_diff_item_t *items;
    size_t n, size;
    um_map_t by_key; /* while reading */
} um_diff_table_t;

typedef struct um_diff_side {
    char **paths;
    json_t **reports;
    size_t n;
} um_diff_side_t;

/* One condition of --fail-on and what became of it. */
typedef struct um_diff_judged {
    char *condition;
    bool fired;
    char why[400];
} um_diff_judged_t;

struct um_diff {
    um_diff_side_t side[2];
    um_diff_table_t table[UM_DIFF_TABLES];
    um_diff_judged_t *judged;
    size_t n_judged;
    bool compared;
};

/* One row of UM_DIFF_TOTALS, in this order; ends with name NULL. */
typedef struct um_diff_total {
    const char *name; /* as in --fail-on */
    um_diff_metric_t metric;
    const char *keys[2]; /* of the report's totals, added up */
} um_diff_total_t;
extern const um_diff_total_t um_diff_totals[];

/* The values of one side, one a report. */
double *um_diff_series(const um_diff_t *diff, const um_diff_item_t *item, int side,
                       um_diff_metric_t metric);
/* The report's table does not have all of its rows. */
bool um_diff_cut(const um_diff_t *diff, um_diff_kind_t table, int side, size_t i);
/* "1,204 -> 13 (-99 %)": for people. */
void um_diff_say(const um_diff_change_t *change, um_diff_metric_t metric, bool percent, char *out,
                 size_t bytes);
/* In most of B's reports, and in most of A's not; and worth it in one of B's. */
bool um_diff_is_new(const um_diff_t *diff, const um_diff_item_t *finding);

#endif

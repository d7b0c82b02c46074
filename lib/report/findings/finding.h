/*
 * finding.h - one kind of finding: a name, a title, and a function that looks for it.
 *
 * A detector reads the collected report and adds findings; it changes nothing and knows no other
 * detector. It claims what the trace shows: whatever is concluded from the absence of records needs
 * um_report_complete(). Every kind has a test that it stays silent.
 *
 * To add one: write detect(), list it in um_finding_table, write its page in explain.c, its thresholds in
 * limits.c, its evidence in SCHEMA.md.
 */
#ifndef UM_FINDING_H
#define UM_FINDING_H

#include "../collect.h"
#include "../emitter.h"
#include "../fix.h"

#define UM_EVIDENCE_MAX 16
#define UM_PLACES_MAX   8

typedef struct um_evidence {
    const char *key;  /* in JSON; static */
    um_value_t value; /* no text but static */
} um_evidence_t;

/* Where, when it is more than one region. */
typedef struct um_place {
    char region[96];
    uint32_t group; /* of report->regions */
    uint64_t bytes, copies, faults, ns;
} um_place_t;

typedef struct um_finding_kind um_finding_kind_t;

typedef struct um_finding {
    const um_finding_kind_t *kind;
    char title[200];
    char where[400];
    char seen[1000];
    char advice[400];
    char command[120];   /* of UM_CHANGE_RECORD */
    char basis[400];     /* how win_ns was estimated */
    char predicted[160]; /* what a replay said, "" = there was none */
    uint64_t win_ns;
    uint32_t confidence; /* 0..100 that the description is right */
    bool timeless;       /* not a matter of time that a trace shows: never folded */
    /* What the advice is worth in the driver model (sim/predict.h). */
    uint32_t replayed; /* not 0: it was tried */
    int64_t alone_ns;  /* how much shorter the program is; negative = longer */
    uint64_t error_ns; /* what that may be wrong by; 0 = not known */
    uint32_t together; /* not 0: with those ranked above it, so many in all */
    int64_t together_ns;
    um_change_t change;           /* what the advice comes to, for the regions of its places */
    um_change_t asks;             /* what is written, where that is another; 0 = it is not */
    uint32_t kernel;              /* that it is about, + 1; 0 = none */
    uint64_t part_from, part_end; /* of each place's region that the change is for; end 0 = all */
    uint32_t own;                 /* the program's own hint it is about, + 1; 0 = none */
    const char *also[3];          /* other kinds that it includes; NULL = no more */
    um_evidence_t evidence[UM_EVIDENCE_MAX];
    uint32_t n_evidence;
    um_place_t places[UM_PLACES_MAX];
    uint32_t n_places;
    uint64_t places_left; /* more of them */
} um_finding_t;

typedef struct um_findings um_findings_t;

struct um_finding_kind {
    const char *name;  /* "ping-pong": stable, in JSON and for --fail-on */
    const char *title; /* one line on what the kind is */
    um_status_t (*detect)(const um_report_t *report, const um_finding_kind_t *kind,
                          um_findings_t *out);
};

/* Every kind there is; ends with name == NULL. findings/table.c */
extern const um_finding_kind_t um_finding_table[];

/* What detectors found, ranked by win_ns (ties: order of the table, then of adding). At most 1024 are
 * kept, those with most to win. */
struct um_findings {
    um_finding_t *list;
    size_t n, size;
    uint64_t found; /* kept or not */
    size_t worth;   /* those that are worth it come first, so many */
    /* Of the replay, where there was one. */
    char machine[64];
    char why_not[160];      /* there was none, or not of all */
    uint64_t base_ns;       /* the program as it is */
    uint32_t error_percent; /* 0 = never compared with a machine */
};

um_status_t um_findings_detect(const um_report_t *report, um_findings_t *out);
/* By replayed saving where there is one, else by estimate. */
void um_findings_rank(um_findings_t *findings);
/* Puts those that are not worth it behind the others: less than the error bar, or than all.win-percent of
 * the trace's time. What has no time of its own stays. */
void um_findings_fold(const um_report_t *report, um_findings_t *findings);
void um_findings_free(um_findings_t *findings);

/* ---- for detectors ---- */

/* Adds a copy. */
um_status_t um_findings_add(um_findings_t *findings, const um_finding_t *finding);
void um_finding_evidence(um_finding_t *finding, const char *key, um_value_t value);
/* Appends to a text field of `bytes`. */
void um_finding_say(char *field, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define um_say_in(field, ...) um_finding_say((field), sizeof(field), __VA_ARGS__)
void um_finding_place(um_finding_t *finding, const um_report_t *report, uint32_t group,
                      um_place_t place); /* place.region is filled in here */
/* "calculate_temp": the kernel's short name; "a kernel" where it is not known. */
void um_finding_kernel(const um_kernel_stat_t *kernel, char *out, size_t bytes);
/* Group's name with call site where there is one. */
void um_finding_region(const um_report_t *report, uint32_t group, char *out, size_t bytes);
/* "; CPU at fill (grid.c:12)", appended. */
void um_finding_pc(char *field, size_t bytes, const um_report_t *report, uint64_t pc);
/* win_ns = spent less `bytes` at the direction's rate, and the sentence for it. */
void um_finding_win(um_finding_t *finding, const um_report_t *report, const char *what,
                    uint64_t spent_ns, um_direction_t direction, uint64_t bytes);

/* How much of a group's fault service was for what had been evicted. */
uint64_t um_returned_ns(const um_group_t *group);
/* What one cause explains no other finding tells as well (causes.c). Of a group of regions: */
bool um_used_once(const um_report_t *report,
                  uint32_t group); /* used-once; its faults are no demand-faulting */
bool um_churned(const um_report_t *report, uint32_t group); /* allocation-churn: no first-touch */
bool um_never_on_cpu(const um_report_t *report, uint32_t group); /* likewise */
bool um_shared_page_only(const um_report_t *report,
                         uint32_t group); /* false-sharing: no ping-pong */
uint64_t um_late_ns(const um_report_t *report,
                    uint32_t group); /* faults of late-prefetch: no demand-faulting */
bool um_ping_pong_maps_part(const um_report_t *report,
                            uint32_t group); /* ping-pong says so, of less than a region */
/* Of the whole: not-evictable, harmful-prefetch; then there is no cyclic-sweep and no eviction. */
bool um_held_back(const um_report_t *report); /* without cudaMalloc and the like it would all fit */
bool um_pushed_out_by_prefetch(const um_report_t *report);
uint64_t um_held_bytes(const um_report_t *report); /* that cannot be evicted, most at once */
/* "; advised at grid.c:12" behind where, when the program's advice of that kind has a place. */
void um_finding_advised(um_finding_t *finding, const um_report_t *report, uint32_t group,
                        uint32_t hint_kind);

/* What the program's own hints of one place were worth. */
typedef enum um_own_verdict {
    UM_OWN_USEFUL = 0, /* nothing speaks against it */
    UM_OWN_LATE,
    UM_OWN_REDUNDANT,
    UM_OWN_WASTED,
    UM_OWN_HARMFUL,
    UM_OWN_FAILED
} um_own_verdict_t;
um_own_verdict_t um_own_verdict(const um_report_t *report, const um_own_hint_t *own);
const char *um_own_verdict_name(um_own_verdict_t verdict);
/* "prefetch to GPU 0 at step (solver.c:80)" */
void um_own_name(const um_report_t *report, const um_own_hint_t *own, char *out, size_t bytes);

typedef struct um_human {
    char text[40];
} um_human_t;
um_human_t um_human(um_value_t value);
/* What there is to win: replayed, else estimated. */
uint64_t um_finding_worth_ns(const um_finding_t *finding);
/* "replay", "estimate", or "none" where no time is known. */
const char *um_finding_worth_by(const um_finding_t *finding);
/* "6.4 ms +- 1.1 ms to win", "about 3 ms to win" (where it was not replayed, or the error is not known) or
 * "no time of its own". */
void um_finding_win_text(const um_finding_t *finding, char *out, size_t bytes);
#define um_h(value) (um_human(value).text)

#define UM_DETECTOR(name)                                                                          \
    um_status_t name(const um_report_t *report, const um_finding_kind_t *kind, um_findings_t *out)
UM_DETECTOR(um_detect_first_touch);
UM_DETECTOR(um_detect_demand_faulting);
UM_DETECTOR(um_detect_sparse_faulting);
UM_DETECTOR(um_detect_ping_pong);
UM_DETECTOR(um_detect_false_sharing);
UM_DETECTOR(um_detect_host_read_tail);
UM_DETECTOR(um_detect_thrashing);
UM_DETECTOR(um_detect_churn);
UM_DETECTOR(um_detect_never_on_cpu);
UM_DETECTOR(um_detect_pageable_copy);
UM_DETECTOR(um_detect_eviction);
UM_DETECTOR(um_detect_cyclic_sweep);
UM_DETECTOR(um_detect_read_mostly_written);
UM_DETECTOR(um_detect_wrong_location);
UM_DETECTOR(um_detect_late_prefetch);
UM_DETECTOR(um_detect_redundant_prefetch);
UM_DETECTOR(um_detect_wasted_prefetch);
UM_DETECTOR(um_detect_harmful_prefetch);
UM_DETECTOR(um_detect_redundant_advice);
UM_DETECTOR(um_detect_used_once);
UM_DETECTOR(um_detect_gpu_bounce);
UM_DETECTOR(um_detect_pool_threshold);
UM_DETECTOR(um_detect_pinned_pressure);
UM_DETECTOR(um_detect_not_evictable);
UM_DETECTOR(um_detect_lost_records);
UM_DETECTOR(um_detect_tracing_off);

#endif

/*
 * hinter_impl.h - the hint loop's state, shared by hinter.c (events, life) and hinter_asks.c (when advisors are
 * asked, and what becomes of what they propose). All on the bus thread, but for what says otherwise.
 */
#ifndef UM_HINTER_IMPL_H
#define UM_HINTER_IMPL_H

#include <stdatomic.h>

#include "expect.h"
#include "hinter.h"
#include "ranges.h"
#include "sharing.h"
#include "view.h"

#define UM_HINTER_ADVISORS    UM_GUARD_ADVISORS
#define UM_HINTER_RANGES      256 /* of one launch; more are left alone */
#define UM_HINTER_QUIET_AFTER 4   /* launches in a row that needed nothing */
#define UM_HINTER_SETTLED_BY  64u /* regions by id modulo this */

typedef struct um_hinter_advisor {
    const um_advisor_ops_t *ops;
    void *state;
    um_account_t account;
} um_hinter_advisor_t;

/* The launch that left a region settled: what another kernel uses of it may be more. */
typedef struct um_settled_by {
    uint32_t region, kernel;
    uint64_t grid, threads, graph;
    uint64_t integers; /* um_footprints_integers */
} um_settled_by_t;

struct um_hinter {
    um_hinter_config_t config;
    um_gate_t *gate;
    um_guard_t *guard; /* NULL = every advisor may always propose */
    uint32_t allowed;  /* bits of those that may, now */
    um_residency_t *residency;
    um_footprints_t *footprints;
    um_slices_t *slices;
    um_sequences_t *sequences;
    um_expect_t expect;
    um_hinter_advisor_t advisor[UM_HINTER_ADVISORS];
    unsigned n_advisors;
    bool any_always, any_sync; /* some advisor is asked always; some decides at waits, */
    bool any_alloc;            /* or at new regions; */
    bool any_ahead;            /* some looks at launches that are expected */
    um_view_t view;
    um_sharing_t sharing;
    um_range_t range[UM_HINTER_RANGES];
    uint32_t context, prepared; /* made last; that the executor is ready for */
    int32_t only_device;        /* the GPU that takes hints, NONE while it is not one */
    um_settled_by_t settled_by[UM_HINTER_SETTLED_BY];
    uint64_t left_ns; /* when the last wait ended that followed a launch */
    bool launched;    /* since */
    unsigned quiet;   /* launches in a row that needed nothing */
    unsigned quiet_waits;
    unsigned rearm,
        since_rearm; /* the next launch wakes after every rearm-th wait's end; ends since */
    bool armed;      /* it does, and has not come yet */
    unsigned
        cpu_is_busy; /* the last thing heard of the program is that it left a wait: drains until
                             that is a long phase */

    /* read by any thread */
    _Atomic uint64_t hinted_launches, declined;
    _Atomic(const char *) no_hints;
    _Atomic bool takes_hints; /* some GPU does */
};

/* While nothing moves, launches need not wake the bus thread. hinter.c */
void um_hinter_set_hinting(um_hinter_t *hinter, bool on);

/* hinter_asks.c: a launch came; a wait is entered, and one was left; a region is new; there is nothing else to
 * do. */
void um_hinter_on_launch(um_hinter_t *hinter, const um_event_t *event);
void um_hinter_on_wait(um_hinter_t *hinter, const um_event_t *event);
void um_hinter_on_left(um_hinter_t *hinter, uint64_t now_ns);
void um_hinter_on_new(um_hinter_t *hinter, const um_event_t *event);
void um_hinter_look_ahead(um_hinter_t *hinter);

#endif

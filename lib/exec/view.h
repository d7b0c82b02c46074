/* view.h - what is behind um_view_t and um_hints_t (um_advisor.h), and the advisors' options. */
#ifndef UM_VIEW_H
#define UM_VIEW_H

#include "gate.h"
#include "guard.h"
#include "model/footprint.h"
#include "model/sequence.h"
#include "model/slices.h"

typedef struct um_view_params {
    uint32_t n;
    uint32_t *flags;
} um_view_params_t;

struct um_view {
    um_gate_t *gate;
    um_residency_t *residency;
    um_footprints_t *footprints;
    um_sequences_t *sequences;
    const um_slices_t *slices;
    const um_next_t *next; /* NULL unless the launch is only expected */
    uint64_t missing;      /* then: managed bytes that are not on its device, 0 = not counted yet */
    const um_ev_launch_t *launch;      /* or */
    const um_ev_sync_t *sync;          /* or */
    const um_ev_region_alloc_t *alloc; /* what is being decided */
    uint32_t context; /* the context and the GPU that a new region is taken to be for */
    int32_t device;
    uint64_t now_ns, pace_ns;
    uint32_t tid;
    um_stretch_t stretch;
    um_footprint_t footprint; /* of the stretch's argument */
    um_watch_t *watch;        /* NULL = nothing is left out to learn from */
    uint64_t held;            /* bit i = the stretch's block i is prefetched no more */
    bool asked;               /* an advisor wanted to know where it is */
    /* parameter flags by kernel id */
    um_view_params_t *kernel;
    uint32_t n_kernels;
};

/* What one advisor proposed, and what became of it. */
typedef struct um_account {
    const char *who;
    uint64_t proposals, proposed_bytes;
    uint64_t admitted, refused, applied, failed, cancelled; /* pieces */
    uint64_t applied_bytes;
    uint64_t driver_ns; /* spent in the calls */
} um_account_t;

struct um_hints {
    um_gate_t *gate;
    um_view_t *view;
    const um_advisor_ops_t *who;
    um_guard_t *guard; /* may be NULL */
    unsigned index;    /* of the advisor, for the guard */
    um_account_t *account;
    uint32_t admitted;
    bool declined;
};

void um_view_kernel(um_view_t *view, const um_ev_kernel_t *kernel); /* a definition came by */
void um_view_fini(um_view_t *view);

/* Fills an advisor's options into its state: defaults, then UMRT_<ADVISOR>_<NAME>. A value that does
 * not fit is warned about and left at its default. */
void um_advisor_options(const um_advisor_ops_t *ops, void *state);
/* The variable that sets an option: UMRT_AHEAD_DENSE_LIMIT. */
void um_advisor_variable(const um_advisor_ops_t *ops, const um_advisor_option_t *option, char *out,
                         size_t bytes);

#endif

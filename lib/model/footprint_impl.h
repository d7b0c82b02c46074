/*
 * footprint_impl.h - what the parts of the footprint model share; nobody else includes it.
 *
 *   footprint.c        what is believed, and its way into and out of a profile
 *   footprint_watch.c  the evidence: launches that are watched through the page tables
 *   footprint_stride.c   runs at equal distances
 *   footprint_integer.c  ends in proportion to an integer argument
 *   footprint_records.c  and what records of faults add to it, where there are some
 */
#ifndef UM_FOOTPRINT_IMPL_H
#define UM_FOOTPRINT_IMPL_H

#include "attribution.h"
#include "footprint.h"

#define UM_SHAPES         8u /* of a kernel's parameter; the latest used */
#define UM_RECORDS        2048u
#define UM_WATCHES        64u
#define UM_PROBES         40u
#define UM_FAR            UINT64_MAX /* an end that nothing was seen beyond */
#define UM_WIDEST         64u        /* launches between two that are watched, at most */
#define UM_SURE_MOST      8u
#define UM_INTEGERS       8u /* of a launch, or a kernel, that are looked at */
#define UM_INTEGER_VALUES 3u

/* An end is known to lie in [lo, hi]. */
typedef struct um_span {
    uint64_t lo, hi;   /* hi = UM_FAR: nothing untouched was seen beyond lo */
    uint32_t sure;     /* observations that agree, halved by each that does not; 0 = no span yet */
    uint32_t short_of; /* in a row, that ended before lo */
} um_span_t;

typedef struct um_shape {
    uint64_t shape;
    um_span_t end;
    uint64_t first;           /* bytes: not touched before */
    uint32_t seen;            /* observations */
    uint32_t density;         /* percent of what lies before the end */
    uint32_t interval, since; /* launches between two that are watched */
    uint32_t age;             /* runs since it was seen to hold */
    bool prior;               /* another run's word, not seen to hold yet */
    bool backwards;
    uint64_t used;
    um_stride_t stride;
    uint32_t surveys; /* launches that were surveyed for one */
    uint64_t reach;   /* the furthest end of what was ever seen touched */
    bool holes;       /* blocks before it were seen not to be */
    bool varies;      /* launches of it ended where others had not */
    uint32_t sought;  /* watched to find the integer that says where */
} um_shape_t;

/* That the end is in proportion to an integer argument. */
typedef struct um_integer {
    uint32_t slot;
    uint32_t fits;     /* launches in a row that agree; 0 = free */
    uint64_t lo, hi;   /* bounds of the end in bytes for 2^20 of it; hi = UM_FAR: none yet */
    uint32_t n_values; /* it has held for these, of which it sets the ends apart */
    uint64_t value[UM_INTEGER_VALUES];
} um_integer_t;

/* Those of a launch; of a watch they are kept. */
typedef struct um_integers {
    uint32_t n;
    um_scalar_t scalar[UM_INTEGERS];
} um_integers_t;

typedef struct um_record {
    uint64_t kernel; /* hash of name and module, 0 = free */
    uint32_t slot;
    uint64_t module_hash;
    char *name;       /* NULL: of a graph; not told */
    um_span_t linear; /* of the end in bytes for 256 blocks of the grid */
    um_span_t fixed;
    um_integer_t integer[UM_INTEGERS];
    uint64_t shape_seen; /* the last one; others make linear and fixed worth something */
    uint32_t n_shapes_seen;
    uint32_t density;
    uint64_t used;
    um_shape_t shape[UM_SHAPES]; /* shape == 0 = free */
} um_record_t;

/* What one watched launch showed of an argument; offsets from its pointer. */
typedef struct um_seen {
    uint64_t first; /* nothing was touched before, UM_FAR = nothing at all was */
    uint64_t last;  /* end of what was touched, 0 = nothing */
    uint64_t clear; /* first offset beyond that was seen to be untouched, UM_FAR = none was */
    uint64_t chunk[UM_PROBES];                 /* offsets of the blocks with evidence */
    uint8_t touched[UM_PROBES], of[UM_PROBES]; /* their 64 KiB pieces */
    uint32_t n;
} um_seen_t;

typedef struct um_probe {
    uint64_t addr;   /* of a block */
    uint32_t before; /* bit i = the CPU had all of its i-th 64 KiB; 0 = void */
    bool placed;
} um_probe_t;

struct um_watch {
    uint64_t kernel; /* 0 = free */
    uint64_t shape, grid_blocks;
    um_argument_t argument;
    um_integers_t integers;
    uint64_t first, end; /* offsets: what the launch is taken to touch */
    uint64_t foreign;    /* address from which on another launch may have been it */
    uint64_t seq, stream;
    uint32_t context;
    bool withheld;           /* watched because hints are, whether or not its turn has come */
    bool survey;             /* all of it is left to faults, to see it whole */
    um_probe_t gap;          /* a block between two runs; of another argument all is 0 */
    uint32_t n_sentinels, n; /* probes; the sentinels first */
    um_probe_t probe[UM_PROBES];
};

#define UM_SURVEY_BLOCKS 4096u

/* One launch at a time is looked at block by block. */
typedef struct um_survey {
    const um_watch_t *watch; /* NULL = none is */
    uint64_t first;          /* block */
    uint32_t n;
    uint64_t had[UM_SURVEY_BLOCKS / 64],
        left[UM_SURVEY_BLOCKS / 64]; /* by the CPU: before, after */
} um_survey_t;

typedef struct um_kernel_name {
    uint64_t hash, module_hash; /* hash 0 = not seen */
    char *name;
    uint64_t integers; /* bit i: that of slot i says where a launch of it ends */
} um_kernel_name_t;

/* When a region was last taken by launches, and on which stream. */
typedef struct um_taken {
    uint32_t region, context;
    uint64_t seq, stream;
    bool mixed; /* on several */
    bool alone; /* no launch before that one was under way */
} um_taken_t;

#define UM_TAKEN  1024u /* regions by id modulo this */
#define UM_WAITED 64u

typedef struct um_waited {
    uint32_t context;
    uint64_t stream;
    uint64_t seq; /* launches up to this one are over */
} um_waited_t;

/* A launch whose records may still come. */
#define UM_RECORDED      64u
#define UM_RECORDED_ARGS 8u

typedef struct um_recorded_arg {
    um_argument_t argument;
    uint64_t last;     /* end of what records show, from the pointer on */
    uint64_t block;    /* of the last fault */
    uint32_t up, down; /* steps from one fault's block to the next one's */
} um_recorded_arg_t;

typedef struct um_recorded {
    uint32_t correlation, n; /* n == 0 = free */
    uint64_t time_ns, kernel, shape;
    um_integers_t integers;
    um_recorded_arg_t arg[UM_RECORDED_ARGS];
} um_recorded_t;

struct um_footprints {
    um_residency_t *residency;
    um_kernel_name_t *kernel; /* by id */
    uint32_t n_kernels;
    um_record_t *record; /* UM_RECORDS */
    uint64_t seq;        /* launches */
    uint64_t turn;       /* moves the sentinels on */
    uint64_t clock;      /* of uses */
    uint32_t n_pending;
    um_watch_t watch[UM_WATCHES];
    um_survey_t survey;
    um_taken_t taken[UM_TAKEN];
    um_waited_t waited[UM_WAITED]; /* by stream */
    um_waited_t all[8];            /* for all of a context */
    um_attribution_t *attribution; /* NULL until there are records */
    um_recorded_t *recorded;
    uint32_t n_recorded;
    um_footprint_stats_t stats;
};

/* ---- footprint.c ---- */

uint64_t um_footprint_shape(const um_ev_launch_t *launch, uint64_t *grid_blocks);
/* Of the launch's kernel; 0 = it has none. */
uint64_t um_footprint_kernel(const um_footprints_t *footprints, const um_ev_launch_t *launch);
/* The shape's entry, made where there is none; `launch` is one that is known. */
um_shape_t *um_footprint_entry(um_footprints_t *footprints, const um_ev_launch_t *launch,
                               uint64_t kernel, uint32_t slot, uint64_t shape);
um_record_t *um_footprint_find(const um_footprints_t *footprints, uint64_t kernel, uint32_t slot);
um_shape_t *um_footprint_find_shape(um_record_t *record, uint64_t shape);
/* Takes in what a launch showed; `kernel` is one that was launched. */
void um_footprint_learn(um_footprints_t *footprints, const um_watch_t *watch,
                        const um_seen_t *seen);

/* A record shows that it goes so far. */
void um_footprint_reached(um_footprints_t *footprints, um_shape_t *shape, uint64_t last);

/* ---- footprint_integer.c ---- */

static inline um_integers_t um_footprint_integers(const um_ev_launch_t *launch)
{
    um_integers_t integers = {.n = launch->n_scalars < UM_INTEGERS ? launch->n_scalars
                                                                   : UM_INTEGERS};

    for (uint32_t i = 0; i < integers.n; i++)
        integers.scalar[i] = launch->scalars[i];
    return integers;
}
/* A launch with these ended behind `last` and, unless UM_FAR, before `clear`. NULL is fine. */
void um_footprint_integers_learn(um_record_t *record, const um_integers_t *launch, uint64_t last,
                                 uint64_t clear);
/* Where a launch with these ends, by what is proven; false = nothing is. record NULL is fine. */
bool um_footprint_by_integer(const um_record_t *record, const um_integers_t *launch,
                             um_span_t *end);
/* The slot of the integer that says so, as a bit; 0 = none. record NULL is fine. */
uint64_t um_footprint_integer_slot(const um_record_t *record, const um_integers_t *launch);
/* May one of these say so that is not proven yet? record NULL is fine. */
bool um_footprint_integer_is_open(const um_record_t *record, const um_integers_t *launch);
/* Where to look to know the likeliest integer more exactly; 0 = nowhere. record NULL is fine. */
uint64_t um_footprint_integer_doubt(const um_record_t *record, const um_integers_t *launch);
/* Another run's word; false = it is no sense, or this run knows better. */
bool um_footprint_integer_told(um_record_t *record, const um_ev_learned_t *learned);
/* As LEARNED of "integer", if there is one that explains how the shape varies; `like` says the rest. */
void um_footprint_tell_integer(const um_record_t *record, const um_shape_t *shape,
                               const um_ev_learned_t *like, um_event_fn emit, void *ctx);

/* ---- footprint_stride.c ---- */

/* A launch has shown something of it. */
void um_footprint_note_holes(um_shape_t *shape, const um_seen_t *seen);
/* Is it worth leaving a launch to its faults? */
bool um_footprint_wants_survey(const um_footprints_t *footprints, const um_shape_t *shape,
                               uint64_t bytes);
/* The launch that is watched is left to its faults: a survey of it begins, where one is of use. */
void um_footprint_survey_begin(um_footprints_t *footprints, const um_watch_t *watch,
                               um_shape_t *shape);
void um_footprint_survey_void(um_footprints_t *footprints, const um_watch_t *watch);
void um_footprint_survey_moved(um_footprints_t *footprints, uint64_t addr, uint64_t bytes);
/* It is over; shape NULL = it was forgotten. */
void um_footprint_survey_end(um_footprints_t *footprints, const um_watch_t *watch,
                             um_shape_t *shape, bool at_once);
/* A launch of which the runs were brought: is anything between them touched? */
void um_footprint_watch_gaps(um_footprints_t *footprints, um_watch_t *watch,
                             const um_shape_t *shape);
void um_footprint_check_gaps(um_footprints_t *footprints, um_watch_t *watch, um_shape_t *shape);
/* To and from other runs; false = nonsense. */
bool um_footprint_stride_told(um_shape_t *shape, const um_ev_learned_t *learned);
void um_footprint_tell_stride(const um_shape_t *shape, const um_ev_learned_t *like,
                              um_event_fn emit, void *ctx);

/* ---- footprint_records.c ---- */

/* Once there are records: a launch, then its arguments. */
void um_footprint_record_launch(um_footprints_t *footprints, const um_ev_launch_t *launch,
                                uint64_t now_ns);
void um_footprint_record_argument(um_footprints_t *footprints, const um_argument_t *argument,
                                  bool alone);
void um_footprint_on_record(um_footprints_t *footprints, const um_event_t *event);

/* ---- footprint_watch.c ---- */

void um_footprint_on_wait(um_footprints_t *footprints, const um_ev_sync_t *sync, uint64_t time_ns);
/* The CPU has taken these bytes, or has had them taken: what is watched there shows nothing. A survey is not
 * concerned: it looks for itself, and records of what was before come late. */
void um_footprint_taken(um_footprints_t *footprints, uint64_t addr, uint64_t bytes);
void um_footprint_on_free(um_footprints_t *footprints, uint32_t region);

#endif

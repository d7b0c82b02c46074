/*
 * top.h - the page of figures that `umrt top` reads from a running program.
 *
 * A memory file (memfd) of the process, made with its first managed region and found by a reader of the
 * same user under /proc/PID/fd: nothing is left behind however the process ends, an exec closes it, and
 * the child of a fork has none. It cannot change its size, so nobody can pull it away. The bus thread
 * writes it, and only when a reader has just asked, ten times a second at most; the last time when the
 * runtime shuts down, which a reader that holds it open still sees. Nobody asks: a load a millisecond.
 */
#ifndef UM_TOP_H
#define UM_TOP_H

#include <stdatomic.h>

#include "um_advisor.h"
#include "um_runtime.h"

#define UM_TOP_FILE     "umrt-top" /* of the memfd */
#define UM_TOP_MAGIC    "umrt-top"
#define UM_TOP_VERSION  2u /* a new one with any change of what follows */
#define UM_TOP_REGIONS  128u
#define UM_TOP_ADVISORS 16u
#define UM_TOP_MODULES  16u
#define UM_TOP_WHERES   5u /* um_where_t */

/* What one advisor proposed and what became of it: counts of pieces but for `proposals`. */
typedef struct um_top_advisor {
    char who[24];
    uint64_t proposals, proposed_bytes;
    uint64_t admitted, refused, applied, failed, cancelled;
    uint64_t applied_bytes;
    uint64_t driver_ns; /* spent in the calls */
} um_top_advisor_t;

/* What where_bytes stands on. */
typedef enum um_top_known {
    UM_TOP_UNKNOWN = 0,
    UM_TOP_BY_MODEL = 1,     /* the model that hints are made by */
    UM_TOP_BY_MIGRATIONS = 2 /* DEVICE is what came and did not go back, all else UNKNOWN */
} um_top_known_t;

typedef struct um_top_region {
    uint32_t id;
    uint32_t family; /* um_family_t */
    uint64_t addr, bytes;
    uint64_t call_site;
    int32_t device;
    uint32_t where_known;                /* um_top_known_t */
    uint64_t where_bytes[UM_TOP_WHERES]; /* by um_where_t */
    uint64_t gpu_faults, cpu_faults; /* fault groups; faults. Since the allocation, if recorded */
    uint64_t to_gpu_bytes, to_host_bytes; /* migrated, likewise */
    char label[64];                       /* the program's word, "" = none */
    char frames[256];                     /* um_ev_call_site_t's, whole ones as far as they fit */
} um_top_region_t;

/* A file that frames name: um_ev_module_t's. One whose texts do not fit is not told. */
typedef struct um_top_module {
    char name[64];
    char path[256];
    char build_id[64];
    uint64_t file_bytes, modified_ns;
} um_top_module_t;

/* Since the start of the runtime. */
typedef struct um_top_figures {
    uint64_t start_ns, time_ns; /* CLOCK_MONOTONIC: the first managed region, now */
    uint32_t mode;              /* um_mode_t */
    uint32_t state;             /* um_runtime_state_t */
    uint32_t ended;             /* the runtime has shut down: these are the last figures */
    uint32_t recorded;          /* faults and migrations are, and have been from the start */
    char reason[256];           /* why it is not what was asked for, "" = it is */
    um_runtime_stats_t stats;
    uint64_t hinted_launches, declined;
    uint64_t guard_groups, guard_won, guard_lost, guard_rounds, guard_withheld; /* exec/guard.h */
    uint64_t guard_measured; /* only if it is not 0: */
    int64_t guard_saved_ns;
    uint64_t guard_error_ns;
    uint64_t gpu_faults, cpu_faults, migrations, to_gpu_bytes, to_host_bytes;
    uint64_t managed_bytes; /* of live regions */
    uint32_t n_advisors, n_regions, n_modules;
    uint32_t guard_at_once; /* not 0: so many threads launch at once, which is not measured */
    um_top_advisor_t advisor[UM_TOP_ADVISORS];
    um_top_region_t region[UM_TOP_REGIONS]; /* managed ones first, large ones first */
    um_top_module_t module[UM_TOP_MODULES];
} um_top_figures_t;

/* Magic to pid never change once `magic` is there, which is written last. */
typedef struct um_top_page {
    char magic[8];
    uint32_t version;
    uint32_t bytes;            /* of the page */
    int32_t pid;               /* as the process sees itself */
    _Atomic uint32_t asked;    /* readers: another number than before asks for fresh figures */
    _Atomic uint32_t sequence; /* odd while the figures change */
    uint32_t zero;
    um_top_figures_t figures;
} um_top_page_t;

_Static_assert(offsetof(um_top_page_t, asked) == 20 && offsetof(um_top_page_t, sequence) == 24 &&
                   offsetof(um_top_page_t, figures) == 32,
               "what every version of the page begins with");

/* ---- the process's side --------------------------------------------------------------------------- */

typedef struct um_top um_top_t;
typedef struct um_sink um_sink_t; /* bus.h */

/* Where the figures come from; on the bus thread, or once it has stopped. */
typedef struct um_top_source {
    void *ctx;
    /* Fills in what the events do not tell: mode to guard_error_ns and the advisors, over zeroes. */
    void (*figures)(void *ctx, um_top_figures_t *out);
    /* Bytes of a managed region by um_where_t, over zeroes; false = not known. May be NULL. */
    bool (*where)(void *ctx, uint32_t region, uint64_t bytes[UM_TOP_WHERES]);
} um_top_source_t;

um_status_t um_top_new(const um_top_source_t *source, um_top_t **out);
void um_top_sink(um_top_t *top, um_sink_t *out);
/* The last figures, if there is a page. The bus has stopped. */
void um_top_end(um_top_t *top);
void um_top_abandon(um_top_t *top); /* forked child: it has no page; async-signal-safe */
void um_top_free(um_top_t *top);    /* the bus has stopped; NULL is fine */
/* Its memfd, -1 = there is no page (yet). */
int um_top_fd(const um_top_t *top);

#endif

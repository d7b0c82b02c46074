/*
 * config.h - every option of umrt in one table: name, default, doc, type, range.
 *
 * Order of precedence: default < file (UMRT_CONFIG) < environment (UMRT_<NAME>) < command line
 * (which `umrt run` and `umrt record` turn into environment variables for the program).
 * The file has one `name = value` a line; '#' begins a comment line. An empty variable is an unset
 * one. An unknown UMRT_* variable or a bad value is warned about once, with the nearest name or the
 * range, and the value before it stays.
 */
#ifndef UM_CONFIG_H
#define UM_CONFIG_H

#include "um_runtime.h"

typedef enum um_option_type {
    UM_OPTION_BOOL,  /* 1/0 on/off yes/no true/false, any case */
    UM_OPTION_UINT,  /* decimal */
    UM_OPTION_BYTES, /* decimal with k, M, G (1024) */
    UM_OPTION_STRING,
    UM_OPTION_BUDGET, /* a string: auto, all, bytes, or percent; exec/share.h */
    UM_OPTION_MODE    /* off/0/no/false, observe, record, hint/1/on/yes/true, trial */
} um_option_type_t;

#define UM_OPTION_MAX 32 /* most options um_option_table may have */

/* The settings in force. Strings are owned by the settings and never NULL once loaded. */
typedef struct um_settings {
    uint64_t mode;                     /* um_mode_t */
    char *out;                         /* trace file pattern: %p pid, %r rank, %h host */
    uint64_t log_level;                /* 0..3 */
    uint64_t summary;                  /* print the line at exit */
    uint64_t queue_bytes;              /* event ring of one thread */
    uint64_t headroom_bytes;           /* device memory that hints never use */
    uint64_t host_headroom_bytes;      /* likewise, of the machine's */
    char *budget;                      /* of each GPU, for this process */
    char *share_dir;                   /* where processes that share a GPU see each other */
    uint64_t piece_bytes;              /* prefetch call size; H200: 32 MiB */
    uint64_t workers;                  /* prefetch threads; H200: 2 */
    uint64_t guard_per_mille;          /* of the time, for withheld baselines; see exec/guard.h */
    uint64_t preload_kernels;          /* of a library; 0 = off */
    uint64_t flush_us;                 /* CUPTI drain period; H200: 1000 */
    uint64_t page_tables;              /* read CPU residency from the page tables */
    uint64_t call_sites;               /* capture the stack at allocations and hints */
    uint64_t launch_sites;             /* and at launches */
    uint64_t kernel_times;             /* record KERNEL_EXEC once managed memory exists */
    uint64_t unified_memory;           /* record faults and migrations */
    uint64_t deep;                     /* record: push to the host before each launch */
    char *advisors;                    /* comma list, "all" = every one */
    char *profile;                     /* file pattern; "" = none */
    char *report;                      /* of a hinted run: file pattern; "" = none */
    uint64_t top;                      /* `umrt top` may look at this process */
    char *trace;                       /* of a hinted run: file pattern; "" = none */
    const char *source[UM_OPTION_MAX]; /* where each option's value came from, by its place in
                                          um_option_table; static strings */
} um_settings_t;

typedef struct um_option {
    const char *name;     /* "piece-bytes": environment UMRT_PIECE_BYTES, flag --piece-bytes */
    const char *fallback; /* as text */
    const char *doc;
    um_option_type_t type;
    uint64_t min, max; /* of numbers */
    size_t offset;     /* in um_settings_t */
} um_option_t;

extern const um_option_t um_option_table[]; /* ends with name == NULL */

/* default < file < environment. Warns, never fails but for UM_ERR_NO_MEMORY (*out is then empty). */
um_status_t um_settings_load(um_settings_t *out);

/* Sets one option from text. `source` is a static string. Errors, settings unchanged:
 * UM_ERR_NOT_FOUND (no such option), UM_ERR_INVALID (not a value of it, or out of range),
 * UM_ERR_NO_MEMORY. Names are compared without case, '_' equal to '-'. */
um_status_t um_settings_set(um_settings_t *settings, const char *name, const char *value,
                            const char *source);

/* One OPTION event each, in the table's order, time_ns 0. */
void um_settings_each(const um_settings_t *settings, um_event_fn fn, void *ctx);
void um_settings_free(um_settings_t *settings); /* the strings, not the struct; NULL is fine */

/* The option's name nearest to `name`, NULL when none is near (more than a third of it differs). */
const char *um_option_nearest(const char *name);
/* "UMRT_PIECE_BYTES" of "piece-bytes", into a buffer (cut to fit). */
void um_option_variable(const char *name, char *out, size_t bytes);

bool um_parse_mode(const char *text, um_mode_t *out);
bool um_parse_bool(const char *text, bool *out);
bool um_parse_bytes(const char *text, uint64_t *out); /* "4096", "64k", "1.5" is refused, "2GiB" */

#endif

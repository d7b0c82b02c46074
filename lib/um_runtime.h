/*
 * um_runtime.h - umrt inside a program.
 *
 * One line makes managed memory fast: um_runtime_init(NULL), and link with -lumrt. The same library
 * is what `umrt run` and `umrt record` inject, and then no line is needed. Everything here may be
 * called from C or C++, from any thread, before or after CUDA is initialised, any number of times.
 *
 * umrt never aborts, exits, prints to stdout, installs signal handlers or changes the program's CUDA
 * error state. When it cannot work it says so in one line on stderr and the program goes on unhinted.
 */
#ifndef UM_RUNTIME_H
#define UM_RUNTIME_H

#include "um_event.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum um_mode {
    UM_MODE_DEFAULT = 0, /* UMRT_MODE, else hint */
    UM_MODE_OFF = 1,     /* loaded and inert */
    UM_MODE_OBSERVE = 2, /* see and count, change nothing */
    UM_MODE_RECORD = 3,  /* observe and write a trace */
    UM_MODE_HINT = 4,    /* observe and prefetch */
    UM_MODE_TRIAL = 5 /* the same, but nothing in every other round, to measure what it is worth */
} um_mode_t;

/* level: 0 error .. 3 debug. Comes on any thread, umrt's own included, in the middle of what it does: call
 * nothing of umrt in it. */
typedef void (*um_log_fn)(void *ctx, int level, const char *line);

/* Zero-initialise, set `size`, then what you want to change. A mode or budget that is none is warned
 * about in one log line and counts as not given; only a wrong size is refused. */
typedef struct um_config {
    size_t size; /* sizeof(um_config_t): lets the struct grow */
    um_mode_t mode;
    const char *trace_path; /* file name pattern. RECORD: NULL = UMRT_OUT or the default. HINT and
                               TRIAL: NULL = UMRT_TRACE or none */
    um_log_fn log;          /* NULL = stderr */
    void *log_ctx;
    const char *profile_path; /* HINT and TRIAL: what was learned is taken from this file and kept
                                 in it; NULL = UMRT_PROFILE or none */
    const char *report_path;  /* HINT and TRIAL: written at the end, what was done and why; JSON if
                                 it ends in ".json"; NULL = UMRT_REPORT or none */
    const char
        *budget; /* HINT and TRIAL: how much of each GPU's memory prefetches of this process may
                                 fill: "auto" (an even part for each process that works on the GPU), "all",
                                 "20G", "25%"; NULL = UMRT_BUDGET or auto */
} um_config_t;

/* What um_runtime_init made of it; all of these are fine to go on with. */
typedef enum um_runtime_state {
    UM_RUNTIME_NONE = 0,    /* not initialised */
    UM_RUNTIME_INERT = 1,   /* off, or impossible here: does nothing */
    UM_RUNTIME_OBSERVE = 2, /* watches only */
    UM_RUNTIME_RECORD = 3,
    UM_RUNTIME_HINT = 4 /* also for TRIAL */
} um_runtime_state_t;

typedef struct um_runtime_info {
    um_runtime_state_t state;
    char reason[256]; /* why it is not what was asked for; "" when it is */
} um_runtime_info_t;

/*
 * Starts umrt in this process; config NULL = defaults (then environment UMRT_*). Idempotent: later
 * calls, also from other threads and in a process already under `umrt run`, change nothing. UM_OK
 * whenever the program may go on, i.e. always except UM_ERR_INVALID for a config with a size that no
 * um_config_t has had. What it became is in um_runtime_info; once it was shut down, it stays so.
 */
UM_API um_status_t um_runtime_init(const um_config_t *config);

/* Stops hinting and recording, saves the profile, ends the trace, prints the summary line. Idempotent. Runs by itself
 * at exit; makes no CUDA call. */
UM_API void um_runtime_shutdown(void);

UM_API void um_runtime_info(um_runtime_info_t *out);

/* Saves what was learned so far into the profile, which happens at the end by itself. Reads and writes
 * files, makes no CUDA call; not for inner loops. UM_OK also where there is nothing to save;
 * UM_ERR_STATE before init and where no profile was asked for; UM_ERR_BUSY where the driver has held umrt's own
 * thread up for two seconds; else what went wrong, of which a line was
 * said, too. */
UM_API um_status_t um_sync_profile(void);

/* Counters since init; all from zero, monotonic. */
typedef struct um_runtime_stats {
    uint64_t
        launches; /* of kernels and graphs, from the first managed memory on: none is seen before */
    uint64_t launches_managed; /* of these, with a managed pointer argument */
    uint64_t regions_live, regions_managed_live;
    uint64_t hints_proposed, hints_admitted, hints_applied, hints_failed, hints_cancelled;
    uint64_t hints_refused[UM_HINT_RESULT_COUNT]; /* by um_hint_result_t */
    uint64_t prefetched_bytes;
    uint64_t events, events_lost;
    uint64_t trace_bytes;
} um_runtime_stats_t;
UM_API um_status_t um_runtime_stats(um_runtime_stats_t *out); /* UM_ERR_STATE before init */

/* Names the region that holds `addr` in traces and reports. Copies the label (at most 127 bytes).
 * UM_ERR_NOT_FOUND when no known region holds it, UM_ERR_STATE before init. */
UM_API um_status_t um_region_label(const void *addr, const char *label);

/*
 * What the program knows about the region that holds `addr` (um_region_hint_flag_t bits, 0 = nothing):
 *   UM_REGION_HINT_OFF        leave it alone; advice that is in force already stays
 *   UM_REGION_HINT_READ_ONLY  neither side writes it from now on: it may be duplicated at once. Should
 *                             somebody write it all the same, that is only slow, and taken back
 *   UM_REGION_HINT_CPU_FIRST  the CPU will write what nobody has written yet, although kernels get it
 * It holds from the next launch on, instead of what was said before. Errors as um_region_label, and
 * UM_ERR_INVALID for other bits.
 */
UM_API um_status_t um_region_hint(const void *addr, uint32_t flags);

/* Marks phases of the program in traces; nested per thread. name is copied. UM_ERR_INVALID for NULL; UM_ERR_STATE
 * where umrt was not started, and for an end without a beginning. */
UM_API um_status_t um_phase_begin(const char *name);
UM_API um_status_t um_phase_end(void);

/*
 * Tells what this machine is and can: FACT, DEVICE and OPTION events, among them the facts
 * "can.record", "can.hint" and "can.read", each "yes" or "no: <reason>". Loads the driver if there
 * is one; creates no context. Any thread.
 */
UM_API um_status_t um_machine_probe(um_event_fn fn, void *ctx);

/* Called by the CUDA driver when CUDA_INJECTION64_PATH names this library; not for programs.
 * Returns 1 always: a failure of ours must not be a failure of theirs. */
UM_API int InitializeInjection(void);

/* Called by NVTX when NVTX_INJECTION64_PATH names this library; not for programs. Takes the program's
 * marks and ranges while a trace is recorded. Returns 1, or 0 for an NVTX that it does not know. */
UM_API int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

#ifdef __cplusplus
}
#endif
#endif

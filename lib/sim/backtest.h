/*
 * backtest.h - how far the model is from the machine: measured runs against simulated ones.
 *
 * bench/backtest.cu measures runs (lists of host accesses, kernels, hints and waits) and writes the
 * lists beside the times; here each list becomes a workload with the program's own hints, which is
 * simulated under policy `app`. What is compared is the timed part alone: the time of the whole less
 * the time of what came before it, both of which end with the device idle.
 *
 * Half of the runs are there to fit the machine's figures to, the other half only to judge. The rule
 * is fixed: runs in the order of the 64-bit FNV-1a hash of their name, the first, third, fifth ... to
 * fit, the second, fourth, sixth ... to judge. A file that says "held_out": true has runs to judge only.
 *
 * Threads: loading and freeing by one; a loaded back-test is read-only, any number may predict.
 */
#ifndef UM_BACKTEST_H
#define UM_BACKTEST_H

#include "sim.h"

typedef enum um_backtest_half {
    UM_BACKTEST_FIT = 0,
    UM_BACKTEST_JUDGE = 1,
    UM_BACKTEST_BOTH = 2
} um_backtest_half_t;

typedef struct um_backtest_run {
    char name[96]; /* "stream/256/chunk": pattern, MiB, variant */
    char pattern[32];
    char variant[48];
    uint64_t bytes; /* of managed memory */
    uint32_t half;  /* UM_BACKTEST_FIT or _JUDGE */
    uint32_t group; /* the same number for the variants of one pattern and size */
    uint64_t measured_ns, q1_ns, q3_ns; /* median and quartiles over the repetitions */
    um_workload_t *before;              /* up to the timed part */
    um_workload_t *whole;               /* with the timed part */
} um_backtest_run_t;

typedef struct um_backtest {
    char path[256];
    char date[16];
    char gpu[64];
    char driver[128];
    bool held_out; /* nothing may be fitted to its runs: all of them judge */
    uint32_t n_runs;
    um_backtest_run_t *runs; /* as in the file */
} um_backtest_t;

/* Reads the file of bench/backtest.cu; path NULL = the one that comes with umrt ($UMRT_BACKTEST, the
 * installed one, the source tree's). Errors, with one line of file, run and reason: UM_ERR_IO,
 * UM_ERR_FORMAT (not JSON, another schema, a field missing or outside its range), UM_ERR_NO_MEMORY. */
um_status_t um_backtest_load(const char *path, um_backtest_t **out, char *error,
                             size_t error_bytes);
void um_backtest_free(um_backtest_t *backtest); /* NULL is fine */

/* Simulates one run: what its timed part takes on `machine`. params NULL = the driver's defaults. */
um_status_t um_backtest_predict(const um_backtest_t *backtest, uint32_t run,
                                const um_machine_t *machine, const um_uvm_params_t *params,
                                uint64_t *out_ns, char *error, size_t error_bytes);

/* |predicted - measured| / measured over the runs of a half, and how many pairs of variants (of one
 * pattern and size, both in that half) are in the right order, out of those that really differ: the
 * medians by more than 10 %, and their quartile ranges apart. */
typedef struct um_backtest_stats {
    uint32_t runs;
    double median_error;
    double worst_error;
    uint32_t worst_run; /* index */
    uint32_t pairs, pairs_right;
} um_backtest_stats_t;
void um_backtest_stats(const um_backtest_t *backtest, const uint64_t *predicted_ns,
                       um_backtest_half_t half, um_backtest_stats_t *out);

#endif

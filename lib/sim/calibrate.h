/*
 * calibrate.h - the figures of a machine from measurements on it.
 *
 * A figure is either timed directly (a call, a transfer), or fitted: a small program is measured and
 * simulated, and the figure is scaled until both take the same time. So a figure means exactly what
 * the model takes it for. Those that nothing here shows are taken from the nearest known machine and
 * marked as estimates.
 *
 * Who measures is a table of functions: a GPU (cupti/calibrate.h), or a simulated machine in tests.
 */
#ifndef UM_CALIBRATE_H
#define UM_CALIBRATE_H

#include "jobs.h"
#include "machine.h"

/* One of many in a row, all the same. */
typedef enum um_calibrate_call {
    UM_CALIBRATE_ALLOC = 0,  /* cudaMallocManaged of 2 MiB */
    UM_CALIBRATE_FREE = 1,   /* of what nobody touched */
    UM_CALIBRATE_LAUNCH = 2, /* the CPU's part of a launch */
    UM_CALIBRATE_SYNC = 3,   /* a wait that finds all done */
    UM_CALIBRATE_TURN = 4,   /* launch of a kernel that does nothing, and the wait for it */
    UM_CALIBRATE_CALLS = 5
} um_calibrate_call_t;

typedef enum um_calibrate_transfer {
    UM_CALIBRATE_TO_DEVICE = 0, /* from pinned memory */
    UM_CALIBRATE_TO_HOST = 1,
    UM_CALIBRATE_PAGEABLE = 2, /* from pageable memory */
    UM_CALIBRATE_INSIDE = 3,   /* inside the device */
    UM_CALIBRATE_TRANSFERS = 4
} um_calibrate_transfer_t;

typedef struct um_calibrate_gpu {
    void *ctx;
    const char *name; /* as cuDeviceGetName says */
    uint64_t memory_bytes;
    bool coherent;
    /* Carries out a program (one round of its body, in fresh memory, several times) and gives the
     * median. Fills job.ns of the body's kernels and host accesses: their own time, data there. */
    um_status_t (*measure)(void *ctx, um_job_program_t *program, uint64_t *out_ns);
    um_status_t (*call)(void *ctx, um_calibrate_call_t call, uint64_t *out_ns);
    um_status_t (*transfer)(void *ctx, um_calibrate_transfer_t transfer, uint64_t bytes,
                            uint64_t *out_ns);
} um_calibrate_gpu_t;

#define UM_CALIBRATE_FIGURES 96

typedef struct um_calibration {
    um_machine_t machine;
    char source[UM_CALIBRATE_FIGURES][160]; /* in the order of um_machine_figures */
    char nearest[64];                       /* whose figures stand where nothing was measured */
    uint32_t measured, figures;
} um_calibration_t;

/* date: "2026-11-30", for the sources. Errors: what the functions of `gpu` return, with a line in
 * `error`; UM_ERR_NOT_FOUND: no known machine to start from. */
um_status_t um_calibrate(const um_calibrate_gpu_t *gpu, const char *date, um_calibration_t *out,
                         char *error, size_t error_bytes);

/* ---- a real GPU: cupti/calibrate.c, or calibrate_none.c in a build without CUDA's headers ---- */

/* Opens a GPU. It holds at most 2 GiB of managed memory, and no region over a quarter of what the
 * device has free. UM_ERR_UNSUPPORTED, with a line in `error`: no driver or GPU, a driver without the
 * calls needed, concurrentManagedAccess is 0, or too little free memory. UM_ERR_INVALID: no GPU of
 * that number. One thread, the one that opened it. */
um_status_t um_calibrate_open(int32_t device, um_calibrate_gpu_t *out, char *error,
                              size_t error_bytes);
void um_calibrate_close(um_calibrate_gpu_t *gpu);
/* What went wrong in the last call that failed: "mem_alloc_managed: CUDA_ERROR_OUT_OF_MEMORY". */
const char *um_calibrate_why(const um_calibrate_gpu_t *gpu);

#endif

/*
 * jobs.h - a measured program as the jobs that were carried out for it, and how they become a
 * workload: what bench/backtest.cu writes down, and what `umrt calibrate` carries out itself.
 */
#ifndef UM_JOBS_H
#define UM_JOBS_H

#include "workload.h"

typedef enum um_job_kind {
    UM_JOB_HOST = 0,     /* the host reads or writes one word every `step` bytes */
    UM_JOB_KERNEL = 1,   /* a launch of one of um_job_kernel_names */
    UM_JOB_PREFETCH = 2, /* in calls of `step` bytes */
    UM_JOB_ADVISE = 3,
    UM_JOB_SYNC = 4 /* waits for helper threads and the device */
} um_job_kind_t;

/* um_job_t.what */
enum { UM_JOB_HOST_READ, UM_JOB_HOST_WRITE };
enum { UM_JOB_UPDATE, UM_JOB_READ, UM_JOB_WRITE, UM_JOB_COPY, UM_JOB_GATHER, UM_JOB_KERNELS };
enum { UM_JOB_READ_MOSTLY, UM_JOB_PREFERRED_LOCATION, UM_JOB_ACCESSED_BY };

/* Names in the file, in the order of um_job_kind_t and of um_job_t.what; each ends with NULL. */
extern const char *const um_job_kind_names[];
extern const char *const um_job_host_names[];   /* read, write */
extern const char *const um_job_kernel_names[]; /* update, read, write, copy, gather */
extern const char *const um_job_advice_names[]; /* read_mostly, preferred_location, accessed_by */

typedef struct um_job {
    uint32_t kind; /* um_job_kind_t */
    uint32_t what; /* index into the names of its kind */
    uint32_t region;
    uint32_t other; /* kernel copy: the region it writes, at the same place */
    uint64_t at, bytes;
    uint64_t step;
    uint64_t ns;    /* host access or kernel with all its data there */
    int32_t device; /* prefetch, advice: 0 or UM_DEVICE_HOST */
    uint32_t stream;
    bool race; /* `racers` threads meanwhile prefetch the range to where it is used */
} um_job_t;

typedef struct um_job_list {
    size_t n;
    um_job_t *jobs;
} um_job_list_t;

#define UM_JOB_REGIONS_MAX 64

typedef struct um_job_program {
    const char *name;
    const char *gpu;
    uint64_t piece_bytes; /* of one call of a racer */
    uint32_t racers;      /* threads, each takes every racers-th piece */
    uint32_t n_regions;
    uint64_t region_bytes[UM_JOB_REGIONS_MAX];
    um_job_list_t setup, body;
} um_job_program_t;

/* The set-up, then `rounds` of the body, with a device-wide wait after the set-up, after `warm` rounds
 * and at the end. rounds may be 0. Errors: those of the builder. */
um_status_t um_job_workload(const um_job_program_t *program, uint32_t warm, uint32_t rounds,
                            um_workload_t **out, char *error, size_t error_bytes);

#endif

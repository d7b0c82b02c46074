/*
 * backtest_ops.h - a measured run as the operations that the measuring program carried out, and how
 * they become a workload. Private to the back-test.
 */
#ifndef UM_BACKTEST_OPS_H
#define UM_BACKTEST_OPS_H

#include "workload.h"

typedef enum um_op_kind {
    UM_OP_HOST = 0,     /* the host reads or writes one word every `step` bytes */
    UM_OP_KERNEL = 1,   /* a launch of one of um_op_kernel_names */
    UM_OP_PREFETCH = 2, /* in calls of `step` bytes */
    UM_OP_ADVISE = 3,
    UM_OP_SYNC = 4 /* waits for helper threads and the device */
} um_op_kind_t;

/* Names in the file, in the order of um_op_kind_t and of um_op_t.what; each ends with NULL. */
extern const char *const um_op_kind_names[];
extern const char *const um_op_host_names[];   /* read, write */
extern const char *const um_op_kernel_names[]; /* update, read, write, copy, gather */
extern const char *const um_op_advice_names[]; /* read_mostly, preferred_location, accessed_by */

typedef struct um_op {
    uint32_t kind; /* um_op_kind_t */
    uint32_t what; /* index into the names of its kind */
    uint32_t region;
    uint32_t other; /* kernel copy: the region it writes, at the same place */
    uint64_t at, bytes;
    uint64_t step;
    uint64_t ns;    /* host access or kernel with all its data there */
    int32_t device; /* prefetch, advice: 0 or UM_DEVICE_HOST */
    uint32_t stream;
    bool race; /* `racers` threads meanwhile prefetch the range to where it is used */
} um_op_t;

typedef struct um_op_list {
    size_t n;
    um_op_t *ops;
} um_op_list_t;

#define UM_OP_REGIONS_MAX 64

typedef struct um_op_program {
    const char *name;
    const char *gpu;
    uint64_t piece_bytes; /* of one call of a racer */
    uint32_t racers;      /* threads, each takes every racers-th piece */
    uint32_t n_regions;
    uint64_t region_bytes[UM_OP_REGIONS_MAX];
    um_op_list_t setup, body;
} um_op_program_t;

/* The set-up, then `rounds` of the body, with a device-wide wait after the set-up, after `warm` rounds
 * and at the end. rounds may be 0. Errors: those of the builder. */
um_status_t um_op_workload(const um_op_program_t *program, uint32_t warm, uint32_t rounds,
                           um_workload_t **out, char *error, size_t error_bytes);

#endif

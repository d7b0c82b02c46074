/*
 * gen.h - programs that never were: traces in which every access is known.
 *
 * A pattern is a small program whose allocations, launches, waits and accesses come as events, as if
 * it had been recorded on a GPU where all data is always there: so its compute times are free of
 * faults. Deterministic: equal options give equal events.
 *
 * Threads: any number of generators side by side.
 */
#ifndef UM_GEN_H
#define UM_GEN_H

#include "workload.h"

/* Every field: 0 = the pattern's default. */
typedef struct um_gen_options {
    uint64_t bytes;      /* managed memory alive at once, about; at least UM_GEN_BYTES_MIN */
    uint32_t iterations; /* of the pattern's loop, 1 to 1,000,000 */
    uint32_t gpus;       /* 1 to 8; only where the pattern uses several */
    uint64_t seed;       /* only where something is drawn by lot */
    double compute;      /* GPU time of a launch over the time its bytes take at UM_GEN_RATE */
} um_gen_options_t;

#define UM_GEN_BYTES_MIN ((uint64_t)1 << 20)
#define UM_GEN_BYTES_MAX ((uint64_t)1 << 46)
/* Bytes a second of device memory that streaming kernels reach on an H200 (4.8 TB/s by its data
 * sheet, of which about five sixths are had). */
#define UM_GEN_RATE 4.0e12
#define UM_GEN_GPU  "NVIDIA H200"

struct um_gen;

typedef struct um_gen_pattern {
    const char *name;
    const char *doc;           /* one line */
    um_gen_options_t defaults; /* gpus 1, and seed 0 = the option means nothing here */
    void (*run)(struct um_gen *gen);
} um_gen_pattern_t;

extern const um_gen_pattern_t um_gen_patterns[]; /* ends with name == NULL */

const um_gen_pattern_t *um_gen_find(const char *name); /* NULL = there is none */

/* The defaults for what is 0. UM_ERR_INVALID with a line when one is outside its range or means
 * nothing for the pattern. */
um_status_t um_gen_complete(const um_gen_pattern_t *pattern, um_gen_options_t *options, char *error,
                            size_t error_bytes);

/* The events, one by one, until fn's owner has seen the last; options complete. The program's come in
 * the order of time, those of the GPU as soon as they are known. UM_ERR_NO_MEMORY. */
um_status_t um_gen_events(const um_gen_pattern_t *pattern, const um_gen_options_t *options,
                          um_event_fn fn, void *ctx);

/* The same as a trace: facts workload.accesses=exact, workload.pattern, workload.options; `version`
 * of umrt. Errors: the writer's. */
um_status_t um_gen_file(const um_gen_pattern_t *pattern, const um_gen_options_t *options,
                        const char *version, const char *path);

/* The same without a file. options NULL = the defaults. Errors: UM_ERR_NOT_FOUND (no such pattern),
 * UM_ERR_INVALID (um_gen_complete), UM_ERR_NO_MEMORY. */
um_status_t um_gen_workload(const char *pattern, const um_gen_options_t *options,
                            um_workload_t **out);

#endif

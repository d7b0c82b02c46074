/*
 * planted.h - made-up programs with one fault each, and healthy ones: is the report's first finding the
 * fault?
 *
 * Two sets. The fitted one is what the rules were written with. The held-out ones (draws 0 to 3) are of
 * other sizes, rounds, numbers of buffers and structures, with healthy work around the fault, drawn by lot
 * from a seed; which structures a draw may use was settled before any was looked at. A draw whose misses were
 * looked at, to mend a rule, is no measure any more: then the next one's figure counts. Where a program
 * turned out not to have the fault that it was named for, it was mended for all draws (three times: what
 * else is on the device was too large beside the data, nothing waited for the late data, and streams without
 * a wait kept a buffer each).
 */
#ifndef UM_PLANTED_H
#define UM_PLANTED_H

#include <stdio.h>

#include "sim/gen_program.h"

#define UM_PLANTED_DRAWS 4u

/* How a program comes to the report. */
typedef enum um_recording {
    UM_RECORDING_EXACT = 0, /* as the simulator tells it; replayed from all accesses there were */
    UM_RECORDING_ORDINARY = 1, /* a trace file of what CUPTI would have told, and no more */
    UM_RECORDING_LOSSY = 2,    /* of which some is missing, and says so */
    UM_RECORDING_NO_CPU = 3,   /* recorded without CPU faults, and says so */
    UM_RECORDINGS = 4
} um_recording_t;
extern const char *const um_recording_name[UM_RECORDINGS];

/* What no simulation tells is told behind it. */
typedef struct um_beside {
    um_event_fn fn;
    void *ctx;
    uint64_t now_ns;
    uint64_t random; /* state of the lots */
} um_beside_t;

typedef struct um_planted {
    const char *kind; /* of finding; NULL = healthy */
    const char *name;
    void (*run)(um_gen_t *gen);
    uint32_t room; /* per cent of its managed memory on the GPU; 0 = all there is */
    void (*beside)(um_beside_t *beside); /* NULL = nothing */
    uint32_t gpus;
    uint32_t
        recordings; /* 1 << um_recording_t: from these its fault can be known; 0 = exact only */
} um_planted_t;

typedef struct um_planted_case {
    const um_planted_t *program;
    um_gen_options_t options;
    uint32_t room;
    um_recording_t recording;
} um_planted_case_t;

/* The i-th of the set; false past the last. */
bool um_planted_fitted(size_t i, um_planted_case_t *out);
bool um_planted_held_out(uint32_t draw, size_t i, um_planted_case_t *out);

typedef struct um_first {
    char estimate[40], replay[40]; /* kind of the first finding, "" = none: by rule, by replay */
} um_first_t;

/* Simulates the program on an H200 and reports it, as text into `text` (NULL = nowhere). False, and said on
 * stderr, where that failed. */
bool um_planted_first(const um_planted_case_t *of, FILE *text, um_first_t *out);

/* Of one set or a part of it: by estimate or by replay. */
typedef struct um_accuracy {
    uint32_t planted, healthy; /* programs */
    uint32_t said, right;      /* first findings, the planted ones among them */
} um_accuracy_t;

void um_accuracy_add(um_accuracy_t *to, const um_planted_t *program, const char *first);
double um_accuracy_precision(const um_accuracy_t *of);
double um_accuracy_recall(const um_accuracy_t *of);

#endif

/*
 * families.h - which of the six families of CUDA memory would serve a buffer best, from the traffic that
 * was measured: who touches it, how often it moves for each use, how much of it, how long it lives.
 */
#ifndef UM_FAMILIES_H
#define UM_FAMILIES_H

#include "collect.h"

typedef enum um_best {
    UM_BEST_MANAGED = 0, /* as it is */
    UM_BEST_HINTED = 1,  /* managed, with prefetches or advice */
    UM_BEST_COPIED =
        2, /* cudaMalloc, with copies from and to pinned memory where the CPU needs it */
    UM_BEST_MAPPED = 3,     /* zero-copy: kept with the CPU, reached over the link */
    UM_BEST_POOL = 4,       /* stream-ordered, with a release threshold */
    UM_BEST_REGISTERED = 5, /* the program's own memory, pinned */
    UM_BEST_COUNT = 6
} um_best_t;

typedef struct um_family_verdict {
    um_best_t best;
    bool change; /* it is not what the program does now */
    uint32_t confidence;
    uint64_t trips;   /* to the GPU, of a byte on average, in thousandths */
    uint64_t uses;    /* launches for each trip, in thousandths; 0 = not known */
    uint64_t density; /* per cent of the 2 MiB blocks that it touched; UINT64_MAX = nothing came */
    const char *why, *measured; /* in short; what was measured of it, "" = nothing; static */
} um_family_verdict_t;

um_family_verdict_t um_family_judge(const um_report_t *report, uint32_t group);
const char *um_best_name(um_best_t best); /* "mapped": in JSON */
const char *um_best_title(um_best_t best);

#endif

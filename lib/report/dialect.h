/*
 * dialect.h - the words in which a change is written: CUDA's runtime calls as each version has them, or a
 * library's. Tables of patterns; code.h fills them in.
 *
 * In a pattern %v is the buffer's name, %p the pointer (with the offset of a part), %n the bytes, %b the
 * same in figures, %N rounded up to 64 KiB, %d the target as a number, %l as a cudaMemLocation, %s the
 * stream, %c the program's own call. '\n' separates lines; one that begins with '^' is written once,
 * however many buffers there are.
 */
#ifndef UM_DIALECT_H
#define UM_DIALECT_H

#include "fix.h"

/* CUDA's calls changed twice; the first is understood up to 12.9. */
typedef enum um_cuda_form {
    UM_CUDA_PLAIN = 0, /* 11.8 to 12.1: an int for the device */
    UM_CUDA_V2 = 1,    /* 12.2 to 12.9: ..._v2 take a cudaMemLocation */
    UM_CUDA_13 = 2,    /* 13: so do the plain names */
    UM_CUDA_FORMS = 3
} um_cuda_form_t;

typedef enum um_dialect_id {
    UM_DIALECT_CUDA = 0,
    UM_DIALECT_RMM,
    UM_DIALECT_UMPIRE,
    UM_DIALECT_KOKKOS,
    UM_DIALECT_AMREX,
    UM_DIALECT_CUPY,
    UM_DIALECT_COUNT
} um_dialect_id_t;

typedef struct um_pattern {
    const char *code; /* NULL = CUDA's call does it */
    const char *undo; /* NULL = the code is taken out again */
    bool whole_only;  /* of a region, not of a part of it */
} um_pattern_t;

typedef struct um_dialect {
    const char *key;          /* "rmm": in JSON */
    const char *title;        /* "RMM" */
    const char *data, *bytes; /* of buffer %v: its address; all its bytes, NULL = in figures */
    const char *device, *stream, *default_stream; /* NULL = as CUDA's code has them */
    bool python;
    /* A pattern for each side, UM_SIDE_NONE for all that have none of their own. */
    um_pattern_t to[UM_DO_COUNT][UM_SIDE_COUNT];
} um_dialect_t;

const um_dialect_t *um_dialect(um_dialect_id_t id);
/* CUDA's calls; key "cuda12", "cuda12_2" or "cuda13". */
const um_dialect_t *um_dialect_cuda(um_cuda_form_t form);
/* The dialect's own pattern for a step, NULL = it has none. */
const um_pattern_t *um_dialect_pattern(const um_dialect_t *dialect, const um_fix_step_t *step);

#endif

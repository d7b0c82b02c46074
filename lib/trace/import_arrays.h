/*
 * import_arrays.h - the lines by which UVM benchmarks print where their managed arrays are:
 *     alloc NAME
 *     Number of allocated Data = N
 *     in api range: 0xFIRST 0xEND          (END is exclusive)
 * Names and ranges are paired by order: one is printed to stdout, the other to stderr, so a name may come
 * before or after its range, and an array may have no name ("data N" then).
 */
#ifndef UM_IMPORT_ARRAYS_H
#define UM_IMPORT_ARRAYS_H

#include "um_event.h"

enum { UM_ARRAY_NAME = 128 };

typedef struct um_array {
    uint64_t first, end;
    uint64_t number; /* as printed, else its place in the log, from 1 */
    char name[UM_ARRAY_NAME];
} um_array_t;

typedef struct um_arrays {
    size_t n;
    um_array_t *array; /* in the order of the log */
    size_t n_names;
    struct um_array_name *name;
    uint64_t number;
} um_arrays_t; /* zero-initialise */

um_status_t um_arrays_line(um_arrays_t *arrays, const char *line);
/* Gives every array its name; after the last line. */
void um_arrays_pair(um_arrays_t *arrays);
void um_arrays_free(um_arrays_t *arrays);

#endif

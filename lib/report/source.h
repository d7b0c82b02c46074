/*
 * source.h - a file of the program's source, read to be patched: its lines as they are, bytes and endings,
 * and what a line stands in (a comment, a macro, a statement that began above).
 *
 * Any bytes are fine but NUL. Nothing is ever written. One thread.
 */
#ifndef UM_SOURCE_H
#define UM_SOURCE_H

#include "um_event.h"

/* Without its ending: "\n", "\r\n" or, of the last one, nothing. */
typedef struct um_text_line {
    const char *at;
    size_t n;
    bool cr, lf;
} um_text_line_t;

typedef struct um_source {
    char *name;  /* relative to the root, as a diff has it */
    char *bytes; /* NUL behind */
    size_t n_bytes;
    um_text_line_t *lines;
    size_t n_lines;
    uint64_t modified_ns; /* since 1970 */
} um_source_t;

/* Finds `file` (as debug information has it) below root: there itself, or by as much of its end as is there
 * once. NULL root: the current folder, and it must be there itself. UM_OK; UM_ERR_NOT_FOUND and why; else
 * NO_MEMORY. */
um_status_t um_source_open(const char *root, const char *file, um_source_t *out, char *why,
                           size_t bytes);
void um_source_close(um_source_t *source);

/* What is before a line, comments left out. */
typedef struct um_source_state {
    bool in_comment; /* or in a string */
    bool in_macro;   /* the line belongs to a directive, or is one */
    bool fresh;      /* a statement may begin: behind ; { } : or a directive, or nothing */
    int depth;       /* of braces */
} um_source_state_t;

/* line from 1 to n_lines. */
um_source_state_t um_source_state(const um_source_t *source, size_t line);
/* Does the block that `from` stands in last until `to`, from < to? */
bool um_source_in_block(const um_source_t *source, size_t from, size_t to);

#endif

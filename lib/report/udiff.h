/*
 * udiff.h - edits of a source file as a unified diff: what 'patch -p0' and 'git apply -p0' take. Lines keep
 * their endings; new ones have those of the line they are put beside.
 */
#ifndef UM_UDIFF_H
#define UM_UDIFF_H

#include <stdio.h>

#include "source.h"

typedef enum um_edit_kind {
    UM_EDIT_BEFORE = 0, /* new lines before the line */
    UM_EDIT_AFTER,      /* or behind it */
    UM_EDIT_REPLACE,    /* the line itself, by one or more */
    UM_EDIT_REMOVE
} um_edit_kind_t;

typedef struct um_edit {
    um_edit_kind_t kind;
    size_t line;      /* 1 and up */
    const char *text; /* without the last ending; "\n" between lines; borrowed */
} um_edit_t;

/* In any order; of one line at most one REPLACE or REMOVE; several BEFORE or AFTER come in the order given.
 * NO_MEMORY; what `out` refuses it keeps as its error. */
um_status_t um_udiff_write(const um_source_t *source, const um_edit_t *edits, size_t n, FILE *out);

#endif

/*
 * dwarf.h - one file's debug information, by libdw. Without libdw nothing opens.
 */
#ifndef UM_DWARF_H
#define UM_DWARF_H

#include "um_event.h"

typedef struct um_dwarf um_dwarf_t;

/* A function as the file names it; strings live as long as the um_dwarf_t, NULL = not known. */
typedef struct um_dwarf_frame {
    const char *linkage; /* mangled */
    const char *name;
    char scope[256]; /* of the name, where there is no linkage: "solver::"; "" = none */
    const char *file, *directory; /* directory: in which it was compiled */
    uint32_t line, column;
    bool fortran, inlined;
} um_dwarf_frame_t;

/* Opens the file, or its debug information found by build id, if it is the recorded build. NULL:
 * `why` says why not. debug_dirs as for um_places_debug_dirs. */
um_dwarf_t *um_dwarf_open(const um_ev_module_t *module, const char *debug_dirs, char *why,
                          size_t why_bytes);
void um_dwarf_close(um_dwarf_t *dwarf); /* NULL is fine */

/* The functions at an offset, innermost first: at most `most`. 0: none is known there. */
size_t um_dwarf_find(um_dwarf_t *dwarf, uint64_t offset, um_dwarf_frame_t *out, size_t most);
/* Why there are no lines: "" where there are. */
const char *um_dwarf_lacks(um_dwarf_t *dwarf);

#endif

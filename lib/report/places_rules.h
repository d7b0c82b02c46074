/*
 * places_rules.h - what is not the user's code, and how names are made readable.
 */
#ifndef UM_PLACES_RULES_H
#define UM_PLACES_RULES_H

#include <stdbool.h>

/* A library through which programs call CUDA: CUDA's own, C's, C++'s, an allocator. */
bool um_is_runtime_module(const char *name);
/* The same by function (readable name) or file, "" where not known. */
bool um_is_runtime_code(const char *function, const char *file);
/* A Python file of the interpreter's library or of an installed package; a module in one. */
bool um_is_python_library(const char *path);

/* malloc'ed "solver::step" of what the compiler or the symbol table says; linkage or name may be NULL;
 * scope ("solver::", "") goes before the name where there is no linkage. NULL: no memory. */
char *um_readable_name(const char *linkage, const char *name, const char *scope, bool fortran);

#endif

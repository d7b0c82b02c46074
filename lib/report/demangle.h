/*
 * demangle.h - C++ names as people write them, when a C++ runtime happens to be there.
 *
 * libstdc++ (or libc++abi) is looked for at run time, so umrt itself needs no C++ runtime; without one
 * names stay as they are.
 */
#ifndef UM_DEMANGLE_H
#define UM_DEMANGLE_H

#include <stdbool.h>

/* malloc'ed copy of the readable name; of the name itself where it is no mangled one. NULL: no
 * memory. */
char *um_demangle(const char *name);
/* The same without parameters and template arguments of the function: "calculate_temp". */
char *um_demangle_short(const char *name);

#endif

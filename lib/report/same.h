/*
 * same.h - is it the same finding, region or kernel as in another run of the program?
 *
 * Names that a report gives contain what differs from run to run and from build to build: addresses,
 * offsets in a module, line numbers, the number of a region. Without them they can be compared.
 */
#ifndef UM_SAME_H
#define UM_SAME_H

#include <stddef.h>

/* Writes `text` without "0x..." and "+0x...", ":LINE" at the end of a word, numbers of regions ("region
 * 3", "12 regions of"), and the clauses of a finding's `where` about addresses, extents and the CPU's
 * program counter; cut off at `bytes`. */
void um_same_name(const char *text, char *out, size_t bytes);

/* The next "FILE:LINE" in a text: where the file name is, its length and the line. Returns where the
 * search goes on, NULL without one. */
const char *um_same_source(const char *text, const char **file, size_t *bytes, unsigned *line);

#endif

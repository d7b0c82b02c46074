/*
 * inside.h - the CUDA runtime that is linked into a program, by what its file holds.
 */
#ifndef UM_INSIDE_H
#define UM_INSIDE_H

#include "target.h"

/* The file of `module`, if it is there and as it was recorded, has a CUDA runtime in it: since which version it may
 * be, into cuda and minor; cuda_why. False: it is not, it has none, or it cannot be read. */
bool um_target_inside(const um_ev_module_t *module, um_target_t *out);

#endif

/*
 * marks.h - the program's NVTX ranges and marks become MARK events.
 *
 * NVTX looks for its listener in NVTX_INJECTION64_PATH at its first call, which may be long before CUDA:
 * `umrt record` names libumrt there. Each library that has NVTX compiled in asks for itself.
 */
#ifndef UM_MARKS_H
#define UM_MARKS_H

#include "runtime.h"

/* Marks are posted to this runtime from now on; NULL = dropped. Any thread. */
void um_marks_attach(um_runtime_t *runtime);

#endif

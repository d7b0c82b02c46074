/*
 * deep.h - recording that sees all that a launch touches (`umrt record --deep`).
 *
 * Data that is on the GPU already is used without a trace. So before each launch the managed regions
 * that it takes as arguments (all of them, where arguments are not known) are prefetched to the host,
 * and after it the launch is waited for: whatever it touches then faults. Slow by design. What the
 * program computes stays as it is. Left alone: regions that the program has advised about, and
 * everything while a stream is being captured.
 *
 * Threads: any; pushes come one at a time.
 */
#ifndef UM_DEEP_H
#define UM_DEEP_H

#include "live.h"

/* At the entry of a launch, before its event is made; the launch's context is current. n = 0 and all =
 * its arguments are unknown. Posts a HINT ("deep") for each push, and before a region's first one an
 * ACCESS for what the CPU has of it. */
void um_deep_push(const CUpti_CallbackData *info, const um_arg_t *args, uint32_t n, bool all);
/* At the exit of a launch call. A kernel that waits for the program is waited for 10 s at most, and no
 * other after it. */
void um_deep_launched(const CUpti_CallbackData *info, uint64_t stream);
/* A stream capture is about to begin somewhere, or has ended or not begun after all. */
void um_deep_capture(bool begins);
void um_deep_advised(uint64_t addr);
void um_deep_context_gone(uint32_t context); /* 0 = all */

#endif

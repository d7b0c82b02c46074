/*
 * crew.h - numbered jobs on several threads.
 */
#ifndef UM_CREW_H
#define UM_CREW_H

#include <stddef.h>
#include <stdint.h>

/* Calls job(ctx, 0 .. n-1), each once, on the calling thread and on up to threads - 1 others, and
 * returns when all are done. Where no thread is to be had, fewer do it. progress (may be NULL) is told
 * after each job, one call at a time, by any thread. */
void um_crew_run(size_t n, uint32_t threads, void (*job)(void *ctx, size_t i), void *ctx,
                 void (*progress)(void *ctx, size_t done, size_t all), void *progress_ctx);

#endif

/*
 * arena.c - keeps CUPTI's worker thread out of mmap_lock's queue.
 *
 * CUPTI's worker turns the driver's records into activity records and mallocs for each (about 250
 * bytes, which it does not give back while records flow). glibc grows a thread's arena one page at a
 * time with mprotect, and mprotect wants mmap_lock for writing, which a program that is taking CPU
 * page faults on managed memory holds for reading nearly all the time. The worker then crawls, the
 * driver's queue overflows and records are lost with nobody told: measured on an H200 (driver
 * 580.159, CUPTI 13.0, glibc 2.39, 2026-11-30), 10 to 55 % of the bytes that migrate back to the CPU, with
 * single cuptiActivityFlushAll calls of 0.3 s; none of them once the arena is grown ahead in big steps.
 *
 * So whenever that thread asks us for a buffer, it first allocates and frees a few MiB in pieces
 * just below the mmap threshold: the arena's top grows (few mprotects), free trims it back with
 * madvise, but what was made writable stays so, and growing into it again needs no lock.
 */
#include "live.h"

#include <stdlib.h>

#ifdef __GLIBC__

#define UM_PIECE_BYTES (120u << 10) /* glibc's smallest mmap threshold is 128 KiB */
#define UM_PIECES      72 /* 8.4 MiB: some 30,000 records, 0.2 s of the densest storm seen */

void um_arena_grow_ahead(void)
{
    void *piece[UM_PIECES];

    for (unsigned i = 0; i < UM_PIECES; i++)
        piece[i] = malloc(UM_PIECE_BYTES);
    /* First to last: they merge, and only the last one meets the arena's top and trims it, once. */
    for (unsigned i = 0; i < UM_PIECES; i++)
        free(piece[i]);
}

#else

void um_arena_grow_ahead(void)
{
}

#endif

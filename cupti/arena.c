/*
 * arena.c - keeps CUPTI's worker thread out of mmap_lock's queue.
 *
 * CUPTI's worker turns the driver's records into activity records. It was seen waiting in mprotect,
 * which wants mmap_lock for writing, while the program, taking CPU page faults on managed memory, holds
 * that lock for reading nearly all the time; glibc grows a thread's arena page by page with mprotect.
 * The worker then crawls and records are lost with nobody told: on an H200 (driver 580.159, CUPTI 13.0,
 * glibc 2.39, 2026-11-30) 0 to 45 % of the bytes that migrate back to the CPU in 13 runs, one of them
 * whole, with single cuptiActivityFlushAll calls of 0.3 s. With glibc.malloc.top_pad at 64 MiB, and with
 * what is below, none. That it is the worker's own mallocs that grow the arena (some 250 bytes a record, by
 * how soon a fixed reserve ran out) is inferred; its user-space stack was not looked at.
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

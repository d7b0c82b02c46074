/*
 * records.h - the buffers that CUPTI fills, and the thread that turns them into events.
 *
 * Buffers come from a bounded pool and are never freed. CUPTI's callbacks only move them, because they
 * may hold CUPTI's lock; decoding, and looking at the page tables after a wait, is done on a thread of
 * our own, so that nothing keeps the drain thread from its millisecond.
 */
#ifndef UM_RECORDS_H
#define UM_RECORDS_H

#include "live.h"

/* Starts the thread. UM_ERR_UNSUPPORTED when this CUPTI has no activity interface. */
um_status_t um_records_start(void);
/* Decodes what is left and ends the thread; waits until `until_ns` (CLOCK_MONOTONIC) at most. */
void um_records_stop(uint64_t until_ns);
/* CLOCK_MONOTONIC minus CUPTI's clock, for what is decoded from now on. */
void um_records_clock(int64_t offset_ns);
/* Buffers with records in them that CUPTI has handed over so far. */
uint64_t um_records_buffers(void);
void um_records_loss(uint64_t count, const char *reason); /* posts LOSS */

/* Kernel times are on: remember which kernel a launch was of. */
void um_records_want_kernels(void);
void um_records_launched(uint32_t correlation, uint32_t kernel);

/* The first launch after the wait `sync` uses these managed regions: what of them does the CPU have?
 * Posts RESIDENCY from the thread. At most once in UM_RESIDENCY_NS, otherwise does nothing; no lock. */
#define UM_RESIDENCY_NS      20000000u
#define UM_RESIDENCY_REGIONS 16u
void um_records_residency(const um_region_t *regions, uint32_t n, uint32_t sync);

#endif

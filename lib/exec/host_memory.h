/*
 * host_memory.h - how much memory the machine still has for this process: what it calls available, and what the
 * limits of its control group and of those above leave (memory.max and memory.high of version 2,
 * memory.limit_in_bytes of version 1). What the kernel can drop at once (inactive file pages) counts as free.
 *
 * Reads a handful of small files, some 50 us; makes no other calls. Threads: any.
 */
#ifndef UM_HOST_MEMORY_H
#define UM_HOST_MEMORY_H

#include "um_event.h"

/* root "" = of this machine; else a folder with proc/ and sys/ in it. UINT64_MAX = nothing says. */
uint64_t um_host_memory_bytes(const char *root);

#endif

/*
 * residency.h - where is it now? Per 2 MiB block of each managed region; the CPU page tables are the
 * ground truth for the host side (PAGEMAP_SCAN, or pagemap reads on Linux before 6.7).
 */
#ifndef UM_RESIDENCY_H
#define UM_RESIDENCY_H

#include "um_advisor.h"

/* ---- the page tables ---- */

typedef struct um_pagemap um_pagemap_t;

um_status_t um_pagemap_open(um_pagemap_t **out); /* /proc/self/pagemap; UNSUPPORTED where it says nothing */
void um_pagemap_close(um_pagemap_t *pagemap);
const char *um_pagemap_method(const um_pagemap_t *pagemap); /* "PAGEMAP_SCAN" or "pagemap" */
/* Present extents of [addr, addr+bytes), in order; writes at most max (neighbours nearer than 64 KiB
 * are merged when more would be needed), returns how many. Any thread. Errors: UM_ERR_IO. */
um_status_t um_pagemap_present(um_pagemap_t *pagemap, uint64_t addr, uint64_t bytes, um_extent_t *out,
                               size_t max, size_t *n, uint64_t *present_bytes);
/* Whether the page at addr is present: one read of 8 bytes. */
bool um_pagemap_page(um_pagemap_t *pagemap, uint64_t addr);

#endif

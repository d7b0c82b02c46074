/*
 * residency.h - where is it now? Per 2 MiB block of each managed region; the CPU page tables are the
 * ground truth for the host side (PAGEMAP_SCAN, or pagemap reads on Linux before 6.7).
 */
#ifndef UM_RESIDENCY_H
#define UM_RESIDENCY_H

#include "um_advisor.h"

/* ---- the page tables ---- */

typedef struct um_pagemap um_pagemap_t;

um_status_t
um_pagemap_open(um_pagemap_t **out); /* /proc/self/pagemap; UNSUPPORTED where it says nothing */
void um_pagemap_close(um_pagemap_t *pagemap);               /* NULL is fine */
const char *um_pagemap_method(const um_pagemap_t *pagemap); /* "PAGEMAP_SCAN" or "pagemap" */
/* Tests: which of the two ways, whatever open found. */
void um_pagemap_use_scan(um_pagemap_t *pagemap, bool use);
/* Present extents of [addr, addr+bytes), in order; writes at most max (neighbours nearer than 64 KiB
 * are merged when more would be needed), returns how many. Any thread. Errors: UM_ERR_IO. */
um_status_t um_pagemap_present(um_pagemap_t *pagemap, uint64_t addr, uint64_t bytes,
                               um_extent_t *out, size_t max, size_t *n, uint64_t *present_bytes);
/* Whether the page at addr is present: one read of 8 bytes. */
bool um_pagemap_page(um_pagemap_t *pagemap, uint64_t addr);

/* ---- the model ----
 *
 * Fed with events, in order, by one thread; asks the page tables only when a launch wants to know
 * about blocks that the CPU may have touched since it last looked:
 *   - a block nobody has touched: at any time;
 *   - a block on the GPU: once the CPU has left a wait for the GPU (SYNC exit) since.
 * A region in which a whole look found nothing is then only sampled (a few pages, among them where
 * something was found before), with a whole look every 2nd, 4th, ... 64th time; any hit ends that.
 * After a launch the blocks of its arguments count as being on its device: if they are not, the page
 * tables will say so.
 */

/* The question, as an interface. All functions from the thread that feeds the model. */
typedef struct um_page_tables {
    void *ctx;
    /* As um_pagemap_present. */
    um_status_t (*present)(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out, size_t max,
                           size_t *n, uint64_t *present_bytes);
    bool (*page)(void *ctx, uint64_t addr);
    uint64_t (*now_ns)(void *ctx); /* when the last answer was true, on the events' clock */
} um_page_tables_t;

/* The tables of this process; *out is valid as long as pagemap. */
void um_page_tables_live(um_pagemap_t *pagemap, um_page_tables_t *out);

typedef struct um_residency um_residency_t;

/* tables (copied) NULL = they cannot be asked: what the GPU took is then believed to stay there. */
um_status_t um_residency_new(const um_page_tables_t *tables, um_residency_t **out);
void um_residency_free(um_residency_t *residency);

/* From now on `fn` is told, as RESIDENCY events, of each extent that a look finds the CPU to have taken
 * since the last one, where it is known to have been on a device meanwhile: present_bytes == bytes, `sync` = the
 * last wait that the CPU has left. NULL = no more. */
void um_residency_tell(um_residency_t *residency, um_event_fn fn, void *ctx);

/* REGION_ALLOC, REGION_FREE, REGION_HINT, HINT, SET, COPY, LAUNCH, SYNC and, of MIGRATE, evictions and their undoing change the model; others are ignored. */
void um_residency_observe(um_residency_t *residency, const um_event_t *event);

/* A live managed region; false when there is none of that id, or the program wants it left alone. */
bool um_residency_region(const um_residency_t *residency, uint32_t region, uint64_t *addr,
                         uint64_t *bytes);

/* The program's word about it, um_region_hint_flag_t bits. */
uint32_t um_residency_word(const um_residency_t *residency, uint32_t region);

/* Its um_region_role, 0 when there is none of that id. */
uint64_t um_residency_role(const um_residency_t *residency, uint32_t region);

/* A launch at now_ns uses [addr, addr+bytes) of the region on `device`: begin before the questions,
 * end after the last one. Between them um_residency_extents looks at the page tables as it must;
 * outside it answers from what it knows. useful = what was found led to a hint: looking that leads to
 * none becomes rare too. */
void um_residency_launch_begin(um_residency_t *residency, uint32_t region, uint64_t addr,
                               uint64_t bytes, uint64_t now_ns);
void um_residency_launch_end(um_residency_t *residency, uint32_t region, int32_t device,
                             bool useful);

/* Between begin and end: the launch is not believed to take these after all. */
void um_residency_leave(um_residency_t *residency, uint32_t region, uint64_t addr, uint64_t bytes);

/* No launch is under way: what may have changed of [addr, addr+bytes) is looked up now; of what is on a device only
 * if `doubt`. */
void um_residency_refresh(um_residency_t *residency, uint32_t region, uint64_t addr, uint64_t bytes,
                          bool doubt);

/* What the CPU may have taken of [addr, addr+bytes) from a device is looked up now, at a launch made at launch_ns, whatever
 * that takes. */
void um_residency_taken(um_residency_t *residency, uint32_t region, uint64_t addr, uint64_t bytes,
                        uint64_t launch_ns);

/* What the CPU has of a block now, by the page tables: bit i = its i-th 64 KiB. `addr` is the block's start,
 * wholly inside the region. What is found gone is believed to be on the GPU. False = they cannot be asked,
 * or do not say it: where advice is in force the GPU may map or duplicate what the CPU has. */
typedef struct um_chunks {
    uint32_t any, all; /* some of it; all of it */
} um_chunks_t;
bool um_residency_peek(um_residency_t *residency, uint32_t region, uint64_t addr, um_chunks_t *out);
/* Bit i = the CPU has all of the i-th of n blocks from `addr` on, wholly inside the region. False as above. */
bool um_residency_whole(um_residency_t *residency, uint32_t region, uint64_t addr, uint32_t n,
                        uint64_t *bits);
/* When an answer of the page tables would be true, on the events' clock; 0 = they cannot be asked. */
uint64_t um_residency_now(const um_residency_t *residency);

/* Several devices take the region: what is only believed to be on another than `device` is looked up when
 * the next launch asks. */
void um_residency_doubt(um_residency_t *residency, uint32_t region, uint64_t addr, uint64_t bytes,
                        int32_t device);

/* In no time: all of it is known to be on `device`, and the CPU has not waited since it was. Says no
 * to what is duplicated, and now and then all the same, for programs that never wait. */
bool um_residency_settled(um_residency_t *residency, uint32_t region, uint64_t addr, uint64_t bytes,
                          int32_t device);
/* The same of what the last launch that left it settled used, for one with its pointer: that much. */
bool um_residency_settled_from(um_residency_t *residency, uint32_t region, uint64_t addr,
                               int32_t device, uint64_t *bytes);

/* Bytes of all regions that are not believed to be on the device, nor mapped by it. */
uint64_t um_residency_missing(const um_residency_t *residency, int32_t device);

/* As um_view_extents: by whole blocks, trimmed to the region. BOTH also stands for host pages that
 * the program's own advice keeps mapped by the GPU. */
size_t um_residency_extents(um_residency_t *residency, uint32_t region, uint64_t addr,
                            uint64_t bytes, um_extent_t *out, size_t max);

/* Bytes of managed memory that are believed to be on a device. Looks at every block. */
uint64_t um_residency_device_bytes(const um_residency_t *residency, int32_t device);

/* Figures since the start. */
typedef struct um_residency_stats {
    uint64_t looks;        /* questions about a range */
    uint64_t samples;      /* questions about a page */
    uint64_t looked_bytes; /* asked about by range */
    uint64_t regions;      /* managed regions ever seen */
} um_residency_stats_t;
void um_residency_stats(const um_residency_t *residency, um_residency_stats_t *out);

#endif

/*
 * region_parts.h - what the files of regions_stat share: groups.c, live.c, fold.c, shared_pages.c.
 */
#ifndef UM_REGION_PARTS_H
#define UM_REGION_PARTS_H

#include "regions_stat.h"

/* No process has memory up there; keeps sums of addresses from wrapping. */
#define UM_ADDR_MAX (UINT64_MAX - 2 * (uint64_t)UM_BLOCK_BYTES)

/* groups.c: allocations of one label, or else of one call site and size. */
uint64_t um_group_key(const um_regions_stat_t *stat, const um_live_t *live, const char *label);
um_status_t um_group_get(um_regions_stat_t *stat, uint64_t key, uint32_t *out);
void um_group_join(um_regions_stat_t *stat, um_live_t *live); /* counts it in its group */
um_status_t um_group_set_label(um_regions_stat_t *stat, um_live_t *live, const char *label);

/* live.c: the regions that are alive, by address. */
size_t um_live_index(const um_regions_stat_t *stat, uint64_t addr); /* first that ends after addr */
um_status_t um_live_insert(um_regions_stat_t *stat, um_live_t *live);
uint64_t um_live_blocks(const um_live_t *live);             /* 2 MiB-aligned blocks that it meets */
void um_live_retire(um_regions_stat_t *stat, size_t index); /* folds, removes, frees */
void um_live_free(um_regions_stat_t *stat, um_live_t *live);

/* fold.c: what a region was is added to its group. */
void um_live_fold(um_regions_stat_t *stat, um_live_t *live);

/* shared_pages.c: 64 KiB pages with more than one region in them. */
um_shared_page_t *um_shared_at(um_regions_stat_t *stat, uint64_t addr); /* NULL: no such page */
/* Two neighbours by address: remembers the page where one ends and the other begins. */
um_status_t um_shared_meet(um_regions_stat_t *stat, const um_live_t *low, const um_live_t *high);
void um_shared_move(um_shared_page_t *page, uint64_t addr, uint64_t end, bool in);
void um_shared_fault(um_shared_page_t *page, uint64_t addr, uint64_t pc, bool cpu);

#endif

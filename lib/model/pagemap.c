/*
 * Reads /proc/self/pagemap: by the PAGEMAP_SCAN ioctl where the kernel has it (Linux 6.7), which skips
 * what is not mapped, else entry by entry.
 */
#include "residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MERGE_BYTES  UM_BIG_PAGE_BYTES
#define PRESENT_BIT  63 /* of a pagemap entry */
#define SCAN_EXTENTS 256
#define READ_PAGES   1024
#define LOWEST_FD    128

/* Kernel interface (Documentation/admin-guide/mm/pagemap.rst); older headers do not have it. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL   _IOWR('f', 16, struct scan_arg)
#define SCAN_PRESENT (1u << 3)

struct um_pagemap {
    int fd;
    bool scan;
};

/* Extents as they come, in order; the tail of `out` is merged when there are too many. */
typedef struct extents {
    uint64_t low, high; /* clips to these */
    um_extent_t *out;
    size_t max, n; /* n may pass max: then only max were written */
    bool merging;
    uint64_t present_bytes, last_end;
} extents_t;

static void compact(extents_t *x)
{
    size_t kept = 0;

    for (size_t i = 1; i < x->n; i++) {
        um_extent_t *last = &x->out[kept];

        if (x->out[i].addr - (last->addr + last->bytes) < MERGE_BYTES)
            last->bytes = x->out[i].addr + x->out[i].bytes - last->addr;
        else
            x->out[++kept] = x->out[i];
    }
    x->n = kept + 1;
}

static void add(extents_t *x, uint64_t start, uint64_t end)
{
    uint64_t gap;

    start = start < x->low ? x->low : start;
    end = end > x->high ? x->high : end;
    gap = x->n ? start - x->last_end : UINT64_MAX;
    x->present_bytes += end - start;
    if (x->n == x->max && x->max && !x->merging) {
        x->merging = true;
        compact(x);
        gap = start - x->last_end;
    }
    x->last_end = end;
    if (gap == 0 || (x->merging && gap < MERGE_BYTES)) {
        if (x->n <= x->max)
            x->out[x->n - 1].bytes = end - x->out[x->n - 1].addr;
        return;
    }
    if (x->n < x->max)
        x->out[x->n] = (um_extent_t){.addr = start,
                                     .bytes = end - start,
                                     .where = UM_WHERE_HOST,
                                     .device = UM_DEVICE_HOST};
    x->n++;
}

static um_status_t scan(const um_pagemap_t *pagemap, uint64_t start, uint64_t end, extents_t *x)
{
    struct scan_region region[SCAN_EXTENTS];
    struct scan_arg arg = {.size = sizeof(arg),
                           .end = end,
                           .vec = (uint64_t)(uintptr_t)region,
                           .vec_len = SCAN_EXTENTS,
                           .category_mask = SCAN_PRESENT,
                           .return_mask = SCAN_PRESENT};

    while (start < end) {
        int found;

        arg.start = start;
        found = ioctl(pagemap->fd, SCAN_IOCTL, &arg);
        if (found < 0 && errno == EINTR)
            continue;
        if (found < 0 || arg.walk_end <= start)
            return UM_ERR_IO;
        for (int i = 0; i < found; i++)
            add(x, region[i].start, region[i].end);
        start = arg.walk_end;
    }
    return UM_OK;
}

static um_status_t read_entries(const um_pagemap_t *pagemap, uint64_t start, uint64_t end,
                                extents_t *x)
{
    uint64_t entry[READ_PAGES];

    while (start < end) {
        uint64_t pages = (end - start) / UM_PAGE_BYTES;
        ssize_t got;

        if (pages > READ_PAGES)
            pages = READ_PAGES;
        got = pread(pagemap->fd, entry, pages * sizeof(entry[0]),
                    (off_t)(start / UM_PAGE_BYTES * sizeof(entry[0])));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < (ssize_t)sizeof(entry[0]))
            return UM_ERR_IO;
        for (size_t i = 0; i < (size_t)got / sizeof(entry[0]); i++, start += UM_PAGE_BYTES)
            if (entry[i] >> PRESENT_BIT)
                add(x, start, start + UM_PAGE_BYTES);
    }
    return UM_OK;
}

/* Out of the way of programs that count on low descriptors, the standard ones above all. */
static int open_high(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);

    if (high < 0)
        return fd;
    close(fd);
    return high;
}

um_status_t um_pagemap_open(um_pagemap_t **out)
{
    char here;
    um_pagemap_t *pagemap = malloc(sizeof(*pagemap));
    extents_t any = {.high = UINT64_MAX};
    uint64_t page = (uint64_t)(uintptr_t)&here / UM_PAGE_BYTES * UM_PAGE_BYTES;

    if (!pagemap)
        return UM_ERR_NO_MEMORY;
    here = 1; /* present, or nothing that pagemap says can be believed */
    pagemap->fd = open_high("/proc/self/pagemap");
    if (pagemap->fd < 0 || !um_pagemap_page(pagemap, (uint64_t)(uintptr_t)&here)) {
        um_pagemap_close(pagemap);
        return UM_ERR_UNSUPPORTED;
    }
    pagemap->scan = scan(pagemap, page, page + UM_PAGE_BYTES, &any) == UM_OK && any.present_bytes;
    *out = pagemap;
    return UM_OK;
}

void um_pagemap_close(um_pagemap_t *pagemap)
{
    if (!pagemap)
        return;
    if (pagemap->fd >= 0)
        close(pagemap->fd);
    free(pagemap);
}

const char *um_pagemap_method(const um_pagemap_t *pagemap)
{
    return pagemap->scan ? "PAGEMAP_SCAN" : "pagemap";
}

void um_pagemap_use_scan(um_pagemap_t *pagemap, bool use)
{
    pagemap->scan = use;
}

um_status_t um_pagemap_present(um_pagemap_t *pagemap, uint64_t addr, uint64_t bytes,
                               um_extent_t *out, size_t max, size_t *n, uint64_t *present_bytes)
{
    uint64_t start = addr / UM_PAGE_BYTES * UM_PAGE_BYTES;
    uint64_t end = (addr + bytes + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES * UM_PAGE_BYTES;
    extents_t x = {.low = addr, .high = addr + bytes, .out = out, .max = max};
    um_status_t status =
        pagemap->scan ? scan(pagemap, start, end, &x) : read_entries(pagemap, start, end, &x);

    if (status != UM_OK)
        return status;
    *n = x.n;
    *present_bytes = x.present_bytes;
    return UM_OK;
}

bool um_pagemap_page(um_pagemap_t *pagemap, uint64_t addr)
{
    uint64_t entry = 0;

    return pread(pagemap->fd, &entry, sizeof(entry),
                 (off_t)(addr / UM_PAGE_BYTES * sizeof(entry))) == (ssize_t)sizeof(entry) &&
           entry >> PRESENT_BIT;
}

/* ---- as an interface ---- */

static um_status_t live_present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out,
                                size_t max, size_t *n, uint64_t *present_bytes)
{
    return um_pagemap_present(ctx, addr, bytes, out, max, n, present_bytes);
}

static bool live_page(void *ctx, uint64_t addr)
{
    return um_pagemap_page(ctx, addr);
}

static uint64_t live_now_ns(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void um_page_tables_live(um_pagemap_t *pagemap, um_page_tables_t *out)
{
    *out = (um_page_tables_t){.ctx = pagemap,
                              .present = live_present,
                              .page = live_page,
                              .now_ns = live_now_ns};
}

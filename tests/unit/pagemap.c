/* The page tables of this very process, asked about memory of our own. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/residency.h"

#define PAGE ((uint64_t)UM_PAGE_BYTES)

static um_pagemap_t *open_pagemap(bool scan)
{
    um_pagemap_t *pagemap;

    if (um_pagemap_open(&pagemap) != UM_OK)
        cr_skip("no usable /proc/self/pagemap");
    if (scan && strcmp(um_pagemap_method(pagemap), "PAGEMAP_SCAN") != 0)
        cr_skip("this kernel has no PAGEMAP_SCAN");
    um_pagemap_use_scan(pagemap, scan);
    return pagemap;
}

/* Small pages only, so that what is touched is what is present. */
static char *map(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(at, MAP_FAILED);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

static void tells_what_was_touched(bool scan)
{
    um_pagemap_t *pagemap = open_pagemap(scan);
    size_t bytes = 16u << 20, n = 99;
    char *at = map(bytes);
    uint64_t base = (uint64_t)(uintptr_t)at, present = 99;
    um_extent_t out[8];

    cr_assert_eq(um_pagemap_present(pagemap, base, bytes, out, 8, &n, &present), UM_OK);
    cr_assert_eq(n, 0);
    cr_assert_eq(present, 0);

    at[0] = 1;
    memset(at + 100 * PAGE, 1, 50 * PAGE);
    at[bytes - 1] = 1;
    cr_assert_eq(um_pagemap_present(pagemap, base, bytes, out, 8, &n, &present), UM_OK);
    cr_assert_eq(n, 3);
    cr_assert_eq(present, 52 * PAGE);
    cr_assert_eq(out[0].addr, base);
    cr_assert_eq(out[0].bytes, PAGE);
    cr_assert_eq(out[0].where, UM_WHERE_HOST);
    cr_assert_eq(out[0].device, UM_DEVICE_HOST);
    cr_assert_eq(out[1].addr, base + 100 * PAGE);
    cr_assert_eq(out[1].bytes, 50 * PAGE);
    cr_assert_eq(out[2].addr, base + bytes - PAGE);
    cr_assert(um_pagemap_page(pagemap, base + 149 * PAGE + 17));
    cr_assert_not(um_pagemap_page(pagemap, base + 150 * PAGE));

    madvise(at, bytes / 2, MADV_DONTNEED);
    cr_assert_eq(um_pagemap_present(pagemap, base, bytes, out, 8, &n, &present), UM_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(out[0].addr, base + bytes - PAGE);
    munmap(at, bytes);
    um_pagemap_close(pagemap);
}

Test(pagemap, scan_tells_what_was_touched)
{
    tells_what_was_touched(true);
}

Test(pagemap, reading_entries_tells_what_was_touched)
{
    tells_what_was_touched(false);
}

static void clips_to_the_question(bool scan)
{
    um_pagemap_t *pagemap = open_pagemap(scan);
    char *at = map(64 * PAGE);
    uint64_t base = (uint64_t)(uintptr_t)at, present;
    um_extent_t out[2];
    size_t n;

    memset(at, 1, 64 * PAGE);
    cr_assert_eq(um_pagemap_present(pagemap, base + 100, 2 * PAGE, out, 2, &n, &present), UM_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(out[0].addr, base + 100);
    cr_assert_eq(out[0].bytes, 2 * PAGE);
    cr_assert_eq(present, 2 * PAGE);
    um_pagemap_close(pagemap);
}

Test(pagemap, clips_to_the_question)
{
    clips_to_the_question(false);
}

Test(pagemap, scan_clips_to_the_question)
{
    clips_to_the_question(true);
}

static void merges_near_neighbours(bool scan)
{
    um_pagemap_t *pagemap = open_pagemap(scan);
    size_t pages = 4096, n;
    char *at = map(pages * PAGE);
    uint64_t base = (uint64_t)(uintptr_t)at, present;
    um_extent_t *out = calloc(2048, sizeof(*out));

    for (size_t i = 0; i < pages; i += 2)
        at[i * PAGE] = 1; /* every other page */
    cr_assert_eq(um_pagemap_present(pagemap, base, pages * PAGE, out, 2048, &n, &present), UM_OK);
    cr_assert_eq(n, 2048);
    cr_assert_eq(um_pagemap_present(pagemap, base, pages * PAGE, out, 16, &n, &present), UM_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(out[0].addr, base);
    cr_assert_eq(out[0].bytes, (pages - 1) * PAGE);
    cr_assert_eq(present, 2048 * PAGE);
    free(out);
    um_pagemap_close(pagemap);
}

Test(pagemap, scan_merges_near_neighbours_when_there_are_too_many)
{
    merges_near_neighbours(true);
}

Test(pagemap, reading_merges_near_neighbours_when_there_are_too_many)
{
    merges_near_neighbours(false);
}

Test(pagemap, says_how_many_there_were_when_merging_does_not_help)
{
    um_pagemap_t *pagemap = open_pagemap(false);
    size_t n;
    char *at = map(40 * 32 * PAGE);
    uint64_t base = (uint64_t)(uintptr_t)at, present;
    um_extent_t out[4];

    for (size_t i = 0; i < 40; i++)
        at[i * 32 * PAGE] = 1; /* 128 KiB apart */
    cr_assert_eq(um_pagemap_present(pagemap, base, 40 * 32 * PAGE, out, 4, &n, &present), UM_OK);
    cr_assert_eq(n, 40);
    cr_assert_eq(out[3].addr, base + 3 * 32 * PAGE);
    um_pagemap_close(pagemap);
}

Test(pagemap, stays_off_the_standard_descriptors)
{
    um_pagemap_t *pagemap;

    close(STDIN_FILENO);
    pagemap = open_pagemap(false);
    cr_assert_lt(fcntl(STDIN_FILENO, F_GETFD), 0);
    um_pagemap_close(pagemap);
}

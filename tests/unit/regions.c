#include "core/regions.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MIB        (UINT64_C(1) << 20)
#define GIB        (UINT64_C(1) << 30)
#define NO_PADDING (offsetof(um_region_t, generation) + sizeof(uint32_t))

static um_regions_t *table;

static void make(void)
{
    cr_assert_eq(um_regions_new(&table), UM_OK);
}

static void drop(void)
{
    um_regions_free(table);
}

TestSuite(regions, .init = make, .fini = drop);

static uint32_t add(uint64_t addr, uint64_t bytes)
{
    um_region_t region = {.addr = addr, .bytes = bytes, .family = UM_FAMILY_MANAGED};

    cr_assert_eq(um_regions_add(table, &region, NULL, 0, NULL), UM_OK);
    return region.id;
}

/* The id of the region that holds addr, 0 without. */
static uint32_t at(uint64_t addr)
{
    um_region_t region;

    if (!um_regions_find(table, addr, &region))
        return 0;
    cr_assert(addr - region.addr < region.bytes);
    return region.id;
}

Test(regions, finds_every_byte_of_a_region_and_none_beside_it)
{
    uint32_t id = add(4 * MIB + 4096, 5 * MIB);

    cr_assert_eq(id, 1);
    cr_assert_eq(at(4 * MIB + 4096), id);
    cr_assert_eq(at(9 * MIB + 4095), id);
    cr_assert_eq(at(6 * MIB), id);
    cr_assert_eq(at(4 * MIB + 4095), 0);
    cr_assert_eq(at(9 * MIB + 4096), 0);
    cr_assert_eq(at(0), 0);
    cr_assert_eq(at(UINT64_MAX), 0);
}

Test(regions, returns_all_that_was_said_of_a_region)
{
    um_region_t in = {.family = UM_FAMILY_POOL,
                      .addr = 77 * MIB,
                      .bytes = 12345,
                      .device = -2,
                      .flags = UM_REGION_POOL | UM_REGION_ASYNC,
                      .call_site = UINT64_MAX - 5,
                      .alloc_ns = 42};
    um_region_t out;

    cr_assert_eq(um_regions_add(table, &in, NULL, 0, NULL), UM_OK);
    cr_assert(um_regions_find(table, in.addr + 12344, &out));
    cr_assert_arr_eq(&out, &in, NO_PADDING);
    cr_assert(um_regions_find_id(table, in.id, &out));
    cr_assert_arr_eq(&out, &in, NO_PADDING);
    cr_assert_eq(um_regions_remove(table, in.addr, &out), UM_OK);
    cr_assert_arr_eq(&out, &in, NO_PADDING);
    cr_assert_not(um_regions_find_id(table, in.id, &out));
}

Test(regions, keeps_many_small_regions_of_one_block_apart)
{
    enum { N = 4096, STEP = 512 };
    uint32_t id[N];

    for (int i = 0; i < N; i++) { /* in an order that is not that of the addresses */
        int k = i * 1009 % N;

        id[k] = add(64 * MIB + (uint64_t)k * STEP, 256);
    }
    for (int k = 0; k < N; k++) {
        uint64_t addr = 64 * MIB + (uint64_t)k * STEP;

        cr_assert_eq(at(addr), id[k]);
        cr_assert_eq(at(addr + 255), id[k]);
        cr_assert_eq(at(addr + 256), 0);
    }
    for (int k = 0; k < N; k += 2)
        cr_assert_eq(um_regions_remove(table, 64 * MIB + (uint64_t)k * STEP, NULL), UM_OK);
    for (int k = 0; k < N; k++)
        cr_assert_eq(at(64 * MIB + (uint64_t)k * STEP), k % 2 ? id[k] : 0);
}

Test(regions, removes_only_by_the_start_address)
{
    uint32_t id = add(10 * MIB, MIB);

    cr_assert_eq(um_regions_remove(table, 10 * MIB + 1, NULL), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_regions_remove(table, 12 * MIB, NULL), UM_ERR_NOT_FOUND);
    cr_assert_eq(at(10 * MIB), id);
    cr_assert_eq(um_regions_remove(table, 10 * MIB, NULL), UM_OK);
    cr_assert_eq(um_regions_remove(table, 10 * MIB, NULL), UM_ERR_NOT_FOUND);
    cr_assert_eq(at(10 * MIB), 0);
}

Test(regions, counts_generations_of_a_start_address)
{
    for (uint32_t i = 0; i < 5; i++) {
        um_region_t region = {.addr = 8 * MIB, .bytes = 4096 + i, .family = UM_FAMILY_DEVICE};

        cr_assert_eq(um_regions_add(table, &region, NULL, 0, NULL), UM_OK);
        cr_assert_eq(region.generation, i);
        cr_assert_eq(region.id, i + 1, "a new region at an old address has an id of its own");
        cr_assert_eq(um_regions_remove(table, 8 * MIB, NULL), UM_OK);
    }
}

Test(regions, takes_out_what_a_new_region_overlaps_and_names_it)
{
    uint32_t a = add(100 * MIB, MIB), b = add(102 * MIB, MIB), c = add(110 * MIB, 4 * MIB);
    um_region_t region = {.addr = 100 * MIB + 4096, .bytes = 11 * MIB};
    uint32_t stale[2] = {0};
    size_t n;

    cr_assert_eq(um_regions_add(table, &region, stale, 2, &n), UM_OK);
    cr_assert_eq(n, 3);
    cr_assert_eq(stale[0], a);
    cr_assert_eq(stale[1], b);
    cr_assert_eq(at(100 * MIB), 0);
    cr_assert_eq(at(113 * MIB), 0);
    cr_assert_eq(at(105 * MIB), region.id);
    cr_assert_not(um_regions_find_id(table, c, &region));
    cr_assert_eq(um_regions_count(table, UM_FAMILY_UNKNOWN), 1);
}

Test(regions, refuses_ranges_that_are_empty_or_wrap)
{
    um_region_t empty = {.addr = MIB}, wraps = {.addr = UINT64_MAX - 10, .bytes = 100};
    um_region_t to_the_end = {.addr = UINT64_MAX - 9, .bytes = 10};

    cr_assert_eq(um_regions_add(table, &empty, NULL, 0, NULL), UM_ERR_INVALID);
    cr_assert_eq(um_regions_add(table, &wraps, NULL, 0, NULL), UM_ERR_INVALID);
    cr_assert_eq(um_regions_add(table, &to_the_end, NULL, 0, NULL), UM_ERR_INVALID);
    cr_assert_eq(um_regions_count(table, UM_FAMILY_UNKNOWN), 0);
}

Test(regions, holds_addresses_of_all_64_bits_and_regions_of_any_size)
{
    const uint64_t top = UINT64_C(1) << 48;
    uint32_t high = add(UINT64_C(0xffff800000000000), GIB);
    uint32_t across = add(top - MIB, 2 * MIB);
    uint32_t vast = add(UINT64_C(1) << 45, UINT64_C(1) << 43);
    uint32_t large = add(64 * GIB, 700 * GIB);
    uint32_t small = add(UINT64_C(0xfffffffffffff000), 16);

    cr_assert_eq(at(UINT64_C(0xffff800000000000) + GIB - 1), high);
    cr_assert_eq(at(top - MIB), across);
    cr_assert_eq(at(top + MIB - 1), across);
    cr_assert_eq(at(top + MIB), 0);
    cr_assert_eq(at((UINT64_C(1) << 45) + (UINT64_C(1) << 42)), vast);
    cr_assert_eq(at(764 * GIB - 1), large);
    cr_assert_eq(at(764 * GIB), 0);
    cr_assert_eq(at(UINT64_C(0xfffffffffffff00f)), small);
    cr_assert_eq(um_regions_remove(table, top - MIB, NULL), UM_OK);
    cr_assert_eq(um_regions_remove(table, 64 * GIB, NULL), UM_OK);
    cr_assert_eq(at(top), 0);
    cr_assert_eq(at(65 * GIB), 0);
    cr_assert_eq(at(UINT64_C(0xffff800000000000)), high);
}

Test(regions, counts_by_family)
{
    static const um_family_t family[] = {UM_FAMILY_MANAGED, UM_FAMILY_MANAGED, UM_FAMILY_PINNED,
                                         UM_FAMILY_UNKNOWN};

    for (uint64_t i = 0; i < 4; i++) {
        um_region_t region = {.addr = (i + 1) * 4 * MIB, .bytes = MIB, .family = family[i]};

        cr_assert_eq(um_regions_add(table, &region, NULL, 0, NULL), UM_OK);
    }
    cr_assert_eq(um_regions_count(table, UM_FAMILY_UNKNOWN), 4);
    cr_assert_eq(um_regions_count(table, UM_FAMILY_MANAGED), 2);
    cr_assert_eq(um_regions_count(table, UM_FAMILY_PINNED), 1);
    cr_assert_eq(um_regions_remove(table, 4 * MIB, NULL), UM_OK);
    cr_assert_eq(um_regions_count(table, UM_FAMILY_MANAGED), 1);
    cr_assert_eq(um_regions_count(table, UM_FAMILY_UNKNOWN), 3);
    cr_assert_eq(um_regions_count(table, UM_FAMILY_COUNT), 0);
}

Test(regions, takes_given_ids_and_goes_on_after_the_highest)
{
    um_region_t given = {.id = 70000, .addr = MIB, .bytes = 1},
                last = {.id = UINT32_MAX, .addr = 3 * MIB, .bytes = 1};
    um_region_t next = {.addr = 4 * MIB, .bytes = 1}, out;

    cr_assert_eq(um_regions_add(table, &given, NULL, 0, NULL), UM_OK);
    cr_assert_eq(given.id, 70000);
    cr_assert_eq(add(2 * MIB, 1), 70001);
    cr_assert(um_regions_find_id(table, 70000, &out));
    cr_assert_eq(out.addr, MIB);
    cr_assert_not(um_regions_find_id(table, 70000 - 65536, &out), "another id of the same bucket");
    cr_assert_not(um_regions_find_id(table, 0, &out));
    cr_assert_eq(um_regions_add(table, &last, NULL, 0, NULL), UM_OK);
    cr_assert_eq(um_regions_add(table, &next, NULL, 0, NULL), UM_ERR_FULL);
}

static void collect(void *ctx, const um_region_t *region)
{
    uint32_t **next = ctx;

    *(*next)++ = region->id;
}

Test(regions, walks_what_meets_a_range_by_address)
{
    uint32_t d = add(900 * GIB, 4096), b = add(40 * MIB, 8 * MIB), a = add(38 * MIB, 4096);
    uint32_t c = add(48 * MIB, 64), e = add(UINT64_C(1) << 60, GIB);
    uint32_t got[8] = {0}, *next = got;

    um_regions_each(table, 0, UINT64_MAX, collect, &next);
    cr_assert_eq(next - got, 5);
    cr_assert(got[0] == a && got[1] == b && got[2] == c && got[3] == d && got[4] == e);
    next = got;
    um_regions_each(table, 47 * MIB, MIB + 1, collect, &next);
    cr_assert_eq(next - got, 2);
    cr_assert(got[0] == b && got[1] == c);
    next = got;
    um_regions_each(table, 47 * MIB, MIB, collect, &next);
    cr_assert_eq(next - got, 1);
    um_regions_each(table, 47 * MIB, 0, collect, &next);
    cr_assert_eq(next - got, 1);
}

Test(regions, splits_a_region_at_block_boundaries)
{
    um_region_t region = {.addr = 3 * MIB, .bytes = 4 * MIB}, tiny = {.addr = 5, .bytes = 1};
    uint64_t addr, bytes, sum = 0;

    cr_assert_eq(um_region_blocks(&region), 3);
    for (uint32_t i = 0; i < 3; i++) {
        um_region_block(&region, i, &addr, &bytes);
        cr_assert_eq(addr, region.addr + sum);
        sum += bytes;
    }
    cr_assert_eq(sum, region.bytes);
    um_region_block(&region, 0, &addr, &bytes);
    cr_assert_eq(bytes, MIB);
    cr_assert_eq(um_region_blocks(&tiny), 1);
    um_region_block(&tiny, 0, &addr, &bytes);
    cr_assert(addr == 5 && bytes == 1);
}

/* Against a plain list: random regions in a small space, so that all shapes of overlap occur. */
static void agree_with_a_list(uint64_t unit, unsigned large)
{
    enum { SPACE = 4096 };        /* pieces of a unit */
    static uint32_t owner[SPACE]; /* id of each piece's region */
    unsigned seed = 7;

    memset(owner, 0, sizeof owner);
    for (int round = 0; round < 20000; round++) {
        uint64_t start = (unsigned)rand_r(&seed) % SPACE;
        uint64_t n = 1 + (unsigned)rand_r(&seed) % (round % 3 ? 8 : large);
        um_region_t region = {.addr = 256 * MIB + start * unit, .bytes = n * unit};

        if (start + n > SPACE)
            continue;
        if (rand_r(&seed) % 4 == 0) {
            um_status_t status = um_regions_remove(table, region.addr, &region);
            bool starts = owner[start] != 0 && (start == 0 || owner[start - 1] != owner[start]);

            cr_assert_eq(status, starts ? UM_OK : UM_ERR_NOT_FOUND);
            for (uint64_t i = 0; i < SPACE && starts; i++)
                if (owner[i] == region.id)
                    owner[i] = 0;
        } else {
            uint32_t stale[SPACE];
            size_t n_stale;

            cr_assert_eq(um_regions_add(table, &region, stale, SPACE, &n_stale), UM_OK);
            for (size_t s = 0; s < n_stale; s++)
                for (uint64_t i = 0; i < SPACE; i++)
                    if (owner[i] == stale[s])
                        owner[i] = 0;
            for (uint64_t i = start; i < start + n; i++) {
                cr_assert_eq(owner[i], 0, "a region in the way was not taken out");
                owner[i] = region.id;
            }
        }
        for (int i = 0; i < 8; i++) {
            uint64_t k = (unsigned)rand_r(&seed) % SPACE;

            cr_assert_eq(at(256 * MIB + k * unit + unit / 2), owner[k]);
        }
    }
}

Test(regions, agrees_with_a_list_on_random_operations)
{
    agree_with_a_list(32 << 10, 300); /* 128 MiB */
}

Test(regions, agrees_with_a_list_where_hundreds_crowd_in_a_block)
{
    agree_with_a_list(512, 8); /* 2 MiB */
}

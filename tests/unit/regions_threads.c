#include "core/regions.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MIB     (UINT64_C(1) << 20)
#define BASE    (UINT64_C(1) << 40)
#define READERS 4
#define ROUNDS  2000 /* of each writer */
#define STABLE  512  /* regions that are there all the time */
#define LOOKS   1000 /* of each reader, at least: the writers may be through before it runs */

static um_regions_t *table;
static _Atomic bool stop;
static _Atomic uint64_t wrong, missed, hits;
static pthread_barrier_t together;

/* Fields that depend on each other, so that a mixture of two regions shows. */
static um_region_t region_at(uint64_t addr, uint64_t bytes, uint32_t salt)
{
    return (um_region_t){.addr = addr,
                         .bytes = bytes,
                         .call_site = addr ^ salt,
                         .alloc_ns = bytes * 3 + salt,
                         .flags = salt,
                         .family = UM_FAMILY_MANAGED,
                         .device = (int32_t)salt};
}

static bool consistent(const um_region_t *r)
{
    return r->call_site == (r->addr ^ r->flags) && r->alloc_ns == r->bytes * 3 + r->flags &&
           r->device == (int32_t)r->flags && r->id != 0;
}

/* Stable regions of 4 KiB lie every 16 KiB; the writers' ones come and go between them. */
static uint64_t stable_addr(uint32_t i)
{
    return BASE + i * UINT64_C(16384);
}

static void *reader(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    uint64_t n = 0;

    pthread_barrier_wait(&together);
    for (int look = 0; look < LOOKS || !atomic_load(&stop); look += look < LOOKS) {
        uint32_t i = (unsigned)rand_r(&seed) % STABLE;
        uint64_t inside = (unsigned)rand_r(&seed) % 4096;
        uint64_t anywhere = BASE + (unsigned)rand_r(&seed) % (16 * MIB);
        um_region_t got;

        if (!um_regions_find(table, stable_addr(i) + inside, &got) || got.id != i + 1)
            atomic_fetch_add(&missed, 1);
        else if (!consistent(&got))
            atomic_fetch_add(&wrong, 1);
        if (!um_regions_find_id(table, i + 1, &got) || got.addr != stable_addr(i))
            atomic_fetch_add(&missed, 1);
        if (um_regions_find(table, anywhere, &got)) {
            n++;
            if (!consistent(&got) || anywhere - got.addr >= got.bytes)
                atomic_fetch_add(&wrong, 1);
        }
        if (um_regions_find_id(table, STABLE + 1 + (unsigned)rand_r(&seed) % 5000, &got) &&
            !consistent(&got))
            atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&hits, n);
    return NULL;
}

/* Small regions between the stable ones, and large ones over the blocks after them. */
static void *writer(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg * 77;

    pthread_barrier_wait(&together);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t i = (unsigned)rand_r(&seed) % STABLE;
        uint64_t addr = stable_addr(i) + 4096 * (1 + (unsigned)rand_r(&seed) % 3);
        um_region_t region = region_at(addr, 4096, (uint32_t)round);

        if (round % 16 == 0)
            region =
                region_at(BASE + (8 + (unsigned)rand_r(&seed) % 4) * MIB, 3 * MIB, (uint32_t)round);
        if (rand_r(&seed) % 2)
            um_regions_add(table, &region, NULL, 0, NULL);
        else
            um_regions_remove(table, region.addr, NULL);
    }
    return NULL;
}

static void run(void *(*write)(void *))
{
    pthread_t readers[READERS], writers[2];

    atomic_store(&stop, false);
    cr_assert_eq(um_regions_new(&table), UM_OK);
    for (uint32_t i = 0; i < STABLE; i++) {
        um_region_t region = region_at(stable_addr(i), 4096, i);

        cr_assert_eq(um_regions_add(table, &region, NULL, 0, NULL), UM_OK);
    }
    cr_assert_eq(pthread_barrier_init(&together, NULL, READERS + 2), 0);
    for (uintptr_t i = 0; i < READERS; i++)
        cr_assert_eq(pthread_create(&readers[i], NULL, reader, (void *)(i + 1)), 0);
    for (uintptr_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&writers[i], NULL, write, (void *)(i + 1)), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    pthread_barrier_destroy(&together);
    cr_assert_eq(atomic_load(&missed), 0);
    cr_assert_eq(atomic_load(&wrong), 0);
    um_regions_free(table);
}

Test(regions_threads, readers_see_whole_regions_and_miss_none_that_stays)
{
    run(writer);
    cr_assert_gt(atomic_load(&hits), 0);
}

/* The same address again and again, with another size each time. */
static void *rewriter(void *arg)
{
    unsigned salt = (unsigned)(uintptr_t)arg << 20;

    pthread_barrier_wait(&together);
    for (unsigned round = 0; round < ROUNDS; round++) {
        um_region_t region =
            region_at(stable_addr(round % STABLE) + 4096, 256 + round % 4000, salt + round);

        um_regions_add(table, &region, NULL, 0, NULL);
        um_regions_remove(table, region.addr, NULL);
    }
    return NULL;
}

Test(regions_threads, a_reused_address_never_shows_a_mixture)
{
    run(rewriter);
}

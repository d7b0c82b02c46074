/*
 * Lookup in the region table at 100,000 live regions: 8 threads read while one adds and removes.
 * Prints the CPU time of one lookup (of the threads, so that it means the same on few cores), median
 * and best of a few rounds; the loop without the lookup is measured and taken off. The addresses are
 * random over all regions, which is the worst case for the caches, and in the last lines over 1,000
 * of them, as a program has in use at a time.
 * usage: bench_regions [lookups a thread and round, in millions]
 */
#include "core/regions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIVE    100000u
#define READERS 8
#define ROUNDS  7
#define PROBES  (1u << 20)
#define BASE    (UINT64_C(0x7f0000000000) - (UINT64_C(1) << 40))

static um_regions_t *table;
static uint64_t addr_of[LIVE], bytes_of[LIVE];
static uint64_t probe[PROBES]; /* random addresses inside random regions */
static uint32_t probe_id[PROBES];
static uint64_t per_thread = 2000000;
static _Atomic bool stop;
static _Atomic uint64_t changes;

typedef struct result {
    double ns, id_ns, empty_ns;
    uint64_t hits, id_hits;
} result_t;

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *reader(void *arg)
{
    result_t *r = arg;
    uint32_t at = (uint32_t)((uintptr_t)arg >> 4) * 7919u;
    uint64_t sum = 0;
    um_region_t region;
    double t0 = cpu_ns(), t1, t2;

    for (uint64_t i = 0; i < per_thread; i++)
        sum += probe[(at + i) & (PROBES - 1)];
    __asm__ volatile("" : : "r"(sum));
    t1 = cpu_ns();
    r->empty_ns = (t1 - t0) / (double)per_thread;
    for (uint64_t i = 0; i < per_thread; i++)
        r->hits += um_regions_find(table, probe[(at + i) & (PROBES - 1)], &region);
    t2 = cpu_ns();
    r->ns = (t2 - t1) / (double)per_thread - r->empty_ns;
    for (uint64_t i = 0; i < per_thread; i++)
        r->id_hits += um_regions_find_id(table, probe_id[(at + i) & (PROBES - 1)], &region);
    r->id_ns = (cpu_ns() - t2) / (double)per_thread - r->empty_ns;
    return NULL;
}

static void *writer(void *arg)
{
    unsigned seed = 3;

    (void)arg;
    while (!atomic_load(&stop)) {
        uint32_t i = (uint32_t)rand_r(&seed) % LIVE;
        um_region_t region = {.addr = addr_of[i],
                              .bytes = bytes_of[i],
                              .family = UM_FAMILY_MANAGED};

        um_regions_remove(table, addr_of[i], &region);
        um_regions_add(table, &region, NULL, 0, NULL); /* with its old id */
        atomic_fetch_add(&changes, 1);
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One round: mean over the readers. Returns the share of hits. */
static double round_of(unsigned readers, bool churn, double *ns, double *id_ns)
{
    pthread_t thread[READERS], churner;
    result_t result[READERS] = {{0}};
    uint64_t hits = 0;

    atomic_store(&stop, false);
    if (churn)
        pthread_create(&churner, NULL, writer, NULL);
    for (unsigned i = 0; i < readers; i++)
        pthread_create(&thread[i], NULL, reader, &result[i]);
    for (unsigned i = 0; i < readers; i++)
        pthread_join(thread[i], NULL);
    atomic_store(&stop, true);
    if (churn)
        pthread_join(churner, NULL);
    *ns = *id_ns = 0;
    for (unsigned i = 0; i < readers; i++) {
        *ns += result[i].ns / readers;
        *id_ns += result[i].id_ns / readers;
        hits += result[i].hits;
    }
    return (double)hits / (double)(per_thread * readers);
}

/* Region i's place behind `end`, the end of the one before it. stride and bytes say how regions lie,
 * 0: one after the other, 512 bytes times a power of 2 up to 1 MiB. */
static uint64_t place(uint32_t i, uint64_t end, uint64_t stride, uint64_t bytes, unsigned *seed)
{
    addr_of[i] = stride != 0 ? BASE + i * stride : end;
    bytes_of[i] = bytes != 0 ? bytes : UINT64_C(512) << (unsigned)rand_r(seed) % 12;
    return addr_of[i] + bytes_of[i];
}

static void run(const char *what, uint64_t stride, uint64_t bytes, unsigned readers, bool churn,
                uint32_t in_use)
{
    double ns[ROUNDS], id_ns[ROUNDS], hits = 0;
    uint64_t end = BASE;
    unsigned seed = 1;

    if (um_regions_new(&table) != UM_OK)
        exit(1);
    for (uint32_t i = 0; i < LIVE; i++) {
        um_region_t region = {.family = UM_FAMILY_MANAGED};

        end = place(i, end, stride, bytes, &seed);
        region.addr = addr_of[i];
        region.bytes = bytes_of[i];
        if (um_regions_add(table, &region, NULL, 0, NULL) != UM_OK)
            exit(1);
    }
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t k = (uint32_t)rand_r(&seed) % in_use * (LIVE / in_use);

        probe[i] = addr_of[k] + (uint64_t)rand_r(&seed) % bytes_of[k];
        probe_id[i] = k + 1;
    }
    atomic_store(&changes, 0);
    for (int i = 0; i < ROUNDS; i++)
        hits += round_of(readers, churn, &ns[i], &id_ns[i]) / ROUNDS;
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    qsort(id_ns, ROUNDS, sizeof *id_ns, by_value);
    printf("%-24s %u reading%-7s by address %6.1f (%.1f) ns  by id %6.1f (%.1f) ns  hits %.3f %%"
           "  changes %.2f M\n",
           what, readers, churn ? ", churn" : "", ns[ROUNDS / 2], ns[0], id_ns[ROUNDS / 2],
           id_ns[0], 100 * hits, (double)atomic_load(&changes) / 1e6);
    um_regions_free(table);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *what;
        uint64_t stride, bytes;
    } shape[] = {
        {"4 KiB, 512 in a block", 4096, 4096},
        {"64 KiB, 32 in a block", 65536, 65000},
        {"512 B to 1 MiB, mixed", 0, 0},
        {"2 MiB, block-aligned", 2 << 20, 2 << 20},
        {"9 MiB, block-aligned", 10 << 20, 9 << 20},
        {"9 MiB, blocks shared", (9 << 20) + 65536, 9 << 20},
    };

    if (argc > 1)
        per_thread = strtoull(argv[1], NULL, 10) * 1000000;
    printf("%u live regions; median (best) of %d rounds\n", LIVE, ROUNDS);
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        run(shape[i].what, shape[i].stride, shape[i].bytes, 1, false, LIVE);
        run(shape[i].what, shape[i].stride, shape[i].bytes, READERS, true, LIVE);
    }
    printf("1,000 of them in use\n");
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        run(shape[i].what, shape[i].stride, shape[i].bytes, READERS, true, 1000);
    return 0;
}

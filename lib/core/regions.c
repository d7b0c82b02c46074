/*
 * The region table: records of the live regions, found by address (region_index.c) and by id, their
 * ids and generations.
 *
 * Readers never wait: a record's memory stays a record until the table is freed, and what is read of
 * it is trusted only if its sequence number says that no writer was at it. A writer makes a record
 * complete before it shows it and takes it out of sight before it changes it, so a reader retries only
 * when a writer got further.
 */
#include "region_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UM_ID_BUCKETS      65536u
#define UM_CHUNK_MIN       (16u << 10) /* records are allocated in chunks that double from here */
#define UM_CHUNK_MAX       (2u << 20)  /* to one huge page */
#define UM_GENERATIONS_MAX (1u << 16)

typedef struct um_chunk {
    struct um_chunk *next;
    um_record_t record[]; /* from the second cache line on */
} um_chunk_t;

/* How often a start address was used; open addressing, addr + 1 as the key, 0 = empty. */
typedef struct um_generation {
    uint64_t key;
    uint32_t count;
} um_generation_t;

struct um_regions {
    /* read by readers */
    um_region_index_t index; /* its arrays: writers */
    _Atomic uintptr_t bucket[UM_ID_BUCKETS];
    _Atomic uint64_t count[UM_FAMILY_COUNT]; /* [UM_FAMILY_UNKNOWN] = all */

    /* writers only, under lock */
    pthread_mutex_t lock;
    uint32_t last_id;
    um_record_t *free_records;
    um_chunk_t *chunks;
    size_t chunk_bytes; /* of the last one */
    um_generation_t *generations;
    uint32_t n_generations, generations_size, generation_floor;
};

/* ---- records ---- */

/* Writers only: nobody else changes it. */
static void um_record_read(const um_record_t *record, um_region_t *out)
{
    um_record_copy(record, UM_GET(record->addr), 0, out);
}

static void um_record_write(um_record_t *record, const um_region_t *region)
{
    uint32_t sequence = atomic_load_explicit(&record->sequence, memory_order_relaxed);

    UM_PUT(record->sequence, sequence + 1);
    UM_PUT(record->id, region->id);
    UM_PUT(record->addr, region->addr);
    UM_PUT(record->bytes, region->bytes);
    UM_PUT(record->call_site, region->call_site);
    UM_PUT(record->alloc_ns, region->alloc_ns);
    UM_PUT(record->family, region->family);
    UM_PUT(record->flags, region->flags);
    UM_PUT(record->device, (uint32_t)region->device);
    UM_PUT(record->generation, region->generation);
    UM_PUT(record->sequence, sequence + 2);
}

static um_record_t *um_record_next(const um_record_t *record)
{
    return (um_record_t *)UM_GET(record->next);
}

static um_record_t *um_record_new(um_regions_t *t)
{
    um_record_t *record = t->free_records;
    size_t bytes = t->chunk_bytes == 0             ? UM_CHUNK_MIN
                   : t->chunk_bytes < UM_CHUNK_MAX ? t->chunk_bytes * 2
                                                   : UM_CHUNK_MAX;
    um_chunk_t *chunk;

    if (record != NULL) {
        t->free_records = um_record_next(record);
        return record;
    }
    chunk = aligned_alloc(bytes, bytes);
    if (chunk == NULL)
        return NULL;
    if (bytes == UM_CHUNK_MAX) /* lookups are random accesses: spare them the page walks */
        madvise(chunk, bytes, MADV_HUGEPAGE);
    memset(chunk, 0, bytes);
    chunk->next = t->chunks;
    t->chunks = chunk;
    t->chunk_bytes = bytes;
    for (size_t i = (bytes - sizeof *chunk) / sizeof *record - 1; i > 0; i--) {
        UM_PUT(chunk->record[i].next, (uintptr_t)t->free_records);
        t->free_records = &chunk->record[i];
    }
    return &chunk->record[0];
}

static void um_record_free(um_regions_t *t, um_record_t *record)
{
    static const um_region_t dead;

    um_record_write(record, &dead);
    UM_PUT(record->next, (uintptr_t)t->free_records);
    t->free_records = record;
}

bool um_regions_find(const um_regions_t *t, uint64_t addr, um_region_t *out)
{
    return um_region_index_find(&t->index, addr, out);
}

/* ---- by id: hash chains whose end names the bucket, so that a reader who was led into another chain
 * by a record that moved there notices (as in the kernel's "nulls" lists) ---- */

static uintptr_t um_chain_end(uint32_t bucket)
{
    return (uintptr_t)bucket << 1 | 1;
}

static void um_id_insert(um_regions_t *t, um_record_t *record, uint32_t id)
{
    _Atomic uintptr_t *head = &t->bucket[id % UM_ID_BUCKETS];

    UM_PUT(record->next, UM_GET(*head));
    UM_PUT(*head, (uintptr_t)record);
}

static void um_id_remove(um_regions_t *t, um_record_t *record)
{
    _Atomic uintptr_t *link = &t->bucket[UM_GET(record->id) % UM_ID_BUCKETS];

    while (UM_GET(*link) != (uintptr_t)record)
        link = &((um_record_t *)UM_GET(*link))->next;
    UM_PUT(*link, UM_GET(record->next));
}

bool um_regions_find_id(const um_regions_t *t, uint32_t id, um_region_t *out)
{
    uint32_t bucket = id % UM_ID_BUCKETS;
    uintptr_t link;

    if (id == 0)
        return false;
restart:
    link = UM_GET(t->bucket[bucket]);
    while ((link & 1) == 0) {
        const um_record_t *record = (const um_record_t *)link;
        uint32_t there = link != 0 ? UM_GET(record->id) : 0;

        /* dead or of another chain: it left this one after the link to it was read */
        if (there == 0 || there % UM_ID_BUCKETS != bucket)
            goto restart;
        if (there == id) {
            if (um_record_copy(record, UM_GET(record->addr), id, out))
                return true;
            goto restart;
        }
        link = UM_GET(record->next);
    }
    if (link != um_chain_end(bucket))
        goto restart;
    return false;
}

/* ---- generations ---- */

static um_generation_t *um_generation_of(um_generation_t *table, uint32_t size, uint64_t key)
{
    uint64_t i = (key * UINT64_C(0x9E3779B97F4A7C15)) >> 32;

    while (table[i & (size - 1)].key != 0 && table[i & (size - 1)].key != key)
        i++;
    return &table[i & (size - 1)];
}

/*
 * Counts a use of a start address and says how many there were before. A program that never uses an
 * address twice would fill the table: when it is full it is forgotten, and every address then starts
 * from a number that none had reached, so that (address, generation) still names one region only.
 */
static uint32_t um_generation_next(um_regions_t *t, uint64_t addr)
{
    uint64_t key = addr + 1;
    um_generation_t *found;

    if (t->n_generations >= UM_GENERATIONS_MAX) {
        for (uint32_t i = 0; i < t->generations_size; i++)
            if (t->generations[i].count > t->generation_floor)
                t->generation_floor = t->generations[i].count;
        memset(t->generations, 0, t->generations_size * sizeof *t->generations);
        t->n_generations = 0;
    }
    if (t->n_generations * 2 >= t->generations_size) {
        uint32_t size = t->generations_size != 0 ? t->generations_size * 2 : 1024;
        um_generation_t *bigger = calloc(size, sizeof *bigger);

        if (bigger == NULL && t->n_generations + 1 >= t->generations_size)
            return t->generation_floor; /* out of memory: no history */
        for (uint32_t i = 0; bigger != NULL && i < t->generations_size; i++)
            if (t->generations[i].key != 0)
                *um_generation_of(bigger, size, t->generations[i].key) = t->generations[i];
        if (bigger != NULL) {
            free(t->generations);
            t->generations = bigger;
            t->generations_size = size;
        }
    }
    found = um_generation_of(t->generations, t->generations_size, key);
    if (found->key == 0) {
        found->key = key;
        found->count = t->generation_floor;
        t->n_generations++;
    }
    return found->count++;
}

/* ---- writers ---- */

static void um_count(um_regions_t *t, uint32_t family, int by)
{
    atomic_fetch_add_explicit(&t->count[UM_FAMILY_UNKNOWN], (uint64_t)(int64_t)by,
                              memory_order_relaxed);
    if (family != UM_FAMILY_UNKNOWN && family < UM_FAMILY_COUNT)
        atomic_fetch_add_explicit(&t->count[family], (uint64_t)(int64_t)by, memory_order_relaxed);
}

static void um_unlink(um_regions_t *t, um_record_t *record)
{
    um_region_index_remove(&t->index, record);
    um_id_remove(t, record);
    um_count(t, UM_GET(record->family), -1);
    um_record_free(t, record);
}

static void um_link(um_regions_t *t, um_record_t *record, const um_region_t *region)
{
    um_record_write(record, region);
    um_id_insert(t, record, region->id);
    um_region_index_insert(&t->index, record);
    um_count(t, region->family, 1);
}

um_status_t um_regions_add(um_regions_t *t, um_region_t *region, uint32_t *stale, size_t max_stale,
                           size_t *n_stale)
{
    uint64_t last = region->addr + (region->bytes - 1);
    um_status_t status = UM_OK;
    um_record_t *record;
    size_t removed = 0;

    if (region->bytes == 0 || last < region->addr || last == UINT64_MAX)
        return UM_ERR_INVALID;
    pthread_mutex_lock(&t->lock);
    if (region->id == 0 && t->last_id == UINT32_MAX) {
        status = UM_ERR_FULL;
        goto out;
    }
    while ((record = um_region_index_first(&t->index, region->addr, last)) != NULL) {
        if (stale != NULL && removed < max_stale)
            stale[removed] = UM_GET(record->id);
        removed++;
        um_unlink(t, record);
    }
    record = um_region_index_reserve(&t->index, region->addr, last) ? um_record_new(t) : NULL;
    if (record == NULL) {
        status = UM_ERR_NO_MEMORY;
        goto out;
    }
    if (region->id == 0)
        region->id = t->last_id + 1;
    if (region->id > t->last_id)
        t->last_id = region->id;
    region->generation = um_generation_next(t, region->addr);
    um_link(t, record, region);
out:
    pthread_mutex_unlock(&t->lock);
    if (n_stale != NULL)
        *n_stale = removed;
    return status;
}

um_status_t um_regions_remove(um_regions_t *t, uint64_t addr, um_region_t *out)
{
    um_status_t status = UM_ERR_NOT_FOUND;
    um_record_t *record;

    pthread_mutex_lock(&t->lock);
    record = um_region_index_first(&t->index, addr, addr);
    if (record != NULL && UM_GET(record->addr) == addr) {
        if (out != NULL)
            um_record_read(record, out);
        um_unlink(t, record);
        status = UM_OK;
    }
    pthread_mutex_unlock(&t->lock);
    return status;
}

void um_regions_each(um_regions_t *t, uint64_t addr, uint64_t bytes,
                     void (*fn)(void *ctx, const um_region_t *region), void *ctx)
{
    uint64_t last = addr + (bytes - 1);
    um_record_t *record;

    if (bytes == 0)
        return;
    if (last < addr)
        last = UINT64_MAX;
    pthread_mutex_lock(&t->lock);
    while ((record = um_region_index_first(&t->index, addr, last)) != NULL) {
        um_region_t copy;

        um_record_read(record, &copy);
        fn(ctx, &copy);
        if (copy.addr + (copy.bytes - 1) >= last)
            break;
        addr = copy.addr + copy.bytes;
    }
    pthread_mutex_unlock(&t->lock);
}

uint64_t um_regions_count(const um_regions_t *t, um_family_t family)
{
    return (unsigned)family < UM_FAMILY_COUNT
               ? atomic_load_explicit(&t->count[family], memory_order_relaxed)
               : 0;
}

/* ---- sub-ranges ---- */

uint32_t um_region_blocks(const um_region_t *region)
{
    if (region->bytes == 0)
        return 0;
    return (uint32_t)(((region->addr + (region->bytes - 1)) >> UM_BLOCK_SHIFT) -
                      (region->addr >> UM_BLOCK_SHIFT) + 1);
}

void um_region_block(const um_region_t *region, uint32_t n, uint64_t *addr, uint64_t *bytes)
{
    uint64_t last = region->addr + (region->bytes - 1);
    uint64_t start =
        (region->addr & ~(uint64_t)(UM_BLOCK_BYTES - 1)) + (uint64_t)n * UM_BLOCK_BYTES;
    uint64_t end = start + (UM_BLOCK_BYTES - 1);

    if (start < region->addr)
        start = region->addr;
    if (end > last)
        end = last;
    *addr = start;
    *bytes = end - start + 1;
}

/* ---- life ---- */

um_status_t um_regions_new(um_regions_t **out)
{
    um_regions_t *t = calloc(1, sizeof *t);

    if (t == NULL)
        return UM_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < UM_ID_BUCKETS; i++)
        atomic_init(&t->bucket[i], um_chain_end(i));
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return UM_OK;
}

void um_regions_free(um_regions_t *t)
{
    if (t == NULL)
        return;
    um_region_index_clear(&t->index);
    for (um_chunk_t *chunk = t->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(t->generations);
    free(t); /* the mutex is not destroyed: a forked child may have inherited it locked */
}

/*
 * The region table.
 *
 * Addresses below 2^48 are found through a radix over 2 MiB blocks: a directory of leaves, a leaf of
 * slots, a slot for each block. A slot is one word: empty, the only region of the block, or a sorted
 * array of its regions. What cannot be found that way (addresses above, regions of more than 4 TiB)
 * is in one more slot, the wide one, which is searched linearly.
 *
 * Readers never wait. Memory that a reader may hold a pointer to (leaves, records, arrays) keeps its
 * type until the table is freed, so a stale pointer is harmless; what is read through it is trusted
 * only if it is consistent (the record's sequence number), and a "not here" only if the slot has not
 * changed meanwhile (the slot's version). A writer makes a record complete before a slot shows it and
 * takes it out of the slots before it changes it, so a reader retries only when a writer got further.
 *
 * Shared fields are C11 atomics. Fields that a sequence number guards are stored with release and
 * loaded with acquire order instead of plain accesses between fences: free on x86, one instruction
 * elsewhere, and ThreadSanitizer understands it.
 */
#include "regions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UM_BLOCK_SHIFT     21
#define UM_LEAF_SHIFT      14 /* slots of a leaf: 32 GiB */
#define UM_DIRECTORY_SHIFT (48 - UM_BLOCK_SHIFT - UM_LEAF_SHIFT)
#define UM_LEAF_SLOTS      (1u << UM_LEAF_SHIFT)
#define UM_DIRECTORY_SIZE  (1u << UM_DIRECTORY_SHIFT)
#define UM_RADIX_END       (UINT64_C(1) << 48)
#define UM_WIDE_BYTES      (UINT64_C(1) << 42) /* from here on a slot for each block is too dear */
#define UM_ID_BUCKETS      65536u
#define UM_CHUNK_MIN       (16u << 10) /* records are allocated in chunks that double from here */
#define UM_CHUNK_MAX       (2u << 20)  /* to one huge page */
#define UM_ARRAY_CLASSES   22          /* arrays of 2^class entries: one a byte of a block */
#define UM_GENERATIONS_MAX (1u << 20)

/* A region as the table holds it; one cache line. Dead while id is 0. */
typedef struct um_record {
    _Alignas(64) _Atomic uint32_t sequence; /* odd while a writer changes the rest */
    _Atomic uint32_t id;
    _Atomic uint64_t addr, bytes;
    _Atomic uint64_t call_site, alloc_ns;
    _Atomic uint32_t family, flags, device, generation;
    _Atomic uintptr_t next; /* in its id bucket, or in the free list; see um_chain_end */
} um_record_t;
_Static_assert(sizeof(um_record_t) == 64, "a record is one cache line");

/*
 * The regions of one block, or of the wide slot, by address. An entry packs the region's start inside
 * the block (0 when it starts before it) above the record's address in cache lines: 21 + 42 bits.
 * Behind the entries lie as many cells and one more: cell k counts the entries that start before the
 * k-th part of the block, so that a search begins where it ends if regions are of like size.
 */
typedef struct um_array {
    _Atomic uint32_t count;
    uint32_t class;           /* capacity 1 << class, for ever */
    struct um_array *next;    /* free list of its class; writers only */
    struct um_array *all;     /* every array there is; writers only */
    _Atomic uint64_t entry[]; /* zero or a packed record, never anything else */
} um_array_t;

/*
 * A slot: a version (16 bits) and a pointer to a cache line (42 bits, then zeros) to which an array
 * adds 1 and its class in the bits above it, so that a reader need not fetch the array's head.
 */
typedef _Atomic uint64_t um_slot_t;
#define UM_SLOT_POINTER ((UINT64_C(1) << 48) - 64)
#define UM_SLOT_ARRAY   UINT64_C(1)
#define UM_SLOT_CLASS   1 /* shift */

typedef struct um_leaf {
    um_slot_t slot[UM_LEAF_SLOTS];
} um_leaf_t;

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
    _Atomic(um_leaf_t *) directory[UM_DIRECTORY_SIZE];
    _Atomic uintptr_t bucket[UM_ID_BUCKETS];
    um_slot_t wide;
    _Atomic uint64_t count[UM_FAMILY_COUNT]; /* [UM_FAMILY_UNKNOWN] = all */

    /* writers only, under lock */
    pthread_mutex_t lock;
    uint32_t last_id;
    um_record_t *free_records;
    um_chunk_t *chunks;
    size_t chunk_bytes; /* of the last one */
    um_array_t *free_arrays[UM_ARRAY_CLASSES];
    um_array_t *all_arrays;
    um_generation_t *generations;
    uint32_t n_generations, generations_size, generation_floor;
};

/* ---- records ---- */

#define UM_GET(field)        atomic_load_explicit(&(field), memory_order_acquire)
#define UM_PUT(field, value) atomic_store_explicit(&(field), (value), memory_order_release)

/*
 * A consistent copy of the record if it holds addr (and, unless want is 0, has that id), or false when
 * it does not or a writer was at it.
 * Everything is loaded, then compared, then stored: through a copy on the stack the store of single
 * fields and the load of the whole would wait for each other.
 */
static inline __attribute__((always_inline)) bool
um_record_copy(const um_record_t *record, uint64_t addr, uint32_t want, um_region_t *out)
{
    uint32_t before = UM_GET(record->sequence);
    uint64_t start = UM_GET(record->addr), bytes = UM_GET(record->bytes);
    uint64_t call_site = UM_GET(record->call_site), alloc_ns = UM_GET(record->alloc_ns);
    uint32_t id = UM_GET(record->id), family = UM_GET(record->family);
    uint32_t flags = UM_GET(record->flags), device = UM_GET(record->device);
    uint32_t generation = UM_GET(record->generation);

    if ((before & 1) != 0 || addr - start >= bytes || (want != 0 && id != want) ||
        atomic_load_explicit(&record->sequence, memory_order_relaxed) != before)
        return false;
    out->id = id;
    out->family = family;
    out->addr = start;
    out->bytes = bytes;
    out->device = (int32_t)device;
    out->flags = flags;
    out->call_site = call_site;
    out->alloc_ns = alloc_ns;
    out->generation = generation;
    return true;
}

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

/* ---- arrays ---- */

static uint64_t um_entry(const um_record_t *record, uint64_t start)
{
    return start << 42 | (uint64_t)(uintptr_t)record >> 6;
}

static um_record_t *um_entry_record(uint64_t entry)
{
    return (um_record_t *)(uintptr_t)((entry & ((UINT64_C(1) << 42) - 1)) << 6);
}

static uint64_t um_array_get(const um_array_t *array, uint32_t i)
{
    return UM_GET(array->entry[i]);
}

/* Cells are 1 << (21 - shift) parts of the block. */
static unsigned um_cell_shift(uint32_t class)
{
    return UM_BLOCK_SHIFT - class;
}

static _Atomic uint32_t *um_cells(const um_array_t *array, uint32_t class)
{
    return (_Atomic uint32_t *)(uintptr_t)(array->entry + ((size_t)1 << class));
}

/* Sets count and cells of an array whose n entries are in place. */
static void um_array_finish(um_array_t *array, uint32_t n)
{
    unsigned shift = um_cell_shift(array->class);
    uint32_t below = 0;

    for (uint64_t k = 0; k <= UM_BLOCK_BYTES >> shift; k++) {
        while (below < n && um_array_get(array, below) >> 42 < k << shift)
            below++;
        UM_PUT(um_cells(array, array->class)[k], below);
    }
    UM_PUT(array->count, n);
}

/* Makes sure that `n` arrays of the class are free. One is always kept for a removal, which must not
 * fail. */
static bool um_array_reserve(um_regions_t *t, uint32_t class, unsigned n)
{
    size_t bytes = sizeof(um_array_t) + (sizeof(uint64_t) << class) + (sizeof(uint32_t) << class) +
                   sizeof(uint32_t);
    um_array_t *array;

    if (class >= UM_ARRAY_CLASSES)
        return false;
    for (array = t->free_arrays[class]; array != NULL && n > 0; array = array->next)
        n--;
    for (; n > 0; n--) {
        bytes = (bytes + 63) & ~(size_t)63; /* the smallest are one cache line */
        array = aligned_alloc(64, bytes);
        if (array == NULL)
            return false;
        memset(array, 0, bytes);
        array->class = class;
        array->next = t->free_arrays[class];
        t->free_arrays[class] = array;
        array->all = t->all_arrays;
        t->all_arrays = array;
    }
    return true;
}

static um_array_t *um_array_take(um_regions_t *t, uint32_t class)
{
    um_array_t *array = t->free_arrays[class];

    t->free_arrays[class] = array->next;
    return array;
}

static void um_array_release(um_regions_t *t, um_array_t *array)
{
    array->next = t->free_arrays[array->class];
    t->free_arrays[array->class] = array;
}

/* The last entry that starts at or before `start`: its record, or NULL. Bounds hold whatever a
 * concurrent writer does to a recycled array. No branch depends on an entry: it would be a coin toss. */
static um_record_t *um_array_find(const um_array_t *array, uint32_t class, uint64_t start)
{
    const _Atomic uint32_t *cell = um_cells(array, class) + (start >> um_cell_shift(class));
    uint64_t key = start << 42 | ((UINT64_C(1) << 42) - 1);
    uint32_t low = UM_GET(cell[0]), end = UM_GET(cell[1]), n;

    low -= low > 0; /* the one before may reach in here */
    if (low >= end || end > 1u << class)
        return NULL;
    for (n = end - low; n > 1;) {
        uint32_t half = n / 2;

        low += half & -(uint32_t)(um_array_get(array, low + half) <= key);
        n -= half;
    }
    return um_array_get(array, low) <= key ? um_entry_record(um_array_get(array, low)) : NULL;
}

/* ---- slots ---- */

static um_slot_t *um_slot_of(const um_regions_t *t, uint64_t addr)
{
    um_leaf_t *leaf = UM_GET(t->directory[addr >> (UM_BLOCK_SHIFT + UM_LEAF_SHIFT)]);

    return leaf != NULL ? &leaf->slot[addr >> UM_BLOCK_SHIFT & (UM_LEAF_SLOTS - 1)] : NULL;
}

static um_array_t *um_slot_array(uint64_t word)
{
    return (word & UM_SLOT_ARRAY) != 0 ? (um_array_t *)(uintptr_t)(word & UM_SLOT_POINTER) : NULL;
}

static uint32_t um_slot_class(uint64_t word)
{
    return (uint32_t)(word >> UM_SLOT_CLASS) & 31;
}

static um_record_t *um_slot_record(uint64_t word)
{
    return (word & UM_SLOT_ARRAY) == 0 ? (um_record_t *)(uintptr_t)(word & UM_SLOT_POINTER) : NULL;
}

/* Points a slot elsewhere under the next version: to a record or NULL, or to an array. */
static void um_slot_set(um_slot_t *slot, const um_record_t *record, const um_array_t *array)
{
    uint64_t version = (UM_GET(*slot) >> 48) + 1;
    uint64_t word = (uint64_t)(uintptr_t)record;

    if (array != NULL)
        word = (uint64_t)(uintptr_t)array | (uint64_t)array->class << UM_SLOT_CLASS | UM_SLOT_ARRAY;
    UM_PUT(*slot, version << 48 | word);
}

static bool um_is_wide(uint64_t addr, uint64_t bytes)
{
    return bytes > UM_WIDE_BYTES || addr + (bytes - 1) >= UM_RADIX_END;
}

static uint64_t um_block_start(uint64_t addr)
{
    return addr & ~(uint64_t)(UM_BLOCK_BYTES - 1);
}

/* A record's start as entries of the block that begins at `block` order it. */
static uint64_t um_start_in(const um_record_t *record, uint64_t block)
{
    uint64_t addr = UM_GET(record->addr);

    return addr > block ? addr - block : 0;
}

/* What the slot needs to take one region more: 0 class = nothing. */
static uint32_t um_slot_growth(uint64_t word)
{
    um_array_t *array = um_slot_array(word);

    if (array != NULL)
        return array->class + (UM_GET(array->count) == 1u << array->class);
    return um_slot_record(word) != NULL ? 1 : 0;
}

/* Adds a record to a slot; growth has been reserved. `block` orders entries, wide ones by nothing. */
static void um_slot_insert(um_regions_t *t, um_slot_t *slot, um_record_t *record, uint64_t block)
{
    uint64_t word = UM_GET(*slot);
    um_array_t *old = um_slot_array(word);
    uint64_t entry = um_entry(record, slot == &t->wide ? 0 : um_start_in(record, block));
    um_array_t *array;
    uint32_t n = 0, i = 0;

    if (old == NULL && um_slot_record(word) == NULL && slot != &t->wide) {
        um_slot_set(slot, record, NULL);
        return;
    }
    array = um_array_take(t, old != NULL || slot != &t->wide ? um_slot_growth(word) : 1);
    if (old == NULL && um_slot_record(word) != NULL) {
        um_record_t *only = um_slot_record(word);

        UM_PUT(array->entry[n++], um_entry(only, um_start_in(only, block)));
    }
    for (; old != NULL && i < UM_GET(old->count); i++)
        UM_PUT(array->entry[n++], um_array_get(old, i));
    for (i = n; i > 0 && um_array_get(array, i - 1) > entry; i--)
        UM_PUT(array->entry[i], um_array_get(array, i - 1));
    UM_PUT(array->entry[i], entry);
    um_array_finish(array, n + 1);
    um_slot_set(slot, NULL, array);
    if (old != NULL)
        um_array_release(t, old);
}

static void um_slot_remove(um_regions_t *t, um_slot_t *slot, const um_record_t *record)
{
    um_array_t *old = um_slot_array(UM_GET(*slot));
    um_array_t *array;
    uint32_t n = 0, count;

    if (old == NULL) {
        um_slot_set(slot, NULL, NULL);
        return;
    }
    count = UM_GET(old->count);
    array = um_array_take(t, old->class);
    for (uint32_t i = 0; i < count; i++)
        if (um_entry_record(um_array_get(old, i)) != record)
            UM_PUT(array->entry[n++], um_array_get(old, i));
    um_array_finish(array, n);
    if (n == 0)
        um_slot_set(slot, NULL, NULL);
    else if (n == 1 && slot != &t->wide)
        um_slot_set(slot, um_entry_record(um_array_get(array, 0)), NULL);
    else
        um_slot_set(slot, NULL, array);
    if (n == 0 || (n == 1 && slot != &t->wide))
        um_array_release(t, array);
    um_array_release(t, old);
}

/* ---- lookup ---- */

static bool um_find_wide(const um_regions_t *t, uint64_t addr, um_region_t *out)
{
    for (;;) {
        uint64_t word = UM_GET(t->wide);
        const um_array_t *array = um_slot_array(word);
        uint32_t n = array != NULL ? UM_GET(array->count) : 0;

        for (uint32_t i = 0; i < n && i < 1u << array->class; i++) {
            const um_record_t *record = um_entry_record(um_array_get(array, i));

            if (record != NULL && um_record_copy(record, addr, 0, out))
                return true;
        }
        if (UM_GET(t->wide) == word)
            return false;
    }
}

bool um_regions_find(const um_regions_t *t, uint64_t addr, um_region_t *out)
{
    const um_slot_t *slot = addr < UM_RADIX_END ? um_slot_of(t, addr) : NULL;

    while (slot != NULL) {
        uint64_t word = UM_GET(*slot);
        const um_array_t *array = um_slot_array(word);
        uint64_t start = addr & (UM_BLOCK_BYTES - 1);
        const um_record_t *record =
            array != NULL ? um_array_find(array, um_slot_class(word), start) : um_slot_record(word);

        if (record != NULL && um_record_copy(record, addr, 0, out))
            return true;
        if (UM_GET(*slot) == word)
            break;
    }
    /* almost always empty */
    return (UM_GET(t->wide) & UM_SLOT_POINTER) != 0 && um_find_wide(t, addr, out);
}

/* Writers: the live record with the lowest start that meets [addr, last], or NULL. */
static um_record_t *um_first_in(const um_regions_t *t, uint64_t addr, uint64_t last)
{
    const um_array_t *wide = um_slot_array(UM_GET(t->wide));
    um_record_t *best = NULL;

    for (uint32_t i = 0; wide != NULL && i < UM_GET(wide->count); i++) {
        um_record_t *record = um_entry_record(um_array_get(wide, i));
        uint64_t start = UM_GET(record->addr);

        if (start <= last && start + (UM_GET(record->bytes) - 1) >= addr &&
            (best == NULL || start < UM_GET(best->addr)))
            best = record;
    }
    for (uint64_t at = addr; at <= last && at < UM_RADIX_END;) {
        const um_slot_t *slot = um_slot_of(t, at);
        uint64_t word = slot != NULL ? UM_GET(*slot) : 0;
        const um_array_t *array = um_slot_array(word);
        uint32_t n = array != NULL ? UM_GET(array->count) : (word & UM_SLOT_POINTER) != 0;

        for (uint32_t i = 0; i < n; i++) {
            um_record_t *record =
                array != NULL ? um_entry_record(um_array_get(array, i)) : um_slot_record(word);
            uint64_t start = UM_GET(record->addr);

            if (start > last || (best != NULL && start > UM_GET(best->addr)))
                return best;
            if (start + (UM_GET(record->bytes) - 1) >= addr)
                return record;
        }
        if (slot == NULL) { /* the whole leaf is empty */
            at = ((at >> (UM_BLOCK_SHIFT + UM_LEAF_SHIFT)) + 1) << (UM_BLOCK_SHIFT + UM_LEAF_SHIFT);
        } else {
            at = um_block_start(at) + UM_BLOCK_BYTES;
        }
    }
    return best;
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

/* Takes what adding [addr, last] may need, so that nothing can fail half way. */
static bool um_reserve(um_regions_t *t, uint64_t addr, uint64_t last, bool wide)
{
    const unsigned shift = UM_BLOCK_SHIFT + UM_LEAF_SHIFT;
    uint32_t class;

    if (wide) {
        class = um_slot_growth(UM_GET(t->wide));
        return um_array_reserve(t, class != 0 ? class : 1, 2);
    }
    for (uint64_t i = addr >> shift; i <= last >> shift; i++) {
        um_leaf_t *leaf = UM_GET(t->directory[i]);

        if (leaf == NULL) {
            leaf = calloc(1, sizeof *leaf);
            if (leaf == NULL)
                return false;
            UM_PUT(t->directory[i], leaf);
        }
    }
    /* only the first and the last block can have other regions; two arrays and one to spare */
    class = um_slot_growth(UM_GET(*um_slot_of(t, addr)));
    if (class != 0 && !um_array_reserve(t, class, 3))
        return false;
    class = um_slot_growth(UM_GET(*um_slot_of(t, last)));
    return class == 0 || um_array_reserve(t, class, 3);
}

static void um_count(um_regions_t *t, uint32_t family, int by)
{
    atomic_fetch_add_explicit(&t->count[UM_FAMILY_UNKNOWN], (uint64_t)(int64_t)by,
                              memory_order_relaxed);
    if (family != UM_FAMILY_UNKNOWN && family < UM_FAMILY_COUNT)
        atomic_fetch_add_explicit(&t->count[family], (uint64_t)(int64_t)by, memory_order_relaxed);
}

static void um_unlink(um_regions_t *t, um_record_t *record)
{
    uint64_t addr = UM_GET(record->addr), bytes = UM_GET(record->bytes);
    uint64_t last = addr + (bytes - 1);

    if (um_is_wide(addr, bytes))
        um_slot_remove(t, &t->wide, record);
    else
        for (uint64_t block = um_block_start(addr); block <= last; block += UM_BLOCK_BYTES)
            um_slot_remove(t, um_slot_of(t, block), record);
    um_id_remove(t, record);
    um_count(t, UM_GET(record->family), -1);
    um_record_free(t, record);
}

static void um_link(um_regions_t *t, um_record_t *record, const um_region_t *region, bool wide)
{
    uint64_t last = region->addr + (region->bytes - 1);

    um_record_write(record, region);
    um_id_insert(t, record, region->id);
    if (wide)
        um_slot_insert(t, &t->wide, record, 0);
    else
        for (uint64_t block = um_block_start(region->addr); block <= last; block += UM_BLOCK_BYTES)
            um_slot_insert(t, um_slot_of(t, block), record, block);
    um_count(t, region->family, 1);
}

um_status_t um_regions_add(um_regions_t *t, um_region_t *region, uint32_t *stale, size_t max_stale,
                           size_t *n_stale)
{
    uint64_t last = region->addr + (region->bytes - 1);
    bool wide = region->bytes != 0 && um_is_wide(region->addr, region->bytes);
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
    while ((record = um_first_in(t, region->addr, last)) != NULL) {
        if (stale != NULL && removed < max_stale)
            stale[removed] = UM_GET(record->id);
        removed++;
        um_unlink(t, record);
    }
    record = um_reserve(t, region->addr, last, wide) ? um_record_new(t) : NULL;
    if (record == NULL) {
        status = UM_ERR_NO_MEMORY;
        goto out;
    }
    if (region->id == 0)
        region->id = t->last_id + 1;
    if (region->id > t->last_id)
        t->last_id = region->id;
    region->generation = um_generation_next(t, region->addr);
    um_link(t, record, region, wide);
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
    record = um_first_in(t, addr, addr);
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
    while ((record = um_first_in(t, addr, last)) != NULL) {
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
    uint64_t start = um_block_start(region->addr) + (uint64_t)n * UM_BLOCK_BYTES;
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
    for (uint32_t i = 0; i < UM_DIRECTORY_SIZE; i++)
        free(UM_GET(t->directory[i]));
    for (um_chunk_t *chunk = t->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    for (um_array_t *array = t->all_arrays, *next; array != NULL; array = next) {
        next = array->all;
        free(array);
    }
    free(t->generations);
    free(t); /* the mutex is not destroyed: a forked child may have inherited it locked */
}

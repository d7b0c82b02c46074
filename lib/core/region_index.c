/*
 * Which region holds an address?
 *
 * Addresses below 2^48 are found through a radix over 2 MiB blocks: a directory of leaves, a leaf of
 * slots, a slot for each block. A slot is one word: empty, the only region of the block, or a sorted
 * array of its regions. What cannot be found that way (addresses above, regions of more than 4 TiB)
 * is in one more slot, the wide one, which is searched linearly.
 *
 * An array has gaps, so that a region lies where its start would be if all were of like size, or as
 * near to that as its neighbours let it; a gap repeats the entry before it (0 before the first). So a
 * lookup mostly reads one cell, the one at its own place, and then the record: one cache line each.
 * Where that is not the region, the cells are still sorted and a binary search finds it.
 *
 * Readers never wait. Memory that a reader may hold a pointer to (leaves, records, arrays) keeps its
 * type until the index is cleared, so a stale pointer is harmless; what is read through it is trusted
 * only if the record is consistent and holds the address, and a "not here" only if the slot has not
 * changed meanwhile (its version). Writers change cells in place where a gap allows, one after the
 * other so that the array is sorted and has every other region all the time; otherwise they fill a new
 * array and point the slot to it. The version goes up when the change is complete.
 */
#include "region_index.h"

#include <stdlib.h>
#include <string.h>

#define UM_LEAF_SLOTS (1u << UM_LEAF_SHIFT)
#define UM_RADIX_END  (UINT64_C(1) << 48)
#define UM_WIDE_BYTES (UINT64_C(1) << 42) /* from here on a slot for each block is too dear */
#define UM_CLASS_MIN  2                   /* an array of one cache line */

struct um_leaf {
    um_slot_t slot[UM_LEAF_SLOTS];
};

/*
 * A cell is 0 or an entry: the region's start inside the block (0 when it starts before it) above the
 * record's address in cache lines, 21 + 42 bits.
 */
struct um_array {
    uint32_t class;        /* 1 << class cells, for ever */
    uint32_t count;        /* regions; writers only, as what follows */
    struct um_array *next; /* free list of its class */
    struct um_array *all;  /* every array there is */
    _Atomic uint64_t cell[];
};
#define UM_ENTRY_SHIFT  42
#define UM_ENTRY_RECORD ((UINT64_C(1) << UM_ENTRY_SHIFT) - 1)

/*
 * A slot: a version (16 bits) and a pointer to a cache line (42 bits, then zeros) to which an array
 * adds 1 and its class in the bits above it, so that a reader need not fetch the array's head.
 */
#define UM_SLOT_POINTER ((UINT64_C(1) << 48) - 64)
#define UM_SLOT_ARRAY   UINT64_C(1)
#define UM_SLOT_CLASS   1 /* shift */

/* ---- entries ---- */

static uint64_t um_block_start(uint64_t addr)
{
    return addr & ~(uint64_t)(UM_BLOCK_BYTES - 1);
}

/* The record's entry in the block that begins at `block`. */
static uint64_t um_entry(const um_record_t *record, uint64_t block)
{
    uint64_t addr = UM_GET(record->addr);

    return (addr > block ? addr - block : 0) << UM_ENTRY_SHIFT | (uint64_t)(uintptr_t)record >> 6;
}

static um_record_t *um_entry_record(uint64_t entry)
{
    return (um_record_t *)(uintptr_t)((entry & UM_ENTRY_RECORD) << 6);
}

/* Not less than the entry of a region that starts at or before addr, less than any other. */
static uint64_t um_entry_bound(uint64_t addr)
{
    return (addr & (UM_BLOCK_BYTES - 1)) << UM_ENTRY_SHIFT | UM_ENTRY_RECORD;
}

/* Where an entry belongs in an array if all regions are of like size. */
static uint32_t um_entry_place(uint64_t entry, uint32_t class)
{
    return (uint32_t)(entry >> (UM_ENTRY_SHIFT + UM_BLOCK_SHIFT - class));
}

/* ---- arrays ---- */

/* Makes sure that `n` arrays of the class are free. */
static bool um_array_reserve(um_region_index_t *index, uint32_t class, unsigned n)
{
    size_t bytes = sizeof(um_array_t) + (sizeof(uint64_t) << class);
    um_array_t *array;

    if (class >= UM_ARRAY_CLASSES)
        return false;
    for (array = index->free_arrays[class]; array != NULL && n > 0; array = array->next)
        n--;
    for (; n > 0; n--) {
        bytes = (bytes + 63) & ~(size_t)63;
        array = aligned_alloc(64, bytes);
        if (array == NULL)
            return false;
        memset(array, 0, bytes);
        array->class = class;
        array->next = index->free_arrays[class];
        index->free_arrays[class] = array;
        array->all = index->all_arrays;
        index->all_arrays = array;
    }
    return true;
}

static um_array_t *um_array_take(um_region_index_t *index, uint32_t class)
{
    um_array_t *array = index->free_arrays[class];

    index->free_arrays[class] = array->next;
    array->count = 0;
    return array;
}

static void um_array_release(um_region_index_t *index, um_array_t *array)
{
    array->next = index->free_arrays[array->class];
    index->free_arrays[array->class] = array;
}

/*
 * How many cells are not above the bound; *entry is the last of them (0 if there is none), as it was
 * read. No branch depends on a cell: it would be a coin toss.
 */
static uint32_t um_array_search(const um_array_t *array, uint32_t class, uint64_t bound,
                                uint64_t *entry)
{
    uint32_t low = 0;
    uint64_t cell = UM_GET(array->cell[0]), best = cell <= bound ? cell : 0;

    if (cell > bound) {
        *entry = 0;
        return 0;
    }
    for (uint32_t n = 1u << class; n > 1;) {
        uint32_t half = n / 2;
        bool below;

        cell = UM_GET(array->cell[low + half]);
        below = cell <= bound;
        low += below ? half : 0;
        best = below ? cell : best;
        n -= half;
    }
    *entry = best;
    return low + 1;
}

/* The entry at the bound's own place, or before it: mostly the one that um_array_search() finds. Both
 * are loaded at once: an address computed from a cell would keep lookups from overlapping. */
static inline uint64_t um_array_guess(const um_array_t *array, uint32_t class, uint64_t bound)
{
    uint32_t i = um_entry_place(bound, class);
    uint64_t own = UM_GET(array->cell[i]), before = UM_GET(array->cell[i - (i > 0)]);

    return own <= bound ? own : before;
}

/* Puts the next entry, of `left` that are to come, into an array that is filled from *end on. */
static void um_array_append(um_array_t *array, uint32_t *end, uint32_t left, uint64_t entry)
{
    uint32_t place = um_entry_place(entry, array->class), most = (1u << array->class) - left;
    uint64_t before = *end > 0 ? UM_GET(array->cell[*end - 1]) : 0;

    place = place < most ? place : most;
    while (*end < place)
        UM_PUT(array->cell[(*end)++], before);
    UM_PUT(array->cell[(*end)++], entry);
    array->count++;
}

/* Adds an entry where a gap is: before the next one, back to its own place or to the one before it. */
static bool um_array_insert(um_array_t *array, uint64_t entry)
{
    uint32_t place = um_entry_place(entry, array->class), end, i;
    uint64_t before;

    i = end = um_array_search(array, array->class, entry, &before);
    while (i > 0 && (i > place || i == end) && UM_GET(array->cell[i - 1]) == before &&
           (before == 0 || (i > 1 && UM_GET(array->cell[i - 2]) == before)))
        UM_PUT(array->cell[--i], entry);
    array->count += i < end;
    return i < end;
}

static void um_array_remove(um_array_t *array, uint64_t entry)
{
    uint64_t found;
    uint32_t end = um_array_search(array, array->class, entry, &found), i = end;

    while (i > 0 && UM_GET(array->cell[i - 1]) == entry)
        i--;
    for (uint64_t before = i > 0 ? UM_GET(array->cell[i - 1]) : 0; i < end; i++)
        UM_PUT(array->cell[i], before);
    array->count--;
}

/* ---- slots ---- */

static um_slot_t *um_slot_of(const um_region_index_t *index, uint64_t addr)
{
    um_leaf_t *leaf = UM_GET(index->directory[addr >> (UM_BLOCK_SHIFT + UM_LEAF_SHIFT)]);

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

/* How many cells to look at, and the record in one of them or NULL. */
static uint32_t um_slot_cells(uint64_t word)
{
    return um_slot_array(word) != NULL ? 1u << um_slot_class(word) : um_slot_record(word) != NULL;
}

static um_record_t *um_slot_at(uint64_t word, uint32_t i)
{
    um_array_t *array = um_slot_array(word);

    return array != NULL ? um_entry_record(UM_GET(array->cell[i])) : um_slot_record(word);
}

/* Gives a slot the next version and points it to an array, or else to a record or NULL. */
static void um_slot_set(um_slot_t *slot, const um_array_t *array, const um_record_t *record)
{
    uint64_t version = (UM_GET(*slot) >> 48) + 1;
    uint64_t word = (uint64_t)(uintptr_t)record;

    if (array != NULL)
        word = (uint64_t)(uintptr_t)array | (uint64_t)array->class << UM_SLOT_CLASS | UM_SLOT_ARRAY;
    UM_PUT(*slot, version << 48 | word);
}

/* The class of the array that the slot may need to take one region more: 0 = none. */
static uint32_t um_slot_growth(uint64_t word)
{
    um_array_t *array = um_slot_array(word);

    if (array != NULL)
        return array->class + (array->count == 1u << array->class);
    return um_slot_record(word) != NULL ? UM_CLASS_MIN : 0;
}

static void um_slot_insert(um_region_index_t *index, um_slot_t *slot, um_record_t *record,
                           uint64_t block)
{
    uint64_t word = UM_GET(*slot), entry = um_entry(record, block), last = 0;
    um_array_t *old = um_slot_array(word), *array = old;
    uint32_t end = 0, left = (old != NULL ? old->count : 1) + 1;

    if (um_slot_cells(word) == 0) {
        um_slot_set(slot, NULL, record);
        return;
    }
    if (old == NULL || !um_array_insert(old, entry)) {
        array = um_array_take(index, um_slot_growth(word));
        for (uint32_t i = 0; i < um_slot_cells(word); i++) {
            uint64_t there =
                old != NULL ? UM_GET(old->cell[i]) : um_entry(um_slot_record(word), block);

            if (there == last) /* 0 at first */
                continue;
            if (last < entry && entry < there)
                um_array_append(array, &end, left--, entry);
            um_array_append(array, &end, left--, there);
            last = there;
        }
        if (last < entry)
            um_array_append(array, &end, left--, entry);
        for (; end < 1u << array->class; end++)
            UM_PUT(array->cell[end], UM_GET(array->cell[end - 1]));
    }
    um_slot_set(slot, array, NULL);
    if (old != NULL && old != array)
        um_array_release(index, old);
}

static void um_slot_remove(um_region_index_t *index, um_slot_t *slot, um_record_t *record,
                           uint64_t block)
{
    um_array_t *array = um_slot_array(UM_GET(*slot));

    if (array == NULL) {
        um_slot_set(slot, NULL, NULL);
        return;
    }
    um_array_remove(array, um_entry(record, block));
    if (array->count > 1) {
        um_slot_set(slot, array, NULL);
        return;
    }
    /* the last cell repeats the only region left */
    um_slot_set(slot, NULL, um_entry_record(UM_GET(array->cell[(1u << array->class) - 1])));
    um_array_release(index, array);
}

/* ---- lookup ---- */

/* The record that a slot gives for an address: by a guess, or for certain. Look into it. */
static inline const um_record_t *um_slot_guess(uint64_t word, uint64_t addr)
{
    const um_array_t *array = um_slot_array(word);

    return array == NULL
               ? um_slot_record(word)
               : um_entry_record(um_array_guess(array, um_slot_class(word), um_entry_bound(addr)));
}

static const um_record_t *um_slot_search(uint64_t word, uint64_t addr)
{
    const um_array_t *array = um_slot_array(word);
    uint64_t entry;

    if (array == NULL)
        return um_slot_record(word);
    um_array_search(array, um_slot_class(word), um_entry_bound(addr), &entry);
    return um_entry_record(entry);
}

static bool um_find_wide(const um_region_index_t *index, uint64_t addr, um_region_t *out)
{
    for (;;) {
        uint64_t word = UM_GET(index->wide);

        for (uint32_t i = 0; i < um_slot_cells(word); i++) {
            const um_record_t *record = um_slot_at(word, i);

            if (record != NULL && um_record_copy(record, addr, 0, out))
                return true;
        }
        if (UM_GET(index->wide) == word)
            return false;
    }
}

/* Whatever the guess does not find; apart, so that the usual way needs few registers. */
static __attribute__((noinline)) bool um_find_thoroughly(const um_region_index_t *index,
                                                         uint64_t addr, um_region_t *out)
{
    const um_slot_t *slot = addr < UM_RADIX_END ? um_slot_of(index, addr) : NULL;

    while (slot != NULL) {
        uint64_t word = UM_GET(*slot);
        const um_record_t *record = um_slot_search(word, addr);

        if (record != NULL && um_record_copy(record, addr, 0, out))
            return true;
        if (UM_GET(*slot) == word)
            break;
    }
    /* almost always empty */
    return um_slot_cells(UM_GET(index->wide)) != 0 && um_find_wide(index, addr, out);
}

bool um_region_index_find(const um_region_index_t *index, uint64_t addr, um_region_t *out)
{
    const um_slot_t *slot = addr < UM_RADIX_END ? um_slot_of(index, addr) : NULL;
    const um_record_t *record = slot != NULL ? um_slot_guess(UM_GET(*slot), addr) : NULL;

    if (record != NULL && um_record_copy(record, addr, 0, out))
        return true;
    return um_find_thoroughly(index, addr, out);
}

/* ---- writers ---- */

static bool um_record_meets(const um_record_t *record, uint64_t addr, uint64_t last)
{
    uint64_t start = UM_GET(record->addr);

    return start <= last && start + (UM_GET(record->bytes) - 1) >= addr;
}

/* As um_region_index_first() in the wide slot. */
static um_record_t *um_first_wide(const um_region_index_t *index, uint64_t addr, uint64_t last)
{
    uint64_t word = UM_GET(index->wide);
    um_record_t *best = NULL;

    for (uint32_t i = 0; i < um_slot_cells(word); i++) {
        um_record_t *record = um_slot_at(word, i);

        if (record != NULL && um_record_meets(record, addr, last) &&
            (best == NULL || UM_GET(record->addr) < UM_GET(best->addr)))
            best = record;
    }
    return best;
}

/* As um_region_index_first() in the slot of the block in which addr lies. */
static um_record_t *um_first_in(const um_slot_t *slot, uint64_t addr, uint64_t last)
{
    uint64_t word = UM_GET(*slot), entry;
    const um_array_t *array = um_slot_array(word);
    uint32_t i = 0;

    if (array != NULL)
        i = um_array_search(array, array->class, um_entry_bound(addr), &entry);
    for (i -= i > 0; i < um_slot_cells(word); i++) {
        um_record_t *record = um_slot_at(word, i);

        if (record != NULL && um_record_meets(record, addr, last))
            return record;
        if (record != NULL && UM_GET(record->addr) > last)
            break;
    }
    return NULL;
}

um_record_t *um_region_index_first(const um_region_index_t *index, uint64_t addr, uint64_t last)
{
    um_record_t *wide = um_first_wide(index, addr, last), *found = NULL;
    unsigned shift;

    for (uint64_t at = addr; at <= last && at < UM_RADIX_END && found == NULL;) {
        const um_slot_t *slot = um_slot_of(index, at);

        if (slot != NULL)
            found = um_first_in(slot, at, last);
        /* without a leaf, all of its blocks are empty */
        shift = slot != NULL ? UM_BLOCK_SHIFT : UM_BLOCK_SHIFT + UM_LEAF_SHIFT;
        at = ((at >> shift) + 1) << shift;
    }
    if (wide == NULL || (found != NULL && UM_GET(found->addr) < UM_GET(wide->addr)))
        return found;
    return wide;
}

static bool um_is_wide(uint64_t addr, uint64_t last)
{
    return last - addr >= UM_WIDE_BYTES || last >= UM_RADIX_END;
}

bool um_region_index_reserve(um_region_index_t *index, uint64_t addr, uint64_t last)
{
    const unsigned leaf_shift = UM_BLOCK_SHIFT + UM_LEAF_SHIFT;
    um_slot_t *slot[2] = {&index->wide, &index->wide};

    if (!um_is_wide(addr, last)) {
        for (uint64_t i = addr >> leaf_shift; i <= last >> leaf_shift; i++) {
            um_leaf_t *leaf = UM_GET(index->directory[i]);

            if (leaf == NULL && (leaf = calloc(1, sizeof *leaf)) == NULL)
                return false;
            UM_PUT(index->directory[i], leaf);
        }
        /* only the first and the last block can have other regions */
        slot[0] = um_slot_of(index, addr);
        slot[1] = um_slot_of(index, last);
    }
    for (int i = 0; i < 2; i++) {
        uint32_t class = um_slot_growth(UM_GET(*slot[i]));

        if (class != 0 && !um_array_reserve(index, class, 2)) /* both may be of this class */
            return false;
    }
    return true;
}

/* Calls fn for each slot that shows the record. In the wide slot entries have no order by address. */
static void um_slots_each(um_region_index_t *index, um_record_t *record,
                          void (*fn)(um_region_index_t *, um_slot_t *, um_record_t *, uint64_t))
{
    uint64_t addr = UM_GET(record->addr), last = addr + (UM_GET(record->bytes) - 1);

    if (um_is_wide(addr, last)) {
        fn(index, &index->wide, record, UINT64_MAX);
        return;
    }
    for (uint64_t block = um_block_start(addr); block <= last; block += UM_BLOCK_BYTES)
        fn(index, um_slot_of(index, block), record, block);
}

void um_region_index_insert(um_region_index_t *index, um_record_t *record)
{
    um_slots_each(index, record, um_slot_insert);
}

void um_region_index_remove(um_region_index_t *index, um_record_t *record)
{
    um_slots_each(index, record, um_slot_remove);
}

void um_region_index_clear(um_region_index_t *index)
{
    for (uint32_t i = 0; i < 1u << UM_DIRECTORY_SHIFT; i++)
        free(UM_GET(index->directory[i]));
    for (um_array_t *array = index->all_arrays, *next; array != NULL; array = next) {
        next = array->all;
        free(array);
    }
    memset(index, 0, sizeof *index);
}

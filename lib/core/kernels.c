/*
 * The kernel table: handles to kernels by open addressing.
 *
 * Finders take no lock. A table only ever gains handles; a forgotten handle keeps its entry with no
 * kernel. A full table is replaced by a bigger copy without the forgotten ones; the old ones stay
 * until the end, because a finder may still be in them (their sizes double, so together they are no
 * bigger than the last). Definitions are kept for ever too: events and launches refer to them. One
 * whose handle was forgotten is used again when the same kernel comes back, so that a program that loads
 * and unloads without end has no more of them than kernels.
 */
#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define UM_PARAM_BLOCK_MAX 32764u /* CUDA 12.1 and later; 4,096 before */
#define UM_FIRST_SIZE      256u
#define UM_FORGOTTEN       1024u /* chains of forgotten definitions */

typedef struct um_kernel_entry {
    _Atomic uint64_t handle; /* 0 = free; set after kernel, never changed again */
    _Atomic(um_kernel_t *) kernel;
} um_kernel_entry_t;

typedef struct um_kernel_table {
    struct um_kernel_table *older;
    uint32_t size; /* a power of two */
    uint32_t used;
    um_kernel_entry_t entry[];
} um_kernel_table_t;

/* A definition: the kernel, then its params, then its name. */
typedef struct um_kernel_cell {
    um_kernel_t kernel;
    struct um_kernel_cell *older;
    struct um_kernel_cell *forgotten; /* the next one of its chain */
    um_param_t params[];
} um_kernel_cell_t;

struct um_kernels {
    _Atomic(um_kernel_table_t *) table;
    /* below: under lock */
    pthread_mutex_t lock;
    um_kernel_cell_t *cells;
    um_kernel_cell_t *forgotten[UM_FORGOTTEN]; /* by name */
    uint32_t last_id;
    void (*on_new)(void *ctx, const um_kernel_t *kernel);
    void *on_new_ctx;
};

static um_kernel_table_t *um_table_new(uint32_t size)
{
    um_kernel_table_t *table = calloc(1, sizeof *table + size * sizeof *table->entry);

    if (table != NULL)
        table->size = size;
    return table;
}

um_status_t um_kernels_new(um_kernels_t **out)
{
    um_kernels_t *kernels = calloc(1, sizeof *kernels);
    um_kernel_table_t *table = um_table_new(UM_FIRST_SIZE);

    if (kernels == NULL || table == NULL) {
        free(kernels);
        free(table);
        return UM_ERR_NO_MEMORY;
    }
    atomic_init(&kernels->table, table);
    pthread_mutex_init(&kernels->lock, NULL);
    *out = kernels;
    return UM_OK;
}

void um_kernels_free(um_kernels_t *kernels)
{
    um_kernel_table_t *table;
    um_kernel_cell_t *cell;

    if (kernels == NULL)
        return;
    table = atomic_load(&kernels->table);
    while (table != NULL) {
        um_kernel_table_t *older = table->older;

        free(table);
        table = older;
    }
    cell = kernels->cells;
    while (cell != NULL) {
        um_kernel_cell_t *older = cell->older;

        free(cell);
        cell = older;
    }
    free(kernels); /* the mutex is not destroyed: a forked child may have inherited it locked */
}

void um_kernels_on_new(um_kernels_t *kernels, void (*fn)(void *ctx, const um_kernel_t *kernel),
                       void *ctx)
{
    kernels->on_new = fn;
    kernels->on_new_ctx = ctx;
}

/* The entry of a handle, or the free one where it would go. */
static um_kernel_entry_t *um_entry_of(um_kernel_table_t *table, uint64_t handle)
{
    uint32_t i = (uint32_t)((handle * UINT64_C(0x9E3779B97F4A7C15)) >> 32);

    for (;; i++) {
        um_kernel_entry_t *entry = &table->entry[i & (table->size - 1)];
        uint64_t there = atomic_load_explicit(&entry->handle, memory_order_acquire);

        if (there == handle || there == 0)
            return entry;
    }
}

const um_kernel_t *um_kernels_find(const um_kernels_t *kernels, uint64_t handle)
{
    um_kernel_table_t *table = atomic_load_explicit(&kernels->table, memory_order_acquire);
    um_kernel_entry_t *entry = um_entry_of(table, handle);

    /* a free entry has no kernel; one that is being filled has it before its handle */
    if (handle == 0 || atomic_load_explicit(&entry->handle, memory_order_acquire) != handle)
        return NULL;
    return atomic_load_explicit(&entry->kernel, memory_order_acquire);
}

static bool um_layout_sane(const um_param_t *params, uint32_t n)
{
    uint64_t end = 0;

    if (params == NULL || n > UM_PARAM_BLOCK_MAX)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (params[i].offset_bytes < end)
            return false;
        end = (uint64_t)params[i].offset_bytes + params[i].size_bytes;
        if (end > UM_PARAM_BLOCK_MAX)
            return false;
    }
    return true;
}

/* Adds what the mangled name says, if it speaks of the same number of parameters. */
static void um_layout_flags(um_param_t *params, uint32_t n, const char *name)
{
    uint32_t flags[128];

    if (n > sizeof flags / sizeof *flags || um_mangled_param_flags(name, flags, n) != n)
        return;
    for (uint32_t i = 0; i < n; i++)
        params[i].flags |=
            params[i].size_bytes == sizeof(uint64_t) ? flags[i] : flags[i] & UM_PARAM_FLOAT;
}

static uint64_t um_layout_scalars(const um_param_t *params, uint32_t n)
{
    uint64_t scalars = 0;

    for (uint32_t i = 0; i < n && i < 64; i++)
        if ((params[i].size_bytes == 4 || params[i].size_bytes == 8) &&
            !(params[i].flags & (UM_PARAM_POINTER | UM_PARAM_FLOAT)))
            scalars |= (uint64_t)1 << i;
    return scalars;
}

static um_kernel_cell_t *um_cell_new(const char *name, uint64_t module_hash,
                                     const um_param_t *params, uint32_t n_params)
{
    bool known = um_layout_sane(params, n_params);
    uint32_t n = known ? n_params : 0;
    size_t name_bytes = strlen(name) + 1;
    um_kernel_cell_t *cell = malloc(sizeof *cell + n * sizeof *params + name_bytes);

    if (cell == NULL)
        return NULL;
    if (n != 0)
        memcpy(cell->params, params, n * sizeof *params);
    memcpy(cell->params + n, name, name_bytes);
    um_layout_flags(cell->params, n, name);
    cell->kernel = (um_kernel_t){
        .module_hash = module_hash,
        .name = (const char *)(cell->params + n),
        .layout_known = known,
        .n_params = n,
        .params = cell->params,
        .scalars = um_layout_scalars(cell->params, n),
        .block_bytes = n != 0 ? params[n - 1].offset_bytes + params[n - 1].size_bytes : 0,
    };
    return cell;
}

static um_kernel_cell_t **um_forgotten_chain(um_kernels_t *kernels, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &kernels->forgotten[hash % UM_FORGOTTEN];
}

static void um_entry_forget(um_kernels_t *kernels, um_kernel_entry_t *entry)
{
    um_kernel_t *kernel = atomic_load_explicit(&entry->kernel, memory_order_relaxed);
    um_kernel_cell_t *cell = (um_kernel_cell_t *)(void *)kernel, **chain;

    if (kernel == NULL)
        return;
    atomic_store_explicit(&entry->kernel, NULL, memory_order_release);
    chain = um_forgotten_chain(kernels, kernel->name);
    cell->forgotten = *chain;
    *chain = cell;
}

static bool um_is_same(const um_kernel_t *kernel, const char *name, uint64_t module_hash,
                       const um_param_t *params, uint32_t n)
{
    bool known = um_layout_sane(params, n);

    if (kernel->module_hash != module_hash || kernel->layout_known != known ||
        kernel->n_params != (known ? n : 0) || strcmp(kernel->name, name) != 0)
        return false;
    for (uint32_t i = 0; i < kernel->n_params; i++)
        if (kernel->params[i].offset_bytes != params[i].offset_bytes ||
            kernel->params[i].size_bytes != params[i].size_bytes)
            return false;
    return true;
}

/* Takes the definition out of the forgotten ones; NULL when there is none. */
static um_kernel_cell_t *um_cell_again(um_kernels_t *kernels, const char *name,
                                       uint64_t module_hash, const um_param_t *params, uint32_t n)
{
    um_kernel_cell_t **link = um_forgotten_chain(kernels, name), *cell;

    while ((cell = *link) != NULL && !um_is_same(&cell->kernel, name, module_hash, params, n))
        link = &cell->forgotten;
    if (cell != NULL)
        *link = cell->forgotten;
    return cell;
}

/* Room for one handle more; replaces the table when it is more than half full. */
static um_kernel_table_t *um_table_room(um_kernels_t *kernels)
{
    um_kernel_table_t *table = atomic_load_explicit(&kernels->table, memory_order_relaxed);
    um_kernel_table_t *bigger;

    if (table->used < table->size / 2)
        return table;
    bigger = um_table_new(table->size * 2);
    if (bigger == NULL)
        return table->used + 1 < table->size ? table : NULL;
    for (uint32_t i = 0; i < table->size; i++) {
        um_kernel_t *kernel = atomic_load_explicit(&table->entry[i].kernel, memory_order_relaxed);
        uint64_t handle = atomic_load_explicit(&table->entry[i].handle, memory_order_relaxed);
        um_kernel_entry_t *entry;

        if (kernel == NULL)
            continue;
        entry = um_entry_of(bigger, handle);
        atomic_store_explicit(&entry->kernel, kernel, memory_order_relaxed);
        atomic_store_explicit(&entry->handle, handle, memory_order_relaxed);
        bigger->used++;
    }
    bigger->older = table;
    atomic_store_explicit(&kernels->table, bigger, memory_order_release);
    return bigger;
}

um_status_t um_kernels_define(um_kernels_t *kernels, uint64_t handle, const char *name,
                              uint64_t module_hash, const um_param_t *params, uint32_t n_params,
                              const um_kernel_t **out)
{
    um_status_t status = UM_OK;
    um_kernel_table_t *table;
    um_kernel_entry_t *entry;
    um_kernel_cell_t *cell;
    const um_kernel_t *known;

    if (handle == 0 || name == NULL)
        return UM_ERR_INVALID;
    pthread_mutex_lock(&kernels->lock);
    known = um_kernels_find(kernels, handle);
    if (known != NULL) {
        *out = known;
        goto out;
    }
    table = um_table_room(kernels);
    cell = table != NULL ? um_cell_again(kernels, name, module_hash, params, n_params) : NULL;
    if (cell == NULL) {
        cell = table != NULL ? um_cell_new(name, module_hash, params, n_params) : NULL;
        if (cell == NULL) {
            status = UM_ERR_NO_MEMORY;
            goto out;
        }
        cell->kernel.id = ++kernels->last_id;
        cell->older = kernels->cells;
        kernels->cells = cell;
        if (kernels->on_new != NULL)
            kernels->on_new(kernels->on_new_ctx, &cell->kernel);
    }
    entry = um_entry_of(table, handle);
    atomic_store_explicit(&entry->kernel, &cell->kernel, memory_order_release);
    if (atomic_load_explicit(&entry->handle, memory_order_relaxed) == 0) {
        atomic_store_explicit(&entry->handle, handle, memory_order_release);
        table->used++;
    }
    *out = &cell->kernel;
out:
    pthread_mutex_unlock(&kernels->lock);
    return status;
}

void um_kernels_forget(um_kernels_t *kernels, uint64_t handle)
{
    um_kernel_table_t *table;

    if (handle == 0)
        return;
    pthread_mutex_lock(&kernels->lock);
    table = atomic_load_explicit(&kernels->table, memory_order_relaxed);
    um_entry_forget(kernels, um_entry_of(table, handle));
    pthread_mutex_unlock(&kernels->lock);
}

void um_kernels_forget_module(um_kernels_t *kernels, uint64_t module_hash)
{
    um_kernel_table_t *table;

    pthread_mutex_lock(&kernels->lock);
    table = atomic_load_explicit(&kernels->table, memory_order_relaxed);
    for (uint32_t i = 0; i < table->size; i++) {
        um_kernel_t *kernel = atomic_load_explicit(&table->entry[i].kernel, memory_order_relaxed);

        if (kernel != NULL && kernel->module_hash == module_hash)
            um_entry_forget(kernels, &table->entry[i]);
    }
    pthread_mutex_unlock(&kernels->lock);
}

/*
 * modules.c - cubins as they are loaded: which kernels are in which, and their parameter layouts for
 * drivers that cannot tell (before 12.4).
 *
 * Modules can be hundreds of megabytes and the program waits meanwhile, so a cubin is hashed and read
 * only up to UM_CUBIN_MAX; the kernels of larger ones have module_hash 0, and on an old driver an
 * unknown layout. Two kernels of one name (a template in two modules): the one loaded last is told.
 */
#include "live.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UM_CUBIN_MAX (16u << 20)
#define UM_SLOTS     4096 /* chains of the table; any number of kernels fits */

typedef struct um_module_kernel {
    struct um_module_kernel *next;
    uint64_t name_hash, module_hash;
    um_param_t *params;
    uint32_t n_params;
    char name[];
} um_module_kernel_t;

typedef struct um_module {
    struct um_module *next;
    uint64_t hash;
    uint32_t id;
} um_module_t;

/* Guards both tables; taken at loads, unloads and first launches only. */
static pthread_mutex_t um_modules_lock = PTHREAD_MUTEX_INITIALIZER;
static um_module_kernel_t *um_module_kernels[UM_SLOTS];
static um_module_t *um_modules;

static um_module_kernel_t *um_modules_find(const char *name, uint64_t hash)
{
    for (um_module_kernel_t *k = um_module_kernels[hash % UM_SLOTS]; k; k = k->next)
        if (k->name_hash == hash && strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

static void um_modules_kernel_seen(void *ctx, const char *name, const um_param_t *params,
                                   uint32_t n_params)
{
    const um_module_t *module = ctx;
    uint64_t hash = XXH3_64bits(name, strlen(name));
    um_module_kernel_t *kernel = um_modules_find(name, hash);

    if (!kernel) {
        kernel = calloc(1, sizeof(*kernel) + strlen(name) + 1);
        if (!kernel)
            return;
        strcpy(kernel->name, name);
        kernel->name_hash = hash;
        kernel->next = um_module_kernels[hash % UM_SLOTS];
        um_module_kernels[hash % UM_SLOTS] = kernel;
    }
    kernel->module_hash = module->hash;
    if (n_params == 0 || (n_params == kernel->n_params &&
                          memcmp(kernel->params, params, n_params * sizeof(*params)) == 0))
        return;
    /* The old layout stays: a definition under way may be reading it. */
    um_param_t *copy = malloc(n_params * sizeof(*params));
    if (!copy)
        return;
    memcpy(copy, params, n_params * sizeof(*params));
    kernel->params = copy;
    kernel->n_params = n_params;
}

void um_modules_loaded(uint32_t id, const void *cubin, size_t bytes)
{
    bool layouts = !um_live.cuda->func_param && !um_live.cuda->kernel_param;

    if ((!um_live.record && !layouts) || !cubin || bytes == 0 || bytes > UM_CUBIN_MAX)
        return;
    um_module_t *module = calloc(1, sizeof(*module));
    if (!module)
        return;
    module->id = id;
    module->hash = XXH3_64bits(cubin, bytes);
    pthread_mutex_lock(&um_modules_lock);
    um_cubin_layouts(cubin, bytes, um_modules_kernel_seen, module);
    module->next = um_modules;
    um_modules = module;
    pthread_mutex_unlock(&um_modules_lock);
}

/* Handles of an unloaded module may come back as other kernels. Of a module that was not read only
 * "some kernel without a module" can be forgotten, which means all of those: they are defined anew
 * at their next launch. */
void um_modules_unloading(uint32_t id)
{
    uint64_t hash = 0;

    pthread_mutex_lock(&um_modules_lock);
    for (um_module_t **m = &um_modules; *m; m = &(*m)->next) {
        if ((*m)->id == id) {
            um_module_t *gone = *m;
            hash = gone->hash;
            *m = gone->next;
            free(gone);
            break;
        }
    }
    pthread_mutex_unlock(&um_modules_lock);
    um_kernels_forget_module(um_live.runtime->kernels, hash);
}

bool um_modules_kernel(const char *name, uint64_t *module_hash, const um_param_t **params,
                       uint32_t *n_params)
{
    pthread_mutex_lock(&um_modules_lock);
    const um_module_kernel_t *kernel = um_modules_find(name, XXH3_64bits(name, strlen(name)));
    if (kernel) {
        *module_hash = kernel->module_hash;
        *params = kernel->params;
        *n_params = kernel->n_params;
    }
    pthread_mutex_unlock(&um_modules_lock);
    return kernel != NULL;
}

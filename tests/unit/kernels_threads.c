#include "core/kernels.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS 4
#define HANDLES 3000

static um_kernels_t *table;
static const um_kernel_t *_Atomic known[HANDLES];
static _Atomic uint64_t wrong, fresh;

static const um_param_t layout[] = {{.offset_bytes = 0, .size_bytes = 8},
                                    {.offset_bytes = 8, .size_bytes = 4}};

static void on_new(void *ctx, const um_kernel_t *kernel)
{
    (void)ctx;
    (void)kernel;
    atomic_fetch_add(&fresh, 1);
}

/* Every thread defines every handle, in an order of its own, and looks up those of the others. */
static void *define_all(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (uint32_t i = 0; i < HANDLES; i++) {
        uint32_t k = (i * 7 + (uint32_t)(uintptr_t)arg * 1000) % HANDLES;
        uint32_t other = (unsigned)rand_r(&seed) % HANDLES;
        const um_kernel_t *kernel = NULL, *expected = NULL, *found;

        if (um_kernels_define(table, (k + 1) * 16, "_Z4stepPKfi", k % 10, layout, 2, &kernel) !=
            UM_OK) {
            atomic_fetch_add(&wrong, 1);
            continue;
        }
        if (!atomic_compare_exchange_strong(&known[k], &expected, kernel) && expected != kernel)
            atomic_fetch_add(&wrong, 1);
        if (um_kernels_find(table, (k + 1) * 16) != kernel)
            atomic_fetch_add(&wrong, 1);
        found = um_kernels_find(table, (other + 1) * 16);
        if (found != NULL &&
            (found->module_hash != other % 10 || found->n_params != 2 ||
             found->params[0].flags != (UM_PARAM_POINTER | UM_PARAM_CONST_POINTER)))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

Test(kernels_threads, all_threads_get_the_same_definition)
{
    pthread_t thread[THREADS];

    cr_assert_eq(um_kernels_new(&table), UM_OK);
    um_kernels_on_new(table, on_new, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, define_all, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(atomic_load(&wrong), 0);
    cr_assert_eq(atomic_load(&fresh), HANDLES);
    um_kernels_free(table);
}

static _Atomic bool stop;

static void *find_all(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        for (uint32_t k = 0; k < 200; k++) {
            const um_kernel_t *kernel = um_kernels_find(table, (k + 1) * 16);

            if (kernel != NULL &&
                (kernel->module_hash != (k < 100 ? 1 : 2) || kernel->name[0] != '_'))
                atomic_fetch_add(&wrong, 1);
            if (k >= 100 && (kernel == NULL || kernel->module_hash != 2))
                atomic_fetch_add(&wrong, 1); /* nobody forgets that module */
        }
    return NULL;
}

Test(kernels_threads, finders_go_on_while_modules_come_and_go)
{
    pthread_t thread[THREADS];
    const um_kernel_t *kernel;

    atomic_store(&wrong, 0);
    cr_assert_eq(um_kernels_new(&table), UM_OK);
    for (uint32_t k = 100; k < 200; k++)
        cr_assert_eq(um_kernels_define(table, (k + 1) * 16, "_Z1kv", 2, layout, 0, &kernel), UM_OK);
    for (uintptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, find_all, NULL), 0);
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t k = 0; k < 100;
             k++) /* some old handles, some new ones: the table grows too */
            cr_assert_eq(um_kernels_define(table, (k % 2 ? k + 1 : round * 1000 + k + 1000) * 16,
                                           "_Z1kv", 1, layout, 0, &kernel),
                         UM_OK);
        um_kernels_forget_module(table, 1);
        cr_assert_null(um_kernels_find(table, 2 * 16));
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(atomic_load(&wrong), 0);
    um_kernels_free(table);
}

#include "core/kernels.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define BASE   UINT64_C(0x7f0000000000)
#define HANDLE UINT64_C(0x5555deadbee0)

static um_kernels_t *kernels;
static um_regions_t *regions;

static void make(void)
{
    cr_assert_eq(um_kernels_new(&kernels), UM_OK);
    cr_assert_eq(um_regions_new(&regions), UM_OK);
}

static void drop(void)
{
    um_kernels_free(kernels);
    um_regions_free(regions);
}

TestSuite(kernels, .init = make, .fini = drop);

static const um_kernel_t *define(uint64_t handle, const char *name, const um_param_t *params,
                                 uint32_t n)
{
    const um_kernel_t *kernel = NULL;

    cr_assert_eq(um_kernels_define(kernels, handle, name, 7, params, n, &kernel), UM_OK);
    return kernel;
}

static uint32_t add(uint64_t addr, uint64_t bytes, um_family_t family)
{
    um_region_t region = {.addr = addr, .bytes = bytes, .family = (uint32_t)family};

    cr_assert_eq(um_regions_add(regions, &region, NULL, 0, NULL), UM_OK);
    return region.id;
}

Test(kernels, keeps_copies_and_adds_what_the_name_says)
{
    um_param_t params[] = {{0, 8, 0}, {8, 8, 0}, {16, 4, 0}};
    char name[] = "_Z4stepPKfPfi";
    const um_kernel_t *kernel = define(HANDLE, name, params, 3);

    memset(params, 0xff, sizeof params);
    memset(name, 'x', 5);
    cr_assert_str_eq(kernel->name, "_Z4stepPKfPfi");
    cr_assert_eq(kernel->id, 1);
    cr_assert_eq(kernel->module_hash, 7);
    cr_assert(kernel->layout_known);
    cr_assert_eq(kernel->n_params, 3);
    cr_assert_eq(kernel->block_bytes, 20);
    cr_assert_eq(kernel->params[0].flags, UM_PARAM_POINTER | UM_PARAM_CONST_POINTER);
    cr_assert_eq(kernel->params[1].flags, UM_PARAM_POINTER);
    cr_assert_eq(kernel->params[2].flags, 0);
    cr_assert_eq(um_kernels_find(kernels, HANDLE), kernel);
    cr_assert_eq(define(HANDLE, "other", NULL, 0), kernel, "the first definition stays");
}

Test(kernels, trusts_no_name_that_has_other_parameters)
{
    const um_param_t params[] = {{0, 8, 0}, {8, 8, 0}};

    cr_assert_eq(define(HANDLE, "_Z4stepPKf", params, 2)->params[0].flags, 0);
    cr_assert_eq(define(HANDLE + 16, "_Z4stepPKfPfPf", params, 2)->params[0].flags, 0);
    cr_assert_eq(define(HANDLE + 32, "step", params, 2)->params[0].flags, 0);
}

Test(kernels, knows_no_layout_that_cannot_be)
{
    const um_param_t overlap[] = {{0, 8, 0}, {4, 8, 0}}, beyond[] = {{32760, 8, 0}};
    const um_param_t backwards[] = {{8, 8, 0}, {0, 8, 0}}, largest[] = {{0, 32764, 0}};
    const um_kernel_t *kernel = NULL;

    cr_assert_not(define(1, "a", overlap, 2)->layout_known);
    cr_assert_not(define(2, "b", beyond, 1)->layout_known);
    cr_assert_not(define(3, "c", backwards, 2)->layout_known);
    cr_assert_not(define(4, "d", NULL, 0)->layout_known);
    cr_assert(define(5, "e", largest, 1)->layout_known);
    cr_assert(define(6, "f", largest, 0)->layout_known, "no parameters is a layout too");
    cr_assert_eq(um_kernels_define(kernels, 0, "g", 0, NULL, 0, &kernel), UM_ERR_INVALID);
    cr_assert_eq(um_kernels_define(kernels, 7, NULL, 0, NULL, 0, &kernel), UM_ERR_INVALID);
    cr_assert_null(kernel);
    cr_assert_null(um_kernels_find(kernels, 0));
}

Test(kernels, forgets_handles_and_modules_but_keeps_their_definitions)
{
    const um_kernel_t *first = define(16, "a", NULL, 0), *second = define(32, "b", NULL, 0), *again;

    um_kernels_forget(kernels, 16);
    um_kernels_forget(kernels, 48);
    um_kernels_forget(kernels, 0);
    cr_assert_null(um_kernels_find(kernels, 16));
    cr_assert_eq(um_kernels_find(kernels, 32), second);
    again = define(16, "c", NULL, 0);
    cr_assert_eq(again->id, 3);
    cr_assert_str_eq(first->name, "a");
    um_kernels_forget_module(kernels, 8);
    cr_assert_eq(um_kernels_find(kernels, 32), second);
    um_kernels_forget_module(kernels, 7);
    cr_assert_null(um_kernels_find(kernels, 16));
    cr_assert_null(um_kernels_find(kernels, 32));
}

Test(kernels, a_kernel_that_is_loaded_again_is_the_same_whatever_its_handle)
{
    const um_param_t params[] = {{0, 8, 0}, {8, 4, 0}}, other[] = {{0, 8, 0}, {8, 8, 0}};
    const um_kernel_t *first = define(16, "_Z4stepPfi", params, 2), *again = NULL;

    for (uint64_t i = 1; i <= 1000; i++) {
        um_kernels_forget_module(kernels, 7);
        again = define(i << 12, "_Z4stepPfi", params, 2);
        cr_assert_eq(again, first);
        cr_assert_eq(um_kernels_find(kernels, i << 12), first);
    }
    cr_assert_eq(define(16, "_Z4stepPfi", params, 2)->id, 2, "two of them at once are two");
    um_kernels_forget_module(kernels, 7);
    cr_assert_eq(define(16, "_Z4stepPfi", other, 2)->id, 3, "with other parameters it is another");
    cr_assert_eq(define(32, "_Z4stepPfi", NULL, 0)->id, 4);
    um_kernels_forget(kernels, 32);
    cr_assert_eq(define(48, "_Z4stepPfi", NULL, 0)->id, 4);
}

Test(kernels, finds_all_of_many)
{
    for (uint64_t i = 1; i <= 10000; i++)
        define(i << 12, "k", NULL, 0);
    for (uint64_t i = 1; i <= 10000; i++)
        cr_assert_eq(um_kernels_find(kernels, i << 12)->id, i);
    cr_assert_null(um_kernels_find(kernels, 10001 << 12));
}

static void note(void *ctx, const um_kernel_t *kernel)
{
    *(uint32_t *)ctx = kernel->id;
    cr_assert_null(um_kernels_find(kernels, 16), "nobody can have launched it yet");
}

Test(kernels, announces_each_new_kernel_once_before_it_is_found)
{
    uint32_t last = 0;

    um_kernels_on_new(kernels, note, &last);
    define(16, "a", NULL, 0);
    cr_assert_eq(last, 1);
    last = 0;
    define(16, "a", NULL, 0);
    cr_assert_eq(last, 0);
}

/* ---- arguments ---- */

static uint32_t scan(const um_kernel_t *kernel, void *const *params, um_arg_t *out)
{
    return um_kernel_args(kernel, regions, params, NULL, 0, out, 8);
}

Test(kernels, finds_the_pointers_among_the_arguments)
{
    const um_param_t layout[] = {{0, 8, 0}, {8, 4, 0}, {16, 8, 0}, {24, 8, 0}};
    const um_kernel_t *kernel = define(HANDLE, "k", layout, 4);
    uint64_t a = BASE + 100, nowhere = BASE - 1, b = BASE + (1 << 20) + 4096;
    uint32_t n = 3;
    void *params[] = {&a, &n, &nowhere, &b};
    uint32_t first, second;
    um_arg_t args[8];

    cr_assert_eq(scan(kernel, params, args), 0, "no region, no argument");
    first = add(BASE, 4096, UM_FAMILY_MANAGED);
    second = add(BASE + (1 << 20), 1 << 20, UM_FAMILY_DEVICE);
    cr_assert_eq(scan(kernel, params, args), 2);
    cr_assert(args[0].slot == 0 && args[0].offset_bytes == 0 && args[0].region == first &&
              args[0].region_offset_bytes == 100);
    cr_assert(args[1].slot == 3 && args[1].region == second && args[1].region_offset_bytes == 4096);
    cr_assert_eq(um_kernel_args(kernel, regions, params, NULL, 0, args, 1), 2, "counts beyond max");
    params[0] = NULL;
    cr_assert_eq(scan(kernel, params, args), 1);
}

Test(kernels, looks_into_structs_by_value_at_aligned_words_only)
{
    struct {
        uint32_t tag;
        uint32_t unaligned[2]; /* a pointer here is not one */
        uint32_t pad;
        uint64_t pointer;
        uint32_t tail;
    } s = {.pointer = BASE + 8, .tail = 1};
    const um_param_t layout[] = {{0, 4, 0}, {8, 28, 0}};
    const um_kernel_t *kernel = define(HANDLE, "k", layout, 2);
    uint64_t hidden = BASE + 16;
    void *params[] = {&s.tag, &s};
    um_arg_t args[8];

    add(BASE, 4096, UM_FAMILY_MANAGED);
    memcpy(s.unaligned, &hidden, sizeof hidden);
    cr_assert_eq(scan(kernel, params, args), 1);
    cr_assert(args[0].slot == 1 && args[0].offset_bytes == 16 && args[0].region_offset_bytes == 8);
}

Test(kernels, aligns_words_to_the_block_where_a_parameter_is_not)
{
    const um_param_t layout[] = {{0, 4, 0}, {4, 12, 0}}; /* a packed struct {int; T *} at 4 */
    const um_kernel_t *kernel = define(HANDLE, "k", layout, 2);
    unsigned char block[16] = {0};
    uint64_t pointer = BASE + 40;
    void *params[] = {block, block + 4};
    um_arg_t args[8];

    add(BASE, 4096, UM_FAMILY_MANAGED);
    memcpy(block + 8, &pointer, sizeof pointer);
    cr_assert_eq(scan(kernel, params, args), 1);
    cr_assert(args[0].slot == 1 && args[0].offset_bytes == 4 && args[0].region_offset_bytes == 40);
    cr_assert_eq(um_kernel_args(kernel, regions, NULL, block, sizeof block, args, 8), 1);
    cr_assert(args[0].slot == 1 && args[0].offset_bytes == 4);
}

Test(kernels, never_reads_past_what_is_known)
{
    const um_param_t layout[] = {{0, 8, 0}, {8, 8, 0}};
    const um_kernel_t *kernel = define(HANDLE, "k", layout, 2);
    const um_kernel_t *unknown = define(HANDLE + 16, "u", NULL, 0);
    uint64_t *block = malloc(12); /* ends inside the second parameter */
    void *wild[] = {(void *)(uintptr_t)16};
    um_arg_t args[8];

    add(BASE, 4096, UM_FAMILY_MANAGED);
    memset(block, 0, 12);
    block[0] = BASE;
    cr_assert_eq(um_kernel_args(kernel, regions, NULL, block, 12, args, 8), 1);
    cr_assert_eq(um_kernel_args(kernel, regions, NULL, block, 7, args, 8), 0);
    cr_assert_eq(um_kernel_args(kernel, regions, NULL, NULL, 0, args, 8), 0);
    cr_assert_eq(um_kernel_args(unknown, regions, wild, NULL, 0, args, 8), 0);
    cr_assert_eq(um_kernel_args(unknown, regions, NULL, block, 12, args, 8), 1,
                 "a packed buffer has a length of its own");
    free(block);
}

/* ---- integers ---- */

static uint32_t scalars_of(const um_kernel_t *kernel, void *const *params, um_scalar_t *out)
{
    um_arg_t args[8];
    uint32_t n = scan(kernel, params, args);

    return um_kernel_scalars(kernel, params, NULL, 0, args, n, out, 4);
}

Test(kernels, takes_what_may_be_an_integer)
{
    /* (float *, int, float, double, long, const float *, short, six floats by value) */
    const um_param_t layout[] = {{0, 8, 0},  {8, 4, 0},  {12, 4, 0}, {16, 8, 0},
                                 {24, 8, 0}, {32, 8, 0}, {40, 2, 0}, {44, 24, 0}};
    const um_kernel_t *kernel = define(HANDLE, "_Z1kPfifdlPKfs4six6", layout, 8);
    uint64_t a = BASE, elsewhere = 0x123456789000;
    int32_t n = -3;
    int64_t m = INT64_C(1) << 40;
    double d = 2;
    float f = 1, six[6] = {1};
    int16_t s = 9;
    void *params[] = {&a, &n, &f, &d, &m, &elsewhere, &s, six};
    um_scalar_t out[4];

    add(BASE, 4096, UM_FAMILY_MANAGED);
    cr_assert_eq(scalars_of(kernel, params, out), 2);
    cr_assert(out[0].slot == 1 && out[0].size_bytes == 4 && out[0].value == 0xfffffffd);
    cr_assert(out[1].slot == 4 && out[1].size_bytes == 8 && out[1].value == (uint64_t)m);
    params[1] = NULL;
    cr_assert_eq(scalars_of(kernel, params, out), 1);
}

Test(kernels, takes_no_pointer_for_an_integer_where_the_name_says_nothing)
{
    const um_param_t layout[] = {{0, 8, 0},  {8, 8, 0},  {16, 4, 0},
                                 {20, 4, 0}, {24, 4, 0}, {28, 4, 0}};
    const um_kernel_t *kernel = define(HANDLE, "plain_c", layout, 6);
    uint64_t a = BASE + 8, n = 5;
    uint32_t k[] = {1, 2, 3, 4};
    void *params[] = {&a, &n, &k[0], &k[1], &k[2], &k[3]};
    um_scalar_t out[4];

    add(BASE, 4096, UM_FAMILY_MANAGED);
    cr_assert_eq(scalars_of(kernel, params, out), 4, "no more than asked for");
    cr_assert(out[0].slot == 1 && out[0].value == 5);
    cr_assert(out[3].slot == 4 && out[3].value == 3);
}

Test(kernels, takes_integers_from_a_packed_buffer_as_far_as_it_goes)
{
    const um_param_t layout[] = {{0, 8, 0}, {8, 4, 0}, {12, 4, 0}};
    const um_kernel_t *kernel = define(HANDLE, "k", layout, 3);
    const um_kernel_t *unknown = define(HANDLE + 16, "u", NULL, 0);
    uint64_t *block = malloc(14); /* ends inside the last parameter */
    um_arg_t args[8];
    um_scalar_t out[4];
    uint32_t n;

    add(BASE, 4096, UM_FAMILY_MANAGED);
    block[0] = BASE;
    memcpy(&block[1], &(uint32_t){77}, 4);
    n = um_kernel_args(kernel, regions, NULL, block, 14, args, 8);
    cr_assert_eq(um_kernel_scalars(kernel, NULL, block, 14, args, n, out, 4), 1);
    cr_assert(out[0].slot == 1 && out[0].value == 77);
    cr_assert_eq(um_kernel_scalars(unknown, NULL, block, 14, args, 0, out, 4), 0);
    cr_assert_eq(um_kernel_scalars(kernel, NULL, NULL, 0, args, 0, out, 4), 0);
    free(block);
}

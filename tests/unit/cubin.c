#include "core/kernels.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *image;
static size_t image_bytes;

static void drop(void)
{
    free(image);
}

TestSuite(cubin, .fini = drop);

static void load(const char *name)
{
    const char *root = getenv("UM_SRCDIR");
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/tests/data/cubin/%s", root ? root : "..", name);
    file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    free(image);
    image = malloc(1 << 16);
    image_bytes = fread(image, 1, 1 << 16, file);
    fclose(file);
}

/* "name: offset+size ..." of each kernel, a line each. */
static void describe(void *ctx, const char *name, const um_param_t *params, uint32_t n)
{
    char *text = ctx;
    size_t at = strlen(text);

    at += (size_t)snprintf(text + at, 2048 - at, "%s:", name);
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, 2048 - at, " %u+%u", params[i].offset_bytes,
                               params[i].size_bytes);
    snprintf(text + at, 2048 - at, "\n");
}

/* As cuobjdump and the sources have it. */
static const char small[] = "nothing:\n"
                            "_Z5scaleIfEvPT_PKS0_S0_i: 0+8 8+8 16+4 20+4\n"
                            "_Z5mixed4PaircsdPKf: 0+24 24+1 26+2 32+8 40+8\n";

Test(cubin, gives_the_layout_of_every_kernel)
{
    char text[2048] = "";

    load("small_sm90.cubin");
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_OK);
    cr_assert_str_eq(text, small);
    text[0] = '\0';
    load("small_sm80.cubin");
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_OK);
    cr_assert_str_eq(text, small);
}

Test(cubin, reads_the_form_for_parameters_beyond_4_kib)
{
    char text[2048] = "";

    load("large_sm90.cubin");
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_OK);
    cr_assert_str_eq(text, "_Z5largePKi5LargePKf: 0+8 8+4208 4216+8\n");
}

Test(cubin, refuses_what_is_no_cubin)
{
    char text[2048] = "";
    Elf64_Ehdr *header;

    cr_assert_eq(um_cubin_layouts(NULL, 0, describe, text), UM_ERR_FORMAT);
    cr_assert_eq(um_cubin_layouts("", 0, describe, text), UM_ERR_FORMAT);
    cr_assert_eq(um_cubin_layouts("\177ELF", 4, describe, text), UM_ERR_FORMAT);
    load("small_sm90.cubin");
    header = (Elf64_Ehdr *)(void *)image;
    header->e_machine = EM_X86_64;
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_ERR_FORMAT);
    header->e_machine = 190;
    header->e_shoff = UINT64_MAX - 8;
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_ERR_FORMAT);
    cr_assert_str_eq(text, "");
}

static void touch(void *ctx, const char *name, const um_param_t *params, uint32_t n)
{
    size_t *sum = ctx;

    *sum += strlen(name);
    for (uint32_t i = 0; i < n; i++)
        *sum += params[i].size_bytes;
}

Test(cubin, survives_every_cut)
{
    size_t sum = 0;

    load("small_sm90.cubin");
    for (size_t n = 0; n < image_bytes; n++) {
        unsigned char *cut = malloc(n + !n); /* exactly as long: a sanitizer sees a byte too far */

        memcpy(cut, image, n);
        um_status_t status = um_cubin_layouts(cut, n, touch, &sum);
        cr_assert(status == UM_OK || status == UM_ERR_FORMAT);
        free(cut);
    }
}

Test(cubin, survives_a_wrong_byte_anywhere)
{
    size_t sum = 0;

    load("small_sm90.cubin");
    for (size_t at = 0; at < image_bytes; at++) {
        static const unsigned char flip[] = {0xff, 0x80, 0x01};

        for (size_t f = 0; f < sizeof flip; f++) {
            image[at] ^= flip[f];
            um_status_t status = um_cubin_layouts(image, image_bytes, touch, &sum);
            cr_assert(status == UM_OK || status == UM_ERR_FORMAT);
            image[at] ^= flip[f];
        }
    }
    cr_assert_gt(sum, 0);
}

/* The place of a kernel's first parameter record of the given ordinal. */
static unsigned char *record_of(uint32_t ordinal)
{
    const unsigned char record[] = {4, 0x17, 12, 0, 0, 0, 0, 0, (unsigned char)ordinal, 0};
    unsigned char *found = memmem(image, image_bytes, record, sizeof record);

    cr_assert_not_null(found);
    return found;
}

Test(cubin, leaves_out_a_kernel_whose_records_contradict_each_other)
{
    char text[2048] = "";

    load("small_sm90.cubin");
    record_of(4)[8] = 3; /* ordinal 3 twice, 4 never: of `mixed` */
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_OK);
    cr_assert_null(strstr(text, "mixed"));
    cr_assert_not_null(strstr(text, "scale"));
    text[0] = '\0';
    load("small_sm90.cubin");
    record_of(4)[8] = 200; /* a gap */
    cr_assert_eq(um_cubin_layouts(image, image_bytes, describe, text), UM_OK);
    cr_assert_null(strstr(text, "mixed"));
}

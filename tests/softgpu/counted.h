/*
 * counted.h - the heap of a test program, counted by who asked: counted_bytes() is what one library holds now.
 *
 * Include it in one file. What libc allocates on a library's behalf (strdup, fopen) counts as nobody's. Sanitizers
 * have a heap of their own: with them nothing is counted.
 */
#ifndef SOFTGPU_COUNTED_H
#define SOFTGPU_COUNTED_H

#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void __libc_free(void *data);

/* Right before what the caller gets. */
typedef struct counted {
    size_t bytes;
    uint32_t offset; /* from what libc gave */
    uint32_t ours;
} counted_t;

static _Atomic size_t counted_now;
static _Atomic uintptr_t counted_from, counted_to; /* the library's code */

static int counted_find(struct dl_phdr_info *object, size_t bytes, void *name)
{
    (void)bytes;
    if (!strstr(object->dlpi_name, name))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
            counted_from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            counted_to = counted_from + object->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* From now on. false = it is not in this process. */
static bool counted_library(const char *name)
{
    return dl_iterate_phdr(counted_find, (void *)(uintptr_t)name) == 1;
}

static size_t counted_bytes(void)
{
    return counted_now;
}

__attribute__((unused)) static void *counted_new(size_t align, size_t bytes, const void *caller)
{
    char *data = bytes < PTRDIFF_MAX - align - sizeof(counted_t)
                     ? __libc_malloc(bytes + align + sizeof(counted_t))
                     : NULL;
    uintptr_t at = ((uintptr_t)data + sizeof(counted_t) + align - 1) / align * align;
    counted_t *header = (counted_t *)at - 1;

    if (!data)
        return NULL;
    *header =
        (counted_t){.bytes = bytes,
                    .offset = (uint32_t)(at - (uintptr_t)data),
                    .ours = (uintptr_t)caller >= counted_from && (uintptr_t)caller < counted_to};
    if (header->ours)
        counted_now += bytes;
    return header + 1;
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define COUNTED_ALIGN _Alignof(max_align_t)
#define COUNTED_BY    __builtin_return_address(0)

void *malloc(size_t bytes)
{
    return counted_new(COUNTED_ALIGN, bytes, COUNTED_BY);
}

void *calloc(size_t n, size_t bytes)
{
    size_t all;
    void *data =
        __builtin_mul_overflow(n, bytes, &all) ? NULL : counted_new(COUNTED_ALIGN, all, COUNTED_BY);

    return data ? memset(data, 0, all) : NULL;
}

void free(void *data)
{
    counted_t *header = (counted_t *)data - 1;

    if (!data)
        return;
    if (header->ours)
        counted_now -= header->bytes;
    __libc_free((char *)data - header->offset);
}

void *realloc(void *data, size_t bytes)
{
    void *grown = counted_new(COUNTED_ALIGN, bytes, COUNTED_BY);
    size_t had = data ? ((counted_t *)data)[-1].bytes : 0;

    if (!grown || !data)
        return grown;
    memcpy(grown, data, had < bytes ? had : bytes);
    free(data);
    return grown;
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return counted_new(align < COUNTED_ALIGN ? COUNTED_ALIGN : align, bytes, COUNTED_BY);
}

void *memalign(size_t align, size_t bytes)
{
    return counted_new(align < COUNTED_ALIGN ? COUNTED_ALIGN : align, bytes, COUNTED_BY);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *data = counted_new(align < COUNTED_ALIGN ? COUNTED_ALIGN : align, bytes, COUNTED_BY);

    if (!data)
        return 12; /* ENOMEM */
    *out = data;
    return 0;
}

size_t malloc_usable_size(void *data)
{
    return data ? ((counted_t *)data)[-1].bytes : 0;
}

#endif
#endif

/*
 * cubin.c - what a just-in-time compiler would make of a module's text, as far as anybody looks into it: an ELF
 * file with each kernel's parameter layout (section .nv.info.NAME, attribute EIATTR_KPARAM_INFO). CUPTI hands it
 * over when the module is loaded.
 */
#include "softgpu.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EM_CUDA       190
#define SHT_CUDA_INFO 0x70000000

typedef struct bytes {
    char *at;
    size_t n, room;
} bytes_t;

static size_t append(bytes_t *b, const void *data, size_t n)
{
    size_t before = b->n;

    while (b->n + n > b->room) {
        b->room = b->room ? 2 * b->room : 4096;
        b->at = realloc(b->at, b->room);
    }
    memcpy(b->at + b->n, data, n);
    b->n += n;
    return before;
}

static size_t append_layout(bytes_t *b, const sg_function_t *f)
{
    size_t before = b->n;

    for (unsigned i = f->n_params; i-- > 0;) {
        /* format 4, attribute 0x17, 12 bytes */
        uint32_t words[] = {0x000c1704, 0, (uint32_t)f->params[i].offset << 16 | i,
                            (uint32_t)f->params[i].bytes << 18 | 0x1f000};
        append(b, words, sizeof(words));
    }
    return before;
}

/* The caller's to free. */
char *sg_cubin(const sg_function_t *functions, size_t *bytes)
{
    bytes_t file = {0}, names = {0};
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41,
                                     8},
                         .e_type = ET_EXEC,
                         .e_machine = EM_CUDA,
                         .e_version = 1,
                         .e_ehsize = sizeof(Elf64_Ehdr),
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shstrndx = 1};
    size_t n = 2, k = 2;

    for (const sg_function_t *f = functions; f; f = f->next)
        n += 2;
    Elf64_Shdr *section = calloc(n, sizeof(*section));
    append(&names, "", 1);
    append(&file, &header, sizeof(header));
    section[1].sh_name = (Elf64_Word)append(&names, ".shstrtab", 10);
    section[1].sh_type = SHT_STRTAB;
    for (const sg_function_t *f = functions; f; f = f->next) {
        char name[512];
        snprintf(name, sizeof(name), ".nv.info.%s", f->name);
        section[k].sh_name = (Elf64_Word)append(&names, name, strlen(name) + 1);
        section[k].sh_type = SHT_CUDA_INFO;
        section[k].sh_offset = append_layout(&file, f);
        section[k].sh_size = file.n - section[k].sh_offset;
        k++;
        snprintf(name, sizeof(name), ".text.%s", f->name);
        section[k].sh_name = (Elf64_Word)append(&names, name, strlen(name) + 1);
        section[k].sh_type = SHT_PROGBITS;
        section[k].sh_offset = append(&file, name, 16); /* what it does is nobody's business */
        section[k].sh_size = 16;
        k++;
    }
    section[1].sh_offset = append(&file, names.at, names.n);
    section[1].sh_size = names.n;
    while (file.n % 8)
        append(&file, "", 1);
    header.e_shnum = (Elf64_Half)n;
    header.e_shoff = append(&file, section, n * sizeof(*section));
    memcpy(file.at, &header, sizeof(header));
    free(section);
    free(names.at);
    *bytes = file.n;
    return file.at;
}

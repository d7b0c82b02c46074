/*
 * um_cubin_layouts: kernel parameter layouts out of a cubin.
 *
 * A cubin is a 64-bit little-endian ELF file. For each function there is a section .nv.info.<name>, a
 * sequence of attributes {u8 format, u8 attribute, u16 value or length, [bytes]}; sh_info names the
 * function's code section. One attribute of 12 bytes describes one parameter:
 *
 *   KPARAM_INFO     0x17  u32 index, u16 ordinal, u16 offset, u32 with the size in bits 18 and up
 *   KPARAM_INFO_V2  0x45  the same with the size in bits 0 to 15: parameters beyond 4 KiB (CUDA 12.1+)
 *
 * Checked on cubins of CUDA 13.0 for sm_75 to sm_100. A function is a kernel if its symbol has the
 * entry bit 0x10 in st_other: a kernel without parameters has no KPARAM_INFO to tell it by.
 */
#include "kernels.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define UM_EM_CUDA        190
#define UM_STO_CUDA_ENTRY 0x10
#define UM_EIFMT_SVAL     4 /* the others carry their value in the two bytes */
#define UM_KPARAM_INFO    0x17
#define UM_KPARAM_INFO_V2 0x45
#define UM_KPARAM_BYTES   12
#define UM_INFO_PREFIX    ".nv.info."

typedef struct um_cubin {
    const unsigned char *image;
    size_t bytes;
    uint64_t sections; /* offset of the section headers */
    uint64_t n_sections;
    Elf64_Shdr names;     /* the section that names sections */
    unsigned char *entry; /* per section: 1 when a kernel's code is in it */
} um_cubin_t;

static bool um_inside(const um_cubin_t *c, uint64_t offset, uint64_t bytes)
{
    return offset <= c->bytes && bytes <= c->bytes - offset;
}

/* The n-th section header; false when it, or what it describes, is not inside the image. */
static bool um_section(const um_cubin_t *c, uint64_t n, Elf64_Shdr *out)
{
    if (n >= c->n_sections)
        return false;
    memcpy(out, c->image + c->sections + n * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || um_inside(c, out->sh_offset, out->sh_size);
}

/* A string of a string section; NULL when it does not end inside it. */
static const char *um_string(const um_cubin_t *c, const Elf64_Shdr *strings, uint64_t offset)
{
    const char *text = (const char *)c->image + strings->sh_offset + offset;

    if (strings->sh_type != SHT_STRTAB || offset >= strings->sh_size ||
        memchr(text, '\0', strings->sh_size - offset) == NULL)
        return NULL;
    return text;
}

static bool um_cubin_open(um_cubin_t *c)
{
    Elf64_Ehdr header;
    Elf64_Shdr zero;
    uint64_t names;

    if (c->bytes < sizeof header)
        return false;
    memcpy(&header, c->image, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != UM_EM_CUDA ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    c->sections = header.e_shoff;
    c->n_sections = header.e_shnum;
    names = header.e_shstrndx;
    if (!um_inside(c, c->sections, sizeof zero))
        return false;
    memcpy(&zero, c->image + c->sections, sizeof zero); /* holds what 16 bits cannot */
    if (c->n_sections == 0)
        c->n_sections = zero.sh_size;
    if (names == SHN_XINDEX)
        names = zero.sh_link;
    if (c->n_sections > c->bytes / sizeof zero ||
        !um_inside(c, c->sections, c->n_sections * sizeof zero))
        return false;
    return um_section(c, names, &c->names) && c->names.sh_type == SHT_STRTAB;
}

/* Marks the sections that hold kernels. Section numbers beyond 16 bits (SHN_XINDEX) stay unmarked:
 * only kernels without parameters need the mark. */
static void um_mark_entries(um_cubin_t *c)
{
    for (uint64_t i = 0; i < c->n_sections; i++) {
        Elf64_Shdr section;
        Elf64_Sym symbol;

        if (!um_section(c, i, &section) || section.sh_type != SHT_SYMTAB)
            continue;
        for (uint64_t at = 0; section.sh_size - at >= sizeof symbol; at += sizeof symbol) {
            memcpy(&symbol, c->image + section.sh_offset + at, sizeof symbol);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
                (symbol.st_other & UM_STO_CUDA_ENTRY) != 0 && symbol.st_shndx < c->n_sections)
                c->entry[symbol.st_shndx] = 1;
        }
        return; /* there is one */
    }
}

static uint32_t um_u16(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t um_u32(const unsigned char *at)
{
    return um_u16(at) | um_u16(at + 2) << 16;
}

/*
 * The parameters in one .nv.info section, by ordinal, at most `max`; returns how many there are, or -1
 * when they make no sense together.
 */
static int64_t um_info_params(const unsigned char *at, size_t bytes, um_param_t *params,
                              uint32_t max)
{
    uint32_t n = 0, seen = 0;

    for (uint32_t i = 0; i < max; i++)
        params[i].flags = UINT32_MAX; /* not seen */
    while (bytes >= 4) {
        size_t length = at[0] == UM_EIFMT_SVAL ? um_u16(at + 2) : 0;

        if (length > bytes - 4)
            return -1;
        if (at[0] == UM_EIFMT_SVAL && length == UM_KPARAM_BYTES &&
            (at[1] == UM_KPARAM_INFO || at[1] == UM_KPARAM_INFO_V2)) {
            uint32_t ordinal = um_u16(at + 8);
            uint32_t sizes = um_u32(at + 12);

            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): set for all below max */
            if (ordinal >= max || params[ordinal].flags == 0)
                return -1;
            params[ordinal] = (um_param_t){
                .offset_bytes = um_u16(at + 10),
                .size_bytes = at[1] == UM_KPARAM_INFO ? sizes >> 18 : sizes & 0xffff,
            };
            seen++;
            if (ordinal >= n)
                n = ordinal + 1;
        }
        at += 4 + length;
        bytes -= 4 + length;
    }
    return seen == n ? (int64_t)n : -1;
}

um_status_t um_cubin_layouts(const void *image, size_t image_bytes, um_cubin_kernel_fn fn,
                             void *ctx)
{
    um_cubin_t c = {.image = image, .bytes = image_bytes};
    const size_t skip = sizeof UM_INFO_PREFIX - 1;
    um_param_t *params = NULL;
    uint64_t budget = image_bytes; /* sections of a damaged file may overlap: never read it twice */
    uint32_t max = 0;
    um_status_t status = UM_OK;

    if (image == NULL || !um_cubin_open(&c))
        return UM_ERR_FORMAT;
    c.entry = calloc(c.n_sections, 1);
    if (c.entry == NULL)
        return UM_ERR_NO_MEMORY;
    um_mark_entries(&c);
    for (uint64_t i = 0; i < c.n_sections; i++) {
        Elf64_Shdr section;
        const char *name;
        uint32_t fits;
        int64_t n;

        if (!um_section(&c, i, &section) || section.sh_type == SHT_NOBITS)
            continue;
        name = um_string(&c, &c.names, section.sh_name);
        if (name == NULL || strncmp(name, UM_INFO_PREFIX, skip) != 0 || name[skip] == '\0')
            continue;
        if (section.sh_size + strlen(name) > budget) {
            status = UM_ERR_FORMAT;
            break;
        }
        budget -= section.sh_size + strlen(name);
        fits = (uint32_t)(section.sh_size / (4 + UM_KPARAM_BYTES) & 0xffff);
        if (fits > max) {
            um_param_t *bigger = realloc(params, fits * sizeof *params);

            if (bigger == NULL) {
                status = UM_ERR_NO_MEMORY;
                break;
            }
            params = bigger;
            max = fits;
        }
        n = um_info_params(c.image + section.sh_offset, section.sh_size, params, fits);
        if (n > 0 || (n == 0 && section.sh_info < c.n_sections && c.entry[section.sh_info]))
            fn(ctx, name + skip, params, (uint32_t)n);
    }
    free(params);
    free(c.entry);
    return status;
}

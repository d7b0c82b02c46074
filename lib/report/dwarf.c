#include "dwarf.h"

#ifdef UM_HAVE_DW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UM_SEARCH_BYTES 2048

struct um_dwarf {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf_Addr bias; /* libdwfl's address minus the file's */
    Dwfl_Callbacks callbacks;
    char *search; /* for separate debug information */
};

/* ---- opening ---------------------------------------------------------------------------------- */

static void hex(const uint8_t *bytes, size_t n, char *out, size_t out_bytes)
{
    *out = '\0';
    for (size_t i = 0; i < n && 2 * i + 2 < out_bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Is the file what was recorded? By its build id, or without one by size and time. */
static bool is_recorded(Elf *elf, const um_ev_module_t *module, const struct stat *file, char *why,
                        size_t why_bytes)
{
    const void *bytes;
    char build_id[160];
    ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);

    hex(bytes, n > 0 ? (size_t)n : 0, build_id, sizeof(build_id));
    if (*module->build_id && !strcmp(build_id, module->build_id))
        return true;
    if (*module->build_id || *build_id) {
        snprintf(why, why_bytes, "%s is another build now (recorded %.12s, found %.12s)",
                 module->path, *module->build_id ? module->build_id : "none",
                 *build_id ? build_id : "none");
        return false;
    }
    if (module->file_bytes && module->file_bytes == (uint64_t)file->st_size &&
        module->modified_ns ==
            (uint64_t)file->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)file->st_mtim.tv_nsec)
        return true;
    snprintf(why, why_bytes, "%s has no build id and is not as it was recorded", module->path);
    return false;
}

static bool open_file(um_dwarf_t *dwarf, const char *path, const um_ev_module_t *module, char *why,
                      size_t why_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat file;
    GElf_Addr bias;
    Elf *elf;

    if (fd < 0 || fstat(fd, &file) || !S_ISREG(file.st_mode)) {
        snprintf(why, why_bytes, "%s: %s", path, fd < 0 ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            close(fd);
        return false;
    }
    dwarf->dwfl = dwfl_begin(&dwarf->callbacks);
    dwarf->module = dwarf->dwfl ? dwfl_report_offline(dwarf->dwfl, module->name, path, fd) : NULL;
    if (!dwarf->module)
        close(fd); /* taken over by the module otherwise */
    if (dwarf->dwfl)
        dwfl_report_end(dwarf->dwfl, NULL, NULL);
    elf = dwarf->module ? dwfl_module_getelf(dwarf->module, &bias) : NULL;
    if (elf && is_recorded(elf, module, &file, why, why_bytes)) {
        dwarf->bias = bias;
        return true;
    }
    if (!elf)
        snprintf(why, why_bytes, "%s: %s", path, dwfl_errmsg(-1));
    if (dwarf->dwfl)
        dwfl_end(dwarf->dwfl);
    dwarf->dwfl = NULL;
    return false;
}

static bool is_hex(const char *text)
{
    return strlen(text) > 4 && strlen(text) < 160 && text[strspn(text, "0123456789abcdef")] == 0;
}

um_dwarf_t *um_dwarf_open(const um_ev_module_t *module, const char *debug_dirs, char *why,
                          size_t why_bytes)
{
    um_dwarf_t *dwarf = calloc(1, sizeof(*dwarf));
    const char *dirs = debug_dirs ? debug_dirs : "/usr/lib/debug";
    char said[512], path[UM_SEARCH_BYTES];

    if (!dwarf || asprintf(&dwarf->search, ":.debug:%s", dirs) < 0) {
        free(dwarf);
        snprintf(why, why_bytes, "no memory");
        return NULL;
    }
    dwarf->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                                        .find_debuginfo = dwfl_standard_find_debuginfo,
                                        .section_address = dwfl_offline_section_address,
                                        .debuginfo_path = &dwarf->search};
    if (!*module->path)
        snprintf(why, why_bytes, "%s has no file", module->name);
    else if (open_file(dwarf, module->path, module, why, why_bytes))
        return dwarf;
    /* The file is gone or another: its debug information may still be there, under its build id. */
    for (const char *dir = dirs; is_hex(module->build_id) && *dir;) {
        int n = (int)strcspn(dir, ":");

        for (int debug = 0; debug < 2; debug++) {
            snprintf(path, sizeof(path), "%.*s/.build-id/%.2s/%s%s", n, dir, module->build_id,
                     module->build_id + 2, debug ? ".debug" : "");
            if (*dir == '/' && open_file(dwarf, path, module, said, sizeof(said)))
                return dwarf;
        }
        dir += n + (dir[n] == ':');
    }
    um_dwarf_close(dwarf);
    return NULL;
}

void um_dwarf_close(um_dwarf_t *dwarf)
{
    if (!dwarf)
        return;
    if (dwarf->dwfl)
        dwfl_end(dwarf->dwfl);
    free(dwarf->search);
    free(dwarf);
}

const char *um_dwarf_lacks(um_dwarf_t *dwarf)
{
    Dwarf_Addr bias;

    return dwfl_module_getdwarf(dwarf->module, &bias) ? "" : "no debug information";
}

/* ---- looking ---------------------------------------------------------------------------------- */

/* The compilation unit at an address. Not every compiler writes the index that libdwfl looks into. */
static Dwarf_Die *unit_at(um_dwarf_t *dwarf, Dwarf_Addr address, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(dwarf->module, address, bias);

    if (unit)
        return unit;
    while ((unit = dwfl_module_nextcu(dwarf->module, unit, bias)) != NULL)
        if (dwarf_haspc(unit, address - *bias) > 0)
            return unit;
    return NULL;
}

static const char *text_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute memory;

    return dwarf_formstring(dwarf_attr_integrate(die, attribute, &memory));
}

static uint32_t number_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute memory;
    Dwarf_Word word = 0;

    return dwarf_formudata(dwarf_attr(die, attribute, &memory), &word) == 0 ? (uint32_t)word : 0;
}

/* The die that says where the function was declared: an inlined copy names the function, and that the
 * declaration in its class. */
static bool declaration_of(Dwarf_Die *die, Dwarf_Die *out)
{
    static const unsigned towards[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Attribute memory;
    Dwarf_Die next;

    *out = *die;
    for (int steps = 0; steps < 8; steps++) {
        bool moved = false;

        for (size_t i = 0; i < 2 && !moved; i++) {
            moved = dwarf_formref_die(dwarf_attr(out, towards[i], &memory), &next) != NULL;
            if (moved)
                *out = next;
        }
        if (!moved)
            return true;
    }
    return false; /* only damaged information goes in circles */
}

/* Of internal functions compilers give no linkage name: what is around tells. */
static void name_scope(um_dwarf_frame_t *frame, Dwarf_Die *die)
{
    Dwarf_Die declaration, *around = NULL;
    int n = declaration_of(die, &declaration) ? dwarf_getscopes_die(&declaration, &around) : 0;
    size_t used = 0;

    for (int i = n - 1; i > 0; i--) {
        int tag = dwarf_tag(&around[i]);
        const char *name = dwarf_diename(&around[i]);

        if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type &&
            tag != DW_TAG_union_type && tag != DW_TAG_subprogram && tag != DW_TAG_module)
            continue;
        if (!name)
            name = tag == DW_TAG_namespace              ? "(anonymous namespace)"
                   : !strcmp(frame->name, "operator()") ? "{lambda}"
                                                        : "(anonymous)";
        int wrote = snprintf(frame->scope + used, sizeof(frame->scope) - used, "%s::", name);
        if (wrote < 0 || (size_t)wrote >= sizeof(frame->scope) - used)
            break;
        used += (size_t)wrote;
    }
    free(around);
}

static void name_frame(um_dwarf_frame_t *frame, Dwarf_Die *die)
{
    frame->linkage = text_of(die, DW_AT_linkage_name);
    if (!frame->linkage)
        frame->linkage = text_of(die, DW_AT_MIPS_linkage_name);
    frame->name = dwarf_diename(die);
    if (!frame->linkage && frame->name)
        name_scope(frame, die);
}

static bool is_fortran(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_Fortran77:
    case DW_LANG_Fortran90:
    case DW_LANG_Fortran95:
    case DW_LANG_Fortran03:
    case DW_LANG_Fortran08:
        return true;
    default:
        return false;
    }
}

/* Where the frame was called: what the inlined copy in the next frame says. */
static void call_of(um_dwarf_frame_t *outer, Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t n;
    uint32_t file = number_of(inlined, DW_AT_call_file);

    if (dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n)
        outer->file = dwarf_filesrc(files, file, NULL, NULL);
    outer->line = number_of(inlined, DW_AT_call_line);
    outer->column = number_of(inlined, DW_AT_call_column);
}

/* Names the frames from the innermost scope outwards; frames[0] has its line. */
static size_t name_frames(Dwarf_Die *unit, Dwarf_Die *scopes, int n_scopes, um_dwarf_frame_t *out,
                          size_t most)
{
    size_t n = 0;

    for (int i = 0; i < n_scopes && n < most; i++) {
        int tag = dwarf_tag(&scopes[i]);

        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        name_frame(&out[n], &scopes[i]);
        if (tag == DW_TAG_subprogram || n + 1 == most)
            return n + 1;
        out[n].inlined = true;
        call_of(&out[++n], unit, &scopes[i]);
    }
    return n;
}

static void line_of(um_dwarf_frame_t *frame, Dwarf_Die *unit, Dwarf_Addr address)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    int number = 0, column = 0;

    if (!line)
        return;
    frame->file = dwarf_linesrc(line, NULL, NULL);
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        frame->line = (uint32_t)number;
    if (dwarf_linecol(line, &column) == 0 && column > 0)
        frame->column = (uint32_t)column;
}

static size_t find_in_unit(Dwarf_Die *unit, Dwarf_Addr address, um_dwarf_frame_t *out, size_t most)
{
    Dwarf_Die split, *code = unit, *scopes = NULL, *outwards = NULL;
    uint8_t type = 0;
    int n;
    size_t found = 0;

    line_of(&out[0], unit, address);
    memset(&split, 0, sizeof(split));
    /* Functions of a split unit are in a file of their own. */
    if (dwarf_cu_info(unit->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && dwarf_tag(&split) != DW_TAG_invalid)
        code = &split;
    if (dwarf_getscopes(code, address, &scopes) > 0) {
        /* Once in an inlined copy, those are the scopes where it was written: the copies around it are
         * its parents in the tree. */
        n = dwarf_getscopes_die(&scopes[0], &outwards);
        found = name_frames(code, outwards, n, out, most);
    }
    free(outwards);
    free(scopes);
    if (!found && out[0].line)
        found = 1;
    for (size_t i = 0; i < found; i++) {
        out[i].fortran = is_fortran(unit);
        out[i].directory = text_of(unit, DW_AT_comp_dir);
    }
    return found;
}

static const char *symbol_at(um_dwarf_t *dwarf, Dwarf_Addr address)
{
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char *name =
        dwfl_module_addrinfo(dwarf->module, address, &offset, &symbol, NULL, NULL, NULL);

    /* The nearest symbol below is another function's, unless it reaches here. */
    return name && offset < symbol.st_size ? name : NULL;
}

size_t um_dwarf_find(um_dwarf_t *dwarf, uint64_t offset, um_dwarf_frame_t *out, size_t most)
{
    Dwarf_Addr address = offset + dwarf->bias, bias = 0;
    Dwarf_Die *unit = unit_at(dwarf, address, &bias);
    size_t n = 0;

    if (!most)
        return 0;
    memset(out, 0, most * sizeof(*out));
    if (unit)
        n = find_in_unit(unit, address - bias, out, most);
    if (n == 0 || (n == 1 && !out[0].linkage && !out[0].name)) {
        out[0].linkage = symbol_at(dwarf, address);
        n = out[0].linkage || n;
    }
    return n;
}

#else

#include <stdio.h>

um_dwarf_t *um_dwarf_open(const um_ev_module_t *module, const char *debug_dirs, char *why,
                          size_t why_bytes)
{
    (void)module;
    (void)debug_dirs;
    snprintf(why, why_bytes, "umrt was built without libdw");
    return NULL;
}

void um_dwarf_close(um_dwarf_t *dwarf)
{
    (void)dwarf;
}

size_t um_dwarf_find(um_dwarf_t *dwarf, uint64_t offset, um_dwarf_frame_t *out, size_t most)
{
    (void)dwarf;
    (void)offset;
    (void)out;
    (void)most;
    return 0;
}

const char *um_dwarf_lacks(um_dwarf_t *dwarf)
{
    (void)dwarf;
    return "umrt was built without libdw";
}

#endif

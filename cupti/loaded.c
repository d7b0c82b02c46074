/*
 * loaded.c - what is loaded where.
 *
 * Readers see an immutable table through one atomic pointer. The one thread that looks again builds a
 * new one; others go on with the old. Everything lives in memory mapped here and kept for ever: a call
 * site may be taken while malloc is held, and a table may be in use at any time.
 */
#include "loaded.h"

#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UM_MODULES     2048        /* loaded at once; further ones are not seen */
#define UM_MEMORY      (16u << 20) /* for tables and names over the life of the process */
#define UM_PATH_BYTES  4096
#define UM_BUILD_BYTES 64 /* of a build id: usually 20 */

typedef struct um_table {
    uint64_t generation;
    size_t n;
    const um_loaded_t *module[]; /* by address */
} um_table_t;

static _Atomic(const um_table_t *) um_table;
static _Atomic uint64_t um_counts; /* of the loader, at the last look */

/* The looking thread's alone. */
static atomic_flag um_looking = ATOMIC_FLAG_INIT;
static uint8_t *um_memory;
static size_t um_memory_used;
static const um_loaded_t *um_seen[UM_MODULES];
static size_t um_n_seen;

static void *um_keep(size_t bytes)
{
    if (!um_memory) {
        void *fresh = mmap(NULL, UM_MEMORY, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fresh == MAP_FAILED)
            return NULL;
        um_memory = fresh;
    }
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > UM_MEMORY - um_memory_used)
        return NULL;
    um_memory_used += bytes;
    return um_memory + um_memory_used - bytes;
}

static const char *um_keep_text(const char *text)
{
    char *copy = um_keep(strlen(text) + 1);

    return copy ? strcpy(copy, text) : "";
}

/* ---- one module ------------------------------------------------------------------------------- */

static void um_read_build_id(const struct dl_phdr_info *info, char *out, size_t bytes)
{
    *out = '\0';
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        size_t at = 0;
        if (p->p_type != PT_NOTE)
            continue;
        const char *notes = (const char *)info->dlpi_addr + p->p_vaddr;
        while (p->p_memsz - at >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            memcpy(&note, notes + at, sizeof(note));
            size_t name = at + sizeof(note), desc = name + ((note.n_namesz + 3u) & ~(size_t)3);
            if (desc > p->p_memsz || note.n_descsz > p->p_memsz - desc)
                break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                memcmp(notes + name, "GNU", 4) == 0 && 2 * note.n_descsz < bytes) {
                for (size_t b = 0; b < note.n_descsz; b++)
                    snprintf(out + 2 * b, 3, "%02x", (uint8_t)notes[desc + b]);
                return;
            }
            at = desc + ((note.n_descsz + 3u) & ~(size_t)3);
            if (at > p->p_memsz)
                break;
        }
    }
}

/* The loader's name of it made absolute; the program itself has none. */
static void um_read_path(const char *name, char *out, size_t bytes)
{
    ssize_t n = 0;

    if (!*name) {
        n = readlink("/proc/self/exe", out, bytes - 1);
        out[n > 0 ? n : 0] = '\0';
    } else if (*name == '/' || !strchr(name, '/') || !getcwd(out, bytes)) {
        snprintf(out, bytes, "%s",
                 strchr(name, '/') ? name : ""); /* the kernel's own has no file */
    } else {
        size_t used = strlen(out);
        snprintf(out + used, bytes - used, "/%s", name);
    }
}

static bool um_begins(const char *name, const char *const *with, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, with[i], strlen(with[i])) == 0)
            return true;
    return false;
}

/* A name stands for one file: the second of two gets digits of its own, the same ones in every run. */
static const char *um_module_name(const char *base, const char *path, const char *build_id)
{
    for (size_t i = 0; i < um_n_seen; i++) {
        const um_loaded_t *other = um_seen[i];
        if (strcmp(other->name, base) != 0)
            continue;
        if (strcmp(other->path, path) == 0 && strcmp(other->build_id, build_id) == 0)
            return other->name;
        char name[UM_PATH_BYTES];
        uint64_t hash =
            XXH3_64bits_withSeed(path, strlen(path), XXH3_64bits(build_id, strlen(build_id)));
        snprintf(name, sizeof(name), "%.200s@%08x", base, (unsigned)hash);
        return um_keep_text(name);
    }
    return um_keep_text(base);
}

static bool um_read_range(const struct dl_phdr_info *info, um_loaded_t *out)
{
    out->bias = info->dlpi_addr;
    out->begin = UINTPTR_MAX;
    out->end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        out->begin = begin < out->begin ? begin : out->begin;
        out->end = begin + p->p_memsz > out->end ? begin + p->p_memsz : out->end;
    }
    return out->begin < out->end;
}

static const um_loaded_t *um_module_new(um_loaded_t *module, const char *path, const char *build_id,
                                        const char *base)
{
    static const char *const tools[] = {"libumrt", "libcupti", "libcuda.so"};
    static const char *const pythons[] = {"python", "libpython", "pypy", "libpypy"};
    um_loaded_t *kept = um_keep(sizeof(*kept));

    if (!kept || um_n_seen == UM_MODULES)
        return NULL;
    module->name = um_module_name(base, path, build_id);
    module->path = um_keep_text(path);
    module->build_id = um_keep_text(build_id);
    module->tooling = um_begins(base, tools, sizeof(tools) / sizeof(*tools));
    module->python = um_begins(base, pythons, sizeof(pythons) / sizeof(*pythons));
    *kept = *module;
    return um_seen[um_n_seen++] = kept;
}

/* ---- all of them ------------------------------------------------------------------------------ */

typedef struct um_look {
    const um_loaded_t *module[UM_MODULES];
    size_t n;
    uint64_t counts;
} um_look_t;

static int um_module_seen(struct dl_phdr_info *info, size_t size, void *ctx)
{
    um_look_t *look = ctx;
    char path[UM_PATH_BYTES], build_id[2 * UM_BUILD_BYTES + 1];
    um_loaded_t module = {0};
    const um_loaded_t *known = NULL;

    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
        look->counts = info->dlpi_adds + info->dlpi_subs;
    if (look->n == UM_MODULES || !um_read_range(info, &module))
        return 0;
    um_read_path(info->dlpi_name, path, sizeof(path));
    um_read_build_id(info, build_id, sizeof(build_id));
    const char *from = *path ? path : info->dlpi_name, *slash = strrchr(from, '/');
    for (size_t i = 0; i < um_n_seen && !known; i++)
        if (um_seen[i]->begin == module.begin && um_seen[i]->end == module.end &&
            strcmp(um_seen[i]->build_id, build_id) == 0 && strcmp(um_seen[i]->path, path) == 0)
            known = um_seen[i];
    if (!known)
        known = um_module_new(&module, path, build_id, slash ? slash + 1 : from);
    if (!known)
        return 0;
    size_t at = look->n++;
    for (; at > 0 && look->module[at - 1]->begin > known->begin; at--)
        look->module[at] = look->module[at - 1];
    look->module[at] = known;
    return 0;
}

static void um_module_tell(const um_loaded_t *module)
{
    um_event_t event = um_live_event(UM_EV_MODULE);
    struct stat file = {0};

    /* Where call sites are told, also while hinting: umrt top names them. */
    if (!um_live.record && um_live.runtime->settings.mode < UM_MODE_HINT)
        return;
    if (*module->path && stat(module->path, &file) != 0)
        file = (struct stat){0};
    event.u.module = (um_ev_module_t){.addr = module->begin,
                                      .bytes = module->end - module->begin,
                                      .load_bias = module->bias,
                                      .file_bytes = (uint64_t)file.st_size,
                                      .modified_ns = (uint64_t)file.st_mtim.tv_sec * 1000000000u +
                                                     (uint64_t)file.st_mtim.tv_nsec,
                                      .name = module->name,
                                      .path = module->path,
                                      .build_id = module->build_id};
    um_live_post(&event, false);
}

static bool um_table_has(const um_table_t *table, const um_loaded_t *module)
{
    for (size_t i = 0; table && i < table->n; i++)
        if (table->module[i] == module)
            return true;
    return false;
}

static void um_look_again(void)
{
    static um_look_t look;
    const um_table_t *before = um_table;

    look.n = 0;
    dl_iterate_phdr(um_module_seen, &look);
    um_table_t *after = um_keep(sizeof(*after) + look.n * sizeof(*look.module));
    if (after) {
        after->generation = before ? before->generation + 1 : 1;
        after->n = look.n;
        memcpy(after->module, look.module, look.n * sizeof(*look.module));
        um_table = after;
    }
    um_counts = look.counts;
    /* What came back to where it was is told again: something else may have been there meanwhile. */
    for (size_t i = 0; after && i < after->n; i++)
        if (!um_table_has(before, after->module[i]))
            um_module_tell(after->module[i]);
}

static int um_count_seen(struct dl_phdr_info *info, size_t size, void *ctx)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
        *(uint64_t *)ctx = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

void um_loaded_refresh(void)
{
    uint64_t counts = 0;

    dl_iterate_phdr(um_count_seen, &counts);
    if ((counts == um_counts && um_table) || atomic_flag_test_and_set(&um_looking))
        return;
    um_look_again();
    atomic_flag_clear(&um_looking);
}

const um_loaded_t *um_loaded_at(uintptr_t pc)
{
    const um_table_t *table = um_table;
    size_t low = 0, high = table ? table->n : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const um_loaded_t *module = table->module[middle];
        if (pc < module->begin)
            high = middle;
        else if (pc >= module->end)
            low = middle + 1;
        else
            return module;
    }
    return NULL;
}

uint64_t um_loaded_generation(void)
{
    const um_table_t *table = um_table;

    return table ? table->generation : 0;
}

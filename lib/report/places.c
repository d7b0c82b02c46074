#include "places_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "dwarf.h"
#include "places_rules.h"

#define LINES_MAX 32u /* inlined into each other */
#define SITES_MAX 65536u
#define PCS_MAX   (1u << 20)
#define FILES_MAX 65536u

/* A file as some trace named it. */
typedef struct um_file {
    um_ev_module_t is; /* strings kept */
    um_dwarf_t *dwarf;
    const char *why;
    bool tried;
} um_file_t;

typedef struct um_mapped {
    uint64_t begin, end, bias;
    uint32_t file;
} um_mapped_t;

/* The PC of a CPU fault. A report may be of many processes, and knows a PC by its number alone. */
typedef struct um_pc {
    uint64_t pc, offset, faults;
    uint32_t file; /* UM_MAP_NONE = in no module that was seen */
    bool open;     /* its trace may yet say what was loaded there */
    bool clashes;  /* another trace has other code there */
} um_pc_t;

static um_file_t *file_at(const um_places_t *p, size_t i)
{
    return (um_file_t *)p->files.at + i;
}

static um_pc_t *pc_at(const um_places_t *p, size_t i)
{
    return (um_pc_t *)p->pcs.at + i;
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* One more element, zeroed, at the end; NULL = no memory. */
static void *add(um_places_t *p, um_places_list_t *list, size_t bytes)
{
    if (!um_grow(&list->at, &list->size, list->n + 1, bytes)) {
        p->status = UM_ERR_NO_MEMORY;
        return NULL;
    }
    return memset((char *)list->at + list->n++ * bytes, 0, bytes);
}

void *um_places_keep(um_places_t *p, void *memory)
{
    void **slot = memory ? add(p, &p->kept, sizeof(void *)) : NULL;

    if (!memory)
        p->status = UM_ERR_NO_MEMORY;
    if (memory && !slot) {
        free(memory);
        return NULL;
    }
    if (slot)
        *slot = memory;
    return memory;
}

const char *um_places_keep_text(um_places_t *p, const char *text)
{
    const char *copy = *text ? um_places_keep(p, strdup(text)) : "";

    return copy ? copy : "";
}

um_status_t um_places_new(um_places_t **out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? UM_OK : UM_ERR_NO_MEMORY;
}

void um_places_debug_dirs(um_places_t *p, const char *dirs)
{
    p->debug_dirs = dirs;
}

void um_places_free(um_places_t *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->files.n; i++)
        um_dwarf_close(file_at(p, i)->dwarf);
    for (size_t i = 0; i < p->kept.n; i++)
        free(((void **)p->kept.at)[i]);
    free(p->files.at);
    free(p->mapped.at);
    free(p->pcs.at);
    free(p->sites.at);
    free(p->spots.at);
    free(p->kept.at);
    um_map_free(&p->file_of);
    um_map_free(&p->pc_of);
    um_map_free(&p->site_of);
    um_map_free(&p->spot_of);
    free(p);
}

/* ---- what a trace says ------------------------------------------------------------------------ */

static uint64_t name_key(const char *name)
{
    return um_map_hash(name, strlen(name), 0);
}

/* Ranks of one program name the same files: those of equal name and build are one. Of files that
 * differ in another trace the first keeps the name. */
static uint32_t file_of(um_places_t *p, const um_ev_module_t *module)
{
    const char *const text[] = {module->name, module->path, module->build_id};
    uint64_t key = 1;
    uint32_t i;
    um_file_t *file;

    for (size_t k = 0; k < sizeof(text) / sizeof(text[0]); k++)
        key = um_map_hash(text[k], strlen(text[k]), key);
    i = um_map_find(&p->file_of, key);
    if (i != UM_MAP_NONE || p->files.n == FILES_MAX)
        return i;
    file = add(p, &p->files, sizeof(*file));
    if (!file)
        return UM_MAP_NONE;
    file->is = *module;
    file->is.name = um_places_keep_text(p, module->name);
    file->is.path = um_places_keep_text(p, module->path);
    file->is.build_id = um_places_keep_text(p, module->build_id);
    i = (uint32_t)(file - file_at(p, 0));
    if (um_map_put(&p->file_of, key, i))
        p->status = UM_ERR_NO_MEMORY;
    if (um_map_find(&p->file_of, name_key(module->name)) == UM_MAP_NONE &&
        um_map_put(&p->file_of, name_key(module->name), i))
        p->status = UM_ERR_NO_MEMORY;
    return i;
}

static void on_module(um_places_t *p, const um_ev_module_t *module)
{
    uint32_t file = file_of(p, module);
    um_mapped_t *mapped = file == UM_MAP_NONE ? NULL : add(p, &p->mapped, sizeof(*mapped));

    if (mapped)
        *mapped = (um_mapped_t){.begin = module->addr,
                                .end = module->bytes > UINT64_MAX - module->addr
                                           ? UINT64_MAX
                                           : module->addr + module->bytes,
                                .bias = module->load_bias,
                                .file = file};
}

static const um_mapped_t *mapped_at(const um_places_t *p, uint64_t pc)
{
    const um_mapped_t *mapped = p->mapped.at;

    for (size_t i = p->mapped.n; i > 0; i--)
        if (pc >= mapped[i - 1].begin && pc < mapped[i - 1].end)
            return &mapped[i - 1];
    return NULL;
}

static void settle(const um_places_t *p, um_pc_t *pc)
{
    const um_mapped_t *mapped = mapped_at(p, pc->pc);

    if (!mapped)
        return;
    pc->file = mapped->file;
    pc->offset = pc->pc - mapped->bias;
    pc->open = false;
}

static void on_pc(um_places_t *p, uint64_t value)
{
    uint32_t i = um_map_find(&p->pc_of, value);
    um_pc_t *pc = i == UM_MAP_NONE ? NULL : pc_at(p, i), now = {.pc = value, .file = UM_MAP_NONE};

    if (pc)
        pc->faults++;
    if (pc && pc->open) {
        settle(p, pc);
    } else if (pc) {
        settle(p, &now);
        pc->clashes |= now.file != pc->file || now.offset != pc->offset;
    } else if (p->pcs.n < PCS_MAX && (pc = add(p, &p->pcs, sizeof(*pc))) != NULL) {
        *pc = (um_pc_t){.pc = value, .faults = 1, .file = UM_MAP_NONE, .open = true};
        if (um_map_put(&p->pc_of, value, (uint32_t)(p->pcs.n - 1)))
            p->status = UM_ERR_NO_MEMORY;
        settle(p, pc);
    }
}

static void on_site(um_places_t *p, const um_ev_call_site_t *told)
{
    um_place_site_t *site;

    if (!told->call_site || um_map_find(&p->site_of, told->call_site) != UM_MAP_NONE ||
        p->sites.n == SITES_MAX || !(site = add(p, &p->sites, sizeof(*site))))
        return;
    site->id = told->call_site;
    site->frames = um_places_keep_text(p, told->frames);
    if (um_map_put(&p->site_of, told->call_site, (uint32_t)(p->sites.n - 1)))
        p->status = UM_ERR_NO_MEMORY;
}

void um_places_begin(um_places_t *p)
{
    for (size_t i = 0; i < p->pcs.n; i++) {
        if (pc_at(p, i)->open)
            settle(p, pc_at(p, i)); /* by what was seen loaded after its fault */
        pc_at(p, i)->open = false;
    }
    p->mapped.n = 0;
}

um_status_t um_places_event(um_places_t *p, const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_MODULE:
        on_module(p, &event->u.module);
        break;
    case UM_EV_CALL_SITE:
        on_site(p, &event->u.call_site);
        break;
    case UM_EV_CPU_FAULT:
        if (event->u.cpu_fault.pc)
            on_pc(p, event->u.cpu_fault.pc);
        break;
    default:
        break;
    }
    return p->status;
}

const char *um_places_frames(const um_places_t *p, uint64_t call_site)
{
    uint32_t i = call_site ? um_map_find(&p->site_of, call_site) : UM_MAP_NONE;

    return i == UM_MAP_NONE ? NULL : um_places_site_at(p, i)->frames;
}

size_t um_places_sites(const um_places_t *p)
{
    return p->sites.n;
}

uint64_t um_places_site_id(const um_places_t *p, size_t i)
{
    return um_places_site_at(p, i)->id;
}

size_t um_places_pcs(const um_places_t *p)
{
    return p->pcs.n;
}

uint64_t um_places_pc_value(const um_places_t *p, size_t i, uint64_t *faults)
{
    *faults = pc_at(p, i)->faults;
    return pc_at(p, i)->pc;
}

/* ---- a spot ----------------------------------------------------------------------------------- */

static void open_file(um_places_t *p, um_file_t *file)
{
    char why[300] = "";

    file->tried = true;
    file->dwarf = um_dwarf_open(&file->is, p->debug_dirs, why, sizeof(why));
    file->why = file->dwarf ? um_dwarf_lacks(file->dwarf) : um_places_keep_text(p, why);
}

/* The file as people name it: without the directory in which it was compiled. */
static const char *shown_file(const char *file, const char *directory)
{
    size_t n = directory ? strlen(directory) : 0;

    while (!strncmp(file, "./", 2))
        file += 2;
    return n && !strncmp(file, directory, n) && file[n] == '/' && file[n + 1] ? file + n + 1 : file;
}

static void fill_line(um_places_t *p, const um_dwarf_frame_t *frame, um_source_line_t *line)
{
    char *function = um_places_keep(p, um_readable_name(frame->linkage, frame->name, frame->scope,
                                                        frame->fortran));
    const char *file = frame->file ? frame->file : "";
    char *whole = NULL;

    *line = (um_source_line_t){.function = function ? function : "",
                               .file = file,
                               .shown = shown_file(file, frame->directory),
                               .line = frame->line,
                               .column = frame->column,
                               .inlined = frame->inlined};
    if (*file && *file != '/' && frame->directory &&
        asprintf(&whole, "%s/%s", frame->directory, line->shown) >= 0 && um_places_keep(p, whole))
        line->file = whole;
}

const char *um_places_line_text(um_places_t *p, const um_source_line_t *line, const char *module)
{
    char *text = NULL;
    int n;

    if (line->line && *line->function)
        n = asprintf(&text, "%s (%s:%" PRIu32 ")", line->function, line->shown, line->line);
    else if (line->line)
        n = asprintf(&text, "%s:%" PRIu32, line->shown, line->line);
    else
        n = asprintf(&text, "%s (%s)", line->function, module);
    text = um_places_keep(p, n < 0 ? NULL : text);
    return text ? text : "?";
}

static const char *offset_text(um_places_t *p, const char *module, uint64_t offset)
{
    char *text = NULL;
    int n = asprintf(&text, "%s+0x%" PRIx64, module, offset);

    text = um_places_keep(p, n < 0 ? NULL : text);
    return text ? text : "?";
}

static void look(um_places_t *p, um_file_t *file, um_spot_t *spot)
{
    um_dwarf_frame_t frames[LINES_MAX];
    um_source_line_t *lines;
    size_t n;

    if (!file->tried)
        open_file(p, file);
    n = file->dwarf ? um_dwarf_find(file->dwarf, spot->offset, frames, LINES_MAX) : 0;
    spot->why = file->why;
    lines = n ? um_places_keep(p, calloc(n, sizeof(*lines))) : NULL;
    if (!lines)
        return;
    for (size_t i = 0; i < n; i++)
        fill_line(p, &frames[i], &lines[i]);
    spot->lines = lines;
    spot->n_lines = n;
    /* The line of a library's own code helps nobody. */
    if (um_is_runtime_module(spot->module) && *lines[0].function)
        lines[0].line = lines[0].column = 0;
    spot->text = um_places_line_text(p, &lines[0], spot->module);
    if (lines[0].line)
        spot->why = "";
    else if (!*spot->why)
        spot->why = "no line is known there";
}

static um_status_t find_in(um_places_t *p, uint32_t i, uint64_t offset, um_spot_t *out)
{
    uint64_t key = um_map_hash(&offset, sizeof(offset), i);
    uint32_t known = um_map_find(&p->spot_of, key);
    um_spot_t *spot, made;

    if (known == UM_MAP_NONE) {
        um_file_t *file = file_at(p, i);

        made = (um_spot_t){.module = file->is.name,
                           .path = file->is.path,
                           .offset = offset,
                           .why = ""};
        made.text = offset_text(p, made.module, offset);
        look(p, file, &made);
        known = (uint32_t)p->spots.n;
        spot = add(p, &p->spots, sizeof(*spot));
        if (!spot || um_map_put(&p->spot_of, key, known))
            return UM_ERR_NO_MEMORY;
        *spot = made;
    }
    *out = ((um_spot_t *)p->spots.at)[known];
    return p->status;
}

um_spot_t um_places_bare(um_places_t *p, const char *module, uint64_t offset, const char *why)
{
    return (um_spot_t){.text = offset_text(p, module, offset),
                       .module = um_places_keep_text(p, module),
                       .path = "",
                       .offset = offset,
                       .why = why};
}

um_status_t um_places_find(um_places_t *p, const char *module, uint64_t offset, um_spot_t *out)
{
    uint32_t i = um_map_find(&p->file_of, name_key(module));

    if (i != UM_MAP_NONE)
        return find_in(p, i, offset, out);
    *out = um_places_bare(p, module, offset, "the trace does not say which file that is");
    return p->status;
}

um_status_t um_places_pc(um_places_t *p, uint64_t value, um_spot_t *out)
{
    uint32_t i = um_map_find(&p->pc_of, value);
    um_pc_t *pc = i == UM_MAP_NONE ? NULL : pc_at(p, i);

    if (pc && pc->open)
        settle(p, pc);
    if (!pc || pc->file == UM_MAP_NONE || pc->clashes)
        return UM_ERR_NOT_FOUND;
    return find_in(p, pc->file, pc->offset, out);
}

size_t um_places_modules(const um_places_t *p)
{
    return p->files.n;
}

const um_ev_module_t *um_places_module(const um_places_t *p, size_t i)
{
    return &file_at(p, i)->is;
}

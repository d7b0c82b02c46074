#include "places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf.h"
#include "map.h"
#include "places_rules.h"

#define LINES_MAX      32u /* inlined into each other */
#define FRAMES_MAX     64u /* of one call site */
#define SITES_MAX      65536u
#define PCS_MAX        (1u << 20)
#define FILES_MAX      65536u
#define SITES_COMPARED 4096u /* with each other */

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

typedef struct um_site {
    uint64_t id;
    const char *frames;
    um_call_place_t place;
    bool known;
} um_site_t;

typedef struct um_list {
    void *at;
    size_t n, size;
} um_list_t;

struct um_places {
    const char *debug_dirs;
    um_list_t files;  /* um_file_t */
    um_list_t mapped; /* um_mapped_t of this trace, in order of time: the last that covers counts */
    um_list_t pcs;    /* um_pc_t */
    um_list_t sites;  /* um_site_t */
    um_list_t spots;  /* um_spot_t */
    um_list_t kept;   /* void *: all that was handed out */
    um_map_t file_of, pc_of, site_of, spot_of;
    um_status_t status; /* the first failure */
};

static um_file_t *file_at(const um_places_t *p, size_t i)
{
    return (um_file_t *)p->files.at + i;
}

static um_pc_t *pc_at(const um_places_t *p, size_t i)
{
    return (um_pc_t *)p->pcs.at + i;
}

static um_site_t *site_at(const um_places_t *p, size_t i)
{
    return (um_site_t *)p->sites.at + i;
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* One more element, zeroed, at the end; NULL = no memory. */
static void *add(um_places_t *p, um_list_t *list, size_t bytes)
{
    if (!list->at || list->n == list->size) {
        size_t size = list->size ? list->size * 2 : 32;
        void *at = realloc(list->at, size * bytes);

        if (!at) {
            p->status = UM_ERR_NO_MEMORY;
            return NULL;
        }
        list->at = at;
        list->size = size;
    }
    return memset((char *)list->at + list->n++ * bytes, 0, bytes);
}

/* Owns memory until the end; passes it on. NULL stays NULL. */
static void *keep(um_places_t *p, void *memory)
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

static const char *keep_text(um_places_t *p, const char *text)
{
    const char *copy = *text ? keep(p, strdup(text)) : "";

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
    file->is.name = keep_text(p, module->name);
    file->is.path = keep_text(p, module->path);
    file->is.build_id = keep_text(p, module->build_id);
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
    um_site_t *site;

    if (!told->call_site || um_map_find(&p->site_of, told->call_site) != UM_MAP_NONE ||
        p->sites.n == SITES_MAX || !(site = add(p, &p->sites, sizeof(*site))))
        return;
    site->id = told->call_site;
    site->frames = keep_text(p, told->frames);
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

    return i == UM_MAP_NONE ? NULL : site_at(p, i)->frames;
}

size_t um_places_sites(const um_places_t *p)
{
    return p->sites.n;
}

uint64_t um_places_site_id(const um_places_t *p, size_t i)
{
    return site_at(p, i)->id;
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
    file->why = file->dwarf ? um_dwarf_lacks(file->dwarf) : keep_text(p, why);
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
    char *function =
        keep(p, um_readable_name(frame->linkage, frame->name, frame->scope, frame->fortran));
    const char *file = frame->file ? frame->file : "";
    char *whole = NULL;

    *line = (um_source_line_t){.function = function ? function : "",
                               .file = file,
                               .shown = shown_file(file, frame->directory),
                               .line = frame->line,
                               .column = frame->column,
                               .inlined = frame->inlined};
    if (*file && *file != '/' && frame->directory &&
        asprintf(&whole, "%s/%s", frame->directory, line->shown) >= 0 && keep(p, whole))
        line->file = whole;
}

/* "make_grid (src/grid.c:12)"; without a line "memcpy (libc.so.6)". */
static const char *line_text(um_places_t *p, const um_source_line_t *line, const char *module)
{
    char *text = NULL;
    int n;

    if (line->line && *line->function)
        n = asprintf(&text, "%s (%s:%" PRIu32 ")", line->function, line->shown, line->line);
    else if (line->line)
        n = asprintf(&text, "%s:%" PRIu32, line->shown, line->line);
    else
        n = asprintf(&text, "%s (%s)", line->function, module);
    text = keep(p, n < 0 ? NULL : text);
    return text ? text : "?";
}

static const char *offset_text(um_places_t *p, const char *module, uint64_t offset)
{
    char *text = NULL;
    int n = asprintf(&text, "%s+0x%" PRIx64, module, offset);

    text = keep(p, n < 0 ? NULL : text);
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
    lines = n ? keep(p, calloc(n, sizeof(*lines))) : NULL;
    if (!lines)
        return;
    for (size_t i = 0; i < n; i++)
        fill_line(p, &frames[i], &lines[i]);
    spot->lines = lines;
    spot->n_lines = n;
    /* The line of a library's own code helps nobody. */
    if (um_is_runtime_module(spot->module) && *lines[0].function)
        lines[0].line = lines[0].column = 0;
    spot->text = line_text(p, &lines[0], spot->module);
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

static um_spot_t bare_spot(um_places_t *p, const char *module, uint64_t offset, const char *why)
{
    return (um_spot_t){.text = offset_text(p, module, offset),
                       .module = keep_text(p, module),
                       .path = "",
                       .offset = offset,
                       .why = why};
}

um_status_t um_places_find(um_places_t *p, const char *module, uint64_t offset, um_spot_t *out)
{
    uint32_t i = um_map_find(&p->file_of, name_key(module));

    if (i != UM_MAP_NONE)
        return find_in(p, i, offset, out);
    *out = bare_spot(p, module, offset, "the trace does not say which file that is");
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

/* ---- a call site ------------------------------------------------------------------------------ */

typedef struct um_stack {
    um_spot_t spot[FRAMES_MAX];
    bool python[FRAMES_MAX];      /* "file.py:12(function)" */
    bool interpreter[FRAMES_MAX]; /* native code of one */
    size_t n;
} um_stack_t;

/* "file.py:12(function)" */
static bool read_python(um_places_t *p, char *text, um_spot_t *out)
{
    char *open = strrchr(text, '('), *close = strrchr(text, ')');
    char *colon = NULL, *end;
    um_source_line_t *line;

    if (!open || !close || close < open || close[1])
        return false;
    for (char *at = text; at < open; at++)
        colon = *at == ':' ? at : colon;
    if (!colon || strtoul(colon + 1, &end, 10) == 0 || end != open ||
        !(line = keep(p, calloc(1, sizeof(*line)))))
        return false;
    *colon = *close = '\0';
    *line = (um_source_line_t){.function = keep_text(p, open + 1),
                               .line = (uint32_t)strtoul(colon + 1, NULL, 10)};
    line->file = line->shown = keep_text(p, text);
    *out = (um_spot_t){.text = line_text(p, line, ""),
                       .module = "",
                       .path = line->file,
                       .lines = line,
                       .n_lines = 1,
                       .why = ""};
    return true;
}

static um_status_t read_frame(um_places_t *p, char *text, um_stack_t *stack)
{
    um_spot_t *spot = &stack->spot[stack->n];
    char *plus = strrchr(text, '+');
    um_status_t status = UM_OK;

    if (plus && !strncmp(plus, "+0x", 3)) {
        uint64_t offset = strtoull(plus + 1, NULL, 16);

        *plus = '\0';
        /* What will be stepped over need not be read, or even be fetched from a server. */
        if (um_is_runtime_module(text))
            *spot = bare_spot(p, text, offset, "not the program's own code");
        else
            status = um_places_find(p, text, offset, spot);
        stack->interpreter[stack->n] =
            !strncmp(text, "python", 6) || !strncmp(text, "libpython", 9);
    } else if (read_python(p, text, spot)) {
        stack->python[stack->n] = true;
    } else { /* an importer's, as the foreign tool said it */
        *spot = (um_spot_t){.text = *text ? keep_text(p, text) : "?", .module = "", .path = ""};
        spot->why = "as the other tool said it";
    }
    stack->n++;
    return status;
}

static um_status_t read_stack(um_places_t *p, const char *frames, um_stack_t *stack)
{
    char *copy = strdup(frames), *rest = copy, *text;
    um_status_t status = copy ? UM_OK : UM_ERR_NO_MEMORY;

    while (!status && stack->n < FRAMES_MAX && (text = strsep(&rest, ";")) != NULL)
        status = read_frame(p, text, stack);
    free(copy);
    return status;
}

/* How many of the innermost frames all sites have that begin with the same one: in a file without
 * symbols, those are the functions that make the call, such as CUDA's own. 0 when only one begins so. */
static size_t frames_in_common(const um_places_t *p, const char *frames)
{
    size_t first = strcspn(frames, ";"), common = SIZE_MAX, n = 0;

    for (size_t s = 0; p->sites.n <= SITES_COMPARED && s < p->sites.n; s++) {
        const char *other = site_at(p, s)->frames;
        size_t same = 0;

        if (other == frames || strncmp(other, frames, first) ||
            (other[first] && other[first] != ';'))
            continue;
        for (size_t i = 0; frames[i] == other[i] && frames[i]; i++)
            same += frames[i] == ';';
        common = same < common ? same : common;
    }
    n = common == SIZE_MAX ? 0 : common;
    return n;
}

/* Innermost line of a spot that is the user's; NULL = none is. */
static const um_source_line_t *user_line(const um_spot_t *spot)
{
    for (size_t i = 0; i < spot->n_lines; i++)
        if (!um_is_runtime_code(spot->lines[i].function, spot->lines[i].file))
            return &spot->lines[i];
    return NULL;
}

typedef struct um_choice {
    size_t frame; /* stack->n = none */
    const um_source_line_t *line;
} um_choice_t;

/* The user's innermost frame from `from` on. */
static um_choice_t choose(const um_stack_t *stack, size_t from, size_t common)
{
    bool python = false;

    for (size_t i = 0; i < stack->n; i++)
        python |= stack->python[i];
    for (size_t i = from; i < stack->n; i++) {
        const um_spot_t *spot = &stack->spot[i];
        const um_source_line_t *line = user_line(spot);

        if (um_is_runtime_module(spot->module) || stack->interpreter[i] ||
            (spot->n_lines && !line) || (!spot->n_lines && *spot->module && i < common))
            continue;
        /* Under Python an extension's code is a library's, unless it shows its source. */
        if (python &&
            (um_is_python_library(spot->path) || (!stack->python[i] && (!line || !line->line))))
            continue;
        return (um_choice_t){i, line};
    }
    return (um_choice_t){stack->n, NULL};
}

static const char *choice_text(um_places_t *p, const um_stack_t *stack, um_choice_t choice)
{
    const um_spot_t *spot = &stack->spot[choice.frame];

    return choice.line && choice.line != spot->lines ? line_text(p, choice.line, spot->module)
                                                     : spot->text;
}

/* Do other sites go through the same function at this frame? Then its caller tells them apart. */
static bool is_shared(const um_places_t *p, const char *frames, size_t frame)
{
    size_t bytes = 0;

    for (size_t i = 0; i <= frame && frames[bytes]; i++)
        bytes += strcspn(frames + bytes, ";") + (frames[bytes + strcspn(frames + bytes, ";")] != 0);
    for (size_t s = 0; frames[bytes] && p->sites.n <= SITES_COMPARED && s < p->sites.n; s++)
        if (site_at(p, s)->frames != frames && !strncmp(site_at(p, s)->frames, frames, bytes))
            return true;
    return false;
}

static void place_site(um_places_t *p, um_site_t *site, const um_stack_t *stack)
{
    size_t common = frames_in_common(p, site->frames);
    um_choice_t user = choose(stack, 0, common), from = {stack->n, NULL};
    um_call_place_t *place = &site->place;
    um_spot_t *spots = keep(p, calloc(stack->n ? stack->n : 1, sizeof(*spots)));
    bool interpreter = false, python = false;

    *place = (um_call_place_t){.text = "?", .brief = "?", .from = "", .note = ""};
    place->line = (um_source_line_t){.function = "", .file = "", .shown = ""};
    if (!spots || !stack->n)
        return;
    memcpy(spots, stack->spot, stack->n * sizeof(*spots));
    for (size_t i = 0; i < stack->n; i++) {
        interpreter |= stack->interpreter[i];
        python |= stack->python[i];
    }
    if (user.frame == stack->n) /* nothing but libraries: the outermost that called one */
        user = choose(stack, 0, 0);
    if (user.frame == stack->n)
        user = (um_choice_t){0, NULL};
    place->spots = spots;
    place->n_spots = stack->n;
    place->chosen = user.frame;
    place->text = place->brief = choice_text(p, stack, user);
    if (user.line) {
        const char *slash = strrchr(user.line->shown, '/');
        um_source_line_t line = place->line = *user.line;

        line.shown = slash ? slash + 1 : line.shown;
        if (line.line)
            place->brief = line_text(p, &line, "");
    }
    if (is_shared(p, site->frames, user.frame))
        from = choose(stack, user.frame + 1, common);
    if (from.frame < stack->n)
        place->from = choice_text(p, stack, from);
    /* With one site only, nothing tells a runtime without symbols from the program around it. */
    if (!user.line && !user.frame && !common && *spots[0].module && stack->n > 1 &&
        !strcmp(spots[0].module, spots[1].module))
        place->note = "a file without symbols: perhaps the CUDA runtime's own frame";
    if (interpreter && !python)
        place->note = "the nearest native frame: the Python program's own were not recorded";
}

um_status_t um_places_site(um_places_t *p, uint64_t call_site, um_call_place_t *out)
{
    uint32_t i = call_site ? um_map_find(&p->site_of, call_site) : UM_MAP_NONE;
    um_stack_t *stack;
    um_status_t status;

    if (i == UM_MAP_NONE)
        return UM_ERR_NOT_FOUND;
    if (!site_at(p, i)->known) {
        stack = calloc(1, sizeof(*stack));
        if (!stack)
            return UM_ERR_NO_MEMORY;
        status = read_stack(p, site_at(p, i)->frames, stack);
        if (!status)
            place_site(p, site_at(p, i), stack);
        free(stack);
        if (status || p->status)
            return status ? status : p->status;
        site_at(p, i)->known = true;
    }
    *out = site_at(p, i)->place;
    return UM_OK;
}

#include "places_impl.h"

#include <stdlib.h>
#include <string.h>

#include "places_rules.h"

#define FRAMES_MAX     64u   /* of one call site */
#define SITES_COMPARED 4096u /* with each other */

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
        !(line = um_places_keep(p, calloc(1, sizeof(*line)))))
        return false;
    *colon = *close = '\0';
    *line = (um_source_line_t){.function = um_places_keep_text(p, open + 1),
                               .line = (uint32_t)strtoul(colon + 1, NULL, 10)};
    line->file = line->shown = um_places_keep_text(p, text);
    *out = (um_spot_t){.text = um_places_line_text(p, line, ""),
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
            *spot = um_places_bare(p, text, offset, "not the program's own code");
        else
            status = um_places_find(p, text, offset, spot);
        stack->interpreter[stack->n] =
            !strncmp(text, "python", 6) || !strncmp(text, "libpython", 9);
    } else if (read_python(p, text, spot)) {
        stack->python[stack->n] = true;
    } else { /* an importer's, as the foreign tool said it */
        *spot = (um_spot_t){.text = *text ? um_places_keep_text(p, text) : "?",
                            .module = "",
                            .path = ""};
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
        const char *other = um_places_site_at(p, s)->frames;
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

    return choice.line && choice.line != spot->lines
               ? um_places_line_text(p, choice.line, spot->module)
               : spot->text;
}

/* Do other sites go through the same function at this frame? Then its caller tells them apart. */
static bool is_shared(const um_places_t *p, const char *frames, size_t frame)
{
    size_t bytes = 0;

    for (size_t i = 0; i <= frame && frames[bytes]; i++)
        bytes += strcspn(frames + bytes, ";") + (frames[bytes + strcspn(frames + bytes, ";")] != 0);
    for (size_t s = 0; frames[bytes] && p->sites.n <= SITES_COMPARED && s < p->sites.n; s++)
        if (um_places_site_at(p, s)->frames != frames &&
            !strncmp(um_places_site_at(p, s)->frames, frames, bytes))
            return true;
    return false;
}

static void place_site(um_places_t *p, um_place_site_t *site, const um_stack_t *stack)
{
    size_t common = frames_in_common(p, site->frames);
    um_choice_t user = choose(stack, 0, common), from = {stack->n, NULL};
    um_call_place_t *place = &site->place;
    um_spot_t *spots = um_places_keep(p, calloc(stack->n ? stack->n : 1, sizeof(*spots)));
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
            place->brief = um_places_line_text(p, &line, "");
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
    if (!um_places_site_at(p, i)->known) {
        stack = calloc(1, sizeof(*stack));
        if (!stack)
            return UM_ERR_NO_MEMORY;
        status = read_stack(p, um_places_site_at(p, i)->frames, stack);
        if (!status)
            place_site(p, um_places_site_at(p, i), stack);
        free(stack);
        if (status || p->status)
            return status ? status : p->status;
        um_places_site_at(p, i)->known = true;
    }
    *out = um_places_site_at(p, i)->place;
    return UM_OK;
}

#include <inttypes.h>
#include <string.h>

#include "core/grow.h"
#include "patch_impl.h"

static um_source_t *source_of(um_patching_t *p, const char *file, uint32_t *index)
{
    um_source_t source;
    um_status_t status = um_source_open(p->patch->root, file, &source, p->why, sizeof(p->why));

    if (status == UM_ERR_NOT_FOUND)
        return NULL;
    for (size_t i = 0; !status && i < p->n_sources; i++) {
        if (strcmp(p->sources[i].name, source.name) != 0)
            continue;
        um_source_close(&source);
        *index = (uint32_t)i;
        return &p->sources[i];
    }
    if (!status && !um_grow(&p->sources, &p->sources_size, p->n_sources + 1, sizeof(*p->sources))) {
        um_source_close(&source);
        status = UM_ERR_NO_MEMORY;
    }
    if (status) {
        p->status = status;
        return NULL;
    }
    *index = (uint32_t)p->n_sources;
    p->sources[p->n_sources++] = source;
    return &p->sources[*index];
}

/* When the file that the frame is in was built, or else when the trace was begun; 0 = not known. */
static uint64_t built_ns(const um_report_t *r, const um_call_place_t *place)
{
    const char *module = place->n_spots ? place->spots[place->chosen].module : "";

    for (size_t i = 0; *module && i < um_places_modules(r->places); i++) {
        const um_ev_module_t *file = um_places_module(r->places, i);

        if (!strcmp(file->name, module) && file->modified_ns)
            return file->modified_ns;
    }
    return r->traces[0].recorded_ns;
}

bool um_patch_line(um_patching_t *p, uint64_t site, const char *what, um_spot_line_t *out)
{
    um_call_place_t place;
    um_source_state_t state;
    um_source_t *source;
    uint64_t built;

    if (um_places_site(p->report->places, site, &place)) {
        um_patch_refuse(p, "where it is %s was not recorded", what);
        return false;
    }
    if (!place.line.line || !*place.line.file) {
        um_patch_refuse(p, "where it is %s has no source line: %s%s%s", what, place.text,
                        place.n_spots && *place.spots[place.chosen].why ? ", " : "",
                        place.n_spots ? place.spots[place.chosen].why : "");
        return false;
    }
    if (*place.from) {
        um_patch_refuse(p, "it is %s in %s, through which other buffers go, too", what, place.text);
        return false;
    }
    source = source_of(p, place.line.file, &out->source);
    if (!source)
        return false;
    built = built_ns(p->report, &place);
    if (!built || source->modified_ns > built) {
        um_patch_refuse(p,
                        built ? "%s was changed after the program that was recorded had been built"
                              : "%s: when the program was built was not recorded",
                        source->name);
        return false;
    }
    if (place.line.line > source->n_lines) {
        um_patch_refuse(p, "%s has no line %" PRIu32, source->name, place.line.line);
        return false;
    }
    out->line = place.line.line;
    out->function = place.line.function;
    out->text = &source->lines[out->line - 1];
    state = um_source_state(source, out->line);
    if (state.in_comment || state.in_macro || !state.fresh) {
        um_patch_refuse(p, "%s:%zu: the call is %s", source->name, out->line,
                        state.in_comment ? "in a comment"
                        : state.in_macro ? "in a macro"
                                         : "part of what begins on a line above");
        return false;
    }
    return true;
}

bool um_patch_same_line(const um_report_t *r, uint64_t a, uint64_t b)
{
    um_call_place_t x, y;

    if (a == b)
        return true;
    return !um_places_site(r->places, a, &x) && !um_places_site(r->places, b, &y) && x.line.line &&
           x.line.line == y.line.line && !strcmp(x.line.file, y.line.file);
}

bool um_patch_is_alone(um_patching_t *p, const um_finding_t *f, uint64_t site)
{
    const um_report_t *r = p->report;

    for (uint32_t g = 0; g < r->regions.n_groups; g++) {
        bool mine = false;

        for (uint32_t i = 0; i < f->n_places; i++)
            mine |= f->places[i].group == g;
        if (mine || !r->regions.groups[g].regions || !r->regions.groups[g].call_site ||
            !um_patch_same_line(r, site, r->regions.groups[g].call_site))
            continue;
        um_patch_refuse(p, "other buffers are allocated on that line, too");
        return false;
    }
    return true;
}

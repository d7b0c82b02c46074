/* Places in the program: where the CPU faulted, and in JSON every call site that was recorded. */
#include <stdlib.h>
#include <string.h>

#include "sections.h"

typedef struct um_fault_place {
    um_spot_t spot;
    uint64_t pc, faults;
} um_fault_place_t;

static int by_text(const void *a, const void *b)
{
    const um_fault_place_t *x = a, *y = b;
    int order = strcmp(x->spot.text, y->spot.text);

    return order ? order : x->pc < y->pc ? -1 : x->pc > y->pc;
}

static int by_faults(const void *a, const void *b)
{
    const um_fault_place_t *x = a, *y = b;

    return x->faults != y->faults ? (x->faults < y->faults ? 1 : -1) : by_text(a, b);
}

/* Instructions of one line are one place. */
static size_t fault_places(const um_report_t *r, um_fault_place_t *out)
{
    size_t n = 0, places = 0;

    for (size_t i = 0; i < um_places_pcs(r->places); i++) {
        um_fault_place_t *at = &out[n];

        at->pc = um_places_pc_value(r->places, i, &at->faults);
        n += um_places_pc(r->places, at->pc, &at->spot) == UM_OK;
    }
    qsort(out, n, sizeof(*out), by_text);
    for (size_t i = 0; i < n; i++) {
        if (places && !strcmp(out[places - 1].spot.text, out[i].spot.text))
            out[places - 1].faults += out[i].faults;
        else
            out[places++] = out[i];
    }
    qsort(out, places, sizeof(*out), by_faults);
    return places;
}

static void write_faults(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"place", "place", true, false, NULL}, {"faults", "CPU faults", false, false, NULL},
        {"function", NULL, true, false, NULL}, {"file", NULL, true, false, NULL},
        {"line", NULL, false, false, NULL},    {"module", NULL, true, false, NULL},
        {"offset", NULL, false, false, NULL},  {"why_no_line", NULL, true, false, NULL},
    };
    size_t n = um_places_pcs(r->places), top = um_emitter_options(e)->top;
    um_fault_place_t *places = calloc(n + 1, sizeof(*places));

    n = places ? fault_places(r, places) : 0;
    if (n)
        um_emitter_heading(e, "Where the CPU faulted");
    if (n || !um_emitter_is_text(e))
        um_emitter_table(e, "cpu_fault_places", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n && i < top; i++) {
        const um_spot_t *s = &places[i].spot;
        const um_source_line_t *line = s->n_lines ? &s->lines[0] : NULL;

        um_emitter_row(e,
                       (um_value_t[]){um_text(s->text), um_count(places[i].faults),
                                      line && *line->function ? um_text(line->function) : um_none(),
                                      line && *line->file ? um_text(line->file) : um_none(),
                                      line && line->line ? um_count(line->line) : um_none(),
                                      um_text(s->module), um_addr(s->offset),
                                      *s->why ? um_text(s->why) : um_none()});
    }
    if (n || !um_emitter_is_text(e))
        um_emitter_table_end(e, n > top ? n - top : 0);
    free(places);
}

static void write_sites(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"call_site", NULL, false, false, NULL}, {"place", NULL, true, false, NULL},
        {"from", NULL, true, false, NULL},       {"note", NULL, true, false, NULL},
        {"function", NULL, true, false, NULL},   {"file", NULL, true, false, NULL},
        {"line", NULL, false, false, NULL},      {"module", NULL, true, false, NULL},
        {"offset", NULL, false, false, NULL},    {"why_no_line", NULL, true, false, NULL},
        {"frames", NULL, true, false, NULL},
    };
    size_t n = um_places_sites(r->places), top = um_emitter_options(e)->top;

    um_emitter_table(e, "call_sites", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n && i < top; i++) {
        uint64_t id = um_places_site_id(r->places, i);
        um_call_place_t p;

        if (um_places_site(r->places, id, &p))
            continue;
        const um_spot_t *s = p.n_spots ? &p.spots[p.chosen] : NULL;
        um_emitter_row(e, (um_value_t[]){um_addr(id), um_text(p.text),
                                         *p.from ? um_text(p.from) : um_none(),
                                         *p.note ? um_text(p.note) : um_none(),
                                         *p.line.function ? um_text(p.line.function) : um_none(),
                                         *p.line.file ? um_text(p.line.file) : um_none(),
                                         p.line.line ? um_count(p.line.line) : um_none(),
                                         s && *s->module ? um_text(s->module) : um_none(),
                                         s && *s->module ? um_addr(s->offset) : um_none(),
                                         s && *s->why ? um_text(s->why) : um_none(),
                                         um_text(um_places_frames(r->places, id))});
    }
    um_emitter_table_end(e, n > top ? n - top : 0);
}

void um_section_places(um_emitter_t *e, const um_report_t *r)
{
    write_faults(e, r);
    if (!um_emitter_is_text(e))
        write_sites(e, r);
}

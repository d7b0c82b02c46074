/*
 * places_impl.h - what the parts of places share; nobody else includes it.
 *
 *   places.c     files, PCs and call sites as traces tell them, and what is at an address
 *   call_site.c  which of a call site's frames is the user's
 */
#ifndef UM_PLACES_IMPL_H
#define UM_PLACES_IMPL_H

#include "map.h"
#include "places.h"

typedef struct um_place_site {
    uint64_t id;
    const char *frames;
    um_call_place_t place;
    bool known;
} um_place_site_t;

typedef struct um_places_list {
    void *at;
    size_t n, size;
} um_places_list_t;

struct um_places {
    const char *debug_dirs;
    um_places_list_t files;  /* um_file_t */
    um_places_list_t mapped; /* um_mapped_t of this trace by time: the last that covers counts */
    um_places_list_t pcs;    /* um_pc_t */
    um_places_list_t sites;  /* um_place_site_t */
    um_places_list_t spots;  /* um_spot_t */
    um_places_list_t kept;   /* void *: all that was handed out */
    um_map_t file_of, pc_of, site_of, spot_of;
    um_status_t status; /* the first failure */
};

static inline um_place_site_t *um_places_site_at(const um_places_t *p, size_t i)
{
    return (um_place_site_t *)p->sites.at + i;
}

/* Owns memory until the end; passes it on. NULL stays NULL. */
void *um_places_keep(um_places_t *p, void *memory);
const char *um_places_keep_text(um_places_t *p, const char *text); /* a copy */

/* "make_grid (src/grid.c:12)"; without a line "memcpy (libc.so.6)". */
const char *um_places_line_text(um_places_t *p, const um_source_line_t *line, const char *module);
/* Module and offset alone. */
um_spot_t um_places_bare(um_places_t *p, const char *module, uint64_t offset, const char *why);

#endif

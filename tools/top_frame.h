/*
 * top_frame.h - figures of a process as text: the lines of the screen, and the one line a second of the plain
 * view. Pure functions of what they are given.
 */
#ifndef UM_TOP_FRAME_H
#define UM_TOP_FRAME_H

#include <stdbool.h>
#include <stdio.h>

#include "core/top.h"
#include "report/places.h"

/* What regions can be sorted by; the names are those of the columns. */
typedef enum um_top_column {
    UM_TOP_ADDRESS,
    UM_TOP_SIZE,
    UM_TOP_FAMILY,
    UM_TOP_GPU,    /* bytes there */
    UM_TOP_HOST,   /* likewise */
    UM_TOP_FAULTS, /* of both sides */
    UM_TOP_MOVED,  /* both ways */
    UM_TOP_NAME,
    UM_TOP_COLUMNS
} um_top_column_t;

const char *um_top_column_name(um_top_column_t column); /* "size" */
/* false: there is no such column. */
bool um_top_column_parse(const char *name, um_top_column_t *out);

typedef struct um_top_view {
    int pid;
    const um_top_figures_t *now, *before; /* before == now: there are no rates yet */
    um_places_t *places;                  /* NULL = call sites stay module+offset */
    um_top_column_t sort;
    bool reverse;
    bool paused, over; /* over: these are the last figures */
} um_top_view_t;

/* name=value, one line, all figures but those of single advisors and regions; these follow, each in a line that
 * begins with "advisor " or "region ", where `all`. Lines begin with `before`. */
void um_top_plain(const um_top_view_t *view, const char *before, bool all, FILE *to);

/* One line of the screen, without control characters. `heading` lines head a table. */
typedef void (*um_top_line_fn)(void *ctx, const char *text, bool heading);

void um_top_totals(const um_top_view_t *view, um_top_line_fn line, void *ctx);
void um_top_advisors(const um_top_view_t *view, um_top_line_fn line, void *ctx);
/* The heading, then the regions from the `first` one on. */
void um_top_regions(const um_top_view_t *view, uint32_t first, um_top_line_fn line, void *ctx);

/* Teaches `places` where the regions were allocated, and in which files of the process that is. */
void um_top_learn(um_places_t *places, const um_top_figures_t *figures);

#endif

/*
 * places.h - from addresses in a program to function, file and line. The one way to it for everybody.
 *
 * A trace's MODULE events say what was loaded where; the files themselves, or their separate debug
 * information, are read when a place is asked for. A file that is not the recorded build is never used.
 * Without libdw places are module+offset. One thread; strings and frames live as long as the places.
 */
#ifndef UM_PLACES_H
#define UM_PLACES_H

#include "um_event.h"

typedef struct um_places um_places_t;

/* One function of the source. */
typedef struct um_source_line {
    const char *function; /* readable; "" = not known */
    const char *file;     /* absolute where the compiler said so; "" = not known */
    const char *shown;    /* the file without the directory it was compiled in */
    uint32_t line;        /* 1 and up, 0 = not known */
    uint32_t column;
    bool inlined; /* into the next one */
} um_source_line_t;

/* What is at an address. */
typedef struct um_spot {
    const char
        *text; /* "make_grid (src/grid.c:12)", "memcpy (libc.so.6)", "app+0x1234"; never "" */
    const char *module; /* its name, "" = none that is known */
    const char *path;   /* of the module, "" = not known */
    uint64_t offset;    /* in the module's file; the address itself where no module is known */
    const um_source_line_t *lines; /* innermost first: inlined ones, then the function itself */
    size_t n_lines;                /* 0 = nothing but module and offset */
    const char *why;               /* why there is no line; "" = there is one */
} um_spot_t;

/* Where the program made a call. */
typedef struct um_call_place {
    const char *text;  /* of the user's innermost frame */
    const char *brief; /* the same with the file's last component alone */
    const char *from;  /* where that is a function through which several sites go: its caller; "" */
    const char *note;  /* what a reader should know ("nearest native frame: ..."); "" */
    um_source_line_t line;  /* of the frame; file "" and line 0 where not known */
    const um_spot_t *spots; /* all frames that were recorded, innermost first */
    size_t n_spots, chosen; /* the user's among them */
} um_call_place_t;

um_status_t um_places_new(um_places_t **out); /* NO_MEMORY */
void um_places_free(um_places_t *places);     /* NULL is fine */

/* Where separate debug information is looked for, besides the files' own folders (and debuginfod where
 * DEBUGINFOD_URLS is set): absolute folders separated by ':'. NULL = /usr/lib/debug. Before the first
 * question; kept by pointer. */
void um_places_debug_dirs(um_places_t *places, const char *dirs);

/* A new trace: what the one before had loaded where is settled. */
void um_places_begin(um_places_t *places);
/* Learns from MODULE, CALL_SITE and CPU_FAULT, in order of time; ignores all else. NO_MEMORY. */
um_status_t um_places_event(um_places_t *places, const um_event_t *event);

/* An offset in a module that some trace named; of one that none did, the text alone. NO_MEMORY. */
um_status_t um_places_find(um_places_t *places, const char *module, uint64_t offset,
                           um_spot_t *out);
/* The PC of a CPU fault. NOT_FOUND where no module covers it. */
um_status_t um_places_pc(um_places_t *places, uint64_t pc, um_spot_t *out);
/* NOT_FOUND for a site that no trace told. */
um_status_t um_places_site(um_places_t *places, uint64_t call_site, um_call_place_t *out);
/* All sites in the order in which they were told, and all PCs that faulted; i below the count. */
size_t um_places_sites(const um_places_t *places);
uint64_t um_places_site_id(const um_places_t *places, size_t i);
size_t um_places_pcs(const um_places_t *places);
uint64_t um_places_pc_value(const um_places_t *places, size_t i, uint64_t *faults);
/* The files that traces named, each once; i below the count. Strings live as long as the places. */
size_t um_places_modules(const um_places_t *places);
const um_ev_module_t *um_places_module(const um_places_t *places, size_t i);
/* The frames of a site as they were recorded, NULL where none were. */
const char *um_places_frames(const um_places_t *places, uint64_t call_site);

#endif

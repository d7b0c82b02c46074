/*
 * import_sink.h - what the importers share: where events go, kernel and region ids, error lines.
 * Internal to lib/trace/import*.c and its fuzz targets. One thread.
 */
#ifndef UM_IMPORT_SINK_H
#define UM_IMPORT_SINK_H

#include <stdio.h>

#include "trace/import.h"

struct sqlite3;

typedef struct um_import {
    const char *path; /* for error lines and import.file */
    um_event_fn fn;
    void *ctx;
    char *error;
    size_t error_bytes;
    uint32_t process;   /* whose records are wanted, 0 = the one with most */
    uint64_t now_ns;    /* time of the last event: none goes below it */
    um_status_t status; /* first failure inside a helper (UM_ERR_NO_MEMORY), else UM_OK */
    int64_t steps_left; /* of SQLite's machine: import_open.h */
    uint32_t n_kernels;
    uint32_t n_regions;
    void *kernels;    /* tsearch tree by name */
    void *regions;    /* tsearch tree of live regions by address, never overlapping */
    void *call_sites; /* tsearch tree of the ids already sent */
} um_import_t;

void um_import_begin(um_import_t *im, const char *path, um_event_fn fn, void *ctx, char *error,
                     size_t error_bytes);
void um_import_end(um_import_t *im);

/* Puts "PATH: reason" into the error buffer and returns status. */
um_status_t um_import_fail(um_import_t *im, um_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Hands on one event of `type` whose payload is already in `event->u`, not before im->now_ns. */
void um_import_emit(um_import_t *im, um_event_type_t type, uint64_t time_ns, um_event_t *event);

void um_import_fact(um_import_t *im, const char *key, const char *value); /* "" and NULL: nothing */
void um_import_fact_number(um_import_t *im, const char *key, uint64_t value);
void um_import_option(um_import_t *im, const char *name, const char *value, const char *source);
void um_import_loss(um_import_t *im, uint64_t count, const char *reason);
/* umrt.version, import.kind and import.file. */
void um_import_header(um_import_t *im, um_import_kind_t kind);

/* Id of the kernel of that name; its KERNEL event goes out at the first call. 0 when out of memory. */
uint32_t um_import_kernel(um_import_t *im, uint64_t time_ns, const char *name);

/* Emits `alloc` (its region field is filled in) and remembers it; a live region in its way is freed
 * first. Zero bytes, or a range past the end of the address space, is emitted but never found again.
 * Returns the id. */
uint32_t um_import_region_alloc(um_import_t *im, uint64_t time_ns,
                                const um_ev_region_alloc_t *alloc);
void um_import_region_label(um_import_t *im, uint64_t time_ns, uint32_t region, const char *label);
/* Emits REGION_FREE for the region that holds addr, region 0 when none does. */
void um_import_region_free(um_import_t *im, uint64_t time_ns, uint64_t addr);
/* The live region that holds addr, 0 = none. */
uint32_t um_import_region_at(const um_import_t *im, uint64_t addr);

/* True at the first call for an id. */
bool um_import_call_site_new(um_import_t *im, uint64_t call_site);

/* ---- the readers ------------------------------------------------------------------------------ */

/* `in` must be seekable: the log is read twice. */
um_status_t um_import_nvprof_text(um_import_t *im, FILE *in);
/* Whether it is one: UM_OK, UM_ERR_FORMAT or UM_ERR_IO. Leaves `in` anywhere. */
um_status_t um_import_is_nvprof_text(FILE *in);

um_status_t um_import_nvprof_sqlite(um_import_t *im, struct sqlite3 *db);
/* A database that umrt has exported: the events of the trace as they were. */
um_status_t um_import_export(um_import_t *im, struct sqlite3 *db);
um_status_t um_import_nsys_sqlite(um_import_t *im, struct sqlite3 *db);

#endif

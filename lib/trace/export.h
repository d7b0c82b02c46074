/*
 * export.h - a trace as an SQLite database, for queries, and for tools that read Nsight Systems exports.
 *
 * Every event is one row and nothing is lost: um_import_file of the database gives the same events.
 * Where Nsight Systems has a table for it the table and its columns have Nsight's names and units, with
 * umrt's own columns beside them; other types are tables UMRT_<TYPE> with the field names of um_event.h
 * (grid[0] is gridX). FORMAT.md lists them. Unsigned 64-bit values are stored as SQLite's signed ones.
 *
 * Rows go to the file as they come: memory does not grow with the trace. Part of the umrt command. One
 * thread.
 */
#ifndef UM_EXPORT_H
#define UM_EXPORT_H

#include "um_event.h"

typedef struct um_export um_export_t;

/* Creates `path`, which must not be there. On failure the line is in `error`. */
um_status_t um_export_open(const char *path, um_export_t **out, char *error, size_t error_bytes);
/* In time order, the facts first. UM_ERR_IO: the file cannot be written; UM_ERR_NO_MEMORY. */
um_status_t um_export_event(um_export_t *to, const um_event_t *event);
/* Finishes the file and frees; the first error of its life, with the line in `error`. */
um_status_t um_export_close(um_export_t *to, char *error, size_t error_bytes);

/* Whether the file is such a database, by its first bytes. */
bool um_export_is(const char *path);

#endif

/*
 * import.h - foreign traces become events. Part of the umrt command only (SQLite).
 *
 * What an importer hands over, in this order (but for an export of umrt, which gives the events of the
 * exported trace as they were, with its own facts and no others):
 *   1. FACT, OPTION and DEVICE events:
 *        umrt.version
 *        import.kind              um_import_kind_name
 *        import.file              base name of the file
 *        import.tool.version      of the tool that wrote it, where it says
 *        import.other-processes   what was left out because it belongs to other processes, with their ids
 *        process.pid, process.command
 *        um.tracing               "on", "on, no records", "off", "unsupported", or "off or no records"
 *                                 where the file cannot tell these two apart
 *        um.tracing.evidence      one sentence: what in the file says so
 *      and the tool's own switches as OPTION with source "observed" or "file".
 *   2. everything else, time_ns never going back.
 *
 * One process per import (addresses of two would clash): the one asked for, else the one with most
 * unified-memory records.
 * Times of SQLite traces are exact; where they begin below zero, all are moved up by the same amount.
 * The seconds of an nvprof text table are rounded and not always in order, but its rows are: time_ns is
 * the printed start or the previous row's time_ns, whichever is later; durations are as printed.
 * Kernel names are as the source has them: demangled in nvprof text, mangled elsewhere where known.
 * A graph that was traced as one (Nsight Systems) is a KERNEL_EXEC of a kernel named "graph N".
 * A CALL_SITE whose id is the PC of a CPU fault has the frame "function (file:line)" or
 * "module!function" instead of "module+0xoffset" (Nsight Systems).
 */
#ifndef UM_IMPORT_H
#define UM_IMPORT_H

#include "um_event.h"

typedef enum um_import_kind {
    UM_IMPORT_UNKNOWN = 0,
    UM_IMPORT_NVPROF_TEXT = 1, /* nvprof --print-gpu-trace, with or without --csv */
    UM_IMPORT_NVPROF_SQLITE = 2,
    UM_IMPORT_NSYS_SQLITE = 3,
    UM_IMPORT_UMT = 4,   /* already ours */
    UM_IMPORT_EXPORT = 5 /* a database of `umrt export` */
} um_import_kind_t;

const char *um_import_kind_name(um_import_kind_t kind);

/* Looks at the content, not the name. UM_ERR_IO, or UM_ERR_FORMAT when it is none of them; the line
 * about it ("FILE: reason") goes into error. */
um_status_t um_import_recognise(const char *path, um_import_kind_t *out, char *error,
                                size_t error_bytes);

/*
 * Reads the file, hands its events to fn in time order where the source has one (file order of the
 * nvprof text table, whose printed seconds are coarse). FACT and OPTION events come first.
 * UM_ERR_TRUNCATED and UM_ERR_FORMAT may come after events: what is whole has been delivered. Opens
 * the file for reading only and creates nothing beside it, but for SQLite's lock file where a write-ahead
 * log is there. Errors as um_import_recognise's, and
 * UM_ERR_UNSUPPORTED for what is recognised but holds no trace (an nvprof summary, a .umt).
 */
um_status_t um_import_file(const char *path, um_event_fn fn, void *ctx, char *error,
                           size_t error_bytes);

/* The same for the records of one process id, 0 = choose. UM_ERR_NOT_FOUND when there are none. */
um_status_t um_import_process(const char *path, uint32_t process, um_event_fn fn, void *ctx,
                              char *error, size_t error_bytes);

#endif

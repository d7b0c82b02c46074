/*
 * import.h - foreign traces become events. Part of the umrt command only (SQLite).
 */
#ifndef UM_IMPORT_H
#define UM_IMPORT_H

#include "um_event.h"

typedef enum um_import_kind {
    UM_IMPORT_UNKNOWN = 0,
    UM_IMPORT_NVPROF_TEXT = 1, /* nvprof --print-gpu-trace */
    UM_IMPORT_NVPROF_SQLITE = 2,
    UM_IMPORT_NSYS_SQLITE = 3,
    UM_IMPORT_UMT = 4 /* already ours */
} um_import_kind_t;

const char *um_import_kind_name(um_import_kind_t kind);

/* Looks at the content, not the name. UM_ERR_IO, or UM_ERR_FORMAT when it is none of them; the line
 * about it goes into error. */
um_status_t um_import_recognise(const char *path, um_import_kind_t *out, char *error,
                                size_t error_bytes);

/* Reads the file, hands its events to fn in time order where the source has one (file order of the
 * nvprof text table, whose printed seconds are coarse). FACT and OPTION events come first. */
um_status_t um_import_file(const char *path, um_event_fn fn, void *ctx, char *error,
                           size_t error_bytes);

#endif

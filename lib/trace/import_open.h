/*
 * import_open.h - opening somebody else's database: for reading only, trusting nothing in it, and
 * creating nothing beside it.
 */
#ifndef UM_IMPORT_OPEN_H
#define UM_IMPORT_OPEN_H

#include <sqlite3.h>

#include "trace/import_sink.h"

/* Opens im->path. The caller closes *out, also after an error. */
um_status_t um_import_open_sqlite(um_import_t *im, sqlite3 **out);
/* Switches off what a database could do by itself (triggers, views, functions in its schema), and bounds
 * what one value and the whole import may cost: pages of a damaged file can lead to each other, and then
 * a few kilobytes hold endless rows. Uses im while db is open. */
void um_import_distrust(um_import_t *im, sqlite3 *db);
/* By its tables. UM_ERR_FORMAT with the line when it is neither nvprof's nor Nsight Systems'. */
um_status_t um_import_sqlite_kind(um_import_t *im, sqlite3 *db, um_import_kind_t *out);

#endif

/* export_shape.h - which table and columns an event type has in an SQLite database: export.c writes
 * them, import_export.c reads them back. */
#ifndef UM_EXPORT_SHAPE_H
#define UM_EXPORT_SHAPE_H

#include "trace/schema.h"

#define UM_EXPORT_APPLICATION 0x554d5254u /* "UMRT", SQLite's application_id */
#define UM_EXPORT_NAME_BYTES  64

/* The type's table; *shared: other types have rows in it, too, told apart by the column umrtType. */
void um_export_table(um_event_type_t type, char table[UM_EXPORT_NAME_BYTES], bool *shared);
/* The column of a field that is no array; *from_start: it holds the event's time plus the field. */
void um_export_column(um_event_type_t type, const um_field_t *field,
                      char column[UM_EXPORT_NAME_BYTES], bool *from_start);
/* The table of an array's elements: their event's seq, their index i, their fields. */
void um_export_elements(um_event_type_t type, const um_field_t *array,
                        char table[UM_EXPORT_NAME_BYTES]);
/* The i-th column of the type's table that is Nsight's alone: its name, and in *as the SQL expression that
 * makes it of the row's other columns and of PROCESS, a
 * number. NULL after the last, and where the table is umrt's own. */
const char *um_export_computed(um_event_type_t type, size_t i, const char **as);

/* A number in memory as 64 bits, and back. */
int64_t um_export_load(const um_field_t *field, const void *base);
void um_export_store(const um_field_t *field, void *base, int64_t value);

#endif

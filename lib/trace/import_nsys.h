/* import_nsys.h - between the two files that read an Nsight Systems export. */
#ifndef UM_IMPORT_NSYS_H
#define UM_IMPORT_NSYS_H

#include "trace/import_sqlite.h"

/* All FACT, OPTION, DEVICE and LOSS events at the head of the trace; others is the text of
 * import.other-processes. */
void um_import_nsys_facts(um_sql_t *sql, const char *others);

#endif

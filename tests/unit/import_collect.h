/* What the importer tests share: events of one import, kept with their strings. */
#ifndef UM_TEST_IMPORT_COLLECT_H
#define UM_TEST_IMPORT_COLLECT_H

#include "trace/import.h"

typedef struct um_collected {
    um_status_t status;
    char error[512];
    size_t n;
    um_event_t *event;
} um_collected_t;

/* Imports a file; the process ends when memory does. */
void um_collect(um_collected_t *out, const char *path);
/* A database made by these statements, imported and removed. */
void um_collect_sql(um_collected_t *out, const char *sql);
/* The same for one process. */
void um_collect_sql_process(um_collected_t *out, const char *sql, uint32_t process);
/* Makes it at path. */
void um_make_database(const char *path, const char *sql);
void um_collected_free(um_collected_t *c);

size_t um_collected_count(const um_collected_t *c, um_event_type_t type);
/* The i-th event of a type; fails the test when there is none. */
const um_event_t *um_collected_at(const um_collected_t *c, um_event_type_t type, size_t i);
/* Value of a FACT or OPTION, "" without. */
const char *um_collected_fact(const um_collected_t *c, const char *key);
const char *um_collected_option(const um_collected_t *c, const char *name);
/* Whether no time goes back and FACT and OPTION events come before all others but DEVICE and LOSS. */
bool um_collected_ordered(const um_collected_t *c);

#endif

/*
 * import_log.h - an nvprof log line by line: messages, program output, tables. Bounded memory: of a line
 * longer than UM_LOG_LINE only the beginning is kept.
 */
#ifndef UM_IMPORT_LOG_H
#define UM_IMPORT_LOG_H

#include <stdio.h>

#include "trace/import_cells.h"

enum { UM_LOG_LINE = 1 << 16 };

typedef enum um_log_kind {
    UM_LOG_END,
    UM_LOG_OTHER,   /* the program's output, blank lines, footnotes */
    UM_LOG_MESSAGE, /* "==PID== text" */
    UM_LOG_HEADER,
    UM_LOG_UNITS,
    UM_LOG_ROW,
    UM_LOG_BAD_ROW /* begins like a row of the table but is none */
} um_log_kind_t;

typedef struct um_log {
    FILE *in;
    uint64_t offset; /* of the line last read, bytes from the start of the file */
    uint64_t next;   /* of the line after it */
    bool ended;      /* that line had no newline: the file ends there */
    uint32_t pid;    /* of the last message: the table that follows is of that process */
    char *text;      /* the line; of a MESSAGE what follows "==PID== " */
    bool in_table;
    um_table_t table;
    um_row_t row; /* of a ROW */
    char line[UM_LOG_LINE];
} um_log_t;

void um_log_begin(um_log_t *log, FILE *in);
um_log_kind_t um_log_next(um_log_t *log);

#endif

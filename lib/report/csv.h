/*
 * csv.h - unified memory as the tables that `nsys stats` prints for it, for scripts that read those.
 *
 * um_sum                  a row for each address at which something moved or faulted, the quickest
 *                         migrations first: bytes each way, faults, bytes per second of moving
 * um_total_sum            one row over all of them
 * um_cpu_page_faults_sum  a row for each instruction of the CPU that faulted, most faults first;
 *                         function, file and line where they are known
 *
 * Names of columns, units (MB and MB/s of 10^6), order and blanks (nothing of that kind there) are
 * theirs; a GPU fault record counts the fault groups in it. Memory grows with the distinct addresses,
 * 48 bytes each, not with the length of the trace. Several traces are added up. One thread.
 */
#ifndef UM_CSV_H
#define UM_CSV_H

#include <stdio.h>

#include "um_event.h"

typedef struct um_csv um_csv_t;

/* The i-th table's name, NULL after the last. */
const char *um_csv_name(size_t i);

/* UM_ERR_NOT_FOUND: there is no such table. */
um_status_t um_csv_new(const char *table, um_csv_t **out);
void um_csv_free(um_csv_t *csv);
/* A new trace begins. */
void um_csv_begin(um_csv_t *csv);
/* Any event; most are ignored. UM_ERR_NO_MEMORY. */
um_status_t um_csv_event(um_csv_t *csv, const um_event_t *event);
/* At most `top` rows. UM_ERR_IO, UM_ERR_NO_MEMORY. */
um_status_t um_csv_write(um_csv_t *csv, uint64_t top, FILE *out);
/* The first line of that table: what a file of it begins with. */
const char *um_csv_head(const um_csv_t *csv);

#endif

/*
 * reader.h - the reader's inside door: a trace that is already in memory.
 */
#ifndef UM_READER_H
#define UM_READER_H

#include "um_trace.h"

/* As um_trace_reader_open, for tests and fuzzing. `data` must outlive the reader; `name` is what
 * error lines call it. */
um_status_t um_trace_reader_open_memory(const void *data, size_t bytes, const char *name,
                                        um_trace_order_t order, um_trace_reader_t **out,
                                        char *error, size_t error_bytes);

#endif

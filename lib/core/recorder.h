/*
 * recorder.h - the trace file of this process: its name, its header, and the bus sink that fills it.
 *
 * The file is created when recording starts and never overwrites another: a second process with the
 * same pattern gets ".<pid>" before the extension.
 */
#ifndef UM_RECORDER_H
#define UM_RECORDER_H

#include "bus.h"
#include "um_trace.h"

typedef struct um_recorder um_recorder_t;

/* Creates the file that `pattern` names and its header. UM_ERR_IO (errno set), UM_ERR_NO_MEMORY. */
um_status_t um_recorder_open(const char *pattern, um_recorder_t **out);
/* The sink for the bus; the recorder must outlive the bus thread. */
um_sink_t um_recorder_sink(um_recorder_t *recorder);
const char *um_recorder_path(const um_recorder_t *recorder);
/* Any thread; also after close. */
void um_recorder_stats(const um_recorder_t *recorder, um_trace_write_stats_t *out);
/* After the bus has stopped: ends the file. The recorder itself stays, for path and stats. */
um_status_t um_recorder_close(um_recorder_t *recorder);
void um_recorder_discard(um_recorder_t *recorder); /* close, and remove the file */
void um_recorder_abandon(um_recorder_t *recorder); /* forked child; async-signal-safe */
void um_recorder_free(um_recorder_t *recorder);    /* closes first; NULL is fine */

/* What the % letters of a pattern stand for. */
typedef struct um_recorder_names {
    long pid;         /* %p */
    const char *rank; /* %r */
    const char *host; /* %h */
} um_recorder_names_t;

/* Rank of this process as its launcher tells it (Open MPI, PMIx, MPICH, MVAPICH, Slurm), else "0". */
const char *um_recorder_rank(void);

/* The n-th name to try for a pattern: 0 = as it is, 1 = with ".<pid>" before the extension, then
 * ".<pid>.2" and so on. "%%" is a percent sign; other letters stay as they are. UM_ERR_FULL when it
 * does not fit, UM_ERR_INVALID for an empty pattern. */
um_status_t um_recorder_name(const char *pattern, const um_recorder_names_t *names, unsigned n,
                             char *out, size_t bytes);

#endif

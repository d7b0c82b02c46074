/*
 * um_trace.h - write and read .umt trace files (format: lib/trace/FORMAT.md).
 *
 * A trace is a header of facts followed by checked, compressed blocks of events. Every whole block
 * can be read whatever happened to the rest of the file.
 */
#ifndef UM_TRACE_H
#define UM_TRACE_H

#include "um_event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ---------------------------------------------------------------------------------- */

typedef struct um_trace_writer um_trace_writer_t;

typedef struct um_trace_write_options {
    int zstd_level;        /* 1..19, 0 = default (1) */
    uint32_t block_events; /* events a block, 256..65536, 0 = default */
    uint32_t queue_blocks; /* sealed blocks that may wait for the disk, 2..256, 0 = default */
    bool exclusive;        /* fail with UM_ERR_IO/EEXIST when the file exists */
} um_trace_write_options_t;

/*
 * Creates `path` and starts the thread that compresses and writes. `facts` (n of them, may be 0) go
 * into the file header: use um_trace_host_facts for the usual ones. options may be NULL.
 * Errors: UM_ERR_IO (errno set), UM_ERR_NO_MEMORY, UM_ERR_INVALID. Copies all it needs.
 */
UM_API um_status_t um_trace_writer_open(const char *path, const um_ev_fact_t *facts, size_t n,
                                        const um_trace_write_options_t *options,
                                        um_trace_writer_t **out);

/*
 * Appends one event. One thread at a time (the caller serialises). Waits when the disk is slower
 * than the program and queue_blocks blocks are waiting. After a write error it drops the event and
 * counts it; the error itself is returned once (errno set) by this call or flush, whichever is first,
 * and again by close. The file ends at its last whole block then. Strings are cut at 1 MiB.
 * UM_ERR_INVALID: no such type, or an array of more than 131,072 elements; UM_ERR_NO_MEMORY: this
 * event is lost, the next may not be; both count as dropped.
 */
UM_API um_status_t um_trace_writer_put(um_trace_writer_t *writer, const um_event_t *event);

/* Seals what is buffered so that a kill loses none of it; returns before it is on disk. Same thread
 * rule as put. No-op when nothing is buffered. A block costs about 200 bytes more than its events:
 * some ten times a second is plenty. */
UM_API um_status_t um_trace_writer_flush(um_trace_writer_t *writer);

/* Figures so far; any thread. */
typedef struct um_trace_write_stats {
    uint64_t events;    /* accepted, and not dropped since */
    uint64_t dropped;   /* refused, or lost to a write error */
    uint64_t bytes;     /* in the file */
    um_status_t status; /* UM_OK, or what ended the trace */
    int error;          /* errno behind it */
} um_trace_write_stats_t;
UM_API void um_trace_writer_stats(const um_trace_writer_t *writer, um_trace_write_stats_t *out);

/* Writes what is left and the index, closes, frees. Returns the first error of the trace's life. */
UM_API um_status_t um_trace_writer_close(um_trace_writer_t *writer);

/*
 * Drops a writer inherited through fork() without touching the file or the (absent) thread: the
 * child's side of pthread_atfork. Async-signal-safe; leaks the memory on purpose. NULL is fine.
 */
UM_API void um_trace_writer_abandon(um_trace_writer_t *writer);

/*
 * Facts about this host and process (host.name, host.kernel, process.pid, process.command,
 * process.exe, rank.*, uvm.* module parameters, umrt.version ...) handed to `fn` one by one as FACT
 * events with time_ns = now_ns. Reads /proc, /sys and the environment only. Returns UM_OK.
 */
UM_API um_status_t um_trace_host_facts(uint64_t now_ns, um_event_fn fn, void *ctx);

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct um_trace_reader um_trace_reader_t;

typedef enum um_trace_order {
    UM_TRACE_FILE_ORDER = 0, /* as written: nearly sorted, cheapest */
    UM_TRACE_TIME_ORDER = 1  /* exactly by time_ns; ties keep file order; memory grows only with how
                                many blocks overlap in time */
} um_trace_order_t;

typedef struct um_trace_info {
    uint32_t version; /* of the format */
    uint64_t file_bytes;
    uint64_t events; /* in whole blocks */
    uint64_t blocks;
    uint64_t first_ns, last_ns; /* 0, 0 in an empty trace */
    bool finished;              /* closed properly (has its index) */
    size_t n_facts;             /* of the file header */
    const um_ev_fact_t *facts;  /* owned by the reader */
} um_trace_info_t;

/* Opens `path`. Errors: UM_ERR_IO, UM_ERR_FORMAT, UM_ERR_VERSION, UM_ERR_TRUNCATED (not even the
 * header is whole), UM_ERR_NO_MEMORY. `*out` is set on success only; on failure a line that names
 * file, offset and reason is in `error` (error_bytes long, may be NULL/0). */
UM_API um_status_t um_trace_reader_open(const char *path, um_trace_order_t order,
                                        um_trace_reader_t **out, char *error, size_t error_bytes);

UM_API const um_trace_info_t *um_trace_reader_info(const um_trace_reader_t *reader);

/*
 * Next event: UM_OK and *event (valid until the next call), UM_ERR_NOT_FOUND at the clean end. When
 * something is damaged, reading goes on with the next whole block, and the end is UM_ERR_FORMAT or
 * UM_ERR_IO instead; a file that is cut short or was never closed ends with UM_ERR_TRUNCATED. All
 * whole blocks have been delivered by then, um_trace_reader_error has the line, and every later call
 * returns the same. Strings are never NULL; what the file does not have is 0 or "".
 */
UM_API um_status_t um_trace_reader_next(um_trace_reader_t *reader, const um_event_t **event);

/* The one line about damage ("t.umt: offset 8192: block checksum does not match"), "" without. */
UM_API const char *um_trace_reader_error(const um_trace_reader_t *reader);

UM_API void um_trace_reader_close(um_trace_reader_t *reader); /* NULL is fine */

/* The value of a header fact, or NULL. Owned by the reader. */
UM_API const char *um_trace_reader_fact(const um_trace_reader_t *reader, const char *key);

#ifdef __cplusplus
}
#endif
#endif

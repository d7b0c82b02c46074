#include "um_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "encode.h"
#include "index.h"

#define DEFAULT_LEVEL        1
#define DEFAULT_BLOCK_EVENTS 16384u
#define DEFAULT_QUEUE_BLOCKS 8u

/* The descriptor is moved up here, out of the way of programs that count on low numbers. */
#define LOWEST_FD 128

struct um_trace_writer {
    int fd; /* set before the thread starts; only the thread writes to it */
    dev_t dev;
    ino_t ino;
    int level;
    uint32_t block_events, queue_blocks;

    /* The producer's. */
    um_rows_t *open;
    bool told; /* the error was returned once */

    /* Set by one side, read by any. */
    _Atomic uint64_t put, refused;     /* producer */
    _Atomic uint64_t discarded, bytes; /* thread */
    _Atomic int status, error;         /* thread; error is stored first */

    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t work, room;
    um_rows_t **queue; /* ring of queue_blocks */
    uint32_t head, queued;
    um_rows_t **idle; /* cleared, ready to become open */
    uint32_t n_idle;
    bool started; /* the header is written, or has failed */
    bool closing;

    /* The thread's. */
    pthread_t thread;
    um_bytes_t header; /* two copies */
    uint64_t seed;
    um_encoder_t encoder;
    um_bytes_t out;
    um_bytes_t index; /* um_index_entry_t each */
    uint64_t first_event;

    um_rows_t pool[]; /* queue_blocks + 2: one open, one being encoded */
};

/* ---- the thread: encodes and writes ------------------------------------------------------- */

static void fail(um_trace_writer_t *writer, um_status_t status, int error)
{
    atomic_store(&writer->error, error);
    atomic_store(&writer->status, status);
}

/* A program that closes descriptors it does not know may have got ours for a file of its own: look
 * before every write that it is still the trace. */
static bool still_ours(const um_trace_writer_t *writer)
{
    struct stat st;
    return fstat(writer->fd, &st) == 0 && st.st_dev == writer->dev && st.st_ino == writer->ino;
}

/* All of it or nothing: on an error the file ends where it ended before. */
static bool append(um_trace_writer_t *writer, const uint8_t *data, size_t n)
{
    uint64_t start = atomic_load(&writer->bytes);
    if (!still_ours(writer)) {
        fail(writer, UM_ERR_IO, EBADF);
        return false;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = write(writer->fd, data + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int error = got < 0 ? errno : ENOSPC;
            if (done && ftruncate(writer->fd, (off_t)start) != 0) {
                /* Not a regular file, or a broken disk: the reader copes with half a block. */
            }
            fail(writer, UM_ERR_IO, error);
            return false;
        }
        done += (size_t)got;
    }
    atomic_store(&writer->bytes, start + n);
    return true;
}

static void write_block(um_trace_writer_t *writer, const um_rows_t *rows)
{
    um_block_header_t header;
    uint64_t offset = atomic_load(&writer->bytes);

    writer->out.used = 0;
    um_index_entry_t *entry = (um_index_entry_t *)um_bytes_add(&writer->index, sizeof(*entry));
    if (!entry || um_rows_encode(rows, &writer->encoder, writer->level, writer->seed,
                                 writer->first_event, &writer->out, &header) != UM_OK) {
        fail(writer, UM_ERR_NO_MEMORY, ENOMEM);
        return;
    }
    if (!append(writer, writer->out.data, writer->out.used))
        return;
    *entry = (um_index_entry_t){offset, header.first_ns, header.last_ns, header.events,
                                header.packed_bytes};
    writer->first_event += header.events;
}

static void write_index(um_trace_writer_t *writer)
{
    writer->out.used = 0;
    if (!um_index_build(&writer->out, (um_index_entry_t *)writer->index.data,
                        writer->index.used / sizeof(um_index_entry_t), atomic_load(&writer->bytes),
                        writer->seed))
        fail(writer, UM_ERR_NO_MEMORY, ENOMEM);
    else
        append(writer, writer->out.data, writer->out.used);
}

static void *writer_main(void *arg)
{
    um_trace_writer_t *writer = arg;

    append(writer, writer->header.data, writer->header.used);
    pthread_mutex_lock(&writer->lock);
    writer->started = true;
    pthread_cond_signal(&writer->room);
    for (;;) {
        while (!writer->queued && !writer->closing)
            pthread_cond_wait(&writer->work, &writer->lock);
        if (!writer->queued)
            break;
        um_rows_t *rows = writer->queue[writer->head];
        writer->head = (writer->head + 1) % writer->queue_blocks;
        writer->queued--;
        pthread_mutex_unlock(&writer->lock);

        if (atomic_load(&writer->status) == UM_OK)
            write_block(writer, rows);
        if (atomic_load(&writer->status) != UM_OK)
            atomic_fetch_add(&writer->discarded, rows->events);
        um_rows_clear(rows);

        pthread_mutex_lock(&writer->lock);
        writer->idle[writer->n_idle++] = rows;
        pthread_cond_signal(&writer->room);
    }
    pthread_mutex_unlock(&writer->lock);
    if (atomic_load(&writer->status) == UM_OK)
        write_index(writer);
    return NULL;
}

/* ---- the producer ------------------------------------------------------------------------- */

/* Hands the open rows to the thread and opens others. */
static void seal(um_trace_writer_t *writer)
{
    pthread_mutex_lock(&writer->lock);
    while (writer->queued == writer->queue_blocks || !writer->n_idle)
        pthread_cond_wait(&writer->room, &writer->lock);
    writer->queue[(writer->head + writer->queued++) % writer->queue_blocks] = writer->open;
    writer->open = writer->idle[--writer->n_idle];
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
}

/* The writer's error, the first time it is asked for; UM_OK afterwards. */
static um_status_t error_once(um_trace_writer_t *writer)
{
    if (writer->told)
        return UM_OK;
    writer->told = true;
    errno = atomic_load(&writer->error);
    return atomic_load(&writer->status);
}

um_status_t um_trace_writer_put(um_trace_writer_t *writer, const um_event_t *event)
{
    if (atomic_load_explicit(&writer->status, memory_order_relaxed) != UM_OK) {
        atomic_fetch_add_explicit(&writer->refused, 1, memory_order_relaxed);
        return error_once(writer);
    }
    um_status_t status = um_rows_add(writer->open, event);
    if (status != UM_OK) {
        atomic_fetch_add_explicit(&writer->refused, 1, memory_order_relaxed);
        return status;
    }
    /* One thread at a time writes it: no need for a locked instruction. */
    uint64_t put = atomic_load_explicit(&writer->put, memory_order_relaxed);
    atomic_store_explicit(&writer->put, put + 1, memory_order_relaxed);
    if (writer->open->events >= writer->block_events || um_rows_full(writer->open))
        seal(writer);
    return UM_OK;
}

um_status_t um_trace_writer_flush(um_trace_writer_t *writer)
{
    if (writer->open->events > 0)
        seal(writer);
    return atomic_load(&writer->status) == UM_OK ? UM_OK : error_once(writer);
}

void um_trace_writer_stats(const um_trace_writer_t *writer, um_trace_write_stats_t *out)
{
    um_trace_writer_t *w = (um_trace_writer_t *)writer; /* C11 atomics cannot load from const */
    uint64_t discarded = atomic_load(&w->discarded), put = atomic_load(&w->put);
    *out = (um_trace_write_stats_t){
        .events = put - discarded,
        .dropped = atomic_load(&w->refused) + discarded,
        .bytes = atomic_load(&w->bytes),
        .status = atomic_load(&w->status),
        .error = atomic_load(&w->error),
    };
}

/* ---- life --------------------------------------------------------------------------------- */

static void writer_free(um_trace_writer_t *writer)
{
    for (uint32_t i = 0; i < writer->queue_blocks + 2; i++)
        um_rows_free(&writer->pool[i]);
    um_encoder_free(&writer->encoder);
    um_bytes_free(&writer->header);
    um_bytes_free(&writer->out);
    um_bytes_free(&writer->index);
    free(writer->queue);
    free(writer->idle);
    pthread_mutex_destroy(&writer->lock);
    pthread_cond_destroy(&writer->work);
    pthread_cond_destroy(&writer->room);
    free(writer);
}

static um_trace_writer_t *writer_new(const um_trace_write_options_t *options)
{
    uint32_t n = options->queue_blocks ? options->queue_blocks : DEFAULT_QUEUE_BLOCKS;
    um_trace_writer_t *writer = calloc(1, sizeof(*writer) + (n + 2) * sizeof(um_rows_t));
    if (!writer)
        return NULL;
    writer->queue_blocks = n;
    writer->level = options->zstd_level ? options->zstd_level : DEFAULT_LEVEL;
    writer->block_events = options->block_events ? options->block_events : DEFAULT_BLOCK_EVENTS;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->work, NULL);
    pthread_cond_init(&writer->room, NULL);
    writer->queue = calloc(n, sizeof(void *));
    writer->idle = calloc(n + 2, sizeof(void *));
    if (!writer->queue || !writer->idle) {
        writer_free(writer);
        return NULL;
    }
    writer->open = &writer->pool[0];
    for (uint32_t i = 1; i < n + 2; i++)
        writer->idle[writer->n_idle++] = &writer->pool[i];
    return writer;
}

/* Opens the file out of the program's way and remembers which one it is. */
static bool open_file(um_trace_writer_t *writer, const char *path, bool exclusive)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (exclusive ? O_EXCL : O_TRUNC);
    struct stat st;
    writer->fd = open(path, flags, 0666);
    if (writer->fd < 0)
        return false;
    int high = fcntl(writer->fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (high >= 0) {
        close(writer->fd);
        writer->fd = high;
    }
    if (fstat(writer->fd, &st) != 0) {
        int error = errno;
        close(writer->fd);
        errno = error;
        return false;
    }
    writer->dev = st.st_dev;
    writer->ino = st.st_ino;
    return true;
}

/* Starts the thread with every signal blocked: none of the program's handlers runs on it, and a
 * passed file size limit or a closed pipe is an error code, not SIGXFSZ or SIGPIPE. Waits until the
 * header is written. */
static um_status_t start(um_trace_writer_t *writer)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&writer->thread, NULL, writer_main, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        errno = error;
        return UM_ERR_IO;
    }
    pthread_setname_np(writer->thread, "umrt-trace");
    pthread_mutex_lock(&writer->lock);
    while (!writer->started)
        pthread_cond_wait(&writer->room, &writer->lock);
    writer->closing = atomic_load(&writer->status) != UM_OK;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    if (!writer->closing)
        return UM_OK;
    pthread_join(writer->thread, NULL);
    errno = atomic_load(&writer->error);
    return atomic_load(&writer->status);
}

um_status_t um_trace_writer_open(const char *path, const um_ev_fact_t *facts, size_t n,
                                 const um_trace_write_options_t *options, um_trace_writer_t **out)
{
    static const um_trace_write_options_t defaults;
    if (!options)
        options = &defaults;
    if (!path || !out || (n && !facts) || options->zstd_level < 0 || options->zstd_level > 19 ||
        (options->block_events && (options->block_events < 256 || options->block_events > 65536)) ||
        (options->queue_blocks && (options->queue_blocks < 2 || options->queue_blocks > 256)))
        return UM_ERR_INVALID;

    um_trace_writer_t *writer = writer_new(options);
    if (!writer)
        return UM_ERR_NO_MEMORY;
    writer->fd = -1;
    um_status_t status = um_header_build(&writer->header, facts, n);
    size_t bytes = writer->header.used;
    if (status == UM_OK && !um_bytes_add(&writer->header, bytes))
        status = UM_ERR_NO_MEMORY;
    if (status != UM_OK)
        goto failed;
    memcpy(writer->header.data + bytes, writer->header.data, bytes);
    writer->seed = um_header_seed(writer->header.data);

    status = UM_ERR_IO;
    if (!open_file(writer, path, options->exclusive))
        goto failed;
    status = start(writer);
    if (status != UM_OK)
        goto failed;
    *out = writer;
    return UM_OK;

failed:;
    int error = errno;
    if (writer->fd >= 0)
        close(writer->fd);
    writer_free(writer);
    errno = error;
    return status;
}

um_status_t um_trace_writer_close(um_trace_writer_t *writer)
{
    um_trace_writer_flush(writer);
    pthread_mutex_lock(&writer->lock);
    writer->closing = true;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);

    /* Some file systems only tell at the close that the data did not fit. */
    if (still_ours(writer) && close(writer->fd) != 0 && errno != EINTR &&
        atomic_load(&writer->status) == UM_OK)
        fail(writer, UM_ERR_IO, errno);
    um_status_t status = atomic_load(&writer->status);
    int error = atomic_load(&writer->error);
    writer_free(writer);
    if (status != UM_OK)
        errno = error;
    return status;
}

void um_trace_writer_abandon(um_trace_writer_t *writer)
{
    if (writer && still_ours(writer))
        close(writer->fd);
}

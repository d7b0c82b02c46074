#include "trace/import.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/import_open.h"
#include "trace/import_sink.h"

const char *um_import_kind_name(um_import_kind_t kind)
{
    static const char *const names[] = {
        [UM_IMPORT_UNKNOWN] = "unknown",
        [UM_IMPORT_NVPROF_TEXT] = "nvprof text",
        [UM_IMPORT_NVPROF_SQLITE] = "nvprof SQLite",
        [UM_IMPORT_NSYS_SQLITE] = "Nsight Systems SQLite",
        [UM_IMPORT_UMT] = "umt",
        [UM_IMPORT_EXPORT] = "umrt export",
    };

    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

/* A regular file, opened for reading: opening a FIFO must not wait for its writer. */
static um_status_t open_file(um_import_t *im, FILE **out)
{
    int fd = open(im->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return um_import_fail(im, UM_ERR_IO, "%s", strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return um_import_fail(im, UM_ERR_IO, "%s",
                              S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file");
    }
    *out = fdopen(fd, "rb");
    if (*out == NULL) {
        close(fd);
        return um_import_fail(im, UM_ERR_NO_MEMORY, "out of memory");
    }
    if (st.st_size == 0) {
        fclose(*out);
        return um_import_fail(im, UM_ERR_FORMAT, "offset 0: file is empty");
    }
    return UM_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static um_status_t not_a_trace(um_import_t *im)
{
    if (ends_with(im->path, ".nsys-rep") || ends_with(im->path, ".qdrep"))
        return um_import_fail(im, UM_ERR_FORMAT,
                              "an Nsight Systems report cannot be read itself; export it first: "
                              "nsys export --type sqlite %s",
                              im->path);
    return um_import_fail(im, UM_ERR_FORMAT,
                          "not an nvprof trace (text or SQLite), nor an SQLite export of Nsight "
                          "Systems or umrt, nor a "
                          "umrt trace");
}

/* What the file is, by its first bytes and, for a database, its tables. */
static um_status_t recognise(um_import_t *im, um_import_kind_t *out)
{
    static const char sqlite_magic[16] = "SQLite format 3";
    static const char umt_magic[8] = "UMT\r\n\x1a\n"; /* FORMAT.md */
    char head[4096];
    um_status_t status;
    FILE *in = NULL;
    size_t n;

    status = open_file(im, &in);
    if (status != UM_OK)
        return status;
    n = fread(head, 1, sizeof head, in);
    if (ferror(in)) {
        status = um_import_fail(im, UM_ERR_IO, "%s", strerror(errno));
    } else if (n >= sizeof sqlite_magic && memcmp(head, sqlite_magic, sizeof sqlite_magic) == 0) {
        sqlite3 *db = NULL;

        status = um_import_open_sqlite(im, &db);
        if (status == UM_OK)
            status = um_import_sqlite_kind(im, db, out);
        sqlite3_close(db);
    } else if (n >= sizeof umt_magic && memcmp(head, umt_magic, sizeof umt_magic) == 0) {
        *out = UM_IMPORT_UMT;
    } else if (memchr(head, '\0', n) == NULL) {
        rewind(in);
        status = um_import_is_nvprof_text(in);
        if (status == UM_OK)
            *out = UM_IMPORT_NVPROF_TEXT;
        else if (status == UM_ERR_FORMAT)
            status = not_a_trace(im);
        else
            um_import_fail(im, status, "%s", um_status_string(status));
    } else {
        status = not_a_trace(im);
    }
    fclose(in);
    return status;
}

um_status_t um_import_recognise(const char *path, um_import_kind_t *out, char *error,
                                size_t error_bytes)
{
    um_import_t im;
    um_status_t status;

    um_import_begin(&im, path, NULL, NULL, error, error_bytes);
    status = recognise(&im, out);
    um_import_end(&im);
    return status;
}

static um_status_t import_text(um_import_t *im)
{
    FILE *in = NULL;
    um_status_t status = open_file(im, &in);

    if (status == UM_OK) {
        status = um_import_nvprof_text(im, in);
        fclose(in);
    }
    return status;
}

static um_status_t import_sqlite(um_import_t *im, um_status_t (*read)(um_import_t *im, sqlite3 *db))
{
    sqlite3 *db = NULL;
    um_status_t status = um_import_open_sqlite(im, &db);

    if (status == UM_OK)
        status = read(im, db);
    sqlite3_close(db);
    return status;
}

um_status_t um_import_file(const char *path, um_event_fn fn, void *ctx, char *error,
                           size_t error_bytes)
{
    return um_import_process(path, 0, fn, ctx, error, error_bytes);
}

um_status_t um_import_process(const char *path, uint32_t process, um_event_fn fn, void *ctx,
                              char *error, size_t error_bytes)
{
    um_import_kind_t kind = UM_IMPORT_UNKNOWN;
    um_import_t im;
    um_status_t status;

    um_import_begin(&im, path, fn, ctx, error, error_bytes);
    im.process = process;
    status = recognise(&im, &kind);
    if (status == UM_OK) {
        switch (kind) {
        case UM_IMPORT_NVPROF_TEXT:
            status = import_text(&im);
            break;
        case UM_IMPORT_NVPROF_SQLITE:
            status = import_sqlite(&im, um_import_nvprof_sqlite);
            break;
        case UM_IMPORT_EXPORT:
            status = import_sqlite(&im, um_import_export);
            break;
        case UM_IMPORT_NSYS_SQLITE:
            status = import_sqlite(&im, um_import_nsys_sqlite);
            break;
        default:
            status = um_import_fail(&im, UM_ERR_UNSUPPORTED, "already a umrt trace: umrt report %s",
                                    path);
        }
    }
    um_import_end(&im);
    return status;
}

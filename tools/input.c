/* Which files may be read, and which may be written over. */
#include "um_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/import.h"
#include "um_trace.h"

static const char *file_kind(mode_t mode)
{
    static const struct {
        mode_t type;
        const char *name;
    } kinds[] = {
        {S_IFDIR, "a directory"}, {S_IFIFO, "a pipe"},    {S_IFCHR, "a device"},
        {S_IFBLK, "a device"},    {S_IFSOCK, "a socket"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((mode & S_IFMT) == kinds[i].type)
            return kinds[i].name;
    return "something else";
}

um_status_t um_input_check(const char *path, char *error, size_t error_bytes)
{
    struct stat st;
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

    if (fd < 0) {
        snprintf(error, error_bytes, "%s: %s", path, strerror(errno));
        return UM_ERR_IO;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        snprintf(error, error_bytes, "%s: is %s, not a regular file", path, file_kind(st.st_mode));
        close(fd);
        return UM_ERR_FORMAT;
    }
    close(fd);
    return UM_OK;
}

/* Profiles are traces, too, by their format. `other`: it is of the other of these two kinds. */
static um_status_t kind_of(const char *path, bool profile, bool *other, char *error, size_t bytes)
{
    um_trace_reader_t *reader = NULL;
    um_status_t status = um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, error, bytes);

    *other = reader && !um_trace_reader_fact(reader, "profile.version") == profile;
    um_trace_reader_close(reader);
    return status;
}

static bool is_trace(const char *path, bool profile)
{
    bool other;
    um_status_t status = kind_of(path, profile, &other, NULL, 0);

    return (status == UM_OK || status == UM_ERR_TRUNCATED || status == UM_ERR_VERSION) && !other;
}

um_status_t um_input_check_trace(const char *path, char *error, size_t error_bytes)
{
    um_status_t status = um_input_check(path, error, error_bytes);
    bool profile;

    if (status)
        return status;
    kind_of(path, false, &profile, NULL, 0); /* what else it may be is its reader's to say */
    if (!profile)
        return UM_OK;
    snprintf(error, error_bytes,
             "%s: is a profile, not a trace; read it with: umrt profile show %s", path, path);
    return UM_ERR_FORMAT;
}

um_status_t um_input_check_profile(const char *path, char *error, size_t error_bytes)
{
    um_import_kind_t kind;
    bool trace = false;
    struct stat st;
    um_status_t status = um_input_check(path, error, error_bytes);

    if (status)
        return status;
    if (stat(path, &st) == 0 && st.st_size == 0) {
        snprintf(error, error_bytes, "%s: offset 0: file is empty, not a profile", path);
        return UM_ERR_FORMAT;
    }
    status = um_import_recognise(path, &kind, error, error_bytes);
    if (status == UM_ERR_FORMAT)
        snprintf(error, error_bytes, "%s: offset 0: not a profile", path);
    else if (!status && kind != UM_IMPORT_UMT)
        snprintf(error, error_bytes, "%s: is of %s, not a profile", path,
                 um_import_kind_name(kind));
    else if (!status)
        status = kind_of(path, true, &trace, error, error_bytes);
    if (status || (kind == UM_IMPORT_UMT && !trace))
        return status;
    if (trace)
        snprintf(error, error_bytes, "%s: is a trace, not a profile; read it with: umrt report %s",
                 path, path);
    return UM_ERR_FORMAT;
}

static bool begins_with(const char *path, const char *start)
{
    char found[256];
    size_t n = strlen(start);
    FILE *file = fopen(path, "r");
    bool same =
        file && n <= sizeof(found) && fread(found, 1, n, file) == n && !memcmp(found, start, n);

    if (file)
        fclose(file);
    return same;
}

/* Nothing, or an empty file. */
static bool may_be_written(const char *path, bool *done)
{
    char error[PATH_MAX + 256];
    struct stat st;
    bool regular;

    *done = true;
    if (stat(path, &st) != 0)
        return true;
    regular = um_input_check(path, error, sizeof(error)) == UM_OK;
    *done = !regular || st.st_size == 0;
    return regular && *done;
}

static bool check(const char *path, const char *what, bool allowed)
{
    if (!allowed)
        um_say("%s is not %s; it is not overwritten", path, what);
    return allowed;
}

bool um_output_check_as(const char *path, const char *start, const char *what)
{
    bool done, allowed = may_be_written(path, &done);

    if (!done)
        allowed = start ? begins_with(path, start) : is_trace(path, false);
    return check(path, what, allowed);
}

bool um_output_check_trace(const char *path)
{
    return um_output_check_as(path, NULL, "a trace");
}

bool um_output_check_profile(const char *path)
{
    bool done, allowed = may_be_written(path, &done);

    return check(path, "a profile", done ? allowed : is_trace(path, true));
}

#include "um_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

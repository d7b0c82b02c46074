/* A result's way into a file: what was there stays until all of the new one is written. */
#include "um_tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *um_output_temporary(const char *path)
{
    char *name = NULL;

    return asprintf(&name, "%s.%ld.part", path, (long)getpid()) < 0 ? NULL : name;
}

int um_output_open(um_output_t *output, const char *path, const char *start, const char *what)
{
    *output = (um_output_t){.file = stdout, .path = path};
    if (!path)
        return UM_EXIT_OK;
    if (!um_output_check_as(path, start, what))
        return UM_EXIT_USAGE;
    output->temporary = um_output_temporary(path);
    output->file = output->temporary ? fopen(output->temporary, "we") : NULL;
    if (output->file)
        return UM_EXIT_OK;
    um_say("%s: %s", path, strerror(output->temporary ? errno : ENOMEM));
    free(output->temporary);
    return UM_EXIT_FAILED;
}

int um_output_close(um_output_t *output, int status)
{
    if (!output->path)
        return status; /* um_say_end looks after stdout */
    errno = 0;
    if (fclose(output->file) != 0 && status == UM_EXIT_OK) {
        um_say("%s: %s", output->path, strerror(errno ? errno : EIO));
        status = UM_EXIT_FAILED;
    }
    if (status == UM_EXIT_OK && rename(output->temporary, output->path) != 0) {
        um_say("%s: %s", output->path, strerror(errno));
        status = UM_EXIT_FAILED;
    }
    if (status != UM_EXIT_OK)
        unlink(output->temporary);
    free(output->temporary);
    return status;
}

#include "pattern.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/recorder.h"
#include "um_tools.h"

static bool has_letter(const char *pattern, char letter)
{
    for (const char *p = strchr(pattern, '%'); p != NULL && p[1] != '\0'; p = strchr(p + 2, '%'))
        if (p[1] == letter)
            return true;
    return false;
}

/* ".%r" before the extension: ranks with one name would delete each other's files. */
static void add_rank(char *pattern, size_t bytes)
{
    const char *slash = strrchr(pattern, '/'), *dot = strrchr(pattern, '.');
    size_t stem = dot != NULL && dot > slash + 1 ? (size_t)(dot - pattern) : strlen(pattern);
    char extension[PATH_MAX];

    snprintf(extension, sizeof extension, "%s", pattern + stem);
    snprintf(pattern + stem, bytes - stem, ".%%r%s", extension);
}

int um_pattern_absolute(const char *command, const char *option, const char *name, char *pattern,
                        size_t bytes)
{
    char here[PATH_MAX];
    size_t used = 0;

    if (name[0] == '\0')
        return um_say_usage(command, "--%s: no file name", option);
    if (name[0] != '/') {
        if (getcwd(here, sizeof here) == NULL) {
            um_say("the current directory: %s", strerror(errno));
            return UM_EXIT_FAILED;
        }
        for (const char *c = here; *c != '\0' && used + 2 < bytes; c++) {
            if (*c == '%')
                pattern[used++] = '%';
            pattern[used++] = *c;
        }
        pattern[used++] = '/';
    }
    if (used + strlen(name) >= bytes) {
        um_say("%s: %s", name, strerror(ENAMETOOLONG));
        return UM_EXIT_FAILED;
    }
    strcpy(pattern + used, name);
    return UM_EXIT_OK;
}

static int remove_old(const char *path, const char *start, const char *what)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return UM_EXIT_OK;
    if (!um_output_check_as(path, start, what))
        return UM_EXIT_USAGE;
    if (unlink(path) != 0) {
        um_say("%s: %s", path, strerror(errno));
        return UM_EXIT_FAILED;
    }
    return UM_EXIT_OK;
}

/* The directory must be there and writable now: hours into a run is too late to find out. */
static int check_directory(const char *path)
{
    char dir[2 * PATH_MAX];

    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    if (access(dir[0] != '\0' ? dir : "/", W_OK | X_OK) == 0)
        return UM_EXIT_OK;
    um_say("%s: %s", dir[0] != '\0' ? dir : "/", strerror(errno));
    return UM_EXIT_FAILED;
}

int um_pattern_path(const char *pattern, char *path, size_t bytes)
{
    char host[256] = "";
    um_recorder_names_t names = {.pid = getpid(), .rank = um_recorder_rank(), .host = host};

    gethostname(host, sizeof host - 1);
    if (um_recorder_name(pattern, &names, 0, path, bytes) == UM_OK)
        return check_directory(path);
    um_say("%s: %s", pattern, strerror(ENAMETOOLONG));
    return UM_EXIT_FAILED;
}

int um_pattern_for_output(const char *command, const char *option, const char *name,
                          const char *start, const char *what, char *pattern, size_t bytes)
{
    int status = um_pattern_absolute(command, option, name, pattern, bytes);
    char path[2 * PATH_MAX];

    if (status != UM_EXIT_OK)
        return status;
    if (!has_letter(name, 'r') && !has_letter(name, 'p') && strcmp(um_recorder_rank(), "0") != 0)
        add_rank(pattern, bytes);
    status = um_pattern_path(pattern, path, sizeof path);
    if (status == UM_EXIT_OK && !has_letter(pattern, 'p'))
        status = remove_old(path, start, what);
    return status;
}

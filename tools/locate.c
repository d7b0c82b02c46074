#include "um_tools.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An explicit one that is not there is an error, not a reason to look elsewhere. */
static um_status_t explicit_library(const char *path, char *out, size_t out_bytes, char *error,
                                    size_t error_bytes)
{
    char real[PATH_MAX];

    if (realpath(path, real) == NULL || access(real, R_OK) != 0 || strlen(real) >= out_bytes) {
        snprintf(error, error_bytes, "UMRT_LIBRARY=%s cannot be read", path);
        return UM_ERR_NOT_FOUND;
    }
    strcpy(out, real);
    return UM_OK;
}

um_status_t um_locate_library(char *out, size_t out_bytes, char *error, size_t error_bytes)
{
    /* From the directory of the executable; in the build tree libtool may run .libs/umrt. */
    static const char *const beside[] = {"../lib", UM_LIBDIR_BESIDE, "../lib/x86_64-linux-gnu",
                                         ".libs",  "../.libs",       "."};
    const char *chosen = getenv("UMRT_LIBRARY");
    char exe[PATH_MAX], path[2 * PATH_MAX], real[PATH_MAX];
    ssize_t n;

    if (chosen != NULL && chosen[0] != '\0')
        return explicit_library(chosen, out, out_bytes, error, error_bytes);

    n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n > 0) {
        exe[n] = '\0';
        *strrchr(exe, '/') = '\0';
        for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
            snprintf(path, sizeof path, "%s/%s/libumrt.so", exe, beside[i]);
            if (realpath(path, real) != NULL && access(real, R_OK) == 0 &&
                strlen(real) < out_bytes) {
                strcpy(out, real);
                return UM_OK;
            }
        }
    }
    if (access(UM_LIBDIR "/libumrt.so", R_OK) == 0 && strlen(UM_LIBDIR "/libumrt.so") < out_bytes) {
        strcpy(out, UM_LIBDIR "/libumrt.so");
        return UM_OK;
    }
    snprintf(error, error_bytes,
             "libumrt.so is neither beside this umrt nor in %s; set UMRT_LIBRARY", UM_LIBDIR);
    return UM_ERR_NOT_FOUND;
}

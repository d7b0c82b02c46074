#include "places_rules.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const runtime_modules[] = {
    "libumrt*",    "libcuda.so*",   "libcudart*",   "libcupti*",     "libnvrtc*",
    "libcublas*",  "libnccl*",      "libnv*",       "libc.so*",      "libc-*",
    "libpthread*", "libdl.so*",     "libm.so*",     "ld-linux*",     "ld-2*",
    "libgcc_s*",   "libstdc++.so*", "libc++.so*",   "libc++abi.so*", "libgfortran*",
    "libffi*",     "libjemalloc*",  "libtcmalloc*", "libmimalloc*",  "linux-vdso*",
};

/* Functions of the CUDA runtime linked into the program, of the language's libraries, and allocators. */
static const char *const runtime_functions[] = {
    "cuda[A-Z]*",     "__cuda*",   "cu[A-Z]*",     "libcudart_static_*",
    "cudart::*",      "std::*",    "__gnu_cxx::*", "operator new*",
    "malloc",         "calloc",    "realloc",      "aligned_alloc",
    "posix_memalign", "thrust::*", "cub::*",       "cuda::*",
    "rmm::*",         "umpire::*", "Kokkos::*",    "amrex::*",
};

/* Files whose functions are inlined into the user's. */
static const char *const runtime_files[] = {
    "*/cuda_runtime*.h", "*/include/c++/*", "*/include/crt/*", "*/include/thrust/*",
    "*/include/cub/*",   "*/include/rmm/*", "*/cuda/std/*",
};

static const char *const python_libraries[] = {
    "*/site-packages/*", "*/dist-packages/*", "*/lib/python[23]*", "*/lib/pypy*", "<frozen *",
};

static bool matches(const char *text, const char *const *patterns, size_t n)
{
    for (size_t i = 0; *text && i < n; i++)
        if (fnmatch(patterns[i], text, 0) == 0)
            return true;
    return false;
}

bool um_is_runtime_module(const char *name)
{
    return matches(name, runtime_modules, COUNT(runtime_modules));
}

bool um_is_runtime_code(const char *function, const char *file)
{
    /* A wrapper of the user's may well be named as CUDA's functions are, but it has a file. */
    bool cuda = !strncmp(function, "cu", 2) && !strstr(function, "::");

    if (matches(file, runtime_files, COUNT(runtime_files)))
        return true;
    return (!cuda || !*file) && matches(function, runtime_functions, COUNT(runtime_functions));
}

bool um_is_python_library(const char *path)
{
    return matches(path, python_libraries, COUNT(python_libraries));
}

/* gfortran's "__grid_MOD_make" is make of module grid. */
static char *fortran_name(const char *linkage, const char *name)
{
    const char *in = !strncmp(linkage, "__", 2) ? strstr(linkage, "_MOD_") : NULL;
    char *readable = NULL;

    if (in && asprintf(&readable, "%.*s::%s", (int)(in - linkage - 2), linkage + 2, in + 5) < 0)
        return NULL;
    if (in)
        return readable;
    return strdup(name ? name : !strcmp(linkage, "MAIN__") ? "main program" : linkage);
}

char *um_readable_name(const char *linkage, const char *name, const char *scope, bool fortran)
{
    char *readable = NULL;

    if (!linkage && !name)
        return strdup("");
    if (!linkage)
        return asprintf(&readable, "%s%s", scope, name) < 0 ? NULL : readable;
    if (fortran || !strcmp(linkage, "MAIN__") ||
        (!strncmp(linkage, "__", 2) && strstr(linkage, "_MOD_")))
        return fortran_name(linkage, name);
    if (!strncmp(linkage, "_Z", 2))
        return um_demangle_short(linkage);
    return strdup(name ? name : linkage);
}

/*
 * inject [COMMAND...] - does what the CUDA driver does at cuInit: loads CUDA_INJECTION64_PATH and
 * calls InitializeInjection. Then executes COMMAND, or exits 0. So the scripts of this folder see the
 * whole of `umrt run` on a machine without a GPU.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void);

    if (library == NULL) {
        fprintf(stderr, "inject: %s\n",
                path != NULL ? dlerror() : "CUDA_INJECTION64_PATH is not set");
        return 99;
    }
    *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize == NULL || initialize() != 1)
        return 98;
    if (argc > 1) {
        execvp(argv[1], argv + 1);
        return 97;
    }
    return 0;
}

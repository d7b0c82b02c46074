/* Opens each library given, allocates in it, and closes it again: code comes and goes at one address. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned long long (*grid)(size_t bytes);
    int failed = gpu_start();

    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);

        *(void **)&grid = library ? dlsym(library, "library_grid") : NULL;
        failed |= !grid || !grid((size_t)i << 20);
        if (library)
            dlclose(library);
    }
    printf("%d\n", failed);
    return failed;
}

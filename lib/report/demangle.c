#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*um_demangle_fn)(const char *name, char *buffer, size_t *bytes, int *status);

static um_demangle_fn find(void)
{
    static const char *const library[] = {"libstdc++.so.6", "libc++abi.so.1"};
    static um_demangle_fn found;
    static bool tried;

    for (size_t i = 0; !tried && !found && i < sizeof(library) / sizeof(library[0]); i++) {
        void *handle = dlopen(library[i], RTLD_LAZY | RTLD_LOCAL);

        if (handle)
            *(void **)&found = dlsym(handle, "__cxa_demangle"); /* stays open for good */
    }
    tried = true;
    return found;
}

char *um_demangle(const char *name)
{
    um_demangle_fn demangle = strncmp(name, "_Z", 2) ? NULL : find();
    int status = -1;
    char *readable = demangle ? demangle(name, NULL, NULL, &status) : NULL;

    return readable ? readable : strdup(name);
}

char *um_demangle_short(const char *name)
{
    char *full = um_demangle(name);
    size_t depth = 0, end, begin = 0;

    if (!full)
        return NULL;
    /* Up to the parameter list or, before it, the template arguments of the last component. */
    for (end = 0; full[end]; end++) {
        if (full[end] == '(' && !depth && strncmp(full + end, "(anonymous", 10) != 0)
            break;
        if (full[end] == '(' && !strncmp(full + end, "(anonymous", 10))
            end += strcspn(full + end, ")");
        else if (full[end] == '<')
            depth++;
        else if (full[end] == '>' && depth)
            depth--;
        if (!full[end])
            break;
    }
    full[end] = 0;
    /* A return type stands before the last blank outside < >. */
    depth = 0;
    for (size_t i = 0; i < end; i++) {
        if (full[i] == '<')
            depth++;
        else if (full[i] == '>' && depth)
            depth--;
        else if (full[i] == ' ' && !depth && strncmp(full + i, " namespace)", 11) != 0)
            begin = i + 1;
    }
    memmove(full, full + begin, end - begin + 1);
    return full;
}

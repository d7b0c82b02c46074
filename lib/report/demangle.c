#include "demangle.h"

#include <ctype.h>
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

/* Length of an operator's name at `text` ("operator()", "operator<<", "operator new"), 0 elsewhere. */
static size_t operator_at(const char *whole, const char *text)
{
    size_t n = strlen("operator");

    if (strncmp(text, "operator", n) != 0 ||
        (text > whole && (isalnum((unsigned char)text[-1]) || text[-1] == '_')))
        return 0;
    if (text[n] == ' ') /* of a type, new, delete */
        return n + 1;
    if (!strncmp(text + n, "()", 2) || !strncmp(text + n, "[]", 2))
        return n + 2;
    return n + strspn(text + n, "<>=-+*/&|^!~%,");
}

/* The first character at or after `from`, outside of < > and { }, that is in `wanted`; skips what only
 * looks like one. NULL = none. */
static char *outside(char *whole, char *from, char wanted)
{
    size_t depth = 0;

    for (char *at = from; *at; at++) {
        size_t name = operator_at(whole, at);

        if (name) {
            at += name - 1;
        } else if (!strncmp(at, "(anonymous", 10)) {
            at += strcspn(at, ")");
            if (!*at)
                break;
        } else if (*at == wanted && !depth) {
            return at;
        } else if (*at == '<' || *at == '{') {
            depth++;
        } else if ((*at == '>' || *at == '}') && depth) {
            depth--;
        }
    }
    return NULL;
}

char *um_demangle_short(const char *name)
{
    char *full = um_demangle(name), *end, *begin, *blank;

    if (!full)
        return NULL;
    /* Up to the parameter list; a return type stands before the last blank. */
    end = outside(full, full, '(');
    if (end)
        *end = '\0';
    for (begin = full; (blank = outside(full, begin, ' ')) != NULL;)
        begin = blank + 1;
    memmove(full, begin, strlen(begin) + 1);
    return full;
}

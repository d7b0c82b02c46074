#include "trace/import_arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARRAYS = 1 << 20 };

struct um_array_name {
    size_t before; /* ranges printed before it */
    char text[UM_ARRAY_NAME];
};

/* Room for one more element; capacity doubles at each power of two. */
static void *grow(void *base, size_t n, size_t size)
{
    if (n > 0 && (n & (n - 1)) != 0)
        return base;
    return realloc(base, (n > 0 ? 2 * n : 1) * size);
}

static um_status_t add_name(um_arrays_t *arrays, const char *text)
{
    struct um_array_name *grown = grow(arrays->name, arrays->n_names, sizeof *grown);

    if (grown == NULL)
        return UM_ERR_NO_MEMORY;
    arrays->name = grown;
    grown += arrays->n_names++;
    grown->before = arrays->n;
    snprintf(grown->text, sizeof grown->text, "%s", text);
    return UM_OK;
}

static um_status_t add_range(um_arrays_t *arrays, const char *text)
{
    char *stop;
    uint64_t first = strtoull(text, &stop, 16), end = strtoull(stop, NULL, 16);
    um_array_t *grown;

    if (end <= first)
        return UM_OK;
    grown = grow(arrays->array, arrays->n, sizeof *grown);
    if (grown == NULL)
        return UM_ERR_NO_MEMORY;
    arrays->array = grown;
    grown += arrays->n++;
    *grown = (um_array_t){.first = first, .end = end, .number = arrays->number};
    if (grown->number == 0)
        grown->number = arrays->n;
    arrays->number = 0;
    return UM_OK;
}

um_status_t um_arrays_line(um_arrays_t *arrays, const char *line)
{
    static const char name[] = "alloc ",
                      number[] = "Number of allocated Data = ", range[] = "in api range: ";
    const char *at;

    if (strncmp(line, name, sizeof name - 1) == 0) {
        at = line + sizeof name - 1;
        if (arrays->n_names < MAX_ARRAYS && *at != '\0' && at[strcspn(at, " \t")] == '\0')
            return add_name(arrays, at);
    } else if ((at = strstr(line, number)) != NULL) {
        arrays->number = strtoull(at + sizeof number - 1, NULL, 10);
    } else if ((at = strstr(line, range)) != NULL && arrays->n < MAX_ARRAYS) {
        return add_range(arrays, at + sizeof range - 1);
    }
    return UM_OK;
}

/* Index of the array that the i-th name belongs to, SIZE_MAX for none. As many names as ranges: by order.
 * Else the next range, unless the next line was a name again: then this one came after its range. */
static size_t array_of(const um_arrays_t *arrays, size_t i)
{
    size_t at = arrays->name[i].before;
    bool again = i + 1 < arrays->n_names && arrays->name[i + 1].before == at;

    if (arrays->n_names == arrays->n)
        return i;
    return !again && at < arrays->n ? at : at - 1; /* SIZE_MAX when there is none before */
}

void um_arrays_pair(um_arrays_t *arrays)
{
    if (arrays->n == 0)
        return;
    for (size_t i = 0; i < arrays->n_names; i++) {
        size_t at = array_of(arrays, i);

        if (at < arrays->n && arrays->array[at].name[0] == '\0')
            strcpy(arrays->array[at].name, arrays->name[i].text);
    }
    for (size_t i = 0; arrays->array != NULL && i < arrays->n; i++)
        if (arrays->array[i].name[0] == '\0')
            snprintf(arrays->array[i].name, UM_ARRAY_NAME, "data %llu",
                     (unsigned long long)arrays->array[i].number);
}

void um_arrays_free(um_arrays_t *arrays)
{
    free(arrays->array);
    free(arrays->name);
    *arrays = (um_arrays_t){0};
}

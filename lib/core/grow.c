#include "grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool um_grow(void *array, size_t *room, size_t need, size_t element_bytes)
{
    size_t more = *room + *room / 2 + 16;
    void *old, *grown;

    if (need <= *room)
        return true;
    if (more < need)
        more = need;
    if (more > SIZE_MAX / element_bytes)
        return false;
    memcpy(&old, array, sizeof(old));
    grown = realloc(old, more * element_bytes);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof(grown));
    *room = more;
    return true;
}

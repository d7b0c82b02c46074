#include "workload_ids.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

/* Where it is or belongs. */
static size_t place(const um_ids_t *ids, uint32_t id)
{
    size_t low = 0, high = ids->n;

    if (high > 0 && ids->list[high - 1].id < id)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ids->list[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

um_status_t um_ids_put(um_ids_t *ids, uint32_t id, uint32_t value)
{
    size_t at = place(ids, id);

    if (at == ids->n || ids->list[at].id != id) {
        if (!um_grow(&ids->list, &ids->size, ids->n + 1, sizeof *ids->list))
            return UM_ERR_NO_MEMORY;
        memmove(&ids->list[at + 1], &ids->list[at], (ids->n - at) * sizeof *ids->list);
        ids->n++;
    }
    ids->list[at] = (um_id_t){id, value};
    return UM_OK;
}

const um_id_t *um_ids_find(const um_ids_t *ids, uint32_t id)
{
    size_t at = place(ids, id);

    return at < ids->n && ids->list[at].id == id ? &ids->list[at] : NULL;
}

void um_ids_free(um_ids_t *ids)
{
    free(ids->list);
    *ids = (um_ids_t){0};
}

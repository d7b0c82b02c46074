/* grow.h - arrays that grow as they fill. */
#ifndef UM_GROW_H
#define UM_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `need` elements in an array; *room of them fit now. `array` is the address of the pointer to
 * it, which is NULL while *room is 0. false = no memory, and nothing has changed. */
bool um_grow(void *array, size_t *room, size_t need, size_t element_bytes);

#endif

/* info.h - what the two halves of `umrt info` share: info.c (machine, settings), info_trace.c. */
#ifndef UM_INFO_H
#define UM_INFO_H

#include <jansson.h>
#include <stdbool.h>

#include "um_event.h"

/* A JSON string; bytes that are not UTF-8 become '?'. New reference. */
json_t *um_info_text(const char *text);
json_t *um_info_device(const um_ev_device_t *device);
/* One row "key  value" a member, in two aligned columns. */
void um_info_rows(const json_t *object);
/* Every GPU of the list as such rows, under a heading of its own. */
void um_info_gpus(const json_t *gpus);
/* Prints the document as JSON or through `text`, and drops the reference; root NULL = no memory.
 * Returns the exit status. */
int um_info_print(json_t *root, bool as_json, void (*text)(const json_t *root));

int um_info_trace(const char *path, bool as_json); /* returns the exit status */

#endif

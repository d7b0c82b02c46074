/*
 * learning.h - a run and its profile: what earlier runs learned comes in before the first launch, what
 * this one learned goes out at its end and on request.
 *
 * Which GPU it is has to be known first: so the profile is told as the first context, or managed memory,
 * shows. Saving makes no CUDA call.
 *
 * Threads: the sink's on the bus thread; what is said below from any, one at a time.
 */
#ifndef UM_LEARNING_H
#define UM_LEARNING_H

#include "hinter.h"

typedef struct um_learning um_learning_t;

/* Reads the file that `pattern` names (%p, %r, %h as for traces). One that is not there yet is fine; of
 * one that cannot be read a line says why. Errors: UM_ERR_NO_MEMORY; UM_ERR_INVALID (a line said why)
 * where nothing could ever be saved there: not a profile, a newer one, or no file name. */
um_status_t um_learning_open(const char *pattern, um_learning_t **out);
void um_learning_free(um_learning_t *learning); /* NULL is fine; the bus has stopped */

/* Must be added to the bus before the sinks that are told, `to` (the first n of them, at most 4): they get
 * the LEARNED events as if from the bus. */
um_sink_t um_learning_sink(um_learning_t *learning);
void um_learning_tells(um_learning_t *learning, const um_sink_t *to);

/* Takes over what the hinter knows and saves it. bus NULL = it has stopped; else it is asked on its
 * thread, UM_LEARNING_WAIT_MS at most: where it is held up in the driver that long, UM_ERR_BUSY. Nothing
 * learned: nothing is written. Says in one line what went wrong. */
#define UM_LEARNING_WAIT_MS 2000u
um_status_t um_learning_save(um_learning_t *learning, const um_hinter_t *hinter, um_bus_t *bus);

const char *um_learning_path(const um_learning_t *learning);
uint64_t um_learning_told(const um_learning_t *learning); /* facts that came in so far */

#endif

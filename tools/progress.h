/*
 * progress.h - how far something has come, on stderr while that is a terminal, and nothing elsewhere.
 *
 * One line, drawn over and over from half a second on, and gone at the end. One at a time; one thread, or
 * calls that do not meet.
 */
#ifndef UM_PROGRESS_H
#define UM_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/* `what` is done ("reading t.umt"), in `all` steps; 0 = nobody knows how many. */
void um_progress_begin(const char *what, uint64_t all);
/* So many steps are done; costs next to nothing where nothing is to be drawn. */
void um_progress_step(uint64_t done);
void um_progress_end(void); /* also where none has begun */

/* All three for runs of the model, one after the other as they are done: for um_crew_run and um_sweep. */
void um_progress_simulating(void *ctx, size_t done, size_t all);

#endif

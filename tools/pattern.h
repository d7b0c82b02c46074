/*
 * pattern.h - names of files that a program under umrt will write, before it starts.
 *
 * In a pattern %p stands for the process id, %r for the rank, %h for the host name, %% for a percent sign.
 */
#ifndef UM_PATTERN_H
#define UM_PATTERN_H

#include <stddef.h>

/* `name` as given to --`option`, made absolute: the program may change its directory. UM_EXIT_OK, or the
 * status to leave with, having said why. */
int um_pattern_absolute(const char *command, const char *option, const char *name, char *pattern,
                        size_t bytes);

/* The name that this process's pattern stands for; its directory must be there and writable now: hours
 * into a run is too late to find out. Status as above. */
int um_pattern_path(const char *pattern, char *path, size_t bytes);

/* As both, for a file that each process makes for itself: ranks get names of their own, and an old file goes
 * away so that the new one gets the name. Only one of the same kind does: a trace, or, where `start` is
 * given, a file that begins with it (`what` names the kind). */
int um_pattern_for_output(const char *command, const char *option, const char *name,
                          const char *start, const char *what, char *pattern, size_t bytes);

#endif

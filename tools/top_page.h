/*
 * top_page.h - the figures of a running process, read from its page (core/top.h).
 *
 * What is in a page is another process's word: it is checked and its strings ended before anybody sees it.
 */
#ifndef UM_TOP_PAGE_H
#define UM_TOP_PAGE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/top.h"

typedef struct um_top_reader {
    pid_t pid;
    int fd; /* of the page; readable also when the process is gone */
    struct stat file;
    char link[64]; /* /proc/PID/fd/N */
} um_top_reader_t;

/*
 * Opens the page of a process. UM_ERR_NOT_FOUND: there is no such process, or it has no page; IO: it is
 * another user's; VERSION: another umrt's page; with a line that says which and what to do in `error`.
 */
um_status_t um_top_open(pid_t pid, um_top_reader_t *out, char *error, size_t error_bytes);
void um_top_close(um_top_reader_t *reader);

/* Asks for fresh figures, and waits a little for them. */
void um_top_ask(const um_top_reader_t *reader, int wait_ms);
/* The figures as they were written last, all of one time; false where there are none, or none that are whole
 * (the process was killed while it wrote). */
bool um_top_read(const um_top_reader_t *reader, um_top_figures_t *out);

/* Whether the process is there and still has this page; one that is gone, or has become another program, has
 * not. */
bool um_top_alive(const um_top_reader_t *reader);

/* A process below `root` in the tree of processes, or root itself, that has a page to read; 0 = none yet. */
pid_t um_top_find(pid_t root);

#endif

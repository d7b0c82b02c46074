/*
 * top_screen.h - the view of a process that fills a terminal, by ncurses; without it none can be opened.
 */
#ifndef UM_TOP_SCREEN_H
#define UM_TOP_SCREEN_H

#include "top_frame.h"

/* Whether stdin and stdout are a terminal that can show it. */
bool um_top_screen_possible(void);
/* Takes the terminal; false: it cannot be had. */
bool um_top_screen_open(void);
/* Gives it back as it was. */
void um_top_screen_close(void);

/* view->now NULL = nothing but the note. */
void um_top_screen_draw(const um_top_view_t *view, const char *note);
/* Waits for a key, at most so long, and does what it says to the view. */
typedef enum um_top_key {
    UM_TOP_KEY_NONE,
    UM_TOP_KEY_REDRAW, /* the view or the size of the terminal has changed */
    UM_TOP_KEY_QUIT
} um_top_key_t;
um_top_key_t um_top_screen_key(um_top_view_t *view, int wait_ms);

#endif

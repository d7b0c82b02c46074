#include "progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "report/emitter.h"
#include "um_tools.h"

#define DRAW_NS   200000000u /* between two times */
#define PATIENCE  500000000u /* nothing is drawn before */
#define LOOK_MASK 4095u      /* the clock is looked at after so many steps that are many */
#define BAR_WIDTH 30
#define MARGIN    60 /* what the line has besides its text */

static struct {
    bool on, drawn;
    char *what;
    uint64_t all, due_ns, calls;
} progress;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int width(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void um_progress_begin(const char *what, uint64_t all)
{
    um_progress_end();
    if (!isatty(STDERR_FILENO))
        return;
    progress.what = um_text_clean(what);
    progress.on = progress.what != NULL;
    progress.all = all;
    progress.calls = 0;
    progress.due_ns = now_ns() + PATIENCE;
}

static void draw(uint64_t done)
{
    static const char full[] = "##############################",
                      none[] = "..............................";
    char count[UM_SAY_BYTES];
    int room = width() - MARGIN, filled;

    if (room < 0)
        room = 0;
    if (progress.all == 0) {
        fprintf(stderr, "\r%.*s  %s\033[K", room, progress.what, um_say_count(count, done));
    } else {
        done = done < progress.all ? done : progress.all;
        filled = (int)((double)done / (double)progress.all * BAR_WIDTH);
        fprintf(stderr, "\r[%.*s%.*s] %3d %%  %.*s\033[K", filled, full, BAR_WIDTH - filled, none,
                (int)((double)done / (double)progress.all * 100), room, progress.what);
    }
    fflush(stderr);
    progress.drawn = true;
}

void um_progress_step(uint64_t done)
{
    bool many = progress.all == 0 || progress.all > LOOK_MASK;
    uint64_t now;

    if (!progress.on || (many && (++progress.calls & LOOK_MASK) != 0))
        return;
    now = now_ns();
    if (now < progress.due_ns)
        return;
    progress.due_ns = now + DRAW_NS;
    draw(done);
}

void um_progress_end(void)
{
    if (progress.drawn)
        fputs("\r\033[K", stderr);
    if (progress.drawn)
        fflush(stderr);
    free(progress.what);
    memset(&progress, 0, sizeof progress);
}

void um_progress_simulating(void *ctx, size_t done, size_t all)
{
    (void)ctx;
    if (done == 1)
        um_progress_begin("simulating", all);
    um_progress_step(done);
    if (done == all)
        um_progress_end();
}

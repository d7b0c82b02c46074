#include "top_screen.h"

#ifdef UM_HAVE_CURSES

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#define KEYS "q quit  p pause  s/S sort by %s%s  r reverse  up/down page scroll"

static SCREEN *screen;
static bool utf8;
static uint32_t first; /* region shown */

bool um_top_screen_possible(void)
{
    int error;

    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           setupterm(NULL, STDOUT_FILENO, &error) == OK && cursor_address != NULL;
}

bool um_top_screen_open(void)
{
    setlocale(LC_CTYPE, "");
    utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        setlocale(LC_CTYPE, "C");
        return false;
    }
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    first = 0;
    return true;
}

void um_top_screen_close(void)
{
    if (screen == NULL)
        return;
    endwin();
    delscreen(screen);
    screen = NULL;
    setlocale(LC_CTYPE, "C");
}

/* ---- drawing ---- */

typedef struct um_drawing {
    int y, bottom; /* the next line, the first that is not ours */
} um_drawing_t;

/* Bytes of the first `most` characters. */
static int cut(const char *text, int most)
{
    int n = 0;

    for (; text[n] != '\0'; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && most-- == 0)
            break;
    return n;
}

static void draw_line(void *ctx, const char *text, bool heading)
{
    um_drawing_t *drawing = ctx;
    char plain[512];
    int width = COLS;

    if (drawing->y >= drawing->bottom || width <= 0)
        return;
    if (!utf8) {
        snprintf(plain, sizeof plain, "%s", text);
        for (char *p = plain; *p != '\0'; p++)
            if ((unsigned char)*p >= 0x80)
                *p = '?';
        text = plain;
    }
    move(drawing->y++, 0);
    if (heading)
        attron(A_REVERSE);
    addnstr(text, cut(text, width));
    if (heading) {
        for (int x = (int)strlen(text); x < width; x++)
            addch(' ');
        attroff(A_REVERSE);
    }
}

void um_top_screen_draw(const um_top_view_t *view, const char *note)
{
    um_drawing_t drawing = {.bottom = LINES - 1};
    char keys[160];

    erase();
    if (view->now != NULL) {
        um_top_totals(view, draw_line, &drawing);
        drawing.y++;
        um_top_advisors(view, draw_line, &drawing);
        drawing.y += view->now->n_advisors > 0;
        if (first >= view->now->n_regions)
            first = view->now->n_regions > 0 ? view->now->n_regions - 1 : 0;
        um_top_regions(view, first, draw_line, &drawing);
    }
    if (note != NULL)
        draw_line(&drawing, note, false);
    drawing = (um_drawing_t){.y = LINES - 1, .bottom = LINES};
    snprintf(keys, sizeof keys, KEYS, um_top_column_name(view->sort),
             view->reverse ? " reversed" : "");
    draw_line(&drawing, keys, true);
    refresh();
}

/* ---- keys ---- */

static void scroll_by(int n)
{
    first = n < 0 && first < (uint32_t)-n ? 0 : first + (uint32_t)n;
}

um_top_key_t um_top_screen_key(um_top_view_t *view, int wait_ms)
{
    const int page = LINES > 2 ? LINES / 2 : 1;

    timeout(wait_ms);
    switch (getch()) {
    case 'q':
    case 'Q':
    case 3: /* Ctrl-C, where the terminal sends no signal for it */
        return UM_TOP_KEY_QUIT;
    case 'p':
    case ' ':
        view->paused = !view->paused;
        break;
    case 's':
        view->sort = (um_top_column_t)((view->sort + 1) % UM_TOP_COLUMNS);
        break;
    case 'S':
        view->sort = (um_top_column_t)((view->sort + UM_TOP_COLUMNS - 1) % UM_TOP_COLUMNS);
        break;
    case 'r':
        view->reverse = !view->reverse;
        break;
    case KEY_UP:
    case 'k':
        scroll_by(-1);
        break;
    case KEY_DOWN:
    case 'j':
        scroll_by(1);
        break;
    case KEY_PPAGE:
        scroll_by(-page);
        break;
    case KEY_NPAGE:
        scroll_by(page);
        break;
    case KEY_HOME:
        first = 0;
        break;
    case KEY_RESIZE:
        break;
    default:
        return UM_TOP_KEY_NONE;
    }
    return UM_TOP_KEY_REDRAW;
}

#else

bool um_top_screen_possible(void)
{
    return false;
}

bool um_top_screen_open(void)
{
    return false;
}

void um_top_screen_close(void)
{
}

void um_top_screen_draw(const um_top_view_t *view, const char *note)
{
    (void)view;
    (void)note;
}

um_top_key_t um_top_screen_key(um_top_view_t *view, int wait_ms)
{
    (void)view;
    (void)wait_ms;
    return UM_TOP_KEY_QUIT;
}

#endif

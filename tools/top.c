/* umrt top: what umrt sees and does in a running program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "options.h"
#include "top_page.h"
#include "top_screen.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt top [OPTIONS] PID\n"
    "       umrt top [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
    "Shows live what umrt sees and does in a program: its regions of memory and where their bytes\n"
    "are, launches, the hints that umrt gives and what they have saved so far, and, if the "
    "program\n"
    "is being recorded, faults and migrations.\n"
    "PID is a process that was started by 'umrt run' or 'umrt record', or is linked with libumrt.\n"
    "PROGRAM is started as 'umrt run' does it, and its exit status is that of umrt top. While the\n"
    "view fills the terminal, what PROGRAM writes there is kept, and shown when the view ends.\n"
    "\n"
    "  -i, --interval=S   seconds between two updates, 0.1 to 3600; default 1\n"
    "  -n, --count=N      end after N updates\n"
    "  -P, --plain        no full screen: each update is a line of name=value, for scripts. "
    "Always\n"
    "                     so where stdout is no terminal. For a PID on stdout; for a PROGRAM on\n"
    "                     stderr, in lines that begin 'umrt: '\n"
    "  -a, --all          with plain lines: one more for each advisor and each region\n"
    "  -s, --sort=COLUMN  how regions are sorted: address, size (default), family, gpu, host,\n"
    "                     faults, moved or name\n"
    "  -m, --mode=MODE    of PROGRAM: hint (default), observe (watch only) or trial (see umrt "
    "run)\n"
    "  -h, --help         this text\n"
    "\n"
    "keys: q quits, p pauses, s and S choose the column to sort by, r reverses the order, arrows\n"
    "and page keys scroll\n";

#define STEP_MS 100 /* between looks at keys and at the end of the program */
#define FIND_MS 20  /* between looks for a process that has just begun */

typedef struct um_top_command {
    um_launch_t launch;
    const char *mode; /* NULL = none given */
    int interval_ms;
    uint64_t count; /* 0 = no end */
    bool plain, all;

    pid_t child; /* the program that was started; 0 = it was running */
    int output;  /* what it writes to the terminal, for later; -1 = it is not kept */
    off_t written;
    um_top_reader_t reader;
    um_top_view_t view;
    um_top_figures_t figures[2]; /* the last and the one before */
    bool screen;                 /* is open */
    FILE *to;                    /* the plain view's */
    uint64_t looks;
} um_top_command_t;

static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    signalled = number;
}

/* ---- the program's output, while the screen is ours ---- */

static int output_file(void)
{
    int fd = memfd_create("umrt-output", MFD_CLOEXEC);

    /* Both of its streams write at the end, whoever of them came last. */
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static void write_output(um_top_command_t *top)
{
    char buffer[65536];
    ssize_t n;

    while (top->output >= 0 && (n = pread(top->output, buffer, sizeof buffer, top->written)) > 0) {
        top->written += n;
        for (ssize_t at = 0, wrote; at < n; at += wrote)
            if ((wrote = write(STDOUT_FILENO, buffer + at, (size_t)(n - at))) < 0)
                return;
    }
}

/* ---- one look ---- */

static bool child_ended(const um_top_command_t *top)
{
    siginfo_t info = {0};

    return top->child > 0 &&
           waitid(P_PID, (id_t)top->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == top->child;
}

static void show(um_top_command_t *top, const char *note)
{
    if (top->screen)
        um_top_screen_draw(&top->view, note);
    else if (top->view.now != NULL && note == NULL)
        um_top_plain(&top->view, top->child > 0 ? "umrt: " : "", top->all, top->to);
}

static void take(um_top_command_t *top)
{
    um_top_view_t *view = &top->view;
    um_top_figures_t *next = &top->figures[view->now == top->figures];

    um_top_ask(&top->reader, STEP_MS);
    /* In this order: what is read once it is gone is the last. */
    view->over = !um_top_alive(&top->reader);
    if (!um_top_read(&top->reader, next))
        return;
    view->over |= next->ended != 0;
    view->before = view->now != NULL ? view->now : next;
    view->now = next;
    if (view->places != NULL)
        um_top_learn(view->places, next);
}

/* Until the next look is due; false = enough. */
static bool wait_for_next(um_top_command_t *top)
{
    um_top_key_t key;

    for (int left = top->interval_ms; left > 0; left -= STEP_MS) {
        int most = top->reader.fd >= 0 ? STEP_MS : FIND_MS, step = left < most ? left : most;
        const struct timespec pause = {.tv_nsec = step * 1000000L};

        if (signalled)
            return false;
        if (!top->screen) {
            nanosleep(&pause, NULL);
        } else {
            key = um_top_screen_key(&top->view, step);
            if (key == UM_TOP_KEY_QUIT)
                return false;
            if (key == UM_TOP_KEY_REDRAW)
                show(top, top->view.now == NULL ? "waiting for managed memory" : NULL);
        }
        if (top->reader.fd >= 0 ? !um_top_alive(&top->reader) : top->child > 0)
            return true; /* at once: it has ended, or is looked for */
    }
    return true;
}

/* Of a program that we started the first process that there is something to see of. */
static bool find(um_top_command_t *top)
{
    char error[256];
    pid_t pid = um_top_find(top->child);

    if (pid == 0 || um_top_open(pid, &top->reader, error, sizeof error) != UM_OK)
        return false;
    top->view.pid = (int)pid;
    top->view.now = top->view.before = NULL;
    return true;
}

/* Until there is nothing more to see, or nobody wants to. */
static void watch(um_top_command_t *top)
{
    do {
        if (top->reader.fd < 0 && !find(top)) {
            if (child_ended(top))
                return;
            show(top, "waiting for managed memory");
            continue;
        }
        if (!top->view.paused || !um_top_alive(&top->reader)) {
            take(top);
            show(top, NULL);
            top->looks++;
        }
        if (top->view.over) {
            if (top->child == 0)
                return;
            um_top_close(&top->reader); /* there may be another one */
            top->view.over = false;
        }
    } while ((top->count == 0 || top->looks < top->count) && wait_for_next(top));
}

/* ---- a program of its own ---- */

static void meanwhile(void *ctx, pid_t child)
{
    um_top_command_t *top = ctx;
    const struct timespec pause = {.tv_nsec = STEP_MS * 1000000L};

    top->child = child;
    top->screen = top->output >= 0 && um_top_screen_open();
    if (top->screen || top->output < 0)
        watch(top);
    um_top_screen_close();
    top->screen = false;
    while (top->output >= 0 && !child_ended(top)) {
        write_output(top);
        nanosleep(&pause, NULL);
    }
    write_output(top);
}

static int run_program(um_top_command_t *top, char **argv)
{
    int status;

    if (!top->plain && um_top_screen_possible())
        top->output = output_file();
    top->to = stderr;
    um_launch_inject(&top->launch, top->mode);
    top->launch.meanwhile = meanwhile;
    top->launch.ctx = top;
    top->launch.instead = top->output;
    status = um_launch_program(&top->launch, argv);
    um_run_tell(&top->launch);
    um_launch_free(&top->launch);
    if (top->output >= 0)
        close(top->output);
    return status;
}

/* ---- a program that runs ---- */

static void print_line(void *ctx, const char *text, bool heading)
{
    (void)ctx;
    (void)heading;
    puts(text);
}

static int watch_process(um_top_command_t *top, pid_t pid)
{
    struct sigaction act = {.sa_handler = on_signal};
    char error[512];

    if (um_top_open(pid, &top->reader, error, sizeof error) != UM_OK) {
        um_say("%s", error);
        return UM_EXIT_USAGE;
    }
    top->view.pid = (int)pid;
    top->to = stdout;
    if (!top->plain && um_top_screen_possible()) {
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        sigaction(SIGHUP, &act, NULL);
        top->screen = um_top_screen_open();
    }
    watch(top);
    um_top_screen_close();
    if (top->screen && top->view.over && top->view.now != NULL)
        um_top_totals(&top->view, print_line, NULL);
    if (top->view.now == NULL && !signalled) {
        um_say("process %d shows no figures: it does not answer", (int)pid);
        return UM_EXIT_FAILED;
    }
    return signalled && signalled != SIGINT ? UM_EXIT_SIGNAL + signalled : UM_EXIT_OK;
}

/* ---- the command ---- */

static int take_mode(um_top_command_t *top, const char *value)
{
    static const char *const modes[] = {"hint", "observe", "trial"};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(value, modes[i]) == 0) {
            top->mode = modes[i];
            return UM_EXIT_OK;
        }
    return um_say_usage("top", "--mode: '%s' is not hint, observe or trial", value);
}

static int take_flag(void *ctx, int val, const char *value)
{
    um_top_command_t *top = ctx;
    char *end;
    double seconds;

    switch (val) {
    case 'i':
        seconds = strtod(value, &end);
        if (end == value || *end != '\0' || !(seconds >= 0.1 && seconds <= 3600))
            return um_say_usage("top", "--interval takes 0.1 to 3600 seconds, not '%s'", value);
        top->interval_ms = (int)(seconds * 1000 + 0.5);
        return UM_EXIT_OK;
    case 'n':
        if (!um_number(value, 1, UINT64_MAX, &top->count))
            return um_say_usage("top", "--count takes a number of looks, not '%s'", value);
        return UM_EXIT_OK;
    case 'P':
        top->plain = true;
        return UM_EXIT_OK;
    case 'a':
        top->all = true;
        return UM_EXIT_OK;
    case 's':
        return um_top_column_parse(value, &top->view.sort)
                   ? UM_EXIT_OK
                   : um_say_usage("top", "there is no column '%s' to sort by", value);
    default:
        return take_mode(top, value);
    }
}

/* A number alone is a process; after "--" all is a program. */
static pid_t process_of(int argc, char **argv, int first)
{
    char *end;
    long pid;

    if (first != argc - 1 || strcmp(argv[first - 1], "--") == 0 || argv[first][0] < '0' ||
        argv[first][0] > '9')
        return 0;
    errno = 0;
    pid = strtol(argv[first], &end, 10);
    return *end == '\0' && errno == 0 && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

int um_cmd_top(int argc, char **argv)
{
    static const struct option own[] = {
        {"interval", required_argument, NULL, 'i'}, {"count", required_argument, NULL, 'n'},
        {"plain", no_argument, NULL, 'P'},          {"all", no_argument, NULL, 'a'},
        {"sort", required_argument, NULL, 's'},     {"mode", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    static const char *const own_settings[] = {"mode", "out", "deep", "top", NULL};
    static um_top_command_t top = {.interval_ms = 1000,
                                   .output = -1,
                                   .reader.fd = -1,
                                   .view.sort = UM_TOP_SIZE};
    um_flags_t flags = {"top", usage, "i:n:Pas:m:", own, own_settings, take_flag, &top};
    int first, status = um_flags_parse(&flags, argc, argv, &first);
    pid_t pid;

    if (first == 0)
        return status;
    pid = process_of(argc, argv, first);
    if (pid != 0 && top.mode != NULL)
        return um_say_usage("top", "--mode is for a PROGRAM that top starts, not for a process");
    if (top.mode == NULL)
        top.mode = "hint";
    if (um_places_new(&top.view.places) != UM_OK) {
        um_say("out of memory");
        return UM_EXIT_FAILED;
    }
    status = pid != 0 ? watch_process(&top, pid) : run_program(&top, argv + first);
    um_top_close(&top.reader);
    um_places_free(top.view.places);
    return status;
}

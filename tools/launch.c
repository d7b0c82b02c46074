#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/note.h"
#include "um_tools.h"

/* ---- before ------------------------------------------------------------------------------------ */

static void make_notes_file(um_launch_t *launch)
{
    const char *dir = getenv("TMPDIR");
    int fd;

    if (dir == NULL || dir[0] != '/' || strlen(dir) > PATH_MAX - 32)
        dir = "/tmp";
    snprintf(launch->notes, sizeof launch->notes, "%s/umrt-notes-XXXXXX", dir);
    fd = mkostemp(launch->notes, O_CLOEXEC);
    if (fd < 0) {
        launch->notes[0] = '\0'; /* the processes then speak on stderr */
        return;
    }
    close(fd);
    setenv(UM_NOTE_ENV, launch->notes, 1);
}

void um_launch_inject(um_launch_t *launch, const char *mode)
{
    const char *other = getenv("CUDA_INJECTION64_PATH");
    char library[PATH_MAX], error[PATH_MAX + 128];
    bool found = um_locate_library(library, sizeof library, error, sizeof error) == UM_OK;

    if (other != NULL && other[0] != '\0') {
        if (launch->quiet)
            return;
        if (found && strcmp(other, library) == 0)
            um_say("this runs under umrt already; the program is the outer one's");
        else
            um_say("CUDA_INJECTION64_PATH already names %s; the program runs without umrt", other);
        return;
    }
    if (!found) {
        if (!launch->quiet)
            um_say("%s; the program runs without umrt", error);
        return;
    }
    setenv("CUDA_INJECTION64_PATH", library, 1);
    setenv("UMRT_MODE", mode, 1);
    if (strcmp(mode, "record") == 0) /* NVTX finds its ranges' listener by itself, before CUDA */
        setenv("NVTX_INJECTION64_PATH", library, 0);
    if (launch->quiet) { /* on the program's stderr, too */
        setenv("UMRT_LOG_LEVEL", "0", 0);
        setenv("UMRT_SUMMARY", "off", 0);
    }
    make_notes_file(launch);
    launch->injected = true;
}

/* ---- the program ------------------------------------------------------------------------------- */

static const int forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static const int left_to_program[] = {SIGINT, SIGQUIT, SIGPIPE, SIGCHLD};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static volatile sig_atomic_t child;

static void forward(int signal)
{
    int saved = errno;

    if (child > 0)
        kill((pid_t)child, signal);
    errno = saved;
}

/* Our dispositions while the program runs, and the way back to those that we were started with. */
typedef struct um_signals {
    sigset_t mask;
    struct sigaction forwarded[COUNT(forwarded)];
    struct sigaction left[COUNT(left_to_program)];
} um_signals_t;

static void signals_take(um_signals_t *old)
{
    struct sigaction pass = {.sa_handler = forward, .sa_flags = SA_RESTART};
    sigset_t block;

    sigemptyset(&pass.sa_mask);
    sigemptyset(&block);
    /* Blocked until there is a child to pass them to. */
    for (size_t i = 0; i < COUNT(forwarded); i++)
        sigaddset(&block, forwarded[i]);
    sigprocmask(SIG_BLOCK, &block, &old->mask);
    for (size_t i = 0; i < COUNT(forwarded); i++) {
        sigaction(forwarded[i], NULL, &old->forwarded[i]);
        if (old->forwarded[i].sa_handler != SIG_IGN) /* nohup stays nohup */
            sigaction(forwarded[i], &pass, NULL);
    }
    for (size_t i = 0; i < COUNT(left_to_program); i++) {
        /* An ignored SIGCHLD would lose the exit status. */
        struct sigaction act = {.sa_handler = left_to_program[i] == SIGCHLD ? SIG_DFL : SIG_IGN};

        sigemptyset(&act.sa_mask);
        sigaction(left_to_program[i], &act, &old->left[i]);
    }
}

static void signals_give_back(const um_signals_t *old)
{
    for (size_t i = 0; i < COUNT(forwarded); i++)
        sigaction(forwarded[i], &old->forwarded[i], NULL);
    for (size_t i = 0; i < COUNT(left_to_program); i++)
        sigaction(left_to_program[i], &old->left[i], NULL);
    sigprocmask(SIG_SETMASK, &old->mask, NULL);
}

static void leave_terminal(int instead)
{
    int none = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

    if (none >= 0)
        dup2(none, STDIN_FILENO);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (isatty(fd))
            dup2(instead, fd);
}

static void execute(const um_launch_t *launch, char **argv, const um_signals_t *old, int report)
{
    int error;
    ssize_t ignored;

    if (launch->instead > 0)
        leave_terminal(launch->instead);
    signals_give_back(old);
    execvp(argv[0], argv);
    error = errno;
    ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(UM_EXIT_NOT_FOUND);
}

static int cannot_execute(const char *name, int error)
{
    um_say("%s: %s", name,
           error == ENOENT && strchr(name, '/') == NULL ? "command not found" : strerror(error));
    return error == ENOENT ? UM_EXIT_NOT_FOUND : UM_EXIT_CANNOT_EXECUTE;
}

static int run_and_wait(um_launch_t *launch, char **argv)
{
    um_signals_t old;
    int status = 0, error = 0, pipe_fd[2];
    ssize_t n;
    pid_t pid;

    /* Closed by a successful exec, or carries the errno of a failed one. */
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
        um_say("pipe: %s", strerror(errno));
        return UM_EXIT_CANNOT_EXECUTE;
    }
    signals_take(&old);
    pid = fork();
    if (pid == 0)
        execute(launch, argv, &old, pipe_fd[1]);
    child = (sig_atomic_t)pid;
    sigprocmask(SIG_SETMASK, &old.mask, NULL);
    close(pipe_fd[1]);
    if (pid < 0) {
        um_say("fork: %s", strerror(errno));
        close(pipe_fd[0]);
        return UM_EXIT_CANNOT_EXECUTE;
    }
    while ((n = read(pipe_fd[0], &error, sizeof error)) < 0 && errno == EINTR)
        ;
    close(pipe_fd[0]);
    if (n == 0 && launch->meanwhile != NULL)
        launch->meanwhile(launch->ctx, pid);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    child = 0;
    signals_give_back(&old);
    signal(SIGPIPE, SIG_IGN); /* nobody listens any more: the status still counts */
    if (n == (ssize_t)sizeof error)
        return cannot_execute(argv[0], error);
    launch->started = true;
    return WIFSIGNALED(status) ? UM_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- after ------------------------------------------------------------------------------------- */

static void replace(char **text, const char *with)
{
    char *copy = strdup(with);

    if (copy == NULL)
        return;
    free(*text);
    *text = copy;
}

/* A pid that writes another trace is another program: exec keeps the pid. */
static um_process_t *process(um_launch_t *launch, const um_note_t *note)
{
    um_process_t *p;

    for (size_t i = launch->n_processes; i-- > 0;) {
        p = &launch->processes[i];
        if (p->pid == note->pid && (note->trace_path[0] == '\0' || p->trace_path[0] == '\0' ||
                                    strcmp(p->trace_path, note->trace_path) == 0))
            return p;
    }
    p = realloc(launch->processes, (launch->n_processes + 1) * sizeof *p);
    if (p == NULL)
        return NULL;
    launch->processes = p;
    p += launch->n_processes;
    *p = (um_process_t){.pid = note->pid,
                        .reason = strdup(""),
                        .summary = strdup(""),
                        .trace_path = strdup("")};
    if (p->reason == NULL || p->summary == NULL || p->trace_path == NULL) {
        free(p->reason), free(p->summary), free(p->trace_path);
        return NULL;
    }
    launch->n_processes++;
    return p;
}

static void take_note(um_launch_t *launch, const um_note_t *note)
{
    um_process_t *p = process(launch, note);

    if (p == NULL)
        return;
    p->state = note->state;
    p->ended = note->kind == UM_NOTE_END;
    replace(p->ended ? &p->summary : &p->reason, note->text);
    if (note->trace_path[0] != '\0')
        replace(&p->trace_path, note->trace_path);
}

static void collect_notes(um_launch_t *launch)
{
    FILE *file = launch->notes[0] != '\0' ? fopen(launch->notes, "re") : NULL;
    char *line = NULL;
    size_t size = 0;
    um_note_t note;

    if (file == NULL)
        return;
    while (getline(&line, &size, file) > 0)
        if (um_note_parse(line, &note))
            take_note(launch, &note);
    free(line);
    fclose(file);
}

int um_launch_program(um_launch_t *launch, char **argv)
{
    int status = run_and_wait(launch, argv);

    collect_notes(launch);
    if (launch->notes[0] != '\0')
        unlink(launch->notes);
    return status;
}

void um_launch_free(um_launch_t *launch)
{
    for (size_t i = 0; i < launch->n_processes; i++) {
        free(launch->processes[i].reason);
        free(launch->processes[i].summary);
        free(launch->processes[i].trace_path);
    }
    free(launch->processes);
}

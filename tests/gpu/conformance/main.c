/*
 * main.c - one fixed sequence of probes of the driver API and of CUPTI, a line each: what a real driver
 * answers, and whether a software one answers the same.
 *
 *   cc -o conformance *.c -lcuda -ldl -pthread     (headers of CUDA 13.0 or later)
 *   KERNELS=examples/driver_api/kernels.ptx ./conformance [SECTION]...
 *
 * Each section runs in a process of its own, so that none can spoil another, for no more than half a
 * minute, and goes on in another process behind a probe that kills it. Nothing here passes a made-up handle or one
 * that is gone.
 */
#include "conformance.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if CUDA_VERSION < 13000
int main(void)
{
    printf("conformance: the headers are of CUDA before 13.0\n");
    return 77;
}
#else

#define SECTION_SECONDS 300 /* longer than any takes on a busy machine */
#define MOST_DEATHS     16

progress_t *um_progress;

/* A driver that nobody holds open starts anew, which takes seconds, for each process. */
static pid_t hold_driver(void)
{
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cuInit(0);
        for (;;)
            pause();
    }
    return child;
}

static int one_process(void (*section)(void))
{
    int status = 0;

    um_progress->probes = um_progress->lines = 0;
    um_progress->inside = false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECTION_SECONDS);
        section();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void run(const section_t *section)
{
    int status;

    memset(um_progress, 0, sizeof(*um_progress));
    um_progress->section = section->name;
    for (int deaths = 0;; deaths++) {
        status = one_process(section->run);
        int *killed = &um_progress->killed[(um_progress->probes - 1) % MOST_PROBES];
        if (!WIFSIGNALED(status) || !um_progress->inside || *killed >= TWICE ||
            deaths == MOST_DEATHS)
            break;
        *killed = WTERMSIG(status) + (*killed ? TWICE : 0);
    }
    um_progress->lines = um_progress->said;
    if (WIFSIGNALED(status))
        say("ended", "signal %d", WTERMSIG(status));
    else
        say("ended", "%d", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    const section_t *const tables[] = {um_probes_contexts,  um_probes_memory,  um_probes_hints,
                                       um_probes_code,      um_probes_streams, um_probes_graphs,
                                       um_probes_callbacks, um_probes_domains, um_probes_records};

    um_progress =
        mmap(NULL, sizeof(*um_progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (um_progress == MAP_FAILED)
        return 2;
    pid_t holder = hold_driver();
    for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
        for (const section_t *s = tables[t]; s->name; s++) {
            bool wanted = argc == 1;
            for (int i = 1; i < argc; i++)
                wanted |= strcmp(argv[i], s->name) == 0;
            if (wanted)
                run(s);
        }
    if (holder > 0) {
        kill(holder, SIGKILL);
        waitpid(holder, NULL, 0);
    }
    return 0;
}
#endif

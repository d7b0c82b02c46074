/*
 * launch.h - start a program with libumrt in it, wait for it as a shell does, hear what it left.
 *
 * The program's stdin, stdout, stderr, arguments, working directory, signal dispositions and process
 * group are what they would be without us. One launch a process.
 */
#ifndef UM_LAUNCH_H
#define UM_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "um_runtime.h"

/* What one process of the program said of itself (core/note.h). */
typedef struct um_process {
    int32_t pid;
    uint32_t state;   /* um_runtime_state_t */
    bool ended;       /* its runtime shut down in order */
    char *reason;     /* why it is not what was asked for; "" */
    char *summary;    /* the line of its end; "" */
    char *trace_path; /* "" */
} um_process_t;

typedef struct um_launch {
    bool quiet;    /* no line of ours but errors that keep the program from starting */
    bool injected; /* libumrt went with the program */
    bool started;  /* the program was executed */
    int instead;   /* above 0: where stdout and stderr go if they are a terminal, which it
                                gets no input of either */
    /* Called while the program runs, before it is waited for; NULL = nothing to do meanwhile. */
    void (*meanwhile)(void *ctx, pid_t pid);
    void *ctx;
    char notes[PATH_MAX];    /* file in which processes leave notes; "" */
    um_process_t *processes; /* in the order in which they came up */
    size_t n_processes;
} um_launch_t;

/* Puts libumrt into the environment (CUDA_INJECTION64_PATH, UMRT_MODE, the notes file). When that is
 * impossible (no library, another injection) one line says so and the program will run without umrt:
 * launch->injected stays false. */
void um_launch_inject(um_launch_t *launch, const char *mode);

/* Runs argv (NULL-terminated) and waits. Returns its exit status, 128 + signal when killed, 127 or 126
 * with a line when it could not be executed. SIGINT and SIGQUIT are the program's affair meanwhile;
 * SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 sent to us are passed on. Then collects the notes. */
int um_launch_program(um_launch_t *launch, char **argv);

/* run.c: what the program's processes said at their end, one line each on stderr. */
void um_run_tell(const um_launch_t *launch);

void um_launch_free(um_launch_t *launch);

#endif

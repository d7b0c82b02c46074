/* umrt run: a program with its managed memory moved ahead of use. */
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "options.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt run [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
    "Runs PROGRAM, unchanged, with its managed memory moved to where it will be needed.\n"
    "Its output and exit status are its own; one summary line follows on stderr.\n"
    "\n"
    "  -m, --mode=MODE   hint (default) or observe: watch and count, change nothing\n"
    "  -q, --quiet       no line of umrt's\n"
    "  -h, --help        this text\n";

typedef struct um_run {
    um_launch_t launch;
    um_mode_t mode;
} um_run_t;

static const char *mode_name(um_mode_t mode)
{
    return mode == UM_MODE_OBSERVE ? "observe" : mode == UM_MODE_OFF ? "off" : "hint";
}

static int take(void *ctx, int val, const char *value)
{
    um_run_t *run = ctx;

    if (val == 'q') {
        run->launch.quiet = true;
        return UM_EXIT_OK;
    }
    if (!um_parse_mode(value, &run->mode))
        return um_say_usage("run", "--mode: '%s' is not hint or observe", value);
    if (run->mode == UM_MODE_RECORD)
        return um_say_usage("run", "--mode=record is 'umrt record'");
    return UM_EXIT_OK;
}

static void tell(const um_launch_t *launch)
{
    if (launch->quiet || !launch->injected || !launch->started)
        return;
    if (launch->n_processes == 0)
        um_say("no CUDA calls seen");
    for (size_t i = 0; i < launch->n_processes; i++) {
        const um_process_t *p = &launch->processes[i];
        char who[32] = "";

        if (launch->n_processes > 1)
            snprintf(who, sizeof who, "process %d: ", (int)p->pid);
        /* The summary of a runtime that did not start has the reason in it. */
        if (p->reason[0] != '\0' && strstr(p->summary, p->reason) == NULL)
            um_say("%s%s", who, p->reason);
        if (p->summary[0] != '\0')
            um_say("%s%s", who, p->summary);
        else if (!p->ended && p->reason[0] == '\0')
            um_say("%sended without a summary (killed, or left by _exit)", who);
    }
}

int um_cmd_run(int argc, char **argv)
{
    static const struct option own[] = {
        {"mode", required_argument, NULL, 'm'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static const char *const own_settings[] = {"mode", "out", "deep", NULL};
    um_run_t run = {.mode = UM_MODE_HINT};
    um_flags_t flags = {"run", usage, "m:q", own, own_settings, take, &run};
    int first, status = um_flags_parse(&flags, argc, argv, &first);

    if (first == 0)
        return status;
    um_launch_inject(&run.launch, mode_name(run.mode));
    status = um_launch_program(&run.launch, argv + first);
    tell(&run.launch);
    um_launch_free(&run.launch);
    return status;
}

/* umrt run: a program with its managed memory moved ahead of use. */
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "options.h"
#include "pattern.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt run [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
    "Runs PROGRAM, unchanged, with its managed memory moved to where it will be needed.\n"
    "Its output and exit status are its own; one summary line follows on stderr.\n"
    "\n"
    "  -p, --profile=FILE  begin with what earlier runs have learned, and keep in FILE what this "
    "one does\n"
    "                      (made when it is not there)\n"
    "  -m, --mode=MODE     hint (default); observe: watch and count, change nothing; or trial: "
    "hint,\n"
    "                      but in every other round nothing, to measure what it is worth\n"
    "  -r, --report=FILE   write at the end what was done and why; as JSON where FILE ends in "
    ".json\n"
    "  -t, --trace=FILE    write a trace of the run, hints included, without faults and "
    "migrations\n"
    "  -q, --quiet         no line of umrt's\n"
    "  -h, --help          this text\n";

typedef struct um_run {
    um_launch_t launch;
    um_mode_t mode;
    char profile[2 * PATH_MAX]; /* absolute patterns, "" = none */
    char report[2 * PATH_MAX];
    char trace[2 * PATH_MAX];
} um_run_t;

static const char *mode_name(um_mode_t mode)
{
    switch (mode) {
    case UM_MODE_OFF:
        return "off";
    case UM_MODE_OBSERVE:
        return "observe";
    case UM_MODE_TRIAL:
        return "trial";
    default:
        return "hint";
    }
}

static int take_profile(um_run_t *run, const char *name)
{
    char path[2 * PATH_MAX];
    int status = um_pattern_absolute("run", "profile", name, run->profile, sizeof run->profile);

    return status == UM_EXIT_OK ? um_pattern_path(run->profile, path, sizeof path) : status;
}

static int take_report(um_run_t *run, const char *name)
{
    size_t length = strlen(name);
    bool as_json = length >= 5 && strcmp(name + length - 5, ".json") == 0;

    return um_pattern_for_output("run", "report", name,
                                 as_json ? "{\n  \"schema\": \"umrt-run\"" : "umrt run: ",
                                 "a report of a run", run->report, sizeof run->report);
}

static int take(void *ctx, int val, const char *value)
{
    um_run_t *run = ctx;

    if (val == 'q') {
        run->launch.quiet = true;
        return UM_EXIT_OK;
    }
    if (val == 'p')
        return take_profile(run, value);
    if (val == 't')
        return um_pattern_for_output("run", "trace", value, NULL, "a trace", run->trace,
                                     sizeof run->trace);
    if (val == 'r')
        return take_report(run, value);
    if (!um_parse_mode(value, &run->mode))
        return um_say_usage("run", "--mode: '%s' is not hint, observe or trial", value);
    if (run->mode == UM_MODE_RECORD)
        return um_say_usage("run", "--mode=record is 'umrt record'");
    return UM_EXIT_OK;
}

void um_run_tell(const um_launch_t *launch)
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
        {"profile", required_argument, NULL, 'p'},
        {"report", required_argument, NULL, 'r'},
        {"trace", required_argument, NULL, 't'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static const char *const own_settings[] = {"mode",   "out",   "deep", "profile",
                                               "report", "trace", NULL};
    static um_run_t run = {.mode = UM_MODE_HINT};
    um_flags_t flags = {"run", usage, "m:p:r:t:q", own, own_settings, take, &run};
    int first, status = um_flags_parse(&flags, argc, argv, &first);

    if (first == 0)
        return status;
    if (run.mode < UM_MODE_HINT && (run.profile[0] || run.report[0] || run.trace[0]))
        return um_say_usage("run", "--profile, --report and --trace go with --mode hint or trial");
    um_launch_inject(&run.launch, mode_name(run.mode));
    if (run.launch.injected && run.profile[0] != '\0')
        setenv("UMRT_PROFILE", run.profile, 1);
    if (run.launch.injected && run.report[0] != '\0')
        setenv("UMRT_REPORT", run.report, 1);
    if (run.launch.injected && run.trace[0] != '\0')
        setenv("UMRT_TRACE", run.trace, 1);
    status = um_launch_program(&run.launch, argv + first);
    um_run_tell(&run.launch);
    um_launch_free(&run.launch);
    return status;
}

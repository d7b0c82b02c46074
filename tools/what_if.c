/* The replay in a report's page: `umrt replay --json` in a process of its own, beside the reading of the
 * trace, so that it can be given up when it takes too long. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "um_tools.h"

#define LINE_BYTES   1024
#define MEMORY_BYTES (UINT64_C(3) << 29)

/* Never returns. An alarm ends it; without memory it ends by itself. */
static void replay(char **paths, int n, uint32_t seconds, FILE *out, FILE *err)
{
    char **argv = calloc((size_t)n + 4, sizeof(*argv));
    int argc = 0;

    if (!argv || dup2(fileno(out), STDOUT_FILENO) < 0 || dup2(fileno(err), STDERR_FILENO) < 0)
        _exit(UM_EXIT_FAILED);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow counts */
    setrlimit(RLIMIT_DATA, &(struct rlimit){MEMORY_BYTES, MEMORY_BYTES});
#endif
    if (nice(10) < 0) { /* then it is not */
    }
    argv[argc++] = "replay";
    argv[argc++] = "--json";
    argv[argc++] = "--";
    for (int i = 0; i < n; i++)
        argv[argc++] = paths[i];
    _exit(um_say_end(um_cmd_replay(argc, argv)));
}

void um_what_if_start(char **paths, int n, uint32_t seconds, um_what_if_t *what_if)
{
    *what_if = (um_what_if_t){.seconds = seconds};
    if (!seconds)
        return;
    what_if->out = tmpfile();
    what_if->err = tmpfile();
    fflush(NULL);
    what_if->pid = what_if->out && what_if->err ? fork() : -1;
    if (what_if->pid == 0)
        replay(paths, n, seconds, what_if->out, what_if->err);
}

/* {"absent": reason} */
static char *absent(const char *reason)
{
    json_t *json = json_pack("{s:s}", "absent", reason);
    char *text = json ? json_dumps(json, 0) : NULL;

    json_decref(json);
    return text;
}

/* Why it failed: the line that it said, less its "umrt: ". */
static char *complaint(const um_what_if_t *what_if)
{
    char line[LINE_BYTES] = "", *from = line;

    rewind(what_if->err);
    if (!fgets(line, sizeof(line), what_if->err))
        return absent("umrt replay failed");
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "umrt: ", 6))
        from += 6;
    return absent(from);
}

static char *result(const um_what_if_t *what_if, int status)
{
    char reason[LINE_BYTES];
    json_t *json;
    char *text;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        snprintf(reason, sizeof(reason),
                 "the replay took longer than %" PRIu32 " s; --what-if gives it more, umrt replay "
                 "all that it needs",
                 what_if->seconds);
        return absent(reason);
    }
    if (WIFSIGNALED(status))
        return absent("umrt replay died");
    rewind(what_if->out);
    json = json_loadf(what_if->out, 0, NULL); /* whole also where the trace is damaged */
    if (!json)
        return complaint(what_if);
    text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(json);
    return text;
}

static void release(um_what_if_t *what_if)
{
    if (what_if->out)
        fclose(what_if->out);
    if (what_if->err)
        fclose(what_if->err);
    *what_if = (um_what_if_t){0};
}

void um_what_if_drop(um_what_if_t *what_if)
{
    if (what_if->pid > 0) {
        kill(what_if->pid, SIGKILL);
        waitpid(what_if->pid, NULL, 0);
    }
    release(what_if);
}

char *um_what_if_end(um_what_if_t *what_if)
{
    char *text = NULL;
    int status = 0;

    if (what_if->pid > 0) {
        while (waitpid(what_if->pid, &status, 0) < 0 && errno == EINTR)
            ;
        text = result(what_if, status);
    } else {
        text = absent(what_if->seconds ? "no process for it" : "not asked for (--what-if 0)");
    }
    release(what_if);
    return text;
}
